/*
 * docker_sd_configs: the ports and networks of a Docker host's containers.
 *
 * Source: Prometheus's docker_sd; "ContainerList" and "NetworkList" in Docker's Engine API.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "discovery/apis/api.h"
#include "discovery/apis/sd.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))
#define AT(member) offsetof(struct docker_config, member)
#define SHARED_MAX 16 /* containers that share networks of each other in a row */

struct docker_config {
	struct api_config common;
	struct str host, host_networking_host;
	struct yaml_list filters; /* struct api_filter */
	bool match_first_network;
};

static const struct source_ops docker_ops = API_SOURCE_OPS("docker");

/* clang-format off */
static const struct yaml_field fields[] = {
	{ "host", YAML_STRING, AT(host), NULL, NULL,
		"The daemon: `unix:///path`, `tcp://host:port` or a URL.", 0, .unset = "required",
		.example = "unix:///var/run/docker.sock" },
	{ "host_networking_host", YAML_STRING, AT(host_networking_host), NULL, NULL,
		"The address of containers that use the host's network.", 0 },
	{ "match_first_network", YAML_BOOL, AT(match_first_network), NULL, NULL,
		"Only the first network by name counts. Else each network of a container is a target.", 0 },
	{ "filters", YAML_LIST, AT(filters), &api_filter_schema, NULL, "Which containers count.", 0,
		.example = "[{name: label, values: [profile=yes]}]" },
	API_PORT_FIELD,
	API_REFRESH_FIELD,
	API_HTTP_FIELDS,
};
/* clang-format on */

/* {"label": {"a=b": true}, ...} */
static void docker_add_filters(const void *config, struct api_params *out)
{
	const struct docker_config *c = config;
	const struct api_filter *f = c->filters.v;
	json_t *all = json_object(), *one;
	char *text;

	for (size_t i = 0; i < c->filters.n; i++) {
		const char *name = f[i].name.ptr ? f[i].name.ptr : "";
		const struct str *v = f[i].values.v;

		if (!(one = json_object_get(all, name)) && f[i].values.n) {
			out->failed |= json_object_set_new(all, name, json_object());
			one = json_object_get(all, name);
		}
		for (size_t k = 0; k < f[i].values.n; k++)
			out->failed |= json_object_set_new(one, v[k].ptr ? v[k].ptr : "", json_true());
	}
	text = json_dumps(all, JSON_COMPACT);
	if (!text)
		out->failed = true;
	else if (json_object_size(all))
		api_param_add(out, STR("filters"), str_dup(out->arena, str_of(text)));
	free(text);
	json_decref(all);
}

enum { NETWORKS, CONTAINERS };
static const struct api_list lists[] = {
	[NETWORKS] = { "list networks", "/networks" },
	[CONTAINERS] = { "list containers", "/containers/json", .more = docker_add_filters },
};

/* ---- targets ---- */

enum { CONTAINER, NETWORK, PORT, PUBLIC, KNOWN_NETWORK };
static const char *const roots[] = {
	[CONTAINER] = "container",
	[NETWORK] = "network", /* as the container is in it */
	[PORT] = "port",
	[PUBLIC] = "public", /* the same, if it is published */
	[KNOWN_NETWORK] = "known_network", /* of the list of networks */
	NULL,
};

static struct str docker_address(const struct api_target *t)
{
	const struct docker_config *c = t->config;
	struct str ip = api_text(t, "network.IPAddress|network.GlobalIPv6Address"), port;

	if (!t->roots[PORT] && str_is(api_text(t, "container.HostConfig.NetworkMode"), "host"))
		return c->host_networking_host;
	port = t->roots[PORT] ? api_text(t, "port.PrivatePort") :
							str_of(arena_printf(t->arena, "%lld", (long long)c->common.port));
	return port.ptr ? api_address(t->arena, ip, port) : port;
}

/* clang-format off */
static const struct api_label labels[] = {
	{ "__address__", API_MADE, NULL, NULL, docker_address },
	{ "__meta_docker_container_id", API_VALUE, "container.Id", NULL, NULL },
	{ "__meta_docker_container_image", API_VALUE, "container.Image", NULL, NULL },
	{ "__meta_docker_container_image_id", API_VALUE, "container.ImageID", NULL, NULL },
	{ "__meta_docker_container_label_", API_MEMBERS, "container.Labels", NULL, NULL },
	{ "__meta_docker_container_name", API_VALUE, "container.Names.0", NULL, NULL },
	{ "__meta_docker_container_network_mode", API_VALUE, "container.HostConfig.NetworkMode", NULL,
		NULL },
	{ "__meta_docker_network_id", API_VALUE, "known_network.Id", NULL, NULL },
	{ "__meta_docker_network_ingress", API_VALUE, "known_network.Ingress", NULL, NULL },
	{ "__meta_docker_network_internal", API_VALUE, "known_network.Internal", NULL, NULL },
	{ "__meta_docker_network_ip", API_VALUE, "network.IPAddress|network.GlobalIPv6Address", NULL,
		NULL },
	{ "__meta_docker_network_label_", API_MEMBERS, "known_network.Labels", NULL, NULL },
	{ "__meta_docker_network_name", API_VALUE, "known_network.Name", NULL, NULL },
	{ "__meta_docker_network_scope", API_VALUE, "known_network.Scope", NULL, NULL },
	{ "__meta_docker_port_private", API_VALUE, "port.PrivatePort", NULL, NULL },
	{ "__meta_docker_port_public", API_VALUE, "public.PublicPort", NULL, NULL },
	{ "__meta_docker_port_public_ip", API_VALUE, "public.IP", NULL, NULL },
};
/* clang-format on */

/* The object of a list whose member Id is that. */
static const json_t *docker_by_id(const json_t *list, const char *id)
{
	const json_t *v;
	const char *its;
	size_t i;

	json_array_foreach (list, i, v) {
		its = json_string_value(json_object_get(v, "Id"));
		if (id && its && strcmp(id, its) == 0)
			return v;
	}
	return NULL;
}

/* Its own, or those of the container that it shares them with. */
static json_t *docker_networks_of(const struct api_target *t)
{
	const json_t *container = t->roots[CONTAINER];
	const char *mode, prefix[] = "container:";
	json_t *networks = NULL;

	for (int i = 0; container && i < SHARED_MAX; i++) {
		networks = (json_t *)(uintptr_t)json_path_at(container, "NetworkSettings.Networks");
		mode = json_string_value(json_path_at(container, "HostConfig.NetworkMode"));
		if (json_object_size(networks) || !mode || strncmp(mode, prefix, strlen(prefix)) != 0)
			break;
		container = docker_by_id(t->answer, mode + strlen(prefix));
	}
	return networks;
}

static const char *docker_first_name(json_t *networks)
{
	const char *name, *first = NULL;
	json_t *v;

	json_object_foreach (networks, name, v)
		if (!json_is_null(v) && (!first || strcmp(name, first) < 0))
			first = name;
	return first;
}

static enum err_code docker_add_ports(struct api_target *t, struct err *err)
{
	const json_t *port, *public;
	bool added = false;
	enum err_code rc;
	size_t i;

	json_array_foreach (api_at(t, "container.Ports"), i, port) {
		public = json_object_get(port, "PublicPort");
		t->roots[PORT] = port;
		t->roots[PUBLIC] = json_integer_value(public) > 0 ? port : NULL;
		if (!str_is(api_text(t, "port.Type"), "tcp"))
			continue;
		if ((rc = api_target_add(t, err)))
			return rc;
		added = true;
	}
	t->roots[PORT] = t->roots[PUBLIC] = NULL;
	return added ? ERR_OK : api_target_add(t, err);
}

static enum err_code docker_expand(struct api_target *t, struct err *err)
{
	const struct docker_config *c = t->config;
	json_t *networks = docker_networks_of(t), *network;
	const char *name, *first = c->match_first_network ? docker_first_name(networks) : NULL;
	enum err_code rc;

	if (!api_at(t, "container.Names.0"))
		return ERR_OK;
	json_object_foreach (networks, name, network) {
		if (json_is_null(network) || (first && strcmp(name, first) != 0))
			continue;
		t->roots[NETWORK] = network;
		t->roots[KNOWN_NETWORK] = docker_by_id(
			t->answers[NETWORKS], json_string_value(json_object_get(network, "NetworkID")));
		if ((rc = docker_add_ports(t, err)))
			return rc;
	}
	return ERR_OK;
}

/* ---- configuration ---- */

static enum err_code docker_locate(
	const void *config, struct arena *a, struct api_server *out, struct err *err)
{
	const struct docker_config *c = config;
	const struct str tcp = STR("tcp://");
	struct str host = c->host;

	if (!host.len)
		return err_set(err, ERR_INVALID, "host missing");
	if (str_has_prefix(host, tcp))
		host = (struct str){ host.ptr + tcp.len, host.len - tcp.len };
	else if (str_find(host, STR("://")) < 0)
		return err_set(err, ERR_INVALID,
			"host is \"unix:///path\", \"tcp://host:port\", or a URL of http or https");
	return api_locate(host, "http", a, out, err);
}

static void docker_defaults(struct yaml_ctx *ctx, void *out);
static enum err_code docker_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	return api_config_check(ctx, n, out, err);
}

const struct yaml_schema docker_sd_schema = {
	.name = "docker_sd_config",
	.size = sizeof(struct docker_config),
	.fields = fields,
	.fields_n = COUNT(fields),
	.defaults = docker_defaults,
	.check = docker_check,
};

static const struct api docker = {
	.kind = "docker",
	.schema = &docker_sd_schema,
	.locate = docker_locate,
	.lists = lists,
	.lists_n = COUNT(lists),
	.items = "*",
	.roots = roots,
	.expand = docker_expand,
	.labels = labels,
	.labels_n = COUNT(labels),
};

static void docker_defaults(struct yaml_ctx *ctx, void *out)
{
	struct docker_config *c = out;

	*c = (struct docker_config){ .host_networking_host = STR("localhost"),
									 .match_first_network = true };
	api_config_defaults(&c->common, &docker, 60 * NS_PER_S);
}

enum err_code docker_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err)
{
	return source_configs_decode(
		ctx, n, "docker_sd_configs", &docker_ops, &docker_sd_schema, sources, err);
}
