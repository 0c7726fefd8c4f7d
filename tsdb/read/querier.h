/*
 * Queriers: reading a database. A querier pins what it needs and sees one consistent state.
 *
 * Units:   nanoseconds since 1970; windows are half-open (min, max].
 * Errors:  ERR_CANCELED, ERR_LIMIT, ERR_NOMEM. Damaged or missing data is a warning of the querier,
 *          not an error.
 * Threads: any number of queriers; a querier and its results belong to one thread at a time.
 */
#ifndef TSDB_READ_QUERIER_H
#define TSDB_READ_QUERIER_H

#include <stdatomic.h>

#include "base/labels.h"
#include "proto/pprof.h"
#include "tsdb/columns/accum.h"
#include "tsdb/read/cover.h"
#include "tsdb/symbols/profile_type.h"
#include "tsdb/symbols/symbols.h"

struct db;
struct db_querier;

/*
 * The rows of one series whose stacks have ids of one partition. If the querier's time spans
 * several epochs the series is listed once per epoch, with equal labels, next to each other, the
 * newest epoch first (a late row is in the epoch in which it was appended).
 */
struct db_series {
	struct labels labels; /* with __name__; they live as long as querier and arena both do */
	struct partition *partition; /* pinned by the querier; NULL: numeric */
	bool numeric; /* for db_numbers; else for db_sum and db_rows */
	uint32_t twin; /* suspect of a union (twins.h): members may have rows of one time; 0: no */
	const struct series_place *places; /* where its rows are */
	size_t places_n;
	const struct db_series *other; /* the same labels in another epoch, in a ring; or NULL */
};
/* The least arena memory of a selected series; labels of a block's series come on top. */
#define DB_SERIES_BYTES (sizeof(struct db_series) + 2 * sizeof(uint32_t))

/* (min, max] bounds what select may return. cancel: checked in long loops, gives ERR_CANCELED; may
 * be NULL. */
MUST_CHECK enum err_code db_querier_open(struct db *db, int64_t min_ns, int64_t max_ns,
	const atomic_bool *cancel, struct db_querier **out, struct err *err);
/*
 * For a reader who may not see everything. All functions of the querier give only series that the
 * limits admit; limits test the series' own labels. Lists of label names and values then leave out
 * labels of samples, which are stored per job, not per series. Rows and sums still have them.
 * limits NULL: no limits. The limits must outlive the querier.
 */
MUST_CHECK enum err_code db_querier_open_limited(struct db *db, const struct label_limits *limits,
	int64_t min_ns, int64_t max_ns, const atomic_bool *cancel, struct db_querier **out,
	struct err *err);
void db_querier_close(struct db_querier *q);

/*
 * Another reader of the same state, for another thread: it can sum series that the querier
 * selected. Close it with db_querier_close before the querier. It has separate warnings and infos.
 * A fork cannot be forked.
 */
MUST_CHECK enum err_code db_querier_fork(
	struct db_querier *q, struct db_querier **out, struct err *err);
/*
 * The caller will ask for windows one after the other: up to 8 MiB of what chunks say of their rows
 * are kept, so that totals find them again. adjoin: windows begin where others ended, and up to
 * 4 MiB of decoded chunk parts are kept for the next one. Later forks do the same.
 */
void db_querier_in_steps(struct db_querier *q, bool adjoin);
/* Copies a fork's infos to the querier. */
void db_querier_join(struct db_querier *q, const struct db_querier *fork);
/*
 * Ends of windows and blocks inside (min, max), ascending: at most n. levels: only cuts in the
 * region of whole hours (cover.h), where a scrape counts the same in a part as in the whole window.
 */
size_t db_querier_cuts(const struct db_querier *q, int64_t min_ns, int64_t max_ns, bool levels,
	int64_t *out, size_t n);

/*
 * Series with rows in the querier's window, ascending by labels. A matcher tests the series' label
 * where the series has one, else the label of each of its samples, and a missing one is "". So a
 * series without the label is left out only if the matcher does not accept "" and no sample of its
 * job has the label, in any epoch that the window touches. So either all epochs of a series are
 * there, or none. If the series is there, the caller tests its samples (promql/choose.c). Marks of
 * time lines (proto/annotation.h) are there only if a matcher of __name__ lists their name.
 * Afterwards names of the partitions are readable (strings, headers, label sets); stacks are once
 * db_sum or db_rows gave ids.
 */
MUST_CHECK enum err_code db_select(struct db_querier *q, const struct matcher *m, size_t n,
	struct arena *a, struct db_series **out, size_t *out_n, struct err *err);
/* A header of the series' rows; SYM_NONE: none is known. Rows are read only if their types
 * differ. */
MUST_CHECK enum err_code db_series_header(
	struct db_querier *q, const struct db_series *s, uint32_t *header, struct err *err);
enum db_kinds {
	DB_PROFILES = 1,
	DB_NUMBERS = 2,
};
/* As db_select, which gives both kinds, but for the given kinds only. */
MUST_CHECK enum err_code db_select_kinds(struct db_querier *q, unsigned kinds,
	const struct matcher *m, size_t n, struct arena *a, struct db_series **out, size_t *out_n,
	struct err *err);
/*
 * ERR_LIMIT if there are more than series_max; *about is then an estimate of their number, else 0.
 * The check is fast: it reads indexes and some of the series. Each epoch of a series counts, and
 * each window and block is counted by itself. series_max 0: no limit.
 */
MUST_CHECK enum err_code db_select_within(struct db_querier *q, unsigned kinds,
	const struct matcher *m, size_t n, size_t series_max, size_t *about, struct arena *a,
	struct db_series **out, size_t *out_n, struct err *err);

/*
 * Visits the same series one by one, in no order, and keeps nothing. A series comes once for each
 * epoch, window and block that it is in, with only its rows there.
 */
struct db_visitor {
	/* False: the series is passed over before its rows are searched, unless its samples have
	 * sample_label. NULL: no series is. */
	bool (*wanted)(void *ctx, struct labels labels);
	struct str sample_label; /* if samples of its job have this label, a series passes anyway */
	bool blocks_only; /* series of head windows are left out */
	/* A row that waits for its sync, or was stored after the querier was opened, may count. Then
	 * rows of head windows are searched only where indexes do not tell. */
	bool early;
	/* *s and its labels are valid until the return. An error ends the visit. */
	enum err_code (*take)(void *ctx, const struct db_series *s, struct err *err);
	void *ctx;
};
MUST_CHECK enum err_code db_visit_series(struct db_querier *q, unsigned kinds,
	const struct matcher *m, size_t n, const struct db_visitor *v, struct err *err);

/*
 * Finds since when series of profiles with a label exist; labels of samples do not count. It reads
 * indexes and no symbols. Rows of blocks are read only where a deletion or the querier's begin may
 * hide the first row. Windows and blocks come in the order of time; in each, series come in no
 * order, with the time of the first row there. Series that differ in other labels than `kept` may
 * come as one, without the others. Marks of time lines are left out.
 */
struct db_firsts {
	struct str label;
	const struct str *kept; /* in order, `label` among them; the same in each visit */
	size_t kept_n; /* at most BLOCK_FIRSTS_KEPT_MAX */
	/* The time of a row of this series that the caller has already: later first rows are not
	 * wanted. INT64_MAX: it has none. */
	int64_t (*known)(void *ctx, struct labels labels);
	/* Gets the labels of the last call of `known`. They are valid until the return. An error ends
	 * the visit. */
	enum err_code (*take)(void *ctx, struct labels labels, int64_t first_ns, struct err *err);
	void *ctx;
};
MUST_CHECK enum err_code db_visit_firsts(
	struct db_querier *q, const struct db_firsts *v, struct err *err);

/*
 * Visits all addresses in mappings that were stored without lines, in each partition that has
 * profiles in the querier's time, one partition after the other. An error of take ends the visit.
 */
typedef enum err_code (*db_bare_fn)(
	void *ctx, const struct partition *p, const struct sym_location *l, struct err *err);
MUST_CHECK enum err_code db_visit_bare(
	struct db_querier *q, db_bare_fn take, void *ctx, struct err *err);

/*
 * Counts of the series in head windows by their labels, from indexes: no series is visited, and
 * rows are searched only where the querier's time cuts a window. A series counts once, however many
 * windows and selections it is in. A row that waits for its sync may count already.
 */
struct db_counts;
MUST_CHECK enum err_code db_counts_open(
	struct db_querier *q, struct db_counts **out, struct err *err);
void db_counts_close(struct db_counts *c); /* NULL is fine; before the querier */
/* Adds the series of head windows that db_select gives. */
MUST_CHECK enum err_code db_counts_add(
	struct db_counts *c, const struct matcher *m, size_t n, struct err *err);
/*
 * With an empty name: calls fn with each label name, the number of series that have it and the
 * number of its values. With a name: calls fn with each value of that label, the number of series
 * that have it, and 0. fn returns false to stop, and must not ask the database for anything.
 */
typedef bool (*db_count_fn)(void *ctx, struct str text, uint32_t series, uint32_t values);
MUST_CHECK enum err_code db_counts_each(
	struct db_counts *c, struct str name, db_count_fn fn, void *ctx, struct err *err);
/* True if a series with exactly these labels was added; with this label among its labels. */
bool db_counts_has(struct db_counts *c, struct labels labels);
bool db_counts_has_label(struct db_counts *c, struct label label);

/* True if the querier reads blocks too, so there may be more series than head windows have. */
bool db_querier_has_blocks(const struct db_querier *q);

/* Values of a numeric series in (min, max], ascending, in the arena. */
MUST_CHECK enum err_code db_numbers(struct db_querier *q, const struct db_series *s, int64_t min_ns,
	int64_t max_ns, struct arena *a, int64_t **ts_ns, double **values, size_t *n, struct err *err);
/* The types that the series' rows in the window have. The strings live as long as the series'
 * labels. */
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
	__int128 total; /* sum of values; of a gauge, sum of value x the time that its row counts */
	__int128 elapsed_ns; /* sum of intervals; of a gauge, of the times that its rows count */
	struct cover counted; /* SUM_WINDOW of a gauge: which times the rows count; in the arena */
	__int128 profiled_ns; /* sum of durations; a row without one adds its interval */
	struct row_total min, max; /* of rows' plain totals; the earliest of equal ones */
	uint32_t *headers; /* distinct header ids seen, in the arena */
	uint32_t headers_n;
	uint64_t read; /* cells decoded: the cost of the query */
};

/* Joins the stats of two sums over windows that follow each other, or over other series; headers
 * are in the arena. */
MUST_CHECK enum err_code sum_stats_merge(
	struct sum_stats *into, const struct sum_stats *from, struct arena *a, struct err *err);

enum sum_pick {
	SUM_WINDOW, /* all rows in (min, max]; gauges count time in the window (cover.h) */
	SUM_EACH, /* all rows; a gauge's row counts its interval, also before the window */
	SUM_FACTS, /* as SUM_WINDOW, but only the stats are used: twins are not noted */
	SUM_LAST, /* only the latest row of each series; a gauge has weight 1 */
};

/*
 * Adds the column `type` of the series' rows in (min, max] to acc, and to *stats (which the caller
 * zeroes before the first). All series are of acc's partition. Values of gauges are multiplied by
 * the nanoseconds of the window that their row counts (tsdb/columns/spans.h, cover.h); acc needs
 * ACCUM_WEIGHTED then. If the scrapes of a series are in several epochs or members, each row counts
 * as if all were in one. acc may be NULL: totals only, which reads no samples. Rows without the
 * type are passed over. If all series of a group are in the call, sums of whole groups and steps
 * come from rollups; the result is the same to the last bit.
 */
MUST_CHECK enum err_code db_sum(struct db_querier *q, const struct db_series *const *series,
	size_t n, const struct profile_type *type, int64_t min_ns, int64_t max_ns, enum sum_pick pick,
	struct accum *acc, struct arena *a, struct sum_stats *stats, struct err *err);
/* SUM_WINDOW over one of the parts that db_querier_cuts gives: the sums over all parts add up to
 * db_sum over the window. */
struct sum_part_of {
	int64_t min_ns, max_ns; /* the part */
	int64_t of_min_ns, of_max_ns; /* the window */
};
MUST_CHECK enum err_code db_sum_part(struct db_querier *q, const struct db_series *const *series,
	size_t n, const struct profile_type *type, struct sum_part_of part, struct accum *acc,
	struct arena *a, struct sum_stats *stats, struct err *err);

/*
 * Tells the querier that the caller adds all rows of the series in (min, max] itself, as db_rows
 * gives them. Then warnings include their twins, as after db_sum.
 */
void db_querier_note_added(
	struct db_querier *q, const struct db_series *s, int64_t min_ns, int64_t max_ns);

/*
 * Costs by names of functions. flat: of stacks whose innermost frame is the function; cum: of
 * stacks that have it anywhere, each stack once. Frames without a name count under the file of
 * their mapping.
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
 * As db_sum of all rows in (min, max], but whole steps of whole groups go into f instead of acc if
 * they have totals of functions; no symbols of stacks are read for them. Records with a negative
 * cell or with a header that has drop_frames have no totals of functions; they go into acc. If
 * anything went into f, the stacks in acc are added to f at the end too, unless names say less than
 * stacks (sum_names.c). Only for types that are deltas.
 */
MUST_CHECK enum err_code db_sum_functions(struct db_querier *q,
	const struct db_series *const *series, size_t n, const struct profile_type *type,
	int64_t min_ns, int64_t max_ns, struct function_sums *f, struct accum *acc, struct arena *a,
	struct sum_stats *stats, struct err *err);

/* A sum among others: as db_sum with SUM_WINDOW, or db_sum_functions. */
struct db_sum_of {
	const struct db_series *const *series;
	size_t n;
	const struct profile_type *type; /* a delta */
	int64_t min_ns, max_ns;
	struct function_sums *functions; /* NULL: as db_sum */
	struct accum *acc; /* NULL: totals only; never NULL with `functions` */
	struct sum_stats *stats;
};
/* The same as all of them one after the other, but rows of head windows are read once for all, in
 * the order in which they are stored. After an error none of the sums is of use. */
MUST_CHECK enum err_code db_sum_together(
	struct db_querier *q, const struct db_sum_of *sums, size_t n, struct arena *a, struct err *err);

/*
 * Estimates what a sum would read from counts and indexes; nothing is decoded. A head window knows
 * only its total of rows, so each of its series counts as the mean.
 */
#define DB_STEPS 2u /* of sums that are kept: 1h, 1d */
struct sum_estimate {
	uint64_t rows; /* profiles or numeric values that are added */
	uint64_t samples; /* cells to decode, as sum_stats.read */
	uint64_t bytes; /* of what is read */
	uint64_t head_rows, chunks; /* read one by one */
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

/*
 * Announces a sum: blocks in a bucket start to read what it will need. Announce all coming sums of
 * one part before the next part, so that neighbouring bytes are read in one request.
 */
enum sum_part { SUM_NO_PART, SUM_RECORDS, SUM_STACKS, SUM_ROWS, SUM_PARTS };
bool db_querier_is_far(const struct db_querier *q); /* it has blocks in a bucket */
void db_sum_expect(struct db_querier *q, const struct db_series *const *series, size_t n,
	const struct profile_type *type, int64_t min_ns, int64_t max_ns, enum sum_wish wish,
	enum sum_part part);

/* One row, decoded; arrays belong to the iterator until its next step. */
struct db_row {
	int64_t ts_ns, interval_ns;
	int64_t time_nanos, duration_nanos, period;
	uint32_t header;
	size_t n;
	const uint32_t *stacks, *label_sets; /* ascending by (stack, label set) */
	const int64_t *values; /* column c of entry i: values[c * n + i] */
	const int64_t *totals; /* per column */
	/* Of db_links_open only: */
	const struct pprof_link *spans;
	const uint32_t *span_of; /* for each entry: an index of spans */
	uint64_t links_dropped; /* linked samples that were not stored: there were too many */
};

struct db_rows;
MUST_CHECK enum err_code db_rows_open(struct db_querier *q, const struct db_series *s,
	int64_t min_ns, int64_t max_ns, struct db_rows **out, struct err *err);
/*
 * Gives only the linked samples (columns/links.h) of rows: a stack and label set comes once for
 * each span, with the span's share of the values. Rows without linked samples are passed over;
 * totals are not set.
 */
MUST_CHECK enum err_code db_links_open(struct db_querier *q, const struct db_series *s,
	int64_t min_ns, int64_t max_ns, uint64_t read_max, struct db_rows **out, struct err *err);
/* Bytes of rows, chunks and links that were read. An iterator of db_links_open ends when they reach
 * read_max. */
uint64_t db_rows_read(const struct db_rows *r);
/* ERR_NOT_FOUND after the last. */
MUST_CHECK enum err_code db_rows_next(
	struct db_rows *r, const struct db_row **out, struct err *err);
void db_rows_close(struct db_rows *r);

/* Makes a profile from a row, as it was scraped (cumulative columns as deltas). */
MUST_CHECK enum err_code db_row_profile(const struct db_series *s, const struct db_row *row,
	struct arena *a, struct pprof **out, struct err *err);

/*
 * Messages for the answer. Warnings: damage found while reading, losses, blocks that cannot be
 * read, twins that were added (tsdb/union.h). An info is for example that a window was rounded to
 * whole steps because retention dropped the raw rows. Ask after all selections: warnings of the
 * member with recorded numbers are left out if no selection can have had one of its series.
 */
const struct str *db_querier_warnings(struct db_querier *q, size_t *n);
const struct str *db_querier_infos(const struct db_querier *q, size_t *n);

/*
 * ---- names, for completion and the API; all sorted, in the arena ----
 *
 * Without matchers they are those of all windows and blocks that the querier's time touches; no
 * series is visited. With matchers they are those of the series that db_select gives. With a limit
 * they are the first ones, and one more if there are more; memory is bounded by the limit.
 */

MUST_CHECK enum err_code db_label_names(struct db_querier *q, const struct matcher *m, size_t n,
	uint64_t limit, struct arena *a, struct str **out, size_t *out_n, struct err *err);
MUST_CHECK enum err_code db_label_values(struct db_querier *q, struct str name,
	const struct matcher *m, size_t n, uint64_t limit, struct arena *a, struct str **out,
	size_t *out_n, struct err *err);
MUST_CHECK enum err_code db_profile_types(struct db_querier *q, struct arena *a,
	struct profile_type **out, size_t *out_n, struct err *err);

#endif
