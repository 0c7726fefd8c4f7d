/*
 * Blocks of a database, the inside: who makes them, swaps them, and takes them away.
 *
 * One at a time works on blocks (work_begin, work_end): cutting a window, joining blocks,
 * retention. What it made is put in the place of what it stands for in one step, under two locks:
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

#include "tsdb/catalog/db_internal.h"

#define BLOCK_TMP ".tmp"
#define BLOCK_GONE ".gone"

/* A block that cannot be opened, on the list of losses: left where it is until retention. */
struct unreadable {
	char *dir;
	int64_t min_ns, max_ns; /* 0, 0: not known */
};

struct work {
	struct mutex files;
	char *blocks_dir, *snapshots_dir;
	bool busy; /* db->lock: somebody works */
	bool postponed; /* db->lock: there was no room for what was due */
	unsigned failures; /* in a row; the worker's */
	int64_t retry_at_ns; /* monotonic; the worker's */
	int64_t room_at_ns; /* when free space was last looked at; the worker's */
	struct unreadable *unreadable; /* db->lock */
	size_t unreadable_n;
};

/* ---- work.c ---- */

MUST_CHECK enum err_code work_open(struct db *db, struct err *err);
void work_close(struct db *db); /* NULL work is fine */
/* False: somebody works already (wait: waits for him), or the database closes. */
bool work_begin(struct db *db, bool wait);
void work_end(struct db *db);
/* Asked every now and then while working: ERR_CANCELED when closing, ERR_UNAVAILABLE when the disk
 * is full. */
MUST_CHECK enum err_code work_pause(struct db *db, struct err *err);
/* ERR_UNAVAILABLE: `bytes` more would leave less than the reserve. */
MUST_CHECK enum err_code work_room(struct db *db, uint64_t bytes, struct err *err);
/* A round of what is due: cutting, then joining. */
void work_round(struct db *db);

/* ---- blocks.c ---- */

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

/* ---- retention.c ---- */

/* At the start: raw rows that had gone are there again. What fails is logged. */
void retention_drop_raw(struct db *db, struct db_block *b);
MUST_CHECK enum err_code retention_unlink_rows(struct db *db, const char *dir, struct err *err);

/* ---- deleted.c ---- */

struct deleted {
	const struct deleted_range *v;
	size_t n;
};
/*
 * Ranges of a file, of which there are two copies; what is not there is empty. Where one copy
 * cannot be read it is made anew of the other; ERR_CORRUPT: neither can. `of` is the block's ULID
 * or the window's start: another one's file is not believed. Memory by deleted_release.
 */
MUST_CHECK enum err_code deleted_load(
	struct db *db, const char *path, struct str of, struct deleted *out, struct err *err);
MUST_CHECK enum err_code deleted_decode(
	struct str bytes, const char *path, struct str of, struct deleted *out, struct err *err);
MUST_CHECK enum err_code deleted_save(
	struct db *db, const char *path, struct str of, struct deleted d, struct err *err);
/* v sorted and joined where they touch; *out is linked to `old`, which lives as long. */
MUST_CHECK enum err_code deleted_make(
	struct deleted_range *v, size_t n, struct deleted old, struct deleted *out, struct err *err);
/* One that deleted_make made and nobody was shown; what it is linked to stays. */
void deleted_give_up(struct deleted d);
void deleted_release(const struct deleted_range *v); /* with all it is linked to; NULL is fine */
/* Those of one series: [*first, first + returned). */
size_t deleted_of(struct deleted d, uint32_t series, const struct deleted_range **first);
bool deleted_has(const struct deleted_range *v, size_t n, int64_t ts_ns);
/* Some part of (min, max] is deleted. */
bool deleted_touches(const struct deleted_range *v, size_t n, int64_t min_ns, int64_t max_ns);
/* What of the rows that a rollup record sums is deleted, as far as their span tells. */
enum deleted_part {
	DELETED_NONE,
	DELETED_SOME, /* or may be */
	DELETED_ALL,
};
struct rollup_view;
enum deleted_part deleted_of_record(
	const struct deleted_range *v, size_t n, const struct rollup_view *record);
char *window_deleted_path(const struct db *db, int64_t start_ns); /* malloc'ed */
/* Of a window that went. Where its files stayed, as they do when the database closes meanwhile or
 * the disk fails, so does this: at the next start it is there again. */
void window_deleted_remove(struct db *db, int64_t start_ns);
char *block_deleted_path(const char *dir); /* malloc'ed */
#define DELETED_OF_MAX 32
struct str window_deleted_of(int64_t start_ns, char *space); /* in space[DELETED_OF_MAX] */
#define DELETED_COPY ".copy" /* behind the path */

/* ---- delete.c ---- */

/* Ranges of the windows that were just opened. */
MUST_CHECK enum err_code deleted_load_windows(struct db *db, struct err *err);

/* ---- groups.c: the labels that tell instances apart ---- */

/* What db_set_instance_labels said last, as a copy that does not change. */
struct group_rules {
	struct db_job_labels *v;
	size_t n;
};
MUST_CHECK enum err_code group_rules_copy(
	struct db *db, struct arena *a, struct group_rules *out, struct err *err);
/* By labels of the group, then labels: the order of series of one partition in a block. */
int group_cmp(const struct group_rules *r, struct str job, struct labels a, struct labels b);
bool group_same(const struct group_rules *r, struct str job, struct labels a, struct labels b);
MUST_CHECK enum err_code group_labels(const struct group_rules *r, struct labels labels,
	struct arena *a, struct labels *out, struct err *err);

#include "tsdb/catalog/db_internal.h"
#endif
