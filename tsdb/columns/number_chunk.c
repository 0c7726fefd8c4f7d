#include "tsdb/columns/number_chunk.h"

#include <assert.h>
#include <math.h>
#include <zstd.h>

/*
 * Layout: version (byte, 1); n; first time *z*; unit; a column of times; coding of the values
 * (byte); a column of values. A column is its size x 2 + compressed, if compressed the size it is
 * stored in, and its bytes.
 *
 * Times: n - 1 distances in units, each as the difference (*z*) to the distance before. The unit is
 * the greatest common divisor of the distances: times that were cut to milliseconds cost what the
 * jitter of the scrapes costs.
 *
 * Values: measured values have few decimal digits, however many bits the float64 has. If every
 * value but stale marks is exactly k / 10^e for integers k and one e up to 9, the k are stored as
 * distances; durations in nanoseconds are of that kind. Else the bits are stored, each xor the ones
 * before, byte by byte in planes, so that bytes of sign and exponent are neighbours.
 */
#define VERSION 1
#define ZSTD_LEVEL 1
#define COLUMN_MIN 64u /* fewer bytes are not worth a frame */
#define DECIMALS_MAX 9
#define INTEGER_MAX 9007199254740992.0 /* 2^53: integers below it are exact */
#define COLUMN_MAX ((size_t)NUMBER_CHUNK_MAX * 10) /* a varint per value */

enum coding {
	CODING_SAME, /* all have the bits of the first: be64 */
	CODING_XOR, /* 8 planes of n bytes, the highest first */
	CODING_DECIMAL, /* + e: 0 a stale mark, else 1 + *z* distance of the k to the one before */
};

static const double powers[DECIMALS_MAX + 1] = { 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9 };

/* ---- encoding ---- */

static uint64_t number_chunk_unit_of(const struct number_chunk *c)
{
	uint64_t unit = 0;

	for (uint32_t i = 1; i < c->n && unit != 1; i++) {
		uint64_t a = (uint64_t)c->ts[i] - (uint64_t)c->ts[i - 1], rest;

		while (unit) {
			rest = a % unit;
			a = unit;
			unit = rest;
		}
		unit = a;
	}
	return unit;
}

static void number_chunk_add_times(const struct number_chunk *c, uint64_t unit, struct buf *out)
{
	int64_t before = 0;

	for (uint32_t i = 1; i < c->n; i++) {
		int64_t step = (int64_t)(((uint64_t)c->ts[i] - (uint64_t)c->ts[i - 1]) / unit);

		buf_add_varint(out, str_zigzag(step - before));
		before = step;
	}
}

static bool number_chunk_decimal_of(double value, int error, int64_t *at)
{
	double wide = value * powers[error];

	if (!(fabs(wide) < INTEGER_MAX))
		return false;
	*at = llround(wide);
	return number_bits((double)*at / powers[error]) == number_bits(value);
}

/* The smallest e with which all values are exact, -1: none. */
static int number_chunk_decimals_of(const struct number_chunk *c)
{
	int64_t k;
	uint32_t i;

	/* Each from the start: where few digits are exact more need not be. */
	for (int e = 0; e <= DECIMALS_MAX; e++) {
		for (i = 0; i < c->n; i++)
			if (!number_is_stale(c->values[i]) && !number_chunk_decimal_of(c->values[i], e, &k))
				break;
		if (i == c->n)
			return e;
	}
	return -1;
}

static void number_chunk_add_decimals(const struct number_chunk *c, int error, struct buf *out)
{
	int64_t before = 0, k = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		if (number_is_stale(c->values[i])) {
			buf_add_varint(out, 0);
			continue;
		}
		(void)number_chunk_decimal_of(c->values[i], error, &k);
		buf_add_varint(out, str_zigzag(k - before) + 1);
		before = k;
	}
}

static void number_chunk_add_planes(const struct number_chunk *c, struct buf *out)
{
	for (int shift = 56; shift >= 0; shift -= 8) {
		uint64_t before = 0;

		for (uint32_t i = 0; i < c->n; i++) {
			uint64_t bits = number_bits(c->values[i]);

			buf_add_char(out, (char)((bits ^ before) >> shift));
			before = bits;
		}
	}
}

static bool number_chunk_all_same(const struct number_chunk *c)
{
	for (uint32_t i = 1; i < c->n; i++)
		if (number_bits(c->values[i]) != number_bits(c->values[0]))
			return false;
	return true;
}

/* Size x 2 + compressed, the size it is stored in if compressed, the bytes. */
static void number_chunk_add_column(struct str raw, struct buf *out)
{
	char packed[ZSTD_COMPRESSBOUND(COLUMN_MAX)];
	size_t n = 0;

	if (raw.len >= COLUMN_MIN) {
		n = ZSTD_compress(packed, sizeof(packed), raw.ptr, raw.len, ZSTD_LEVEL);
		if (ZSTD_isError(n) || n > raw.len - raw.len / 10)
			n = 0;
	}
	buf_add_varint(out, (uint64_t)raw.len << 1 | (n > 0));
	if (n) {
		buf_add_varint(out, n);
		buf_add(out, packed, n);
	} else {
		buf_add_str(out, raw);
	}
}

enum err_code number_chunk_encode(const struct number_chunk *c, struct buf *out, struct err *err)
{
	uint64_t unit = number_chunk_unit_of(c);
	struct buf raw = { 0 };
	bool failed;
	int e;

	assert(c->n > 0 && c->n <= NUMBER_CHUNK_MAX);
	buf_add_char(out, VERSION);
	buf_add_varint(out, c->n);
	buf_add_varint(out, str_zigzag(c->ts[0]));
	buf_add_varint(out, unit);
	number_chunk_add_times(c, unit, &raw);
	number_chunk_add_column(buf_str(&raw), out);
	buf_clear(&raw);
	if (number_chunk_all_same(c)) {
		buf_add_char(out, CODING_SAME);
		buf_add_u64be(&raw, number_bits(c->values[0]));
	} else if ((e = number_chunk_decimals_of(c)) >= 0) {
		buf_add_char(out, (char)(CODING_DECIMAL + e));
		number_chunk_add_decimals(c, e, &raw);
	} else {
		buf_add_char(out, CODING_XOR);
		number_chunk_add_planes(c, &raw);
	}
	number_chunk_add_column(buf_str(&raw), out);
	failed = buf_failed(&raw) || buf_failed(out);
	buf_release(&raw);
	return failed ? err_nomem(err, "numbers") : ERR_OK;
}

/* ---- decoding ---- */

static enum err_code number_chunk_wrong(const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "numbers: %s", what);
}

static enum err_code number_chunk_read_times(
	struct cursor *in, uint64_t unit, struct number_chunk *out, struct err *err)
{
	uint64_t step = 0, far;

	for (uint32_t i = 1; i < out->n; i++) {
		step += (uint64_t)str_unzigzag(cursor_varint(in));
		if ((int64_t)step <= 0 || __builtin_mul_overflow(step, unit, &far) ||
			far > (uint64_t)INT64_MAX ||
			__builtin_add_overflow(out->ts[i - 1], (int64_t)far, &out->ts[i]) || !far)
			return number_chunk_wrong("their times do not ascend", err);
	}
	return ERR_OK;
}

static enum err_code number_chunk_read_decimals(
	struct cursor *in, int error, struct number_chunk *out, struct err *err)
{
	uint64_t k = 0;

	for (uint32_t i = 0; i < out->n; i++) {
		uint64_t code = cursor_varint(in);

		if (code)
			k += (uint64_t)str_unzigzag(code - 1);
		out->values[i] = code ? (double)(int64_t)k / powers[error] :
								number_of_bits(NUMBER_STALE_BITS);
	}
	return in->bad ? number_chunk_wrong("their values are wrong", err) : ERR_OK;
}

static enum err_code number_chunk_read_planes(
	struct cursor *in, struct number_chunk *out, struct err *err)
{
	struct str planes = cursor_bytes(in, (size_t)out->n * 8);
	uint64_t bits = 0;

	if (in->bad)
		return number_chunk_wrong("their values are wrong", err);
	for (uint32_t i = 0; i < out->n; i++) {
		uint64_t x = 0;

		for (size_t p = 0; p < 8; p++)
			x = x << 8 | (unsigned char)planes.ptr[p * out->n + i];
		bits ^= x;
		out->values[i] = number_of_bits(bits);
	}
	return ERR_OK;
}

static enum err_code number_chunk_read_values(
	struct cursor *in, int coding, struct number_chunk *out, struct err *err)
{
	double v;

	if (coding >= CODING_DECIMAL)
		return number_chunk_read_decimals(in, coding - CODING_DECIMAL, out, err);
	if (coding == CODING_XOR)
		return number_chunk_read_planes(in, out, err);
	v = number_of_bits(cursor_u64be(in));
	for (uint32_t i = 0; i < out->n; i++)
		out->values[i] = v;
	return in->bad ? number_chunk_wrong("their values are wrong", err) : ERR_OK;
}

/* Into unpacked, where it is compressed. */
static enum err_code number_chunk_read_column(
	struct cursor *in, char unpacked[COLUMN_MAX], struct cursor *out, struct err *err)
{
	uint64_t len = cursor_varint(in), packed = len & 1 ? cursor_varint(in) : len >> 1;
	struct str raw;

	if (in->bad || len >> 1 > COLUMN_MAX || packed > cursor_left(in))
		return number_chunk_wrong("a column's head is wrong", err);
	raw = cursor_bytes(in, packed);
	if (len & 1) {
		if (ZSTD_decompress(unpacked, COLUMN_MAX, raw.ptr, raw.len) != len >> 1)
			return number_chunk_wrong("a column cannot be unpacked", err);
		raw = (struct str){ unpacked, len >> 1 };
	}
	*out = cursor_of(raw);
	return ERR_OK;
}

static enum err_code number_chunk_left_over(const struct cursor *c, struct err *err)
{
	return c->bad || cursor_left(c) ? number_chunk_wrong("bytes are left over", err) : ERR_OK;
}

enum err_code number_chunk_decode(struct str bytes, struct number_chunk *out, struct err *err)
{
	struct cursor in = cursor_of(bytes), column;
	char unpacked[COLUMN_MAX];
	uint64_t unit;
	struct str byte;
	int coding;
	enum err_code rc;

	byte = cursor_bytes(&in, 1);
	out->n = cursor_u32(&in);
	if (in.bad || byte.ptr[0] != VERSION || !out->n || out->n > NUMBER_CHUNK_MAX)
		return number_chunk_wrong("their head is wrong", err);
	out->ts[0] = str_unzigzag(cursor_varint(&in));
	unit = cursor_varint(&in);
	if ((rc = number_chunk_read_column(&in, unpacked, &column, err)) ||
		(rc = number_chunk_read_times(&column, unit, out, err)) ||
		(rc = number_chunk_left_over(&column, err)))
		return rc;
	byte = cursor_bytes(&in, 1);
	coding = in.bad ? -1 : (unsigned char)byte.ptr[0];
	if (coding < 0 || coding > CODING_DECIMAL + DECIMALS_MAX)
		return number_chunk_wrong("the coding of their values is wrong", err);
	if ((rc = number_chunk_read_column(&in, unpacked, &column, err)) ||
		(rc = number_chunk_read_values(&column, coding, out, err)) ||
		(rc = number_chunk_left_over(&column, err)))
		return rc;
	return number_chunk_left_over(&in, err);
}
