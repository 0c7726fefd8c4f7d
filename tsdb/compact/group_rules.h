/*
 * The labels that tell instances apart, as last set by db_set_instance_labels.
 *
 * Threads: any (db->lock).
 */
#ifndef TSDB_COMPACT_GROUP_RULES_H
#define TSDB_COMPACT_GROUP_RULES_H

#include "tsdb/series/groups.h"

struct db;

MUST_CHECK enum err_code db_set_instance_labels(
	struct db *db, const struct db_job_labels *d, size_t n, struct err *err);
/* A copy that does not change. */
MUST_CHECK enum err_code group_rules_copy(
	struct db *db, struct arena *a, struct group_rules *out, struct err *err);

#endif
