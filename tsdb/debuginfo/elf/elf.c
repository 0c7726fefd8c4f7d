/*
 * Headers are read in place whenever they are needed, so that a file that claims millions of
 * sections costs no memory. The table of sections lies in the file or is taken for absent: a
 * stripped or truncated file is still good for its segments.
 */
#include "tsdb/debuginfo/elf/elf.h"

#include <ctype.h>
#include <elf.h>
#include <stdlib.h>

#include "tsdb/debuginfo/elf/internal.h"

#define MIB (1u << 20)

const struct elf_limits elf_limits_default = {
	.inflated_bytes_max = (uint64_t)4096 * MIB,
	.inflated_ratio_max = 256,
	.mini_bytes_max = (uint64_t)256 * MIB,
	.mini_memory_max = (uint64_t)128 * MIB,
};

struct str str_part(struct str s, uint64_t offset, uint64_t n)
{
	if (offset > s.len || n > s.len - offset)
		return (struct str){ "", 0 };
	return (struct str){ s.ptr + offset, n };
}

struct str str_text(struct str s, uint64_t offset)
{
	const char *nul;

	if (offset >= s.len || !(nul = memchr(s.ptr + offset, 0, s.len - offset)))
		return (struct str){ "", 0 };
	return (struct str){ s.ptr + offset, (size_t)(nul - s.ptr - offset) };
}

static size_t section_header_bytes(const struct elf *e)
{
	return e->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}

static size_t elf_segment_header_bytes(const struct elf *e)
{
	return e->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
}

struct elf_section section_at(const struct elf *e, uint64_t i)
{
	const char *p = e->bytes.ptr + e->sections_at + i * section_header_bytes(e);
	Elf64_Shdr w;
	Elf32_Shdr n;

	if (e->wide) {
		memcpy(&w, p, sizeof(w));
		return (struct elf_section){ w.sh_name, w.sh_type, w.sh_link, w.sh_info, w.sh_flags,
			w.sh_addr, w.sh_offset, w.sh_size, w.sh_entsize };
	}
	memcpy(&n, p, sizeof(n));
	return (struct elf_section){ n.sh_name, n.sh_type, n.sh_link, n.sh_info, n.sh_flags, n.sh_addr,
		n.sh_offset, n.sh_size, n.sh_entsize };
}

struct elf_segment segment_at(const struct elf *e, uint64_t i)
{
	const char *p = e->bytes.ptr + e->segments_at + i * elf_segment_header_bytes(e);
	Elf64_Phdr w;
	Elf32_Phdr n;

	if (e->wide) {
		memcpy(&w, p, sizeof(w));
		return (struct elf_segment){ w.p_type, w.p_flags, w.p_offset, w.p_vaddr, w.p_filesz,
			w.p_memsz };
	}
	memcpy(&n, p, sizeof(n));
	return (
		struct elf_segment){ n.p_type, n.p_flags, n.p_offset, n.p_vaddr, n.p_filesz, n.p_memsz };
}

struct str section_name(const struct elf *e, const struct elf_section *s)
{
	return str_text(e->section_names, s->name);
}

uint64_t section_find_from(const struct elf *e, const char *name, uint64_t i)
{
	struct str want = str_of(name);

	for (; i < e->sections_n; i++) {
		struct elf_section s = section_at(e, i);
		/* No further than the wanted name: one long string cannot be read once per section. */
		struct str have = str_part(e->section_names, s.name, want.len + 1);

		if (have.len && !have.ptr[want.len] && !memcmp(have.ptr, want.ptr, want.len))
			return i;
	}
	return e->sections_n;
}

uint64_t section_find(const struct elf *e, const char *name)
{
	return section_find_from(e, name, 1);
}

struct str section_raw(const struct elf *e, const struct elf_section *s)
{
	if (s->type == SHT_NOBITS || s->type == SHT_NULL)
		return (struct str){ "", 0 };
	return str_part(e->bytes, s->offset, s->size);
}

/* What people send instead of ELF: a server's error page, an archive, another system's program. */
static const char *elf_other_format(struct str s)
{
	static const struct {
		struct str magic;
		const char *what;
	} known[] = {
		{ STR("\x1f\x8b"), "gzip" },
			{ STR("\x28\xb5\x2f\xfd"), "zstd" },
				{ STR("\xfd\x37zXZ"), "xz" },
					{ STR("PK\x03\x04"), "zip" },
						{ STR("!<arch>\n"), "an archive (ar)" },
							{ STR("!<thin>\n"), "an archive (ar)" },
								{ STR("MZ"), "a Windows program" },
									{ STR("\xcf\xfa\xed\xfe"), "Mach-O" },
										{ STR("\xca\xfe\xba\xbe"), "Mach-O or a Java class" },
											{ STR("#!"), "a script" },
										};
	struct str text = str_trim((struct str){ s.ptr, s.len < 512 ? s.len : 512 });

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (str_has_prefix(s, known[i].magic))
			return known[i].what;
	if (str_has_prefix_nocase(text, STR("<!doctype")) || str_has_prefix_nocase(text, STR("<html")))
		return "an HTML page";
	for (size_t i = 0; i < text.len; i++)
		if (!isprint((unsigned char)text.ptr[i]) && !isspace((unsigned char)text.ptr[i]))
			return NULL;
	return text.len ? "text" : NULL;
}

static enum err_code elf_check_ident(struct str s, struct err *err)
{
	const char *what;

	if (!s.len)
		return err_set(err, ERR_INVALID, "not an ELF file: empty");
	if (s.len < SELFMAG || memcmp(s.ptr, ELFMAG, SELFMAG)) {
		what = elf_other_format(s);
		return err_set(
			err, ERR_INVALID, "not an ELF file%s%s", what ? ": it is " : "", what ? what : "");
	}
	if (s.len < EI_NIDENT)
		return err_set(err, ERR_INVALID, "ELF: the header is cut short");
	if (s.ptr[EI_CLASS] != ELFCLASS32 && s.ptr[EI_CLASS] != ELFCLASS64)
		return err_set(err, ERR_INVALID, "ELF: class %d is unknown", s.ptr[EI_CLASS]);
	if (s.ptr[EI_DATA] == ELFDATA2MSB)
		return err_set(err, ERR_UNSUPPORTED, "ELF: big-endian files are not supported");
	if (s.ptr[EI_DATA] != ELFDATA2LSB)
		return err_set(err, ERR_INVALID, "ELF: byte order %d is unknown", s.ptr[EI_DATA]);
	return ERR_OK;
}

static enum err_code elf_check_type(const struct elf *e, struct err *err)
{
	if (e->type == ET_CORE)
		return err_set(err, ERR_UNSUPPORTED, "ELF: a core dump, not a program");
	/* Files of dwz are of this type too, but have nothing to relocate. */
	for (uint64_t i = 1; e->form != ELF_SPLIT && e->type == ET_REL && i < e->sections_n; i++) {
		struct elf_section s = section_at(e, i);

		if (s.type == SHT_REL || s.type == SHT_RELA)
			return err_set(err, ERR_UNSUPPORTED, "ELF: an object file that is not linked");
	}
	return ERR_OK;
}

static bool elf_table_fits(const struct elf *e, uint64_t at, uint64_t n, size_t entry_bytes)
{
	return at && at <= e->bytes.len && n <= (e->bytes.len - at) / entry_bytes;
}

/* Counts beyond 16 bits are in the first section's header. */
static void elf_find_tables(struct elf *e, uint64_t sections_n, uint64_t segments_n, uint64_t names)
{
	struct elf_section first;

	if (elf_table_fits(e, e->sections_at, 1, section_header_bytes(e))) {
		first = section_at(e, 0);
		if (!sections_n)
			sections_n = first.size;
		if (segments_n == PN_XNUM)
			segments_n = first.info;
		if (names == SHN_XINDEX)
			names = first.link;
	}
	if (elf_table_fits(e, e->sections_at, sections_n, section_header_bytes(e)))
		e->sections_n = sections_n;
	if (elf_table_fits(e, e->segments_at, segments_n, elf_segment_header_bytes(e)))
		e->segments_n = segments_n;
	if (names < e->sections_n) {
		first = section_at(e, names);
		e->section_names = section_raw(e, &first);
	}
}

static enum err_code elf_read_header(struct elf *e, struct err *err)
{
	Elf64_Ehdr w;
	Elf32_Ehdr n;

	e->wide = e->bytes.ptr[EI_CLASS] == ELFCLASS64;
	if (e->bytes.len < (e->wide ? sizeof(w) : sizeof(n)))
		return err_set(err, ERR_INVALID, "ELF: the header is cut short");
	if (e->wide) {
		memcpy(&w, e->bytes.ptr, sizeof(w));
	} else {
		memcpy(&n, e->bytes.ptr, sizeof(n));
		w = (Elf64_Ehdr){ .e_type = n.e_type,
			.e_machine = n.e_machine,
			.e_shoff = n.e_shoff,
			.e_phoff = n.e_phoff,
			.e_shentsize = n.e_shentsize,
			.e_phentsize = n.e_phentsize,
			.e_shnum = n.e_shnum,
			.e_phnum = n.e_phnum,
			.e_shstrndx = n.e_shstrndx };
	}
	e->type = w.e_type;
	e->machine = w.e_machine;
	if (w.e_shoff && w.e_shentsize != section_header_bytes(e))
		return err_set(err, ERR_INVALID, "ELF: section headers of %u bytes", w.e_shentsize);
	if (w.e_phnum && w.e_phentsize != elf_segment_header_bytes(e))
		return err_set(err, ERR_INVALID, "ELF: program headers of %u bytes", w.e_phentsize);
	e->sections_at = w.e_shoff;
	e->segments_at = w.e_phoff;
	elf_find_tables(e, w.e_shnum, w.e_phnum, w.e_shstrndx);
	if (!e->sections_n && !e->segments_n &&
		!(e->form == ELF_HEAD && (e->sections_at || e->segments_at)))
		return err_set(err, ERR_INVALID,
			"ELF: neither sections nor segments are within the file: the file may be cut short");
	return elf_check_type(e, err);
}

static enum err_code elf_open_as(struct str bytes, enum elf_form form, const struct elf_limits *l,
	struct elf **out, struct err *err)
{
	struct elf *e;
	enum err_code rc;

	if ((rc = elf_check_ident(bytes, err)))
		return rc;
	if (!(e = calloc(1, sizeof(*e))))
		return err_nomem(err, "ELF");
	e->bytes = bytes;
	e->limits = *l;
	e->form = form;
	if ((rc = elf_read_header(e, err))) {
		elf_close(e);
		return rc;
	}
	*out = e;
	return ERR_OK;
}

enum err_code elf_open_limited(
	struct str bytes, const struct elf_limits *l, struct elf **out, struct err *err)
{
	return elf_open_as(bytes, ELF_WHOLE, l, out, err);
}

enum err_code elf_open_split(
	struct str bytes, const struct elf_limits *l, struct elf **out, struct err *err)
{
	return elf_open_as(bytes, ELF_SPLIT, l, out, err);
}

enum err_code elf_open(struct str bytes, struct elf **out, struct err *err)
{
	return elf_open_as(bytes, ELF_WHOLE, &elf_limits_default, out, err);
}

enum err_code elf_open_head(struct str bytes, struct elf **out, struct err *err)
{
	return elf_open_as(bytes, ELF_HEAD, &elf_limits_default, out, err);
}

void elf_close(struct elf *e)
{
	struct elf_inflated *next;

	if (!e)
		return;
	for (struct elf_inflated *i = e->inflated; i; i = next) {
		next = i->next;
		free(i);
	}
	elf_close(e->mini); /* which has none itself */
	free(e->mini_bytes);
	free(e);
}

uint64_t elf_file_bytes(const struct elf *e)
{
	return e->bytes.len;
}

bool elf_is_little(const struct elf *e)
{
	return true;
}

unsigned elf_address_bytes(const struct elf *e)
{
	return e->wide ? 8 : 4;
}

unsigned elf_machine(const struct elf *e)
{
	return e->machine;
}

bool elf_has_sections(const struct elf *e)
{
	return e->sections_n > 1;
}

bool elf_section_place(const struct elf *e, const char *name, uint64_t *address, uint64_t *bytes)
{
	uint64_t i = section_find(e, name);
	struct elf_section s;

	if (i == e->sections_n)
		return false;
	s = section_at(e, i);
	*address = s.address;
	*bytes = s.size;
	return s.flags & SHF_ALLOC;
}

enum elf_content elf_content(const struct elf *e)
{
	static const char *const debug[] = { ".debug_info", ".zdebug_info", ".symtab" };
	bool text = false, data = false;

	for (size_t i = 0; i < sizeof(debug) / sizeof(*debug) && !data; i++) {
		uint64_t n = section_find(e, debug[i]);

		if (n < e->sections_n) {
			struct elf_section s = section_at(e, n);

			data = section_raw(e, &s).len;
		}
	}
	for (uint64_t i = 1; i < e->sections_n && !text; i++) {
		struct elf_section s = section_at(e, i);

		text = s.type == SHT_PROGBITS && (s.flags & SHF_EXECINSTR) && section_raw(e, &s).len;
	}
	for (uint64_t i = 0; i < e->segments_n && !text && e->sections_n < 2; i++) {
		struct elf_segment s = segment_at(e, i);

		text = s.type == PT_LOAD && (s.flags & PF_X) && s.file_bytes;
	}
	return !data ? ELF_STRIPPED : text ? ELF_FULL : ELF_NO_TEXT;
}
