#include <assert.h>
#include <stdlib.h>

#include "tsdb/columns/chunk_internal.h"

/*
 * One column of a chunk into bytes: each coding that could pay is made, the shortest is kept.
 *
 * Counted: of a key with n cells of sum s, n and s - n are a token, which rows is a subset of n of
 * all rows, and how the sum falls into values is a subset too: s - n stars between n - 1 bars. So a
 * key whose cells are all 1 costs no value at all, and one of a single cell neither.
 * Plain: values as varints, for zstd to look at: negative ones, and what repeats.
 * Levels: plain, of the differences to the row before: a gauge changes seldom. What the first row
 * has is told by the token, not by a place, so a level that stays costs one value.
 * Scaled: of counted and levels, the numbers of events that the cells stand for (chunk_scale.c).
 * Like: the same numbers as another column. Allocated bytes are events times what one stands for,
 * cut; so are objects.
 */

/* Values of more bits than this each, counted, might be shorter as bytes that repeat. */
#define COUNTED_BITS_GOOD 6u

/* Sums of a plain column stand in front where this part of all entries has cells in it: where fewer
 * have, the cells are added as fast. */
#define SUMS_WORTH 3u

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
	struct buf tokens, values, sums, best, packed;
	struct bit_out extra, places, bits;
	uint64_t subset[CHUNK_ROWS_MAX];
	struct key_cells cells, others;
	struct scale scale;
};

void column_encoder_close(struct column_encoder *e)
{
	if (!e)
		return;
	ZSTD_freeCCtx(e->zstd);
	free(e->counts);
	free(e->starts);
	free(e->rests);
	scale_close(&e->scale);
	buf_release(&e->tokens);
	buf_release(&e->values);
	buf_release(&e->sums);
	buf_release(&e->best);
	buf_release(&e->packed);
	buf_release(&e->extra.bytes);
	buf_release(&e->places.bytes);
	buf_release(&e->bits.bytes);
	free(e);
}

struct column_encoder *column_encoder_open(uint32_t rows_n, uint32_t keys_n)
{
	struct column_encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->rows_n = rows_n;
	e->keys_n = keys_n;
	e->zstd = ZSTD_createCCtx();
	e->counts = malloc(((size_t)keys_n + 1) * sizeof(*e->counts));
	e->starts = malloc((size_t)keys_n + 1);
	e->rests = malloc(((size_t)keys_n + 1) * sizeof(*e->rests));
	if (scale_open(&e->scale, keys_n) && e->zstd && e->counts && e->starts && e->rests)
		return e;
	column_encoder_close(e);
	return NULL;
}

/* Its length, the length as stored, the bytes: compressed where that saves a 32nd. */
void section_put(ZSTD_CCtx *zstd, const struct buf *raw, bool compress, struct buf *out)
{
	size_t most = ZSTD_compressBound(raw->len), n = raw->len, head = out->len;

	buf_add_varint(out, raw->len);
	if (raw->len == 0)
		return;
	if (compress && raw->len > 32) {
		/* Behind where the lengths will stand: at most ten bytes each. */
		if (!buf_reserve(out, most + 10))
			return;
		n = ZSTD_compressCCtx(zstd, out->ptr + out->len + 10, most, raw->ptr, raw->len, 1);
		if (ZSTD_isError(n) || n + raw->len / 32 >= raw->len)
			n = raw->len;
	}
	head = out->len;
	buf_add_varint(out, n);
	if (n == raw->len) {
		buf_add(out, raw->ptr, n);
	} else if (!out->failed) {
		memmove(out->ptr + out->len, out->ptr + head + 10, n);
		out->len += n;
	}
}

/* ---- cells of a key ---- */

static void take_cells(
	const struct column_in *in, const int64_t *values, uint32_t key, struct key_cells *out)
{
	uint32_t n = 0;

	for (size_t i = in->starts[key]; i < in->starts[key + 1]; i++) {
		out->places[n] = in->rows[i];
		out->values[n] = values[i];
		n += values[i] != 0;
	}
	out->n = n;
	out->starts = false;
}

/* The same as differences to the row before, wrapping; a row without the key is 0. */
static void take_levels(
	const struct column_in *in, const int64_t *values, uint32_t key, struct key_cells *out)
{
	uint64_t level = 0;
	uint32_t n = 0, next = 0; /* the row that `level` would hold in */

	for (size_t i = in->starts[key]; i < in->starts[key + 1]; i++) {
		uint64_t v = (uint64_t)values[i];

		if (v == 0)
			continue;
		if (level && in->rows[i] > next) {
			out->places[n] = next;
			out->values[n++] = (int64_t)-level;
			level = 0;
		}
		if (v != level) {
			out->places[n] = in->rows[i];
			out->values[n++] = (int64_t)(v - level);
			level = v;
		}
		next = in->rows[i] + 1u;
	}
	if (level && next < in->rows_n) {
		out->places[n] = next;
		out->values[n++] = (int64_t)-level;
	}
	out->n = n;
	out->starts = n && out->places[0] == 0;
}

/* ---- subsets ---- */

/* Of m places of n: those, or where they are more than half, the others. */
static void put_subset(
	struct column_encoder *e, struct bit_out *o, uint32_t n, const uint64_t *places, uint32_t m)
{
	uint32_t others = 0, next = 0;

	if (m <= n / 2) {
		bits_put_places(o, n, places, m);
		return;
	}
	for (uint32_t i = 0; i < m; i++) {
		while (next < places[i])
			e->subset[others++] = next++;
		next++;
	}
	while (next < n)
		e->subset[others++] = next++;
	bits_put_places(o, n, e->subset, others);
}

/* n values, each at least 1, with this rest: sum - n. */
static void put_counted(struct column_encoder *e, const struct key_cells *c, uint64_t rest)
{
	uint64_t places = c->n + rest - 1, sum = 0, n = 0;

	if (rest == 0 || c->n == 1)
		return;
	if (rest <= places / 2) {
		for (uint32_t i = 0; i < c->n; i++)
			for (int64_t k = 1; k < c->values[i]; k++, n++)
				e->subset[n] = i + n;
	} else {
		for (uint32_t i = 0; i + 1 < c->n; i++) {
			sum += (uint64_t)c->values[i] - 1;
			e->subset[n++] = sum + i;
		}
	}
	bits_put_places(&e->bits, places, e->subset, n);
}

static unsigned class_of(uint64_t v)
{
	unsigned class = 8;

	if (v < 8)
		return (unsigned)v;
	while (class < TOKEN_OPEN && v >= token_base[class] + (UINT64_C(1) << token_bits[class]))
		class ++;
	return class;
}

static void put_extra(struct bit_out *o, unsigned class, uint64_t v)
{
	if (class < TOKEN_OPEN) {
		bits_put(o, v - token_base[class], token_bits[class]);
		return;
	}
	bits_put(o, bit_length(v), TOKEN_OPEN_BITS);
	bits_put(o, v, bit_length(v));
}

static void put_tokens(struct column_encoder *e, bool shared, bool rests)
{
	buf_clear(&e->tokens);
	bits_clear_out(&e->extra);
	if (!buf_reserve(&e->tokens, e->keys_n))
		return;
	for (uint32_t k = 0; k < e->keys_n; k++) {
		uint64_t count = shared ? 0 : e->counts[k], rest = rests ? e->rests[k] : 0;

		e->tokens.ptr[k] = (char)(class_of(count) | class_of(rest) << 4);
		put_extra(&e->extra, class_of(count), count);
		put_extra(&e->extra, class_of(rest), rest);
	}
	e->tokens.len = e->keys_n;
	bits_finish(&e->extra);
}

/* ---- a column in one coding ---- */

static void add_value(struct buf *out, unsigned coding, int64_t v)
{
	buf_add_varint(out, coding & COLUMN_SIGNED ? zigzag(v) : (uint64_t)v);
}

/* False: this coding cannot say it. */
static bool take_keys(struct column_encoder *e, const struct column_in *in, unsigned *coding)
{
	bool counted = (*coding & COLUMN_CODING) == COLUMN_COUNTED;
	bool levels = *coding & COLUMN_LEVELS;
	struct key_cells *c = &e->cells;

	bits_clear_out(&e->places);
	bits_clear_out(&e->bits);
	buf_clear(&e->values);
	buf_clear(&e->sums);
	for (uint32_t k = 0; k < in->keys_n; k++) {
		__int128 sum = 0;

		(levels ? take_levels : take_cells)(in, in->values, k, c);
		for (uint32_t i = 0; i < c->n; i++) {
			sum += c->values[i];
			if (!counted)
				add_value(&e->values, *coding, c->values[i]);
		}
		e->counts[k] = (uint16_t)(c->n - c->starts);
		e->starts[k] = c->starts;
		e->rests[k] = levels ? c->starts : counted ? (uint64_t)sum - c->n : 0;
		if (sum != (int64_t)sum) {
			if (counted)
				return false;
			*coding &= ~COLUMN_SUMS;
		}
		if (c->n && *coding & COLUMN_SUMS)
			add_value(&e->sums, *coding, (int64_t)sum);
		if (levels) {
			for (uint32_t i = 0; i < e->counts[k]; i++)
				e->subset[i] = c->places[c->starts + i] - 1;
			memcpy(c->places, e->subset, e->counts[k] * sizeof(*c->places));
		}
		put_subset(e, &e->places, in->rows_n - levels, c->places, e->counts[k]);
		if (counted)
			put_counted(e, c, e->rests[k]);
	}
	bits_finish(&e->places);
	bits_finish(&e->bits);
	return true;
}

static uint32_t find_places(
	const struct column_encoder *e, const struct column_done *done, uint32_t column, bool levels)
{
	for (uint32_t i = 0; i <= ROW_COLUMNS_MAX; i++)
		if (i != column && done[i].counts && levels == !!(done[i].coding & COLUMN_LEVELS) &&
			str_eq(buf_str(&done[i].places), buf_str(&e->places.bytes)) &&
			!memcmp(done[i].counts, e->counts, e->keys_n * sizeof(*e->counts)) &&
			!memcmp(done[i].starts, e->starts, e->keys_n))
			return i;
	return column;
}

static bool try_coding(struct column_encoder *e, const struct column_in *in, bool compress,
	uint32_t column, unsigned coding, uint64_t factor, const struct column_done *done,
	unsigned *made, struct buf *out)
{
	const struct buf *sections[COLUMN_SECTIONS] = { &e->tokens, &e->extra.bytes, &e->places.bytes,
		NULL, &e->sums, &e->scale.codes, &e->scale.phases.bytes };
	uint32_t places;

	if (!take_keys(e, in, &coding))
		return false;
	sections[SECTION_VALUES] = (coding & COLUMN_CODING) == COLUMN_COUNTED ? &e->bits.bytes :
																			&e->values;
	places = find_places(e, done, column, coding & COLUMN_LEVELS);
	if (places != column)
		coding |= COLUMN_SHARED;
	put_tokens(e, coding & COLUMN_SHARED,
		(coding & COLUMN_CODING) == COLUMN_COUNTED || coding & COLUMN_LEVELS);
	buf_clear(out);
	buf_add_char(out, (char)coding);
	buf_add_varint(out, factor);
	if (coding & COLUMN_SHARED)
		buf_add_varint(out, places);
	for (unsigned s = 0; s < COLUMN_SECTIONS; s++)
		if (column_has(coding, s))
			section_put(e->zstd, sections[s],
				compress && s != SECTION_EXTRA && s != SECTION_PHASES &&
					sections[s] != &e->bits.bytes,
				out);
	*made = coding;
	return true;
}

/* What later columns may share: only places that stand here. */
static void keep_places(const struct column_encoder *e, unsigned coding, struct column_done *done)
{
	done->coding = coding;
	if (coding & COLUMN_SHARED)
		return;
	done->counts = malloc(((size_t)e->keys_n + 1) * sizeof(*done->counts));
	done->starts = malloc((size_t)e->keys_n + 1);
	if (!done->counts || !done->starts) {
		free(done->counts);
		done->counts = NULL;
		return;
	}
	memcpy(done->counts, e->counts, e->keys_n * sizeof(*e->counts));
	memcpy(done->starts, e->starts, e->keys_n);
	buf_add_str(&done->places, buf_str(&e->places.bytes));
}

static void try_one(struct column_encoder *e, const struct column_in *in, bool compress,
	uint32_t column, unsigned coding, uint64_t factor, struct column_done *done)
{
	struct column_done mine = { 0 };
	unsigned made;

	if (!try_coding(e, in, compress, column, coding, factor, done, &made, &e->packed) ||
		(e->best.len && e->best.len <= e->packed.len))
		return;
	keep_places(e, made, &mine);
	free(done[column].counts);
	free(done[column].starts);
	buf_release(&done[column].places);
	done[column] = mine;
	buf_clear(&e->best);
	buf_add_str(&e->best, buf_str(&e->packed));
}

/* Cells of keys that have no unit, where the numbers are another column's. False: it has other
 * places. */
static bool put_raw(struct column_encoder *e, const struct column_in *in, bool levels)
{
	struct key_cells *c = &e->cells, *o = &e->others;

	buf_clear(&e->values);
	for (uint32_t k = 0; k < in->keys_n; k++) {
		__int128 sum = 0;

		if (e->scale.units[k].unit)
			continue;
		(levels ? take_levels : take_cells)(in, in->values, k, c);
		(levels ? take_levels : take_cells)(in, in->others, k, o);
		if (c->n != o->n || memcmp(c->places, o->places, c->n * sizeof(*c->places)))
			return false;
		for (uint32_t i = 0; i < c->n; i++) {
			buf_add_varint(&e->values, zigzag(c->values[i]));
			sum += c->values[i];
		}
		if (sum != (int64_t)sum)
			return false;
	}
	return true;
}

static void try_like(struct column_encoder *e, const struct column_in *in, bool compress,
	uint32_t column, uint64_t factor, struct column_done *done)
{
	unsigned coding = done[in->others_of].coding;
	bool levels = coding & COLUMN_LEVELS;

	coding &= COLUMN_CODING;
	if ((coding != COLUMN_COUNTED && coding != COLUMN_PLAIN) ||
		!scale_like(&e->scale, in, levels) || !put_raw(e, in, levels))
		return;
	buf_clear(&e->packed);
	buf_add_char(&e->packed, COLUMN_LIKE | COLUMN_SCALED);
	buf_add_varint(&e->packed, factor);
	buf_add_varint(&e->packed, in->others_of);
	section_put(e->zstd, &e->values, compress, &e->packed);
	section_put(e->zstd, &e->scale.codes, compress, &e->packed);
	section_put(e->zstd, &e->scale.phases.bytes, false, &e->packed);
	if (e->best.len && e->best.len <= e->packed.len)
		return;
	free(done[column].counts);
	free(done[column].starts);
	buf_release(&done[column].places);
	done[column] = (struct column_done){ .coding = COLUMN_LIKE | COLUMN_SCALED };
	buf_clear(&e->best);
	buf_add_str(&e->best, buf_str(&e->packed));
}

/* Where it is like another or scaled, other codings would not be shorter. */
static bool try_scaled(struct column_encoder *e, const struct column_in *in, bool compress,
	uint32_t column, uint64_t factor, struct column_done *done)
{
	bool levels = in->levels_too && in->rows_n > 1;
	struct column_in numbers = *in;

	if (in->others)
		try_like(e, in, compress, column, factor, done);
	if (e->best.len)
		return true;
	if (!scale_own(&e->scale, in, levels))
		return false;
	numbers.values = in->numbers;
	try_one(e, &numbers, compress, column,
		levels ? COLUMN_PLAIN | COLUMN_LEVELS | COLUMN_SIGNED | COLUMN_SCALED :
				 COLUMN_COUNTED | COLUMN_SCALED,
		factor, done);
	return e->best.len;
}

bool column_encode(struct column_encoder *e, const struct column_in *in, bool compress,
	uint32_t column, uint64_t factor, struct column_done *done, struct buf *out)
{
	size_t cells = 0, n = in->starts[in->keys_n];
	bool negative = false, large;
	unsigned sign;

	for (size_t i = 0; i < n; i++) {
		cells += in->values[i] != 0;
		negative |= in->values[i] < 0;
	}
	buf_clear(&e->best);
	sign = negative ? COLUMN_SIGNED : 0;
	if (!negative && !in->levels_too)
		try_one(e, in, compress, column, COLUMN_COUNTED, factor, done);
	large = e->best.len == 0 || e->bits.bytes.len > cells * COUNTED_BITS_GOOD / 8;
	if (large && !negative) {
		buf_clear(&e->best);
		if (try_scaled(e, in, compress, column, factor, done))
			goto done;
	}
	if (!negative && (large || in->levels_too))
		try_one(e, in, compress, column, COLUMN_COUNTED, factor, done);
	if (large)
		try_one(e, in, compress, column,
			COLUMN_PLAIN | sign | (cells > n / SUMS_WORTH ? COLUMN_SUMS : 0), factor, done);
	if (in->levels_too && in->rows_n > 1)
		try_one(
			e, in, compress, column, COLUMN_PLAIN | COLUMN_LEVELS | COLUMN_SIGNED, factor, done);
done:
	if (!(done[column].coding & COLUMN_SCALED) ||
		(done[column].coding & COLUMN_CODING) == COLUMN_LIKE)
		memcpy(in->numbers, in->values, n * sizeof(*in->numbers));
	buf_add_str(out, buf_str(&e->best));
	return !e->tokens.failed && !e->values.failed && !e->sums.failed && !e->best.failed &&
		!e->packed.failed && !e->extra.bytes.failed && !e->places.bytes.failed &&
		!e->bits.bytes.failed && !e->scale.codes.failed && !e->scale.phases.bytes.failed;
}
