/*
 * Subqueries: expr[range:step] evaluates the expression at whole multiples of the step in (t-range,
 * t], and gives its costs as ranges of numbers. A bare selector of profiles in it takes those of
 * one step, (t-step, t], as in a range query.
 *
 * The evaluations of a step serve the next ones of the query: only new times are evaluated.
 *
 * Errors:    as eval.h; ERR_LIMIT: more than SUBQUERY_STEPS_MAX steps.
 * Ownership: values live until the query moves on to its next step; subquery_release ends them.
 * Threads:   as eval.h.
 */
#ifndef PROMQL_SUBQUERY_H
#define PROMQL_SUBQUERY_H

#include "promql/numeric.h"

#define SUBQUERY_STEPS_MAX 100000

/* The evaluation of what is in the brackets: its steps, over all steps of ev. */
MUST_CHECK enum err_code subquery_scope(
	struct eval *ev, const struct expr *e, struct eval *out, struct err *err);
/* e is a subquery. */
MUST_CHECK enum err_code subquery_ranges(
	struct eval *ev, const struct expr *e, struct numeric_ranges *out, struct err *err);
/* The same, by the two readers (promql/reader.h). */
MUST_CHECK enum err_code subquery_read(
	struct eval *ev, const struct expr *e, struct numeric_ranges *out, struct err *err);
MUST_CHECK enum err_code subquery_note(
	struct eval *ev, const struct expr *e, struct numeric_ranges *out, struct err *err);
/* Memory of what was evaluated. */
void subquery_release(struct eval *ev);

#endif
