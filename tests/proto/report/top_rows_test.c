#include "proto/report/top_rows.h"

#include "tests/check.h"

static struct top_key key_of(const void *ctx, uint32_t id)
{
	return ((const struct top_key *)ctx)[id];
}

/* Each row goes before the next one; the last two are no rows. */
TEST(order)
{
	static const struct top_key keys[] = {
		{ INT64_MIN, 0, { "z", 1 }, { "", 0 }, 0 },
		{ -7, 7, { "b", 1 }, { "", 0 }, 0 },
		{ 7, 9, { "c", 1 }, { "", 0 }, 0 },
		{ 7, 8, { "c", 1 }, { "", 0 }, 0 },
		{ 7, -7, { "c", 1 }, { "", 0 }, 10 },
		{ 7, 7, { "c", 1 }, { "", 0 }, 9 }, /* first lines are compared as text */
		{ 7, 7, { "d", 1 }, { "/a", 2 }, 0 },
		{ 7, 7, { "d", 1 }, { "/b", 2 }, 0 },
		{ 0, 1, { "a", 1 }, { "", 0 }, 0 },
		{ 0, 0, { "a", 1 }, { "", 0 }, 0 },
		{ 0, 0, { "b", 1 }, { "", 0 }, 0 },
	};
	enum { N = sizeof(keys) / sizeof(keys[0]) };
	uint32_t ids[N];

	for (uint32_t first = 0; first < N; first++) {
		for (uint32_t i = 0; i < N; i++)
			ids[i] = (first + i * 7) % N;
		REQUIRE(top_rows(ids, N, key_of, keys, false) == N - 2);
		for (uint32_t i = 0; i < N - 2; i++)
			CHECK_INT(ids[i], i);
	}
	CHECK_INT(top_rows(NULL, 0, key_of, keys, false), 0);
}

TEST(percent)
{
	CHECK(top_percent(1, 4) == 25);
	CHECK(top_percent(-1, 4) == 25);
	CHECK(top_percent(1, -4) == 25);
	CHECK(top_percent(1, 0) == 0);
}
