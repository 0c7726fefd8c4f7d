/*
 * Kubernetes roles: make a target group of an object.
 *
 * A role reads its own objects and joins others to them (a pod's node, the service and pods of
 * endpoints). Every lookup of another object is recorded, even if there is no such object: a change
 * of any of them rebuilds the group.
 *
 * Names and values of labels, and which objects have targets, are those of Prometheus 3.16.
 *
 * Errors:    ERR_LIMIT, ERR_NOMEM of the arena. A missing or odd member of an object is no error:
 *            its label is empty.
 * Ownership: a group is in the arena and points into the objects.
 * Source:    Prometheus's discovery/kubernetes; the Kubernetes API reference.
 */
#ifndef DISCOVERY_KUBERNETES_ROLES_H
#define DISCOVERY_KUBERNETES_ROLES_H

#include "base/map.h"
#include "discovery/kubernetes/watch.h"
#include "discovery/sources/groups.h"
#include "discovery/sources/json_path.h"

enum kube_role {
	KUBE_ROLE_NODE,
	KUBE_ROLE_POD,
	KUBE_ROLE_SERVICE,
	KUBE_ROLE_ENDPOINTS,
	KUBE_ROLE_ENDPOINTSLICE,
	KUBE_ROLE_INGRESS,
	KUBE_ROLES
};

/* attach_metadata: what is added to targets from other objects. */
struct kube_attach {
	bool node; /* labels of the node; pods of nodes that are not known have no targets */
	bool namespace; /* labels of the namespace */
	bool deployment, job, cronjob; /* names of what a pod belongs to */
};

/* Looks up other objects. */
struct kube_join {
	const json_t *(*get)(void *ctx, enum kube_resource resource, struct str key); /* or NULL */
	void *ctx;
	struct kube_attach attach;
};

struct kube_deps {
	uint64_t *v; /* kube_dep of what was looked up; ascending, distinct */
	size_t n;
};

static inline uint64_t kube_dep(enum kube_resource resource, struct str key)
{
	return hash_bytes(key.ptr, key.len, resource);
}

/* key: of the object, "namespace/name" or "name". The group's source: "pod/namespace/name". */
MUST_CHECK enum err_code kube_role_build(enum kube_role role, const struct kube_join *join,
	struct str key, const json_t *object, struct arena *a, struct target_group *out,
	struct kube_deps *deps, struct err *err);

/* The table of roles: names, and what they watch. */
struct kube_role_info {
	const char *name;
	const char *source; /* before the object's key */
	enum kube_resource resource; /* one group for each of these */
	unsigned joins; /* bits of enum kube_resource: also watched, in the same namespaces */
	struct kube_attach attach; /* what has an effect */
};
extern const struct kube_role_info kube_roles[KUBE_ROLES];

/* ---- for the roles themselves ---- */

#define KUBE_META "__meta_kubernetes_"
#define KUBE_NAME(name) STR(KUBE_META name)

/* A group while it is built. A failed allocation sets `failed`. */
struct kube_group {
	struct arena *arena;
	const struct kube_join *join;
	struct labels_builder labels; /* common to all targets */
	struct labels *targets;
	size_t targets_n, targets_cap;
	uint64_t *deps;
	size_t deps_n, deps_cap;
	bool failed;
};

/* The number at that path; false if it is missing or another type. */
bool kube_number(const json_t *object, const char *path, int64_t *out);

const json_t *kube_ask(struct kube_group *g, enum kube_resource resource, struct str key);
const json_t *kube_ask_named(
	struct kube_group *g, enum kube_resource resource, struct str ns, struct str name);

void kube_label_begin(struct kube_group *g, struct labels_builder *b);
/* Adds the target with these labels to the group. */
void kube_target(struct kube_group *g, struct labels_builder *b);
struct str kube_decimal(struct kube_group *g, int64_t value);
struct str kube_lower(struct kube_group *g, struct str s);
/* host:port; a host with colons gets brackets. */
struct str kube_address(struct kube_group *g, struct str host, int64_t port);
/* KUBE_META PREFIX name, with "_" for characters that names of labels cannot have. */
struct str kube_sanitized(struct kube_group *g, const char *prefix, struct str name);
/* PREFIX_label_*, _labelpresent_*, _annotation_*, _annotationpresent_* */
void kube_object_labels(
	struct kube_group *g, struct labels_builder *b, const char *prefix, const json_t *object);
/* The same labels and PREFIX_name. */
void kube_named_labels(
	struct kube_group *g, struct labels_builder *b, const char *prefix, const json_t *object);
void kube_service_labels(struct kube_group *g, struct labels_builder *b, const json_t *service);
/* They add labels if attach_metadata asks for them and the object exists. */
void kube_node_metadata(struct kube_group *g, struct labels_builder *b, struct str node);
void kube_namespace_metadata(struct kube_group *g, struct str ns);

void kube_build_node(struct kube_group *g, const json_t *node);
void kube_build_pod(struct kube_group *g, const json_t *pod);
void kube_build_service(struct kube_group *g, const json_t *service);
void kube_build_endpoints(struct kube_group *g, const json_t *endpoints);
void kube_build_endpointslice(struct kube_group *g, const json_t *slice);
void kube_build_ingress(struct kube_group *g, const json_t *ingress);

#endif
