#include "base/array.h"
#include "discovery/apis/api_internal.h"

#define TEXT "targets"

/* ---- paths ---- */

/* The root that the path begins with; *rest is what follows its name. */
static const json_t *api_value_root_of(
	const struct api_target *t, const char *path, const char **rest)
{
	struct str s = json_path_first(path);

	*rest = json_path_rest(path);
	for (size_t i = 0; i < API_ROOTS_MAX && t->api->roots[i]; i++)
		if (str_is(s, t->api->roots[i]))
			return t->roots[i];
	return NULL;
}

const json_t *api_at(const struct api_target *t, const char *path)
{
	const char *rest;
	const json_t *v = api_value_root_of(t, path, &rest);

	return json_path_at(v, rest);
}

typedef void (*value_fn)(void *ctx, const json_t *v);

static void api_value_each(const json_t *value, const char *path, value_fn fn, void *ctx)
{
	struct str s = json_path_first(path);
	const json_t *item;
	size_t i;

	if (!value)
		return;
	if (json_path_is_end(path))
		fn(ctx, value);
	else if (str_is(s, "*"))
		json_array_foreach (value, i, item)
			api_value_each(item, json_path_rest(path), fn, ctx);
	else
		api_value_each(json_path_step(value, s), json_path_rest(path), fn, ctx);
}

/* ---- texts ---- */

/* "" of what has no text; ptr NULL: out of memory. */
static struct str api_value_text_of(struct arena *a, const json_t *value)
{
	if (!value)
		return STR("");
	switch (json_typeof(value)) {
	case JSON_STRING:
		return (struct str){ json_string_value(value), json_string_length(value) };
	case JSON_INTEGER:
		return str_of(arena_printf(a, "%" JSON_INTEGER_FORMAT, json_integer_value(value)));
	case JSON_REAL:
		return str_of(arena_printf(a, "%.17g", json_real_value(value)));
	case JSON_TRUE:
		return STR("true");
	case JSON_FALSE:
		return STR("false");
	default:
		return STR("");
	}
}

struct str api_text(const struct api_target *t, const char *path)
{
	struct str s = STR("");

	while (path && *path) {
		s = api_value_text_of(t->arena, api_at(t, path));
		if (!s.ptr || s.len)
			return s;
		path = strchr(path, '|');
		path = path ? path + 1 : NULL;
	}
	return s;
}

struct str api_address(struct arena *a, struct str host, struct str port)
{
	bool brackets = host.len && memchr(host.ptr, ':', host.len);

	return str_of(arena_printf(a, brackets ? "[" STR_FMT "]:" STR_FMT : STR_FMT ":" STR_FMT,
		STR_ARG(host), STR_ARG(port)));
}

/* ---- labels ---- */

struct joined {
	struct arena *arena;
	struct str separator;
	struct buf text;
	bool failed;
};

static void api_value_add_item(void *ctx, const json_t *value)
{
	struct joined *j = ctx;
	struct str s = api_value_text_of(j->arena, value);

	j->failed |= !s.ptr;
	buf_add_str(&j->text, s);
	buf_add_str(&j->text, j->separator);
}

static struct str api_value_joined(const struct api_target *t, const struct api_label *l)
{
	const struct api_config *c = t->config;
	struct joined j = { .arena = t->arena, .separator = c->separator };
	struct str out = STR("");
	const char *rest;
	const json_t *v = api_value_root_of(t, l->path, &rest);

	buf_add_str(&j.text, j.separator);
	api_value_each(v, rest, api_value_add_item, &j);
	if (j.text.len == j.separator.len && l->kind == API_JOINED_ALWAYS)
		buf_add_str(&j.text, j.separator);
	if (j.failed || buf_failed(&j.text))
		out = (struct str){ NULL, 0 };
	else if (j.text.len > j.separator.len)
		out = str_dup(t->arena, buf_str(&j.text));
	buf_release(&j.text);
	return out;
}

static struct str api_value_address(const struct api_target *t, const struct api_label *l)
{
	const struct api_config *c = t->config;
	struct str host = api_text(t, l->path), port = api_text(t, l->port);

	if (!port.len)
		port = str_of(arena_printf(t->arena, "%lld", (long long)c->port));
	if (!host.ptr || !port.ptr)
		return (struct str){ NULL, 0 };
	return api_address(t->arena, host, port);
}

/* A label NAME and the sanitized key; false: out of memory. */
static bool api_value_set_member(const struct api_target *t, const struct api_label *l,
	struct str key, const json_t *values, struct labels_builder *b)
{
	struct str name = label_name_sanitized(t->arena, l->name, key),
			   value = api_value_text_of(t->arena, values);

	labels_builder_set(b, name, value);
	return name.ptr && value.ptr;
}

static bool api_value_set_members(
	const struct api_target *t, const struct api_label *l, struct labels_builder *b)
{
	json_t *v = (json_t *)(uintptr_t)api_at(t, l->path), *member, *key;
	const char *name;
	bool ok = true;
	size_t i;

	if (l->kind == API_MEMBERS) {
		json_object_foreach (v, name, member)
			ok &= api_value_set_member(t, l, str_of(name), member, b);
		return ok;
	}
	json_array_foreach (v, i, member) {
		key = json_object_get(member, "key");
		if (json_is_string(key) && json_object_get(member, "value"))
			ok &= api_value_set_member(t, l,
				(struct str){ json_string_value(key), json_string_length(key) },
				json_object_get(member, "value"), b);
	}
	return ok;
}

static bool api_value_set_label(
	const struct api_target *t, const struct api_label *l, struct labels_builder *b)
{
	struct str value;

	switch (l->kind) {
	case API_MEMBERS:
	case API_PAIRS:
		return api_value_set_members(t, l, b);
	case API_JOINED:
	case API_JOINED_ALWAYS:
		value = api_value_joined(t, l);
		break;
	case API_ADDRESS:
		value = api_value_address(t, l);
		break;
	case API_MADE:
		value = l->make(t);
		break;
	default:
		value = api_text(t, l->path);
	}
	labels_builder_set(b, str_of(l->name), value);
	return value.ptr;
}

static enum err_code api_value_make_labels(const struct api_target *t, const struct api_label *a,
	size_t n, struct labels *out, struct err *err)
{
	struct labels_builder b;

	labels_builder_init(&b, t->arena, (struct labels){ 0 });
	for (size_t i = 0; i < n; i++)
		if (!api_value_set_label(t, &a[i], &b))
			return arena_fail(t->arena, TEXT, err);
	return labels_builder_build(&b, out, err);
}

enum err_code api_target_add(struct api_target *t, struct err *err)
{
	struct api_page *p = t->page;
	enum err_code rc;

	if (!arena_array_room(t->arena, &p->targets, p->n, 1, &p->cap))
		return arena_fail(t->arena, TEXT, err);
	if (!(rc = api_value_make_labels(t, t->api->labels, t->api->labels_n, &p->targets[p->n], err)))
		p->n++;
	return rc;
}

/* ---- an answer ---- */

static enum err_code api_value_walk(
	struct api_target *t, const json_t *value, const char *path, size_t root, struct err *err)
{
	struct str s = json_path_first(path);
	const json_t *item;
	enum err_code rc;
	size_t i;

	if (json_path_is_end(path))
		return t->api->expand ? t->api->expand(t, err) : api_target_add(t, err);
	if (!str_is(s, "*")) {
		value = json_path_step(value, s);
		return value || root ? api_value_walk(t, value, json_path_rest(path), root, err) :
							   err_set(err, ERR_INVALID, "the answer has no " STR_FMT, STR_ARG(s));
	}
	if (!value || json_is_null(value) || (json_is_string(value) && !json_string_length(value)))
		return ERR_OK; /* null is Go's empty list, "" that of XML */
	if (!json_is_array(value))
		return err_set(err, ERR_INVALID, "the answer is not a list");
	json_array_foreach (value, i, item) {
		t->roots[root] = item;
		if ((rc = api_value_walk(t, item, json_path_rest(path), root + 1, err)))
			return rc;
	}
	return ERR_OK;
}

enum err_code api_page_read(
	const struct api_target *from, const json_t *answer, struct groups **out, struct err *err)
{
	const struct api *api = from->api;
	struct api_page page = { 0 };
	struct api_target t = *from;
	struct target_group group = { 0 };
	struct arena arena;
	enum err_code rc;

	arena_init(&arena, API_GROUPS_BYTES_MAX);
	t.answer = answer;
	t.arena = &arena;
	t.page = &page;
	group.source = t.key.len ? t.key : str_of(api->kind);
	if (!(rc = api_value_make_labels(
			  &t, api->group_labels, api->group_labels_n, &group.labels, err)) &&
		!(rc = api_value_walk(&t, answer, api->items, 0, err))) {
		group.targets = page.targets;
		group.targets_n = page.n;
		rc = groups_pack(&group, 1, out, err);
	}
	arena_release(&arena);
	return rc;
}
