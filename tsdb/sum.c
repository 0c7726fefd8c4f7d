#include <inttypes.h>
#include <stdlib.h>

#include "tsdb/db_internal.h"
#include "tsdb/row.h"

/* Reading rows: sums straight into an accumulator, and one row after the other. */

enum err_code querier_check_ids(const struct partition *p, const struct row_view *v,
	const uint32_t *stacks, const uint32_t *sets, struct err *err)
{
	uint32_t set = 0;
	bool ok = sym_exists(p, SYM_HEADER, v->header) &&
		sym_header(p, v->header)->types_n == v->columns_n;

	if (ok && v->n && stacks) {
		for (uint32_t i = 0; i < v->n; i++)
			set = sets[i] > set ? sets[i] : set;
		ok = stacks[v->n - 1] < sym_nodes_n(p) && set < sym_label_sets_n(p);
	}
	/* Only where symbols were lost each is looked for: a row without its names would be a wrong
	 * answer. */
	if (ok && stacks && atomic_load_explicit(&p->damaged, memory_order_relaxed))
		for (uint32_t i = 0; i < v->n && ok; i++)
			ok = sym_exists(p, SYM_NODE, stacks[i]) &&
				sym_exists(p, SYM_LABEL_SET, sets[i]);
	if (ok)
		return ERR_OK;
	return err_set(err, ERR_CORRUPT,
		"a row of job \"" STR_FMT "\" uses symbols that are missing", STR_ARG(p->name));
}

static bool reserve(struct db_querier *q, size_t n)
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

struct summing {
	struct db_querier *q;
	const struct db_series *s;
	uint32_t id;
	const struct profile_type *type;
	struct accum *acc;
	struct arena *a;
	struct sum_stats *stats;
	enum sum_pick pick;
	uint32_t header; /* of the row before */
	int column; /* of the type in it; -1: none */
	struct row_view view;
};

static enum err_code note_header(struct summing *t, struct err *err)
{
	struct sum_stats *st = t->stats;
	uint32_t n = st->headers_n, *v;

	for (uint32_t i = n; i-- > 0;)
		if (st->headers[i] == t->header)
			return ERR_OK;
	if ((n & (n - 1)) == 0) { /* full at each power of two */
		if (!(v = arena_alloc_raw(t->a, n ? (size_t)n * 2 : 1, sizeof(*v))))
			return arena_fail(t->a, "sum", err);
		if (n)
			memcpy(v, st->headers, n * sizeof(*v));
		st->headers = v;
	}
	st->headers[st->headers_n++] = t->header;
	return ERR_OK;
}

static enum err_code add_samples(struct summing *t, int64_t weight, struct err *err)
{
	const struct row_view *v = &t->view;
	struct db_querier *q = t->q;
	enum err_code rc;

	if (!reserve(q, v->n))
		return err_set(err, ERR_NOMEM, "sum: out of memory");
	if ((rc = row_ids(v, q->stacks, q->sets, err)) ||
		(rc = row_values(v, (uint32_t)t->column, q->values, err)) ||
		(rc = querier_check_ids(t->s->partition, v, q->stacks, q->sets, err)))
		return rc;
	return accum_add(t->acc, q->stacks, v->label_sets.len ? q->sets : NULL, q->values, v->n,
		weight, err);
}

/* ERR_NOT_FOUND: the row lacks the type. ERR_CORRUPT: nothing of it was added. */
static enum err_code add_row(struct summing *t, struct str bytes, int64_t ts_ns, struct err *err)
{
	struct row_view *v = &t->view;
	struct sum_stats *st = t->stats;
	int64_t weight;
	enum err_code rc;

	if ((rc = row_parse(bytes, ts_ns, v, err)))
		return rc;
	if (v->header != t->header) {
		if ((rc = querier_check_ids(t->s->partition, v, NULL, NULL, err)))
			return rc;
		t->header = v->header;
		t->column = header_column(t->s->partition, v->header, t->type);
		if (t->column >= 0 && (rc = note_header(t, err)))
			return rc;
	}
	if (t->column < 0 || (uint32_t)t->column >= v->columns_n)
		return ERR_NOT_FOUND;
	weight = t->type->delta || t->pick == SUM_LAST ? 1 : v->interval_ns;
	if (t->acc && (rc = add_samples(t, weight, err)))
		return rc;
	st->total += (__int128)v->columns[t->column].total * weight;
	st->rows++;
	st->samples += v->n;
	st->read += v->n;
	if (st->rows == 1 || ts_ns - v->interval_ns < st->start_ns)
		st->start_ns = ts_ns - v->interval_ns;
	if (st->rows == 1 || ts_ns > st->end_ns)
		st->end_ns = ts_ns;
	if (v->time_nanos && (!st->time_nanos || v->time_nanos < st->time_nanos))
		st->time_nanos = v->time_nanos;
	if (__builtin_add_overflow(st->duration_ns, v->duration_nanos, &st->duration_ns))
		st->duration_ns = v->duration_nanos > 0 ? INT64_MAX : INT64_MIN;
	if (v->period > st->period)
		st->period = v->period;
	return ERR_OK;
}

/* The record the iterator stands on. ERR_OK also where it is damaged: then that is a warning. */
static enum err_code add_at(struct summing *t, struct querier_source *w, struct store_iter *it,
	int64_t ts_ns, bool *added, struct err *err)
{
	struct str bytes;
	struct err why;
	enum err_code rc;

	*added = false;
	if (!(rc = store_iter_value(it, &bytes, &why)))
		rc = add_row(t, bytes, ts_ns, &why);
	*added = rc == ERR_OK;
	if (rc == ERR_NOT_FOUND)
		return ERR_OK;
	if (rc == ERR_CORRUPT) {
		querier_warn(t->q, w, &why);
		return ERR_OK;
	}
	if (rc && err)
		*err = why;
	return rc;
}

static enum err_code sum_window(struct summing *t, struct querier_source *w, int64_t min_ns,
	int64_t max_ns, struct err *err)
{
	struct key key = key_row(t->id, min_ns + 1);
	struct store_iter *it = querier_iter(w);
	enum err_code rc = ERR_OK;
	uint32_t id, rows = 0;
	int64_t ts;
	bool added;

	if (!it)
		return w->snap ? err_set(err, ERR_NOMEM, "sum: out of memory") : ERR_OK;
	for (store_iter_seek(it, key_str(&key)); store_iter_valid(it) && !rc; store_iter_next(it)) {
		if (!key_parse_row(store_iter_key(it), &id, &ts) || id != t->id || ts > max_ns)
			break;
		if (rows++ % 64 == 63 && querier_canceled(t->q))
			rc = err_set(err, ERR_CANCELED, "query canceled");
		else
			rc = add_at(t, w, it, ts, &added, err);
	}
	querier_check(t->q, w, it);
	return rc;
}

/* The latest row that has the type; *found when there was one. */
static enum err_code last_in_window(struct summing *t, struct querier_source *w, int64_t min_ns,
	int64_t max_ns, bool *found, struct err *err)
{
	struct store_iter *it = querier_iter(w);
	enum err_code rc = ERR_OK;
	int64_t before = max_ns < INT64_MAX ? max_ns + 1 : max_ns, ts;
	uint32_t id;

	if (!it)
		return w->snap ? err_set(err, ERR_NOMEM, "sum: out of memory") : ERR_OK;
	while (!*found && !rc) { /* each turn goes back a row */
		struct key key = key_row(t->id, before);

		store_iter_seek_before(it, key_str(&key));
		querier_check(t->q, w, it);
		if (!store_iter_valid(it) || !key_parse_row(store_iter_key(it), &id, &ts) ||
			id != t->id || ts <= min_ns)
			break;
		before = ts;
		rc = querier_canceled(t->q) ? err_set(err, ERR_CANCELED, "query canceled") :
					      add_at(t, w, it, ts, found, err);
	}
	return rc;
}

static enum err_code sum_series(
	struct summing *t, int64_t min_ns, int64_t max_ns, struct err *err)
{
	struct db_querier *q = t->q;
	enum err_code rc = ERR_OK;
	bool found = false;

	for (size_t i = 0; i < t->s->places_n && !rc && !found; i++) {
		const struct series_place *at =
			&t->s->places[t->pick == SUM_LAST ? t->s->places_n - 1 - i : i];
		struct querier_source *w = &q->sources[at->source];

		if (!w->w || w->min_ns >= max_ns || w->max_ns <= min_ns)
			continue;
		t->id = at->id;
		if (querier_canceled(q))
			rc = err_set(err, ERR_CANCELED, "query canceled");
		else if (t->pick == SUM_LAST)
			rc = last_in_window(t, w, min_ns, max_ns, &found, err);
		else
			rc = sum_window(t, w, min_ns, max_ns, err);
	}
	return rc;
}

enum err_code db_sum(struct db_querier *q, const struct db_series *const *series, size_t n,
	const struct profile_type *type, int64_t min_ns, int64_t max_ns, enum sum_pick pick,
	struct accum *acc, struct arena *a, struct sum_stats *stats, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (min_ns < q->min_ns)
		min_ns = q->min_ns;
	if (max_ns > q->max_ns)
		max_ns = q->max_ns;
	for (size_t i = 0; i < n && !rc; i++) {
		struct summing t = { .q = q,
			.s = series[i],
			.type = type,
			.acc = acc,
			.a = a,
			.stats = stats,
			.pick = pick,
			.header = SYM_NONE,
			.column = -1 };

		rc = sum_series(&t, min_ns, max_ns, err);
	}
	return rc;
}

/* ---- rows ---- */

struct db_rows {
	struct db_querier *q;
	struct db_series s;
	int64_t min_ns, max_ns;
	size_t at; /* window */
	struct store_iter *it;
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
		return err_set(err, ERR_NOMEM, "rows: out of memory");
	r->q = q;
	r->s = *s;
	r->min_ns = min_ns > q->min_ns ? min_ns : q->min_ns;
	r->max_ns = max_ns < q->max_ns ? max_ns : q->max_ns;
	*out = r;
	return ERR_OK;
}

void db_rows_close(struct db_rows *r)
{
	if (!r)
		return;
	store_iter_close(r->it);
	free(r->stacks);
	free(r->sets);
	free(r->values);
	free(r);
}

static bool reserve_row(struct db_rows *r)
{
	size_t n = r->view.n + 1, values = n * (r->view.columns_n + 1);

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

static enum err_code decode_row(struct db_rows *r, struct str bytes, int64_t ts_ns, struct err *err)
{
	struct row_view *v = &r->view;
	enum err_code rc;

	if ((rc = row_parse(bytes, ts_ns, v, err)))
		return rc;
	if (!reserve_row(r))
		return err_set(err, ERR_NOMEM, "rows: out of memory");
	if ((rc = row_ids(v, r->stacks, r->sets, err)))
		return rc;
	for (uint32_t c = 0; c < v->columns_n; c++) {
		if ((rc = row_values(v, c, r->values + (size_t)c * v->n, err)))
			return rc;
		r->totals[c] = v->columns[c].total;
	}
	if ((rc = querier_check_ids(r->s.partition, v, r->stacks, r->sets, err)))
		return rc;
	r->row = (struct db_row){ ts_ns, v->interval_ns, v->time_nanos, v->duration_nanos,
		v->period, v->header, v->n, r->stacks, r->sets, r->values, r->totals };
	return ERR_OK;
}

/* The iterator's next row of the series, or false: the window has no more. */
static bool step(struct db_rows *r, struct querier_source *w, int64_t *ts_ns)
{
	struct key key = key_row(r->s.places[r->at].id, r->min_ns + 1);
	uint32_t id;

	if (!r->it) {
		if (!w->snap || !(r->it = store_iter_open(w->store, w->snap)))
			return false;
		store_iter_seek(r->it, key_str(&key));
	} else {
		store_iter_next(r->it);
	}
	if (store_iter_valid(r->it) && key_parse_row(store_iter_key(r->it), &id, ts_ns) &&
		id == r->s.places[r->at].id && *ts_ns <= r->max_ns)
		return true;
	querier_check(r->q, w, r->it);
	store_iter_close(r->it);
	r->it = NULL;
	return false;
}

enum err_code db_rows_next(struct db_rows *r, const struct db_row **out, struct err *err)
{
	struct str bytes;
	enum err_code rc;
	struct err why;
	int64_t ts;

	for (; r->at < r->s.places_n; r->at++) {
		struct querier_source *w = &r->q->sources[r->s.places[r->at].source];

		if (!w->w || w->min_ns >= r->max_ns || w->max_ns <= r->min_ns)
			continue;
		while (step(r, w, &ts)) {
			if (querier_canceled(r->q))
				return err_set(err, ERR_CANCELED, "query canceled");
			if (!(rc = store_iter_value(r->it, &bytes, &why)))
				rc = decode_row(r, bytes, ts, &why);
			if (rc == ERR_CORRUPT) {
				querier_warn(r->q, w, &why);
				continue;
			}
			if (rc) {
				if (err)
					*err = why;
				return rc;
			}
			*out = &r->row;
			return ERR_OK;
		}
	}
	return err_set(err, ERR_NOT_FOUND, "no more rows");
}

void sum_scratch_close(struct sum_scratch *x)
{
	(void)x;
}
