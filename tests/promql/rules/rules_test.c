#include <unistd.h>

#include "base/clock.h"
#include "base/yaml/problems.h"
#include "promql/rules/rules.h"
#include "tests/check.h"
#include "tests/scratch.h"

static const struct rules_load defaults = { .interval_ns = 60 * NS_PER_S };

/* The error of a file named "r.yml", or "". */
static void check(const char *text, const char *want)
{
	struct rule_set *set;
	struct err err = { .msg = "" };

	if (!rule_set_load_text("r.yml", str_of(text), &defaults, &set, &err))
		rule_set_unref(set);
	if (!str_is(str_of(err.msg), want))
		CHECK_FAIL("%s\n    is   %s\n    want %s", text, err.msg, want);
}

#define G "groups:\n- name: g\n  rules:\n"
#define IN(n) "r.yml:" n ": group \"g\", rule 1"

static const struct {
	const char *text, *want;
} wrong[] = {
	{ "", "" },
	{ "groups:\n", "" },
	{ "groups: []", "" },
	{ "group: []",
		"r.yml:1:1: field group not found in type rule_groups; did you mean \"groups\"?" },
	{ "rule_files: [a.yml]",
		"r.yml:1:1: field rule_files not found in type rule_groups: this file is a test: read it "
		"with `epitool test rules`, not as rules" },
	{ "tests: []",
		"r.yml:1:1: field tests not found in type rule_groups: this file is a test: read it with "
		"`epitool test rules`, not as rules" },
	{ "groups: 1", "r.yml:1:9: cannot unmarshal !!int into a list" },
	{ "groups:\n- 1", "r.yml:2:3: cannot unmarshal !!int `1` into rule_group" },
	{ "groups:\n-", "r.yml:2:2: empty or null rule group" },
	{ "groups:\n- rules: []", "r.yml:2:3: Groupname must not be empty" },
	{ "groups:\n- name: a\n- name: b\n- name: a",
		"r.yml:4:9: groupname: \"a\" is repeated in the same file" },
	{ "groups:\n- name: a\n  nonesuch: 1",
		"r.yml:3:3: group \"a\": field nonesuch not found in type rule_group" },
	{ "groups:\n- name: a\n  interval: 1x",
		"r.yml:3:13: group \"a\": unknown unit \"x\" in duration \"1x\"" },
	{ "groups:\n- name: a\n  limit: -1",
		"r.yml:3:10: group \"a\": cannot unmarshal !!int `-1` into uint64" },
	{ "groups:\n- name: a\n  labels: {__name__: c}",
		"r.yml:3:12: group \"a\": invalid label name: __name__" },
	{ G "  - record: x\n    expr: vector(1)", "" },
	{ G "  - alert: x\n    expr: vector(1)", "" },
	{ G "  - record: x\n    expr: 1", "" },
	{ G "  -", "r.yml:4:4: group \"g\", rule 1: empty or null rule" },
	{ G "  - expr: vector(1)",
		"r.yml:4:5: group \"g\", rule 1: one of 'record' or 'alert' must be set" },
	{ G "  - alert: x\n    record: y\n    expr: vector(1)",
		IN("4:5") ", \"x\": only one of 'record' and 'alert' must be set" },
	{ G "  - alert: x", IN("4:5") ", \"x\": field 'expr' must be set in rule" },
	{ G "  - alert: x\n    nonesuch: 1",
		IN("5:5") ", \"x\": field nonesuch not found in type rule" },
	{ G "  - record: a-b.c\n    expr: vector(1)", "" },
	{ G "  - record: 1a\n    expr: '{\"a.b\", \"c.d\"=\"e\"}'\n    labels: {\"f.g\": h}", "" },
	{ G "  - record: 'a{b=\"c\"}'\n    expr: vector(1)",
		IN("4:13") ", \"a{b=\\\"c\\\"}\": braces present in the recording rule name; "
				   "should it be in expr?: a{b=\"c\"}" },
	{ G "  - record: x\n    expr: vector(1)\n    for: 1m",
		IN("6:10") ", \"x\": invalid field 'for' in recording rule" },
	{ G "  - record: x\n    expr: vector(1)\n    keep_firing_for: 1m",
		IN("6:22") ", \"x\": invalid field 'keep_firing_for' in recording rule" },
	{ G "  - record: x\n    expr: vector(1)\n    annotations: {a: b}",
		IN("6:18") ", \"x\": invalid field 'annotations' in recording rule" },
	{ G "  - record: x\n    expr: vector(1)\n    for: 0s", "" },
	{ G "  - alert: x\n    expr: vector(1)\n    labels: {a-b: c, é: d}", "" },
	{ G "  - alert: x\n    expr: vector(1)\n    labels: {\"\": c}",
		IN("6:14") ", \"x\": invalid label name: " },
	{ G "  - alert: x\n    expr: vector(1)\n    labels: {__name__: c}",
		IN("6:14") ", \"x\": invalid label name: __name__" },
	{ G "  - alert: x\n    expr: vector(1)\n    annotations: {a-b: c}", "" },
	{ G "  - alert: x\n    expr: vector(1)\n    annotations: {\"\": c}",
		IN("6:19") ", \"x\": invalid annotation name: " },
	{ G "  - alert: x\n    expr: vector(1)\n    annotations: {a: '{{ $x }}'}",
		IN("6:19") ", \"x\": annotation \"a\": 1:4: undefined variable \"$x\"" },
	{ G "  - alert: x\n    expr: vector(1)\n    labels: {a: '{{ nope }}'}",
		IN("6:14") ", \"x\": label \"a\": 1:4: function \"nope\" not defined" },
	{ G "  - alert: x\n    expr: 1 +",
		IN("5:11") ", \"x\": could not parse expression: 1:4: unexpected end of query" },
	{ G "  - alert: x\n    expr: merge(cpu[5m])",
		IN("5:11") ", \"x\": could not parse expression: an alert's must give costs, got "
				   "profiles" },
	{ G "  - alert: x\n    expr: 1",
		IN("5:11") ", \"x\": could not parse expression: an alert's must give costs, got a "
				   "scalar" },
	{ G "  - record: x\n    expr: top(3, cpu)",
		IN("5:11") ", \"x\": could not parse expression: a recording rule's must give costs, a "
				   "scalar or profiles, got a table" },
	{ G "  - record: x\n    expr: '\"a\"'",
		IN("5:11") ", \"x\": could not parse expression: a recording rule's must give costs, a "
				   "scalar or profiles, got a string" },
	{ G "  - alert: x\n    expr: flat(3)",
		IN("5:11") ", \"x\": could not parse expression: 1:6: flat() needs profiles, "
				   "got a scalar" },
	{ G "  - alert: x\n    alert: y",
		"r.yml:5:5: mapping key \"alert\" already defined at line 4" },
};

/* The warnings of `check rules`, which a server accepts; "" for none. */
TEST(names_are_what_they_are_known_as)
{
	static const struct {
		const char *rules, *want;
	} rows[] = {
		{ "  - alert: x\n    expr: sum(cpu) > 5",
			IN("4:5") ", \"x\": if cpu is a profile: 1:5: sum() needs numbers: use "
					  "sum(total(cpu))" },
		{ "  - alert: x\n    expr: sum(total(cpu)) > 5", "" },
		{ "  - alert: x\n    expr: cpu > 5",
			IN("4:5") ", \"x\": if cpu is a profile: 1:5: operator > does not take profiles and a "
					  "scalar; use total(), flat() or cum() for costs" },
		{ "  - alert: x\n    expr: heap:inuse_space",
			IN("4:5") ", \"x\": if heap:inuse_space is a profile: an alert's expression "
					  "must give costs" },
		{ "  - record: x\n    expr: max_over_time(memory:alloc_space[5m]) > 1",
			IN("4:5") ", \"x\": if memory:alloc_space is a profile: 1:39: operator > does not take "
					  "profiles and a scalar; use total(), flat() or cum() for costs" },
		{ "  - alert: x\n    expr: avg_over_time(goroutine[5m]) > 1",
			IN("4:5") ", \"x\": if goroutine is a profile: 1:30: operator > does not take profiles "
					  "and "
					  "a scalar; use total(), flat() or cum() for costs" },
		{ "  - alert: x\n    expr: sum(up) < 1 or sum(nobody_knows) > 1", "" },
		{ "  - alert: x\n    expr: sum(memory:used:ratio) > 1", "" },
		{ "  - alert: x\n    expr: sum({job=\"a\"}) > 1", "" },
		{ "  - record: cpu\n    expr: sum(up)\n  - alert: x\n    expr: sum(cpu) > 5", "" },
		{ "  - alert: x\n    expr: sum(a:b) > 5\n  - record: a:b\n    expr: merge(cpu[5m])",
			IN("4:5") ", \"x\": a:b is recorded as profiles: 1:5: sum() needs numbers: use "
					  "sum(total(a:b))" },
		{ "  - record: a:b\n    expr: sum(up)\n  - record: c\n    expr: total(a:b)",
			"r.yml:6:5: group \"g\", rule 2, \"c\": a:b is recorded as costs: 1:7: total() "
			"needs profiles, got costs" },
		{ "  - record: a:b\n    expr: unknown\n  - record: c\n    expr: total(a:b)", "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = { .msg = "" };
		struct buf text = { 0 };
		struct rule_set *set;

		buf_printf(&text, G "%s", rows[i].rules);
		REQUIRE_OK(rule_set_load_text("r.yml", buf_str(&text), &defaults, &set, &err), &err);
		if (!rule_set_check_names(set, NULL, &err))
			err.msg[0] = '\0';
		if (!str_is(str_of(err.msg), rows[i].want))
			CHECK_FAIL("%s\n    is   %s\n    want %s", rows[i].rules, err.msg, rows[i].want);
		rule_set_unref(set);
		buf_release(&text);
	}
}

TEST(what_is_wrong_with_a_file)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check(wrong[i].text, wrong[i].want);
}

TEST(a_file)
{
	static const char text[] =
		"groups:\n"
		"- name: costs\n"
		"  interval: 30s\n"
		"  query_offset: 10s\n"
		"  limit: 5\n"
		"  labels: {team: a, severity: low}\n"
		"  rules:\n"
		"  - record: job:cpu:share\n"
		"    expr: cum_share(merge by (job) (cpu[5m]), {function=\"f\"})\n"
		"    labels: {severity: '{{ plain }}'}\n"
		"  - alert: HighShare\n"
		"    expr: |\n"
		"      job:cpu:share   > 0.1\n"
		"    for: 10m\n"
		"    keep_firing_for: 5m\n"
		"    labels: {severity: high}\n"
		"    annotations:\n"
		"      summary: '{{ $labels.job }} at {{ $value | humanizePercentage }}'\n"
		"      description: text\n"
		"- name: other\n"
		"  rules:\n"
		"  - {record: 'job:cpu:merged', expr: 'merge by (job) (cpu[1m])'}\n"
		"  - {record: plain, expr: 'cpu[1m]'}\n"
		"  - {record: numbers, expr: up}\n";
	const struct rule *r;
	struct rule_set *set;
	struct err err;

	REQUIRE_OK(rule_set_load_text("f", str_of(text), &defaults, &set, &err), &err);
	CHECK_INT(set->groups_n, 2);
	CHECK_INT(set->rules_n, 5);
	CHECK_STR(set->groups[0].name, "costs");
	CHECK_STR(set->groups[0].file, "f");
	CHECK_INT(set->groups[0].interval_ns, 30 * NS_PER_S);
	CHECK_INT(set->groups[0].query_offset_ns, 10 * NS_PER_S);
	CHECK_INT(set->groups[0].limit, 5);
	CHECK_INT(set->groups[1].interval_ns, 60 * NS_PER_S);
	r = &set->groups[0].rules[0];
	CHECK_INT(r->kind, RULE_RECORD_COSTS);
	CHECK_INT(r->labels_n, 2);
	CHECK_STR(r->labels[0].name, "severity");
	CHECK_STR(r->labels[0].text, "{{ plain }}"); /* no template in what is recorded */
	CHECK(!r->labels[0].template);
	r = &set->groups[0].rules[1];
	CHECK(r->group == &set->groups[0]);
	CHECK_INT(r->kind, RULE_ALERT);
	CHECK_STR(r->expr_pretty, "job:cpu:share > 0.1");
	CHECK_INT(r->for_ns, 10 * NS_PER_MIN);
	CHECK_INT(r->keep_firing_for_ns, 5 * NS_PER_MIN);
	CHECK_STR(r->labels[0].text, "high");
	CHECK_STR(r->labels[1].text, "a");
	CHECK_INT(r->annotations_n, 2);
	CHECK_STR(r->annotations[0].name, "description");
	CHECK(!r->annotations[0].template);
	CHECK(r->annotations[1].template != NULL);
	CHECK_INT(r->line, 11);
	CHECK_INT(r->column, 5);
	CHECK_INT(set->groups[1].rules[0].kind, RULE_RECORD_PROFILES);
	CHECK_INT(set->groups[1].rules[1].kind, RULE_RECORD_PROFILES);
	CHECK_INT(set->groups[1].rules[2].kind, RULE_RECORD_COSTS);
	rule_set_unref(set);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if ((f = fopen(path, "w"))) {
		fputs(text, f);
		fclose(f);
	}
}

TEST(patterns)
{
	char dir[] = SCRATCH "epi-rules-XXXXXX", want[256], patterns[4][64];
	struct str list[4];
	struct rules_load l = { .patterns = list, .interval_ns = NS_PER_S };
	struct rule_set *set;
	struct err err;

	REQUIRE(scratch_dir(dir));
	put(dir, "b.yml", "groups: [{name: b}]");
	put(dir, "a.yml", "groups: [{name: a}, {name: c}]");
	put(dir, "bad", "groups: [{}]");
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = { "b.yml", "*.yml", "none*", "gone.yml" };

		snprintf(patterns[i], sizeof(patterns[i]), "%s/%s", dir, names[i]);
		list[i] = str_of(patterns[i]);
	}
	l.patterns_n = 3;
	REQUIRE_OK(rule_set_load(&l, &set, &err), &err);
	CHECK_INT(set->files_n, 2);
	CHECK_INT(set->groups_n, 3);
	CHECK_STR(set->groups[0].name, "b");
	CHECK_STR(set->groups[2].name, "c");
	rule_set_unref(rule_set_ref(set));
	rule_set_unref(set);
	l.patterns_n = 4;
	CHECK_INT(rule_set_load(&l, &set, &err), ERR_NOT_FOUND);
	snprintf(patterns[0], sizeof(patterns[0]), "%s/bad", dir);
	list[0] = str_of(patterns[0]);
	l.patterns_n = 1;
	snprintf(want, sizeof(want), "%s/bad:1:10: Groupname must not be empty", dir);
	CHECK_ERR(rule_set_load(&l, &set, &err), &err, ERR_INVALID, want);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "a.yml", "b.yml", "bad" };
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

static void check_problems(const struct yaml_problems *p, const char *want)
{
	struct buf got = { 0 };

	for (size_t i = 0; i < p->n; i++)
		buf_printf(&got, "%s\n", p->v[i].text);
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

TEST(all_that_is_wrong_with_a_file)
{
	static const char text[] =
		"groups:\n- name: a\n  rules:\n  - {record: x, expr: 'sum('}\n"
		"  - {alert: B, expr: up, for: x}\n  - {record: ok, expr: 'total(cpu[5m])'}\n"
		"- name: b\n  nope: 1\n- name: c\n  rules: [~, {record: x, alert: y, expr: up}]\n"
		"- rules: []\n";
	static const char want[] =
		"r.yml:4:23: group \"a\", rule 1, \"x\": could not parse expression: 1:5: unexpected end "
		"of "
		"query\n"
		"r.yml:5:31: group \"a\", rule 2, \"B\": not a valid duration string: \"x\"\n"
		"r.yml:8:3: group \"b\": field nope not found in type rule_group\n"
		"r.yml:10:11: group \"c\", rule 1: empty or null rule\n"
		"r.yml:10:14: group \"c\", rule 2, \"y\": only one of 'record' and 'alert' must be set\n"
		"r.yml:11:3: Groupname must not be empty\n";
	struct yaml_problems problems;
	const struct rules_load l = { .problems = &problems };
	struct rule_set *set;
	struct err err;

	yaml_problems_init(&problems);
	CHECK(rule_set_load_text("r.yml", str_of(text), &l, &set, &err) == ERR_INVALID);
	check_problems(&problems, want);
	yaml_problems_release(&problems);
}

TEST(all_errors_of_a_rule_a_group_and_a_file)
{
	static const char text[] = "groups:\n- name: a\n  interval: 7x\n  nope: 1\n  rules:\n"
							   "  - alert: X\n    expr: sum(\n    for: 5q\n    foo: 1\n"
							   "  - alert: Y\n    expr: cpu\n    expr: total(cpu)\n"
							   "    annotations: {a: '{{ nope', b: '{{ if }}'}\n"
							   "    labels: {__name__: z, d: '{{ nope'}\n"
							   "- name: a\n  rules:\n  - record: Z\n    expr: [x]\n"
							   "extra: 1\n";
	static const char want[] =
		"r.yml:3:13: group \"a\": unknown unit \"x\" in duration \"7x\"\n"
		"r.yml:4:3: group \"a\": field nope not found in type rule_group\n"
		"r.yml:7:11: group \"a\", rule 1, \"X\": could not parse expression: 1:5: unexpected end "
		"of query\n"
		"r.yml:8:10: group \"a\", rule 1, \"X\": unknown unit \"q\" in duration \"5q\"\n"
		"r.yml:9:5: group \"a\", rule 1, \"X\": field foo not found in type rule; did you mean "
		"\"for\"?\n"
		"r.yml:12:5: mapping key \"expr\" already defined at line 11\n"
		"r.yml:13:19: group \"a\", rule 2, \"Y\": annotation \"a\": 1:4: function \"nope\" not "
		"defined\n"
		"r.yml:13:33: group \"a\", rule 2, \"Y\": annotation \"b\": 1:7: missing value for "
		"command\n"
		"r.yml:14:14: group \"a\", rule 2, \"Y\": invalid label name: __name__\n"
		"r.yml:14:27: group \"a\", rule 2, \"Y\": label \"d\": 1:4: function \"nope\" not defined\n"
		"r.yml:15:9: groupname: \"a\" is repeated in the same file\n"
		"r.yml:18:11: group \"a\", rule 1, \"Z\": cannot unmarshal !!seq into string\n"
		"r.yml:19:1: field extra not found in type rule_groups\n";
	struct yaml_problems problems;
	const struct rules_load l = { .problems = &problems };
	struct rule_set *set;
	struct err err;

	yaml_problems_init(&problems);
	CHECK(rule_set_load_text("r.yml", str_of(text), &l, &set, &err) == ERR_INVALID);
	yaml_problems_sort(&problems);
	check_problems(&problems, want);
	yaml_problems_release(&problems);
}

TEST(all_rules_that_take_profiles_for_costs)
{
	static const char text[] = "groups:\n- name: a\n  rules:\n"
							   "  - {record: y, expr: sum(cpu)}\n"
							   "  - {record: ok, expr: total(cpu)}\n"
							   "  - {record: z, expr: 'sum(memory:alloc_space)'}\n";
	static const char want[] =
		"r.yml:4:5: group \"a\", rule 1, \"y\": if cpu is a profile: 1:5: sum() needs numbers: "
		"use sum(total(cpu))\n"
		"r.yml:6:5: group \"a\", rule 3, \"z\": if memory:alloc_space is a profile: 1:5: sum() "
		"needs numbers: use sum(total(memory:alloc_space))\n";
	struct yaml_problems problems;
	struct rule_set *set;
	struct err err;

	yaml_problems_init(&problems);
	REQUIRE_OK(rule_set_load_text("r.yml", str_of(text), &defaults, &set, &err), &err);
	CHECK(rule_set_check_names(set, &problems, &err) == ERR_INVALID);
	check_problems(&problems, want);
	rule_set_unref(set);
	yaml_problems_release(&problems);
}
