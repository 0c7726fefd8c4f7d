/*
 * Values: equal parts of many objects (the labels of a deployment's pods, the names of their
 * nodes), each once in memory. A pod of 1.7 kB of JSON takes 15 kB as a tree, and a third of that
 * with shared values.
 *
 * A shared value must not be changed. Unused values are freed when the table has doubled.
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
	size_t sweep_at; /* the n at which unused ones are freed */
};

void kube_values_init(struct kube_values *k);
void kube_values_release(struct kube_values *k);
/* Takes the reference to value and gives one to value or to an equal value. Out of memory: value.
 */
json_t *kube_values_share(struct kube_values *k, json_t *value);

/* Shares members of an object; the table in trim.c says which. */
void kube_object_share(struct kube_values *t, enum kube_resource r, json_t *object);

#endif
