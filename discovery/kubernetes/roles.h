/*
 * Kubernetes roles: what an object of the API server becomes: one target group.
 *
 * A role reads its own objects and joins others to them (a pod its node, endpoints their service
 * and pods). Every question for another object is remembered, whatever the answer: when one of
 * them changes, comes or goes, the group is made anew.
 *
 * Names and values are Prometheus's (3.x). Its 2.42 differs in: no node_condition_*, no
 * pod_container_init and no init containers in endpoints and slices, no namespace metadata, and a
 * pod that changes without its endpoints is not noticed.
 *
 * Errors:    ERR_LIMIT, ERR_NOMEM of the arena. An object that is not what its kind promises has
 *            empty labels where something is missing; nothing in it is an error.
 * Ownership: a built group lives in the arena and points into the objects.
 * Source:    Prometheus's discovery/kubernetes; the Kubernetes API reference.
 */
#ifndef DISCOVERY_KUBERNETES_ROLES_H
#define DISCOVERY_KUBERNETES_ROLES_H

#include "base/map.h"
#include "discovery/kubernetes/watch.h"
#include "discovery/sources/groups.h"

enum kube_role {
	KUBE_ROLE_NODE,
	KUBE_ROLE_POD,
	KUBE_ROLE_SERVICE,
	KUBE_ROLE_ENDPOINTS,
	KUBE_ROLE_ENDPOINTSLICE,
	KUBE_ROLE_INGRESS,
	KUBE_ROLES
};

/* Where other objects come from, and which of them beside those the role itself needs. */
struct kube_join {
	const json_t *(*get)(void *ctx, enum kube_resource resource, struct str key); /* NULL: none */
	void *ctx;
	bool node, namespace; /* attach_metadata */
};

struct kube_deps {
	uint64_t *v; /* kube_dep of what was asked for; ascending, distinct */
	size_t n;
};

static inline uint64_t kube_dep(enum kube_resource resource, struct str key)
{
	return hash_bytes(key.ptr, key.len, resource);
}

/* key is the object's, "namespace/name" or "name"; the source is "pod/namespace/name". */
MUST_CHECK enum err_code kube_role_build(enum kube_role role, const struct kube_join *join,
	struct str key, const json_t *object, struct arena *a, struct target_group *out,
	struct kube_deps *deps, struct err *err);

/* What a role is called, what it watches, and what it may be asked to select. */
struct kube_role_info {
	const char *name;
	const char *source; /* before the object's key */
	enum kube_resource resource; /* one group for each of these */
	unsigned joins; /* bits of enum kube_resource: watched with it, in the same namespaces */
	bool node, namespace; /* has a use for attach_metadata */
};
extern const struct kube_role_info kube_roles[KUBE_ROLES];

/* ---- for the roles themselves ---- */

#define KUBE_META "__meta_kubernetes_"
#define KUBE_NAME(name) STR(KUBE_META name)

/* A group while it is made. A failed allocation shows at the end. */
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

/* A member by its path, "status.podIP"; NULL, "" and false where it is none of that type. */
json_t *kube_at(const json_t *o, const char *path);
struct str kube_text(const json_t *o, const char *path);
bool kube_number(const json_t *o, const char *path, int64_t *out);

const json_t *kube_ask(struct kube_group *g, enum kube_resource resource, struct str key);
const json_t *kube_ask_named(
	struct kube_group *g, enum kube_resource resource, struct str ns, struct str name);

void kube_label_begin(struct kube_group *g, struct labels_builder *b);
/* Ends a target: its labels become one of the group's targets. */
void kube_target(struct kube_group *g, struct labels_builder *b);
struct str kube_decimal(struct kube_group *g, int64_t v);
struct str kube_lower(struct kube_group *g, struct str s);
/* host:port; a host with colons gets brackets. */
struct str kube_address(struct kube_group *g, struct str host, int64_t port);
/* KUBE_META PREFIX name, with what no label's name may hold as "_". */
struct str kube_sanitized(struct kube_group *g, const char *prefix, struct str name);
/* PREFIX_label_*, _labelpresent_*, _annotation_*, _annotationpresent_* */
void kube_object_labels(
	struct kube_group *g, struct labels_builder *b, const char *prefix, const json_t *object);
/* Those and PREFIX_name. */
void kube_named_labels(
	struct kube_group *g, struct labels_builder *b, const char *prefix, const json_t *object);
void kube_service_labels(struct kube_group *g, struct labels_builder *b, const json_t *service);
/* Where attach_metadata asks for it and the object is there. */
void kube_node_metadata(struct kube_group *g, struct labels_builder *b, struct str node);
void kube_namespace_metadata(struct kube_group *g, struct str ns);

void kube_build_node(struct kube_group *g, const json_t *node);
void kube_build_pod(struct kube_group *g, const json_t *pod);
void kube_build_service(struct kube_group *g, const json_t *service);
void kube_build_endpoints(struct kube_group *g, const json_t *endpoints);
void kube_build_endpointslice(struct kube_group *g, const json_t *slice);
void kube_build_ingress(struct kube_group *g, const json_t *ingress);

#endif
