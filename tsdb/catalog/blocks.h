/*
 * The blocks of a database: how they are made, swapped and removed.
 *
 * One worker at a time changes blocks (compaction_begin, compaction_end): it cuts a window, joins
 * blocks or applies retention. The new block takes the place of the old ones in one step, under two
 * locks:
 *
 *     db->blocks_files  guards names in blocks/ and the small files that change there and beside
 *                       windows (meta.json, deleted). It is taken before db->lock and held while
 *                       such a file is written. A deletion and a snapshot hold it too, so that a
 *                       deletion is never written to a block that was already replaced.
 *     db->lock          guards db->blocks and db->windows, as queriers find them.
 *
 * Crashes. A block is written as <ULID>.tmp, synced, read back, and then renamed. A block that is
 * dropped is renamed to <ULID>.gone before its files are removed. meta.json names the blocks
 * (sources) and the head windows (heads) that the block replaces, so at start:
 *
 *     *.tmp, *.gone           are removed: the first was never used, the second was dropped;
 *     a block in sources      is removed: its successor was renamed, so it is whole and synced;
 *     a window in heads       is removed for the same reason.
 *
 * So at any time the rows exist once: before the rename in the sources, after it in the successor.
 * A renamed directory is synced before any of its files is removed, also by a later start. If the
 * disk fails to remove something, the next start reads it again. So a block is dropped after
 * everything that it replaced, and a deletion is also written to windows that are being dropped.
 */
#ifndef TSDB_CATALOG_BLOCKS_H
#define TSDB_CATALOG_BLOCKS_H

#include "tsdb/block/block.h"
#include "tsdb/catalog/deleted.h"
#include "tsdb/catalog/options.h"
#include "tsdb/catalog/remote.h"
#include "tsdb/catalog/windows.h"

#define BLOCK_TMP ".tmp"
#define BLOCK_GONE ".gone"

/*
 * A block that cannot be opened. On the disk it is on the list of losses, and stays until retention
 * drops it; in a bucket each answer that touches it has a warning.
 */
struct unreadable {
	char *dir; /* its directory or stub; in a follower: its key */
	int64_t min_ns, max_ns; /* 0, 0: not known */
	bool remote;
	bool again; /* the bucket did not answer: opening is tried again */
	/* in a follower: the list's entry, with its key stored behind it; else NULL */
	struct remote_block *of;
	struct err why; /* if remote */
};

struct db_block {
	struct block *block;
	uint32_t number; /* of this process: names the block to partitions' caches */
	unsigned pins; /* db->lock: queriers, compactions */
	bool gone; /* db->lock: out of the list; freed, and its files removed, with the last pin */
	bool keep; /* db->lock: gone, but another block has its files now */
	bool stays; /* db->lock: gone, but its files stay until the next start */
	bool tables_go; /* db->lock: gone, and its tables are removed with it: the bucket has them */
	bool remote; /* read in a bucket; block_dir is its key there */
	char *stub; /* its directory if it is remote; NULL in a follower */
	struct block_place place; /* if it is remote */
	struct block_file of_deleted, of_meta; /* in a follower: as the list has them */
	bool apart; /* the worker's: not joined with earlier blocks, whose symbols differ too much */
	bool at_work; /* db->lock: the worker joins or drops it: nobody else takes it off the list */
	bool raw_failed; /* db->lock: its raw rows could not be dropped in this round */
	bool damaged; /* db->lock */
	struct err why; /* what was found wrong when it was opened */
	const struct deleted_range
		*deleted; /* db->lock: ascending; an array is replaced, not changed */
	size_t deleted_n;
};

/* db->blocks is ascending by time. Blocks overlap neither each other nor a window in db->windows: a
 * window leaves that list in the same step in which its block enters this one. */
MUST_CHECK enum err_code blocks_open_all(struct db *db, struct err *err);
void blocks_unpin(struct db *db, struct db_block *b);
void blocks_end_work(struct db *db, struct db_block *b); /* b is pinned or still in the list */
void blocks_close_all(struct db *db);
/* Calls fn for each block that has this epoch of this job. */
typedef enum err_code (*block_visit_fn)(
	void *ctx, struct db_block *b, uint32_t slot, struct err *err);
MUST_CHECK enum err_code blocks_visit_epoch(
	struct db *db, uint32_t job_id, uint32_t epoch, block_visit_fn fn, void *ctx, struct err *err);

/* Opens a block or a stub; it is not in the list yet. */
MUST_CHECK enum err_code blocks_open(
	struct db *db, const char *dir, struct db_block **out, struct err *err);
void blocks_free(struct db_block *b); /* NULL is fine; not in the list, not pinned */
/* Loads the deleted ranges from the block's directory or stub; the old ones are released. */
MUST_CHECK enum err_code blocks_load_deleted(struct db *db, struct db_block *b, struct err *err);
/* Marks ids of the block's jobs and epochs as used. db->lock is not held. */
MUST_CHECK enum err_code blocks_know_jobs(struct db *db, struct db_block *b, struct err *err);
/* Swaps n blocks and a window (NULL: none) for `by`. by NULL: they are only removed. db->lock and
 * db->blocks_files are held. Then call blocks_retire for each, without db->lock. */
void blocks_swap_locked(
	struct db *db, struct db_block *const *olds, size_t n, struct window *w, struct db_block *by);
/* Makes room for one more block in the list, so that blocks_swap_locked cannot fail. `what` begins
 * the error. db->lock is not held. */
MUST_CHECK enum err_code blocks_reserve(struct db *db, const char *what, struct err *err);
/* After blocks_swap_locked: removes the block's files with its last pin, or keeps them (keep).
 * db->blocks_files is held. */
void blocks_retire(struct db *db, struct db_block *b, bool keep);
/*
 * Call before a block is dropped. Makes sure that no later start reads the block, or what it
 * replaced: that would come back without the block's deletions. False: the disk failed, and the
 * block has to stay. db->blocks_files is held.
 */
bool blocks_hide(struct db *db, const struct db_block *b);
/* Hides only what the block replaced. */
bool blocks_hide_replaced(struct db *db, const struct db_block *b);
/* Tells db_options.published. */
void blocks_tell(
	const struct db *db, enum db_change what, const struct ulid *block, int64_t window_ns);
/* Inserts by time; the caller has reserved room. */
void blocks_insert_locked(struct db *db, struct db_block *b);
/* Pins all blocks of the list; *out is malloc'ed. */
MUST_CHECK enum err_code blocks_pin_all(
	struct db *db, struct db_block ***out, size_t *n, struct err *err);
void blocks_unpin_all(struct db *db, struct db_block **d, size_t n); /* frees d */
/* Cuts (*start, *end] so that a new window for ts does not overlap a block; false: ts is inside a
 * block, or between two that are being joined. db->lock is held. */
bool blocks_clip_locked(const struct db *db, int64_t ts_ns, int64_t *start_ns, int64_t *end_ns);
/* True if an unreadable block of known times touches (min, max]. db->lock is held. */
bool blocks_unreadable_locked(const struct db *db, int64_t min_ns, int64_t max_ns);
/* True if some block replaced this head window. db->lock is held, or it is the start. */
bool blocks_have_window(const struct db *db, int64_t start_ns);
bool block_names_source(const struct block_meta *m, const struct ulid *u);
/* Logs and counts damage of a block. */
void blocks_damage(struct db *db, struct db_block *b, const char *what, const struct err *why);

/* ---- raw rows that go before the rest ---- */

MUST_CHECK enum err_code blocks_unlink_raw(struct db *db, const char *dir, struct err *err);
/* Drops the raw rows of a pinned block, and the pin. Failures are logged. */
void blocks_drop_raw_of(struct db *db, struct db_block *b);
/* At the start: drops raw rows again that were dropped before. */
void blocks_drop_raw(struct db *db, struct db_block *b);

#endif
