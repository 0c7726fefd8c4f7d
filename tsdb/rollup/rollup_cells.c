#include "tsdb/rollup/rollup_cells.h"

#include <assert.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/array.h"
#include "base/integer.h"
#include "tsdb/columns/varints.h"

/*
 * Layout: n; if there are any: flags (byte, 1: label sets); the frame head of the stacks, of the
 * label sets; per column its coding (byte), factor and frame head; then the frames. A frame head is
 * the stored length x 2 + compressed, and where compressed the length before.
 *
 * Stacks are gaps (the first: to 0). Label sets are absolute after a new stack, gaps after the same
 * one. Values are divided by the column's greatest common divisor: CPU nanoseconds are multiples of
 * the period, weighted levels are of the interval. A column whose bytes are an earlier one's has
 * none: CPU nanoseconds are samples times the period.
 */
#define ZSTD_LEVEL 1
#define FRAME_MIN 64u /* shorter ones are not worth a frame */

/* ---- varints ---- */

static void rollup_cells_put_varint128(unsigned char **at, uint128 value)
{
	unsigned char *p = *at;

	for (; value >= 0x80; value >>= 7)
		*p++ = (unsigned char)value | 0x80;
	*p++ = (unsigned char)value;
	*at = p;
}

void buf_add_varint128(struct buf *b, uint128 value)
{
	unsigned char bytes[19], *at = bytes;

	rollup_cells_put_varint128(&at, value);
	buf_add(b, bytes, (size_t)(at - bytes));
}

uint128 cursor_varint128(struct cursor *c)
{
	uint128 v = 0;

	for (unsigned shift = 0; shift < 128 && c->at < c->end; shift += 7) {
		unsigned char byte = *c->at++;

		if (shift == 126 && byte > 3)
			break;
		v |= (uint128)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
	c->bad = true;
	c->at = c->end;
	return 0;
}

/* ---- making ---- */

void cells_encoder_release(struct cells_encoder *e)
{
	buf_release(&e->raw);
	buf_release(&e->frames);
	buf_release(&e->heads);
	free(e->columns);
	ZSTD_freeCCtx(e->zstd);
	*e = (struct cells_encoder){ 0 };
}

static struct cells_part cells_encoder_part_begin(const struct cells_encoder *e)
{
	return (struct cells_part){ .at = e->raw.len, .factor = 1, .same = UINT32_MAX };
}

void cells_begin(struct cells_encoder *e, const uint64_t *keys, uint32_t n)
{
	unsigned char *at;
	uint64_t any = 0;
	uint32_t stack = 0, set = 0;

	assert(n <= CELLS_MAX);
	buf_clear(&e->raw);
	e->n = n;
	e->columns_n = 0;
	e->failed = false;
	e->stacks = cells_encoder_part_begin(e);
	if (!buf_reserve(&e->raw, (size_t)n * 10))
		return;
	at = (unsigned char *)e->raw.ptr;
	for (uint32_t i = 0; i < n; i++) {
		varints_put(&at, (uint32_t)(keys[i] >> 32) - stack);
		stack = (uint32_t)(keys[i] >> 32);
		any |= (uint32_t)keys[i];
	}
	e->raw.len = e->stacks.len = (size_t)(at - (unsigned char *)e->raw.ptr);
	e->labels = any != 0;
	e->sets = cells_encoder_part_begin(e);
	for (uint32_t i = 0; e->labels && i < n; i++) {
		if (i == 0 || keys[i] >> 32 != keys[i - 1] >> 32)
			set = 0;
		varints_put(&at, (uint32_t)keys[i] - set);
		set = (uint32_t)keys[i];
	}
	e->raw.len = (size_t)(at - (unsigned char *)e->raw.ptr);
	e->sets.len = e->raw.len - e->sets.at;
}

struct rollup_cells_column_facts {
	uint128 factor;
	uint32_t zeros;
	bool negative, same, wide;
};

static bool rollup_cells_divides(uint128 factor, uint128 value)
{
	if (!(factor >> 64) && !(value >> 64))
		return (uint64_t)value % (uint64_t)factor == 0;
	return value % factor == 0;
}

static struct rollup_cells_column_facts rollup_cells_look(
	const int128 *values, uint32_t n, bool as_64)
{
	struct rollup_cells_column_facts f = { .same = true };

	for (uint32_t i = 0; i < n; i++) {
		f.zeros += values[i] == 0;
		f.negative |= values[i] < 0;
		f.same &= values[i] == values[0];
		f.wide |= as_64 && values[i] != (int64_t)values[i];
		if (values[i] && f.factor != 1 &&
			(f.factor == 0 || !rollup_cells_divides(f.factor, integer_magnitude128(values[i]))))
			f.factor = integer_gcd128(integer_magnitude128(values[i]), f.factor);
	}
	if (f.factor > INT64_MAX) {
		f.wide |= f.factor != (uint128)1 << 63; /* of INT64_MIN alone */
		f.factor = f.wide ? f.factor : 1;
	}
	for (uint32_t i = 0; i < n && f.factor && !f.wide; i++)
		f.wide = values[i] / (int128)f.factor != (int64_t)(values[i] / (int128)f.factor);
	return f;
}

static inline uint64_t rollup_cells_scaled(int128 value, uint64_t factor, bool negative)
{
	int64_t q = value == (int64_t)value ? (int64_t)value / (int64_t)factor :
										  (int64_t)(value / (int64_t)factor);

	return negative ? str_zigzag(q) : (uint64_t)q;
}

static enum cells_coding cells_encoder_encode_wide(
	struct cells_encoder *e, const int128 *value, const struct rollup_cells_column_facts *f)
{
	unsigned char *at;

	if (!buf_reserve(&e->raw, (size_t)e->n * 19))
		return CELLS_WIDE;
	at = (unsigned char *)e->raw.ptr + e->raw.len;
	for (uint32_t i = 0; i < e->n; i++) {
		uint128 m = integer_magnitude128(value[i]) / f->factor;

		/* -2^127 has no positive: twice its magnitude less one still fits. */
		rollup_cells_put_varint128(&at, value[i] < 0 ? (m << 1) - 1 : m << 1);
	}
	e->raw.len = (size_t)(at - (unsigned char *)e->raw.ptr);
	return CELLS_WIDE;
}

static enum cells_coding cells_encoder_encode_values(
	struct cells_encoder *e, const int128 *value, const struct rollup_cells_column_facts *f)
{
	bool sparse = f->zeros > e->n / 4;
	size_t bitmap = sparse ? ((size_t)e->n + 7) / 8 : 0;
	unsigned char *bits, *at;

	if (f->factor == 0)
		return CELLS_ZERO;
	if (f->wide)
		return cells_encoder_encode_wide(e, value, f);
	if (f->same && !f->negative)
		return CELLS_SAME;
	if (!buf_reserve(&e->raw, bitmap + (size_t)(e->n - (sparse ? f->zeros : 0)) * 10))
		return CELLS_PLAIN;
	bits = (unsigned char *)e->raw.ptr + e->raw.len;
	memset(bits, 0, bitmap);
	at = bits + bitmap;
	for (uint32_t i = 0; i < e->n; i++) {
		if (sparse && value[i] == 0)
			continue;
		if (sparse)
			bits[i / 8] |= (unsigned char)(1u << (i & 7));
		varints_put(&at, rollup_cells_scaled(value[i], (uint64_t)f->factor, f->negative));
	}
	e->raw.len = (size_t)(at - (unsigned char *)e->raw.ptr);
	if (sparse)
		return f->negative ? CELLS_SPARSE_SIGNED : CELLS_SPARSE;
	return f->negative ? CELLS_SIGNED : CELLS_PLAIN;
}

void cells_column(struct cells_encoder *e, const int128 *values, bool as_64)
{
	struct rollup_cells_column_facts f = rollup_cells_look(values, e->n, as_64);
	struct cells_part part = cells_encoder_part_begin(e);

	part.factor = f.factor;
	part.coding = cells_encoder_encode_values(e, values, &f);
	part.len = e->raw.len - part.at;
	for (uint32_t c = 0; c < e->columns_n && part.len && part.same == UINT32_MAX; c++)
		if (e->columns[c].len == part.len && e->columns[c].coding == part.coding &&
			!memcmp(e->raw.ptr + e->columns[c].at, e->raw.ptr + part.at, part.len))
			part.same = c;
	if (part.same != UINT32_MAX) {
		e->raw.len = part.at;
		part.len = 0;
	}
	if (!array_room(&e->columns, e->columns_n, 1, &e->columns_cap)) {
		e->failed = true;
		return;
	}
	e->columns[e->columns_n++] = part;
}

/* Its head into heads, its bytes into frames. */
static void cells_encoder_add_frame(struct cells_encoder *e, const struct cells_part *p)
{
	size_t most = ZSTD_compressBound(p->len), n = 0;

	if (e->failed)
		return;
	if (p->len >= FRAME_MIN && buf_reserve(&e->frames, most)) {
		n = ZSTD_compressCCtx(
			e->zstd, e->frames.ptr + e->frames.len, most, e->raw.ptr + p->at, p->len, ZSTD_LEVEL);
		if (ZSTD_isError(n) || n > p->len - p->len / 10 || p->len / n >= CELLS_RATIO_MAX)
			n = 0;
	}
	if (n) {
		e->frames.len += n;
		buf_add_varint(&e->heads, (uint64_t)n << 1 | 1);
		buf_add_varint(&e->heads, p->len);
	} else {
		if (p->len)
			buf_add(&e->frames, e->raw.ptr + p->at, p->len);
		buf_add_varint(&e->heads, (uint64_t)p->len << 1);
	}
}

static bool rollup_cells_has_frame(enum cells_coding coding)
{
	return coding != CELLS_ZERO && coding != CELLS_SAME;
}

enum err_code cells_end(struct cells_encoder *e, struct buf *out, struct err *err)
{
	if (!e->zstd && !(e->zstd = ZSTD_createCCtx()))
		return err_nomem(err, "rollup");
	buf_clear(&e->heads);
	buf_clear(&e->frames);
	e->failed |= buf_failed(&e->raw);
	buf_add_varint(&e->heads, e->n);
	if (e->n) {
		buf_add_char(&e->heads, e->labels ? CELLS_LABELS : 0);
		cells_encoder_add_frame(e, &e->stacks);
		if (e->labels)
			cells_encoder_add_frame(e, &e->sets);
	}
	for (uint32_t c = 0; e->n && c < e->columns_n; c++) {
		const struct cells_part *p = &e->columns[c];
		bool shared = p->same != UINT32_MAX;

		buf_add_char(&e->heads, (char)(p->coding | (shared ? CELLS_SHARED : 0)));
		if (p->coding != CELLS_ZERO)
			buf_add_varint128(&e->heads, p->factor);
		if (shared)
			buf_add_varint(&e->heads, p->same);
		else if (rollup_cells_has_frame(p->coding))
			cells_encoder_add_frame(e, p);
	}
	buf_add_str(out, buf_str(&e->heads));
	buf_add_str(out, buf_str(&e->frames));
	if (e->failed || buf_failed(out) || buf_failed(&e->heads) || buf_failed(&e->frames)) {
		cells_encoder_release(e); /* usable again */
		return err_nomem(err, "rollup");
	}
	return ERR_OK;
}
