/*
 * Decoding: the wire format into columns, by a reader of our own.
 *
 * Three walks. The first sees top-level tags and lengths only and counts, so that limits are checked before
 * memory is asked for and arrays are sized exactly (lines and labels grow: counting them would mean to read
 * them). The second decodes everything but samples and notes where these are: emitters write samples before,
 * behind or between the locations they name. Then ids become indexes, and the samples follow.
 *
 * What is wrong on the wire (truncation, types) only ends the fast path; pprof_explain finds the words.
 *
 * Where google/pprof takes the last of a field that is given twice, so do we, and only that one is checked.
 */
#include "proto/pprof.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/id_table.h"
#include "proto/wire.h"

#define LOCATION_IDS_PER_ELEMENT 16 /* the limit on location ids, in elements_max */

const struct pprof_limits pprof_limits_default = {
	.body_bytes_max = 16u << 20,
	.raw_bytes_max = 128u << 20,
	.samples_max = 1000000,
	.elements_max = 4000000,
	.stack_depth_max = 4096,
	.arena_bytes_max = 1u << 30,
};

enum profile_field {
	F_SAMPLE_TYPE = 1, F_SAMPLE, F_MAPPING, F_LOCATION, F_FUNCTION, F_STRING_TABLE, F_DROP_FRAMES,
	F_KEEP_FRAMES, F_TIME_NANOS, F_DURATION_NANOS, F_PERIOD_TYPE, F_PERIOD, F_COMMENT,
	F_DEFAULT_SAMPLE_TYPE, F_DOC_URL, F_NUMBERS
};

struct decoder {
	struct arena *a;
	const struct pprof_limits *limits;
	struct pprof *p;
	struct str raw;
	struct err *err;
	/* As on the wire, until ids are indexes. */
	uint64_t *mapping_ids, *location_ids, *function_ids;
	uint64_t *location_mapping; /* per location */
	uint64_t *line_function;    /* per line */
	uint32_t lines_cap, labels_cap;
	struct id_table mappings, locations, functions;
	uint32_t location_ids_cap;
	uint64_t sample_varints; /* in all samples: a bound on their location ids and values together */
	uint64_t drop_frames, keep_frames, default_sample_type, doc_url; /* not yet checked */
};

static enum err_code wire_fail(struct decoder *d)
{
	return pprof_explain(d->raw, d->err);
}

static enum err_code no_memory(struct decoder *d)
{
	return arena_fail(d->a, "profile", d->err);
}

/* A tag the switch did not take: a known field of a wrong type is an error, anything else is skipped. */
static wire_pos skip_unknown(uint64_t tag, unsigned known_fields, wire_pos at, wire_pos end)
{
	uint64_t number = tag >> 3;

	return number && number <= known_fields ? NULL : wire_skip(tag, at, end);
}

static enum err_code bad_string(struct decoder *d, uint64_t index, const char *kind, uint32_t i, const char *field)
{
	char place[64] = "";

	if (i != PPROF_NONE)
		snprintf(place, sizeof(place), "%s[%" PRIu32 "].", kind, i);
	return err_set(d->err, ERR_INVALID, "%s%s: string %" PRId64 ", but string_table has %" PRIu32, place, field,
		(int64_t)index, d->p->strings_n);
}

/* ------------------------------------------------------------------------------------------------
 * First walk: counts, limits, arrays. */

static enum err_code count(struct decoder *d, uint64_t n[F_NUMBERS])
{
	wire_pos at = (wire_pos)d->raw.ptr, end = at + d->raw.len;

	while (at < end) {
		uint64_t tag, number;
		size_t len;

		if (!(at = wire_varint(at, end, &tag)))
			return wire_fail(d);
		number = tag >> 3;
		if ((tag & 7) != WIRE_BYTES) {
			n[F_COMMENT] += number == F_COMMENT;
			if (!(at = wire_skip(tag, at, end)))
				return wire_fail(d);
			continue;
		}
		if (!(at = wire_bytes(at, end, &len)))
			return wire_fail(d);
		if (number == F_COMMENT)
			n[F_COMMENT] += wire_count_varints(at, len);
		else if (number < F_NUMBERS)
			n[number]++;
		if (number == F_SAMPLE)
			d->sample_varints += wire_count_varints(at, len);
		at += len;
	}
	return ERR_OK;
}

static enum err_code check_counts(struct decoder *d, const uint64_t n[F_NUMBERS])
{
	static const struct { enum profile_field field; const char *what; } elements[] = {
		{ F_SAMPLE_TYPE, "sample types" }, { F_MAPPING, "mappings" }, { F_LOCATION, "locations" },
		{ F_FUNCTION, "functions" }, { F_STRING_TABLE, "strings" }, { F_COMMENT, "comments" },
	};
	size_t i;

	if (n[F_SAMPLE] > d->limits->samples_max)
		return err_set(d->err, ERR_LIMIT, "profile has %" PRIu64 " samples, limit %" PRIu32, n[F_SAMPLE],
			d->limits->samples_max);
	for (i = 0; i < sizeof(elements) / sizeof(elements[0]); i++)
		if (n[elements[i].field] > d->limits->elements_max)
			return err_set(d->err, ERR_LIMIT, "profile has %" PRIu64 " %s, limit %" PRIu32,
				n[elements[i].field], elements[i].what, d->limits->elements_max);
	if (!n[F_STRING_TABLE])
		return err_set(d->err, ERR_INVALID, "string_table is missing");
	if (n[F_SAMPLE] && !n[F_SAMPLE_TYPE])
		return err_set(d->err, ERR_INVALID, "sample_type is missing");
	return ERR_OK;
}

/*
 * `values` is bounded by what samples can hold as well as by samples x types: each sample before the one
 * that is decoded had all its values, so no row is written beyond either.
 */
static enum err_code allocate(struct decoder *d, const uint64_t n[F_NUMBERS])
{
	uint64_t ids_max = (uint64_t)d->limits->elements_max * LOCATION_IDS_PER_ELEMENT;
	uint64_t values = n[F_SAMPLE] * n[F_SAMPLE_TYPE];
	struct pprof *p = d->p;
	struct arena *a = d->a;

	if (ids_max > UINT32_MAX - 1)
		ids_max = UINT32_MAX - 1;
	d->location_ids_cap = (uint32_t)(d->sample_varints < ids_max ? d->sample_varints : ids_max);
	if (values > d->sample_varints)
		values = d->sample_varints;
	d->lines_cap = (uint32_t)(n[F_LOCATION] + n[F_LOCATION] / 4 + 16);
	p->types = arena_alloc_raw(a, n[F_SAMPLE_TYPE], sizeof(*p->types));
	p->samples = arena_alloc_raw(a, n[F_SAMPLE], sizeof(*p->samples));
	p->mappings = arena_alloc_raw(a, n[F_MAPPING], sizeof(*p->mappings));
	p->locations = arena_alloc_raw(a, n[F_LOCATION], sizeof(*p->locations));
	p->functions = arena_alloc_raw(a, n[F_FUNCTION], sizeof(*p->functions));
	p->strings = arena_alloc_raw(a, n[F_STRING_TABLE], sizeof(*p->strings));
	p->comments = arena_alloc_raw(a, n[F_COMMENT], sizeof(*p->comments));
	p->lines = arena_alloc_raw(a, d->lines_cap, sizeof(*p->lines));
	p->location_ids = arena_alloc_raw(a, d->location_ids_cap, sizeof(*p->location_ids));
	p->values = arena_alloc_raw(a, values, sizeof(*p->values));
	d->mapping_ids = arena_alloc_raw(a, n[F_MAPPING], sizeof(uint64_t));
	d->location_ids = arena_alloc_raw(a, n[F_LOCATION], sizeof(uint64_t));
	d->location_mapping = arena_alloc_raw(a, n[F_LOCATION], sizeof(uint64_t));
	d->function_ids = arena_alloc_raw(a, n[F_FUNCTION], sizeof(uint64_t));
	d->line_function = arena_alloc_raw(a, d->lines_cap, sizeof(uint64_t));
	if (!p->types || !p->samples || !p->mappings || !p->locations || !p->functions || !p->strings ||
		!p->comments || !p->lines || !p->location_ids || !p->values || !d->mapping_ids ||
		!d->location_ids || !d->location_mapping || !d->function_ids || !d->line_function)
		return no_memory(d);
	p->strings_n = (uint32_t)n[F_STRING_TABLE];
	return ERR_OK;
}

/* A larger copy of an array of n items; the old one stays in the arena until it is released. */
static void *grow_array(struct decoder *d, const void *old, size_t n, size_t cap, size_t size)
{
	void *wide = arena_alloc_raw(d->a, cap, size);

	if (wide && n)
		memcpy(wide, old, n * size);
	return wide;
}

/* Twice the room, at most the limit; 0: the limit is reached. */
static uint32_t grown_cap(const struct decoder *d, uint32_t cap)
{
	uint64_t wide = cap ? (uint64_t)cap * 2 : 64;

	if (wide > d->limits->elements_max)
		wide = d->limits->elements_max;
	return wide > cap ? (uint32_t)wide : 0;
}

static enum err_code grow_lines(struct decoder *d)
{
	uint32_t n = d->p->lines_n, cap = grown_cap(d, d->lines_cap);

	if (!cap)
		return err_set(d->err, ERR_LIMIT, "profile has more than %" PRIu32 " lines, the limit",
			d->limits->elements_max);
	d->p->lines = grow_array(d, d->p->lines, n, cap, sizeof(*d->p->lines));
	d->line_function = grow_array(d, d->line_function, n, cap, sizeof(*d->line_function));
	if (!d->p->lines || !d->line_function)
		return no_memory(d);
	d->lines_cap = cap;
	return ERR_OK;
}

static enum err_code grow_labels(struct decoder *d)
{
	uint32_t n = d->p->labels_n, cap = grown_cap(d, d->labels_cap);

	if (!cap)
		return err_set(d->err, ERR_LIMIT, "profile has more than %" PRIu32 " labels, the limit",
			d->limits->elements_max);
	d->p->labels = grow_array(d, d->p->labels, n, cap, sizeof(*d->p->labels));
	if (!d->p->labels)
		return no_memory(d);
	d->labels_cap = cap;
	return ERR_OK;
}

/* ------------------------------------------------------------------------------------------------
 * Second walk: everything but samples. */

static enum err_code decode_type(struct decoder *d, wire_pos at, wire_pos end, uint32_t i, struct pprof_type *out)
{
	const char *kind = i == PPROF_NONE ? "period_type" : "sample_type";
	uint64_t tag, type = 0, unit = 0;

	while (at < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return wire_fail(d);
		if (tag == WIRE_TAG(1, WIRE_VARINT))
			at = wire_varint(at, end, &type);
		else if (tag == WIRE_TAG(2, WIRE_VARINT))
			at = wire_varint(at, end, &unit);
		else
			at = skip_unknown(tag, 2, at, end);
		if (!at)
			return wire_fail(d);
	}
	if (type >= d->p->strings_n)
		return bad_string(d, type, kind, i, i == PPROF_NONE ? "period_type.type" : "type");
	if (unit >= d->p->strings_n)
		return bad_string(d, unit, kind, i, i == PPROF_NONE ? "period_type.unit" : "unit");
	*out = (struct pprof_type){ (uint32_t)type, (uint32_t)unit };
	return ERR_OK;
}

static enum err_code decode_mapping(struct decoder *d, wire_pos at, wire_pos end)
{
	uint32_t i = d->p->mappings_n++;
	uint64_t f[11] = { 0 }; /* all its fields are numbers: by field number */
	uint64_t tag;

	while (at < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return wire_fail(d);
		if ((tag & 7) == WIRE_VARINT && tag >> 3 >= 1 && tag >> 3 <= 10)
			at = wire_varint(at, end, &f[tag >> 3]);
		else
			at = skip_unknown(tag, 10, at, end);
		if (!at)
			return wire_fail(d);
	}
	if (f[5] >= d->p->strings_n)
		return bad_string(d, f[5], "mapping", i, "filename");
	if (f[6] >= d->p->strings_n)
		return bad_string(d, f[6], "mapping", i, "build_id");
	d->mapping_ids[i] = f[1];
	d->p->mappings[i] = (struct pprof_mapping){
		.start = f[2], .limit = f[3], .offset = f[4],
		.filename = (uint32_t)f[5], .build_id = (uint32_t)f[6],
		.has_functions = f[7], .has_filenames = f[8], .has_line_numbers = f[9],
		.has_inline_frames = f[10],
	};
	return ERR_OK;
}

static enum err_code decode_function(struct decoder *d, wire_pos at, wire_pos end)
{
	uint64_t tag, id = 0, name = 0, system_name = 0, filename = 0, start_line = 0;
	uint32_t i = d->p->functions_n++;

	while (at < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return wire_fail(d);
		switch (tag) {
		case WIRE_TAG(1, WIRE_VARINT):
			at = wire_varint(at, end, &id);
			break;
		case WIRE_TAG(2, WIRE_VARINT):
			at = wire_varint(at, end, &name);
			break;
		case WIRE_TAG(3, WIRE_VARINT):
			at = wire_varint(at, end, &system_name);
			break;
		case WIRE_TAG(4, WIRE_VARINT):
			at = wire_varint(at, end, &filename);
			break;
		case WIRE_TAG(5, WIRE_VARINT):
			at = wire_varint(at, end, &start_line);
			break;
		default:
			at = skip_unknown(tag, 5, at, end);
		}
		if (!at)
			return wire_fail(d);
	}
	if (name >= d->p->strings_n)
		return bad_string(d, name, "function", i, "name");
	if (system_name >= d->p->strings_n)
		return bad_string(d, system_name, "function", i, "system_name");
	if (filename >= d->p->strings_n)
		return bad_string(d, filename, "function", i, "filename");
	d->function_ids[i] = id;
	d->p->functions[i] = (struct pprof_function){ (uint32_t)name, (uint32_t)system_name, (uint32_t)filename,
		(int64_t)start_line };
	return ERR_OK;
}

static enum err_code decode_line(struct decoder *d, wire_pos at, wire_pos end)
{
	uint64_t tag, function = 0, line = 0, column = 0;
	enum err_code rc;
	uint32_t i;

	while (at < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return wire_fail(d);
		if (tag == WIRE_TAG(1, WIRE_VARINT))
			at = wire_varint(at, end, &function);
		else if (tag == WIRE_TAG(2, WIRE_VARINT))
			at = wire_varint(at, end, &line);
		else if (tag == WIRE_TAG(3, WIRE_VARINT))
			at = wire_varint(at, end, &column);
		else
			at = skip_unknown(tag, 3, at, end);
		if (!at)
			return wire_fail(d);
	}
	if (d->p->lines_n == d->lines_cap && (rc = grow_lines(d)))
		return rc;
	i = d->p->lines_n++;
	d->line_function[i] = function;
	d->p->lines[i] = (struct pprof_line){ PPROF_NONE, (int64_t)line, (int64_t)column };
	return ERR_OK;
}

static enum err_code decode_location(struct decoder *d, wire_pos at, wire_pos end)
{
	uint64_t tag, id = 0, mapping = 0, address = 0, is_folded = 0;
	uint32_t i = d->p->locations_n++, line_first = d->p->lines_n;
	enum err_code rc;
	size_t len;

	while (at < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return wire_fail(d);
		switch (tag) {
		case WIRE_TAG(1, WIRE_VARINT):
			at = wire_varint(at, end, &id);
			break;
		case WIRE_TAG(2, WIRE_VARINT):
			at = wire_varint(at, end, &mapping);
			break;
		case WIRE_TAG(3, WIRE_VARINT):
			at = wire_varint(at, end, &address);
			break;
		case WIRE_TAG(4, WIRE_BYTES):
			if (!(at = wire_bytes(at, end, &len)))
				return wire_fail(d);
			if ((rc = decode_line(d, at, at + len)))
				return rc;
			at += len;
			break;
		case WIRE_TAG(5, WIRE_VARINT):
			at = wire_varint(at, end, &is_folded);
			break;
		default:
			at = skip_unknown(tag, 5, at, end);
		}
		if (!at)
			return wire_fail(d);
	}
	d->location_ids[i] = id;
	d->location_mapping[i] = mapping;
	d->p->locations[i] = (struct pprof_location){ address, PPROF_NONE, line_first,
		d->p->lines_n - line_first, is_folded != 0 };
	return ERR_OK;
}

static enum err_code decode_packed_comments(struct decoder *d, wire_pos at, wire_pos end)
{
	uint64_t v;

	while (at < end) {
		if (!(at = wire_varint(at, end, &v)))
			return wire_fail(d);
		if (v >= d->p->strings_n)
			return bad_string(d, v, "comment", PPROF_NONE, "comment");
		d->p->comments[d->p->comments_n++] = (uint32_t)v;
	}
	return ERR_OK;
}

/* A length-delimited field of the profile. */
static enum err_code decode_element(struct decoder *d, uint64_t number, wire_pos at, size_t len)
{
	struct pprof *p = d->p;
	struct pprof_sample *s;

	switch (number) {
	case F_SAMPLE_TYPE:
		p->types_n++;
		return decode_type(d, at, at + len, p->types_n - 1, &p->types[p->types_n - 1]);
	case F_SAMPLE: /* where it is; sample by sample this becomes what it is */
		s = &p->samples[p->samples_n++];
		s->location_first = (uint32_t)(at - (wire_pos)d->raw.ptr);
		s->location_n = (uint32_t)len;
		return ERR_OK;
	case F_MAPPING:
		return decode_mapping(d, at, at + len);
	case F_LOCATION:
		return decode_location(d, at, at + len);
	case F_FUNCTION:
		return decode_function(d, at, at + len);
	case F_PERIOD_TYPE:
		return decode_type(d, at, at + len, PPROF_NONE, &p->period_type);
	case F_COMMENT:
		return decode_packed_comments(d, at, at + len);
	default: /* strings are set by the caller; numbers may not be length-delimited; the rest is unknown */
		return number && number < F_NUMBERS ? wire_fail(d) : ERR_OK;
	}
}

static enum err_code decode_number(struct decoder *d, uint64_t number, uint64_t v)
{
	struct pprof *p = d->p;

	switch (number) {
	case F_DROP_FRAMES:
		d->drop_frames = v;
		break;
	case F_KEEP_FRAMES:
		d->keep_frames = v;
		break;
	case F_TIME_NANOS: /* what `cat a.pb b.pb` gives, and nothing else does */
		if (p->time_nanos)
			return err_set(d->err, ERR_INVALID, "time_nanos is there twice: concatenated profiles");
		p->time_nanos = (int64_t)v;
		break;
	case F_DURATION_NANOS:
		p->duration_nanos = (int64_t)v;
		break;
	case F_PERIOD:
		p->period = (int64_t)v;
		break;
	case F_COMMENT:
		if (v >= p->strings_n)
			return bad_string(d, v, "comment", PPROF_NONE, "comment");
		p->comments[p->comments_n++] = (uint32_t)v;
		break;
	case F_DEFAULT_SAMPLE_TYPE:
		d->default_sample_type = v;
		break;
	case F_DOC_URL:
		d->doc_url = v;
		break;
	default:
		return number && number < F_NUMBERS ? wire_fail(d) : ERR_OK;
	}
	return ERR_OK;
}

static enum err_code decode_tables(struct decoder *d)
{
	wire_pos at = (wire_pos)d->raw.ptr, end = at + d->raw.len;
	uint32_t strings = 0;
	enum err_code rc;
	uint64_t tag, v;
	size_t len;

	while (at < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return wire_fail(d);
		if ((tag & 7) == WIRE_BYTES) {
			if (!(at = wire_bytes(at, end, &len)))
				return wire_fail(d);
			if (tag >> 3 == F_STRING_TABLE)
				d->p->strings[strings++] = (struct str){ (const char *)at, len };
			else if ((rc = decode_element(d, tag >> 3, at, len)))
				return rc;
			at += len;
		} else if ((tag & 7) == WIRE_VARINT) {
			if (!(at = wire_varint(at, end, &v)))
				return wire_fail(d);
			if ((rc = decode_number(d, tag >> 3, v)))
				return rc;
		} else if (!(at = skip_unknown(tag, F_NUMBERS - 1, at, end))) {
			return wire_fail(d);
		}
	}
	if (d->p->strings[0].len)
		return err_set(d->err, ERR_INVALID, "string_table[0] is \"%.*s\", must be empty",
			(int)(d->p->strings[0].len < 64 ? d->p->strings[0].len : 64), d->p->strings[0].ptr);
	return ERR_OK;
}

static enum err_code profile_string(struct decoder *d, uint64_t index, const char *field, uint32_t *out)
{
	if (index >= d->p->strings_n)
		return bad_string(d, index, "profile", PPROF_NONE, field);
	*out = (uint32_t)index;
	return ERR_OK;
}

static enum err_code profile_strings(struct decoder *d)
{
	enum err_code rc;

	if ((rc = profile_string(d, d->drop_frames, "drop_frames", &d->p->drop_frames)) ||
		(rc = profile_string(d, d->keep_frames, "keep_frames", &d->p->keep_frames)) ||
		(rc = profile_string(d, d->default_sample_type, "default_sample_type",
			&d->p->default_sample_type)) ||
		(rc = profile_string(d, d->doc_url, "doc_url", &d->p->doc_url)))
		return rc;
	return ERR_OK;
}

/* ------------------------------------------------------------------------------------------------
 * Ids to indexes. */

static enum err_code bad_line(struct decoder *d, uint32_t line)
{
	uint32_t i = 0;

	while (line - d->p->locations[i].line_first >= d->p->locations[i].line_n)
		i++;
	return err_set(d->err, ERR_INVALID, "location[%" PRIu32 "].line[%" PRIu32 "].function_id: no function has id %"
		PRIu64, i, line - d->p->locations[i].line_first, d->line_function[line]);
}

static enum err_code resolve_ids(struct decoder *d)
{
	struct pprof *p = d->p;
	enum err_code rc;
	uint32_t i;

	if ((rc = id_table_init(&d->mappings, d->a, "mapping", d->mapping_ids, p->mappings_n, d->err)) ||
		(rc = id_table_init(&d->functions, d->a, "function", d->function_ids, p->functions_n, d->err)) ||
		(rc = id_table_init(&d->locations, d->a, "location", d->location_ids, p->locations_n, d->err)))
		return rc;
	for (i = 0; i < p->locations_n; i++) /* a mapping that does not exist is none */
		p->locations[i].mapping = id_table_find(&d->mappings, d->location_mapping[i]);
	for (i = 0; i < p->lines_n; i++)
		if ((p->lines[i].function = id_table_find(&d->functions, d->line_function[i])) == PPROF_NONE)
			return bad_line(d, i);
	return ERR_OK;
}

/* ------------------------------------------------------------------------------------------------
 * Samples. */

/*
 * A label is a string where str is not 0, whatever stands beside it; else a number, unless all is 0: then
 * it is none. What is kept has one of the two.
 */
static enum err_code decode_label(struct decoder *d, uint32_t sample, wire_pos at, wire_pos end)
{
	uint64_t tag, key = 0, str = 0, num = 0, num_unit = 0;
	enum err_code rc;

	while (at < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return wire_fail(d);
		switch (tag) {
		case WIRE_TAG(1, WIRE_VARINT):
			at = wire_varint(at, end, &key);
			break;
		case WIRE_TAG(2, WIRE_VARINT):
			at = wire_varint(at, end, &str);
			break;
		case WIRE_TAG(3, WIRE_VARINT):
			at = wire_varint(at, end, &num);
			break;
		case WIRE_TAG(4, WIRE_VARINT):
			at = wire_varint(at, end, &num_unit);
			break;
		default:
			at = skip_unknown(tag, 4, at, end);
		}
		if (!at)
			return wire_fail(d);
	}
	if (str)
		num = num_unit = 0;
	if (key >= d->p->strings_n)
		return bad_string(d, key, "sample", sample, "label.key");
	if (str >= d->p->strings_n)
		return bad_string(d, str, "sample", sample, "label.str");
	if (num_unit >= d->p->strings_n)
		return bad_string(d, num_unit, "sample", sample, "label.num_unit");
	if (!str && !num && !num_unit)
		return ERR_OK;
	if (d->p->labels_n == d->labels_cap && (rc = grow_labels(d)))
		return rc;
	d->p->labels[d->p->labels_n++] = (struct pprof_label){ (uint32_t)key, (uint32_t)str, (uint32_t)num_unit,
		(int64_t)num };
	return ERR_OK;
}

static enum err_code bad_location_id(struct decoder *d, uint32_t sample, uint32_t i, uint64_t id)
{
	return err_set(d->err, ERR_INVALID, "sample[%" PRIu32 "].location_id[%" PRIu32 "]: no location has id %"
		PRIu64, sample, i, id);
}

static enum err_code too_many_location_ids(struct decoder *d)
{
	return err_set(d->err, ERR_LIMIT, "profile has more than %" PRIu32 " location ids, the limit",
		d->location_ids_cap);
}

static enum err_code decode_location_ids(struct decoder *d, uint32_t sample, wire_pos at, wire_pos end)
{
	uint32_t first = d->p->samples[sample].location_first, n = d->p->location_ids_n, *out = d->p->location_ids;
	uint32_t index;
	uint64_t id;

	if ((size_t)(end - at) > d->location_ids_cap - n &&
		wire_count_varints(at, (size_t)(end - at)) > d->location_ids_cap - n)
		return too_many_location_ids(d);
	while (at < end) {
		if (!(at = wire_varint(at, end, &id)))
			return wire_fail(d);
		if ((index = id_table_find(&d->locations, id)) == PPROF_NONE)
			return bad_location_id(d, sample, n - first, id);
		out[n++] = index;
	}
	d->p->location_ids_n = n;
	return ERR_OK;
}

static enum err_code decode_location_id(struct decoder *d, uint32_t sample, uint64_t id)
{
	uint32_t first = d->p->samples[sample].location_first, n = d->p->location_ids_n;
	uint32_t index = id_table_find(&d->locations, id);

	if (index == PPROF_NONE)
		return bad_location_id(d, sample, n - first, id);
	if (n == d->location_ids_cap)
		return too_many_location_ids(d);
	d->p->location_ids[n] = index;
	d->p->location_ids_n = n + 1;
	return ERR_OK;
}

static enum err_code decode_sample(struct decoder *d, uint32_t i)
{
	struct pprof *p = d->p;
	struct pprof_sample *s = &p->samples[i];
	wire_pos at = (wire_pos)d->raw.ptr + s->location_first, end = at + s->location_n;
	int64_t *row = p->values + (size_t)i * p->types_n;
	uint64_t tag, v;
	uint32_t values = 0;
	enum err_code rc;
	size_t len;

	*s = (struct pprof_sample){ .location_first = p->location_ids_n, .label_first = p->labels_n };
	while (at < end) {
		if (!(at = wire_varint(at, end, &tag)))
			return wire_fail(d);
		if ((tag & 7) == WIRE_BYTES && tag >> 3 >= 1 && tag >> 3 <= 3) {
			if (!(at = wire_bytes(at, end, &len)))
				return wire_fail(d);
			if (tag >> 3 == 1 && (rc = decode_location_ids(d, i, at, at + len)))
				return rc;
			if (tag >> 3 == 3 && (rc = decode_label(d, i, at, at + len)))
				return rc;
			if (tag >> 3 != 2) {
				at += len;
				continue;
			}
			for (wire_pos stop = at + len; at < stop; values++) {
				if (!(at = wire_varint(at, stop, &v)))
					return wire_fail(d);
				if (values < p->types_n)
					row[values] = (int64_t)v;
			}
		} else if ((tag & 7) == WIRE_VARINT && (tag >> 3 == 1 || tag >> 3 == 2)) {
			if (!(at = wire_varint(at, end, &v)))
				return wire_fail(d);
			if (tag >> 3 == 1 && (rc = decode_location_id(d, i, v)))
				return rc;
			if (tag >> 3 == 2 && values++ < p->types_n)
				row[values - 1] = (int64_t)v;
		} else if (!(at = skip_unknown(tag, 3, at, end))) {
			return wire_fail(d);
		}
	}
	s->location_n = p->location_ids_n - s->location_first;
	s->label_n = p->labels_n - s->label_first;
	if (values != p->types_n)
		return err_set(d->err, ERR_INVALID, "sample[%" PRIu32 "].value: %" PRIu32 " values for %" PRIu32
			" sample types", i, values, p->types_n);
	if (s->location_n > d->limits->stack_depth_max)
		return err_set(d->err, ERR_LIMIT, "sample[%" PRIu32 "] has %" PRIu32 " frames, limit %" PRIu32, i,
			s->location_n, d->limits->stack_depth_max);
	return ERR_OK;
}

enum err_code pprof_decode(struct arena *a, struct str raw, const struct pprof_limits *limits, struct pprof **out,
	struct err *err)
{
	struct decoder d = { .a = a, .limits = limits, .raw = raw, .err = err };
	uint64_t n[F_NUMBERS] = { 0 };
	enum err_code rc;
	uint32_t i;

	if (!raw.len)
		return err_set(err, ERR_INVALID, "profile is empty");
	if (raw.len > limits->raw_bytes_max || raw.len > UINT32_MAX)
		return err_set(err, ERR_LIMIT, "profile is %zu bytes inflated, limit %zu", raw.len,
			limits->raw_bytes_max);
	if (!(d.p = arena_new(a, struct pprof)))
		return no_memory(&d);
	if ((rc = count(&d, n)) || (rc = check_counts(&d, n)) || (rc = allocate(&d, n)) ||
		(rc = decode_tables(&d)) || (rc = profile_strings(&d)) || (rc = resolve_ids(&d)))
		return rc;
	for (i = 0; i < d.p->samples_n; i++)
		if ((rc = decode_sample(&d, i)))
			return rc;
	*out = d.p;
	return ERR_OK;
}
