/*
 * Decoding: the wire format into columns.
 *
 * Writers put samples before, behind or between the locations they refer to. So a first walk over
 * the body's top level only notes the place of each message, by kind. Then mappings, functions,
 * locations and samples are decoded in this order, so every id is known when it is met. Branches
 * also predict best kind by kind.
 *
 * An error on the wire (truncation, types) only ends the fast path; pprof_explain words it.
 *
 * Memory: an array gets its size once its kind is counted, or grows. Each step is checked against
 *         its limit first.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "proto/decoder.h"

#define LOCATION_IDS_PER_ELEMENT 16 /* the limit on location ids, in elements_max */

const struct pprof_limits pprof_limits_default = {
	.body_bytes_max = 16u << 20,
	.raw_bytes_max = 128u << 20,
	.samples_max = 1000000,
	.elements_max = 4000000,
	.stack_depth_max = PPROF_STACK_DEPTH_MAX,
	.arena_bytes_max = 1u << 30,
};

enum err_code decoder_wire_fail(struct decoder *d)
{
	return pprof_explain(d->raw, d->err);
}

enum err_code decoder_no_memory(struct decoder *d)
{
	return arena_fail(d->a, "profile", d->err);
}

enum err_code decoder_bad_string(
	struct decoder *d, uint64_t index, const char *kind, uint32_t i, const char *field)
{
	char place[64] = "";

	if (i != PPROF_NONE)
		snprintf(place, sizeof(place), "%s[%" PRIu32 "].", kind, i);
	return err_set(d->err, ERR_INVALID, "%s%s: string %" PRId64 ", but string_table has %" PRIu32,
		place, field, (int64_t)index, d->p->strings_n);
}

void *decoder_grow(struct decoder *d, const void *old, uint32_t n, struct growth *g)
{
	uint64_t cap = g->cap ? (uint64_t)g->cap * 2 : g->first;
	void *wide;

	assert(n <= g->cap && g->size > 0);
	if (cap > g->max)
		cap = g->max;
	if (cap <= g->cap) {
		d->rc = err_set(
			d->err, ERR_LIMIT, "profile has more than %" PRIu32 " %s, the limit", g->max, g->what);
		return NULL;
	}
	if (!(wide = arena_alloc_raw(d->a, cap, g->size))) {
		d->rc = decoder_no_memory(d);
		return NULL;
	}
	if (n)
		memcpy(wide, old, n * g->size);
	g->cap = (uint32_t)cap;
	return wide;
}

/* First sizes fit what profiles usually have for their length, so most arrays never grow. */
static void pprof_decode_set_limits(struct decoder *d)
{
	uint64_t ids_max = (uint64_t)d->limits->elements_max * LOCATION_IDS_PER_ELEMENT;
	uint32_t bytes = (uint32_t)d->raw.len, max = d->limits->elements_max;
	size_t span = sizeof(struct pprof_span);
	struct pprof *p = d->p;

	if (ids_max > INT32_MAX)
		ids_max = INT32_MAX;
	d->spans_growth[F_SAMPLE_TYPE] = (struct growth){ "sample types", span, 0, 8, max };
	d->spans_growth[F_SAMPLE] = (struct growth){ "samples", span, 0, bytes / 64 + 16,
		d->limits->samples_max };
	d->spans_growth[F_MAPPING] = (struct growth){ "mappings", span, 0, 16, max };
	d->spans_growth[F_LOCATION] = (struct growth){ "locations", span, 0, bytes / 64 + 16, max };
	d->spans_growth[F_FUNCTION] = (struct growth){ "functions", span, 0, bytes / 128 + 16, max };
	d->strings = (struct growth){ "strings", sizeof(*p->strings), 0, bytes / 128 + 16, max };
	d->comments = (struct growth){ "comments", sizeof(*p->comments), 0, 16, max };
	d->lines = (struct growth){ "lines", sizeof(*p->lines), 0, 0, max };
	d->labels = (struct growth){ "labels", sizeof(*p->labels), 0, 0, max };
	d->location_ids = (struct growth){ "location ids", sizeof(*p->location_ids), 0, 0,
		(uint32_t)ids_max };
}

/* ------------------------------------------------------------------------------------------------
 * The walk over the top level. */

/*
 * Comments are checked when all strings are read. A number above UINT32_MAX is kept as
 * UINT32_MAX, which no string has.
 */
static enum err_code pprof_decode_add_comment(struct decoder *d, uint64_t value)
{
	struct pprof *p = d->p;

	if (p->comments_n == d->comments.cap &&
		!(p->comments = decoder_grow(d, p->comments, p->comments_n, &d->comments)))
		return d->rc;
	p->comments[p->comments_n++] = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
	return ERR_OK;
}

static enum err_code pprof_decode_add_comments(struct decoder *d, wire_pos at, wire_pos end)
{
	enum err_code rc;
	uint64_t v;

	while (at < end) {
		if (!(at = wire_varint(at, end, &v)))
			return decoder_wire_fail(d);
		if ((rc = pprof_decode_add_comment(d, v)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code pprof_decode_add_number(struct decoder *d, uint64_t number, uint64_t value)
{
	struct pprof *p = d->p;

	switch (number) {
	case F_DROP_FRAMES:
		d->drop_frames = value;
		break;
	case F_KEEP_FRAMES:
		d->keep_frames = value;
		break;
	case F_TIME_NANOS: /* only `cat a.pb b.pb` gives it twice */
		if (p->time_nanos)
			return err_set(d->err, ERR_INVALID, "time_nanos appears twice: concatenated profiles");
		p->time_nanos = (int64_t)value;
		break;
	case F_DURATION_NANOS:
		p->duration_nanos = (int64_t)value;
		break;
	case F_PERIOD:
		p->period = (int64_t)value;
		break;
	case F_COMMENT:
		return pprof_decode_add_comment(d, value);
	case F_DEFAULT_SAMPLE_TYPE:
		d->default_sample_type = value;
		break;
	case F_DOC_URL:
		d->doc_url = value;
		break;
	default:
		return number && number < F_END ? decoder_wire_fail(d) : ERR_OK;
	}
	return ERR_OK;
}

static enum err_code pprof_decode_add_bytes(
	struct decoder *d, uint64_t number, wire_pos at, size_t len)
{
	struct pprof *p = d->p;
	struct pprof_span s = { (uint32_t)(at - (wire_pos)d->raw.ptr), (uint32_t)len };
	uint32_t n;

	if (number - 1 < F_FUNCTION) {
		n = d->spans_n[number];
		if (n == d->spans_growth[number].cap &&
			!(d->spans[number] = decoder_grow(d, d->spans[number], n, &d->spans_growth[number])))
			return d->rc;
		d->spans[number][n] = s;
		d->spans_n[number] = n + 1;
		d->sample_bytes += number == F_SAMPLE ? len : 0;
		return ERR_OK;
	}
	if (number == F_STRING_TABLE) {
		if (p->strings_n == d->strings.cap &&
			!(p->strings = decoder_grow(d, p->strings, p->strings_n, &d->strings)))
			return d->rc;
		p->strings[p->strings_n++] = (struct str){ (const char *)at, len };
		return ERR_OK;
	}
	if (number == F_COMMENT)
		return pprof_decode_add_comments(d, at, at + len);
	if (number == F_PERIOD_TYPE)
		return decoder_type(d, at, at + len, &d->period_type, &d->period_unit);
	return number && number < F_END ? decoder_wire_fail(d) : ERR_OK;
}

static bool pprof_decode_is_short_string(wire_pos at)
{
	return *at == WIRE_TAG(F_STRING_TABLE, WIRE_BYTES) && at[1] < 0x80;
}

static wire_pos pprof_decode_quick_strings(struct decoder *d, wire_pos at, wire_pos last)
{
	struct str *strings = d->p->strings;
	uint32_t n = d->p->strings_n, cap = d->strings.cap;

	for (; at < last && n < cap && pprof_decode_is_short_string(at); n++) {
		strings[n] = (struct str){ (const char *)at + 2, at[1] };
		at += 2 + at[1];
	}
	d->p->strings_n = n;
	return at;
}

/*
 * The quick way of the walk: notes messages and strings as long as tags and lengths are single
 * bytes, the arrays have room, and the body goes on behind the longest such field.
 */
static wire_pos pprof_decode_quick_walk(struct decoder *d, wire_pos at, wire_pos end)
{
	wire_pos begin = (wire_pos)d->raw.ptr, last = end - at > 0x81 ? end - 0x81 : at;

	while (at < last && at[1] < 0x80 && (*at & 0xc7) == WIRE_BYTES) {
		unsigned number = *at >> 3;
		uint32_t len = at[1], n;

		if (number - 1 >= F_FUNCTION)
			return number == F_STRING_TABLE ? pprof_decode_quick_strings(d, at, last) : at;
		if ((n = d->spans_n[number]) == d->spans_growth[number].cap)
			return at;
		d->spans[number][n] = (struct pprof_span){ (uint32_t)(at + 2 - begin), len };
		d->spans_n[number] = n + 1;
		d->sample_bytes += number == F_SAMPLE ? len : 0;
		at += 2 + len;
	}
	return at;
}

static enum err_code pprof_decode_walk(struct decoder *d)
{
	wire_pos at = (wire_pos)d->raw.ptr, end = at + d->raw.len;
	enum err_code rc;
	uint64_t tag, v;
	size_t len;

	while ((at = pprof_decode_quick_walk(d, at, end)) < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return decoder_wire_fail(d);
		if ((tag & 7) == WIRE_BYTES) {
			if (!(at = wire_bytes(at, end, &len)))
				return decoder_wire_fail(d);
			if ((rc = pprof_decode_add_bytes(d, tag >> 3, at, len)))
				return rc;
			at += len;
		} else if ((tag & 7) == WIRE_VARINT) {
			if (!(at = wire_varint(at, end, &v)))
				return decoder_wire_fail(d);
			if ((rc = pprof_decode_add_number(d, tag >> 3, v)))
				return rc;
		} else if (!(at = decoder_skip(tag, F_END - 1, at, end))) {
			return decoder_wire_fail(d);
		}
	}
	return ERR_OK;
}

/* ------------------------------------------------------------------------------------------------
 * Profile-wide fields. */

static enum err_code pprof_decode_profile_string(
	struct decoder *d, uint64_t index, const char *field, uint32_t *out)
{
	if (index >= d->p->strings_n)
		return decoder_bad_string(d, index, "profile", PPROF_NONE, field);
	*out = (uint32_t)index;
	return ERR_OK;
}

static enum err_code pprof_decode_check_strings(struct decoder *d)
{
	const struct str *first = d->p->strings;
	enum err_code rc;
	uint32_t i;

	if (!d->p->strings_n)
		return err_set(d->err, ERR_INVALID, "string_table is missing");
	if (first->len)
		return err_set(d->err, ERR_INVALID, "string_table[0] is \"%.*s\", must be empty",
			(int)(first->len < 64 ? first->len : 64), first->ptr);
	for (i = 0; i < d->p->comments_n; i++)
		if (d->p->comments[i] >= d->p->strings_n)
			return err_set(d->err, ERR_INVALID,
				"comment[%" PRIu32 "]: no such string, string_table has %" PRIu32, i,
				d->p->strings_n);
	if ((rc = pprof_decode_profile_string(d, d->drop_frames, "drop_frames", &d->p->drop_frames)) ||
		(rc = pprof_decode_profile_string(d, d->keep_frames, "keep_frames", &d->p->keep_frames)) ||
		(rc = pprof_decode_profile_string(
			 d, d->default_sample_type, "default_sample_type", &d->p->default_sample_type)) ||
		(rc = pprof_decode_profile_string(d, d->doc_url, "doc_url", &d->p->doc_url)) ||
		(rc = pprof_decode_profile_string(
			 d, d->period_type, "period_type.type", &d->p->period_type.type)) ||
		(rc = pprof_decode_profile_string(
			 d, d->period_unit, "period_type.unit", &d->p->period_type.unit)))
		return rc;
	return ERR_OK;
}

enum err_code pprof_decode(struct arena *a, struct str raw, const struct pprof_limits *limits,
	struct pprof **out, struct err *err)
{
	struct decoder d = { .a = a, .limits = limits, .raw = raw, .err = err };
	enum err_code rc;

	if (!raw.len)
		return err_set(err, ERR_INVALID, "profile is empty");
	if (raw.len > limits->raw_bytes_max || raw.len > UINT32_MAX)
		return err_set(err, ERR_LIMIT, "profile is %zu bytes inflated, limit %zu", raw.len,
			limits->raw_bytes_max);
	if (!(d.p = arena_new(a, struct pprof)))
		return decoder_no_memory(&d);
	d.quick_end = (wire_pos)raw.ptr + (raw.len > QUICK_BYTES ? raw.len - QUICK_BYTES : 0);
	pprof_decode_set_limits(&d);
	if ((rc = pprof_decode_walk(&d)) || (rc = pprof_decode_check_strings(&d)) ||
		(rc = decoder_tables(&d)) || (rc = decoder_samples(&d)))
		return rc == ERR_INVALID && foreign_explain(raw, err) ? ERR_INVALID : rc;
	*out = d.p;
	return ERR_OK;
}
