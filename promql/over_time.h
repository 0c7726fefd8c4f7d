/*
 * Functions over windows of profiles: rate(), mean_rate(), *_over_time(), and where the window of a
 * rate begins.
 *
 * Errors:  as eval.h.
 * Threads: one query, one thread.
 */
#ifndef PROMQL_OVER_TIME_H
#define PROMQL_OVER_TIME_H

#include "promql/choose.h"
#include "promql/supply.h"

bool over_is(const struct expr *e); /* a call of a function that gives profiles of a window */
/* Evaluates such a call; of numbers it gives costs. Fractions are not rounded yet. */
MUST_CHECK enum err_code eval_over(struct eval *ev, const struct expr *e, const struct merging *m,
	struct value *out, struct err *err);
/*
 * *out: the argument, a selector or a subquery, means numbers. A name is of one kind; without a
 * name profiles come first.
 */
MUST_CHECK enum err_code over_numbers(
	struct eval *ev, const struct expr *arg, bool *out, struct err *err);
/* The error of rate() and mean_rate() for profiles that do not add up in time. */
enum err_code over_refuse_levels(struct eval *ev, const struct expr *e, enum over_time over,
	const struct profile_type *type, struct err *err);
/* OVER_MIN, OVER_MAX: leaves the epoch and the time of each series that has it, in a copy. */
MUST_CHECK enum err_code over_choose(
	struct work *work, struct supply *supply, struct selection *s, struct err *err);
/* count_over_time(), present_over_time(), absent_over_time(), of numbers or profiles. */
MUST_CHECK enum err_code call_count_over(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);

/* ---- rate_window.c ---- */

/* OVER_RATE: sets the beginning of each series' window (struct chosen), in a copy. */
MUST_CHECK enum err_code rate_windows(
	struct work *work, struct supply *supply, struct selection *s, struct err *err);
/* Widens what a query looks at by what rate_windows looks at beyond the first and last window. */
void rate_span(const struct selector *s, struct time_window *first, struct time_window *last);

#endif
