#include "cmd/epitool/convert/alloy_parts.h"

#define SHOWN_BYTES_MAX 80u /* of an expression in a note */

static const struct {
	const char *theirs, *ours;
} names[] = {
	{ "ca_pem", "ca" },
	{ "cert_pem", "cert" },
	{ "key_pem", "key" },
	{ "filter", "filters" },
};

/* Blocks that are there several times: a list of ours. */
static bool convert_is_repeated(struct str name)
{
	return str_is(name, "selectors") || str_is(name, "filters");
}

static struct str convert_our_name(struct str name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_is(name, names[i].theirs))
			return str_of(names[i].ours);
	return name;
}

bool alloy_is_known(struct arena *a, const struct alloy_expr *e)
{
	struct str ignored;

	switch (e->kind) {
	case ALLOY_NUMBER:
	case ALLOY_BOOL:
	case ALLOY_NULL:
		return true;
	case ALLOY_LIST:
	case ALLOY_OBJECT:
		for (const struct alloy_expr *c = e->child; c; c = c->next)
			if (!alloy_is_known(a, c))
				return false;
		return true;
	default:
		return alloy_string(a, e, &ignored);
	}
}

static struct str convert_shown(const struct alloy_expr *e)
{
	struct str s = e->source;
	const char *line = s.len ? memchr(s.ptr, '\n', s.len) : NULL;

	if (line)
		s.len = (size_t)(line - s.ptr);
	if (s.len > SHOWN_BYTES_MAX)
		s.len = SHOWN_BYTES_MAX;
	return s;
}

/* A value all of whose parts are known. */
static struct item *convert_add_known(
	struct conversion *conversion, struct item *to, struct str key, const struct alloy_expr *e)
{
	struct item *i;

	if (e->kind == ALLOY_LIST || e->kind == ALLOY_OBJECT) {
		i = item_add(conversion, to, key, e->kind == ALLOY_LIST ? YAML_SEQUENCE : YAML_MAPPING);
		for (const struct alloy_expr *c = e->child; c; c = c->next)
			convert_add_known(conversion, i, c->key, c);
		return i;
	}
	i = item_add(conversion, to, key, YAML_SCALAR);
	i->plain = e->kind != ALLOY_STRING && e->kind != ALLOY_OPERATOR;
	i->text = e->text;
	if (!i->plain && !alloy_string(conversion->arena, e, &i->text))
		conversion->failed = true;
	return i;
}

struct item *alloy_add_value(
	struct conversion *c, struct item *to, struct str key, const struct alloy_expr *e)
{
	struct str source = convert_shown(e);
	struct item *i;

	if (alloy_is_known(c->arena, e))
		return convert_add_known(c, to, key, e);
	i = item_add(c, to, key, YAML_SCALAR);
	i->reason_only = true;
	item_leave_out(c, i, e->line, e->column, arena_printf(c->arena, STR_FMT, STR_ARG(key)),
		"its value is not in this file, write it: " STR_FMT, STR_ARG(source));
	return i;
}

/* {"X" = ["a"]} becomes {X: {secrets: [a]}}. */
static void convert_add_headers(
	struct conversion *conversion, struct item *to, const struct alloy_expr *e)
{
	struct item *headers = item_mapping(conversion, to, "http_headers"), *one;

	for (const struct alloy_expr *c = e->child; c; c = c->next) {
		one = item_add(conversion, headers, c->key, YAML_MAPPING);
		alloy_add_value(conversion, one, STR("secrets"), c);
	}
}

static void convert_add_attribute(
	struct conversion *c, struct item *to, const struct alloy_statement *s)
{
	struct item *i;

	if (str_is(s->name, "http_headers") && s->value->kind == ALLOY_OBJECT) {
		convert_add_headers(c, to, s->value);
		return;
	}
	i = alloy_add_value(c, to, convert_our_name(s->name), s->value);
	if (s->comment.len)
		item_comment(c, i, STR_FMT, STR_ARG(s->comment));
}

void alloy_add_statement(struct conversion *c, struct item *to, const struct alloy_statement *s)
{
	struct str name = convert_our_name(s->name);
	struct item *i = NULL;

	if (s->value) {
		convert_add_attribute(c, to, s);
		return;
	}
	if (convert_is_repeated(name)) {
		for (i = to->child; i && !str_eq(i->key, name); i = i->next)
			;
		if (!i)
			i = item_add(c, to, name, YAML_SEQUENCE);
		i = item_mapping(c, i, "");
	} else {
		i = item_add(c, to, name, YAML_MAPPING);
	}
	if (s->comment.len)
		item_comment(c, i, STR_FMT, STR_ARG(s->comment));
	alloy_add_block(c, i, s);
}

void alloy_add_block(struct conversion *c, struct item *to, const struct alloy_statement *block)
{
	for (const struct alloy_statement *s = block->child; s; s = s->next)
		alloy_add_statement(c, to, s);
}
