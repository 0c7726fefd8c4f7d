/*
 * fuzz: discovery
 * The first byte is a role and what is attached; then JSON: the object, or an array of the object
 * and others, which whoever is asked for is one of. No crash; what is built are proper label sets,
 * and a copy of them is the same.
 */
#include "discovery/kubernetes/roles.h"
#include "tests/fuzz/labels.h"

static const json_t *get(void *ctx, enum kube_resource resource, struct str key)
{
	const json_t *all = ctx;
	size_t n = json_array_size(all);

	return n > 1 ? json_array_get(all, 1 + kube_dep(resource, key) % (n - 1)) : NULL;
}

static void check_group(const struct target_group *g)
{
	struct groups as_built = { .v = (struct target_group[]){ *g }, .n = 1 }, *copy;
	struct err err;

	check_labels(g->labels);
	for (size_t i = 0; i < g->targets_n; i++)
		check_labels(g->targets[i]);
	require(!groups_pack(g, 1, &copy, &err));
	require(groups_eq(&as_built, copy));
	groups_unref(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kube_join join = { .get = get };
	struct kube_deps deps;
	struct target_group g;
	struct arena a;
	struct err err;
	json_t *root;

	if (!size)
		return 0;
	root = json_loadb((const char *)data + 1, size - 1, 0, NULL);
	if (!root)
		return 0;
	join.ctx = root;
	join.attach.node = data[0] & 32;
	join.attach.namespace = data[0] & 64;
	join.attach.deployment = join.attach.job = join.attach.cronjob = data[0] & 128;
	arena_init(&a, 32u << 20);
	if (!kube_role_build((enum kube_role)(data[0] % KUBE_ROLES), &join,
			STR("a/b"), json_is_array(root) ? json_array_get(root, 0) : root, &a, &g, &deps,
				&err)) {
		check_group(&g);
		for (size_t i = 1; i < deps.n; i++)
			require(deps.v[i - 1] < deps.v[i]);
	}
	arena_release(&a);
	json_decref(root);
	return 0;
}
