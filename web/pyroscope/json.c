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
	struct pyroscope_reader *r, const ProtobufCFieldDescriptor *f, const char *want)
{
	return err_set(r->err, ERR_INVALID, "field %s: expected %s", f->name, want);
}

static bool pyroscope_read_i64(const json_t *v, int64_t *out)
{
	double d;

	if (json_is_integer(v)) {
		*out = json_integer_value(v);
		return true;
	}
	if (json_is_string(v))
		return str_to_i64((struct str){ json_string_value(v), json_string_length(v) }, out);
	if (!json_is_real(v))
		return false;
	d = json_real_value(v);
	if (d != floor(d) || !(d >= -0x1p63 && d < 0x1p63))
		return false;
	*out = (int64_t)d;
	return true;
}

static bool pyroscope_read_double(const json_t *v, double *out)
{
	char *end;

	if (json_is_number(v)) {
		*out = json_number_value(v);
		return true;
	}
	if (!json_is_string(v) || !json_string_length(v))
		return false;
	*out = strtod(json_string_value(v), &end);
	return *end == '\0';
}

static bool pyroscope_read_enum(const json_t *v, const ProtobufCEnumDescriptor *d, int *out)
{
	const ProtobufCEnumValue *named;
	int64_t n;

	if (json_is_string(v)) {
		named = protobuf_c_enum_descriptor_get_value_by_name(d, json_string_value(v));
		if (named)
			*out = named->value;
		return named != NULL;
	}
	if (!pyroscope_read_i64(v, &n) || n < INT32_MIN || n > INT32_MAX)
		return false;
	*out = (int)n;
	return true;
}

static enum err_code pyroscope_reader_read_bytes(struct pyroscope_reader *r,
	const ProtobufCFieldDescriptor *f, const json_t *v, ProtobufCBinaryData *out)
{
	char *bytes;

	if (!json_is_string(v))
		return pyroscope_reader_wrong(r, f, "bytes in base64");
	if (!(bytes = arena_alloc_raw(r->arena, json_string_length(v) + 1, 1)))
		return arena_fail(r->arena, "request", r->err);
	out->data = (uint8_t *)bytes;
	if (!base64_decode(
			(struct str){ json_string_value(v), json_string_length(v) }, bytes, &out->len))
		return pyroscope_reader_wrong(r, f, "bytes in base64");
	return ERR_OK;
}

static enum err_code pyroscope_reader_read_message(struct pyroscope_reader *r,
	const ProtobufCMessageDescriptor *d, const json_t *v, ProtobufCMessage **out);

/* Writes one value to its place in the message or array. */
static enum err_code pyroscope_reader_read_value(
	struct pyroscope_reader *r, const ProtobufCFieldDescriptor *f, const json_t *v, void *to)
{
	int64_t n = 0;

	switch (f->type) {
	case PROTOBUF_C_TYPE_INT64:
		return pyroscope_read_i64(v, to) ? ERR_OK : pyroscope_reader_wrong(r, f, "a whole number");
	case PROTOBUF_C_TYPE_UINT32:
		if (!pyroscope_read_i64(v, &n) || n < 0 || n > UINT32_MAX)
			return pyroscope_reader_wrong(r, f, "a whole number of 32 bits");
		*(uint32_t *)to = (uint32_t)n;
		return ERR_OK;
	case PROTOBUF_C_TYPE_DOUBLE:
		return pyroscope_read_double(v, to) ? ERR_OK : pyroscope_reader_wrong(r, f, "a number");
	case PROTOBUF_C_TYPE_BOOL:
		if (!json_is_boolean(v))
			return pyroscope_reader_wrong(r, f, "true or false");
		*(protobuf_c_boolean *)to = json_is_true(v);
		return ERR_OK;
	case PROTOBUF_C_TYPE_ENUM:
		return pyroscope_read_enum(v, f->descriptor, to) ?
			ERR_OK :
			pyroscope_reader_wrong(r, f, "a value of its type");
	case PROTOBUF_C_TYPE_STRING:
		if (!json_is_string(v))
			return pyroscope_reader_wrong(r, f, "a string");
		*(char **)to = arena_strndup(r->arena, json_string_value(v), json_string_length(v));
		return *(char **)to ? ERR_OK : arena_fail(r->arena, "request", r->err);
	case PROTOBUF_C_TYPE_BYTES:
		return pyroscope_reader_read_bytes(r, f, v, to);
	case PROTOBUF_C_TYPE_MESSAGE:
		return pyroscope_reader_read_message(r, f->descriptor, v, to);
	default:
		return pyroscope_reader_wrong(r, f, "nothing"); /* requests have no others */
	}
}

static size_t pyroscope_size_of(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
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

static enum err_code pyroscope_reader_read_list(
	struct pyroscope_reader *r, const ProtobufCFieldDescriptor *f, const json_t *v, char *message)
{
	size_t n = json_array_size(v);
	char *items;
	enum err_code rc;

	if (!json_is_array(v))
		return pyroscope_reader_wrong(r, f, "a list");
	if (n == 0)
		return ERR_OK;
	if (!(items = arena_calloc(r->arena, n, pyroscope_size_of(f))))
		return arena_fail(r->arena, "request", r->err);
	for (size_t i = 0; i < n; i++)
		if ((rc = pyroscope_reader_read_value(
				 r, f, json_array_get(v, i), items + i * pyroscope_size_of(f))))
			return rc;
	memcpy(message + f->quantifier_offset, &n, sizeof(n));
	memcpy(message + f->offset, &items, sizeof(items));
	return ERR_OK;
}

static const ProtobufCFieldDescriptor *pyroscope_find_field(
	const ProtobufCMessageDescriptor *d, const char *key)
{
	char camel[NAME_BYTES_MAX];

	for (unsigned i = 0; i < d->n_fields; i++) {
		pyroscope_camel_case(camel, d->fields[i].name);
		if (!strcmp(key, camel) || !strcmp(key, d->fields[i].name))
			return &d->fields[i];
	}
	return NULL;
}

static enum err_code pyroscope_reader_read_message(struct pyroscope_reader *r,
	const ProtobufCMessageDescriptor *d, const json_t *v, ProtobufCMessage **out)
{
	/* jansson's iterators take no const, and change nothing. */
	void *at, *object = (void *)(uintptr_t)v;
	char *message;
	enum err_code rc;

	if (!json_is_object(v))
		return err_set(r->err, ERR_INVALID, "%s: expected an object", d->short_name);
	if (!(message = arena_alloc(r->arena, d->sizeof_message)))
		return arena_fail(r->arena, "request", r->err);
	*out = (ProtobufCMessage *)(void *)message;
	d->message_init(*out);
	for (at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
		const ProtobufCFieldDescriptor *f = pyroscope_find_field(d, json_object_iter_key(at));
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

enum err_code pyroscope_json_read(struct arena *a, const ProtobufCMessageDescriptor *d,
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
	rc = pyroscope_reader_read_message(&r, d, root, out);
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
	struct json *j, const ProtobufCFieldDescriptor *f, ProtobufCBinaryData b)
{
	if (!strcmp(f->name, "string_table"))
		json_str(j, (struct str){ (const char *)b.data, b.len });
	else
		pyroscope_write_base64(j, b);
}

static void pyroscope_write_number(struct json *j, double v)
{
	if (isfinite(v))
		json_double(j, v);
	else
		json_cstr(j, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
}

static void pyroscope_write_i64(struct json *j, int64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "\"%lld\"", (long long)v);
	json_raw(j, str_of(text));
}

static void pyroscope_write_u64(struct json *j, uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "\"%llu\"", (unsigned long long)v);
	json_raw(j, str_of(text));
}

static void pyroscope_write_enum(struct json *j, const ProtobufCEnumDescriptor *d, int v)
{
	const ProtobufCEnumValue *named = protobuf_c_enum_descriptor_get_value(d, v);

	if (named)
		json_cstr(j, named->name);
	else
		json_i64(j, v);
}

static void pyroscope_write_value(struct json *j, const ProtobufCFieldDescriptor *f, const void *v)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_INT64:
		pyroscope_write_i64(j, *(const int64_t *)v);
		break;
	case PROTOBUF_C_TYPE_UINT64:
		pyroscope_write_u64(j, *(const uint64_t *)v);
		break;
	case PROTOBUF_C_TYPE_UINT32:
		json_u64(j, *(const uint32_t *)v);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		pyroscope_write_number(j, *(const double *)v);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		json_bool(j, *(const protobuf_c_boolean *)v);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		pyroscope_write_enum(j, f->descriptor, *(const int *)v);
		break;
	case PROTOBUF_C_TYPE_STRING:
		json_cstr(j, *(const char *const *)v);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		pyroscope_write_bytes(j, f, *(const ProtobufCBinaryData *)v);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		pyroscope_json_write(j, *(ProtobufCMessage *const *)v);
		break;
	default:
		json_null(j); /* no message of ours has them */
	}
}

static bool pyroscope_is_default(const ProtobufCFieldDescriptor *f, const void *v)
{
	static const char zeros[8];
	const char *text;

	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		text = *(const char *const *)v;
		return !text || !*text;
	case PROTOBUF_C_TYPE_BYTES:
		return ((const ProtobufCBinaryData *)v)->len == 0;
	case PROTOBUF_C_TYPE_MESSAGE:
		return !*(ProtobufCMessage *const *)v;
	default:
		return !memcmp(v, zeros, pyroscope_size_of(f));
	}
}

void pyroscope_json_write(struct json *j, const ProtobufCMessage *m)
{
	const char *at = (const char *)m, *items;
	char name[NAME_BYTES_MAX];
	size_t n;

	json_object(j);
	for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
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
