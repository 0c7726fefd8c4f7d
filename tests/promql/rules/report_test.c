/* Reports of rules: what is read is what was printed; what is cut; what is refused. */
#include <math.h>

#include "base/clock.h"
#include "base/map.h"
#include "promql/rules/report.h"
#include "promql/rules/report_format.h"
#include "tests/check.h"

static struct arena arena;
static struct err err;

static const char text[] =
	"groups:\n- name: first\n  interval: 30s\n  query_offset: 10s\n  limit: 7\n"
	"  labels: {team: t}\n  rules:\n"
	"  - {record: 'a:b', expr: 'sum(total(cpu))', labels: {x: y}}\n"
	"  - {record: 'p', expr: 'merge by (job) (cpu[1m])'}\n"
	"  - {alert: Slow, expr: 'vector(1) > 0', for: 5m, keep_firing_for: 1m,"
	" labels: {severity: '{{ \"page\" }}'}, annotations: {s: 'it is {{ $value }}', b: c}}\n"
	"- {name: second, rules: [{alert: Quiet, expr: 'vector(1) < 0'}]}\n";

static struct rule_set *load(const char *name, const char *rules)
{
	static const struct rules_load l = { .interval_ns = NS_PER_MIN };
	struct rule_set *set = NULL;

	CHECK_OK(rule_set_load_text(name, str_of(rules), &l, &set, &err), &err);
	return set;
}

static struct labels labels_of_job(const char *job)
{
	struct label *v = arena_array(&arena, struct label, 2);

	v[0] = (struct label){ STR("alertname"), STR("Slow") };
	v[1] = (struct label){ STR("job"), str_of(job) };
	return (struct labels){ v, 2 };
}

/* A snapshot as a manager would give it, with these alerts of the rule Slow. */
static struct rules_snapshot snapshot_of(struct rule_set *set, size_t alerts)
{
	struct rules_snapshot s = { .groups = arena_array(&arena, struct group_info, set->groups_n),
		.groups_n = set->groups_n };

	for (size_t i = 0; i < set->groups_n; i++) {
		const struct rule_group *g = &set->groups[i];
		struct group_info *to = &s.groups[i];

		*to = (struct group_info){ .group = g,
			.last_evaluation_ns = (int64_t)(1700000000 + i) * NS_PER_S,
			.evaluation_ns = 1234,
			.iterations = 77 + i,
			.missed = i,
			.rules = arena_array(&arena, struct rule_info, g->rules_n),
			.rules_n = g->rules_n };
		for (size_t k = 0; k < g->rules_n; k++)
			to->rules[k] = (struct rule_info){ .rule = &g->rules[k],
				.health = k == 1 ? RULE_ERR : RULE_OK,
				.last_error = k == 1 ? STR("it \"failed\"") : (struct str){ 0 },
										   .last_evaluation_ns = to->last_evaluation_ns,
										   .evaluation_ns = (int64_t)k };
	}
	if (s.groups_n && s.groups[0].rules_n > 2) {
		struct rule_info *r = &s.groups[0].rules[2];

		r->phase = ALERT_FIRING;
		r->alerts = arena_array(&arena, struct alert_info, alerts + 1);
		r->alerts_n = alerts;
		for (size_t i = 0; i < alerts; i++)
			r->alerts[i] = (struct alert_info){ .labels = labels_of_job(i % 2 ? "a" : "b"),
				.annotations = i ? labels_of_job("x") : (struct labels){ 0 },
				.phase = i % 2 ? ALERT_FIRING : ALERT_PENDING,
				.active_at_ns = 1700000000 * NS_PER_S + 123,
				.keep_firing_since_ns = i % 2 ? 1700000100 * NS_PER_S : 0,
				.value = i == 2 ? NAN :
					i == 3      ? -INFINITY :
								  0.1 * (double)i };
	}
	return s;
}

static void print(struct buf *out, const struct rules_snapshot *s, size_t max)
{
	rules_report_print(out, s, STR("node-1"), 1700000005 * NS_PER_S, max);
	CHECK(!buf_failed(out));
	CHECK(out->len <= max);
}

TEST(what_is_read_is_what_was_printed)
{
	struct rules_snapshot own;
	struct rules_report r;
	struct rule_set *set;
	struct buf b = { 0 }, again = { 0 };
	const struct rule *rule;

	arena_init(&arena, 0);
	REQUIRE(set = load("dir/f.yml", text));
	own = snapshot_of(set, 5);
	print(&b, &own, RULES_REPORT_BYTES_MAX);
	REQUIRE_OK(rules_report_read(buf_str(&b), &arena, &r, &err), &err);
	CHECK_STR(r.host, "node-1");
	CHECK_INT(r.written_ns, 1700000005 * NS_PER_S);
	CHECK_INT(r.alerts_cut + r.groups_cut, 0);
	/* the same bytes: all that is in them was kept */
	print(&again, &r.rules, RULES_REPORT_BYTES_MAX);
	CHECK(str_eq(buf_str(&b), buf_str(&again)));
	CHECK(!r.rules.set);
	REQUIRE(r.rules.groups_n == 2 && r.rules.groups[0].rules_n == 3);
	CHECK_STR(r.rules.groups[0].group->file, "dir/f.yml");
	CHECK_INT(r.rules.groups[0].group->interval_ns, 30 * NS_PER_S);
	CHECK_INT(r.rules.groups[0].group->rules_n, 3);
	CHECK_INT(r.rules.groups[0].iterations, 77);
	rule = r.rules.groups[0].rules[2].rule;
	CHECK_INT(rule->kind, RULE_ALERT);
	CHECK(rule->group == r.rules.groups[0].group);
	CHECK_STR(rule->labels[0].text, "{{ \"page\" }}");
	CHECK_STR(rule->annotations[1].text, "it is {{ $value }}");
	CHECK_INT(rule->keep_firing_for_ns, NS_PER_MIN);
	CHECK_STR(r.rules.groups[0].rules[1].last_error, "it \"failed\"");
	CHECK_INT(r.rules.groups[0].rules[2].alerts_n, 5);
	CHECK(isnan(r.rules.groups[0].rules[2].alerts[2].value));
	CHECK_INT(r.rules.groups[0].rules[2].alerts[1].active_at_ns, 1700000000 * NS_PER_S + 123);
	buf_release(&b);
	buf_release(&again);
	rule_set_unref(set);
	arena_release(&arena);
}

TEST(what_is_too_large_is_cut)
{
	struct rules_snapshot own;
	struct rules_report r;
	struct rule_set *set;
	struct buf b = { 0 };
	size_t whole, fired;

	arena_init(&arena, 0);
	REQUIRE(set = load("f.yml", text));
	own = snapshot_of(set, 3000);
	print(&b, &own, RULES_REPORT_BYTES_MAX);
	whole = b.len;
	for (size_t max = whole; max > 200; max -= max / 5) {
		buf_clear(&b);
		print(&b, &own, max);
		REQUIRE_OK(rules_report_read(buf_str(&b), &arena, &r, &err), &err);
		CHECK_INT(r.rules.groups_n + r.groups_cut, 2);
		if (!r.rules.groups_n)
			continue;
		CHECK_INT(r.rules.groups[0].rules[2].alerts_n + r.alerts_cut, 3000);
		fired = 0;
		for (size_t i = 0; i < r.rules.groups[0].rules[2].alerts_n; i++)
			fired += r.rules.groups[0].rules[2].alerts[i].phase == ALERT_FIRING;
		CHECK_INT(fired, r.alerts_cut ? r.rules.groups[0].rules[2].alerts_n : 1500);
	}
	CHECK_INT(r.groups_cut, 2);
	buf_release(&b);
	rule_set_unref(set);
	arena_release(&arena);
}

/* Each bit of a report that is turned, and each end that is cut, is refused. */
TEST(damaged_ones_are_refused)
{
	struct rules_snapshot own;
	struct rules_report r;
	struct rule_set *set;
	struct buf b = { 0 };
	struct arena a;

	arena_init(&arena, 0);
	arena_init(&a, 0);
	REQUIRE(set = load("f.yml", text));
	own = snapshot_of(set, 2);
	print(&b, &own, RULES_REPORT_BYTES_MAX);
	for (size_t i = 0; i < b.len; i++) {
		b.ptr[i] ^= 4;
		CHECK(rules_report_read(buf_str(&b), &a, &r, &err) != ERR_OK);
		b.ptr[i] ^= 4;
		CHECK_INT(rules_report_read((struct str){ b.ptr, i }, &a, &r, &err), ERR_CORRUPT);
		arena_reset(&a);
	}
	b.ptr[sizeof(REPORT_MAGIC) - 1]++;
	CHECK_INT(rules_report_read(buf_str(&b), &a, &r, &err), ERR_UNSUPPORTED);
	buf_release(&b);
	rule_set_unref(set);
	arena_release(&a);
	arena_release(&arena);
}

/* Its checksum is right, its counts are not. */
TEST(counts_are_compared_with_the_bytes)
{
	struct buf b = { 0 };
	struct rules_report r;
	struct arena a;

	for (int where = 0; where < 2; where++) {
		arena_init(&a, 1 << 20);
		buf_clear(&b);
		buf_add_str(&b, STR(REPORT_MAGIC));
		buf_add_char(&b, REPORT_VERSION);
		buf_add_lenstr(&b, STR("h"));
		for (int i = 0; i < 3; i++)
			buf_add_varint(&b, 0);
		buf_add_varint(&b, where ? 1 : UINT64_MAX / 2);
		if (where) {
			static const char group[] = "\1f\1g\2\0\0\0\0\0\0\0\xff\xff\xff\xff\x0f";

			buf_add(&b, group, sizeof(group) - 1);
		}
		buf_add_u64be(&b, hash_bytes(b.ptr, b.len, 0));
		CHECK_INT(rules_report_read(buf_str(&b), &a, &r, &err), ERR_CORRUPT);
		CHECK_STR(str_of(err.msg),
			where ? "a report of rules: a number of rules is wrong" :
					"a report of rules: a number of groups is wrong");
		arena_release(&a);
	}
	buf_release(&b);
}

TEST(hashes)
{
	struct rules_snapshot own, other;
	struct rule_set *set, *same, *changed;
	uint64_t states;

	arena_init(&arena, 0);
	REQUIRE(set = load("dir/f.yml", text));
	REQUIRE(same = load("elsewhere/f.yml", text));
	REQUIRE(changed = load("dir/f.yml", text + 0));
	own = snapshot_of(set, 3);
	other = snapshot_of(same, 3);
	CHECK(rules_report_hash_rules(&own) == rules_report_hash_rules(&other));
	changed->groups[0].rules[2].for_ns++;
	other = snapshot_of(changed, 3);
	CHECK(rules_report_hash_rules(&own) != rules_report_hash_rules(&other));

	states = rules_report_hash_states(&own);
	own.groups[0].iterations++;
	own.groups[0].last_evaluation_ns++;
	own.groups[0].rules[2].alerts[0].value++;
	CHECK(rules_report_hash_states(&own) == states);
	own.groups[0].rules[2].alerts[0].phase = ALERT_FIRING;
	CHECK(rules_report_hash_states(&own) != states);
	rule_set_unref(set);
	rule_set_unref(same);
	rule_set_unref(changed);
	arena_release(&arena);
}

TEST(what_is_not_evaluated_yet_is_as_before)
{
	struct rules_report before = { .written_ns = 0 };
	struct rules_snapshot own;
	struct rule_set *set;

	arena_init(&arena, 0);
	REQUIRE(set = load("f.yml", text));
	before.rules = snapshot_of(set, 3);
	own = snapshot_of(set, 0);
	rules_report_fill(&own, &before);
	CHECK_INT(own.groups[0].rules[2].alerts_n, 0);
	own.groups[0].last_evaluation_ns = 0;
	rules_report_fill(&own, &before);
	CHECK_INT(own.groups[0].rules[2].alerts_n, 3);
	CHECK_INT(own.groups[0].last_evaluation_ns, 1700000000 * NS_PER_S);
	rule_set_unref(set);
	arena_release(&arena);
}
