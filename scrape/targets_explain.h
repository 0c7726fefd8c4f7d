/*
 * Explain: what relabelling makes of a target's discovered labels, rule by rule, and what becomes
 * of each profile of its job: scraped where, dropped by which rule, or refused why. By the same
 * functions that make the targets.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT. What is wrong with the target is told of each profile.
 * Ownership: everything in the arena, or of the labels and the configuration.
 * Threads:   any.
 */
#ifndef SCRAPE_TARGETS_EXPLAIN_H
#define SCRAPE_TARGETS_EXPLAIN_H

#include "scrape/config/config.h"

struct explained_step {
	const struct relabel_rule *rule;
	struct labels output; /* none where it is dropped, by this rule or one before */
	bool keep;
};

enum explained_end { EXPLAINED_SCRAPED, EXPLAINED_DROPPED, EXPLAINED_REFUSED };

struct explained_profile {
	struct str profile; /* of the job; the labels may name it otherwise */
	enum explained_end end;
	size_t dropped_by; /* rule, from 0 */
	struct labels labels; /* scraped: as stored, with __name__ */
	struct str url;
	struct str error; /* refused */
};

struct explanation {
	struct explained_step *steps; /* one per rule, of the labels as given */
	size_t steps_n;
	/*
	 * Of the one that __name__ names, else all that are enabled. Labels of the profile that are
	 * missing are filled in.
	 */
	struct explained_profile *profiles;
	size_t profiles_n;
};

MUST_CHECK enum err_code targets_explain(const struct scrape_config *job, struct labels discovered,
	struct arena *a, struct explanation *out, struct err *err);

#endif
