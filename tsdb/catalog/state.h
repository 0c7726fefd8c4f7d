/*
 * The state of a database: what every part of it shares, and the locks.
 *
 * Locks, in the order they are taken (a later one while an earlier one is held, never the other way
 * round):
 *   job->lock        one append per job at a time; delta bases
 *   numbers_lock     one append of numbers at a time
 *   blocks_files     names in blocks/, and the small files that change (blocks.h)
 *   ids_lock         the file of ids
 *   partition->lock  symbols being made or loaded, stored symbols
 *   commit queue     rows that wait for their sync
 *   series index     label sets, postings, and which window has which series (window->series)
 *   db->lock         windows, blocks, their pins and counts, partitions in memory, queriers, state
 *   losses           the list of losses; nothing is taken while it is held
 *   inventory        the list of windows and blocks; nothing is taken while it is held
 * No thread holds two of the first three.
 * In a union db->lock guards the list of members and their pins; no other lock is taken then.
 */
#ifndef TSDB_CATALOG_STATE_H
#define TSDB_CATALOG_STATE_H

#include "tsdb/catalog/blocks.h"
#include "tsdb/catalog/members.h"
#include "tsdb/catalog/options.h"
#include "tsdb/catalog/overdue.h"
#include "tsdb/catalog/windows.h"
#include "tsdb/lists/inventory.h"

#define DB_FUTURE_NS (INT64_C(600) * 1000000000) /* how far ahead of our clock a profile may be */
#define DB_QUEUE_BYTES_MAX (16u << 20) /* rows that wait for their sync */
#define DB_CACHE_BYTES (16u << 20) /* pages of all stores */
#define DB_SCRATCH_BYTES_MAX (1u << 30) /* of one append */
#define DB_REOPEN_WAIT_NS \
	(INT64_C(5) * 1000000000) /* a querier waits this long for a store that is being reopened */

struct commit;
struct ship;
struct mirror;
struct member;
struct compaction;
struct scratch;

/* A querier's place among those that are open. */
struct querier_turn {
	struct querier_turn *older, *newer; /* db->lock */
	uint64_t number;
};

struct db {
	bool is_union; /* it has no data: most of what follows is empty */
	struct member **members; /* db->lock; of a union, ascending by name */
	size_t members_n, members_cap;
	db_member_fn union_tell; /* constant once it has queriers */
	void *union_tell_ctx;
	const char *union_records; /* the name of a member, or NULL; constant likewise */
	struct db_options o;
	struct mirror *mirror; /* of the head, where it is open for reading only; else NULL */
	char *dir, *head_dir, *ids_path;
	int lock_fd;
	struct store_cache *cache;
	struct series_index *series;
	struct commit *commit;
	uint64_t followed; /* windows that the follower's thread made */
	struct ship *ship; /* NULL: db_options.segments is off (tsdb/head/ship.h) */
	struct losses *losses;
	struct inventory *inventory;
	enum inventory_found inventory_found;
	struct thread maintenance;

	struct mutex lock;
	struct cond changed; /* pins, reopening, closing */
	struct cond wake; /* the maintenance thread's */
	struct window **windows; /* ascending */
	size_t windows_n, windows_cap;
	struct left_window *left; /* db->lock */
	struct window *dropping; /* out of the list of windows, but their files are still there */
	struct db_block **blocks; /* db->lock: ascending by time */
	size_t blocks_n, blocks_cap;
	struct mutex blocks_files; /* tsdb/catalog/blocks.h */
	char *blocks_dir, *snapshots_dir;
	struct unreadable *unreadable; /* db->lock: blocks that cannot be opened */
	size_t unreadable_n, unreadable_cap;
	struct compaction *compaction; /* the worker on blocks (tsdb/compact/loop.c) */
	uint32_t source_number; /* db->lock: the last one given to a block or window */
	struct db_job_labels *job_labels; /* db->lock; of db_set_instance_labels */
	size_t job_labels_n;
	struct arena job_labels_arena;
	struct job **jobs; /* db->lock: by index */
	uint32_t jobs_n, jobs_cap, next_job_id;
	struct map jobs_by_name, jobs_by_id; /* db->lock */
	struct partition **partitions; /* db->lock: by resident->slot; NULL: free */
	uint32_t partitions_n, partitions_cap;
	uint64_t unpins; /* db->lock: see partition->used_at */
	_Atomic uint64_t symbol_bytes; /* of all partitions, when last computed */
	_Atomic uint64_t symbol_used_bytes; /* of partitions that cannot be freed, likewise */
	_Atomic uint64_t delta_bytes; /* of all delta bases */
	struct mutex ids_lock;
	struct mutex numbers_lock;
	bool creating; /* db->lock: a window is being made, outside of the lock */
	enum db_state state; /* db->lock, as the two below */
	struct err why;
	int64_t state_since_ns; /* on the running clock */
	struct querier_turn *queriers; /* db->lock: newest first */
	uint64_t queriers_opened;
	struct series *retired; /* removed from the index; queriers may still use their labels */
	struct scratch *scratch;
	bool closing, retention_due;
	struct overdue_wait retention_wait; /* db->lock */
	_Atomic int64_t max_ts_ns; /* of stored rows; may be in the future: see db_reached_ns */
	int64_t found_max_ns; /* the same, at the start */
	/* of queued rows, whether stored or not: they may be on the disk */
	_Atomic int64_t queued_max_ns;
	_Atomic uint64_t rows, samples, numbers; /* appended since start */
};

/* A window that left the head, whose block is not published yet: until then its series keep their
 * ids. */
struct left_window {
	struct left_window *next;
	int64_t start_ns;
	uint64_t identity;
	struct bits series;
};

void db_set_state(struct db *db, enum db_state state, const struct err *why);
enum db_state db_state(struct db *db, struct err *why);
int64_t db_state_since_ns(struct db *db);
void db_check_room(struct db *db); /* free space: DB_READY to DB_FULL and back */
void db_count_damage(void); /* the metric alone */
/* Calls db_options.passed_over for a damaged file that the database can do without. */
void db_pass_over(struct db *db, const struct err *why);

/*
 * The time by which rows are too old, windows are cut and retention counts: that of the newest row,
 * but no later than now. So rows of the future have no effect on it, and an old directory keeps its
 * data until newer rows come. 0: no rows.
 */
int64_t db_reached_ns(const struct db *db);
/* Rows up to this time are too old, and windows that end by it are cut. 0: there is none */
int64_t db_accepts_from_ns(const struct db *db);
/* True if windows are whole hours: then rollups make up for missed scrapes (rollup.h). */
bool db_counts_missed(const struct db *db);

/* Removes unused series from the index, and frees them when no querier can have seen them. */
void db_retire_series(struct db *db);
/* Moves the window's set of series to a new entry of db->left. Readers of the window's set hold
 * db->lock. */
void left_window_add(struct db *db, struct window *w);
void left_window_remove(struct db *db, int64_t start_ns, uint64_t identity); /* none is fine */
/* Counts a delta base in its partition and in db->delta_bytes. */
void base_account(struct db *db, const struct delta_base *base, bool more);
/* Releases a base and takes it off the accounts. */
void base_release(struct db *db, struct delta_base *base);

#endif
