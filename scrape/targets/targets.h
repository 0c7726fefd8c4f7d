/*
 * Targets of a job: a tree of their parts (target_tree.h) and a sorted list of them all
 * (target_list.h). Each target and enabled profile has a label set after relabelling, a URL, an
 * interval and a timeout.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT for the whole set. A target with an error is left out, and
 *            `error` of the set says why.
 * Ownership: a set is counted, and holds its parts and groups.
 * Threads:   immutable once made, but for what the headers of tree and list say; the count is
 *            atomic. targets_expand runs on one thread at a time for sets that follow each other.
 */
#ifndef SCRAPE_TARGETS_TARGETS_H
#define SCRAPE_TARGETS_TARGETS_H

#include "scrape/targets/target_list.h"
#include "scrape/targets/target_tree.h"

#define TARGETS_ELSEWHERE_SHOWN_MAX 1000 /* of a set, if keep_dropped_targets is not set */

struct target_set {
	atomic_uint refs;
	uint64_t number; /* no other set has it */
	struct config *config; /* held */
	const struct scrape_config *job;
	struct target_node *tree; /* of all parts */
	struct target_list list; /* of all targets */
	size_t n; /* targets with labels of their own: those in `v` of the chunks */
	struct target_shared *shared; /* held; for the next set as well */
	/*
	 * Targets whose profiles were all dropped by rules, or are other shards'. Labels are kept of at
	 * most keep_dropped_targets, if that is set.
	 */
	size_t dropped_n; /* with labels, in the parts */
	size_t dropped_total;
	size_t elsewhere; /* of these, other shards' */
	size_t waiting; /* of these, those that another shard may still scrape */
	char *error; /* why some targets are not scraped; NULL: none */
	bool limit_exceeded; /* over target_limit: nothing is scraped, and `error` says so */
};

/*
 * before: the set that the job had, or NULL. What became of groups that are still the same is taken
 * over from it, if it was made from the same configuration. It was made by the same rule of shards.
 * shard: whose targets are wanted. A profile whose target is another shard's is left out.
 */
MUST_CHECK enum err_code targets_expand(struct config *config, const struct scrape_config *job,
	struct shard shard, struct groups *groups, const struct target_set *before,
	struct target_set **out, struct err *err);
struct target_set *target_set_ref(struct target_set *s);
void target_set_unref(struct target_set *s); /* NULL is fine */

/* The ith of its n targets, by a walk over the chunks. */
const struct target *target_set_at(const struct target_set *s, size_t i);

#endif
