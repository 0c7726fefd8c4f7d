#include "web/openapi/parameters.h"

#include <ctype.h>

#include "web/openapi/schemas.h"

#define FORM "application/x-www-form-urlencoded"

void parameter_pair(struct json *j, const char *key, const char *value)
{
	if (!value)
		return;
	json_key(j, key);
	json_cstr(j, value);
}

static void parameter_write_values(struct json *j, const struct operation_param *p)
{
	struct str rest = str_of(p->values);

	json_key(j, "enum");
	json_array(j);
	while (rest.len) {
		const char *bar = memchr(rest.ptr, '|', rest.len);
		size_t len = bar ? (size_t)(bar - rest.ptr) : rest.len;

		json_str(j, (struct str){ rest.ptr, len });
		len += bar != NULL;
		rest = (struct str){ rest.ptr + len, rest.len - len };
	}
	json_array_end(j);
}

/* Words such as "now" are in the description alone. */
static void parameter_write_default(struct json *j, const struct operation_param *p)
{
	bool literal = p->values || p->type == PARAM_BOOL ||
		(p->type == PARAM_UINT && isdigit((unsigned char)p->fallback[0]));

	if (!literal)
		return;
	json_key(j, "default");
	if (p->values)
		json_cstr(j, p->fallback);
	else
		json_raw(j, str_of(p->fallback));
}

static void parameter_write_value(struct json *j, const struct operation_param *p)
{
	static const char *const types[] = {
		[PARAM_STRING] = "string",
		[PARAM_TIME] = "Time",
		[PARAM_DURATION] = "Duration",
		[PARAM_UINT] = "int",
		[PARAM_BOOL] = "bool",
		[PARAM_QUERY] = "string",
		[PARAM_SELECTOR] = "string",
	};

	if (!p->values && !(p->type == PARAM_UINT)) {
		if (!p->fallback || p->type != PARAM_BOOL) {
			schema_write_type(j, types[p->type]);
			return;
		}
	}
	json_object(j);
	parameter_pair(j, "type",
		p->type == PARAM_UINT     ? "integer" :
			p->type == PARAM_BOOL ? "boolean" :
									"string");
	if (p->type == PARAM_UINT)
		parameter_pair(j, "format", "int64");
	if (p->values)
		parameter_write_values(j, p);
	if (p->fallback)
		parameter_write_default(j, p);
	json_object_end(j);
}

static void parameter_write_schema(struct json *j, const struct operation_param *p)
{
	json_key(j, "schema");
	if (p->flags & PARAM_REPEATED) {
		json_object(j);
		parameter_pair(j, "type", "array");
		json_key(j, "items");
		parameter_write_value(j, p);
		json_object_end(j);
	} else if (p->flags & PARAM_PREFIX) {
		json_raw(j, STR("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}"));
	} else {
		parameter_write_value(j, p);
	}
}

static void parameter_write_help(struct json *j, const struct operation_param *p)
{
	struct buf text = { 0 };

	buf_add_cstr(&text, p->help);
	if (p->fallback)
		buf_printf(&text, " Default: %s.", p->fallback);
	json_key(j, "description");
	json_str(j, buf_str(&text));
	buf_release(&text);
}

static void parameter_write_example(struct json *j, const struct operation_param *p)
{
	bool is_list = p->flags & PARAM_REPEATED, is_object = p->flags & PARAM_PREFIX;

	if (!p->example)
		return;
	json_key(j, "example");
	if (is_list)
		json_array(j);
	if (is_object) {
		json_object(j);
		json_key(j, "job");
	}
	if (p->type == PARAM_UINT || p->type == PARAM_TIME)
		json_raw(j, str_of(p->example));
	else
		json_cstr(j, p->example);
	if (is_object)
		json_object_end(j);
	if (is_list)
		json_array_end(j);
}

/* A prefix is written as an object whose keys are parameters: "labels" of any name. */
static void parameter_write(struct json *j, const struct operation_param *p)
{
	bool in_path = p->flags & PARAM_IN_PATH;

	json_object(j);
	parameter_pair(j, "name", p->flags & PARAM_PREFIX ? "labels" : p->name);
	parameter_pair(j, "in", in_path ? "path" : "query");
	if (p->flags & PARAM_REQUIRED) {
		json_key(j, "required");
		json_bool(j, true);
	}
	parameter_write_help(j, p);
	if (p->flags & (PARAM_REPEATED | PARAM_PREFIX)) {
		parameter_pair(j, "style", "form");
		json_key(j, "explode");
		json_bool(j, true);
	}
	parameter_write_schema(j, p);
	parameter_write_example(j, p);
	json_object_end(j);
}

static bool parameter_is_in_path(const struct operation_param *p)
{
	return p->flags & PARAM_IN_PATH;
}

void parameters_write(struct json *j, const struct operation *op, bool as_form)
{
	if (!op->params)
		return;
	json_key(j, "parameters");
	json_array(j);
	for (const struct operation_param *p = op->params; p->name; p++)
		if (!as_form || parameter_is_in_path(p))
			parameter_write(j, p);
	json_array_end(j);
}

/* The same parameters as fields of a form. */
void parameters_write_form(struct json *j, const struct operation *op)
{
	json_key(j, FORM);
	json_object(j);
	json_key(j, "schema");
	json_object(j);
	parameter_pair(j, "type", "object");
	json_key(j, "properties");
	json_object(j);
	for (const struct operation_param *p = op->params; p->name; p++) {
		if (parameter_is_in_path(p))
			continue;
		json_key(j, p->name);
		if (!(p->flags & PARAM_REPEATED)) {
			parameter_write_value(j, p);
			continue;
		}
		json_object(j);
		parameter_pair(j, "type", "array");
		json_key(j, "items");
		parameter_write_value(j, p);
		json_object_end(j);
	}
	json_object_end(j);
	json_key(j, "required");
	json_array(j);
	for (const struct operation_param *p = op->params; p->name; p++)
		if (!parameter_is_in_path(p) && (p->flags & PARAM_REQUIRED))
			json_cstr(j, p->name);
	json_array_end(j);
	json_object_end(j);
	json_object_end(j);
}
