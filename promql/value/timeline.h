/*
 * Timeline: the times of a query, and of the steps at which an expression of it is evaluated.
 *
 * A scope is the query, or a subquery of it, whose expression is evaluated at steps of its own. A
 * timeline is of one scope and does not change while the scope is evaluated.
 *
 * Units:     nanoseconds since 1970.
 * Ownership: plain values; scope points into the query's tree.
 * Threads:   no state.
 */
#ifndef PROMQL_VALUE_TIMELINE_H
#define PROMQL_VALUE_TIMELINE_H

#include "promql/syntax/ast.h"

enum eval_mode {
	EVAL_INSTANT, /* bare selectors: the latest profile within the lookback */
	EVAL_SPAN, /* all in (start, end] */
	EVAL_RANGE, /* all in (t - step, t] */
};

struct timeline {
	enum eval_mode mode;
	int64_t start_ns, end_ns, query_step_ns; /* of the query */
	int64_t lookback_ns;
	int64_t subquery_step_ns; /* of subqueries that say none */
	const struct expr *scope; /* NULL: the query */
	int64_t step_ns, first_ns, last_ns; /* of the scope */
};

/* The window of a selector. */
struct time_window {
	int64_t min_ns, max_ns; /* (min, max] */
	bool latest; /* only each series' last profile */
};

/* A time of evaluation, as offset and @ move it. */
int64_t timeline_shifted(
	const struct timeline *times, const struct time_shift *shift, int64_t t_ns);
/* The window of a selector of profiles at a time of evaluation. */
struct time_window selector_window(
	const struct timeline *times, const struct selector *s, int64_t t_ns);

#endif
