/*
 * An entry of kubernetes_sd_configs, decoded and checked, and the source of it.
 *
 * Errors:    ERR_INVALID at its place in the file, in Prometheus's words.
 * Ownership: an entry lives as long as the configuration; a source copies what it needs.
 * Source:    Prometheus's kubernetes.SDConfig.
 */
#ifndef DISCOVERY_KUBERNETES_SD_CONFIG_H
#define DISCOVERY_KUBERNETES_SD_CONFIG_H

#include "discovery/kubernetes/cluster.h"
#include "discovery/kubernetes/roles.h"
#include "discovery/sources/source.h"

#define KUBE_PUBLISH_NS (INT64_C(200) * 1000000)
#define KUBE_GATHER_NS (INT64_C(10) * 1000000) /* changes this close together are one publish */
#define KUBE_GROUP_BYTES_MAX (128u << 20) /* of one group while it is built */
#define KUBE_NAMESPACES_MAX 1000u /* named by one entry */

struct kube_selector {
	enum kube_role role;
	struct str label, field;
	bool has_role;
};

struct kubernetes_sd_config {
	struct kube_cluster_config cluster;
	enum kube_role role;
	bool has_role;
	bool own_namespace;
	struct yaml_list namespaces; /* struct str */
	struct yaml_list selectors; /* struct kube_selector, a role at most once */
	struct kube_attach attach;
};

extern const struct source_ops kubernetes_sd_ops;

/* Parse a selector as Kubernetes does, with the errors of its parsers. */
MUST_CHECK enum err_code kube_field_selector_check(struct str s, struct err *err);
MUST_CHECK enum err_code kube_label_selector_check(struct str s, struct err *err);

#endif
