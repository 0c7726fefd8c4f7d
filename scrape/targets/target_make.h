/*
 * Makes one target of an address and a profile: the labels before relabelling, and the target from
 * the labels after it.
 *
 *	target_populate, labels_builder_build for the discovered labels, relabelling of `b`,
 *	target_finish
 *
 * Errors:    ERR_INVALID with Prometheus's message about the target; ERR_NOMEM, ERR_LIMIT.
 * Ownership: the arena's, or the caller's labels and configuration; target_make_release frees the
 *            rest.
 * Source:    Prometheus's PopulateLabels and Target.URL.
 */
#ifndef SCRAPE_TARGETS_TARGET_MAKE_H
#define SCRAPE_TARGETS_TARGET_MAKE_H

#include "scrape/targets/target_part.h"

#define TARGET_KEPT 256

struct target_texts { /* one copy for many targets */
	struct arena *arena;
	struct str kept[TARGET_KEPT]; /* of the arena, by hash */
};

struct target_make {
	struct arena *arena;
	struct target_texts *texts;
	const struct scrape_config *job;
	struct labels_builder b; /* a failed allocation shows when it is built */
	struct buf scratch;
	struct arena one; /* scratch, reset for each target */
	struct str auto_seconds; /* `seconds` if they follow from the interval, or "" */
};

void target_make_init(struct target_make *m, struct arena *a, struct target_texts *texts,
	const struct scrape_config *job);
void target_make_release(struct target_make *m);
/*
 * Target labels win over group labels, and those over defaults of the job and the profile. p NULL:
 * only what all profiles of the job share.
 */
void target_populate(struct target_make *m, struct labels group, struct labels target,
	const struct profile_config *p);
/* t->profile is set. */
MUST_CHECK enum err_code target_finish(struct target_make *m, struct target *t, struct err *err);
/* Its answers hold what was added since the one before (profile_path_since_last). */
bool target_since_last(const struct target *t);
/* The default of `seconds` of a delta profile. */
int64_t target_auto_seconds(int64_t interval_ns);

#endif
