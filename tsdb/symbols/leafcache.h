/*
 * Leaf cache: where stacks of a partition ended lately, by a hash of their locations.
 *
 * A lookup of a whole stack is one cache line, known before any node is, so lookups of many stacks
 * wait for memory together; the node map needs one lookup per frame, each with the answer of the
 * one before. The answer is a guess: the caller compares its nodes with the stack. Buckets of four;
 * the one that was not used for longest is replaced, about: stacks of each scrape stay, though more
 * that come once pass through. An empty cache only costs time.
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
	uint64_t *slots; /* hash's low half << 32 | node; 0: free */
	unsigned shift; /* 64 - log2(buckets) */
};

static inline uint64_t *leafcache_bucket(const struct leafcache *c, uint64_t hash)
{
	return c->slots + (hash * UINT64_C(0xd6e8feb86659fd93) >> c->shift) * LEAFCACHE_WAYS;
}

/* A node that may be the stack's, or 0. The cache has room. */
static inline uint32_t leafcache_find(const struct leafcache *c, uint64_t hash)
{
	const uint64_t *b = leafcache_bucket(c, hash);

	for (unsigned i = 0; i < LEAFCACHE_WAYS; i++)
		if (b[i] >> 32 == (uint32_t)hash)
			return (uint32_t)b[i];
	return 0;
}

/* The same; what is found in the bucket's second half goes to its front. */
static inline uint32_t leafcache_take(struct leafcache *c, uint64_t hash)
{
	uint64_t *b = leafcache_bucket(c, hash), slot = 0;
	unsigned way = 0;

	/* All four: which one it is cannot be predicted. */
	for (unsigned i = LEAFCACHE_WAYS; i-- > 0;) {
		bool is = b[i] >> 32 == (uint32_t)hash;

		slot = is ? b[i] : slot;
		way = is ? i : way;
	}
	if (way >= LEAFCACHE_WAYS / 2) {
		for (; way > 0; way--)
			b[way] = b[way - 1];
		b[0] = slot;
	}
	return (uint32_t)slot;
}

static inline void leafcache_add(struct leafcache *c, uint64_t hash, uint32_t node)
{
	uint64_t *b = leafcache_bucket(c, hash);

	for (unsigned i = LEAFCACHE_WAYS - 1; i > 0; i--)
		b[i] = b[i - 1];
	b[0] = hash << 32 | node;
}

/* Room for several profiles of so many stacks; it never shrinks. False: there is none at all. */
bool leafcache_reserve(struct leafcache *c, uint32_t stacks);
void leafcache_release(struct leafcache *c);
static inline size_t leafcache_bytes(const struct leafcache *c)
{
	return c->slots ? (LEAFCACHE_WAYS * sizeof(*c->slots)) << (64 - c->shift) : 0;
}

#endif
