/*
 * Lease: one owner at a time for a manifest, by conditional writes of it.
 *
 * The owner writes the manifest at least each interval; every write has other bytes (generation,
 * session, time), so its ETag changes. Another server takes the lease over only after the ETag has
 * stayed the same for the lease's time, by its own monotonic clock: clocks are never compared. The
 * lease's time is the longer one of the server's and the owner's, which the manifest says. The
 * lease is taken at once if there is no manifest, if the manifest says `stopped`, or if it names
 * our own token. The token is in the data directory: the same directory was opened again.
 *
 * So an owner may acknowledge as long as its last write began less than the lease's time ago
 * (lease_is_sure), and needs to ask nobody. That age goes on while the machine sleeps.
 *
 * A directory goes on if it is the one that took profiles last, as it was then, or if the manifest
 * names nothing. Any other one (a backup, a copy, a disk that comes back after another server had
 * the name) is to be made of the manifest before it is used: the file in it says so, also after a
 * crash, until lease_restored.
 *
 * A server that takes a manifest over from another directory, or with an older state of its own,
 * lacks what the owner before acknowledged and did not put. The manifest says `loss_due` from then
 * on, until that is on the new owner's list of losses; so a crash in between forgets nothing. A
 * caretaker takes no profiles: its manifests name the directory that did (`taker`).
 *
 * A write whose answer was lost may have been done or not. So before the next one the manifest is
 * read: if its session is ours, we go on from its ETag; if not, we are *fenced*: we own nothing any
 * more, and never write again. Two owners at once are impossible: of two conditional writes one
 * fails. An owner that does not know yet that it was fenced puts only objects whose keys say their
 * contents.
 *
 * An empty manifest under another key is a lease, too: the caretaker has one.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_EXISTS: another owner has it: "shard a is in use by HOST since TIME", "shard a was
 *            taken over by HOST at TIME" (fenced, from then on always). ERR_UNSUPPORTED,
 *            ERR_UNAVAILABLE and others: the probe's (bucket.h), which name what is wrong with the
 *            store. ERR_CORRUPT: the manifest cannot be read. ERR_CANCELED: by lease_cancel.
 *            ERR_IO: the token cannot be kept.
 * Ownership: lease_open hands *out to the caller; the bucket outlives it.
 * Threads:   one at a time. Any: lease_cancel, lease_set_assignment, and the questions at the end
 *            (lease_is_fenced and those after it).
 */
#ifndef TSDB_CLUSTER_LEASE_H
#define TSDB_CLUSTER_LEASE_H

#include "tsdb/cluster/manifest.h"

#define LEASE_MIN_NS (INT64_C(60) * 1000000000)
#define LEASE_MAX_NS (INT64_C(30 * 86400) * 1000000000) /* a longer one counts as this */
#define LEASE_OWNER_FILE "bucket.owner" /* in the data directory */

struct starting;

struct lease_options {
	struct bucket *bucket;
	struct str shard; /* copied */
	const char *key; /* NULL: the manifest of the shard */
	const char *what; /* for messages; NULL: "shard" */
	const char *dir; /* the data directory; NULL: a token for this process */
	struct fs *fs; /* NULL: fs_posix */
	const char *host; /* NULL: the system's name */
	int64_t interval_ns; /* the manifest is written this often at least */
	int64_t lease_ns; /* 0: three intervals, at least LEASE_MIN_NS */
	const char *address; /* where others reach the shard; NULL: it joins none (manifest.h) */
	bool no_probe; /* the bucket was probed already */
	/* The caller has seen this ETag for the lease's time, or with `stopped`: lease_take does not
	 * wait, takes no manifest but this one (ERR_EXISTS), and leaves its lists as they are. */
	const char *seen;
	struct starting *waiting; /* base/self/starting.h; NULL: nobody asks */
};

struct lease;

/* The lease's time by these options: lease_ns, or its default. */
int64_t lease_time_ns(int64_t interval_ns, int64_t lease_ns);

/* A lease that is not taken yet. */
MUST_CHECK enum err_code lease_open(
	const struct lease_options *o, struct lease **out, struct err *err);
void lease_close(struct lease *l); /* writes nothing; NULL is fine */

/*
 * Probes the store, waits if it has to, and writes the manifest with us as its owner. *out: its
 * contents (empty where there was none), in the arena; *same: our directory goes on. If not, the
 * caller makes the directory of *out, then calls lease_restored. out->loss_due: a loss is to be
 * noted before anything is acknowledged. May be called again after an error.
 *
 * idle: we acknowledge nothing before a later write without `complete` is confirmed. So this write
 * repeats the `complete` of the owner before; it also does if the directory does not go on.
 * Otherwise it says that the manifest is not complete any more.
 */
MUST_CHECK enum err_code lease_take(
	struct lease *l, bool idle, struct arena *a, struct manifest *out, bool *same, struct err *err);
/* The directory was made of the manifest that was taken: after a crash it goes on. */
void lease_restored(struct lease *l);
/* Ends a lease_take that waits. Any thread. */
void lease_cancel(struct lease *l);

/*
 * Writes these contents; the lease adds owner, times and generation. ERR_OK: the manifest is there.
 * ERR_EXISTS: fenced. Others: it may be there or not; write again later.
 */
MUST_CHECK enum err_code lease_write(struct lease *l, const struct manifest *m, struct err *err);

/*
 * The number of the assignment that is followed, for manifests from the next write on; without an
 * address manifests have none. Never less than before, nor than the manifest that was taken over
 * says: whoever opens a directory again has scraped nothing yet. Any thread.
 */
void lease_set_assignment(struct lease *l, uint64_t number);

bool lease_is_fenced(const struct lease *l);
/* How long ago our last write was confirmed, as of its beginning; INT64_MAX: never. The machine's
 * sleep counts. */
int64_t lease_age_ns(const struct lease *l);
/* That is less than the lease's time: nobody else can be the owner. Takes no lock. */
bool lease_is_sure(const struct lease *l);
int64_t lease_ns(const struct lease *l);
uint64_t lease_generation(const struct lease *l); /* of the last write that was confirmed */
uint64_t lease_manifest_bytes(const struct lease *l); /* of that write */

#endif
