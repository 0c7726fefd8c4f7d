/*
 * The parts of the caretaker, as they see each other.
 *
 *	caretaker.c        life, the caretaker's lease, which shards are gone, what is too old
 *	caretaker_shard.c  what is done for one shard
 */
#ifndef TSDB_CLUSTER_CARETAKER_INTERNAL_H
#define TSDB_CLUSTER_CARETAKER_INTERNAL_H

#include "base/thread.h"
#include "tsdb/catalog/overdue.h"
#include "tsdb/cluster/caretaker.h"
#include "tsdb/cluster/keys.h"

#define CARETAKER_GAP_POLLS 3 /* a longer time between two looks proves nothing */
#define CARETAKER_READ_POLLS 10 /* the manifest of a shard that runs is read so rarely */

struct care_shard {
	char name[MANIFEST_SHARD_BYTES_MAX + 1];
	char etag[BUCKET_ETAG_BYTES_MAX]; /* "": it has no manifest */
	/* Monotonic: all looks since since_ns found this ETag, and looks were not far apart. */
	int64_t since_ns, looked_at_ns;
	bool read, unreadable; /* m is the manifest of read_etag; the manifest cannot be read */
	char read_etag[BUCKET_ETAG_BYTES_MAX];
	int64_t read_at_ns, orphans_at_ns; /* monotonic */
	struct arena arena; /* of m */
	struct manifest m;
	bool listed; /* in this round */
};

struct caretaker {
	struct caretaker_options o;
	struct thread thread;
	struct mutex round_lock; /* guards what follows */
	struct care_shard **shards; /* ascending by name */
	size_t shards_n, shards_cap;
	bool held; /* lease is ours, unless it is fenced */
	int64_t age_cut_ns, size_cut_ns; /* what ended until then goes; INT64_MIN: nothing */
	struct overdue_wait overdue;

	struct mutex lock; /* guards what follows */
	struct cond wake;
	bool stopping;
	struct lease *lease; /* replaced by the round only */
	struct caretaker_status status;
};

/* ---- caretaker.c ---- */

/* Often called; confirms the caretaker's lease after a quarter of its time. ERR_CANCELED: the
 * caretaker ends. */
MUST_CHECK enum err_code caretaker_renew(struct caretaker *c, struct err *err);
bool caretaker_is_gone(const struct caretaker *c, const struct care_shard *s);

/* ---- caretaker_shard.c ---- */

/* Does what is due for a shard that is gone. */
MUST_CHECK enum err_code caretaker_visit_shard(
	struct caretaker *c, struct care_shard *s, struct err *err);

#endif
