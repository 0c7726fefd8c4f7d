/*
 * Operators on costs: labels of groups, aggregations, binary operators, functions.
 *
 * Errors:    ERR_INVALID as Prometheus words it, with the place in the query.
 * Ownership: results live in eval.arena.
 * Threads:   one query, one thread.
 */
#ifndef PROMQL_COSTS_COSTS_H
#define PROMQL_COSTS_COSTS_H

#include "promql/value/evaluation.h"

/* ---- aggregate.c ---- */

MUST_CHECK enum err_code labels_without_name(
	struct eval *ev, struct labels metric, struct labels *out, struct err *err);
/* on, by: those of the list; ignoring, without: all but those and the name; none: all but the name.
 */
MUST_CHECK enum err_code labels_group(struct eval *ev, struct labels metric, enum grouping grouping,
	struct name_list list, struct labels *out, struct err *err);
/* arg: k, q or the label's name, of those that have one. */
MUST_CHECK enum err_code costs_aggregate(struct eval *ev, const struct expr *e,
	const struct value *arg, const struct value *in, struct value *out, struct err *err);

/* ---- binary.c ---- */

MUST_CHECK enum err_code costs_binary(struct eval *ev, const struct expr *e, const struct value *l,
	const struct value *r, struct value *out, struct err *err);

/* ---- cost_functions.c ---- */

/* Each by its row in functions.c; args are evaluated. */
MUST_CHECK enum err_code costs_math(struct eval *ev, const struct expr *e, const struct value *args,
	struct value *out, struct err *err);
MUST_CHECK enum err_code costs_negated(
	struct eval *ev, const struct value *in, struct value *out, struct err *err);
MUST_CHECK enum err_code costs_sorted(
	struct eval *ev, const struct value *in, bool descending, struct value *out, struct err *err);
/* The q-quantile of v[0..n), which it sorts; n > 0. */
double quantile_of(double q, double *v, size_t n);
/* Prometheus's error if two elements have the same labels. */
MUST_CHECK enum err_code costs_distinct(const struct cost *v, size_t n, struct err *err);

/* ---- label_functions.c ---- */

MUST_CHECK enum err_code costs_label_function(struct eval *ev, const struct expr *e,
	const struct value *args, struct value *out, struct err *err);
/* Labels that are certain of a series that is not there: those that = says once. */
MUST_CHECK enum err_code absent_labels(
	struct eval *ev, const struct selector *s, struct labels *out, struct err *err);

#endif
