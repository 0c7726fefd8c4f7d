/*
 * changed(new, base[, p]): functions whose flat share moved; changed_interval(new, base[, p]): by
 * how much that of each function moved at least and at most. promql/changed/CHANGED.md says what
 * that means, promql/changed/statistic.h how it is judged.
 *
 * Threads: one query, one thread.
 */
#ifndef PROMQL_CHANGED_H
#define PROMQL_CHANGED_H

#include "promql/value/work.h"

struct eval; /* promql/eval.h */

/*
 * Costs with the label function, by descending magnitude; changed_interval() has two of a function,
 * by their label bound, and what it says of it in the label verdict. A function that changed in one
 * series alone has the labels by which that series differs as well.
 */
MUST_CHECK enum err_code changed_eval(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);
/* While planning: both windows are noted as read once. */
MUST_CHECK enum err_code changed_plan(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);

#endif
