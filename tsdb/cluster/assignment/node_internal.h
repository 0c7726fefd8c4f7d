/* The node's parts as they see each other: its thread, what it knows of other shards. */
#ifndef TSDB_CLUSTER_ASSIGNMENT_NODE_INTERNAL_H
#define TSDB_CLUSTER_ASSIGNMENT_NODE_INTERNAL_H

#include "base/thread.h"
#include "tsdb/cluster/assignment/assignment_change.h"
#include "tsdb/cluster/assignment/assignment_node.h"

#define PEERS_EVERY_NS (INT64_C(1) * 1000000000) /* while some are behind */

/* Another shard, as its manifest was last seen. */
struct node_peer {
	char name[MANIFEST_SHARD_BYTES_MAX + 1];
	bool known; /* its floor is; else it may have anything */
	uint64_t floor; /* it has nothing by lower numbers any more (assignment_rule.h) */
	uint64_t says; /* what its manifest said */
	bool ended; /* dead, stopped or gone when it was last looked at */
	char etag[BUCKET_ETAG_BYTES_MAX]; /* of the last look; "": none */
	int64_t lease_ns;
	int64_t same_since_ns; /* monotonic: its manifest is the same since then, at least; 0: it is not
							  looked at */
	char address[MANIFEST_ADDRESS_BYTES_MAX + 1]; /* "": not known */
	uint64_t address_look; /* the look after which it was read last; 0: never */
	bool gone; /* it had no manifest, or one that says `stopped`, when the address was read */
};

struct assignment_node {
	struct assignment_node_options o;
	struct assignment_node_user user;
	struct arena arena; /* of the options */
	char *path; /* of the file */
	struct thread thread;

	_Atomic int64_t looked_ns; /* clock_running_ns: when the last look began whose number is
								  followed, or that failed; 0: none */

	struct mutex lock; /* guards what follows */
	struct cond changed;
	bool closing;
	bool wanted; /* a look is to begin now */
	bool joined;
	uint64_t looks; /* that began; the first one is the start's */
	int64_t answered_ns; /* clock_running_ns: when the last look began that has ended */
	int64_t good_ns; /* the same of the last one that succeeded; 0: none */
	uint64_t followed; /* number that `follow` took */
	uint64_t settled; /* number that all that live followed */
	struct assignment_rule *rule; /* has the assignment that is known; never NULL */
	char etag[BUCKET_ETAG_BYTES_MAX]; /* of the assignment; "": it was not read */
	struct node_peer *peers; /* by name, ascending; the shard itself is none */
	size_t peers_n;
	size_t peers_at; /* where a round that was too long goes on */
	int64_t peers_looked_ns; /* monotonic; the end of the last round */
};

/* ---- node_peers.c ---- */

/* The peers are the shards of the assignment. n->lock is held. */
MUST_CHECK enum err_code node_peers_set_locked(
	struct assignment_node *n, const struct assignment *list, struct err *err);
struct node_peer *node_peers_find_locked(struct assignment_node *n, struct str name);
/* Looks at those that are behind `number`. *changed: a floor rose. Ends early with the node, and
 * when a look at the assignment is wanted. */
void node_peers_look(struct assignment_node *n, uint64_t number, bool *changed);
/* A rule of what is known. The lock is held. */
MUST_CHECK enum err_code node_peers_rule_locked(struct assignment_node *n,
	const struct assignment *list, struct assignment_rule **out, struct err *err);

#endif
