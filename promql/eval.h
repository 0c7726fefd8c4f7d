/*
 * Evaluator: the tree of a query to a value, at one time. Private to promql/.
 *
 * engine.c sets a struct eval up and calls eval_expr once, or once per step. Each file of operators
 * takes values and gives values; nothing is shared between steps but the querier.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_INVALID "1:6: ..." with the place in the query; ERR_LIMIT; ERR_CANCELED; what the
 *            database returns.
 * Ownership: values live in eval.arena and in the querier. A value's elements are the callee's to
 *            change only where it made them.
 * Threads:   one evaluation, one thread.
 */
#ifndef PROMQL_EVAL_H
#define PROMQL_EVAL_H

#include "promql/syntax/ast.h"
#include "promql/syntax/functions.h"
#include "promql/syntax/parse.h"
#include "promql/value.h"

struct value {
	unsigned type; /* one of VALUE_*; an empty selector has all that its name could stand for */
	double scalar;
	struct str string;
	struct cost *costs;
	struct profile_value *profiles;
	struct top_table *tops;
	size_t n; /* elements of whichever array the type names */
	bool is_split; /* profiles: by labels of samples */
};

enum eval_mode {
	EVAL_INSTANT, /* bare selectors: the latest profile within the lookback */
	EVAL_SPAN, /* all in (start, end] */
	EVAL_RANGE, /* all in (t - step, t] */
};

/* What a thread that helps reads by; only while it does. */
struct eval_fork {
	struct db_querier *querier; /* NULL: not wanted yet */
	struct arena arena; /* what it read: goes to that of the evaluation */
};

struct eval {
	struct db_querier *querier;
	const struct parsed *query;
	struct arena *arena;
	struct arena *whole; /* of the query: what stays from step to step */
	struct unit_note *units; /* promql/unit.h */
	struct numeric_cache *numbers; /* promql/numeric.h */
	enum eval_mode mode;
	int64_t t_ns; /* of this evaluation */
	int64_t start_ns, end_ns, step_ns; /* of the query */
	int64_t lookback_ns;
	uint64_t samples_max, samples; /* read so far, over all steps */
	struct budget *budget; /* of all memory of the query; may be NULL */
	struct query_plan *plan; /* promql/plan.h */
	struct workers *workers; /* promql/workers.h; NULL: none */
	struct eval_fork *forks; /* one per thread; NULL: nothing is done side by side */
	int64_t rate_groups_ns; /* promql/engine.h */
	uint64_t parallel_samples; /* from how many on it is; 0: the default */
	const atomic_bool *stop;
	bool all_sample_labels; /* keep them whatever the query says */
	bool rows_only; /* of tables nothing but their rows is looked at */
	struct str *label_names; /* that some `by` names: kept where samples have them */
	size_t label_names_n;
	struct str *infos; /* what the answer stands on: eval_info */
	size_t infos_n;
};

#define EVAL_INFOS_MAX 8 /* of one query; further ones are left out */

/* ---- eval.c ---- */

/* What `by` lists name, into eval.label_names. */
MUST_CHECK enum err_code eval_prepare(struct eval *ev, struct err *err);
MUST_CHECK enum err_code eval_expr(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);
/* As eval_expr, but profiles that are fractions stay so: of one value all have one exponent. */
MUST_CHECK enum err_code eval_exact(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);
/*
 * Costs as eval_expr; of profiles their totals, labels and names kept, without reading samples
 * where that can be.
 */
MUST_CHECK enum err_code eval_totals(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err);
enum err_code eval_fault(struct eval *ev, const struct expr *e, struct err *err, enum err_code code,
	const char *fmt, ...) PRINTF_LIKE(5, 6);
enum err_code eval_nomem(struct eval *ev, struct err *err);
/* A line for the answer's infos, once however often it is said. */
enum err_code eval_info(struct eval *ev, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* ERR_CANCELED where someone asked for it. */
MUST_CHECK enum err_code eval_check(struct eval *ev, struct err *err);

/* ---- steps.c ---- */

/*
 * At each step of the range, into a matrix: ascending by metric, in ev->whole. ev is planned; its
 * arena is changed.
 */
MUST_CHECK enum err_code evaluate_steps(
	struct eval *ev, struct cost_series **out, size_t *n, struct err *err);

/* ---- choose.c, gather.c ---- */

/* Functions over windows of profiles. */
enum over_time {
	OVER_NONE, /* amounts add up, levels are a mean over time */
	OVER_RATE,
	OVER_SUM,
	OVER_AVG,
	OVER_MIN, /* one scrape of each series, as the next two */
	OVER_MAX,
	OVER_LAST,
};

/* How a selector's series are put together. */
struct merging {
	enum over_time over;
	bool each; /* one element per series; the rest is unused */
	enum grouping grouping; /* _NONE: all together; _BY; _WITHOUT */
	struct name_list labels;
	bool totals_only; /* values are totals, cells are not read */
	bool in_slices; /* changed(): elements live a slice of the window at a time */
	bool by_name; /* costs by the names of functions are enough: part.names may stand for cells */
};

/* Where a selector looks. */
struct time_window {
	int64_t min_ns, max_ns; /* (min, max] */
	bool latest; /* only each series' last profile */
};

struct time_window selector_window(const struct eval *ev, const struct selector *s, int64_t t_ns);
/* Profiles of e, a selector; gauges are not rounded yet. */
MUST_CHECK enum err_code choose_profiles(struct eval *ev, const struct expr *e,
	const struct merging *m, struct value *out, struct err *err);

/*
 * One series of a selection, in one epoch: which of its columns, and what must be asked of its
 * samples. Its epochs have equal labels, and so one group.
 */
struct chosen {
	const struct db_series *series;
	struct profile_type type;
	uint64_t deferred; /* bits of the selector's matchers that are about sample labels */
	bool asked; /* some matcher is about a label that the series lacks, and so about samples */
	bool takes_empty; /* those matchers accept "" */
	bool none; /* no sample can pass: rows are there, and later than those of older epochs */
	bool by_labels; /* cells per sample label set */
	struct labels metric;
	uint32_t group;
	int64_t at_ns; /* OVER_MIN, OVER_MAX: the only time to look at */
	int64_t min_ns; /* OVER_RATE: where its window begins; 0: where the selection's does */
	int64_t window_ns; /* and how long it counts; 0: as long as the selector's */
};

struct selection {
	const struct selector *selector;
	const struct expr *expr;
	struct time_window window;
	struct chosen *v; /* ascending by group */
	size_t n;
	uint32_t groups_n;
	bool totals_only, by_name;
	enum over_time over;
	uint64_t cost; /* about, in samples */
};

/* The series a selector's name and matchers select, sample labels not looked at; once per epoch. */
MUST_CHECK enum err_code choose_series(
	struct eval *ev, const struct expr *e, struct db_series **out, size_t *n, struct err *err);

/* Reads and adds up a selection: one element per group. */
MUST_CHECK enum err_code gather_selection(
	struct eval *ev, const struct selection *s, struct value *out, struct err *err);

/* ---- over_time.c ---- */

bool over_is(const struct expr *e); /* a call of a function that gives profiles of a window */
/* Such a call; of numbers its costs. Fractions are not rounded yet. */
MUST_CHECK enum err_code eval_over(struct eval *ev, const struct expr *e, const struct merging *m,
	struct value *out, struct err *err);
/* What rate() says of profiles that do not add up in time. */
enum err_code over_refuse_levels(
	struct eval *ev, const struct expr *e, const struct profile_type *type, struct err *err);
/* OVER_MIN, OVER_MAX: leaves the epoch and the time of each series that has it, in a copy. */
MUST_CHECK enum err_code over_choose(struct eval *ev, struct selection *s, struct err *err);

/* ---- rate_window.c ---- */

/* OVER_RATE: where the window of each series begins (struct chosen), in a copy. */
MUST_CHECK enum err_code rate_windows(struct eval *ev, struct selection *s, struct err *err);
/* Widens what a query looks at by what rate_windows looks at beyond the first and last window. */
void rate_span(const struct selector *s, struct time_window *first, struct time_window *last);

/* ---- fraction.c ---- */

#define FRACTION_ONE (INT64_C(1) << 62) /* the divisor of all fractions */

/* What costs of one series are multiplied by. */
struct factor {
	long double multiplier, divisor;
};
bool over_has_factor(enum over_time over, const struct profile_type *type);
/* stats: of all epochs of the series. */
struct factor over_factor(enum over_time over, const struct profile_type *type,
	const struct sum_stats *stats, int64_t window_ns);
/* In units of FRACTION_ONE. False: beyond what fits. */
bool fraction_of(struct factor f, __int128 v, __int128 *out);
/* As profiles_round, but fractions stay what they are, as whole numbers of 2^-exponent. */
MUST_CHECK enum err_code profiles_settle(struct eval *ev, struct value *v, struct err *err);
/* v / 2^shift, half away from zero; false: beyond 64 bits. */
bool cost_shift(int64_t v, int shift, int64_t *out);
/* The same profile with another exponent; ERR_LIMIT where it does not fit. Not its names. */
MUST_CHECK enum err_code profile_with_exponent(struct eval *ev, const struct profile_value *in,
	int exponent, struct profile_value *out, struct err *err);
/* Rounds what profiles_settle left: for an answer. */
MUST_CHECK enum err_code profiles_whole(
	struct eval *ev, const struct expr *e, struct value *v, struct err *err);

/* ---- scrape.c ---- */

/* e is a selector of one series: its last profile in the window, whole. */
MUST_CHECK enum err_code eval_scrape(
	struct eval *ev, const struct expr *e, struct pprof **out, struct err *err);

/* ---- labels of samples ---- */

enum label_source {
	LABEL_NOWHERE,
	LABEL_OF_SERIES,
	LABEL_OF_SAMPLES, /* *key is its name there */
};

/* Whose label `name` is: the series', else the samples'; sample_<name> is always the samples'. */
enum label_source label_source(
	struct labels metric, const struct partition *p, struct str name, struct str *key);

/* ---- profiles.c: operators on profiles ---- */

/* Rounds what is not rounded, drops cells that became zero, fills in the totals. */
MUST_CHECK enum err_code profiles_round(struct eval *ev, struct value *v, struct err *err);
MUST_CHECK enum err_code profiles_merge(struct eval *ev, const struct value *in,
	enum grouping grouping, struct name_list labels, struct value *out, struct err *err);
/* Some part's samples carry a label of the list that the element does not. */
bool profiles_need_split(const struct value *in, struct name_list labels);
MUST_CHECK enum err_code profiles_scale(struct eval *ev, const struct expr *e,
	const struct value *in, double factor, bool divide, struct value *out, struct err *err);
/*
 * value_total, base_total from the cells, and total unless the profile is filtered; ERR_LIMIT where
 * a sum passes 64 bits.
 */
MUST_CHECK enum err_code profile_totals(struct profile_value *p, struct err *err);
/* The sum of a profile's cells as it is shown; exact also where it is not rounded yet. */
double profile_total_cost(const struct profile_value *p);
/* Sorts cells by (stack, label set) and adds equal ones; wide (may be NULL) goes with them. */
MUST_CHECK enum err_code part_normalize(struct eval *ev, struct part *part, struct err *err);
bool profile_type_eq(const struct profile_type *a, const struct profile_type *b);
/* Epochs of one series are chosen one behind the other. */
static inline bool is_same_series(const struct db_series *a, const struct profile_type *a_type,
	const struct db_series *b, const struct profile_type *b_type)
{
	return labels_eq(a->labels, b->labels) && profile_type_eq(a_type, b_type);
}

/* ---- epochs.c ---- */

/*
 * Before cells are rounded: those that are the same one in several epochs of a job become one, in
 * place; 0 is left in the others. profile_joined: in a copy, of what is not the caller's.
 */
MUST_CHECK enum err_code profile_join_epochs(
	struct eval *ev, struct profile_value *p, struct err *err);
MUST_CHECK enum err_code profile_joined(
	struct eval *ev, const struct profile_value *in, struct profile_value *out, struct err *err);

/* ---- diff.c ---- */

MUST_CHECK enum err_code profiles_diff(struct eval *ev, const struct expr *e,
	const struct value *new_side, const struct value *base_side, enum grouping matching,
	struct name_list labels, bool normalized, struct value *out, struct err *err);

/* ---- flat.c, top.c ---- */

struct flat_options {
	bool cum, share;
	enum grouping grouping; /* _NONE: by function beside the input's labels; _BY */
	struct name_list labels;
	const struct matcher *matchers; /* on frames */
	size_t matchers_n;
	const struct expr *filters; /* filter.h: filters that wait below it; may be NULL */
};
/* Only the names of functions, and labels of series, are asked for. */
bool flat_by_name(const struct flat_options *o);
MUST_CHECK enum err_code profiles_flat(struct eval *ev, const struct value *in,
	const struct flat_options *o, struct value *out, struct err *err);
MUST_CHECK enum err_code profiles_top(
	struct eval *ev, const struct value *in, double k, struct value *out, struct err *err);

/* ---- costs.c, aggregate.c, binary.c: operators on costs ---- */

MUST_CHECK enum err_code labels_without_name(
	struct eval *ev, struct labels metric, struct labels *out, struct err *err);
/* on, by: those of the list; ignoring, without: all but those and the name; none: all but the name.
 */
MUST_CHECK enum err_code labels_group(struct eval *ev, struct labels metric, enum grouping grouping,
	struct name_list list, struct labels *out, struct err *err);
/* arg: k, q or the label's name, of those that have one. */
MUST_CHECK enum err_code costs_aggregate(struct eval *ev, const struct expr *e,
	const struct value *arg, const struct value *in, struct value *out, struct err *err);
MUST_CHECK enum err_code costs_binary(struct eval *ev, const struct expr *e, const struct value *l,
	const struct value *r, struct value *out, struct err *err);

/* ---- math.c, label_functions.c: functions of costs ---- */

/* Each by its row in functions.c; args are evaluated. */
MUST_CHECK enum err_code costs_math(struct eval *ev, const struct expr *e, const struct value *args,
	struct value *out, struct err *err);
MUST_CHECK enum err_code costs_negated(
	struct eval *ev, const struct value *in, struct value *out, struct err *err);
MUST_CHECK enum err_code costs_sorted(
	struct eval *ev, const struct value *in, bool descending, struct value *out, struct err *err);
/* The q-quantile of v[0..n), which it sorts; n > 0. */
double quantile_of(double q, double *v, size_t n);
/* Prometheus's error where two elements have the same labels. */
MUST_CHECK enum err_code costs_distinct(const struct cost *v, size_t n, struct err *err);

MUST_CHECK enum err_code costs_label_function(struct eval *ev, const struct expr *e,
	const struct value *args, struct value *out, struct err *err);
/* Labels that are certain of a series that is not there: those that = says once. */
MUST_CHECK enum err_code absent_labels(
	struct eval *ev, const struct selector *s, struct labels *out, struct err *err);

#endif
