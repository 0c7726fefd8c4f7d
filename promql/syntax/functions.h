/*
 * The table of functions: one row each; the parser, the checker, completion and the documentation
 * walk it.
 *
 * Adding a function is adding its id and its row here and its implementation to the evaluator's
 * table, which is indexed by id. A name that has no row is refused by the check.
 *
 * Threads: constant.
 */
#ifndef PROMQL_SYNTAX_FUNCTIONS_H
#define PROMQL_SYNTAX_FUNCTIONS_H

#include "promql/syntax/ast.h"

enum function_id {
	/* on profiles */
	FN_MERGE, /* merge [by|without (l,..)] (profiles) -> profiles */
	FN_DIFF, /* diff [on|ignoring (l,..)] (new, base) -> profiles */
	FN_DIFF_NORMALIZED, /* the same, new scaled to the base's total */
	FN_TOP, /* top(k, profiles) -> table */
	FN_FLAT, /* flat [by (g,..)] (profiles[, {frames}]) -> costs */
	FN_CUM,
	FN_FLAT_SHARE,
	FN_CUM_SHARE,
	FN_TOTAL, /* total(profiles) -> costs */
	FN_RATE, /* rate(sel[5m]) -> profiles, of numbers costs; so do some *_over_time */
	FN_MEAN_RATE, /* mean_rate(sel[1h]) -> profiles */
	FN_FILE, /* file("name"[, "type"]) -> profiles */
	FN_TAGROOT, /* tagroot(profiles, "label,...") -> profiles */
	FN_TAGLEAF,
	/* filters of profiles: promql/profiles/filter.h */
	FN_FOCUS, /* focus(profiles, expression) -> profiles */
	FN_IGNORE,
	FN_HIDE,
	FN_SHOW,
	FN_SHOW_FROM,
	FN_PRUNE_FROM,
	FN_TAGFOCUS,
	FN_TAGIGNORE,
	FN_NOINLINES, /* noinlines(profiles) -> profiles */
	FN_CALLERS,
	FN_CALLEES,
	/* aggregations of costs, by and without */
	FN_TOPK, /* topk(k, costs) */
	FN_BOTTOMK,
	FN_SUM, /* sum(costs) */
	FN_AVG,
	FN_MIN,
	FN_MAX,
	FN_COUNT,
	FN_GROUP,
	FN_STDDEV,
	FN_STDVAR,
	FN_QUANTILE, /* quantile(q, costs) */
	FN_COUNT_VALUES, /* count_values("label", costs) */
	FN_LIMITK, /* limitk(k, costs) */
	FN_LIMIT_RATIO, /* limit_ratio(r, costs) */
	/* plain */
	FN_SCALAR, /* scalar(costs) -> scalar; NaN unless there is exactly one */
	FN_VECTOR, /* vector(scalar) -> costs */
	FN_TIME, /* time() -> scalar, seconds */
	FN_PI, /* pi() -> scalar */
	FN_START, /* start() -> scalar: of the query, as @ has it */
	FN_END,
	FN_STEP,
	FN_RANGE,
	FN_MIN_OF, /* min_of(a, b) -> scalar */
	FN_MAX_OF,
	FN_TIMESTAMP, /* timestamp(costs) */
	FN_ABS, /* abs(costs) -> costs */
	FN_CEIL,
	FN_FLOOR,
	FN_SGN,
	FN_SQRT,
	FN_EXP,
	FN_LN,
	FN_LOG2,
	FN_LOG10,
	FN_SIN,
	FN_COS,
	FN_TAN,
	FN_ASIN,
	FN_ACOS,
	FN_ATAN,
	FN_SINH,
	FN_COSH,
	FN_TANH,
	FN_ASINH,
	FN_ACOSH,
	FN_ATANH,
	FN_DEG,
	FN_RAD,
	FN_ROUND, /* round(costs[, to_nearest]) */
	FN_CLAMP, /* clamp(costs, min, max) */
	FN_CLAMP_MIN, /* clamp_min(costs, min) */
	FN_CLAMP_MAX,
	FN_SORT,
	FN_SORT_DESC,
	FN_SORT_BY_LABEL, /* sort_by_label(costs, label...) */
	FN_SORT_BY_LABEL_DESC,
	FN_MINUTE, /* minute([costs]): parts of a date, UTC */
	FN_HOUR,
	FN_DAY_OF_WEEK,
	FN_DAY_OF_MONTH,
	FN_DAY_OF_YEAR,
	FN_DAYS_IN_MONTH,
	FN_MONTH,
	FN_YEAR,
	FN_LABEL_REPLACE, /* label_replace(costs, dst, replacement, src, regex) */
	FN_LABEL_JOIN, /* label_join(costs, dst, separator, src...) */
	FN_ABSENT, /* absent(series) */
	/* over windows: f(sel[5m]), f(costs[1h:5m]); of profiles as functions.c says */
	FN_SUM_OVER_TIME,
	FN_AVG_OVER_TIME,
	FN_MIN_OVER_TIME,
	FN_MAX_OVER_TIME,
	FN_LAST_OVER_TIME,
	FN_COUNT_OVER_TIME,
	FN_PRESENT_OVER_TIME,
	FN_ABSENT_OVER_TIME,
	FN_STDDEV_OVER_TIME, /* from here on of numbers alone */
	FN_STDVAR_OVER_TIME,
	FN_QUANTILE_OVER_TIME, /* quantile_over_time(q, sel[5m]) */
	FN_FIRST_OVER_TIME,
	FN_MAD_OVER_TIME,
	FN_TS_OF_FIRST_OVER_TIME,
	FN_TS_OF_LAST_OVER_TIME,
	FN_TS_OF_MIN_OVER_TIME,
	FN_TS_OF_MAX_OVER_TIME,
	FN_CHANGES,
	FN_RESETS,
	FN_INCREASE,
	FN_IRATE,
	FN_DELTA,
	FN_IDELTA,
	FN_DERIV,
	FN_PREDICT_LINEAR, /* predict_linear(sel[5m], seconds) */
	FN_HOLT_WINTERS, /* holt_winters(sel[5m], smoothing, trend) */
	FN_DOUBLE_EXPONENTIAL_SMOOTHING,
	FN_INTEGRAL, /* integral(sel[5m][, rule]) */
	/* on windows of profiles */
	FN_CHANGED, /* changed(new[10m], base[1h][, p]) -> costs */
	FN_CHANGED_INTERVAL,
	FUNCTIONS
};

#define FUNCTION_ARGS 8 /* slots of a row; a variadic function repeats its last one */

enum function_flags {
	FUNCTION_AGGREGATION = 1, /* a keyword of PromQL: any case; by, without before or behind */
	FUNCTION_BY = 2,
	FUNCTION_WITHOUT = 4,
	FUNCTION_ON = 8, /* on and ignoring */
	FUNCTION_FRAMES_BY = 16, /* by may name frame fields as well as labels */
	FUNCTION_FILTER = 32, /* (profiles[, expression]): promql/profiles/filter.h */
};

/* Beside the VALUE_* bits of an argument: what the argument must be as an expression. */
enum argument_flags {
	ARG_SELECTOR = 256, /* a selector, written here */
	ARG_WINDOW = 512, /* a selector with a window: sel[5m] */
	/* The meaning of a string, for editors; the check does not look at these. */
	ARG_LABEL = 1024, /* the name of a label */
	ARG_FUNCTIONS = 2048, /* an expression that functions of the profiled code match */
	ARG_TAGS = 4096, /* as tagfocus takes it */
};

struct function {
	const char *name;
	enum function_id id;
	unsigned flags;
	unsigned args_min, args_max; /* args_max may pass FUNCTION_ARGS: variadic */
	unsigned args[FUNCTION_ARGS]; /* VALUE_* accepted, and ARG_* */
	unsigned result; /* VALUE_* */
	const char *usage; /* "flat [by (field, ...)] (profiles[, {frame matchers}])" */
	const char *help; /* one line */
};

extern const struct function functions[FUNCTIONS]; /* functions[id].id == id */

/* The row, or NULL. Aggregations are found in any case, functions as written. */
const struct function *function_find(struct str name);

/* Fields of a frame, which `by` and matchers of flat() and cum() may name. */
enum frame_field {
	FRAME_FUNCTION,
	FRAME_SYSTEM_NAME,
	FRAME_FILENAME,
	FRAME_LINE,
	FRAME_ADDRESS,
	FRAME_MAPPING,
	FRAME_BUILD_ID,
	FRAME_FIELDS /* also: none of them */
};

const char *frame_field_name(enum frame_field f);
enum frame_field frame_field_find(struct str name); /* FRAME_FIELDS: not one */

#endif
