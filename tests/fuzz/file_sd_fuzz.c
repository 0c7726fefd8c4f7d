/*
 * fuzz: discovery
 * A document of target groups, as JSON where it begins with [ or {, and as YAML always: no crash,
 * and what is read are proper label sets.
 */
#include "discovery/sources/groups.h"
#include "tests/fuzz/labels.h"

static void check_groups(const struct target_group *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		require(str_has_prefix(v[i].source, STR("f:")));
		check_labels(v[i].labels);
		for (size_t k = 0; k < v[i].targets_n; k++)
			check_labels(v[i].targets[k]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct target_group *v;
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 256u << 20);
	if (size && (data[0] == '[' || data[0] == '{') &&
		!target_groups_from_json(&a, "f", text, &v, &n, &err))
		check_groups(v, n);
	arena_reset(&a);
	if (!target_groups_from_yaml(&a, "f", text, &v, &n, &err))
		check_groups(v, n);
	arena_release(&a);
	return 0;
}
