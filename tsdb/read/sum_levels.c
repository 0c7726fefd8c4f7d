#include <stdlib.h>

#include "base/array.h"
#include "tsdb/columns/spans.h"
#include "tsdb/head/keys.h"
#include "tsdb/read/sum_internal.h"

/*
 * Levels over a window (cover.h). In a piece, what a row counts depends on the times of its
 * neighbours, which may be in another source, epoch or member. So for each series the times of all
 * its scrapes in the piece are read first, from the heads of rows and chunks; then its rows are
 * added, each with its weight. If the series is in one epoch and member only, rows of windows are
 * added in the first pass, each when the next one's time is known. If totals are enough, the heads
 * have them, and there is no second pass.
 */

/* ---- times ---- */

static bool sum_piece_add(struct sum_piece *p, int64_t ts_ns, int64_t interval_ns)
{
	if (ts_ns <= p->from_ns || ts_ns > p->to_ns)
		return true;
	if (!array_room(&p->v, p->n, 1, &p->cap))
		return false;
	p->v[p->n++] = (struct sum_scrape){ .ts_ns = ts_ns, .interval_ns = interval_ns };
	return true;
}

enum err_code sum_piece_keep(struct sum_piece *p, const struct sum_row *row, struct err *err)
{
	if (!array_room(&p->rows, p->rows_n, 1, &p->rows_cap) ||
		!sum_piece_add(p, row->ts_ns, row->interval_ns))
		return err_nomem(err, "sum");
	p->rows[p->rows_n++] = *row;
	return ERR_OK;
}

/* The time that scrape i counts, back to the scrape before it or to the begin of the piece. */
static int64_t sum_piece_back(const struct sum_piece *p, size_t i)
{
	const struct sum_scrape *s = &p->v[i];

	return i ? span_next(p->v[i - 1].ts_ns, s->ts_ns, s->interval_ns) :
			   span_first(p->min_ns, s->ts_ns, s->interval_ns);
}

/* Adds the waiting row, whose weight is known now. */
static enum err_code sum_piece_add_held(struct summing *summing, struct err *err)
{
	struct sum_piece *p = &summing->x->piece;
	struct querier_source *s = p->held;
	bool added;

	if (!s)
		return ERR_OK;
	p->held = NULL;
	p->at = p->held_at;
	return sum_row(summing, s, buf_str(&p->bytes), p->v[p->at].ts_ns, &added, err);
}

/* Lets the last scrape's row wait until the next time is known. */
static enum err_code sum_piece_hold(
	struct summing *summing, struct querier_source *s, struct str bytes, struct err *err)
{
	struct sum_piece *p = &summing->x->piece;

	buf_clear(&p->bytes);
	buf_add_str(&p->bytes, bytes);
	if (buf_failed(&p->bytes))
		return err_nomem(err, "sum");
	p->held = s;
	p->held_at = p->n - 1;
	return ERR_OK;
}

/* Takes a row of a window. own: of the series that is added, not of another epoch or member. */
static enum err_code sum_piece_take_row(struct summing *summing, struct querier_source *s,
	struct str bytes, int64_t ts_ns, bool own, struct err *err)
{
	struct sum_piece *p = &summing->x->piece;
	struct row_view *view = &summing->x->view;
	enum err_code rc;
	bool mine;

	if ((rc = row_parse(bytes, ts_ns, view, err)))
		return rc;
	mine = own && view->epoch == summing->p->epoch;
	if (!sum_piece_add(p, ts_ns, view->interval_ns))
		return err_nomem(err, "sum");
	if (!p->adds)
		return ERR_OK;
	if (p->held) {
		p->v[p->held_at].counts_ns = sum_piece_back(p, p->held_at);
		if ((rc = sum_piece_add_held(summing, err)))
			return rc;
	}
	return mine ? sum_piece_hold(summing, s, bytes, err) : ERR_OK;
}

/* Damaged rows are only reported if they are added in this pass; else adding them later reports
 * them. */
static enum err_code sum_piece_read_window(
	struct summing *summing, struct querier_source *s, uint32_t id, bool own, struct err *err)
{
	struct sum_piece *p = &summing->x->piece;
	struct store_iter *it = querier_iter(s);
	struct key key = key_row(id, p->from_ns + 1);
	const struct deleted_range *del;
	size_t del_n = deleted_of((struct deleted){ s->deleted, s->deleted_n }, id, &del);
	struct str bytes;
	enum err_code rc;
	struct err why;
	uint32_t at, rows = 0;
	int64_t ts;

	if (!it)
		return s->snap ? err_nomem(err, "sum") : ERR_OK;
	sum_begin_source(summing, s);
	for (store_iter_seek(it, key_str(&key)); store_iter_valid(it); store_iter_next(it)) {
		if (!key_parse_row(store_iter_key(it), &at, &ts) || at != id || ts > p->to_ns)
			break;
		if (deleted_has(del, del_n, ts))
			continue;
		if (rows++ % 64 == 63 && (rc = sum_canceled(summing, err)))
			return rc;
		if (!(rc = store_iter_value(it, &bytes, &why)))
			rc = sum_piece_take_row(summing, s, bytes, ts, own, &why);
		if (rc == ERR_CORRUPT && p->adds)
			querier_warn(summing->q, s, &why);
		else if (rc && rc != ERR_CORRUPT)
			return err_copy(err, &why);
	}
	querier_check(summing->q, s, it);
	return ERR_OK;
}

static enum err_code sum_piece_read_block(
	struct summing *summing, struct querier_source *s, uint32_t id, struct err *err)
{
	struct sum_piece *p = &summing->x->piece;
	const struct deleted_range *del;
	size_t del_n = deleted_of((struct deleted){ s->deleted, s->deleted_n }, id, &del);
	struct block_chunks *it;
	struct chunk *c;
	struct str bytes;
	enum err_code rc;
	int64_t first;

	if (!block_has_raw(s->b->block))
		return ERR_OK;
	if (!(it = querier_chunks(s, err)) ||
		(!summing->x->chunk && !(summing->x->chunk = chunk_open())))
		return err_nomem(err, "sum");
	c = summing->x->chunk;
	block_chunks_seek(it, id, p->from_ns, p->to_ns);
	while ((rc = block_chunks_next(it, &bytes, &first, &summing->x->why)) != ERR_NOT_FOUND) {
		if (rc == ERR_CORRUPT ||
			(!rc && (rc = chunk_parse(c, bytes, &summing->x->why)) == ERR_CORRUPT))
			continue;
		if (rc)
			return err_copy(err, &summing->x->why);
		for (uint32_t i = 0; i < chunk_rows_n(c); i++)
			if (!deleted_has(del, del_n, chunk_rows(c)[i].ts_ns) &&
				!sum_piece_add(p, chunk_rows(c)[i].ts_ns, chunk_interval_ns(c)))
				return err_nomem(err, "sum");
	}
	return ERR_OK;
}

static int sum_scrape_cmp(const void *left, const void *right)
{
	const struct sum_scrape *a = left, *b = right;

	if (a->ts_ns != b->ts_ns)
		return a->ts_ns < b->ts_ns ? -1 : 1;
	return (a->interval_ns > b->interval_ns) - (a->interval_ns < b->interval_ns);
}

/* Sorts by time, and keeps one of equal times: two members may have the same. */
static void sum_piece_sort(struct sum_piece *p)
{
	size_t kept = 0;
	bool sorted = true;

	for (size_t i = 1; i < p->n && sorted; i++)
		sorted = p->v[i - 1].ts_ns < p->v[i].ts_ns;
	if (sorted)
		return;
	qsort(p->v, p->n, sizeof(*p->v), sum_scrape_cmp);
	for (size_t i = 0; i < p->n; i++)
		if (!kept || p->v[kept - 1].ts_ns != p->v[i].ts_ns)
			p->v[kept++] = p->v[i];
	p->n = kept;
}

static enum err_code sum_piece_read_times(
	struct summing *summing, const struct db_series *s, bool own, struct err *err)
{
	const struct sum_piece *p = &summing->x->piece;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < s->places_n && !s->numeric && !rc; i++) {
		struct querier_source *src = &summing->q->sources[s->places[i].source];

		if (src->min_ns >= p->to_ns || src->max_ns <= p->from_ns)
			continue;
		rc = src->b ? sum_piece_read_block(summing, src, s->places[i].id, err) :
					  sum_piece_read_window(summing, src, s->places[i].id, own, err);
	}
	return rc;
}

/* ---- what they count ---- */

static enum err_code sum_piece_count(struct summing *summing, struct err *err)
{
	struct sum_piece *p = &summing->x->piece;
	struct cover_span run = { p->min_ns, p->min_ns };
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < p->n && !rc; i++) {
		struct sum_scrape *s = &p->v[i];

		s->counts_ns = sum_piece_back(p, i);
		if (s->ts_ns - s->counts_ns > run.to_ns) {
			rc = cover_add_span(&summing->stats->counted, run, summing->a, err);
			run.from_ns = s->ts_ns - s->counts_ns;
		}
		run.to_ns = s->ts_ns;
		if (i + 1 == p->n) {
			run.to_ns += span_last(s->ts_ns, s->interval_ns, p->max_ns);
			s->counts_ns += run.to_ns - s->ts_ns;
		}
	}
	return rc ? rc : cover_add_span(&summing->stats->counted, run, summing->a, err);
}

static int64_t sum_piece_counts(struct sum_piece *p, int64_t ts_ns)
{
	size_t from = 0, to = p->n;

	if (p->at + 1 < p->n && p->v[p->at].ts_ns < ts_ns) /* mostly it is the next scrape */
		from = p->v[p->at + 1].ts_ns >= ts_ns ? p->at + 1 : p->at;
	while (from < to && p->v[from].ts_ns != ts_ns) {
		size_t mid = from + (to - from) / 2;

		if (p->v[mid].ts_ns < ts_ns)
			from = mid + 1;
		else if (p->v[mid].ts_ns > ts_ns)
			to = mid;
		else
			from = mid;
	}
	if (from >= to)
		return 0;
	p->at = from;
	return p->v[from].counts_ns;
}

int64_t sum_weight(struct summing *s, int64_t ts_ns, int64_t interval_ns)
{
	if (!sum_is_weighted(s))
		return 1;
	if (s->piece)
		return s->piece->keeps ? interval_ns : sum_piece_counts(s->piece, ts_ns);
	return s->regular && cover_in_hours(&s->window, ts_ns) ?
		span_in_hour(&s->hour, ts_ns, interval_ns) :
		interval_ns;
}

/* ---- pieces ---- */

static enum err_code sum_levels_add_series(
	struct summing *summing, const struct db_series *s, struct err *err)
{
	const struct sum_piece *p = summing->piece;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < s->places_n && !rc; i++) {
		struct querier_source *src = &summing->q->sources[s->places[i].source];

		if (src->min_ns >= p->to_ns || src->max_ns <= p->from_ns || (p->adds && src->w))
			continue;
		sum_begin_source(summing, src);
		rc = src->b ? sum_block_piece(summing, src, s->places[i].id, p->from_ns, p->to_ns, err) :
					  sum_window(summing, src, s->places[i].id, p->from_ns, p->to_ns, err);
	}
	return rc;
}

/* Reads the times of a series' scrapes in the piece, and keeps facts about its own rows if totals
 * are enough. */
static enum err_code sum_levels_read(
	struct summing *summing, const struct db_series *s, struct err *err)
{
	struct sum_piece *p = summing->piece;
	enum err_code rc = ERR_OK;

	p->n = p->at = p->rows_n = 0;
	p->held = NULL;
	p->keeps = !summing->acc;
	p->adds = summing->acc && !s->other;
	for (const struct db_series *of = s; of && !rc; of = of->other == s ? NULL : of->other)
		rc = of == s && p->keeps ? sum_levels_add_series(summing, s, err) :
								   sum_piece_read_times(summing, of, of == s, err);
	p->keeps = false;
	sum_piece_sort(p);
	return rc;
}

static enum err_code sum_levels_series(
	struct summing *summing, const struct db_series *s, struct err *err)
{
	struct sum_piece *p = summing->piece;
	enum err_code rc = sum_canceled(summing, err);

	if (rc || (rc = sum_levels_read(summing, s, err)) || !p->n ||
		(rc = sum_piece_count(summing, err)) || (rc = sum_piece_add_held(summing, err)))
		return rc;
	for (size_t i = 0; i < p->rows_n && !rc; i++)
		rc = sum_note_row(summing, &p->rows[i], sum_piece_counts(p, p->rows[i].ts_ns), err);
	return rc || !summing->acc ? rc : sum_levels_add_series(summing, s, err);
}

static enum err_code sum_levels_piece(struct summing *summing,
	const struct db_series *const *series, size_t n, int64_t min_ns, int64_t max_ns,
	struct err *err)
{
	struct sum_piece *p = &summing->x->piece;
	enum err_code rc = ERR_OK;

	p->min_ns = min_ns;
	p->max_ns = max_ns;
	p->from_ns = min_ns < summing->q->min_ns ? summing->q->min_ns : min_ns;
	p->to_ns = max_ns > summing->q->max_ns ? summing->q->max_ns : max_ns;
	if (p->from_ns >= p->to_ns)
		return ERR_OK;
	summing->piece = p;
	for (size_t i = 0; i < n && !rc; i++)
		rc = sum_levels_series(summing, series[i], err);
	summing->piece = NULL;
	return rc;
}

enum err_code sum_levels(struct summing *summing, const struct db_series *const *series, size_t n,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	const struct cover_window *w = &summing->window;
	bool region = w->hours_min_ns < w->hours_max_ns;
	enum err_code rc = sum_sources(summing, series, n, min_ns, max_ns, err);

	if (rc || !region)
		return rc ? rc : sum_levels_piece(summing, series, n, w->min_ns, w->max_ns, err);
	if (min_ns < w->hours_min_ns)
		rc = sum_levels_piece(summing, series, n, w->min_ns, w->hours_min_ns, err);
	if (!rc && max_ns > w->hours_max_ns)
		rc = sum_levels_piece(summing, series, n, w->hours_max_ns, w->max_ns, err);
	return rc;
}
