/*
 * What a builder holds; private to this room.
 *
 * A frame is kept as a line in a scope. A scope is a function, with the file of its lines, at one
 * call: many frames share it. The file has scopes and lines and no frames.
 *
 * Threads: one.
 */
#ifndef TSDB_DEBUGINFO_INDEX_BUILDER_H
#define TSDB_DEBUGINFO_INDEX_BUILDER_H

#include "tsdb/debuginfo/index/format.h"
#include "tsdb/debuginfo/index/ids.h"
#include "tsdb/debuginfo/index/runs.h"
#include "tsdb/debuginfo/index/strings.h"
#include "tsdb/debuginfo/index/vec.h"

/* Items without padding: they are hashed and compared as bytes. */
struct file_item {
	uint32_t path; /* string */
};

struct function_item {
	uint32_t raw; /* string */
	uint32_t file, line;
};

struct scope_item {
	uint32_t parent; /* scope */
	uint32_t line; /* in the parent */
	uint32_t function, file;
};

/* What orders ranges that are equal. */
struct scope_order {
	uint32_t hash; /* of the contents: the same in every builder */
	uint32_t depth; /* scopes, with this one */
};

struct frame_item {
	uint32_t scope, line;
};

/* Items that are kept once. */
struct items {
	const char *what;
	struct vec v;
	struct ids ids;
	uint64_t seed;
	size_t max;
};

struct symindex_builder {
	struct strings strings;
	struct items files, functions, scopes, frames;
	struct vec scope_orders; /* beside scopes */
	struct runs runs;
	size_t segments, segments_max;
	enum symindex_quality best;
	struct symindex_load loads[SYMINDEX_LOADS_MAX];
	uint32_t loads_n;
};

static inline const struct scope_item *builder_scope(const struct symindex_builder *b, uint32_t id)
{
	return vec_at(&b->scopes.v, id);
}

static inline const struct frame_item *builder_frame(const struct symindex_builder *b, uint32_t id)
{
	return vec_at(&b->frames.v, id);
}

static inline const struct function_item *builder_function(
	const struct symindex_builder *b, uint32_t id)
{
	return vec_at(&b->functions.v, id);
}

static inline const struct scope_order *builder_scope_order(
	const struct symindex_builder *b, uint32_t scope)
{
	return vec_at(&b->scope_orders, scope);
}

void items_release(struct items *items);

/* symindex_add; own: not of another index. */
MUST_CHECK enum err_code builder_add_segment(struct symindex_builder *b, uint64_t start,
	uint64_t end, uint32_t frame, enum symindex_quality q, bool own, struct err *err);

/* ---- sweep.c ---- */

/* Called in ascending order, with ranges that do not overlap. */
typedef enum err_code (*sweep_fn)(
	void *ctx, uint64_t start, uint64_t end, uint32_t frame, struct err *err);
/* Resolves overlaps and joins neighbours of the same frame. The runs are empty then. */
MUST_CHECK enum err_code symindex_sweep(
	struct symindex_builder *b, sweep_fn fn, void *ctx, struct err *err);

#endif
