/*
 * Functions over windows of numbers: one cost per series that has values in its window.
 *
 * Source: Prometheus 2.42, promql/functions.go, for the order of additions and what NaN does.
 */
#include <math.h>

#include "promql/costs/costs.h"
#include "promql/eval.h"
#include "promql/numeric.h"
#include "promql/syntax/functions.h"
#include "tsdb/columns/number_chunk.h"

/* Values of one window, stale marks left out. */
struct over {
	const double *v;
	size_t n; /* not 0 */
	double arg; /* of quantile_over_time() */
	double *sorted; /* room for n */
};

/* Neumaier's sum: what an addition loses is kept in *rest. */
static void add(double v, double *sum, double *rest)
{
	double t = *sum + v;

	*rest += fabs(*sum) >= fabs(v) ? (*sum - t) + v : (v - t) + *sum;
	*sum = t;
}

static double sum_over(const struct over *o)
{
	double sum = 0, rest = 0;

	for (size_t i = 0; i < o->n; i++)
		add(o->v[i], &sum, &rest);
	return isinf(sum) ? sum : sum + rest;
}

static double avg_over(const struct over *o)
{
	double mean = 0, rest = 0;

	for (size_t i = 0; i < o->n; i++) {
		double v = o->v[i], n = (double)(i + 1);

		if (isinf(mean) && ((isinf(v) && (mean > 0) == (v > 0)) || isfinite(v)))
			continue;
		add(v / n - mean / n, &mean, &rest);
	}
	return isinf(mean) ? mean : mean + rest;
}

static double min_over(const struct over *o)
{
	double min = o->v[0];

	for (size_t i = 0; i < o->n; i++)
		if (o->v[i] < min || isnan(min))
			min = o->v[i];
	return min;
}

static double max_over(const struct over *o)
{
	double max = o->v[0];

	for (size_t i = 0; i < o->n; i++)
		if (o->v[i] > max || isnan(max))
			max = o->v[i];
	return max;
}

static double variance_over(const struct over *o)
{
	double mean = 0, mean_rest = 0, sum = 0, rest = 0;

	for (size_t i = 0; i < o->n; i++) {
		double delta = o->v[i] - (mean + mean_rest);

		add(delta / (double)(i + 1), &mean, &mean_rest);
		add(delta * (o->v[i] - (mean + mean_rest)), &sum, &rest);
	}
	return (sum + rest) / (double)o->n;
}

static double stddev_over(const struct over *o)
{
	return sqrt(variance_over(o));
}

static double changes_over(const struct over *o)
{
	size_t changes = 0;

	for (size_t i = 1; i < o->n; i++)
		changes += o->v[i] != o->v[i - 1] && !(isnan(o->v[i]) && isnan(o->v[i - 1]));
	return (double)changes;
}

static double last_over(const struct over *o)
{
	return o->v[o->n - 1];
}

static double count_over(const struct over *o)
{
	return (double)o->n;
}

static double present_over(const struct over *o)
{
	return o->n > 0;
}

static double quantile_over(const struct over *o)
{
	memcpy(o->sorted, o->v, o->n * sizeof(*o->v));
	return quantile_of(o->arg, o->sorted, o->n);
}

typedef double (*over_fn)(const struct over *o);

static const over_fn functions_over[FUNCTIONS] = {
	[FN_SUM_OVER_TIME] = sum_over,
	[FN_AVG_OVER_TIME] = avg_over,
	[FN_MIN_OVER_TIME] = min_over,
	[FN_MAX_OVER_TIME] = max_over,
	[FN_LAST_OVER_TIME] = last_over,
	[FN_COUNT_OVER_TIME] = count_over,
	[FN_STDDEV_OVER_TIME] = stddev_over,
	[FN_STDVAR_OVER_TIME] = variance_over,
	[FN_QUANTILE_OVER_TIME] = quantile_over,
	[FN_PRESENT_OVER_TIME] = present_over,
	[FN_CHANGES] = changes_over,
};

static const struct expr *selector_of(const struct expr *e)
{
	return expr_strip(e->call.args[e->call.args_n - 1]);
}

/* Profiles are not numbers, whatever their name. */
static enum err_code check_kind(
	struct eval *ev, const struct expr *e, const struct expr *selector, struct err *err)
{
	struct db_series *series;
	enum err_code rc;
	size_t n;

	if ((rc = choose_series(ev, selector, &series, &n, err)) || !n)
		return rc;
	return eval_fault(
		ev, selector, err, ERR_INVALID, "%s() wants numbers, got profiles", e->call.fn->name);
}

static enum err_code absent_over(
	struct eval *ev, const struct expr *e, bool present, struct value *out, struct err *err)
{
	struct labels metric;
	enum err_code rc;

	*out = (struct value){ .type = VALUE_COSTS };
	if (present)
		return ERR_OK;
	if ((rc = absent_labels(ev, &selector_of(e)->selector, &metric, err)))
		return rc;
	if (!(out->costs = arena_new(ev->arena, struct cost)))
		return eval_nomem(ev, err);
	*out->costs = (struct cost){ .metric = metric, .value = 1, .t_ns = ev->t_ns };
	out->n = 1;
	return ERR_OK;
}

static enum err_code read_args(
	struct eval *ev, const struct expr *e, struct numeric_ranges *r, double *arg, struct err *err)
{
	struct value v;
	enum err_code rc;

	if (e->call.args_n > 1) {
		if ((rc = eval_expr(ev, e->call.args[0], &v, err)))
			return rc;
		*arg = v.scalar;
	}
	if ((rc = numeric_select(ev, selector_of(e), r, err)))
		return rc;
	return r->n ? ERR_OK : check_kind(ev, e, selector_of(e), err);
}

enum err_code call_over_time(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	enum function_id fn = e->call.fn->id;
	struct over o = { .arg = 0 };
	struct numeric_ranges r;
	bool present = false;
	struct labels metric;
	double *kept;
	enum err_code rc;

	if ((rc = read_args(ev, e, &r, &o.arg, err)))
		return rc;
	*out = (struct value){ .type = VALUE_COSTS };
	if (!(out->costs = arena_array(ev->arena, struct cost, r.n + 1)))
		return eval_nomem(ev, err);
	for (size_t i = 0; i < r.n; i++) {
		const struct numeric_range *from = &r.v[i];

		kept = arena_alloc_raw(ev->arena, from->n * 2 + 1, sizeof(*kept));
		if (!kept)
			return eval_nomem(ev, err);
		o.n = 0;
		for (size_t k = 0; k < from->n; k++)
			if (!number_is_stale(from->values[k]))
				kept[o.n++] = from->values[k];
		if (!o.n)
			continue;
		present = true;
		if (fn == FN_ABSENT_OVER_TIME)
			break;
		o.v = kept;
		o.sorted = kept + o.n;
		metric = from->metric;
		if (fn != FN_LAST_OVER_TIME && (rc = labels_without_name(ev, metric, &metric, err)))
			return rc;
		out->costs[out->n++] = (struct cost){
			.metric = metric,
			.value = functions_over[fn](&o),
			.t_ns = ev->t_ns,
		};
	}
	return fn == FN_ABSENT_OVER_TIME ? absent_over(ev, e, present, out, err) : ERR_OK;
}
