/*
 * Operators on costs: labels of groups, aggregations, binary operators, functions.
 *
 * Errors:    ERR_INVALID as Prometheus words it, with the place in the query.
 * Ownership: results live in work.arena.
 * Threads:   one query, one thread.
 */
#ifndef PROMQL_COSTS_COSTS_H
#define PROMQL_COSTS_COSTS_H

#include "promql/syntax/functions.h"
#include "promql/value/work.h"

/* ---- aggregate.c ---- */

MUST_CHECK enum err_code labels_without_name(
	struct work *work, struct labels metric, struct labels *out, struct err *err);
/* on, by: those of the list; ignoring, without: all but those and the name; none: all but the name.
 */
MUST_CHECK enum err_code labels_group(struct work *work, struct labels metric,
	enum grouping grouping, struct name_list list, struct labels *out, struct err *err);
/* arg: k, q or the label's name, of those that have one. */
MUST_CHECK enum err_code costs_aggregate(struct work *work, const struct expr *e,
	const struct value *arg, const struct value *in, struct value *out, struct err *err);

/* ---- binary.c ---- */

MUST_CHECK enum err_code costs_binary(struct work *work, const struct expr *e,
	const struct value *v, const struct value *value, struct value *out, struct err *err);

/* ---- functions.c ---- */

/* Each by its row in functions.c; args are evaluated. */
MUST_CHECK enum err_code costs_math(struct work *work, const struct expr *e,
	const struct value *args, struct value *out, struct err *err);
MUST_CHECK enum err_code costs_negated(
	struct work *work, const struct value *in, struct value *out, struct err *err);
MUST_CHECK enum err_code costs_sorted(
	struct work *work, const struct value *in, bool descending, struct value *out, struct err *err);
/* labels: of args[1..n), strings. */
MUST_CHECK enum err_code costs_sorted_by_label(struct work *work, const struct expr *e,
	const struct value *args, struct value *out, struct err *err);
/* Go's math.Max and math.Min: an infinity on their side wins over NaN. */
double greater_of(double a, double b);
double smaller_of(double a, double b);
/* The q-quantile of values[0..n), which it sorts; n > 0. */
double quantile_of(double q, double *values, size_t n);
/* Prometheus's error if two elements have the same labels. */
MUST_CHECK enum err_code costs_distinct(const struct cost *c, size_t n, struct err *err);

/* ---- over_time.c, rates.c ---- */

/* Numbers in time: the values of a series in a window. */
struct samples {
	const int64_t *ts;
	const double *v;
	size_t n; /* not 0 */
	int64_t min_ns, max_ns; /* the window: (min, max] */
	int64_t t_ns; /* of evaluation */
	double args[2]; /* further arguments of the function */
	double *room; /* for n values */
};
/* False: so few samples have no such value. */
typedef bool (*samples_fn)(const struct samples *s, double *out);
/* NULL: the function is not over a window of numbers. */
samples_fn samples_function(enum function_id fn);
samples_fn samples_rate(enum function_id fn); /* those of rates.c; for samples_function */
/* Neumaier's sum: what an addition loses is kept in *rest. */
void costs_add_exactly(double value, double *sum, double *rest);

/* ---- date.c ---- */

/* year() and its like, of a time in seconds. */
double date_part(enum function_id fn, double seconds);

/* ---- label_functions.c ---- */

MUST_CHECK enum err_code costs_label_function(struct work *work, const struct expr *e,
	const struct value *args, struct value *out, struct err *err);
/* Labels that are certain of a series that is not there: those that = says once. */
MUST_CHECK enum err_code absent_labels(
	struct work *work, const struct selector *s, struct labels *out, struct err *err);

#endif
