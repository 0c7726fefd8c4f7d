/*
 * Node map: (parent, location) to node id, for the writer. Interning a stack of 30 frames asks it
 * 30 times, each asking with the answer before, so what counts is latency: the location's half of
 * the hash is ready before the parent is known, and a slot has the id and a piece of the hash in
 * one word.
 *
 * A new stack's nodes have ids that follow each other, so most nodes (three of four) stand directly
 * behind their parent. Those are found by looking there, and the table has the others only.
 *
 * Threads: the partition's writer.
 */
#ifndef TSDB_NODEMAP_H
#define TSDB_NODEMAP_H

#include "tsdb/segvec.h"

/* A location's id is below 2^31 - 1; tag is (location + 1) * 2 + recursive, 0 for the root. */
struct node_item {
	uint32_t parent, tag;
};

struct nodemap {
	uint64_t *slots; /* hash's low half << 32 | id; 0: free */
	unsigned shift; /* 64 - log2(slots) */
	size_t used;
};

static inline uint64_t nodemap_hash(uint32_t parent, uint32_t location)
{
	return parent * UINT64_C(0x9e3779b97f4a7c15) +
		(location + 1) * UINT64_C(0xd6e8feb86659fd93);
}

/* The id, or 0. */
static inline uint32_t nodemap_find(
	const struct nodemap *m, const struct segvec *nodes, uint32_t parent, uint32_t location)
{
	uint64_t hash = nodemap_hash(parent, location), slot;
	const struct node_item *behind = segvec_at(nodes, parent + 1);
	size_t mask, i;

	/* A hole has tag 0, which no location gives. */
	if (behind->parent == parent && behind->tag >> 1 == location + 1)
		return parent + 1;
	if (__builtin_expect(!m->slots, 0))
		return 0;
	mask = ((size_t)1 << (64 - m->shift)) - 1;
	for (i = hash >> m->shift; (slot = m->slots[i]); i = (i + 1) & mask) {
		const struct node_item *n;

		if (slot >> 32 != (uint32_t)hash)
			continue;
		n = segvec_at(nodes, (uint32_t)slot);
		if (n->parent == parent && n->tag >> 1 == location + 1)
			return (uint32_t)slot;
	}
	return 0;
}

/* Adds what was not found; the node is in `nodes` already. False: out of memory, nothing changed.
 */
bool nodemap_add(struct nodemap *m, const struct segvec *nodes, uint32_t id);
void nodemap_release(struct nodemap *m);
static inline size_t nodemap_bytes(const struct nodemap *m)
{
	return m->slots ? sizeof(*m->slots) << (64 - m->shift) : 0;
}

#endif
