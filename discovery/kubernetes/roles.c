#include <assert.h>
#include <ctype.h>
#include <stdlib.h>

#include "base/array.h"
#include "discovery/kubernetes/roles.h"

#define GROUP_TEXT "target group"

#define POD_ATTACH \
	{ \
		true, true, true, true, true \
	}
#define NAMESPACE_ATTACH \
	{ \
		.namespace = true \
	}
#define POD_JOINS (1u << KUBE_SERVICES | 1u << KUBE_PODS)

/* clang-format off */
const struct kube_role_info kube_roles[KUBE_ROLES] = {
	[KUBE_ROLE_NODE] = { "node", "node/", KUBE_NODES, 0, { 0 } },
	[KUBE_ROLE_POD] = { "pod", "pod/", KUBE_PODS, 0, POD_ATTACH },
	[KUBE_ROLE_SERVICE] = { "service", "svc/", KUBE_SERVICES, 0, NAMESPACE_ATTACH },
	[KUBE_ROLE_ENDPOINTS] = { "endpoints", "endpoints/", KUBE_ENDPOINTS, POD_JOINS, POD_ATTACH },
	[KUBE_ROLE_ENDPOINTSLICE] = { "endpointslice", "endpointslice/", KUBE_ENDPOINTSLICES,
		POD_JOINS, POD_ATTACH },
	[KUBE_ROLE_INGRESS] = { "ingress", "ingress/", KUBE_INGRESSES, 0, NAMESPACE_ATTACH },
};

static void (*const builders[KUBE_ROLES])(struct kube_group *g, const json_t *object) = {
	[KUBE_ROLE_NODE] = kube_build_node,
	[KUBE_ROLE_POD] = kube_build_pod,
	[KUBE_ROLE_SERVICE] = kube_build_service,
	[KUBE_ROLE_ENDPOINTS] = kube_build_endpoints,
	[KUBE_ROLE_ENDPOINTSLICE] = kube_build_endpointslice,
	[KUBE_ROLE_INGRESS] = kube_build_ingress,
};
/* clang-format on */

/* ---- reading objects ---- */

bool kube_number(const json_t *object, const char *path, int64_t *out)
{
	const json_t *v = json_path_at(object, path);

	*out = json_integer_value(v);
	return json_is_integer(v);
}

/* ---- joining ---- */

const json_t *kube_ask(struct kube_group *g, enum kube_resource resource, struct str key)
{
	uint64_t dep = kube_dep(resource, key);

	if (g->deps_n && g->deps[g->deps_n - 1] == dep)
		return g->join->get(g->join->ctx, resource, key);
	if (!arena_array_room(g->arena, &g->deps, g->deps_n, 1, &g->deps_cap)) {
		g->failed = true;
		return NULL;
	}
	g->deps[g->deps_n++] = dep;
	return g->join->get(g->join->ctx, resource, key);
}

const json_t *kube_ask_named(
	struct kube_group *g, enum kube_resource resource, struct str ns, struct str name)
{
	char *key = arena_alloc_raw(g->arena, ns.len + 1 + name.len, 1);

	if (!key) {
		g->failed = true;
		return NULL;
	}
	if (ns.len)
		memcpy(key, ns.ptr, ns.len);
	key[ns.len] = '/';
	if (name.len)
		memcpy(key + ns.len + 1, name.ptr, name.len);
	return kube_ask(g, resource, (struct str){ key, ns.len + 1 + name.len });
}

/* ---- values ---- */

struct str kube_decimal(struct kube_group *g, int64_t value)
{
	struct str s = str_of(arena_printf(g->arena, "%lld", (long long)value));

	g->failed |= !s.ptr;
	return s;
}

struct str kube_lower(struct kube_group *g, struct str s)
{
	char *p = arena_strndup(g->arena, s.ptr, s.len);

	g->failed |= !p;
	for (size_t i = 0; p && i < s.len; i++)
		p[i] = (char)tolower((unsigned char)p[i]);
	return str_of(p);
}

struct str kube_address(struct kube_group *g, struct str host, int64_t port)
{
	bool brackets = host.len && memchr(host.ptr, ':', host.len);
	struct str s = str_of(arena_printf(g->arena, brackets ? "[" STR_FMT "]:%lld" : STR_FMT ":%lld",
		STR_ARG(host), (long long)port));

	g->failed |= !s.ptr;
	return s;
}

/* One "_" for each character, whatever its bytes. */
struct str kube_sanitized(struct kube_group *g, const char *prefix, struct str name)
{
	size_t head = strlen(KUBE_META) + strlen(prefix), n = head;
	char *p = arena_alloc_raw(g->arena, head + name.len, 1);

	if (!p) {
		g->failed = true;
		return STR("");
	}
	memcpy(p, KUBE_META, strlen(KUBE_META));
	memcpy(p + strlen(KUBE_META), prefix, strlen(prefix));
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		if (c < 0x80)
			p[n++] = isalnum(c) ? (char)c : '_';
		else if ((c & 0xc0) != 0x80)
			p[n++] = '_';
	}
	return (struct str){ p, n };
}

/* ---- labels ---- */

void kube_label_begin(struct kube_group *g, struct labels_builder *b)
{
	labels_builder_init(b, g->arena, (struct labels){ 0 });
}

void kube_target(struct kube_group *g, struct labels_builder *b)
{
	if (g->failed || !arena_array_room(g->arena, &g->targets, g->targets_n, 1, &g->targets_cap) ||
		labels_builder_build(b, &g->targets[g->targets_n], NULL))
		g->failed = true;
	else
		g->targets_n++;
}

static void kube_group_label_map(struct kube_group *g, struct labels_builder *b, const char *prefix,
	const char *kind, json_t *map)
{
	const char *value_prefix, *present_prefix, *key;
	json_t *v;

	if (!json_object_size(map))
		return;
	value_prefix = arena_printf(g->arena, "%s_%s_", prefix, kind);
	present_prefix = arena_printf(g->arena, "%s_%spresent_", prefix, kind);
	if (!value_prefix || !present_prefix) {
		g->failed = true;
		return;
	}
	json_object_foreach (map, key, v) {
		labels_builder_set(b, kube_sanitized(g, value_prefix, str_of(key)), json_text_of(v));
		labels_builder_set(b, kube_sanitized(g, present_prefix, str_of(key)), STR("true"));
	}
}

void kube_object_labels(
	struct kube_group *g, struct labels_builder *b, const char *prefix, const json_t *object)
{
	kube_group_label_map(g, b, prefix, "label", json_path_at(object, "metadata.labels"));
	kube_group_label_map(g, b, prefix, "annotation", json_path_at(object, "metadata.annotations"));
}

void kube_named_labels(
	struct kube_group *g, struct labels_builder *b, const char *prefix, const json_t *object)
{
	labels_builder_set(
		b, kube_sanitized(g, prefix, STR("_name")), json_path_text(object, "metadata.name"));
	kube_object_labels(g, b, prefix, object);
}

void kube_service_labels(struct kube_group *g, struct labels_builder *b, const json_t *service)
{
	labels_builder_set(b, KUBE_NAME("namespace"), json_path_text(service, "metadata.namespace"));
	kube_named_labels(g, b, "service", service);
}

void kube_node_metadata(struct kube_group *g, struct labels_builder *b, struct str node)
{
	const json_t *o;

	if (!g->join->attach.node || !node.ptr)
		return;
	o = kube_ask(g, KUBE_NODES, node);
	if (o)
		kube_named_labels(g, b, "node", o);
}

void kube_namespace_metadata(struct kube_group *g, struct str ns)
{
	const json_t *o = g->join->attach.namespace ? kube_ask(g, KUBE_NAMESPACES, ns) : NULL;

	if (o)
		kube_object_labels(g, &g->labels, "namespace", o);
}

/* ---- the group ---- */

static int kube_dep_cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static struct kube_deps kube_group_sorted_deps(struct kube_group *g)
{
	struct kube_deps d = { g->deps, 0 };

	if (g->deps_n > 1)
		qsort(g->deps, g->deps_n, sizeof(*g->deps), kube_dep_cmp);
	for (size_t i = 0; i < g->deps_n; i++)
		if (!d.n || d.v[d.n - 1] != g->deps[i])
			d.v[d.n++] = g->deps[i];
	return d;
}

enum err_code kube_role_build(enum kube_role role, const struct kube_join *join, struct str key,
	const json_t *object, struct arena *a, struct target_group *out, struct kube_deps *deps,
	struct err *err)
{
	struct kube_group g = { .arena = a, .join = join };
	struct labels labels;
	struct str source;
	enum err_code rc;

	assert(role < KUBE_ROLES && join->get);
	kube_label_begin(&g, &g.labels);
	builders[role](&g, object);
	source = str_of(arena_printf(a, "%s" STR_FMT, kube_roles[role].source, STR_ARG(key)));
	if (!source.ptr || g.failed)
		return arena_fail(a, GROUP_TEXT, err);
	if ((rc = labels_builder_build(&g.labels, &labels, err)))
		return rc;
	*out = (struct target_group){ source, labels, g.targets, g.targets_n };
	*deps = kube_group_sorted_deps(&g);
	return ERR_OK;
}
