/*
 * Targets of a shard: puts the list of what it scrapes into the bucket, so that query nodes show
 * the targets of the fleet (shard_lists.h). Once a minute, and a few times in the first minute; a
 * list without targets only when it changed.
 *
 * Errors:    shard_targets_open: ERR_NOMEM. A list that cannot be put has a line in the log, and is
 *            put the next time.
 * Ownership: the manager outlives it.
 * Threads:   one of its own, which calls put.
 */
#ifndef CMD_EPIMETHEUS_SHARD_TARGETS_H
#define CMD_EPIMETHEUS_SHARD_TARGETS_H

#include "scrape/manager.h"

struct shard_targets_options {
	struct scrape_manager *manager;
	enum err_code (*put)(void *ctx, struct str text, struct err *err); /* may wait */
	void *ctx;
};

struct shard_targets;
MUST_CHECK enum err_code shard_targets_open(
	const struct shard_targets_options *o, struct shard_targets **out, struct err *err);
void shard_targets_close(struct shard_targets *t); /* NULL is fine */

#endif
