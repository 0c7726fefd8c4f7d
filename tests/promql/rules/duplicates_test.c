/* Rules of the same kind, name and labels. */
#include "base/clock.h"
#include "promql/rules/rules.h"
#include "tests/check.h"

static const struct rules_load defaults = { .interval_ns = 60 * NS_PER_S };

TEST(rules_that_are_given_twice)
{
	static const char text[] = "groups:\n"
							   "- name: a\n"
							   "  rules:\n"
							   "  - {record: r, expr: '1', labels: {x: y}}\n" /* line 4 */
							   "  - {record: r, expr: '2', labels: {x: y}}\n"
							   "  - {record: r, expr: '2', labels: {x: z}}\n"
							   "  - {record: r, expr: '2', labels: {x: y, y: z}}\n"
							   "  - {record: r, expr: '2'}\n"
							   "  - {alert: A, expr: vector(1)}\n"
							   "- name: b\n"
							   "  labels: {x: y}\n"
							   "  rules:\n"
							   "  - {record: r, expr: '1'}\n" /* line 13: with the group's label */
							   "  - {alert: A, expr: vector(1), labels: {x: ''}}\n"
							   "  - {record: A, expr: '1'}\n"
							   "- name: c\n"
							   "  rules:\n"
							   "  - {alert: A, expr: vector(2), for: 1m, annotations: {s: t}}\n"
							   "  - {record: r, expr: '3'}\n";
	static const char want[] =
		"r.yml:5:5: group \"a\", \"r\": the rule at r.yml:4:5 has the same name and labels\n"
		"r.yml:13:5: group \"b\", \"r\": the rule at r.yml:4:5 has the same name and labels\n"
		"r.yml:18:5: group \"c\", \"A\": the alert at r.yml:9:5 has the same name and labels\n"
		"r.yml:19:5: group \"c\", \"r\": the rule at r.yml:8:5 has the same name and labels\n";
	struct rule_duplicate *v;
	struct buf got = { 0 };
	struct rule_set *set;
	struct arena a;
	struct err err;
	size_t n;

	REQUIRE_OK(rule_set_load_text("r.yml", str_of(text), &defaults, &set, &err), &err);
	arena_init(&a, 0);
	REQUIRE_OK(rule_set_duplicates(set, &a, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++) {
		rule_duplicate_print(&got, &v[i]);
		buf_add_char(&got, '\n');
	}
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
	arena_release(&a);
	rule_set_unref(set);
	REQUIRE_OK(rule_set_load_text("r.yml", STR("groups:"), &defaults, &set, &err), &err);
	arena_init(&a, 0);
	REQUIRE_OK(rule_set_duplicates(set, &a, &v, &n, &err), &err);
	CHECK_INT(n, 0);
	arena_release(&a);
	rule_set_unref(set);
}
