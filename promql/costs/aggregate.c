/*
 * Aggregations of costs: one result per group of labels; topk and bottomk keep some elements as
 * they are.
 *
 * Source: Prometheus's engine, for what NaN does and which labels stay.
 */
#include "promql/costs/costs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/map.h"
#include "promql/syntax/functions.h"

/* ---- labels ---- */

enum err_code labels_without_name(
	struct work *work, struct labels metric, struct labels *out, struct err *err)
{
	struct label *v;
	size_t n = 0;

	*out = metric;
	if (!labels_has(metric, STR(LABEL_NAME)))
		return ERR_OK;
	if (!(v = arena_array(work->arena, struct label, metric.n)))
		return work_nomem(work, err);
	for (size_t i = 0; i < metric.n; i++)
		if (!str_is(metric.v[i].name, LABEL_NAME))
			v[n++] = metric.v[i];
	*out = (struct labels){ n ? v : NULL, n };
	return ERR_OK;
}

/* list has n labels and room for one: adds LABEL_SERVICE, unless the set it is read of lacks it. */
static size_t labels_add_service(struct label *list, size_t n, struct labels from)
{
	struct label add = { STR(LABEL_SERVICE), labels_get(from, STR(LABEL_SERVICE)) };
	size_t at = 0;

	while (at < n && str_cmp(list[at].name, add.name) < 0)
		at++;
	if (!add.value.len || (at < n && str_eq(list[at].name, add.name)))
		return n;
	memmove(list + at + 1, list + at, (n - at) * sizeof(*list));
	list[at] = add;
	return n + 1;
}

enum err_code labels_group(struct work *work, struct labels metric, enum grouping grouping,
	struct name_list list, struct labels *out, struct err *err)
{
	bool keeps_listed = grouping == GROUPING_BY || grouping == GROUPING_ON;
	struct label *v;
	size_t n = 0;

	*out = (struct labels){ 0 };
	if (grouping == GROUPING_NONE || metric.n == 0)
		return ERR_OK;
	if (!(v = arena_array(work->arena, struct label, metric.n + 1)))
		return work_nomem(work, err);
	for (size_t i = 0; i < metric.n; i++) {
		bool listed = name_list_has(list, metric.v[i].name);

		if (keeps_listed ? listed : !listed && !str_is(metric.v[i].name, LABEL_NAME))
			v[n++] = metric.v[i];
	}
	if (keeps_listed && name_list_has(list, STR(LABEL_SERVICE)))
		n = labels_add_service(v, n, metric);
	*out = (struct labels){ v, n };
	return ERR_OK;
}

/* ---- groups ---- */

struct aggregate_bucket {
	struct labels metric;
	double value, rest; /* of a sum; rest: its rounding error */
	double mean, deviation; /* so far; deviation: the sum of squared differences from it */
	size_t n;
	size_t first; /* quantile: the first of its values */
};

struct aggregation {
	struct work *work;
	const struct call *call;
	const struct value *in;
	struct aggregate_bucket *buckets;
	size_t n;
	uint32_t *bucket_of; /* per element */
};

static bool aggregate_bucket_eq(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(
		*(const struct labels *)key, ((const struct aggregation *)ctx)->buckets[id].metric);
}

static enum err_code aggregation_make_buckets(struct aggregation *a, struct err *err)
{
	struct labels metric;
	enum err_code rc = ERR_OK;
	struct map map;
	uint64_t hash;
	uint32_t id;

	a->buckets = arena_array(a->work->arena, struct aggregate_bucket, a->in->n + 1);
	a->bucket_of = arena_array(a->work->arena, uint32_t, a->in->n + 1);
	if (!a->buckets || !a->bucket_of)
		return work_nomem(a->work, err);
	map_init(&map);
	for (size_t i = 0; i < a->in->n; i++) {
		rc = labels_group(
			a->work, a->in->costs[i].metric, a->call->grouping, a->call->labels, &metric, err);
		if (rc)
			break;
		hash = labels_hash(metric);
		id = map_find(&map, hash, aggregate_bucket_eq, a, &metric);
		if (id == MAP_NONE) {
			id = (uint32_t)a->n;
			if (!map_add(&map, hash, id)) {
				rc = work_nomem(a->work, err);
				break;
			}
			a->buckets[a->n++].metric = metric;
		}
		a->bucket_of[i] = id;
	}
	map_release(&map);
	return rc;
}

/* A mean that does not overflow if the sum would. */
static void aggregate_bucket_add_to_mean(struct aggregate_bucket *b, double value)
{
	double n = (double)(b->n + 1);

	if (isinf(b->mean) && ((isinf(value) && (b->mean > 0) == (value > 0)) || isfinite(value)))
		return;
	b->mean += value / n - b->mean / n;
}

/* Welford's. */
static void aggregate_bucket_add_deviation(struct aggregate_bucket *b, double value)
{
	double delta = value - b->mean;

	if (b->n == 0) {
		b->mean = value;
		b->deviation = isfinite(value) ? 0 : NAN;
		return;
	}
	b->mean += delta / (double)(b->n + 1);
	b->deviation += delta * (value - b->mean);
}

static void aggregate_add_value(enum function_id fn, struct aggregate_bucket *b, double value)
{
	switch (fn) {
	case FN_AVG:
		aggregate_bucket_add_to_mean(b, value);
		costs_add_exactly(value, &b->value, &b->rest);
		break;
	case FN_SUM:
		costs_add_exactly(value, &b->value, &b->rest);
		break;
	case FN_STDDEV:
	case FN_STDVAR:
		aggregate_bucket_add_deviation(b, value);
		break;
	case FN_MIN:
		if (b->n == 0 || b->value > value || isnan(b->value))
			b->value = value;
		break;
	case FN_MAX:
		if (b->n == 0 || b->value < value || isnan(b->value))
			b->value = value;
		break;
	default:
		break;
	}
	b->n++;
}

static double aggregate_bucket_value(enum function_id fn, const struct aggregate_bucket *b)
{
	switch (fn) {
	case FN_SUM:
		return b->value + b->rest;
	case FN_AVG:
		if (isinf(b->value))
			return b->mean;
		return (b->value + b->rest) / (double)b->n;
	case FN_STDDEV:
		return sqrt(b->deviation / (double)b->n);
	case FN_STDVAR:
		return b->deviation / (double)b->n;
	case FN_COUNT:
	case FN_COUNT_VALUES:
		return (double)b->n;
	case FN_GROUP:
		return 1;
	default:
		return b->value;
	}
}

static enum err_code aggregation_reduce(struct aggregation *a, struct value *out, struct err *err)
{
	enum function_id fn = a->call->fn->id;

	for (size_t i = 0; i < a->in->n; i++)
		aggregate_add_value(fn, &a->buckets[a->bucket_of[i]], a->in->costs[i].value);
	if (!(out->costs = arena_array(a->work->arena, struct cost, a->n + 1)))
		return work_nomem(a->work, err);
	for (size_t i = 0; i < a->n; i++)
		out->costs[out->n++] = (struct cost){ .metric = a->buckets[i].metric,
			.value = aggregate_bucket_value(fn, &a->buckets[i]),
			.t_ns = a->work->t_ns };
	return ERR_OK;
}

/* ---- quantile ---- */

static enum err_code aggregation_quantiles(
	struct aggregation *a, double q, struct value *out, struct err *err)
{
	double *values = arena_alloc_raw(a->work->arena, a->in->n + 1, sizeof(*values));
	size_t first = 0;

	out->costs = arena_array(a->work->arena, struct cost, a->n + 1);
	if (!values || !out->costs)
		return work_nomem(a->work, err);
	for (size_t i = 0; i < a->in->n; i++)
		a->buckets[a->bucket_of[i]].n++;
	for (size_t i = 0; i < a->n; i++) {
		a->buckets[i].first = first;
		first += a->buckets[i].n;
		a->buckets[i].n = 0;
	}
	for (size_t i = 0; i < a->in->n; i++) {
		struct aggregate_bucket *b = &a->buckets[a->bucket_of[i]];

		values[b->first + b->n++] = a->in->costs[i].value;
	}
	for (size_t i = 0; i < a->n; i++)
		out->costs[out->n++] = (struct cost){ .metric = a->buckets[i].metric,
			.value = quantile_of(q, values + a->buckets[i].first, a->buckets[i].n),
			.t_ns = a->work->t_ns };
	return ERR_OK;
}

/* ---- count_values ---- */

/* The shortest digits that read back as value, without an exponent. */
static void aggregate_print_plain(struct buf *out, double value)
{
	char text[400];
	int digits = 0;

	if (!isfinite(value)) {
		buf_add_double(out, value);
		return;
	}
	do
		snprintf(text, sizeof(text), "%.*e", digits, value);
	while (strtod(text, NULL) != value && digits++ < 17);
	digits -= (int)strtol(strchr(text, 'e') + 1, NULL, 10); /* behind the point */
	if (digits >= 0) {
		snprintf(text, sizeof(text), "%.*f", digits, value);
	} else { /* zeros in place of the digits that are not significant */
		size_t n;

		snprintf(text, sizeof(text), "%.0f", value);
		n = strlen(text);
		memset(text + n - (size_t)-digits, '0', (size_t)-digits);
	}
	buf_add_cstr(out, text);
}

/* The values become a label of the elements, by which they are counted then. */
static enum err_code label_by_value(
	struct aggregation *a, struct str label, struct value *out, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct buf text = { 0 };

	*out = (struct value){ .type = VALUE_COSTS };
	if (!(out->costs = arena_array(a->work->arena, struct cost, a->in->n + 1)))
		return work_nomem(a->work, err);
	for (size_t i = 0; i < a->in->n && !rc; i++) {
		struct cost *c = &out->costs[out->n++];
		struct labels_builder b;

		*c = a->in->costs[i];
		buf_clear(&text);
		aggregate_print_plain(&text, c->value);
		labels_builder_init(&b, a->work->arena, c->metric);
		labels_builder_set(&b, label, str_dup(a->work->arena, buf_str(&text)));
		rc = buf_failed(&text) ? work_nomem(a->work, err) :
								 labels_builder_build(&b, &c->metric, err);
	}
	buf_release(&text);
	return rc;
}

/* The grouping of count_values() with its label: by takes it in, without leaves it. */
static enum err_code grouping_with(
	struct aggregation *a, struct str label, struct call *out, struct err *err)
{
	struct name_list all = a->call->labels;

	*out = *a->call;
	if (out->grouping == GROUPING_WITHOUT)
		return ERR_OK;
	if (!(out->labels.v = arena_array(a->work->arena, struct str, all.n + 1)))
		return work_nomem(a->work, err);
	if (all.n)
		memcpy(out->labels.v, all.v, all.n * sizeof(*all.v));
	out->labels.v[all.n] = label;
	out->labels.n = all.n + 1;
	out->grouping = GROUPING_BY;
	return ERR_OK;
}

/* ---- topk, bottomk ---- */

struct aggregate_ranked {
	double value;
	size_t index;
	uint32_t bucket;
	bool ascending;
};

/* By group, then by value with NaN last, then as they came. */
static int aggregate_by_value(const void *a, const void *b)
{
	const struct aggregate_ranked *l = a, *r = b;

	if (l->bucket != r->bucket)
		return l->bucket < r->bucket ? -1 : 1;
	if (isnan(l->value) != isnan(r->value))
		return isnan(l->value) ? 1 : -1;
	if (l->value != r->value && !isnan(l->value))
		return (l->value < r->value) == l->ascending ? -1 : 1;
	return l->index < r->index ? -1 : 1;
}

/* k as a number of elements. */
static enum err_code aggregation_check_k(
	struct aggregation *a, const struct expr *e, double k, struct err *err)
{
	char digits[32];

	if (isnan(k))
		return work_fault(a->work, e, err, ERR_INVALID, "Parameter value is NaN");
	snprintf(digits, sizeof(digits), "%g", k);
	if (k >= 0x1p63 || k < -0x1p63)
		return work_fault(a->work, e, err, ERR_INVALID, "Scalar value %s overflows int64",
			isinf(k) ? (k > 0 ? "+Inf" : "-Inf") : digits);
	return ERR_OK;
}

/* A series is at the same place between 0 and 1 each time. */
static double aggregate_place_of(struct labels metric)
{
	return (double)(labels_hash(metric) >> 11) * 0x1p-53;
}

/* The first k of each group, or the part of all that the ratio says. */
static enum err_code aggregation_limit(
	struct aggregation *a, const struct expr *e, double arg, struct value *out, struct err *err)
{
	bool by_ratio = a->call->fn->id == FN_LIMIT_RATIO;
	enum err_code rc;

	if (isnan(arg) && by_ratio)
		return work_fault(a->work, e, err, ERR_INVALID, "Ratio value is NaN");
	if (!by_ratio && (rc = aggregation_check_k(a, e, arg, err)))
		return rc;
	if (!(out->costs = arena_array(a->work->arena, struct cost, a->in->n + 1)))
		return work_nomem(a->work, err);
	for (size_t i = 0; i < a->in->n; i++) {
		struct aggregate_bucket *b = &a->buckets[a->bucket_of[i]];
		double place = aggregate_place_of(a->in->costs[i].metric);

		if (by_ratio ? (arg >= 0 ? place < arg : place >= 1 + arg) : (double)b->n < floor(arg)) {
			out->costs[out->n++] = a->in->costs[i];
			b->n++;
		}
	}
	return ERR_OK;
}

static enum err_code aggregation_choose(
	struct aggregation *a, const struct expr *e, double k, struct value *out, struct err *err)
{
	struct aggregate_ranked *order = arena_array(
		a->work->arena, struct aggregate_ranked, a->in->n + 1);
	enum err_code rc = aggregation_check_k(a, e, k, err);
	size_t in_bucket = 0;

	if (rc)
		return rc;
	out->costs = arena_array(a->work->arena, struct cost, a->in->n + 1);
	if (!order || !out->costs)
		return work_nomem(a->work, err);
	for (size_t i = 0; i < a->in->n; i++)
		order[i] = (struct aggregate_ranked){ a->in->costs[i].value, i, a->bucket_of[i],
			a->call->fn->id == FN_BOTTOMK };
	qsort(order, a->in->n, sizeof(*order), aggregate_by_value);
	for (size_t i = 0; i < a->in->n; i++) {
		in_bucket = i > 0 && order[i].bucket == order[i - 1].bucket ? in_bucket + 1 : 0;
		if ((double)in_bucket < floor(k))
			out->costs[out->n++] = a->in->costs[order[i].index];
	}
	return ERR_OK;
}

enum err_code costs_aggregate(struct work *work, const struct expr *e, const struct value *arg,
	const struct value *in, struct value *out, struct err *err)
{
	struct aggregation x = { .work = work, .call = &e->call, .in = in };
	struct value result = { .type = VALUE_COSTS }, labelled;
	enum function_id fn = e->call.fn->id;
	struct call call;
	enum err_code rc;

	if (fn == FN_COUNT_VALUES) {
		if ((rc = label_by_value(&x, arg->string, &labelled, err)) ||
			(rc = grouping_with(&x, arg->string, &call, err)))
			return rc;
		x.call = &call;
		x.in = &labelled;
	}
	if ((rc = aggregation_make_buckets(&x, err)))
		return rc;
	if (fn == FN_TOPK || fn == FN_BOTTOMK)
		rc = aggregation_choose(&x, e, arg->scalar, &result, err);
	else if (fn == FN_LIMITK || fn == FN_LIMIT_RATIO)
		rc = aggregation_limit(&x, e, arg->scalar, &result, err);
	else if (fn == FN_QUANTILE)
		rc = aggregation_quantiles(&x, arg->scalar, &result, err);
	else
		rc = aggregation_reduce(&x, &result, err);
	if (!rc)
		*out = result;
	return rc;
}
