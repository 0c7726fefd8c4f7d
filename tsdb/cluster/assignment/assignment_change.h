/*
 * Changes of the assignment: read, change, conditional put; if somebody was faster, all again. So
 * of two changes at once one wins, and the other one is made after it.
 *
 * A new version owns profiles from since_ns on: now, plus the longest lease of the members, plus
 * CHANGE_AHEAD_NS. By then all members that live follow it.
 *
 * Errors:    the bucket's. ERR_NOT_FOUND: there is no assignment, or the shard is not in it.
 *            ERR_INVALID: the name; the last shard cannot be drained. ERR_LIMIT: too many shards.
 *            ERR_UNAVAILABLE: others change it all the time.
 * Ownership: what is read is in the arena.
 * Threads:   any; blocks.
 */
#ifndef TSDB_CLUSTER_ASSIGNMENT_ASSIGNMENT_CHANGE_H
#define TSDB_CLUSTER_ASSIGNMENT_ASSIGNMENT_CHANGE_H

#include "tsdb/cluster/assignment/assignment.h"

#define CHANGE_LEASE_NS (INT64_C(90) * 1000000000) /* where no manifest says a longer one */
#define CHANGE_AHEAD_NS (INT64_C(30) * 1000000000)

/* How long a shard with this manifest may be silent until it is dead. */
int64_t change_lease_of(const struct manifest *m);

enum assignment_verb {
	/* The shard adds itself, unless it is in or drained. Where there is no assignment, it makes
	 * number 1. */
	ASSIGNMENT_JOIN,
	ASSIGNMENT_DRAIN, /* it has no targets any more, and does not join by itself */
	ASSIGNMENT_ADMIT, /* undoes that: it is in at once */
};

struct assignment_change {
	enum assignment_verb verb;
	struct str shard;
	/* Of a shard that joins with a fixed total of more than 1: number 1 then has all shards of it,
	 * with the same prefix and the ordinals from 0. */
	uint64_t total;
};

/*
 * The next version of `from` (number 0: there is none), or ERR_OK and *changed false. lease_ns: the
 * longest one of the members. *out shares what did not change.
 */
MUST_CHECK enum err_code assignment_changed(const struct assignment *from,
	const struct assignment_change *c, int64_t now_ns, int64_t lease_ns, struct arena *a,
	struct assignment *out, bool *changed, struct err *err);
/* The same in the bucket. etag: of what is there then, BUCKET_ETAG_BYTES_MAX bytes or NULL. */
MUST_CHECK enum err_code assignment_change(struct bucket *b, const struct assignment_change *c,
	struct arena *a, struct assignment *out, char *etag, bool *changed, struct err *err);

#endif
