#include <assert.h>
#include <stdlib.h>

#include "tsdb/rollup/rollup_internal.h"

/* Reading rollups: their columns, and cells added to accumulators batch by batch. */

struct rollup_view *rollup_view_open(void)
{
	struct rollup_view *v = calloc(1, sizeof(*v));

	if (v)
		arena_init(&v->head.arena, 0);
	return v;
}

void rollup_view_close(struct rollup_view *v)
{
	if (!v)
		return;
	arena_release(&v->head.arena);
	cells_view_release(&v->cells);
	free(v->out);
	free(v);
}

uint64_t rollup_cells(const struct rollup_view *v)
{
	return v->cells.n;
}

static enum err_code rollup_parse_record(struct rollup_view *v, struct str bytes,
	enum rollup_record record, uint32_t cells_per_column, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	enum err_code rc;

	if (!(rc = rollup_head_parse(&v->head, &in, record, err)))
		rc = cells_parse(&v->cells, &in, v->head.columns_n * cells_per_column, err);
	if (rc) { /* there is nothing in it then */
		v->head.columns_n = v->head.lists_n = 0;
		v->head.missed = false;
		v->cells.n = v->cells.columns_n = 0;
	}
	v->functions = record == ROLLUP_RECORD_FUNCTIONS;
	return rc;
}

enum err_code rollup_parse(struct rollup_view *v, struct str bytes, struct err *err)
{
	return rollup_parse_record(v, bytes, ROLLUP_RECORD_CELLS, 1, err);
}

enum err_code rollup_functions_parse(struct rollup_view *v, struct str bytes, struct err *err)
{
	return rollup_parse_record(v, bytes, ROLLUP_RECORD_FUNCTIONS, 2, err);
}

bool rollup_counts_missed(const struct rollup_view *v)
{
	return v->head.missed;
}

uint32_t rollup_columns_n(const struct rollup_view *v)
{
	return v->head.columns_n;
}

const struct rollup_column *rollup_column(const struct rollup_view *v, uint32_t i)
{
	assert(i < v->head.columns_n);
	return &v->head.columns[i];
}

/* ---- cells ---- */

/* A column whose sums take more than 64 bits needs a weighted accumulator. No function says if an
 * accumulator is weighted, but one of 64 bits refuses three times the largest value. */
static enum err_code rollup_require_wide(struct accum *acc, uint32_t stack, struct err *err)
{
	static const int64_t more[] = { INT64_MAX, INT64_MAX, INT64_MAX },
						 less[] = { -INT64_MAX, -INT64_MAX, -INT64_MAX };
	const uint32_t stacks[] = { stack, stack, stack };
	enum err_code rc = accum_add(acc, stacks, NULL, more, 3, 1, err);

	return rc ? rc : accum_add(acc, stacks, NULL, less, 3, 1, err);
}

#define HALF_LOG2 62

/* Adds values of 128 bits in parts that have one sign each, so that none overflows before their sum
 * does: the multiples of 2^62, a few times as much as fits, and the rest. */
static enum err_code rollup_add_wide(
	struct accum *acc, struct rollup_view *v, const uint32_t *sets, uint32_t n, struct err *err)
{
	const int128 half = (int128)1 << HALF_LOG2;
	enum err_code rc;
	bool more = true;

	for (uint32_t i = 0; i < n; i++)
		v->values[i] = (int64_t)(v->wide[i] % half);
	if ((rc = accum_add(acc, v->stacks, sets, v->values, n, 1, err)))
		return rc;
	for (uint32_t i = 0; i < n; i++)
		v->wide[i] /= half;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < n; i++) {
			int128 part = v->wide[i];

			if (part > INT64_MAX)
				part = INT64_MAX;
			else if (part < -INT64_MAX)
				part = -INT64_MAX;
			v->values[i] = (int64_t)part;
			v->wide[i] -= part;
			more |= v->wide[i] != 0;
		}
		if ((rc = accum_add(acc, v->stacks, sets, v->values, n, INT64_C(1) << HALF_LOG2, err)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code rollup_add_batch(struct rollup_view *v, struct cells_values *values,
	const struct rollup_column *column, const uint32_t *sets, uint32_t n, struct accum *acc,
	struct err *err)
{
	uint64_t factor = (uint64_t)values->factor;
	enum err_code rc;

	if (values->coding == CELLS_WIDE) {
		if ((rc = cells_values_next_wide(values, n, v->wide, err)))
			return rc;
		return rollup_add_wide(acc, v, sets, n, err);
	}
	/* A sum that fits 64 bits needs no weight: an accumulator of 64 bits has none. */
	if ((rc = cells_values_next(values, n, column->gauge ? 1 : factor, v->values, err)))
		return rc;
	return accum_add(acc, v->stacks, sets, v->values, n, column->gauge ? (int64_t)factor : 1, err);
}

enum err_code rollup_add(struct rollup_view *v, uint32_t column, struct accum *acc, struct err *err)
{
	const struct rollup_column *c = &v->head.columns[column];
	const uint32_t *sets = v->cells.labels ? v->sets : NULL;
	struct cells_values values;
	struct cells_ids ids;
	uint32_t n = CELLS_BATCH;
	enum err_code rc;
	bool first = true;

	assert(column < v->head.columns_n);
	if ((rc = cells_ids_open(&v->cells, &ids, err)) ||
		(rc = cells_values_open(&v->cells, column, &values, err)))
		return rc;
	if (values.coding == CELLS_ZERO)
		return ERR_OK;
	while (n == CELLS_BATCH) {
		if ((rc = cells_ids_next(&ids, v->stacks, v->sets, &n, err)))
			return rc;
		if (first && values.coding == CELLS_WIDE && !c->gauge && n &&
			(rc = rollup_require_wide(acc, v->stacks[0], err)))
			return rc;
		first = false;
		if ((rc = rollup_add_batch(v, &values, c, sets, n, acc, err)))
			return rc;
	}
	return ERR_OK;
}

static bool rollup_mark(struct bits *bits, const uint32_t *ids, uint32_t n)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = ids[i] > most ? ids[i] : most;
	if (!bits_reserve(bits, most))
		return false;
	for (uint32_t i = 0; i < n; i++)
		bits_set(bits, ids[i]);
	return true;
}

enum err_code rollup_mark_ids(
	struct rollup_view *v, struct bits *stacks, struct bits *label_sets, struct err *err)
{
	struct cells_ids ids;
	uint32_t n = CELLS_BATCH;
	enum err_code rc;

	if ((rc = cells_ids_open(&v->cells, &ids, err)))
		return rc;
	while (n == CELLS_BATCH) {
		if ((rc = cells_ids_next(&ids, v->stacks, v->sets, &n, err)))
			return rc;
		if ((stacks && !rollup_mark(stacks, v->stacks, n)) ||
			(label_sets && v->cells.labels && !rollup_mark(label_sets, v->sets, n)))
			return err_nomem(err, "rollup");
	}
	return ERR_OK;
}

uint32_t rollup_stack_max(struct rollup_view *v, struct err *err)
{
	struct cells_ids ids;
	uint32_t n = CELLS_BATCH;

	if (cells_ids_open(&v->cells, &ids, err))
		return UINT32_MAX;
	while (n == CELLS_BATCH)
		if (cells_ids_next(&ids, v->stacks, v->sets, &n, err))
			return UINT32_MAX;
	return (uint32_t)ids.stack;
}

/* ---- function totals ---- */

static enum err_code rollup_read_functions(
	struct rollup_view *v, uint32_t column, struct rollup_function *out, struct err *err)
{
	struct cells_values flat, cum;
	struct cells_ids ids;
	uint32_t n = CELLS_BATCH;
	enum err_code rc;

	if ((rc = cells_ids_open(&v->cells, &ids, err)) ||
		(rc = cells_values_open(&v->cells, column * 2, &flat, err)) ||
		(rc = cells_values_open(&v->cells, column * 2 + 1, &cum, err)))
		return rc;
	while (n == CELLS_BATCH) {
		memset(v->sets, 0, sizeof(v->sets));
		if ((rc = cells_ids_next(&ids, v->stacks, v->sets, &n, err)) ||
			(rc = cells_values_next_wide(&flat, n, v->wide, err)))
			return rc;
		for (uint32_t i = 0; i < n; i++)
			out[i] = (struct rollup_function){ .name = v->stacks[i],
				.unnamed = v->sets[i] == 1,
				.alike = v->sets[i] > 1 ? v->sets[i] : 0,
				.flat = v->wide[i] };
		if ((rc = cells_values_next_wide(&cum, n, v->wide, err)))
			return rc;
		for (uint32_t i = 0; i < n; i++)
			out[i].cum = v->wide[i];
		out += n;
	}
	return ERR_OK;
}

enum err_code rollup_functions(struct rollup_view *v, uint32_t column, struct rollup_function **out,
	size_t *n, struct err *err)
{
	size_t cells = v->cells.n, kept = 0;
	struct rollup_function *read;
	enum err_code rc;

	assert(column < v->head.columns_n);
	*out = NULL;
	*n = 0;
	if (!cells)
		return ERR_OK;
	/* Kept ones come first, behind them the ones that were read. */
	if (v->out_cap < cells * 2) {
		free(v->out);
		v->out = malloc(cells * 2 * sizeof(*v->out));
		v->out_cap = v->out ? cells * 2 : 0;
		if (!v->out)
			return err_nomem(err, "rollup");
	}
	read = v->out + cells;
	if ((rc = rollup_read_functions(v, column, read, err)))
		return rc;
	for (int kind = 0; kind < 3; kind++)
		for (size_t i = 0; i < cells; i++)
			if (kind == (read[i].alike ? 2 : read[i].unnamed) && (read[i].flat || read[i].cum))
				v->out[kept++] = read[i];
	*out = v->out;
	*n = kept;
	return ERR_OK;
}
