/*
 * List: all targets of a job, sorted by target_cmp, in chunks of some hundred. A list that follows
 * another one shares the chunks in which nothing changed.
 *
 * Targets with equal labels are in one chunk, so each chunk knows by itself which of them are
 * scraped: two of them would write one series, and the first by URL is scraped.
 *
 * Errors:    ERR_NOMEM.
 * Ownership: a chunk is counted. It holds no targets: who has it holds their parts.
 * Threads:   immutable once made, but for `seen`, which is of the thread that makes lists, and
 *            `users`, which is the owner's of the set.
 */
#ifndef SCRAPE_TARGETS_TARGET_LIST_H
#define SCRAPE_TARGETS_TARGET_LIST_H

#include "scrape/targets/target_part.h"

struct target_chunk {
	atomic_uint refs;
	uint64_t made, seen; /* numbers of the first and of the latest list that it is in */
	const struct target **all;
	size_t all_n;
	const struct target **v; /* those with labels of their own; may be `all` */
	size_t n;
	void **users; /* one for each of v; NULL at first */
	size_t doubles; /* with the same labels as another one, and another URL */
	const struct target *kept, *not_kept; /* the first such pair */
};

struct target_list {
	struct target_chunk **v; /* none is empty */
	size_t n;
};

/*
 * before: without the targets of parts whose `gone` is number, and with the fresh ones; it may be
 * empty. gone: those parts.
 */
MUST_CHECK enum err_code target_list_follow(uint64_t number, const struct target_list *before,
	struct target_part *const *gone, size_t gone_n, struct target_part *const *fresh,
	size_t fresh_n, struct target_list *out, struct err *err);
void target_list_release(struct target_list *l);

int target_cmp(const struct target *a, const struct target *b); /* by labels, then url */

#endif
