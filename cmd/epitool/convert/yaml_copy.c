#include "cmd/epitool/convert/yaml_copy.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/quote.h"
#include "cmd/epitool/convert/comments.h"

/* Below these the keys are the user's. */
static bool convert_has_own_keys(struct str key)
{
	return str_is(key, "labels") || str_is(key, "params") || str_is(key, "endpoint_params") ||
		str_is(key, "http_headers") || str_is(key, "proxy_connect_header");
}

struct str copy_key(const struct copying *c, const struct yaml_node *n)
{
	struct str key = n->key ? n->key->text : STR("");
	char *made;

	if (!c->kebab || !key.len || !(made = arena_strndup(c->x->arena, key.ptr, key.len)))
		return key;
	for (size_t i = 0; i < key.len; i++)
		made[i] = made[i] == '-' ? '_' : made[i];
	return (struct str){ made, key.len };
}

bool copy_is_missing(const struct yaml_node *n)
{
	return n->key && yaml_is_null(n);
}

const struct yaml_node *copy_get(
	const struct copying *c, const struct yaml_node *mapping, const char *key)
{
	if (mapping && mapping->kind == YAML_MAPPING)
		for (const struct yaml_node *m = mapping->child; m; m = m->next)
			if (str_is(copy_key(c, m), key))
				return copy_is_missing(m) ? NULL : m;
	return NULL;
}

static struct item *convert_open_item(
	const struct copying *c, struct item *to, const struct yaml_node *n, struct str key)
{
	struct item *i = item_add(c->x, to, key, n->kind);

	comments_above(c->x, n->key ? n->key->line : n->line, i);
	if (n->key || n->kind == YAML_SCALAR)
		comments_behind(c->x, n->key ? n->key->line : n->line, i);
	i->text = n->text;
	i->plain = n->plain;
	return i;
}

struct item *copy_open(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	return convert_open_item(c, to, n, copy_key(c, n));
}

/* Recursion ends with the nodes, at most YAML_DEPTH_MAX deep. */
static struct item *copy_below(
	const struct copying *c, struct item *to, const struct yaml_node *n, bool own_keys)
{
	struct str key = own_keys && n->key ? n->key->text : copy_key(c, n);
	struct item *i = convert_open_item(c, to, n, key);

	for (const struct yaml_node *m = n->child; m; m = m->next)
		copy_below(c, i, m, own_keys || convert_has_own_keys(key));
	return i;
}

struct item *copy_node(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	return copy_below(c, to, n, false);
}

void copy_leave_out(const struct copying *c, struct item *to, const struct yaml_node *n, bool whole,
	const char *fmt, ...)
{
	const struct yaml_node *at = n->key ? n->key : n;
	char why[512], what[128];
	struct item *i;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	snprintf(what, sizeof(what), STR_FMT, STR_ARG(str_printable(c->x->arena, at->text)));
	if (!n->key)
		snprintf(what, sizeof(what), "the rule");
	i = whole ? copy_node(c, to, n) : copy_open(c, to, n);
	i->reason_only = !whole;
	if (n->key)
		i->key = n->key->text;
	item_leave_out(c->x, i, at->line, at->column, what, "%s", why);
}

const struct yaml_node *copy_mapping(const struct yaml_node *n)
{
	return n && n->kind == YAML_MAPPING ? n->child : NULL;
}

static bool convert_is_discovery(struct str key)
{
	return str_has_suffix(key, STR("_sd_configs"));
}

/* Nothing but the comments above. */
static void convert_skip(const struct copying *c, struct item *to, const struct yaml_node *n)
{
	struct item *i = item_add(c->x, to, n->key->text, YAML_SCALAR);

	i->left_out = i->reason_only = true;
	comments_above(c->x, n->key->line, i);
}

static void copy_member(const struct copying *c, struct item *to, const struct yaml_node *n,
	const struct yaml_schema *schema, const struct copy_rule *rules)
{
	struct str key = copy_key(c, n);
	const struct copy_rule *r = rules;
	const struct yaml_foreign *f;

	while (r->key && !str_is(key, r->key))
		r++;
	if (r->convert && copy_is_missing(n))
		convert_skip(c, to, n);
	else if (r->convert)
		r->convert(c, to, n);
	else if (r->key)
		copy_leave_out(c, to, n, n->kind == YAML_SCALAR, "%s", r->why);
	else if (!schema || yaml_field_find(schema, key))
		copy_node(c, to, n);
	else if ((f = yaml_foreign_find(schema, key)))
		copy_leave_out(
			c, to, n, n->kind == YAML_SCALAR || convert_is_discovery(key), "%s", f->text);
	else
		copy_leave_out(
			c, to, n, n->kind == YAML_SCALAR, "nothing here is like %s's setting", c->program);
}

void copy_members(const struct copying *c, struct item *to, const struct yaml_node *mapping,
	const struct yaml_schema *schema, const struct copy_rule *rules)
{
	for (const struct yaml_node *m = copy_mapping(mapping); m; m = m->next)
		copy_member(c, to, m, schema, rules);
}
