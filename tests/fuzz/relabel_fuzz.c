/*
 * fuzz: discovery
 * Up to the first NUL: rules as YAML. After it, lines NAME=VALUE: the set they are applied to. What
 * comes out is a proper set, and the same each time.
 */
#include "discovery/relabel.h"
#include "tests/fuzz/fuzz.h"

#define RULES_BYTES_MAX 4096u
#define LABELS_MAX 64u

static void add_labels(struct labels_builder *b, struct str text)
{
	const char *end, *equals;
	struct str line;

	for (size_t i = 0; text.len && i < LABELS_MAX; i++) {
		end = memchr(text.ptr, '\n', text.len);
		line = (struct str){ text.ptr, end ? (size_t)(end - text.ptr) : text.len };
		text.ptr += line.len + (end != NULL);
		text.len -= line.len + (end != NULL);
		equals = line.len ? memchr(line.ptr, '=', line.len) : NULL;
		if (equals && equals > line.ptr)
			labels_builder_set(b, (struct str){ line.ptr, (size_t)(equals - line.ptr) },
				(struct str){ equals + 1, line.len - (size_t)(equals - line.ptr) - 1 });
	}
}

static bool run(
	struct arena *a, const struct relabel_rules *rules, struct str text, struct labels *out)
{
	struct labels_builder b;
	bool keep = true;

	labels_builder_init(&b, a, (struct labels){ 0 });
	add_labels(&b, text);
	if (relabel_apply(rules, &b, &keep, NULL, NULL) || !keep)
		return false;
	return labels_builder_build(&b, out, NULL) == ERR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *nul = size ? memchr(data, 0, size) : NULL;
	struct str yaml = { (const char *)data, nul ? (size_t)(nul - (const char *)data) : size };
	struct str text = nul ? (struct str){ nul + 1, size - yaml.len - 1 } : STR("a=b\nfoo=bar");
	struct relabel_rules rules = { 0 };
	struct labels first = { 0 }, second = { 0 };
	struct yaml_ctx ctx;
	struct yaml_node *root;
	struct arena a;
	struct err err;
	bool kept;

	if (yaml.len > RULES_BYTES_MAX)
		return 0;
	arena_init(&a, 64u << 20);
	ctx = (struct yaml_ctx){ .arena = &a };
	if (!yaml_parse(&a, "f", yaml, &root, &err) &&
		!relabel_rules_decode(&ctx, root, &rules, &err)) {
		kept = run(&a, &rules, text, &first);
		require(kept == run(&a, &rules, text, &second) || a.used_bytes > (32u << 20));
		if (kept && second.v)
			require(labels_eq(first, second));
		for (size_t i = 0; i < first.n; i++) {
			require(first.v[i].value.len > 0 && first.v[i].name.len > 0);
			require(i == 0 || str_cmp(first.v[i - 1].name, first.v[i].name) < 0);
		}
	}
	relabel_rules_release(&rules);
	arena_release(&a);
	return 0;
}
