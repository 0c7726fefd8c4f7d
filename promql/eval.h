/*
 * Evaluator: the tree of a query to a value, at one time. Private to promql/.
 *
 * The engine sets a struct eval up and calls eval_expr once, or once per step. Each file of
 * operators takes values and gives values.
 *
 * Errors:    those of promql/value/evaluation.h; what the database returns.
 * Ownership: values live in eval.arena and in the querier.
 * Threads:   one evaluation, one thread.
 */
#ifndef PROMQL_EVAL_H
#define PROMQL_EVAL_H

#include "promql/value/evaluation.h"

/* Collects the names of `by` lists in eval.label_names. */
MUST_CHECK enum err_code eval_prepare(struct eval *ev, struct err *err);
MUST_CHECK enum err_code eval_expr(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);
/* The whole query at one time; a window of numbers and a subquery have values then. */
MUST_CHECK enum err_code eval_root(struct eval *ev, struct value *out, struct err *err);
/* As eval_expr, but profiles that are fractions stay so: of one value all have one exponent. */
MUST_CHECK enum err_code eval_exact(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);
/*
 * Costs as eval_expr; of profiles their totals, labels and names kept, without reading samples
 * if that can be.
 */
MUST_CHECK enum err_code eval_totals(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);

#endif
