/*
 * Functions over windows of numbers: one cost per series that has values in its window, be they
 * stored or those of a subquery.
 */
#include <math.h>

#include "base/clock.h"
#include "promql/costs/costs.h"
#include "promql/eval.h"
#include "promql/numeric.h"
#include "promql/subquery.h"
#include "promql/syntax/functions.h"
#include "tsdb/columns/number_chunk.h"

/* The argument that has the window. */
static const struct expr *numeric_over_time_range_of(const struct expr *e)
{
	const struct function *fn = e->call.fn;
	size_t i = 0;

	while (!(fn->args[i] & ARG_WINDOW))
		i++;
	return expr_strip(e->call.args[i]);
}

static struct time_window numeric_over_time_window_of(
	const struct eval *ev, const struct expr *range)
{
	const struct subquery *s = &range->subquery;
	struct time_window w;

	if (range->kind == EXPR_SELECTOR)
		return numeric_window(&ev->times, &range->selector, ev->work.t_ns);
	w = (struct time_window){ .max_ns = timeline_shifted(&ev->times, &s->shift, ev->work.t_ns) };
	if (__builtin_sub_overflow(w.max_ns, s->range_ns, &w.min_ns))
		w.min_ns = INT64_MIN;
	return w;
}

/* Profiles are not numbers, whatever their name. */
static enum err_code numeric_over_time_check_kind(
	struct eval *ev, const struct expr *e, const struct expr *selector, struct err *err)
{
	struct db_series *series;
	enum err_code rc;
	size_t n;

	if ((rc = choose_series(ev, selector, &series, &n, err)) || !n)
		return rc;
	return work_fault(&ev->work, selector, err, ERR_INVALID, "%s() needs numbers, got profiles",
		e->call.fn->name);
}

static enum err_code numeric_over_time_read_ranges(struct eval *ev, const struct expr *e,
	const struct expr *range, struct numeric_ranges *r, struct err *err)
{
	enum err_code rc;

	if (range->kind == EXPR_SUBQUERY)
		return subquery_ranges(ev, range, r, err);
	if ((rc = numeric_select(ev, range, r, err)))
		return rc;
	return r->n ? ERR_OK : numeric_over_time_check_kind(ev, e, range, err);
}

static enum err_code numeric_over_time_check_args(
	struct eval *ev, const struct expr *e, const double *args, struct err *err)
{
	static const char *const names[] = { "smoothing", "trend" };
	enum function_id fn = e->call.fn->id;

	if (fn != FN_HOLT_WINTERS && fn != FN_DOUBLE_EXPONENTIAL_SMOOTHING)
		return ERR_OK;
	for (size_t i = 0; i < 2; i++)
		if (!(args[i] > 0 && args[i] < 1))
			return work_fault(&ev->work, e->call.args[i + 1], err, ERR_INVALID,
				"invalid %s factor. Expected: 0 < %s < 1, got: %f", names[i], i ? "tf" : "sf",
				args[i]);
	return ERR_OK;
}

static enum err_code numeric_over_time_read_args(
	struct eval *ev, const struct expr *e, const struct expr *range, double *args, struct err *err)
{
	struct value v;
	enum err_code rc;

	for (size_t i = 0; i < e->call.args_n; i++) {
		if (expr_strip(e->call.args[i]) == range)
			continue;
		if ((rc = eval_expr(ev, e->call.args[i], &v, err)))
			return rc;
		*args++ = v.scalar;
	}
	return ERR_OK;
}

static enum err_code numeric_over_time_absent_over(
	struct eval *ev, const struct expr *range, bool present, struct value *out, struct err *err)
{
	struct labels metric = { 0 };
	enum err_code rc;

	*out = (struct value){ .type = VALUE_COSTS };
	if (present)
		return ERR_OK;
	if (range->kind == EXPR_SELECTOR &&
		(rc = absent_labels(&ev->work, &range->selector, &metric, err)))
		return rc;
	if (!(out->costs = arena_new(ev->work.arena, struct cost)))
		return work_nomem(&ev->work, err);
	*out->costs = (struct cost){ .metric = metric, .value = 1, .t_ns = ev->work.t_ns };
	out->n = 1;
	return ERR_OK;
}

/* As Prometheus tells from the name, since numbers say no more of themselves. */
static enum err_code numeric_over_time_note_no_counter(
	struct eval *ev, enum function_id fn, struct labels metric, struct err *err)
{
	static const char *const ends[] = { "_total", "_sum", "_count", "_bucket" };
	struct str name = labels_get(metric, STR(LABEL_NAME));

	if ((fn != FN_RATE && fn != FN_INCREASE) || !name.len)
		return ERR_OK;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (str_has_suffix(name, str_of(ends[i])))
			return ERR_OK;
	return work_info(&ev->work, err,
		"metric might not be a counter, name does not end in _total/_sum/_count/_bucket: "
		"\"" STR_FMT "\"",
		STR_ARG(name));
}

/* Without stale marks. *room: for as many values. */
static enum err_code numeric_over_time_take_samples(
	struct eval *ev, const struct numeric_range *from, struct samples *out, struct err *err)
{
	int64_t *ts = arena_alloc_raw(ev->work.arena, from->n + 1, sizeof(*ts));
	double *v = arena_alloc_raw(ev->work.arena, from->n * 2 + 1, sizeof(*v));

	if (!ts || !v)
		return work_nomem(&ev->work, err);
	out->n = 0;
	for (size_t i = 0; i < from->n; i++) {
		if (number_is_stale(from->values[i]))
			continue;
		ts[out->n] = from->ts[i];
		v[out->n++] = from->values[i];
	}
	out->ts = ts;
	out->v = v;
	out->room = v + out->n;
	return ERR_OK;
}

static enum err_code numeric_over_time_apply(struct eval *ev, const struct expr *e,
	struct samples *s, struct labels metric, struct value *out, struct err *err)
{
	enum function_id fn = e->call.fn->id;
	double value;
	enum err_code rc;

	if ((rc = numeric_over_time_note_no_counter(ev, fn, metric, err)))
		return rc;
	if (!samples_function(fn)(s, &value))
		return ERR_OK;
	if (fn != FN_LAST_OVER_TIME && fn != FN_FIRST_OVER_TIME &&
		(rc = labels_without_name(&ev->work, metric, &metric, err)))
		return rc;
	out->costs[out->n++] = (struct cost){ .metric = metric, .value = value, .t_ns = ev->work.t_ns };
	return ERR_OK;
}

enum err_code call_over_time(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	const struct expr *range = numeric_over_time_range_of(e);
	struct samples s = { .t_ns = ev->work.t_ns, .args = { NAN, NAN } };
	struct time_window w;
	struct numeric_ranges r;
	bool present = false;
	enum err_code rc;

	if ((rc = numeric_over_time_read_args(ev, e, range, s.args, err)) ||
		(rc = numeric_over_time_read_ranges(ev, e, range, &r, err)))
		return rc;
	w = numeric_over_time_window_of(ev, range);
	s.min_ns = w.min_ns;
	s.max_ns = w.max_ns;
	*out = (struct value){ .type = VALUE_COSTS };
	if (!(out->costs = arena_array(ev->work.arena, struct cost, r.n + 1)))
		return work_nomem(&ev->work, err);
	for (size_t i = 0; i < r.n; i++) {
		if ((rc = numeric_over_time_take_samples(ev, &r.v[i], &s, err)))
			return rc;
		if (!s.n)
			continue;
		if (!present && (rc = numeric_over_time_check_args(ev, e, s.args, err)))
			return rc;
		present = true;
		if (e->call.fn->id == FN_ABSENT_OVER_TIME)
			break;
		if ((rc = numeric_over_time_apply(ev, e, &s, r.v[i].metric, out, err)))
			return rc;
	}
	if (e->call.fn->id == FN_ABSENT_OVER_TIME)
		return numeric_over_time_absent_over(ev, range, present, out, err);
	return costs_distinct(out->costs, out->n, err);
}

enum err_code numeric_series(
	struct eval *ev, const struct expr *e, struct value *out, bool *found, struct err *err)
{
	struct numeric_ranges r;
	struct samples s;
	enum err_code rc;

	if (e->kind == EXPR_SUBQUERY)
		rc = subquery_ranges(ev, e, &r, err);
	else
		rc = numeric_select(ev, e, &r, err);
	*found = e->kind == EXPR_SUBQUERY || r.n > 0;
	if (rc || !*found)
		return rc;
	*out = (struct value){ .type = VALUE_RANGE };
	if (!(out->series = arena_array(ev->work.arena, struct cost_series, r.n + 1)))
		return work_nomem(&ev->work, err);
	for (size_t i = 0; i < r.n; i++) {
		struct cost_series *to = &out->series[out->n];

		if ((rc = numeric_over_time_take_samples(ev, &r.v[i], &s, err)))
			return rc;
		if (!s.n)
			continue;
		*to = (struct cost_series){ r.v[i].metric, arena_array(ev->work.arena, struct point, s.n),
			s.n };
		if (!to->points)
			return work_nomem(&ev->work, err);
		for (size_t k = 0; k < s.n; k++)
			to->points[k] = (struct point){ s.ts[k], s.v[k] };
		out->n++;
	}
	return ERR_OK;
}
