/*
 * Epochs of jobs: under which ids new rows go, and which symbols are loaded for whom.
 *
 * A job's symbols live in epochs: each has ids of its own, in a struct partition. New rows go under
 * the newest, the job's live epoch, whose partition stays in memory; others are loaded from
 * blocks and windows when a query wants them, kept while they are pinned or a delta base is in
 * their ids, and let go when symbols exceed db_options.symbols_bytes, longest unused first. Where
 * that is not enough live epochs end (evict.c).
 *
 * Content has one id in an epoch, always: before a live epoch's partition is given new content,
 * everything that blocks and windows have of the epoch is loaded into it.
 *
 * Errors:  as each says. Threads: as each says.
 */
#ifndef TSDB_HEAD_EPOCHS_H
#define TSDB_HEAD_EPOCHS_H

#include "tsdb/catalog/blocks.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/window_epochs.h"

/* A row that is put in: how large a table is once each target came about twice is what lives in it,
 * later growth what an end of the epoch would free. p->lock is held. */
void partition_note_row(struct partition *p, int64_t ts_ns, int64_t interval_ns);
/* New rows of the job go under a new epoch; job->lock is held. */
void epoch_end(struct db *db, struct job *job);
/* What a new row of the job in this window (which is pinned) gets its ids from: the live epoch,
 * everything of it in memory. job->lock is held; it is there as long as that is. */
MUST_CHECK enum err_code window_partition_take(struct db *db, struct window *w, struct job *job,
	int64_t ts_ns, struct partition **out, struct err *err);
/*
 * All symbols that a window has of p, or a block has up to a stage, are in memory afterwards; the
 * window or block is pinned. What was lost is ERR_CORRUPT, each time it is asked for; the rest is
 * there and p->damaged is set. ERR_EXISTS: ids mean something else here than elsewhere, and nothing
 * of the window or block may be used.
 */
MUST_CHECK enum err_code partition_need_window(
	struct db *db, struct partition *p, struct window *w, struct err *err);
struct db_block;
MUST_CHECK enum err_code partition_need_block(struct db *db, struct partition *p,
	struct db_block *b, uint32_t slot, enum block_stage stage, struct err *err);
/* A new epoch for a partition's symbols that nobody else has: for joining blocks of several. */
MUST_CHECK enum err_code partition_new_epoch(
	struct db *db, const struct partition *like, struct partition **out, struct err *err);
/* Lets go of what is over the budget and nobody needs. */
void partitions_evict(struct db *db);
/* The same, and ends live epochs where that is not enough. */
void partitions_bound(struct db *db);

#endif
