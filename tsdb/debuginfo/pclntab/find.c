/*
 * Finding the table: by its section, or, in a file without sections, by the bytes it begins with.
 *
 * Since Go 1.18 the table counts functions from the start of Go's code, and does not say where
 * inlined calls are. Both are in the runtime's moduledata, a variable that begins with a pointer to
 * the table. It is found by this pointer and believed if other fields of it agree with the table:
 *
 *	words 20, 21, 22   first address of a function, end of the last, start of Go's code
 *	words 24 to 48     one of them is the address of go:func.*, which one depends on the version
 *
 * Inlined calls are believed at an address where those of the first functions all make sense.
 */
#include <elf.h>
#include <stdlib.h>

#include "tsdb/debuginfo/pclntab/internal.h"

#define WORDS 49u
#define WORD_FIRST 20u
#define WORD_END 21u
#define WORD_TEXT 22u
#define WORD_INLINED 24u
#define CHECKED_LEAST 4u /* inlined calls, to believe them */
#define CHECKED_MOST 512u
#define CANDIDATES_MAX 64u
#define LOADS_MAX 64u /* that are searched */

static bool find_by_section(struct elf *e, struct str *bytes, uint64_t *address)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	uint64_t n;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (elf_section_place(e, names[i], address, &n) && !elf_section(e, names[i], bytes, NULL) &&
			bytes->len)
			return true;
	return false;
}

static bool find_by_magic(const struct elf *e, struct pclntab_table *out)
{
	struct elf_load l;
	uint64_t i = 0;

	for (unsigned n = 0; n < LOADS_MAX && elf_load_next(e, &i, &l); n++) {
		struct str s = elf_bytes_at(e, l.address);

		for (uint64_t at = 0; at + 16 <= s.len; at += 4) {
			uint32_t magic = pclntab_u32_at(s.ptr + at);

			if (magic < 0xfffffff0u || magic == UINT32_MAX)
				continue;
			if (table_init((struct str){ s.ptr + at, s.len - at }, l.address + at, out))
				return true;
		}
	}
	return false;
}

/* ---- moduledata ---- */

struct moduledata {
	uint64_t at; /* address */
	uint64_t word[WORDS];
};

/* Position independent programs have their pointers in a table of relocations. */
static bool pclntab_relocation_at(
	const struct elf *e, struct str table, uint64_t i, uint64_t *at, uint64_t *value)
{
	Elf64_Rela r;
	uint32_t type;

	memcpy(&r, table.ptr + i * sizeof(r), sizeof(r));
	type = ELF64_R_TYPE(r.r_info);
	*at = r.r_offset;
	*value = (uint64_t)r.r_addend;
	return elf_machine(e) == EM_X86_64 ? type == R_X86_64_RELATIVE :
										 elf_machine(e) == EM_AARCH64 && type == R_AARCH64_RELATIVE;
}

static struct str pclntab_relocations(struct elf *e)
{
	static const char *const names[] = { ".rela.dyn", ".rela" };
	struct str s = { "", 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !s.len; i++)
		if (elf_address_bytes(e) != 8 || elf_section(e, names[i], &s, NULL))
			return (struct str){ "", 0 };
	return s;
}

static void pclntab_read_words(
	const struct elf *e, struct str relocated, unsigned word, struct moduledata *m)
{
	struct str s = elf_bytes_at(e, m->at);
	uint64_t at, value;

	memset(m->word, 0, sizeof(m->word));
	for (unsigned i = 0; i < WORDS && s.len >= (i + 1) * word; i++)
		m->word[i] = pclntab_word_at(s.ptr + i * word, word);
	for (uint64_t i = 0; i < relocated.len / sizeof(Elf64_Rela); i++)
		if (pclntab_relocation_at(e, relocated, i, &at, &value) && at >= m->at &&
			at - m->at < WORDS * word && (at - m->at) % word == 0)
			m->word[(at - m->at) / word] = value;
}

static bool pclntab_agrees(const struct pclntab_table *t, const struct moduledata *m)
{
	uint64_t text = m->word[WORD_TEXT];

	if (t->version < GO_18)
		text = 0;
	return m->word[0] == t->address && m->word[WORD_FIRST] == text + table_entry(t, 0) &&
		m->word[WORD_END] == text + table_entry(t, t->functions_n);
}

static bool find_moduledata(
	const struct elf *e, const struct pclntab_table *t, struct str relocated, struct moduledata *m)
{
	unsigned candidates = 0, loads = 0;
	struct elf_load l;
	uint64_t value, next = 0;

	while (loads++ < LOADS_MAX && elf_load_next(e, &next, &l)) {
		struct str s = l.writable ? elf_bytes_at(e, l.address) : STR("");

		for (uint64_t at = 0; at + t->word <= s.len; at += t->word) {
			if (pclntab_word_at(s.ptr + at, t->word) != t->address)
				continue;
			m->at = l.address + at;
			pclntab_read_words(e, relocated, t->word, m);
			if (pclntab_agrees(t, m))
				return true;
			if (++candidates == CANDIDATES_MAX)
				return false;
		}
	}
	for (uint64_t i = 0; i < relocated.len / sizeof(Elf64_Rela); i++) {
		if (!pclntab_relocation_at(e, relocated, i, &m->at, &value) || value != t->address)
			continue;
		pclntab_read_words(e, relocated, t->word, m);
		if (pclntab_agrees(t, m))
			return true;
		if (++candidates == CANDIDATES_MAX)
			return false;
	}
	return false;
}

/* ---- inlined calls ---- */

static bool pclntab_is_start_of_name(const struct pclntab_table *t, uint32_t at)
{
	return at && at < t->names.len && !t->names.ptr[at - 1] && t->names.ptr[at];
}

/* Inlined calls of functions make sense where they are now thought to be. */
static enum err_code pclntab_check_inlined(struct pclntab_table *t, bool *sane, struct err *err)
{
	struct pclntab_runs runs = { 0 };
	unsigned checked = 0;
	enum err_code rc = ERR_OK;

	*sane = true;
	for (uint64_t i = 0; i < t->functions_n && *sane && checked < CHECKED_MOST; i++) {
		struct inlined_call call;
		struct pclntab_function f;

		if (!table_function(t, i, &f) || f.tree == UINT32_MAX || !f.pc_tree)
			continue;
		if ((rc = table_runs(t, &f, f.pc_tree, &runs, err)))
			break;
		for (size_t k = 0; k < runs.n && *sane; k++) {
			if (runs.v[k].value < 0)
				continue;
			checked++;
			*sane = table_inlined_call(t, &f, runs.v[k].value, &call) &&
				pclntab_is_start_of_name(t, call.name);
		}
	}
	*sane = *sane && checked >= CHECKED_LEAST;
	free(runs.v);
	return rc;
}

static enum err_code find_inlined(
	const struct elf *e, struct pclntab_table *t, const struct moduledata *m, struct err *err)
{
	enum err_code rc;
	bool sane;

	for (unsigned i = WORD_INLINED; i < WORDS; i++) {
		t->inlined = elf_bytes_at(e, m->word[i]);
		if (!t->inlined.len)
			continue;
		if ((rc = pclntab_check_inlined(t, &sane, err)) || sane)
			return rc;
	}
	t->inlined = (struct str){ "", 0 };
	return ERR_OK;
}

/* ---- the start of Go's code ---- */

static bool pclntab_is_code(const struct elf *e, uint64_t address, uint64_t n)
{
	struct elf_load l;
	uint64_t i = 0;

	while (elf_load_next(e, &i, &l))
		if (l.executable && address >= l.address && address - l.address < l.memory_bytes &&
			n <= l.memory_bytes - (address - l.address))
			return true;
	return false;
}

/* The header says it up to Go 1.25; programs that only Go's linker made have nothing before it. */
static bool find_text(const struct elf *e, struct pclntab_table *t)
{
	uint64_t n = table_entry(t, t->functions_n), bytes;

	t->text = pclntab_word_at(t->bytes.ptr + 8 + 2 * t->word, t->word);
	return (t->text && pclntab_is_code(e, t->text, n)) ||
		(elf_section_place(e, ".text", &t->text, &bytes) && pclntab_is_code(e, t->text, n));
}

enum err_code table_find(struct elf *e, struct pclntab_table *out, bool *found, struct err *err)
{
	struct str bytes, relocated;
	struct moduledata m = { 0 };
	uint64_t address, n;

	*found = find_by_section(e, &bytes, &address);
	if (*found && !table_init(bytes, address, out))
		return err_set(err, ERR_INVALID, "Go's table of functions is damaged, or of a new version");
	if (!*found &&
		(!elf_has_sections(e) || elf_go_build_id(e).len ||
			elf_section_place(e, ".go.buildinfo", &address, &n)))
		*found = find_by_magic(e, out);
	if (!*found || out->version < GO_18)
		return ERR_OK;
	relocated = pclntab_relocations(e);
	if (find_moduledata(e, out, relocated, &m)) {
		out->text = m.word[WORD_TEXT];
		return find_inlined(e, out, &m, err);
	}
	if (!find_text(e, out))
		return err_set(err, ERR_INVALID, "Go's table of functions does not say where its code is");
	return ERR_OK;
}
