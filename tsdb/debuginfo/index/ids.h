/*
 * Ids: a hash table from keys to ids 0, 1, 2 ... that are given in this order, in four bytes a
 * slot. Keys stay where the caller has them: a table that grows asks for their hashes again.
 *
 * Threads: one.
 */
#ifndef TSDB_DEBUGINFO_INDEX_IDS_H
#define TSDB_DEBUGINFO_INDEX_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDS_NONE UINT32_MAX

struct ids {
	/* id + 1 in the bits of mask, some bits of the hash above them; 0: free */
	uint32_t *slots;
	size_t mask; /* slots - 1 */
	uint32_t n;
};

typedef uint64_t (*ids_hash_fn)(const void *ctx, uint32_t id);
typedef bool (*ids_eq_fn)(const void *ctx, uint32_t id, const void *key);

/* The id whose key equals, or IDS_NONE. */
uint32_t ids_find(
	const struct ids *ids, uint64_t hash, ids_eq_fn eq, const void *ctx, const void *key);
/* Gives ids->n to a key that is not there. False: out of memory, or beyond 1.6 billion ids; nothing
 * changed. */
bool ids_add(struct ids *ids, uint64_t hash, ids_hash_fn hash_of, const void *ctx);
void ids_release(struct ids *ids);

#endif
