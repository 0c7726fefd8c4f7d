#include "promql/syntax/check.h"

#include "promql/syntax/functions.h"
#include "tests/check.h"
#include "tests/promql/syntax/rows.h"

static bool describe_types(struct parsed *q, struct buf *out, struct err *err)
{
	if (check_query(q, NULL, err))
		return false;
	value_types_print(out, q->root->types);
	return true;
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]), describe_types)

TEST(types)
{
	/* clang-format off */
	static const struct row rows[] = {
		{ "1", "a scalar" }, { "'x'", "a string" }, { "('x')", "a string" },
		{ "time()", "a scalar" }, { "scalar(up)", "a scalar" }, { "vector(1)", "costs" },
		{ "up", "profiles or costs" }, { "(up)", "profiles or costs" },
		{ "{a='b'}", "profiles or costs" }, { "up offset 5m", "profiles or costs" },
		{ "cpu[5m]", "profiles" }, { "merge(cpu)", "profiles" },
		{ "merge by (job) (cpu[5m])", "profiles" },
		{ "merge without (pod) (cpu)", "profiles" },
		{ "diff(cpu, cpu offset 1h)", "profiles" }, { "diff on (job) (cpu, cpu)", "profiles" },
		{ "diff_normalized ignoring (version) (cpu, cpu)", "profiles" },
		{ "top(10, merge(cpu))", "a table" }, { "flat(cpu)", "costs" },
		{ "cum by (function, filename) (cpu, {function=~'json.*',line!=''})", "costs" },
		{ "flat(cpu, {})", "costs" }, { "flat_share(cpu)", "costs" },
		{ "cum_share by (job) (cpu)", "costs" }, { "total(cpu)", "costs" },
		{ "focus(cpu, 'x')", "profiles" }, { "ignore(cpu[5m], \"x\")", "profiles" },
		{ "hide(merge(cpu), 'x')", "profiles" }, { "show(cpu, ('x'))", "profiles" },
		{ "show_from(cpu - cpu, `a\\.b`)", "profiles" }, { "prune_from(cpu, '')", "profiles" },
		{ "tagfocus(cpu, 'bytes=1mb:2mb')", "profiles" },
		{ "tagignore(cpu, 'a=b,c.*')", "profiles" },
		{ "flat(callers(callees(cpu, 'x'), 'y'))", "costs" },
		{ "topk(3, flat(cpu))", "costs" }, { "TopK by (job) (1 + 2, flat(cpu))", "costs" },
		{ "bottomk(scalar(up), up)", "costs" }, { "sum(up)", "costs" },
		{ "avg without (job) (up)", "costs" }, { "min(up)", "costs" }, { "max(up)", "costs" },
		{ "count(up) by (job)", "costs" }, { "group(up)", "costs" }, { "abs(up)", "costs" },
		/* operators */
		{ "1 + 2", "a scalar" }, { "1 < bool 2", "a scalar" }, { "-time()", "a scalar" },
		{ "up + 1", "costs" }, { "1 / up", "costs" }, { "up * 2", "profiles or costs" },
		{ "2 * up", "profiles or costs" }, { "up / 2", "profiles or costs" },
		{ "up ^ 2", "costs" }, { "up > 0", "costs" }, { "up == bool 1", "costs" },
		{ "up - up", "profiles or costs" }, { "up + up", "costs" }, { "-up", "costs" },
		{ "up and up", "costs" }, { "up or vector(1)", "costs" },
		{ "up unless on (job) up", "costs" },
		{ "cpu[5m] - cpu[5m] offset 1d", "profiles" },
		{ "cpu[5m] - on (job) cpu[5m]", "profiles" }, { "cpu[5m] * 2", "profiles" },
		{ "2 * cpu[5m]", "profiles" }, { "cpu[5m] / scalar(up)", "profiles" },
		{ "up - on (job) group_left (a) up", "costs" },
		{ "total(cpu) / on (job) group_right total(cpu)", "costs" },
		{ "cum_share(merge by (job) (cpu[5m]), {function=\"encoding/json.Marshal\"}) > 0.10",
		  "costs" },
	};
	/* clang-format on */

	CHECK_ROWS(rows);
}

TEST(filters_refuse)
{
	static const struct row rows[] = {
		{ "focus(cpu)", "1:1: focus() needs 2 arguments, got 1: focus(profiles, \"re\")" },
		{ "hide(1, 'x')", "1:6: hide() needs profiles, got a scalar" },
		{ "hide(total(cpu), 'x')", "1:6: hide() needs profiles, got costs" },
		{ "show(cpu, cpu)", "1:11: show() needs a string, got profiles or costs" },
		{ "show by (a) (cpu, 'x')", "1:1: show() takes no by: show(profiles, \"re\")" },
		{ "merge(\n  focus(cpu, 'a(b'))", "2:14: error parsing regexp: missing ): a(b" },
		{ "tagfocus(cpu, ('a=b,*'))",
			"1:16: error parsing regexp: no argument for repetition operator: *" },
		{ "tagfocus(cpu, 'a=99999999999999999999:')",
			"1:15: a number of the range exceeds 64 bits" },
		{ "tagfocus(tagfocus(cpu, ',,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,'), "
		  "',,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,')",
			"1:68: more than 64 regular expressions in filters" },
	};

	CHECK_ROWS(rows);
}

TEST(refuses)
{
	/* clang-format off */
	static const struct row rows[] = {
		{ "flat(flat(cpu))", "1:6: flat() needs profiles, got costs" },
		{ "nonesuch(1)", "1:1: unknown function \"nonesuch\"" },
		{ "1 + Merge(cpu)", "1:5: unknown function \"Merge\"; did you mean \"merge\"?" },
		{ "mrge(cpu)", "1:1: unknown function \"mrge\"; did you mean \"merge\"?" },
		{ "sum(1)", "1:5: sum() needs costs, got a scalar" },
		{ "sum('a')", "1:5: sum() needs costs, got a string" },
		{ "sum(cpu[5m])", "1:5: sum() needs numbers: use sum(total(cpu[5m]))" },
		{ "abs((merge(cpu)))", "1:5: abs() needs numbers: use abs(total(merge(cpu)))" },
		{ "topk(up, up)", "1:6: topk() needs a scalar, got profiles or costs" },
		{ "vector(up)", "1:8: vector() needs a scalar, got profiles or costs" },
		{ "merge(1)", "1:7: merge() needs profiles, got a scalar" },
		{ "total(top(1, cpu))", "1:7: total() needs profiles, got a table" },
		{ "top(1, cpu) + 1", "1:13: operator + does not take a table and a scalar" },
		{ "top(cpu)", "1:1: top() needs 2 arguments, got 1: top(k, profiles)" },
		{ "merge()", "1:1: merge() needs 1 argument, got 0: "
			     "merge [by|without (label, ...)] (profiles)" },
		{ "flat()", "1:1: flat() needs at least 1 argument, got 0: "
			    "flat [by (field, ...)] (profiles[, {frame matchers}])" },
		{ "flat(cpu, {}, {})", "1:1: flat() needs at most 2 arguments, got 3: "
				       "flat [by (field, ...)] (profiles[, {frame matchers}])" },
		{ "time(1)", "1:1: time() needs 0 arguments, got 1: time()" },
		{ "flat without (job) (cpu)", "1:1: flat() takes no without: "
					      "flat [by (field, ...)] (profiles[, {frame matchers}])" },
		{ "abs by (job) (up)", "1:1: abs() takes no by: abs(costs)" },
		{ "sum on (job) (up)", "1:1: sum() takes no on: sum [by|without (label, ...)] (costs)" },
		{ "diff by (job) (a, b)", "1:1: diff() takes no by: "
					  "diff [on|ignoring (label, ...)] (new, base)" },
		/* frame matchers */
		{ "flat(cpu, cpu)", "1:11: flat() needs frame matchers in braces: "
				    "{function=\"...\"}" },
		{ "flat(cpu, {function='x'}[5m])", "1:11: flat() needs frame matchers in braces: "
						   "{function=\"...\"}" },
		{ "flat(cpu, 'x')", "1:11: flat() needs frame matchers in braces: "
				    "{function=\"...\"}" },
		{ "cum(cpu, {fn='x'})", "1:10: unknown frame field fn, known: function, system_name, "
			"filename, "
					"line, address, mapping, build_id" },
		/* selectors */
		{ "{}", "1:1: selector must contain at least one non-empty matcher" },
		{ "sum({a=\"\",b=~\".*\",c!=\"x\"})",
		  "1:5: selector must contain at least one non-empty matcher" },
		{ "cpu{__name__=\"x\"}", "1:1: the name is set twice: \"cpu\" and \"x\"" },
		/* operators */
		{ "1 + 'a'", "1:3: operator + does not take a scalar and a string" },
		{ "-'a'", "1:2: unary - needs costs or a scalar, got a string" },
		{ "+merge(cpu)", "1:2: unary + needs costs or a scalar, got profiles" },
		{ "1 and 2", "1:3: operator and does not take a scalar and a scalar; "
				"use vector() for costs" },
		{ "up or 1", "1:4: operator or does not take profiles or costs and a scalar; "
			       "use vector() for costs" },
		{ "1 > 2", "1:3: comparisons between scalars must use bool: > bool" },
		{ "1 + bool 2", "1:3: bool is only for comparisons, not for +" },
		{ "up and bool up", "1:4: bool is only for comparisons, not for and" },
		{ "up + on (a) 1", "1:4: on and ignoring need labels on both sides, "
				   "a scalar has none" },
		{ "up and on (a) group_left up", "1:4: group_left and group_right are not for and" },
		{ "up + on (a, b) group_right (b) up", "1:4: label b is in on and in group_right" },
		{ "cpu[5m] + cpu[5m]", "1:9: operator + does not take profiles and profiles; "
				       "use total(), flat() or cum() for costs" },
		{ "cpu[5m] > 5", "1:9: operator > does not take profiles and a scalar; "
				 "use total(), flat() or cum() for costs" },
		{ "2 / cpu[5m]", "1:3: operator / does not take a scalar and profiles; "
				 "use total(), flat() or cum() for costs" },
		{ "cpu[5m] - up > 1", "1:14: operator > does not take profiles and a scalar; "
				      "use total(), flat() or cum() for costs" },
		{ "cpu[5m] - on (a) group_left cpu[5m]", "1:9: operator - group_left does not take "
			"profiles and "
			"profiles; use total(), flat() or cum() for costs" },
		{ "abs(\n  flat(\n    1))", "3:5: flat() needs profiles, got a scalar" },
	};
	/* clang-format on */

	CHECK_ROWS(rows);
}

TEST(every_node_is_typed)
{
	struct parsed *q = NULL;
	struct query_error where;
	struct err err = { 0 };
	const struct expr *e;
	struct arena a;

	arena_init(&a, 0);
	REQUIRE_OK(parse_query(
		&a, STR("topk(5, flat by (function) ((cpu[5m]), {function='x'}) * 2)"), &q, NULL, &err),
		&err);
	REQUIRE_OK(check_query(q, &where, &err), &err);
	CHECK_INT(where.line, 0);
	e = q->root;
	CHECK_INT(e->types, VALUE_COSTS);
	CHECK_INT(e->call.args[0]->types, VALUE_SCALAR);
	e = e->call.args[1];
	CHECK_INT(e->types, VALUE_COSTS);
	CHECK_INT(e->binary.rhs->types, VALUE_SCALAR);
	e = e->binary.lhs;
	CHECK_INT(e->types, VALUE_COSTS);
	CHECK_INT(e->call.args[0]->types, VALUE_PROFILES);
	CHECK_INT(e->call.args[0]->paren->types, VALUE_PROFILES);
	CHECK(expr_strip(e->call.args[0]) == e->call.args[0]->paren);
	CHECK_INT(e->call.args[1]->types, VALUE_FRAMES);
	parsed_release(q);
	arena_release(&a);
}

/* The table's own promises, which the checker and the evaluator rely on. */
TEST(function_table)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const struct function *f = &functions[i];

		CHECK_INT(f->id, i);
		REQUIRE(f->name && f->usage && f->help);
		CHECK(function_find(str_of(f->name)) == f);
		CHECK(f->args_min <= f->args_max);
		CHECK(f->result != 0);
		for (size_t n = 0; n < f->args_max && n < FUNCTION_ARGS; n++)
			CHECK(f->args[n] != 0);
		CHECK(str_has_prefix(str_of(f->usage), str_of(f->name)));
		CHECK(str_has_suffix(str_of(f->usage), STR(")")));
		CHECK(f->help[0] && f->help[strlen(f->help) - 1] != '.' && !strchr(f->help, '\n'));
	}
	CHECK(function_find(STR("SUM")) == &functions[FN_SUM]);
	CHECK(function_find(STR("FLAT")) == NULL);
	CHECK(function_find(STR("")) == NULL);
	CHECK(function_find(STR("su")) == NULL);
	for (unsigned f = 0; f < FRAME_FIELDS; f++)
		CHECK_INT(frame_field_find(str_of(frame_field_name((enum frame_field)f))), f);
	CHECK_INT(frame_field_find(STR("func")), FRAME_FIELDS);
}

TEST(functions_of_costs)
{
	/* clang-format off */
	static const struct row rows[] = {
		{ "stddev by (job) (up)", "costs" }, { "QUANTILE(0.5, up) without (job)", "costs" },
		{ "count_values('v', up)", "costs" }, { "clamp(up, 0, 1)", "costs" },
		{ "round(flat(cpu))", "costs" }, { "round(flat(cpu), 5)", "costs" },
		{ "absent(cpu[5m])", "costs" }, { "absent(up)", "costs" },
		{ "label_replace(up, 'a', '$1', 'b', '(.*)')", "costs" },
		{ "label_join(up, 'a', '-')", "costs" },
		{ "label_join(up, 'a', '-', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i')", "costs" },
		{ "count_values('', up)", "1:14: invalid label name \"\"" },
		{ "count_values('0v', up)", "costs" },
		{ "count_values(1, up)", "1:14: count_values() needs a string, got a scalar" },
		{ "quantile('0.5', up)", "1:10: quantile() needs a scalar, got a string" },
		{ "clamp_min(cpu[5m], 1)", "1:11: clamp_min() needs numbers: use total(cpu[5m])" },
		{ "clamp(up, 1)",
			"1:1: clamp() needs 3 arguments, got 2: clamp(costs, min, max)" },
		{ "round(up, 1, 2)", "1:1: round() needs at most 2 arguments, got 3: "
				     "round(costs[, to_nearest])" },
		{ "label_join(up, 'a')",
			"1:1: label_join() needs at least 3 arguments, got 2: "
			"label_join(costs, \"destination\", \"separator\", \"source\", ...)" },
		{ "label_join(up, 'a', '-', 1)", "1:26: label_join() needs a string, got a scalar" },
		{ "label_join(up, 'a', '-', 'b', '\\xff')",
			"1:31: invalid source label name in label_join(): \xff" },
		{ "label_replace(up, '', '', 'c', '')",
			"1:19: invalid destination label name in label_replace(): " },
		{ "label_replace(up, 'a-b', '', 'c', '')", "costs" },
		{ "label_replace(up, 'a', '', 'c', 'x**')",
			"1:33: invalid regular expression in label_replace(): x**: "
			"error parsing regexp: bad repetition operator: **" },
		{ "rate(up[5m])", "profiles or costs" }, { "rate(up[5m:])", "costs" },
		{ "increase(up[5m])", "costs" }, { "max_over_time(total(cpu)[1h:5m])", "costs" },
		{ "up[5m:]", "a range of costs" }, { "(up[5m:])", "a range of costs" },
		{ "predict_linear(up[1h], 4h)", "costs" }, { "hour()", "costs" }, { "pi()", "a scalar" },
		{ "limitk(2, up)", "costs" }, { "sort_by_label(up, 'a', 'b')", "costs" },
		{ "up[5m:] + 1", "1:9: operator + does not take a range of costs and a scalar" },
		{ "sum(up[5m:])", "1:5: sum() needs costs, got a range of costs" },
		{ "-up[5m:]", "1:2: unary - needs costs or a scalar, got a range of costs" },
		{ "merge(cpu)[5m:]", "1:1: a subquery needs costs, got profiles; "
			"use total(), flat() or cum() for costs" },
		{ "time()[5m:]", "1:1: a subquery needs costs, got a scalar; "
			"use vector() for costs" },
		{ "'a'[5m:]", "1:1: a subquery needs costs, got a string" },
		{ "up[5m][5m:]", "1:1: a subquery needs costs, got profiles; "
			"use total(), flat() or cum() for costs" },
		{ "rate(sum(up))", "1:6: rate() needs a window; for costs use a subquery: [5m:1m]" },
		{ "rate(up)", "1:6: rate() needs a selector with a window: [5m]" },
		{ "changed(up[5m:], cpu[5m])",
			"1:9: changed() needs a selector, got a range of costs" },
		{ "predict_linear(up[1h])", "1:1: predict_linear() needs 2 arguments, got 1: "
			"predict_linear(numbers[window], seconds)" },
		{ "hour(1)", "1:6: hour() needs costs, got a scalar" },
		{ "absent(1)", "1:8: absent() needs profiles or costs, got a scalar" },
	};
	/* clang-format on */

	CHECK_ROWS(rows);
}
