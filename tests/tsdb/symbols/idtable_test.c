#include <assert.h>
#include <stdlib.h>

#include "base/map.h"
#include "tests/check.h"
#include "tsdb/symbols/idtable.h"
#include "tsdb/symbols/leafcache.h"

/*
 * Keys at random under ids at random, compared with an array by id. Weak hashes put many keys in
 * one place; ids that grow by jumps make the pieces of hashes shorter, down to none.
 */
#define KEYS 3000u

struct keys {
	uint64_t v[KEYS];
	uint32_t ids[KEYS], n; /* ids ascend */
	uint64_t hash_mask;
};

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state = map_hash_u64(*state + UINT64_C(0x9e3779b97f4a7c15));
	return *state % below;
}

static uint64_t hash_of_key(const struct keys *k, uint64_t key)
{
	return map_hash_u64(key) & k->hash_mask;
}

static uint32_t index_of(const struct keys *k, uint32_t id)
{
	uint32_t low = 0, high = k->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (k->ids[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint64_t hash_of(const void *ctx, const struct idtable *t, uint32_t id)
{
	const struct keys *k = ctx;
	uint32_t at = index_of(k, id);

	assert(at < k->n && k->ids[at] == id);
	return hash_of_key(k, k->v[at]);
}

static uint32_t find(const struct idtable *t, const struct keys *k, uint64_t key)
{
	uint64_t hash = hash_of_key(k, key);
	uint32_t place = idtable_place(t, hash), id;

	while (t->n && (id = idtable_next(t, hash, &place)) != IDTABLE_NONE)
		if (k->v[index_of(k, id)] == key)
			return id;
	return IDTABLE_NONE;
}

static void check_all(const struct idtable *t, const struct keys *k)
{
	for (uint32_t i = 0; i < k->n; i++)
		CHECK_INT(find(t, k, k->v[i]), k->ids[i]);
	for (uint64_t key = 1; key < 40; key += 2) /* keys are even */
		CHECK_INT(find(t, k, key), IDTABLE_NONE);
}

/* step: how far ids are apart, at most. */
static void fill(uint64_t hash_mask, uint64_t step, uint64_t seed)
{
	struct keys *k = calloc(1, sizeof(*k));
	struct idtable t = { 0 };
	uint64_t id = 0;

	REQUIRE(k != NULL);
	k->hash_mask = hash_mask;
	check_all(&t, k);
	while (k->n < KEYS && id < IDTABLE_NONE) {
		k->v[k->n] = ((uint64_t)k->n << 20 | draw(&seed, 1 << 10)) << 1;
		k->ids[k->n] = (uint32_t)id;
		k->n++;
		REQUIRE(idtable_add(&t, hash_of_key(k, k->v[k->n - 1]), (uint32_t)id, hash_of, k));
		CHECK_INT(t.used, k->n);
		CHECK(t.used * 5 <= t.n * 4 && idtable_bytes(&t) == t.n * sizeof(uint32_t));
		if (k->n % 500 == 0 || k->n < 40)
			check_all(&t, k);
		id += 1 + draw(&seed, step);
	}
	check_all(&t, k);
	idtable_release(&t);
	CHECK_INT(idtable_bytes(&t), 0);
	free(k);
}

TEST(a_table_finds_what_was_added)
{
	fill(UINT64_MAX, 1, 1);
	fill(UINT64_MAX, 1000, 2);
	fill(UINT64_MAX, 1 << 22, 3); /* up to the last id */
	fill(UINT64_MAX << 58, 1, 4); /* no pieces to tell hashes apart, few places */
	fill(UINT64_C(0xffffffff), 50, 5); /* one place */
	fill(0, 7, 6);
}

/* What a cache answers was added under the hash, or under one that differs in what the slot has no
 * room for: never 0 for what was added last. */
TEST(a_leaf_cache_keeps_the_latest_nodes)
{
	enum { STACKS = 5000, LAST = 32 };
	static const uint32_t steps[] = { 1, 900, UINT32_MAX / STACKS };
	struct leafcache c = { 0 };
	uint64_t hash[LAST];
	uint32_t node[LAST];

	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		uint64_t seed = s;

		REQUIRE(leafcache_reserve(&c, 100));
		CHECK_INT(leafcache_find(&c, 0), 0);
		for (uint32_t i = 0; i < STACKS; i++) {
			hash[i % LAST] = draw(&seed, UINT64_MAX);
			node[i % LAST] = 1 + i * steps[s];
			leafcache_add(&c, hash[i % LAST], node[i % LAST]);
			CHECK_INT(leafcache_find(&c, hash[i % LAST]), node[i % LAST]);
		}
		for (uint32_t i = 0, found = 0; i < LAST; i++) {
			uint32_t at = leafcache_take(&c, hash[i]);

			found += at == node[i];
			CHECK(i < LAST - 1 || found >= LAST / 2);
			CHECK_INT(leafcache_take(&c, hash[i]), at);
		}
		leafcache_release(&c);
	}
}

TEST(a_leaf_cache_grows_and_is_empty_then)
{
	struct leafcache c = { 0 };
	size_t bytes;

	REQUIRE(leafcache_reserve(&c, 1000));
	bytes = leafcache_bytes(&c);
	CHECK(bytes >= 4 * 1000 * sizeof(uint32_t) && bytes <= 5 * 1000 * sizeof(uint32_t) + 256);
	leafcache_add(&c, 42, 7);
	REQUIRE(leafcache_reserve(&c, 10));
	CHECK_INT(leafcache_find(&c, 42), 7);
	CHECK_INT(leafcache_bytes(&c), bytes);
	REQUIRE(leafcache_reserve(&c, 3000));
	CHECK_INT(leafcache_find(&c, 42), 0);
	leafcache_release(&c);
}
