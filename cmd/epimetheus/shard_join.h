/*
 * Joining: a server with --shard.join reads the assignment of shards before it takes the lease of
 * its name, and adds itself once it has that.
 *
 * Errors:    the bucket's, but for one that is away: then it joins later. ERR_IO: the data
 *            directory.
 * Ownership: shard_join_open hands *out to the caller; bucket, shard and `waiting` outlive it.
 * Threads:   one.
 */
#ifndef CMD_EPIMETHEUS_SHARD_JOIN_H
#define CMD_EPIMETHEUS_SHARD_JOIN_H

#include "cmd/epimetheus/options.h"

struct assignment_node;
struct bucket;
struct shard_node;
struct starting;

/* *out stays as it is without --shard.join. */
MUST_CHECK enum err_code shard_join_open(const struct options *o, struct bucket *bucket,
	struct shard_node *shard, struct starting *waiting, struct assignment_node **out,
	struct err *err);
/* node: NULL: nothing to do. */
MUST_CHECK enum err_code shard_join_now(struct assignment_node *node, struct shard_node *shard,
	struct starting *waiting, struct err *err);

#endif
