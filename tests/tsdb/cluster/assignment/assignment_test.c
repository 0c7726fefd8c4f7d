/* The assignment: printed and read, what is refused, owners of keys, changes. */
#include "tsdb/cluster/assignment/assignment.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "tests/check.h"
#include "tsdb/cluster/assignment/assignment_change.h"

#define SECRET "0123456789abcdef0123456789abcdef"
#define KEYS 20000u

static struct arena arena;
static struct err err;

static void seal(struct buf *text)
{
	buf_printf(text, "\"checksum\":\"%016" PRIx64 "\"}\n", hash_bytes(text->ptr, text->len, 0));
}

static enum err_code parse_sealed(const char *members, struct assignment *out)
{
	struct buf text = { 0 };
	enum err_code rc;

	buf_printf(&text, "{%s,", members);
	seal(&text);
	rc = assignment_parse(buf_str(&text), &arena, out, &err);
	buf_release(&text);
	return rc;
}

#define HEAD "\"version\":1,\"number\":2,\"total\":3,\"secret\":\"" SECRET "\""
#define VERSIONS \
	"\"versions\":[{\"number\":1,\"since_ns\":5,\"shards\":[\"a\"]}," \
	"{\"number\":2,\"since_ns\":7,\"shards\":[\"a\",\"b-1\"]}]"
#define DRAINED "\"drained\":[\"c\"]"

TEST(text_and_back)
{
	static const char members[] = HEAD "," VERSIONS "," DRAINED;
	struct buf out = { 0 }, want = { 0 };
	struct assignment s;

	arena_init(&arena, 0);
	REQUIRE_OK(parse_sealed(members, &s), &err);
	CHECK_INT(s.number, 2);
	CHECK_INT(s.total, 3);
	CHECK_INT(s.settled, 0);
	CHECK(!strcmp(s.secret, SECRET));
	REQUIRE(s.versions_n == 2 && s.drained_n == 1);
	CHECK_STR(s.versions[1].shards[1], "b-1");
	CHECK_INT(s.versions[1].since_ns, 7);
	CHECK(assignment_version_has(assignment_newest(&s), STR("b-1")));
	CHECK(!assignment_version_has(assignment_newest(&s), STR("b")));
	CHECK(assignment_is_drained(&s, STR("c")) && !assignment_is_drained(&s, STR("a")));
	CHECK(assignment_find(&s, 1) == &s.versions[0] && !assignment_find(&s, 3));
	CHECK(!assignment_find(&s, 0));
	buf_printf(&want, "{%s,", members);
	seal(&want);
	assignment_print(&out, &s);
	CHECK(str_eq(buf_str(&out), buf_str(&want)));
	/* A member that is not known is passed over; the file's is read. */
	REQUIRE_OK(
		parse_sealed("\"later\":[1]," HEAD ",\"settled\":2," VERSIONS "," DRAINED, &s), &err);
	CHECK_INT(s.settled, 2);
	buf_release(&out);
	buf_release(&want);
	arena_release(&arena);
}

TEST(refused)
{
	static const struct {
		const char *members, *want;
	} rows[] = {
		{ "\"version\":2",
			"assignment: version 2 was written by another program; this one reads "
			"version 1" },
		{ "\"version\":1,\"number\":0", "assignment: member \"number\" is missing or wrong" },
		{ "\"version\":1,\"number\":1,\"total\":5000",
			"assignment: member \"total\" is missing or wrong" },
		{ "\"version\":1,\"number\":1,\"total\":0,\"secret\":\"xyz\"",
			"assignment: member \"secret\" is missing or wrong" },
		{ HEAD, "assignment: member \"versions\" is missing or wrong" },
		{ HEAD ",\"versions\":[]", "assignment: member \"versions\" is missing or wrong" },
		/* more than the number, a gap, the last is not the number's */
		{ HEAD ",\"versions\":[{},{},{}]", "assignment: member \"versions\" is missing or wrong" },
		{ HEAD ",\"versions\":[{\"number\":1,\"since_ns\":1,\"shards\":[\"a\"]}]",
			"assignment: member \"versions\" is missing or wrong" },
		{ HEAD ",\"versions\":[{\"number\":2,\"since_ns\":1,\"shards\":[]}]",
			"assignment: member \"shards\" is missing or wrong" },
		{ HEAD ",\"versions\":[{\"number\":2,\"since_ns\":1,\"shards\":[\"b\",\"a\"]}]",
			"assignment: member \"shards\" is missing or wrong" },
		{ HEAD ",\"versions\":[{\"number\":2,\"since_ns\":1,\"shards\":[\"a\",\"a\"]}]",
			"assignment: member \"shards\" is missing or wrong" },
		{ HEAD ",\"versions\":[{\"number\":2,\"since_ns\":1,\"shards\":[\"../a\"]}]",
			"assignment: member \"shards\" is missing or wrong" },
		{ HEAD ",\"versions\":[{\"number\":2,\"since_ns\":1,\"shards\":[7]}]",
			"assignment: member \"shards\" is missing or wrong" },
		{ HEAD "," VERSIONS, "assignment: member \"drained\" is missing or wrong" },
		{ HEAD ",\"settled\":3," VERSIONS "," DRAINED,
			"assignment: member \"settled\" is missing or wrong" },
	};
	struct assignment s;

	arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(parse_sealed(rows[i].members, &s), &err, i ? ERR_CORRUPT : ERR_UNSUPPORTED,
			rows[i].want);
	CHECK_ERR(assignment_parse(STR("{}"), &arena, &s, &err), &err, ERR_CORRUPT,
		"assignment: only 2 bytes");
	CHECK_ERR(assignment_parse(STR("{\"checksum\":\"0123456789abcdef\"}\n"), &arena, &s, &err),
		&err, ERR_CORRUPT, "assignment: its checksum is wrong");
	arena_release(&arena);
}

/* ---- owners ---- */

static struct assignment_version version_of(unsigned n, unsigned without)
{
	struct str *names = arena_array(&arena, struct str, n + 1);
	struct assignment_version v = { .number = 1 };
	uint32_t names_n = 0;

	for (unsigned i = 0; names && i < n; i++)
		if (i != without)
			names[names_n++] = str_of(arena_printf(&arena, "shard-%04u", i));
	if (!names || assignment_version_make(&v, names, names_n, &arena, &err))
		abort();
	return v;
}

static uint64_t key_of(unsigned i)
{
	return hash_bytes(&i, sizeof(i), 17);
}

/* Each gets its part, within five standard deviations. */
TEST(parts_are_even)
{
	arena_init(&arena, 0);
	for (unsigned n = 1; n <= 200; n += n < 8 ? 1 : check_is_short() ? 61 : 24) {
		struct assignment_version v = version_of(n, n);
		double mean = (double)KEYS / n, far;
		unsigned counts[200] = { 0 };

		for (unsigned i = 0; i < KEYS; i++)
			counts[assignment_owner(&v, key_of(i))]++;
		for (unsigned k = 0; k < n; k++) {
			far = (double)counts[k] - mean;
			if (far * far > 25 * mean)
				CHECK_FAIL("shard %u of %u has %u keys, want about %.0f", k, n, counts[k], mean);
		}
	}
	arena_release(&arena);
}

/* A shard that goes, or comes, moves its own keys alone, wherever its name stands. */
TEST(movement_is_least)
{
	arena_init(&arena, 0);
	for (unsigned n = 2; n <= 200; n += n < 8 ? 1 : check_is_short() ? 61 : 24) {
		unsigned gone = n / 2, moved = 0;
		struct assignment_version all = version_of(n, n), less = version_of(n, gone);

		for (unsigned i = 0; i < KEYS; i++) {
			uint32_t was = assignment_owner(&all, key_of(i)),
					 is = assignment_owner(&less, key_of(i));

			if (was == gone)
				moved++;
			else if (!str_eq(all.shards[was], less.shards[is]))
				CHECK_FAIL("key %u moved from shard %u of %u", i, was, n);
		}
		CHECK(moved > 0);
	}
	arena_release(&arena);
}

/* It is the same in every version of the program: these keys were owned so when it was made. */
TEST(owners_are_stable)
{
	static const uint64_t keys[] = { 0, 1, 42, UINT64_MAX, UINT64_C(0x9e3779b97f4a7c15) };
	struct assignment_version v;
	struct buf got = { 0 };

	arena_init(&arena, 0);
	v = version_of(5, 5);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		buf_printf(&got, "%u ", (unsigned)assignment_owner(&v, keys[i]));
	CHECK_STR(buf_str(&got), "4 3 2 0 3 ");
	buf_release(&got);
	arena_release(&arena);
}

TEST(version_of_a_time)
{
	struct assignment_version v[] = { version_of(0, 0), version_of(0, 0), version_of(0, 0) };
	struct assignment s = { .number = 9, .versions = v, .versions_n = 3 };

	v[0].since_ns = 10;
	v[1].since_ns = 20;
	v[2].since_ns = 20;
	CHECK(assignment_at(&s, 5) == &v[0]);
	CHECK(assignment_at(&s, 19) == &v[0]);
	CHECK(assignment_at(&s, 20) == &v[2]);
	arena_release(&arena);
}

/* ---- changes ---- */

static struct assignment change(const struct assignment *from, enum assignment_verb verb,
	const char *shard, enum err_code want, bool changes)
{
	struct assignment_change c = { verb, str_of(shard), 0 };
	struct assignment s = *from;
	bool changed = false;

	CHECK_INT(assignment_changed(from, &c, 1000, 50, &arena, &s, &changed, &err), want);
	CHECK_INT(changed, changes);
	return want ? *from : s;
}

static void check_list(const struct str *names, uint32_t n, const char *want)
{
	struct buf got = { 0 };

	for (uint32_t i = 0; i < n; i++)
		buf_printf(&got, "%s" STR_FMT, i ? " " : "", STR_ARG(names[i]));
	buf_add_str(&got, STR(""));
	CHECK(str_is(buf_str(&got), want));
	buf_release(&got);
}

TEST(join_drain_admit)
{
	struct assignment s = { 0 };

	arena_init(&arena, 0);
	change(&s, ASSIGNMENT_DRAIN, "b", ERR_NOT_FOUND, false);
	s = change(&s, ASSIGNMENT_JOIN, "b", ERR_OK, true);
	CHECK_INT(s.number, 1);
	CHECK_INT(strlen(s.secret), ASSIGNMENT_SECRET_LEN);
	CHECK_INT(assignment_newest(&s)->since_ns, 1000);
	s = change(&s, ASSIGNMENT_JOIN, "b", ERR_OK, false);
	change(&s, ASSIGNMENT_DRAIN, "b", ERR_INVALID, false);
	CHECK(!strcmp(err.msg, "shard b is the last one: nobody would have its targets"));
	change(&s, ASSIGNMENT_JOIN, "../b", ERR_INVALID, false);
	s = change(&s, ASSIGNMENT_JOIN, "a", ERR_OK, true);
	CHECK_INT(s.number, 2);
	CHECK_INT(assignment_newest(&s)->since_ns, 1000 + 50 + CHANGE_AHEAD_NS);
	check_list(assignment_newest(&s)->shards, assignment_newest(&s)->n, "a b");
	change(&s, ASSIGNMENT_ADMIT, "c", ERR_NOT_FOUND, false);
	s = change(&s, ASSIGNMENT_DRAIN, "a", ERR_OK, true);
	check_list(assignment_newest(&s)->shards, assignment_newest(&s)->n, "b");
	check_list(s.drained, s.drained_n, "a");
	s = change(&s, ASSIGNMENT_DRAIN, "a", ERR_OK, false);
	s = change(&s, ASSIGNMENT_JOIN, "a", ERR_OK, false); /* not by itself */
	s = change(&s, ASSIGNMENT_ADMIT, "a", ERR_OK, true);
	CHECK_INT(s.number, 4);
	check_list(assignment_newest(&s)->shards, assignment_newest(&s)->n, "a b");
	CHECK_INT(s.drained_n, 0);
	for (unsigned i = 0; i < ASSIGNMENT_VERSIONS_MAX; i++)
		s = change(&s, ASSIGNMENT_JOIN, arena_printf(&arena, "c-%u", i), ERR_OK, true);
	CHECK_INT(s.versions_n, ASSIGNMENT_VERSIONS_MAX);
	CHECK_INT(s.number, 4 + ASSIGNMENT_VERSIONS_MAX);
	CHECK_INT(s.versions[0].number, 5);
	arena_release(&arena);
}

TEST(first_of_a_fixed_total)
{
	const struct assignment_change c = { ASSIGNMENT_JOIN, STR("pod-7"), 11 };
	struct assignment none = { 0 }, s;
	bool changed;

	arena_init(&arena, 0);
	CHECK_OK(assignment_changed(&none, &c, 1, 1, &arena, &s, &changed, &err), &err);
	CHECK_INT(s.total, 11);
	check_list(assignment_newest(&s)->shards, assignment_newest(&s)->n,
		"pod-0 pod-1 pod-10 pod-2 pod-3 pod-4 pod-5 pod-6 pod-7 pod-8 pod-9");
	arena_release(&arena);
}
