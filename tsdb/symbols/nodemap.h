/*
 * Node map: (parent, location) to node id, for the writer. A stack of 30 frames needs 30 lookups,
 * each with the answer of the one before, so latency counts: the location's half of the hash is
 * ready before the parent is known.
 *
 * The nodes of a new stack have successive ids, so most nodes (three of four) come directly after
 * their parent. They are found there. Only the others are in the table and have their parent
 * stored: 7 bytes a node and 2 of the table; a parent and a slot for each took 25.
 *
 * Threads: the partition's writer.
 */
#ifndef TSDB_SYMBOLS_NODEMAP_H
#define TSDB_SYMBOLS_NODEMAP_H

#include "tsdb/symbols/idtable.h"
#include "tsdb/symbols/segvec.h"

#define NODE_LOCATIONS_MAX (UINT32_MAX / 4 - 1) /* ids of locations are below */

/* tag is (location + 1) * 2 + recursive, 0 for the root and for what is not there. */
struct stack_node {
	uint32_t parent, tag;
};

/* items are tag * 2 for a node directly behind its parent, else 1 + 2 * its place in heads. */
struct stack_nodes {
	const struct segvec *items, *heads;
};

static inline uint32_t nodemap_stack_item(struct stack_nodes s, uint32_t id)
{
	return *(const uint32_t *)segvec_at_of(s.items, id, sizeof(uint32_t));
}

/* Of an item that says where. */
static inline const struct stack_node *nodemap_stack_head(struct stack_nodes s, uint32_t item)
{
	return segvec_at_of(s.heads, item >> 1, sizeof(struct stack_node));
}

static inline struct stack_node stack_node_of(struct stack_nodes s, uint32_t id, uint32_t item)
{
	if (item & 1)
		return *nodemap_stack_head(s, item);
	return (struct stack_node){ item ? id - 1 : 0, item >> 1 };
}

static inline struct stack_node stack_node_at(struct stack_nodes s, uint32_t id)
{
	return stack_node_of(s, id, nodemap_stack_item(s, id));
}

/* The item of a node, with *n that end with it: those of the ids below lie before it. */
static inline const uint32_t *nodemap_stack_items(struct stack_nodes s, uint32_t id, uint32_t *n)
{
	*n = (uint32_t)segvec_place(id).at + 1;
	return segvec_at_of(s.items, id, sizeof(uint32_t));
}

static inline uint64_t nodemap_hash(uint32_t parent, uint32_t location)
{
	return parent * UINT64_C(0x9e3779b97f4a7c15) + (location + 1) * UINT64_C(0xd6e8feb86659fd93);
}

/* The id, or 0. */
static inline uint32_t nodemap_find(
	const struct idtable *idtable, struct stack_nodes nodes, uint32_t parent, uint32_t location)
{
	uint64_t hash = nodemap_hash(parent, location);
	uint32_t behind = nodemap_stack_item(nodes, parent + 1), place, id;

	/* A hole is 0, which no location gives. */
	if ((behind & ~2u) == (location + 1) << 2)
		return parent + 1;
	if (__builtin_expect(!idtable->n, 0))
		return 0;
	place = idtable_place(idtable, hash);
	while ((id = idtable_next(idtable, hash, &place)) != IDTABLE_NONE) {
		struct stack_node n = stack_node_at(nodes, id);

		if (n.parent == parent && n.tag >> 1 == location + 1)
			return id;
	}
	return 0;
}

/* Of what nodemap_find reads first. */
static inline void nodemap_prefetch(
	const struct idtable *idtable, struct stack_nodes nodes, uint32_t parent, uint32_t location)
{
	__builtin_prefetch(segvec_at_of(nodes.items, parent + 1, sizeof(uint32_t)));
	idtable_prefetch(idtable, nodemap_hash(parent, location));
}

/* Adds what was not found; the node is in `nodes` already. False: out of memory, nothing changed.
 */
bool nodemap_add(struct idtable *idtable, struct stack_nodes nodes, uint32_t id);

#endif
