/*
 * Objects and their groups are in tests/discovery/kubernetes/ROLE.json; names of labels
 * there lack their "__meta_kubernetes_". Whole sets are compared, in order, and what was asked for.
 */
#include <jansson.h>

#include "discovery/kubernetes/roles.h"
#include "tests/check.h"

static const char *const resource_names[KUBE_RESOURCES] = { "nodes", "namespaces", "pods",
	"services", "endpoints", "endpointslices", "ingresses", "replicasets", "jobs" };

struct asked {
	const json_t *others;
	struct kube_deps want;
	struct buf text; /* what was asked for, each once */
};

static struct str key_of(struct buf *b, const json_t *object)
{
	struct str ns = json_path_text(object, "metadata.namespace");

	buf_clear(b);
	if (ns.len)
		buf_printf(b, STR_FMT "/", STR_ARG(ns));
	buf_add_str(b, json_path_text(object, "metadata.name"));
	return buf_str(b);
}

static const json_t *get(void *ctx, enum kube_resource resource, struct str key)
{
	struct asked *a = ctx;
	const json_t *found = NULL;
	struct buf line = { 0 }, k = { 0 };
	json_t *o;
	size_t i;

	buf_printf(&line, "%s " STR_FMT "\n", resource_names[resource], STR_ARG(key));
	if (str_find(buf_str(&a->text), buf_str(&line)) < 0)
		buf_add_str(&a->text, buf_str(&line));
	json_array_foreach (json_object_get(a->others, resource_names[resource]), i, o)
		if (str_eq(key_of(&k, o), key))
			found = o;
	buf_release(&line);
	buf_release(&k);
	return found;
}

static void want_labels(struct buf *out, struct arena *a, json_t *want)
{
	struct labels_builder b;
	struct labels ls;
	const char *name;
	json_t *v;
	struct err err;

	labels_builder_init(&b, a, (struct labels){ 0 });
	json_object_foreach (want, name, v)
		labels_builder_set(&b,
			str_of(strcmp(name, "__address__") && strcmp(name, "instance") ?
					arena_printf(a, KUBE_META "%s", name) :
					name),
			str_of(json_string_value(v)));
	CHECK_OK(labels_builder_build(&b, &ls, &err), &err);
	labels_print(out, ls);
	buf_add_char(out, '\n');
}

static void print_want(struct buf *out, struct arena *a, const json_t *c)
{
	json_t *t;
	size_t i;

	buf_printf(out, "%s\n", json_string_value(json_object_get(c, "source")));
	want_labels(out, a, json_object_get(c, "labels"));
	json_array_foreach (json_object_get(c, "targets"), i, t)
		want_labels(out, a, t);
}

static void print_group(struct buf *out, const struct target_group *g)
{
	buf_printf(out, STR_FMT "\n", STR_ARG(g->source));
	labels_print(out, g->labels);
	buf_add_char(out, '\n');
	for (size_t i = 0; i < g->targets_n; i++) {
		labels_print(out, g->targets[i]);
		buf_add_char(out, '\n');
	}
}

static bool attaches(const json_t *c, const char *what)
{
	json_t *v;
	size_t i;

	json_array_foreach (json_object_get(c, "attach"), i, v)
		if (strcmp(json_string_value(v), what) == 0)
			return true;
	return false;
}

static enum kube_role role_of(const json_t *c)
{
	int r = 0;

	while (strcmp(kube_roles[r].name, json_string_value(json_object_get(c, "role"))) != 0)
		r++;
	return (enum kube_role)r;
}

/* Trims the objects as a watch does: the groups must be the same. */
static void trim_case(json_t *c)
{
	json_t *list, *o;
	size_t i;

	kube_object_trim(kube_roles[role_of(c)].resource, json_object_get(c, "object"));
	for (int r = 0; r < KUBE_RESOURCES; r++) {
		list = json_object_get(json_object_get(c, "others"), resource_names[r]);
		json_array_foreach (list, i, o)
			kube_object_trim((enum kube_resource)r, o);
	}
}

static void check_asks(
	struct asked *a, const json_t *want, const struct kube_deps *deps, const char *name)
{
	size_t n = 0, i;
	json_t *v;

	json_array_foreach (want, i, v) {
		struct str line = str_of(json_string_value(v));

		if (str_find(buf_str(&a->text), line) < 0)
			CHECK_FAIL("%s: did not ask for " STR_FMT, name, STR_ARG(line));
	}
	for (i = 0; i < a->text.len; i++)
		n += a->text.ptr[i] == '\n';
	if (n != json_array_size(want) || deps->n != n)
		CHECK_FAIL("%s: asked for %zu, remembered %zu:\n" STR_FMT, name, n, deps->n,
			STR_ARG(buf_str(&a->text)));
}

static void check_case(const json_t *c)
{
	const char *name = json_string_value(json_object_get(c, "name"));
	struct asked asked = { .others = json_object_get(c, "others") };
	struct kube_join join = { get, &asked,
		{ attaches(c, "node"), attaches(c, "namespace"), attaches(c, "deployment"),
			attaches(c, "job"), attaches(c, "cronjob") } };
	struct buf got = { 0 }, want = { 0 };
	struct str source = str_of(json_string_value(json_object_get(c, "source"))), key;
	enum kube_role role = role_of(c);
	struct target_group g = { 0 };
	struct kube_deps deps = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	key = (struct str){ source.ptr + strlen(kube_roles[role].source),
		source.len - strlen(kube_roles[role].source) };
	CHECK_OK(
		kube_role_build(role, &join, key, json_object_get(c, "object"), &a, &g, &deps, &err), &err);
	print_group(&got, &g);
	print_want(&want, &a, c);
	if (!str_eq(buf_str(&got), buf_str(&want)))
		CHECK_FAIL("%s:\ngot  " STR_FMT "want " STR_FMT, name, STR_ARG(buf_str(&got)),
			STR_ARG(buf_str(&want)));
	check_asks(&asked, json_object_get(c, "asks"), &deps, name);
	buf_release(&asked.text);
	buf_release(&got);
	buf_release(&want);
	arena_release(&a);
}

static void check_file(const char *role)
{
	json_error_t why;
	json_t *root, *c;
	char path[128];
	size_t i;

	snprintf(path, sizeof(path), "tests/discovery/kubernetes/%s.json", role);
	root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
	if (!root) {
		CHECK_FAIL("%s:%d: %s", path, why.line, why.text);
		return;
	}
	CHECK(json_array_size(root) > 0);
	json_array_foreach (root, i, c) {
		check_case(c);
		trim_case(c);
		check_case(c);
	}
	json_decref(root);
}

TEST(node)
{
	check_file("node");
}
TEST(pod)
{
	check_file("pod");
}
TEST(service)
{
	check_file("service");
}
TEST(endpoints)
{
	check_file("endpoints");
}
TEST(endpointslice)
{
	check_file("endpointslice");
}
TEST(ingress)
{
	check_file("ingress");
}

TEST(a_group_has_a_limit)
{
	struct asked asked = { 0 };
	struct kube_join join = { get, &asked, { 0 } };
	json_t *pod = json_loads("{\"metadata\":{\"name\":\"p\"},\"status\":{\"podIP\":\"1\"},"
							 "\"spec\":{\"containers\":[{},{},{},{},{},{},{},{},{},{},{},{}]}}",
		0, NULL);
	struct target_group g;
	struct kube_deps deps;
	struct arena a;
	struct err err;

	arena_init(&a, 3000);
	CHECK_ERR(kube_role_build(KUBE_ROLE_POD, &join, STR("a/p"), pod, &a, &g, &deps, &err), &err,
		ERR_LIMIT, "target group needs more memory than its limit of 3000 bytes");
	arena_release(&a);
	json_decref(pod);
}
