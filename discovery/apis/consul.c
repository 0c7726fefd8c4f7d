/*
 * consul_sd_configs: the instances of services in Consul's catalog, with their health.
 *
 * Source: Prometheus's consul_sd; "Catalog", "Health" and "Blocking queries" in Consul's HTTP API.
 */
#include "base/clock.h"
#include "discovery/apis/api.h"
#include "discovery/apis/sd.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))
#define AT(member) offsetof(struct consul_config, member)

struct consul_config {
	struct api_config common;
	struct str server, path_prefix, scheme, token, username, password;
	struct str datacenter, namespace, partition, filter, health_filter;
	struct yaml_list services, tags; /* struct str */
	struct labels node_meta;
	bool allow_stale;
};

static const struct source_ops consul_ops = API_SOURCE_OPS("consul");

/* clang-format off */
static const struct yaml_field fields[] = {
	{ "server", YAML_STRING, AT(server), NULL, NULL, "The agent, `host:port`.", 0 },
	{ "path_prefix", YAML_STRING, AT(path_prefix), NULL, NULL,
		"The path of a gateway in front of the agent.", 0 },
	{ "scheme", YAML_STRING, AT(scheme), NULL, NULL, "How the agent is reached.", 0,
		.limits = "`http` or `https`" },
	{ "token", YAML_SECRET, AT(token), NULL, NULL, "The token of Consul's access control.", 0 },
	{ "username", YAML_STRING, AT(username), NULL, NULL, "The older form of `basic_auth`.", 0 },
	{ "password", YAML_SECRET, AT(password), NULL, NULL, "The older form of `basic_auth`.", 0 },
	{ "datacenter", YAML_STRING, AT(datacenter), NULL, NULL, "The datacenter.", 0,
		.unset = "that of the agent" },
	{ "namespace", YAML_STRING, AT(namespace), NULL, NULL, "The namespace, in Consul Enterprise.",
		0 },
	{ "partition", YAML_STRING, AT(partition), NULL, NULL, "The partition, in Consul Enterprise.",
		0 },
	{ "services", YAML_LIST, AT(services), NULL, NULL, "Names of services.", 0, .unset = "all" },
	{ "tags", YAML_LIST, AT(tags), NULL, NULL, "Tags that services and instances must have.", 0 },
	{ "node_meta", YAML_STRING_MAP, AT(node_meta), NULL, NULL, "Metadata that nodes must have.",
		0 },
	{ "filter", YAML_STRING, AT(filter), NULL, NULL, "An expression that filters the catalog.", 0 },
	{ "health_filter", YAML_STRING, AT(health_filter), NULL, NULL,
		"An expression that filters instances.", 0 },
	{ "allow_stale", YAML_BOOL, AT(allow_stale), NULL, NULL,
		"Any server may answer, not the leader alone.", 0 },
	API_SEPARATOR_FIELD,
	API_REFRESH_FIELD,
	API_HTTP_FIELDS,
};
#define WHERE_PARAMS \
	{ "dc", API_TEXT, AT(datacenter), NULL }, \
	{ "ns", API_TEXT, AT(namespace), NULL }, \
	{ "partition", API_TEXT, AT(partition), NULL }
#define QUERY_PARAMS \
	WHERE_PARAMS, \
	{ "stale", API_FLAG, AT(allow_stale), NULL }, \
	{ "node-meta", API_MAP, AT(node_meta), NULL }
static const struct api_param self_params[] = { WHERE_PARAMS };
static const struct api_param catalog_params[] = {
	QUERY_PARAMS, { "filter", API_TEXT, AT(filter), NULL },
};
static const struct api_param health_params[] = {
	QUERY_PARAMS,
	{ "filter", API_TEXT, AT(health_filter), NULL },
	{ "tag", API_EACH, AT(tags), NULL },
};
/* clang-format on */

static bool consul_needs_self(const void *config)
{
	return !((const struct consul_config *)config)->datacenter.len;
}

static bool consul_needs_catalog(const void *config)
{
	const struct consul_config *c = config;

	return !c->services.n || c->tags.n || c->filter.len;
}

enum { SELF, CATALOG };
static const struct api_list lists[] = {
	[SELF] = { "read the agent's datacenter", "/v1/agent/self", self_params, COUNT(self_params),
		.needed = consul_needs_self, .once = true },
	[CATALOG] = { "list services", "/v1/catalog/services", catalog_params, COUNT(catalog_params),
		.needed = consul_needs_catalog, .blocking = true },
};
static const struct api_list health = { "list service", "/v1/health/service/*", health_params,
	COUNT(health_params), .blocking = true };

/* ---- labels ---- */

static struct str consul_service_name(const struct api_target *t)
{
	return t->key;
}

static struct str consul_datacenter(const struct api_target *t)
{
	const struct consul_config *c = t->config;
	const json_t *v = json_path_at(t->answers[SELF], "Config.Datacenter");

	if (c->datacenter.len)
		return c->datacenter;
	return json_is_string(v) ? str_of(json_string_value(v)) : STR("");
}

/* An answer leaves out a port of 0. */
static struct str consul_service_port(const struct api_target *t)
{
	struct str port = api_text(t, "entry.Service.Port");

	return port.ptr && !port.len ? STR("0") : port;
}

static struct str consul_address(const struct api_target *t)
{
	struct str host = api_text(t, "entry.Service.Address|entry.Node.Address");
	struct str port = consul_service_port(t);

	return host.ptr && port.ptr ? api_address(t->arena, host, port) : (struct str){ 0 };
}

/* The worst of the checks; a check of an unknown status makes it unknown. */
static struct str consul_health_status(const struct api_target *t)
{
	static const char *const worse[] = { "passing", "warning", "critical", "maintenance" };
	const json_t *check, *checks = api_at(t, "entry.Checks");
	size_t worst = 0, i, k;
	const char *id, *status;

	json_array_foreach (checks, i, check) {
		id = json_string_value(json_object_get(check, "CheckID"));
		status = json_string_value(json_object_get(check, "Status"));
		if (id &&
			(strcmp(id, "_node_maintenance") == 0 ||
				strncmp(id, "_service_maintenance:", strlen("_service_maintenance:")) == 0)) {
			worst = COUNT(worse) - 1;
			continue;
		}
		for (k = 0; k + 1 < COUNT(worse); k++)
			if (status && strcmp(status, worse[k]) == 0)
				break;
		if (k + 1 == COUNT(worse))
			return STR("");
		worst = k > worst ? k : worst;
	}
	return str_of(worse[worst]);
}

static const char *const roots[] = { "entry", NULL };
/* clang-format off */
static const struct api_label group_labels[] = {
	{ "__meta_consul_dc", API_MADE, NULL, NULL, consul_datacenter },
	{ "__meta_consul_service", API_MADE, NULL, NULL, consul_service_name },
};
static const struct api_label labels[] = {
	{ "__address__", API_MADE, NULL, NULL, consul_address },
	{ "__meta_consul_address", API_VALUE, "entry.Node.Address", NULL, NULL },
	{ "__meta_consul_health", API_MADE, NULL, NULL, consul_health_status },
	{ "__meta_consul_metadata_", API_MEMBERS, "entry.Node.Meta", NULL, NULL },
	{ "__meta_consul_namespace", API_VALUE, "entry.Service.Namespace", NULL, NULL },
	{ "__meta_consul_node", API_VALUE, "entry.Node.Node", NULL, NULL },
	{ "__meta_consul_partition", API_VALUE, "entry.Service.Partition", NULL, NULL },
	{ "__meta_consul_service_address", API_VALUE, "entry.Service.Address", NULL, NULL },
	{ "__meta_consul_service_id", API_VALUE, "entry.Service.ID", NULL, NULL },
	{ "__meta_consul_service_metadata_", API_MEMBERS, "entry.Service.Meta", NULL, NULL },
	{ "__meta_consul_service_port", API_MADE, NULL, NULL, consul_service_port },
	{ "__meta_consul_tagged_address_", API_MEMBERS, "entry.Node.TaggedAddresses", NULL, NULL },
	{ "__meta_consul_tags", API_JOINED_ALWAYS, "entry.Service.Tags.*", NULL, NULL },
};
/* clang-format on */

/* ---- which services ---- */

static bool consul_holds(const struct yaml_list *list, struct str s)
{
	const struct str *v = list->v;

	for (size_t i = 0; i < list->n; i++)
		if (str_eq(v[i], s))
			return true;
	return false;
}

static bool consul_has_all_tags(const json_t *tags, const struct yaml_list *wanted)
{
	const struct str *v = wanted->v;
	const json_t *tag;
	size_t i, k;

	for (k = 0; k < wanted->n; k++) {
		json_array_foreach (tags, i, tag)
			if (json_is_string(tag) && str_is(v[k], json_string_value(tag)))
				break;
		if (i == json_array_size(tags))
			return false;
	}
	return true;
}

/* {name: [tag]} */
static void consul_keys(const void *config, const json_t *answer, struct api_keys *out)
{
	const struct consul_config *c = config;
	const struct str *v = c->services.v;
	const char *name;
	json_t *tags;

	if (!answer)
		for (size_t i = 0; i < c->services.n; i++)
			api_key_add(out, v[i]);
	json_object_foreach ((json_t *)(uintptr_t)answer, name, tags)
		if ((!c->services.n || consul_holds(&c->services, str_of(name))) &&
			consul_has_all_tags(tags, &c->tags))
			api_key_add(out, str_of(name));
}

/* ---- configuration ---- */

static void consul_headers(const void *config, struct api_params *out)
{
	const struct consul_config *c = config;

	if (c->token.len)
		api_param_add(out, STR("X-Consul-Token"), c->token);
}

static enum err_code consul_locate(
	const void *config, struct arena *a, struct api_server *out, struct err *err)
{
	const struct consul_config *c = config;
	struct str prefix = c->path_prefix;
	enum err_code rc;

	if (!str_trim(c->server).len)
		return err_set(err, ERR_INVALID, "consul SD configuration requires a server address");
	if ((rc = api_locate(str_trim(c->server), c->scheme.len ? c->scheme.ptr : "http", a, out, err)))
		return rc;
	while (prefix.len && prefix.ptr[prefix.len - 1] == '/')
		prefix.len--;
	while (prefix.len && prefix.ptr[0] == '/')
		prefix = (struct str){ prefix.ptr + 1, prefix.len - 1 };
	if (prefix.len)
		out->url = str_of(arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(out->url), STR_ARG(prefix)));
	return out->url.ptr ? ERR_OK : arena_fail(a, "configuration", err);
}

static enum err_code consul_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct consul_config *c = out;
	struct http_config *http = &c->common.http;

	if (c->username.len || c->password.len) {
		if (http->has_basic_auth)
			return yaml_err(yaml_get(n, "basic_auth"), err, ERR_INVALID,
				"at most one of consul SD configuration username and password and basic auth can "
				"be "
				"configured");
		http->has_basic_auth = true;
		http->username = c->username;
		http->password = c->password;
	}
	if (c->token.len && (http->has_authorization || http->oauth2))
		return yaml_err(yaml_get(n, "token"), err, ERR_INVALID,
			"at most one of consul SD token, authorization, or oauth2 can be configured");
	return api_config_check(ctx, n, &c->common, err);
}

static void consul_defaults(struct yaml_ctx *ctx, void *out);

const struct yaml_schema consul_sd_schema = {
	.name = "consul_sd_config",
	.size = sizeof(struct consul_config),
	.fields = fields,
	.fields_n = COUNT(fields),
	.defaults = consul_defaults,
	.check = consul_check,
};

static const struct api consul = {
	.kind = "consul",
	.schema = &consul_sd_schema,
	.locate = consul_locate,
	.headers = consul_headers,
	.lists = lists,
	.lists_n = COUNT(lists),
	.each = &health,
	.keys = consul_keys,
	.index_header = "X-Consul-Index",
	.items = "*",
	.roots = roots,
	.labels = labels,
	.labels_n = COUNT(labels),
	.group_labels = group_labels,
	.group_labels_n = COUNT(group_labels),
};

static void consul_defaults(struct yaml_ctx *ctx, void *out)
{
	struct consul_config *c = out;

	*c = (struct consul_config){
		.server = STR("localhost:8500"), .scheme = STR("http"), .allow_stale = true };
	api_config_defaults(&c->common, &consul, 30 * NS_PER_S);
}

enum err_code consul_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err)
{
	return source_configs_decode(
		ctx, n, "consul_sd_configs", &consul_ops, &consul_sd_schema, sources, err);
}
