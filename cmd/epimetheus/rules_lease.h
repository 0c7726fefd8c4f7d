/*
 * Rules lease: which query node evaluates the rules of all query nodes.
 *
 * Rules need a place for what they record. That is a shard of the cluster, named "rules". The query
 * node that has its lease evaluates, from a directory that is made out of the bucket when another
 * node had the lease before.
 *
 * Errors:    of the thread: in the log; it tries again.
 * Ownership: rules_lease_open hands *out to the caller. Cluster and bucket outlive it.
 * Threads:   `rules-lease` is its own, and calls begin. Functions: any thread.
 */
#ifndef CMD_EPIMETHEUS_RULES_LEASE_H
#define CMD_EPIMETHEUS_RULES_LEASE_H

#include "tsdb/cluster/shard.h"

#define RULES_SHARD "rules"

struct cluster;
struct rules_lease;

struct rules_lease_options {
	struct cluster *cluster;
	/* Of the shard; name, intervals and lease are set here. The bucket's client is nobody else's:
	 * closing a shard cancels all calls. db.dir is copied. */
	struct shard_options shard;
	/* The lease is had: db takes what rules record. */
	void (*begin)(void *ctx, struct db *db);
	void *ctx;
};

/* Begins to compete for the lease. */
MUST_CHECK enum err_code rules_lease_open(
	const struct rules_lease_options *o, struct rules_lease **out, struct err *err);
/* `begin` is not called from here on. Before whoever it begins is closed. */
void rules_lease_end(struct rules_lease *l);
void rules_lease_close(struct rules_lease *l); /* NULL is fine */

bool rules_lease_is_held(struct rules_lease *l); /* the rules are evaluated here */
bool rules_lease_is_fenced(struct rules_lease *l); /* another node took them over */

#endif
