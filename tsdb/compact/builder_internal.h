/*
 * Block builder, the inside.
 *
 * Threads: one.
 */
#ifndef TSDB_COMPACT_BUILDER_INTERNAL_H
#define TSDB_COMPACT_BUILDER_INTERNAL_H

#include "tsdb/compact/builder.h"
#include "tsdb/rollup/spill.h"

/* A checksum of a series' rows that depends neither on their order nor on ids. */
struct series_check {
	uint64_t rows, hash;
};

/* A rollup of the group's series, in the spill. */
struct step_record {
	int64_t step_ns;
	uint64_t at;
	uint32_t len;
};

struct block_builder {
	struct db *db;
	struct block_builder_options o;
	struct arena paths;
	struct ulid ulid;
	char *tmp, *dir;
	struct block_writer *writer;
	unsigned levels;
	bool published;

	uint32_t partitions_n;
	struct partition *p; /* of the series last begun; pinned until the next one begins */
	struct cascade *of_series, *of_group;

	uint32_t id; /* of the series last begun */
	bool series_open;
	struct buf later; /* its coarse rollups: written behind the fine ones */
	struct series_check *checks; /* by series */
	uint64_t checks_n, checks_cap, rows_n, numbers_n;
	struct number_chunk *numbers; /* of the numeric series last begun */
	uint64_t number_series;

	uint32_t group, group_series_n;
	bool group_open, given;
	struct arena group_arena;
	struct labels now_group; /* the open group's */
	struct partition *now_p;
	struct spill records_spill; /* rollups of the group's series */
	struct step_record *records;
	size_t records_n, records_cap;
	struct buf later_group, later_functions;
	struct spill group_spill, functions_spill; /* written behind all series */
	struct spill links_spill; /* of rows; likewise */
	uint64_t links_n, links_hash; /* a checksum as a series' */

	struct arena rows_arena; /* rows of the open step */
	int64_t *ts;
	struct row *rows;
	uint32_t rows_held, rows_cap;
	uint64_t cells_held;
	int64_t step_ns;
	enum step_rollup rollup;

	struct chunk *chunk;
	struct arena scratch;
	struct buf bytes, record;
};

/* ---- builder_chunks.c ---- */

void builder_chunks_check_row(
	struct series_check *c, int64_t ts_ns, const struct row *row, const int64_t *totals);
/* All rows of a parsed chunk. */
void builder_chunks_check_chunk(struct series_check *c, const struct chunk *chunk);
/* Cuts the rows held into chunks and writes them. */
MUST_CHECK enum err_code block_builder_flush(struct block_builder *b, struct err *err);

/* ---- builder_numbers.c ---- */

MUST_CHECK enum err_code block_builder_reserve_check(
	struct block_builder *b, struct err *err); /* builder.c */
void builder_numbers_check_number(struct series_check *c, int64_t ts_ns, double value);
/* Writes the values held. */
MUST_CHECK enum err_code block_builder_flush_numbers(struct block_builder *b, struct err *err);
/* Reads a numeric series back from the block. */
MUST_CHECK enum err_code block_builder_read_numbers(struct block_builder *b,
	struct block_chunks *it, uint32_t id, struct series_check *got, struct err *err);

/* ---- builder_groups.c ---- */

MUST_CHECK enum err_code block_builder_emit_series(
	void *ctx, bool functions, uint32_t level, int64_t step_ns, struct str bytes, struct err *err);
MUST_CHECK enum err_code block_builder_emit_group(
	void *ctx, bool functions, uint32_t level, int64_t step_ns, struct str bytes, struct err *err);
MUST_CHECK enum err_code block_builder_end_series(struct block_builder *b, struct err *err);
MUST_CHECK enum err_code block_builder_end_group(struct block_builder *b, struct err *err);
MUST_CHECK enum err_code block_builder_write_groups(struct block_builder *b, struct err *err);

/* ---- builder_links.c ---- */

MUST_CHECK enum err_code block_builder_write_links(struct block_builder *b, struct err *err);
/* Reads them back from the block, and compares. */
MUST_CHECK enum err_code block_builder_verify_links(
	struct block_builder *builder, struct block *b, struct err *err);

/* ---- builder_verify.c ---- */

MUST_CHECK enum err_code block_builder_verify(struct block_builder *b, struct err *err);

#endif
