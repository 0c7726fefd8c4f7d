/*
 * The keys that a manifest names, as a set; and what a shard has in the bucket.
 *
 * Units:     bytes.
 * Errors:    ERR_NOMEM; the bucket's.
 * Ownership: all is in the arena.
 * Threads:   values.
 */
#ifndef TSDB_CLUSTER_KEYS_H
#define TSDB_CLUSTER_KEYS_H

#include "tsdb/cluster/manifest.h"

struct key_set {
	struct str *v; /* behind "shards/NAME/"; ascending */
	size_t n, cap;
};

/* Without the manifest itself, and without what is gone. */
MUST_CHECK enum err_code key_set_named(const struct manifest *m, struct str shard, struct arena *a,
	struct key_set *out, struct err *err);
bool key_set_has(const struct key_set *k, struct str rest);

struct shard_object {
	struct str rest; /* its key behind "shards/NAME/"; ends in NUL */
	uint64_t bytes;
	int64_t modified_ns;
};

/* All objects of a shard, ascending by key; its manifest too. */
MUST_CHECK enum err_code shard_list_objects(struct bucket *b, struct str shard, struct arena *a,
	struct shard_object **out, size_t *n, struct err *err);
const struct shard_object *shard_find_object(
	const struct shard_object *s, size_t n, struct str rest); /* NULL: none */

/* Names of the shards in a bucket, ascending; in the arena, ending in NUL. */
MUST_CHECK enum err_code shard_list_names(
	struct bucket *b, struct arena *a, struct str **out, size_t *n, struct err *err);

#endif
