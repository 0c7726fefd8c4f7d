/*
 * Rules lease: which query node evaluates the rules of all query nodes.
 *
 * Rules need a place for what they record. That is a shard of the cluster, named "rules". The query
 * node that has its lease evaluates, from a directory that is made out of the bucket when another
 * node had the lease before. A node that loses the lease drops the directory, follows the shard as
 * it follows others, and competes for the lease again.
 *
 * Errors:    of the thread: in the log; it tries again.
 * Ownership: rules_lease_open hands *out to the caller. Cluster and bucket outlive it.
 * Threads:   `rules-lease` is its own. Functions: any thread; open, end and close one.
 */
#ifndef CMD_EPIMETHEUS_RULES_RULES_LEASE_H
#define CMD_EPIMETHEUS_RULES_RULES_LEASE_H

#include "tsdb/cluster/shard.h"

#define RULES_SHARD "rules"

struct cluster;
struct rules_lease;

/* Whoever evaluates; called by the thread, begin and end in turn, tell between. */
struct rules_turns {
	/* The lease is had: db takes what rules record. Nothing is evaluated, written or sent while may
	 * is false, as another node may have the lease by then. */
	void (*begin)(void *ctx, struct db *db, bool (*may)(void *may_ctx), void *may_ctx);
	/* About every 200 ms while the rules are evaluated here. */
	void (*tell)(void *ctx);
	/* It is lost: db has no user of this kind when end returns. */
	void (*end)(void *ctx);
	void *ctx;
};

struct rules_lease_options {
	struct cluster *cluster;
	/* Of the shard; name, intervals and lease are set here. The bucket's client is nobody else's:
	 * closing a shard cancels all calls. db.dir is copied. */
	struct shard_options shard;
	struct rules_turns turns;
};

/* Begins to compete for the lease. */
MUST_CHECK enum err_code rules_lease_open(
	const struct rules_lease_options *o, struct rules_lease **out, struct err *err);
/* None of the turns is called from here on. Before whoever evaluates is closed. */
void rules_lease_end(struct rules_lease *l);
void rules_lease_close(struct rules_lease *l); /* NULL is fine */

enum rules_lease_state {
	RULES_NOT_HERE, /* another node has the lease, or nobody */
	RULES_HERE,
	RULES_PAUSED, /* the lease is ours, but may be lost: nothing is evaluated */
};
enum rules_lease_state rules_lease_state(struct rules_lease *l);

#endif
