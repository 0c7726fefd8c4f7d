/*
 * Functions of costs: of the value of each, and their order.
 *
 * Source: Prometheus 3, promql/functions.go, for what NaN and Inf do.
 */
#include "promql/costs/costs.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "promql/syntax/functions.h"

/* ---- labels stay apart ---- */

static bool costs_functions_metric_eq(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(*(const struct labels *)key, ((const struct cost *)ctx)[id].metric);
}

enum err_code costs_distinct(const struct cost *c, size_t n, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct map map;
	uint64_t hash;

	map_init(&map);
	for (size_t i = 0; i < n && !rc; i++) {
		hash = labels_hash(c[i].metric);
		if (map_find(&map, hash, costs_functions_metric_eq, c, &c[i].metric) != MAP_NONE)
			rc = err_set(err, ERR_INVALID, "vector cannot contain metrics with the same labelset");
		else if (!map_add(&map, hash, (uint32_t)i))
			rc = err_nomem(err, "query");
	}
	map_release(&map);
	return rc;
}

/* ---- each by itself ---- */

double greater_of(double a, double b)
{
	if (isinf(a) || isinf(b))
		return (isinf(a) && a > 0) || (isinf(b) && b > 0) ? INFINITY : isinf(a) ? b : a;
	if (isnan(a) || isnan(b))
		return NAN;
	return a > b ? a : b;
}

double smaller_of(double a, double b)
{
	return -greater_of(-a, -b);
}

static double costs_functions_rounded(double value, const double *to)
{
	double inverse = 1 / to[0];

	return floor(value * inverse + 0.5) / inverse;
}

static double costs_functions_sign(double value)
{
	return value < 0 ? -1 : value > 0 ? 1 : value;
}

static double costs_functions_degrees(double value)
{
	return value * (180 / M_PI);
}

static double costs_functions_radians(double value)
{
	return value * (M_PI / 180);
}

static double (*const of_one[FUNCTIONS])(double v) = {
	[FN_ABS] = fabs,
	[FN_CEIL] = ceil,
	[FN_FLOOR] = floor,
	[FN_SGN] = costs_functions_sign,
	[FN_SQRT] = sqrt,
	[FN_EXP] = exp,
	[FN_LN] = log,
	[FN_LOG2] = log2,
	[FN_LOG10] = log10,
	[FN_SIN] = sin,
	[FN_COS] = cos,
	[FN_TAN] = tan,
	[FN_ASIN] = asin,
	[FN_ACOS] = acos,
	[FN_ATAN] = atan,
	[FN_SINH] = sinh,
	[FN_COSH] = cosh,
	[FN_TANH] = tanh,
	[FN_ASINH] = asinh,
	[FN_ACOSH] = acosh,
	[FN_ATANH] = atanh,
	[FN_DEG] = costs_functions_degrees,
	[FN_RAD] = costs_functions_radians,
};

static double costs_functions_apply(enum function_id fn, double value, const double *args)
{
	switch (fn) {
	case FUNCTIONS: /* the sign */
		return -value;
	case FN_ROUND:
		return costs_functions_rounded(value, args);
	case FN_CLAMP:
		return greater_of(args[0], smaller_of(args[1], value));
	case FN_CLAMP_MIN:
		return greater_of(args[0], value);
	case FN_CLAMP_MAX:
		return smaller_of(args[0], value);
	default:
		return of_one[fn] ? of_one[fn](value) : date_part(fn, value);
	}
}

/* The name is dropped: the result is no longer what the name says. */
static enum err_code map_costs(struct work *work, enum function_id fn, const struct value *in,
	const double *args, struct value *out, struct err *err)
{
	struct cost *costs = arena_array(work->arena, struct cost, in->n + 1);
	enum err_code rc;

	if (!costs)
		return work_nomem(work, err);
	for (size_t i = 0; i < in->n; i++) {
		costs[i] = in->costs[i];
		costs[i].value = costs_functions_apply(fn, in->costs[i].value, args);
		if ((rc = labels_without_name(work, in->costs[i].metric, &costs[i].metric, err)))
			return rc;
	}
	*out = (struct value){ .type = VALUE_COSTS, .costs = costs, .n = in->n };
	return costs_distinct(costs, in->n, err);
}

enum err_code costs_math(struct work *work, const struct expr *e, const struct value *args,
	struct value *out, struct err *err)
{
	enum function_id fn = e->call.fn->id;
	double numbers[2] = { 1, 0 }; /* round() to 1 by default */

	assert(args[0].type == VALUE_COSTS);
	for (size_t i = 1; i < e->call.args_n; i++)
		numbers[i - 1] = args[i].scalar;
	*out = (struct value){ .type = VALUE_COSTS };
	if (fn == FN_CLAMP && numbers[1] < numbers[0])
		return ERR_OK;
	return map_costs(work, fn, &args[0], numbers, out, err);
}

enum err_code costs_negated(
	struct work *work, const struct value *in, struct value *out, struct err *err)
{
	return map_costs(work, FUNCTIONS, in, NULL, out, err);
}

/* ---- in order ---- */

struct sorted {
	struct cost cost;
	size_t index;
};

/* NaN last; equal ones as they came. */
static int sorted_compare(const struct sorted *a, const struct sorted *b, bool descending)
{
	double x = a->cost.value, y = b->cost.value;

	if (isnan(x) != isnan(y))
		return isnan(x) ? 1 : -1;
	if (x != y && !isnan(x))
		return (x < y) == descending ? 1 : -1;
	return a->index < b->index ? -1 : 1;
}

static int costs_functions_ascending(const void *a, const void *b)
{
	return sorted_compare(a, b, false);
}

static int costs_functions_descending(const void *a, const void *b)
{
	return sorted_compare(a, b, true);
}

enum err_code costs_sorted(struct work *work, const struct value *in, bool from_greatest,
	struct value *out, struct err *err)
{
	struct sorted *order = arena_array(work->arena, struct sorted, in->n + 1);
	struct cost *costs = arena_array(work->arena, struct cost, in->n + 1);

	if (!order || !costs)
		return work_nomem(work, err);
	for (size_t i = 0; i < in->n; i++)
		order[i] = (struct sorted){ in->costs[i], i };
	qsort(order, in->n, sizeof(*order),
		from_greatest ? costs_functions_descending : costs_functions_ascending);
	for (size_t i = 0; i < in->n; i++)
		costs[i] = order[i].cost;
	*out = (struct value){ .type = VALUE_COSTS, .costs = costs, .n = in->n };
	return ERR_OK;
}

/* A run of digits or of other bytes off the front. */
static struct str costs_functions_next_run(struct str *s, bool *digits)
{
	struct str run = { s->ptr, 0 };

	*digits = s->len && s->ptr[0] >= '0' && s->ptr[0] <= '9';
	while (run.len < s->len && (s->ptr[run.len] >= '0' && s->ptr[run.len] <= '9') == *digits)
		run.len++;
	*s = (struct str){ s->ptr + run.len, s->len - run.len };
	return run;
}

static int costs_functions_compare_runs(struct str a, struct str b, bool digits)
{
	while (digits && a.len && a.ptr[0] == '0')
		a = (struct str){ a.ptr + 1, a.len - 1 };
	while (digits && b.len && b.ptr[0] == '0')
		b = (struct str){ b.ptr + 1, b.len - 1 };
	if (digits && a.len != b.len)
		return a.len < b.len ? -1 : 1;
	return str_cmp(a, b);
}

/* Numbers in texts by value: pod-2 is before pod-10. */
static int costs_functions_compare_texts(struct str a, struct str b)
{
	while (a.len && b.len) {
		bool a_digits, b_digits;
		struct str x = costs_functions_next_run(&a, &a_digits),
				   y = costs_functions_next_run(&b, &b_digits);
		int c = costs_functions_compare_runs(x, y, a_digits && b_digits);

		if (c)
			return c;
	}
	return a.len ? 1 : b.len ? -1 : 0;
}

struct by_label {
	const struct value *names;
	size_t n;
	int sign;
};

static int costs_functions_compare_by_label(const void *left, const void *right, void *ctx)
{
	const struct cost *a = left, *b = right;
	const struct by_label *by = ctx;
	int c = 0;

	for (size_t i = 0; i < by->n && !c; i++)
		c = costs_functions_compare_texts(
			labels_get(a->metric, by->names[i].string), labels_get(b->metric, by->names[i].string));
	return by->sign * (c ? c : labels_cmp(a->metric, b->metric));
}

enum err_code costs_sorted_by_label(struct work *work, const struct expr *e,
	const struct value *args, struct value *out, struct err *err)
{
	struct by_label by = { args + 1, e->call.args_n - 1,
		e->call.fn->id == FN_SORT_BY_LABEL_DESC ? -1 : 1 };
	struct cost *costs = arena_array(work->arena, struct cost, args[0].n + 1);

	if (!costs)
		return work_nomem(work, err);
	if (args[0].n)
		memcpy(costs, args[0].costs, args[0].n * sizeof(*costs));
	qsort_r(costs, args[0].n, sizeof(*costs), costs_functions_compare_by_label, &by);
	*out = (struct value){ .type = VALUE_COSTS, .costs = costs, .n = args[0].n };
	return ERR_OK;
}

/* ---- quantiles ---- */

/* NaN first. */
static int costs_functions_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	if (isnan(x) || isnan(y))
		return isnan(y) - isnan(x);
	return (x > y) - (x < y);
}

double quantile_of(double q, double *values, size_t n)
{
	double rank, weight;
	size_t lower, upper;

	assert(n > 0);
	if (isnan(q))
		return NAN;
	if (q < 0 || q > 1)
		return q < 0 ? -INFINITY : INFINITY;
	qsort(values, n, sizeof(*values), costs_functions_by_value);
	rank = q * (double)(n - 1);
	lower = (size_t)floor(rank);
	upper = lower + 1 < n ? lower + 1 : n - 1;
	weight = rank - floor(rank);
	if (weight == 0) /* the other one may be infinite */
		return values[lower];
	return values[lower] * (1 - weight) + values[upper] * weight;
}
