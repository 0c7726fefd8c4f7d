/*
 * Block builder: makes one block, series by series and step by step, from rows of a window or from
 * chunks and rollups of other blocks.
 *
 * Rows are cut into chunks of about chunk_rows_aimed, never across a step of the finest rollup, and
 * evenly within it. Rollups of a step are made from its rows or given; coarser ones are added up
 * from finer ones; those of groups from those of their series, or are given.
 *
 * Memory: the rows of one step of one series, narrow, and 30 bytes per entry while they become a
 * chunk (at most BUILDER_CELLS_MAX cells); the symbols of one partition; 32 bytes per series and 24
 * per step of a group's series; the rest goes to files.
 *
 * Trust: rows are counted and hashed per series; block_builder_finish reads the block back and
 * compares.
 *
 * Errors:    those of the writer; ERR_CORRUPT from chunks and rollups that were given.
 * Ownership: block_builder_open hands *out to the caller; block_builder_close ends it, and removes
 *            a block that was not published.
 * Threads:   one.
 */
#ifndef TSDB_COMPACT_BUILDER_H
#define TSDB_COMPACT_BUILDER_H

#include "tsdb/block/block.h"
#include "tsdb/catalog/state.h"
#include "tsdb/rollup/cascade.h"
#include "tsdb/series/groups.h"

#define BUILDER_CELLS_MAX (2u << 20) /* held of a step; more is cut into chunks early */

struct block_builder;

/* Where the rollup of a step comes from. */
enum step_rollup {
	STEP_GIVEN, /* block_builder_rollup */
	STEP_MADE, /* its rows */
	STEP_MADE_MISSED, /* its rows, and missed scrapes count; all of the step's, ascending */
};

struct block_builder_options {
	int64_t min_ns, max_ns;
	bool raw;
	struct group_rules rules;
};

MUST_CHECK enum err_code block_builder_open(struct db *db, const struct block_builder_options *o,
	struct block_builder **out, struct err *err);
void block_builder_close(struct block_builder *b); /* NULL is fine */
/* Begins a numeric series: before all partitions, ascending by labels. */
MUST_CHECK enum err_code block_builder_number_series(
	struct block_builder *b, struct labels labels, uint32_t *id, struct err *err);
/* Adds a value of the numeric series last begun, ascending by time. */
MUST_CHECK enum err_code block_builder_number(
	struct block_builder *b, int64_t ts_ns, double value, struct err *err);
/* Begins a partition, in ascending order of ids; p is pinned, its symbols loaded. The builder takes
 * the pin over, also when it fails. */
MUST_CHECK enum err_code block_builder_partition(
	struct block_builder *b, struct partition *p, struct err *err);

/* Begins a series, in the order of group_cmp. given: the caller adds its group's rollups by
 * block_builder_group_rollup; else they are made from those of its series. All series of a group
 * have the same `given`. */
MUST_CHECK enum err_code block_builder_series(
	struct block_builder *b, struct labels labels, bool given, uint32_t *id, struct err *err);
/* Rows, chunks and rollups belong to the series last begun; steps ascend, and a step is in any
 * order. The row is copied; its ids ascend. */
MUST_CHECK enum err_code block_builder_row(struct block_builder *b, int64_t ts_ns,
	const struct row *row, enum step_rollup rollup, struct err *err);
/* Adds the links of a row, ascending by time; block_builder_row adds those of its row. */
MUST_CHECK enum err_code block_builder_links(
	struct block_builder *b, int64_t ts_ns, struct str bytes, struct err *err);
/* Adds rows of one step, already encoded. */
MUST_CHECK enum err_code block_builder_chunk(
	struct block_builder *b, struct str bytes, enum step_rollup rollup, struct err *err);
/* Adds a rollup of the finest level. */
MUST_CHECK enum err_code block_builder_rollup(
	struct block_builder *b, int64_t step_ns, struct str bytes, struct err *err);
/* Adds a rollup of the group of the series last begun: after its last series, steps ascending.
 * functions: its function totals; empty: none. */
MUST_CHECK enum err_code block_builder_group_rollup(struct block_builder *b, int64_t step_ns,
	struct str bytes, struct str functions, struct err *err);

/* Writes and syncs the block, reads it back and compares. meta: level, sources and heads. */
MUST_CHECK enum err_code block_builder_finish(
	struct block_builder *b, struct block_meta *meta, struct err *err);
/* Gives the block its deleted ranges, before it is published. */
MUST_CHECK enum err_code block_builder_set_deleted(
	struct block_builder *b, struct deleted_range *r, size_t n, struct err *err);
/* Renames the finished block into place and opens it. db->blocks_files is held. */
MUST_CHECK enum err_code block_builder_publish(
	struct block_builder *b, struct db_block **out, struct err *err);
uint64_t block_builder_rows(const struct block_builder *b);
uint64_t block_builder_links_n(const struct block_builder *b); /* rows with links */
uint64_t block_builder_numbers(const struct block_builder *b);
uint64_t block_builder_series_n(const struct block_builder *b);

#endif
