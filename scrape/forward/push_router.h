/*
 * Push router: a sink before the others. A pushed profile belongs to one shard, which its labels
 * name; whichever shard gets it hands it to that one and answers what that one answers. So a
 * sender may send to any shard, and send again to another one: the same series, time and bytes are
 * stored once.
 *
 * If the shard that keeps a profile cannot be reached, the profile is refused with ERR_UNAVAILABLE
 * and stored nowhere. Other profiles of the same request stay stored; when the request comes again
 * they are acknowledged again.
 *
 * Numbers pass through: this server's own rules make them.
 *
 * Errors:    ERR_UNAVAILABLE: nobody knows whose the profile is, or that shard is away
 *            (push_peers.h); ERR_LIMIT: it is too large to send; those of the sink that stores it.
 * Ownership: the caller's memory; open hands nothing out. The sink behind it and the assignment
 *            outlive it.
 * Threads:   as proto/sink.h; append never waits for another shard. Open, stop and close from one.
 */
#ifndef SCRAPE_FORWARD_PUSH_ROUTER_H
#define SCRAPE_FORWARD_PUSH_ROUTER_H

#include "scrape/forward/push_peers.h"

struct push_router {
	struct sink sink; /* first */
	struct sink *to; /* of profiles that this shard keeps */
	struct push_assignment assignment;
	struct push_peers *peers;
};

struct push_router_options {
	struct sink *to;
	const struct push_assignment *assignment;
	const char *ca_file; /* as push_peers.h */
	int64_t call_timeout_ns; /* as push_peers.h */
};

MUST_CHECK enum err_code push_router_open(
	struct push_router *r, const struct push_router_options *o, struct err *err);
/* Profiles of other shards are refused from now on; all done functions of theirs were called. */
void push_router_stop(struct push_router *r);
void push_router_close(struct push_router *r); /* zeroed memory is fine */

#endif
