/*
 * Groups: series that differ only in the labels that tell instances of one service apart. Rollups
 * are kept of groups too.
 *
 * Ownership: rules and labels are the arena's.
 * Threads:   pure functions.
 */
#ifndef TSDB_SERIES_GROUPS_H
#define TSDB_SERIES_GROUPS_H

#include "base/arena.h"
#include "base/labels.h"

/*
 * Labels that tell instances of one job apart; a job that is not named has "instance" and "pod".
 */
struct db_job_labels {
	struct str job;
	const struct str *labels;
	size_t labels_n;
};

struct group_rules {
	struct db_job_labels *v;
	size_t n;
};

/* The label job, else service_name, else "". */
struct str job_name_of(struct labels labels);
MUST_CHECK enum err_code group_rules_dup(struct arena *a, const struct db_job_labels *from,
	size_t n, struct db_job_labels **out, struct err *err);
/* By labels of the group, then labels: the order of series of one partition in a block. */
int group_cmp(const struct group_rules *r, struct str job, struct labels a, struct labels b);
bool group_same(const struct group_rules *r, struct str job, struct labels a, struct labels b);
MUST_CHECK enum err_code group_labels(const struct group_rules *r, struct labels labels,
	struct arena *a, struct labels *out, struct err *err);

#endif
