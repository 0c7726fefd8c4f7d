/*
 * Joining blocks, the inside.
 *
 * Threads: one.
 */
#ifndef TSDB_COMPACT_COMPACT_INTERNAL_H
#define TSDB_COMPACT_COMPACT_INTERNAL_H

#include "tsdb/columns/links.h"
#include "tsdb/compact/builder.h"
#include "tsdb/symbols/translate.h"

#define JOIN_MAX 64u /* blocks at once */
#define PENDING_ROWS_MAX (4 * CHUNK_ROWS_LEVELS)

/* ---- compact_plan.c ---- */

struct plan {
	struct db_block *v[JOIN_MAX]; /* ascending, pinned */
	size_t n;
	int64_t range_ns;
};
/* Chooses the blocks to join next, and pins them; n 0: none. */
void plan_join(struct db *db, struct plan *out);

/* ---- compact.c ---- */

struct compact_source {
	struct db_block *b;
	struct deleted deleted; /* applied */
	uint32_t slot, first, series_n; /* of the job that is joined */
	bool has_job;
	uint32_t *ids; /* number in the new block, by number in this one; UINT32_MAX: none */
	struct block_chunks *chunks, *links; /* links NULL: it has none */
	struct block_rollups *rollups, *functions;
	struct partition *from; /* pinned; its epoch's */
	struct translation *translation; /* NULL: ids stay */
	uint32_t group; /* of the group that is joined; UINT32_MAX: none yet */
	uint32_t group_seen;
};

/* A series of a source. */
struct compact_part {
	struct labels labels;
	uint32_t source, id, group;
};

/* A chunk that may be joined with its neighbours of the same step. */
struct compact_pending {
	size_t at, len; /* in pending_bytes */
	const struct compact_part *part;
	int64_t interval_ns;
	uint32_t rows_n, rows_aimed, typeset;
	uint64_t cells; /* as the builder counts them */
	bool decode; /* rows are filtered or translated */
};

struct compact_joining {
	struct db *db;
	struct compact_source *sources;
	size_t n;
	bool raw;
	struct group_rules rules;
	struct arena a; /* rules */
	struct block_builder *m;
	struct partition *p; /* of the job, in the new block */
	bool given; /* the builder took its pin over */

	struct arena job_arena;
	struct compact_part *parts; /* of the job */
	size_t parts_n, parts_cap;

	/* the series that is joined */
	bool begun, group_given;
	uint32_t id;
	struct labels labels;

	struct compact_pending *pending;
	size_t pending_n, pending_cap;
	struct buf pending_bytes;
	uint32_t pending_rows;
	int64_t pending_step_ns;
	enum step_rollup pending_rollup;

	struct chunk *chunk;
	struct rollup_view *view;
	struct links_unpacked linked;
	struct buf links;
	struct translated ids; /* of a row */
	uint32_t *stacks, *sets;
	int64_t *values;
	size_t cells_cap, values_cap;
	uint64_t dropped_records;
};

/* ---- compact_groups.c ---- */

/* The parts from..to are one group, sorted by their labels. */
MUST_CHECK enum err_code join_group(
	struct compact_joining *c, size_t from, size_t to, struct err *err);

/* ---- compact_series.c ---- */

/* True if rollups of the step cannot be added up from those of the sources: a source begins or ends
 * within it, and whether a scrape is missing before a row is known from all rows of the step. */
bool join_splits(const struct compact_joining *c, const struct compact_source *s, int64_t step_ns);
/* Adds all rows and rollups that a source has of a series, behind those of earlier sources. */
MUST_CHECK enum err_code join_part(
	struct compact_joining *c, const struct compact_part *part, struct err *err);
/* Writes the pending chunks of the series. */
MUST_CHECK enum err_code join_flush(struct compact_joining *j, struct err *err);
/* Begins the series in the new block, unless it has begun. */
MUST_CHECK enum err_code join_begin(struct compact_joining *c, struct err *err);
void join_release(struct compact_joining *c);

/* The row in the ids of another epoch, its entries in their order; arrays live until the next one.
 * order, unless NULL, becomes where each entry was. */
MUST_CHECK enum err_code join_translate(struct compact_joining *j, struct translation *tr,
	const struct row *row, struct row *out, const uint32_t **order, struct err *err);

/* ---- compact_links.c ---- */

/* Adds the links of all rows that a source has of a series. */
MUST_CHECK enum err_code join_links(
	struct compact_joining *c, const struct compact_part *part, struct err *err);

#endif
