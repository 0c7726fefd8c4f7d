/*
 * Work on blocks: cutting windows, joining blocks, retention, deletion. One worker at a time.
 *
 * Errors:  failed work is given up as a whole and tried again; ERR_CANCELED when closing,
 *          ERR_UNAVAILABLE when the disk is full.
 * Threads: the maintenance thread, and callers of db_compact, db_delete_series and db_snapshot.
 */
#ifndef TSDB_COMPACT_COMPACTION_H
#define TSDB_COMPACT_COMPACTION_H

#include "tsdb/catalog/state.h"

struct compaction {
	bool busy; /* db->lock: there is a worker */
	bool postponed; /* db->lock: the disk had no room for the work */
	unsigned failures; /* in a row; the worker's */
	int64_t retry_at_ns; /* monotonic; the worker's */
	int64_t room_at_ns; /* when free space was last checked; the worker's */
};

MUST_CHECK enum err_code compaction_open(struct db *db, struct err *err);
void compaction_close(struct db *db); /* NULL is fine */
/* Becomes the worker. False: there is one already (wait: waits for it), or the database closes. */
bool compaction_begin(struct db *db, bool wait);
void compaction_end(struct db *db);
/* The worker calls it often: ERR_CANCELED when closing, ERR_UNAVAILABLE when the disk is full. */
MUST_CHECK enum err_code compaction_pause(struct db *db, struct err *err);
/* ERR_UNAVAILABLE: `bytes` more would leave less than the reserve. */
MUST_CHECK enum err_code compaction_room(struct db *db, uint64_t bytes, struct err *err);
/* Cuts and joins all that is due, unless an earlier failure postpones it. */
void compaction_round(struct db *db);

/* Cuts the oldest window that takes no more rows into a block. *did: there was one. */
MUST_CHECK enum err_code cut_oldest(struct db *db, bool *did, struct err *err);
/* Joins the blocks that plan_join chooses. *did: there were some. */
MUST_CHECK enum err_code compact_some(struct db *db, bool *did, struct err *err);
void retention_apply(struct db *db);

/* Loads deleted ranges of the windows that were just opened. */
MUST_CHECK enum err_code deleted_load_windows(struct db *db, struct err *err);

#endif
