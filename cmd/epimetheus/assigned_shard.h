/*
 * Assigned shard: a server whose targets follow the assignment of shards in the bucket
 * (tsdb/cluster/assignment). It gives the rule to the scrape manager, and what is scraped passes a
 * sink that asks if it may be stored.
 *
 * Errors:    ERR_CANCELED of the sink: another shard scrapes the target by now; those of the sink
 *            behind it.
 * Ownership: the caller's memory. Node, manager, sink and publisher outlive it.
 * Threads:   the sink's any; the others by one at a time.
 */
#ifndef CMD_EPIMETHEUS_ASSIGNED_SHARD_H
#define CMD_EPIMETHEUS_ASSIGNED_SHARD_H

#include "cmd/epimetheus/options.h"
#include "scrape/manager.h"

struct shard_node;
struct web;

struct assigned_shard {
	struct sink sink; /* first */
	struct sink *to;
	struct assignment_node
		*node; /* NULL: the server joins no others, and the sink only passes on */
	struct scrape_manager *manager;
	struct publisher *publisher;
	bool started;
};

void assigned_shard_init(struct assigned_shard *a, struct sink *to, struct assignment_node *node);
/*
 * Opens the manager, which scrapes what o->shard says, or what the assignment says: then that is
 * followed from now on. shard: NULL where there is no node.
 */
MUST_CHECK enum err_code assigned_shard_open_manager(struct assigned_shard *a,
	struct shard_node *shard, struct scrape_manager_options *o, struct scrape_manager **out,
	struct err *err);
void assigned_shard_end(struct assigned_shard *a); /* one that was not started is fine */

/* Where others reach this server, if --shard.address does not say it: into *kept, which the caller
 * frees, and o->shard_address. */
MUST_CHECK enum err_code assigned_shard_address(
	struct options *o, const struct web *web, char **kept, struct err *err);

#endif
