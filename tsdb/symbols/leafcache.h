/*
 * Leaf cache: where stacks of a partition ended lately, by a hash of their locations.
 *
 * A lookup of a whole stack is one cache line, known before any node is, so lookups of many stacks
 * wait for memory together; the node map needs one lookup per frame, each with the answer of the
 * one before. The answer is a guess: the caller compares its nodes with the stack. A slot has a
 * node and, in the bits that nodes do not need, a piece of the hash. Buckets of four; the one that
 * was not used for longest is replaced, about: stacks of each scrape stay, though more that come
 * once pass through. An empty cache only costs time.
 *
 * Threads: the partition's writer.
 */
#ifndef TSDB_SYMBOLS_LEAFCACHE_H
#define TSDB_SYMBOLS_LEAFCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEAFCACHE_WAYS 4u

struct leafcache {
	uint32_t *slots; /* a hash's low half but for the mask, and a node in the mask; 0: free */
	uint32_t buckets;
	uint32_t mask; /* 2^k - 1, no node is above */
};

static inline uint32_t *leafcache_bucket(const struct leafcache *l, uint64_t hash)
{
	uint64_t place = hash * UINT64_C(0xd6e8feb86659fd93) >> 32;

	return l->slots + (place * l->buckets >> 32) * LEAFCACHE_WAYS;
}

static inline bool leafcache_is(const struct leafcache *l, uint32_t slot, uint64_t hash)
{
	return slot && !((slot ^ (uint32_t)hash) & ~l->mask);
}

/* A node that may be the stack's, or 0. The cache has room. */
static inline uint32_t leafcache_find(const struct leafcache *l, uint64_t hash)
{
	const uint32_t *b = leafcache_bucket(l, hash);

	for (unsigned i = 0; i < LEAFCACHE_WAYS; i++)
		if (leafcache_is(l, b[i], hash))
			return b[i] & l->mask;
	return 0;
}

/* The same; what is found in the bucket's second half goes to its front. */
static inline uint32_t leafcache_take(struct leafcache *l, uint64_t hash)
{
	uint32_t *b = leafcache_bucket(l, hash), slot = 0;
	unsigned way = 0;

	/* All four: which one it is cannot be predicted. */
	for (unsigned i = LEAFCACHE_WAYS; i-- > 0;) {
		bool is = leafcache_is(l, b[i], hash);

		slot = is ? b[i] : slot;
		way = is ? i : way;
	}
	if (way >= LEAFCACHE_WAYS / 2) {
		for (; way > 0; way--)
			b[way] = b[way - 1];
		b[0] = slot;
	}
	return slot & l->mask;
}

/* Makes the pieces of hashes shorter, so that a slot has room for this node. */
void leafcache_widen(struct leafcache *l, uint32_t node);

static inline void leafcache_add(struct leafcache *l, uint64_t hash, uint32_t node)
{
	uint32_t *b = leafcache_bucket(l, hash);

	if (__builtin_expect(node > l->mask, 0))
		leafcache_widen(l, node);
	for (unsigned i = LEAFCACHE_WAYS - 1; i > 0; i--)
		b[i] = b[i - 1];
	b[0] = ((uint32_t)hash & ~l->mask) | node;
}

/* Room for several profiles of so many stacks; it never shrinks. False: there is none at all. */
bool leafcache_reserve(struct leafcache *l, uint32_t stacks);
void leafcache_release(struct leafcache *l);
static inline size_t leafcache_bytes(const struct leafcache *l)
{
	return (size_t)l->buckets * LEAFCACHE_WAYS * sizeof(*l->slots);
}

#endif
