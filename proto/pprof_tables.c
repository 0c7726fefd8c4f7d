/* Decodes the tables: sample types, mappings, functions, locations with their lines. */
#include <inttypes.h>

#include "proto/decoder.h"

enum err_code decoder_type(
	struct decoder *d, wire_pos at, wire_pos end, uint64_t *type, uint64_t *unit)
{
	uint64_t f[3] = { 0 };

	if (!decoder_numbers(at, end, f, 2))
		return decoder_wire_fail(d);
	*type = f[1];
	*unit = f[2];
	return ERR_OK;
}

static enum err_code pprof_tables_decode_sample_type(
	struct decoder *d, wire_pos at, wire_pos end, uint32_t i)
{
	uint64_t type, unit;
	enum err_code rc;

	if ((rc = decoder_type(d, at, end, &type, &unit)))
		return rc;
	if (type >= d->p->strings_n)
		return decoder_bad_string(d, type, "sample_type", i, "type");
	if (unit >= d->p->strings_n)
		return decoder_bad_string(d, unit, "sample_type", i, "unit");
	d->p->types[i] = (struct pprof_type){ (uint32_t)type, (uint32_t)unit };
	return ERR_OK;
}

static enum err_code pprof_tables_decode_mapping(
	struct decoder *d, wire_pos at, wire_pos end, uint32_t i, uint64_t *id)
{
	uint64_t f[11] = { 0 };

	if (!decoder_numbers(at, end, f, 10))
		return decoder_wire_fail(d);
	if (f[5] >= d->p->strings_n)
		return decoder_bad_string(d, f[5], "mapping", i, "filename");
	if (f[6] >= d->p->strings_n)
		return decoder_bad_string(d, f[6], "mapping", i, "build_id");
	*id = f[1];
	d->p->mappings[i] = (struct pprof_mapping){
		.start = f[2],
		.limit = f[3],
		.offset = f[4],
		.filename = (uint32_t)f[5],
		.build_id = (uint32_t)f[6],
		.has_functions = f[7],
		.has_filenames = f[8],
		.has_line_numbers = f[9],
		.has_inline_frames = f[10],
	};
	return ERR_OK;
}

/* The way of nearly all functions: fields in order, each of at most 14 bits. */
static bool pprof_tables_quick_function(
	const struct decoder *d, wire_pos at, wire_pos end, struct pprof_function *out, uint64_t *id)
{
	uint32_t f[6] = { 0 }, all = 0, n = d->p->strings_n;

	at = wire_small(at, 1 << 3, &f[1], &all);
	at = wire_small(at, 2 << 3, &f[2], &all);
	at = wire_small(at, 3 << 3, &f[3], &all);
	at = wire_small(at, 4 << 3, &f[4], &all);
	at = wire_small(at, 5 << 3, &f[5], &all);
	if (at != end || all > WIRE_SMALL_MAX || f[2] >= n || f[3] >= n || f[4] >= n)
		return false;
	*id = f[1];
	*out = (struct pprof_function){ f[2], f[3], f[4], f[5] };
	return true;
}

static enum err_code pprof_tables_careful_function(
	struct decoder *d, wire_pos at, wire_pos end, uint32_t i, uint64_t *id)
{
	uint64_t f[6] = { 0 };

	if (!decoder_numbers(at, end, f, 5))
		return decoder_wire_fail(d);
	if (f[2] >= d->p->strings_n)
		return decoder_bad_string(d, f[2], "function", i, "name");
	if (f[3] >= d->p->strings_n)
		return decoder_bad_string(d, f[3], "function", i, "system_name");
	if (f[4] >= d->p->strings_n)
		return decoder_bad_string(d, f[4], "function", i, "filename");
	*id = f[1];
	d->p->functions[i] = (struct pprof_function){
		.name = (uint32_t)f[2],
		.system_name = (uint32_t)f[3],
		.filename = (uint32_t)f[4],
		.start_line = (int64_t)f[5],
	};
	return ERR_OK;
}

static enum err_code pprof_tables_decode_function(
	struct decoder *d, wire_pos at, wire_pos end, uint32_t i, uint64_t *id)
{
	if (i < WIRE_SMALL_MAX && end <= d->quick_end &&
		pprof_tables_quick_function(d, at, end, &d->p->functions[i], id))
		return ERR_OK;
	return pprof_tables_careful_function(d, at, end, i, id);
}

static enum err_code pprof_tables_decode_line(
	struct decoder *d, wire_pos at, wire_pos end, uint32_t location, uint32_t line_first)
{
	struct pprof *p = d->p;
	uint64_t f[4] = { 0 };
	uint32_t index;

	if (!decoder_numbers(at, end, f, 3))
		return decoder_wire_fail(d);
	if ((index = id_table_find(&d->functions, f[1])) == PPROF_NONE)
		return err_set(d->err, ERR_INVALID,
			"location[%" PRIu32 "].line[%" PRIu32 "].function_id: no function has id %" PRIu64,
			location, p->lines_n - line_first, f[1]);
	if (p->lines_n == d->lines.cap &&
		!(p->lines = decoder_grow(d, p->lines, p->lines_n, &d->lines)))
		return d->rc;
	p->lines[p->lines_n++] = (struct pprof_line){ index, (int64_t)f[2], (int64_t)f[3] };
	return ERR_OK;
}

/* One line, its tag read, to lines[lines_n]. NULL: the careful way is to be taken. */
static wire_pos pprof_tables_quick_line(struct decoder *d, wire_pos at)
{
	wire_pos end = at + 1 + *at;
	uint32_t f[4] = { 0 }, all = (*at & 0x80u) << 8;
	struct pprof *p = d->p;

	at = wire_small(at + 1, 1 << 3, &f[1], &all);
	at = wire_small(at, 2 << 3, &f[2], &all);
	at = wire_small(at, 3 << 3, &f[3], &all);
	if (at != end || all > WIRE_SMALL_MAX || f[1] - 1 >= p->functions_n)
		return NULL;
	p->lines[p->lines_n++] = (struct pprof_line){ f[1] - 1, f[2], f[3] };
	return at;
}

/*
 * The way of nearly all locations: the fields in order, or as Go's runtime writes them, with the
 * mapping behind the lines.
 */
static bool pprof_tables_quick_location(
	struct decoder *d, wire_pos at, wire_pos end, uint32_t i, uint64_t *id)
{
	uint32_t f[6] = { 0 }, all = 0, line_first = d->p->lines_n;
	uint64_t address = 0;

	at = wire_small(at, 1 << 3, &f[1], &all);
	at = wire_small(at, 2 << 3, &f[2], &all);
	if (*at == 3 << 3 && !(at = wire_quick_varint(at + 1, &address)))
		return false;
	while (at < end && *at == WIRE_TAG(4, WIRE_BYTES))
		if (d->p->lines_n == d->lines.cap || !(at = pprof_tables_quick_line(d, at + 1)))
			return false;
	if (at < end) {
		at = wire_small(at, 2 << 3, &f[2], &all);
		at = wire_small(at, 5 << 3, &f[5], &all);
	}
	if (at != end || all > WIRE_SMALL_MAX)
		return false;
	*id = f[1];
	d->p->locations[i] = (struct pprof_location){
		.address = address,
		.mapping = id_table_find(&d->mappings, f[2]),
		.line_first = line_first,
		.line_n = d->p->lines_n - line_first,
		.is_folded = f[5] != 0,
	};
	return true;
}

static enum err_code pprof_tables_careful_location(
	struct decoder *d, wire_pos at, wire_pos end, uint32_t i, uint64_t *id)
{
	uint32_t line_first = d->p->lines_n;
	uint64_t tag, f[6] = { 0 }; /* f[4] is not used: lines are messages */
	enum err_code rc;
	size_t len;

	while (at < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return decoder_wire_fail(d);
		if (tag == WIRE_TAG(4, WIRE_BYTES)) {
			if (!(at = wire_bytes(at, end, &len)))
				return decoder_wire_fail(d);
			if ((rc = pprof_tables_decode_line(d, at, at + len, i, line_first)))
				return rc;
			at += len;
			continue;
		}
		if ((tag & 7) == WIRE_VARINT && (tag >> 3) - 1 < 5 && tag >> 3 != 4)
			at = wire_varint(at, end, &f[tag >> 3]);
		else
			at = decoder_skip(tag, 5, at, end);
		if (!at)
			return decoder_wire_fail(d);
	}
	*id = f[1];
	d->p->locations[i] = (struct pprof_location){
		.address = f[3],
		.mapping = id_table_find(&d->mappings, f[2]), /* PPROF_NONE if there is no such mapping */
		.line_first = line_first,
		.line_n = d->p->lines_n - line_first,
		.is_folded = f[5] != 0,
	};
	return ERR_OK;
}

static enum err_code pprof_tables_decode_location(
	struct decoder *d, wire_pos at, wire_pos end, uint32_t i, uint64_t *id)
{
	uint32_t line_first = d->p->lines_n;

	if (i < WIRE_SMALL_MAX && end <= d->quick_end && d->functions.in_order &&
		pprof_tables_quick_location(d, at, end, i, id))
		return ERR_OK;
	d->p->lines_n = line_first;
	return pprof_tables_careful_location(d, at, end, i, id);
}

typedef enum err_code (*decode_fn)(
	struct decoder *d, wire_pos at, wire_pos end, uint32_t i, uint64_t *id);

/* Decodes all messages of a kind and makes the table of their ids. */
static inline enum err_code pprof_tables_decode_all(struct decoder *d, enum profile_field field,
	const char *kind, decode_fn decode, struct id_table *table)
{
	const struct pprof_span *spans = d->spans[field];
	uint32_t n = d->spans_n[field], i;
	uint64_t *ids = arena_alloc_raw(d->a, n, sizeof(*ids));
	enum err_code rc;

	if (!ids)
		return decoder_no_memory(d);
	for (i = 0; i < n; i++) {
		wire_pos at = (wire_pos)d->raw.ptr + spans[i].at;

		if ((rc = decode(d, at, at + spans[i].len, i, &ids[i])))
			return rc;
	}
	return id_table_init(table, d->a, kind, ids, n, d->err);
}

enum err_code decoder_tables(struct decoder *d)
{
	struct pprof *p = d->p;
	enum err_code rc;
	uint32_t i;

	p->types_n = d->spans_n[F_SAMPLE_TYPE];
	p->mappings_n = d->spans_n[F_MAPPING];
	p->functions_n = d->spans_n[F_FUNCTION];
	p->locations_n = d->spans_n[F_LOCATION];
	p->types = arena_alloc_raw(d->a, p->types_n, sizeof(*p->types));
	p->mappings = arena_alloc_raw(d->a, p->mappings_n, sizeof(*p->mappings));
	p->functions = arena_alloc_raw(d->a, p->functions_n, sizeof(*p->functions));
	p->locations = arena_alloc_raw(d->a, p->locations_n, sizeof(*p->locations));
	if (!p->types || !p->mappings || !p->functions || !p->locations)
		return decoder_no_memory(d);
	d->lines.first = p->locations_n + p->locations_n / 4 + 16;
	for (i = 0; i < p->types_n; i++) {
		const struct pprof_span *s = &d->spans[F_SAMPLE_TYPE][i];
		wire_pos at = (wire_pos)d->raw.ptr + s->at;

		if ((rc = pprof_tables_decode_sample_type(d, at, at + s->len, i)))
			return rc;
	}
	if ((rc = pprof_tables_decode_all(
			 d, F_MAPPING, "mapping", pprof_tables_decode_mapping, &d->mappings)) ||
		(rc = pprof_tables_decode_all(
			 d, F_FUNCTION, "function", pprof_tables_decode_function, &d->functions)) ||
		(rc = pprof_tables_decode_all(
			 d, F_LOCATION, "location", pprof_tables_decode_location, &d->locations)))
		return rc;
	return ERR_OK;
}
