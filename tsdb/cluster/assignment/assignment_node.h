/*
 * Assignment node: a shard that joined others. It follows the assignment of the bucket, knows which
 * targets are its own, and where other shards are reached.
 *
 * It looks at the assignment each look_ns: a HEAD, and a GET when it changed. A new number takes
 * effect in this order: the file `assignment` in the data directory; `follow`, after which nothing
 * is stored that is another shard's; `followed`, which sets the number of the manifest. While
 * shards that live are behind, it looks at their manifests once a second, and calls `follow` again
 * when something changed. A shard is dead when its manifest did not change for its lease's time by
 * our monotonic clock since we began to look: no clock is compared with another one's.
 *
 * A process that was paused, or whose machine slept, scrapes by an old number when it resumes. So
 * assignment_node_check is asked before a scrape is stored. If the last look began longer ago than
 * the lease's time, it waits for a look that begins now. While the bucket is away scrapes go on.
 *
 * A start without the bucket follows the number of the file. Where there is none, no target is its
 * own until the bucket is back.
 *
 * Units:     nanoseconds.
 * Errors:    the bucket's; ERR_CANCELED of assignment_node_check; ERR_UNAVAILABLE of
 *            assignment_push_owner. Others are in the log, and are tried again.
 * Ownership: assignment_node_open hands *out to the caller; strings are copied. The bucket outlives
 *            it. Its calls end within some seconds; they are canceled by assignment_node_end.
 * Threads:   `assignment` looks, and calls follow and followed. Functions: any thread, but those of
 *            one life in order.
 */
#ifndef TSDB_CLUSTER_ASSIGNMENT_ASSIGNMENT_NODE_H
#define TSDB_CLUSTER_ASSIGNMENT_ASSIGNMENT_NODE_H

#include "tsdb/cluster/assignment/assignment_rule.h"

#define ASSIGNMENT_FILE "assignment" /* in the data directory */
#define ASSIGNMENT_LOOK_NS (INT64_C(5) * 1000000000)

struct assignment_node;

struct assignment_node_options {
	struct bucket *bucket; /* with timeouts of a few seconds */
	const char *shard, *dir; /* dir: the data directory */
	uint64_t total; /* of --shard.total; 0, 1: none (assignment_change.h) */
	int64_t lease_ns; /* of the shard's name */
	int64_t look_ns; /* 0: ASSIGNMENT_LOOK_NS */
};

/* What the shard does with it. They may wait; no lock of the node is held. */
struct assignment_node_user {
	/* The rule in force from now on; the callee takes a reference. When it returns, nothing is
	 * stored any more that is not the shard's own by it. */
	void (*follow)(void *ctx, struct assignment_rule *rule);
	void (*followed)(void *ctx, uint64_t number); /* the manifest is to say it */
	void *ctx;
};

/* Reads the file and, where the bucket answers, the assignment. Nothing is followed yet. */
MUST_CHECK enum err_code assignment_node_open(
	const struct assignment_node_options *o, struct assignment_node **out, struct err *err);
/* The user is not called any more, and assignment_node_check waits for nothing. */
void assignment_node_end(struct assignment_node *n);
void assignment_node_close(struct assignment_node *n); /* NULL is fine */
/* Adds itself (assignment_change.h). An error is not the end: the thread tries it again. */
MUST_CHECK enum err_code assignment_node_join(struct assignment_node *n, struct err *err);
/* What is known now, for the first targets; the caller's reference. */
struct assignment_rule *assignment_node_rule(struct assignment_node *n);
/* Begins to follow. user is copied. */
MUST_CHECK enum err_code assignment_node_start(
	struct assignment_node *n, const struct assignment_node_user *user, struct err *err);

uint64_t assignment_node_number(struct assignment_node *n); /* that is followed; 0: none */
/* What members prove to each other; "" until the assignment was read. */
void assignment_node_secret(struct assignment_node *n, char out[ASSIGNMENT_SECRET_LEN + 1]);

/* May what this shard scraped be stored? ERR_OK or ERR_CANCELED with the reason. Takes no lock, but
 * after a pause. Waits ASSIGNMENT_LOOK_NS at most. */
MUST_CHECK enum err_code assignment_node_check(struct assignment_node *n, struct err *err);

/* ---- for pushes ---- */

struct assignment_owner {
	char name[MANIFEST_SHARD_BYTES_MAX + 1];
	char address[MANIFEST_ADDRESS_BYTES_MAX + 1]; /* of that shard; own: may be empty */
	bool own;
};

/*
 * The shard that keeps a profile with these labels and of this time. It is the same before and
 * after a change, so a profile that is sent again reaches the same shard. If that shard has ended
 * and the newest version lacks it, the owner by that version keeps the profile. ERR_UNAVAILABLE:
 * the owner is not known now. May ask the bucket, at most once for each shard and look.
 */
MUST_CHECK enum err_code assignment_push_owner(struct assignment_node *n, uint64_t labels_hash,
	int64_t ts_ns, struct assignment_owner *out, struct err *err);
/* A call to the shard failed: its address is read again. */
void assignment_forget_address(struct assignment_node *n, const char *name);

/* ---- for people ---- */

struct assignment_member {
	struct str name;
	bool in; /* the newest list has it */
	bool drained;
	/* Of the last look at its manifest, which is made while it is behind; this shard: its own. */
	bool known;
	uint64_t number;
	bool ended; /* dead, stopped or gone */
};
struct assignment_status {
	uint64_t number; /* that is followed */
	uint64_t newest; /* that is known */
	int64_t looked_age_ns; /* of the last look that succeeded; -1: none */
	struct assignment_member *members; /* ascending by name */
	uint32_t members_n;
};
MUST_CHECK enum err_code assignment_node_status(
	struct assignment_node *n, struct arena *a, struct assignment_status *out, struct err *err);

#endif
