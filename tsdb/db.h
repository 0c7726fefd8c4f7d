/*
 * Database: profiles under labels, in a data directory.
 *
 * A write is: symbols to ids, cumulative columns to deltas, one row; then a group commit with sync,
 * and only after it the acknowledgement. A read pins what it needs in a querier and sees a
 * consistent state.
 *
 * Units:     nanoseconds since 1970; windows are half-open (min, max].
 * Errors:    ERR_LIMIT (names the limit), ERR_INVALID (out of the accepted times), ERR_UNAVAILABLE
 * (disk full, a failed store being reopened, closing), ERR_IO, ERR_CORRUPT. Threads:   any number
 * of appenders and queriers; a querier and what came from it belong to one thread at a time.
 * Acknowledgements are called from the commit thread and must not block. Source:    tsdb/FORMAT.md.
 */
#ifndef TSDB_DB_H
#define TSDB_DB_H

#include <stdatomic.h>

#include "base/fs.h"
#include "base/labels.h"
#include "proto/kinds.h"
#include "tsdb/accum.h"
#include "tsdb/symbols.h"

struct db;
struct store_ops;

struct db_options {
	const char *dir; /* created; locked by the server through dir/lock (db_open takes it) */
	struct fs *fs; /* NULL: fs_posix */
	int64_t window_ns; /* of one head; default 2h */
	int64_t retention_ns; /* default 15d; 0: no limit */
	uint64_t retention_bytes; /* 0: no limit */
	uint64_t free_bytes_reserve; /* ingest stops below; default 256 MiB */
	int64_t too_old_ns; /* older appends are refused; default 1h before the window's start */
	uint64_t series_max; /* default 1 M */
	uint32_t nodes_max; /* per partition; default 4 M */
	uint32_t strings_max; /* per partition; default 1 M */
	uint32_t label_sets_max; /* per partition; default 65536: further ones fold into
				    __overflow__ */
	uint64_t partition_bytes_max; /* symbol memory of one; default 512 MiB */
	bool read_only; /* no lock, no writes: for epitool */
	const struct store_ops *store; /* NULL: LevelDB; tests have one that fails (tsdb/store.h) */
};

void db_options_default(struct db_options *o);
/* ERR_UNAVAILABLE "data directory DIR is locked by another process". */
MUST_CHECK enum err_code db_open(const struct db_options *o, struct db **out, struct err *err);
/* Commits what was appended, answers every acknowledgement, and closes. */
void db_close(struct db *db);

/* ---- writing ---- */

struct db_append {
	struct labels labels; /* with __name__ = the profile's name; sorted */
	int64_t ts_ns; /* the server's time at the end of the scrape */
	int64_t interval_ns; /* between scrapes: a gauge's weight, and the age limit of a delta
				base; > 0 */
	const struct pprof *profile;
	const enum value_kind *kinds; /* one per type */
	bool convert; /* cumulative columns to deltas (scrapes); else they are kept as KIND_DELTA
			 (ingest) */
};

struct db_append_stats {
	uint32_t samples; /* stored, zeros dropped */
	bool first; /* no usable delta base: cumulative columns are zero */
	bool overflow; /* some label sets were folded into __overflow__ */
};

typedef void (*db_acked_fn)(void *ctx, enum err_code rc, const struct err *err);

/*
 * Returns once the row is encoded and queued; acked is then called exactly once, after its group's
 * sync. Where an error is returned acked is not called. Nothing of *a is used after the return.
 * Blocks while the queue is full. Appending the same series and time again replaces the row.
 */
MUST_CHECK enum err_code db_append(struct db *db, const struct db_append *a,
	struct db_append_stats *stats, db_acked_fn acked, void *ctx, struct err *err);

enum db_state {
	DB_READY,
	DB_FULL,
	DB_FAILED
}; /* FULL: free space below the reserve; FAILED: reopening after an error */
enum db_state db_state(struct db *db, struct err *why);

/* ---- reading ---- */

struct db_querier;

struct db_series {
	uint32_t id;
	struct labels labels; /* with __name__ */
	struct partition *partition;
};

/* A profile type: the 6 parts of its name. Strings live as long as the querier or arena they came
 * from. */
struct profile_type {
	struct str name, sample_type, sample_unit, period_type, period_unit;
	bool delta;
};
void profile_type_print(struct buf *out, const struct profile_type *t); /* a:b:c:d:e[:delta] */

/* (min, max] bounds what select may return. cancel: checked in long loops, gives ERR_CANCELED; may
 * be NULL. */
MUST_CHECK enum err_code db_querier_open(struct db *db, int64_t min_ns, int64_t max_ns,
	const atomic_bool *cancel, struct db_querier **out, struct err *err);
void db_querier_close(struct db_querier *q);

/*
 * Series with rows in the querier's window, ascending by labels. A matcher whose name is no label
 * of a series is not tested against it: it is about its samples' labels, and the caller tests those
 * (promql/select.c); only where the partition has no such sample label at all is the value ""
 * tested here.
 */
MUST_CHECK enum err_code db_select(struct db_querier *q, const struct matcher *m, size_t n,
	struct arena *a, struct db_series **out, size_t *out_n, struct err *err);
/* Types that rows of this series in the window have. */
MUST_CHECK enum err_code db_series_types(struct db_querier *q, const struct db_series *s,
	struct arena *a, struct profile_type **out, size_t *n, struct err *err);

struct sum_stats {
	uint64_t rows; /* profiles added */
	uint64_t samples;
	int64_t start_ns; /* smallest ts - interval */
	int64_t end_ns; /* largest ts */
	int64_t time_nanos; /* smallest profile time, 0 ones left out */
	int64_t duration_ns; /* sum of the profiles' durations */
	int64_t period; /* largest */
	__int128 total; /* sum of value (delta) or value x interval_ns (gauge) */
	uint32_t *headers; /* distinct header ids seen, in the arena */
	uint32_t headers_n;
};

enum sum_pick {
	SUM_WINDOW, /* all rows in (min, max] */
	SUM_LAST, /* only the latest of them; a gauge counts with weight 1 */
};

/*
 * Adds the column `type` of a series' rows in (min, max] to acc, and to *stats (which the caller
 * zeroes before the first). Gauges are weighted by their interval in ns (acc has ACCUM_WEIGHTED
 * then). acc may be NULL: totals only, which reads no samples. Rows without the type are passed
 * over.
 */
MUST_CHECK enum err_code db_sum(struct db_querier *q, const struct db_series *s,
	const struct profile_type *type, int64_t min_ns, int64_t max_ns, enum sum_pick pick,
	struct accum *acc, struct arena *a, struct sum_stats *stats, struct err *err);

/* One row, decoded; arrays belong to the iterator until its next step. */
struct db_row {
	int64_t ts_ns, interval_ns;
	int64_t time_nanos, duration_nanos, period;
	uint32_t header;
	size_t n;
	const uint32_t *stacks, *label_sets; /* ascending by (stack, label set) */
	const int64_t *values; /* column c of entry i: values[c * n + i] */
	const int64_t *totals; /* per column */
};

struct db_rows;
MUST_CHECK enum err_code db_rows_open(struct db_querier *q, const struct db_series *s,
	int64_t min_ns, int64_t max_ns, struct db_rows **out, struct err *err);
/* ERR_NOT_FOUND after the last. */
MUST_CHECK enum err_code db_rows_next(
	struct db_rows *r, const struct db_row **out, struct err *err);
void db_rows_close(struct db_rows *r);

/* A row as the profile that was scraped (cumulative columns as deltas). */
MUST_CHECK enum err_code db_row_profile(const struct db_series *s, const struct db_row *row,
	struct arena *a, struct pprof **out, struct err *err);

/* Messages about damage met while reading: for the answer's warnings. */
const struct str *db_querier_warnings(const struct db_querier *q, size_t *n);

/* ---- names, for completion and the API; all sorted, in the arena ---- */

MUST_CHECK enum err_code db_label_names(struct db_querier *q, const struct matcher *m, size_t n,
	struct arena *a, struct str **out, size_t *out_n, struct err *err);
MUST_CHECK enum err_code db_label_values(struct db_querier *q, struct str name,
	const struct matcher *m, size_t n, struct arena *a, struct str **out, size_t *out_n,
	struct err *err);
MUST_CHECK enum err_code db_profile_types(struct db_querier *q, struct arena *a,
	struct profile_type **out, size_t *out_n, struct err *err);

struct db_status {
	uint64_t series, partitions, nodes, strings, symbol_bytes, windows, disk_bytes;
	int64_t min_ns, max_ns; /* of stored rows; 0 when none */
	uint64_t rows, samples; /* appended since start */
};
void db_status(struct db *db, struct db_status *out);

#endif
