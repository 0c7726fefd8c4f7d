#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"

#include "tsdb/compact/compact_internal.h"
#include "tsdb/symbols/translate.h"

/*
 * Copies one series of one source into the new block, step by step of the finest rollup.
 *
 * Chunks are copied as they are, unless some of their rows are deleted, their ids change, or fewer
 * chunks could hold the step: then the rows are decoded and cut anew. A step's record is copied as
 * it is, unless rows of the step were deleted, ids change, or another source may have rows of it
 * too: then it is made from the rows.
 */

enum err_code join_begin(struct compact_joining *c, struct err *err)
{
	enum err_code rc;

	if (c->begun)
		return ERR_OK;
	c->begun = true;
	if (!c->given) {
		c->given = true;
		if ((rc = block_builder_partition(c->m, c->p, err)))
			return rc;
	}
	return block_builder_series(c->m, c->labels, c->group_given, &c->id, err);
}

/* ---- rows, decoded ---- */

static void compact_series_free_cells(struct compact_joining *c)
{
	free(c->ids.keys);
	free(c->ids.keys_tmp);
	free(c->ids.order);
	free(c->ids.order_tmp);
	free(c->stacks);
	free(c->sets);
}

static bool compact_series_reserve(struct compact_joining *c, size_t n, size_t values)
{
	if (n > c->cells_cap) {
		size_t cap = n * 2;

		compact_series_free_cells(c);
		c->ids.keys = malloc(cap * sizeof(*c->ids.keys));
		c->ids.keys_tmp = malloc(cap * sizeof(*c->ids.keys_tmp));
		c->ids.order = malloc(cap * sizeof(*c->ids.order));
		c->ids.order_tmp = malloc(cap * sizeof(*c->ids.order_tmp));
		c->stacks = malloc(cap * sizeof(*c->stacks));
		c->sets = malloc(cap * sizeof(*c->sets));
		c->cells_cap = c->ids.keys && c->ids.keys_tmp && c->ids.order && c->ids.order_tmp &&
				c->stacks && c->sets ?
			cap :
			0;
	}
	if (values > c->values_cap) {
		free(c->values);
		c->values = malloc(values * 2 * sizeof(*c->values));
		c->values_cap = c->values ? values * 2 : 0;
	}
	return c->cells_cap >= n && c->values_cap >= values;
}

enum err_code join_translate(struct compact_joining *j, struct translation *tr,
	const struct row *row, struct row *out, const uint32_t **order, struct err *err)
{
	size_t n = row->n;
	enum err_code rc;

	if (!compact_series_reserve(j, n + 1, n * row->columns_n + 1))
		return err_nomem(err, "join blocks");
	*out = *row;
	if ((rc = translate_header(tr, row->header, &out->header, err)) ||
		(rc = translate_entries(tr, row->stacks, row->label_sets, row->n, &j->ids, err)))
		return rc;
	for (size_t i = 0; i < n; i++) {
		j->stacks[i] = (uint32_t)(j->ids.keys[i] >> 32);
		j->sets[i] = (uint32_t)j->ids.keys[i];
		for (uint32_t c = 0; c < row->columns_n; c++)
			j->values[c * n + i] = row->values[c * n + j->ids.order[i]];
	}
	out->stacks = j->stacks;
	out->label_sets = row->label_sets ? j->sets : NULL;
	out->values = j->values;
	if (order)
		*order = j->ids.order;
	return ERR_OK;
}

static enum err_code compact_series_unpack_pending(
	struct compact_joining *j, const struct compact_pending *c, struct err *err)
{
	const struct compact_source *s = &j->sources[c->part->source];
	const struct deleted_range *deleted;
	size_t deleted_n = deleted_of(s->deleted, c->part->id, &deleted);
	const struct row *rows;
	struct row own;
	enum err_code rc;

	if ((rc = chunk_parse(j->chunk, (struct str){ j->pending_bytes.ptr + c->at, c->len }, err)) ||
		(rc = chunk_unpack(j->chunk, &rows, err)))
		return rc;
	for (uint32_t i = 0; i < chunk_rows_n(j->chunk) && !rc; i++) {
		int64_t ts = chunk_rows(j->chunk)[i].ts_ns;

		if (deleted_has(deleted, deleted_n, ts))
			continue;
		if ((rc = join_begin(j, err)))
			return rc;
		own = rows[i];
		if (s->translation)
			rc = join_translate(j, s->translation, &rows[i], &own, NULL, err);
		if (!rc)
			rc = block_builder_row(j->m, ts, &own, j->pending_rollup, err);
	}
	return rc;
}

/* ---- chunks that wait for the rest of their step ---- */

/* True if cutting them anew gives fewer chunks, or if some have rows to filter or translate. */
static bool compact_series_cut_anew(const struct compact_joining *j)
{
	size_t wanted = 0;
	uint64_t rows = 0, cells = 0, least;

	for (size_t i = 0; i < j->pending_n; i++) {
		const struct compact_pending *c = &j->pending[i], *next = c + 1;

		if (c->decode)
			return true;
		rows += c->rows_n;
		cells += c->cells;
		if (i + 1 == j->pending_n || next->interval_ns != c->interval_ns ||
			next->typeset != c->typeset) {
			/* A chunk that the builder would cut early is kept as it is. */
			least = (cells + BUILDER_CELLS_MAX - 1) / BUILDER_CELLS_MAX;
			rows = (rows + c->rows_aimed - 1) / c->rows_aimed;
			wanted += rows > least ? rows : least;
			rows = cells = 0;
		}
	}
	return wanted < j->pending_n;
}

/* A chunk keeps its memory between uses. Unpacked rows are more than all else here, and the builder
 * has copies of them, which it encodes next. */
static enum err_code compact_series_forget_rows(struct compact_joining *c, struct err *err)
{
	chunk_close(c->chunk);
	c->chunk = chunk_open();
	return c->chunk ? ERR_OK : err_nomem(err, "join blocks");
}

enum err_code join_flush(struct compact_joining *j, struct err *err)
{
	bool anew = compact_series_cut_anew(j);
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < j->pending_n && !rc; i++) {
		const struct compact_pending *c = &j->pending[i];

		if (anew)
			rc = compact_series_unpack_pending(j, c, err);
		else if (!(rc = join_begin(j, err)))
			rc = block_builder_chunk(
				j->m, (struct str){ j->pending_bytes.ptr + c->at, c->len }, j->pending_rollup, err);
	}
	j->pending_n = 0;
	j->pending_rows = 0;
	buf_clear(&j->pending_bytes);
	return anew && !rc ? compact_series_forget_rows(j, err) : rc;
}

struct walking {
	const struct compact_part *part;
	struct compact_source *s;
	const struct deleted_range *deleted;
	size_t deleted_n;
	struct str chunk, record;
	int64_t chunk_step_ns, record_step_ns; /* INT64_MAX: no more */
	int64_t first_ns, last_ns; /* rows of the chunk */
	struct compact_pending facts; /* of the chunk */
};

static enum err_code compact_series_add_pending(
	struct compact_joining *c, const struct walking *w, enum step_rollup rollup, struct err *err)
{
	struct compact_pending *v;
	enum err_code rc;

	if (c->pending_n &&
		(c->pending_step_ns != w->chunk_step_ns || c->pending_rollup != rollup ||
			c->pending_rows >= PENDING_ROWS_MAX) &&
		(rc = join_flush(c, err)))
		return rc;
	if (!array_room(&c->pending, c->pending_n, 1, &c->pending_cap))
		return err_nomem(err, "join blocks");
	v = &c->pending[c->pending_n++];
	*v = w->facts;
	v->at = c->pending_bytes.len;
	v->len = w->chunk.len;
	v->part = w->part;
	v->decode = w->s->translation ||
		deleted_touches(w->deleted, w->deleted_n, w->first_ns - 1, w->last_ns);
	buf_add_str(&c->pending_bytes, w->chunk);
	c->pending_rows += v->rows_n;
	c->pending_step_ns = w->chunk_step_ns;
	c->pending_rollup = rollup;
	return buf_failed(&c->pending_bytes) ? err_nomem(err, "join blocks") : ERR_OK;
}

/* ---- step by step ---- */

static struct compact_pending compact_series_facts_of(
	const struct sym_header *h, const struct chunk *chunk)
{
	struct compact_pending out = { .interval_ns = chunk_interval_ns(chunk),
		.rows_n = chunk_rows_n(chunk) };
	enum value_kind kinds[ROW_COLUMNS_MAX];
	uint32_t columns_n = chunk_columns_n(chunk);

	for (uint32_t i = 0; i < columns_n; i++)
		kinds[i] = i < h->types_n ? h->types[i].kind : KIND_DELTA;
	out.rows_aimed = chunk_rows_aimed(kinds, columns_n);
	for (uint32_t i = 0; i < out.rows_n; i++)
		out.cells += (uint64_t)chunk_rows(chunk)[i].n * (columns_n + 1);
	return out;
}

static enum err_code compact_series_next_chunk(
	struct compact_joining *c, struct walking *w, struct err *err)
{
	enum err_code rc = ERR_NOT_FOUND;
	const struct chunk_row *rows;
	uint32_t n;

	w->chunk_step_ns = INT64_MAX;
	if (c->raw)
		rc = block_chunks_next(w->s->chunks, &w->chunk, &w->first_ns, err);
	if (rc == ERR_NOT_FOUND)
		return ERR_OK;
	if (rc || (rc = chunk_parse(c->chunk, w->chunk, err)))
		return rc;
	n = chunk_rows_n(c->chunk);
	rows = chunk_rows(c->chunk);
	if (!n || !sym_exists(w->s->from, SYM_HEADER, rows[0].header))
		return err_set(
			err, ERR_CORRUPT, "%s: a chunk without rows or header", block_dir(w->s->b->block));
	w->last_ns = rows[n - 1].ts_ns;
	w->facts = compact_series_facts_of(sym_header(w->s->from, rows[0].header), c->chunk);
	w->facts.typeset = sym_header_typeset(w->s->from, rows[0].header);
	w->chunk_step_ns = cascade_step_of(0, w->first_ns);
	return ERR_OK;
}

static enum err_code compact_series_next_record(struct walking *w, struct err *err)
{
	enum err_code rc = block_rollups_next(w->s->rollups, &w->record, &w->record_step_ns, err);

	if (rc == ERR_NOT_FOUND) {
		w->record_step_ns = INT64_MAX;
		rc = ERR_OK;
	}
	return rc;
}

/* Without raw rows a record with a deleted part cannot be corrected. */
static enum err_code compact_series_keep_record(
	struct compact_joining *c, const struct walking *w, bool *keep, struct err *err)
{
	enum deleted_part part;
	enum err_code rc;

	*keep = true;
	if (!w->deleted_n)
		return ERR_OK;
	if ((rc = rollup_parse(c->view, w->record, err)))
		return rc;
	part = deleted_of_record(w->deleted, w->deleted_n, c->view);
	*keep = part == DELETED_NONE;
	c->dropped_records += part == DELETED_SOME;
	return ERR_OK;
}

bool join_splits(const struct compact_joining *c, const struct compact_source *s, int64_t step_ns)
{
	const struct block_meta *m = block_meta(s->b->block);

	return c->raw && (step_ns < m->min_ns || step_ns + rollup_step_ns[0] > m->max_ns);
}

/* Where the rollup of a step comes from. If it is made anew of the same rows or fewer, missed
 * scrapes count if they did before. */
static enum err_code compact_series_rollup_of(struct compact_joining *c, const struct walking *w,
	int64_t step_ns, enum step_rollup *out, struct err *err)
{
	bool splits = join_splits(c, w->s, step_ns), missed = db_counts_missed(c->db);
	enum err_code rc;

	*out = STEP_GIVEN;
	if (!c->raw ||
		(!splits && !w->s->translation &&
			!deleted_touches(w->deleted, w->deleted_n, step_ns, step_ns + rollup_step_ns[0])))
		return ERR_OK;
	if (!splits && w->record_step_ns == step_ns) {
		if ((rc = rollup_parse(c->view, w->record, err)))
			return rc;
		missed = rollup_counts_missed(c->view);
	}
	*out = missed ? STEP_MADE_MISSED : STEP_MADE;
	return ERR_OK;
}

static enum err_code compact_series_join_step(
	struct compact_joining *c, struct walking *w, int64_t step_ns, struct err *err)
{
	enum step_rollup rollup;
	enum err_code rc = compact_series_rollup_of(c, w, step_ns, &rollup, err);
	bool keep = rollup == STEP_GIVEN;

	if (rc || (c->pending_n && c->pending_step_ns != step_ns && (rc = join_flush(c, err))))
		return rc;
	while (w->chunk_step_ns == step_ns)
		if ((rc = compact_series_add_pending(c, w, rollup, err)) ||
			(rc = compact_series_next_chunk(c, w, err)))
			return rc;
	if (w->record_step_ns != step_ns)
		return ERR_OK;
	if (!c->raw && (rc = compact_series_keep_record(c, w, &keep, err)))
		return rc;
	if (keep &&
		((rc = join_begin(c, err)) || (rc = block_builder_rollup(c->m, step_ns, w->record, err))))
		return rc;
	return compact_series_next_record(w, err);
}

enum err_code join_part(struct compact_joining *c, const struct compact_part *part, struct err *err)
{
	struct walking w = { .part = part, .s = &c->sources[part->source] };
	const struct block_meta *m = block_meta(w.s->b->block);
	enum err_code rc;

	w.deleted_n = deleted_of(w.s->deleted, part->id, &w.deleted);
	if (c->raw)
		block_chunks_seek(w.s->chunks, part->id, m->min_ns, m->max_ns);
	block_rollups_seek(w.s->rollups, ROLLUP_SERIES, part->id, 0, 0, INT64_MAX);
	if ((rc = compact_series_next_chunk(c, &w, err)) || (rc = compact_series_next_record(&w, err)))
		return rc;
	for (;;) { /* a step per turn */
		int64_t step = w.chunk_step_ns < w.record_step_ns ? w.chunk_step_ns : w.record_step_ns;

		if (step == INT64_MAX)
			return join_links(c, part, err);
		if ((rc = compact_series_join_step(c, &w, step, err)))
			return rc;
	}
}

void join_release(struct compact_joining *c)
{
	free(c->pending);
	buf_release(&c->pending_bytes);
	chunk_close(c->chunk);
	rollup_view_close(c->view);
	links_unpacked_release(&c->linked);
	buf_release(&c->links);
	compact_series_free_cells(c);
	free(c->values);
}
