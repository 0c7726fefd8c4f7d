/* The roles that join no pods: node, service, ingress. */
#include "discovery/kubernetes/roles.h"

/* ---- node: one target, the kubelet ---- */

/* The first address of the most preferred type. */
static struct str kube_node_address(json_t *addresses)
{
	static const char *const types[] = { "InternalIP", "InternalDNS", "ExternalIP", "ExternalDNS",
		"LegacyHostIP", "Hostname" };
	json_t *a;
	size_t i;

	for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
		json_array_foreach (addresses, i, a)
			if (str_is(json_path_text(a, "type"), types[k]))
				return json_path_text(a, "address");
	return (struct str){ NULL, 0 };
}

/* A node without an address has no target. */
void kube_build_node(struct kube_group *g, const json_t *node)
{
	json_t *addresses = json_path_at(node, "status.addresses"), *v;
	struct str address = kube_node_address(addresses), name;
	struct labels_builder t;
	int64_t port;
	size_t i;

	labels_builder_set(
		&g->labels, KUBE_NAME("node_provider_id"), json_path_text(node, "spec.providerID"));
	kube_named_labels(g, &g->labels, "node", node);
	json_array_foreach (json_path_at(node, "status.conditions"), i, v) {
		name = kube_sanitized(g, "node_condition_", kube_lower(g, json_path_text(v, "type")));
		labels_builder_set(&g->labels, name, kube_lower(g, json_path_text(v, "status")));
	}
	if (!address.ptr)
		return;
	kube_number(node, "status.daemonEndpoints.kubeletEndpoint.Port", &port);
	kube_label_begin(g, &t);
	labels_builder_set(&t, STR("__address__"), kube_address(g, address, port));
	labels_builder_set(&t, STR("instance"), json_path_text(node, "metadata.name"));
	json_array_foreach (addresses, i, v) {
		name = kube_sanitized(g, "node_address_", json_path_text(v, "type"));
		if (!labels_builder_get(&t, name).len)
			labels_builder_set(&t, name, json_path_text(v, "address"));
	}
	kube_target(g, &t);
}

/* ---- service: a target for each port, by its name in the cluster's DNS ---- */

/* The addresses of its load balancer, with commas between, or the one that it asks for. */
static struct str kube_balancer_ip(struct kube_group *g, const json_t *service)
{
	struct str ips = STR(""), ip;
	json_t *entrance;
	size_t i;

	json_array_foreach (json_path_at(service, "status.loadBalancer.ingress"), i, entrance) {
		ip = json_path_text(entrance, "ip");
		if (!ip.len)
			continue;
		ips = ips.len ?
			str_of(arena_printf(g->arena, STR_FMT "," STR_FMT, STR_ARG(ips), STR_ARG(ip))) :
			ip;
		g->failed |= !ips.ptr;
	}
	return ips.len ? ips : json_path_text(service, "spec.loadBalancerIP");
}

void kube_build_service(struct kube_group *g, const json_t *service)
{
	struct str ns = json_path_text(service, "metadata.namespace");
	struct str name = json_path_text(service, "metadata.name");
	struct str type = json_path_text(service, "spec.type");
	struct labels_builder t;
	struct str host;
	int64_t number;
	json_t *port;
	size_t i;

	host = str_of(arena_printf(g->arena, STR_FMT "." STR_FMT ".svc", STR_ARG(name), STR_ARG(ns)));
	g->failed |= !host.ptr;
	kube_service_labels(g, &g->labels, service);
	kube_namespace_metadata(g, ns);
	json_array_foreach (json_path_at(service, "spec.ports"), i, port) {
		kube_number(port, "port", &number);
		kube_label_begin(g, &t);
		labels_builder_set(&t, STR("__address__"), kube_address(g, host, number));
		labels_builder_set(&t, KUBE_NAME("service_port_name"), json_path_text(port, "name"));
		labels_builder_set(&t, KUBE_NAME("service_port_number"), kube_decimal(g, number));
		labels_builder_set(
			&t, KUBE_NAME("service_port_protocol"), json_path_text(port, "protocol"));
		labels_builder_set(&t, KUBE_NAME("service_type"), type);
		if (str_is(type, "ExternalName"))
			labels_builder_set(&t, KUBE_NAME("service_external_name"),
				json_path_text(service, "spec.externalName"));
		else
			labels_builder_set(
				&t, KUBE_NAME("service_cluster_ip"), json_path_text(service, "spec.clusterIP"));
		if (str_is(type, "LoadBalancer"))
			labels_builder_set(
				&t, KUBE_NAME("service_loadbalancer_ip"), kube_balancer_ip(g, service));
		kube_target(g, &t);
	}
}

/* ---- ingress: a target for each path of each rule ---- */

/* "*" matches the first part of a host. */
static bool kube_host_matches(struct str pattern, struct str host)
{
	const char *dot;

	if (str_eq(pattern, host))
		return true;
	if (!str_has_prefix(pattern, STR("*.")) && !str_is(pattern, "*"))
		return false;
	dot = host.len ? memchr(host.ptr, '.', host.len) : NULL;
	if (!dot)
		return pattern.len == 1;
	return str_eq((struct str){ pattern.ptr + 1, pattern.len - 1 },
		(struct str){ dot, host.len - (size_t)(dot - host.ptr) });
}

static bool kube_is_tls(const json_t *ingress, struct str host)
{
	json_t *tls, *pattern;
	size_t i, k;

	json_array_foreach (json_path_at(ingress, "spec.tls"), i, tls)
		json_array_foreach (json_path_at(tls, "hosts"), k, pattern)
			if (kube_host_matches(
					(struct str){ json_string_value(pattern), json_string_length(pattern) }, host))
				return true;
	return false;
}

static void kube_ingress_target(
	struct kube_group *g, struct str host, const char *scheme, struct str path)
{
	struct labels_builder t;

	kube_label_begin(g, &t);
	labels_builder_set(&t, STR("__address__"), host);
	labels_builder_set(&t, KUBE_NAME("ingress_scheme"), str_of(scheme));
	labels_builder_set(&t, KUBE_NAME("ingress_host"), host);
	labels_builder_set(&t, KUBE_NAME("ingress_path"), path.len ? path : STR("/"));
	kube_target(g, &t);
}

/* A rule without a host has a target without an address, which no job can scrape as is. */
void kube_build_ingress(struct kube_group *g, const json_t *ingress)
{
	struct str ns = json_path_text(ingress, "metadata.namespace"), host;
	json_t *rule, *path, *http;
	const char *scheme;
	size_t i, k;

	labels_builder_set(&g->labels, KUBE_NAME("namespace"), ns);
	labels_builder_set(&g->labels, KUBE_NAME("ingress_class_name"),
		json_path_text(ingress, "spec.ingressClassName"));
	kube_named_labels(g, &g->labels, "ingress", ingress);
	kube_namespace_metadata(g, ns);
	json_array_foreach (json_path_at(ingress, "spec.rules"), i, rule) {
		host = json_path_text(rule, "host");
		http = json_path_at(rule, "http");
		scheme = kube_is_tls(ingress, host) ? "https" : "http";
		if (!json_is_object(http))
			kube_ingress_target(g, host, scheme, STR("/"));
		json_array_foreach (json_path_at(http, "paths"), k, path)
			kube_ingress_target(g, host, scheme, json_path_text(path, "path"));
	}
}
