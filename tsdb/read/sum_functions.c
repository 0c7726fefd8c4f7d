#include <stdlib.h>

#include "tsdb/read/sum_internal.h"
#include "tsdb/rollup/rollup_table.h"

/*
 * Adds function totals to a sum by name: those of blocks, and those of stacks (sum_names.c). Like
 * records of cells totals of blocks are used only if all their names are there.
 */
struct function_sums {
	struct rollup_table table; /* (string, unnamed) -> flat, cum */
	int128 total;
};

enum err_code function_sums_open(struct function_sums **out, struct err *err)
{
	struct function_sums *f = calloc(1, sizeof(*f));

	if (!f || !rollup_table_column(&f->table) || !rollup_table_column(&f->table)) {
		function_sums_close(f);
		return err_nomem(err, "sum");
	}
	*out = f;
	return ERR_OK;
}

void function_sums_close(struct function_sums *f)
{
	if (!f)
		return;
	rollup_table_release(&f->table);
	free(f);
}

size_t function_sums_bytes(const struct function_sums *f)
{
	return f->table.cap * (sizeof(*f->table.keys) + 2 * sizeof(int128)) +
		f->table.slots_n * sizeof(*f->table.slots);
}

bool function_sums_any(const struct function_sums *f)
{
	return f->table.n > 0;
}

enum err_code function_sums_merge(
	struct function_sums *into, const struct function_sums *from, struct err *err)
{
	const struct rollup_table *t = &from->table;
	bool bad = false;
	uint32_t at;

	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t name = (uint32_t)(t->keys[i] >> 32), unnamed = (uint32_t)t->keys[i];

		if (!rollup_table_find(&into->table, &name, &unnamed, 1, &at))
			return err_nomem(err, "sum");
		for (int c = 0; c < 2; c++)
			bad |= __builtin_add_overflow(
				into->table.columns[c][at], t->columns[c][i], &into->table.columns[c][at]);
	}
	bad |= __builtin_add_overflow(into->total, from->total, &into->total);
	return bad ? err_set(err, ERR_LIMIT, "sum exceeds 128 bits") : ERR_OK;
}

/* ---- adding ---- */

enum err_code function_sums_add(struct function_sums *f, const struct rollup_function *r, size_t n,
	__int128 total, struct err *err)
{
	int128 *flat, *cum;
	bool bad = false;
	uint32_t at;

	for (size_t i = 0; i < n; i++) {
		if (!rollup_table_find(&f->table, &r[i].name, &(uint32_t){ r[i].unnamed }, 1, &at))
			return err_nomem(err, "sum");
		flat = &f->table.columns[0][at];
		cum = &f->table.columns[1][at];
		bad |= __builtin_add_overflow(*flat, r[i].flat, flat);
		bad |= __builtin_add_overflow(*cum, r[i].cum, cum);
	}
	f->total += total;
	return bad ? err_set(err, ERR_LIMIT, "sum exceeds 128 bits") : ERR_OK;
}

enum err_code sum_function_record(struct summing *s, struct str bytes, struct err *err)
{
	const struct rollup_function *v = NULL;
	const struct rollup_column *c;
	uint32_t column;
	enum err_code rc;
	size_t n = 0;

	if (!s->x->rollup && !(s->x->rollup = rollup_view_open()))
		return err_nomem(err, "sum");
	if ((rc = rollup_functions_parse(s->x->rollup, bytes, err)) ||
		(rc = sum_find_column(s, s->x->rollup, &c, &column, err)))
		return rc;
	if (!c || !c->rows)
		return ERR_OK;
	if ((rc = rollup_functions(s->x->rollup, column, &v, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++)
		if (!sym_exists(s->p, SYM_STRING, v[i].name))
			return err_set(err, ERR_CORRUPT,
				"a function's total of job \"" STR_FMT "\" uses a name that is missing",
				STR_ARG(s->p->name));
	if ((rc = function_sums_add(s->functions, v, n, c->total, err)))
		return rc;
	s->stats->read += n;
	return sum_note_record(s, c, 0, err);
}

/* ---- the sums ---- */

enum err_code function_sums_list(struct function_sums *f, struct arena *a,
	const struct function_sum **out, size_t *n, int64_t *total, struct err *err)
{
	struct function_sum *v;
	uint64_t *keys = NULL;
	uint32_t *order = NULL, kept;
	enum err_code rc = ERR_OK;

	if (!rollup_table_sort(&f->table, &keys, &order, &kept)) {
		rc = err_nomem(err, "sum");
		goto out;
	}
	if (!(v = arena_alloc_raw(a, (size_t)kept + 1, sizeof(*v)))) {
		rc = arena_fail(a, "sum", err);
		goto out;
	}
	*total = (int64_t)f->total;
	if (*total != f->total)
		rc = err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	for (uint32_t i = 0; i < kept && !rc; i++) {
		int128 flat = f->table.columns[0][order[i]], cum = f->table.columns[1][order[i]];

		v[i] = (struct function_sum){ (uint32_t)(keys[i] >> 32), (uint32_t)keys[i] != 0,
			(int64_t)flat, (int64_t)cum };
		if (v[i].flat != flat || v[i].cum != cum)
			rc = err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	}
	*out = v;
	*n = kept;
out:
	free(keys);
	free(order);
	return rc;
}
