/*
 * Private to the room: an open table, and what its files share.
 *
 * A table has functions by ascending address. Each has tables of its own that map its code to
 * values (pc tables): number of the file, line, number of the inlined call. All are in one string
 * of bytes, and functions share those that are equal. So every step and every byte of a name is
 * taken from a budget that follows the size of the table.
 */
#ifndef TSDB_DEBUGINFO_PCLNTAB_INTERNAL_H
#define TSDB_DEBUGINFO_PCLNTAB_INTERNAL_H

#include "tsdb/debuginfo/pclntab/pclntab.h"

enum version { GO_2, GO_16, GO_18, GO_20 };

struct pclntab_table {
	enum version version;
	struct str bytes; /* from its header on */
	uint64_t address; /* of the header */
	unsigned quantum; /* code is a multiple of so many bytes */
	unsigned word; /* bytes of a pointer */
	unsigned field; /* bytes of a field of the list of functions */
	uint64_t functions_n;
	uint64_t text; /* address that those of functions count from; 0 before GO_18 */
	struct str names, units, files, pcs, functions;
	struct str inlined; /* from go:func.* on; "": not known */
	uint64_t steps_left, steps_max;
};

struct pclntab_function {
	uint64_t entry, bytes;
	uint32_t name, unit, start_line;
	uint32_t pc_file, pc_line, pc_tree; /* offsets in pcs; 0: none */
	uint32_t tree; /* offset in inlined; UINT32_MAX: none */
};

/* Values of a function's code: up to `end`, counted from its entry. */
struct pclntab_run {
	uint64_t end;
	int32_t value;
};

struct pclntab_runs {
	struct pclntab_run *v;
	size_t n, cap;
};

struct inlined_call {
	uint32_t name, parent_pc, start_line;
};

static inline uint32_t pclntab_u32_at(const char *text)
{
	uint32_t v;

	memcpy(&v, text, sizeof(v));
	return v;
}

static inline uint64_t pclntab_word_at(const char *text, unsigned bytes)
{
	uint64_t v;

	if (bytes == 4)
		return pclntab_u32_at(text);
	memcpy(&v, text, sizeof(v));
	return v;
}

/* ---- table.c ---- */

/* False: there is no table at the beginning of these bytes. */
bool table_init(struct str bytes, uint64_t address, struct pclntab_table *out);
bool table_steps_take(struct pclntab_table *t, uint64_t n);
/* Address of function i, or of the end of all for i == functions_n, without text. */
uint64_t table_entry(const struct pclntab_table *t, uint64_t i);
/* i < functions_n; false: it is damaged. */
bool table_function(const struct pclntab_table *t, uint64_t i, struct pclntab_function *out);
/* Reads a pc table; ERR_LIMIT, ERR_NOMEM. What is damaged is left out. */
MUST_CHECK enum err_code table_runs(struct pclntab_table *t, const struct pclntab_function *f,
	uint32_t at, struct pclntab_runs *out, struct err *err);
/* "": there is none. ERR_LIMIT through steps_left: a name takes as many steps as it has bytes. */
bool table_text(struct pclntab_table *t, struct str from, uint64_t at, struct str *out);
/* Offset in files of a unit's file; false: none. */
bool table_file(
	const struct pclntab_table *t, const struct pclntab_function *f, int32_t file, uint64_t *at);
bool table_inlined_call(const struct pclntab_table *t, const struct pclntab_function *f, int32_t i,
	struct inlined_call *out);

/* ---- find.c ---- */

/* Finds the table of a file and what it does not say itself. *found false: there is none. */
MUST_CHECK enum err_code table_find(
	struct elf *e, struct pclntab_table *out, bool *found, struct err *err);

#endif
