/*
 * XML as JSON, so that tables read both: an element without others inside is its text; one whose
 * inner elements are all "item" or "member", as AWS writes lists, is an array; any other is an
 * object, which keeps the first of equal names. A list without items is "".
 */
#include "base/xml/xml.h"

#include "discovery/apis/api_internal.h"

static bool api_xml_is_list(const struct xml_node *n)
{
	for (const struct xml_node *c = n->child; c; c = c->next)
		if (!str_is(c->name, "item") && !str_is(c->name, "member"))
			return false;
	return true;
}

/* NULL: out of memory. Recursion is at most XML_DEPTH_MAX deep. */
static json_t *api_xml_json_of(const struct xml_node *n)
{
	bool list = api_xml_is_list(n);
	json_t *v, *inner;
	int failed = 0;

	if (!n->child)
		return json_stringn_nocheck(n->text.ptr, n->text.len); /* it is valid UTF-8 */
	v = list ? json_array() : json_object();
	for (const struct xml_node *c = n->child; v && c && !failed; c = c->next) {
		if (!list && json_object_getn(v, c->name.ptr, c->name.len))
			continue;
		inner = api_xml_json_of(c);
		failed = list ? json_array_append_new(v, inner) :
						json_object_setn_new_nocheck(v, c->name.ptr, c->name.len, inner);
	}
	if (failed) {
		json_decref(v);
		return NULL;
	}
	return v;
}

enum err_code api_xml_parse(struct str text, json_t **out, struct err *err)
{
	struct xml_node *root;
	struct arena arena;
	enum err_code rc;

	arena_init(&arena, 0);
	if (!(rc = xml_parse_up_to(&arena, text, API_VALUES_MAX, &root, err)) &&
		!(*out = api_xml_json_of(root)))
		rc = err_nomem(err, "answer");
	arena_release(&arena);
	return rc;
}

/* At least as many as there are. */
static size_t api_xml_values_in(struct str text)
{
	bool inside = false;
	size_t n = 1;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (inside && c == '\\')
			i++;
		else if (c == '"')
			inside = !inside;
		else if (!inside && (c == ',' || c == '[' || c == '{'))
			n++;
	}
	return n;
}

enum err_code api_json_parse(struct str text, json_t **out, struct err *err)
{
	size_t n = api_xml_values_in(text);
	json_error_t why;

	if (n > API_VALUES_MAX)
		return err_set(err, ERR_LIMIT, "the answer has %zu values, limit %u", n, API_VALUES_MAX);
	*out = json_loadb(text.ptr ? text.ptr : "", text.len, JSON_DECODE_ANY, &why);
	if (!*out)
		return err_set(
			err, ERR_INVALID, "the answer is not JSON: %d:%d: %s", why.line, why.column, why.text);
	return ERR_OK;
}
