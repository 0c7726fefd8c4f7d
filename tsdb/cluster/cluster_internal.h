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

/* An object that the manifest names and that is not there, or is another one; or what is hidden. */
struct missing {
	char *text;
	int64_t min_ns, max_ns;
	bool hidden;
};

/*
 * How far our monotonic clock is ahead of the writer's, at least. A manifest says when the write of
 * the one before was confirmed, by its writer's clock: that one was there by then, and was not
 * there at the look before we saw it. So we know when a manifest was written, however long it was
 * on its way. The clocks run alike within a few thousandths: what was found long ago is forgotten.
 */
#define PACE_MANIFESTS 64u /* this many, and as many before them */

struct follower_pace {
	char session[MANIFEST_TOKEN_LEN + 1]; /* whose clock; "": none */
	uint64_t generation; /* that was seen last */
	int64_t after_ns; /* ours: it was not there then; 0: not known */
	int64_t ahead_ns[2]; /* the largest of these manifests, and of those before; PACE_UNKNOWN */
	unsigned n; /* of these */
};
#define PACE_UNKNOWN INT64_MIN

/* A window whose segments are read behind the round: answers that meet it say so. */
struct unread_window {
	int64_t start_ns, end_ns;
	uint32_t window; /* of the manifest */
};

struct follower {
	struct follower_options o;
	char *name, *dir;
	struct db *db;
	struct manifest_key key;

	/* The thread's of a round. */
	struct arena arena; /* of the manifest */
	struct manifest m; /* that was taken over last, whole or not */
	char etag[BUCKET_ETAG_BYTES_MAX]; /* "": none was read */
	bool whole; /* all of it was taken over */
	int64_t after_ns; /* monotonic: it was written later; until a pace is known: came later */
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

/* A round under way: what it finds missing takes the place of what the one before found. */
struct follow_round {
	struct follower *f;
	int64_t began_ns; /* monotonic: before the manifest was asked for */
	struct manifest m;
	struct arena arena;
	struct missing *missing;
	size_t missing_n, missing_cap;
	struct unread_window *unread; /* in the arena, of all windows at most */
	size_t unread_n;
	bool again; /* something was not taken over */
	struct err first; /* why */
	bool *windows_hidden, *blocks_hidden; /* of m */
};

/*
 * Takes r->m over, as far as it can be; r->again: not all. ERR_EXISTS: as follower_look; nothing
 * was done.
 */
MUST_CHECK enum err_code follow_manifest(struct follow_round *r, struct err *err);
void follow_missing_free(struct missing *m, size_t n);

/* ---- windows and segments: follower_round.c ---- */

#define FOLLOW_SEGMENT_BYTES_MAX ((size_t)1 << 30)

/* NULL: the window of this start is here. */
struct unread_window *follow_find_unread(const struct follower *f, int64_t start_ns);
/* The window's batches that are here; 0: it begins anew. */
uint64_t follow_batches(struct follower *f, const struct manifest_window *w);
/* The first segment that is not here; segments_n: there is none. */
uint32_t follow_next_segment(const struct manifest_window *w, uint64_t at);
/*
 * The window's deleted ranges, which are nothing where it has none, or those that are known; fresh:
 * none are. False: they cannot be had now.
 */
bool follow_get_deleted(
	struct follow_round *r, const struct manifest_window *w, bool fresh, struct buf *out);
/* ERR_CORRUPT: the object is not what the manifest says. */
MUST_CHECK enum err_code follow_check(const struct manifest_key *key,
	const struct manifest_file *want, const struct buf *is, struct err *err);
/* True: it was told, and is no error of the round. */
bool follow_is_gone(struct follow_round *r, const struct manifest_key *key, int64_t min_ns,
	int64_t max_ns, enum err_code rc);
/* True: nobody reads it, and that was told. */
bool follow_is_too_large(
	struct follow_round *r, const struct manifest_window *w, const struct manifest_segment *s);
MUST_CHECK enum err_code follow_put_segment(struct follow_round *r, const struct manifest_window *w,
	const struct manifest_segment *s, const struct buf *bytes, struct str deleted, struct err *err);

/* ---- unread windows: follower_read.c ---- */

/* The newest of them, up to its end, as follower_read. There is one. */
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
	unsigned made; /* followers; by who has made it busy */
	bool busy; /* lock: a worker has it */
	unsigned wanted; /* lock: so many wait until it is not busy */
	bool unread; /* lock: it has unread windows, */
	int64_t unread_ns; /* lock: the newest of which begins then */
	int64_t read_ns, read_after_ns; /* lock; monotonic: when that ended last; not before that */
	bool absent; /* lock: the last list, or its last round, did not find it */
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
	bool listing, tried; /* lock: a worker does it; one ended */
	int64_t listed_ns; /* lock: monotonic, when the last good list began; 0: there was none */
	struct err list_failed; /* lock; code ERR_OK: the last list was well */
	bool closing; /* lock */
	struct thread workers[WORKERS_MAX];
};

/*
 * What a worker does with a shard that it has made busy: a look, or the first one. The union has it
 * afterwards.
 */
void cluster_round_of(struct cluster *c, struct member_shard *s);
void cluster_list(struct cluster *c); /* by one at a time (listing) */
void cluster_work(void *ctx); /* a worker's life, until the cluster is closing */

#endif
