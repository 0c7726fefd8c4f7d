#include "cmd/epitool/test_rules/file.h"

#include "base/clock.h"
#include "cmd/epitool/test_rules/print.h"
#include "tests/check.h"
#include "tsdb/columns/number_chunk.h"

static void print_values(struct buf *out, const struct test_values *v)
{
	for (size_t i = 0; i < v->n; i++) {
		buf_add_cstr(out, i ? " " : "");
		if (test_is_gap(v->v[i]))
			buf_add_cstr(out, "_");
		else if (number_is_stale(v->v[i]))
			buf_add_cstr(out, "stale");
		else
			buf_printf(out, "%.17g", v->v[i]);
	}
}

TEST(values)
{
	/* clang-format off */
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "" },
		{ "1", "1" },
		{ "  1\t2 \n3 ", "1 2 3" },
		{ "1x0", "1" },
		{ "1x2", "1 1 1" },
		{ "1+2x3", "1 3 5 7" },
		{ "1-2x2", "1 -1 -3" },
		{ "-1-2x1", "-1 -3" },
		{ "+4+1x1", "4 5" },
		{ "_", "_" },
		{ "_x0 1", "1" },
		{ "_x3 1", "_ _ _ 1" },
		{ "1 stale 2", "1 stale 2" },
		{ "0x4", "0 0 0 0 0" },
		{ ".5 1. 1e3 1E-1x1", "0.5 1 1000 0.10000000000000001 0.10000000000000001" },
		{ "0+0.1x3", "0 0.10000000000000001 0.20000000000000001 0.30000000000000004" },
		{ "Inf -inf +Inf", "inf -inf inf" },
		{ "NaN", "nan" },
		{ "1+infx1", "1 inf" },
		{ "x", "\"x\" is no value: 1, 1+2x3, _, _x3, stale" },
		{ "1+2", "\"1+2\" is no value: 1, 1+2x3, _, _x3, stale" },
		{ "1+x3", "\"1+x3\" is no value: 1, 1+2x3, _, _x3, stale" },
		{ "1x", "\"1x\" is no value: 1, 1+2x3, _, _x3, stale" },
		{ "1x-1", "\"1x-1\" is no value: 1, 1+2x3, _, _x3, stale" },
		{ "stalex2", "\"stalex2\" is no value: 1, 1+2x3, _, _x3, stale" },
		{ "1 1e", "\"1e\" is no value: 1, 1+2x3, _, _x3, stale" },
		{ "--1", "\"--1\" is no value: 1, 1+2x3, _, _x3, stale" },
		{ "1x1000000", "more than 1000000 values" },
		{ "1x99999999999999999999", "\"1x99999999999999999999\" is no value: 1, 1+2x3, _, _x3, "
					    "stale" },
		{ "_x1000001", "more than 1000000 values" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test_values v;
		struct buf out = { 0 };
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		if (test_values_parse(&a, str_of(cases[i].text), &v, &err))
			buf_add_cstr(&out, err.msg);
		else
			print_values(&out, &v);
		CHECK_STR(buf_str(&out), cases[i].want);
		buf_release(&out);
		arena_release(&a);
	}
}

TEST(metrics)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "up", "{__name__=\"up\"}" },
		{ " up{} ", "{__name__=\"up\"}" },
		{ "", "{}" },
		{ "{}", "{}" },
		{ "{b=\"2\", a='1'}", "{a=\"1\", b=\"2\"}" },
		{ "job:x:y{a=\"q\\\"r\"}", "{__name__=\"job:x:y\", a=\"q\\\"r\"}" },
		{ "{a!=\"1\", b=\"2\"}", "a metric has labels with = alone, not !=" },
		{ "up{a=\"1\"", "1:9: unexpected end of query, expected \",\" or \"}\"" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = { 0 };
		struct labels ls;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		if (test_metric_parse(&a, str_of(cases[i].text), &ls, &err))
			buf_add_cstr(&out, err.msg);
		else
			test_print_labels(&out, ls);
		CHECK_STR(buf_str(&out), cases[i].want);
		buf_release(&out);
		arena_release(&a);
	}
}

TEST(stacks)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "main;f 3", "main|f|{} 3 constant" },
		{ "main 0+1x2", "main|{} 0 1 2" },
		{ "operator new(int);f x 1 2 _", "operator new(int)|f x|{} 1 2 _" },
		{ "main;f{page=\"/a;b\"} 1x1", "main|f|{page=\"/a;b\"} 1 1" },
		{ "main;{lambda} 1", "main|{lambda}|{} 1 constant" },
		{ "main", "a stack is written `root;...;leaf VALUE...`" },
		{ "5", "a stack is written `root;...;leaf VALUE...`" },
		{ "main;;f 1", "a frame without a name" },
		{ "main; 1", "a frame without a name" },
		{ "main 1.5", "a stack's values are whole numbers" },
		{ "main stale", "a stack's values are whole numbers" },
		{ "main 1e30", "a stack's values are whole numbers" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = { 0 };
		struct test_stack s;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		if (test_stack_parse(&a, str_of(cases[i].text), &s, &err)) {
			buf_add_cstr(&out, err.msg);
		} else {
			for (size_t k = 0; k < s.frames_n; k++)
				buf_printf(&out, STR_FMT "|", STR_ARG(s.frames[k]));
			test_print_labels(&out, s.labels);
			buf_add_char(&out, ' ');
			print_values(&out, &s.values);
			buf_add_cstr(&out, s.is_constant ? " constant" : "");
		}
		CHECK_STR(buf_str(&out), cases[i].want);
		buf_release(&out);
		arena_release(&a);
	}
}

TEST(faults_of_files_have_their_place)
{
	/* clang-format off */
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "" },
		{ "rule_files: [r.yml]\n", "" },
		{ "nonesuch: 1\n", "t.yml:1:1: field nonesuch not found in type unitTestFile" },
		{ "tests:\n- intervall: 1m\n",
			"t.yml:2:3: field intervall not found in type testGroup; did you mean \"interval\"?" },
		{ "tests:\n- input_series:\n  - series: up{\n    values: 1\n",
			"t.yml:3:13: series: 1:4: unexpected end of query, expected string, "
			"\"}\" or label name" },
		{ "tests:\n- input_series:\n  - series: '{a=\"b\"}'\n    values: 1\n",
			"t.yml:3:5: series: a name is missing" },
		{ "tests:\n- input_series:\n  - series: up\n    values: 1y\n",
			"t.yml:4:13: values: \"1y\" is no value: 1, 1+2x3, _, _x3, stale" },
		{ "tests:\n- alert_rule_test:\n  - eval_time: 1m\n",
			"t.yml:3:5: an item under alert_rule_test misses required attribute alertname" },
		{ "group_eval_order: [a, b, a]\n",
			"t.yml:1:19: group name repeated in evaluation order: a" },
		{ "tests:\n- input_profiles:\n  - series: process_cpu\n",
			"t.yml:3:5: either folded or file must be set" },
		{ "tests:\n- input_profiles:\n  - series: process_cpu\n    folded: a 1\n    file: x\n",
			"t.yml:3:5: either folded or file must be set" },
		{ "tests:\n- input_profiles:\n  - series: odd\n    folded: a 1\n",
			"t.yml:3:5: type: \"odd\" has no known type: "
			"sample_type:sample_unit[:period_type:period_unit]" },
		{ "tests:\n- input_profiles:\n  - series: odd\n    type: a:b:c:d:e\n    folded: a 1\n",
			"t.yml:3:5: type: \"odd\" has no known type: "
			"sample_type:sample_unit[:period_type:period_unit]" },
		{ "tests:\n- input_profiles:\n  - series: process_cpu\n    folded: |-\n      a;b 1\n"
		  "      c\n",
			"t.yml:4:13: folded: line 2: a stack is written `root;...;leaf VALUE...`" },
		{ "tests:\n- input_profiles:\n  - series: process_cpu\n    at: [1m, 2]\n    folded: a 1\n",
			"t.yml:4:14: at: not a valid duration string: \"2\"" },
		{ "tests:\n- input_profiles:\n  - series: process_cpu\n    at: [1m]\n    every: 1m\n"
		  "    folded: a 1\n",
			"t.yml:4:9: at: times are listed, or come every so often from one to another" },
		{ "tests:\n- promql_expr_test:\n  - expr: up\n    exp_samples:\n"
		  "    - labels: up{a>1}\n",
			"t.yml:5:15: labels: 1:5: unexpected \">\", expected \"=\", \"!=\", \"=~\" or "
			"\"!~\"" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test_file *f;
		struct arena a;
		struct err err = { 0 };

		arena_init(&a, 0);
		if (!test_file_parse(&a, "t.yml", str_of(cases[i].text), &f, &err))
			CHECK_INT(f->evaluation_interval_ns, NS_PER_MIN);
		CHECK_STR(str_of(err.msg), cases[i].want);
		arena_release(&a);
	}
}

static const char whole[] =
	"rule_files: [r.yml, /abs/*.yml]\n"
	"evaluation_interval: 30s\n"
	"group_eval_order: [b, a]\n"
	"tests:\n"
	"- name: one\n"
	"  interval: 2m\n"
	"  external_labels: {region: eu}\n"
	"  external_url: http://x\n"
	"  input_series:\n"
	"  - {series: 'up{job=\"a\"}', values: '1 _'}\n"
	"  input_profiles:\n"
	"  - {series: 'process_cpu{job=\"a\"}', folded: 'main;f 1'}\n"
	"  - {series: memory, at: [3m, 1m], interval: 10s, folded: 'main 1 2'}\n"
	"  - {series: odd, type: 'a:b', every: 1m, from: 1m, to: 3m, duration: 5s,\n"
	"     folded: 'main 1'}\n"
	"  - {series: process_cpu, file: x.pb.gz}\n"
	"  alert_rule_test:\n"
	"  - eval_time: 5m\n"
	"    alertname: High\n"
	"    exp_alerts: [{exp_labels: {a: b}, exp_annotations: {c: d}}]\n"
	"  promql_expr_test:\n"
	"  - {expr: up, eval_time: 4m, exp_samples: [{labels: 'up', value: 1.5}]}\n";

static void check_times(const struct test_profiles *p, const char *want)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < p->at_n; i++) {
		buf_add_cstr(&out, i ? " " : "");
		duration_print(&out, p->at_ns[i]);
	}
	buf_add_cstr(&out, ", interval ");
	duration_print(&out, p->interval_ns);
	buf_add_cstr(&out, ", duration ");
	duration_print(&out, p->duration_ns);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
}

TEST(a_whole_file)
{
	struct buf out = { 0 };
	struct test_group *g;
	struct test_file *f;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(test_file_parse(&a, "dir/t.yml", str_of(whole), &f, &err), &err);
	REQUIRE(f->rule_files_n == 2 && f->order_n == 2 && f->tests_n == 1);
	CHECK_STR(f->rule_files[0], "dir/r.yml");
	CHECK_STR(f->rule_files[1], "/abs/*.yml");
	CHECK_INT(f->evaluation_interval_ns, 30 * NS_PER_S);
	g = &f->tests[0];
	CHECK_STR(g->name, "one");
	CHECK_STR(g->external_url, "http://x");
	CHECK_INT(g->end_ns, 5 * NS_PER_MIN);
	REQUIRE(g->series_n == 1 && g->profiles_n == 4 && g->alerts_n == 1 && g->exprs_n == 1);
	CHECK_INT(g->series[0].values.n, 2);
	check_times(&g->profiles[0], "2m 4m, interval 2m, duration 2m");
	check_times(&g->profiles[1], "1m 3m, interval 10s, duration 0s");
	check_times(&g->profiles[2], "1m 2m 3m, interval 1m, duration 5s");
	CHECK_STR(g->profiles[3].file, "dir/x.pb.gz");
	CHECK_STR(g->profiles[1].sample_type, "inuse_space");
	test_print_alerts(&out, g->alerts[0].v, g->alerts[0].n);
	CHECK_STR(buf_str(&out),
		"[\n            0:\n              Labels:{a=\"b\", alertname=\"High\"}\n"
		"              Annotations:{c=\"d\"}\n            ]");
	buf_clear(&out);
	test_print_samples(&out, g->exprs[0].v, g->exprs[0].n);
	CHECK_STR(buf_str(&out), "{__name__=\"up\"} 1.5E+00");
	buf_release(&out);
	arena_release(&a);
}

TEST(spans_and_values_as_go_prints_them)
{
	static const struct {
		int64_t ns;
		const char *want;
	} spans[] = {
		{ 0, "0s" },
		{ 500 * NS_PER_MS, "500ms" },
		{ 90 * NS_PER_S, "1m30s" },
		{ NS_PER_HOUR, "1h0m0s" },
		{ NS_PER_DAY + 1500 * NS_PER_MS, "24h0m1.5s" },
	};
	static const struct {
		double v;
		const char *want;
	} values[] = {
		{ 0, "{} 0E+00" },
		{ 0.1, "{} 1E-01" },
		{ 12345.678, "{} 1.2345678E+04" },
		{ -1e300, "{} -1E+300" },
		{ 0.30000000000000004, "{} 3.0000000000000004E-01" },
		{ __builtin_nan(""), "{} NaN" },
		{ -__builtin_inf(), "{} -Inf" },
	};
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		buf_clear(&out);
		test_print_span(&out, spans[i].ns);
		CHECK_STR(buf_str(&out), spans[i].want);
	}
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		buf_clear(&out);
		test_print_samples(&out, &(struct test_sample){ .value = values[i].v }, 1);
		CHECK_STR(buf_str(&out), values[i].want);
	}
	buf_release(&out);
}
