/*
 * Values: what a query evaluates to.
 *
 * A profile value is a set of cells (stack, sample labels) -> cost, kept per partition under the
 * partition's own ids, so that merging, diffs, flat and cum are passes over arrays; names appear
 * when an answer is written. Costs are an instant vector as Prometheus has it.
 *
 * Rounding: a cell of a gauge is a quotient (sum of value x interval) / time; it is kept as the
 * exact numerator until the value leaves merging, then rounded once, half away from zero.
 * Ownership: everything lives in the query's arena; partitions live as long as the querier.
 * Threads:   one query, one thread.
 */
#ifndef PROMQL_VALUE_VALUE_H
#define PROMQL_VALUE_VALUE_H

#include "tsdb/db.h"

/* One cell; cells are ascending by (stack, label_set). base is the other side of a diff, else 0. */
struct cell {
	uint32_t stack, label_set;
	int64_t value, base;
};

struct part {
	struct partition *partition;
	struct cell *cells;
	size_t n;
	/*
	 * Until a gauge or a fraction is rounded: value x interval, or value x 2^62, of each cell,
	 * whose value and base are unused. Inside the evaluator only; results are rounded.
	 */
	__int128 *wide;
	const uint32_t *headers; /* of the rows that went in: comments, drop_frames, ... */
	uint32_t headers_n;
	uint32_t headers_plain; /* so many of the first are known to have no drop_frames */
	/*
	 * Costs that are known by name only, in addition to the cells; names may repeat. Inside the
	 * evaluator, and only if the query asks for names alone.
	 */
	const struct function_sum *names;
	size_t names_n;
	int64_t names_total; /* of all their stacks, none of which is negative */
};

/* A filter that a profile went through. */
struct active_filter {
	const struct active_filter *before; /* applied before this one; NULL: it is the first */
	const char *name;
	struct str text;
};

struct profile_value {
	struct labels metric; /* what identifies the element */
	struct profile_type type; /* name may be "" after merging types of equal unit */
	struct part *parts;
	size_t parts_n;
	bool is_diff; /* value = new side, base = old side; shown as value - base */
	/*
	 * Percentages refer to this, as in go tool pprof: the sum of |value| over all cells as
	 * selected; for a diff the base's sum if it is positive. Filters keep the total from before
	 * them (filtered), and profiles made of filtered ones keep the totals of their sources.
	 */
	int64_t total;
	int64_t value_size, base_size; /* the sums of |value|, |base|; total is one of them */
	bool filtered; /* the three above are not those of the cells */
	const struct active_filter *filters; /* the last one applied; NULL: none */
	int64_t value_total, base_total; /* plain sums of the two sides */
	uint64_t profiles; /* scrapes merged, both sides */
	int64_t time_nanos, duration_nanos, period;
	/* As in sum_stats, of all that was merged; a diff has none. */
	__int128 elapsed_ns, profiled_ns;
	int64_t start_ns, end_ns; /* of the window that was read */
	/* The divisor of wide, the time that scrapes of levels count; 0: the profile is rounded. */
	int64_t divisor;
	__int128 wide_total; /* the sum of all wide */
	/* A quotient that stays one: rounded to a whole number only if a profile must have one. */
	bool fraction;
	int exponent; /* of fractions, for flat() and total(): costs are multiplied by 2^exponent */
};

/* Durations come from outside; their sum stops at the limits of 64 bits. */
static inline int64_t value_duration_sum(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

struct cost {
	struct labels metric;
	double value;
	int64_t t_ns; /* evaluation time */
};

struct point {
	int64_t t_ns;
	double value;
};

struct cost_series {
	struct labels metric;
	struct point *points;
	size_t n;
};

/* A row as `go tool pprof -top` prints it. Percentages are of `total`. */
struct top_row {
	struct str function;
	int64_t flat, cum;
	double flat_percent, sum_percent, cum_percent;
};

struct top_table {
	struct labels metric;
	struct profile_type type;
	int64_t total;
	struct top_row *rows;
	size_t n;
	size_t functions_n; /* before the cut to k */
	uint64_t profiles;
	int64_t time_nanos, duration_nanos;
	bool is_diff;
	const struct profile_value *source; /* whose table it is */
	size_t k; /* rows asked for */
};

enum result_type {
	RESULT_PROFILES,
	RESULT_TOP,
	RESULT_VECTOR,
	RESULT_MATRIX,
	RESULT_SCALAR,
	RESULT_STRING,
	RESULT_SCRAPE, /* one profile as it was scraped: query_options.whole_scrape */
};

struct result {
	enum result_type type;
	struct profile_value *profiles;
	struct top_table *tops; /* of profiles too, if the query was asked for tables; else NULL */
	struct cost *vector;
	struct cost_series *matrix;
	size_t n; /* elements of whichever array `type` names */
	double scalar;
	struct str string;
	const struct pprof *scrape;
	struct str unit; /* of a vector or matrix, and of a scalar; empty: not known (promql/unit.h) */
	int64_t t_ns;
	const struct str *warnings, *infos;
	size_t warnings_n, infos_n;
};

#endif
