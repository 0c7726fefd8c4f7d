/*
 * The members of an object that are kept, as a tree per resource: those that labels and addresses
 * of targets are made of. The server sends some 10 kB for a pod, mostly volumes, probes,
 * environments and managedFields; a tenth of it is kept.
 */
#include <assert.h>
#include <jansson.h>

#include "discovery/kubernetes/values.h"
#include "discovery/kubernetes/watch.h"

/* Items of a list are trimmed by the list's table. */
struct keep {
	const char *name; /* NULL: the end */
	const struct keep *inside; /* NULL: all of it */
	bool shared; /* many objects have equal ones: they share a copy */
};

/* clang-format off */
static const struct keep owner[] = {
	{ "apiVersion", NULL }, { "kind", NULL }, { "name", NULL }, { "controller", NULL },
	{ NULL },
};
static const struct keep metadata[] = {
	{ "name", NULL }, { "namespace", NULL, true }, { "uid", NULL }, { "resourceVersion", NULL },
	{ "labels", NULL, true }, { "annotations", NULL, true }, { "ownerReferences", owner, true },
	{ NULL },
};
static const struct keep type_status[] = { { "type", NULL }, { "status", NULL }, { NULL } };
static const struct keep target_ref[] = {
	{ "kind", NULL }, { "name", NULL }, { "namespace", NULL, true }, { NULL },
};
static const struct keep ports[] = {
	{ "name", NULL }, { "port", NULL }, { "protocol", NULL }, { "appProtocol", NULL },
	{ NULL },
};

static const struct keep node_address[] = { { "type", NULL }, { "address", NULL }, { NULL } };
static const struct keep node_spec[] = { { "providerID", NULL }, { NULL } };
static const struct keep node_status[] = {
	{ "addresses", node_address }, { "conditions", type_status, true }, { "daemonEndpoints", NULL },
	{ NULL },
};
static const struct keep node[] = {
	{ "metadata", metadata }, { "spec", node_spec }, { "status", node_status }, { NULL },
};

static const struct keep namespace[] = { { "metadata", metadata }, { NULL } };

static const struct keep container_port[] = {
	{ "name", NULL }, { "containerPort", NULL }, { "protocol", NULL }, { NULL },
};
static const struct keep container[] = {
	{ "name", NULL }, { "image", NULL }, { "ports", container_port }, { "restartPolicy", NULL },
	{ NULL },
};
static const struct keep container_status[] = {
	{ "name", NULL }, { "containerID", NULL }, { NULL },
};
static const struct keep pod_spec[] = {
	{ "nodeName", NULL, true }, { "hostNetwork", NULL }, { "containers", container, true },
	{ "initContainers", container, true }, { NULL },
};
static const struct keep pod_status[] = {
	{ "podIP", NULL }, { "hostIP", NULL, true }, { "phase", NULL, true },
	{ "conditions", type_status, true },
	{ "containerStatuses", container_status }, { "initContainerStatuses", container_status },
	{ NULL },
};
static const struct keep pod[] = {
	{ "metadata", metadata }, { "spec", pod_spec }, { "status", pod_status }, { NULL },
};

static const struct keep service_spec[] = {
	{ "type", NULL }, { "clusterIP", NULL }, { "externalName", NULL }, { "loadBalancerIP", NULL },
	{ "ports", ports, true }, { "ipFamilies", NULL, true }, { "ipFamilyPolicy", NULL, true },
	{ NULL },
};
static const struct keep entrance[] = { { "ip", NULL }, { NULL } };
static const struct keep load_balancer[] = { { "ingress", entrance }, { NULL } };
static const struct keep service_status[] = { { "loadBalancer", load_balancer }, { NULL } };
static const struct keep service[] = {
	{ "metadata", metadata }, { "spec", service_spec }, { "status", service_status }, { NULL },
};

static const struct keep address[] = {
	{ "ip", NULL }, { "hostname", NULL }, { "nodeName", NULL, true }, { "targetRef", target_ref },
	{ NULL },
};
static const struct keep subset[] = {
	{ "addresses", address }, { "notReadyAddresses", address }, { "ports", ports, true },
	{ NULL },
};
static const struct keep endpoints[] = {
	{ "metadata", metadata }, { "subsets", subset }, { NULL },
};

static const struct keep endpoint[] = {
	{ "addresses", NULL }, { "conditions", NULL, true }, { "hostname", NULL },
	{ "nodeName", NULL, true }, { "zone", NULL, true }, { "deprecatedTopology", NULL },
	{ "topology", NULL }, { "targetRef", target_ref }, { NULL },
};
static const struct keep endpointslice[] = {
	{ "metadata", metadata }, { "addressType", NULL, true }, { "endpoints", endpoint },
	{ "ports", ports, true }, { NULL },
};

static const struct keep tls[] = { { "hosts", NULL }, { NULL } };
static const struct keep http_path[] = { { "path", NULL }, { NULL } };
static const struct keep http[] = { { "paths", http_path }, { NULL } };
static const struct keep rule[] = { { "host", NULL }, { "http", http }, { NULL } };
static const struct keep ingress_spec[] = {
	{ "ingressClassName", NULL }, { "tls", tls }, { "rules", rule }, { NULL },
};
static const struct keep ingress[] = {
	{ "metadata", metadata }, { "spec", ingress_spec }, { NULL },
};

/* There are ten of them for each deployment, so their labels are not kept. */
static const struct keep owned_metadata[] = {
	{ "name", NULL }, { "namespace", NULL, true }, { "uid", NULL }, { "resourceVersion", NULL },
	{ "ownerReferences", owner, true }, { NULL },
};
static const struct keep owned[] = { { "metadata", owned_metadata }, { NULL } };

static const struct keep *const tables[KUBE_RESOURCES] = {
	[KUBE_NODES] = node, [KUBE_NAMESPACES] = namespace, [KUBE_PODS] = pod,
	[KUBE_SERVICES] = service, [KUBE_ENDPOINTS] = endpoints,
	[KUBE_ENDPOINTSLICES] = endpointslice, [KUBE_INGRESSES] = ingress,
	[KUBE_REPLICASETS] = owned, [KUBE_JOBS] = owned,
};
/* clang-format on */

static const struct keep *kube_find(const struct keep *k, const char *name)
{
	for (; k->name; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

/* As deep as the tables are. */
static void kube_trim(const struct keep *table, json_t *value)
{
	const struct keep *k;
	const char *name;
	json_t *inner;
	size_t i;
	void *next;

	json_array_foreach (value, i, inner)
		if (json_is_object(inner))
			kube_trim(table, inner);
	json_object_foreach_safe(value, next, name, inner)
	{
		k = kube_find(table, name);
		if (!k)
			json_object_del(value, name);
		else if (k->inside)
			kube_trim(k->inside, inner);
	}
}

static void kube_share(const struct keep *table, json_t *value, struct kube_values *values)
{
	const struct keep *k;
	const char *name;
	json_t *inner;
	size_t i;
	void *next;

	json_array_foreach (value, i, inner)
		if (json_is_object(inner))
			kube_share(table, inner, values);
	json_object_foreach_safe(value, next, name, inner)
	{
		k = kube_find(table, name);
		if (k && k->shared)
			json_object_set_new_nocheck(value, name, kube_values_share(values, json_incref(inner)));
		else if (k && k->inside)
			kube_share(k->inside, inner, values);
	}
}

void kube_object_share(struct kube_values *values, enum kube_resource r, json_t *object)
{
	assert(r < KUBE_RESOURCES);
	kube_share(tables[r], object, values);
}

void kube_object_trim(enum kube_resource r, json_t *object)
{
	assert(r < KUBE_RESOURCES);
	kube_trim(tables[r], object);
}
