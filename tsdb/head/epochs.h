/*
 * Epochs of jobs: the ids that new rows use, and the symbols that are in memory.
 *
 * A job's symbols live in epochs: each has separate ids, in a struct partition. New rows use the
 * newest, the job's live epoch, whose partition stays in memory. Others are loaded from blocks and
 * windows when a query needs them, kept while they are pinned or a delta base is in their ids,
 * and freed when symbols exceed db_options.symbols_bytes, longest unused first. If that is not
 * enough, live epochs end (evict.c).
 *
 * Content has one id in an epoch: all symbols that blocks and windows have of a live epoch are
 * loaded before new content gets an id.
 *
 * Errors, threads: as each says.
 */
#ifndef TSDB_HEAD_EPOCHS_H
#define TSDB_HEAD_EPOCHS_H

#include "tsdb/catalog/blocks.h"

/* Notes a row. The size of the table once each target was scraped about twice is taken as its live
 * size; an end of the epoch would free the later growth. p->lock is held. */
void partition_note_row(struct partition *p, int64_t ts_ns, int64_t interval_ns);
/* New rows of the job go under a new epoch; job->lock is held. */
void epoch_end(struct db *db, struct job *job);
/* The job's live epoch, fully loaded, for a new row in this pinned window. job->lock is held; *out
 * stays as long as the lock is held. */
MUST_CHECK enum err_code window_partition_take(struct db *db, struct window *w, struct job *job,
	int64_t ts_ns, struct partition **out, struct err *err);
/*
 * Loads all symbols that a window has of p, or a block up to a stage; the window or block is
 * pinned. ERR_CORRUPT, each time: some were lost; the rest is loaded and p->damaged is set.
 * ERR_EXISTS: ids mean something else here than elsewhere, and nothing of the window or block may
 * be used.
 */
MUST_CHECK enum err_code partition_need_window(
	struct db *db, struct partition *p, struct window *w, struct err *err);
struct db_block;
MUST_CHECK enum err_code partition_need_block(struct db *db, struct partition *p,
	struct db_block *b, uint32_t slot, enum block_stage stage, struct err *err);
/* True: nothing of the block's symbols up to the stage would be read. */
bool partition_has_block(struct partition *p, const struct db_block *b, enum block_stage stage);
/* A new epoch that only the caller uses: for joining blocks of several epochs. */
MUST_CHECK enum err_code partition_new_epoch(
	struct db *db, const struct partition *like, struct partition **out, struct err *err);
/* Frees unused symbols while the budget is exceeded. */
void partitions_evict(struct db *db);
/* The same, and ends live epochs where that is not enough. */
void partitions_bound(struct db *db);

#endif
