/*
 * Row: one profile of one series in bytes: stacks and label sets as ids, a column of values per
 * sample type.
 *
 * A row is parsed first (its fields, and the places of its columns); then the caller decodes what
 * it needs: totals cost nothing, one column costs that column and the ids.
 *
 * Errors:  ERR_CORRUPT from any bytes that row_encode did not make (nothing is read outside them);
 *          ERR_LIMIT "total of column N exceeds 64 bits"; ERR_NOMEM.
 * Threads: values; no sharing.
 * Source:  tsdb/FORMAT.md, "Rows".
 */
#ifndef TSDB_COLUMNS_ROW_H
#define TSDB_COLUMNS_ROW_H

#include "base/err.h"
#include "base/str.h"

struct partition;

#define ROW_COLUMNS_MAX 64u

/* As it goes in. Ids ascend by (stack, label set); equal ones may follow each other. */
struct row {
	uint32_t header;
	int64_t interval_ns, time_nanos, duration_nanos, period;
	uint32_t n, columns_n;
	const uint32_t *stacks;
	const uint32_t *label_sets; /* NULL: all 0 */
	const int64_t *values; /* column c of entry i: values[c * n + i] */
	uint32_t epoch; /* of the ids; 0 if it does not matter */
	const unsigned char *narrow; /* instead of the arrays: row_narrow; for chunk_encode only */
	struct str links; /* links.h; empty: none. chunk_encode leaves them out */
};

struct row_column {
	uint64_t factor;
	int64_t total;
	uint8_t coding;
	const unsigned char *at, *end;
};

struct row_view {
	uint32_t epoch, header;
	int64_t interval_ns, time_nanos, duration_nanos, period;
	uint32_t n, columns_n;
	struct str stacks, label_sets; /* label_sets empty: all 0 */
	struct row_column columns[ROW_COLUMNS_MAX];
	struct str links; /* empty: none; not looked at */
};

/* ts_ns is the row's own time, which the key has; times in the row are relative to it. */
MUST_CHECK enum err_code row_encode(
	const struct row *r, int64_t ts_ns, struct buf *out, struct err *err);
MUST_CHECK enum err_code row_parse(
	struct str bytes, int64_t ts_ns, struct row_view *out, struct err *err);
/* The epoch alone; false: the bytes are no row. */
bool row_epoch(struct str bytes, uint32_t *epoch);
/* Arrays of n; label_sets may be NULL if it is not wanted. */
MUST_CHECK enum err_code row_ids(
	const struct row_view *v, uint32_t *stacks, uint32_t *label_sets, struct err *err);
MUST_CHECK enum err_code row_values(
	const struct row_view *v, uint32_t column, int64_t *values, struct err *err);
/*
 * The values with the ids that row_ids gave, less entries that are known to be 0 without decoding:
 * the arrays (label_sets may be NULL) have *n entries then. After an error they are lost.
 */
MUST_CHECK enum err_code row_cells(const struct row_view *v, uint32_t column, uint32_t *stacks,
	uint32_t *label_sets, int64_t *values, uint32_t *n, struct err *err);
/* The v->n values as bytes in the row: each times the column's factor, which is 2^56 at most. NULL:
 * they are not so small, or not all there; row_values then. */
const unsigned char *row_small_values(const struct row_view *v, uint32_t column);

/*
 * A row that waits in memory: its numbers in as few bytes each as the largest of a list needs.
 * row_narrow_bytes finds the widths; row_narrow writes so many bytes with them, which become the
 * narrow of a row without arrays.
 */
struct row_widths {
	unsigned char of[ROW_COLUMNS_MAX + 2]; /* stacks, label sets, columns */
};
size_t row_narrow_bytes(const struct row *r, struct row_widths *widths);
void row_narrow(const struct row *r, const struct row_widths *widths, unsigned char *to);
/* The n values of a column of either kind of row; those of a narrow one are put into room. */
const int64_t *row_column(const struct row *r, uint32_t column, int64_t *room);
/* One of them. */
int64_t row_value(const struct row *r, uint32_t column, uint32_t entry);
/* The n entries' stack << 32 | label set, of either kind of row. */
void row_entry_ids(const struct row *r, uint64_t *room);

/* ERR_CORRUPT: the row uses ids that are not there. sets NULL: all 0. */
MUST_CHECK enum err_code row_check_ids(const struct partition *p, const struct row_view *v,
	const uint32_t *stacks, const uint32_t *sets, struct err *err);

#endif
