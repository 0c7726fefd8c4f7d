/*
 * fuzz: discovery
 * The first byte is a mechanism of discovery/apis and what is read; then an answer of its server.
 * No crash; the targets are proper label sets with an address, keys are not empty, and XML gives a
 * document that JSON can hold.
 */
#include "discovery/apis/api_internal.h"
#include "discovery/apis/sd.h"
#include "tests/fuzz/labels.h"

static const struct {
	enum err_code (*decode)(
		struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);
	const char *yaml;
} kinds[] = {
	{ consul_sd_decode, "[{tag_separator: ';'}]" },
	{ docker_sd_decode, "[{host: 'tcp://a', match_first_network: false}]" },
	{ ec2_sd_decode, "[{}]" },
	{ nomad_sd_decode, "[{}]" },
	{ docker_sd_decode, "[{host: 'tcp://a'}]" },
	{ consul_sd_decode, "[{tags: [a, b], services: [s]}]" },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct api_config *config_of(size_t kind)
{
	static struct source_configs configs[KINDS];
	static struct arena arena;
	struct yaml_ctx ctx = { .arena = &arena };
	struct yaml_node *root;
	struct err err;

	if (!configs[kind].n) {
		require(!yaml_parse(&arena, "c", str_of(kinds[kind].yaml), &root, &err));
		require(!kinds[kind].decode(&ctx, root, &configs[kind], &err) && configs[kind].n == 1);
	}
	return configs[kind].v[0].config;
}

static void check_groups(const struct groups *g)
{
	require(g->n == 1);
	check_labels(g->v[0].labels);
	for (size_t i = 0; i < g->v[0].targets_n; i++) {
		check_labels(g->v[0].targets[i]);
		require(labels_has(g->v[0].targets[i], STR("__address__")));
	}
}

static void check_keys(const struct api_config *c, const json_t *answer, struct arena *a)
{
	struct api_keys keys = { .arena = a };

	c->api->keys(c, answer, &keys);
	require(!keys.failed || keys.n == API_KEYS_MAX);
	for (size_t i = 0; i < keys.n; i++)
		require(keys.v[i].len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data + 1, size - 1 };
	const struct api_config *c;
	const json_t *answers[API_LISTS_MAX] = { 0 };
	struct groups *groups;
	struct arena a;
	json_t *answer;
	struct err err;
	char *printed;

	if (!size)
		return 0;
	arena_init(&a, 0);
	c = config_of(data[0] % 8 % KINDS);
	if (c->api->xml ? api_xml_parse(text, &answer, &err) : api_json_parse(text, &answer, &err)) {
		require(err.msg[0] != '\0');
	} else {
		struct api_target t = { .api = c->api,
			.config = c,
			.answers = answers,
			.key = data[0] & 64 ? STR("key") : STR(""), .region = STR("r") };

		if (data[0] & 128)
			answers[0] = answer;
		printed = json_dumps(answer, JSON_ENCODE_ANY);
		require(printed != NULL);
		free(printed);
		if (c->api->keys)
			check_keys(c, answer, &a);
		if (!api_page_read(&t, answer, &groups, &err)) {
			check_groups(groups);
			groups_unref(groups);
		} else {
			require(err.msg[0] != '\0');
		}
		json_decref(answer);
	}
	arena_release(&a);
	return 0;
}
