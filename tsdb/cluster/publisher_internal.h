/*
 * The parts of the publisher, as they see each other.
 *
 *	publisher.c   life, threads
 *	status.c      status, metrics
 *	round.c       one round: segments, small files, the manifest's write and what follows it
 *	view.c        the lists of the database, copied
 *	compare.c     the next manifest out of the last one, the lists, and what was put
 *	upload.c      blocks and snapshots are put
 *	remove.c      objects that are gone, and those without a name
 *
 * The working manifest, p->m, is what the last write tried to say, whether it was done or not; the
 * bucket's manifest is the same or older. So never remove an object that p->m names. Remove others
 * only after a later write was confirmed.
 *
 * Locks: p->lock is taken after all locks of the database, but for those of the list of losses.
 */
#ifndef TSDB_CLUSTER_PUBLISHER_INTERNAL_H
#define TSDB_CLUSTER_PUBLISHER_INTERNAL_H

#include <stdatomic.h>

#include "base/thread.h"
#include "tsdb/cluster/publisher.h"
#include "tsdb/head/ship.h"

#define SMALL_FILE_BYTES_MAX (256u << 20) /* ids, losses, deleted ranges, meta.json */
#define GONE_REMOVED (-1) /* in gone_at */
#define FAILED_AGAIN_NS (INT64_C(3600) * 1000000000) /* a block that cannot be read */
#define WORK_PAUSE_NS (INT64_C(1) * 1000000000) /* after a failure; doubles */
#define WORK_PAUSE_MAX_NS (INT64_C(300) * 1000000000)
#define PUT_PIECE_BYTES (256u << 10)

struct ready_block { /* all its files are put */
	struct manifest_block b;
	bool taken; /* by the round that goes on */
};

struct failed_block {
	struct ulid ulid;
	int64_t again_ns; /* monotonic */
};

struct snapshot_task {
	int64_t start_ns, end_ns;
	uint64_t identity;
	struct manifest_segment segment; /* once it is put; last 0: not yet */
	bool taken; /* as ready_block's */
};

/* A small file as it was when it was put. */
struct publisher_stamp {
	char key[64]; /* what it is of: "ids", a ULID, a window */
	uint64_t inode, size;
	int64_t changed_ns, modified_ns;
	struct manifest_file f;
};

struct publisher {
	struct publisher_options o; /* shard and dir are ours */
	char shard[MANIFEST_SHARD_BYTES_MAX + 1];
	char *dir, *tmp_path, *snapshot_path;
	struct lease *lease;
	struct db *db; /* NULL: not attached; set under both locks */
	bool behind; /* the directory is to be made of the manifest (lease.h) */
	struct thread publish, upload;
	atomic_bool attached; /* to a database that may acknowledge what it stores */
	_Atomic int64_t asked_at_ns; /* monotonic: a round was asked for, as the lease is too old */

	struct mutex round_lock; /* one round at a time */
	bool compared; /* round_lock: m was compared with the database at least once */
	/* round_lock: windows that the manifest named at the start, and that were blocks already. Which
	 * ids their series had is not known any more. */
	struct window_name {
		int64_t start_ns;
		uint64_t identity;
	} * unknown;
	size_t unknown_n;
	struct publisher_stamp *stamps; /* round_lock */
	size_t stamps_n, stamps_cap;

	struct mutex lock; /* guards what follows */
	struct cond wake, work; /* of the two threads */
	bool stopping, woken, work_due;
	struct arena arena; /* of m, and gone_at. Changed by rounds only */
	struct manifest m;
	int64_t *gone_at; /* monotonic: when the first manifest with it was confirmed; 0: not yet */
	struct ulid *there; /* ascending: blocks of the confirmed manifest */
	size_t there_n;
	struct ulid *wanted; /* blocks to be put, oldest first */
	size_t wanted_n;
	uint64_t wanted_bytes;
	struct ready_block *ready;
	size_t ready_n, ready_cap;
	struct failed_block *failed;
	size_t failed_n, failed_cap;
	struct snapshot_task *snapshots;
	size_t snapshots_n, snapshots_cap;
	struct manifest_key *puts; /* by the round that goes on: not to be removed */
	size_t puts_n, puts_cap;
	char **found; /* objects without a name; keys behind shards/NAME/ */
	size_t found_n, found_cap;
	char deleting[BUCKET_KEY_BYTES_MAX]; /* key, "": none */
	struct cond deleted; /* deleting has changed */
	int64_t orphans_at_ns; /* monotonic: when to look; 0: at once */
	int64_t confirmed_through_ns;
	bool round_failed, work_failed; /* and it is in the log */
	int64_t failed_since_ns;
	struct err round_err, work_err;
	struct publisher_status counts; /* what is counted */
};

/* ---- upload.c: objects ---- */

/* Puts bytes under a key that says what they are; waits while the key is being removed. */
MUST_CHECK enum err_code object_put(
	struct publisher *p, const struct manifest_key *key, struct str bytes, struct err *err);
MUST_CHECK enum err_code object_put_file(struct publisher *p, const struct manifest_key *key,
	const char *path, const struct manifest_file *want, struct err *err);
/* XXH3 and size of a file. ERR_NOT_FOUND. */
MUST_CHECK enum err_code objects_file_hash(
	const char *path, struct manifest_file *out, struct err *err);

/* ---- view.c ---- */

struct view_block {
	struct ulid ulid;
	int64_t min_ns, max_ns;
	uint32_t level;
	bool raw;
	bool remote; /* its tables are in the bucket alone */
	size_t deleted_n;
	uint64_t bytes; /* of its files */
	const char *dir; /* of its small files; remote: of its stub */
	const int64_t *heads;
	const struct ulid *sources;
	uint32_t heads_n, sources_n;
	/* of the round */
	struct manifest_file deleted; /* that is put; bytes 0: none */
	bool deleted_failed;
	struct manifest_file meta; /* of a block whose raw rows went; bytes 0: not put */
};

struct view_window {
	int64_t start_ns, end_ns;
	uint64_t identity;
	size_t deleted_n;
	struct manifest_file deleted;
};

struct publisher_view {
	struct view_block *blocks; /* ascending by time */
	struct view_window *windows; /* ascending */
	struct ulid *unreadable;
	size_t blocks_n, windows_n, unreadable_n;
	int64_t reached_ns, retention_ns;
};
MUST_CHECK enum err_code view_take(
	struct db *db, struct arena *a, struct publisher_view *out, struct err *err);
const struct view_block *view_find_block(const struct publisher_view *v, const struct ulid *u);
const struct view_window *view_find_window(
	const struct publisher_view *v, int64_t start_ns, uint64_t identity);
/* The block that has replaced a window, or another block; NULL: none. */
const struct view_block *view_cover_of_window(const struct publisher_view *v, int64_t start_ns);
/* had: the directory had the block, so a block that covers all of its time has replaced it. */
const struct view_block *view_cover_of_block(
	const struct publisher_view *v, const struct manifest_block *b, bool had);

/* ---- round.c ---- */

struct round_segment { /* put in this round */
	int64_t start_ns, end_ns;
	uint64_t identity;
	struct manifest_segment s;
};

struct round {
	struct publisher *p;
	struct arena a; /* of this round */
	struct publisher_view view;
	struct head_ship_window *ship;
	size_t ship_n;
	int64_t through_ns; /* 0: not known */
	struct round_segment *segments; /* ascending within a window */
	size_t segments_n, segments_cap;
	struct manifest_file ids, losses; /* bytes 0: as before */
	bool stop;
	bool complete; /* round_is_complete_locked, and nothing failed */
	enum err_code rc; /* of the first failure */
	struct err err;
};
MUST_CHECK enum err_code round_run(struct publisher *p, bool stop, struct err *err);

/* ---- compare.c ---- */

/* Replaces p->m. p->lock is held. */
MUST_CHECK enum err_code compare_locked(struct round *r, struct err *err);
/* The working manifest names the block, or will after this round. p->lock is held. */
bool block_is_named_locked(const struct publisher *p, const struct ulid *u);
/* Each batch of r->ship is in p->m. p->lock is held. */
bool round_is_complete_locked(const struct round *r);
/* True: p->m names a block with its rows, or they were dropped. Its files may go. p->lock is
 * held. */
bool ship_is_over_locked(const struct round *r, const struct head_ship_window *w);

/* ---- upload.c, remove.c: all that there is to do ---- */

MUST_CHECK enum err_code upload_all(struct publisher *p, struct err *err);
MUST_CHECK enum err_code remove_all(struct publisher *p, struct err *err);

/* ---- status.c ---- */

/* Says why nothing may be acknowledged. False: it may. p->lock is not held. */
bool publisher_say_refusal(struct publisher *p, struct err *out);
void publisher_collect(void *ctx); /* a metric_collect_fn */

#endif
