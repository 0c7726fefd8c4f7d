/*
 * Chunk: the rows of one series over many scrapes, in columns: the form that rows have in blocks.
 *
 * A chunk turns rows by 90 degrees: for each (stack, label set) that any of its rows has, the rows
 * it is in and its values there, column by column. A stack is named once, and all
 * its costs are together. Each column is coded for what it is: counts of a delta type are sparse
 * and small, with their sum in front, so that a chunk wholly inside a window is added without
 * looking at its rows; levels of a gauge type seldom change, so their change points are kept.
 *
 * All rows of a chunk have one interval and one list of types (headers may differ: processes do).
 *
 * Errors:  ERR_CORRUPT from any bytes that chunk_encode did not make (nothing is read outside
 *          them, nothing larger than the limits is allocated); ERR_LIMIT, ERR_NOMEM.
 * Threads: values; no sharing.
 * Source:  tsdb/FORMAT.md, "Chunks", with the layouts that were tried and their figures.
 */
#ifndef TSDB_COLUMNS_CHUNK_H
#define TSDB_COLUMNS_CHUNK_H

#include "proto/kinds.h"
#include "tsdb/columns/accum.h"
#include "tsdb/columns/row.h"

#define CHUNK_ROWS 120u /* aimed at: 20 minutes at 10 s */
#define CHUNK_ROWS_LEVELS \
	360u /* where a column is of levels: one that stays costs once per chunk */
#define CHUNK_ROWS_MAX 1024u
#define CHUNK_SAMPLES_MAX (1u << 26)
#define CHUNK_VALUES_MAX (1u << 27) /* samples x columns */

/* The number of rows that a chunk should have if its columns are of these kinds. */
static inline uint32_t chunk_rows_aimed(const enum value_kind *kinds, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (kinds[i] == KIND_GAUGE)
			return CHUNK_ROWS_LEVELS;
	return CHUNK_ROWS;
}

/* All of a row but its entries. */
struct chunk_row {
	int64_t ts_ns, time_nanos, duration_nanos, period;
	uint32_t header;
	uint32_t n; /* entries */
};

/* Rows ascending by ts_ns, each as it would go into row_encode (all with the same interval_ns and
 * columns_n; ids ascend, equal ones may follow each other and stay apart), at most CHUNK_ROWS_MAX;
 * they may be narrow. kinds: per column, KIND_DELTA or KIND_GAUGE. Appended to *out, which a
 * failure leaves as it was. */
MUST_CHECK enum err_code chunk_encode(const int64_t *ts_ns, const struct row *rows, uint32_t rows_n,
	const enum value_kind *kinds, struct buf *out, struct err *err);

struct chunk; /* parsed and decompressed; memory is kept between chunks */

struct chunk *chunk_open(void); /* NULL: out of memory */
void chunk_close(struct chunk *c); /* NULL is fine */
/* Reads the rows' heads and the columns' frames; samples stay coded. `bytes` must live as long as
 * what is read from it. */
MUST_CHECK enum err_code chunk_parse(struct chunk *c, struct str bytes, struct err *err);

bool chunk_has_streams(const struct chunk *c); /* older programs do not read these */
uint32_t chunk_rows_n(const struct chunk *c);
uint32_t chunk_columns_n(const struct chunk *c);
int64_t chunk_interval_ns(const struct chunk *c);
const struct chunk_row *chunk_rows(const struct chunk *c); /* ascending by ts_ns */
const int64_t *chunk_totals(const struct chunk *c, uint32_t column); /* per row */
/* The largest ids of all rows, to be compared with the partition. */
uint32_t chunk_stack_max(const struct chunk *c);
uint32_t chunk_label_set_max(const struct chunk *c);

/*
 * Adds a column of the rows [from, to) to acc, each value x weight. All rows of a delta column: the
 * sums in front are added. ERR_CORRUPT: acc may hold a part of it and is to be given up, unless
 * chunk_check was asked before.
 */
MUST_CHECK enum err_code chunk_add(struct chunk *c, uint32_t column, uint32_t from, uint32_t to,
	int64_t weight, struct accum *acc, struct err *err);
/*
 * As chunk_add, each row with a weight of its own: row i has ends[i + 1] - ends[i]. ends has one
 * more entry than the chunk has rows, of which [from, to] are read; they ascend, by INT64_MAX in
 * all at most. acc is ACCUM_WEIGHTED. A level costs by its changes, not by its rows.
 */
MUST_CHECK enum err_code chunk_add_spans(struct chunk *c, uint32_t column, uint32_t from,
	uint32_t to, const int64_t *ends, struct accum *acc, struct err *err);
/*
 * As chunk_add of the rows [0, to), and hands out what the rows behind would add: the sums of those
 * keys that have some, in the chunk's memory until its next use. is_known false: one does not fit.
 */
struct chunk_tail {
	uint32_t *stacks, *label_sets; /* sets NULL: all 0 */
	int64_t *values; /* without the weight */
	uint32_t n;
	bool is_known;
};
MUST_CHECK enum err_code chunk_add_head(struct chunk *c, uint32_t column, uint32_t to,
	int64_t weight, struct accum *acc, struct chunk_tail *tail, struct err *err);
/* Reads all there is and compares it with the rows' heads; what chunk_add then adds is whole. */
MUST_CHECK enum err_code chunk_check(struct chunk *c, struct err *err);
/* Ids that the chunk's samples use, marked in the two sets (grown as needed); either may be NULL.
 */
struct bits;
MUST_CHECK enum err_code chunk_mark_ids(
	struct chunk *c, struct bits *stacks, struct bits *label_sets, struct err *err);

/*
 * The rows as they went in; *rows points to chunk_rows_n of them, whose arrays live until the next
 * call with this chunk. Equal to what was encoded, but for the order of entries of equal ids.
 */
MUST_CHECK enum err_code chunk_unpack(struct chunk *c, const struct row **rows, struct err *err);

/* The bytes of a chunk by part, for `epitool tsdb analyze`. */
struct chunk_sizes {
	uint64_t heads, ids, positions, values, sums, total; /* bytes as stored */
	uint64_t rows, entries, samples; /* entries: distinct ids; samples: of all rows */
};
MUST_CHECK enum err_code chunk_measure(struct chunk *c, struct chunk_sizes *out, struct err *err);

#endif
