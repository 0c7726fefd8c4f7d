#include "tsdb/columns/varints.h"

#ifdef __x86_64__
#include <tmmintrin.h>
#endif

/*
 * Sums: eight of one byte at once, else four of one or two bytes without a branch on their length;
 * longer ones and the last bytes the slow way. Processors that shuffle bytes have another way.
 *
 * Values: the ends of all in a block of bytes are found first, so that none waits for the one
 * before it.
 */
#define SEVEN 0x7fu
#define TWO_BYTES(w) (((w)&0x8080) == 0x8080) /* and more to come */

/* The varint of so many bytes, 1 to 8, that word begins with. */
static inline uint64_t varints_squeeze(uint64_t word, unsigned bytes)
{
	word &= ~UINT64_C(0) >> (64 - 8 * bytes);
	if (__builtin_expect(bytes <= 4, 1)) {
		uint32_t v = (uint32_t)word;

		v = (v & 0x007f007fu) | (v & 0x7f007f00u) >> 1;
		return (v & 0x3fffu) | (v & 0x3fff0000u) >> 2;
	}
	word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
	word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
	return (word & UINT64_C(0x0fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

/* One: of up to eight bytes without a branch for each. */
static inline uint64_t varints_take_long(struct cursor *in)
{
	uint64_t w, ends;
	unsigned bytes;

	if (in->end - in->at < 8)
		return cursor_varint(in);
	w = varints_load8(in->at);
	ends = ~w & VARINTS_HIGH_BITS;
	if (!ends)
		return cursor_varint_slow(in);
	bytes = ((unsigned)__builtin_ctzll(ends) + 1) / 8;
	in->at += bytes;
	return varints_squeeze(w, bytes);
}

bool varints_sums_words(struct cursor *in, uint32_t n, uint32_t *out, uint64_t *from)
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
			any |= gap = varints_take_long(in);
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

#ifdef __x86_64__
#define LANE(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
#define NONE 0x80, 0x80, 0x80, 0x80

/* By four bits: shuffles the lanes whose bits are set to the front. */
static const _Alignas(16) unsigned char lanes_to_front[16][16] = {
	{ NONE, NONE, NONE, NONE },
	{ LANE(0), NONE, NONE, NONE },
	{ LANE(1), NONE, NONE, NONE },
	{ LANE(0), LANE(1), NONE, NONE },
	{ LANE(2), NONE, NONE, NONE },
	{ LANE(0), LANE(2), NONE, NONE },
	{ LANE(1), LANE(2), NONE, NONE },
	{ LANE(0), LANE(1), LANE(2), NONE },
	{ LANE(3), NONE, NONE, NONE },
	{ LANE(0), LANE(3), NONE, NONE },
	{ LANE(1), LANE(3), NONE, NONE },
	{ LANE(0), LANE(1), LANE(3), NONE },
	{ LANE(2), LANE(3), NONE, NONE },
	{ LANE(0), LANE(2), LANE(3), NONE },
	{ LANE(1), LANE(2), LANE(3), NONE },
	{ LANE(0), LANE(1), LANE(2), LANE(3) },
};

/* Stores four lanes at out, those whose bits are set first. Returns how many those are. */
__attribute__((target("ssse3,popcnt"))) static inline unsigned varints_store_lanes(
	uint32_t *out, __m128i lanes, unsigned bits)
{
	const __m128i *order = (const __m128i *)lanes_to_front[bits];

	_mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(lanes, _mm_load_si128(order)));
	return (unsigned)__builtin_popcount(bits);
}

/*
 * Gaps of one or two bytes, in blocks of eight bytes that may begin inside a gap: nothing waits for
 * where the gap before ended. Each byte counts as it is, or 128 times behind one that goes on; in
 * running sums of these, a gap's last byte has the sum of all gaps up to it. What eight bytes add
 * is below 2^16, as at most four of them count 128 times.
 *
 * Ends before a longer gap, in front of the last eight sums, or where 32 bits might not do. Returns
 * how many sums there are.
 */
__attribute__((target("ssse3,popcnt"))) static uint32_t varints_sums_in_blocks(
	struct cursor *in, uint32_t n, uint32_t *out, uint64_t *from)
{
	const __m128i zero = _mm_setzero_si128(), seven = _mm_set1_epi8(SEVEN);
	uint64_t blocks = (UINT32_MAX - *from) >> 16;
	__m128i sum = _mm_set1_epi32((int)(uint32_t)*from), low, high, first, gaps;
	unsigned open = 0; /* 1: the byte before goes on */
	uint32_t i = 0;

	if (blocks > cursor_left(in) / 8)
		blocks = cursor_left(in) / 8;
	for (; blocks && n - i >= 8; blocks--, in->at += 8) {
		const __m128i bytes = _mm_loadl_epi64((const __m128i *)in->at);
		const unsigned more = (unsigned)_mm_movemask_epi8(bytes);

		if (more & (more << 1 | open))
			break;
		first = _mm_or_si128(_mm_slli_epi64(bytes, 8), _mm_cvtsi32_si128((int)(open << 7)));
		first = _mm_srai_epi16(_mm_unpacklo_epi8(zero, first), 15); /* all bits: one goes on */
		gaps = _mm_unpacklo_epi8(_mm_and_si128(bytes, seven), zero);
		gaps = _mm_or_si128(
			_mm_andnot_si128(first, gaps), _mm_and_si128(first, _mm_slli_epi16(gaps, 7)));
		gaps = _mm_add_epi16(gaps, _mm_slli_si128(gaps, 2));
		gaps = _mm_add_epi16(gaps, _mm_slli_si128(gaps, 4));
		gaps = _mm_add_epi16(gaps, _mm_slli_si128(gaps, 8));
		low = _mm_add_epi32(sum, _mm_unpacklo_epi16(gaps, zero));
		high = _mm_add_epi32(sum, _mm_unpackhi_epi16(gaps, zero));
		i += varints_store_lanes(&out[i], low, ~more & 15);
		i += varints_store_lanes(&out[i], high, ~more >> 4 & 15);
		sum = _mm_shuffle_epi32(high, 0xff);
		open = more >> 7;
	}
	*from = (uint32_t)_mm_cvtsi128_si32(sum);
	if (open) /* not yet a gap */
		*from -= *--in->at & SEVEN;
	return i;
}

static bool varints_sums_blockwise(struct cursor *in, uint32_t n, uint32_t *out, uint64_t *from)
{
	uint32_t i = 0;

	while (n - i >= 16 && cursor_left(in) >= 16 && *from <= UINT32_MAX - (1u << 16)) {
		i += varints_sums_in_blocks(in, n - i, &out[i], from);
		if (n - i < 8)
			break;
		/* Over a longer gap. */
		if (!varints_sums_words(in, 8, &out[i], from))
			return false;
		i += 8;
	}
	return varints_sums_words(in, n - i, &out[i], from);
}
#endif

bool varints_sums(struct cursor *in, uint32_t n, uint32_t *out, uint64_t *from)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt"))
		return varints_sums_blockwise(in, n, out, from);
#endif
	return varints_sums_words(in, n, out, from);
}

/*
 * Products wrap where the bytes are hostile. -2^63 has a magnitude in 64 bits only; modulo 2^64 its
 * zigzag form and that of magnitudes are the same.
 */
static inline int64_t varints_scaled_back(uint64_t value, uint64_t factor, bool negative)
{
	return (int64_t)((negative ? (uint64_t)str_unzigzag(value) : value) * factor);
}

#define BLOCK 64u

/* Bit i: byte i of the block is the last of a varint. */
static inline uint64_t varints_ends_in(const unsigned char *bytes)
{
	uint64_t ends = 0;

#pragma GCC unroll 8
	for (unsigned i = 0; i < 8; i++) {
		uint64_t last = (~varints_load8(bytes + 8 * i) & VARINTS_HIGH_BITS) >> 7;

		/* Brings bit 8 * k to bit 56 + k. */
		ends |= (last * UINT64_C(0x0102040810204080)) >> 56 << (8 * i);
	}
	return ends;
}

/* Of more than eight bytes. */
static __attribute__((noinline)) uint64_t varints_take_longest(
	const unsigned char *bytes, const unsigned char *end, bool *bad)
{
	struct cursor in = { bytes, end, false };
	uint64_t v = cursor_varint_slow(&in);

	*bad |= in.bad;
	return v;
}

static inline __attribute__((always_inline)) bool varints_take_scaled(
	struct cursor *in, uint32_t n, uint64_t factor, bool negative, int64_t *out)
{
	unsigned char last[BLOCK + 8];
	uint32_t i = 0;

	while (i < n && !in->bad) {
		const unsigned char *p = in->at;
		const size_t left = cursor_left(in);
		uint64_t ends, v;
		size_t at = 0;

		if (left < sizeof(last)) { /* eight bytes can be loaded wherever one begins */
			memset(last, 0, sizeof(last));
			if (left)
				memcpy(last, p, left);
			p = last;
		}
		ends = varints_ends_in(p);
		if (left < BLOCK)
			ends &= (UINT64_C(1) << left) - 1;
		for (; ends && i < n; ends &= ends - 1) {
			const size_t end = (size_t)__builtin_ctzll(ends) + 1;

			if (__builtin_expect(end - at <= 8, 1))
				v = varints_squeeze(varints_load8(p + at), (unsigned)(end - at));
			else
				v = varints_take_longest(p + at, p + end, &in->bad);
			out[i++] = varints_scaled_back(v, factor, negative);
			at = end;
		}
		in->at += at;
		in->bad |= at == 0; /* one that does not end */
	}
	return !in->bad;
}

bool varints_are_bytes(const unsigned char *bytes, size_t n)
{
	uint64_t any = 0;
	size_t i = 0;

	for (; n - i >= 32; i += 32)
		any |= varints_load8(bytes + i) | varints_load8(bytes + i + 8) |
			varints_load8(bytes + i + 16) | varints_load8(bytes + i + 24);
	for (; i < n; i++)
		any |= (uint64_t)(bytes[i] & 0x80);
	return !(any & VARINTS_HIGH_BITS);
}

bool varints_values(struct cursor *in, uint32_t n, uint64_t factor, bool negative, int64_t *out)
{
	if (n <= cursor_left(in) && varints_are_bytes(in->at, n)) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = varints_scaled_back(in->at[i], factor, negative);
		in->at += n;
		return !in->bad;
	}
	return negative ? varints_take_scaled(in, n, factor, true, out) :
					  varints_take_scaled(in, n, factor, false, out);
}
