/*
 * The query language as editors and help pages want it: from the tables that the parser and the
 * checker use, so nothing here can be out of date.
 */
#include "promql/syntax/functions.h"
#include "promql/syntax/parse.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

/* "diff [on|ignoring (label, ...)] (new, base)": the text in the last brackets. */
static struct str api_arguments_of(const struct function *f)
{
	struct str usage = str_of(f->usage);
	ptrdiff_t at = str_find(usage, STR("] ("));

	at = at < 0 ? str_find(usage, STR("(")) + 1 : at + 3;
	return (struct str){ usage.ptr + at, usage.len - (size_t)at - 1 };
}

static void api_write_result(struct json *j, unsigned types)
{
	struct buf text = { 0 };
	struct str s;

	value_types_print(&text, types);
	s = buf_str(&text);
	if (str_has_prefix(s, STR("a ")))
		s = (struct str){ s.ptr + 2, s.len - 2 };
	json_str(j, s);
	buf_release(&text);
}

static void api_write_flags(struct json *j, unsigned flags)
{
	static const struct {
		unsigned flag;
		const char *name;
	} names[] = {
		{ VALUE_PROFILES, "profiles" },
		{ VALUE_COSTS, "costs" },
		{ VALUE_SCALAR, "scalar" },
		{ VALUE_STRING, "string" },
		{ VALUE_FRAMES, "frames" },
		{ ARG_SELECTOR, "selector" },
		{ ARG_WINDOW, "window" },
		{ ARG_LABEL, "label" },
		{ ARG_FUNCTIONS, "functions" },
		{ ARG_TAGS, "tags" },
	};

	json_array(j);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (flags & names[i].flag)
			json_cstr(j, names[i].name);
	json_array_end(j);
}

/* The form of a call, for programs; `usage` says the same to people. */
static void api_write_shape(struct json *j, const struct function *f)
{
	static const struct {
		unsigned flag;
		const char *words[2];
	} modifiers[] = {
		{ FUNCTION_BY, { "by", NULL } },
		{ FUNCTION_WITHOUT, { "without", NULL } },
		{ FUNCTION_ON, { "on", "ignoring" } },
	};

	json_key(j, "argumentTypes");
	json_array(j);
	for (unsigned i = 0; i < FUNCTION_ARGS && f->args[i]; i++)
		api_write_flags(j, f->args[i]);
	json_array_end(j);
	json_key(j, "variadic");
	json_i64(j, f->args_max > FUNCTION_ARGS ? -1 : (int64_t)(f->args_max - f->args_min));
	json_key(j, "modifiers");
	json_array(j);
	for (size_t i = 0; i < sizeof(modifiers) / sizeof(modifiers[0]); i++)
		for (size_t k = 0; k < 2 && (f->flags & modifiers[i].flag); k++)
			if (modifiers[i].words[k])
				json_cstr(j, modifiers[i].words[k]);
	json_array_end(j);
	json_key(j, "byFrames");
	json_bool(j, f->flags & FUNCTION_FRAMES_BY);
}

static void api_language_write_functions(struct json *j, const char *key, bool aggregations)
{
	json_key(j, key);
	json_array(j);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const struct function *f = &functions[i];

		if (((f->flags & FUNCTION_AGGREGATION) != 0) != aggregations)
			continue;
		json_object(j);
		json_key(j, "name");
		json_cstr(j, f->name);
		json_key(j, "usage");
		json_cstr(j, f->usage);
		json_key(j, "arguments");
		json_str(j, api_arguments_of(f));
		json_key(j, "returns");
		api_write_result(j, f->result);
		json_key(j, "help");
		json_cstr(j, f->help);
		api_write_shape(j, f);
		json_object_end(j);
	}
	json_array_end(j);
}

static void api_language_write_operators(struct json *j)
{
	json_key(j, "operators");
	json_array(j);
	for (unsigned i = 0; i < BINARY_OPS; i++) {
		enum binary_op op = (enum binary_op)i;

		json_object(j);
		json_key(j, "name");
		json_cstr(j, binary_op_name(op));
		json_key(j, "kind");
		json_cstr(j,
			binary_op_is_set(op)            ? "set" :
				binary_op_is_comparison(op) ? "comparison" :
											  "arithmetic");
		json_key(j, "binds");
		json_i64(j, binary_op_binds(op));
		json_key(j, "right");
		json_bool(j, op == OP_POW);
		json_object_end(j);
	}
	json_array_end(j);
}

static void api_write_keywords(struct json *j, const char *key, enum query_keyword_kind kind)
{
	const char *word;

	json_key(j, key);
	json_array(j);
	for (size_t i = 0; (word = query_keyword(i)); i++)
		if (query_keyword_kind(i) == kind)
			json_cstr(j, word);
	json_array_end(j);
}

void api_language(struct web *w, struct http_in *in, struct http_out *out)
{
	struct json j;
	const char *word;

	(void)w;
	(void)in;
	api_begin(out, &j);
	json_object(&j);
	api_language_write_functions(&j, "functions", false);
	api_language_write_functions(&j, "aggregations", true);
	json_key(&j, "frameFields");
	json_array(&j);
	for (unsigned i = 0; i < FRAME_FIELDS; i++)
		json_cstr(&j, frame_field_name((enum frame_field)i));
	json_array_end(&j);
	json_key(&j, "keywords");
	json_array(&j);
	for (size_t i = 0; (word = query_keyword(i)); i++)
		json_cstr(&j, word);
	json_array_end(&j);
	api_write_keywords(&j, "labelLists", KEYWORD_LABELS);
	api_write_keywords(&j, "numbers", KEYWORD_NUMBER);
	api_language_write_operators(&j);
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}
