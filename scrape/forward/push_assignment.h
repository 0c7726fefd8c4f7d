/*
 * Push assignment: which shard keeps a pushed profile, and what shards need to reach each other.
 * The server implements it (cmd/epimetheus); the sender and the receiver of forwarded profiles ask
 * it.
 *
 * Units:     nanoseconds since 1970.
 * Errors:    of owner: ERR_UNAVAILABLE with the reason.
 * Ownership: constant, and lives longer than who has it. Answers are copies.
 * Threads:   any. owner may wait for the bucket some seconds, once for each shard and look.
 */
#ifndef SCRAPE_FORWARD_PUSH_ASSIGNMENT_H
#define SCRAPE_FORWARD_PUSH_ASSIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/labels.h"

#define PUSH_SECRET_BYTES 33 /* 32 characters and NUL */

struct push_owner {
	char name[64];
	/* "http://shard-1.epimetheus-shard:7070", without a path but for the server's prefix */
	char address[512];
	bool own; /* this server itself; address is empty then */
	uint64_t assignment; /* the number of the assignment that says so; a later one is greater */
};

struct push_assignment {
	void *ctx;
	/* The shard that keeps profiles of these labels (push_labels_hash) and this time. */
	enum err_code (*owner)(
		void *ctx, uint64_t labels_hash, int64_t ts_ns, struct push_owner *out, struct err *err);
	/* A call to this shard failed: its address may be old. */
	void (*failed)(void *ctx, const char *name);
	/* What shards prove to each other that they are. Empty: it is not known yet. */
	void (*secret)(void *ctx, char out[PUSH_SECRET_BYTES]);
};

/* Of the labels without __name__: all profiles of one process go to one shard. */
uint64_t push_labels_hash(struct labels labels);

#endif
