#include "promql/subquery.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "promql/eval.h"
#include "promql/plan.h"
#include "promql/reader.h"

#define DROP_POINTS 64 /* fewer that are too old stay where they are */

/* What the expression gave for one set of labels. */
struct answers {
	struct labels metric;
	int64_t *ts;
	double *values;
	size_t n, cap;
	size_t old; /* so many of the first are before all windows to come */
};

/* One subquery of the query. */
struct subquery_cache {
	struct subquery_cache *next;
	const struct expr *expr, *scope;
	int64_t first_ns, last_ns; /* evaluated at, by its step; first > last: not yet */
	struct answers *v;
	size_t n, cap;
	struct map map;
};

/* ---- times ---- */

/* The last multiple of the step at or before when. */
static int64_t subquery_multiple_until(int64_t when, int64_t step)
{
	int64_t rest = when % step;

	return when - (rest < 0 ? rest + step : rest);
}

static int64_t subquery_step_of(const struct eval *ev, const struct subquery *s)
{
	return s->step_ns ? s->step_ns : ev->times.subquery_step_ns;
}

/* So that a step more, or the distance of two, does not overflow. */
static int64_t subquery_within(int64_t when)
{
	return when >= TIME_MAX_NS ? TIME_MAX_NS - 1 : when <= -TIME_MAX_NS ? 1 - TIME_MAX_NS : when;
}

/* (min, max] of an evaluation at when. */
static struct time_window subquery_window_of(
	const struct eval *ev, const struct subquery *s, int64_t when)
{
	int64_t max = subquery_within(timeline_shifted(&ev->times, &s->shift, when));

	return (struct time_window){ .min_ns = subquery_within(max - s->range_ns), .max_ns = max };
}

enum err_code subquery_scope(
	struct eval *ev, const struct expr *e, struct eval *out, struct err *err)
{
	const struct subquery *s = &e->subquery;
	int64_t step = subquery_step_of(ev, s), first = ev->work.t_ns, last = ev->work.t_ns;
	uint64_t each = ((uint64_t)s->range_ns - 1) / (uint64_t)step + 1, all;

	assert(step > 0);
	if (each > SUBQUERY_STEPS_MAX)
		return work_fault(&ev->work, e, err, ERR_LIMIT,
			"the subquery has %llu steps, limit %u; a longer step has fewer",
			(unsigned long long)each, SUBQUERY_STEPS_MAX);
	if (ev->times.mode == EVAL_RANGE) {
		first = ev->times.first_ns;
		last = ev->times.last_ns;
	}
	*out = *ev;
	out->times.mode = EVAL_RANGE;
	out->times.scope = e;
	out->times.step_ns = step;
	out->times.first_ns = subquery_multiple_until(subquery_window_of(ev, s, first).min_ns, step) +
		step;
	out->times.last_ns = subquery_multiple_until(subquery_window_of(ev, s, last).max_ns, step);
	if (out->times.last_ns < out->times.first_ns) /* no step is in the range */
		out->times.last_ns = out->times.first_ns;
	all = (uint64_t)(out->times.last_ns - out->times.first_ns) / (uint64_t)step + 1;
	if (!ev->work.steps)
		out->work.steps = all;
	else if (__builtin_mul_overflow(ev->work.steps, each, &out->work.steps) ||
		out->work.steps > all)
		out->work.steps = all;
	out->work.t_ns = out->times.first_ns;
	return ERR_OK;
}

/* What an evaluation of the scope added to the query. */
static void subquery_leave_scope(struct eval *ev, const struct eval *in)
{
	ev->units = in->units;
	ev->numbers = in->numbers;
	ev->subqueries = in->subqueries;
}

/* ---- what was evaluated ---- */

static struct subquery_cache *subquery_find_cache(struct eval *ev, const struct expr *e)
{
	struct subquery_cache *c = ev->subqueries;

	while (c && !(c->scope == ev->times.scope && expr_eq(c->expr, e)))
		c = c->next;
	if (c || !(c = arena_new(ev->work.whole, struct subquery_cache)))
		return c;
	*c = (struct subquery_cache){
		.next = ev->subqueries, .expr = e, .scope = ev->times.scope, .first_ns = 1
	};
	map_init(&c->map);
	ev->subqueries = c;
	return c;
}

void subquery_release(struct eval *ev)
{
	for (; ev->subqueries; ev->subqueries = ev->subqueries->next)
		map_release(&ev->subqueries->map);
}

static bool answers_eq(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(
		*(const struct labels *)key, ((const struct subquery_cache *)ctx)->v[id].metric);
}

static enum err_code subquery_nomem(struct eval *ev, struct err *err)
{
	return arena_fail(ev->work.whole, "query", err);
}

/* Points that are too old make room for new ones. */
static bool subquery_make_room(struct arena *a, struct answers *answers)
{
	size_t left = answers->n - answers->old, cap;
	int64_t *ts;
	double *values;

	if (answers->n < answers->cap)
		return true;
	ts = answers->ts;
	values = answers->values;
	cap = answers->cap;
	if (answers->old < DROP_POINTS || answers->old < left) {
		cap = left < 8 ? 16 : left * 2;
		if (!(ts = arena_alloc_raw(a, cap, sizeof(*ts))) ||
			!(values = arena_alloc_raw(a, cap, sizeof(*values))))
			return false;
	}
	if (left) {
		memmove(ts, answers->ts + answers->old, left * sizeof(*ts));
		memmove(values, answers->values + answers->old, left * sizeof(*values));
	}
	*answers = (struct answers){ answers->metric, ts, values, left, cap, 0 };
	return true;
}

static enum err_code subquery_add_answer(struct eval *ev, struct subquery_cache *c,
	struct labels metric, int64_t when, double value, struct err *err)
{
	uint64_t hash = labels_hash(metric);
	uint32_t id = map_find(&c->map, hash, answers_eq, c, &metric);
	struct answers *s;

	if (id == MAP_NONE) {
		id = (uint32_t)c->n;
		if (!arena_array_room(ev->work.whole, &c->v, c->n, 1, &c->cap))
			return subquery_nomem(ev, err);
		c->v[id] = (struct answers){ .metric = labels_dup(ev->work.whole, metric) };
		if (metric.n && !c->v[id].metric.v)
			return subquery_nomem(ev, err);
		if (!map_add(&c->map, hash, id))
			return err_nomem(err, "query");
		c->n++;
	}
	s = &c->v[id];
	if (s->n > s->old && s->ts[s->n - 1] == when)
		return err_set(err, ERR_INVALID, "vector cannot contain metrics with the same labelset");
	if (!subquery_make_room(ev->work.whole, s))
		return subquery_nomem(ev, err);
	s->ts[s->n] = when;
	s->values[s->n++] = value;
	return ERR_OK;
}

/* ---- evaluation ---- */

/* The costs of profiles are asked for by name: no value of theirs is meant without it. */
static enum err_code subquery_refuse_profiles(
	struct eval *ev, const struct expr *e, const struct value *v, struct err *err)
{
	struct buf got = { 0 };
	enum err_code rc;

	value_types_print(&got, v->type);
	rc = work_fault(&ev->work, e->subquery.arg, err, ERR_INVALID,
		"a subquery needs costs, got " STR_FMT "; use total(), flat() or cum() for costs",
		STR_ARG(buf_str(&got)));
	buf_release(&got);
	return rc;
}

static enum err_code subquery_evaluate_at(
	struct eval *in, const struct expr *e, struct subquery_cache *c, int64_t when, struct err *err)
{
	struct value v;
	enum err_code rc;

	in->work.t_ns = when;
	if ((rc = eval_expr(in, e->subquery.arg, &v, err)))
		return rc;
	if (!(v.type & VALUE_COSTS))
		return subquery_refuse_profiles(in, e, &v, err);
	for (size_t i = 0; i < v.n && !rc; i++)
		rc = subquery_add_answer(in, c, v.costs[i].metric, when, v.costs[i].value, err);
	return rc;
}

/* Makes the cache hold all steps of (first, last). */
static enum err_code subquery_evaluate_steps(struct eval *ev, const struct expr *e,
	struct subquery_cache *c, int64_t first, int64_t last, struct err *err)
{
	struct arena step;
	struct eval in;
	enum err_code rc = subquery_scope(ev, c->expr, &in, err);

	if (rc)
		return rc;
	if (c->first_ns > c->last_ns || first < c->first_ns || first > c->last_ns + in.times.step_ns) {
		for (size_t i = 0; i < c->n; i++)
			c->v[i].n = c->v[i].old = 0;
		plan_forget_kept(ev, c->expr);
		c->first_ns = first;
		c->last_ns = first - in.times.step_ns;
	}
	arena_init_shared(&step, ev->work.budget);
	in.work.arena = &step;
	for (int64_t t = c->last_ns + in.times.step_ns; t <= last && !rc; t += in.times.step_ns) {
		if (!(rc = subquery_evaluate_at(&in, e, c, t, err)))
			c->last_ns = t;
		arena_reset(&step);
	}
	arena_release(&step);
	subquery_leave_scope(ev, &in);
	return rc;
}

static int subquery_by_metric(const void *a, const void *b)
{
	return labels_cmp(
		((const struct numeric_range *)a)->metric, ((const struct numeric_range *)b)->metric);
}

enum err_code subquery_read(
	struct eval *ev, const struct expr *e, struct numeric_ranges *out, struct err *err)
{
	const struct subquery *s = &e->subquery;
	struct time_window w = subquery_window_of(ev, s, ev->work.t_ns);
	int64_t step = subquery_step_of(ev, s), first = subquery_multiple_until(w.min_ns, step) + step;
	struct subquery_cache *c = subquery_find_cache(ev, e);
	enum err_code rc;

	*out = (struct numeric_ranges){ 0 };
	if (!c)
		return subquery_nomem(ev, err);
	if ((rc = subquery_evaluate_steps(
			 ev, e, c, first, subquery_multiple_until(w.max_ns, step), err)))
		return rc;
	if (!(out->v = arena_array(ev->work.arena, struct numeric_range, c->n + 1)))
		return work_nomem(&ev->work, err);
	for (size_t i = 0; i < c->n; i++) {
		struct answers *a = &c->v[i];
		size_t end = a->n;

		while (a->old < a->n && a->ts[a->old] < first)
			a->old++;
		while (end > a->old && a->ts[end - 1] > w.max_ns)
			end--;
		if (end > a->old)
			out->v[out->n++] = (struct numeric_range){ .metric = a->metric,
				.ts = a->ts + a->old,
				.values = a->values + a->old,
				.n = end - a->old };
	}
	c->first_ns = first;
	if (out->n > 1)
		qsort(out->v, out->n, sizeof(*out->v), subquery_by_metric);
	return ERR_OK;
}

/* Evaluates once over nothing, so that selectors note what all steps would read. */
enum err_code subquery_note(
	struct eval *ev, const struct expr *e, struct numeric_ranges *out, struct err *err)
{
	struct subquery_cache *c = subquery_find_cache(ev, e);
	struct eval in;
	struct value v;
	enum err_code rc;

	*out = (struct numeric_ranges){ 0 };
	if (!c)
		return subquery_nomem(ev, err);
	if (c->expr != e) /* an equal one is evaluated for both */
		return ERR_OK;
	if ((rc = subquery_scope(ev, e, &in, err)))
		return rc;
	rc = eval_expr(&in, e->subquery.arg, &v, err);
	subquery_leave_scope(ev, &in);
	return rc;
}

enum err_code subquery_ranges(
	struct eval *ev, const struct expr *e, struct numeric_ranges *out, struct err *err)
{
	assert(e->kind == EXPR_SUBQUERY);
	return ev->reader->subquery(ev, e, out, err);
}
