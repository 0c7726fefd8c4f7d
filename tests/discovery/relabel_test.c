#include "discovery/relabel.h"
#include "tests/check.h"

/* Rules in YAML flow style, a set, and the result ("" for dropped). */
struct row {
	const char *rules;
	const char *before[16]; /* name, value, ... */
	const char *want;
};

static enum err_code rules_of(
	struct arena *a, const char *text, struct relabel_rules *out, struct err *err)
{
	struct yaml_ctx ctx = { .arena = a };
	struct yaml_node *root;
	enum err_code rc;

	*out = (struct relabel_rules){ 0 };
	if ((rc = yaml_parse(a, "r.yml", str_of(text), &root, err)))
		return rc;
	return relabel_rules_decode(&ctx, root, out, err);
}

static void run(size_t i, const struct row *row)
{
	struct relabel_rules rules;
	struct labels_builder b;
	struct labels ls = { 0 };
	struct buf out = { 0 };
	struct arena a;
	struct err err;
	bool keep = true;

	arena_init(&a, 0);
	if (rules_of(&a, row->rules, &rules, &err)) {
		CHECK_FAIL("row %zu: %s", i, err.msg);
		arena_release(&a);
		return;
	}
	labels_builder_init(&b, &a, (struct labels){ 0 });
	for (size_t k = 0; row->before[k]; k += 2)
		labels_builder_set(&b, str_of(row->before[k]), str_of(row->before[k + 1]));
	CHECK_OK(relabel_apply(&rules, &b, &keep, NULL, &err), &err);
	CHECK_OK(labels_builder_build(&b, &ls, &err), &err);
	if (keep)
		labels_print(&out, ls);
	if (!str_eq(buf_str(&out), str_of(row->want)))
		CHECK_FAIL("row %zu: %s gives " STR_FMT ", want %s", i, row->rules, STR_ARG(buf_str(&out)),
			row->want);
	buf_release(&out);
	relabel_rules_release(&rules);
	arena_release(&a);
}

/* clang-format off */
static const struct row actions_rows[] = {
	/* replace */
	{ "[{source_labels: [a], target_label: d, separator: ';', regex: 'f(.*)', replacement: "
	  "'ch${1}-ch${1}'}]", { "a", "foo", "b", "bar" },
		"{a=\"foo\", b=\"bar\", d=\"choo-choo\"}" },
	{ "[{source_labels: [a, b], target_label: a, regex: 'f(.*);(.*)r', replacement: "
	  "'b${1}${2}m'}]",
	  { "a", "foo", "b", "bar" }, "{a=\"boobam\", b=\"bar\"}" },
	{ "[{source_labels: [a], target_label: a}]", { "a", "foo" }, "{a=\"foo\"}" },
	{ "[{target_label: b, replacement: x}]", { "a", "foo" }, "{a=\"foo\", b=\"x\"}" },
	/* no match: nothing happens */
	{ "[{source_labels: [a], target_label: d, regex: 'x.*'}]", { "a", "foo", "d", "1" },
	  "{a=\"foo\", d=\"1\"}" },
	/* an empty result deletes */
	{ "[{source_labels: [a], regex: 'f(o*)x?()', target_label: a, replacement: '$2'}]",
	  { "a", "foo", "b", "1" }, "{b=\"1\"}" },
	{ "[{source_labels: [nope], target_label: a}]", { "a", "foo", "b", "1" }, "{b=\"1\"}" },
	/* a target that is expanded; one that becomes no name is skipped */
	{ "[{source_labels: [a], regex: '(.*)-(.*)', target_label: '${1}', replacement: '${2}'}]",
	  { "a", "some-value" }, "{a=\"some-value\", some=\"value\"}" },
	{ "[{source_labels: [a], regex: '(.*)', target_label: '${1}', replacement: x}]",
	  { "a", "no name" }, "{a=\"no name\"}" },
	{ "[{source_labels: [a], regex: '(.*)', target_label: '$1', replacement: ''}]",
	  { "a", "b", "b", "gone" }, "{a=\"b\"}" },
	/* $1_x is the group named 1_x, which does not exist; ${1}_x is group 1; $$ is a dollar */
	{ "[{source_labels: [a], target_label: d, replacement: '$1_x'}]", { "a", "foo" },
		"{a=\"foo\"}" },
	{ "[{source_labels: [a], target_label: d, replacement: '${1}_x'}]", { "a", "foo" },
	  "{a=\"foo\", d=\"foo_x\"}" },
	{ "[{source_labels: [a], target_label: d, replacement: '$$1'}]", { "a", "foo" },
	  "{a=\"foo\", d=\"$1\"}" },
	{ "[{source_labels: [a], regex: '(?P<n>f)(.*)', target_label: d, replacement: '$n:${2}'}]",
	  { "a", "foo" }, "{a=\"foo\", d=\"f:oo\"}" },
	/* anchored as a whole, newlines included */
	{ "[{source_labels: [a], regex: 'f|oo', action: drop}]", { "a", "foo" }, "{a=\"foo\"}" },
	{ "[{source_labels: [a], regex: 'f.*o', action: drop}]", { "a", "f\no" }, "" },
	{ "[{source_labels: [a], regex: '', action: keep}]", { "a", "foo" }, "" },
	{ "[{source_labels: [nope], regex: '', action: keep}]", { "a", "foo" }, "{a=\"foo\"}" },
	{ "[{regex: '', action: drop}]", { "a", "foo" }, "" },
	/* keep, drop; actions in any case */
	{ "[{source_labels: [a], regex: '.*o.*', action: drop}]", { "a", "foo" }, "" },
	{ "[{source_labels: [a], regex: '.*o.*', action: KEEP}]", { "a", "foo" }, "{a=\"foo\"}" },
	{ "[{source_labels: [a], regex: 'no', action: Keep}]", { "a", "foo" }, "" },
	{ "[{source_labels: [a], action: dropequal, target_label: b}]", { "a", "x", "b", "x" },
	"" },
	{ "[{source_labels: [a], action: dropequal, target_label: b}]", { "a", "x", "b", "y" },
	  "{a=\"x\", b=\"y\"}" },
	{ "[{source_labels: [a], action: keepequal, target_label: b}]", { "a", "x", "b", "y" },
	"" },
	{ "[{source_labels: [a, c], action: keepequal, target_label: b}]",
	  { "a", "x", "b", "x;y", "c", "y" }, "{a=\"x\", b=\"x;y\", c=\"y\"}" },
	/* hashmod */
	{ "[{source_labels: [a], target_label: d, action: hashmod, modulus: 1000}]", { "a", "foo" },
	  "{a=\"foo\", d=\"696\"}" },
	{ "[{source_labels: [a], target_label: d, action: hashmod, modulus: 1000}]",
	  { "a", "foo\nbar" }, "{a=\"foo\\nbar\", d=\"734\"}" },
	/* names */
	{ "[{regex: '(b.*)', action: labelmap, replacement: 'bar_$1'}]", { "a", "1", "b1", "2",
		"b2", "3" },
	  "{a=\"1\", b1=\"2\", b2=\"3\", bar_b1=\"2\", bar_b2=\"3\"}" },
	{ "[{regex: '__meta_(my_.*)', action: labelmap}]", { "__meta_my_x", "1" },
	  "{__meta_my_x=\"1\", my_x=\"1\"}" },
	{ "[{regex: '(.*)', action: labelmap, replacement: '$1x'}]", { "a", "1" },
	  "{a=\"1\"}" },
	{ "[{regex: '(.*)', action: labelmap, replacement: 'x${1}'}]", { "a", "1" },
	  "{a=\"1\", xa=\"1\"}" },
	{ "[{regex: 'b.*', action: labeldrop}]", { "a", "1", "b1", "2", "b2", "3" }, "{a=\"1\"}" },
	{ "[{regex: 'b.*', action: labelkeep}]", { "a", "1", "b1", "2", "b2", "3" },
	  "{b1=\"2\", b2=\"3\"}" },
	/* letters */
	{ "[{source_labels: [a], target_label: a, action: uppercase}]",
	  { "a", "stra\xc3\xb6\xd0\xb6 i" }, "{a=\"STRA\xc3\x96\xd0\x96 I\"}" },
	{ "[{source_labels: [a], target_label: b, action: lowercase}]", { "a", "\xc3\x89Z" },
	  "{a=\"\xc3\x89Z\", b=\"\xc3\xa9z\"}" },
	/* one after the other */
	{ "[{source_labels: [a], regex: f.*, target_label: b, replacement: b}, "
	  "{source_labels: [b], regex: b, target_label: c, replacement: c}]", { "a", "foo" },
	  "{a=\"foo\", b=\"b\", c=\"c\"}" },
	{ "[{source_labels: [__address__], target_label: __param_target}, "
	  "{target_label: __address__, replacement: 'proxy:9115'}]", { "__address__", "a:80" },
	  "{__address__=\"proxy:9115\", __param_target=\"a:80\"}" },
	{ "[]", { "a", "1" }, "{a=\"1\"}" },
	{ "", { "a", "1" }, "{a=\"1\"}" },
};
/* clang-format on */

TEST(actions)
{
	for (size_t i = 0; i < sizeof(actions_rows) / sizeof(actions_rows[0]); i++)
		run(i, &actions_rows[i]);
}

TEST(rules_that_are_refused)
{
	static const struct {
		const char *rules, *want;
	} rows[] = {
		{ "[{action: nope}]", "r.yml:1:11: unknown relabel action \"nope\"" },
		{ "[{action: hashmod, target_label: x}]",
			"r.yml:1:2: relabel configuration for hashmod requires non-zero modulus" },
		{ "[{action: hashmod, modulus: 3}]",
			"r.yml:1:2: relabel configuration for hashmod action requires 'target_label' value" },
		{ "[{source_labels: [a]}]",
			"r.yml:1:2: relabel configuration for replace action requires 'target_label' value" },
		{ "[{target_label: 'a b'}]",
			"r.yml:1:2: \"a b\" is invalid 'target_label' for replace action" },
		{ "[{target_label: '$-'}]",
			"r.yml:1:2: \"$-\" is invalid 'target_label' for replace action" },
		{ "[{action: lowercase, target_label: '${1}'}]",
			"r.yml:1:2: \"${1}\" is invalid 'target_label' for lowercase action" },
		{ "[{action: uppercase, target_label: a, replacement: x}]",
			"r.yml:1:2: 'replacement' can not be set for uppercase action" },
		{ "[{action: labelmap, replacement: 'a b'}]",
			"r.yml:1:2: \"a b\" is invalid 'replacement' for labelmap action" },
		{ "[{action: keepequal, target_label: a, regex: x}]",
			"r.yml:1:2: keepequal action requires only 'source_labels' and `target_label`, and no "
			"other "
			"fields" },
		{ "[{action: dropequal, target_label: a, modulus: 1}]",
			"r.yml:1:2: dropequal action requires only 'source_labels' and `target_label`, and no "
			"other "
			"fields" },
		{ "[{action: labeldrop, regex: a, target_label: b}]",
			"r.yml:1:2: labeldrop action requires only 'regex', and no other fields" },
		{ "[{action: labelkeep, source_labels: [a]}]",
			"r.yml:1:2: labelkeep action requires only 'regex', and no other fields" },
		{ "[{source_labels: [a-b], target_label: x}]",
			"r.yml:1:19: \"a-b\" is not a valid label name: " LABEL_NAME_RULE },
		{ "[{source_labels: a, target_label: x}]", "r.yml:1:18: expected a list of label names" },
		{ "[{action: keep, regex: '('}]", "r.yml:1:24: error parsing regexp: missing ): (" },
		{ "[{nope: 1}]", "r.yml:1:3: field nope not found in type relabel_config" },
		{ "[null]", "r.yml:1:2: empty or null relabeling rule" },
		{ "{}", "r.yml:1:1: expected a list of relabelling rules" },
		{ "[{action: keep}, {action: drop, regex: '['}]",
			"r.yml:1:40: error parsing regexp: missing ]: [" },
	};
	struct relabel_rules rules;
	struct arena a;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		arena_init(&a, 0);
		CHECK_ERR(rules_of(&a, rows[i].rules, &rules, &err), &err, ERR_INVALID, rows[i].want);
		relabel_rules_release(&rules);
		arena_release(&a);
	}
}

TEST(the_dropping_rule_is_named)
{
	struct relabel_rules rules;
	struct labels_builder b;
	struct arena a;
	struct err err;
	size_t by = 99;
	bool keep = true;

	arena_init(&a, 0);
	REQUIRE_OK(rules_of(&a,
				   "[{target_label: x, replacement: y}, {source_labels: [x], regex: y, action: "
				   "drop}, {target_label: z, replacement: z}]",
				   &rules, &err),
		&err);
	labels_builder_init(&b, &a, (struct labels){ 0 });
	CHECK_OK(relabel_apply(&rules, &b, &keep, &by, &err), &err);
	CHECK(!keep);
	CHECK_INT(by, 1);
	CHECK_STR(labels_builder_get(&b, STR("z")), "");
	relabel_rules_release(&rules);
	arena_release(&a);
}
