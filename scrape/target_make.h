/*
 * One target and one profile: the labels before relabelling, and what is made of those after it.
 *
 *	target_populate, then labels_builder_build for the discovered labels, then relabelling of `b`,
 *	then target_finish.
 *
 * Errors:    ERR_INVALID: what is wrong with the target, in Prometheus's words; ERR_NOMEM,
 *            ERR_LIMIT.
 * Ownership: the arena's, or the caller's labels and configuration; target_make_release frees the
 *            rest.
 * Source:    Prometheus's PopulateLabels and Target.URL.
 */
#ifndef SCRAPE_TARGET_MAKE_H
#define SCRAPE_TARGET_MAKE_H

#include "scrape/targets.h"

#define TARGET_KEPT 256

struct target_make {
	struct arena *arena;
	const struct scrape_config *job;
	struct labels_builder b; /* a failed allocation shows when it is built */
	struct buf scratch;
	struct arena one; /* what one target needs until it is made */
	struct str kept[TARGET_KEPT]; /* strings of the arena by hash: what many targets say */
	struct str auto_seconds; /* `seconds` if we chose them: they follow a changed interval */
};

void target_make_init(struct target_make *m, struct arena *a, const struct scrape_config *job);
void target_make_release(struct target_make *m);
/*
 * Target labels > group labels > the job's and the profile's defaults. p NULL: what is common to
 * all profiles of the job.
 */
void target_populate(struct target_make *m, struct labels group, struct labels target,
	const struct profile_config *p);
/* t->profile is set. */
MUST_CHECK enum err_code target_finish(struct target_make *m, struct target *t, struct err *err);
/* What a delta profile measures where nobody says. */
int64_t target_auto_seconds(int64_t interval_ns);

#endif
