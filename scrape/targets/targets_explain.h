/*
 * Explains relabelling: the labels of a target after each rule, and for each profile of its job the
 * URL that is scraped, the rule that dropped it, or the error. Uses the functions that make
 * targets.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT. An error of the target is in each profile.
 * Ownership: everything is in the arena, or points into the labels and the configuration.
 * Threads:   any.
 */
#ifndef SCRAPE_TARGETS_TARGETS_EXPLAIN_H
#define SCRAPE_TARGETS_TARGETS_EXPLAIN_H

#include "scrape/config/config.h"
#include "scrape/targets/shard.h"

struct explained_step {
	const struct relabel_rule *rule;
	struct labels output; /* none if this rule, or one before, dropped the target */
	bool keep;
};

enum explained_end { EXPLAINED_SCRAPED, EXPLAINED_DROPPED, EXPLAINED_REFUSED, EXPLAINED_ELSEWHERE };

struct explained_profile {
	struct str profile; /* as the job names it; labels may rename it */
	enum explained_end end;
	size_t dropped_by; /* rule, from 0 */
	int shard; /* elsewhere: the ordinal that scrapes it; -1: the total is not fixed */
	struct str reason; /* elsewhere: why this server does not scrape it */
	struct labels labels; /* scraped: as stored, with __name__ */
	struct str url;
	struct str unix_path; /* of its socket; "": none */
	struct str error; /* refused */
};

struct explanation {
	struct explained_step *steps; /* one per rule, for the labels as given */
	size_t steps_n;
	/*
	 * The profile that __name__ names, or all that are enabled. Missing labels of the profile are
	 * filled in.
	 */
	struct explained_profile *profiles;
	size_t profiles_n;
};

/* shard: whose targets are wanted. */
MUST_CHECK enum err_code targets_explain(const struct scrape_config *job, struct shard shard,
	struct labels discovered, struct arena *a, struct explanation *out, struct err *err);

#endif
