#include "discovery/sources/groups.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/quote.h"
#include "base/yaml/problems.h"

#define GROUPS_TEXT "target groups"

struct groups *groups_new(size_t budget_bytes)
{
	struct groups *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	atomic_init(&g->refs, 1);
	arena_init(&g->arena, budget_bytes);
	return g;
}

struct groups *groups_ref(struct groups *g)
{
	unsigned before = atomic_fetch_add(&g->refs, 1);

	assert(before > 0);
	return g;
}

void groups_unref(struct groups *g)
{
	if (!g || atomic_fetch_sub(&g->refs, 1) != 1)
		return;
	for (size_t i = 0; i < g->parts_n; i++)
		groups_unref(g->parts[i]);
	arena_release(&g->arena);
	free(g);
}

static bool target_group_eq(const struct target_group *a, const struct target_group *b)
{
	if (a->source.ptr == b->source.ptr && a->source.len == b->source.len &&
		a->targets == b->targets && a->targets_n == b->targets_n && a->labels.v == b->labels.v)
		return true; /* the same group in two sets */
	if (!str_eq(a->source, b->source) || !labels_eq(a->labels, b->labels) ||
		a->targets_n != b->targets_n)
		return false;
	for (size_t i = 0; i < a->targets_n; i++)
		if (!labels_eq(a->targets[i], b->targets[i]))
			return false;
	return true;
}

void groups_begin(struct groups_cursor *c, const struct groups *g)
{
	c->path[0].set = g;
	c->path[0].at = 0;
	c->depth = 1;
}

const struct target_group *groups_next(struct groups_cursor *c)
{
	const struct groups *g;
	size_t i;

	while (c->depth) {
		g = c->path[c->depth - 1].set;
		i = c->path[c->depth - 1].at++;
		if (!g->all.depth && i < g->n)
			return &g->v[i];
		if (!g->all.depth || i == g->parts_n) {
			c->depth--;
			continue;
		}
		assert(c->depth <= GROUPS_DEPTH_MAX);
		c->path[c->depth].set = g->parts[i];
		c->path[c->depth++].at = 0;
	}
	return NULL;
}

size_t groups_count(const struct groups *g)
{
	return g->all.depth ? g->all.groups : g->n;
}

/* Bundles whose parts have as many groups each: 1 equal, 0 not; -1: they have not. */
static int groups_bundles_eq(const struct groups *a, const struct groups *b)
{
	if (!a->all.depth || !b->all.depth || a->parts_n != b->parts_n)
		return -1;
	for (size_t i = 0; i < a->parts_n; i++)
		if (groups_count(a->parts[i]) != groups_count(b->parts[i]))
			return -1;
	for (size_t i = 0; i < a->parts_n; i++)
		if (!groups_eq(a->parts[i], b->parts[i]))
			return 0;
	return 1;
}

bool groups_eq(const struct groups *a, const struct groups *b)
{
	struct groups_cursor x, y;
	const struct target_group *g;
	int eq;

	if (a == b)
		return true;
	if (groups_count(a) != groups_count(b))
		return false;
	if ((eq = groups_bundles_eq(a, b)) >= 0)
		return eq;
	groups_begin(&x, a);
	groups_begin(&y, b);
	while ((g = groups_next(&x)))
		if (!target_group_eq(g, groups_next(&y)))
			return false;
	return true;
}

enum err_code groups_join(
	struct groups *const *sets, size_t n, struct groups **out, struct err *err)
{
	struct groups *g = groups_new(0);
	size_t groups_n = 0;

	if (!g)
		return err_nomem(err, GROUPS_TEXT);
	g->arena.block_max = 1; /* two arrays, each in a block of its size */
	for (size_t i = 0; i < n; i++)
		groups_n += sets[i] ? sets[i]->n : 0;
	g->v = arena_alloc_raw(&g->arena, groups_n, sizeof(*g->v));
	g->parts = arena_alloc_raw(&g->arena, n, sizeof(struct groups *));
	if (!g->v || !g->parts) {
		groups_unref(g);
		return err_nomem(err, GROUPS_TEXT);
	}
	for (size_t i = 0; i < n; i++) {
		if (!sets[i])
			continue;
		if (sets[i]->n)
			memcpy(g->v + g->n, sets[i]->v, sets[i]->n * sizeof(*g->v));
		g->n += sets[i]->n;
		g->parts[g->parts_n++] = groups_ref(sets[i]);
	}
	assert(g->n == groups_n && g->parts_n <= n);
	*out = g;
	return ERR_OK;
}

enum err_code groups_bundle(
	struct groups *const *sets, size_t n, struct groups **out, struct err *err)
{
	struct groups *g = groups_new(0);

	if (!g)
		return err_nomem(err, GROUPS_TEXT);
	g->arena.block_max = 1;
	g->parts = arena_alloc_raw(&g->arena, n, sizeof(struct groups *));
	if (!g->parts) {
		groups_unref(g);
		return err_nomem(err, GROUPS_TEXT);
	}
	for (size_t i = 0; i < n; i++) {
		if (!sets[i] || !groups_count(sets[i]))
			continue;
		g->all.groups += groups_count(sets[i]);
		g->all.targets += groups_targets(sets[i]);
		if (g->all.depth < sets[i]->all.depth)
			g->all.depth = sets[i]->all.depth;
		g->parts[g->parts_n++] = groups_ref(sets[i]);
	}
	g->all.depth++;
	assert(g->all.depth <= GROUPS_DEPTH_MAX);
	*out = g;
	return ERR_OK;
}

/* ---- packing: all arrays, then all bytes, in one block ---- */

struct sd_groups_packed {
	struct label *labels;
	char *bytes;
};

static size_t labels_bytes(struct labels ls)
{
	size_t bytes = 0;

	for (size_t i = 0; i < ls.n; i++)
		bytes += ls.v[i].name.len + ls.v[i].value.len;
	return bytes;
}

static struct str sd_groups_packed_pack_str(struct sd_groups_packed *p, struct str s)
{
	struct str out = { p->bytes, s.len };

	if (s.len)
		memcpy(p->bytes, s.ptr, s.len);
	p->bytes += s.len;
	return out;
}

static struct labels sd_groups_packed_pack_labels(struct sd_groups_packed *p, struct labels ls)
{
	struct label *v = p->labels;

	for (size_t i = 0; i < ls.n; i++) {
		v[i].name = sd_groups_packed_pack_str(p, ls.v[i].name);
		v[i].value = sd_groups_packed_pack_str(p, ls.v[i].value);
	}
	p->labels += ls.n;
	return (struct labels){ v, ls.n };
}

enum err_code groups_pack(
	const struct target_group *t, size_t n, struct groups **out, struct err *err)
{
	size_t targets_n = 0, labels_n = 0, bytes = 0;
	struct groups *g = groups_new(0);
	struct labels *targets;
	struct sd_groups_packed p;

	for (size_t i = 0; i < n; i++) {
		bytes += t[i].source.len + labels_bytes(t[i].labels);
		labels_n += t[i].labels.n;
		targets_n += t[i].targets_n;
		for (size_t k = 0; k < t[i].targets_n; k++) {
			bytes += labels_bytes(t[i].targets[k]);
			labels_n += t[i].targets[k].n;
		}
	}
	if (g)
		g->arena.block_max = 1;
	bytes += n * sizeof(*t) + targets_n * sizeof(*targets) + labels_n * sizeof(*p.labels);
	if (!g || !(g->v = arena_alloc_raw(&g->arena, bytes, 1))) {
		groups_unref(g);
		return err_nomem(err, GROUPS_TEXT);
	}
	targets = (struct labels *)(void *)(g->v + n);
	p.labels = (struct label *)(void *)(targets + targets_n);
	p.bytes = (char *)(p.labels + labels_n);
	for (size_t i = 0; i < n; i++) {
		g->v[i] = (struct target_group){ sd_groups_packed_pack_str(&p, t[i].source),
			sd_groups_packed_pack_labels(&p, t[i].labels), targets, t[i].targets_n };
		for (size_t k = 0; k < t[i].targets_n; k++)
			*targets++ = sd_groups_packed_pack_labels(&p, t[i].targets[k]);
	}
	assert(p.bytes == (char *)g->v + bytes); /* both passes counted the same */
	g->n = n;
	*out = g;
	return ERR_OK;
}

size_t groups_targets(const struct groups *g)
{
	size_t n = g->all.targets;

	for (size_t i = 0; i < g->n; i++)
		n += g->v[i].targets_n;
	return n;
}

enum err_code target_groups_label(struct arena *a, struct target_group *t, size_t n,
	struct str name, struct str value, struct err *err)
{
	struct labels_builder b;
	enum err_code rc;

	for (size_t i = 0; i < n; i++) {
		labels_builder_init(&b, a, t[i].labels);
		labels_builder_set(&b, name, value);
		if ((rc = labels_builder_build(&b, &t[i].labels, err)))
			return rc;
	}
	return ERR_OK;
}

/* {__address__="..."} */
static enum err_code sd_groups_address_labels(
	struct arena *a, struct str address, struct labels *out, struct err *err)
{
	struct label *l = arena_new(a, struct label);

	if (!l)
		return arena_fail(a, GROUPS_TEXT, err);
	*l = (struct label){ STR("__address__"), address };
	*out = (struct labels){ l, address.len ? 1 : 0 };
	return ERR_OK;
}

/* ---- YAML ---- */

static enum err_code sd_groups_decode_targets(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct target_group *g = field;
	const struct yaml_node *c;
	struct labels *v;
	enum err_code rc;
	size_t i = 0;

	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "expected a list of addresses");
	v = arena_array(ctx->arena, struct labels, n->n);
	if (!v)
		return arena_fail(ctx->arena, GROUPS_TEXT, err);
	for (c = n->child; c; c = c->next, i++) {
		if (c->kind != YAML_SCALAR || yaml_is_null(c))
			return yaml_err(c, err, ERR_INVALID, "expected an address");
		if ((rc = sd_groups_address_labels(ctx->arena, c->text, &v[i], err)))
			return rc;
	}
	g->targets = v;
	g->targets_n = i;
	return ERR_OK;
}

static enum err_code sd_groups_decode_labels(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct labels *out = field;
	struct labels_builder b;
	const struct yaml_node *c;

	if (n->kind != YAML_MAPPING)
		return yaml_err(n, err, ERR_INVALID, "expected a map of label names to values");
	labels_builder_init(&b, ctx->arena, (struct labels){ 0 });
	for (c = n->child; c; c = c->next) {
		if (!label_name_valid(c->key->text))
			return yaml_err(c->key, err, ERR_INVALID,
				"%s is not a valid label name: " LABEL_NAME_RULE, QUOTED(c->key->text));
		if (c->kind != YAML_SCALAR)
			return yaml_err(
				c, err, ERR_INVALID, "expected the value of label %s", QUOTED(c->key->text));
		labels_builder_set(&b, c->key->text, c->text);
	}
	return labels_builder_build(&b, out, err);
}

/* clang-format off */
static const struct yaml_field group_fields[] = {
	{ "targets", YAML_CUSTOM, 0, NULL, sd_groups_decode_targets, "Addresses, `host:port`.", 0,
		.takes = "list of addresses", .example = "[\"10.0.0.1:6060\"]" },
	{ "labels", YAML_CUSTOM, offsetof(struct target_group, labels), NULL, sd_groups_decode_labels,
		"Labels of all these targets.", 0, .takes = "map of strings", .example = "{version: v2}" },
};
/* clang-format on */

/* Pyroscope's, in its static-configs and files of targets. */
static const struct yaml_foreign group_foreign[] = {
	{ "application", YAML_FOREIGN_HINT, "write it as a label, service_name" },
	{ "spy-name", YAML_FOREIGN_HARMLESS, "profiles say themselves what made them" },
	{ NULL },
};

const struct yaml_schema target_group_schema = {
	.name = "target group",
	.size = sizeof(struct target_group),
	.fields = group_fields,
	.fields_n = sizeof(group_fields) / sizeof(group_fields[0]),
	.foreign = (const struct yaml_foreign *const[]){ group_foreign, NULL },
};

enum err_code target_groups_decode(struct yaml_ctx *ctx, const struct yaml_node *n,
	const char *source_prefix, struct target_group **out, size_t *out_n, struct err *err)
{
	size_t i = 0, before = yaml_errors(ctx);
	const struct yaml_node *c;
	struct target_group *v;
	enum err_code rc;

	*out = NULL;
	*out_n = 0;
	if (yaml_is_null(n))
		return ERR_OK;
	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "expected a list of target groups");
	v = arena_array(ctx->arena, struct target_group, n->n);
	if (!v)
		return arena_fail(ctx->arena, GROUPS_TEXT, err);
	for (c = n->child; c; c = c->next, i++) {
		if (yaml_is_null(c))
			rc = yaml_err(c, err, ERR_INVALID, "empty or null target group");
		else
			rc = yaml_decode(ctx, &target_group_schema, c, &v[i], err);
		if (rc && !yaml_goes_on(ctx, rc, err))
			return rc;
		v[i].source = str_of(arena_printf(ctx->arena, "%s%zu", source_prefix, i));
		if (!v[i].source.ptr)
			return arena_fail(ctx->arena, GROUPS_TEXT, err);
	}
	if ((rc = yaml_end(ctx, before, err)))
		return rc;
	*out = v;
	*out_n = i;
	return ERR_OK;
}

enum err_code target_groups_from_yaml(struct arena *a, const char *path, struct str text,
	struct target_group **out, size_t *n, struct err *err)
{
	struct yaml_ctx ctx = { .arena = a };
	struct yaml_node *root;
	const char *prefix;
	enum err_code rc;

	if ((rc = yaml_parse(a, path, text, &root, err)))
		return rc;
	prefix = arena_printf(a, "%s:", path);
	if (!prefix)
		return arena_fail(a, GROUPS_TEXT, err);
	return target_groups_decode(&ctx, root, prefix, out, n, err);
}

/* ---- JSON ---- */

struct json_place { /* for messages */
	struct arena *arena;
	const char *path;
	size_t group;
};

static struct str sd_groups_json_text(const json_t *value)
{
	return (struct str){ json_string_value(value), json_string_length(value) };
}

static enum err_code json_place_targets(
	const struct json_place *at, const json_t *value, struct target_group *g, struct err *err)
{
	size_t n = json_array_size(value);
	struct labels *targets;
	struct str address;
	enum err_code rc;

	if (!json_is_array(value))
		return err_set(
			err, ERR_INVALID, "%s: group %zu: targets is not an array", at->path, at->group);
	targets = arena_array(at->arena, struct labels, n);
	if (!targets)
		return arena_fail(at->arena, GROUPS_TEXT, err);
	for (size_t i = 0; i < n; i++) {
		if (!json_is_string(json_array_get(value, i)))
			return err_set(err, ERR_INVALID, "%s: group %zu: target %zu is not a string", at->path,
				at->group, i);
		address = str_dup(at->arena, sd_groups_json_text(json_array_get(value, i)));
		if (!address.ptr)
			return arena_fail(at->arena, GROUPS_TEXT, err);
		if ((rc = sd_groups_address_labels(at->arena, address, &targets[i], err)))
			return rc;
	}
	g->targets = targets;
	g->targets_n = n;
	return ERR_OK;
}

static enum err_code json_place_labels(
	const struct json_place *at, json_t *values, struct target_group *g, struct err *err)
{
	struct labels_builder b;
	struct str name, value;
	const char *key;
	json_t *member;

	if (!json_is_object(values))
		return err_set(
			err, ERR_INVALID, "%s: group %zu: labels is not an object", at->path, at->group);
	labels_builder_init(&b, at->arena, (struct labels){ 0 });
	json_object_foreach (values, key, member) {
		name = str_dup(at->arena, str_of(key));
		if (!label_name_valid(name))
			return err_set(err, ERR_INVALID,
				"%s: group %zu: %s is not a valid label name: " LABEL_NAME_RULE, at->path,
				at->group, QUOTED(str_of(key)));
		if (!json_is_string(member))
			return err_set(err, ERR_INVALID, "%s: group %zu: label %s is not a string", at->path,
				at->group, key);
		value = str_dup(at->arena, sd_groups_json_text(member));
		if (!name.ptr || !value.ptr)
			return arena_fail(at->arena, GROUPS_TEXT, err);
		labels_builder_set(&b, name, value);
	}
	return labels_builder_build(&b, &g->labels, err);
}

static enum err_code json_place_group(
	const struct json_place *at, json_t *value, struct target_group *g, struct err *err)
{
	const char *key;
	json_t *member;
	enum err_code rc = ERR_OK;

	if (!json_is_object(value))
		return err_set(err, ERR_INVALID, "%s: group %zu is not an object", at->path, at->group);
	json_object_foreach (value, key, member) {
		if (json_is_null(member))
			continue;
		if (strcmp(key, "targets") == 0)
			rc = json_place_targets(at, member, g, err);
		else if (strcmp(key, "labels") == 0)
			rc = json_place_labels(at, member, g, err);
		else
			rc = err_set(err, ERR_INVALID, "%s: group %zu: unknown field %s", at->path, at->group,
				QUOTED(str_of(key)));
		if (rc)
			return rc;
	}
	g->source = str_of(arena_printf(at->arena, "%s:%zu", at->path, at->group));
	return g->source.ptr ? ERR_OK : arena_fail(at->arena, GROUPS_TEXT, err);
}

enum err_code target_groups_from_json(struct arena *a, const char *path, struct str text,
	struct target_group **out, size_t *out_n, struct err *err)
{
	struct json_place at = { .arena = a, .path = path };
	json_error_t why;
	enum err_code rc = ERR_OK;
	struct target_group *v;
	json_t *root;
	size_t n;

	*out = NULL;
	*out_n = 0;
	if (str_is(str_trim(text), "null")) /* Go's encoding of an empty list */
		return ERR_OK;
	root = json_loadb(text.ptr ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return err_set(err, ERR_INVALID, "%s:%d:%d: %s", path, why.line, why.column, why.text);
	n = json_array_size(root);
	v = arena_array(a, struct target_group, n);
	if (!json_is_array(root))
		rc = err_set(err, ERR_INVALID, "%s: not an array of target groups", path);
	else if (!v)
		rc = arena_fail(a, GROUPS_TEXT, err);
	for (; !rc && at.group < n; at.group++)
		rc = json_place_group(&at, json_array_get(root, at.group), &v[at.group], err);
	json_decref(root);
	if (rc)
		return rc;
	*out = v;
	*out_n = n;
	return ERR_OK;
}
