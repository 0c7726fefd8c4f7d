/*
 * Cluster view: what the page, the API and metrics show of the bucket, out of the parts that know.
 *
 * Units:     nanoseconds, bytes; costs in the currency of the prices.
 * Errors:    ERR_LIMIT, ERR_NOMEM: the arena.
 * Ownership: parts outlive a call.
 * Threads:   any.
 */
#ifndef CMD_EPIMETHEUS_CLUSTER_VIEW_H
#define CMD_EPIMETHEUS_CLUSTER_VIEW_H

#include "tsdb/bucket/bucket.h"
#include "web/router/options.h"

#define CLUSTER_SHARDS_NAMED 60 /* metrics of more are one, "other" */

struct assignment_node;
struct cluster;
struct cluster_shard;
struct publisher;
struct remote;

struct cluster_parts { /* any may be NULL */
	const char *mode; /* --mode */
	const char *shard; /* the publisher's */
	struct bucket *bucket;
	struct bucket *bucket_too[4]; /* other clients of the same one: their requests count too */
	struct publisher *publisher;
	struct assignment_node *assignment;
	struct cluster *cluster;
	struct remote *remote;
	struct bucket_prices prices;
	int64_t opened_ns; /* the bucket was; clock_monotonic_ns */
};

MUST_CHECK enum err_code cluster_view_fill(
	const struct cluster_parts *p, struct arena *a, struct cluster_view *out, struct err *err);
/* One shard of a cluster at a time. Names and texts stay those of s. */
void cluster_view_shard(
	const struct cluster_shard *s, int64_t now_ns, struct cluster_shard_view *out);

/*
 * Metrics of shards and costs, from begin to end. `parts` fills in those of the moment. A shard
 * that is gone shows NaN as its lag, and is not late.
 */
struct cluster_metrics {
	void (*parts)(void *ctx, struct cluster_parts *out);
	void *ctx;
	struct { /* the collector's */
		char name[64];
		bool there;
	} shards[CLUSTER_SHARDS_NAMED];
	size_t n;
};
void cluster_metrics_begin(
	struct cluster_metrics *m, void (*parts)(void *ctx, struct cluster_parts *out), void *ctx);
void cluster_metrics_end(struct cluster_metrics *m);

#endif
