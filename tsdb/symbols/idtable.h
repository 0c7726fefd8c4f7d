/*
 * Id table: from hashes to ids, in four bytes a slot. Keys stay where the caller has them.
 *
 * An id needs few of 32 bits: the others have a piece of the hash, so that most misses compare no
 * key. More ids, shorter pieces. What no slot has is asked for again: a table that grows asks the
 * caller for each hash. It grows by half, to any size: a place is the product of hash and size.
 *
 * Threads: one writer or any number of readers.
 */
#ifndef TSDB_SYMBOLS_IDTABLE_H
#define TSDB_SYMBOLS_IDTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDTABLE_NONE UINT32_MAX /* no id: ids are below */

struct idtable {
	uint32_t *slots; /* a hash's low half but for the mask, and id + 1 in the mask; 0: free */
	uint32_t n, used;
	uint32_t mask; /* 2^k - 1, above every id */
};

/* The hash of an id that is in the table; t: the one being made, with some of them already. */
typedef uint64_t (*idtable_hash_fn)(const void *ctx, const struct idtable *t, uint32_t id);
/* Adds an id, which is not there, under its hash. False: out of memory, nothing changed. */
bool idtable_add(
	struct idtable *idtable, uint64_t hash, uint32_t id, idtable_hash_fn hash_of, const void *ctx);
void idtable_release(struct idtable *idtable);

static inline size_t idtable_bytes(const struct idtable *idtable)
{
	return (size_t)idtable->n * sizeof(*idtable->slots);
}

/* Where ids of this hash begin. */
static inline uint32_t idtable_place(const struct idtable *idtable, uint64_t hash)
{
	return (uint32_t)((hash >> 32) * idtable->n >> 32);
}

static inline void idtable_prefetch(const struct idtable *idtable, uint64_t hash)
{
	if (idtable->n)
		__builtin_prefetch(idtable->slots + idtable_place(idtable, hash));
}

/* The next id that may have the hash, from a place on that is moved behind it, or IDTABLE_NONE. The
 * table is not empty. */
static inline uint32_t idtable_next(const struct idtable *idtable, uint64_t hash, uint32_t *place)
{
	uint32_t slot;

	while ((slot = idtable->slots[*place])) {
		if (++*place == idtable->n)
			*place = 0;
		if (!((slot ^ (uint32_t)hash) & ~idtable->mask))
			return (slot & idtable->mask) - 1;
	}
	return IDTABLE_NONE;
}

#endif
