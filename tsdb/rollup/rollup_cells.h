/*
 * Cells of a rollup in bytes: ascending keys (stack, label set), and columns of sums that share
 * them.
 *
 * Keys and each column are separate frames, compressed if that saves enough, so that one column
 * costs the keys and itself. Reading goes in batches through readers of fixed size: however many
 * cells the bytes claim, only decompressed frames are allocated.
 *
 * Errors:    ERR_CORRUPT, ERR_NOMEM.
 * Ownership: the encoder and the view own their memory and keep it for the next use.
 * Threads:   one at a time.
 * Source:    tsdb/FORMAT.md, "Rollups".
 */
#ifndef TSDB_ROLLUP_ROLLUP_CELLS_H
#define TSDB_ROLLUP_ROLLUP_CELLS_H

#include "base/err.h"
#include "base/str.h"

typedef __int128 int128;
typedef unsigned __int128 uint128;

#define CELLS_MAX (1u << 28)
#define CELLS_BATCH 1024u
/* A frame that decompresses to more than this many times its size is not written, so that sizes
 * claimed are bounded by bytes that are there. */
#define CELLS_RATIO_MAX 1024u

#define CELLS_LABELS 1u /* flag: cells have label sets */
/* With a coding: the bytes are an earlier column's, whose number follows. */
#define CELLS_SHARED 0x80u

enum cells_coding {
	CELLS_ZERO, /* all 0: no bytes */
	CELLS_SAME, /* all equal to the factor: no bytes */
	CELLS_PLAIN, /* varints */
	CELLS_SIGNED, /* zigzag varints */
	CELLS_SPARSE, /* bitmap, then varints of those not 0 */
	CELLS_SPARSE_SIGNED,
	CELLS_WIDE, /* zigzag varints of up to 128 bits */
	CELLS_CODINGS
};

/* ---- making ---- */

struct cells_part {
	size_t at, len; /* in the encoder's raw bytes */
	uint128 factor;
	enum cells_coding coding;
	uint32_t same; /* an earlier column with these bytes; UINT32_MAX: none */
};

struct cells_encoder {
	uint32_t n;
	bool labels;
	struct buf raw, frames, heads;
	struct cells_part *columns;
	uint32_t columns_n, columns_cap;
	struct cells_part stacks, sets;
	void *zstd;
	bool failed;
};

void cells_encoder_release(struct cells_encoder *e);
/* keys: stack << 32 | label set, ascending strictly. */
void cells_begin(struct cells_encoder *e, const uint64_t *keys, uint32_t n);
/* as_64: a value that does not fit 64 bits makes the column wide; else it is wide only where its
 * values, divided by their greatest common divisor, or that, do not fit. */
void cells_column(struct cells_encoder *e, const int128 *values, bool as_64);
MUST_CHECK enum err_code cells_end(struct cells_encoder *e, struct buf *out, struct err *err);

/* ---- reading ---- */

struct cells_frame {
	struct str stored;
	uint64_t raw_len;
	bool compressed, ready;
	struct buf raw;
};

struct cells_values_head {
	enum cells_coding coding;
	uint128 factor;
	uint32_t frame;
};

struct cells_view {
	uint32_t n, columns_n;
	bool labels;
	struct cells_frame *frames; /* 0: stacks, 1: label sets, 2 + c: column c's */
	uint32_t frames_cap;
	struct cells_values_head *columns;
	void *zstd;
};

void cells_view_release(struct cells_view *v);
/* All that is left of *in, which has to live as long as what is read. */
MUST_CHECK enum err_code cells_parse(
	struct cells_view *v, struct cursor *in, uint32_t columns_n, struct err *err);

struct cells_ids {
	struct cursor stacks, sets;
	uint64_t stack, set;
	uint32_t left;
	bool labels, begun;
};
MUST_CHECK enum err_code cells_ids_open(
	struct cells_view *v, struct cells_ids *out, struct err *err);
/* The next *n <= CELLS_BATCH keys; *n 0: no more. sets only where v->labels; may be NULL. */
MUST_CHECK enum err_code cells_ids_next(
	struct cells_ids *c, uint32_t *stacks, uint32_t *sets, uint32_t *n, struct err *err);

struct cells_values {
	enum cells_coding coding;
	uint128 factor;
	struct cursor in;
	const unsigned char *bitmap;
	uint32_t left;
};
MUST_CHECK enum err_code cells_values_open(
	struct cells_view *v, uint32_t column, struct cells_values *out, struct err *err);
/* The next n values (as many as the keys' batch had), each x times, of a column that is not wide.
 * Products wrap where the bytes are hostile. */
MUST_CHECK enum err_code cells_values_next(
	struct cells_values *c, uint32_t n, uint64_t times, int64_t *out, struct err *err);
/* The same of any column, as they went in. */
MUST_CHECK enum err_code cells_values_next_wide(
	struct cells_values *c, uint32_t n, int128 *out, struct err *err);

/* 128 bits in LEB128. */
void buf_add_varint128(struct buf *b, uint128 value);
uint128 cursor_varint128(struct cursor *c);
static inline uint128 rollup_cells_zigzag128(int128 value)
{
	return ((uint128)value << 1) ^ (uint128)(value >> 127);
}
static inline int128 rollup_cells_unzigzag128(uint128 value)
{
	return (int128)(value >> 1) ^ -(int128)(value & 1);
}

#endif
