#include "web/openapi/schemas.h"

#include <assert.h>
#include <ctype.h>

static const struct schema *const schema_tables[] = { query_schemas, server_schemas,
	other_schemas };

const struct schema *schema_find(struct str name)
{
	for (size_t i = 0; i < sizeof(schema_tables) / sizeof(schema_tables[0]); i++)
		for (const struct schema *s = schema_tables[i]; s->name; s++)
			if (str_is(name, s->name))
				return s;
	return NULL;
}

static void schema_write_pair(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_cstr(j, value);
}

static void schema_write_word(struct json *j, struct str type)
{
	static const char *const plain[][2] = { { "string", "string" }, { "int", "integer" },
		{ "number", "number" }, { "bool", "boolean" }, { "null", "null" } };
	struct buf ref = { 0 };

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (str_is(type, plain[i][0])) {
			schema_write_pair(j, "type", plain[i][1]);
			return;
		}
	if (str_is(type, "datetime")) {
		schema_write_pair(j, "type", "string");
		schema_write_pair(j, "format", "date-time");
	} else if (!str_is(type, "any")) {
		assert(isupper((unsigned char)type.ptr[0]) && schema_find(type));
		buf_printf(&ref, "#/components/schemas/" STR_FMT, STR_ARG(type));
		json_key(j, "$ref");
		json_str(j, buf_str(&ref));
		buf_release(&ref);
	}
}

/* One without "|" outside of words, within an object that is open. */
static void schema_write_one(struct json *j, struct str type)
{
	struct str rest = { type.ptr + 2, type.len - 2 };

	if (str_has_prefix(type, STR("[]"))) {
		schema_write_pair(j, "type", "array");
		json_key(j, "items");
	} else if (str_has_prefix(type, STR("{}"))) {
		schema_write_pair(j, "type", "object");
		json_key(j, "additionalProperties");
	} else {
		schema_write_word(j, type);
		return;
	}
	json_object(j);
	schema_write_one(j, rest);
	json_object_end(j);
}

/* The next alternative of `type`, which is cut off. False: there is none. */
static bool schema_next(struct str *type, struct str *one)
{
	const char *bar = memchr(type->ptr, '|', type->len);
	size_t len = bar ? (size_t)(bar - type->ptr) : type->len;

	if (!type->len)
		return false;
	*one = (struct str){ type->ptr, len };
	len += bar != NULL;
	*type = (struct str){ type->ptr + len, type->len - len };
	return true;
}

static void schema_write_words(struct json *j, struct str type)
{
	struct str one;

	schema_write_pair(j, "type", "string");
	json_key(j, "enum");
	json_array(j);
	while (schema_next(&type, &one))
		json_str(j, (struct str){ one.ptr + 1, one.len - 2 });
	json_array_end(j);
}

static void schema_write_within(struct json *j, const char *text)
{
	struct str type = str_of(text), one;

	if (text[0] == '\'') {
		schema_write_words(j, type);
		return;
	}
	if (!strchr(text, '|')) {
		schema_write_one(j, type);
		return;
	}
	json_key(j, "anyOf");
	json_array(j);
	while (schema_next(&type, &one)) {
		json_object(j);
		schema_write_one(j, one);
		json_object_end(j);
	}
	json_array_end(j);
}

void schema_write_type(struct json *j, const char *type)
{
	json_object(j);
	schema_write_within(j, type);
	json_object_end(j);
}

static struct str schema_field_name(const struct schema_field *f, bool *optional)
{
	struct str name = str_of(f->name);

	*optional = name.ptr[name.len - 1] == '?';
	name.len -= *optional;
	return name;
}

void schema_write(struct json *j, const struct schema *s)
{
	bool optional;

	if (s->raw) {
		json_raw(j, str_of(s->raw));
		return;
	}
	json_object(j);
	if (s->help)
		schema_write_pair(j, "description", s->help);
	schema_write_pair(j, "type", "object");
	json_key(j, "properties");
	json_object(j);
	for (const struct schema_field *f = s->fields; f->name; f++) {
		json_key_str(j, schema_field_name(f, &optional));
		json_object(j);
		if (f->help)
			schema_write_pair(j, "description", f->help);
		schema_write_within(j, f->type);
		json_object_end(j);
	}
	json_object_end(j);
	json_key(j, "required");
	json_array(j);
	for (const struct schema_field *f = s->fields; f->name; f++) {
		struct str name = schema_field_name(f, &optional);

		if (!optional)
			json_str(j, name);
	}
	json_array_end(j);
	json_object_end(j);
}
