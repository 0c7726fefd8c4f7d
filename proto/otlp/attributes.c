/* Attributes: keys and values by value or by reference, their text, and the labels they make. */
#include <inttypes.h>

#include "base/integer.h"
#include "base/json.h"
#include "proto/base64.h"
#include "proto/otlp/decoder.h"

#define VALUE_DEPTH_MAX 16 /* of arrays and maps in each other */

/* The members of an AnyValue by number; the last one given counts. */
enum any {
	ANY_STRING = 1,
	ANY_BOOL,
	ANY_INT,
	ANY_DOUBLE,
	ANY_ARRAY,
	ANY_MAP,
	ANY_BYTES,
	ANY_REFERENCE
};

enum err_code otlp_string(struct otlp_decoder *d, uint32_t index, const char *what, struct str *out)
{
	if (!index)
		*out = STR("");
	else if (index < d->d.strings_n)
		*out = d->d.strings[index];
	else
		return otlp_reject(d, ERR_INVALID, "%s: no string %" PRIu32 ", stringTable has %" PRIu32,
			what, index, d->d.strings_n);
	return ERR_OK;
}

static enum err_code any_member(struct otlp_decoder *d, struct str any, struct otlp_field *out)
{
	static const enum wire_type types[] = { 0, WIRE_BYTES, WIRE_VARINT, WIRE_VARINT, WIRE_FIXED64,
		WIRE_BYTES, WIRE_BYTES, WIRE_BYTES, WIRE_VARINT };
	wire_pos at = (wire_pos)any.ptr, end = at + any.len;
	struct otlp_field f;

	out->tag = 0;
	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (!otlp_is_known(&f, ANY_REFERENCE))
			continue;
		if ((f.tag & 7) != types[f.tag >> 3])
			return otlp_wire_fail(d);
		*out = f;
	}
	return ERR_OK;
}

static double otlp_to_double(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* ------------------------------------------------------------------------------------------------
 * Arrays and maps as JSON. */

static enum err_code otlp_too_long(struct otlp_decoder *d)
{
	return otlp_reject(d, ERR_LIMIT, "an array or a map is longer than %" PRIu32 " bytes as text",
		d->limits->text_bytes_max);
}

static enum err_code otlp_add_text(
	struct otlp_decoder *d, struct json *j, struct str s, bool is_key)
{
	if (s.len > d->limits->text_bytes_max)
		return otlp_too_long(d);
	if (is_key)
		json_key_str(j, s);
	else
		json_str(j, s);
	return ERR_OK;
}

static enum err_code otlp_add_any(
	struct otlp_decoder *d, struct json *j, struct str any, unsigned depth);

/* The members of an ArrayValue or a KeyValueList. */
static enum err_code otlp_add_members(
	struct otlp_decoder *d, struct json *j, const struct otlp_field *list, unsigned depth)
{
	bool is_map = list->tag >> 3 == ANY_MAP;
	wire_pos at = list->begin;
	struct otlp_field f;
	enum err_code rc;

	if (depth == VALUE_DEPTH_MAX)
		return otlp_reject(
			d, ERR_LIMIT, "arrays and maps are nested more than %d deep", VALUE_DEPTH_MAX);
	while (at < list->end) {
		if (!(at = otlp_next(at, list->end, &f)))
			return otlp_wire_fail(d);
		if (f.tag >> 3 != 1)
			continue;
		if ((f.tag & 7) != WIRE_BYTES)
			return otlp_wire_fail(d);
		if (is_map) {
			wire_pos in = f.begin;
			struct str key = STR(""), value = STR("");
			struct otlp_field m;

			while (in < f.end) {
				if (!(in = otlp_next(in, f.end, &m)))
					return otlp_wire_fail(d);
				if (m.tag == WIRE_TAG(1, WIRE_BYTES))
					key = otlp_bytes(&m);
				else if (m.tag == WIRE_TAG(2, WIRE_BYTES))
					value = otlp_bytes(&m);
				else if (m.tag == WIRE_TAG(3, WIRE_VARINT)) {
					if ((rc = otlp_string(d, otlp_index(m.number), "keyStrindex", &key)))
						return rc;
				} else if (otlp_is_known(&m, 3))
					return otlp_wire_fail(d);
			}
			if ((rc = otlp_add_text(d, j, key, true)) || (rc = otlp_add_any(d, j, value, depth)))
				return rc;
		} else if ((rc = otlp_add_any(d, j, otlp_bytes(&f), depth))) {
			return rc;
		}
		if (j->out->len > d->limits->text_bytes_max)
			return otlp_too_long(d);
	}
	return ERR_OK;
}

static enum err_code otlp_add_base64(struct otlp_decoder *d, struct json *j, struct str bytes)
{
	struct buf b = { 0 };
	enum err_code rc;

	if (bytes.len > d->limits->text_bytes_max)
		return otlp_too_long(d);
	base64_add(&b, bytes);
	rc = buf_failed(&b) ? err_nomem(d->err, "attribute") : otlp_add_text(d, j, buf_str(&b), false);
	buf_release(&b);
	return rc;
}

static enum err_code otlp_add_any(
	struct otlp_decoder *d, struct json *j, struct str any, unsigned depth)
{
	struct otlp_field f;
	enum err_code rc;
	struct str s;

	if ((rc = any_member(d, any, &f)))
		return rc;
	switch (f.tag >> 3) {
	case ANY_STRING:
		return otlp_add_text(d, j, otlp_bytes(&f), false);
	case ANY_REFERENCE:
		rc = otlp_string(d, otlp_index(f.number), "stringValueStrindex", &s);
		return rc ? rc : otlp_add_text(d, j, s, false);
	case ANY_BOOL:
		json_bool(j, f.number);
		return ERR_OK;
	case ANY_INT:
		json_i64(j, (int64_t)f.number);
		return ERR_OK;
	case ANY_DOUBLE:
		json_double(j, otlp_to_double(f.number));
		return ERR_OK;
	case ANY_BYTES:
		return otlp_add_base64(d, j, otlp_bytes(&f));
	case ANY_ARRAY:
		json_array(j);
		if ((rc = otlp_add_members(d, j, &f, depth + 1)))
			return rc;
		json_array_end(j);
		return ERR_OK;
	case ANY_MAP:
		json_object(j);
		if ((rc = otlp_add_members(d, j, &f, depth + 1)))
			return rc;
		json_object_end(j);
		return ERR_OK;
	default:
		json_null(j);
		return ERR_OK;
	}
}

/* ------------------------------------------------------------------------------------------------
 * Values. */

/* Few bytes may name a long string, in many attributes. */
static enum err_code otlp_count_text(struct otlp_decoder *d, size_t len)
{
	size_t max = d->limits->raw_bytes_max * 4;

	d->text_bytes += len;
	return d->text_bytes > max ?
		err_set(
			d->err, ERR_LIMIT, "request has more than %zu bytes in attributes, the limit", max) :
		ERR_OK;
}

static enum err_code otlp_keep(struct otlp_decoder *d, const struct buf *b, struct str *out)
{
	enum err_code rc;

	if (buf_failed(b))
		return err_nomem(d->err, "attribute");
	if ((rc = otlp_count_text(d, b->len)))
		return rc;
	*out = str_dup(d->a, buf_str(b));
	return out->ptr ? ERR_OK : otlp_no_memory(d);
}

static enum err_code otlp_composed(
	struct otlp_decoder *d, struct str any, const struct otlp_field *f, struct otlp_attribute *out)
{
	struct buf b = { 0 };
	enum err_code rc = ERR_OK;
	struct json j;

	if (out->kind == OTLP_DOUBLE) {
		buf_add_double(&b, otlp_to_double(f->number));
	} else if (out->kind == OTLP_BYTES) {
		if ((size_t)(f->end - f->begin) > d->limits->text_bytes_max)
			rc = otlp_too_long(d);
		else
			base64_add(&b, otlp_bytes(f));
	} else {
		json_init(&j, &b);
		rc = otlp_add_any(d, &j, any, 0);
		if (!rc && b.len > d->limits->text_bytes_max)
			rc = otlp_too_long(d);
	}
	rc = rc ? rc : otlp_keep(d, &b, &out->text);
	buf_release(&b);
	return rc;
}

static enum err_code otlp_integer_text(struct otlp_decoder *d, int64_t value, struct str *out)
{
	char digits[20], *at = digits + sizeof(digits);
	uint64_t left = integer_magnitude64(value);

	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (value < 0)
		*--at = '-';
	*out = str_dup(d->a, (struct str){ at, (size_t)(digits + sizeof(digits) - at) });
	return out->ptr ? ERR_OK : otlp_no_memory(d);
}

enum err_code otlp_value(struct otlp_decoder *d, struct str any, struct otlp_attribute *out)
{
	static const enum otlp_kind kinds[] = { OTLP_EMPTY, OTLP_STRING, OTLP_BOOL, OTLP_INT,
		OTLP_DOUBLE, OTLP_ARRAY, OTLP_MAP, OTLP_BYTES, OTLP_STRING };
	struct otlp_field f;
	enum err_code rc;

	if ((rc = any_member(d, any, &f)))
		return rc;
	out->kind = kinds[f.tag >> 3];
	out->text = STR("");
	switch (out->kind) {
	case OTLP_EMPTY:
		return ERR_OK;
	case OTLP_STRING:
		if (f.tag >> 3 == ANY_REFERENCE)
			return otlp_string(d, otlp_index(f.number), "stringValueStrindex", &out->text);
		out->text = otlp_bytes(&f);
		return ERR_OK;
	case OTLP_BOOL:
		out->number = f.number != 0;
		out->text = f.number ? STR("true") : STR("false");
		return ERR_OK;
	case OTLP_INT:
		out->number = (int64_t)f.number;
		return otlp_integer_text(d, out->number, &out->text);
	default:
		return otlp_composed(d, any, &f, out);
	}
}

enum err_code otlp_key_value(struct otlp_decoder *d, struct str message, struct otlp_attribute *out)
{
	wire_pos at = (wire_pos)message.ptr, end = at + message.len;
	struct str value = STR("");
	struct otlp_field f;
	enum err_code rc;

	*out = (struct otlp_attribute){ .key = STR(""), .unit = STR("") };
	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (f.tag == WIRE_TAG(1, WIRE_BYTES))
			out->key = otlp_bytes(&f);
		else if (f.tag == WIRE_TAG(2, WIRE_BYTES))
			value = otlp_bytes(&f);
		else if (f.tag == WIRE_TAG(3, WIRE_VARINT)) {
			if (f.number && (rc = otlp_string(d, otlp_index(f.number), "keyStrindex", &out->key)))
				return rc;
		} else if (otlp_is_known(&f, 3))
			return otlp_wire_fail(d);
	}
	return otlp_value(d, value, out);
}

/* ------------------------------------------------------------------------------------------------
 * Attributes of the dictionary. */

enum err_code otlp_entry_attribute(
	struct otlp_decoder *d, uint32_t index, struct otlp_attribute *out)
{
	const struct otlp_entry *e;
	enum err_code rc;

	*out = (struct otlp_attribute){ .key = STR(""), .unit = STR("") };
	if (!index)
		return ERR_OK;
	if (index >= d->d.attributes_n)
		return otlp_reject(d, ERR_INVALID, "no attribute %" PRIu32 ", attributeTable has %" PRIu32,
			index, d->d.attributes_n);
	e = &d->d.attributes[index];
	if ((rc = otlp_string(d, e->key, "keyStrindex", &out->key)) ||
		(rc = otlp_string(d, e->unit, "unitStrindex", &out->unit)) ||
		(rc = otlp_value(d, e->value, out)))
		return rc;
	if (!out->key.len)
		return otlp_reject(d, ERR_INVALID, "attributeTable[%" PRIu32 "] has no key", index);
	return ERR_OK;
}

static bool otlp_is_label(const struct otlp_decoder *d, struct str *key)
{
	return !d->options->label || d->options->label(d->options->ctx, key);
}

/* Numbers with and without unit are different labels; other kinds are their text. */
static bool otlp_is_same_label(const void *ctx, const void *key, uint32_t id)
{
	const struct otlp_decoder *d = ctx;
	const struct otlp_attribute *a = key, *b = &d->d.attributes[id].a;

	return (a->kind == OTLP_INT) == (b->kind == OTLP_INT) && str_eq(a->key, b->key) &&
		str_eq(a->text, b->text) && (a->kind != OTLP_INT || str_eq(a->unit, b->unit));
}

enum err_code otlp_entry_use(struct otlp_decoder *d, uint32_t index, struct otlp_entry **out)
{
	struct otlp_attribute a;
	struct otlp_entry *e;
	enum err_code rc;
	uint64_t hash;

	if (index < d->d.attributes_n && d->d.attributes[index].use != OTLP_UNSEEN) {
		*out = &d->d.attributes[index];
		return ERR_OK;
	}
	if ((rc = otlp_entry_attribute(d, index, &a)))
		return rc;
	if (!index && !d->d.attributes_n) {
		*out = NULL;
		return ERR_OK;
	}
	e = &d->d.attributes[index];
	e->use = OTLP_NO_LABEL;
	*out = e;
	if (!a.text.len || !otlp_is_label(d, &a.key))
		return ERR_OK;
	if (a.kind == OTLP_INT && !a.number && !a.unit.len)
		a.unit = a.key;
	if ((rc = otlp_count_text(d, a.text.len + a.key.len)))
		return rc;
	hash = hash_bytes(a.text.ptr, a.text.len, hash_bytes(a.key.ptr, a.key.len, d->seed));
	e->a = a;
	if ((e->same = map_find(&d->labels, hash, otlp_is_same_label, d, &a)) == MAP_NONE) {
		if (!map_add(&d->labels, hash, index))
			return err_nomem(d->err, "attributes");
		e->same = index;
	}
	e->use = OTLP_LABEL;
	return ERR_OK;
}
