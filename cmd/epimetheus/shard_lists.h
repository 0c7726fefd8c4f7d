/*
 * Lists of shards: each server that publishes a shard puts the list of who pushes to it into the
 * bucket, as `senders/NAME`, and the list of what it scrapes, as `targets/NAME`, once a minute
 * where it changed. A query node reads those of all shards when somebody asks, at most every 30 s.
 *
 * They are no data: an object takes the place of the one before, no manifest names it, and without
 * it a page lacks rows and says so.
 *
 * Units:     nanoseconds.
 * Errors:    of the bucket; a shard's own are in its view.
 * Ownership: bucket and cluster outlive a call. What is shown is in the arena.
 * Threads:   any.
 */
#ifndef CMD_EPIMETHEUS_SHARD_LISTS_H
#define CMD_EPIMETHEUS_SHARD_LISTS_H

#include "base/thread.h"
#include "web/router/options.h"

struct bucket;
struct cluster;

#define SHARD_LISTS_FRESH_NS (INT64_C(30) * 1000000000)

struct shard_lists {
	struct mutex lock; /* all below */
	struct shard_list_cache {
		struct arena arena;
		struct shard_list_view *v;
		size_t n;
		int64_t read_ns; /* monotonic; 0: never */
	} lists[SHARD_LISTS];
};
void shard_lists_init(struct shard_lists *s);
void shard_lists_release(struct shard_lists *s);

MUST_CHECK enum err_code shard_lists_put(
	struct bucket *b, enum shard_list which, const char *shard, struct str text, struct err *err);
/*
 * Of all shards but those of this process. A shard without such an object has no senders; of
 * targets its view says so. The shard of the rules, `no_targets`, has none.
 */
MUST_CHECK enum err_code shard_lists_get(struct shard_lists *s, enum shard_list which,
	const char *no_targets, struct bucket *b, struct cluster *c, struct arena *a,
	struct shard_list_view **out, size_t *n, struct err *err);

#endif
