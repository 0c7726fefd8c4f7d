/*
 * Cluster: all shards of a bucket as one database, for a query node.
 *
 * Every poll_ns the shards of the bucket are listed, and each shard's follower looks at its
 * manifest. Windows that lack many segments are read between these looks, the newest window of all
 * shards first. So a new shard is found as fast as changes of known ones. Answers have a warning if
 * the last list is older than two polls and a second, if the bucket has no shards, and for shards
 * that were not read yet. If a shard's manifest is gone, answers say that the shard is missing; the
 * next list drops it, and the log says so.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_IO, ERR_NOMEM at the start; later ones are in the status, the log and warnings of
 *            answers.
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
	const char *records; /* the shard of this name has only recorded numbers; NULL: none */
	struct db_options db; /* memory for all shards together */
	int64_t poll_ns; /* default 10 s */
	unsigned workers; /* shards that are read at once; default: one for each core, at least 8 */
};

MUST_CHECK enum err_code cluster_open(
	const struct cluster_options *o, struct cluster **out, struct err *err);
void cluster_close(struct cluster *c); /* NULL is fine; the database has no users any more */
struct db *cluster_db(struct cluster *c);

/*
 * Waits until the first look at each shard has ended, well or not, for timeout_ns at most. Then the
 * node is ready: it has all blocks, and does not answer with half of the shards. Windows may still
 * be unread.
 */
void cluster_wait(struct cluster *c, int64_t timeout_ns);
/* Progress of that. *n: known shards; *read: those whose first look has ended. False: some were not
 * looked at yet, or no list has ended. */
bool cluster_progress(struct cluster *c, size_t *read, size_t *n);

/*
 * From now on the shard of this name is `db`, a database of this process, and its follower ends.
 * NULL: the shard is followed again.
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
