/*
 * Watches: objects of a Kubernetes cluster, kept as the API server has them.
 *
 * A watch is one resource of one cluster, in one namespace or in all, under one pair of selectors:
 * a list (in pages), then the stream of changes from there on, for ever. Whoever asks for the same
 * shares it. A stream that is cut or closed is taken up where it stood; one whose version is gone
 * (410) is listed anew, and what changed meanwhile is told as changes: a list counts when its last
 * page has come, and objects whose uid and resourceVersion are as they were are not told again.
 * What fails is tried again after 0.8 s, doubled up to 30 s, with jitter (a server's Retry-After
 * counts where it is longer); the objects stay meanwhile. A watch that was released goes on for
 * KUBE_LINGER_NS, so that a reload finds it as it was.
 *
 * An object is kept as JSON with only those members that some role reads (kube_object_trim).
 *
 * Errors:    told to the listeners; a watch never ends by itself. A stream that is cut is no
 *            failure, one that cannot be taken up again is.
 * Ownership: kube_watch_acquire copies what it is given; it and kube_watch_release pair, also from
 *            within callbacks. Objects belong to the watch and are valid until the loop runs again
 *            (json_incref keeps one longer: a change never alters an object, it replaces it).
 * Threads:   discovery's.
 * Source:    Kubernetes' "API Concepts"; client-go's Reflector.
 */
#ifndef DISCOVERY_KUBERNETES_WATCH_H
#define DISCOVERY_KUBERNETES_WATCH_H

#include <jansson.h>

#include "base/net/http_client.h"

#define KUBE_OBJECTS_MAX 1000000u /* of one watch */
#define KUBE_OBJECT_BYTES_MAX (8u << 20) /* of one object as it is sent; pages may be longer */
#define KUBE_LINGER_NS (INT64_C(10) * 1000000000)

enum kube_resource {
	KUBE_NODES, /* these two have no namespace */
	KUBE_NAMESPACES,
	KUBE_PODS,
	KUBE_SERVICES,
	KUBE_ENDPOINTS,
	KUBE_ENDPOINTSLICES,
	KUBE_INGRESSES,
	KUBE_RESOURCES
};

/* How a cluster is reached: cluster.h makes it of what a configuration says. */
struct kube_access {
	struct str server; /* "https://10.0.0.1:6443", without a path's end slash */
	struct str own_namespace; /* in a cluster, or the kubeconfig's; "": not known */
	struct http_config http; /* token files are read for each request */
	struct str identity; /* equal: the same cluster as the same user */
};

struct kube_clusters;
struct kube_watch;

struct kube_watch_key {
	enum kube_resource resource;
	struct str namespace; /* "": all */
	struct str label_selector, field_selector;
};

/* A part of whoever listens; the callbacks come from the event loop, never from inside a call. */
struct kube_listener {
	/* key: "namespace/name" or "name"; object NULL: gone. */
	void (*changed)(void *ctx, const struct kube_watch *w, struct str key, const json_t *object);
	void (*synced)(void *ctx, const struct kube_watch *w); /* the first list is complete */
	void (*failed)(void *ctx, const struct kube_watch *w, const struct err *why);
	void (*works)(void *ctx, const struct kube_watch *w); /* again, after it failed; may be NULL */
	void *ctx;
	struct kube_listener *next; /* of watch.c */
};

/* client is used for the requests; it and the base outlive the clusters. */
MUST_CHECK enum err_code kube_clusters_open(struct event_base *base, struct http_client *client,
	struct kube_clusters **out, struct err *err);
/* All watches were released. Not from within a callback. NULL is fine. */
void kube_clusters_close(struct kube_clusters *c);

/* A watch that is at work already has its objects at once, and calls back with changes only. */
MUST_CHECK enum err_code kube_watch_acquire(struct kube_clusters *c,
	const struct kube_access *access, const struct kube_watch_key *key,
	struct kube_listener *listener, struct kube_watch **out, struct err *err);
void kube_watch_release(struct kube_watch *w, struct kube_listener *listener); /* NULL is fine */

bool kube_watch_synced(const struct kube_watch *w);
const json_t *kube_watch_get(const struct kube_watch *w, struct str key); /* NULL: none */
/* In the order of their keys; false from fn ends it. */
void kube_watch_each(const struct kube_watch *w,
	bool (*fn)(void *ctx, struct str key, const json_t *object), void *ctx);
size_t kube_watch_size(const struct kube_watch *w);

/* "pods": as it stands in paths and in messages. */
const char *kube_resource_name(enum kube_resource r);
/*
 * Removes what no role reads: managedFields, volumes, ... The table of what stays is
 * trim.c's. Of metadata stay name, namespace, uid, resourceVersion, labels, annotations
 * and ownerReferences.
 */
void kube_object_trim(enum kube_resource r, json_t *object);

#endif
