/* Whose a key is while others are behind: a table of cases. */
#include "tsdb/cluster/assignment/assignment_rule.h"

#include <stdlib.h>

#include "base/map.h"
#include "tests/check.h"

static struct arena arena;
static struct err err;

/* "a b c": a version's names. */
static struct assignment_version version(uint64_t number, const char *names)
{
	struct assignment_version v = { .number = number };
	struct str *list = arena_array(&arena, struct str, 8);
	uint32_t n = 0;

	for (const char *at = names; list && *at; at += strcspn(at, " "), at += *at == ' ')
		list[n++] = (struct str){ at, strcspn(at, " ") };
	if (!list || assignment_version_make(&v, list, n, &arena, &err))
		abort();
	return v;
}

static struct str owner_of(const struct assignment_version *v, uint64_t key)
{
	return v->shards[assignment_owner(v, key)];
}

/* A key whose owners by the versions are these; "-": any. */
static uint64_t find_key(const struct assignment *s, const char *const owners[])
{
	for (uint64_t i = 1; i < 1000000; i++) {
		uint64_t key = map_hash_u64(i);
		bool fits = true;

		for (uint32_t k = 0; k < s->versions_n; k++)
			fits &= !strcmp(owners[k], "-") || str_is(owner_of(&s->versions[k], key), owners[k]);
		if (fits)
			return key;
	}
	CHECK_FAIL("no key has these owners");
	return 0;
}

static const struct {
	const char *what;
	const char *owners[3]; /* by versions 5, 6, 7 */
	struct assignment_floor floors[3];
	enum assignment_whose want;
	const char *shard;
} rows[] = {
	{ "all follow", { "b", "b", "a" }, { { { "b", 1 }, true, 7 }, { { "c", 1 }, true, 7 } },
		ASSIGNMENT_OWN, "a" },
	{ "another one's", { "a", "a", "b" }, { { { "b", 1 }, true, 7 }, { { "c", 1 }, true, 7 } },
		ASSIGNMENT_OTHERS, "b" },
	{ "one behind had it", { "-", "b", "a" }, { { { "b", 1 }, true, 6 }, { { "c", 1 }, true, 7 } },
		ASSIGNMENT_WAITS, "b" },
	{ "one behind, another had it", { "-", "b", "a" },
		{ { { "b", 1 }, true, 7 }, { { "c", 1 }, true, 6 } }, ASSIGNMENT_OWN, "a" },
	{ "two steps behind had it then", { "b", "a", "a" },
		{ { { "b", 1 }, true, 5 }, { { "c", 1 }, true, 7 } }, ASSIGNMENT_WAITS, "b" },
	{ "two steps behind may have begun the next one", { "c", "b", "a" },
		{ { { "b", 1 }, true, 5 }, { { "c", 1 }, true, 7 } }, ASSIGNMENT_WAITS, "b" },
	{ "one step behind, two steps ago it had it", { "b", "a", "a" },
		{ { { "b", 1 }, true, 6 }, { { "c", 1 }, true, 7 } }, ASSIGNMENT_OWN, "a" },
	{ "older than all", { "a", "a", "a" }, { { { "b", 1 }, true, 4 }, { { "c", 1 }, true, 7 } },
		ASSIGNMENT_WAITS, "b" },
	{ "unknown", { "a", "a", "a" }, { { { "b", 1 }, true, 7 }, { { "c", 1 }, false, 0 } },
		ASSIGNMENT_WAITS, "c" },
	{ "unknown, another one's all the same", { "-", "-", "c" },
		{ { { "b", 1 }, true, 7 }, { { "c", 1 }, false, 0 } }, ASSIGNMENT_OTHERS, "c" },
};

TEST(cases)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct assignment_version v[3];
		struct assignment s = { .number = 7, .versions = v, .versions_n = 3 };
		struct assignment_rule *rule;
		struct str shard;
		uint64_t key;

		arena_init(&arena, 0);
		v[0] = version(5, rows[i].owners[0][0] == '-' ? "b c" : rows[i].owners[0]);
		v[1] = version(6, rows[i].owners[1][0] == '-' ? "b c" : rows[i].owners[1]);
		v[2] = version(7, "a b c");
		key = find_key(&s, rows[i].owners);
		REQUIRE_OK(assignment_rule_new(&s, STR("a"), rows[i].floors, 2, &rule, &err), &err);
		CHECK_INT(assignment_rule_whose(rule, key, &shard), rows[i].want);
		if (!str_is(shard, rows[i].shard))
			CHECK_FAIL("%s: " STR_FMT ", want %s", rows[i].what, STR_ARG(shard), rows[i].shard);
		assignment_rule_unref(rule);
		arena_release(&arena);
	}
}

/* A server with a fixed total has what the jump hash gives its ordinal. */
TEST(fixed_total)
{
	const struct assignment_floor floors[] = { { STR("s-0"), true, 0 }, { STR("s-2"), true, 1 } };
	struct assignment_version v;
	struct assignment s = { .number = 1, .versions = &v, .versions_n = 1, .total = 3 };
	unsigned own = 0, waits = 0;
	struct assignment_rule *rule;
	struct str shard;

	arena_init(&arena, 0);
	v = version(1, "s-0 s-1 s-2");
	REQUIRE_OK(assignment_rule_new(&s, STR("s-1"), floors, 2, &rule, &err), &err);
	CHECK(!assignment_rule_is_settled(rule));
	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t key = map_hash_u64(i);
		bool mine = str_is(owner_of(&v, key), "s-1"), theirs = hash_owner(key, 3) == 0;

		CHECK_INT(assignment_rule_whose(rule, key, &shard),
			!mine      ? ASSIGNMENT_OTHERS :
				theirs ? ASSIGNMENT_WAITS :
						 ASSIGNMENT_OWN);
		own += mine && !theirs;
		waits += mine && theirs;
	}
	CHECK(own && waits);
	assignment_rule_unref(rule);
	s.total = 0; /* there were none: who says no number has nothing */
	REQUIRE_OK(assignment_rule_new(&s, STR("s-1"), floors, 2, &rule, &err), &err);
	CHECK(assignment_rule_is_settled(rule));
	assignment_rule_unref(rule);
	arena_release(&arena);
}

TEST(nothing_known)
{
	const struct assignment s = { 0 };
	struct assignment_rule *rule;
	struct str shard;

	arena_init(&arena, 0);
	REQUIRE_OK(assignment_rule_new(&s, STR("a"), NULL, 0, &rule, &err), &err);
	CHECK_INT(assignment_rule_whose(rule, 7, &shard), ASSIGNMENT_WAITS);
	CHECK_INT(shard.len, 0);
	CHECK(!assignment_rule_is_settled(rule));
	assignment_rule_unref(rule);
	arena_release(&arena);
}

/* Versions that the object has no more are remembered, without a gap, and up to a limit. */
TEST(older_versions_stay)
{
	struct assignment_version had[2], now[2];
	struct assignment older = { .number = 6, .versions = had, .versions_n = 2 };
	struct assignment s = { .number = 8, .versions = now, .versions_n = 2 }, both;

	arena_init(&arena, 0);
	had[0] = version(5, "a");
	had[1] = version(6, "a b");
	now[0] = version(7, "a b");
	now[1] = version(8, "b");
	CHECK_OK(assignment_copy(&s, &older, &arena, &both, &err), &err);
	REQUIRE(both.versions_n == 4);
	CHECK_INT(both.versions[0].number, 5);
	CHECK_INT(both.versions[3].number, 8);
	now[0].number = 8;
	now[1].number = 9;
	s.number = 9; /* 7 is missing */
	CHECK_OK(assignment_copy(&s, &older, &arena, &both, &err), &err);
	CHECK_INT(both.versions_n, 2);
	arena_release(&arena);
}
