/*
 * Lease gate: a sink for what is pushed to a shard. It acknowledges nothing while the shard's lease
 * is not sure (tsdb/cluster/shard.h): another server may have the name then, and what is stored
 * here would be in no answer.
 *
 * It asks before it stores, and once more when the profile is durable. In between the lease may
 * have become too old: then the profile is stored and not acknowledged. The sender sends it again,
 * and the same series, time and bytes are stored once. Scrapes do not pass the gate, because no
 * sender waits for their acknowledgement. They are put when the bucket is back.
 *
 * Errors:    ERR_UNAVAILABLE: the lease is not sure; those of the sink behind it.
 * Ownership: the caller's memory. Sink and shard outlive it.
 * Threads:   as proto/sink.h. No lock is taken while the lease is sure.
 */
#ifndef CMD_EPIMETHEUS_LEASE_GATE_H
#define CMD_EPIMETHEUS_LEASE_GATE_H

#include "proto/sink.h"

struct shard_node;

struct lease_gate {
	struct sink sink; /* first */
	struct sink *to;
	struct shard_node *shard;
};

void lease_gate_init(struct lease_gate *g, struct sink *to, struct shard_node *shard);

#endif
