/* Decodes samples: location ids, values and labels, one sample after the other. */
#include <assert.h>
#include <inttypes.h>

#include "proto/decoder.h"

#define QUICK_IDS 5 /* fewer bytes are read one by one */

/* The way of nearly all labels: fields in order. */
static bool pprof_samples_quick_label(wire_pos at, wire_pos end, uint64_t *fields)
{
	uint32_t key = 0, str = 0, unit = 0, all = 0;
	uint64_t num = 0;

	at = wire_small(at, 1 << 3, &key, &all);
	at = wire_small(at, 2 << 3, &str, &all);
	if (*at == 3 << 3 && !(at = wire_quick_varint(at + 1, &num)))
		return false;
	at = wire_small(at, 4 << 3, &unit, &all);
	if (at != end || all > WIRE_SMALL_MAX)
		return false;
	fields[1] = key;
	fields[2] = str;
	fields[3] = num;
	fields[4] = unit;
	return true;
}

/*
 * A label is a string if str is not 0, whatever else it has; else a number. If all are 0 it is
 * dropped. A kept label is either a string or a number.
 */
static enum err_code pprof_samples_decode_label(
	struct decoder *d, uint32_t sample, wire_pos at, wire_pos end)
{
	struct pprof *p = d->p;
	uint64_t f[5] = { 0 };

	if (!(end <= d->quick_end && pprof_samples_quick_label(at, end, f)) &&
		!decoder_numbers(at, end, f, 4))
		return decoder_wire_fail(d);
	if (f[2])
		f[3] = f[4] = 0;
	if (f[1] >= p->strings_n)
		return decoder_bad_string(d, f[1], "sample", sample, "label.key");
	if (f[2] >= p->strings_n)
		return decoder_bad_string(d, f[2], "sample", sample, "label.str");
	if (f[4] >= p->strings_n)
		return decoder_bad_string(d, f[4], "sample", sample, "label.num_unit");
	if (!f[2] && !f[3] && !f[4])
		return ERR_OK;
	if (p->labels_n == d->labels.cap &&
		!(p->labels = decoder_grow(d, p->labels, p->labels_n, &d->labels)))
		return d->rc;
	p->labels[p->labels_n++] = (struct pprof_label){
		.key = (uint32_t)f[1],
		.str = (uint32_t)f[2],
		.num = (int64_t)f[3],
		.num_unit = (uint32_t)f[4],
	};
	return ERR_OK;
}

/* `at` counts the location ids of all samples. */
static enum err_code pprof_samples_bad_location_id(
	struct decoder *d, uint32_t sample, uint32_t at, uint64_t id)
{
	return err_set(d->err, ERR_INVALID,
		"sample[%" PRIu32 "].location_id[%" PRIu32 "]: no location has id %" PRIu64, sample,
		at - d->p->samples[sample].location_first, id);
}

/*
 * Makes room for the varints in some bytes. They are counted only if there is no room for one per
 * byte.
 */
static enum err_code pprof_samples_reserve_location_ids(struct decoder *d, wire_pos at, size_t len)
{
	struct growth *g = &d->location_ids;
	struct pprof *p = d->p;

	if (len > g->cap - p->location_ids_n)
		len = wire_count_varints(at, len);
	while (len > g->cap - p->location_ids_n)
		if (!(p->location_ids = decoder_grow(d, p->location_ids, p->location_ids_n, g)))
			return d->rc;
	return ERR_OK;
}

/* Eight numbers, one for each of eight bytes. */
typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef int16_t lanes8 __attribute__((vector_size(16)));

static inline lanes8 pprof_samples_to_lanes(uint64_t word)
{
	bytes8 b;

	word = htole64(word);
	memcpy(&b, &word, sizeof(b));
	return __builtin_convertvector(b, lanes8);
}

/*
 * Reads packed ids of one or two bytes each, if the ids of locations are 1, 2, 3 ... Lengths
 * alternate without a pattern, and a branch on each is guessed wrong too often. So each of eight
 * bytes is read as if it ended an id, with the byte before it; each result is stored, and the next
 * one overwrites it if the byte ended none.
 *
 * Returns how many ids there are, or 0 if one is longer, or names no location.
 */
static uint32_t pprof_samples_quick_location_ids(
	wire_pos at, wire_pos end, uint32_t locations_n, uint32_t *out)
{
	lanes8 bad = { 0 };
	uint64_t large = end[-1], both[2];
	uint32_t n = 0;
	int16_t index[8];

	for (; at < end; at += 8) {
		uint64_t w = wire_word(at), before = wire_word(at - 1);
		lanes8 b, low, goes_on, v;

		if (end - at < 8) {
			uint64_t beyond = UINT64_MAX << 8 * (end - at);

			before &= ~beyond;
			w |= beyond;
		}
		large |= w & before;
		b = pprof_samples_to_lanes(w);
		low = pprof_samples_to_lanes(before);
		goes_on = low > 0x7f;
		v = ((((b << 7) | (low & 0x7f)) & goes_on) | (b & ~goes_on)) - 1;
		bad |= (v | ((int16_t)(locations_n - 1) - v)) & (b < 0x80);
		memcpy(index, &v, sizeof(index));
		w = ~w >> 7;
#pragma GCC unroll 8
		for (int i = 0; i < 8; i++) {
			out[n] = (uint32_t)index[i];
			n += w >> 8 * i & 1;
		}
	}
	memcpy(both, &bad, sizeof(both));
	both[0] = (both[0] | both[1]) & UINT64_C(0x8000800080008000);
	return both[0] || (large & WIRE_HIGH_BITS) ? 0 : n;
}

static enum err_code pprof_samples_decode_location_ids(
	struct decoder *d, uint32_t sample, wire_pos at, wire_pos end)
{
	const struct id_table table = d->locations;
	uint32_t *ids, *out, index, n;
	enum err_code rc;
	uint64_t id;

	if (d->quick_ids && end <= d->quick_end && end - at >= QUICK_IDS &&
		end - at + 8 <= d->location_ids.cap - d->p->location_ids_n &&
		(n = pprof_samples_quick_location_ids(
			 at, end, d->p->locations_n, d->p->location_ids + d->p->location_ids_n))) {
		d->p->location_ids_n += n;
		return ERR_OK;
	}
	if ((rc = pprof_samples_reserve_location_ids(d, at, (size_t)(end - at))))
		return rc;
	ids = d->p->location_ids;
	out = ids + d->p->location_ids_n;
	while (at < end) {
		if (!(at = wire_varint(at, end, &id)))
			return decoder_wire_fail(d);
		if ((index = id_table_find(&table, id)) == PPROF_NONE)
			return pprof_samples_bad_location_id(d, sample, (uint32_t)(out - ids), id);
		*out++ = index;
	}
	d->p->location_ids_n = (uint32_t)(out - ids);
	return ERR_OK;
}

/* Packed values. *n counts all, also those that have no type. NULL: not well-formed. */
static wire_pos pprof_samples_decode_values(
	const struct decoder *d, wire_pos at, wire_pos end, int64_t *row, uint32_t *n)
{
	uint32_t types_n = d->p->types_n;
	wire_pos next;
	uint64_t v;

	for (; at < end; at = next, ++*n) {
		if (!(end <= d->quick_end && (next = wire_quick_varint(at, &v)) && next <= end) &&
			!(next = wire_varint(at, end, &v)))
			return NULL;
		if (*n < types_n)
			row[*n] = (int64_t)v;
	}
	return at;
}

static enum err_code pprof_samples_decode_sample(
	struct decoder *d, struct pprof_span span, uint32_t i)
{
	struct pprof *p = d->p;
	struct pprof_sample *s = &p->samples[i];
	wire_pos at = (wire_pos)d->raw.ptr + span.at, end = at + span.len, begin;
	int64_t *row = p->values + (size_t)i * p->types_n;
	uint32_t values = 0, types_n = p->types_n;
	enum err_code rc = ERR_OK;
	uint64_t tag, v;
	size_t len;

	*s = (struct pprof_sample){ .location_first = p->location_ids_n, .label_first = p->labels_n };
	while (at < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return decoder_wire_fail(d);
		begin = at;
		if ((tag & 7) == WIRE_BYTES) { /* a message, or packed numbers */
			if (!(begin = wire_bytes(at, end, &len)))
				return decoder_wire_fail(d);
			at = begin + len;
			if (tag >> 3 == 1) {
				rc = pprof_samples_decode_location_ids(d, i, begin, at);
			} else if (tag >> 3 == 3) {
				rc = pprof_samples_decode_label(d, i, begin, at);
			} else if (tag >> 3 == 2 && !pprof_samples_decode_values(d, begin, at, row, &values)) {
				return decoder_wire_fail(d);
			}
			if (rc)
				return rc;
		} else if (tag == WIRE_TAG(1, WIRE_VARINT) || tag == WIRE_TAG(2, WIRE_VARINT)) {
			if (!(at = wire_varint(at, end, &v)))
				return decoder_wire_fail(d);
			if (tag >> 3 == 2) {
				if (values < types_n)
					row[values] = (int64_t)v;
				values++;
			} else if ((rc = pprof_samples_decode_location_ids(d, i, begin, at))) {
				return rc;
			}
		} else if (!(at = decoder_skip(tag, 3, at, end))) {
			return decoder_wire_fail(d);
		}
	}
	s->location_n = p->location_ids_n - s->location_first;
	s->label_n = p->labels_n - s->label_first;
	if (values != p->types_n)
		return err_set(d->err, ERR_INVALID,
			"sample[%" PRIu32 "].value: %" PRIu32 " values for %" PRIu32 " sample types", i, values,
			p->types_n);
	if (s->location_n > d->limits->stack_depth_max) {
		s->location_n = d->limits->stack_depth_max;
		p->location_ids_n = s->location_first + s->location_n;
		p->stacks_cut++;
	}
	return ERR_OK;
}

/*
 * Samples x types may be far more than the samples can hold, so the bytes of all samples are a
 * second bound. Each earlier sample had all its values, of at least a byte each, so no row is
 * written beyond either bound.
 */
enum err_code decoder_samples(struct decoder *d)
{
	struct pprof *p = d->p;
	uint64_t values;
	enum err_code rc;
	uint32_t i;

	/* The tables are decoded. */
	assert(p->strings_n > 0 && p->types_n == d->spans_n[F_SAMPLE_TYPE]);
	p->samples_n = d->spans_n[F_SAMPLE];
	if (p->samples_n && !p->types_n)
		return err_set(d->err, ERR_INVALID, "sample_type is missing");
	values = (uint64_t)p->samples_n * p->types_n;
	if (values > d->sample_bytes)
		values = d->sample_bytes;
	d->labels.first = p->samples_n + 16; /* allocated with the first label */
	d->location_ids.first = (uint32_t)(d->sample_bytes / 2 + 16);
	p->samples = arena_alloc_raw(d->a, p->samples_n, sizeof(*p->samples));
	p->values = arena_alloc_raw(d->a, values, sizeof(*p->values));
	if (!p->samples || !p->values)
		return decoder_no_memory(d);
	if (!(p->location_ids = decoder_grow(d, NULL, 0, &d->location_ids)))
		return d->rc;
	d->quick_ids = d->locations.in_order && p->locations_n <= WIRE_SMALL_MAX;
	for (i = 0; i < p->samples_n; i++)
		if ((rc = pprof_samples_decode_sample(d, d->spans[F_SAMPLE][i], i)))
			return rc;
	assert(p->location_ids_n <= d->location_ids.cap && p->labels_n <= d->labels.cap);
	return ERR_OK;
}
