/*
 * Watches: a copy of a Kubernetes cluster's objects that follows the API server.
 *
 * A watch is one resource of one cluster, in one namespace or in all, under one pair of selectors.
 * Users with equal keys share it. It lists the objects (in pages) and then follows the stream of
 * changes. A stream that breaks off is resumed. If its version is gone (410), the watch lists again
 * and reports the differences: a list counts when its last page has come, and objects with the same
 * uid and resourceVersion are not reported. A failure is retried after 0.8 s, doubled up to 30 s,
 * with jitter, or after the server's Retry-After if that is longer; the objects stay meanwhile. A
 * released watch goes on for KUBE_LINGER_NS, so that a reload finds it as it was.
 *
 * It keeps only the members of an object that roles read, as JSON (kube_object_trim).
 *
 * Errors:    go to the listeners; a watch never ends by itself. A stream that breaks off is no
 *            failure, but one that cannot be resumed is.
 * Ownership: kube_watch_acquire copies what it is given; it pairs with kube_watch_release, which
 *            callbacks may call. Objects belong to the watch and are valid until the loop runs
 *            again. json_incref keeps one longer: objects are replaced, never changed.
 * Threads:   discovery's.
 * Source:    Kubernetes' "API Concepts"; client-go's Reflector.
 */
#ifndef DISCOVERY_KUBERNETES_WATCH_H
#define DISCOVERY_KUBERNETES_WATCH_H

#include <jansson.h>

#include "base/net/http_client.h"

#define KUBE_OBJECTS_MAX 1000000u /* of one watch */
#define KUBE_OBJECT_BYTES_MAX (8u << 20) /* of one object as sent; pages may be longer */
#define KUBE_LINGER_NS (INT64_C(10) * 1000000000)

enum kube_resource {
	KUBE_NODES, /* these two have no namespace */
	KUBE_NAMESPACES,
	KUBE_PODS,
	KUBE_SERVICES,
	KUBE_ENDPOINTS,
	KUBE_ENDPOINTSLICES,
	KUBE_INGRESSES,
	KUBE_REPLICASETS,
	KUBE_JOBS,
	KUBE_RESOURCES
};

/* How a cluster is reached; cluster.h makes it. */
struct kube_access {
	struct str server; /* "https://10.0.0.1:6443", without a final slash */
	struct str own_namespace; /* of the pod, or the kubeconfig's; "": unknown */
	struct http_config http; /* token files are read for each request */
	struct str identity; /* equal for the same cluster and user */
};

struct kube_clusters;
struct kube_watch;

struct kube_watch_key {
	enum kube_resource resource;
	struct str namespace; /* "": all */
	struct str label_selector, field_selector;
};

/* A member of the listener's object. Callbacks come from the event loop, never within a call. */
struct kube_listener {
	/* key: "namespace/name" or "name"; object NULL: it was deleted. */
	void (*changed)(void *ctx, const struct kube_watch *w, struct str key, const json_t *object);
	void (*synced)(void *ctx, const struct kube_watch *w); /* the first list is complete */
	void (*failed)(void *ctx, const struct kube_watch *w, const struct err *why);
	void (*works)(void *ctx, const struct kube_watch *w); /* again, after it failed; may be NULL */
	void *ctx;
	struct kube_listener *next; /* of watch.c */
};

/* client sends the requests; it and the base outlive the clusters. */
MUST_CHECK enum err_code kube_clusters_open(struct event_base *base, struct http_client *client,
	struct kube_clusters **out, struct err *err);
/* After the release of all watches, and not within a callback. NULL is fine. */
void kube_clusters_close(struct kube_clusters *c);

/* A shared watch has its objects at once, and calls back for changes only. */
MUST_CHECK enum err_code kube_watch_acquire(struct kube_clusters *c,
	const struct kube_access *access, const struct kube_watch_key *key,
	struct kube_listener *listener, struct kube_watch **out, struct err *err);
void kube_watch_release(struct kube_watch *w, struct kube_listener *listener); /* NULL is fine */

bool kube_watch_synced(const struct kube_watch *w);
const json_t *kube_watch_get(const struct kube_watch *w, struct str key); /* NULL: none */
/* In the order of keys; false from fn ends it. */
void kube_watch_each(const struct kube_watch *w,
	bool (*fn)(void *ctx, struct str key, const json_t *object), void *ctx);
size_t kube_watch_size(const struct kube_watch *w);

/*
 * Removes members that no role reads: managedFields, volumes, ... The table in trim.c says what is
 * kept. metadata keeps name, namespace, uid, resourceVersion, ownerReferences, and of most
 * resources labels and annotations.
 */
void kube_object_trim(enum kube_resource r, json_t *object);

#endif
