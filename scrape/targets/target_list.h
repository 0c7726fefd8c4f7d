/*
 * List: all targets of a job, sorted by target_cmp, in chunks of some hundred. A list that follows
 * another one shares the chunks in which nothing changed.
 *
 * The order is that of hashes, which are kept beside the targets: to make a chunk anew no target is
 * looked at, and to find one no chunk. Changes come seldom, so each target that is looked at would
 * be a cache miss.
 *
 * Targets with equal labels are in one chunk, so each chunk knows by itself which of them are
 * scraped: two of them would write one series, and the first by URL is scraped.
 *
 * Errors:    ERR_NOMEM.
 * Ownership: a chunk is counted. It holds no targets: who has it holds their parts.
 * Threads:   immutable once made, but for `users`, which is the owner's of the set.
 */
#ifndef SCRAPE_TARGETS_TARGET_LIST_H
#define SCRAPE_TARGETS_TARGET_LIST_H

#include "scrape/targets/target_part.h"

struct target_chunk {
	atomic_uint refs;
	const struct target **all;
	uint64_t *hashes; /* of their labels */
	size_t all_n;
	const struct target **v; /* those with labels of their own; may be `all` */
	size_t n;
	void **users; /* one for each of v; NULL at first */
	size_t doubles; /* with the same labels as another one, and another URL */
	const struct target *kept, *not_kept; /* the first such pair */
};

struct target_place {
	uint64_t hash; /* of the first target; targets with equal ones are in one chunk */
	struct target_chunk *chunk; /* not empty */
};

struct target_list {
	struct target_place *v;
	size_t n;
};

/* before: without the targets of the gone parts, and with those of the fresh ones. May be empty. */
MUST_CHECK enum err_code target_list_follow(const struct target_list *before,
	struct target_part *const *gone, size_t gone_n, struct target_part *const *fresh,
	size_t fresh_n, struct target_list *out, struct err *err);
void target_list_release(struct target_list *l);
bool target_list_has(const struct target_list *l, const struct target_place *p);

int target_cmp(
	const struct target *a, const struct target *b); /* by labels' hash, labels, url, socket */

#endif
