/*
 * Kubernetes discovery: an entry of kubernetes_sd_configs as a source of targets.
 *
 * It watches what its role needs, in each namespace asked for or in all, and keeps a group per
 * object of the role (discovery/kubernetes/roles.h). Nothing is published before the first lists of
 * all its watches are complete; afterwards changes are gathered, at most one publish in
 * KUBE_PUBLISH_NS. Only groups whose object, or an object joined to it, changed are made anew; a
 * published set shares the others with the one before.
 *
 * Errors:    of the entry: ERR_INVALID at its place, in Prometheus's words. An object whose group
 *            passes KUBE_GROUP_BYTES_MAX keeps the group it had.
 * Threads:   discovery's.
 */
#ifndef DISCOVERY_KUBERNETES_SD_H
#define DISCOVERY_KUBERNETES_SD_H

#include "discovery/sources/source.h"

/* A YAML_CUSTOM decoder of kubernetes_sd_configs into a struct source_configs. */
enum err_code kubernetes_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);

#endif
