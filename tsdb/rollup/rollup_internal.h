/*
 * Rollup, the inside of rollup.h: the head before the cells, and the builder.
 *
 * Threads: one at a time.
 */
#ifndef TSDB_ROLLUP_ROLLUP_INTERNAL_H
#define TSDB_ROLLUP_ROLLUP_INTERNAL_H

#include "tsdb/rollup/rollup.h"
#include "tsdb/rollup/rollup_cells.h"
#include "tsdb/rollup/rollup_table.h"
#include "tsdb/symbols/partition.h"

#define ROLLUP_COLUMN_NONE UINT16_MAX

enum rollup_record {
	ROLLUP_RECORD_CELLS = 1,
	ROLLUP_RECORD_FUNCTIONS, /* two columns of cells, flat and cum, for each of the rollup's */
};

/* Sums over the rows of one list of types, the same for all its columns. */
struct rollup_list {
	uint64_t rows, samples;
	int64_t start_ns, end_ns, time_nanos, period;
	int128 duration; /* not saturated: saturating is not associative */
	int128 elapsed, profiled; /* as in struct rollup_column */
	uint32_t *headers;
	uint32_t headers_n;
	uint32_t columns_n; /* of a header */
	uint16_t column[ROW_COLUMNS_MAX]; /* the rollup's for each of a header's, or none */
};

/* Sums over the rows of one type, beside those of its lists. */
struct rollup_sums {
	uint32_t column; /* in its first header */
	bool gauge;
	int128 total;
	int128 missed; /* of a gauge: what its rows weigh beyond their intervals */
	struct rollup_point min, max;
	int64_t last;
};

/* Adds what another list's rows say; not the headers. */
void rollup_list_join(struct rollup_list *into, const struct rollup_list *from);
void rollup_sums_join(struct rollup_sums *into, const struct rollup_sums *from, int64_t into_end_ns,
	int64_t from_end_ns);

/* lists: ascending by first header; sums: in the order of (first list, column in it). missed:
 * missed scrapes count in gauges. */
void rollup_head_encode(struct buf *out, enum rollup_record record, bool missed,
	const struct rollup_list *lists, uint32_t lists_n, const struct rollup_sums *sums,
	uint32_t columns_n);

/* A head as read. */
struct rollup_head {
	struct rollup_list *lists;
	struct rollup_sums *sums;
	struct rollup_column *columns;
	uint32_t lists_n, columns_n;
	bool missed; /* missed scrapes count */
	struct arena arena;
};
MUST_CHECK enum err_code rollup_head_parse(
	struct rollup_head *h, struct cursor *in, enum rollup_record record, struct err *err);

struct rollup_view {
	struct rollup_head head;
	struct cells_view cells;
	bool functions; /* parsed as function totals */
	uint32_t stacks[CELLS_BATCH], sets[CELLS_BATCH];
	int64_t values[CELLS_BATCH];
	int128 wide[CELLS_BATCH];
	struct rollup_function *out;
	size_t out_cap;
};

/* ---- the builder ---- */

struct builder_list {
	struct rollup_list l;
	uint32_t typeset, headers_cap;
};

struct builder_column {
	struct sym_type type;
	uint32_t period_type, period_unit;
	struct rollup_sums sums;
	int64_t end_ns; /* of the row that sums.last is of */
	uint64_t rows; /* 0: sums hold nothing yet */
	struct accum *pending; /* cells that are not in the table yet; rollup_builder_settle */
};

struct rollup_builder {
	struct partition *p;
	struct builder_list *lists;
	uint32_t lists_n, lists_cap;
	struct builder_column *columns;
	uint32_t columns_n, columns_cap;
	struct bits headers; /* in some list */
	struct rollup_table table;
	struct cells_encoder encoder;
	bool pending, pending_labels;
	bool missed; /* missed scrapes count in some of what was added */
	struct span_hour hour; /* where they do */
	int64_t ends[CHUNK_ROWS_MAX + 1]; /* weights of a chunk's rows, as of chunk_add_spans */
	struct rollup_view *scratch; /* batches */
	uint32_t at[CELLS_BATCH];
};

/* A row as a whole, without its cells; *list is where it went. */
struct rollup_row {
	int64_t ts_ns, interval_ns, time_nanos, duration_nanos, period;
	uint32_t header, n;
	int64_t missed_ns; /* what it weighs beyond its interval in a gauge */
};
MUST_CHECK enum err_code rollup_builder_note(
	struct rollup_builder *b, const struct rollup_row *row, uint32_t *list, struct err *err);
/* Its total in a column of the builder. */
void rollup_builder_total(
	struct rollup_builder *b, uint32_t column, const struct rollup_row *row, int64_t total);
/* Puts cells into the table. ERR_CORRUPT: some symbols are missing. */
MUST_CHECK enum err_code rollup_builder_find(struct rollup_builder *b, const uint32_t *stacks,
	const uint32_t *sets, uint32_t n, struct err *err);
MUST_CHECK enum err_code rollup_builder_settle(struct rollup_builder *b, struct err *err);
/* Writes a whole record: the head, then the table's cells that are not 0 in all columns. For
 * ROLLUP_RECORD_FUNCTIONS the table has two columns, flat and cum, for each of the builder's. */
MUST_CHECK enum err_code rollup_builder_write(struct rollup_builder *b, enum rollup_record record,
	const struct rollup_table *t, struct buf *out, struct err *err);

#endif
