/*
 * Senders of shards: each server that publishes a shard puts the list of who pushes to it into the
 * bucket, as `senders/NAME`, once a minute where it changed. A query node reads those of all shards
 * when somebody asks, at most every 30 s.
 *
 * It is no data: an object takes the place of the one before, no manifest names it, and without it
 * a page lacks rows and says so.
 *
 * Units:     nanoseconds.
 * Errors:    of the bucket; a shard's own are in its view.
 * Ownership: bucket and cluster outlive a call. What is shown is in the arena.
 * Threads:   any.
 */
#ifndef CMD_EPIMETHEUS_SHARD_SENDERS_H
#define CMD_EPIMETHEUS_SHARD_SENDERS_H

#include "base/thread.h"
#include "web/router/options.h"

struct bucket;
struct cluster;

#define SHARD_SENDERS_FRESH_NS (INT64_C(30) * 1000000000)

struct shard_senders {
	struct mutex lock; /* all below */
	struct arena arena;
	struct shard_senders_view *v;
	size_t n;
	int64_t read_ns; /* monotonic; 0: never */
};
void shard_senders_init(struct shard_senders *s);
void shard_senders_release(struct shard_senders *s);

MUST_CHECK enum err_code shard_senders_put(
	struct bucket *b, const char *shard, struct str text, struct err *err);
/* Of all shards but those of this process. A shard without such an object has no senders. */
MUST_CHECK enum err_code shard_senders_get(struct shard_senders *s, struct bucket *b,
	struct cluster *c, struct arena *a, struct shard_senders_view **out, size_t *n,
	struct err *err);

#endif
