/*
 * Push peers: sends entries (push_entries.h) to other shards, and gives their answers.
 *
 * A shard has one queue and one connection. While a request is under way, others wait, and then go
 * together in one request. So profiles of a series arrive in the order in which they were sent,
 * which sums that become differences need.
 *
 * If a call fails, all that waits for this shard fails with it. For a second after that nothing is
 * sent there, then one call is tried at a time: what comes meanwhile fails at once. So a shard that
 * does not answer holds few of its senders' requests, and profiles of other shards are not late.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    of send: ERR_UNAVAILABLE (the shard is away, queues are full, it is stopped),
 *            ERR_NOMEM. Of done: ERR_UNAVAILABLE "shard NAME, which keeps these profiles, cannot be
 *            reached at ADDRESS: REASON"; the profile may be stored then, if only the answer was
 *            lost. Else what the shard answered.
 * Ownership: push_peers_send takes the bytes if it succeeds. `stored` lives until done is called.
 * Threads:   send from any; done is called on a thread of its own, once for each send that
 *            succeeded. Open, stop and close from one thread, which is not that.
 */
#ifndef SCRAPE_FORWARD_PUSH_PEERS_H
#define SCRAPE_FORWARD_PUSH_PEERS_H

#include "proto/sink.h"
#include "scrape/forward/push_assignment.h"

#define PUSH_PEERS_MAX 1024u
#define PUSH_QUEUES_BYTES_MAX 67108864u /* entries that wait or are under way, of all shards */
#define PUSH_CALL_TIMEOUT_NS INT64_C(10000000000) /* unless the options say another one */
#define PUSH_AWAY_TIMEOUT_NS INT64_C(3000000000) /* of calls to a shard whose last call failed */
#define PUSH_AWAY_PAUSE_NS INT64_C(1000000000)
#define PUSH_STOP_GRACE_NS INT64_C(3000000000)

struct push_peers_options {
	const struct push_assignment *assignment;
	const char *ca_file; /* of https; NULL or "": the system's */
	int64_t call_timeout_ns; /* of one call; 0: PUSH_CALL_TIMEOUT_NS */
};

struct push_peers;
MUST_CHECK enum err_code push_peers_open(
	const struct push_peers_options *o, struct push_peers **out, struct err *err);
/* On success *entry is empty. stored may be NULL. */
MUST_CHECK enum err_code push_peers_send(struct push_peers *p, const struct push_owner *to,
	struct buf *entry, struct sink_stored *stored, sink_done_fn done, void *ctx, struct err *err);
/*
 * Takes nothing more, gives what is under way PUSH_STOP_GRACE_NS, then ends it. All done functions
 * were called when it returns.
 */
void push_peers_stop(struct push_peers *p);
void push_peers_close(struct push_peers *p); /* stops it; NULL is fine */

#endif
