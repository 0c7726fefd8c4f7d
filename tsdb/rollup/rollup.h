/*
 * Rollup: the sum of many rows of one series, or of all series of one group, over one step (an
 * hour, a day), exact.
 *
 * A rollup answers like the rows it was made of: cells (stack, label set) -> sum per profile type,
 * and all that struct sum_stats wants of them. Gauges are weighted by their intervals. Rollups of
 * one step made from disjoint rows add up to the rollup of all those rows, in any order, which is
 * how blocks are joined.
 *
 * A rollup may *count missed scrapes*: a gauge's row weighs twice its interval if one scrape before
 * it is missing (span_in_hour). Then it depends on the rows of a series in a whole hour, and only
 * rollups of whole hours, or of different series, add up to that of all rows.
 *
 * *Function totals* of a rollup: per type that is a delta and function name, flat and cum, as
 * flat() and cum() say without filters. Of frames without a name, what is counted is their
 * mapping's file.
 *
 * Units:     nanoseconds; a window is (start, end].
 * Errors:    ERR_CORRUPT from any bytes that were not made here; ERR_LIMIT (a sum exceeds 128
 *            bits); ERR_NOMEM.
 * Ownership: a view points into the bytes it was parsed from and into its own scratch.
 * Threads:   one at a time.
 * Source:    tsdb/FORMAT.md, "Rollups", with what each level costs and saves.
 */
#ifndef TSDB_ROLLUP_ROLLUP_H
#define TSDB_ROLLUP_ROLLUP_H

#include "tsdb/columns/chunk.h"
#include "tsdb/columns/spans.h"

struct partition;

/* The steps, finest first; each is a multiple of the one before. */
#define ROLLUP_LEVELS 2u
extern const int64_t rollup_step_ns[ROLLUP_LEVELS]; /* 1h, 1d */

#define ROLLUP_COLUMNS_MAX 256u

struct rollup_point {
	int64_t total, ts_ns; /* a row's total and its time */
};

/* One profile type of the rows. */
struct rollup_column {
	uint32_t header, column; /* a header that has the type, and where in it */
	bool gauge;
	uint64_t rows, samples;
	int64_t start_ns, end_ns; /* smallest ts - interval, largest ts */
	int64_t time_nanos; /* smallest, 0 ones left out */
	int64_t duration_ns; /* sum, saturating */
	__int128 elapsed_ns; /* sum of intervals; of a gauge with the missed scrapes that count */
	__int128 profiled_ns; /* sum of durations; of a row that says none, its interval */
	int64_t period; /* largest */
	__int128 total; /* of value (delta) or value x what its row weighs (gauge) */
	struct rollup_point min, max, last; /* of the rows' plain totals; earliest of equal ones */
	const uint32_t *headers; /* distinct ones of these rows, ascending */
	uint32_t headers_n;
};

/* ---- making ---- */

struct rollup_builder;

/* All ids are of partition p, whose symbols of the rows are loaded. */
MUST_CHECK enum err_code rollup_builder_open(
	struct partition *p, struct rollup_builder **out, struct err *err);
void rollup_builder_close(struct rollup_builder *b); /* NULL is fine */
void rollup_builder_clear(struct rollup_builder *b); /* to make another one */
bool rollup_builder_empty(const struct rollup_builder *b);
/* Rows [from, to) of a chunk. missed: missed scrapes count; all rows are of one series then, and
 * ascend from call to call. */
MUST_CHECK enum err_code rollup_builder_add_chunk(struct rollup_builder *b, struct chunk *c,
	uint32_t from, uint32_t to, bool missed, struct err *err);
struct rollup_view;
/* Another rollup of the same partition. Missed scrapes count if they do in any that was added. */
MUST_CHECK enum err_code rollup_builder_add(
	struct rollup_builder *b, struct rollup_view *v, struct err *err);
MUST_CHECK enum err_code rollup_builder_encode(
	struct rollup_builder *b, struct buf *out, struct err *err);
/*
 * Function totals of what was added, of types that are deltas. *any false: there are none, or none
 * that are exact (drop_frames, two mappings that would show as one name, a cell below 0), and
 * nothing is written.
 */
MUST_CHECK enum err_code rollup_builder_encode_functions(
	struct rollup_builder *b, struct buf *out, bool *any, struct err *err);
/* The same without names that are alike, as older programs wrote them. */
MUST_CHECK enum err_code rollup_builder_encode_functions_apart(
	struct rollup_builder *b, struct buf *out, bool *any, struct err *err);

/* ---- reading ---- */

struct rollup_view *rollup_view_open(void); /* NULL: out of memory */
void rollup_view_close(struct rollup_view *v); /* NULL is fine */
uint64_t rollup_cells(const struct rollup_view *v); /* of the record that was parsed */
/* Columns are read, cells stay coded. */
MUST_CHECK enum err_code rollup_parse(struct rollup_view *v, struct str bytes, struct err *err);
bool rollup_counts_missed(const struct rollup_view *v); /* false if it has no gauge */
uint32_t rollup_columns_n(const struct rollup_view *v);
const struct rollup_column *rollup_column(const struct rollup_view *v, uint32_t i);
/* Adds the cells of a column; gauges need an accumulator that is ACCUM_WEIGHTED. */
MUST_CHECK enum err_code rollup_add(
	struct rollup_view *v, uint32_t column, struct accum *acc, struct err *err);
MUST_CHECK enum err_code rollup_mark_ids(
	struct rollup_view *v, struct bits *stacks, struct bits *label_sets, struct err *err);
uint32_t rollup_stack_max(struct rollup_view *v, struct err *err);

/*
 * Function totals, parsed; columns in the order of the rollup's own. Names that are shown as one
 * (tsdb/symbols/shown.h) are *alike*: behind their totals comes what their stacks cost together.
 */
struct rollup_function {
	uint32_t name; /* string: a function's name, or a mapping's file where unnamed */
	bool unnamed;
	uint32_t alike; /* not 0: cum is that of names that are alike. `name` is the first of them, this
					   is their rollup_alike */
	__int128 flat, cum;
};
/* Which names are alike, in a number: the strings one after the other, ascending, from 0. */
static inline uint64_t rollup_alike_add(uint64_t hash, uint32_t string)
{
	hash = (hash ^ string) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}
static inline uint32_t rollup_alike(uint64_t hash)
{
	return 2 + (uint32_t)(hash % (UINT32_MAX - 1)); /* 0 and 1 mean something else in its place */
}
MUST_CHECK enum err_code rollup_functions_parse(
	struct rollup_view *v, struct str bytes, struct err *err);
/* Names, unnamed ones, then names that are alike, each ascending by name; in the view until its
 * next use. columns are found by their header and column as of rollup_column. */
MUST_CHECK enum err_code rollup_functions(struct rollup_view *v, uint32_t column,
	struct rollup_function **out, size_t *n, struct err *err);

#endif
