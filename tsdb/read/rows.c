#include <stdlib.h>

#include "tsdb/catalog/window_epochs.h"
#include "tsdb/columns/links.h"
#include "tsdb/head/keys.h"
#include "tsdb/read/querier_internal.h"

/* Reads row after row, source by source: windows record by record, blocks chunk by chunk. */

struct db_rows {
	struct db_querier *q;
	struct db_series s;
	struct partition *p; /* with the symbols of the current source */
	int64_t min_ns, max_ns;
	int64_t source_max_ns; /* of the current source */
	size_t at; /* index of the current place */
	bool begun; /* the current place was begun */
	struct querier_source *source;
	const struct deleted_range *del;
	size_t del_n;
	struct store_iter *it; /* a window's */
	struct block_chunks *chunks; /* a block's, as are the next four; of links if `links` */
	struct chunk *chunk;
	const struct row *unpacked;
	uint32_t unpacked_at, unpacked_n;
	bool links; /* linked samples are read instead of rows */
	struct links_unpacked linked;
	uint64_t read, read_max;
	struct db_row row;
	struct row_view view;
	uint32_t *stacks, *sets;
	int64_t *values, totals[ROW_COLUMNS_MAX];
	size_t cap, values_cap;
};

enum err_code db_rows_open(struct db_querier *q, const struct db_series *s, int64_t min_ns,
	int64_t max_ns, struct db_rows **out, struct err *err)
{
	struct db_rows *r = calloc(1, sizeof(*r));

	if (!r)
		return err_nomem(err, "rows");
	r->q = q;
	r->s = *s;
	r->min_ns = min_ns > q->min_ns ? min_ns : q->min_ns;
	r->max_ns = max_ns < q->max_ns ? max_ns : q->max_ns;
	*out = r;
	return ERR_OK;
}

enum err_code db_links_open(struct db_querier *q, const struct db_series *s, int64_t min_ns,
	int64_t max_ns, uint64_t read_max, struct db_rows **out, struct err *err)
{
	enum err_code rc = db_rows_open(q, s, min_ns, max_ns, out, err);

	if (rc)
		return rc;
	(*out)->links = true;
	(*out)->read_max = read_max;
	return ERR_OK;
}

uint64_t db_rows_read(const struct db_rows *r)
{
	return r->read;
}

static void db_rows_end_source(struct db_rows *r)
{
	if (r->it)
		querier_check(r->q, r->source, r->it);
	store_iter_close(r->it);
	block_chunks_close(r->chunks);
	r->it = NULL;
	r->chunks = NULL;
	r->unpacked = NULL;
	r->unpacked_at = r->unpacked_n = 0;
	r->begun = false;
}

void db_rows_close(struct db_rows *r)
{
	if (!r)
		return;
	db_rows_end_source(r);
	chunk_close(r->chunk);
	free(r->stacks);
	free(r->sets);
	free(r->values);
	links_unpacked_release(&r->linked);
	free(r);
}

static bool db_rows_reserve_row(struct db_rows *r, size_t n, size_t columns)
{
	size_t values;

	n++;
	values = n * (columns + 1);
	if (n > r->cap) {
		free(r->stacks);
		free(r->sets);
		r->stacks = malloc(n * 2 * sizeof(*r->stacks));
		r->sets = malloc(n * 2 * sizeof(*r->sets));
		r->cap = r->stacks && r->sets ? n * 2 : 0;
	}
	if (values > r->values_cap) {
		free(r->values);
		r->values = malloc(values * 2 * sizeof(*r->values));
		r->values_cap = r->values ? values * 2 : 0;
	}
	return r->cap && r->values_cap;
}

/* ---- links ---- */

static enum err_code db_rows_take_links(
	struct db_rows *r, struct str bytes, int64_t ts_ns, struct err *err)
{
	const struct links_unpacked *u = &r->linked;
	enum err_code rc;

	if ((rc = links_unpack(&r->linked, bytes, ts_ns, err)) ||
		(rc = row_check_ids(r->p, &u->view, u->row.stacks, u->row.label_sets, err)))
		return rc;
	r->row = (struct db_row){ .ts_ns = ts_ns,
		.interval_ns = u->row.interval_ns,
		.time_nanos = u->row.time_nanos,
		.duration_nanos = u->row.duration_nanos,
		.period = u->row.period,
		.header = u->row.header,
		.n = u->row.n,
		.stacks = u->row.stacks,
		.label_sets = u->row.label_sets,
		.values = u->row.values,
		.spans = u->links.spans,
		.span_of = u->links.of,
		.links_dropped = u->links.dropped };
	return ERR_OK;
}

/* ---- windows ---- */

/* ERR_EXISTS: links are wanted, and the row has none. */
static enum err_code db_rows_decode_row(
	struct db_rows *r, struct str bytes, int64_t ts_ns, struct err *err)
{
	struct row_view *v = &r->view;
	enum err_code rc;

	if ((rc = row_parse(bytes, ts_ns, v, err)))
		return rc;
	if (r->links)
		return v->links.len ? db_rows_take_links(r, v->links, ts_ns, err) : ERR_EXISTS;
	if (!db_rows_reserve_row(r, v->n, v->columns_n))
		return err_nomem(err, "rows");
	if ((rc = row_ids(v, r->stacks, r->sets, err)))
		return rc;
	for (uint32_t c = 0; c < v->columns_n; c++) {
		if ((rc = row_values(v, c, r->values + (size_t)c * v->n, err)))
			return rc;
		r->totals[c] = v->columns[c].total;
	}
	if ((rc = row_check_ids(r->p, v, r->stacks, r->sets, err)))
		return rc;
	r->row = (struct db_row){ ts_ns, v->interval_ns, v->time_nanos, v->duration_nanos, v->period,
		v->header, v->n, r->stacks, r->sets, r->values, r->totals };
	return ERR_OK;
}

static enum err_code db_rows_begin_window(struct db_rows *r, uint32_t id, struct err *err)
{
	int64_t min_ns = r->min_ns;
	struct key key;

	r->source_max_ns = r->max_ns;
	if (!r->source->snap ||
		!window_clip(r->source->db, r->source->w, r->p, &min_ns, &r->source_max_ns))
		return ERR_NOT_FOUND;
	key = key_row(id, min_ns + 1);
	if (!(r->it = store_iter_open(r->source->store, r->source->snap)))
		return err_nomem(err, "rows");
	store_iter_seek(r->it, key_str(&key));
	return ERR_OK;
}

/* ERR_NOT_FOUND: it has no more. ERR_CORRUPT: this one cannot be read. */
static enum err_code db_rows_next_of_window(struct db_rows *r, uint32_t id, struct err *err)
{
	struct str bytes;
	enum err_code rc;
	uint32_t at, epoch;
	int64_t ts;

	for (;; store_iter_next(r->it)) {
		if (!store_iter_valid(r->it) || !key_parse_row(store_iter_key(r->it), &at, &ts) ||
			at != id || ts > r->source_max_ns)
			return ERR_NOT_FOUND;
		if (deleted_has(r->del, r->del_n, ts))
			continue;
		if (!(rc = store_iter_value(r->it, &bytes, err))) {
			r->read += bytes.len;
			if (row_epoch(bytes, &epoch) && epoch != r->p->epoch)
				continue;
			rc = db_rows_decode_row(r, bytes, ts, err);
		}
		store_iter_next(r->it);
		return rc;
	}
}

/* ---- blocks ---- */

static enum err_code db_rows_begin_block(struct db_rows *r, uint32_t id, struct err *err)
{
	struct block *b = r->source->b->block;
	struct block_series rec;
	struct arena a;
	enum err_code rc;

	if (!block_has_raw(b)) {
		if (r->links && block_meta(b)->links)
			querier_info(r->q, "links of some rows are gone, as the rows are");
		return ERR_NOT_FOUND;
	}
	arena_init(&a, 0);
	rc = block_series(b, id, &a, &rec, err);
	arena_release(&a);
	if (rc == ERR_CORRUPT) {
		querier_warn(r->q, r->source, err);
		return ERR_NOT_FOUND;
	}
	if (rc)
		return rc;
	rc = querier_partition(r->q, r->source, rec.slot, true, &r->p, err);
	if (rc == ERR_CORRUPT || rc == ERR_EXISTS)
		return ERR_NOT_FOUND;
	if (!rc && !r->chunk && !(r->chunk = chunk_open()))
		rc = err_nomem(err, "rows");
	if (rc || (rc = (r->links ? block_links_open : block_chunks_open)(b, false, &r->chunks, err)))
		return rc;
	block_chunks_seek(r->chunks, id, r->min_ns, r->max_ns);
	return ERR_OK;
}

static enum err_code db_rows_take_unpacked(struct db_rows *r, uint32_t i, struct err *err)
{
	const struct chunk_row *head = &chunk_rows(r->chunk)[i];
	const struct row *row = &r->unpacked[i];
	enum err_code rc;

	if (!db_rows_reserve_row(r, row->n, 0))
		return err_nomem(err, "rows");
	if (row->label_sets)
		memcpy(r->sets, row->label_sets, row->n * sizeof(*r->sets));
	else
		memset(r->sets, 0, row->n * sizeof(*r->sets));
	r->view.header = row->header;
	r->view.n = row->n;
	r->view.columns_n = row->columns_n;
	if ((rc = row_check_ids(r->p, &r->view, row->stacks, r->sets, err)))
		return rc;
	for (uint32_t c = 0; c < row->columns_n; c++)
		r->totals[c] = chunk_totals(r->chunk, c)[i];
	r->row = (struct db_row){ head->ts_ns, row->interval_ns, row->time_nanos, row->duration_nanos,
		row->period, row->header, row->n, row->stacks, r->sets, row->values, r->totals };
	return ERR_OK;
}

static enum err_code db_rows_next_links_of_block(struct db_rows *r, struct err *err)
{
	struct str bytes;
	int64_t ts;
	enum err_code rc;

	while (!(rc = block_chunks_next(r->chunks, &bytes, &ts, err))) {
		r->read += bytes.len;
		if (!deleted_has(r->del, r->del_n, ts))
			return db_rows_take_links(r, bytes, ts, err);
	}
	return rc;
}

static enum err_code db_rows_next_of_block(struct db_rows *r, struct err *err)
{
	struct str bytes;
	int64_t ts;
	enum err_code rc;

	if (r->links)
		return db_rows_next_links_of_block(r, err);

	for (;;) {
		while (r->unpacked_at < r->unpacked_n) {
			uint32_t i = r->unpacked_at++;

			ts = chunk_rows(r->chunk)[i].ts_ns;
			if (ts > r->min_ns && ts <= r->max_ns && !deleted_has(r->del, r->del_n, ts))
				return db_rows_take_unpacked(r, i, err);
		}
		r->unpacked_at = r->unpacked_n = 0;
		if ((rc = block_chunks_next(r->chunks, &bytes, &ts, err)) ||
			(rc = chunk_parse(r->chunk, bytes, err)) ||
			(rc = chunk_unpack(r->chunk, &r->unpacked, err)))
			return rc;
		r->read += bytes.len;
		r->unpacked_n = chunk_rows_n(r->chunk);
	}
}

/* ---- both ---- */

/* Begins the current place. ERR_NOT_FOUND: it has nothing to read. */
static enum err_code db_rows_begin(struct db_rows *r, struct err *err)
{
	const struct series_place *place = &r->s.places[r->at];
	enum err_code rc;

	r->source = &r->q->sources[place->source];
	r->p = r->s.partition;
	if (r->source->min_ns >= r->max_ns || r->source->max_ns <= r->min_ns)
		return ERR_NOT_FOUND;
	r->del_n = deleted_of(
		(struct deleted){ r->source->deleted, r->source->deleted_n }, place->id, &r->del);
	rc = r->source->b ? db_rows_begin_block(r, place->id, err) :
						db_rows_begin_window(r, place->id, err);
	r->begun = rc == ERR_OK;
	return rc;
}

enum err_code db_rows_next(struct db_rows *r, const struct db_row **out, struct err *err)
{
	enum err_code rc;
	struct err why;

	while (r->at < r->s.places_n && !(r->links && r->read >= r->read_max)) {
		if (querier_canceled(r->q))
			return err_set(err, ERR_CANCELED, "query canceled");
		if (!(rc = r->begun ? ERR_OK : db_rows_begin(r, &why)))
			rc = r->source->b ? db_rows_next_of_block(r, &why) :
								db_rows_next_of_window(r, r->s.places[r->at].id, &why);
		if (rc == ERR_CORRUPT)
			querier_warn(r->q, r->source, &why);
		if (rc == ERR_NOT_FOUND || (rc == ERR_CORRUPT && !r->begun)) {
			db_rows_end_source(r);
			r->at++;
		} else if (rc && rc != ERR_CORRUPT && rc != ERR_EXISTS) {
			return err_copy(err, &why);
		} else if (!rc) {
			*out = &r->row;
			return ERR_OK;
		}
	}
	return err_set(err, ERR_NOT_FOUND, "no more rows");
}
