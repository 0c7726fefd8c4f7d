#include "scrape/targets/shard.h"

#include "base/map.h"
#include "tests/check.h"

#define TARGETS 20000

static unsigned owner_of(unsigned target, unsigned total)
{
	char address[32];

	snprintf(address, sizeof(address), "10.%u.%u.%u:8080", target >> 16, target >> 8 & 255,
		target & 255);
	return shard_of(STR("api"), str_of(address), total);
}

/* Each gets its part, within five standard deviations. */
TEST(parts_are_even)
{
	static const unsigned totals[] = { 1, 2, 3, 7, 100 };

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		unsigned n = totals[i], counts[100] = { 0 };
		double mean = (double)TARGETS / n, far;

		for (unsigned t = 0; t < TARGETS; t++)
			counts[owner_of(t, n)]++;
		for (unsigned k = 0; k < n; k++) {
			far = (double)counts[k] - mean;
			if (far * far > 25 * mean)
				CHECK_FAIL("shard %u of %u has %u targets, want about %.0f", k, n, counts[k], mean);
		}
	}
}

/* From n to n + 1 only targets of the new shard move: about 1 of n + 1. */
TEST(resize_moves_few)
{
	for (unsigned n = 1; n < 40; n += check_is_short() ? 5 : 1) {
		double mean = (double)TARGETS / (n + 1), far;
		unsigned moved = 0;

		for (unsigned t = 0; t < TARGETS; t++) {
			unsigned before = owner_of(t, n), after = owner_of(t, n + 1);

			if (before != after && after != n)
				CHECK_FAIL("from %u to %u shards, one moves to %u", n, n + 1, after);
			moved += before != after;
		}
		far = (double)moved - mean;
		if (far * far > 25 * mean)
			CHECK_FAIL("from %u to %u shards %u move, want about %.0f", n, n + 1, moved, mean);
	}
}

/* Servers of all versions must agree. */
TEST(owners_stay)
{
	static const unsigned want[] = { 3, 5, 13, 14, 2, 10, 7, 13, 5, 4 };

	for (unsigned t = 0; t < sizeof(want) / sizeof(want[0]); t++)
		CHECK_INT(owner_of(t, 16), want[t]);
}

TEST(job_and_address_count)
{
	unsigned jobs = 0, bounds = 0;

	for (unsigned i = 0; i < 100; i++) {
		char job[16];

		snprintf(job, sizeof(job), "job%u", i);
		jobs += shard_of(str_of(job), STR("a:1"), 100) != shard_of(STR("job"), STR("a:1"), 100);
	}
	CHECK(jobs > 90);
	for (unsigned n = 2; n < 100; n++)
		bounds += shard_of(STR("a"), STR("bc"), n) != shard_of(STR("ab"), STR("c"), n);
	CHECK(bounds > 0);
}

TEST(ordinals)
{
	static const struct {
		const char *name;
		int want; /* -1: none */
	} rows[] = { { "epi-0", 0 }, { "epi-12", 12 }, { "epi007", 7 }, { "3", 3 }, { "a1b", -1 },
		{ "epi-", -1 }, { "", -1 }, { "a4095", 4095 }, { "a4096", -1 },
		{ "a99999999999999999999", -1 } };
	unsigned got;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		got = 77;
		CHECK(shard_ordinal(str_of(rows[i].name), &got) == (rows[i].want >= 0));
		CHECK_INT(got, rows[i].want >= 0 ? rows[i].want : 77);
	}
}
