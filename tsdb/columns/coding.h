/*
 * Codings: how the cells of one column of a chunk become bytes, and are read and added again.
 *
 * A coding is one row of codings[] and one file coding_<name>.c. The writer tries the rows in their
 * order and keeps the shortest result. A reader finds the row once per column, by its byte, and
 * calls it once per key or per column, never per value.
 *
 * Errors:  ERR_CORRUPT from any bytes that the coding did not write; ERR_NOMEM, ERR_LIMIT.
 * Threads: the table never changes; all else is of one chunk or encoder.
 * Source:  tsdb/FORMAT.md, "Chunks".
 */
#ifndef TSDB_COLUMNS_CODING_H
#define TSDB_COLUMNS_CODING_H

#include "tsdb/columns/chunk_internal.h"

struct adding;
struct column_try;
struct key_cells;

struct coding {
	const char *name;
	unsigned byte; /* as stored: its number and the flags it always has */
	unsigned flags; /* those it may have besides */
	unsigned sections, shared_sections; /* SECTION_BIT each; shared: with COLUMN_SHARED */
	bool levels; /* cells are differences to the row before */
	bool values_are_bits; /* else varints */

	/* -- writing -- */
	/* Makes the column in t->e->packed, and t->made; false: this coding cannot say it, or would not
	 * be the shortest. NULL: the chunk's encoder decides for it. */
	bool (*encode)(struct column_try *t);
	/* For column_encode_keys: one key's cells into e->values, e->sums or e->bits, and the rest of
	 * its token; false: they do not fit. May take COLUMN_SUMS from *flags. */
	bool (*put_key)(
		struct column_encoder *e, const struct key_cells *c, unsigned *flags, uint64_t *rest);
	bool settles; /* where it can say a column, the rows below are not tried */

	/* -- reading -- */
	/* The column it refers to, behind the factor; NULL: it refers to none. */
	bool (*take_reference)(const struct chunk *c, struct chunk_column *to, struct cursor *in);
	/* Could these be numbers and rests of keys? NULL: they always could. */
	bool (*counts_sound)(const uint16_t *counts, const uint64_t *rests, uint32_t keys_n);
	/* Values of a key with *n places; *n may grow by one that has no place. False: corrupt. */
	bool (*take_values)(struct column_reader *r, uint32_t key, uint32_t *n, int64_t *values);
	/* Adds all rows by numbers or sums of the keys; NULL: add_some does it. */
	enum err_code (*add_all)(struct adding *a, uint32_t column, struct err *err);
	/* Adds the rows [from, to). */
	enum err_code (*add_some)(
		struct adding *a, struct column_reader *r, uint32_t from, uint32_t to, struct err *err);
};

extern const struct coding coding_zero, coding_multiple, coding_counted, coding_plain,
	coding_levels, coding_scaled, coding_scaled_levels, coding_like;
#define CODINGS_N 8u
extern const struct coding *const codings[CODINGS_N];

const struct coding *coding_of(unsigned byte); /* NULL: no coding has this byte */

static inline unsigned coding_sections(const struct coding *c, unsigned flags)
{
	return (flags & COLUMN_SHARED ? c->shared_sections : c->sections) |
		(flags & COLUMN_SUMS ? SECTION_BIT(SECTION_SUMS) : 0);
}

/* ---- writing ---- */

/* The cells of one key that are not 0; of levels, the differences. */
struct key_cells {
	uint32_t n;
	bool starts; /* levels: cell 0 is the first row's, which is not among the places */
	uint64_t places[CHUNK_ROWS_MAX];
	int64_t values[CHUNK_ROWS_MAX];
};

struct column_encoder {
	uint32_t rows_n, keys_n;
	ZSTD_CCtx *zstd;
	uint16_t *counts;
	uint8_t *starts;
	uint64_t *rests;
	struct buf tokens, values, sums; /* sections being made */
	struct bit_out extra, places, bits;
	/* With enough keys places and bits are dealt out to streams: where those of each key begin. */
	bool streams;
	size_t *places_starts, *bits_starts;
	struct chunk_order order;
	struct bit_out dealt[STREAMS];
	struct buf packed, best; /* the column in the coding being tried, and in the shortest so far */
	uint64_t subset[CHUNK_ROWS_MAX];
	struct key_cells cells, others;
	struct chunk_scale scale;
};

/* One column being written. */
struct column_try {
	struct column_encoder *e;
	const struct column_in *in;
	bool compress;
	uint32_t column;
	uint64_t factor;
	const struct column_done *done;
	size_t cells; /* values that are not 0 */
	bool negative; /* one is below 0 */
	bool levels; /* differences may be tried */
	unsigned made; /* out: the coding's byte with its flags */
};

void key_cells_take(const struct column_in *in, const int64_t *values, uint32_t key, bool levels,
	struct key_cells *out);
void levels_take(
	const struct column_in *in, const int64_t *values, uint32_t key, struct key_cells *out);
/* The column in t->e->packed: numbers, places and what coding->put_key makes of in->values. */
bool column_encode_keys(
	struct column_try *t, const struct coding *coding, const struct column_in *in, unsigned flags);
void column_put_value(struct buf *out, unsigned flags, int64_t value); /* zigzag, if signed */

/* ---- adding ---- */

struct adding {
	struct chunk *c;
	struct accum *acc;
	int64_t weight;
	uint64_t factor;
	uint32_t first, n; /* keys in hand: first and number */
	int64_t values[CHUNK_BATCH];
	struct chunk_tail *tail; /* what is behind the range goes there; NULL: nowhere */
	struct err *err;
};

/* Adds the keys in hand. */
enum err_code adding_flush(struct adding *a);
/* Adds a sum that is longer than the accumulator's arrays take, in pieces. */
enum err_code adding_pieces(struct adding *a, uint32_t key, __int128 sum);
enum err_code adding_long(struct adding *a, __int128 sum); /* what adding_sum does with such */
/* Adds rows [from, to) of a column that is no multiple, cell by cell. */
enum err_code adding_some(
	struct adding *a, uint32_t column, uint32_t from, uint32_t to, struct err *err);

/* The sum of the next key. */
static inline enum err_code adding_sum(struct adding *a, __int128 sum)
{
	if (__builtin_expect(sum != (int64_t)sum, 0))
		return adding_long(a, sum);
	a->values[a->n++] = (int64_t)sum;
	return a->n == CHUNK_BATCH ? adding_flush(a) : ERR_OK;
}

static inline void adding_tail(struct adding *a, uint32_t key, __int128 sum)
{
	struct chunk_tail *t = a->tail;

	t->stacks[t->n] = a->c->key_stacks[key];
	if (t->label_sets)
		t->label_sets[t->n] = a->c->key_sets[key];
	t->values[t->n] = (int64_t)sum;
	t->is_known &= t->values[t->n] == sum;
	t->n += sum != 0;
}

/* Shared by codings: values at places, and differences. */
enum err_code plain_add_all(struct adding *a, uint32_t column, struct err *err);
enum err_code plain_add_some(
	struct adding *a, struct column_reader *r, uint32_t from, uint32_t to, struct err *err);
enum err_code levels_add_some(
	struct adding *a, struct column_reader *r, uint32_t from, uint32_t to, struct err *err);
bool counted_put_key(
	struct column_encoder *e, const struct key_cells *c, unsigned *flags, uint64_t *rest);
bool counted_counts_sound(const uint16_t *counts, const uint64_t *rests, uint32_t keys_n);
/* Values of a key with n > 1 cells whose sum is n + rest, rest > 0. */
bool counted_take_bits(struct bit_in *in, uint32_t n, uint64_t rest, int64_t *values);
bool counted_take_values(struct column_reader *r, uint32_t key, uint32_t *n, int64_t *values);
bool levels_put_key(
	struct column_encoder *e, const struct key_cells *c, unsigned *flags, uint64_t *rest);
bool levels_counts_sound(const uint16_t *counts, const uint64_t *rests, uint32_t keys_n);
bool levels_take_values(struct column_reader *r, uint32_t key, uint32_t *n, int64_t *values);

#endif
