/* One profile: its fields, and its samples one after the other. */
#include <inttypes.h>

#include "proto/otlp/decoder.h"

/* Numbers of the fields that are not the same in all releases; layout.c. */
static const struct numbers {
	unsigned values, attributes, link; /* of a sample */
	unsigned id, profile_attributes;
} numbers[] = {
	[OTLP_AS_1_10] = { 4, 2, 3, 7, 11 },
	[OTLP_AS_1_9] = { 2, 3, 4, 7, 11 },
	[OTLP_AS_1_8] = { 2, 3, 4, 8, 12 },
};

struct otlp_sample {
	uint32_t stack, link;
	uint32_t attributes_n; /* as sent */
	uint32_t labels_n; /* of d->row_attributes */
	int64_t sum;
	uint64_t values_n, times_n;
	uint64_t first, last;
};

/* Keeps the attributes that are labels, ascending, each once. */
static enum err_code otlp_profile_add_attribute(
	struct otlp_decoder *d, struct otlp_sample *s, uint64_t index)
{
	uint32_t *v = d->row_attributes, at = s->labels_n;
	struct otlp_entry *e;
	enum err_code rc;

	if (++s->attributes_n > d->limits->attributes_max)
		return otlp_reject(
			d, ERR_LIMIT, "more than %" PRIu32 " attributes, the limit", d->limits->attributes_max);
	if ((rc = otlp_entry_use(d, otlp_index(index), &e)))
		return rc;
	if (!e || e->use != OTLP_LABEL)
		return ERR_OK;
	while (at && v[at - 1] > e->same)
		at--;
	if (at && v[at - 1] == e->same)
		return ERR_OK;
	memmove(v + at + 1, v + at, (s->labels_n - at) * sizeof(*v));
	v[at] = e->same;
	s->labels_n++;
	return ERR_OK;
}

static enum err_code otlp_add_value(struct otlp_decoder *d, struct otlp_sample *s, uint64_t value)
{
	s->values_n++;
	if (__builtin_add_overflow(s->sum, (int64_t)value, &s->sum))
		return otlp_reject(d, ERR_INVALID, "the sum of its values exceeds 64 bits");
	return ERR_OK;
}

typedef enum err_code (*add_fn)(struct otlp_decoder *d, struct otlp_sample *s, uint64_t v);

static inline enum err_code otlp_add_numbers(
	struct otlp_decoder *d, struct otlp_sample *s, const struct otlp_field *f, add_fn add)
{
	wire_pos at = f->begin;
	enum err_code rc;
	uint64_t v;

	if ((f->tag & 7) == WIRE_VARINT)
		return add(d, s, f->number);
	if ((f->tag & 7) != WIRE_BYTES)
		return otlp_wire_fail(d);
	while (at < f->end) {
		if (!(at = wire_varint(at, f->end, &v)))
			return otlp_wire_fail(d);
		if ((rc = add(d, s, v)))
			return rc;
	}
	return ERR_OK;
}

static void otlp_sample_add_time(struct otlp_sample *s, uint64_t when)
{
	s->first = !s->times_n || when < s->first ? when : s->first;
	s->last = when > s->last ? when : s->last;
	s->times_n++;
}

static enum err_code otlp_add_times(
	struct otlp_decoder *d, struct otlp_sample *s, const struct otlp_field *f)
{
	wire_pos at = f->begin;

	if ((f->tag & 7) == WIRE_FIXED64) {
		otlp_sample_add_time(s, f->number);
		return ERR_OK;
	}
	if ((f->tag & 7) != WIRE_BYTES || (f->end - at) % 8)
		return otlp_wire_fail(d);
	for (; at < f->end; at += 8)
		otlp_sample_add_time(s, wire_word(at));
	return ERR_OK;
}

/* A list where the link is: another release's. */
static enum err_code otlp_mixed_layouts(struct otlp_decoder *d)
{
	return otlp_reject(d, ERR_INVALID,
		"the request has samples as OTLP 1.9 numbers their fields and as 1.10 does");
}

static enum err_code otlp_sample_fields(
	struct otlp_decoder *d, struct otlp_sample *s, wire_pos at, wire_pos end)
{
	const struct numbers n = numbers[d->numbers];
	enum err_code rc = ERR_OK;
	struct otlp_field f;

	while (at < end) {
		uint64_t number;

		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		number = f.tag >> 3;
		if (number == 1 && (f.tag & 7) == WIRE_VARINT)
			s->stack = otlp_index(f.number);
		else if (number == 5)
			rc = otlp_add_times(d, s, &f);
		else if (number == n.link && (f.tag & 7) == WIRE_VARINT)
			s->link = otlp_index(f.number);
		else if (number == n.link)
			return otlp_mixed_layouts(d);
		else if (number == n.attributes)
			rc = otlp_add_numbers(d, s, &f, otlp_profile_add_attribute);
		else if (number == n.values)
			rc = otlp_add_numbers(d, s, &f, otlp_add_value);
		else if (number == 1)
			return otlp_wire_fail(d);
		if (rc)
			return rc;
	}
	return ERR_OK;
}

/* The three shapes of values: none and n times, one, or as many as times. */
static enum err_code otlp_check_shape(struct otlp_decoder *d, struct otlp_sample *s)
{
	if (s->last > INT64_MAX)
		return otlp_reject(d, ERR_INVALID, "a timestamp exceeds 63 bits");
	if (!s->values_n && s->times_n) {
		s->sum = (int64_t)s->times_n;
		return ERR_OK;
	}
	if (!s->values_n)
		return otlp_reject(d, ERR_INVALID, "neither values nor timestamps");
	if (s->values_n != s->times_n && (s->values_n > 1 || s->times_n))
		return otlp_reject(d, ERR_INVALID, "%" PRIu64 " values for %" PRIu64 " timestamps",
			s->values_n, s->times_n);
	return ERR_OK;
}

static enum err_code otlp_add_sample(
	struct otlp_decoder *d, wire_pos at, wire_pos end, struct otlp_profile *out)
{
	struct otlp_sample s = { 0 };
	enum err_code rc;

	if (++d->samples_n > d->limits->samples_max)
		return otlp_too_many(d, d->limits->samples_max, "samples");
	if ((rc = otlp_sample_fields(d, &s, at, end)) || (rc = otlp_check_shape(d, &s)) ||
		(rc = otlp_builder_sample(d, s.stack, s.link, d->row_attributes, s.labels_n, s.sum)))
		return otlp_is_reject(d, rc) ? err_wrap(&d->why, rc, "samples[%" PRIu32 "]", out->rows) :
									   rc;
	if (s.times_n) {
		if (!out->timestamps_n || (int64_t)s.first < out->first_ns)
			out->first_ns = (int64_t)s.first;
		if (!out->timestamps_n || (int64_t)s.last > out->last_ns)
			out->last_ns = (int64_t)s.last;
		out->timestamps_n += s.times_n;
	}
	out->rows++;
	return ERR_OK;
}

static enum err_code otlp_value_type(struct otlp_decoder *d, const struct otlp_field *type,
	uint32_t *name, uint32_t *unit, uint64_t *temporality)
{
	wire_pos at = type->begin;
	struct otlp_field f;

	*name = *unit = 0;
	while (at < type->end) {
		if (!(at = otlp_next(at, type->end, &f)))
			return otlp_wire_fail(d);
		if (f.tag == WIRE_TAG(1, WIRE_VARINT))
			*name = otlp_index(f.number);
		else if (f.tag == WIRE_TAG(2, WIRE_VARINT))
			*unit = otlp_index(f.number);
		else if (f.tag == WIRE_TAG(3, WIRE_VARINT))
			*temporality = f.number;
		else if (otlp_is_known(&f, 3))
			return otlp_wire_fail(d);
	}
	return ERR_OK;
}

/* Packed or not; d->attributes has them until the profile's end. */
static enum err_code otlp_attribute_indices(
	struct otlp_decoder *d, const struct otlp_field *f, struct otlp_profile *out)
{
	uint32_t max = d->limits->attributes_max;
	wire_pos at = f->begin;
	enum err_code rc;
	uint64_t v;

	if ((f->tag & 7) != WIRE_BYTES && (f->tag & 7) != WIRE_VARINT)
		return otlp_wire_fail(d);
	for (; at < f->end; out->attributes_n++) {
		if (!(at = wire_varint(at, f->end, &v)))
			return otlp_wire_fail(d);
		if (out->attributes_n == max)
			return otlp_reject(d, ERR_LIMIT, "more than %" PRIu32 " attributes, the limit", max);
		if ((rc = otlp_entry_attribute(d, otlp_index(v), &d->attributes[out->attributes_n])))
			return rc;
	}
	return ERR_OK;
}

/* A field from 7 on. */
static enum err_code otlp_tail_field(
	struct otlp_decoder *d, const struct otlp_field *f, struct otlp_profile *out)
{
	const struct numbers *n = &numbers[d->numbers];

	_Static_assert(sizeof(out->id) == OTLP_ID_BYTES, "ids");
	if (f->tag >> 3 == n->profile_attributes)
		return otlp_attribute_indices(d, f, out);
	if (f->tag == WIRE_TAG(n->id, WIRE_BYTES) && f->end - f->begin == OTLP_ID_BYTES)
		memcpy(out->id, f->begin, OTLP_ID_BYTES);
	return ERR_OK;
}

/* A field from 1 to 6. */
static enum err_code otlp_head_field(struct otlp_decoder *d, const struct otlp_field *f,
	struct otlp_types *types, struct otlp_profile *out)
{
	uint64_t temporality = 0;
	enum err_code rc;

	switch (f->tag) {
	case WIRE_TAG(1, WIRE_BYTES):
		rc = otlp_value_type(d, f, &types->type, &types->unit, &temporality);
		out->temporality = temporality <= OTLP_CUMULATIVE ? (enum otlp_temporality)temporality :
															OTLP_UNSPECIFIED;
		return rc;
	case WIRE_TAG(2, WIRE_BYTES):
		return otlp_add_sample(d, f->begin, f->end, out);
	case WIRE_TAG(3, WIRE_FIXED64):
		types->time = f->number;
		return ERR_OK;
	case WIRE_TAG(4, WIRE_VARINT):
		types->duration = f->number;
		return ERR_OK;
	case WIRE_TAG(5, WIRE_BYTES):
		return otlp_value_type(d, f, &types->period_type, &types->period_unit, &temporality);
	case WIRE_TAG(6, WIRE_VARINT):
		types->period = (int64_t)f->number;
		return ERR_OK;
	default:
		return otlp_wire_fail(d);
	}
}

enum err_code otlp_profile_decode(
	struct otlp_decoder *d, struct str message, struct otlp_profile *out)
{
	wire_pos at = (wire_pos)message.ptr, end = at + message.len;
	struct otlp_types types = { 0 };
	struct otlp_field f;
	enum err_code rc;

	otlp_builder_begin(d);
	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (!otlp_is_known(&f, 12))
			continue;
		rc = f.tag >> 3 > 6 ? otlp_tail_field(d, &f, out) : otlp_head_field(d, &f, &types, out);
		if (rc)
			return rc;
	}
	if (out->attributes_n && !(out->attributes = otlp_keep_attributes(d, out->attributes_n)))
		return otlp_no_memory(d);
	return otlp_builder_finish(d, &types, out);
}
