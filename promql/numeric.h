/*
 * Numeric series in queries: selectors of them, and functions over their windows.
 *
 * A selector with a name means numbers if series of the name are numeric. One without a name
 * means profiles if it selects some, else numbers.
 *
 * Windows are Prometheus's (3): sel[5m] has the values in (t-5m, t]; a bare selector has, in all
 * modes, the latest value in (t-lookback, t]. A stale mark ends a series for bare selectors, and
 * windows pass it over. Times count by the millisecond, as Prometheus has them: a value of the one
 * in which a window begins is not in it, and one of that in which it ends is.
 *
 * Values are read in slices of time, once for many steps of a range.
 *
 * Errors:  as eval.h.
 * Threads: as eval.h.
 */
#ifndef PROMQL_NUMERIC_H
#define PROMQL_NUMERIC_H

#include "promql/choose.h"

/* (min, max] that a selector wants of numbers. */
struct time_window numeric_window(
	const struct timeline *times, const struct selector *s, int64_t t_ns);
/* The same, by the nanosecond. */
struct time_window numeric_window_read(
	const struct timeline *times, const struct selector *s, int64_t t_ns);

/* One series of a selector, with the values in its window. */
struct numeric_range {
	struct labels metric; /* with name */
	const int64_t *ts;
	const double *values;
	size_t n; /* may be 0 */
};
struct numeric_ranges {
	struct numeric_range *v; /* ascending by labels; in the arena of the step */
	size_t n;
};
/* Numbers of e, a selector. Stale marks are in it still. n 0: no series. */
MUST_CHECK enum err_code numeric_select(
	struct eval *ev, const struct expr *e, struct numeric_ranges *out, struct err *err);
/* The same, by the two readers (promql/reader.h). */
struct numeric_cache;
MUST_CHECK enum err_code numeric_read(struct eval *ev, const struct expr *e,
	struct numeric_cache *c, struct numeric_ranges *out, struct err *err);
MUST_CHECK enum err_code numeric_note(struct eval *ev, const struct expr *e,
	struct numeric_cache *c, struct numeric_ranges *out, struct err *err);
/* The value of a bare selector, as costs. *found: it selects numeric series. */
MUST_CHECK enum err_code numeric_latest(
	struct eval *ev, const struct expr *e, struct value *out, bool *found, struct err *err);
/* Refuses a bare window of numbers: only profiles have a value there. */
MUST_CHECK enum err_code numeric_refuse_window(
	struct eval *ev, const struct expr *e, struct err *err);
/* Some selector of the query, as far as it was evaluated, has numeric series. */
bool numeric_any(const struct eval *ev);
/* Memory of what was read. */
void numeric_release(struct eval *ev);
/* The same of a thread's evaluation that began with these. */
void numeric_release_until(struct eval *ev, struct numeric_cache *began);

/* timestamp() of a selector of numbers: the times of the latest values. *found as above. */
MUST_CHECK enum err_code numeric_times(
	struct eval *ev, const struct expr *e, struct value *out, bool *found, struct err *err);

/* ---- numeric_over_time.c ---- */

/* avg_over_time() and the others. */
MUST_CHECK enum err_code call_over_time(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);
/*
 * The values of e, a selector with a window or a subquery, as VALUE_RANGE. *found: it has numbers;
 * else *out is unused.
 */
MUST_CHECK enum err_code numeric_series(
	struct eval *ev, const struct expr *e, struct value *out, bool *found, struct err *err);

#endif
