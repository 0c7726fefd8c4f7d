/*
 * The query language as editors and help pages want it: from the tables that the parser and the
 * checker use, so nothing here can be out of date.
 */
#include "promql/syntax/functions.h"
#include "promql/syntax/parse.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

/* "diff [on|ignoring (label, ...)] (new, base)": what stands in the last brackets. */
static struct str arguments_of(const struct function *f)
{
	struct str usage = str_of(f->usage);
	ptrdiff_t at = str_find(usage, STR("] ("));

	at = at < 0 ? str_find(usage, STR("(")) + 1 : at + 3;
	return (struct str){ usage.ptr + at, usage.len - (size_t)at - 1 };
}

static void write_result(struct json *j, unsigned types)
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

static void write_functions(struct json *j, const char *key, bool aggregations)
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
		json_str(j, arguments_of(f));
		json_key(j, "returns");
		write_result(j, f->result);
		json_key(j, "help");
		json_cstr(j, f->help);
		json_object_end(j);
	}
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
	write_functions(&j, "functions", false);
	write_functions(&j, "aggregations", true);
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
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}
