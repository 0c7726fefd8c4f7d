/*
 * Caretaker: retention for shards that are gone, as --mode=compact.
 *
 * A shard that runs does all this for itself. It is *gone* if its manifest says `stopped`, or if
 * the manifest's ETag has been the same for abandoned_ns by our monotonic clock. For such a shard
 * the caretaker takes the lease (lease.h), drops windows and blocks by retention, removes objects
 * that have been gone for the delay and those that no manifest names, and gives the lease back by a
 * manifest that says `stopped`. At last it removes the manifest of a shard that has nothing left.
 *
 * Retention by time counts from the newest data of all shards, running ones too, but at most from
 * our clock: while no shard runs nothing grows old. Data that was due for over an hour waits five
 * minutes, and the log says so first (overdue.h). Retention by size adds up all shards that are
 * gone. Raw retention and joining of blocks are left to the shard itself.
 *
 * A shard that comes back finds `stopped` and `dropped_ns` in its manifest: what it still has from
 * before that time is no loss, and it does not put it again. After a drop by size it does.
 *
 * Objects are removed when the manifest that lists them as gone has been the same for the delay by
 * our monotonic clock. So after its start a caretaker waits for the whole delay again.
 *
 * One caretaker works at a time, by a lease of its own (CARETAKER_KEY); others wait. A shard that
 * runs is never touched: a manifest that changes belongs to the server that writes it.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    of the bucket, from caretaker_round; ERR_EXISTS: another caretaker works. Errors of
 *            the thread are in the status, and once in the log. A shard whose manifest cannot be
 *            read is passed over, and is the error of the round.
 * Ownership: caretaker_open hands *out to the caller; the bucket outlives it.
 * Threads:   any; one of its own, `caretaker`.
 */
#ifndef TSDB_CLUSTER_CARETAKER_H
#define TSDB_CLUSTER_CARETAKER_H

#include "tsdb/cluster/lease.h"

#define CARETAKER_KEY "leases/caretaker"

struct caretaker_options {
	struct bucket *bucket;
	const char *host; /* NULL: the system's name */
	int64_t retention_ns; /* 0: by time nothing is dropped */
	uint64_t retention_bytes; /* of all shards that are gone; 0: by size nothing is dropped */
	/* 0: the default */
	int64_t delete_delay_ns; /* 15 minutes */
	int64_t abandoned_ns; /* an hour */
	int64_t poll_ns; /* a minute */
	int64_t orphans_every_ns; /* a day */
	int64_t lease_ns; /* of the caretaker, and of its visits: as lease.h says */
	bool no_probe;
	bool no_thread; /* for tests: caretaker_round is called instead */
};

struct caretaker;

MUST_CHECK enum err_code caretaker_open(
	const struct caretaker_options *o, struct caretaker **out, struct err *err);
/* Ends a running round when its call of the bucket ends (bucket_cancel ends that at once), and
 * gives the caretaker's lease back. NULL is fine. */
void caretaker_close(struct caretaker *c);

enum caretaker_state {
	CARETAKER_WAITING, /* another one works */
	CARETAKER_RUNNING,
	CARETAKER_AWAY, /* the last round failed; it is tried again */
};
const char *caretaker_state_name(enum caretaker_state state);

struct caretaker_status {
	enum caretaker_state state;
	uint64_t shards, shards_gone, shards_unreadable; /* as the last round found them */
	uint64_t bytes, gone; /* of shards that are gone: what is named; objects to be removed */
	uint64_t dropped_blocks, dropped_windows, removed, orphans,
		removed_shards; /* since the start */
	uint64_t rounds, failures;
	struct err last; /* code ERR_OK: no failure since it last worked */
};
void caretaker_status(struct caretaker *c, struct caretaker_status *out);

/* One round over all shards; without a thread. */
MUST_CHECK enum err_code caretaker_round(struct caretaker *c, struct err *err);

#endif
