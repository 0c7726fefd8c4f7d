/*
 * World: small random partitions, series, chunks and rollups, written as a block, for the tests of
 * blocks. The same seed gives the same world.
 */
#ifndef TESTS_TSDB_BLOCK_WORLD_H
#define TESTS_TSDB_BLOCK_WORLD_H

#include "tsdb/block/block.h"

#define WORLD_PARTITIONS 3u
#define WORLD_SERIES_MAX 64u
#define WORLD_CHUNKS 4u
#define WORLD_ROWS 12u /* in a chunk at most */
#define WORLD_START_NS (INT64_C(1700006400) * 1000000000) /* a day begins */
#define WORLD_MIN_NS (WORLD_START_NS - INT64_C(3) * 3600 * 1000000000)
#define WORLD_MAX_NS (WORLD_START_NS + INT64_C(3) * 3600 * 1000000000)

struct world_chunk {
	struct str bytes;
	int64_t first_ns, last_ns;
	uint32_t rows_n;
	uint64_t samples;
};

struct world_series {
	uint32_t slot, group;
	struct labels labels, group_labels;
	struct world_chunk chunks[WORLD_CHUNKS];
	uint32_t chunks_n;
	uint32_t headers[4], headers_n; /* used, ascending */
};

struct world {
	uint64_t state;
	struct arena arena;
	struct partition *partitions[WORLD_PARTITIONS];
	uint32_t partitions_n, nodes, sets, headers_n[WORLD_PARTITIONS];
	struct world_series series[WORLD_SERIES_MAX]; /* in the order of a block */
	uint32_t series_n;
	char dir[64], block[96]; /* a directory of its own; the block in it */
	int64_t missed_from_ns; /* rollups of the hours from here on count missed scrapes */
};

uint64_t world_draw(struct world *w, uint64_t below);
bool world_open(struct world *w, uint64_t seed, uint32_t partitions_n, uint32_t groups_n);
void world_close(struct world *w); /* removes the directory */

struct world_options {
	struct fs *fs;
	unsigned levels;
	bool raw;
};
/* The whole world as a block in w->block. */
MUST_CHECK enum err_code world_write(
	struct world *w, const struct world_options *o, struct block_meta *meta, struct err *err);
/* Rollup of the series [first, first + n) over a step; functions: their totals. Empty: no rows. */
MUST_CHECK enum err_code world_rollup(struct world *w, uint32_t first, uint32_t n, uint32_t level,
	int64_t step_ns, bool functions, struct buf *out, struct err *err);

#endif
