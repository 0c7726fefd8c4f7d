/*
 * The inside of block_verify: what is checked by records, and what by rows.
 *
 * Errors:  ERR_NOMEM, ERR_IO, and a source that does not answer, end it; all else is a finding.
 * Threads: one.
 * Source:  tsdb/FORMAT.md, "Blocks".
 */
#ifndef TSDB_BLOCK_BLOCK_VERIFY_H
#define TSDB_BLOCK_BLOCK_VERIFY_H

#include "tsdb/block/block_internal.h"
#include "tsdb/columns/links.h"

struct verify {
	struct block *b;
	block_finding_fn fn;
	void *ctx;
	uint64_t findings;
	char text[1100];
	struct arena arena;
	struct postings *postings; /* of the series that were read */
	struct block_meta counted;
	/* of the partition that is being verified */
	uint32_t slot;
	struct partition *partition;
	struct rollup_builder *builder;
	struct chunk *chunk;
	struct rollup_view *view;
	struct block_chunks *chunks, *numbers, *links;
	struct links_unpacked unpacked;
	struct block_rollups *rollups, *parts;
	struct buf made;
	/* Rows of rollups, counted by column, [series][level]: so they add up for any types of rows. */
	uint64_t (*columns)[ROLLUP_LEVELS];
};

void verify_find(struct verify *v, const char *fmt, ...) PRINTF_LIKE(2, 3);
MUST_CHECK enum err_code verify_error(
	struct verify *v, enum err_code rc, const struct err *why, struct err *err);

MUST_CHECK enum err_code verify_rows_open(struct verify *v, struct err *err);
void verify_rows_close(struct verify *v);
/* Compares a series' chunks with its record, and its rollups with the chunks or with finer rollups.
 */
MUST_CHECK enum err_code verify_series_rows(
	struct verify *v, uint32_t id, const struct block_series *s, struct err *err);
/* Links of a series' rows: each decodes, and its ids are there. Its partition is entered. */
MUST_CHECK enum err_code verify_series_links(
	struct verify *v, uint32_t id, const struct block_series *s, struct err *err);
/* Groups' rollups against their series'. */
MUST_CHECK enum err_code verify_groups(struct verify *v, struct err *err);

#endif
