/*
 * Lease: one owner at a time for a manifest, by conditional writes of it.
 *
 * The owner writes the manifest at least each interval; every write has other bytes (generation,
 * session, time), so its ETag changes. Somebody else takes it over only after the ETag has stayed
 * the same for the lease's time, by his own monotonic clock: no clock is compared with another
 * one's. The lease's time is the longer one of his and the owner's, which the manifest says. At
 * once it is had where there is no manifest, where it says `stopped`, or where it names our own
 * token, which is kept in the data directory: the same directory was opened again.
 *
 * So an owner may acknowledge as long as its last write began less than the lease's time ago
 * (lease_is_sure), and needs to ask nobody. That age goes on while the machine sleeps.
 *
 * A directory goes on if it is the one that took profiles last, as it was then, or if the manifest
 * names nothing. Any other one (a backup, a copy, a disk that comes back after another server had
 * the name) is to be made of the manifest before it is used: the file in it says so, also after a
 * crash, until lease_restored.
 *
 * Who takes a manifest over from another directory, or with an older state of its own, cannot have
 * what the owner before acknowledged and did not put. The manifest says `loss_due` from then on,
 * until the new owner has that on its list of losses; so a crash between the two forgets nothing.
 * A caretaker takes no profiles: it leaves the name of the directory that did (`taker`).
 *
 * A write whose answer was lost may have been done or not. So before the next one the manifest is
 * read: if its session is ours, we go on from its ETag; if not, we are *fenced*: we own nothing any
 * more, and never write again. Two owners at once are not possible, as one write of the two fails;
 * an owner that does not know yet that it was fenced changes nothing but objects with keys of its
 * own content.
 *
 * Any manifest will do, also an empty one under another key: a lease for rules or compaction.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_EXISTS: another owner has it: "shard a is in use by HOST since TIME", "shard a was
 *            taken over by HOST at TIME" (fenced, from then on always). ERR_UNSUPPORTED,
 *            ERR_UNAVAILABLE and others: the probe's (bucket.h), which name what is wrong with the
 *            store. ERR_CORRUPT: the manifest cannot be read. ERR_CANCELED: by lease_cancel.
 *            ERR_IO: the token cannot be kept.
 * Ownership: lease_take hands *out to the caller; the bucket outlives it.
 * Threads:   one at a time, but lease_cancel, lease_set_assignment and lease_is_fenced: any.
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

/* A lease that is not had yet. */
MUST_CHECK enum err_code lease_open(
	const struct lease_options *o, struct lease **out, struct err *err);
void lease_close(struct lease *l); /* writes nothing; NULL is fine */

/*
 * Probes the store, waits if it has to, and writes the manifest with us as its owner. *out: its
 * contents (empty where there was none), in the arena; *same: our directory goes on; if not, it is
 * to be made of *out, then lease_restored is called. out->loss_due: a loss is to be noted before
 * anything is acknowledged. May be called again after an error.
 *
 * idle: we acknowledge nothing before a later write without `complete` is confirmed, so this one
 * says of that what the owner before said. So it does where the directory does not go on. Else the
 * manifest is not complete from now on.
 */
MUST_CHECK enum err_code lease_take(
	struct lease *l, bool idle, struct arena *a, struct manifest *out, bool *same, struct err *err);
/* The directory is made of the manifest that was taken: it goes on after a crash. */
void lease_restored(struct lease *l);
/* Ends a lease_take that waits. Any thread. */
void lease_cancel(struct lease *l);

/*
 * Writes these contents; who, when and which write it is come from here. ERR_OK: it
 * is there. ERR_EXISTS: fenced. Others: it may be there or not; write again later.
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
/* It is less than the lease's time: nobody else can be the owner. Takes no lock. */
bool lease_is_sure(const struct lease *l);
int64_t lease_ns(const struct lease *l);
uint64_t lease_generation(const struct lease *l); /* of the last write that was confirmed */
uint64_t lease_manifest_bytes(const struct lease *l); /* its size */

#endif
