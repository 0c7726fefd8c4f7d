/*
 * Options of the server: web_open takes them, every handler sees them.
 *
 * Units:     nanoseconds, bytes; costs in the currency of the configured prices.
 * Ownership: what the options point to outlives the server.
 * Threads:   constant; the callbacks are called from workers.
 */
#ifndef WEB_ROUTER_OPTIONS_H
#define WEB_ROUTER_OPTIONS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/self/flags.h"
#include "base/str.h"

/* ---- the bucket and its shards as this server sees them, for status/cluster ---- */

struct cluster_shard_view { /* a shard that is queried */
	struct str name, host;
	/* "running", "late", "stopped", "failing": its last round; "unread": there was none; "reading":
	 * its blocks are here and some of its windows are not; "own": it is a database of this process,
	 * and the rest is empty. */
	const char *state;
	bool own, late, stopped;
	int64_t through_ns; /* all rows until then are here; 0: nothing was read yet */
	int64_t lag_ns; /* how long ago that is; -1: not known, or the shard stopped */
	uint64_t windows, segments, blocks, bytes;
	uint64_t missing; /* objects that the manifest names and the bucket lacks */
	bool reading; /* windows are not here whole; the next five say how far that is */
	uint64_t read_segments, all_segments, read_bytes, all_bytes;
	int64_t left_ns; /* an estimate; -1: not known */
	struct str error; /* of the last round; "": it was well */
	uint64_t assignment; /* of shards, that it follows; 0: none */
	bool behind; /* others follow a newer one, for longer than its lease */
};

struct cluster_member_view { /* a shard that shares targets, as this one knows it */
	struct str name;
	bool member, drained, ended;
	uint64_t follows; /* at least; 0: not known, or a fixed total */
};

struct cluster_publish_view { /* what this server puts into the bucket */
	struct str name;
	const char *state; /* "waiting", "running", "away", "fenced"; NULL: it does not publish */
	uint64_t generation;
	int64_t through_ns, lag_ns; /* 0, -1: not known */
	uint64_t waiting_blocks, waiting_bytes;
	uint64_t blocks, windows, segments, bytes, kept; /* that its manifest names */
	uint64_t gone; /* objects that are to be removed */
	uint64_t failures;
	struct str last_error; /* "": none since it last worked */
	struct str refuses; /* why no push is acknowledged now; "": pushes are */
	bool joined; /* it shares targets with members; the rest is 0 else */
	uint64_t assignment; /* that it follows; 0: none is known yet */
	struct cluster_member_view *members; /* ascending by name */
	size_t members_n;
};

struct cluster_cache_view { /* of objects that are read in the bucket */
	bool there;
	uint64_t from_memory, from_disk, from_bucket; /* pages, by where they were */
	uint64_t bytes, bytes_max; /* on disk */
	uint64_t damaged_pages;
	struct str off; /* why the disk takes no pages now; "": it does */
	struct str down; /* the bucket's last answer to a read, if it was none; "": it was well */
};

struct cluster_request_view {
	const char *kind; /* "get", "put" ... */
	uint64_t requests, sent_bytes, received_bytes; /* since the start */
};
#define CLUSTER_KINDS_MAX 8

struct cluster_view {
	const char *mode; /* "server", "query", "compact" */
	struct str bucket; /* its name; "": there is none, and no more is said */
	struct cluster_publish_view shard;
	struct cluster_shard_view *shards; /* ascending by name */
	size_t shards_n;
	bool has_shards; /* a query node, even where it has found none yet */
	struct cluster_cache_view cache;
	struct cluster_request_view requests[CLUSTER_KINDS_MAX]; /* of this process */
	size_t requests_n;
	double requests_cost; /* of these requests */
	double requests_cost_day; /* at this rate; negative: too early to say */
	double storage_cost_month; /* of what the shards above have in the bucket */
};

/* Lists that each shard puts into the bucket, for the API of query nodes. */
enum shard_list {
	SHARD_SENDERS, /* JSON, scrape/receive/senders.h */
	SHARD_TARGETS, /* gzip of scrape/target_lines.h */
	SHARD_LISTS
};

struct shard_list_view {
	struct str shard;
	bool stopped; /* in order: what it wrote is no more so */
	struct str text; /* as the shard wrote it */
	struct str error; /* why it could not be read; "": it could */
};

/*
 * What a server never takes, whatever its flags are, and who does. So no refusal names a flag with
 * which this server would not start. Each NULL: it does, once its flag is given.
 */
struct web_elsewhere {
	const char *profiles;
	const char *symbols; /* debug data */
	const char *files; /* that are kept */
	const char *admin; /* deletes, snapshots, losses, profiles that are ordered */
};

struct config;
struct db;
struct debuginfo;
struct debuginfod;
struct engine;
struct kept;
struct listen_bound;
struct notifier;
struct push_assignment;
struct rule_manager;
struct rules_report;
struct saved_change;
struct saved_rules;
struct scrape_manager;
struct sink;
struct ui_asset;

struct web_options {
	const char *listen_address; /* "0.0.0.0:7272", "[::1]:7272", ":7272" */
	const char *otlp_grpc_listen_address; /* likewise; NULL or "": off. Needs enable_ingest */
	struct listen_bound *bound, *otlp_grpc_bound; /* of these addresses; NULL: bound here */
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
	bool enable_lifecycle, enable_admin_api, enable_ingest, enable_files;
	bool enable_rules; /* needs users */
	bool enable_mcp;
	struct web_elsewhere elsewhere;

	/* The parts of the server that need its data: here, or by web_set_parts before it is ready. */
	struct db *db;
	struct sink *sink; /* of profiles that are pushed; NULL: none are taken */
	/*
	 * Of a shard that has joined others: which of them keeps a pushed profile, and the sink of
	 * those that they send here, which this server alone stores. Both NULL: it is no such shard.
	 */
	const struct push_assignment *assignment; /* scrape/forward/push_assignment.h */
	struct sink *shard_sink;
	struct engine *engine;
	struct scrape_manager *manager;
	struct debuginfo *debuginfo; /* symbols of native code; NULL: there are none */
	struct debuginfod *debuginfod; /* for source code; NULL: none is asked for */
	struct kept *files; /* web/files/kept.h; NULL: none are kept */
	struct saved_rules *saved_rules; /* promql/rules/saved/saved_rules.h; NULL: there are none */
	struct notifier *notifier; /* NULL: there are no Alertmanagers */
	const struct flag *flags; /* for /api/v1/status/flags */
	size_t flags_n;
	const struct ui_asset *book; /* web/ui_assets.h; NULL: there is no book */
	size_t book_n;

	void *ctx; /* of the callbacks */
	/* What the server waits for while it is not ready, as text. NULL: nobody knows. */
	void (*waiting)(void *ctx, struct buf *out);
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
	/*
	 * On a query node: what is evaluated, on whichever node (promql/rules/report.h); may wait. The
	 * caller releases out->rules. NULL: what `rules` has.
	 */
	enum err_code (*rules_report)(
		void *ctx, struct arena *a, struct rules_report *out, struct err *err);
	const char *rules_warning; /* why rules do not run here, for their pages; NULL: they do */
	const char *saved_rules_why_not; /* why users cannot save rules here; NULL: they can */
	/* Durable, and the rules run, once it returns. NULL: users cannot save rules. */
	enum err_code (*change_rules)(
		void *ctx, const struct saved_change *c, struct arena *a, struct err *err);
	/* For status/cluster; texts and arrays are in the arena. NULL: there is no bucket. */
	enum err_code (*cluster)(void *ctx, struct arena *a, struct cluster_view *out, struct err *err);
	/*
	 * A list of each shard that a query node follows, whose texts are in the arena; of senders only
	 * those that are there. No shards: *n is 0. NULL: there is no bucket.
	 */
	enum err_code (*shard_lists)(void *ctx, enum shard_list which, struct arena *a,
		struct shard_list_view **out, size_t *n, struct err *err);
	const char *senders_path; /* the file of this server's own; NULL: they are in memory alone */
	/* Where query nodes find them; may wait. NULL: nowhere. */
	enum err_code (*put_senders)(void *ctx, struct str text, struct err *err);
	/*
	 * Reloads, for runtimeinfo and notifications: whether the last one worked, and when it was; and
	 * when the last one was that worked, 0: none.
	 */
	void (*reload_state)(void *ctx, bool *ok, int64_t *tried_ns, int64_t *at_ns);
};

#endif
