/*
 * Database: profiles under labels, in a data directory.
 *
 * A write is: symbols to ids, cumulative columns to deltas, one row; then a group commit with sync,
 * and only after it the acknowledgement. A read pins what it needs in a querier and sees a
 * consistent state.
 *
 * Units:     nanoseconds since 1970; windows are half-open (min, max].
 * Errors:    ERR_LIMIT (names the limit), ERR_INVALID (out of the accepted times), ERR_UNAVAILABLE
 *            (disk full, a failed store being reopened, closing), ERR_IO, ERR_CORRUPT.
 * Threads:   any number of appenders and queriers; a querier and what came from it belong to one
 *            thread at a time. The commit thread calls acknowledgements; they must not block.
 * Source:    tsdb/FORMAT.md.
 */
#ifndef TSDB_DB_H
#define TSDB_DB_H

#include "tsdb/catalog/loss_report.h"
#include "tsdb/catalog/options.h"
#include "tsdb/compact/admin.h"
#include "tsdb/compact/group_rules.h"
#include "tsdb/head/append.h"
#include "tsdb/read/querier.h"
#include "tsdb/union.h"

struct db;

/* ERR_UNAVAILABLE "data directory DIR is locked by another process". */
MUST_CHECK enum err_code db_open(const struct db_options *o, struct db **out, struct err *err);
/* Commits what was appended, answers every acknowledgement, and closes. */
void db_close(struct db *db);
enum db_state db_state(struct db *db, struct err *why);
int64_t db_state_since_ns(struct db *db); /* of a union: of the member whose state it is */

/* One round of the maintenance thread: free space, blocks, retention, unused series and symbols. */
void db_maintain(struct db *db, bool retention);

/* ---- status ---- */

struct db_block_status {
	char ulid[27]; /* "" for a head window */
	int64_t min_ns, max_ns;
	uint32_t level;
	uint64_t series, rows, samples, numbers, bytes;
	bool raw, damaged;
	bool remote; /* it is read in a bucket; bytes are there */
	const char *shard; /* of a union: the member, in the arena; else NULL */
};
/* Blocks and head windows, oldest first. */
MUST_CHECK enum err_code db_list(
	struct db *db, struct arena *a, struct db_block_status **out, size_t *n, struct err *err);

struct db_status {
	uint64_t series; /* in the head; of a union, those of each member */
	uint64_t series_max, job_series_max; /* their limits; 0: none, as of a union */
	uint64_t largest_job_series; /* of the job that has most; of a union, in one member */
	uint64_t partitions, nodes, strings, symbol_bytes; /* in memory */
	uint64_t symbol_used_bytes; /* of them, what cannot leave memory; when last looked */
	uint64_t windows, blocks, disk_bytes;
	uint64_t remote_blocks, remote_bytes; /* of the blocks: those that are read in a bucket */
	uint64_t unreachable; /* further ones in a bucket that cannot be read now */
	uint64_t delta_bytes, index_bytes; /* memory of delta bases, of the head's series index */
	int64_t min_ns, max_ns; /* of stored rows; 0 when none */
	uint64_t rows, samples, numbers; /* appended since start */
	uint64_t losses; /* not accepted yet */
};
void db_status(struct db *db, struct db_status *out);
/* Adds the name of the job with most series in the head; of a union nothing. */
void db_largest_job(struct db *db, struct buf *name);

#endif
