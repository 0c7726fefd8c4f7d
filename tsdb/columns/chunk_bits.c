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

/* ---- streams ---- */

/*
 * Sorting keys by class, and dealing their bits out. A counting sort waits for the counter that it
 * raised for the key before, as most keys are of a few classes: so four parts of the keys are
 * counted and placed side by side, each with counters of its own.
 */
#define PARTS 4u

/* Keys of a class keep their order. */
static void chunk_order_sort(struct chunk_order *o, uint32_t classes_n)
{
	uint32_t at[PARTS][STREAM_CLASSES], part = o->n / PARTS, sum = 0;
	const uint16_t *classes = o->classes;
	const uint32_t *listed = o->listed;
	uint32_t *keys = o->keys;

	for (unsigned p = 0; p < PARTS; p++)
		memset(at[p], 0, classes_n * sizeof(at[p][0]));
	for (uint32_t i = 0; i < part; i++) {
		at[0][classes[i]]++;
		at[1][classes[part + i]]++;
		at[2][classes[2 * part + i]]++;
		at[3][classes[3 * part + i]]++;
	}
	for (uint32_t i = PARTS * part; i < o->n; i++)
		at[PARTS - 1][classes[i]]++;
	for (uint32_t class = 0; class < classes_n; class ++)
		for (unsigned p = 0; p < PARTS; p++) {
			uint32_t n = at[p][class];

			at[p][class] = sum;
			sum += n;
		}
	for (uint32_t i = 0; i < part; i++) {
		keys[at[0][classes[i]]++] = listed[i];
		keys[at[1][classes[part + i]]++] = listed[part + i];
		keys[at[2][classes[2 * part + i]]++] = listed[2 * part + i];
		keys[at[3][classes[3 * part + i]]++] = listed[3 * part + i];
	}
	for (uint32_t i = PARTS * part; i < o->n; i++)
		keys[at[PARTS - 1][classes[i]]++] = listed[i];
}

void chunk_order_places(
	struct chunk_order *o, const uint16_t *counts, uint32_t keys_n, uint32_t rows_n)
{
	uint32_t n = 0;

	/* Those without bits from the back. */
	for (uint32_t k = 0; k < keys_n; k++) {
		o->listed[n] = k;
		o->listed[keys_n - 1 - k + n] = k;
		o->classes[n] = counts[k];
		n += counts[k] - 1u < rows_n - 1u;
	}
	o->n = n;
	chunk_order_sort(o, rows_n);
}

void chunk_order_values(struct chunk_order *o, const uint16_t *counts, const uint64_t *rests,
	uint32_t keys_n, uint32_t rows_n)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < keys_n; k++) {
		o->listed[n] = k;
		n += (counts[k] > 1) & (rests[k] != 0);
	}
	o->n = n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t bars = counts[o->listed[i]] - 1u;
		uint64_t rest = rests[o->listed[i]];

		o->classes[i] = (uint16_t)(rest > bars ? rows_n + bars : rest);
	}
	chunk_order_sort(o, 2 * rows_n);
}

static void chunk_streams_copy(struct bit_in in, size_t from, size_t to, struct bit_out *out)
{
	in.next = from;
	in.have = 0;
	for (size_t left = to - from, n; left; left -= n) {
		n = left < 32 ? left : 32;
		bits_put(out, bits_take(&in, (unsigned)n), (unsigned)n);
	}
}

void chunk_streams_deal(struct bit_out *bits, const size_t *starts, const struct chunk_order *o,
	struct bit_out spare[STREAMS])
{
	size_t len = bits->bytes.len;
	struct bit_in in;

	if (len == 0 || !buf_reserve(&bits->bytes, BITS_PAD))
		return;
	memset(bits->bytes.ptr + len, 0, BITS_PAD);
	in = bits_open(bits->bytes.ptr, len);
	for (unsigned s = 0; s < STREAMS; s++)
		bits_clear_out(&spare[s]);
	for (uint32_t i = 0; i < o->n; i++)
		chunk_streams_copy(in, starts[o->keys[i]], starts[o->keys[i] + 1], &spare[i % STREAMS]);
	bits_clear_out(bits);
	for (unsigned s = 0; s < STREAMS; s++) {
		bits_finish(&spare[s]);
		if (s + 1 < STREAMS)
			buf_add_varint(&bits->bytes, spare[s].bytes.len);
		bits->bytes.failed |= spare[s].bytes.failed;
	}
	for (unsigned s = 0; s < STREAMS; s++)
		buf_add_str(&bits->bytes, buf_str(&spare[s].bytes));
}

bool chunk_streams_open(const unsigned char *bytes, size_t n, struct chunk_streams *out)
{
	struct cursor in = cursor_of((struct str){ (const char *)bytes, n });
	uint64_t len[STREAMS] = { 0 };
	size_t at, left;

	for (unsigned s = 0; n && s + 1 < STREAMS; s++)
		len[s] = cursor_varint(&in);
	left = cursor_left(&in);
	at = n - left;
	for (unsigned s = 0; s + 1 < STREAMS; s++) {
		if (in.bad || len[s] > left)
			return false;
		left -= len[s];
	}
	len[STREAMS - 1] = left;
	out->base = bytes;
	for (unsigned s = 0; s < STREAMS; s++) {
		out->at[s] = at * 8;
		at += len[s];
		out->end[s] = at * 8;
	}
	return true;
}

bool chunk_streams_done(const struct chunk_streams *s)
{
	for (unsigned i = 0; i < STREAMS; i++)
		if (s->at[i] > s->end[i] || s->end[i] - s->at[i] >= 8)
			return false;
	return true;
}
