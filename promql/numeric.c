#include "promql/numeric.h"

#include <assert.h>

#include "base/clock.h"
#include "promql/eval.h"
#include "promql/plan.h"
#include "promql/reader.h"
#include "tsdb/columns/number_chunk.h"

#define SLICE_NS NS_PER_HOUR /* read at once, in addition to a step's needs */

struct numeric_values {
	int64_t *ts;
	double *values;
	size_t n;
};

/* One selector of the query. */
struct numeric_cache {
	struct numeric_cache *next;
	const struct expr *expr;
	const struct expr *scope; /* as eval.scope: times of another one are elsewhere */
	const struct db_series *series; /* in the query's arena */
	size_t n;
	int64_t min_ns, max_ns; /* what was read: (min, max] */
	struct arena slice; /* values */
	struct numeric_values *values; /* by series; in slice */
};

struct time_window numeric_window(
	const struct timeline *times, const struct selector *s, int64_t t_ns)
{
	struct time_window w = selector_window(times, s, t_ns);
	int64_t width = s->window_ns ? s->window_ns : times->lookback_ns;

	if (__builtin_sub_overflow(w.max_ns, width, &w.min_ns))
		w.min_ns = INT64_MIN;
	w.latest = !s->window_ns;
	return w;
}

/* ---- which series ---- */

/* The least cost of each: found and planned; with its value if it is evaluated. */
static struct series_cost numeric_cost_of(const struct eval *ev)
{
	struct series_cost each = { .bytes = DB_SERIES_BYTES + sizeof(struct numeric_range),
		.samples = PLAN_NUMBERS_SAMPLES };

	if (ev->plan && ev->plan->checked)
		each.bytes += sizeof(struct numeric_values);
	return each;
}

static enum err_code numeric_find_series(
	struct eval *ev, const struct expr *e, struct numeric_cache *c, struct err *err)
{
	const struct selector *s = &e->selector;
	struct series_cost each = numeric_cost_of(ev);
	struct matcher *sent = arena_array(ev->work.whole, struct matcher, s->matchers_n + 1);
	struct db_series *v;
	size_t k = 0, about;
	enum err_code rc;

	if (!sent)
		return arena_fail(ev->work.whole, "query", err);
	if (s->name.len)
		sent[k++] = (struct matcher){ .op = MATCH_EQ, .name = STR(LABEL_NAME), .value = s->name };
	for (size_t i = 0; i < s->matchers_n; i++)
		sent[k++] = s->matchers[i];
	rc = db_select_within(ev->supply->querier, DB_NUMBERS, sent, k, plan_series_max(ev, e, each),
		&about, ev->work.whole, &v, &c->n, err);
	if (rc)
		return about ? plan_refuse_series(ev, e, each, about, err) : rc;
	c->series = v;
	return ERR_OK;
}

static enum err_code numeric_find_cache(
	struct eval *ev, const struct expr *e, struct numeric_cache **out, struct err *err)
{
	struct numeric_cache *c = ev->numbers;
	enum err_code rc;

	while (c && !(c->scope == ev->times.scope && expr_eq(c->expr, e)))
		c = c->next;
	if (!c) {
		if (!(c = arena_new(ev->work.whole, struct numeric_cache)))
			return arena_fail(ev->work.whole, "query", err);
		c->expr = e;
		c->scope = ev->times.scope;
		if ((rc = numeric_find_series(ev, e, c, err)))
			return rc;
		arena_init_shared(&c->slice, ev->work.budget);
		c->next = ev->numbers;
		ev->numbers = c;
	}
	*out = c;
	return ERR_OK;
}

bool numeric_any(const struct eval *ev)
{
	for (const struct numeric_cache *c = ev->numbers; c; c = c->next)
		if (c->n > 0)
			return true;
	return false;
}

void numeric_release_until(struct eval *ev, struct numeric_cache *began)
{
	for (; ev->numbers && ev->numbers != began; ev->numbers = ev->numbers->next)
		arena_release(&ev->numbers->slice);
}

void numeric_release(struct eval *ev)
{
	numeric_release_until(ev, NULL);
}

/* ---- their values ---- */

/* The end of a slice for this step and later ones: each value is read about twice at most. */
static int64_t numeric_slice_end(
	const struct timeline *times, const struct selector *s, const struct time_window *w)
{
	int64_t width = w->max_ns - w->min_ns, last, end;

	if (times->mode != EVAL_RANGE)
		return w->max_ns;
	last = numeric_window_read(times, s, times->last_ns).max_ns;
	if (__builtin_add_overflow(w->max_ns, width > SLICE_NS ? width : SLICE_NS, &end) || end > last)
		end = last;
	return end > w->max_ns ? end : w->max_ns;
}

static enum err_code numeric_read_slice(
	struct eval *ev, struct numeric_cache *c, const struct time_window *w, struct err *err)
{
	int64_t max = numeric_slice_end(&ev->times, &c->expr->selector, w),
			start = clock_monotonic_ns();
	uint64_t before = ev->supply->samples;
	enum err_code rc = ERR_OK;

	arena_reset(&c->slice);
	c->min_ns = c->max_ns = 0;
	if (!(c->values = arena_array(&c->slice, struct numeric_values, c->n + 1)))
		return arena_fail(&c->slice, "query", err);
	for (size_t i = 0; i < c->n && !rc; i++) {
		struct numeric_values *v = &c->values[i];

		if (i % 64 == 0 && (rc = work_check(&ev->work, err)))
			break;
		rc = db_numbers(ev->supply->querier, &c->series[i], w->min_ns, max, &c->slice, &v->ts,
			&v->values, &v->n, err);
		ev->supply->samples += v->n;
		if (!rc && ev->supply->samples > ev->supply->samples_max)
			rc = work_fault(&ev->work, c->expr, err, ERR_LIMIT,
				"the query reads more than %llu samples (--query.max-samples)",
				(unsigned long long)ev->supply->samples_max);
	}
	plan_count_numbers(ev, c->expr, ev->supply->samples - before, clock_monotonic_ns() - start);
	if (rc)
		return rc;
	c->min_ns = w->min_ns;
	c->max_ns = max;
	return ERR_OK;
}

/* The number of times at or before when. */
static size_t numeric_values_count_until(const struct numeric_values *v, int64_t when)
{
	size_t lo = 0, hi = v->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (v->ts[mid] <= when)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Each series with nothing in its window. */
enum err_code numeric_note(struct eval *ev, const struct expr *e, struct numeric_cache *c,
	struct numeric_ranges *out, struct err *err)
{
	assert(c->n > 0);
	if (!(out->v = arena_array(ev->work.arena, struct numeric_range, c->n)))
		return work_nomem(&ev->work, err);
	for (size_t i = 0; i < c->n; i++)
		out->v[out->n++] = (struct numeric_range){ .metric = c->series[i].labels };
	return plan_numbers(ev, e, c->series, c->n, err);
}

/* The last nanosecond of its millisecond. */
static int64_t numeric_end_of_ms(int64_t when)
{
	int64_t rest = when % NS_PER_MS;

	if (when > INT64_MAX - NS_PER_MS || when < INT64_MIN + NS_PER_MS)
		return when;
	return when - (rest < 0 ? rest + NS_PER_MS : rest) + NS_PER_MS - 1;
}

struct time_window numeric_window_read(
	const struct timeline *times, const struct selector *s, int64_t t_ns)
{
	struct time_window w = numeric_window(times, s, t_ns);

	w.min_ns = numeric_end_of_ms(w.min_ns);
	w.max_ns = numeric_end_of_ms(w.max_ns);
	return w;
}

enum err_code numeric_read(struct eval *ev, const struct expr *e, struct numeric_cache *c,
	struct numeric_ranges *out, struct err *err)
{
	struct time_window w = numeric_window_read(&ev->times, &e->selector, ev->work.t_ns);
	enum err_code rc;

	assert(c->n > 0);
	if ((!c->values || w.min_ns < c->min_ns || w.max_ns > c->max_ns) &&
		(rc = numeric_read_slice(ev, c, &w, err)))
		return rc;
	if (!(out->v = arena_array(ev->work.arena, struct numeric_range, c->n)))
		return work_nomem(&ev->work, err);
	out->n = c->n;
	for (size_t i = 0; i < c->n; i++) {
		const struct numeric_values *v = &c->values[i];
		size_t from = numeric_values_count_until(v, w.min_ns),
			   to = numeric_values_count_until(v, w.max_ns);

		out->v[i] = (struct numeric_range){ .metric = c->series[i].labels };
		if (from < to) {
			out->v[i].ts = v->ts + from;
			out->v[i].values = v->values + from;
			out->v[i].n = to - from;
		}
	}
	return ERR_OK;
}

enum err_code numeric_select(
	struct eval *ev, const struct expr *e, struct numeric_ranges *out, struct err *err)
{
	struct numeric_cache *c;
	enum err_code rc;

	*out = (struct numeric_ranges){ 0 };
	if ((rc = numeric_find_cache(ev, e, &c, err)) || c->n == 0)
		return rc;
	return ev->reader->numbers(ev, e, c, out, err);
}

static enum err_code promql_numeric_latest(struct eval *ev, const struct expr *e, bool times,
	struct value *out, bool *found, struct err *err)
{
	struct numeric_ranges r;
	enum err_code rc;

	if ((rc = numeric_select(ev, e, &r, err)) || !(*found = r.n > 0))
		return rc;
	*out = (struct value){ .type = VALUE_COSTS };
	if (!(out->costs = arena_array(ev->work.arena, struct cost, r.n)))
		return work_nomem(&ev->work, err);
	for (size_t i = 0; i < r.n; i++) {
		const struct numeric_range *v = &r.v[i];
		double last = v->n ? v->values[v->n - 1] : 0;

		if (!v->n || number_is_stale(last))
			continue;
		if (times)
			last = (double)(v->ts[v->n - 1] / NS_PER_MS) / 1e3;
		out->costs[out->n++] = (struct cost){
			.metric = v->metric, .value = last, .t_ns = ev->work.t_ns
		};
	}
	return ERR_OK;
}

enum err_code numeric_latest(
	struct eval *ev, const struct expr *e, struct value *out, bool *found, struct err *err)
{
	return promql_numeric_latest(ev, e, false, out, found, err);
}

enum err_code numeric_times(
	struct eval *ev, const struct expr *e, struct value *out, bool *found, struct err *err)
{
	return promql_numeric_latest(ev, e, true, out, found, err);
}

enum err_code numeric_refuse_window(struct eval *ev, const struct expr *e, struct err *err)
{
	struct numeric_cache *c;
	struct buf text = { 0 };
	enum err_code rc;

	if ((rc = numeric_find_cache(ev, e, &c, err)) || c->n == 0)
		return rc;
	expr_print(&text, e);
	rc = work_fault(&ev->work, e, err, ERR_INVALID,
		STR_FMT " are numbers: use avg_over_time() or a similar function", STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}
