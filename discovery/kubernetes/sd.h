/*
 * Kubernetes discovery: an entry of kubernetes_sd_configs as a source of targets.
 *
 * It watches the resources of its role, in the given namespaces or in all, and keeps a group per
 * object (discovery/kubernetes/roles.h). It publishes nothing before the first lists of all its
 * watches are complete, and then at most once in KUBE_PUBLISH_NS. It rebuilds only groups whose
 * object, or an object joined to it, changed; consecutive sets share the others.
 *
 * Errors:    of the entry: ERR_INVALID at its place, in Prometheus's words. An object whose group
 *            exceeds KUBE_GROUP_BYTES_MAX keeps its last group.
 * Threads:   discovery's.
 */
#ifndef DISCOVERY_KUBERNETES_SD_H
#define DISCOVERY_KUBERNETES_SD_H

#include "base/yaml/yaml.h"

extern const struct yaml_schema kubernetes_sd_schema; /* of one entry */
/* A YAML_CUSTOM decoder of kubernetes_sd_configs into a struct source_configs. */
enum err_code kubernetes_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);

#endif
