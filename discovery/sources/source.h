/*
 * Source: one running provider of target groups (a file_sd_config, an http_sd_config, ...). All
 * jobs with an equal entry share it.
 *
 * A provider never blocks: it sets timers and sends requests on the event base that it is given. It
 * publishes the whole set of its groups whenever that changed; publishing an equal set changes
 * nothing. When it fails it calls source_failed, and its last set stays.
 *
 * Two entries of a configuration are the same source if kind and identity are equal. A reload keeps
 * the sources that are in both configurations.
 *
 * Errors:    open fails if the configuration cannot work now (ERR_NOMEM, a file that holds no key).
 *            Failures of others, such as a server that is down, go to source_failed.
 * Ownership: `config` may be freed once open returned. close ends everything under way; the
 *            provider does not call its host afterwards.
 * Threads:   discovery's.
 */
#ifndef DISCOVERY_SOURCES_SOURCE_H
#define DISCOVERY_SOURCES_SOURCE_H

#include "discovery/sources/groups.h"

struct event_base;
struct http_client;
struct sd_source;

/* The environment of a provider. */
struct source_env {
	struct event_base *base;
	struct http_client *client;
	const char *dns_servers; /* "10.0.0.1,10.0.0.2:53"; NULL: resolv.conf's */
	void *shared; /* made by open_shared for this kind, or NULL */
};

struct source_ops {
	const char *kind; /* "http": in logs and in the metrics' label `provider` */
	MUST_CHECK enum err_code (*open)(const struct source_env *env, const void *config,
		struct sd_source *host, void **out, struct err *err);
	void (*close)(void *provider);
	/* For `check config`: the files that the entry names can be read. NULL: it names none. */
	enum err_code (*check)(const void *config, struct err *err);
	/*
	 * Makes what all sources of this kind share, before the first of them opens; close_shared frees
	 * it after the last has closed, when discovery ends. NULL: they share nothing.
	 */
	enum err_code (*open_shared)(const struct source_env *env, void **out, struct err *err);
	void (*close_shared)(void *shared);
};

/* One entry of *_sd_configs. Lives as long as the configuration. */
struct source_config {
	const struct source_ops *ops;
	const void *config;
	struct str identity; /* the entry as YAML, and the directory that its paths are relative to */
};

struct source_configs {
	struct source_config *v;
	size_t n, cap;
};

/*
 * Decodes a list of entries of one kind, each by `schema`, and appends them to *out. `list` is the
 * field's name in messages: "empty or null section in http_sd_configs".
 */
MUST_CHECK enum err_code source_configs_decode(struct yaml_ctx *ctx, const struct yaml_node *n,
	const char *list, const struct source_ops *ops, const struct yaml_schema *schema,
	struct source_configs *out, struct err *err);

/* ---- for providers ---- */

/* Takes the reference. A provider may call it in open. An equal set says that it works again. */
void source_publish(struct sd_source *host, struct groups *set);
/* Counted, and logged once per message until the next publish. */
void source_failed(struct sd_source *host, const struct err *why);

#endif
