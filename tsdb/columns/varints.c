#include "tsdb/columns/varints.h"

/*
 * Eight of one byte at once, else four of one or two bytes without a branch on their length; longer
 * ones and the last bytes the slow way.
 */
#define SEVEN 0x7fu
#define TWO_BYTES(w) (((w)&0x8080) == 0x8080) /* and more to come */

/* One of any length: of up to eight bytes without a branch for each. */
static inline uint64_t take_long(struct cursor *in)
{
	uint64_t w, ends;
	unsigned bits;

	if (in->end - in->at < 8)
		return cursor_varint_slow(in);
	w = varints_load8(in->at);
	ends = ~w & VARINTS_HIGH_BITS;
	if (!ends)
		return cursor_varint_slow(in);
	bits = (unsigned)__builtin_ctzll(ends) + 1;
	in->at += bits / 8;
	w &= ~UINT64_C(0) >> (64 - bits);
	w = (w & UINT64_C(0x007f007f007f007f)) | (w & UINT64_C(0x7f007f007f007f00)) >> 1;
	w = (w & UINT64_C(0x00003fff00003fff)) | (w & UINT64_C(0x3fff00003fff0000)) >> 2;
	return (w & UINT64_C(0x0fffffff)) | (w & UINT64_C(0x0fffffff00000000)) >> 4;
}

bool varints_sums(struct cursor *in, uint32_t n, uint32_t *out, uint64_t *from)
{
	uint64_t sum = *from, any = 0, w, gap;
	uint32_t i = 0;

	while (n - i >= 8 && in->end - in->at >= 8) {
		unsigned used = 0, k;

		w = varints_load8(in->at);
		if (!(w & VARINTS_HIGH_BITS)) {
			for (k = 0; k < 8; k++)
				out[i + k] = (uint32_t)(sum += w >> (8 * k) & SEVEN);
			in->at += 8;
			i += 8;
			continue;
		}
		for (k = 0; k < 4 && !__builtin_expect(TWO_BYTES(w), 0); k++) {
			unsigned two = (unsigned)(w >> 7) & 1;

			sum += (w & SEVEN) + ((w >> 1 & 0x3f80) & -(uint64_t)two);
			out[i + k] = (uint32_t)sum;
			used += 1 + two;
			w >>= 8;
			w >>= 8 * two;
		}
		in->at += used;
		i += k;
		if (k < 4) {
			any |= gap = take_long(in);
			out[i++] = (uint32_t)(sum += gap);
		}
	}
	while (i < n) {
		any |= gap = cursor_varint(in);
		out[i++] = (uint32_t)(sum += gap);
	}
	*from = sum; /* which only grows */
	return !in->bad && !((any | sum) >> 32);
}

/*
 * Products wrap where the bytes are hostile. -2^63 has a magnitude in 64 bits only; modulo 2^64 its
 * zigzag form and that of magnitudes are the same.
 */
static inline int64_t scaled_back(uint64_t v, uint64_t factor, bool negative)
{
	return (int64_t)((negative ? (uint64_t)unzigzag(v) : v) * factor);
}

static inline __attribute__((always_inline)) bool take_scaled(
	struct cursor *in, uint32_t n, uint64_t factor, bool negative, int64_t *out)
{
	uint32_t i = 0;
	uint64_t w;

	while (n - i >= 8 && in->end - in->at >= 8) {
		unsigned used = 0, k;

		w = varints_load8(in->at);
		if (!(w & VARINTS_HIGH_BITS)) {
			for (k = 0; k < 8; k++)
				out[i + k] = scaled_back(w >> (8 * k) & SEVEN, factor, negative);
			in->at += 8;
			i += 8;
			continue;
		}
		for (k = 0; k < 4 && !__builtin_expect(TWO_BYTES(w), 0); k++) {
			unsigned two = (unsigned)(w >> 7) & 1;

			out[i + k] = scaled_back(
				(w & SEVEN) + ((w >> 1 & 0x3f80) & -(uint64_t)two), factor, negative);
			used += 1 + two;
			w >>= 8;
			w >>= 8 * two;
		}
		in->at += used;
		i += k;
		if (k < 4)
			out[i++] = scaled_back(take_long(in), factor, negative);
	}
	while (i < n)
		out[i++] = scaled_back(cursor_varint(in), factor, negative);
	return !in->bad;
}

bool varints_values(struct cursor *in, uint32_t n, uint64_t factor, bool negative, int64_t *out)
{
	return negative ? take_scaled(in, n, factor, true, out) :
					  take_scaled(in, n, factor, false, out);
}
