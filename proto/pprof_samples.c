/* Decodes samples: location ids, values and labels, one sample after the other. */
#include <assert.h>
#include <inttypes.h>

#include "proto/decoder.h"

/*
 * A label is a string if str is not 0, whatever else it has; else a number. If all are 0 it is
 * dropped. A kept label is either a string or a number.
 */
static enum err_code decode_label(struct decoder *d, uint32_t sample, wire_pos at, wire_pos end)
{
	struct pprof *p = d->p;
	uint64_t f[5] = { 0 };

	if (!decoder_numbers(at, end, f, 4))
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
static enum err_code bad_location_id(struct decoder *d, uint32_t sample, uint32_t at, uint64_t id)
{
	return err_set(d->err, ERR_INVALID,
		"sample[%" PRIu32 "].location_id[%" PRIu32 "]: no location has id %" PRIu64, sample,
		at - d->p->samples[sample].location_first, id);
}

/*
 * Makes room for the varints in some bytes. They are counted only if there is no room for one per
 * byte.
 */
static enum err_code reserve_location_ids(struct decoder *d, wire_pos at, size_t len)
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

static enum err_code decode_location_ids(
	struct decoder *d, uint32_t sample, wire_pos at, wire_pos end)
{
	const struct id_table table = d->locations;
	uint32_t *ids, *out, index;
	enum err_code rc;
	uint64_t id;

	if ((rc = reserve_location_ids(d, at, (size_t)(end - at))))
		return rc;
	ids = d->p->location_ids;
	out = ids + d->p->location_ids_n;
	while (at < end) {
		if (!(at = wire_varint(at, end, &id)))
			return decoder_wire_fail(d);
		if ((index = id_table_find(&table, id)) == PPROF_NONE)
			return bad_location_id(d, sample, (uint32_t)(out - ids), id);
		*out++ = index;
	}
	d->p->location_ids_n = (uint32_t)(out - ids);
	return ERR_OK;
}

static enum err_code decode_sample(struct decoder *d, struct span span, uint32_t i)
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
				rc = decode_location_ids(d, i, begin, at);
			} else if (tag >> 3 == 3) {
				rc = decode_label(d, i, begin, at);
			} else if (tag >> 3 == 2) {
				for (; begin < at; values++) {
					if (!(begin = wire_varint(begin, at, &v)))
						return decoder_wire_fail(d);
					if (values < types_n)
						row[values] = (int64_t)v;
				}
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
			} else if ((rc = decode_location_ids(d, i, begin, at))) {
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
	if (s->location_n > d->limits->stack_depth_max)
		return err_set(d->err, ERR_LIMIT,
			"sample[%" PRIu32 "] has %" PRIu32 " frames, limit %" PRIu32, i, s->location_n,
			d->limits->stack_depth_max);
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
	for (i = 0; i < p->samples_n; i++)
		if ((rc = decode_sample(d, d->spans[F_SAMPLE][i], i)))
			return rc;
	assert(p->location_ids_n <= d->location_ids.cap && p->labels_n <= d->labels.cap);
	return ERR_OK;
}
