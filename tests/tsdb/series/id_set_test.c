/* Sets of ids against plain arrays of bytes. */
#include "tsdb/series/id_set.h"

#include "base/map.h"
#include "tests/check.h"

#define IDS 70000u

static uint32_t drawn(uint64_t *seed, uint32_t below)
{
	*seed = map_hash_u64(*seed + 1);
	return (uint32_t)(*seed >> 20) % below;
}

static void check_set(const struct id_set *s, const unsigned char *there, uint64_t *seed)
{
	struct bits b = { 0 }, into = { 0 }, out = { 0 }, keep = { 0 };
	uint32_t n = 0, both = 0, first = ID_SET_NONE, bad = 0, end = drawn(seed, IDS) + 1;

	REQUIRE(bits_reserve(&b, end) && bits_reserve(&into, end) && bits_reserve(&out, end) &&
		bits_reserve(&keep, end));
	for (uint32_t i = 0; i < end; i++)
		if (drawn(seed, 3)) {
			bits_set(&b, i);
			bits_set(&into, i);
			bits_set(&out, i);
			bits_set(&keep, i);
		}
	id_set_into(s, &into);
	id_set_out_of(s, &out);
	id_set_keep(s, &keep);
	for (uint32_t i = IDS; i-- > 0;) {
		bool in_b = bits_get(&b, i), room = i < b.words * 64;

		n += there[i];
		both += there[i] && in_b;
		first = there[i] ? i : first;
		bad += id_set_has(s, i) != there[i];
		bad += bits_get(&into, i) != (in_b || (there[i] && room));
		bad += bits_get(&out, i) != (in_b && !there[i]);
		bad += bits_get(&keep, i) != (in_b && there[i]);
	}
	CHECK_INT(bad, 0);
	CHECK_INT(s->n, n);
	CHECK_INT(id_set_first(s), first);
	CHECK_INT(id_set_count(s, &b), both);
	CHECK_INT(id_set_meets(s, &b), both > 0);
	CHECK(!id_set_has(s, IDS * 3));
	/* Lists grow by half; bits by a quarter, and only if that is less than half more. */
	CHECK(id_set_bytes(s) <= 16 + (size_t)n * 12 || id_set_bytes(s) <= IDS / 8 * 5 / 4 + 16);
	bits_release(&b);
	bits_release(&into);
	bits_release(&out);
	bits_release(&keep);
}

/* Dense and sparse runs, ascending and not, with removals in between. */
TEST(sets_are_as_arrays_say)
{
	unsigned char *there = malloc(IDS);

	REQUIRE(there != NULL);
	for (uint64_t seed = 1; seed < 60; seed++) {
		uint64_t draw = seed * 1000;
		struct id_set s = { 0 };
		uint32_t at = drawn(&draw, 2) ? 0 : drawn(&draw, IDS);

		memset(there, 0, IDS);
		for (unsigned phase = 0; phase < 6; phase++) {
			uint32_t step = 1u << drawn(&draw, 10), n = 1u << drawn(&draw, 12);
			bool adds = phase == 0 || drawn(&draw, 3);

			if (drawn(&draw, 3) == 0)
				at = drawn(&draw, IDS);
			for (uint32_t i = 0; i < n; i++) {
				at = (at + 1 + drawn(&draw, step)) % IDS;
				if (adds && !there[at])
					REQUIRE(id_set_add(&s, at));
				if (!adds)
					CHECK(id_set_remove(&s, at) == there[at]);
				there[at] = adds;
			}
			check_set(&s, there, &draw);
		}
		for (uint32_t i = 0; i < IDS; i++)
			if (there[i])
				CHECK(id_set_remove(&s, i));
		CHECK_INT(s.n, 0);
		CHECK_INT(id_set_bytes(&s), 0);
		CHECK_INT(id_set_first(&s), ID_SET_NONE);
		id_set_release(&s);
	}
	free(there);
}

/* One id needs no memory; all ids need bits; an id far away makes a list of few bits. */
TEST(sets_take_the_smaller_form)
{
	struct id_set s = { 0 };

	REQUIRE(id_set_add(&s, 4000000));
	REQUIRE(id_set_add(&s, 7));
	CHECK_INT(id_set_bytes(&s), 0);
	CHECK_INT(id_set_first(&s), 7);
	for (uint32_t i = 8; i < 40000; i++)
		REQUIRE(id_set_add(&s, i));
	CHECK(!s.is_bits);
	id_set_release(&s);
	for (uint32_t i = 0; i < 100; i++)
		REQUIRE(id_set_add(&s, i));
	CHECK(s.is_bits);
	CHECK_INT(id_set_bytes(&s), 16);
	REQUIRE(id_set_add(&s, 4000000));
	CHECK(!s.is_bits);
	CHECK(id_set_bytes(&s) < 1000);
	for (uint32_t i = 0; i < 100; i++)
		CHECK(id_set_has(&s, i));
	CHECK(id_set_has(&s, 4000000));
	id_set_release(&s);
}
