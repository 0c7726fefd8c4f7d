/*
 * A query node's side, as its files see it.
 *
 *	cluster.c         shards are found and united
 *	cluster_work.c    whose turn it is
 *	follower.c        life, rounds, lateness
 *	follower_round.c  a manifest is taken over
 *	follower_read.c   windows that are far from whole are read
 */
#ifndef TSDB_CLUSTER_CLUSTER_INTERNAL_H
#define TSDB_CLUSTER_CLUSTER_INTERNAL_H

#include "base/thread.h"
#include "tsdb/cluster/cluster.h"
#include "tsdb/lists/losses.h"

/* A warning: an object that the manifest names is missing or damaged, or entries are hidden. */
struct missing {
	char *text;
	int64_t min_ns, max_ns;
	bool hidden;
};

/*
 * A lower bound of our monotonic clock minus the writer's. A manifest says, by its writer's clock,
 * when the write of the manifest before it was confirmed. By our clock, we know the last look that
 * did not find that earlier manifest. With the bound we know when a manifest was written, however
 * late we saw it. Clocks drift by a few thousandths, so bounds found long ago are forgotten.
 */
#define PACE_MANIFESTS 64u /* in each of the two bounds */

struct follower_pace {
	char session[MANIFEST_TOKEN_LEN + 1]; /* whose clock; "": none */
	uint64_t generation; /* that was seen last */
	int64_t after_ns; /* our clock: a look that did not find it; 0: not known */
	int64_t ahead_ns[2]; /* the largest bound of the newer and of the older manifests */
	unsigned n; /* manifests in ahead_ns[0] */
};
#define PACE_UNKNOWN INT64_MIN

/* A window whose segments are read after the look. Answers that overlap it have a warning. */
struct unread_window {
	int64_t start_ns, end_ns;
	uint32_t window; /* of the manifest */
};

struct follower {
	struct follower_options o;
	char *name, *dir;
	struct db *db;
	struct manifest_key key;

	/* Used only by the thread of a round. */
	struct arena arena; /* of the manifest */
	struct manifest m; /* that was taken over last, whole or not */
	char etag[BUCKET_ETAG_BYTES_MAX]; /* "": none was read */
	bool whole; /* all of it was taken over */
	int64_t after_ns; /* monotonic: it was written later; without a pace: it arrived later */
	struct follower_pace pace;
	uint64_t losses_hash;

	struct mutex lock; /* guards the rest */
	struct follower_status is;
	bool in_part; /* a newer manifest was read, and not all of it could be taken over */
	int64_t looked_ns; /* monotonic: when the last look began that found what we have now */
	int64_t lease_ns; /* of the last manifest */
	/* monotonic: it was seen to follow an older assignment than others; 0: it does not */
	int64_t behind_ns;
	int64_t has_after_ns; /* monotonic: what we have was written later than this */
	struct missing *missing;
	size_t missing_n, missing_cap;
	struct unread_window *unread; /* ascending; changed by the thread of a round alone */
	size_t unread_n;
	int64_t read_began_ns; /* monotonic: when windows began to be unread; 0: all are read */
	uint64_t read_began_bytes; /* that were read by then */
	struct err read_failed; /* of the last segment of them; code ERR_OK: it was well */
	struct arena losses_arena;
	struct loss *losses;
	size_t losses_n;
};

/* A round that is running. What it finds missing replaces what the round before found. */
struct follow_round {
	struct follower *f;
	int64_t began_ns; /* monotonic: before the manifest was asked for */
	struct manifest m;
	struct arena arena;
	struct missing *missing;
	size_t missing_n, missing_cap;
	struct unread_window *unread; /* in the arena, of all windows at most */
	size_t unread_n;
	bool again; /* something is left for the next look */
	struct err first; /* why */
	bool *windows_hidden, *blocks_hidden; /* of m */
};

/*
 * Takes r->m over as far as possible; r->again: not all of it. ERR_EXISTS: as follower_look, and
 * nothing changed.
 */
MUST_CHECK enum err_code follow_manifest(struct follow_round *r, struct err *err);
void follow_missing_free(struct missing *m, size_t n);

/* ---- windows and segments: follower_round.c ---- */

#define FOLLOW_SEGMENT_BYTES_MAX ((size_t)1 << 30)

/* The unread window with this start; NULL: none. */
struct unread_window *follow_find_unread(const struct follower *f, int64_t start_ns);
/* The last batch of the window that is here; 0: none, or the window has to be read again. */
uint64_t follow_batches(struct follower *f, const struct manifest_window *w);
/* The first segment that is not here; segments_n: there is none. */
uint32_t follow_next_segment(const struct manifest_window *w, uint64_t at);
/*
 * Reads the window's deleted ranges. *out stays empty if it has none, or if we have them already;
 * fresh: we have none. False: they cannot be read now, and the window has to wait.
 */
bool follow_get_deleted(
	struct follow_round *r, const struct manifest_window *w, bool fresh, struct buf *out);
/* ERR_CORRUPT: the object is not what the manifest says. */
MUST_CHECK enum err_code follow_check(const struct manifest_key *key,
	const struct manifest_file *want, const struct buf *is, struct err *err);
/* True: rc says that the object is missing or damaged. Answers warn of it, the round goes on. */
bool follow_is_gone(struct follow_round *r, const struct manifest_key *key, int64_t min_ns,
	int64_t max_ns, enum err_code rc);
/* True: query nodes do not read a segment of this size, and answers warn of it. */
bool follow_is_too_large(
	struct follow_round *r, const struct manifest_window *w, const struct manifest_segment *s);
MUST_CHECK enum err_code follow_put_segment(struct follow_round *r, const struct manifest_window *w,
	const struct manifest_segment *s, const struct buf *bytes, struct str deleted, struct err *err);

/* ---- unread windows: follower_read.c ---- */

/* Does what follower_read says; at least one window is unread. */
MUST_CHECK enum err_code follow_unread(
	struct follower *f, follower_between_fn between, void *ctx, struct err *err);
/* Counts what is read of f->m. */
void follow_count_read(struct follower *f);

/* ---- all shards ---- */

#define WORKERS_MAX 64u

struct member_shard {
	char *name;
	struct follower *follower; /* lock; NULL: own, or it could not be made yet */
	struct db *own; /* lock: a database of this process, or NULL */
	int64_t next_ns; /* lock; monotonic */
	unsigned rounds; /* lock: that ended */
	unsigned made; /* followers so far; changed only by who made it busy */
	bool busy; /* lock: a worker has it */
	unsigned wanted; /* lock: so many wait until it is not busy */
	bool unread; /* lock: it has unread windows */
	int64_t unread_ns; /* lock: start of the newest of them */
	/* lock; monotonic: when their last read ended; they are not read again before */
	int64_t read_ns, read_after_ns;
	bool absent; /* lock: its last round found no manifest */
	bool in_union;
};

struct cluster {
	struct cluster_options o;
	char *dir;
	struct db *db; /* the union */
	_Atomic uint64_t newest; /* assignment that a shard follows */
	struct mutex lock;
	struct cond due, done; /* work for a worker; a round ended */
	struct member_shard **shards; /* lock: ascending by name */
	size_t n, cap;
	int64_t list_ns; /* lock: when to list */
	bool listing, tried; /* lock: a worker lists; a list has ended, well or not */
	int64_t listed_ns; /* lock: monotonic, when the last good list began; 0: there was none */
	struct err list_failed; /* lock; code ERR_OK: the last list was well */
	bool closing; /* lock */
	struct thread workers[WORKERS_MAX];
};

/*
 * One look at a shard that the caller has made busy. Makes its follower and adds it to the union
 * where that was not done yet.
 */
void cluster_round_of(struct cluster *c, struct member_shard *s);
void cluster_list(struct cluster *c); /* by one at a time (listing) */
void cluster_work(void *ctx); /* a worker's life, until the cluster is closing */

#endif
