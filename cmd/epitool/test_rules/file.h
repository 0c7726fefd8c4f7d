/*
 * Files of `epitool test rules`: promtool's format, and profiles beside numbers.
 *
 * Values expand as in promtool: `1+2x3` is 1 3 5 7, `_` leaves a time out, `_x3` three, `stale`
 * ends the series; a step is added again and again, so that a float drifts as it does there.
 *
 * Units:     nanoseconds since the test's beginning, which is 1970.
 * Errors:    ERR_INVALID and ERR_LIMIT "FILE:LINE:COLUMN: message", strict: unknown fields too.
 * Ownership: everything lives in the arena given.
 * Threads:   values.
 * Source:    Prometheus's cmd/promtool/unittest.go.
 */
#ifndef CMD_EPITOOL_TEST_RULES_FILE_H
#define CMD_EPITOOL_TEST_RULES_FILE_H

#include "base/labels.h"
#include "base/yaml/yaml.h"

#define TEST_VALUES_MAX 1000000u /* of one series */
#define TEST_FRAMES_MAX 512u /* of one stack */

struct test_values {
	double *v; /* one that is left out: test_is_gap */
	size_t n;
};
bool test_is_gap(double value);

struct test_series {
	struct labels labels;
	struct test_values values;
};

struct test_stack {
	struct str *frames; /* root first */
	size_t frames_n;
	struct labels labels; /* of the sample */
	struct test_values values;
	bool is_constant; /* one value, for every time */
};

struct test_profiles {
	struct labels labels;
	struct str sample_type, sample_unit, period_type, period_unit;
	bool is_level; /* a gauge: its profiles have no duration */
	int64_t interval_ns, duration_ns;
	int64_t *at_ns; /* ascending */
	size_t at_n;
	struct test_stack *stacks;
	size_t stacks_n;
	struct str file; /* a pprof file instead of stacks, its path; else empty */
};

struct test_alert {
	struct labels labels, annotations;
};

struct test_alert_case {
	int64_t eval_time_ns;
	struct str alertname;
	struct test_alert *v;
	size_t n;
};

struct test_sample {
	struct labels labels; /* with __name__ where there is one */
	double value;
};

struct test_expr_case {
	struct str expr;
	int64_t eval_time_ns;
	struct test_sample *v;
	size_t n;
};

struct test_group {
	struct str name, external_url;
	int64_t interval_ns;
	struct labels external_labels;
	struct test_series *series;
	struct test_profiles *profiles;
	struct test_alert_case *alerts;
	struct test_expr_case *exprs;
	size_t series_n, profiles_n, alerts_n, exprs_n;
	int64_t end_ns; /* the latest eval_time */
};

struct test_file {
	struct str *rule_files; /* relative ones with the file's directory in front */
	struct str *order; /* of groups */
	size_t rule_files_n, order_n;
	int64_t evaluation_interval_ns;
	struct test_group *tests;
	size_t tests_n;
};

MUST_CHECK enum err_code test_file_parse(
	struct arena *a, const char *path, struct str text, struct test_file **out, struct err *err);

/* ---- the notations inside of strings; faults without a place ---- */

/* Whitespace separated; `n_max` of them at most. */
MUST_CHECK enum err_code test_values_parse(
	struct arena *a, struct str text, struct test_values *out, struct err *err);
/* name{a="b"}, {a="b"}, {} or nothing. */
MUST_CHECK enum err_code test_metric_parse(
	struct arena *a, struct str text, struct labels *out, struct err *err);
/* `root;...;leaf{label="value"} VALUES`: the labels may be missing. */
MUST_CHECK enum err_code test_stack_parse(
	struct arena *a, struct str line, struct test_stack *out, struct err *err);

#endif
