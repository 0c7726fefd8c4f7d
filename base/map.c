#include "base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes, n, seed);
}

void map_init(struct map *m)
{
	*m = (struct map){ 0 };
}

void map_release(struct map *m)
{
	free(m->slots);
	free(m->tags);
	map_init(m);
}

size_t map_bytes(const struct map *m)
{
	return m->slots ? (m->mask + 1) * 2 * sizeof(uint32_t) : 0;
}

/*
 * The tag is the hash's high 32 bits and the place comes from the same bits, so that a table can
 * grow from its tags alone, up to 2^32 slots.
 */
static uint32_t map_tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32);
}

uint32_t map_find(
	const struct map *m, uint64_t hash, map_eq_fn eq, const void *ctx, const void *key)
{
	uint32_t tag = map_tag_of(hash);
	size_t i;

	if (!m->slots)
		return MAP_NONE;
	for (i = tag & m->mask; m->slots[i]; i = (i + 1) & m->mask)
		if (m->tags[i] == tag && eq(ctx, key, m->slots[i] - 1))
			return m->slots[i] - 1;
	return MAP_NONE;
}

static bool map_grow(struct map *m)
{
	size_t n = m->slots ? (m->mask + 1) * 2 : 16, i, at;
	struct map wide = { .mask = n - 1, .used = m->used };

	wide.slots = calloc(n, sizeof(*wide.slots));
	wide.tags = malloc(n * sizeof(*wide.tags));
	if (!wide.slots || !wide.tags) {
		map_release(&wide);
		return false;
	}
	for (i = 0; m->slots && i <= m->mask; i++) {
		if (!m->slots[i])
			continue;
		for (at = m->tags[i] & wide.mask; wide.slots[at]; at = (at + 1) & wide.mask)
			;
		wide.slots[at] = m->slots[i];
		wide.tags[at] = m->tags[i];
	}
	map_release(m);
	*m = wide;
	return true;
}

/* Drawn so many at a time, as each request may need one. */
#define SEEDS 32u

uint64_t hash_seed(void)
{
	static _Thread_local uint64_t seeds[SEEDS];
	static _Thread_local unsigned left;

	if (left == 0) {
		if (getrandom(seeds, sizeof(seeds), GRND_NONBLOCK) != (ssize_t)sizeof(seeds))
			return map_hash_u64((uint64_t)(uintptr_t)&seeds); /* early in boot: use the address */
		left = SEEDS;
	}
	return seeds[--left];
}

bool map_add(struct map *m, uint64_t hash, uint32_t id)
{
	uint32_t tag = map_tag_of(hash);
	size_t i;

	assert(id != MAP_NONE);
	if ((!m->slots || (m->used + 1) * 4 > (m->mask + 1) * 3) && !map_grow(m))
		return false;
	for (i = tag & m->mask; m->slots[i]; i = (i + 1) & m->mask)
		;
	m->slots[i] = id + 1;
	m->tags[i] = tag;
	m->used++;
	return true;
}

/*
 * Imagine that servers 0, 1, 2, ... are added one after the other, and that server k takes each
 * key over with the probability 1 / (k + 1), by a draw that depends on the key and on k alone.
 * After n servers each has an n-th of the keys, and another server takes its part evenly from all.
 * What counts is the last server that took the key over. If it was b, none of b + 1 to j - 1 took
 * it over with the probability (b + 1) / j, so one draw u from (0, 1] gives the next one that does:
 * floor((b + 1) / u). A key changes hands about ln(n) times.
 */
uint32_t hash_owner(uint64_t key, uint32_t total)
{
	const double draws = 9007199254740992.0; /* 2^53: a double holds each */
	uint32_t owner = 0;
	double u, next;

	assert(total > 0);
	for (;;) {
		u = (double)((hash_bytes(&owner, sizeof(owner), key) >> 11) + 1) / draws;
		next = ((double)owner + 1) / u;
		if (next >= total)
			return owner;
		owner = (uint32_t)next;
	}
}
