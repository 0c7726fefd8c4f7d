/*
 * Map: an open-addressing hash table from keys of the caller's kind to uint32_t ids.
 *
 * The table holds ids only; keys stay where the caller has them and are compared through a
 * function. That is 4 bytes an entry over load, and no key is stored twice.
 *
 * Threads: one writer or any number of readers.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

struct map {
	uint32_t *slots; /* id + 1; 0: free */
	uint32_t *tags; /* high half of the hash, so that growing and most misses compare no key */
	size_t mask; /* slots - 1 */
	size_t used;
};

void map_init(struct map *m);
void map_release(struct map *m);
/* The id whose key equals, or MAP_NONE. */
typedef bool (*map_eq_fn)(const void *ctx, const void *key, uint32_t id);
uint32_t map_find(
	const struct map *m, uint64_t hash, map_eq_fn eq, const void *ctx, const void *key);
/* For many lookups at once, which then wait for memory together: of all, before the first. */
static inline void map_prefetch(const struct map *m, uint64_t hash)
{
	if (m->slots) {
		__builtin_prefetch(&m->slots[hash >> 32 & m->mask]);
		__builtin_prefetch(&m->tags[hash >> 32 & m->mask]);
	}
}
/* The caller has looked with map_find before. False: out of memory, nothing changed. */
bool map_add(struct map *m, uint64_t hash, uint32_t id);
size_t map_bytes(const struct map *m);

uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed); /* XXH3, stable */
/*
 * Which of `total` owners, numbered from 0, has the key. The same on every machine and in every
 * version. From n owners to n + 1 only keys of the new one move: 1 of n + 1. total > 0.
 */
uint32_t hash_owner(uint64_t key, uint32_t total);
/* Random: mixed into the hashes of what senders choose, so that they cannot make keys collide. */
uint64_t hash_seed(void);
static inline uint64_t map_hash_u64(uint64_t value)
{
	value ^= value >> 32;
	value *= UINT64_C(0xd6e8feb86659fd93);
	value ^= value >> 32;
	value *= UINT64_C(0xd6e8feb86659fd93);
	return value ^ (value >> 32);
}

#endif
