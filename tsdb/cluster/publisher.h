/*
 * Publisher: keeps what a database has in the bucket, under a lease.
 *
 * Each interval it puts what was committed since (segments), compares the lists of the database
 * with the manifest, and writes the manifest anew. What is to be done is found by that comparison
 * alone, never by an event: after a crash at any point the next one finds the same. A block enters
 * the manifest when all its files are put; the same write takes out the windows and blocks that it
 * replaced, and those that retention dropped. Objects that left the manifest are removed from the
 * bucket after a delay, when readers that hold an older manifest are done.
 *
 * A block or window that the directory lacks leaves the manifest only if it is known why it is not
 * there: a block that has replaced it is there, or the directory had it when the last manifest was
 * written, and it is not on the list of losses. All others are `kept` (manifest.h). A directory
 * that is not the one of the manifest is made of it first (publisher_is_behind).
 *
 * Units:     nanoseconds, bytes; prices in any currency.
 * Errors:    of the lease (lease.h) from publisher_take. Later ones are in the status and the log,
 *            once each time the bucket goes away or comes back; all is tried again.
 * Ownership: publisher_open hands *out to the caller. The bucket, and the database from
 *            publisher_attach on, outlive it.
 * Threads:   `cluster-publish` writes segments and the manifest; `cluster-upload`, at low priority,
 *            puts blocks and snapshots and removes objects. No lock of the database is held while
 *            either waits for the network. Functions: any thread, but those of one life in order.
 */
#ifndef TSDB_CLUSTER_PUBLISHER_H
#define TSDB_CLUSTER_PUBLISHER_H

#include "tsdb/cluster/lease.h"

#define PUBLISHER_LAST_NS (INT64_C(10) * 1000000000)

struct db;

struct publisher_options {
	struct bucket *bucket;
	struct str shard;
	const char *dir; /* the data directory */
	struct fs *fs; /* NULL: fs_posix */
	const char *host; /* NULL: the system's name */
	int64_t interval_ns; /* 0: 30 s */
	int64_t lease_ns; /* 0: as lease.h says */
	int64_t delete_delay_ns; /* 0: 15 minutes */
	int64_t orphans_every_ns; /* objects without a name are looked for; 0: a day */
	const char *address; /* as lease.h says */
	struct bucket_prices prices; /* all 0: 5, 0.4 and 23, as AWS has them */
	bool no_probe;
	struct starting *waiting; /* base/self/starting.h; NULL: nobody asks */
	bool no_threads; /* for tests: publisher_round and publisher_work are called instead */
};

struct publisher;

MUST_CHECK enum err_code publisher_open(
	const struct publisher_options *o, struct publisher **out, struct err *err);
/*
 * Takes the lease; may wait for its time. From then on the manifest is written each interval, with
 * the contents that it had. publisher_cancel, from any thread, ends the wait. idle: nothing is
 * acknowledged before publisher_begin (lease.h).
 */
MUST_CHECK enum err_code publisher_take(struct publisher *p, bool idle, struct err *err);
void publisher_cancel(struct publisher *p);
/* What the manifest said when the lease was taken, for a restore; until publisher_attach. */
const struct manifest *publisher_taken(const struct publisher *p);
/* The directory is not the one of that manifest, and has to be made of it (lease.h). Then call
 * publisher_restored, before publisher_attach. */
bool publisher_is_behind(const struct publisher *p);
void publisher_restored(struct publisher *p);
/* A loss is to be noted before publisher_attach (lease.h); publisher_note_loss: it was. */
bool publisher_is_loss_due(struct publisher *p);
/* The directory will be made anew, whatever its token says: a loss is due, unless the manifest was
 * `complete`. Confirms a manifest with `loss_due`, so a crash forgets nothing. */
MUST_CHECK enum err_code publisher_want_loss(struct publisher *p, struct err *err);
void publisher_note_loss(struct publisher *p);
/*
 * After an idle publisher_take: confirms a manifest that is not `complete`, so profiles may be
 * taken. After an error they may not, and it may be called again. Before publisher_attach.
 */
MUST_CHECK enum err_code publisher_begin(struct publisher *p, struct err *err);
/*
 * Begins to publish. The database is open, writes segments (db_options.segments), and has what the
 * manifest says that it left in the bucket (remote blocks).
 */
MUST_CHECK enum err_code publisher_attach(struct publisher *p, struct db *db, struct err *err);
/* A round begins now: something was cut, joined, dropped or deleted. Not needed, only quicker. */
void publisher_wake(struct publisher *p);
/* As lease.h says; the manifest is written soon. Any thread. */
void publisher_set_assignment(struct publisher *p, uint64_t number);
/*
 * Ends it: all calls of the bucket are canceled, then come a last round and a manifest that says
 * `stopped`, unless the bucket is away or takes longer than PUBLISHER_LAST_NS. Appends have ended
 * before, the database is closed after it. NULL is fine.
 */
void publisher_close(struct publisher *p);
void publisher_abandon(struct publisher *p); /* the same without a request, as a crash */

/* The block is whole in the bucket, and a manifest that says so was confirmed. May be called with
 * locks of the database held. */
bool publisher_has_block(struct publisher *p, const struct ulid *ulid);

/* Another server has the lease: this one must end, its rows reach nobody. */
bool publisher_is_fenced(const struct publisher *p);
/* As lease.h says: nobody else can have it. Asks nobody. */
bool publisher_lease_is_sure(const struct publisher *p);

/*
 * May it acknowledge what its database stores? ERR_OK: the lease is sure (lease.h) and the database
 * is attached. Else ERR_UNAVAILABLE with a text that says why, and a round begins soon, at most one
 * a second: it confirms the lease, or finds that it is fenced. No lock is taken for ERR_OK; locks
 * of the database may be held.
 */
MUST_CHECK enum err_code publisher_check_lease(struct publisher *p, struct err *err);

/* ---- status ---- */

enum publisher_state {
	PUBLISHER_WAITING, /* for the lease */
	PUBLISHER_RUNNING,
	PUBLISHER_AWAY, /* the bucket is; it tries again */
	PUBLISHER_FENCED, /* another shard took the manifest over: this server must end */
};
const char *publisher_state_name(enum publisher_state state);

struct publisher_status {
	enum publisher_state state;
	uint64_t generation;
	int64_t through_ns; /* of the last confirmed manifest; 0: none */
	int64_t lag_ns; /* how long ago that is; -1: not known */
	int64_t confirmed_age_ns; /* of the last confirmed write; -1: none yet */
	bool acknowledges; /* as publisher_check_lease says; no round is asked for */
	struct err refusal; /* why it does not */
	uint64_t waiting_blocks, waiting_bytes; /* to be put: blocks, and blocks and segments */
	uint64_t windows, blocks, segments, kept, bytes; /* that the manifest names */
	uint64_t manifest_bytes;
	uint64_t gone; /* objects that are to be removed */
	uint64_t uploaded_blocks, uploaded_segments, removed, orphans; /* since the start */
	uint64_t put_bytes; /* of blocks, segments and small files */
	struct bucket_usage usage; /* of the bucket's client, whoever uses it */
	uint64_t failures; /* rounds and uploads */
	double cost_requests; /* of that usage */
	double cost_month; /* of what is stored */
	struct err last; /* code ERR_OK: no failure since it last worked */
};
void publisher_status(struct publisher *p, struct publisher_status *out);

/* ---- without threads ---- */

/* One round: segments, comparison, manifest. */
MUST_CHECK enum err_code publisher_round(struct publisher *p, struct err *err);
/* All that the upload thread would do now: snapshots, blocks, removals, orphans. */
MUST_CHECK enum err_code publisher_work(struct publisher *p, struct err *err);

#endif
