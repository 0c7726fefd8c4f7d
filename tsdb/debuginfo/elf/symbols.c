#include "tsdb/debuginfo/elf/symbols.h"

#include <elf.h>
#include <stdlib.h>

#include "base/array.h"
#include "tsdb/debuginfo/elf/internal.h"

#define RANK_LABEL 6u /* behind those of all functions */
#define SYMBOLS_MAX (16u << 20)
/* Many symbols may share one long name, so reading them all is bounded by the table's size. */
#define NAMES_RATIO_MAX 64u
#define NAMES_FREE_BYTES (64u << 20)

struct elf_symtab_entry {
	uint64_t address, end; /* end: as it says, address if it says nothing */
	uint64_t section_end; /* UINT64_MAX: not known */
	struct str name;
	unsigned char rank; /* the less, the better */
	bool is_label; /* without a type */
};

struct elf_symtab {
	struct elf_symtab_entry *v;
	size_t n, cap;
	uint64_t names_left;
};

static struct str elf_symbols_name_of(struct elf_symtab *list, struct str names, uint64_t at)
{
	uint64_t left = at < names.len ? names.len - at : 0;
	struct str s;

	if (left > SYMINDEX_STRING_MAX)
		left = SYMINDEX_STRING_MAX;
	s = str_part(names, at, left);
	s.len = strnlen(s.ptr, s.len);
	if (s.len > list->names_left)
		return (struct str){ NULL, 0 };
	list->names_left -= s.len;
	return s;
}

static unsigned char elf_rank_of(unsigned binding, uint64_t size)
{
	unsigned rank = binding == STB_GLOBAL || binding == STB_GNU_UNIQUE ? 0 :
		binding == STB_WEAK                                            ? 2 :
																		 4;

	return (unsigned char)(rank + !size);
}

static Elf64_Sym symbol_at(const struct elf *e, struct str table, uint64_t i)
{
	Elf64_Sym w;
	Elf32_Sym n;

	if (e->wide) {
		memcpy(&w, table.ptr + i * sizeof(w), sizeof(w));
		return w;
	}
	memcpy(&n, table.ptr + i * sizeof(n), sizeof(n));
	return (Elf64_Sym){ n.st_name, n.st_info, n.st_other, n.st_shndx, n.st_value, n.st_size };
}

/* Functions of assembler sources often lack their type. */
static bool elf_is_label(const struct elf *e, const Elf64_Sym *symbol)
{
	struct elf_section in;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_NOTYPE || symbol->st_shndx >= e->sections_n)
		return false;
	in = section_at(e, symbol->st_shndx);
	return in.flags & SHF_EXECINSTR;
}

static bool elf_is_function(const struct elf *e, const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC || elf_is_label(e, symbol)) &&
		symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
		symbol->st_shndx != SHN_COMMON;
}

static enum err_code elf_symbols_add_symbol(struct elf_symtab *list, const struct elf *e,
	const Elf64_Sym *symbol, struct str names, struct err *err)
{
	struct elf_symtab_entry y = { .address = symbol->st_value, .section_end = UINT64_MAX };
	struct elf_section in;

	if (e->machine == EM_ARM)
		y.address &= ~(uint64_t)1; /* the bit says Thumb */
	y.name = elf_symbols_name_of(list, names, symbol->st_name);
	if (!y.name.ptr)
		return err_set(err, ERR_LIMIT, "ELF: names of symbols are more than %u times their table",
			NAMES_RATIO_MAX);
	if (symbol->st_shndx < SHN_LORESERVE && symbol->st_shndx < e->sections_n) {
		in = section_at(e, symbol->st_shndx);
		if (__builtin_add_overflow(in.address, in.size, &y.section_end))
			y.section_end = UINT64_MAX;
	}
	y.is_label = ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE;
	if (!y.name.len || y.address >= y.section_end)
		return ERR_OK;
	if (y.is_label && (y.name.ptr[0] == '$' || str_has_prefix(y.name, STR(".L"))))
		return ERR_OK; /* ARM's marks of code and data, the compiler's own labels */
	if (__builtin_add_overflow(y.address, symbol->st_size, &y.end))
		y.end = UINT64_MAX;
	if (y.end > y.section_end)
		y.end = y.section_end;
	y.rank = elf_rank_of(ELF64_ST_BIND(symbol->st_info), symbol->st_size);
	y.rank = (unsigned char)(y.rank + (y.is_label ? RANK_LABEL : 0));
	if (list->n >= SYMBOLS_MAX)
		return err_set(err, ERR_LIMIT, "ELF: more than %u symbols of functions", SYMBOLS_MAX);
	if (!array_room(&list->v, list->n, 1, &list->cap))
		return err_nomem(err, "symbols");
	list->v[list->n++] = y;
	return ERR_OK;
}

/* Reads a table of symbols; *found: there is one. */
static enum err_code elf_read_table(
	struct elf_symtab *list, struct elf *e, const char *name, bool *found, struct err *err)
{
	uint64_t i = section_find(e, name), n;
	struct str table, names = { "", 0 };
	struct elf_section s;
	enum err_code rc;

	*found = false;
	if (i == e->sections_n)
		return ERR_OK;
	s = section_at(e, i);
	if ((rc = section_contents(e, i, &table, err)))
		return rc;
	if (s.link < e->sections_n && (rc = section_contents(e, s.link, &names, err)))
		return rc;
	n = table.len / (e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
	list->names_left = NAMES_FREE_BYTES + (uint64_t)NAMES_RATIO_MAX * names.len;
	*found = n > 0;
	for (i = 0; i < n; i++) {
		Elf64_Sym y = symbol_at(e, table, i);

		if (elf_is_function(e, &y) && (rc = elf_symbols_add_symbol(list, e, &y, names, err)))
			return rc;
	}
	return ERR_OK;
}

static int elf_compare(const void *pa, const void *pb)
{
	const struct elf_symtab_entry *a = pa, *b = pb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank - b->rank;
	if (a->name.len != b->name.len)
		return a->name.len < b->name.len ? -1 : 1;
	return str_cmp(a->name, b->name);
}

/* A label in a function is a place in it and not another function. */
static void elf_symbols_drop_labels(struct elf_symtab *list)
{
	uint64_t end = 0; /* of the functions so far */
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct elf_symtab_entry *s = &list->v[i];

		if (s->is_label && s->address < end)
			continue;
		if (!s->is_label && s->end > end)
			end = s->end;
		list->v[kept++] = *s;
	}
	list->n = kept;
}

/* Of the symbols from i on that share an address the first is taken; returns the next one's. */
static size_t elf_symbols_group(const struct elf_symtab *list, size_t i, uint64_t *end)
{
	const struct elf_symtab_entry *s = &list->v[i];
	size_t next = i + 1;

	*end = s->end;
	for (; next < list->n && list->v[next].address == s->address; next++)
		if (list->v[next].end > *end)
			*end = list->v[next].end;
	if (*end == s->address) {
		*end = s->section_end;
		if (next < list->n && list->v[next].address < *end)
			*end = list->v[next].address;
		else if (*end == UINT64_MAX)
			*end = s->address + 1;
	}
	return next;
}

static enum err_code elf_symbols_add_ranges(
	const struct elf_symtab *list, struct symindex_builder *b, struct err *err)
{
	enum err_code rc;
	size_t next;

	for (size_t i = 0; i < list->n; i = next) {
		const struct elf_symtab_entry *s = &list->v[i];
		uint32_t function, frame;
		uint64_t end;

		next = elf_symbols_group(list, i, &end);
		if ((rc = symindex_function(b, s->name, SYMINDEX_NONE, 0, &function, err)) ||
			(rc = symindex_frame(b, SYMINDEX_NONE, function, SYMINDEX_NONE, 0, &frame, err)) ||
			(rc = symindex_add(b, s->address, end, frame, SYMINDEX_SYMBOLS, err)))
			return rc;
	}
	return ERR_OK;
}

/* Reads all that count, by ascending address. The caller frees list->v, also after an error. */
static enum err_code elf_symbols_read(struct elf_symtab *list, struct elf *e, struct err *err)
{
	struct elf *mini;
	enum err_code rc;
	bool found;

	if ((rc = elf_read_table(list, e, ".symtab", &found, err)))
		return rc;
	if (!found) {
		if ((rc = elf_read_table(list, e, ".dynsym", &found, err)) ||
			(rc = elf_mini(e, &mini, err)))
			return rc;
		if (mini && (rc = elf_read_table(list, mini, ".symtab", &found, err)))
			return rc;
	}
	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), elf_compare);
	elf_symbols_drop_labels(list);
	return ERR_OK;
}

enum err_code elf_symbols_add(struct elf *e, struct symindex_builder *b, struct err *err)
{
	struct elf_symtab list = { 0 };
	enum err_code rc = elf_symbols_read(&list, e, err);

	if (!rc)
		rc = elf_symbols_add_ranges(&list, b, err);
	free(list.v);
	return rc;
}

/* ---- look-ups ---- */

struct symbol_range {
	uint64_t start, end;
	struct str name;
};

struct symbol_map {
	struct symbol_range *v; /* ascending, without overlaps */
	size_t n, cap;
	struct symbol_range *open; /* while it is made: those around an address, the last on top */
	size_t open_n, open_cap;
};

/* [*at, to) belongs to the open symbols. */
static enum err_code symbol_map_advance(
	struct symbol_map *s, uint64_t *at, uint64_t to, struct err *err)
{
	while (s->open_n && *at < to) {
		const struct symbol_range *top = &s->open[s->open_n - 1];
		uint64_t end = top->end < to ? top->end : to;

		if (end <= *at) {
			s->open_n--;
			continue;
		}
		if (!array_room(&s->v, s->n, 1, &s->cap))
			return err_nomem(err, "symbols");
		s->v[s->n++] = (struct symbol_range){ *at, end, top->name };
		*at = end;
	}
	*at = to;
	return ERR_OK;
}

static enum err_code symbol_map_flatten(
	struct symbol_map *s, const struct elf_symtab *list, struct err *err)
{
	uint64_t at = 0, end;
	enum err_code rc;
	size_t next;

	for (size_t i = 0; i < list->n; i = next) {
		next = elf_symbols_group(list, i, &end);
		if ((rc = symbol_map_advance(s, &at, list->v[i].address, err)))
			return rc;
		if (!array_room(&s->open, s->open_n, 1, &s->open_cap))
			return err_nomem(err, "symbols");
		s->open[s->open_n++] = (struct symbol_range){ list->v[i].address, end, list->v[i].name };
	}
	return symbol_map_advance(s, &at, UINT64_MAX, err);
}

enum err_code symbol_map_open(struct elf *e, struct symbol_map **out, struct err *err)
{
	struct symbol_map *s = calloc(1, sizeof(*s));
	struct elf_symtab list = { 0 };
	enum err_code rc;

	if (!s)
		return err_nomem(err, "symbols");
	if (!(rc = elf_symbols_read(&list, e, err)))
		rc = symbol_map_flatten(s, &list, err);
	free(list.v);
	free(s->open);
	s->open = NULL;
	if (rc)
		symbol_map_close(s);
	else
		*out = s;
	return rc;
}

void symbol_map_close(struct symbol_map *s)
{
	if (s) {
		free(s->v);
		free(s);
	}
}

bool symbol_map_find(const struct symbol_map *s, uint64_t address, struct str *name, uint64_t *end)
{
	size_t from = 0, to = s->n;

	while (from < to) { /* from: the first that ends behind address */
		size_t mid = from + (to - from) / 2;

		if (s->v[mid].end <= address)
			from = mid + 1;
		else
			to = mid;
	}
	*end = UINT64_MAX;
	if (from == s->n)
		return false;
	*end = s->v[from].start;
	if (address < *end)
		return false;
	*end = s->v[from].end;
	*name = s->v[from].name;
	return true;
}
