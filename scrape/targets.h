/*
 * Targets: made from the target groups of a job. Each target and enabled profile has a label set
 * after relabelling, a URL, an interval and a timeout.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_NOMEM, ERR_LIMIT for the whole set. A target with an error is left out, and
 * `error` of the set says why. Ownership: a set is counted; it lives in its own arena and holds the
 * configuration. Threads:   immutable once made; the count is atomic. Source:    Prometheus's
 * PopulateLabels and Target.URL.
 */
#ifndef SCRAPE_TARGETS_H
#define SCRAPE_TARGETS_H

#include <limits.h>

#include "scrape/config/config.h"
#include "scrape/shard.h"

struct target {
	struct labels discovered; /* before relabelling, with the profile's labels */
	struct labels labels; /* as stored, with __name__ */
	struct str name; /* __name__ */
	struct str url;
	struct str shown_url; /* without secrets (base/hidden.h) */
	struct str exclusive; /* "address path" if the endpoint serves one request at a time, or "" */
	int64_t interval_ns, timeout_ns, seconds;
	const struct profile_config *profile;
	uint64_t hash; /* of labels and url: spreads scrapes over the interval */
	uint64_t home; /* hash of the address: all targets of an address are on one loop */
};

#define TARGET_NO_SHARD UINT_MAX
#define TARGETS_ELSEWHERE_SHOWN_MAX 1000 /* of a set, if keep_dropped_targets is not set */

struct target_dropped {
	struct labels discovered; /* that all profiles share */
	unsigned shard; /* that scrapes it; TARGET_NO_SHARD: rules dropped it */
};

struct target_set {
	atomic_uint refs;
	struct arena arena;
	struct config *config; /* held, as are the groups: labels point into both */
	struct groups *groups;
	const struct scrape_config *job;
	struct target *v; /* ascending by labels, then url; labels distinct; not of the arena */
	size_t n;
	/*
	 * Targets whose profiles were all dropped by rules, or are other shards'. At most
	 * keep_dropped_targets, if that is set.
	 */
	struct target_dropped *dropped;
	size_t dropped_n;
	size_t dropped_total;
	size_t elsewhere; /* of these, other shards' */
	struct str error; /* why some targets are not scraped, or "" */
	bool limit_exceeded; /* over target_limit: nothing is scraped, and `error` says so */
};

/* shard: whose targets are wanted. A profile whose target is another shard's is left out. */
MUST_CHECK enum err_code targets_expand(struct config *config, const struct scrape_config *job,
	struct shard shard, struct groups *groups, struct target_set **out, struct err *err);
/* A set of a copy of this target. Its labels are copies, so it holds no groups. */
MUST_CHECK enum err_code target_set_of(const struct target_set *from, const struct target *t,
	struct target_set **out, struct err *err);
struct target_set *target_set_ref(struct target_set *s);
void target_set_unref(struct target_set *s); /* NULL is fine */

int target_cmp(const struct target *a, const struct target *b); /* by labels, then url */

#endif
