#include <assert.h>
#include <stdlib.h>

#include "tsdb/columns/coding.h"

/*
 * Writes one column of a chunk: each coding that could pay is made, the shortest is kept. The
 * codings' files say how cells become bytes; here is what they share: numbers and places of keys.
 */

/* Values of more bits than this each, counted, might be shorter as bytes that repeat. */
#define COUNTED_BITS_GOOD 6u
/* Of zstd: the most that its shortest match can be, the smallest table to find matches by. */
#define MATCH_LONGEST 7
#define HASH_LEAST 6

void column_encoder_close(struct column_encoder *e)
{
	if (!e)
		return;
	ZSTD_freeCCtx(e->zstd);
	free(e->counts);
	free(e->starts);
	free(e->rests);
	free(e->places_starts);
	free(e->bits_starts);
	free(e->order.keys);
	free(e->order.listed);
	free(e->order.classes);
	for (unsigned i = 0; i < STREAMS; i++)
		buf_release(&e->dealt[i].bytes);
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

static bool chunk_encode_column_reserve_streams(struct column_encoder *e)
{
	size_t n = (size_t)e->keys_n + 1;

	e->streams = true;
	e->places_starts = malloc(n * sizeof(*e->places_starts));
	e->bits_starts = malloc(n * sizeof(*e->bits_starts));
	e->order.keys = malloc(n * sizeof(*e->order.keys));
	e->order.listed = malloc(n * sizeof(*e->order.listed));
	e->order.classes = malloc(n * sizeof(*e->order.classes));
	return e->places_starts && e->bits_starts && e->order.keys && e->order.listed &&
		e->order.classes;
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
	if (scale_open(&e->scale, keys_n) && e->zstd && e->counts && e->starts && e->rests &&
		(keys_n < CHUNK_STREAMS_KEYS || chunk_encode_column_reserve_streams(e)))
		return e;
	column_encoder_close(e);
	return NULL;
}

uint32_t column_encoder_broken(const struct column_encoder *e)
{
	return e->scale.broken;
}

bool column_encoder_broken_clearly(const struct column_encoder *e)
{
	return e->scale.broken && e->scale.clear;
}

/* Its length, the length as stored, the bytes: compressed where that saves a 32nd. */
void section_put(ZSTD_CCtx *zstd, const struct buf *raw, enum packing how, struct buf *out)
{
	bool small = how == PACK_SMALL;
	size_t most = ZSTD_compressBound(raw->len), n = raw->len, head = out->len;

	buf_add_varint(out, raw->len);
	if (raw->len == 0)
		return;
	if (how && raw->len > 32) {
		/* Leaves room for the length in front: at most ten bytes. */
		if (!buf_reserve(out, most + 10))
			return;
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, 1);
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_minMatch, small ? MATCH_LONGEST : 0);
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_hashLog, small ? HASH_LEAST : 0);
		n = ZSTD_compress2(zstd, out->ptr + out->len + 10, most, raw->ptr, raw->len);
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

void key_cells_take(const struct column_in *in, const int64_t *values, uint32_t key, bool levels,
	struct key_cells *out)
{
	uint32_t n = 0;

	if (levels) {
		levels_take(in, values, key, out);
		return;
	}
	for (size_t i = in->starts[key]; i < in->starts[key + 1]; i++) {
		out->places[n] = in->rows[i];
		out->values[n] = values[i];
		n += values[i] != 0;
	}
	out->n = n;
	out->starts = false;
}

/* ---- subsets ---- */

/* Writes count places of n; if they are more than half, writes the others. */
static void chunk_encode_column_put_subset(
	struct column_encoder *e, struct bit_out *o, uint32_t n, const uint64_t *places, uint32_t count)
{
	uint32_t others = 0, next = 0;

	if (count <= n / 2) {
		bits_put_places(o, n, places, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		while (next < places[i])
			e->subset[others++] = next++;
		next++;
	}
	while (next < n)
		e->subset[others++] = next++;
	bits_put_places(o, n, e->subset, others);
}

/* ---- tokens ---- */

static unsigned chunk_encode_column_class_of(uint64_t value)
{
	unsigned class = 8;

	if (value < 8)
		return (unsigned)value;
	while (class < TOKEN_OPEN && value >= token_base[class] + (UINT64_C(1) << token_bits[class]))
		class ++;
	return class;
}

static void chunk_encode_column_put_extra(struct bit_out *o, unsigned class, uint64_t value)
{
	if (class < TOKEN_OPEN) {
		bits_put(o, value - token_base[class], token_bits[class]);
		return;
	}
	bits_put(o, bit_length(value), TOKEN_OPEN_BITS);
	bits_put(o, value, bit_length(value));
}

/* shared: the numbers are another column's. */
static void chunk_encode_column_put_tokens(struct column_encoder *e, bool shared)
{
	buf_clear(&e->tokens);
	bits_clear_out(&e->extra);
	if (!buf_reserve(&e->tokens, e->keys_n))
		return;
	for (uint32_t k = 0; k < e->keys_n; k++) {
		uint64_t count = shared ? 0 : e->counts[k], rest = e->rests[k];

		e->tokens.ptr[k] = (char)(chunk_encode_column_class_of(count) |
			chunk_encode_column_class_of(rest) << 4);
		chunk_encode_column_put_extra(&e->extra, chunk_encode_column_class_of(count), count);
		chunk_encode_column_put_extra(&e->extra, chunk_encode_column_class_of(rest), rest);
	}
	e->tokens.len = e->keys_n;
	bits_finish(&e->extra);
}

/* ---- a column in one coding ---- */

void column_put_value(struct buf *out, unsigned flags, int64_t value)
{
	buf_add_varint(out, flags & COLUMN_SIGNED ? str_zigzag(value) : (uint64_t)value);
}

/* Bits of keys to streams; they were written key after key. */
static void chunk_encode_column_deal(
	struct column_encoder *e, const struct coding *coding, uint32_t rows_n)
{
	e->places_starts[e->keys_n] = bits_written(&e->places);
	e->bits_starts[e->keys_n] = bits_written(&e->bits);
	bits_finish(&e->places);
	chunk_order_places(&e->order, e->counts, e->keys_n, rows_n);
	chunk_streams_deal(&e->places, e->places_starts, &e->order, e->dealt);
	bits_finish(&e->bits);
	if (!coding->values_are_bits)
		return;
	chunk_order_values(&e->order, e->counts, e->rests, e->keys_n, rows_n);
	chunk_streams_deal(&e->bits, e->bits_starts, &e->order, e->dealt);
}

static bool chunk_encode_column_put_keys(struct column_encoder *e, const struct coding *coding,
	const struct column_in *in, unsigned *flags)
{
	bool levels = coding->levels;
	struct key_cells *c = &e->cells;

	bits_clear_out(&e->places);
	bits_clear_out(&e->bits);
	buf_clear(&e->values);
	buf_clear(&e->sums);
	for (uint32_t k = 0; k < in->keys_n; k++) {
		key_cells_take(in, in->values, k, levels, c);
		if (e->streams) {
			e->places_starts[k] = bits_written(&e->places);
			e->bits_starts[k] = bits_written(&e->bits);
		}
		if (!coding->put_key(e, c, flags, &e->rests[k]))
			return false;
		e->counts[k] = (uint16_t)(c->n - c->starts);
		e->starts[k] = c->starts;
		if (levels) {
			for (uint32_t i = 0; i < e->counts[k]; i++)
				e->subset[i] = c->places[c->starts + i] - 1;
			memcpy(c->places, e->subset, e->counts[k] * sizeof(*c->places));
		}
		chunk_encode_column_put_subset(e, &e->places, in->rows_n - levels, c->places, e->counts[k]);
	}
	if (e->streams) {
		chunk_encode_column_deal(e, coding, in->rows_n - levels);
		return true;
	}
	bits_finish(&e->places);
	bits_finish(&e->bits);
	return true;
}

/* An earlier column with the same places; else this one. */
static uint32_t chunk_encode_column_find_places(const struct column_try *t, bool levels)
{
	const struct column_encoder *e = t->e;
	const struct column_done *done = t->done;

	for (uint32_t i = 0; i <= ROW_COLUMNS_MAX; i++)
		if (i != t->column && done[i].counts && levels == done[i].coding->levels &&
			str_eq(buf_str(&done[i].places), buf_str(&e->places.bytes)) &&
			!memcmp(done[i].counts, e->counts, e->keys_n * sizeof(*e->counts)) &&
			!memcmp(done[i].starts, e->starts, e->keys_n))
			return i;
	return t->column;
}

bool column_encode_keys(
	struct column_try *t, const struct coding *coding, const struct column_in *in, unsigned flags)
{
	struct column_encoder *e = t->e;
	const struct buf *sections[COLUMN_SECTIONS] = { &e->tokens, &e->extra.bytes, &e->places.bytes,
		coding->values_are_bits ? &e->bits.bytes : &e->values, &e->sums, &e->scale.codes,
		&e->scale.phases.bytes };
	unsigned bits = SECTION_BIT(SECTION_EXTRA) | SECTION_BIT(SECTION_PHASES) |
		(coding->values_are_bits ? SECTION_BIT(SECTION_VALUES) : 0);
	unsigned has;
	uint32_t places;

	flags |= coding->byte;
	if (!chunk_encode_column_put_keys(e, coding, in, &flags))
		return false;
	places = chunk_encode_column_find_places(t, coding->levels);
	if (places != t->column)
		flags |= COLUMN_SHARED;
	chunk_encode_column_put_tokens(e, flags & COLUMN_SHARED);
	buf_clear(&e->packed);
	buf_add_char(&e->packed, (char)flags);
	buf_add_varint(&e->packed, t->factor);
	if (flags & COLUMN_SHARED)
		buf_add_varint(&e->packed, places);
	has = coding_sections(coding, flags);
	for (unsigned s = 0; s < COLUMN_SECTIONS; s++)
		if (has & SECTION_BIT(s))
			section_put(e->zstd, sections[s],
				!t->compress || bits & SECTION_BIT(s) ? PACK_NOT :
					s == SECTION_TOKENS               ? PACK_SMALL :
														PACK_REPEATED,
				&e->packed);
	t->made = flags;
	return true;
}

/* ---- the shortest ---- */

/* Later columns may share places that this column has itself. */
static void chunk_encode_column_keep_places(const struct column_encoder *e,
	const struct coding *coding, unsigned flags, struct column_done *done)
{
	done->coding = coding;
	if (!(coding_sections(coding, flags) & SECTION_BIT(SECTION_PLACES)))
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

/* Keeps it if it is the shortest so far; of equal ones the first stays. */
static void chunk_encode_column_try_one(
	struct column_try *t, const struct coding *coding, struct column_done *done)
{
	struct column_encoder *e = t->e;
	struct column_done mine = { 0 };

	if (!coding->encode(t) || (e->best.len && e->best.len <= e->packed.len))
		return;
	assert(coding_of(t->made) == coding);
	chunk_encode_column_keep_places(e, coding, t->made, &mine);
	free(done->counts);
	free(done->starts);
	buf_release(&done->places);
	*done = mine;
	buf_clear(&e->best);
	buf_add_str(&e->best, buf_str(&e->packed));
}

/* True for counts that cost few bits, as in most columns: no other coding would be shorter. */
static bool chunk_encode_column_try_small_counts(struct column_try *t, struct column_done *done)
{
	struct column_encoder *e = t->e;

	if (t->negative || t->in->levels_too)
		return false;
	chunk_encode_column_try_one(t, &coding_counted, done);
	if (e->best.len && e->bits.bytes.len <= t->cells * COUNTED_BITS_GOOD / 8)
		return true;
	buf_clear(&e->best);
	return false;
}

bool column_encode(struct column_encoder *e, const struct column_in *in, bool compress,
	uint32_t column, uint64_t factor, struct column_done *done, struct buf *out)
{
	struct column_try t = { .e = e,
		.in = in,
		.compress = compress,
		.column = column,
		.factor = factor,
		.done = done,
		.levels = in->levels_too && in->rows_n > 1 };
	size_t n = in->starts[in->keys_n];

	assert(in->keys_n == e->keys_n && in->rows_n == e->rows_n && factor);
	for (size_t i = 0; i < n; i++) {
		t.cells += in->values[i] != 0;
		t.negative |= in->values[i] < 0;
	}
	buf_clear(&e->best);
	if (!chunk_encode_column_try_small_counts(&t, &done[column]))
		for (unsigned i = 0; i < CODINGS_N; i++) {
			if (!codings[i]->encode)
				continue;
			chunk_encode_column_try_one(&t, codings[i], &done[column]);
			if (codings[i]->settles && e->best.len)
				break;
		}
	buf_add_str(out, buf_str(&e->best));
	return !e->tokens.failed && !e->values.failed && !e->sums.failed && !e->best.failed &&
		!e->packed.failed && !e->extra.bytes.failed && !e->places.bytes.failed &&
		!e->bits.bytes.failed && !e->scale.codes.failed && !e->scale.phases.bytes.failed;
}
