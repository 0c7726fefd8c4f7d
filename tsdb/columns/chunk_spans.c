#include <assert.h>

#include "tsdb/columns/coding.h"

/*
 * Adds a column of a range of rows, each row with a weight of its own: once for all codings, cell
 * by cell. A level that stays holds over many rows; it is multiplied once, by all their weights. A
 * sum of weighted cells takes 128 bits, and so one number of that size per key goes to the
 * accumulator.
 */
struct spans_adding {
	struct chunk *c;
	uint64_t factor;
	uint32_t from, to;
	const int64_t *ends; /* between the rows; row i weighs ends[i + 1] - ends[i] */
	uint16_t places[CHUNK_ROWS_MAX]; /* of the key in hand */
	int64_t cells[CHUNK_ROWS_MAX];
	__int128 values[CHUNK_BATCH]; /* of the keys in hand */
};

/* A value in the rows [from, to). Cells times the factor wrap as they do everywhere. */
static __int128 chunk_spans_of(
	const struct spans_adding *a, uint64_t cell, uint32_t from, uint32_t to)
{
	return (__int128)(int64_t)(cell * a->factor) * (a->ends[to] - a->ends[from]);
}

/* Cells are differences to the row before, which wrap. */
static __int128 chunk_spans_of_level(
	const struct spans_adding *a, const struct column_reader *r, uint32_t key)
{
	const int64_t *cell = a->cells;
	uint32_t at = a->from, until;
	uint64_t level = r->n.rests[key] ? (uint64_t)*cell++ : 0;
	__int128 sum = 0;

	for (uint32_t i = 0; i < r->n.counts[key] && at < a->to; i++) {
		until = a->places[i] + 1u; /* the first row has none */
		until = until < a->to ? until : a->to;
		if (until > at) {
			sum += chunk_spans_of(a, level, at, until);
			at = until;
		}
		level += (uint64_t)cell[i];
	}
	return sum + chunk_spans_of(a, level, at, a->to);
}

static __int128 chunk_spans_of_cells(
	const struct spans_adding *a, const struct column_reader *r, uint32_t key)
{
	__int128 sum = 0;

	for (uint32_t i = 0; i < r->n.counts[key]; i++)
		if (a->places[i] >= a->from && a->places[i] < a->to)
			sum += chunk_spans_of(a, (uint64_t)a->cells[i], a->places[i], a->places[i] + 1u);
	return sum;
}

static enum err_code chunk_spans_add_keys(
	struct spans_adding *a, struct column_reader *r, struct accum *acc, struct err *err)
{
	const struct chunk *c = a->c;
	enum err_code rc = ERR_OK;
	uint32_t n;

	for (uint32_t first = 0; !rc && first < c->keys_n; first += n) {
		for (n = 0; n < CHUNK_BATCH && first + n < c->keys_n; n++) {
			uint32_t k = first + n;

			if (!column_reader_cells(r, k, a->places, a->cells))
				return chunk_corrupt(err, "bad cells");
			a->values[n] = r->coding->levels ? chunk_spans_of_level(a, r, k) :
											   chunk_spans_of_cells(a, r, k);
		}
		rc = accum_add_wide(acc, c->key_stacks + first, c->key_sets ? c->key_sets + first : NULL,
			a->values, n, err);
	}
	return rc;
}

enum err_code chunk_add_spans(struct chunk *c, uint32_t column, uint32_t from, uint32_t to,
	const int64_t *ends, struct accum *acc, struct err *err)
{
	uint32_t base = c->columns[column].base;
	struct column_reader r;
	struct spans_adding a;
	enum err_code rc;

	assert(column < c->columns_n && from <= to && to <= c->rows_n);
	if (from == to || c->columns[base].coding == &coding_zero)
		return ERR_OK;
	assert(ends[from] <= ends[to]);
	a.c = c;
	a.factor = c->columns[column].factor;
	a.from = from;
	a.to = to;
	a.ends = ends;
	if ((rc = chunk_ids(c, err)) || (rc = column_reader_open(c, base, &r, err)) ||
		(rc = chunk_spans_add_keys(&a, &r, acc, err)))
		return rc;
	return column_reader_done(&r) ? ERR_OK : chunk_corrupt(err, "bad cells");
}
