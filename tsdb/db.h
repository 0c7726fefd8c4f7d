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
#include "tsdb/catalog/losses.h"
#include "tsdb/columns/accum.h"
#include "tsdb/symbols/symbols.h"

struct db;
struct store_ops;

struct db_options {
	const char *dir; /* created; locked by the server through dir/lock (db_open takes it) */
	struct fs *fs; /* NULL: fs_posix */
	int64_t window_ns; /* of one head; default 2h */
	int64_t block_max_ns; /* longest block; 0: a tenth of the retention, at most 31d */
	int64_t retention_ns; /* default 15d; 0: no limit */
	int64_t raw_retention_ns; /* raw rows of blocks older than this go, rollups stay; 0: never
							   */
	uint64_t retention_bytes; /* 0: no limit */
	uint64_t free_bytes_reserve; /* ingest stops below; default 256 MiB */
	int64_t too_old_ns; /* older appends are refused; default 1h before the window's start */
	uint64_t series_max; /* default 1 M */
	uint32_t nodes_max; /* per partition; default 4 M */
	uint32_t strings_max; /* per partition; default 1 M */
	uint32_t label_sets_max; /* per partition; default 65536: further ones fold into
					__overflow__ */
	uint64_t partition_bytes_max; /* symbol memory of one; default 512 MiB */
	uint64_t symbols_bytes; /* budget of all symbols in memory; default 128 MiB: beyond it what
				   nobody uses is let go, and wasteful partitions begin an epoch */
	uint64_t cache_bytes; /* pages of all stores and tables; default 16 MiB */
	bool no_compaction; /* closed windows stay in the head: for tests */
	bool read_only; /* no lock, no writes: for epitool */
	const struct store_ops
		*store; /* NULL: LevelDB; tests have one that fails (tsdb/store/store.h) */
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
	int64_t gap_max_ns; /* 0: the interval is known. Else it is the time since the series' row
				   before, at most this; interval_ns where there is none */
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
 * Blocks while the queue is full. The same series and time again is ERR_EXISTS, which names both;
 * unless it is the same row, byte for byte, and not to be converted: then it is acknowledged at
 * once. A time of which rows of the series were deleted is ERR_INVALID.
 */
MUST_CHECK enum err_code db_append(struct db *db, const struct db_append *a,
	struct db_append_stats *stats, db_acked_fn acked, void *ctx, struct err *err);

/* ---- numeric series ---- */

/*
 * A value of a numeric series: `up`, ALERTS, recorded costs. Each bit of the value is kept; the NaN
 * NUMBER_STALE_BITS (tsdb/columns/number_chunk.h) says that the series ends, as in Prometheus.
 */
struct db_number {
	struct labels labels; /* with __name__; sorted */
	int64_t ts_ns; /* cut to milliseconds it costs least */
	double value;
};

/*
 * All of them or none, under one acknowledgement, as db_append; the same series and time again is
 * ERR_EXISTS where the value is another. A name is of profiles or of numbers, and series of one
 * kind refuse the other: ERR_INVALID names it. Values of a batch may fall into several windows;
 * should one window's commit fail the whole batch is answered with the error, and may be appended
 * again. n 0: acknowledged at once.
 */
MUST_CHECK enum err_code db_append_numbers(struct db *db, const struct db_number *v, size_t n,
	db_acked_fn acked, void *ctx, struct err *err);

enum db_state {
	DB_READY,
	DB_FULL,
	DB_FAILED
}; /* FULL: free space below the reserve; FAILED: reopening after an error */
enum db_state db_state(struct db *db, struct err *why);

/* ---- reading ---- */

struct db_querier;

/*
 * A series as far as its stacks have ids of one partition. A series whose window spans an epoch's
 * change is there once per epoch, with equal labels, neighbours in the list, the newest first (by
 * when epochs began: a row that came late is in the epoch of its coming).
 */
struct db_series {
	struct labels labels; /* with __name__; they live as long as querier and arena both do */
	struct partition *partition; /* pinned by the querier; NULL: numeric */
	bool numeric; /* for db_numbers; else for db_sum and db_rows */
	const struct series_place *places; /* where its rows are (tsdb/catalog/db_internal.h) */
	size_t places_n;
	const struct db_series *other; /* the same labels in another epoch, round about; or NULL */
};
/* What one that is selected takes of the arena at least; labels of a block's are beside it. */
#define DB_SERIES_BYTES (sizeof(struct db_series) + 2 * sizeof(uint32_t))

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
 * Another reader of the same state, for another thread: what the querier selected can be summed
 * through it. It ends, by db_querier_close, before the querier; its warnings and infos are its own.
 */
MUST_CHECK enum err_code db_querier_fork(
	struct db_querier *q, struct db_querier **out, struct err *err);
/*
 * Windows will be asked for one after the other, and where one ends another begins: what is read of
 * chunks there serves both, 4 MiB of it. Also of forks that are made afterwards.
 */
void db_querier_in_steps(struct db_querier *q);
/* The infos of a fork become the querier's. */
void db_querier_join(struct db_querier *q, const struct db_querier *fork);
/* Times inside (min, max] at which what is read falls apart, ascending: at most n. */
size_t db_querier_cuts(
	const struct db_querier *q, int64_t min_ns, int64_t max_ns, int64_t *out, size_t n);

/*
 * Series with rows in the querier's window, ascending by labels. A matcher tests the series' label
 * where the series has one, else the label of each of its samples, and a missing one is "". So a
 * series that lacks the label is out only where the matcher does not accept "" and no samples of
 * its job, in whatever epoch the window touches, have it: all epochs of a series are there, or
 * none. Else its samples are the caller's to test (promql/select.c). Afterwards names of the
 * partitions are readable (strings, headers, label sets); stacks are once db_sum or db_rows gave
 * ids.
 */
MUST_CHECK enum err_code db_select(struct db_querier *q, const struct matcher *m, size_t n,
	struct arena *a, struct db_series **out, size_t *out_n, struct err *err);
/* A header of its rows, SYM_NONE: none is known. No rows are read where all have the same types. */
MUST_CHECK enum err_code db_series_header(
	struct db_querier *q, const struct db_series *s, uint32_t *header, struct err *err);
enum db_kinds {
	DB_PROFILES = 1,
	DB_NUMBERS = 2,
};
/* db_select gives both; here one kind alone is asked for, or both. */
MUST_CHECK enum err_code db_select_kinds(struct db_querier *q, unsigned kinds,
	const struct matcher *m, size_t n, struct arena *a, struct db_series **out, size_t *out_n,
	struct err *err);
/*
 * ERR_LIMIT where they are more than series_max: *about so many then, else 0. That is known soon,
 * from indexes and from some of the series. Those of several epochs count one by one, and each
 * window and block is counted by itself. series_max 0: no limit.
 */
MUST_CHECK enum err_code db_select_within(struct db_querier *q, unsigned kinds,
	const struct matcher *m, size_t n, size_t series_max, size_t *about, struct arena *a,
	struct db_series **out, size_t *out_n, struct err *err);

/*
 * The same series one by one, in no order, and nothing of them is kept: one comes again for each
 * epoch, window and block that it is in, and with its rows in that alone.
 */
struct db_visitor {
	/* NULL: all are. Else those that are not are passed over before it is looked for their
	 * rows. */
	bool (*wanted)(void *ctx, struct labels labels);
	struct str sample_label; /* not empty: where samples of its job have it, it is wanted */
	/* *s and its labels are gone after the return. What is not ERR_OK ends the visit. */
	enum err_code (*take)(void *ctx, const struct db_series *s, struct err *err);
	void *ctx;
};
MUST_CHECK enum err_code db_visit_series(struct db_querier *q, unsigned kinds,
	const struct matcher *m, size_t n, const struct db_visitor *v, struct err *err);

/* Values of a numeric series in (min, max], ascending, in the arena. */
MUST_CHECK enum err_code db_numbers(struct db_querier *q, const struct db_series *s, int64_t min_ns,
	int64_t max_ns, struct arena *a, int64_t **ts_ns, double **values, size_t *n, struct err *err);
/* Types that rows of this series in the window have. Their strings live as its labels do. */
MUST_CHECK enum err_code db_series_types(struct db_querier *q, const struct db_series *s,
	struct arena *a, struct profile_type **out, size_t *n, struct err *err);

struct row_total {
	int64_t total, ts_ns;
};

struct sum_stats {
	uint64_t rows; /* profiles added */
	uint64_t samples;
	int64_t start_ns; /* smallest ts - interval */
	int64_t end_ns; /* largest ts */
	int64_t time_nanos; /* smallest profile time, 0 ones left out */
	int64_t duration_ns; /* sum of the profiles' durations */
	int64_t period; /* largest */
	__int128 total; /* sum of value (delta) or value x interval_ns (gauge) */
	__int128 elapsed_ns; /* sum of intervals */
	__int128 profiled_ns; /* sum of durations; of a row that says none, its interval */
	struct row_total min, max; /* of rows' plain totals; the earliest of equal ones */
	uint32_t *headers; /* distinct header ids seen, in the arena */
	uint32_t headers_n;
	uint64_t read; /* cells decoded: what the query cost, whatever it stood for */
};

/* Of two sums over windows that follow each other; headers are in the arena. */
MUST_CHECK enum err_code sum_stats_merge(
	struct sum_stats *into, const struct sum_stats *from, struct arena *a, struct err *err);

enum sum_pick {
	SUM_WINDOW, /* all rows in (min, max] */
	SUM_LAST, /* of each series only the latest of them; a gauge counts with weight 1 */
};

/*
 * Adds the column `type` of the series' rows in (min, max] to acc, and to *stats (which the caller
 * zeroes before the first). All series are of acc's partition. Gauges are weighted by their
 * interval in ns (acc has ACCUM_WEIGHTED then). acc may be NULL: totals only, which reads no
 * samples. Rows without the type are passed over. Asked for many series at once, sums over whole
 * groups and steps are taken from rollups; the result is the same to the last bit.
 */
MUST_CHECK enum err_code db_sum(struct db_querier *q, const struct db_series *const *series,
	size_t n, const struct profile_type *type, int64_t min_ns, int64_t max_ns, enum sum_pick pick,
	struct accum *acc, struct arena *a, struct sum_stats *stats, struct err *err);

/*
 * Costs by the names of functions: flat, of stacks that end in one; cum, of stacks it is in, each
 * once. Of frames without a name what counts is their mapping's file.
 */
struct function_sum {
	uint32_t name; /* string */
	bool unnamed; /* name is the mapping's file */
	int64_t flat, cum;
};
struct function_sums;
MUST_CHECK enum err_code function_sums_open(struct function_sums **out, struct err *err);
void function_sums_close(struct function_sums *f); /* NULL is fine */
size_t function_sums_bytes(const struct function_sums *f);
MUST_CHECK enum err_code function_sums_merge(
	struct function_sums *into, const struct function_sums *from, struct err *err);
/* Ascending by (name, unnamed), in the arena. *total: of all stacks, the empty one too. */
MUST_CHECK enum err_code function_sums_list(struct function_sums *f, struct arena *a,
	const struct function_sum **out, size_t *n, int64_t *total, struct err *err);
/*
 * As db_sum of all rows in (min, max]; whole steps of whole groups go into f instead of acc where
 * there are totals of functions, and then no symbols of stacks are read for them. What goes into f
 * has no negative cell and no header with drop_frames. Only for types that are deltas.
 */
MUST_CHECK enum err_code db_sum_functions(struct db_querier *q,
	const struct db_series *const *series, size_t n, const struct profile_type *type,
	int64_t min_ns, int64_t max_ns, struct function_sums *f, struct accum *acc, struct arena *a,
	struct sum_stats *stats, struct err *err);

/*
 * What a sum would read, about: from counts and indexes, nothing is decoded. A head window knows
 * how many rows it has, not whose: each of its series counts as their mean.
 */
#define DB_STEPS 2u /* of sums that are kept: 1h, 1d */
struct sum_estimate {
	uint64_t rows; /* profiles, or values of numeric series, that it stands for */
	uint64_t samples; /* to be decoded, as sum_stats.read */
	uint64_t bytes; /* of what is read */
	uint64_t head_rows, chunks; /* one by one */
	uint64_t series_sums[DB_STEPS], group_sums[DB_STEPS], function_sums[DB_STEPS];
};
enum sum_wish {
	SUM_CELLS, /* db_sum */
	SUM_TOTALS, /* db_sum without an accumulator */
	SUM_FUNCTIONS, /* db_sum_functions */
};
/* Adds to *out. Series as for db_sum, or numeric ones. */
MUST_CHECK enum err_code db_estimate(struct db_querier *q, const struct db_series *const *series,
	size_t n, const struct profile_type *type, int64_t min_ns, int64_t max_ns, enum sum_pick pick,
	enum sum_wish wish, struct sum_estimate *out, struct err *err);

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

/* Messages about damage met while reading, for the answer's warnings; and about what an answer
 * stands on (raw rows gone by retention, so that a window was taken in whole steps), for its infos.
 */
const struct str *db_querier_warnings(const struct db_querier *q, size_t *n);
const struct str *db_querier_infos(const struct db_querier *q, size_t *n);

/*
 * ---- names, for completion and the API; all sorted, in the arena ----
 *
 * Without matchers they are those of whole windows and blocks that the querier's time touches: no
 * series is visited. With matchers they are of what db_select gives. With a limit they are those
 * that sort first, and one more than it if there are more; what is kept meanwhile is bounded by it.
 */

MUST_CHECK enum err_code db_label_names(struct db_querier *q, const struct matcher *m, size_t n,
	uint64_t limit, struct arena *a, struct str **out, size_t *out_n, struct err *err);
MUST_CHECK enum err_code db_label_values(struct db_querier *q, struct str name,
	const struct matcher *m, size_t n, uint64_t limit, struct arena *a, struct str **out,
	size_t *out_n, struct err *err);
MUST_CHECK enum err_code db_profile_types(struct db_querier *q, struct arena *a,
	struct profile_type **out, size_t *out_n, struct err *err);

/* ---- administration ---- */

/*
 * Labels that tell instances of one service apart, by job; jobs not named have "instance" and
 * "pod". Rollups are kept over all series that differ in them only. Copied.
 */
struct db_job_labels {
	struct str job;
	const struct str *labels;
	size_t labels_n;
};
MUST_CHECK enum err_code db_set_instance_labels(
	struct db *db, const struct db_job_labels *v, size_t n, struct err *err);
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

struct db_block_status {
	char ulid[27]; /* "" for a head window */
	int64_t min_ns, max_ns;
	uint32_t level;
	uint64_t series, rows, samples, numbers, bytes;
	bool raw, damaged;
};
/* Blocks and head windows, oldest first. */
MUST_CHECK enum err_code db_list(
	struct db *db, struct arena *a, struct db_block_status **out, size_t *n, struct err *err);

/*
 * What was found to be lost, in the order in which it was found (tsdb/catalog/losses.h); in the
 * arena. Each querier whose time touches one that is not accepted says so in its warnings.
 */
MUST_CHECK enum err_code db_losses(
	struct db *db, struct arena *a, struct loss **out, size_t *n, struct err *err);
/* A person knows of them: by number; n 0: all. ERR_NOT_FOUND names the number. */
MUST_CHECK enum err_code db_accept_losses(
	struct db *db, const uint64_t *numbers, size_t n, size_t *accepted, struct err *err);

/*
 * Reads every record of the head's windows and compares their number with what was acknowledged:
 * what is missing is added to the losses. For tools, on a database that is open for reading only.
 */
MUST_CHECK enum err_code db_verify_head(struct db *db, struct err *err);

struct db_status {
	uint64_t series; /* in the head */
	uint64_t partitions, nodes, strings, symbol_bytes; /* in memory */
	uint64_t windows, blocks, disk_bytes;
	uint64_t delta_bytes, index_bytes; /* memory of delta bases, of the head's series index */
	int64_t min_ns, max_ns; /* of stored rows; 0 when none */
	uint64_t rows, samples, numbers; /* appended since start */
	uint64_t losses; /* that nobody has accepted */
};
void db_status(struct db *db, struct db_status *out);

#endif
