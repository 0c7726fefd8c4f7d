#include "base/array.h"

#include <stdlib.h>

#include "tests/check.h"

TEST(grows_and_keeps_what_is_there)
{
	uint32_t *v = NULL;
	size_t cap = 0, moves = 0;

	for (uint32_t i = 0; i < 100000; i++) {
		size_t before = cap;

		REQUIRE(array_room(&v, i, 1, &cap));
		moves += cap != before;
		v[i] = i;
	}
	for (uint32_t i = 0; i < 100000; i++)
		CHECK_INT(v[i], i);
	CHECK(moves < 40); /* by half each time */
	CHECK(array_room(&v, 100000, 500000, &cap));
	CHECK(cap >= 600000);
	free(v);
}

TEST(grows_in_an_arena)
{
	uint64_t *v = NULL;
	uint32_t cap = 0;
	struct arena a;

	arena_init(&a, 0);
	for (uint32_t i = 0; i < 1000; i++) {
		REQUIRE(arena_array_room(&a, &v, i, 1, &cap));
		v[i] = i;
	}
	for (uint32_t i = 0; i < 1000; i++)
		CHECK_INT(v[i], i);
	CHECK(a.used_bytes <= 2 * cap * sizeof(*v)); /* the array and the smaller ones before it */
	arena_release(&a);
	arena_init(&a, 4096);
	v = NULL;
	cap = 0;
	CHECK(!arena_array_room(&a, &v, 0, 1000, &cap));
	CHECK(!v && !cap);
	arena_release(&a);
}

TEST(never_more_than_the_capacity_can_say)
{
	uint8_t *v = NULL, cap = 0;

	CHECK(array_room(&v, 0, 255, &cap));
	CHECK_INT(cap, 255);
	CHECK(!array_room(&v, 255, 1, &cap));
	CHECK_INT(cap, 255);
	CHECK(!array_room(&v, 200, SIZE_MAX - 100, &cap));
	free(v);
}
