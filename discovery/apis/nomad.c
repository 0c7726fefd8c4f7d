/*
 * nomad_sd_configs: the instances of all services that a Nomad cluster knows by itself.
 *
 * Source: Prometheus's nomad_sd; "Services" in Nomad's HTTP API.
 */
#include "base/clock.h"
#include "discovery/apis/api.h"
#include "discovery/apis/sd.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))
#define AT(member) offsetof(struct nomad_config, member)

struct nomad_config {
	struct api_config common;
	struct str server, region, namespace;
	bool allow_stale;
};

static const struct source_ops nomad_ops = API_SOURCE_OPS("nomad");

/* clang-format off */
static const struct yaml_field fields[] = {
	{ "server", YAML_STRING, AT(server), NULL, NULL, "The API.", 0, .takes = "URL" },
	{ "region", YAML_STRING, AT(region), NULL, NULL, "The region of the services.", 0 },
	{ "namespace", YAML_STRING, AT(namespace), NULL, NULL, "The namespace of the services.", 0 },
	{ "allow_stale", YAML_BOOL, AT(allow_stale), NULL, NULL,
		"Any server may answer, not the leader alone.", 0 },
	API_SEPARATOR_FIELD,
	API_REFRESH_FIELD,
	API_HTTP_FIELDS,
};
static const struct api_param params[] = {
	{ "region", API_TEXT, AT(region), NULL },
	{ "namespace", API_TEXT, AT(namespace), NULL },
	{ "stale", API_FLAG, AT(allow_stale), NULL },
};
static const struct api_list services[] = {
	{ "list services", "/v1/services", params, COUNT(params), .blocking = true },
};
static const struct api_list service = {
	"list service", "/v1/service/*", params, COUNT(params), .blocking = true,
};
static const char *const roots[] = { "service", NULL };
static const struct api_label labels[] = {
	{ "__address__", API_ADDRESS, "service.Address", "service.Port", NULL },
	{ "__meta_nomad_address", API_VALUE, "service.Address", NULL, NULL },
	{ "__meta_nomad_dc", API_VALUE, "service.Datacenter", NULL, NULL },
	{ "__meta_nomad_namespace", API_VALUE, "service.Namespace", NULL, NULL },
	{ "__meta_nomad_node_id", API_VALUE, "service.NodeID", NULL, NULL },
	{ "__meta_nomad_service", API_VALUE, "service.ServiceName", NULL, NULL },
	{ "__meta_nomad_service_address", API_VALUE, "service.Address", NULL, NULL },
	{ "__meta_nomad_service_id", API_VALUE, "service.ID", NULL, NULL },
	{ "__meta_nomad_service_port", API_VALUE, "service.Port", NULL, NULL },
	{ "__meta_nomad_tags", API_JOINED, "service.Tags.*", NULL, NULL },
};
/* clang-format on */

/* [{Namespace, Services: [{ServiceName, Tags}]}] */
static void nomad_keys(const void *config, const json_t *answer, struct api_keys *out)
{
	const json_t *namespace, *one, *name;
	size_t i, k;

	json_array_foreach (answer, i, namespace)
		json_array_foreach (json_object_get(namespace, "Services"), k, one) {
			name = json_object_get(one, "ServiceName");
			api_key_add(out, (struct str){ json_string_value(name), json_string_length(name) });
		}
}

static enum err_code nomad_locate(
	const void *config, struct arena *a, struct api_server *out, struct err *err)
{
	const struct nomad_config *c = config;

	if (!str_trim(c->server).len)
		return err_set(err, ERR_INVALID, "nomad SD configuration requires a server address");
	return api_locate(str_trim(c->server), "http", a, out, err);
}

static void nomad_defaults(struct yaml_ctx *ctx, void *out);
static enum err_code nomad_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	return api_config_check(ctx, n, out, err);
}

const struct yaml_schema nomad_sd_schema = {
	.name = "nomad_sd_config",
	.size = sizeof(struct nomad_config),
	.fields = fields,
	.fields_n = COUNT(fields),
	.defaults = nomad_defaults,
	.check = nomad_check,
};

static const struct api nomad = {
	.kind = "nomad",
	.schema = &nomad_sd_schema,
	.locate = nomad_locate,
	.lists = services,
	.lists_n = COUNT(services),
	.each = &service,
	.keys = nomad_keys,
	.index_header = "X-Nomad-Index",
	.items = "*",
	.roots = roots,
	.labels = labels,
	.labels_n = COUNT(labels),
};

static void nomad_defaults(struct yaml_ctx *ctx, void *out)
{
	struct nomad_config *c = out;

	*c = (struct nomad_config){
		.server = STR("http://localhost:4646"),
			.region = STR("global"), .namespace = STR("default"), .allow_stale = true };
	api_config_defaults(&c->common, &nomad, 60 * NS_PER_S);
}

enum err_code nomad_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err)
{
	return source_configs_decode(
		ctx, n, "nomad_sd_configs", &nomad_ops, &nomad_sd_schema, sources, err);
}
