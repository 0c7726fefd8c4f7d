/*
 * Functions of the table become segments. A function's code is cut where its file, its line or the
 * inlined call changes. The table has a line for the code itself; an inlined call has a place in
 * the code of the function around it, whose file and line are those of the call.
 */
#include "tsdb/debuginfo/pclntab/pclntab.h"

#include <stdlib.h>

#include "tsdb/debuginfo/pclntab/internal.h"

#define DEPTH_MAX 200u
#define FILES_CACHE 256u
#define NONE SYMINDEX_NONE

enum column { COLUMN_FILE, COLUMN_LINE, COLUMN_TREE, COLUMNS };

struct pclntab_place {
	uint32_t function; /* of the index */
	uint32_t file;
	uint32_t line;
};

struct adder {
	struct pclntab_table table;
	struct symindex_builder *builder;
	struct pclntab_stats *stats;
	struct pclntab_function f;
	struct pclntab_runs runs[COLUMNS];
	uint32_t own; /* the function's number in the index */
	/* The inlined call that was met last: */
	int32_t tree;
	uint32_t leaf, caller; /* its function, the frame of its caller */
	struct {
		uint64_t at; /* + 1 */
		uint32_t id;
	} files[FILES_CACHE];
};

static enum err_code pclntab_too_much(const struct adder *a, struct err *err)
{
	return err_set(err, ERR_LIMIT, "Go's table of functions needs more than %llu steps",
		(unsigned long long)a->table.steps_max);
}

/* *out NONE: it has no name. */
static enum err_code pclntab_add_function(
	struct adder *a, uint32_t name, uint32_t start_line, uint32_t *out, struct err *err)
{
	struct str text;

	if (!table_text(&a->table, a->table.names, name, &text))
		return pclntab_too_much(a, err);
	*out = NONE;
	if (!text.len)
		return ERR_OK;
	return symindex_function(a->builder, text, NONE, start_line, out, err);
}

static enum err_code pclntab_file_id(struct adder *a, int32_t file, uint32_t *out, struct err *err)
{
	enum err_code rc;
	struct str text;
	uint64_t at;

	*out = NONE;
	if (!table_file(&a->table, &a->f, file, &at))
		return ERR_OK;
	if (a->files[at % FILES_CACHE].at == at + 1) {
		*out = a->files[at % FILES_CACHE].id;
		return ERR_OK;
	}
	if (!table_text(&a->table, a->table.files, at, &text))
		return pclntab_too_much(a, err);
	if (!text.len)
		return ERR_OK;
	if ((rc = symindex_file(a->builder, text, out, err)))
		return rc;
	a->files[at % FILES_CACHE].at = at + 1;
	a->files[at % FILES_CACHE].id = *out;
	return ERR_OK;
}

/* The value at a place of the function's code; -1: there is none. */
static int32_t pclntab_value_at(const struct pclntab_runs *r, uint64_t pc)
{
	size_t low = 0, high = r->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->v[middle].end <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->n ? r->v[low].value : -1;
}

static enum err_code pclntab_place_at(
	struct adder *a, int32_t file, int32_t line, struct pclntab_place *out, struct err *err)
{
	out->line = line > 0 ? (uint32_t)line : 0;
	return pclntab_file_id(a, file, &out->file, err);
}

/*
 * Function of inlined call `tree` and the frame of its caller. The callers are followed outwards,
 * then their frames are made inwards. Calls that make no sense leave the function itself.
 */
static enum err_code pclntab_find_caller(struct adder *a, int32_t tree, struct err *err)
{
	struct pclntab_place v[DEPTH_MAX];
	struct inlined_call call;
	enum err_code rc;
	unsigned n = 0;

	a->tree = tree;
	a->leaf = a->own;
	a->caller = NONE;
	while (tree >= 0) {
		if (n == DEPTH_MAX || !table_inlined_call(&a->table, &a->f, tree, &call))
			return ERR_OK;
		if ((rc = pclntab_add_function(a, call.name, call.start_line, &v[n].function, err)) ||
			(rc = pclntab_place_at(a, pclntab_value_at(&a->runs[COLUMN_FILE], call.parent_pc),
				 pclntab_value_at(&a->runs[COLUMN_LINE], call.parent_pc), &v[n], err)))
			return rc;
		if (v[n++].function == NONE)
			return ERR_OK;
		tree = pclntab_value_at(&a->runs[COLUMN_TREE], call.parent_pc);
		if (!table_steps_take(&a->table, 1))
			return pclntab_too_much(a, err);
	}
	if (!n)
		return ERR_OK;
	/* v[i] has the place of a call and the function that is called there. */
	for (unsigned i = n; i--;) {
		uint32_t function = i + 1 == n ? a->own : v[i + 1].function;

		if ((rc = symindex_frame(
				 a->builder, a->caller, function, v[i].file, v[i].line, &a->caller, err)))
			return rc;
	}
	a->leaf = v[0].function;
	return ERR_OK;
}

static enum err_code pclntab_frame_at(
	struct adder *a, const int32_t value[COLUMNS], uint32_t *out, struct err *err)
{
	struct pclntab_place p;
	enum err_code rc;

	if (a->tree != value[COLUMN_TREE] && (rc = pclntab_find_caller(a, value[COLUMN_TREE], err)))
		return rc;
	if ((rc = pclntab_place_at(a, value[COLUMN_FILE], value[COLUMN_LINE], &p, err)))
		return rc;
	return symindex_frame(a->builder, a->caller, a->leaf, p.file, p.line, out, err);
}

static enum err_code pclntab_add_segment(
	struct adder *a, uint64_t from, uint64_t to, uint32_t frame, struct err *err)
{
	uint64_t end;

	if (from == to || __builtin_add_overflow(a->f.entry, to, &end))
		return ERR_OK;
	a->stats->segments++;
	return symindex_add(a->builder, a->f.entry + from, end, frame, SYMINDEX_LINES, err);
}

/* Cuts the code where a column changes, up to where its lines end. */
static enum err_code pclntab_add_code(struct adder *a, struct err *err)
{
	const struct pclntab_runs *lines = &a->runs[COLUMN_LINE];
	size_t i[COLUMNS] = { 0 };
	uint64_t pc = 0, start = 0, end = lines->n ? lines->v[lines->n - 1].end : a->f.bytes;
	uint32_t frame = NONE, next;
	enum err_code rc;

	while (pc < end) {
		int32_t value[COLUMNS];
		uint64_t to = end;

		for (unsigned k = 0; k < COLUMNS; k++) {
			const struct pclntab_runs *r = &a->runs[k];

			while (i[k] < r->n && r->v[i[k]].end <= pc)
				i[k]++;
			value[k] = i[k] < r->n ? r->v[i[k]].value : -1;
			if (i[k] < r->n && r->v[i[k]].end < to)
				to = r->v[i[k]].end;
		}
		if ((rc = pclntab_frame_at(a, value, &next, err)))
			return rc;
		if (next != frame) {
			if (frame != NONE && (rc = pclntab_add_segment(a, start, pc, frame, err)))
				return rc;
			start = pc;
			frame = next;
		}
		pc = to;
	}
	return frame == NONE ? ERR_OK : pclntab_add_segment(a, start, end, frame, err);
}

static enum err_code pclntab_add_one(struct adder *a, struct err *err)
{
	const uint32_t at[COLUMNS] = { a->f.pc_file, a->f.pc_line,
		a->table.inlined.len ? a->f.pc_tree : 0 };
	enum err_code rc;

	for (unsigned k = 0; k < COLUMNS; k++)
		if ((rc = table_runs(&a->table, &a->f, at[k], &a->runs[k], err)))
			return rc;
	if ((rc = pclntab_add_function(a, a->f.name, a->f.start_line, &a->own, err)))
		return rc;
	if (a->own == NONE) {
		a->stats->functions_damaged++;
		return ERR_OK;
	}
	a->tree = -1;
	a->leaf = a->own;
	a->caller = NONE;
	return pclntab_add_code(a, err);
}

enum err_code pclntab_add(
	struct elf *e, struct symindex_builder *b, struct pclntab_stats *stats, struct err *err)
{
	struct adder *a = calloc(1, sizeof(*a));
	enum err_code rc;

	*stats = (struct pclntab_stats){ 0 };
	if (!a)
		return err_nomem(err, "Go's table of functions");
	a->builder = b;
	a->stats = stats;
	rc = table_find(e, &a->table, &stats->found, err);
	stats->inlined = a->table.inlined.len;
	for (uint64_t i = 0; !rc && i < a->table.functions_n; i++) {
		stats->functions++;
		if (table_function(&a->table, i, &a->f))
			rc = pclntab_add_one(a, err);
		else
			stats->functions_damaged++;
	}
	for (unsigned k = 0; k < COLUMNS; k++)
		free(a->runs[k].v);
	free(a);
	return rc;
}
