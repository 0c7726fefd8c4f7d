#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "tsdb/read/sum_internal.h"

/*
 * Several sums at once. Each is of one partition, whose series may be anywhere among those of a
 * head window. One sum after the other would read the same pages again for each sum, if the cache
 * does not hold them all. So rows of a window are added in the order in which they are stored, each
 * to its sum. A sum gets its rows in the same order as when it is made alone.
 */

struct sum_together_series {
	uint32_t id, sum;
};

struct sum_together_one {
	struct summing t;
	int64_t min_ns, max_ns;
	struct bits headers;
	size_t *at; /* per series: index of its next place */
};

struct sum_together {
	struct db_querier *q;
	const struct db_sum_of *of;
	struct sum_together_one *v;
	size_t n;
	struct sum_together_series *order; /* in the current source */
	size_t order_n, order_cap;
};

static int sum_together_cmp(const void *a, const void *b)
{
	const struct sum_together_series *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Appends the series that a sum has in a source. Call with sources in ascending order. */
static bool sum_together_list(struct sum_together *all, uint32_t sum, uint32_t source)
{
	const struct db_sum_of *of = &all->of[sum];

	for (size_t i = 0; i < of->n; i++) {
		const struct db_series *s = of->series[i];
		size_t at = all->v[sum].at[i];

		for (; at < s->places_n && s->places[at].source <= source; at++) {
			if (s->places[at].source < source)
				continue;
			if (!array_room(&all->order, all->order_n, 1, &all->order_cap))
				return false;
			all->order[all->order_n++] = (struct sum_together_series){ s->places[at].id, sum };
		}
		all->v[sum].at[i] = at;
	}
	return true;
}

static void sum_together_sort(struct sum_together *all)
{
	bool sorted = true;

	for (size_t i = 1; i < all->order_n && sorted; i++)
		sorted = all->order[i - 1].id <= all->order[i].id;
	if (!sorted)
		qsort(all->order, all->order_n, sizeof(*all->order), sum_together_cmp);
}

static bool sum_together_touches(const struct sum_together_one *one, const struct querier_source *s)
{
	return one->min_ns < one->max_ns && s->min_ns < one->max_ns && s->max_ns > one->min_ns;
}

static enum err_code sum_together_window(
	struct sum_together *all, struct querier_source *s, struct err *err)
{
	enum err_code rc = ERR_OK;

	sum_together_sort(all);
	for (size_t i = 0; i < all->order_n && !rc; i++) {
		struct sum_together_one *one = &all->v[all->order[i].sum];

		if (i % 64 || !(rc = sum_canceled(&one->t, err)))
			rc = sum_window(&one->t, s, all->order[i].id, one->min_ns, one->max_ns, err);
	}
	return rc;
}

/* Adds the series that one sum has in a block. */
static enum err_code sum_together_block(struct sum_together *all, struct sum_together_one *one,
	struct querier_source *s, struct err *err)
{
	struct sum_scratch *x = one->t.x;
	enum err_code rc;

	if (!all->order_n)
		return ERR_OK;
	sum_together_sort(all);
	if (!array_room(&x->ids, 0, all->order_n, &x->ids_cap))
		return err_nomem(err, "sum");
	for (size_t i = 0; i < all->order_n; i++)
		x->ids[i] = all->order[i].id;
	if ((rc = sum_canceled(&one->t, err)))
		return rc;
	return sum_block(&one->t, s, x->ids, all->order_n, one->min_ns, one->max_ns, err);
}

static enum err_code sum_together_source(struct sum_together *all, uint32_t source, struct err *err)
{
	struct querier_source *s = &all->q->sources[source];
	enum err_code rc = ERR_OK;

	all->order_n = 0;
	for (uint32_t i = 0; i < all->n && !rc; i++) {
		struct sum_together_one *one = &all->v[i];

		if (!sum_together_touches(one, s))
			continue;
		if (!sum_together_list(all, i, source))
			return err_nomem(err, "sum");
		sum_begin_source(&one->t, s);
		if (!s->b)
			continue;
		rc = sum_together_block(all, one, s, err);
		all->order_n = 0;
	}
	return rc || s->b ? rc : sum_together_window(all, s, err);
}

static enum err_code sum_together_run(struct sum_together *all, struct arena *a, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < all->n && !rc; i++) {
		const struct db_sum_of *of = &all->of[i];
		struct sum_together_one *one = &all->v[i];

		assert(of->type->delta);
		one->t = (struct summing){ .q = all->q,
			.type = of->type,
			.acc = of->acc,
			.functions = of->functions,
			.a = a,
			.stats = of->stats,
			.headers = &one->headers,
			.pick = SUM_WINDOW };
		one->min_ns = of->min_ns;
		one->max_ns = of->max_ns;
		if (!(one->at = calloc(of->n + 1, sizeof(*one->at))))
			return err_nomem(err, "sum");
		rc = sum_begin(&one->t, of->series, of->n, &one->min_ns, &one->max_ns, err);
		if (!rc)
			rc = sum_enter(&one->t, err);
	}
	for (uint32_t source = 0; source < all->q->sources_n && !rc; source++)
		rc = sum_together_source(all, source, err);
	for (size_t i = 0; i < all->n && !rc; i++)
		if (all->of[i].n && all->v[i].min_ns < all->v[i].max_ns)
			rc = sum_end(&all->v[i].t, all->of[i].series, err);
	return rc;
}

enum err_code db_sum_together(
	struct db_querier *q, const struct db_sum_of *sums, size_t n, struct arena *a, struct err *err)
{
	struct sum_together w = { .q = q, .of = sums, .n = n };
	enum err_code rc;

	if (!(w.v = calloc(n + 1, sizeof(*w.v))))
		return err_nomem(err, "sum");
	rc = sum_together_run(&w, a, err);
	for (size_t i = 0; i < n; i++) {
		bits_release(&w.v[i].headers);
		free(w.v[i].at);
	}
	free(w.v);
	free(w.order);
	return rc;
}
