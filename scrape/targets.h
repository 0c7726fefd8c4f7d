/*
 * Targets: what a job's target groups become: per target and enabled profile, a label set after
 * relabelling, a URL, and when to fetch it.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_NOMEM, ERR_LIMIT for the set as a whole. What is wrong with one target leaves that
 *            target out and is told in `error`.
 * Ownership: a set is counted; it lives in its own arena and holds a reference of the
 *            configuration.
 * Threads:   immutable once made; the count is atomic.
 * Source:    Prometheus's PopulateLabels and Target.URL.
 */
#ifndef SCRAPE_TARGETS_H
#define SCRAPE_TARGETS_H

#include "scrape/config/config.h"

struct target {
	struct labels discovered; /* before relabelling, profile's labels included */
	struct labels labels; /* as stored, with __name__ */
	struct str name; /* __name__ */
	struct str url;
	struct str shown_url; /* the same without what nobody is shown (base/hidden.h) */
	struct str exclusive; /* "address path" of an endpoint that serves one at a time; "" */
	int64_t interval_ns, timeout_ns, seconds;
	const struct profile_config *profile;
	uint64_t hash; /* of labels and url: spreads scrapes over the interval */
	uint64_t home; /* hash of the address: targets of one address share a loop */
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
	 * Targets of which no profile is left, by rules: discovered labels that all profiles share; at
	 * most keep_dropped_targets where that is set.
	 */
	struct labels *dropped;
	size_t dropped_n;
	size_t dropped_total;
	struct str error; /* "" or what is wrong with some targets */
	bool limit_exceeded; /* target_limit: error says so, nothing is scraped */
};

MUST_CHECK enum err_code targets_expand(struct config *config, const struct scrape_config *job,
	struct groups *groups, struct target_set **out, struct err *err);
/* A set of this one target, which holds no groups: copies of its labels, whatever else changed. */
MUST_CHECK enum err_code target_set_of(const struct target_set *from, const struct target *t,
	struct target_set **out, struct err *err);
struct target_set *target_set_ref(struct target_set *s);
void target_set_unref(struct target_set *s); /* NULL is fine */

int target_cmp(const struct target *a, const struct target *b); /* by labels, then url */

#endif
