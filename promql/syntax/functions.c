#include "promql/syntax/functions.h"

#include <strings.h>

#define PROFILES \
	{ \
		VALUE_PROFILES \
	}
#define COSTS \
	{ \
		VALUE_COSTS \
	}
#define NUMBERS \
	{ \
		VALUE_COSTS | ARG_WINDOW \
	}
#define SERIES \
	{ \
		VALUE_COSTS | VALUE_PROFILES | ARG_WINDOW \
	}
#define EITHER (VALUE_COSTS | VALUE_PROFILES)
#define AGGREGATION (FUNCTION_AGGREGATION | FUNCTION_BY | FUNCTION_WITHOUT)
#define BY_LABEL (FUNCTION_BY | FUNCTION_WITHOUT)
#define BY_FRAME (FUNCTION_BY | FUNCTION_FRAMES_BY)
#define ARGS_ANY 1000 /* more than a query has room for */
#define LABEL (VALUE_STRING | ARG_LABEL)
#define LABELS \
	{ \
		VALUE_COSTS, LABEL, LABEL, LABEL, LABEL, LABEL, LABEL, LABEL \
	}
#define SMOOTHED \
	{ \
		VALUE_COSTS | ARG_WINDOW, VALUE_SCALAR, VALUE_SCALAR \
	}
#define FILTER_OF(what) \
	FUNCTION_FILTER, 2, 2, \
	{ \
		VALUE_PROFILES, VALUE_STRING | (what) \
	}
#define FILTER FILTER_OF(ARG_FUNCTIONS)
#define TAG_FILTER FILTER_OF(ARG_TAGS)

/* clang-format off */
const struct function functions[FUNCTIONS] = {
	{ "merge", FN_MERGE, BY_LABEL, 1, 1, PROFILES, VALUE_PROFILES,
	  "merge [by|without (label, ...)] (profiles)",
	  "the sum of profiles, per set of labels; sample labels can be grouped by as well" },
	{ "diff", FN_DIFF, FUNCTION_ON, 2, 2, { VALUE_PROFILES, VALUE_PROFILES }, VALUE_PROFILES,
	  "diff [on|ignoring (label, ...)] (new, base)",
	  "the signed difference of profiles with equal labels" },
	{ "diff_normalized", FN_DIFF_NORMALIZED, FUNCTION_ON, 2, 2,
	  { VALUE_PROFILES, VALUE_PROFILES }, VALUE_PROFILES,
	  "diff_normalized [on|ignoring (label, ...)] (new, base)",
	  "the difference after scaling the new profile to the total of the base" },
	{ "top", FN_TOP, 0, 2, 2, { VALUE_SCALAR, VALUE_PROFILES }, VALUE_TABLE,
	  "top(k, profiles)",
	  "a table of the k functions with the greatest flat cost, as go tool pprof -top shows it" },
	{ "flat", FN_FLAT, BY_FRAME, 1, 2, { VALUE_PROFILES, VALUE_FRAMES }, VALUE_COSTS,
	  "flat [by (field, ...)] (profiles[, {frame matchers}])",
	  "cost in the function itself" },
	{ "cum", FN_CUM, BY_FRAME, 1, 2, { VALUE_PROFILES, VALUE_FRAMES }, VALUE_COSTS,
	  "cum [by (field, ...)] (profiles[, {frame matchers}])",
	  "cost in the function and its callees, once per stack" },
	{ "flat_share", FN_FLAT_SHARE, BY_FRAME, 1, 2, { VALUE_PROFILES, VALUE_FRAMES }, VALUE_COSTS,
	  "flat_share [by (field, ...)] (profiles[, {frame matchers}])",
	  "flat cost over the total, 0 to 1" },
	{ "cum_share", FN_CUM_SHARE, BY_FRAME, 1, 2, { VALUE_PROFILES, VALUE_FRAMES }, VALUE_COSTS,
	  "cum_share [by (field, ...)] (profiles[, {frame matchers}])",
	  "cumulative cost over the total, 0 to 1" },
	{ "total", FN_TOTAL, 0, 1, 1, PROFILES, VALUE_COSTS,
	  "total(profiles)", "the total cost of each profile" },
	{ "rate", FN_RATE, 0, 1, 1, SERIES, EITHER,
	  "rate(series[window])",
	  "cost per second, corrected for time not profiled; for a counter, growth per second" },
	{ "mean_rate", FN_MEAN_RATE, 0, 1, 1, { VALUE_PROFILES | ARG_WINDOW }, VALUE_PROFILES,
	  "mean_rate(profiles[window])",
	  "cost per second of the window, which begins no earlier than the first profile" },
	{ "file", FN_FILE, 0, 1, 2, { VALUE_STRING, VALUE_STRING }, VALUE_PROFILES,
	  "file(\"name\"[, \"type\"])",
	  "the profile in a file sent with the query or kept on the server" },

	{ "tagroot", FN_TAGROOT, 0, 2, 2, { VALUE_PROFILES, VALUE_STRING | ARG_LABEL }, VALUE_PROFILES,
	  "tagroot(profiles, \"label,...\")",
	  "stacks with the values of these labels as frames at the root" },
	{ "tagleaf", FN_TAGLEAF, 0, 2, 2, { VALUE_PROFILES, VALUE_STRING | ARG_LABEL }, VALUE_PROFILES,
	  "tagleaf(profiles, \"label,...\")",
	  "stacks with the values of these labels as frames at the leaf" },
	{ "focus", FN_FOCUS, FILTER, VALUE_PROFILES,
	  "focus(profiles, \"re\")", "the stacks with a frame whose function or file matches" },
	{ "ignore", FN_IGNORE, FILTER, VALUE_PROFILES,
	  "ignore(profiles, \"re\")", "the stacks without a frame whose function or file matches" },
	{ "hide", FN_HIDE, FILTER, VALUE_PROFILES,
	  "hide(profiles, \"re\")", "stacks without the frames whose function or file matches" },
	{ "show", FN_SHOW, FILTER, VALUE_PROFILES,
	  "show(profiles, \"re\")", "stacks of only the frames whose function or file matches" },
	{ "show_from", FN_SHOW_FROM, FILTER, VALUE_PROFILES,
	  "show_from(profiles, \"re\")",
	  "stacks without the callers above the outermost matching frame (function or file)" },
	{ "prune_from", FN_PRUNE_FROM, FILTER, VALUE_PROFILES,
	  "prune_from(profiles, \"re\")",
	  "stacks without the callees below the innermost matching frame (function)" },
	{ "tagfocus", FN_TAGFOCUS, TAG_FILTER, VALUE_PROFILES,
	  "tagfocus(profiles, \"[key=]re,... or [key=]min:max\")",
	  "the samples with a label that matches, or a number in the range" },
	{ "tagignore", FN_TAGIGNORE, TAG_FILTER, VALUE_PROFILES,
	  "tagignore(profiles, \"[key=]re,... or [key=]min:max\")",
	  "the samples without a label that matches, or a number in the range" },
	{ "noinlines", FN_NOINLINES, FUNCTION_FILTER, 1, 1, PROFILES, VALUE_PROFILES,
	  "noinlines(profiles)",
	  "stacks in which inlined functions are part of the function that they were inlined into" },
	{ "callers", FN_CALLERS, FILTER, VALUE_PROFILES,
	  "callers(profiles, \"re\")",
	  "stacks down to the outermost frame whose function or file matches" },
	{ "callees", FN_CALLEES, FILTER, VALUE_PROFILES,
	  "callees(profiles, \"re\")",
	  "stacks from the outermost frame whose function or file matches" },

	{ "topk", FN_TOPK, AGGREGATION, 2, 2, { VALUE_SCALAR, VALUE_COSTS }, VALUE_COSTS,
	  "topk [by|without (label, ...)] (k, costs)", "the k greatest costs" },
	{ "bottomk", FN_BOTTOMK, AGGREGATION, 2, 2, { VALUE_SCALAR, VALUE_COSTS }, VALUE_COSTS,
	  "bottomk [by|without (label, ...)] (k, costs)", "the k smallest costs" },
	{ "sum", FN_SUM, AGGREGATION, 1, 1, COSTS, VALUE_COSTS,
	  "sum [by|without (label, ...)] (costs)", "the sum of costs" },
	{ "avg", FN_AVG, AGGREGATION, 1, 1, COSTS, VALUE_COSTS,
	  "avg [by|without (label, ...)] (costs)", "the mean of costs" },
	{ "min", FN_MIN, AGGREGATION, 1, 1, COSTS, VALUE_COSTS,
	  "min [by|without (label, ...)] (costs)", "the smallest cost" },
	{ "max", FN_MAX, AGGREGATION, 1, 1, COSTS, VALUE_COSTS,
	  "max [by|without (label, ...)] (costs)", "the greatest cost" },
	{ "count", FN_COUNT, AGGREGATION, 1, 1, COSTS, VALUE_COSTS,
	  "count [by|without (label, ...)] (costs)", "the number of costs" },
	{ "group", FN_GROUP, AGGREGATION, 1, 1, COSTS, VALUE_COSTS,
	  "group [by|without (label, ...)] (costs)", "1 per set of labels" },
	{ "stddev", FN_STDDEV, AGGREGATION, 1, 1, COSTS, VALUE_COSTS,
	  "stddev [by|without (label, ...)] (costs)", "the standard deviation of costs" },
	{ "stdvar", FN_STDVAR, AGGREGATION, 1, 1, COSTS, VALUE_COSTS,
	  "stdvar [by|without (label, ...)] (costs)", "the variance of costs" },
	{ "quantile", FN_QUANTILE, AGGREGATION, 2, 2, { VALUE_SCALAR, VALUE_COSTS }, VALUE_COSTS,
	  "quantile [by|without (label, ...)] (q, costs)", "the q-quantile of costs, 0 to 1" },
	{ "count_values", FN_COUNT_VALUES, AGGREGATION, 2, 2, { LABEL, VALUE_COSTS },
	  VALUE_COSTS, "count_values [by|without (label, ...)] (\"label\", costs)",
	  "the number of costs per value; the value becomes a label" },
	{ "limitk", FN_LIMITK, AGGREGATION, 2, 2, { VALUE_SCALAR, VALUE_COSTS }, VALUE_COSTS,
	  "limitk [by|without (label, ...)] (k, costs)", "the first k costs" },
	{ "limit_ratio", FN_LIMIT_RATIO, AGGREGATION, 2, 2, { VALUE_SCALAR, VALUE_COSTS }, VALUE_COSTS,
	  "limit_ratio [by|without (label, ...)] (ratio, costs)",
	  "about this part of the costs, always the same; -0.9 is all but those of 0.1" },

	{ "scalar", FN_SCALAR, 0, 1, 1, COSTS, VALUE_SCALAR,
	  "scalar(costs)", "the value of the only element; NaN unless there is exactly one" },
	{ "vector", FN_VECTOR, 0, 1, 1, { VALUE_SCALAR }, VALUE_COSTS,
	  "vector(scalar)", "the number as costs: one element without labels" },
	{ "time", FN_TIME, 0, 0, 0, { 0 }, VALUE_SCALAR,
	  "time()", "the time of evaluation in seconds since 1970" },
	{ "pi", FN_PI, 0, 0, 0, { 0 }, VALUE_SCALAR, "pi()", "the ratio of a circle to its diameter" },
	{ "start", FN_START, 0, 0, 0, { 0 }, VALUE_SCALAR,
	  "start()", "the time at which the query begins, in seconds" },
	{ "end", FN_END, 0, 0, 0, { 0 }, VALUE_SCALAR,
	  "end()", "the time at which the query ends, in seconds" },
	{ "step", FN_STEP, 0, 0, 0, { 0 }, VALUE_SCALAR,
	  "step()", "the seconds between two steps of the query, 0 at one time" },
	{ "range", FN_RANGE, 0, 0, 0, { 0 }, VALUE_SCALAR,
	  "range()", "the seconds between beginning and end of the query" },
	{ "min_of", FN_MIN_OF, 0, 2, 2, { VALUE_SCALAR, VALUE_SCALAR }, VALUE_SCALAR,
	  "min_of(a, b)", "the smaller of two numbers" },
	{ "max_of", FN_MAX_OF, 0, 2, 2, { VALUE_SCALAR, VALUE_SCALAR }, VALUE_SCALAR,
	  "max_of(a, b)", "the greater of two numbers" },
	{ "timestamp", FN_TIMESTAMP, 0, 1, 1, COSTS, VALUE_COSTS,
	  "timestamp(costs)", "the time of each value in seconds since 1970" },
	{ "abs", FN_ABS, 0, 1, 1, COSTS, VALUE_COSTS,
	  "abs(costs)", "each cost without its sign" },
	{ "ceil", FN_CEIL, 0, 1, 1, COSTS, VALUE_COSTS,
	  "ceil(costs)", "each cost rounded up to a whole number" },
	{ "floor", FN_FLOOR, 0, 1, 1, COSTS, VALUE_COSTS,
	  "floor(costs)", "each cost rounded down to a whole number" },
	{ "sgn", FN_SGN, 0, 1, 1, COSTS, VALUE_COSTS,
	  "sgn(costs)", "1, 0 or -1: the sign of each cost" },
	{ "sqrt", FN_SQRT, 0, 1, 1, COSTS, VALUE_COSTS, "sqrt(costs)", "the square root" },
	{ "exp", FN_EXP, 0, 1, 1, COSTS, VALUE_COSTS, "exp(costs)", "e to the power of each cost" },
	{ "ln", FN_LN, 0, 1, 1, COSTS, VALUE_COSTS, "ln(costs)", "the natural logarithm" },
	{ "log2", FN_LOG2, 0, 1, 1, COSTS, VALUE_COSTS, "log2(costs)", "the logarithm to base 2" },
	{ "log10", FN_LOG10, 0, 1, 1, COSTS, VALUE_COSTS, "log10(costs)", "the logarithm to base 10" },
	{ "sin", FN_SIN, 0, 1, 1, COSTS, VALUE_COSTS,
	  "sin(costs)", "the sine of each cost, in radians" },
	{ "cos", FN_COS, 0, 1, 1, COSTS, VALUE_COSTS,
	  "cos(costs)", "the cosine of each cost, in radians" },
	{ "tan", FN_TAN, 0, 1, 1, COSTS, VALUE_COSTS,
	  "tan(costs)", "the tangent of each cost, in radians" },
	{ "asin", FN_ASIN, 0, 1, 1, COSTS, VALUE_COSTS, "asin(costs)", "the arcsine, in radians" },
	{ "acos", FN_ACOS, 0, 1, 1, COSTS, VALUE_COSTS, "acos(costs)", "the arccosine, in radians" },
	{ "atan", FN_ATAN, 0, 1, 1, COSTS, VALUE_COSTS, "atan(costs)", "the arctangent, in radians" },
	{ "sinh", FN_SINH, 0, 1, 1, COSTS, VALUE_COSTS, "sinh(costs)", "the hyperbolic sine" },
	{ "cosh", FN_COSH, 0, 1, 1, COSTS, VALUE_COSTS, "cosh(costs)", "the hyperbolic cosine" },
	{ "tanh", FN_TANH, 0, 1, 1, COSTS, VALUE_COSTS, "tanh(costs)", "the hyperbolic tangent" },
	{ "asinh", FN_ASINH, 0, 1, 1, COSTS, VALUE_COSTS,
	  "asinh(costs)", "the inverse hyperbolic sine" },
	{ "acosh", FN_ACOSH, 0, 1, 1, COSTS, VALUE_COSTS,
	  "acosh(costs)", "the inverse hyperbolic cosine" },
	{ "atanh", FN_ATANH, 0, 1, 1, COSTS, VALUE_COSTS,
	  "atanh(costs)", "the inverse hyperbolic tangent" },
	{ "deg", FN_DEG, 0, 1, 1, COSTS, VALUE_COSTS, "deg(costs)", "radians as degrees" },
	{ "rad", FN_RAD, 0, 1, 1, COSTS, VALUE_COSTS, "rad(costs)", "degrees as radians" },
	{ "round", FN_ROUND, 0, 1, 2, { VALUE_COSTS, VALUE_SCALAR }, VALUE_COSTS,
	  "round(costs[, to_nearest])", "each cost rounded to a multiple of to_nearest, else of 1" },
	{ "clamp", FN_CLAMP, 0, 3, 3, { VALUE_COSTS, VALUE_SCALAR, VALUE_SCALAR }, VALUE_COSTS,
	  "clamp(costs, min, max)", "each cost, at least min and at most max" },
	{ "clamp_min", FN_CLAMP_MIN, 0, 2, 2, { VALUE_COSTS, VALUE_SCALAR }, VALUE_COSTS,
	  "clamp_min(costs, min)", "each cost, at least min" },
	{ "clamp_max", FN_CLAMP_MAX, 0, 2, 2, { VALUE_COSTS, VALUE_SCALAR }, VALUE_COSTS,
	  "clamp_max(costs, max)", "each cost, at most max" },
	{ "sort", FN_SORT, 0, 1, 1, COSTS, VALUE_COSTS, "sort(costs)", "the smallest cost first" },
	{ "sort_desc", FN_SORT_DESC, 0, 1, 1, COSTS, VALUE_COSTS,
	  "sort_desc(costs)", "the greatest cost first" },
	{ "sort_by_label", FN_SORT_BY_LABEL, 0, 1, ARGS_ANY, LABELS, VALUE_COSTS,
	  "sort_by_label(costs[, \"label\", ...])", "by these labels, numbers in them by value" },
	{ "sort_by_label_desc", FN_SORT_BY_LABEL_DESC, 0, 1, ARGS_ANY, LABELS, VALUE_COSTS,
	  "sort_by_label_desc(costs[, \"label\", ...])", "by these labels, in descending order" },
	{ "minute", FN_MINUTE, 0, 0, 1, COSTS, VALUE_COSTS,
	  "minute([costs])", "the minute of the hour, 0 to 59 (UTC) of times in seconds, else of now" },
	{ "hour", FN_HOUR, 0, 0, 1, COSTS, VALUE_COSTS,
	  "hour([costs])", "the hour of the day, 0 to 23 (UTC) of times in seconds, else of now" },
	{ "day_of_week", FN_DAY_OF_WEEK, 0, 0, 1, COSTS, VALUE_COSTS,
	  "day_of_week([costs])",
	  "the day of the week, 0 is Sunday (UTC) of times in seconds, else of now" },
	{ "day_of_month", FN_DAY_OF_MONTH, 0, 0, 1, COSTS, VALUE_COSTS,
	  "day_of_month([costs])",
	  "the day of the month, 1 to 31 (UTC) of times in seconds, else of now" },
	{ "day_of_year", FN_DAY_OF_YEAR, 0, 0, 1, COSTS, VALUE_COSTS,
	  "day_of_year([costs])",
	  "the day of the year, 1 to 366 (UTC) of times in seconds, else of now" },
	{ "days_in_month", FN_DAYS_IN_MONTH, 0, 0, 1, COSTS, VALUE_COSTS,
	  "days_in_month([costs])",
	  "how many days the month has (UTC) of times in seconds, else of now" },
	{ "month", FN_MONTH, 0, 0, 1, COSTS, VALUE_COSTS,
	  "month([costs])", "the month, 1 to 12 (UTC) of times in seconds, else of now" },
	{ "year", FN_YEAR, 0, 0, 1, COSTS, VALUE_COSTS,
	  "year([costs])", "the year (UTC) of times in seconds, else of now" },
	{ "label_replace", FN_LABEL_REPLACE, 0, 5, 5,
	  { VALUE_COSTS, LABEL, VALUE_STRING, LABEL, VALUE_STRING }, VALUE_COSTS,
	  "label_replace(costs, \"destination\", \"replacement\", \"source\", \"re\")",
	  "where the source label matches as a whole, the destination label is set; $1 is a group" },
	{ "label_join", FN_LABEL_JOIN, 0, 3, ARGS_ANY,
	  { VALUE_COSTS, LABEL, VALUE_STRING, LABEL, LABEL, LABEL, LABEL, LABEL }, VALUE_COSTS,
	  "label_join(costs, \"destination\", \"separator\", \"source\", ...)",
	  "the destination label is set to the source labels' values, joined" },
	{ "absent", FN_ABSENT, 0, 1, 1, { VALUE_COSTS | VALUE_PROFILES }, VALUE_COSTS,
	  "absent(costs or profiles)", "1 if there is no element" },

	{ "sum_over_time", FN_SUM_OVER_TIME, 0, 1, 1, SERIES, EITHER,
	  "sum_over_time(series[window])", "the sum of the values, or of the profiles" },
	{ "avg_over_time", FN_AVG_OVER_TIME, 0, 1, 1, SERIES, EITHER,
	  "avg_over_time(series[window])", "the mean of the values, or of the profiles" },
	{ "min_over_time", FN_MIN_OVER_TIME, 0, 1, 1, SERIES, EITHER,
	  "min_over_time(series[window])",
	  "the smallest value, or the profile with the smallest total" },
	{ "max_over_time", FN_MAX_OVER_TIME, 0, 1, 1, SERIES, EITHER,
	  "max_over_time(series[window])",
	  "the greatest value, or the profile with the greatest total" },
	{ "last_over_time", FN_LAST_OVER_TIME, 0, 1, 1, SERIES, EITHER,
	  "last_over_time(series[window])", "the last value, or profile" },
	{ "count_over_time", FN_COUNT_OVER_TIME, 0, 1, 1, SERIES, VALUE_COSTS,
	  "count_over_time(series[window])", "the number of values or profiles" },
	{ "present_over_time", FN_PRESENT_OVER_TIME, 0, 1, 1, SERIES, VALUE_COSTS,
	  "present_over_time(series[window])", "1 per series with values or profiles" },
	{ "absent_over_time", FN_ABSENT_OVER_TIME, 0, 1, 1, SERIES, VALUE_COSTS,
	  "absent_over_time(series[window])", "1 if no series has values or profiles" },
	{ "stddev_over_time", FN_STDDEV_OVER_TIME, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "stddev_over_time(numbers[window])", "the standard deviation of the values" },
	{ "stdvar_over_time", FN_STDVAR_OVER_TIME, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "stdvar_over_time(numbers[window])", "the variance of the values" },
	{ "quantile_over_time", FN_QUANTILE_OVER_TIME, 0, 2, 2,
	  { VALUE_SCALAR, VALUE_COSTS | ARG_WINDOW }, VALUE_COSTS,
	  "quantile_over_time(q, numbers[window])", "the q-quantile of the values, 0 to 1" },
	{ "first_over_time", FN_FIRST_OVER_TIME, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "first_over_time(numbers[window])", "the first value" },
	{ "mad_over_time", FN_MAD_OVER_TIME, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "mad_over_time(numbers[window])", "the median distance from the median" },
	{ "ts_of_first_over_time", FN_TS_OF_FIRST_OVER_TIME, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "ts_of_first_over_time(numbers[window])", "the time of the first value, in seconds" },
	{ "ts_of_last_over_time", FN_TS_OF_LAST_OVER_TIME, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "ts_of_last_over_time(numbers[window])", "the time of the last value, in seconds" },
	{ "ts_of_min_over_time", FN_TS_OF_MIN_OVER_TIME, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "ts_of_min_over_time(numbers[window])", "the time of the last smallest value, in seconds" },
	{ "ts_of_max_over_time", FN_TS_OF_MAX_OVER_TIME, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "ts_of_max_over_time(numbers[window])", "the time of the last greatest value, in seconds" },
	{ "changes", FN_CHANGES, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "changes(numbers[window])", "the number of changes of the value" },
	{ "resets", FN_RESETS, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "resets(numbers[window])", "the number of times the value fell" },
	{ "increase", FN_INCREASE, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "increase(numbers[window])", "growth of a counter, extrapolated to the window's ends" },
	{ "irate", FN_IRATE, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "irate(numbers[window])", "growth of a counter per second between the last two values" },
	{ "delta", FN_DELTA, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "delta(numbers[window])", "last minus first value, extrapolated to the window's ends" },
	{ "idelta", FN_IDELTA, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "idelta(numbers[window])", "the difference of the last two values" },
	{ "deriv", FN_DERIV, 0, 1, 1, NUMBERS, VALUE_COSTS,
	  "deriv(numbers[window])", "growth per second of a line through the values" },
	{ "predict_linear", FN_PREDICT_LINEAR, 0, 2, 2,
	  { VALUE_COSTS | ARG_WINDOW, VALUE_SCALAR }, VALUE_COSTS,
	  "predict_linear(numbers[window], seconds)",
	  "the value so many seconds from now, on a line through the values" },
	{ "holt_winters", FN_HOLT_WINTERS, 0, 3, 3, SMOOTHED, VALUE_COSTS,
	  "holt_winters(numbers[window], smoothing, trend)",
	  "the old name of double_exponential_smoothing()" },
	{ "double_exponential_smoothing", FN_DOUBLE_EXPONENTIAL_SMOOTHING, 0, 3, 3, SMOOTHED,
	  VALUE_COSTS, "double_exponential_smoothing(numbers[window], smoothing, trend)",
	  "the smoothed last value: both factors between 0 and 1, greater for newer values" },
	{ "integral", FN_INTEGRAL, 0, 1, 2, { VALUE_COSTS | ARG_WINDOW, VALUE_SCALAR }, VALUE_COSTS,
	  "integral(numbers[window][, rule])",
	  "the area below the values, in seconds times value; rule 0 takes left, 1 right ones" },

	{ "changed", FN_CHANGED, 0, 2, 3,
	  { VALUE_PROFILES | ARG_SELECTOR | ARG_WINDOW, VALUE_PROFILES | ARG_SELECTOR | ARG_WINDOW,
	    VALUE_SCALAR }, VALUE_COSTS,
	  "changed(new[window], base[window][, p])",
	  "new minus base flat share of the functions whose share changed; p: false alarm rate" },
	{ "changed_interval", FN_CHANGED_INTERVAL, 0, 2, 3,
	  { VALUE_PROFILES | ARG_SELECTOR | ARG_WINDOW, VALUE_PROFILES | ARG_SELECTOR | ARG_WINDOW,
	    VALUE_SCALAR }, VALUE_COSTS,
	  "changed_interval(new[window], base[window][, p])",
	  "smallest (bound=low) and largest (high) change of each function's flat share" },
};
/* clang-format on */

const struct function *function_find(struct str name)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const struct function *f = &functions[i];

		if (strlen(f->name) != name.len)
			continue;
		if (memcmp(f->name, name.ptr, name.len) == 0)
			return f;
		if ((f->flags & FUNCTION_AGGREGATION) && str_eq_nocase(str_of(f->name), name))
			return f;
	}
	return NULL;
}

static const char *const frame_fields[FRAME_FIELDS] = {
	[FRAME_FUNCTION] = "function",
	[FRAME_SYSTEM_NAME] = "system_name",
	[FRAME_FILENAME] = "filename",
	[FRAME_LINE] = "line",
	[FRAME_ADDRESS] = "address",
	[FRAME_MAPPING] = "mapping",
	[FRAME_BUILD_ID] = "build_id",
};

const char *frame_field_name(enum frame_field f)
{
	return frame_fields[f];
}

enum frame_field frame_field_find(struct str name)
{
	unsigned f = 0;

	while (f < FRAME_FIELDS && !str_is(name, frame_fields[f]))
		f++;
	return (enum frame_field)f;
}
