/*
 * Administration of a database: retention, deletion, snapshots, compaction.
 *
 * Errors:  as each says.
 * Threads: any; one works on blocks at a time, others wait.
 */
#ifndef TSDB_COMPACT_ADMIN_H
#define TSDB_COMPACT_ADMIN_H

#include "base/arena.h"
#include "base/labels.h"
#include "tsdb/catalog/overdue.h"

struct db;

/* Data that a shorter retention makes too old is dropped in the next round. */
void db_set_retention(
	struct db *db, int64_t retention_ns, uint64_t retention_bytes, int64_t raw_retention_ns);
/* True while retention by time waits, as much became too old at once: rows up to *until_ns. Of a
 * union: false. */
bool db_retention_is_held(struct db *db, int64_t *until_ns, int64_t *since_ns);

/*
 * Deletes rows in (min, max] of the series that all matchers accept. Queries do not see them once
 * this returns, also after a restart; the next compaction frees their bytes. Rows whose append
 * failed but that reached the disk are deleted too. Sums of steps are made again from the rows that
 * stay. If retention dropped the raw rows that is impossible: a step that is only partly in
 * (min, max] is left out as a whole, and queries say so in their infos; a step without rows in it
 * stays. At least one matcher must not accept "".
 */
MUST_CHECK enum err_code db_delete_series(struct db *db, const struct matcher *m, size_t n,
	int64_t min_ns, int64_t max_ns, struct err *err);
/* Makes a copy of the data directory, DIR/snapshots/<name>; immutable files are hard links. name is
 * in the arena. */
MUST_CHECK enum err_code db_snapshot(
	struct db *db, struct arena *a, struct str *name, struct err *err);

/* Cuts windows that take no more rows, joins blocks and applies retention until nothing is due; for
 * tests and tools. The maintenance thread does the same by itself. */
MUST_CHECK enum err_code db_compact(struct db *db, struct err *err);

#endif
