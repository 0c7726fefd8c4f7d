#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"

#include "tsdb/compact/builder_internal.h"
#include "tsdb/compact/compaction.h"

/* Reads the block back and compares it, series by series, with what was added. Only then its
 * sources may go. */
struct builder_verify_verifying {
	struct block_builder *m;
	struct block *b;
	struct block_chunks *chunks, *numbers;
	struct block_rollups *rollups;
	struct rollup_view *view;
	struct partition *partition; /* of the slot, as the block itself has it */
	uint32_t slot;
	struct arena a;
	uint32_t group;
	unsigned __int128 group_total;
	bool group_open;
	/* of a series */
	int64_t *missed; /* steps whose rollups count missed scrapes, ascending */
	size_t missed_n, missed_cap, missed_at; /* at: the first that is not before the last row's */
	struct span_hour hour; /* of its rows */
};

static enum err_code builder_verify_differs(
	struct builder_verify_verifying *v, const char *what, uint32_t id, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		"%s, read back: %s of series %" PRIu32 " are not what was written", v->m->tmp, what, id);
}

static enum err_code builder_verify_enter_slot(
	struct builder_verify_verifying *v, uint32_t slot, struct err *err)
{
	static const struct symbol_limits all = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX };
	const struct block_partition *of = block_partition(v->b, slot);
	uint64_t lost = 0;
	enum err_code rc;

	if (v->partition && v->slot == slot)
		return ERR_OK;
	partition_close(v->partition);
	v->partition = NULL;
	if ((rc = partition_open(of->name, of->id, 0, &all, &v->partition, err)))
		return rc;
	v->slot = slot;
	v->partition->lookup = false;
	mutex_lock(&v->partition->lock);
	for (int stage = BLOCK_NAMES; stage <= BLOCK_STACKS && !rc && !lost; stage++)
		rc = block_load_symbols(v->b, slot, v->partition, (enum block_stage)stage, &lost, err);
	mutex_unlock(&v->partition->lock);
	return !rc && lost ? ERR_CORRUPT : rc;
}

/* ---- rows ---- */

static bool builder_verify_is_first_of_type(const struct sym_header *h, uint32_t column)
{
	const struct sym_type *t = &h->types[column];

	for (uint32_t i = 0; i < column; i++)
		if (h->types[i].type == t->type && h->types[i].unit == t->unit &&
			(h->types[i].kind == KIND_DELTA) == (t->kind == KIND_DELTA))
			return false;
	return true;
}

/* What a row weighs in gauges. Rows ascend. */
static int64_t builder_verify_span(
	struct builder_verify_verifying *v, int64_t ts_ns, int64_t interval_ns)
{
	int64_t step_ns = cascade_step_of(0, ts_ns),
			span_ns = span_in_hour(&v->hour, ts_ns, interval_ns);

	while (v->missed_at < v->missed_n && v->missed[v->missed_at] < step_ns)
		v->missed_at++;
	return v->missed_at < v->missed_n && v->missed[v->missed_at] == step_ns ? span_ns : interval_ns;
}

/* Adds what the rollups of these rows have in all types, gauges weighted, modulo 2^128. */
static void builder_verify_add_totals(
	struct builder_verify_verifying *v, const struct chunk *chunk, unsigned __int128 *total)
{
	const struct chunk_row *rows = chunk_rows(chunk);

	for (uint32_t i = 0; i < chunk_rows_n(chunk); i++) {
		const struct sym_header *h = sym_header(v->partition, rows[i].header);
		int64_t span = builder_verify_span(v, rows[i].ts_ns, chunk_interval_ns(chunk));

		/* If a profile has a type twice, the first column counts, as everywhere. */
		for (uint32_t k = 0; k < chunk_columns_n(chunk) && k < h->types_n; k++)
			if (builder_verify_is_first_of_type(h, k))
				*total += (unsigned __int128)(__int128)chunk_totals(chunk, k)[i] *
					(unsigned __int128)(__int128)(h->types[k].kind == KIND_DELTA ? 1 : span);
	}
}

static enum err_code builder_verify_read_rows(struct builder_verify_verifying *v, uint32_t id,
	struct series_check *got, unsigned __int128 *total, struct err *err)
{
	struct str bytes;
	int64_t first;
	enum err_code rc;

	block_chunks_seek(v->chunks, id, v->m->o.min_ns, v->m->o.max_ns);
	while (!(rc = block_chunks_next(v->chunks, &bytes, &first, err))) {
		if ((rc = chunk_parse(v->m->chunk, bytes, err)) || (rc = chunk_check(v->m->chunk, err)))
			return rc;
		builder_chunks_check_chunk(got, v->m->chunk);
		builder_verify_add_totals(v, v->m->chunk, total);
	}
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* ---- rollups ---- */

/* Sums of all types over the steps of the finest level. */
static enum err_code builder_verify_read_rollups(struct builder_verify_verifying *v,
	enum rollup_kind kind, uint32_t id, unsigned __int128 *total, struct err *err)
{
	int64_t step;
	struct str bytes;
	enum err_code rc;

	v->missed_n = v->missed_at = 0;
	v->hour = (struct span_hour){ 0 };
	block_rollups_seek(v->rollups, kind, id, 0, 0, INT64_MAX);
	while (!(rc = block_rollups_next(v->rollups, &bytes, &step, err))) {
		if ((rc = rollup_parse(v->view, bytes, err)))
			return rc;
		for (uint32_t i = 0; i < rollup_columns_n(v->view); i++)
			*total += (unsigned __int128)rollup_column(v->view, i)->total;
		if (!rollup_counts_missed(v->view))
			continue;
		if (!array_room(&v->missed, v->missed_n, 1, &v->missed_cap))
			return err_nomem(err, "make block");
		v->missed[v->missed_n++] = step;
	}
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code builder_verify_end_group(struct builder_verify_verifying *v, struct err *err)
{
	unsigned __int128 total = 0;
	enum err_code rc;

	if (!v->group_open)
		return ERR_OK;
	if ((rc = builder_verify_read_rollups(v, ROLLUP_GROUP, v->group, &total, err)))
		return rc;
	if (total != v->group_total)
		return err_set(err, ERR_CORRUPT,
			"%s, read back: rollups of group %" PRIu32 " are not the sum of its series'", v->m->tmp,
			v->group);
	v->group_total = 0;
	return ERR_OK;
}

static enum err_code verify_series(struct builder_verify_verifying *v, uint32_t id, struct err *err)
{
	const struct series_check *want = &v->m->checks[id];
	struct series_check got = { 0 };
	struct block_series s;
	unsigned __int128 total = 0, of_rows = 0;
	enum err_code rc;

	arena_reset(&v->a);
	if ((rc = compaction_pause(v->m->db, err)) || (rc = block_series(v->b, id, &v->a, &s, err)))
		return rc;
	if (id < v->m->number_series) {
		if ((rc = block_builder_read_numbers(v->m, v->numbers, id, &got, err)))
			return rc;
		return got.rows == want->rows && got.hash == want->hash && s.rows == want->rows ?
			ERR_OK :
			builder_verify_differs(v, "numbers", id, err);
	}
	if (s.slot >= v->m->partitions_n)
		return builder_verify_differs(v, "labels", id, err);
	if ((rc = builder_verify_read_rollups(v, ROLLUP_SERIES, id, &total, err)))
		return rc;
	if (v->m->o.raw) {
		if ((rc = builder_verify_enter_slot(v, s.slot, err)) ||
			(rc = builder_verify_read_rows(v, id, &got, &of_rows, err)))
			return rc;
		if (got.rows != want->rows || got.hash != want->hash || s.rows != want->rows)
			return builder_verify_differs(v, "rows", id, err);
		if (of_rows != total)
			return builder_verify_differs(v, "rollups", id, err);
	}
	if (s.group != v->group && (rc = builder_verify_end_group(v, err)))
		return rc;
	v->group = s.group;
	v->group_open = true;
	v->group_total += total;
	return ERR_OK;
}

enum err_code block_builder_verify(struct block_builder *b, struct err *err)
{
	struct builder_verify_verifying v = { .m = b };
	struct err damaged = { 0 };
	enum err_code rc;

	arena_init(&v.a, 0);
	if ((rc = block_open(b->tmp, NULL, b->db->cache, &v.b, &damaged, err)))
		goto out;
	if (damaged.code) {
		err_copy(err, &damaged);
		rc = damaged.code;
		goto out;
	}
	if (!(v.view = rollup_view_open())) {
		rc = err_nomem(err, "make block");
		goto out;
	}
	if ((b->o.raw && (rc = block_chunks_open(v.b, true, &v.chunks, err))) ||
		(rc = block_numbers_open(v.b, true, &v.numbers, err)) ||
		(rc = block_rollups_open(v.b, true, &v.rollups, err)))
		goto out;
	if (block_meta(v.b)->series != b->checks_n ||
		block_meta(v.b)->number_series != b->number_series ||
		(b->o.raw && block_meta(v.b)->rows != b->rows_n))
		rc = err_set(err, ERR_CORRUPT,
			"%s, read back: %" PRIu64 " series and %" PRIu64 " rows, not %" PRIu64 " and %" PRIu64,
			b->tmp, block_meta(v.b)->series, block_meta(v.b)->rows, b->checks_n, b->rows_n);
	for (uint64_t i = 0; i < b->checks_n && !rc; i++)
		rc = verify_series(&v, (uint32_t)i, err);
	if (!rc)
		rc = builder_verify_end_group(&v, err);
	if (!rc)
		rc = block_builder_verify_links(b, v.b, err);
out:
	block_chunks_close(v.chunks);
	block_chunks_close(v.numbers);
	block_rollups_close(v.rollups);
	rollup_view_close(v.view);
	partition_close(v.partition);
	block_close(v.b);
	free(v.missed);
	arena_release(&v.a);
	return rc;
}
