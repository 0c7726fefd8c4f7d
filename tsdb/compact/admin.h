/*
 * Administration of a database: retention, deletion, snapshots, compaction.
 *
 * Errors:  as each says. Threads: any; one works on blocks at a time, others wait.
 */
#ifndef TSDB_COMPACT_ADMIN_H
#define TSDB_COMPACT_ADMIN_H

#include "base/arena.h"
#include "base/labels.h"

struct db;

void db_set_retention(
	struct db *db, int64_t retention_ns, uint64_t retention_bytes, int64_t raw_retention_ns);

/*
 * Rows in (min, max] of the series that all matchers accept are seen no more once this returns,
 * also after a restart; their bytes go with the next compaction. So do rows whose append was
 * answered with an error and that are on the disk all the same. Sums of steps are made anew of the
 * rows that stay. Where raw rows are gone by retention that cannot be done: a step of which only a
 * part is in (min, max] is left out as a whole, which queries say in their infos; a step with no
 * row in it stays. At least one matcher must not accept "".
 */
MUST_CHECK enum err_code db_delete_series(struct db *db, const struct matcher *m, size_t n,
	int64_t min_ns, int64_t max_ns, struct err *err);
/* A data directory under DIR/snapshots/<name>, of hard links where files are immutable; name is in
 * the arena. */
MUST_CHECK enum err_code db_snapshot(
	struct db *db, struct arena *a, struct str *name, struct err *err);

/* Cuts windows that take no more rows, joins blocks, applies retention: now and to the end; for
 * tests and tools. The maintenance thread does the same by itself. */
MUST_CHECK enum err_code db_compact(struct db *db, struct err *err);

#endif
