/*
 * Numeric series of a window, or of several blocks, into the block that is built.
 *
 * Threads: the worker's (compaction_begin).
 */
#ifndef TSDB_COMPACT_NUMBERS_H
#define TSDB_COMPACT_NUMBERS_H

#include "tsdb/catalog/state.h"

struct block_builder;

/* ---- number_cut.c ---- */

struct number_cut {
	struct series **series; /* of the window, ascending by labels */
	uint32_t *ids; /* in the block; UINT32_MAX: not there */
	size_t n;
	uint64_t left_out; /* damaged values */
	struct err first_left;
};
/* Adds all numbers of a window, read through it, to the builder, before anything else. */
MUST_CHECK enum err_code numbers_cut(struct db *db, struct window *w, struct store_iter *it,
	struct deleted deleted, struct block_builder *b, struct number_cut *out, struct err *err);
void number_cut_release(struct number_cut *c);

/* ---- number_join.c ---- */

struct number_source {
	struct block *block;
	struct deleted deleted;
	uint32_t *ids; /* number in the new block, by number in this one */
};
/* Adds all numbers of the blocks, which ascend by time, to the builder, before anything else. */
MUST_CHECK enum err_code numbers_join(struct db *db, const struct number_source *sources, size_t n,
	struct block_builder *b, struct err *err);

#endif
