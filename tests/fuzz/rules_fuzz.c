/*
 * fuzz: promql/rules
 * A rule file: refused with a place, or groups whose parts hold what rules.h says.
 */
#include "promql/rules/rules.h"
#include "tests/fuzz/fuzz.h"

#define TEXT_MAX 8192u

static void check_rule(const struct rule_group *g, const struct rule *r)
{
	require(r->group == g && r->name.len && r->expr.len && r->expr_pretty.len && r->line);
	for (size_t i = 0; i < r->labels_n; i++) {
		require(any_name_valid(r->labels[i].name) && r->labels[i].text.len);
		require(!i || str_cmp(r->labels[i - 1].name, r->labels[i].name) < 0);
		require(r->kind == RULE_ALERT || !r->labels[i].template);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rules_load l = { .interval_ns = INT64_C(60000000000) };
	struct rule_set *set;
	struct err err;

	if (size > TEXT_MAX)
		return 0;
	if (rule_set_load_text("f", (struct str){ (const char *)data, size }, &l, &set, &err)) {
		require(str_has_prefix(str_of(err.msg), STR("f:")) || err.code == ERR_NOMEM ||
			err.code == ERR_LIMIT);
		return 0;
	}
	for (size_t i = 0; i < set->groups_n; i++) {
		const struct rule_group *g = &set->groups[i];

		require(g->name.len && g->interval_ns > 0);
		for (size_t k = 0; k < g->rules_n; k++)
			check_rule(g, &g->rules[k]);
	}
	rule_set_unref(set);
	return 0;
}
