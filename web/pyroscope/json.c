#include "web/pyroscope/json.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "proto/base64.h"

#define NAME_BYTES_MAX 64u

static void pyroscope_camel_case(char out[NAME_BYTES_MAX], const char *name)
{
	size_t n = 0;

	for (; *name && n + 1 < NAME_BYTES_MAX; name++) {
		if (*name == '_' && name[1])
			out[n++] = (char)toupper((unsigned char)*++name);
		else
			out[n++] = *name;
	}
	out[n] = '\0';
}

/* ---- reading ---- */

struct pyroscope_reader {
	struct arena *arena;
	struct err *err;
};

static enum err_code pyroscope_reader_wrong(
	struct pyroscope_reader *r, const ProtobufCFieldDescriptor *field, const char *want)
{
	return err_set(r->err, ERR_INVALID, "field %s: expected %s", field->name, want);
}

static bool pyroscope_read_i64(const json_t *value, int64_t *out)
{
	double d;

	if (json_is_integer(value)) {
		*out = json_integer_value(value);
		return true;
	}
	if (json_is_string(value))
		return str_to_i64((struct str){ json_string_value(value), json_string_length(value) }, out);
	if (!json_is_real(value))
		return false;
	d = json_real_value(value);
	if (d != floor(d) || !(d >= -0x1p63 && d < 0x1p63))
		return false;
	*out = (int64_t)d;
	return true;
}

static bool pyroscope_read_double(const json_t *value, double *out)
{
	char *end;

	if (json_is_number(value)) {
		*out = json_number_value(value);
		return true;
	}
	if (!json_is_string(value) || !json_string_length(value))
		return false;
	*out = strtod(json_string_value(value), &end);
	return *end == '\0';
}

static bool pyroscope_read_enum(
	const json_t *value, const ProtobufCEnumDescriptor *descriptor, int *out)
{
	const ProtobufCEnumValue *named;
	int64_t n;

	if (json_is_string(value)) {
		named = protobuf_c_enum_descriptor_get_value_by_name(descriptor, json_string_value(value));
		if (named)
			*out = named->value;
		return named != NULL;
	}
	if (!pyroscope_read_i64(value, &n) || n < INT32_MIN || n > INT32_MAX)
		return false;
	*out = (int)n;
	return true;
}

static enum err_code pyroscope_reader_read_bytes(struct pyroscope_reader *r,
	const ProtobufCFieldDescriptor *field, const json_t *value, ProtobufCBinaryData *out)
{
	char *bytes;

	if (!json_is_string(value))
		return pyroscope_reader_wrong(r, field, "bytes in base64");
	if (!(bytes = arena_alloc_raw(r->arena, json_string_length(value) + 1, 1)))
		return arena_fail(r->arena, "request", r->err);
	out->data = (uint8_t *)bytes;
	if (!base64_decode(
			(struct str){ json_string_value(value), json_string_length(value) }, bytes, &out->len))
		return pyroscope_reader_wrong(r, field, "bytes in base64");
	return ERR_OK;
}

static enum err_code pyroscope_reader_read_message(struct pyroscope_reader *r,
	const ProtobufCMessageDescriptor *descriptor, const json_t *values, ProtobufCMessage **out);

/* Writes one value to its place in the message or array. */
static enum err_code pyroscope_reader_read_value(struct pyroscope_reader *r,
	const ProtobufCFieldDescriptor *field, const json_t *value, void *to)
{
	int64_t n = 0;

	switch (field->type) {
	case PROTOBUF_C_TYPE_INT64:
		return pyroscope_read_i64(value, to) ? ERR_OK :
											   pyroscope_reader_wrong(r, field, "a whole number");
	case PROTOBUF_C_TYPE_UINT32:
		if (!pyroscope_read_i64(value, &n) || n < 0 || n > UINT32_MAX)
			return pyroscope_reader_wrong(r, field, "a whole number of 32 bits");
		*(uint32_t *)to = (uint32_t)n;
		return ERR_OK;
	case PROTOBUF_C_TYPE_DOUBLE:
		return pyroscope_read_double(value, to) ? ERR_OK :
												  pyroscope_reader_wrong(r, field, "a number");
	case PROTOBUF_C_TYPE_BOOL:
		if (!json_is_boolean(value))
			return pyroscope_reader_wrong(r, field, "true or false");
		*(protobuf_c_boolean *)to = json_is_true(value);
		return ERR_OK;
	case PROTOBUF_C_TYPE_ENUM:
		return pyroscope_read_enum(value, field->descriptor, to) ?
			ERR_OK :
			pyroscope_reader_wrong(r, field, "a value of its type");
	case PROTOBUF_C_TYPE_STRING:
		if (!json_is_string(value))
			return pyroscope_reader_wrong(r, field, "a string");
		*(char **)to = arena_strndup(r->arena, json_string_value(value), json_string_length(value));
		return *(char **)to ? ERR_OK : arena_fail(r->arena, "request", r->err);
	case PROTOBUF_C_TYPE_BYTES:
		return pyroscope_reader_read_bytes(r, field, value, to);
	case PROTOBUF_C_TYPE_MESSAGE:
		return pyroscope_reader_read_message(r, field->descriptor, value, to);
	default:
		return pyroscope_reader_wrong(r, field, "nothing"); /* requests have no others */
	}
}

static size_t pyroscope_size_of(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 8;
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	default:
		return 4;
	}
}

static enum err_code pyroscope_reader_read_list(struct pyroscope_reader *r,
	const ProtobufCFieldDescriptor *field, const json_t *value, char *message)
{
	size_t n = json_array_size(value);
	char *items;
	enum err_code rc;

	if (!json_is_array(value))
		return pyroscope_reader_wrong(r, field, "a list");
	if (n == 0)
		return ERR_OK;
	if (!(items = arena_calloc(r->arena, n, pyroscope_size_of(field))))
		return arena_fail(r->arena, "request", r->err);
	for (size_t i = 0; i < n; i++)
		if ((rc = pyroscope_reader_read_value(
				 r, field, json_array_get(value, i), items + i * pyroscope_size_of(field))))
			return rc;
	memcpy(message + field->quantifier_offset, &n, sizeof(n));
	memcpy(message + field->offset, &items, sizeof(items));
	return ERR_OK;
}

static const ProtobufCFieldDescriptor *pyroscope_find_field(
	const ProtobufCMessageDescriptor *descriptor, const char *key)
{
	char camel[NAME_BYTES_MAX];

	for (unsigned i = 0; i < descriptor->n_fields; i++) {
		pyroscope_camel_case(camel, descriptor->fields[i].name);
		if (!strcmp(key, camel) || !strcmp(key, descriptor->fields[i].name))
			return &descriptor->fields[i];
	}
	return NULL;
}

static enum err_code pyroscope_reader_read_message(struct pyroscope_reader *r,
	const ProtobufCMessageDescriptor *descriptor, const json_t *values, ProtobufCMessage **out)
{
	/* jansson's iterators take no const, and change nothing. */
	void *at, *object = (void *)(uintptr_t)values;
	char *message;
	enum err_code rc;

	if (!json_is_object(values))
		return err_set(r->err, ERR_INVALID, "%s: expected an object", descriptor->short_name);
	if (!(message = arena_alloc(r->arena, descriptor->sizeof_message)))
		return arena_fail(r->arena, "request", r->err);
	*out = (ProtobufCMessage *)(void *)message;
	descriptor->message_init(*out);
	for (at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
		const ProtobufCFieldDescriptor *f = pyroscope_find_field(
			descriptor, json_object_iter_key(at));
		const json_t *value = json_object_iter_value(at);

		if (!f || json_is_null(value))
			continue;
		if (f->label == PROTOBUF_C_LABEL_REPEATED)
			rc = pyroscope_reader_read_list(r, f, value, message);
		else
			rc = pyroscope_reader_read_value(r, f, value, message + f->offset);
		if (rc)
			return rc;
	}
	return ERR_OK;
}

enum err_code pyroscope_json_read(struct arena *a, const ProtobufCMessageDescriptor *descriptor,
	struct str body, ProtobufCMessage **out, struct err *err)
{
	struct pyroscope_reader r = { .arena = a, .err = err };
	json_error_t where;
	const char *text = body.ptr ? body.ptr : "";
	json_t *root = json_loadb(text, body.len, 0, &where);
	enum err_code rc;

	/* For a double the number may be past 64 bits. */
	if (!root && json_error_code(&where) == json_error_numeric_overflow)
		root = json_loadb(text, body.len, JSON_DECODE_INT_AS_REAL, &where);
	if (!root)
		return err_set(err, ERR_INVALID, "the body is not JSON: line %d, column %d: %s", where.line,
			where.column, where.text);
	rc = pyroscope_reader_read_message(&r, descriptor, root, out);
	json_decref(root);
	return rc;
}

/* ---- writing ---- */

static void pyroscope_write_base64(struct json *j, ProtobufCBinaryData b)
{
	struct buf text = { 0 };

	buf_add_char(&text, '"');
	base64_add(&text, (struct str){ (const char *)b.data, b.len });
	buf_add_char(&text, '"');
	json_raw(j, buf_str(&text));
	j->out->failed |= text.failed;
	buf_release(&text);
}

static void pyroscope_write_bytes(
	struct json *j, const ProtobufCFieldDescriptor *field, ProtobufCBinaryData b)
{
	if (!strcmp(field->name, "string_table"))
		json_str(j, (struct str){ (const char *)b.data, b.len });
	else
		pyroscope_write_base64(j, b);
}

static void pyroscope_write_number(struct json *j, double value)
{
	if (isfinite(value))
		json_double(j, value);
	else
		json_cstr(j, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

static void pyroscope_write_i64(struct json *j, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "\"%lld\"", (long long)value);
	json_raw(j, str_of(text));
}

static void pyroscope_write_u64(struct json *j, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "\"%llu\"", (unsigned long long)value);
	json_raw(j, str_of(text));
}

static void pyroscope_write_enum(
	struct json *j, const ProtobufCEnumDescriptor *descriptor, int value)
{
	const ProtobufCEnumValue *named = protobuf_c_enum_descriptor_get_value(descriptor, value);

	if (named)
		json_cstr(j, named->name);
	else
		json_i64(j, value);
}

static void pyroscope_write_value(
	struct json *j, const ProtobufCFieldDescriptor *field, const void *value)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_INT64:
		pyroscope_write_i64(j, *(const int64_t *)value);
		break;
	case PROTOBUF_C_TYPE_UINT64:
		pyroscope_write_u64(j, *(const uint64_t *)value);
		break;
	case PROTOBUF_C_TYPE_UINT32:
		json_u64(j, *(const uint32_t *)value);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		pyroscope_write_number(j, *(const double *)value);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		json_bool(j, *(const protobuf_c_boolean *)value);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		pyroscope_write_enum(j, field->descriptor, *(const int *)value);
		break;
	case PROTOBUF_C_TYPE_STRING:
		json_cstr(j, *(const char *const *)value);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		pyroscope_write_bytes(j, field, *(const ProtobufCBinaryData *)value);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		pyroscope_json_write(j, *(ProtobufCMessage *const *)value);
		break;
	default:
		json_null(j); /* no message of ours has them */
	}
}

static bool pyroscope_is_default(const ProtobufCFieldDescriptor *field, const void *value)
{
	static const char zeros[8];
	const char *text;

	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		text = *(const char *const *)value;
		return !text || !*text;
	case PROTOBUF_C_TYPE_BYTES:
		return ((const ProtobufCBinaryData *)value)->len == 0;
	case PROTOBUF_C_TYPE_MESSAGE:
		return !*(ProtobufCMessage *const *)value;
	default:
		return !memcmp(value, zeros, pyroscope_size_of(field));
	}
}

void pyroscope_json_write(struct json *j, const ProtobufCMessage *message)
{
	const char *at = (const char *)message, *items;
	char name[NAME_BYTES_MAX];
	size_t n;

	json_object(j);
	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &message->descriptor->fields[i];
		bool list = f->label == PROTOBUF_C_LABEL_REPEATED;

		if (list)
			memcpy(&n, at + f->quantifier_offset, sizeof(n));
		if (list ? n == 0 : pyroscope_is_default(f, at + f->offset))
			continue;
		pyroscope_camel_case(name, f->name);
		json_key(j, name);
		if (!list) {
			pyroscope_write_value(j, f, at + f->offset);
			continue;
		}
		memcpy(&items, at + f->offset, sizeof(items));
		json_array(j);
		for (size_t k = 0; k < n; k++)
			pyroscope_write_value(j, f, items + k * pyroscope_size_of(f));
		json_array_end(j);
	}
	json_object_end(j);
}
