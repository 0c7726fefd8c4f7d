/*
 * Targets of a job: all its parts (target_part.h), sorted. Each target and enabled profile has a
 * label set after relabelling, a URL, an interval and a timeout.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT for the whole set. A target with an error is left out, and
 * `error` of the set says why. Ownership: a set is counted, and holds its parts and groups.
 * Threads:   immutable once made, but for `pieces[].part->seen`; the count is atomic.
 * targets_expand runs on one thread at a time for sets that follow each other.
 */
#ifndef SCRAPE_TARGETS_TARGETS_H
#define SCRAPE_TARGETS_TARGETS_H

#include "scrape/targets/target_part.h"

#define TARGETS_ELSEWHERE_SHOWN_MAX 1000 /* of a set, if keep_dropped_targets is not set */

struct target_set {
	atomic_uint refs;
	uint64_t number; /* no other set has it */
	struct config *config; /* held */
	struct groups *groups; /* held */
	const struct scrape_config *job;
	struct target_piece *pieces; /* in the order of the groups */
	size_t pieces_n;
	const struct target **sorted; /* all of them, by target_cmp */
	size_t sorted_n;
	const struct target **v; /* those with labels of their own; may be `sorted` */
	size_t n;
	struct target_shared *shared; /* held; for the next set as well */
	/*
	 * Targets whose profiles were all dropped by rules, or are other shards'. Labels are kept of at
	 * most keep_dropped_targets, if that is set.
	 */
	size_t dropped_n; /* with labels, in the parts */
	size_t dropped_total;
	size_t elsewhere; /* of these, other shards' */
	char *error; /* why some targets are not scraped; NULL: none */
	bool limit_exceeded; /* over target_limit: nothing is scraped, and `error` says so */
};

/*
 * before: the set that the job had, or NULL. Parts of groups that are still the same are taken over
 * from it, if it was made from the same configuration.
 * shard: whose targets are wanted. A profile whose target is another shard's is left out.
 */
MUST_CHECK enum err_code targets_expand(struct config *config, const struct scrape_config *job,
	struct shard shard, struct groups *groups, const struct target_set *before,
	struct target_set **out, struct err *err);
struct target_set *target_set_ref(struct target_set *s);
void target_set_unref(struct target_set *s); /* NULL is fine */

int target_cmp(const struct target *a, const struct target *b); /* by labels, then url */

#endif
