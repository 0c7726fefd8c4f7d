/*
 * A follower, as its two files see it.
 *
 *	follower.c        life, rounds, lateness
 *	follower_round.c  a manifest is taken over
 */
#ifndef TSDB_CLUSTER_FOLLOWER_INTERNAL_H
#define TSDB_CLUSTER_FOLLOWER_INTERNAL_H

#include "base/thread.h"
#include "tsdb/cluster/follower.h"
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
	int64_t
		behind_ns; /* monotonic: it was seen to follow an older assignment than others; 0: not */
	int64_t has_after_ns; /* monotonic: what we have was written later than this */
	struct missing *missing;
	size_t missing_n;
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
	bool again; /* something was not taken over */
	struct err first; /* why */
	bool *windows_hidden, *blocks_hidden; /* of m */
};

/*
 * Takes r->m over, as far as it can be; r->again: not all. ERR_EXISTS: it is of another directory,
 * and nothing was done.
 */
MUST_CHECK enum err_code follow_manifest(struct follow_round *r, struct err *err);
void follow_missing_free(struct missing *m, size_t n);

#endif
