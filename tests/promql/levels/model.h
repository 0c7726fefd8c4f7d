/*
 * Model: what a level is over a window, computed from rows by plain rules, for tests. It has no
 * code of the server.
 *
 * A level is the sum of value x counted time, over the time that anything counted. Each rule below
 * says how long a row counts. RULE_SERVED is the server's; promql/LANGUAGE.md describes it, and
 * README.md here has the details. The others are for comparison:
 * RULE_HULL      a row counts its interval; the divisor runs from the first row, less its interval,
 *                to the last one of any series
 * RULE_BACKWARD  a row counts from the row before it, which may lie before the window, but at most
 *                2.1 intervals, and one if there is none; the last row counts to the window's end
 *                too, if that is at most 1.1 intervals away
 *
 * Units:     nanoseconds; windows are half-open (min, max].
 * Ownership: rows belong to their series; levels_release frees them.
 * Threads:   none of it has a state of its own.
 */
#ifndef TESTS_PROMQL_LEVELS_MODEL_H
#define TESTS_PROMQL_LEVELS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEVELS_SECOND INT64_C(1000000000)
#define LEVELS_MINUTE (60 * LEVELS_SECOND)
#define LEVELS_HOUR (60 * LEVELS_MINUTE)
#define LEVELS_DAY (24 * LEVELS_HOUR)

struct levels_row {
	int64_t ts_ns, interval_ns, value;
};

/* Rows ascend by time. */
struct levels_series {
	struct levels_row *rows;
	size_t n, cap;
};

enum levels_rule {
	RULE_SERVED,
	RULE_HULL,
	RULE_BACKWARD,
};

struct levels_window {
	int64_t min_ns, max_ns;
	enum levels_rule rule;
	bool doubles; /* in whole hours a row counts twice if one before it is missing */
};

/* Of one series. */
struct levels_sum {
	__int128 value_ns; /* value x counted time */
	int64_t counted_ns;
	size_t rows;
};

void levels_add(struct levels_series *s, struct levels_row row);
void levels_release(struct levels_series *v, size_t n);

/* Fills sums[n], one of each series, and returns the divisor: the time that any of them counted. */
int64_t levels_sum(
	const struct levels_series *v, size_t n, struct levels_window w, struct levels_sum *sums);

/* The mean of all series together; *rows of them. NaN where there are none. */
long double levels_mean(
	const struct levels_series *v, size_t n, struct levels_window w, size_t *rows);

#endif
