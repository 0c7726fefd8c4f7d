#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "tsdb/compact/builder_internal.h"

/* Rows into chunks. */

static uint64_t builder_chunks_mix(uint64_t hash, uint64_t value)
{
	return map_hash_u64(hash ^ value) + UINT64_C(0x9e3779b97f4a7c15);
}

void builder_chunks_check_row(
	struct series_check *c, int64_t ts_ns, const struct row *row, const int64_t *totals)
{
	uint64_t sum = builder_chunks_mix(1, (uint64_t)ts_ns);

	sum = builder_chunks_mix(sum, (uint64_t)row->interval_ns);
	sum = builder_chunks_mix(sum, (uint64_t)row->time_nanos);
	sum = builder_chunks_mix(sum, (uint64_t)row->duration_nanos);
	sum = builder_chunks_mix(sum, (uint64_t)row->period);
	sum = builder_chunks_mix(sum, row->n);
	for (uint32_t i = 0; i < row->columns_n; i++)
		sum = builder_chunks_mix(sum, (uint64_t)totals[i]);
	c->rows++;
	c->hash += sum;
}

void builder_chunks_check_chunk(struct series_check *c, const struct chunk *chunk)
{
	const struct chunk_row *rows = chunk_rows(chunk);
	int64_t totals[ROW_COLUMNS_MAX];

	for (uint32_t i = 0; i < chunk_rows_n(chunk); i++) {
		struct row row = { .header = rows[i].header,
			.interval_ns = chunk_interval_ns(chunk),
			.time_nanos = rows[i].time_nanos,
			.duration_nanos = rows[i].duration_nanos,
			.period = rows[i].period,
			.n = rows[i].n,
			.columns_n = chunk_columns_n(chunk) };

		for (uint32_t k = 0; k < row.columns_n; k++)
			totals[k] = chunk_totals(chunk, k)[i];
		builder_chunks_check_row(c, rows[i].ts_ns, &row, totals);
	}
}

/* ---- holding rows ---- */

static bool builder_chunks_reserve_rows(struct block_builder *b)
{
	uint32_t cap = b->rows_cap;

	return array_room(&b->ts, b->rows_held, 1, &cap) &&
		array_room(&b->rows, b->rows_held, 1, &b->rows_cap);
}

static enum err_code builder_chunks_hold(
	struct block_builder *b, int64_t ts_ns, const struct row *row, struct err *err)
{
	struct row own = *row;
	struct row_widths widths;
	unsigned char *narrow = arena_alloc_raw(&b->rows_arena, row_narrow_bytes(row, &widths), 1);

	if (!narrow || !builder_chunks_reserve_rows(b))
		return err_nomem(err, "chunks");
	row_narrow(row, &widths, narrow);
	own.narrow = narrow;
	own.stacks = own.label_sets = NULL;
	own.links = (struct str){ 0 };
	own.values = NULL;
	b->ts[b->rows_held] = ts_ns;
	b->rows[b->rows_held++] = own;
	b->cells_held += (uint64_t)row->n * (row->columns_n + 1);
	return ERR_OK;
}

enum err_code block_builder_row(struct block_builder *b, int64_t ts_ns, const struct row *row,
	enum step_rollup rollup, struct err *err)
{
	int64_t step = cascade_step_of(0, ts_ns), totals[ROW_COLUMNS_MAX];
	enum err_code rc = ERR_OK;

	if (row->columns_n > ROW_COLUMNS_MAX)
		return err_set(err, ERR_LIMIT, "row with %" PRIu32 " columns", row->columns_n);
	if (b->rows_held &&
		(step != b->step_ns || rollup != b->rollup || b->cells_held >= BUILDER_CELLS_MAX))
		rc = block_builder_flush(b, err);
	b->step_ns = step;
	b->rollup = rollup;
	for (uint32_t c = 0; c < row->columns_n; c++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < row->n; i++)
			sum += (uint64_t)row->values[(size_t)c * row->n + i];
		totals[c] = (int64_t)sum;
	}
	if (rc || (rc = builder_chunks_hold(b, ts_ns, row, err)))
		return rc;
	builder_chunks_check_row(&b->checks[b->id], ts_ns, row, totals);
	b->rows_n++;
	return row->links.len ? block_builder_links(b, ts_ns, row->links, err) : ERR_OK;
}

/* ---- writing ---- */

static enum err_code builder_chunks_write_chunk(struct block_builder *b, uint32_t from, uint32_t to,
	const enum value_kind *kinds, struct err *err)
{
	enum err_code rc;

	buf_clear(&b->bytes);
	if ((rc = chunk_encode(b->ts + from, b->rows + from, to - from, kinds, &b->bytes, err)) ||
		(rc = block_writer_chunk(b->writer, buf_str(&b->bytes), err)) || b->rollup == STEP_GIVEN ||
		(rc = chunk_parse(b->chunk, buf_str(&b->bytes), err)))
		return rc;
	return cascade_chunk(b->of_series, b->step_ns, b->chunk, b->rollup == STEP_MADE_MISSED, err);
}

/* Rows [from, to) have one shape; they are split evenly into chunks. Rows that had to go before the
 * end of their step do not make chunks smaller. */
static enum err_code builder_chunks_write_run(
	struct block_builder *b, uint32_t from, uint32_t to, struct err *err)
{
	const struct sym_header *h = sym_header(b->p, b->rows[from].header);
	uint32_t columns_n = b->rows[from].columns_n, aimed;
	enum value_kind kinds[ROW_COLUMNS_MAX];
	uint64_t n = to - from, chunks;
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < columns_n; i++)
		kinds[i] = h->types[i].kind;
	aimed = chunk_rows_aimed(kinds, columns_n);
	chunks = (n + aimed - 1) / aimed;
	if (b->cells_held >= BUILDER_CELLS_MAX && chunks > 1)
		chunks = n / aimed;
	for (uint64_t i = 0; i < chunks && !rc; i++)
		rc = builder_chunks_write_chunk(b, from + (uint32_t)(n * i / chunks),
			from + (uint32_t)(n * (i + 1) / chunks), kinds, err);
	return rc;
}

static bool builder_chunks_same_shape(
	const struct block_builder *builder, const struct row *a, const struct row *b)
{
	return a->interval_ns == b->interval_ns && a->columns_n == b->columns_n &&
		sym_header_typeset(builder->p, a->header) == sym_header_typeset(builder->p, b->header);
}

enum err_code block_builder_flush(struct block_builder *b, struct err *err)
{
	enum err_code rc = ERR_OK;
	uint32_t n = b->rows_held, from = 0;

	for (uint32_t i = 1; i <= n && !rc; i++)
		if (i == n || !builder_chunks_same_shape(b, &b->rows[from], &b->rows[i])) {
			rc = builder_chunks_write_run(b, from, i, err);
			from = i;
		}
	b->rows_held = 0;
	b->cells_held = 0;
	arena_reset(&b->rows_arena);
	return rc;
}

enum err_code block_builder_chunk(
	struct block_builder *b, struct str bytes, enum step_rollup rollup, struct err *err)
{
	enum err_code rc;

	assert(b->series_open && b->id < b->checks_n);
	if (b->rows_held && (rc = block_builder_flush(b, err)))
		return rc;
	if ((rc = chunk_parse(b->chunk, bytes, err)) ||
		(rc = block_writer_chunk(b->writer, bytes, err)))
		return rc;
	builder_chunks_check_chunk(&b->checks[b->id], b->chunk);
	b->rows_n += chunk_rows_n(b->chunk);
	if (rollup == STEP_GIVEN || !chunk_rows_n(b->chunk))
		return ERR_OK;
	return cascade_chunk(b->of_series, cascade_step_of(0, chunk_rows(b->chunk)[0].ts_ns), b->chunk,
		rollup == STEP_MADE_MISSED, err);
}
