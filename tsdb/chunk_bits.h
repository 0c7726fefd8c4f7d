/*
 * Bits of a chunk: writing and reading numbers of few bits, and subsets.
 *
 * A *subset* of m of n places is what rows a stack is in, and, by stars and bars, how a sum falls
 * into values: every choice is taken for equally likely, so it should cost log2(n over m) bits. The
 * places of whichever are fewer, those in it or those outside, are coded by their gaps in Rice
 * codes whose parameter follows from n and m; the last gap is a plain number below what is left.
 * Nothing is stored beside them. Measured, that is 2 to 4 % above the logarithm.
 *
 * Bits are filled from the lowest; a Rice code is as many 0 as its quotient says, a 1, the rest.
 *
 * Units:   bits, where nothing else is said.
 * Errors:  a read past the end sets `bad` and goes on with harmless values: checked once per key.
 * Threads: values; no sharing.
 */
#ifndef TSDB_CHUNK_BITS_H
#define TSDB_CHUNK_BITS_H

#include <endian.h>

#include "base/str.h"

#define BITS_PAD 16u /* bytes that can be read behind what a reader reads */

static inline unsigned bit_length(uint64_t v)
{
	return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

/* The Rice parameter for a subset of m of n, 0 < m <= n / 2: best for gaps of a fair coin's kind
 * (it changes at n / m = 2.6, 4.7, 8.8, 17.1, ...). */
static inline unsigned subset_parameter(uint64_t n, uint64_t m)
{
	if (n < UINT64_C(1) << 32)
		return bit_length((2 * n - m) * 123 / (m * 512));
	return bit_length(n / m / 2);
}

/* ---- writing ---- */

struct bit_out {
	struct buf bytes;
	uint64_t w;
	unsigned have; /* bits in w, fewer than 64 */
};

void bits_put(struct bit_out *o, uint64_t v, unsigned n); /* n <= 64, v < 2^n */
void bits_finish(struct bit_out *o); /* the last byte is filled with 0 */
/* What it holds is given up, memory is kept. */
void bits_clear_out(struct bit_out *o);
/* v below range, in the bits it needs: some values take one bit less. */
void bits_put_below(struct bit_out *o, uint64_t v, uint64_t range);
/* The fewer of a subset's places: m of them, ascending, all below n. */
void bits_put_places(struct bit_out *o, uint64_t n, const uint64_t *places, uint64_t m);

/* ---- reading ---- */

struct bit_in {
	const unsigned char *base; /* BITS_PAD more bytes can be read behind the end */
	size_t at, end;
	uint64_t w; /* the next `have` bits */
	unsigned have;
	bool bad;
};

static inline struct bit_in bits_open(const void *base, size_t bytes)
{
	return (struct bit_in){ .base = base, .end = bytes * 8 };
}

static inline __attribute__((always_inline)) void bits_fill(struct bit_in *in)
{
	uint64_t w;

	if (__builtin_expect(in->at >= in->end, 0)) {
		in->bad |= in->at > in->end;
		in->w = ~UINT64_C(0);
		in->have = 64;
		return;
	}
	memcpy(&w, in->base + in->at / 8, sizeof(w));
	in->w = le64toh(w) >> (in->at & 7);
	in->have = 64 - (in->at & 7);
}

static inline __attribute__((always_inline)) void bits_skip(struct bit_in *in, unsigned n)
{
	in->w >>= n;
	in->have -= n;
	in->at += n;
}

/* n <= 32 */
static inline __attribute__((always_inline)) uint64_t bits_take(struct bit_in *in, unsigned n)
{
	uint64_t v;

	if (in->have < n)
		bits_fill(in);
	v = in->w & ((UINT64_C(1) << n) - 1);
	bits_skip(in, n);
	return v;
}

uint64_t bits_take_long(struct bit_in *in, unsigned n); /* n <= 63 */
uint64_t bits_take_gap_slow(struct bit_in *in, unsigned k);
uint64_t bits_take_below(struct bit_in *in, uint64_t range); /* 0 for a range of 0: see bad */

#define BITS_QUICK_PARAMETER 20u

/* A Rice code. k <= BITS_QUICK_PARAMETER is quick. */
static inline __attribute__((always_inline)) uint64_t bits_take_gap(struct bit_in *in, unsigned k)
{
	unsigned quotient;
	uint64_t v;

	if (in->have < 48)
		bits_fill(in);
	/* What is above `have` is 0, so an end that is found is a true one. */
	if (__builtin_expect(
		    (in->w & ((UINT64_C(1) << 24) - 1)) == 0 || k > BITS_QUICK_PARAMETER, 0))
		return bits_take_gap_slow(in, k);
	quotient = (unsigned)__builtin_ctzll(in->w);
	v = in->w >> (quotient + 1) & ((UINT64_C(1) << k) - 1);
	bits_skip(in, quotient + 1 + k);
	return (uint64_t)quotient << k | v;
}

/* Was all that was read there? */
static inline bool bits_sound(const struct bit_in *in)
{
	return !in->bad && in->at <= in->end;
}

/* And nothing more than the filling of the last byte. */
static inline bool bits_at_end(const struct bit_in *in)
{
	return bits_sound(in) && in->end - in->at < 8;
}

#endif
