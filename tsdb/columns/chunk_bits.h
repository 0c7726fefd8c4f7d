/*
 * Bits of a chunk: writing and reading numbers of few bits, and subsets.
 *
 * A *subset* of m of n places says which rows a stack is in, and, by stars and bars, how a sum
 * falls into values. Every choice counts as equally likely, so it should cost log2(n over m) bits.
 * Either the places in it or those outside are coded, whichever are fewer: their gaps in Rice codes
 * whose parameter follows from n and m. The last gap is a plain number below the number of places
 * left. Nothing else is stored. Measured, that is 2 to 4 % above the logarithm.
 *
 * Bits are filled from the lowest; a Rice code is as many 0 as its quotient says, a 1, the rest.
 *
 * Units:   bits, where nothing else is said.
 * Errors:  a read past the end sets `bad` and goes on with harmless values: checked once per key.
 * Threads: values; no sharing.
 */
#ifndef TSDB_COLUMNS_CHUNK_BITS_H
#define TSDB_COLUMNS_CHUNK_BITS_H

#include <endian.h>

#include "base/str.h"

#define BITS_PAD 16u /* bytes that can be read behind what a reader reads */

static inline unsigned bit_length(uint64_t value)
{
	return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* The Rice parameter for a subset of count of n, 0 < count <= n / 2: best for gaps of a fair coin's
 * kind (it changes at n / count = 2.6, 4.7, 8.8, 17.1, ...). */
static inline unsigned chunk_bits_subset_parameter(uint64_t n, uint64_t count)
{
	uint64_t a = (2 * n - count) * 123, b = count * 512;
	int more;

	if (n >= UINT64_C(1) << 32)
		return bit_length(n / count / 2);
	/* The bit length of a / b, without a division. */
	more = __builtin_clzll(b) - __builtin_clzll(a);
	return more < 0 ? 0 : (unsigned)more + (a >= b << more);
}

/* ---- writing ---- */

struct bit_out {
	struct buf bytes;
	uint64_t w;
	unsigned have; /* bits in w, fewer than 64 */
};

void bits_flush(struct bit_out *o); /* 64 bits are full */

/* n <= 64, value < 2^n */
static inline void bits_put(struct bit_out *o, uint64_t value, unsigned n)
{
	if (n == 0)
		return;
	o->w |= value << o->have;
	if (o->have + n < 64) {
		o->have += n;
		return;
	}
	bits_flush(o);
	o->w = o->have ? value >> (64 - o->have) : 0;
	o->have = o->have + n - 64;
}

static inline size_t bits_written(const struct bit_out *o)
{
	return o->bytes.len * 8 + o->have;
}

void bits_finish(struct bit_out *o); /* the last byte is filled with 0 */
/* Empty again; memory is kept. */
void bits_clear_out(struct bit_out *o);
/* value below range, in the bits it needs: some values take one bit less. */
void bits_put_below(struct bit_out *o, uint64_t value, uint64_t range);
/* The fewer of a subset's places: count of them, ascending, all below n. */
void bits_put_places(struct bit_out *o, uint64_t n, const uint64_t *places, uint64_t count);

/* ---- reading ---- */

struct bit_in {
	const unsigned char *base; /* BITS_PAD more bytes can be read behind the end */
	size_t next, end; /* bits: behind those in w, and of all */
	uint64_t w; /* the next `have` bits, 0 above */
	unsigned have;
	bool bad;
};

static inline struct bit_in bits_open(const void *base, size_t bytes)
{
	return (struct bit_in){ .base = base, .end = bytes * 8 };
}

static inline size_t bits_at(const struct bit_in *in)
{
	return in->next - in->have;
}

/* At least 57 bits. At the end: ones, so that what looks for one finds it. */
static inline __attribute__((always_inline)) void bits_fill(struct bit_in *in)
{
	size_t at = bits_at(in);
	uint64_t w;

	if (__builtin_expect(at >= in->end, 0)) {
		in->bad |= at > in->end;
		in->w = ~UINT64_C(0);
		in->have = 64;
		in->next = at + 64;
		return;
	}
	memcpy(&w, in->base + at / 8, sizeof(w));
	in->w = le64toh(w) >> (at & 7);
	in->have = 64 - (at & 7);
	in->next = at + in->have;
}

static inline __attribute__((always_inline)) void bits_skip(struct bit_in *in, unsigned n)
{
	in->w >>= n;
	in->have -= n;
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
uint64_t bits_take_gap_slow(struct bit_in *in, unsigned at);
uint64_t bits_take_below_slow(struct bit_in *in, uint64_t range);

#define BITS_QUICK_PARAMETER 20u

/*
 * A Rice code. k <= BITS_QUICK_PARAMETER is quick. The slow way gets a copy: a reader whose address
 * is never taken stays in registers.
 */
static inline __attribute__((always_inline)) uint64_t bits_take_gap(struct bit_in *in, unsigned at)
{
	unsigned quotient;
	uint64_t v;

	if (in->have < 48)
		bits_fill(in);
	if (__builtin_expect((in->w & 0xffffff) == 0 || at > BITS_QUICK_PARAMETER, 0)) {
		struct bit_in copy = *in;

		v = bits_take_gap_slow(&copy, at);
		*in = copy;
		return v;
	}
	quotient = (unsigned)__builtin_ctzll(in->w);
	bits_skip(in, quotient + 1);
	v = in->w & ((UINT64_C(1) << at) - 1);
	bits_skip(in, at);
	return (uint64_t)quotient << at | v;
}

/* A number below range; 0 and bad for a range of 0. */
static inline __attribute__((always_inline)) uint64_t bits_take_below(
	struct bit_in *in, uint64_t range)
{
	unsigned n;
	uint64_t few, v, more;

	if (__builtin_expect(range - 1 >= 1u << 20, 0)) {
		struct bit_in copy = *in;

		v = bits_take_below_slow(&copy, range);
		*in = copy;
		return v;
	}
	if (in->have < 24)
		bits_fill(in);
	n = bit_length(range) - 1;
	few = (UINT64_C(2) << n) - range; /* so many take n bits, the others one more */
	v = in->w & ((UINT64_C(1) << n) - 1);
	more = v >= few;
	v += more ? v + (in->w >> n & 1) - few : 0;
	bits_skip(in, n + (unsigned)more);
	return v;
}

/* Was all that was read there? */
static inline bool bits_sound(const struct bit_in *in)
{
	return !in->bad && bits_at(in) <= in->end;
}

/* And nothing more than the filling of the last byte. */
static inline bool bits_at_end(const struct bit_in *in)
{
	return bits_sound(in) && in->end - bits_at(in) < 8;
}

/* ---- streams ---- */

/*
 * Bits of a key begin where those of the key before end, and how many cells a key has is in no
 * order: one stream of all keys is read as fast as one number is found after the other. So keys are
 * sorted by what decides how they are read, their *class*, and dealt out to four streams by turns:
 * neighbours are read in the same way, and do not wait for each other.
 *
 * The class of places is the number of cells. That of values is the number of coded numbers; all
 * stars come before all bars. Keys without bits are in no stream.
 */
#define STREAMS 4u
#define STREAM_CLASSES 2048u /* twice CHUNK_ROWS_MAX */

/* Keys that have bits, in the order in which they have them. Arrays are the caller's, with room for
 * all keys. */
struct chunk_order {
	uint32_t *keys;
	uint32_t n;
	uint32_t *listed; /* the same keys, ascending; behind n of places: the other keys */
	uint16_t *classes; /* of these n */
};

/* counts at most rows_n, which is at most CHUNK_ROWS_MAX. */
void chunk_order_places(
	struct chunk_order *o, const uint16_t *counts, uint32_t keys_n, uint32_t rows_n);
void chunk_order_values(struct chunk_order *o, const uint16_t *counts, const uint64_t *rests,
	uint32_t keys_n, uint32_t rows_n);

/* Deals the bits of all keys out: those of key k are bits starts[k] to starts[k + 1] of *bits,
 * which has them afterwards as a section. spare: its memory is used. */
void chunk_streams_deal(struct bit_out *bits, const size_t *starts, const struct chunk_order *o,
	struct bit_out spare[STREAMS]);

struct chunk_streams {
	const unsigned char *base; /* BITS_PAD more bytes can be read behind the section */
	size_t at[STREAMS], end[STREAMS]; /* bits from base */
};

MUST_CHECK bool chunk_streams_open(const unsigned char *bytes, size_t n, struct chunk_streams *out);
/* True if all was read, and no more. */
bool chunk_streams_done(const struct chunk_streams *s);

static inline struct bit_in chunk_streams_reader(const struct chunk_streams *s, unsigned stream)
{
	return (struct bit_in){ .base = s->base, .next = s->at[stream], .end = s->end[stream] };
}

#endif
