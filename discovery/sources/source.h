/*
 * Source: one running provider of target groups (a file_sd_config, an http_sd_config, ...), shared
 * by all jobs that ask for the same.
 *
 * A provider works on discovery's thread and waits for nothing: what it learns from others it
 * learns by callbacks of its event base. Whenever what it knows has changed it publishes the whole
 * set of its groups; a set that is equal to the one before is dropped. When it fails it says so and
 * keeps silent otherwise: what it published last stays.
 *
 * Two entries of a configuration are the same source where kind and identity are equal. A source
 * that stands in the old configuration and in the new one goes on as it is.
 *
 * Errors:    of `open`: what makes the configuration impossible now (ERR_NOMEM, a file that holds
 *            no key); others' trouble is told by source_failed.
 * Ownership: `config` may be gone once open returned. close ends everything under way; the provider
 *            calls nothing of its host's afterwards.
 * Threads:   discovery's.
 */
#ifndef DISCOVERY_SOURCES_SOURCE_H
#define DISCOVERY_SOURCES_SOURCE_H

#include "discovery/sources/groups.h"

struct event_base;
struct http_client;
struct kube_clusters;
struct source;
struct target_files;

/* What all sources of a discovery share. */
struct source_env {
	struct event_base *base;
	struct http_client *client;
	struct target_files *files; /* discovery/sources/target_files.h */
	struct kube_clusters *clusters; /* discovery/kubernetes/watch.h */
	const char *dns_servers; /* "10.0.0.1,10.0.0.2:53"; NULL: resolv.conf's */
};

struct source_ops {
	const char *kind; /* "http": in logs and in the metrics' label `provider` */
	MUST_CHECK enum err_code (*open)(const struct source_env *env, const void *config,
		struct source *host, void **out, struct err *err);
	void (*close)(void *provider);
	/* That the files it names can be read, for `check config`; NULL: it names none. */
	enum err_code (*check)(const void *config, struct err *err);
};

/* One entry of *_sd_configs; lives as long as the configuration. */
struct source_config {
	const struct source_ops *ops;
	const void *config;
	struct str identity; /* the entry as YAML, with the directory paths are relative to */
};

struct source_configs {
	struct source_config *v;
	size_t n, cap;
};

/*
 * Decodes a list of one kind's entries, each by `schema`, and adds them to *out. list names the
 * field in messages: "empty or null section in http_sd_configs".
 */
MUST_CHECK enum err_code source_configs_decode(struct yaml_ctx *ctx, const struct yaml_node *n,
	const char *list, const struct source_ops *ops, const struct yaml_schema *schema,
	struct source_configs *out, struct err *err);

/* ---- what a provider calls ---- */

/*
 * Takes the reference. May be called from within open. Publishing an equal set says that the
 * source works again.
 */
void source_publish(struct source *host, struct groups *set);
/* Logged once per text until the next publish, and counted. */
void source_failed(struct source *host, const struct err *why);

#endif
