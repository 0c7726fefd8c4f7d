/*
 * Options of the server: web_open takes them, every handler sees them.
 *
 * Ownership: what the options point to outlives the server.
 * Threads:   constant; the callbacks are called from workers.
 */
#ifndef WEB_ROUTER_OPTIONS_H
#define WEB_ROUTER_OPTIONS_H

#include "base/err.h"
#include "base/self/flags.h"

struct config;
struct db;
struct debuginfo;
struct engine;
struct notifier;
struct rule_manager;
struct scrape_manager;
struct sink;

struct web_options {
	const char *listen_address; /* "0.0.0.0:7272", "[::1]:7272", ":7272" */
	const char *otlp_grpc_listen_address; /* likewise; NULL or "": off. Needs enable_ingest */
	const char *external_url; /* NULL or "": derived from the listen address */
	const char *route_prefix; /* NULL: the path of external_url */
	const char *config_file; /* --web.config.file; NULL or "": plain HTTP, no users */
	const char *cors_origin; /* anchored regular expression; NULL or "": none */
	const struct flag_list *allowed_hosts; /* --web.allowed-host; NULL or empty: any */
	uint64_t connections_max; /* 512 */
	int64_t read_timeout_ns; /* a whole head, and an idle connection: 5m */
	int64_t body_timeout_ns; /* a whole body: 1m */
	uint64_t bodies_bytes_max; /* bodies that are received, all together: 256 MiB */
	uint64_t address_bodies_bytes_max; /* of one address: 64 MiB */
	uint64_t address_checks_max; /* passwords of one address that may wait: 4 */
	int64_t lookback_ns; /* how old a number may be that /federate shows: 5m */
	int64_t retention_ns; /* profiles that are pushed may be this old; 0: of any age */
	bool enable_lifecycle, enable_admin_api, enable_ingest;

	struct db *db;
	struct sink *sink; /* of profiles that are pushed; NULL: none are taken */
	struct engine *engine;
	struct scrape_manager *manager;
	struct debuginfo *debuginfo; /* symbols of native code; NULL: there are none */
	struct notifier *notifier; /* NULL: there are no Alertmanagers */
	const struct flag *flags; /* for /api/v1/status/flags */
	size_t flags_n;

	void *ctx; /* of the callbacks */
	/* Reads the configuration again; an error changes nothing and its message is the answer. */
	enum err_code (*reload)(void *ctx, struct err *err);
	void (*quit)(void *ctx);
	/* The configuration in force, referenced for the caller (config_unref). */
	struct config *(*config)(void *ctx);
	/*
	 * Called when the server is ready: the rule manager is opened after it, as it needs the page's
	 * URL. NULL: there are no rules.
	 */
	struct rule_manager *(*rules)(void *ctx);
	/* Last reload: ok and when, for metrics and runtimeinfo. */
	void (*reload_state)(void *ctx, bool *ok, int64_t *at_ns);
};

#endif
