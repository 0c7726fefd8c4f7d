#include "base/self/elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/demangle/demangle.h"

struct self_symbol {
	uint64_t start, size;
	uint32_t name; /* offset into the string table */
};

struct elf_symbols {
	const unsigned char *map;
	size_t len;
	struct str names; /* the string table */
	struct self_symbol *symbols; /* ascending by start, one per start */
	size_t n;
	struct buf build_id;
};

static const void *elf_symbols_piece(const struct elf_symbols *s, uint64_t offset, uint64_t len)
{
	return offset <= s->len && len <= s->len - offset ? s->map + offset : NULL;
}

static int elf_symbols_by_start(const void *a, const void *b)
{
	const struct self_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->size < y->size) - (x->size > y->size); /* the one that has a size first */
}

/*
 * Hand-written assembly often gives no size: the symbol then ends at the next one, or at the
 * section's end.
 */
static uint64_t elf_symbols_size_of(
	const Elf64_Sym *sym, const Elf64_Shdr *sections, unsigned sections_n)
{
	const Elf64_Shdr *in = sym->st_shndx < sections_n ? &sections[sym->st_shndx] : NULL;
	uint64_t offset = in ? sym->st_value - in->sh_addr : 0;

	if (sym->st_size || !in || offset >= in->sh_size)
		return sym->st_size;
	return in->sh_size - offset;
}

static enum err_code elf_symbols_read_table(struct elf_symbols *s, const Elf64_Shdr *table,
	const Elf64_Shdr *sections, unsigned sections_n, struct err *err)
{
	const Elf64_Shdr *names = &sections[table->sh_link];
	const Elf64_Sym *sym = elf_symbols_piece(s, table->sh_offset, table->sh_size);
	size_t n = table->sh_size / sizeof(*sym), kept = 0;

	s->names = (struct str){ elf_symbols_piece(s, names->sh_offset, names->sh_size),
		names->sh_size };
	if (!sym || !s->names.ptr || !s->names.len || s->names.ptr[s->names.len - 1])
		return err_set(err, ERR_INVALID, "symbol table lies beyond the end of the file");
	s->symbols = calloc(n ? n : 1, sizeof(*s->symbols));
	if (!s->symbols)
		return err_nomem(err, "symbols");
	for (size_t i = 0; i < n; i++) {
		unsigned type = ELF64_ST_TYPE(sym[i].st_info);

		if ((type == STT_FUNC || type == STT_GNU_IFUNC) && sym[i].st_shndx != SHN_UNDEF &&
			sym[i].st_name < s->names.len)
			s->symbols[s->n++] = (struct self_symbol){ sym[i].st_value,
				elf_symbols_size_of(&sym[i], sections, sections_n), sym[i].st_name };
	}
	qsort(s->symbols, s->n, sizeof(*s->symbols), elf_symbols_by_start);
	for (size_t i = 0; i < s->n; i++)
		if (!kept || s->symbols[i].start != s->symbols[kept - 1].start)
			s->symbols[kept++] = s->symbols[i];
	s->n = kept;
	return ERR_OK;
}

/* The note's name is "GNU\0"; what follows is the id. */
static void elf_symbols_read_build_id(struct elf_symbols *s, const Elf64_Shdr *section)
{
	const unsigned char *p = elf_symbols_piece(s, section->sh_offset, section->sh_size);
	Elf64_Nhdr note;

	if (!p || section->sh_size < sizeof(note) + 4)
		return;
	memcpy(&note, p, sizeof(note));
	if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		note.n_descsz > section->sh_size - sizeof(note) - 4)
		return;
	for (size_t i = 0; i < note.n_descsz; i++)
		buf_printf(&s->build_id, "%02x", p[sizeof(note) + 4 + i]);
}

static enum err_code elf_symbols_read_sections(struct elf_symbols *s, struct err *err)
{
	const Elf64_Ehdr *eh = elf_symbols_piece(s, 0, sizeof(*eh));
	const Elf64_Shdr *sh, *best = NULL;

	if (!eh || memcmp(eh->e_ident, ELFMAG, SELFMAG) || eh->e_ident[EI_CLASS] != ELFCLASS64)
		return err_set(err, ERR_INVALID, "not a 64-bit ELF file");
	sh = elf_symbols_piece(s, eh->e_shoff, (uint64_t)eh->e_shnum * sizeof(*sh));
	if (!sh)
		return err_set(err, ERR_INVALID, "section table lies beyond the end of the file");
	for (unsigned i = 0; i < eh->e_shnum; i++) {
		if (sh[i].sh_type == SHT_SYMTAB || (sh[i].sh_type == SHT_DYNSYM && !best))
			best = sh[i].sh_link < eh->e_shnum ? &sh[i] : best;
		if (sh[i].sh_type == SHT_NOTE && !s->build_id.len)
			elf_symbols_read_build_id(s, &sh[i]);
	}
	if (!best)
		return err_set(err, ERR_NOT_FOUND, "no symbol table");
	return elf_symbols_read_table(s, best, sh, eh->e_shnum, err);
}

enum err_code elf_symbols_open(const char *path, struct elf_symbols **out, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_symbols *s;
	enum err_code rc;
	struct stat st;
	void *map;

	if (fd < 0)
		return err_errno(err, errno, "symbols of %s", path);
	if (fstat(fd, &st) || st.st_size <= 0) {
		close(fd);
		return err_set(err, ERR_IO, "symbols of %s: not a file", path);
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return err_errno(err, errno, "symbols of %s", path);
	s = calloc(1, sizeof(*s));
	if (!s) {
		munmap(map, (size_t)st.st_size);
		return err_nomem(err, "symbols");
	}
	s->map = map;
	s->len = (size_t)st.st_size;
	if ((rc = elf_symbols_read_sections(s, err))) {
		elf_symbols_close(s);
		return err_wrap(err, rc, "symbols of %s", path);
	}
	*out = s;
	return ERR_OK;
}

void elf_symbols_close(struct elf_symbols *s)
{
	if (!s)
		return;
	munmap((void *)(uintptr_t)s->map, s->len);
	buf_release(&s->build_id);
	free(s->symbols);
	free(s);
}

struct str elf_symbols_find(const struct elf_symbols *s, uint64_t address)
{
	size_t lo = 0, hi = s->n, mid;
	const struct self_symbol *sym;

	while (lo < hi) { /* first symbol that begins above the address */
		mid = lo + (hi - lo) / 2;
		if (s->symbols[mid].start <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return STR("");
	sym = &s->symbols[lo - 1];
	if (address - sym->start >= sym->size)
		return STR("");
	return str_of(s->names.ptr + sym->name);
}

struct str elf_symbols_build_id(const struct elf_symbols *s)
{
	return buf_str(&s->build_id);
}

const char *elf_own_path(void)
{
	const char *started_by;

	if (access("/proc/self/exe", R_OK) == 0)
		return "/proc/self/exe";
	started_by = (const char *)getauxval(
		AT_EXECFN); /* NOLINT: the kernel gives a pointer as a number */
	return started_by ? started_by : "";
}

/* gcc names its copies of a function f.constprop.0, f.part.1, f.cold, ...: to people they are f. */
static struct str elf_symbols_without_clone(struct str symbol)
{
	for (size_t i = 1; i < symbol.len; i++)
		if (symbol.ptr[i] == '.')
			return (struct str){ symbol.ptr, i };
	return symbol;
}

void elf_demangle(struct buf *out, struct str symbol)
{
	symbol = elf_symbols_without_clone(symbol);
	if (!demangle_may(symbol) || !demangle_name(symbol, out))
		buf_add_str(out, symbol);
}
