/*
 * changed(new, base[, p]): functions whose flat share moved. promql/README.md says what that
 * means, promql/changed_statistic.h how it is judged.
 *
 * Threads: one query, one thread.
 */
#ifndef PROMQL_CHANGED_H
#define PROMQL_CHANGED_H

#include "promql/eval.h"

/* Costs with the label function, by descending magnitude. */
MUST_CHECK enum err_code call_changed(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);

#endif
