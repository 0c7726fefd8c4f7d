/*
 * Values: what many objects have in common (the labels of a deployment's pods, the names of their
 * nodes), each once in memory. A parsed pod of 1.7 kB of JSON takes 15 kB as a tree; with what it
 * has in common with others shared it takes a third of that.
 *
 * Values must not be changed once they are shared. Those that nobody uses any more go when the
 * table has doubled.
 *
 * Threads:   discovery's.
 */
#ifndef DISCOVERY_KUBERNETES_VALUES_H
#define DISCOVERY_KUBERNETES_VALUES_H

#include <jansson.h>

#include "base/map.h"
#include "discovery/kubernetes/watch.h"

struct kube_value {
	uint64_t hash;
	json_t *v;
};

struct kube_values {
	struct map map; /* of indices in v */
	struct kube_value *v;
	size_t n, cap;
	size_t sweep_at; /* n at which the unused go */
};

void kube_values_init(struct kube_values *t);
void kube_values_release(struct kube_values *t);
/* Takes v, gives it or an equal one. Without memory: v. */
json_t *kube_values_share(struct kube_values *t, json_t *v);

/* What in an object is shared is said by the table of what is kept (trim.c). */
void kube_object_share(struct kube_values *t, enum kube_resource r, json_t *object);

#endif
