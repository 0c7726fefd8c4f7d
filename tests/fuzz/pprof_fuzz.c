/*
 * fuzz: proto
 * Bodies inflated and decoded. What is accepted must be sound (every index within its array), must
 * come back from encoding as it went in, and must say what protobuf-c reads in the same bytes.
 */
#include <stdio.h>

#include "proto/pprof.h"
#include "proto/profile.pb-c.h"
#include "proto/wire.h"

/* The drivers are linked with rooms only, and this is the tests' own. */
#include "tests/fuzz/fuzz.h"
#include "tests/proto/profile_compare.c"

#define ARENA_BYTES (64u << 20)

static void check_tables(const struct pprof *p)
{
	uint32_t n = p->strings_n;

	require(n && !p->strings[0].len);
	require(
		p->drop_frames < n && p->keep_frames < n && p->default_sample_type < n && p->doc_url < n);
	require(p->period_type.type < n && p->period_type.unit < n);
	for (uint32_t i = 0; i < p->types_n; i++)
		require(p->types[i].type < n && p->types[i].unit < n);
	for (uint32_t i = 0; i < p->comments_n; i++)
		require(p->comments[i] < n);
	for (uint32_t i = 0; i < p->mappings_n; i++)
		require(p->mappings[i].filename < n && p->mappings[i].build_id < n);
	for (uint32_t i = 0; i < p->functions_n; i++)
		require(p->functions[i].name < n && p->functions[i].system_name < n &&
			p->functions[i].filename < n);
	for (uint32_t i = 0; i < p->lines_n; i++)
		require(p->lines[i].function < p->functions_n);
	for (uint32_t i = 0; i < p->locations_n; i++) {
		const struct pprof_location *l = &p->locations[i];

		require(l->mapping == PPROF_NONE || l->mapping < p->mappings_n);
		require(l->line_first <= p->lines_n && l->line_n <= p->lines_n - l->line_first);
	}
}

static void check_samples(const struct pprof *p)
{
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		require(s->location_first <= p->location_ids_n &&
			s->location_n <= p->location_ids_n - s->location_first);
		require(s->label_first <= p->labels_n && s->label_n <= p->labels_n - s->label_first);
	}
	for (uint32_t i = 0; i < p->location_ids_n; i++)
		require(p->location_ids[i] < p->locations_n);
	for (uint32_t i = 0; i < p->labels_n; i++) {
		const struct pprof_label *l = &p->labels[i];

		require(l->key < p->strings_n && l->str < p->strings_n && l->num_unit < p->strings_n);
		require(l->str ? !l->num && !l->num_unit : l->num || l->num_unit);
	}
	for (uint64_t i = 0; i < (uint64_t)p->samples_n * p->types_n; i++)
		if (p->values[i] == INT64_MIN) /* touches each of them, for the sanitizer */
			require(true);
}

/* Tags of five bytes and more, varints with bits beyond 64: protobuf-c has rules of its own. */
static bool is_odd_varint(wire_pos at, wire_pos next, bool tag)
{
	return next - at > (tag ? 4 : 9) && (tag || next[-1] > 1);
}

static bool is_odd(wire_pos at, wire_pos end, int depth)
{
	while (at < end) {
		wire_pos begin = at, value;
		uint64_t tag, v;
		size_t len;

		at = wire_varint(at, end, &tag);
		if (!at || is_odd_varint(begin, at, true) || tag >> 3 == 0)
			return true;
		value = at;
		if (!(at = wire_skip(tag, at, end)))
			return false; /* not a message */
		if ((tag & 7) == WIRE_VARINT && wire_varint(value, end, &v) &&
			is_odd_varint(value, at, false))
			return true;
		if ((tag & 7) == WIRE_BYTES && depth < 3) {
			value = wire_bytes(value, end, &len);
			if (is_odd(value, value + len, depth + 1))
				return true;
		}
	}
	return false;
}

static uint32_t period_types(struct str raw)
{
	wire_pos at = (wire_pos)raw.ptr, end = at + raw.len;
	uint32_t n = 0;
	uint64_t tag;

	while (at && at < end && (at = wire_varint(at, end, &tag))) {
		n += tag >> 3 == 11;
		at = wire_skip(tag, at, end);
	}
	return n;
}

static void check_encoding(struct arena *a, struct str raw, const struct pprof *p)
{
	struct buf once = { 0 }, again = { 0 }, why = { 0 };
	struct pprof *q;
	struct err err;

	require(!pprof_encode(p, &once, &err));
	require(!pprof_decode(a, buf_str(&once), &pprof_limits_default, &q, &err));
	check_tables(q);
	check_samples(q);
	require(!pprof_encode(q, &again, &err));
	require(str_eq(buf_str(&once), buf_str(&again)));
	/* protobuf-c joins a message that is given twice, where google/pprof and we take the last. */
	if (!p->stacks_cut && !is_odd((wire_pos)raw.ptr, (wire_pos)raw.ptr + raw.len, 0) &&
		period_types(raw) < 2 && !profile_equal(raw, buf_str(&once), &why)) {
		fprintf(stderr, STR_FMT, STR_ARG(buf_str(&why)));
		abort();
	}
	buf_release(&once);
	buf_release(&again);
	buf_release(&why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pprof_limits limits = pprof_limits_default;
	struct str raw;
	struct pprof *p;
	struct arena a;
	struct err err = { 0 };

	limits.raw_bytes_max = 1 << 20;
	arena_init(&a, ARENA_BYTES);
	if (!pprof_inflate(&a, (struct str){ (const char *)data, size }, &limits, &raw, &err) &&
		!pprof_decode(&a, raw, &limits, &p, &err)) {
		check_tables(p);
		check_samples(p);
		check_encoding(&a, raw, p);
	} else {
		require(err.msg[0] != '\0');
	}
	arena_release(&a);
	return 0;
}
