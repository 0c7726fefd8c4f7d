/*
 * Segmented vector: an array of fixed-size items whose storage never moves, so readers need no
 * lock.
 *
 * Each doubling is four chunks, so that at most a fifth of the memory is unused (with one chunk
 * a doubling it was a third on average, half at worst). A chunk holds 64 items at least, and
 * behind them a bit for each: it is there. It is allocated zeroed when its first item is put, so
 * ids that were never given (holes left by dropped windows) cost address space at most, and read as
 * zero bytes.
 *
 * Threads: one writer, which may fill holes. Readers use ids whose bit they saw (it is set after
 * the item, release, and read before it, acquire), or that came from somebody who saw it.
 */
#ifndef TSDB_SYMBOLS_SEGVEC_H
#define TSDB_SYMBOLS_SEGVEC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGVEC_FIRST_LOG2 8 /* ids are counted on from 256, so that the first chunk has 64 */
#define SEGVEC_CHUNKS ((33 - SEGVEC_FIRST_LOG2) * 4) /* every uint32_t */
#define SEGVEC_ITEM_MAX 128u

struct segvec {
	_Atomic(unsigned char *) chunk[SEGVEC_CHUNKS];
	_Atomic uint32_t n; /* highest id that was put, plus 1 */
	uint32_t item_bytes;
	uint32_t used; /* items put; the writer's */
	size_t bytes; /* allocated; the writer's */
};

extern const unsigned char segvec_zero[SEGVEC_ITEM_MAX];

struct segvec_place {
	unsigned chunk, shift; /* the chunk holds 1 << shift items */
	size_t at;
};

static inline struct segvec_place segvec_place(uint32_t id)
{
	uint64_t i = (uint64_t)id + (1u << SEGVEC_FIRST_LOG2);
	unsigned shift = (63u ^ (unsigned)__builtin_clzll(i)) - 2, quarter = (unsigned)(i >> shift);

	/* The two bits behind the highest one tell which quarter of the doubling: 4 to 7. */
	return (struct segvec_place){ shift * 4 + quarter - (SEGVEC_FIRST_LOG2 - 1) * 4, shift,
		i - ((uint64_t)quarter << shift) };
}

void segvec_init(struct segvec *s, size_t item_bytes);
void segvec_release(struct segvec *s);

static inline uint32_t segvec_n(const struct segvec *s)
{
	return atomic_load_explicit(&s->n, memory_order_acquire);
}

/* Never NULL: an id without storage gives an item of zero bytes. bytes: of an item, a constant. */
static inline const void *segvec_at_of(const struct segvec *s, uint32_t id, size_t bytes)
{
	struct segvec_place p = segvec_place(id);
	const unsigned char *c = atomic_load_explicit(&s->chunk[p.chunk], memory_order_acquire);

	if (__builtin_expect(!c, 0))
		return segvec_zero;
	return c + p.at * bytes;
}

static inline const void *segvec_at(const struct segvec *s, uint32_t id)
{
	return segvec_at_of(s, id, s->item_bytes);
}

/* The item was put, all of it. */
static inline bool segvec_has(const struct segvec *s, uint32_t id)
{
	struct segvec_place p = segvec_place(id);
	unsigned char *c = atomic_load_explicit(&s->chunk[p.chunk], memory_order_acquire);
	const _Atomic uint64_t *there;

	if (!c)
		return false;
	there = (const _Atomic uint64_t *)(const void *)(c + ((size_t)s->item_bytes << p.shift));
	return atomic_load_explicit(&there[p.at >> 6], memory_order_acquire) >> (p.at & 63) & 1;
}

/* The first id at or after this one whose item was put, or UINT32_MAX. Ids that are far apart cost
 * little more than near ones. */
uint32_t segvec_next(const struct segvec *s, uint32_t id);

/* Copies the item in and publishes it. Ids are put once. False: out of memory. */
bool segvec_put(struct segvec *s, uint32_t id, const void *item);

/*
 * Bits: a growing set of ids. A bit that was never set reads as false.
 *
 * Threads: the user's lock guards it.
 */
struct bits {
	uint64_t *w;
	size_t words;
};

void bits_release(struct bits *b);
bool bits_reserve(struct bits *b, uint32_t id); /* bits_set of ids up to this cannot fail */
static inline bool bits_get(const struct bits *b, uint32_t id)
{
	return (id >> 6) < b->words && (b->w[id >> 6] >> (id & 63) & 1);
}
static inline void bits_set(struct bits *b, uint32_t id)
{
	b->w[id >> 6] |= UINT64_C(1) << (id & 63);
}
static inline void bits_clear(struct bits *b, uint32_t id)
{
	if ((id >> 6) < b->words)
		b->w[id >> 6] &= ~(UINT64_C(1) << (id & 63));
}
size_t bits_count(const struct bits *b);

#endif
