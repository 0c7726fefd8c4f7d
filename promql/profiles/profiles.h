/*
 * Operators on profiles: merging, rounding, fractions, scaling, differences.
 *
 * Errors:    ERR_LIMIT: a cost or a sum exceeds 64 bits; ERR_INVALID with the place in the query.
 * Ownership: results live in work.arena; inputs are changed only if it says so.
 * Threads:   one query, one thread.
 */
#ifndef PROMQL_PROFILES_PROFILES_H
#define PROMQL_PROFILES_PROFILES_H

#include "promql/value/work.h"

/* ---- profiles.c ---- */

/* Rounds what is not rounded, drops cells that became zero, fills in the totals. */
MUST_CHECK enum err_code profiles_round(struct work *work, struct value *v, struct err *err);
/*
 * value_total, base_total from the cells, and total unless the profile is filtered; ERR_LIMIT if a
 * sum passes 64 bits.
 */
MUST_CHECK enum err_code profile_totals(struct profile_value *p, struct err *err);
/* The sum of a profile's cells as it is shown; exact even before it is rounded. */
double profile_total_cost(const struct profile_value *p);
/* Sorts cells by (stack, label set) and adds equal ones; wide (may be NULL) goes with them. */
MUST_CHECK enum err_code part_normalize(struct work *work, struct part *part, struct err *err);
bool profile_type_eq(const struct profile_type *a, const struct profile_type *b);

/* ---- labels of samples ---- */

#define SAMPLE_LABEL_PREFIX "sample_"

enum label_source {
	LABEL_NOWHERE,
	LABEL_OF_SERIES,
	LABEL_OF_SAMPLES, /* *key is its name there */
};

/* The owner of label `name`: the series, else the samples. sample_<name> is always the samples'. */
enum label_source label_source(
	struct labels metric, const struct partition *p, struct str name, struct str *key);

/* ---- merge.c ---- */

MUST_CHECK enum err_code profiles_merge(struct work *work, const struct value *in,
	enum grouping grouping, struct name_list labels, struct value *out, struct err *err);
/* Some part's samples carry a label of the list that the element does not. */
bool profiles_need_split(const struct value *in, struct name_list labels);

/* ---- scale.c ---- */

MUST_CHECK enum err_code profiles_scale(struct work *work, const struct expr *e,
	const struct value *in, double factor, bool divide, struct value *out, struct err *err);

/* The same profile with costs in `unit`, whose ratio is a whole number; ERR_LIMIT: beyond 64 bits.
 */
MUST_CHECK enum err_code profile_in_unit(struct work *work, const struct profile_value *in,
	struct str unit, struct profile_value *out, struct err *err);

/* ---- epochs.c ---- */

/*
 * Before cells are rounded: those that are the same one in several epochs of a job become one, in
 * place; 0 is left in the others. profile_joined: in a copy, of what is not the caller's.
 */
MUST_CHECK enum err_code profile_join_epochs(
	struct work *work, struct profile_value *p, struct err *err);
MUST_CHECK enum err_code profile_joined(
	struct work *work, const struct profile_value *in, struct profile_value *out, struct err *err);
/* As profile_join_epochs if a cell is below zero: then the sum of magnitudes needs it. */
MUST_CHECK enum err_code profile_join_signs(
	struct work *work, struct profile_value *p, struct err *err);

/* ---- fraction.c ---- */

/* Functions over windows of profiles. */
enum over_time {
	OVER_NONE, /* amounts add up, levels are a mean over time */
	OVER_RATE,
	OVER_MEAN_RATE, /* of each group; its window begins no earlier than its first profile */
	OVER_SUM,
	OVER_AVG,
	OVER_MIN, /* one scrape of each series, as the next two */
	OVER_MAX,
	OVER_LAST,
};

#define FRACTION_ONE (INT64_C(1) << 62) /* the divisor of all fractions */

/* The factor of one series' costs. */
struct factor {
	long double multiplier, divisor;
};
bool fraction_has_factor(enum over_time over, const struct profile_type *type);
/* stats: of all epochs of the series. */
struct factor fraction_factor(enum over_time over, const struct profile_type *type,
	const struct sum_stats *stats, int64_t window_ns);
/* In units of FRACTION_ONE. False: it does not fit. */
bool fraction_of(struct factor f, __int128 value, __int128 *out);
/* As profiles_round, but fractions become whole numbers of 2^-exponent. */
MUST_CHECK enum err_code profiles_settle(struct work *work, struct value *v, struct err *err);
/* value / 2^shift, half away from zero; false: beyond 64 bits. */
bool cost_shift(int64_t value, int shift, int64_t *out);
/* The same profile with another exponent; ERR_LIMIT if it does not fit. Not its names. */
MUST_CHECK enum err_code profile_with_exponent(struct work *work, const struct profile_value *in,
	int exponent, struct profile_value *out, struct err *err);
/* Rounds the fractions that profiles_settle left, for an answer. */
MUST_CHECK enum err_code profiles_whole(
	struct work *work, const struct expr *e, struct value *v, struct err *err);

/* ---- diff.c ---- */

/* If exactly one side has no profiles, the answer's infos say which. */
MUST_CHECK enum err_code profiles_diff(struct work *work, const struct expr *e,
	const struct value *new_side, const struct value *base_side, enum grouping matching,
	struct name_list labels, bool normalized, struct value *out, struct err *err);

/* ---- top.c ---- */

MUST_CHECK enum err_code profiles_top(
	struct work *work, const struct value *in, double k, struct value *out, struct err *err);

#endif
