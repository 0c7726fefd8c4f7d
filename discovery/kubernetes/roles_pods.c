/*
 * The roles about pods: pod, endpoints, endpointslice.
 *
 * Endpoints and slices list addresses and ports. If an address refers to a pod, its target has the
 * pod's labels too, and ports of the pod's containers that no address covers become targets.
 */
#include "base/array.h"
#include "discovery/kubernetes/roles.h"

/* ---- pod ---- */

static struct str pod_ready(struct kube_group *g, const json_t *pod)
{
	json_t *c;
	size_t i;

	json_array_foreach (json_path_at(pod, "status.conditions"), i, c)
		if (str_is(json_path_text(c, "type"), "Ready"))
			return kube_lower(g, json_path_text(c, "status"));
	return STR("unknown");
}

/* The owner that controls an object, or NULL. */
static const json_t *kube_controller_of(const json_t *object)
{
	json_t *owner;
	size_t i;

	json_array_foreach (json_path_at(object, "metadata.ownerReferences"), i, owner)
		if (json_is_true(json_path_at(owner, "controller")))
			return owner;
	return NULL;
}

/* The name of this kind of controller that the pod's own controller has, or "". */
static struct str kube_name_above(struct kube_group *g, const json_t *pod, const json_t *owner,
	enum kube_resource resource, const char *kind)
{
	const json_t *above = kube_controller_of(kube_ask_named(
		g, resource, json_path_text(pod, "metadata.namespace"), json_path_text(owner, "name")));

	return str_is(json_path_text(above, "kind"), kind) ? json_path_text(above, "name") : STR("");
}

static void kube_controller_labels(
	struct kube_group *g, struct labels_builder *b, const json_t *pod)
{
	const struct kube_attach *attach = &g->join->attach;
	const json_t *owner = kube_controller_of(pod);
	struct str kind = json_path_text(owner, "kind"), name = json_path_text(owner, "name");

	if (!owner)
		return;
	labels_builder_set(b, KUBE_NAME("pod_controller_kind"), kind);
	labels_builder_set(b, KUBE_NAME("pod_controller_name"), name);
	if (attach->deployment && str_is(kind, "ReplicaSet"))
		labels_builder_set(b, KUBE_NAME("pod_deployment_name"),
			kube_name_above(g, pod, owner, KUBE_REPLICASETS, "Deployment"));
	if (attach->job && str_is(kind, "Job"))
		labels_builder_set(b, KUBE_NAME("pod_job_name"), name);
	if (attach->cronjob && str_is(kind, "Job"))
		labels_builder_set(
			b, KUBE_NAME("pod_cronjob_name"), kube_name_above(g, pod, owner, KUBE_JOBS, "CronJob"));
}

static void pod_labels(struct kube_group *g, struct labels_builder *b, const json_t *pod)
{
	labels_builder_set(b, KUBE_NAME("pod_ip"), json_path_text(pod, "status.podIP"));
	labels_builder_set(b, KUBE_NAME("pod_ready"), pod_ready(g, pod));
	labels_builder_set(b, KUBE_NAME("pod_phase"), json_path_text(pod, "status.phase"));
	labels_builder_set(b, KUBE_NAME("pod_node_name"), json_path_text(pod, "spec.nodeName"));
	labels_builder_set(b, KUBE_NAME("pod_host_ip"), json_path_text(pod, "status.hostIP"));
	labels_builder_set(b, KUBE_NAME("pod_uid"), json_path_text(pod, "metadata.uid"));
	kube_named_labels(g, b, "pod", pod);
	kube_controller_labels(g, b, pod);
}

/* A pod's containers, then its init containers. */
struct containers {
	json_t *lists[2];
	size_t list, i;
};

static struct containers containers_of(const json_t *pod)
{
	return (struct containers){ .lists = { json_path_at(pod, "spec.containers"),
									json_path_at(pod, "spec.initContainers") } };
}

static json_t *containers_next(struct containers *c, bool *init)
{
	while (c->list < 2 && c->i == json_array_size(c->lists[c->list])) {
		c->list++;
		c->i = 0;
	}
	*init = c->list == 1;
	return c->list < 2 ? json_array_get(c->lists[c->list], c->i++) : NULL;
}

static struct str kube_container_id(const json_t *pod, struct str name, bool init)
{
	json_t *s;
	size_t i;

	json_array_foreach (
		json_path_at(pod, init ? "status.initContainerStatuses" : "status.containerStatuses"), i, s)
		if (str_eq(json_path_text(s, "name"), name))
			return json_path_text(s, "containerID");
	return STR("");
}

static void kube_container_labels(struct labels_builder *l, const json_t *container, bool init)
{
	labels_builder_set(l, KUBE_NAME("pod_container_name"), json_path_text(container, "name"));
	labels_builder_set(l, KUBE_NAME("pod_container_image"), json_path_text(container, "image"));
	labels_builder_set(l, KUBE_NAME("pod_container_init"), init ? STR("true") : STR("false"));
}

static void kube_port_labels(
	struct kube_group *g, struct labels_builder *l, const json_t *port, struct str protocol)
{
	int64_t number;

	kube_number(port, "containerPort", &number);
	labels_builder_set(l, KUBE_NAME("pod_container_port_name"), json_path_text(port, "name"));
	labels_builder_set(l, KUBE_NAME("pod_container_port_number"), kube_decimal(g, number));
	labels_builder_set(l, KUBE_NAME("pod_container_port_protocol"), protocol);
}

static void pod_target(
	struct kube_group *g, const json_t *pod, const json_t *container, bool init, const json_t *port)
{
	struct str ip = json_path_text(pod, "status.podIP");
	struct labels_builder t;
	int64_t number;

	kube_label_begin(g, &t);
	kube_container_labels(&t, container, init);
	labels_builder_set(&t, KUBE_NAME("pod_container_id"),
		kube_container_id(pod, json_path_text(container, "name"), init));
	if (port) {
		kube_number(port, "containerPort", &number);
		ip = kube_address(g, ip, number);
		kube_port_labels(g, &t, port, json_path_text(port, "protocol"));
	}
	labels_builder_set(&t, STR("__address__"), ip);
	kube_target(g, &t);
}

/* Node selectors select pods too, if nodes are attached: other nodes' pods have no targets. */
static bool kube_is_on_known_node(struct kube_group *g, const json_t *pod)
{
	struct str name = json_path_text(pod, "spec.nodeName");

	return !g->join->attach.node || (name.len && kube_ask(g, KUBE_NODES, name));
}

/* A pod that is pending or evicted has no address: its group has no labels and no targets. */
void kube_build_pod(struct kube_group *g, const json_t *pod)
{
	struct containers c = containers_of(pod);
	struct str ns = json_path_text(pod, "metadata.namespace");
	json_t *container, *ports, *port;
	bool init;
	size_t i;

	if (!json_path_text(pod, "status.podIP").len || !kube_is_on_known_node(g, pod))
		return;
	pod_labels(g, &g->labels, pod);
	labels_builder_set(&g->labels, KUBE_NAME("namespace"), ns);
	kube_node_metadata(g, &g->labels, json_path_text(pod, "spec.nodeName"));
	kube_namespace_metadata(g, ns);
	while ((container = containers_next(&c, &init))) {
		ports = json_path_at(container, "ports");
		if (!json_array_size(ports))
			pod_target(g, pod, container, init, NULL);
		json_array_foreach (ports, i, port)
			pod_target(g, pod, container, init, port);
	}
}

/* ---- pods behind addresses ---- */

struct seen_port {
	int64_t number;
	struct seen_port *next;
};

struct seen_pod {
	const json_t *pod;
	struct seen_port *ports; /* covered by targets */
	struct seen_pod *next; /* in the order of addresses */
};

struct backing {
	struct seen_pod *first, **end;
	struct map by_pod; /* of `all` */
	struct seen_pod **all;
	size_t n, cap;
};

static bool kube_is_pod(const void *ctx, const void *key, uint32_t id)
{
	return ((const struct backing *)ctx)->all[id]->pod == key;
}

static uint64_t pod_hash(const json_t *pod)
{
	return map_hash_u64((uint64_t)(uintptr_t)pod);
}

static struct seen_pod *backing_pod(struct kube_group *g, struct backing *b, const json_t *pod)
{
	uint32_t id = map_find(&b->by_pod, pod_hash(pod), kube_is_pod, b, pod);
	struct seen_pod *s;

	if (id != MAP_NONE)
		return b->all[id];
	s = arena_new(g->arena, struct seen_pod);
	if (!s || !arena_array_room(g->arena, &b->all, b->n, 1, &b->cap) ||
		!map_add(&b->by_pod, pod_hash(pod), (uint32_t)b->n)) {
		g->failed = true;
		return NULL;
	}
	b->all[b->n++] = s;
	s->pod = pod;
	*b->end = s;
	b->end = &s->next;
	return s;
}

/*
 * Adds the labels of the pod that an address refers to, and of its container with that port (the
 * last of several). number NULL: the port has none. protocol NULL: the container's.
 */
static void backing_labels(struct kube_group *g, struct backing *b, struct labels_builder *l,
	const json_t *ref, const int64_t *number, const struct str *protocol)
{
	const json_t *pod = NULL;
	struct containers c;
	struct seen_pod *seen;
	struct seen_port *sp;
	json_t *container, *port;
	int64_t n;
	size_t i;
	bool init;

	if (str_is(json_path_text(ref, "kind"), "Pod"))
		pod = kube_ask_named(
			g, KUBE_PODS, json_path_text(ref, "namespace"), json_path_text(ref, "name"));
	if (!pod)
		return;
	pod_labels(g, l, pod);
	seen = backing_pod(g, b, pod);
	if (!seen || !number)
		return;
	c = containers_of(pod);
	while ((container = containers_next(&c, &init)))
		json_array_foreach (json_path_at(container, "ports"), i, port) {
			kube_number(port, "containerPort", &n);
			if (n != *number)
				continue;
			kube_container_labels(l, container, init);
			kube_port_labels(g, l, port, protocol ? *protocol : json_path_text(port, "protocol"));
			break;
		}
	sp = arena_new(g->arena, struct seen_port);
	if (!sp) {
		g->failed = true;
		return;
	}
	*sp = (struct seen_port){ *number, seen->ports };
	seen->ports = sp;
}

static bool kube_is_covered(const struct seen_pod *s, int64_t number)
{
	for (const struct seen_port *p = s->ports; p; p = p->next)
		if (p->number == number)
			return true;
	return false;
}

static void kube_uncovered_ports(struct kube_group *g, const struct seen_pod *s)
{
	struct str ip = json_path_text(s->pod, "status.podIP");
	struct containers c = containers_of(s->pod);
	struct labels_builder t;
	json_t *container, *port;
	int64_t number;
	bool init;
	size_t i;

	if (!ip.len)
		return;
	while ((container = containers_next(&c, &init)))
		json_array_foreach (json_path_at(container, "ports"), i, port) {
			kube_number(port, "containerPort", &number);
			if (kube_is_covered(s, number))
				continue;
			kube_label_begin(g, &t);
			labels_builder_set(&t, STR("__address__"), kube_address(g, ip, number));
			kube_container_labels(&t, container, init);
			kube_port_labels(g, &t, port, json_path_text(port, "protocol"));
			pod_labels(g, &t, s->pod);
			kube_target(g, &t);
		}
}

static void backing_begin(struct backing *b)
{
	*b = (struct backing){ .end = &b->first };
	b->end = &b->first;
	map_init(&b->by_pod);
}

static void backing_end(struct kube_group *g, struct backing *b)
{
	for (const struct seen_pod *s = b->first; s && !g->failed; s = s->next)
		kube_uncovered_ports(g, s);
	map_release(&b->by_pod);
}

static const json_t *kube_service_of(struct kube_group *g, struct str ns, struct str name)
{
	const json_t *service = kube_ask_named(g, KUBE_SERVICES, ns, name);

	if (service)
		kube_service_labels(g, &g->labels, service);
	return service;
}

/* The node of an address, which may be ""; ptr NULL: none is named. */
static struct str kube_node_of(const json_t *address, const json_t *ref, bool ref_first)
{
	struct str node = json_path_text(address, "nodeName"), target = { NULL, 0 };

	if (str_is(json_path_text(ref, "kind"), "Node"))
		target = json_path_text(ref, "name");
	if (ref_first)
		return target.ptr ? target : node;
	return node.ptr ? node : target;
}

/* ---- endpoints ---- */

static void kube_endpoint_target(
	struct kube_group *g, struct backing *b, const json_t *address, const json_t *port, bool ready)
{
	struct str protocol = json_path_text(port, "protocol");
	const json_t *ref = json_path_at(address, "targetRef");
	struct labels_builder t;
	int64_t number;

	kube_number(port, "port", &number);
	kube_label_begin(g, &t);
	labels_builder_set(
		&t, STR("__address__"), kube_address(g, json_path_text(address, "ip"), number));
	labels_builder_set(&t, KUBE_NAME("endpoint_port_name"), json_path_text(port, "name"));
	labels_builder_set(&t, KUBE_NAME("endpoint_port_protocol"), protocol);
	labels_builder_set(&t, KUBE_NAME("endpoint_ready"), ready ? STR("true") : STR("false"));
	labels_builder_set(&t, KUBE_NAME("endpoint_address_target_kind"), json_path_text(ref, "kind"));
	labels_builder_set(&t, KUBE_NAME("endpoint_address_target_name"), json_path_text(ref, "name"));
	labels_builder_set(&t, KUBE_NAME("endpoint_node_name"), json_path_text(address, "nodeName"));
	labels_builder_set(&t, KUBE_NAME("endpoint_hostname"), json_path_text(address, "hostname"));
	kube_node_metadata(g, &t, kube_node_of(address, ref, false));
	backing_labels(g, b, &t, ref, &number, &protocol);
	kube_target(g, &t);
}

void kube_build_endpoints(struct kube_group *g, const json_t *endpoints)
{
	struct str ns = json_path_text(endpoints, "metadata.namespace");
	json_t *subset, *port, *address;
	size_t i, k, m;
	struct backing b;

	backing_begin(&b);
	labels_builder_set(&g->labels, KUBE_NAME("namespace"), ns);
	kube_service_of(g, ns, json_path_text(endpoints, "metadata.name"));
	kube_named_labels(g, &g->labels, "endpoints", endpoints);
	kube_namespace_metadata(g, ns);
	json_array_foreach (json_path_at(endpoints, "subsets"), i, subset)
		json_array_foreach (json_path_at(subset, "ports"), k, port) {
			if (g->failed)
				break;
			json_array_foreach (json_path_at(subset, "addresses"), m, address)
				kube_endpoint_target(g, &b, address, port, true);
			json_array_foreach (json_path_at(subset, "notReadyAddresses"), m, address)
				kube_endpoint_target(g, &b, address, port, false);
		}
	backing_end(g, &b);
}

/* ---- endpointslice ---- */

static void kube_condition_label(struct labels_builder *l, struct str name, const json_t *value)
{
	if (json_is_boolean(value))
		labels_builder_set(l, name, json_is_true(value) ? STR("true") : STR("false"));
}

static void kube_topology_labels(struct kube_group *g, struct labels_builder *l, json_t *map)
{
	const char *key;
	json_t *v;

	json_object_foreach (map, key, v) {
		labels_builder_set(l, kube_sanitized(g, "endpointslice_endpoint_topology_", str_of(key)),
			(struct str){ json_string_value(v), json_string_length(v) });
		labels_builder_set(l,
			kube_sanitized(g, "endpointslice_endpoint_topology_present_", str_of(key)),
			STR("true"));
	}
}

static void kube_slice_target(struct kube_group *g, struct backing *b, struct str address,
	const json_t *endpoint, const json_t *port)
{
	const json_t *ref = json_path_at(endpoint, "targetRef");
	struct labels_builder t;
	int64_t number;
	bool has_port = kube_number(port, "port", &number);

	kube_label_begin(g, &t);
	if (has_port) {
		address = kube_address(g, address, number);
		labels_builder_set(&t, KUBE_NAME("endpointslice_port"), kube_decimal(g, number));
	}
	labels_builder_set(&t, STR("__address__"), address);
	labels_builder_set(&t, KUBE_NAME("endpointslice_port_name"), json_path_text(port, "name"));
	labels_builder_set(
		&t, KUBE_NAME("endpointslice_port_protocol"), json_path_text(port, "protocol"));
	labels_builder_set(
		&t, KUBE_NAME("endpointslice_port_app_protocol"), json_path_text(port, "appProtocol"));
	kube_condition_label(&t, KUBE_NAME("endpointslice_endpoint_conditions_ready"),
		json_path_at(endpoint, "conditions.ready"));
	kube_condition_label(&t, KUBE_NAME("endpointslice_endpoint_conditions_serving"),
		json_path_at(endpoint, "conditions.serving"));
	kube_condition_label(&t, KUBE_NAME("endpointslice_endpoint_conditions_terminating"),
		json_path_at(endpoint, "conditions.terminating"));
	labels_builder_set(
		&t, KUBE_NAME("endpointslice_endpoint_hostname"), json_path_text(endpoint, "hostname"));
	labels_builder_set(
		&t, KUBE_NAME("endpointslice_address_target_kind"), json_path_text(ref, "kind"));
	labels_builder_set(
		&t, KUBE_NAME("endpointslice_address_target_name"), json_path_text(ref, "name"));
	labels_builder_set(
		&t, KUBE_NAME("endpointslice_endpoint_node_name"), json_path_text(endpoint, "nodeName"));
	labels_builder_set(
		&t, KUBE_NAME("endpointslice_endpoint_zone"), json_path_text(endpoint, "zone"));
	kube_topology_labels(g, &t, json_path_at(endpoint, "deprecatedTopology"));
	kube_node_metadata(g, &t, kube_node_of(endpoint, ref, true));
	backing_labels(g, b, &t, ref, has_port ? &number : NULL, NULL);
	kube_target(g, &t);
}

/*
 * A service with addresses of two families has slices of both, with the same pods: those of the
 * second one have no targets.
 */
static bool kube_is_second_family(const json_t *service, const json_t *slice)
{
	struct str policy = json_path_text(service, "spec.ipFamilyPolicy");
	const json_t *first = json_array_get(json_path_at(service, "spec.ipFamilies"), 0);

	return (str_is(policy, "PreferDualStack") || str_is(policy, "RequireDualStack")) &&
		json_is_string(first) &&
		!str_is(json_path_text(slice, "addressType"), json_string_value(first));
}

void kube_build_endpointslice(struct kube_group *g, const json_t *slice)
{
	struct str ns = json_path_text(slice, "metadata.namespace"), name;
	const json_t *service = NULL;
	json_t *endpoint, *port, *address, *labels = json_path_at(slice, "metadata.labels");
	size_t i, k, m;
	struct backing b;

	labels_builder_set(&g->labels, KUBE_NAME("namespace"), ns);
	labels_builder_set(
		&g->labels, KUBE_NAME("endpointslice_address_type"), json_path_text(slice, "addressType"));
	kube_named_labels(g, &g->labels, "endpointslice", slice);
	name = str_of(json_string_value(json_object_get(labels, "kubernetes.io/service-name")));
	if (name.ptr)
		service = kube_service_of(g, ns, name);
	kube_namespace_metadata(g, ns);
	if (kube_is_second_family(service, slice))
		return;
	backing_begin(&b);
	json_array_foreach (json_path_at(slice, "endpoints"), i, endpoint)
		json_array_foreach (json_path_at(slice, "ports"), k, port) {
			if (g->failed)
				break;
			json_array_foreach (json_path_at(endpoint, "addresses"), m, address)
				kube_slice_target(g, &b,
					(struct str){ json_string_value(address), json_string_length(address) },
					endpoint, port);
		}
	backing_end(g, &b);
}
