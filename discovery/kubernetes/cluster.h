/*
 * Cluster: how a Kubernetes API server is reached, from what an entry of a configuration says.
 *
 *	api_server        that URL, with the entry's own HTTP settings
 *	kubeconfig_file   server, certificates and user of the file's current context
 *	neither           the service account of the pod that this process runs in
 *
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message" for what a file says, ERR_UNSUPPORTED for what
 *            this program does not do (exec, auth-provider, impersonation),
 *            ERR_NOT_FOUND and ERR_IO for files.
 * Ownership: strings of an access are in the arena.
 * Threads:   values.
 * Source:    client-go's clientcmd and rest.InClusterConfig; Prometheus's kubernetes.SDConfig.
 */
#ifndef DISCOVERY_KUBERNETES_CLUSTER_H
#define DISCOVERY_KUBERNETES_CLUSTER_H

#include "base/net/http_client.h"
#include "base/yaml/yaml.h"
#include "discovery/kubernetes/watch.h"

#define KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* The part of an entry that says how; api_server and kubeconfig_file may be "". */
struct kube_cluster_config {
	struct str api_server;
	struct str kubeconfig_file; /* with the configuration's directory */
	struct http_config http;
};

/* Refuses settings that exclude each other, in Prometheus's words. n: their place in the file. */
MUST_CHECK enum err_code kube_cluster_check(const struct yaml_node *n,
	const struct kube_cluster_config *c, bool own_namespace, struct err *err);

/* Reads the files. service_account_dir NULL: KUBE_SERVICE_ACCOUNT_DIR. */
MUST_CHECK enum err_code kube_access_make(const struct kube_cluster_config *c,
	const char *service_account_dir, struct arena *a, struct kube_access *out, struct err *err);

/* Parses a kubeconfig. `file` names it in messages; paths in it are relative to its folder. */
MUST_CHECK enum err_code kubeconfig_parse(
	struct arena *a, const char *file, struct str text, struct kube_access *out, struct err *err);
MUST_CHECK enum err_code kube_access_dup(
	struct arena *a, const struct kube_access *from, struct kube_access *out, struct err *err);
/* Sets out->identity from all other fields. */
MUST_CHECK enum err_code kube_access_identify(
	struct arena *a, struct kube_access *out, struct err *err);

#endif
