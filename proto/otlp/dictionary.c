/*
 * The dictionary: each table becomes an array, in one walk. What an element refers to is checked
 * when a profile uses it, so that one wrong element harms no others.
 */
#include <inttypes.h>

#include "proto/otlp/decoder.h"

enum table { T_MAPPING = 1, T_LOCATION, T_FUNCTION, T_LINK, T_STRING, T_ATTRIBUTE, T_STACK };

static enum err_code otlp_add_index(struct otlp_decoder *d, uint64_t value)
{
	struct otlp_dictionary *t = &d->d;

	if (t->indices_n == UINT32_MAX - 1)
		return otlp_too_many(d, UINT32_MAX - 1, "indexes");
	if (!arena_array_room(d->a, &t->indices, t->indices_n, 1, &t->indices_cap))
		return otlp_no_memory(d);
	t->indices[t->indices_n++] = otlp_index(value);
	return ERR_OK;
}

/*
 * Packed indexes of one or two bytes, up to one that is longer. Their lengths alternate without a
 * pattern, so none is branched on. Reads a byte beyond the end.
 */
static wire_pos otlp_small_indices(wire_pos at, wire_pos end, uint32_t **out)
{
	uint32_t *to = *out;

	while (at < end) {
		uint32_t low = at[0], high = at[1], two = low >> 7;

		if (__builtin_expect(two & high >> 7, 0))
			break;
		*to++ = low + (((high << 7) - 0x80) & (0 - two));
		at += 1 + two;
	}
	*out = to;
	return at;
}

/* A repeated field of indexes, packed or not. */
static enum err_code otlp_add_indices(struct otlp_decoder *d, const struct otlp_field *f)
{
	struct otlp_dictionary *t = &d->d;
	wire_pos at = f->begin, end = f->end;
	uint32_t *to;
	uint64_t v;

	if ((f->tag & 7) == WIRE_VARINT)
		return otlp_add_index(d, f->number);
	if ((f->tag & 7) != WIRE_BYTES)
		return otlp_wire_fail(d);
	if (end - at > INT32_MAX - (int64_t)t->indices_n)
		return otlp_too_many(d, INT32_MAX, "indexes");
	if (!arena_array_room(d->a, &t->indices, t->indices_n, (size_t)(end - at), &t->indices_cap))
		return otlp_no_memory(d);
	to = t->indices + t->indices_n;
	while (at < end) {
		if (end <= d->safe && (at = otlp_small_indices(at, end, &to)) == end)
			break;
		if (at > end || !(at = wire_varint(at, end, &v)))
			return otlp_wire_fail(d);
		*to++ = otlp_index(v);
	}
	t->indices_n = (uint32_t)(to - t->indices);
	return ERR_OK;
}

static enum err_code otlp_add_mapping(struct otlp_decoder *d, wire_pos at, wire_pos end)
{
	struct otlp_dictionary *t = &d->d;
	struct otlp_mapping m = { .attributes = { t->indices_n, 0 } };
	struct otlp_field f;
	enum err_code rc;

	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (f.tag == WIRE_TAG(1, WIRE_VARINT))
			m.start = f.number;
		else if (f.tag == WIRE_TAG(2, WIRE_VARINT))
			m.limit = f.number;
		else if (f.tag == WIRE_TAG(3, WIRE_VARINT))
			m.offset = f.number;
		else if (f.tag == WIRE_TAG(4, WIRE_VARINT))
			m.filename = otlp_index(f.number);
		else if (f.tag >> 3 == 5) {
			if ((rc = otlp_add_indices(d, &f)))
				return rc;
		} else if (otlp_is_known(&f, 4))
			return otlp_wire_fail(d);
	}
	m.attributes.n = t->indices_n - m.attributes.first;
	if (!arena_array_room(d->a, &t->mappings, t->mappings_n, 1, &t->mappings_cap))
		return otlp_no_memory(d);
	t->mappings[t->mappings_n++] = m;
	return ERR_OK;
}

/*
 * Reads a message whose fields 1 to n are numbers. Nearly all tags are a byte, so it tries that
 * first. NULL: not well-formed.
 */
static inline __attribute__((always_inline)) wire_pos otlp_numbers(
	const struct otlp_decoder *d, wire_pos at, wire_pos end, uint64_t *values, unsigned n)
{
	struct otlp_field f;

	while (at < end) {
		unsigned tag = *at;

		if (__builtin_expect((tag & 0x87) == WIRE_VARINT && (tag >> 3) - 1 < n, 1)) {
			if (!(at = otlp_varint(at + 1, end, d->safe, &values[tag >> 3])))
				return NULL;
		} else if (!(at = otlp_next(at, end, &f)) || otlp_is_known(&f, n)) {
			return NULL;
		}
	}
	return at;
}

/* Function and line, both of one or two bytes, as most lines are; or the function alone. */
static bool otlp_quick_line(struct otlp_decoder *d, wire_pos at, wire_pos end)
{
	uint32_t function = 0, line = 0, all = 0;
	struct otlp_dictionary *t = &d->d;

	if (end > d->safe || t->lines_n == t->lines_cap || t->lines_n >= d->limits->elements_max)
		return false;
	at = wire_small(at, WIRE_TAG(2, WIRE_VARINT), &line, &all);
	at = wire_small(at, WIRE_TAG(1, WIRE_VARINT), &function, &all);
	if (at < end)
		at = wire_small(at, WIRE_TAG(2, WIRE_VARINT), &line, &all);
	if (at != end || all > WIRE_SMALL_MAX)
		return false;
	t->lines[t->lines_n++] = (struct pprof_line){ function, line, 0 };
	return true;
}

static enum err_code otlp_add_line(struct otlp_decoder *d, wire_pos at, wire_pos end)
{
	struct otlp_dictionary *t = &d->d;
	uint64_t v[4] = { 0 };

	if (otlp_quick_line(d, at, end))
		return ERR_OK;
	if (!otlp_numbers(d, at, end, v, 3))
		return otlp_wire_fail(d);
	if (t->lines_n == d->limits->elements_max)
		return otlp_too_many(d, d->limits->elements_max, "lines");
	if (!arena_array_room(d->a, &t->lines, t->lines_n, 1, &t->lines_cap))
		return otlp_no_memory(d);
	t->lines[t->lines_n++] = (struct pprof_line){ otlp_index(v[1]), (int64_t)v[2], (int64_t)v[3] };
	return ERR_OK;
}

/* Attributes of locations (profile.frame.type) have no place in pprof. */
static enum err_code otlp_add_location(struct otlp_decoder *d, wire_pos at, wire_pos end)
{
	struct otlp_dictionary *t = &d->d;
	uint32_t line_first = t->lines_n;
	uint64_t mapping = 0, address = 0;
	struct otlp_field f;
	enum err_code rc;

	while (at < end) {
		if (*at == WIRE_TAG(1, WIRE_VARINT)) {
			at = otlp_varint(at + 1, end, d->safe, &mapping);
		} else if (*at == WIRE_TAG(2, WIRE_VARINT)) {
			at = otlp_varint(at + 1, end, d->safe, &address);
		} else {
			at = otlp_next(at, end, &f);
			if (at && f.tag == WIRE_TAG(3, WIRE_BYTES)) {
				if ((rc = otlp_add_line(d, f.begin, f.end)))
					return rc;
			} else if (at && otlp_is_known(&f, 3)) {
				at = NULL;
			}
		}
		if (!at)
			return otlp_wire_fail(d);
	}
	if (!arena_array_room(d->a, &t->locations, t->locations_n, 1, &t->locations_cap))
		return otlp_no_memory(d);
	t->locations[t->locations_n++] = (struct otlp_location){
		.address = address,
		.mapping = otlp_index(mapping),
		.lines = { line_first, t->lines_n - line_first },
	};
	return ERR_OK;
}

static enum err_code otlp_add_function(struct otlp_decoder *d, wire_pos at, wire_pos end)
{
	struct otlp_dictionary *t = &d->d;
	uint64_t v[5] = { 0 };

	if (!otlp_numbers(d, at, end, v, 4))
		return otlp_wire_fail(d);
	if (!arena_array_room(d->a, &t->functions, t->functions_n, 1, &t->functions_cap))
		return otlp_no_memory(d);
	t->functions[t->functions_n++] = (struct otlp_function){
		.name = otlp_index(v[1]),
		.system_name = otlp_index(v[2]),
		.filename = otlp_index(v[3]),
		.start_line = (int64_t)v[4],
	};
	return ERR_OK;
}

static enum err_code otlp_link_id(struct otlp_decoder *d, const struct otlp_field *f,
	const char *name, unsigned char *id, size_t size)
{
	size_t len = (size_t)(f->end - f->begin);

	if (len && len != size)
		return err_set(d->err, ERR_INVALID,
			"dictionary.linkTable[%" PRIu32 "].%s has %zu bytes, must have %zu", d->d.links_n, name,
			len, size);
	if (len)
		memcpy(id, f->begin, size);
	else
		memset(id, 0, size);
	return ERR_OK;
}

static enum err_code otlp_add_link(struct otlp_decoder *d, wire_pos at, wire_pos end)
{
	struct otlp_dictionary *t = &d->d;
	struct pprof_link l = { 0 };
	enum err_code rc = ERR_OK;
	struct otlp_field f;

	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (f.tag == WIRE_TAG(1, WIRE_BYTES))
			rc = otlp_link_id(d, &f, "traceId", l.trace_id, sizeof(l.trace_id));
		else if (f.tag == WIRE_TAG(2, WIRE_BYTES))
			rc = otlp_link_id(d, &f, "spanId", l.span_id, sizeof(l.span_id));
		else if (otlp_is_known(&f, 2))
			return otlp_wire_fail(d);
		if (rc)
			return rc;
	}
	if (!arena_array_room(d->a, &d->request->links, t->links_n, 1, &t->links_cap))
		return otlp_no_memory(d);
	d->request->links[t->links_n++] = l;
	return ERR_OK;
}

/* Before 1.8 an attribute was a KeyValue, with the key itself. */
static enum err_code otlp_add_attribute(struct otlp_decoder *d, wire_pos at, wire_pos end)
{
	struct otlp_dictionary *t = &d->d;
	struct otlp_entry e = { .value = STR("") };
	struct otlp_field f;

	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (f.tag == WIRE_TAG(1, WIRE_VARINT))
			e.key = otlp_index(f.number);
		else if (f.tag == WIRE_TAG(2, WIRE_BYTES))
			e.value = otlp_bytes(&f);
		else if (f.tag == WIRE_TAG(3, WIRE_VARINT))
			e.unit = otlp_index(f.number);
		else if (f.tag == WIRE_TAG(1, WIRE_BYTES))
			return otlp_too_old(
				d->err, "field 1 of an attribute of its dictionary is not the keyStrindex");
		else if (otlp_is_known(&f, 3))
			return otlp_wire_fail(d);
	}
	if (!arena_array_room(d->a, &t->attributes, t->attributes_n, 1, &t->attributes_cap))
		return otlp_no_memory(d);
	t->attributes[t->attributes_n++] = e;
	return ERR_OK;
}

/* The seventh table was one of units before 1.8: {1 key, 2 unit}. */
static enum err_code otlp_add_stack(struct otlp_decoder *d, wire_pos at, wire_pos end)
{
	struct otlp_dictionary *t = &d->d;
	struct otlp_range s = { t->indices_n, 0 };
	struct otlp_field f;
	enum err_code rc;

	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (f.tag >> 3 == 1) {
			if ((rc = otlp_add_indices(d, &f)))
				return rc;
		} else if (f.tag == WIRE_TAG(2, WIRE_VARINT))
			return otlp_too_old(d->err, "field 7 of its dictionary is not the stackTable");
	}
	s.n = t->indices_n - s.first;
	if (!arena_array_room(d->a, &t->stacks, t->stacks_n, 1, &t->stacks_cap))
		return otlp_no_memory(d);
	t->stacks[t->stacks_n++] = s;
	return ERR_OK;
}

static enum err_code otlp_dictionary_add_string(struct otlp_decoder *d, const struct otlp_field *f)
{
	struct otlp_dictionary *t = &d->d;

	if (!t->strings_n && f->begin != f->end)
		return err_set(d->err, ERR_INVALID, "dictionary.stringTable[0] must be empty");
	if (!arena_array_room(d->a, &t->strings, t->strings_n, 1, &t->strings_cap))
		return otlp_no_memory(d);
	t->strings[t->strings_n++] = otlp_bytes(f);
	return ERR_OK;
}

/* First sizes fit what requests usually have for their length, so most arrays never grow. */
static bool otlp_set_room(struct otlp_decoder *d)
{
	struct otlp_dictionary *t = &d->d;
	size_t n = d->raw.len / 64 + 16;

	return arena_array_room(d->a, &t->strings, 0, n, &t->strings_cap) &&
		arena_array_room(d->a, &t->functions, 0, n / 2, &t->functions_cap) &&
		arena_array_room(d->a, &t->locations, 0, n, &t->locations_cap) &&
		arena_array_room(d->a, &t->lines, 0, n, &t->lines_cap) &&
		arena_array_room(d->a, &t->stacks, 0, n / 4, &t->stacks_cap) &&
		arena_array_room(d->a, &t->attributes, 0, n / 4, &t->attributes_cap) &&
		arena_array_room(d->a, &t->indices, 0, n * 4, &t->indices_cap);
}

static inline bool otlp_is_full(const struct otlp_decoder *d, uint32_t n)
{
	return n >= d->limits->elements_max;
}

static enum err_code otlp_add_element(struct otlp_decoder *d, const struct otlp_field *f)
{
	static const char *const names[] = { [T_MAPPING] = "mappings",
		[T_LOCATION] = "locations",
		[T_FUNCTION] = "functions",
		[T_LINK] = "links",
		[T_STRING] = "strings",
		[T_ATTRIBUTE] = "attributes",
		[T_STACK] = "stacks" };
	const struct otlp_dictionary *t = &d->d;
	uint64_t table = f->tag >> 3;

	if (table == T_LOCATION && !otlp_is_full(d, t->locations_n))
		return otlp_add_location(d, f->begin, f->end);
	if (table == T_STRING && !otlp_is_full(d, t->strings_n))
		return otlp_dictionary_add_string(d, f);
	if (table == T_FUNCTION && !otlp_is_full(d, t->functions_n))
		return otlp_add_function(d, f->begin, f->end);
	if (table == T_STACK && !otlp_is_full(d, t->stacks_n))
		return otlp_add_stack(d, f->begin, f->end);
	if (table == T_ATTRIBUTE && !otlp_is_full(d, t->attributes_n))
		return otlp_add_attribute(d, f->begin, f->end);
	if (table == T_MAPPING && !otlp_is_full(d, t->mappings_n))
		return otlp_add_mapping(d, f->begin, f->end);
	if (table == T_LINK && !otlp_is_full(d, t->links_n))
		return otlp_add_link(d, f->begin, f->end);
	return otlp_too_many(d, d->limits->elements_max, names[table]);
}

enum err_code otlp_dictionary_add(struct otlp_decoder *d, struct str message)
{
	wire_pos at = (wire_pos)message.ptr, end = at + message.len;
	struct otlp_field f;
	enum err_code rc;

	if (!d->d.strings_cap && !otlp_set_room(d))
		return otlp_no_memory(d);
	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (!otlp_is_known(&f, T_STACK))
			continue;
		if ((f.tag & 7) != WIRE_BYTES)
			return otlp_wire_fail(d);
		if ((rc = otlp_add_element(d, &f)))
			return rc;
	}
	return ERR_OK;
}
