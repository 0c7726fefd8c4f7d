/*
 * Pushes: what becomes of profiles that are pushed to this server. They pass a chain of sinks. Of a
 * shard that joined others the router is first: it hands over what another shard keeps
 * (scrape/forward). Then a shard's lease gate asks whether it may acknowledge them. The last sink
 * is the database's.
 *
 * Errors:    of the sinks.
 * Ownership: the caller's memory. The database's sink and the storage outlive it.
 * Threads:   the sinks' any; the others by one at a time.
 */
#ifndef CMD_EPIMETHEUS_PUSHES_H
#define CMD_EPIMETHEUS_PUSHES_H

#include "cmd/epimetheus/lease_gate.h"
#include "scrape/forward/push_router.h"

struct assignment_node;
struct storage;

struct pushes {
	struct sink *sink; /* of what senders push; NULL: none is taken */
	struct sink *shard_sink; /* of what other shards hand over; NULL: they hand over nothing */
	struct push_assignment assignment; /* of shard_sink */
	struct assignment_node *node; /* NULL: the server joined no others */
	struct lease_gate gate;
	struct push_router router;
};

/* to: the database's sink; NULL: the server takes no profiles. ca_file: of other shards; "": the
 * system's. */
MUST_CHECK enum err_code pushes_open(struct pushes *p, struct sink *to, struct storage *storage,
	const char *ca_file, struct err *err);
/* Nothing is handed to other shards any more, and nobody waits for their answers. */
void pushes_stop(struct pushes *p);
void pushes_close(struct pushes *p); /* zeroed memory is fine */

#endif
