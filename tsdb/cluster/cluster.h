/*
 * Cluster: all shards of a bucket as one database, for a query node.
 *
 * Every poll_ns the bucket is listed for shards, and each shard's follower looks at its manifest.
 * What is far from whole is read between these looks, the newest windows of all shards first.
 * So a new shard is known as soon as news of the others are. An answer says where the last list is
 * older than two polls and a second, where there are no shards, and which ones were not read yet. A
 * shard whose manifest is gone is dropped by the next list, with a word in the log; until then
 * answers say that it is missing.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_IO, ERR_NOMEM at the start; the status, the log and warnings of answers say
 *            later ones.
 * Ownership: bucket and range source outlive it.
 * Threads:   any; `workers` of its own.
 */
#ifndef TSDB_CLUSTER_CLUSTER_H
#define TSDB_CLUSTER_CLUSTER_H

#include "tsdb/cluster/follower.h"

struct cluster;

struct cluster_options {
	struct bucket *bucket;
	struct range_source *remote;
	const char *dir; /* of the followers' windows; emptied */
	const char *records; /* the shard of this name has recorded numbers alone; NULL: none */
	struct db_options db; /* memory for all shards together */
	int64_t poll_ns; /* default 10 s */
	unsigned workers; /* so many shards are read at once; default: one for each core, at least 8 */
};

MUST_CHECK enum err_code cluster_open(
	const struct cluster_options *o, struct cluster **out, struct err *err);
void cluster_close(struct cluster *c); /* NULL is fine; the database has no users any more */
struct db *cluster_db(struct cluster *c);

/*
 * Waits until each shard was looked at once or could not be, at most so long: a node is ready then,
 * has all blocks, and does not answer with half of the shards. Windows may be unread by then.
 */
void cluster_wait(struct cluster *c, int64_t timeout_ns);
/* How far that is. *n: the shards that are known; false: some are not read yet, or not even listed.
 */
bool cluster_progress(struct cluster *c, size_t *read, size_t *n);

/*
 * The shard of this name is a database of this process from now on (NULL: no more): the follower of
 * it ends.
 */
MUST_CHECK enum err_code cluster_set_own(
	struct cluster *c, const char *name, struct db *db, struct err *err);

struct cluster_shard {
	const char *name;
	bool own; /* a database of this process; the rest is 0 */
	struct follower_status is;
};
/* Ascending by name; in the arena. */
MUST_CHECK enum err_code cluster_shards(
	struct cluster *c, struct arena *a, struct cluster_shard **out, size_t *n, struct err *err);

#endif
