/*
 * Shard gate: the rule in force, and what is being stored by it. A new rule takes effect between
 * profiles: once shard_gate_set has returned, nothing is stored any more that only the rule before
 * allowed. So another server may begin to scrape it.
 *
 * Errors:    ERR_CANCELED: the target is another server's by now; the text says whose.
 * Ownership: the gate holds its rule.
 * Threads:   any; shard_gate_set by one at a time. Between enter and leave a profile is handed to
 *            the sink, so shard_gate_set waits as long as that takes.
 */
#ifndef SCRAPE_TARGETS_SHARD_GATE_H
#define SCRAPE_TARGETS_SHARD_GATE_H

#include "base/err.h"
#include "base/thread.h"
#include "scrape/targets/shard.h"

struct shard_gate {
	struct mutex lock; /* guards all */
	struct cond left;
	struct shard shard;
	unsigned turn; /* 0 or 1: the other one after each rule */
	size_t inside[2]; /* by the turn in which they entered */
};

void shard_gate_init(struct shard_gate *g, const struct shard *s);
void shard_gate_release(struct shard_gate *g);
void shard_gate_set(struct shard_gate *g, const struct shard *s);
struct shard shard_gate_get(struct shard_gate *g); /* held for the caller */
/* A profile of the target with this key is stored now; shard_gate_leave gets *turn. */
MUST_CHECK enum err_code shard_gate_enter(
	struct shard_gate *g, uint64_t key, unsigned *turn, struct err *err);
void shard_gate_leave(struct shard_gate *g, unsigned turn);

#endif
