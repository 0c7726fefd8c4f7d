#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/head/keys.h"
#include "tsdb/read/sum_internal.h"
#include "tsdb/read/twins.h"

/* Adds rows to an accumulator, source by source; rows of head windows one by one. Damage is a
 * warning of the querier, and the rest is added. */

/* ---- memory ---- */

void sum_scratch_close(struct sum_scratch *s)
{
	if (!s)
		return;
	chunk_close(s->chunk);
	rollup_view_close(s->rollup);
	sum_edges_close(s->edges);
	sum_heads_close(&s->heads);
	arena_release(&s->arena);
	bits_release(&s->headers);
	bits_release(&s->stacks);
	bits_release(&s->sets);
	free(s->piece.v);
	free(s->piece.rows);
	buf_release(&s->piece.bytes);
	free(s->ids);
	free(s->at);
	free(s->zeros);
	for (size_t i = 0; i < s->places_n; i++)
		free(s->places[i]);
	free(s->places);
	free(s);
}

enum err_code sum_scratch_of(struct db_querier *q, struct sum_scratch **out, struct err *err)
{
	struct sum_scratch *x = q->scratch;

	if (!x) {
		if (!(x = calloc(1, sizeof(*x))))
			return err_nomem(err, "sum");
		arena_init(&x->arena, 0);
		if (!(x->places = calloc(q->sources_n + 1, sizeof(struct sum_place *)))) {
			sum_scratch_close(x);
			return err_nomem(err, "sum");
		}
		x->places_n = q->sources_n;
		q->scratch = x;
	}
	*out = x;
	return ERR_OK;
}

const uint32_t *sum_zeros(struct sum_scratch *s, size_t n)
{
	if (n >= s->zeros_cap) {
		free(s->zeros);
		s->zeros_cap = n * 2 + 1024;
		if (!(s->zeros = calloc(s->zeros_cap, sizeof(*s->zeros))))
			s->zeros_cap = 0;
	}
	return s->zeros;
}

static bool read_sum_reserve_ids(struct sum_scratch *s, size_t n)
{
	return array_room(&s->ids, 0, n, &s->ids_cap);
}

/* For decoding a row of n entries. */
static bool read_sum_reserve(struct db_querier *q, size_t n)
{
	size_t cap = q->decode_cap ? q->decode_cap : 1024;

	if (n <= q->decode_cap)
		return true;
	while (cap < n)
		cap *= 2;
	free(q->stacks);
	free(q->sets);
	free(q->values);
	q->stacks = malloc(cap * sizeof(*q->stacks));
	q->sets = malloc(cap * sizeof(*q->sets));
	q->values = malloc(cap * sizeof(*q->values));
	q->decode_cap = q->stacks && q->sets && q->values ? cap : 0;
	return q->decode_cap != 0;
}

enum err_code sum_canceled(const struct summing *s, struct err *err)
{
	return querier_canceled(s->q) ? err_set(err, ERR_CANCELED, "query canceled") : ERR_OK;
}

enum err_code sum_header(struct summing *s, uint32_t header, uint32_t columns_n, struct err *err)
{
	s->x->view.header = header;
	s->x->view.columns_n = columns_n;
	if (header != s->header) {
		enum err_code rc = row_check_ids(s->p, &s->x->view, NULL, NULL, err);

		if (rc)
			return rc;
		s->header = header;
		s->column = header_column(s->p, header, s->type);
	}
	if (s->column >= 0 && (uint32_t)s->column >= columns_n)
		return err_set(
			err, ERR_CORRUPT, "a row of job \"" STR_FMT "\" lacks columns", STR_ARG(s->p->name));
	return ERR_OK;
}

/* ---- rows of windows ---- */

static enum err_code read_sum_add_samples(struct summing *s, int64_t weight, struct err *err)
{
	const struct row_view *v = &s->x->view;
	const uint32_t column = (uint32_t)s->column;
	const unsigned char *small = row_small_values(v, column);
	struct db_querier *q = s->q;
	uint32_t *sets, n = v->n;
	enum err_code rc;

	if (!read_sum_reserve(q, v->n))
		return err_nomem(err, "sum");
	sets = v->label_sets.len ? q->sets : NULL;
	if ((rc = row_ids(v, q->stacks, sets, err)) ||
		(rc = row_check_ids(s->p, v, q->stacks, sets, err)) ||
		(!small && (rc = row_cells(v, column, q->stacks, sets, q->values, &n, err))))
		return rc;
	s->stats->read += v->n;
	if (small)
		return accum_add_bytes(
			s->acc, q->stacks, sets, small, v->columns[column].factor, v->n, weight, err);
	return accum_add(s->acc, q->stacks, sets, q->values, n, weight, err);
}

/* ERR_NOT_FOUND: the row lacks the type. ERR_CORRUPT: nothing of it was added. */
static enum err_code read_sum_add_row(
	struct summing *s, struct str bytes, int64_t ts_ns, struct err *err)
{
	struct row_view *v = &s->x->view;
	int64_t weight;
	enum err_code rc;

	if ((rc = row_parse(bytes, ts_ns, v, err)))
		return rc;
	if (v->epoch != s->p->epoch) /* it is another db_series's */
		return ERR_NOT_FOUND;
	if ((rc = sum_header(s, v->header, v->columns_n, err)))
		return rc;
	weight = sum_weight(s, ts_ns, v->interval_ns);
	if (s->column < 0)
		return ERR_NOT_FOUND;
	if (s->acc && (rc = read_sum_add_samples(s, weight, err)))
		return rc;
	if ((rc = sum_note_header(s, v->header, err)))
		return rc;
	return sum_note_row(s,
		&(struct sum_row){ ts_ns, v->interval_ns, v->time_nanos, v->duration_nanos, v->period, v->n,
			v->columns[s->column].total },
		weight, err);
}

enum err_code sum_row(struct summing *summing, struct querier_source *s, struct str bytes,
	int64_t ts_ns, bool *added, struct err *err)
{
	struct err *why = &summing->x->why;
	enum err_code rc = read_sum_add_row(summing, bytes, ts_ns, why);

	*added = rc == ERR_OK;
	if (rc == ERR_CORRUPT)
		querier_warn(summing->q, s, why);
	else if (rc && rc != ERR_NOT_FOUND)
		return err_copy(err, why);
	return ERR_OK;
}

/* Adds the record at the iterator. A damaged one is a warning, not an error. */
static enum err_code read_sum_add_at(struct summing *summing, struct querier_source *s,
	struct store_iter *it, int64_t ts_ns, bool *added, struct err *err)
{
	struct err *why = &summing->x->why;
	struct str bytes;
	enum err_code rc = store_iter_value(it, &bytes, why);

	*added = false;
	if (!rc)
		return sum_row(summing, s, bytes, ts_ns, added, err);
	if (rc != ERR_CORRUPT)
		return err_copy(err, why);
	querier_warn(summing->q, s, why);
	return ERR_OK;
}

enum err_code sum_window(struct summing *summing, struct querier_source *s, uint32_t id,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	struct store_iter *it = querier_iter(s);
	const struct deleted_range *del;
	size_t del_n = deleted_of((struct deleted){ s->deleted, s->deleted_n }, id, &del);
	enum err_code rc = ERR_OK;
	uint32_t at, rows = 0;
	struct key key;
	int64_t ts;
	bool added;

	if (!it)
		return s->snap ? err_nomem(err, "sum") : ERR_OK;
	if (!window_clip(s->db, s->w, summing->p, &min_ns, &max_ns))
		return ERR_OK;
	summing->hour = (struct span_hour){ 0 };
	key = key_row(id, min_ns + 1);
	for (store_iter_seek(it, key_str(&key)); store_iter_valid(it) && !rc; store_iter_next(it)) {
		if (!key_parse_row(store_iter_key(it), &at, &ts) || at != id || ts > max_ns)
			break;
		if (deleted_has(del, del_n, ts))
			continue;
		if (rows++ % 64 != 63 || !(rc = sum_canceled(summing, err)))
			rc = read_sum_add_at(summing, s, it, ts, &added, err);
	}
	querier_check(summing->q, s, it);
	return rc;
}

/* The latest row that has the type; *found when there was one. */
static enum err_code read_sum_last_in_window(struct summing *summing, struct querier_source *s,
	uint32_t id, int64_t min_ns, int64_t max_ns, bool *found, struct err *err)
{
	struct store_iter *it = querier_iter(s);
	const struct deleted_range *del;
	size_t del_n = deleted_of((struct deleted){ s->deleted, s->deleted_n }, id, &del);
	enum err_code rc = ERR_OK;
	int64_t before, ts;
	uint32_t at;

	if (!it)
		return s->snap ? err_nomem(err, "sum") : ERR_OK;
	if (!window_clip(s->db, s->w, summing->p, &min_ns, &max_ns))
		return ERR_OK;
	before = max_ns < INT64_MAX ? max_ns + 1 : max_ns;
	while (!*found && !rc) { /* each turn goes back a row */
		struct key key = key_row(id, before);

		store_iter_seek_before(it, key_str(&key));
		querier_check(summing->q, s, it);
		if (!store_iter_valid(it) || !key_parse_row(store_iter_key(it), &at, &ts) || at != id ||
			ts <= min_ns)
			break;
		before = ts;
		if (!(rc = sum_canceled(summing, err)) && !deleted_has(del, del_n, ts))
			rc = read_sum_add_at(summing, s, it, ts, found, err);
	}
	return rc;
}

/* ---- the latest of each series ---- */

static enum err_code read_sum_last_of(struct summing *summing, const struct db_series *s,
	int64_t min_ns, int64_t max_ns, bool *found, struct err *err)
{
	enum err_code rc = ERR_OK;

	summing->p = s->partition;
	summing->header = SYM_NONE;
	for (size_t i = s->places_n; i-- > 0 && !rc && !*found;) {
		struct querier_source *src = &summing->q->sources[s->places[i].source];
		uint32_t id = s->places[i].id;

		if (src->min_ns >= max_ns || src->max_ns <= min_ns)
			continue;
		rc = src->b ? sum_block_last(summing, src, id, min_ns, max_ns, found, err) :
					  read_sum_last_in_window(summing, src, id, min_ns, max_ns, found, err);
	}
	return rc;
}

/*
 * True if another db_series with the same labels (another epoch or member) has a later row of the
 * type: a window with two epochs may have late rows in the newer one, and members may have rows of
 * any time. If two have a row of one time, the one that is listed first is used, as when the
 * greatest value is searched (promql/over_time.c).
 */
static enum err_code read_sum_other_has(const struct summing *summing, const struct db_series *s,
	int64_t min_ns, int64_t max_ns, bool *found, struct err *err)
{
	enum err_code rc = ERR_OK;
	int64_t last_ns = min_ns;

	*found = false;
	for (const struct db_series *of = s; of && !rc && !*found;
		 of = of->other == s ? NULL : of->other) {
		struct sum_stats stats = { 0 };
		struct summing look = *summing;
		bool any = false;

		look.stats = &stats;
		look.acc = NULL;
		rc = read_sum_last_of(&look, of, of == s ? min_ns : last_ns - (of < s), max_ns, &any, err);
		for (uint32_t i = 0; i < stats.headers_n; i++) /* this search's, not the sum's */
			bits_clear(summing->headers, stats.headers[i]);
		if (of != s)
			*found = any;
		else if (any)
			last_ns = stats.end_ns;
		else
			break; /* this series has no row itself */
	}
	return rc;
}

static enum err_code sum_last(struct summing *s, const struct db_series *const *series, size_t n,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < n && !rc; i++) {
		bool found = false;

		if ((rc = sum_canceled(s, err)))
			break;
		if (series[i]->other)
			rc = read_sum_other_has(s, series[i], min_ns, max_ns, &found, err);
		if (!rc && !found)
			rc = read_sum_last_of(s, series[i], min_ns, max_ns, &found, err);
	}
	return rc;
}

/* ---- all rows ---- */

static int read_sum_id_cmp(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

enum err_code sum_places(struct sum_scratch *scratch, const struct db_series *const *series,
	size_t n, uint32_t source, size_t *out_n, struct err *err)
{
	bool sorted = true;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const struct db_series *s = series[i];
		size_t at = scratch->at[i];

		for (; at < s->places_n && s->places[at].source <= source; at++) {
			if (s->places[at].source < source)
				continue;
			if (!read_sum_reserve_ids(scratch, kept + 1))
				return err_nomem(err, "sum");
			sorted &= kept == 0 || scratch->ids[kept - 1] < s->places[at].id;
			scratch->ids[kept++] = s->places[at].id;
		}
		scratch->at[i] = at;
	}
	if (!sorted)
		qsort(scratch->ids, kept, sizeof(*scratch->ids), read_sum_id_cmp);
	*out_n = kept;
	return ERR_OK;
}

enum err_code sum_places_begin(struct sum_scratch *s, size_t n, struct err *err)
{
	if (n > s->at_cap) {
		free(s->at);
		s->at_cap = 0;
		if (!(s->at = malloc(n * sizeof(*s->at))))
			return err_nomem(err, "sum");
		s->at_cap = n;
	}
	memset(s->at, 0, n * sizeof(*s->at));
	return ERR_OK;
}

void sum_begin_source(struct summing *summing, const struct querier_source *s)
{
	summing->header = SYM_NONE;
	summing->regular = s->regular;
}

/* For gauges, cuts (min, max] to the region of whole hours (cover.h): the pieces beside it are
 * added row by row later. A block without raw rows has only whole steps, so nothing is cut. */
static void read_sum_clip(
	const struct summing *summing, const struct querier_source *s, int64_t *min_ns, int64_t *max_ns)
{
	if (!summing->levels || summing->expect || (s->b && !block_has_raw(s->b->block)))
		return;
	if (*min_ns < summing->window.hours_min_ns)
		*min_ns = summing->window.hours_min_ns;
	if (*max_ns > summing->window.hours_max_ns)
		*max_ns = summing->window.hours_max_ns;
}

enum err_code sum_sources(struct summing *summing, const struct db_series *const *series, size_t n,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	struct querier_source *v = summing->q->sources, *s;
	struct sum_scratch *x = summing->x;
	enum err_code rc = sum_places_begin(x, n, err);
	uint32_t member = v[series[0]->places[0].source].member; /* all are in it */

	for (uint32_t at = summing->q->members[member].first; at && !rc; at = s->next) {
		int64_t from = min_ns, to = max_ns;
		uint32_t k = at - 1;
		size_t ids_n = 0;

		s = &v[k];
		read_sum_clip(summing, s, &from, &to);
		if (from >= to || s->min_ns >= to || s->max_ns <= from ||
			(summing->expect && !(s->b && s->b->remote)))
			continue;
		if ((rc = sum_canceled(summing, err)) || (rc = sum_places(x, series, n, k, &ids_n, err)))
			break;
		sum_begin_source(summing, s);
		if (s->b && ids_n)
			rc = sum_block(summing, s, x->ids, ids_n, from, to, err);
		for (size_t i = 0; !s->b && i < ids_n && !rc; i++)
			rc = sum_window(summing, s, x->ids[i], from, to, err);
	}
	return rc;
}

enum err_code sum_begin(struct summing *summing, const struct db_series *const *series, size_t n,
	int64_t *min_ns, int64_t *max_ns, struct err *err)
{
	struct db_querier *q = summing->q;
	enum err_code rc;

	assert(summing->stats && summing->a);
	summing->header = SYM_NONE;
	summing->column = -1;
	summing->window_ns = *min_ns;
	summing->levels = !summing->type->delta &&
		(summing->pick == SUM_WINDOW || summing->pick == SUM_FACTS);
	if (*min_ns < q->min_ns)
		*min_ns = q->min_ns;
	if (*max_ns > q->max_ns)
		*max_ns = q->max_ns;
	if (!n || *min_ns >= *max_ns)
		return ERR_OK;
	summing->p = series[0]->partition;
	assert(summing->p && !series[0]->numeric);
	if (summing->pick == SUM_WINDOW || summing->pick == SUM_EACH)
		twins_note_sum(q, series, n, *min_ns, *max_ns);
	if ((rc = sum_scratch_of(q, &summing->x, err)))
		return rc;
	if (!summing->headers)
		summing->headers = &summing->x->headers;
	return ERR_OK;
}

enum err_code sum_enter(struct summing *summing, struct err *err)
{
	const struct sum_stats *st = summing->stats;

	for (uint32_t i = 0; i < st->headers_n; i++)
		if (!bits_reserve(summing->headers, st->headers[i]))
			return err_nomem(err, "sum");
	for (uint32_t i = 0; i < st->headers_n; i++)
		bits_set(summing->headers, st->headers[i]);
	return ERR_OK;
}

void sum_leave(struct summing *summing)
{
	for (uint32_t i = 0; i < summing->stats->headers_n; i++)
		bits_clear(summing->headers, summing->stats->headers[i]);
}

enum err_code sum_end(
	struct summing *summing, const struct db_series *const *series, struct err *err)
{
	summing->p = series[0]->partition;
	/* If no costs of functions were added, stacks stay stacks: one walk by the caller over all sums
	 * costs less than a walk for each sum. */
	return summing->functions && function_sums_any(summing->functions) ? sum_names(summing, err) :
																		 ERR_OK;
}

static enum err_code sum_run(struct summing *of, const struct db_series *const *series, size_t n,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	struct summing t = *of;
	enum err_code rc = sum_begin(&t, series, n, &min_ns, &max_ns, err);

	if (rc || !n || min_ns >= max_ns || (rc = sum_enter(&t, err)))
		return rc;
	rc = t.pick == SUM_LAST ? sum_last(&t, series, n, min_ns, max_ns, err) :
		t.levels            ? sum_levels(&t, series, n, min_ns, max_ns, err) :
							  sum_sources(&t, series, n, min_ns, max_ns, err);
	sum_leave(&t);
	return rc ? rc : sum_end(&t, series, err);
}

enum err_code db_sum(struct db_querier *q, const struct db_series *const *series, size_t n,
	const struct profile_type *type, int64_t min_ns, int64_t max_ns, enum sum_pick pick,
	struct accum *acc, struct arena *a, struct sum_stats *stats, struct err *err)
{
	struct summing t = { .q = q,
		.type = type,
		.acc = acc,
		.a = a,
		.stats = stats,
		.pick = pick,
		.window = cover_window_of(min_ns, max_ns) };

	return sum_run(&t, series, n, min_ns, max_ns, err);
}

enum err_code db_sum_part(struct db_querier *q, const struct db_series *const *series, size_t n,
	const struct profile_type *type, struct sum_part_of part, struct accum *acc, struct arena *a,
	struct sum_stats *stats, struct err *err)
{
	struct summing t = { .q = q,
		.type = type,
		.acc = acc,
		.a = a,
		.stats = stats,
		.pick = SUM_WINDOW,
		.window = cover_window_of(part.of_min_ns, part.of_max_ns) };

	return sum_run(&t, series, n, part.min_ns, part.max_ns, err);
}

enum err_code db_sum_functions(struct db_querier *q, const struct db_series *const *series,
	size_t n, const struct profile_type *type, int64_t min_ns, int64_t max_ns,
	struct function_sums *f, struct accum *acc, struct arena *a, struct sum_stats *stats,
	struct err *err)
{
	struct summing t = {
		.q = q, .type = type, .acc = acc, .functions = f, .a = a, .stats = stats, .pick = SUM_WINDOW
	};

	return sum_run(&t, series, n, min_ns, max_ns, err);
}

/* ---- what is coming ---- */

bool db_querier_is_far(const struct db_querier *q)
{
	for (size_t i = 0; i < q->sources_n; i++)
		if (q->sources[i].b && q->sources[i].b->remote)
			return true;
	return false;
}

void db_sum_expect(struct db_querier *q, const struct db_series *const *series, size_t n,
	const struct profile_type *type, int64_t min_ns, int64_t max_ns, enum sum_wish wish,
	enum sum_part part)
{
	struct summing t = { .q = q,
		.type = type,
		.expect = part,
		.wish = wish,
		.levels = !type->delta,
		.window = cover_window_of(min_ns, max_ns) };
	struct err err;

	min_ns = min_ns < q->min_ns ? q->min_ns : min_ns;
	max_ns = max_ns > q->max_ns ? q->max_ns : max_ns;
	if (!n || min_ns >= max_ns || sum_scratch_of(q, &t.x, &err))
		return;
	(void)!sum_sources(&t, series, n, min_ns, max_ns, &err); /* reading gives the error */
}
