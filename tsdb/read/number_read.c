
#include <stdlib.h>

#include "tsdb/head/keys.h"
#include "tsdb/head/numbers.h"
#include "tsdb/read/querier_internal.h"

/*
 * Reads numbers: record after record of a window, chunk after chunk of a block.
 *
 * Sources of one database follow each other in time. If other members of a union have the series
 * too, all values are sorted by time at the end. If two members have a value for one time, the
 * first member's is used.
 */

struct number_read_reading {
	struct db_querier *q;
	int64_t min_ns, max_ns;
	struct arena *a;
	struct number_chunk *chunk;
	bool any; /* it is enough that there is one */
	int64_t *ts;
	double *values;
	size_t n, cap;
	bool unsorted;
};

static enum err_code number_read_add(
	struct number_read_reading *r, int64_t ts, double value, struct err *err)
{
	/* Small at first: a query at one time wants one value each of very many series. Two take no
	 * more of an arena than one. */
	size_t cap = r->cap ? r->cap * 4 : 2;
	double *values;
	int64_t *more;

	if (r->any) {
		r->n = 1;
		return ERR_OK;
	}
	if (r->n == r->cap) {
		more = arena_alloc_raw(r->a, cap, sizeof(*more));
		values = arena_alloc_raw(r->a, cap, sizeof(*values));
		if (!more || !values)
			return arena_fail(r->a, "numbers", err);
		if (r->n) {
			memcpy(more, r->ts, r->n * sizeof(*more));
			memcpy(values, r->values, r->n * sizeof(*values));
		}
		r->ts = more;
		r->values = values;
		r->cap = cap;
	}
	r->unsorted |= r->n && r->ts[r->n - 1] >= ts;
	r->ts[r->n] = ts;
	r->values[r->n++] = value;
	return ERR_OK;
}

static bool number_read_done(const struct number_read_reading *r)
{
	return r->any && r->n;
}

/* ---- windows ---- */

static enum err_code number_read_window(
	struct number_read_reading *r, struct querier_source *s, uint32_t series, struct err *err)
{
	const struct deleted_range *gone;
	size_t gone_n = deleted_of((struct deleted){ s->deleted, s->deleted_n }, series, &gone);
	int64_t from = r->min_ns > s->min_ns ? r->min_ns : s->min_ns, ts;
	struct key key = key_number(series, from + 1);
	struct store_iter *it = querier_iter(s);
	enum err_code rc = ERR_OK;
	struct str bytes;
	struct err why;
	double value;
	uint32_t id;

	if (!it)
		return s->snap ? err_nomem(err, "numbers") : ERR_OK;
	for (store_iter_seek(it, key_str(&key)); store_iter_valid(it) && !rc && !number_read_done(r);
		 store_iter_next(it)) {
		if (!key_parse_number(store_iter_key(it), &id, &ts) || id != series || ts > r->max_ns)
			break;
		if (deleted_has(gone, gone_n, ts))
			continue;
		if (store_iter_value(it, &bytes, &why) || number_decode(bytes, &value, &why))
			querier_warn(r->q, s, &why);
		else
			rc = number_read_add(r, ts, value, err);
	}
	querier_check(r->q, s, it);
	return rc;
}

/* ---- blocks ---- */

static enum err_code number_read_add_chunk(
	struct number_read_reading *r, const struct deleted_range *gone, size_t gone_n, struct err *err)
{
	const struct number_chunk *c = r->chunk;
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < c->n && !rc && !number_read_done(r); i++)
		if (c->ts[i] > r->min_ns && c->ts[i] <= r->max_ns && !deleted_has(gone, gone_n, c->ts[i]))
			rc = number_read_add(r, c->ts[i], c->values[i], err);
	return rc;
}

static enum err_code number_read_block(
	struct number_read_reading *r, struct querier_source *s, uint32_t series, struct err *err)
{
	const struct deleted_range *gone;
	size_t gone_n = deleted_of((struct deleted){ s->deleted, s->deleted_n }, series, &gone);
	enum err_code rc = ERR_OK;
	struct str bytes;
	struct err why;
	int64_t first;

	if (!r->chunk && !(r->chunk = malloc(sizeof(*r->chunk))))
		return err_nomem(err, "numbers");
	if (!s->numbers && (rc = block_numbers_open(s->b->block, false, &s->numbers, err))) {
		s->numbers = NULL;
		return rc;
	}
	block_chunks_seek(s->numbers, series, r->min_ns, r->max_ns);
	while (!rc && !number_read_done(r) &&
		(rc = block_chunks_next(s->numbers, &bytes, &first, &why)) != ERR_NOT_FOUND) {
		if (!rc)
			rc = number_chunk_decode(bytes, r->chunk, &why);
		if (rc == ERR_CORRUPT) {
			querier_warn(r->q, s, &why);
			rc = ERR_OK;
			continue;
		}
		if (rc)
			return err_copy(err, &why);
		rc = number_read_add_chunk(r, gone, gone_n, err);
	}
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* ---- several members ---- */

struct number_read_timed {
	int64_t ts;
	double value;
	size_t at; /* in the order of members */
};

static int number_read_timed_cmp(const void *a, const void *b)
{
	const struct number_read_timed *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The first value of each time, ascending. */
static enum err_code number_read_sort(struct number_read_reading *r, struct err *err)
{
	struct number_read_timed *v = malloc(r->n * sizeof(*v));
	size_t n = 0;

	if (!v)
		return err_nomem(err, "numbers");
	for (size_t i = 0; i < r->n; i++)
		v[i] = (struct number_read_timed){ r->ts[i], r->values[i], i };
	qsort(v, r->n, sizeof(*v), number_read_timed_cmp);
	for (size_t i = 0; i < r->n; i++) {
		if (n && r->ts[n - 1] == v[i].ts)
			continue;
		r->ts[n] = v[i].ts;
		r->values[n++] = v[i].value;
	}
	r->n = n;
	free(v);
	return ERR_OK;
}

#define ALL_MEMBERS UINT32_MAX

static enum err_code number_read_member(
	struct number_read_reading *r, const struct db_series *s, uint32_t member, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < s->places_n && !rc; i++) {
		struct querier_source *from = &r->q->sources[s->places[i].source];

		if (querier_canceled(r->q))
			rc = err_set(err, ERR_CANCELED, "query canceled");
		else if (from->min_ns < r->max_ns && from->max_ns > r->min_ns &&
			(member == ALL_MEMBERS || from->member == member))
			rc = from->w ? number_read_window(r, from, s->places[i].id, err) :
						   number_read_block(r, from, s->places[i].id, err);
	}
	return rc;
}

static bool number_read_has_member(
	const struct db_querier *q, const struct db_series *s, uint32_t member)
{
	for (size_t i = 0; i < s->places_n; i++)
		if (q->sources[s->places[i].source].member == member)
			return true;
	return false;
}

/* Their sources overlap in time. */
static bool number_read_has_members(const struct db_querier *q, const struct db_series *s)
{
	for (size_t i = 1; querier_is_union(q) && i < s->places_n; i++)
		if (q->sources[s->places[i].source].member != q->sources[s->places[0].source].member)
			return true;
	return false;
}

enum err_code db_numbers(struct db_querier *q, const struct db_series *s, int64_t min_ns,
	int64_t max_ns, struct arena *a, int64_t **ts_ns, double **values, size_t *n, struct err *err)
{
	struct number_read_reading r = { .q = q,
		.min_ns = min_ns > q->min_ns ? min_ns : q->min_ns,
		.max_ns = max_ns < q->max_ns ? max_ns : q->max_ns,
		.a = a };
	enum err_code rc = ERR_OK;

	if (!number_read_has_members(q, s))
		rc = number_read_member(&r, s, ALL_MEMBERS, err);
	else
		for (uint32_t i = 0; i < q->members_n && !rc; i++)
			if (number_read_has_member(q, s, i))
				rc = number_read_member(&r, s, i, err);
	free(r.chunk);
	if (!rc && r.unsorted)
		rc = number_read_sort(&r, err);
	*ts_ns = r.ts;
	*values = r.values;
	*n = r.n;
	return rc;
}

/* ---- for selecting ---- */

bool numbers_in_window(struct db_querier *q, struct querier_source *s, uint32_t series)
{
	struct number_read_reading r = {
		.q = q, .min_ns = q->min_ns, .max_ns = q->max_ns, .any = true
	};

	return !number_read_window(&r, s, series, NULL) && r.n;
}

enum err_code numbers_in_block(struct db_querier *q, struct querier_source *s, uint32_t series,
	const struct block_series *of, bool *has, struct err *err)
{
	struct number_read_reading r = {
		.q = q, .min_ns = q->min_ns, .max_ns = q->max_ns, .any = true
	};
	const struct deleted_range *gone;
	size_t gone_n = deleted_of((struct deleted){ s->deleted, s->deleted_n }, series, &gone);
	enum err_code rc;

	*has = of->last_ns > q->min_ns && of->first_ns <= q->max_ns;
	if (!*has ||
		(!deleted_touches(gone, gone_n, of->first_ns - 1, of->last_ns) &&
			(of->first_ns > q->min_ns || of->last_ns <= q->max_ns)))
		return ERR_OK;
	rc = number_read_block(&r, s, series, err);
	free(r.chunk);
	*has = r.n > 0;
	return rc;
}
