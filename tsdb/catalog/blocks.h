/*
 * Blocks of a database, the inside: who makes them, swaps them, and takes them away.
 *
 * One at a time works on blocks (compaction_begin, compaction_end): cutting a window, joining
 * blocks, retention. What it made is put in the place of what it stands for in one step, under two
 * locks:
 *
 *     work->files   guards names in blocks/ and the small files that change there and beside
 *                   windows (meta.json, deleted): taken before db->lock, held while such a file is
 *                   written. Whoever deletes rows or links files of a snapshot holds it too, so
 *                   that a deletion is never written to a block whose successor is already in its
 *                   place.
 *     db->lock      db->blocks and db->windows as queriers find them.
 *
 * Crashes. A block is written as <ULID>.tmp and renamed when all of it is synced and was read back;
 * a block on its way out is renamed to <ULID>.gone before its files go. meta.json names the blocks
 * (sources) and the head windows (heads) that a block stands for, so at start:
 *
 *     *.tmp, *.gone           are removed: the first was never in use, the second no longer is;
 *     a block in sources      is removed: its successor was renamed, so it is whole and synced;
 *     a window in heads       is removed likewise.
 *
 * Between any two steps the rows are there once: before the rename in the sources, from then on in
 * the successor.
 * A renamed directory is synced before any file in it goes, also by a later start. What the
 * disk does not let go comes back at a start without its successor; so a block is dropped after all
 * that it stands for, and a deletion is written to windows on their way out, too.
 */
#ifndef TSDB_CATALOG_BLOCKS_H
#define TSDB_CATALOG_BLOCKS_H

#include "tsdb/block/block.h"
#include "tsdb/catalog/deleted.h"
#include "tsdb/catalog/windows.h"

#define BLOCK_TMP ".tmp"
#define BLOCK_GONE ".gone"

/* A block that cannot be opened, on the list of losses: left where it is until retention. */
struct unreadable {
	char *dir;
	int64_t min_ns, max_ns; /* 0, 0: not known */
};

struct db_block {
	struct block *block;
	uint32_t number; /* of this process: names the block to partitions' caches */
	unsigned pins; /* db->lock: queriers, compactions */
	bool gone; /* db->lock: out of the list; freed, and its files removed, with the last pin */
	bool keep; /* db->lock: gone, but its files are another's now */
	bool stays; /* db->lock: gone, but its files are there until the next start */
	bool apart; /* work: not joined with what is before it, that has too many other symbols */
	bool raw_failed; /* db->lock: its raw rows could not be dropped in this round */
	bool damaged; /* db->lock */
	struct err why; /* what was found wrong when it was opened */
	const struct deleted_range
		*deleted; /* db->lock: ascending; an array is replaced, not changed */
	size_t deleted_n;
};

/* db->blocks are ascending by time, and overlap neither each other nor a window in db->windows: a
 * window leaves that list in the same step in which its block enters this one. */
MUST_CHECK enum err_code blocks_open_all(struct db *db, struct err *err);
void blocks_unpin(struct db *db, struct db_block *b);
void blocks_close_all(struct db *db);
/* Some block or window has this epoch of this job: calls fn for each block that does. */
typedef enum err_code (*block_visit_fn)(
	void *ctx, struct db_block *b, uint32_t slot, struct err *err);
MUST_CHECK enum err_code blocks_visit_epoch(
	struct db *db, uint32_t job_id, uint32_t epoch, block_visit_fn fn, void *ctx, struct err *err);

/* Opened, not in the list. */
MUST_CHECK enum err_code blocks_open(
	struct db *db, const char *dir, struct db_block **out, struct err *err);
void blocks_free(struct db_block *b); /* NULL is fine; not in the list, not pinned */
/* `by` takes the place of the n blocks and of the window (NULL: of none); by NULL: they just go.
 * db->lock and work->files are held. Afterwards, without db->lock: blocks_retire for each. */
void blocks_swap_locked(
	struct db *db, struct db_block *const *olds, size_t n, struct window *w, struct db_block *by);
bool blocks_reserve_locked(struct db *db); /* room for one more */
/* One that was swapped out: its files go with its last pin, or stay (keep). work->files is held. */
void blocks_retire(struct db *db, struct db_block *b, bool keep);
/* Before one is dropped: it and all that it stands for is nothing that a start reads, durably. What
 * would come back without it would have none of its deletions. False: the disk keeps something, and
 * it has to stay. work->files is held. */
bool blocks_hide(struct db *db, const struct db_block *b);
/* Blocks now in the list, pinned; malloc'ed. */
MUST_CHECK enum err_code blocks_pin_all(
	struct db *db, struct db_block ***out, size_t *n, struct err *err);
void blocks_unpin_all(struct db *db, struct db_block **v, size_t n); /* frees v */
/* A window for ts must not reach into a block: false when ts lies in one. db->lock is held. */
bool blocks_clip_locked(const struct db *db, int64_t ts_ns, int64_t *start_ns, int64_t *end_ns);
/* A block that cannot be opened has rows in (min, max], as far as is known. db->lock is held. */
bool blocks_unreadable_locked(const struct db *db, int64_t min_ns, int64_t max_ns);
/* A head window was cut into one that stands for it. db->lock is held, or it is the start. */
bool blocks_have_window(const struct db *db, int64_t start_ns);
bool block_names_source(const struct block_meta *m, const struct ulid *u);
/* Something of it cannot be read. */
void blocks_damage(struct db *db, struct db_block *b, const char *what, const struct err *why);

/* ---- blocks_raw.c: raw rows that go before the rest ---- */

MUST_CHECK enum err_code blocks_unlink_raw(struct db *db, const char *dir, struct err *err);
/* The raw rows of one that the caller pinned are dropped; the pin goes. What fails is logged. */
void blocks_drop_raw_of(struct db *db, struct db_block *b);
/* At the start: raw rows that had gone are there again. */
void blocks_drop_raw(struct db *db, struct db_block *b);

#endif
