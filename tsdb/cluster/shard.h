/*
 * Shard: a data directory that is published in the bucket under a name.
 *
 * shard_start takes the lease of the name, restores the directory from the bucket if it has no data
 * or is not the one that published last (lease.h, restore.h), opens the database, and begins to
 * publish it (publisher.h). Blocks that are in the bucket, and older than the local retention, are
 * read there from then on: their tables on the disk are removed.
 *
 * If the bucket is away at the start, a directory that was the shard's before is opened all the
 * same: what it stores is published once the bucket is back and the lease is taken. If another
 * server has the lease then, or had it meanwhile, this one counts as fenced.
 *
 * shard_check_lease says if what the database stores may be acknowledged: not before the lease is
 * taken, nor while the lease was not confirmed for its time. Another server may have the name then,
 * and nobody would find the rows. If another directory was the shard's before, a loss is noted
 * first, over the time of what the owner before may have taken and not put into the bucket.
 *
 * Units:     nanoseconds.
 * Errors:    of the lease: ERR_EXISTS "shard a is in use by HOST since TIME"; ERR_CANCELED; of
 *            restore.h; of db_open. ERR_EXISTS: another process has the directory open, too; it
 *            keeps its lease.
 * Ownership: shard_open hands *out to the caller. Bucket and range source outlive it; strings of
 *            the options are copied.
 * Threads:   `cluster-local` looks for blocks that may leave the disk. shard_start, shard_close and
 *            shard_abandon by one thread; shard_cancel, shard_is_fenced, shard_lease_is_sure and
 *            shard_check_lease by any until then.
 */
#ifndef TSDB_CLUSTER_SHARD_H
#define TSDB_CLUSTER_SHARD_H

#include "tsdb/catalog/options.h"
#include "tsdb/cluster/publisher.h"

struct range_source;

struct shard_options {
	struct bucket *bucket;
	struct range_source *remote; /* where blocks are read: keys of the bucket */
	const char *name;
	struct db_options db; /* dir is set; segments, remote and published are set here */
	int64_t interval_ns, lease_ns, delete_delay_ns; /* 0: as publisher.h says */
	int64_t local_retention_ns; /* blocks that are older leave the disk once they are in the
								   bucket; 0: all of them, at once */
	struct bucket_prices prices;
	const char *address; /* where others reach it; NULL: it joins none (lease.h) */
	bool no_probe;
	struct starting *waiting; /* base/self/starting.h; NULL: nobody asks */
	bool numbers; /* it stores only numeric series: losses say so */
	/* For tests: publisher_round, publisher_work and shard_swap are called instead. */
	bool no_threads;
};

struct shard_node;

/* Neither waits nor asks the bucket. ERR_INVALID: the name. */
MUST_CHECK enum err_code shard_open(
	const struct shard_options *o, struct shard_node **out, struct err *err);
/* Waits for the lease, and, but for a directory that was the shard's, for the bucket. After an
 * error it may be called again. */
MUST_CHECK enum err_code shard_start(struct shard_node *s, struct err *err);
/* Ends a shard_start that waits for the lease or restores. Any thread, for good. */
void shard_cancel(struct shard_node *s);
/*
 * Ends it: the last rows are published, the manifest says `stopped`, the database is closed.
 * Appends and queries have ended before. NULL and one that did not start are fine.
 */
void shard_close(struct shard_node *s);
void shard_abandon(struct shard_node *s); /* the same without a request, as a crash */

/* NULL: it has not started. */
struct db *shard_db(struct shard_node *s);
struct publisher *shard_publisher(struct shard_node *s);
/* For tests: one attempt of the thread of a shard that started without the bucket. ERR_EXISTS:
 * another server has the lease, or had it and the next start has to restore the directory. */
MUST_CHECK enum err_code shard_take_late(struct shard_node *s, struct err *err);
/* Another server took the name: this one must end, its rows reach nobody. */
bool shard_is_fenced(const struct shard_node *s);
/* True: nobody else can have the lease. False: another server may have it, even if this one does
 * not know that. Asks nobody. */
bool shard_lease_is_sure(const struct shard_node *s);
/* As publisher_check_lease: what is stored may be acknowledged, or ERR_UNAVAILABLE. */
MUST_CHECK enum err_code shard_check_lease(struct shard_node *s, struct err *err);

/* Blocks that are older than the local retention at now_ns are read in the bucket from now on.
 * Returns how many. The thread calls it; without threads one caller at a time may. */
size_t shard_swap(struct shard_node *s, int64_t now_ns);

#endif
