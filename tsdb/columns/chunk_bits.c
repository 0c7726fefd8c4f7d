#include "tsdb/columns/chunk_bits.h"

#include <assert.h>

/* A quotient that no writer makes: places are below 2^63, and the parameter follows their number.
 */
#define QUOTIENT_MAX (UINT64_C(1) << 32)

void bits_flush(struct bit_out *o)
{
	uint64_t w = htole64(o->w);

	buf_add(&o->bytes, &w, sizeof(w));
}

void bits_finish(struct bit_out *o)
{
	uint64_t w = htole64(o->w);

	buf_add(&o->bytes, &w, (o->have + 7) / 8);
	o->w = 0;
	o->have = 0;
}

void bits_clear_out(struct bit_out *o)
{
	buf_clear(&o->bytes);
	o->w = 0;
	o->have = 0;
}

void bits_put_below(struct bit_out *o, uint64_t value, uint64_t range)
{
	unsigned n = bit_length(range) - 1;
	uint64_t few = (UINT64_C(2) << n) - range; /* so many take n bits, the others one more */

	assert(value < range);
	if (value < few) {
		bits_put(o, value, n);
	} else {
		bits_put(o, (value + few) >> 1, n);
		bits_put(o, (value + few) & 1, 1);
	}
}

static void bit_out_put_gap(struct bit_out *o, uint64_t gap, unsigned at)
{
	uint64_t quotient = gap >> at;

	for (; quotient >= 32; quotient -= 32)
		bits_put(o, 0, 32);
	bits_put(o, UINT64_C(1) << quotient, (unsigned)quotient + 1);
	bits_put(o, gap & ((UINT64_C(1) << at) - 1), at);
}

void bits_put_places(struct bit_out *o, uint64_t n, const uint64_t *places, uint64_t count)
{
	uint64_t at = 0;
	unsigned k;

	if (count == 0)
		return;
	k = chunk_bits_subset_parameter(n, count);
	for (uint64_t i = 0; i + 1 < count; i++) {
		bit_out_put_gap(o, places[i] - at, k);
		at = places[i] + 1;
	}
	bits_put_below(o, places[count - 1] - at, n - at);
}

uint64_t bits_take_long(struct bit_in *in, unsigned n)
{
	uint64_t low;

	if (n <= 32)
		return bits_take(in, n);
	low = bits_take(in, 32);
	return low | bits_take(in, n - 32) << 32;
}

uint64_t bits_take_gap_slow(struct bit_in *in, unsigned at)
{
	uint64_t quotient = 0;

	for (bits_fill(in); (in->w & UINT32_MAX) == 0; bits_fill(in)) {
		quotient += 32;
		bits_skip(in, 32);
		if (quotient > QUOTIENT_MAX)
			in->bad = true;
	}
	quotient += (unsigned)__builtin_ctzll(in->w);
	bits_skip(in, (unsigned)__builtin_ctzll(in->w) + 1);
	if (at > 62 || quotient > (uint64_t)INT64_MAX >> at) {
		in->bad = true;
		return 0;
	}
	return quotient << at | bits_take_long(in, at);
}

uint64_t bits_take_below_slow(struct bit_in *in, uint64_t range)
{
	unsigned n;
	uint64_t few, v;

	if (range == 0 || range > INT64_MAX) {
		in->bad = true;
		return 0;
	}
	n = bit_length(range) - 1;
	few = (UINT64_C(2) << n) - range;
	v = bits_take_long(in, n);
	return v < few ? v : (v << 1 | bits_take(in, 1)) - few;
}
