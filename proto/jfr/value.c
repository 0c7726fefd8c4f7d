/*
 * Values as a recording has them.
 *
 * Numbers are varints of at most nine bytes; the ninth gives eight bits. A string begins with its
 * encoding: 0 null, 1 empty, 2 the id of a constant, 3 UTF-8, 4 UTF-16 units as varints, 5
 * Latin-1. An object is its fields in the order of the metadata, without marks, so one has to know
 * its class to skip it.
 *
 * Each field takes a byte at least, and an object has a field at least (KIND_UNKNOWN otherwise).
 * So a count of items is bounded by the bytes left, and so is the work.
 */
#include "proto/jfr/decoder.h"

enum { STRING_NULL, STRING_EMPTY, STRING_REF, STRING_UTF8, STRING_UTF16, STRING_LATIN1 };

uint64_t jfr_varint_slow(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; c->at < c->end; shift += 7) {
		unsigned char b = *c->at++;

		if (shift == 56)
			return v | (uint64_t)b << 56;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return v;
	}
	c->bad = true;
	return 0;
}

uint32_t jfr_offset(const struct jfr_decoder *d, const struct cursor *c)
{
	return (uint32_t)(c->at - (const unsigned char *)d->raw.ptr);
}

struct cursor jfr_cursor(const struct jfr_decoder *d, uint32_t at, uint32_t end)
{
	return cursor_of((struct str){ d->raw.ptr + at, end - at });
}

enum err_code jfr_value_fail(struct jfr_chunk *c, uint32_t at, const char *what)
{
	return err_set(c->d->err, ERR_INVALID, "chunk %u: %s at byte %u: %s", c->number, what, at,
		c->why ? c->why : "ends too early");
}

static void jfr_skip_varints(struct cursor *c, uint64_t n)
{
	while (n-- && !c->bad)
		jfr_varint(c);
}

void jfr_string(struct cursor *c, struct jfr_value *v)
{
	const unsigned char *begin;

	*v = (struct jfr_value){ 0 };
	if (c->at >= c->end) {
		c->bad = true;
		return;
	}
	v->encoding = *c->at++;
	switch (v->encoding) {
	case STRING_NULL:
	case STRING_EMPTY:
		break;
	case STRING_REF:
		v->n = jfr_varint(c);
		break;
	case STRING_UTF8:
	case STRING_LATIN1:
		v->n = jfr_varint(c);
		if (v->n > cursor_left(c))
			c->bad = true;
		else
			v->bytes = cursor_bytes(c, (size_t)v->n);
		break;
	case STRING_UTF16:
		v->n = jfr_varint(c);
		begin = c->at;
		if (v->n > cursor_left(c))
			c->bad = true;
		else
			jfr_skip_varints(c, v->n);
		v->bytes = (struct str){ (const char *)begin, (size_t)(c->at - begin) };
		break;
	default:
		c->bad = true;
	}
}

static bool jfr_value_object(struct jfr_chunk *c, struct cursor *cursor,
	const struct jfr_class *class, struct jfr_value *values, unsigned depth);

static bool jfr_fail(struct jfr_chunk *c, struct cursor *cursor, const char *why)
{
	c->why = why;
	cursor->bad = true;
	return false;
}

static bool jfr_item(struct jfr_chunk *c, struct cursor *cursor, const struct jfr_field *f,
	struct jfr_value *v, unsigned depth)
{
	switch (f->kind) {
	case KIND_LONG:
	case KIND_REF:
		v->n = jfr_varint(cursor);
		break;
	case KIND_INT:
		v->n = (uint64_t)(int32_t)(uint32_t)jfr_varint(cursor);
		break;
	case KIND_SHORT:
		v->n = (uint64_t)(int16_t)(uint16_t)jfr_varint(cursor);
		break;
	case KIND_CHAR:
		v->n = (uint16_t)jfr_varint(cursor);
		break;
	case KIND_BYTE:
	case KIND_BOOLEAN:
		if (cursor->at == cursor->end)
			cursor->bad = true;
		else
			v->n = f->kind == KIND_BYTE ? (uint64_t)(int8_t)*cursor->at++ : *cursor->at++ != 0;
		break;
	case KIND_FLOAT:
		cursor_bytes(cursor, 4);
		break;
	case KIND_DOUBLE:
		cursor_bytes(cursor, 8);
		break;
	case KIND_STRING:
		jfr_string(cursor, v);
		if (cursor->bad && v->encoding > STRING_LATIN1)
			return jfr_fail(c, cursor, "a string has an unknown encoding");
		break;
	case KIND_STRUCT:
		return jfr_value_object(c, cursor, &c->classes[f->class], NULL, depth + 1);
	case KIND_UNKNOWN:
		return jfr_fail(c, cursor, "a field's class is not in the metadata, or has no fields");
	}
	return !cursor->bad;
}

static bool jfr_array(struct jfr_chunk *c, struct cursor *cursor, const struct jfr_field *f,
	struct jfr_value *v, unsigned depth)
{
	const struct jfr_class *class = f->kind == KIND_STRUCT ? &c->classes[f->class] : NULL;
	const unsigned char *begin;
	struct jfr_value ignored = { 0 };

	v->n = jfr_varint(cursor);
	begin = cursor->at;
	if (v->n > cursor_left(cursor))
		cursor->bad = true;
	else if (f->kind <= KIND_REF && f->kind != KIND_UNKNOWN)
		jfr_skip_varints(cursor, v->n);
	else if (class && class->varints)
		jfr_skip_varints(cursor, v->n * class->field_n); /* below 2^64: fields are limited */
	else
		for (uint64_t i = 0; i < v->n; i++)
			if (!jfr_item(c, cursor, f, &ignored, depth))
				return false;
	v->bytes = (struct str){ (const char *)begin, (size_t)(cursor->at - begin) };
	return !cursor->bad;
}

static bool jfr_value_object(struct jfr_chunk *c, struct cursor *cursor,
	const struct jfr_class *class, struct jfr_value *values, unsigned depth)
{
	if (depth > JFR_NESTING_MAX)
		return jfr_fail(c, cursor, "values nest too deep");
	for (uint32_t i = class->field_first; i < class->field_first + class->field_n; i++) {
		const struct jfr_field *f = &c->fields[i];
		struct jfr_value ignored = { 0 }, *v = &ignored;

		if (values && c->slots[i] < SLOTS)
			v = &values[c->slots[i]];
		if (!(f->array ? jfr_array(c, cursor, f, v, depth) : jfr_item(c, cursor, f, v, depth)))
			return false;
	}
	return true;
}

bool jfr_object(struct jfr_chunk *c, struct cursor *cursor, const struct jfr_class *class,
	struct jfr_value *values)
{
	return jfr_value_object(c, cursor, class, values, 0);
}

bool jfr_constant(struct jfr_chunk *c, struct cursor *cursor, const struct jfr_class *class,
	struct jfr_value *values)
{
	struct jfr_field string = { .kind = KIND_STRING };
	struct jfr_value ignored;

	if (class->role == ROLE_STRING)
		return jfr_item(c, cursor, &string, values ? values : &ignored, 0);
	if (!class->field_n)
		return jfr_fail(c, cursor, "a constant's class has no fields");
	return jfr_value_object(c, cursor, class, values, 0);
}

bool jfr_number(const struct jfr_chunk *c, const struct jfr_class *class,
	const struct jfr_value *values, unsigned slot, int64_t *out)
{
	const struct jfr_field *f;

	if (class->field_of[slot] == JFR_NONE)
		return false;
	f = &c->fields[class->field_of[slot]];
	if (f->array || f->kind == KIND_UNKNOWN || f->kind == KIND_REF || f->kind > KIND_BOOLEAN)
		return false;
	*out = (int64_t)values[slot].n;
	return true;
}
