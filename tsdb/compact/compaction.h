/*
 * Work on blocks: cutting windows, joining blocks, retention, deletion. One at a time does it.
 *
 * Errors:  what fails is given up as a whole and tried again; ERR_CANCELED when closing,
 * ERR_UNAVAILABLE when the disk is full. Threads: the maintenance thread, and callers of
 * db_compact, db_delete_series and db_snapshot.
 */
#ifndef TSDB_COMPACT_COMPACTION_H
#define TSDB_COMPACT_COMPACTION_H

#include "tsdb/catalog/state.h"

struct compaction {
	bool busy; /* db->lock: somebody works */
	bool postponed; /* db->lock: there was no room for what was due */
	unsigned failures; /* in a row; the worker's */
	int64_t retry_at_ns; /* monotonic; the worker's */
	int64_t room_at_ns; /* when free space was last looked at; the worker's */
};

MUST_CHECK enum err_code compaction_open(struct db *db, struct err *err);
void compaction_close(struct db *db); /* NULL is fine */
/* False: somebody works already (wait: waits for him), or the database closes. */
bool compaction_begin(struct db *db, bool wait);
void compaction_end(struct db *db);
/* Asked every now and then while working: ERR_CANCELED when closing, ERR_UNAVAILABLE when the disk
 * is full. */
MUST_CHECK enum err_code compaction_pause(struct db *db, struct err *err);
/* ERR_UNAVAILABLE: `bytes` more would leave less than the reserve. */
MUST_CHECK enum err_code compaction_room(struct db *db, uint64_t bytes, struct err *err);
/* A round of what is due: cutting, then joining. */
void compaction_round(struct db *db);

/* The oldest window that takes no more rows becomes a block. *did: there was one. */
MUST_CHECK enum err_code cut_oldest(struct db *db, bool *did, struct err *err);
/* Joins the blocks that are most due. *did: there were some. */
MUST_CHECK enum err_code compact_some(struct db *db, bool *did, struct err *err);
void retention_apply(struct db *db);

/* Ranges of the windows that were just opened. */
MUST_CHECK enum err_code deleted_load_windows(struct db *db, struct err *err);

#endif
