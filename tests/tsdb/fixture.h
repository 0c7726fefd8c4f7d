/*
 * Helpers for tests of the database: a temporary directory, profiles made by hand, appends that
 * wait for their acknowledgement, and rows read back.
 */
#ifndef TESTS_TSDB_FIXTURE_H
#define TESTS_TSDB_FIXTURE_H

#include "base/clock.h"
#include "proto/pprof.h"
#include "tsdb/db.h"

#define SEC NS_PER_S

struct fixture {
	char dir[64];
	struct db_options o;
	struct db *db;
	struct arena arena;
	struct err err;
};

bool fixture_open(struct fixture *f); /* a fresh directory, defaults, database open */
bool fixture_reopen(struct fixture *f); /* with f->o as it is now */
void fixture_close(struct fixture *f); /* removes the directory */
/* One maintenance: commits what waits, checks free space, retention and so on. */
void fixture_maintain(struct fixture *f);

/* {__name__="<name>", job="<job>", instance="<instance>"} in the arena; empty ones are left out. */
struct labels labels_of(struct arena *a, const char *name, const char *job, const char *instance);

/*
 * A profile by hand: sample_type "samples/count" (and more by types), one line of text per sample:
 * "main;work;leaf key=value 3 4" is a stack root first, then labels, then values.
 */
struct pprof *profile_of(struct arena *a, const char *const *types, const char *const *lines);

/*
 * A random profile, the same for the same seed: two types, up to 40 samples of stacks out of a pool
 * that the job's profiles share, a few with labels; some samples twice, some values negative or 0.
 * Some samples of every fourth are linked to spans.
 */
struct pprof *profile_random(struct arena *a, uint64_t seed);
/* Its samples as row_text prints them: what a row of it must say. */
void profile_samples_text(const struct pprof *p, struct buf *out);
/* The same of a row whose links were lost. */
void profile_bare_text(const struct pprof *p, struct buf *out);

/* Decodes bytes as served; the body must live as long. */
struct pprof *profile_read(struct arena *a, struct str body, struct err *err);

/* Appends and waits for the acknowledgement, whose code it returns. kinds NULL: all deltas. */
enum err_code append_wait(struct db *db, struct labels labels, int64_t ts_ns, int64_t interval_ns,
	const struct pprof *p, const enum value_kind *kinds, bool convert,
	struct db_append_stats *stats, struct err *err);
enum err_code append_this(
	struct db *db, const struct db_append *a, struct db_append_stats *stats, struct err *err);

/* ---- reading: all of it through db.h, here ---- */

/* Each row in (min, max] of each series, in no particular order; false of fn ends it. The querier's
 * warnings are added to *warnings. */
typedef bool (*row_fn)(void *ctx, const struct db_series *s, const struct db_row *row);
bool rows_each(struct db *db, int64_t min_ns, int64_t max_ns, row_fn fn, void *ctx,
	size_t *warnings, struct err *err);

/* Each value of each numeric series, likewise. */
typedef bool (*number_fn)(void *ctx, const struct db_series *s, int64_t ts_ns, double value);
bool numbers_each(struct db *db, int64_t min_ns, int64_t max_ns, number_fn fn, void *ctx,
	size_t *warnings, struct err *err);

/* The series' rows in (min, max] as text, one line per sample as in profile_of, with "@<s>" lines
 * before each; "warning: ..." lines behind them. */
bool rows_text(struct db *db, struct labels labels, int64_t min_ns, int64_t max_ns, struct buf *out,
	struct err *err);
/* One row as text, samples sorted; then its links, if it is from rows_each or rows_text: lines
 * "span <trace id> <span id> " and a sample, where the same one comes once for each span. */
void row_text(const struct db_series *s, const struct db_row *row, struct buf *out);

/*
 * Sums as text: of the series with these labels (NULL: of all), the column of delta type
 * "cpu/nanoseconds" that profile_random has over (min, max]: "rows N total N", then a line "stack
 * value" per stack that is not zero, sorted.
 */
bool sum_text(struct db *db, const struct labels *of, int64_t min_ns, int64_t max_ns,
	struct buf *out, size_t *warnings, struct err *err);

/* The sums that become such a text. */
struct sums {
	struct sums_line {
		char *stack;
		__int128 value;
	} * lines;
	size_t n, cap;
	uint64_t rows;
	__int128 total;
};
void sums_add_profile(struct sums *s, const struct pprof *p); /* its second column */
void sums_print(struct sums *s, struct buf *out); /* and forgets them */

/* ---- metrics ---- */

double metric_value(const char *name); /* without labels; 0 where there is none */

#endif
