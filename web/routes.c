#include "web/routes.h"
#include "scrape/forward/push_entries.h"
#include "web/annotations/annotations.h"
#include "web/api/handlers.h"
#include "web/debuginfo/debuginfo.h"
#include "web/files/files.h"
#include "web/handlers.h"
#include "web/mcp/mcp.h"
#include "web/openapi/openapi.h"
#include "web/openapi/operations.h"
#include "web/profefe/profefe.h"
#include "web/push/forms.h"
#include "web/pyroscope/pyroscope.h"
#include "web/rules/saved.h"

#define READ (HTTP_GET | HTTP_HEAD)
#define ASK (HTTP_GET | HTTP_POST)
#define DO (HTTP_POST | HTTP_PUT)
#define API (ROUTE_API | ROUTE_READY)
#define RPC (API | ROUTE_SLOW | ROUTE_BODY | ROUTE_CONNECT)
#define QUERIER "/querier.v1.QuerierService/"
#define DATA (API | ROUTE_SLOW) /* asks the database */
#define ADMIN (DATA | ROUTE_ADMIN | ROUTE_CHANGES)
#define PUSH (DATA | ROUTE_INGEST | ROUTE_CHANGES | ROUTE_BODY)
#define FILE_PUSH \
	(API | ROUTE_INGEST | ROUTE_NO_PROFILES | ROUTE_CHANGES | ROUTE_BODY | ROUTE_PIECES)
#define FILE_CALL (PUSH | ROUTE_NO_PROFILES | ROUTE_CONNECT)
/* A kubelet or a load balancer has an address of the server and no credentials. */
#define HEALTH (ROUTE_ANY_HOST | ROUTE_OPEN)
/* Shards have addresses of their own, and no forms or pages. */
#define PEERS (ROUTE_READY | ROUTE_CHANGES | ROUTE_BODY | ROUTE_ANY_HOST | ROUTE_PEERS)
#define LIFECYCLE (ROUTE_LIFECYCLE | ROUTE_CHANGES)
#define OP(tag, name) &tag##_operations[OP_##name]
#define SAVE_RULES (RULES | ROUTE_CHANGES | ROUTE_BODY)
#define RULES (API | ROUTE_SLOW) /* waits while rules are reloaded, which waits for queries */

/* The first row that fits counts. */
/* clang-format off */
const struct route web_routes[] = {
	{ ASK, "/api/v1/query", NEEDS_READ, api_query, DATA, OP(query, QUERY), files_admit_query },
	{ ASK, "/api/v1/query_range", NEEDS_READ, api_query_range, DATA, OP(query, QUERY_RANGE) },
	{ ASK, "/api/v1/format_query", NEEDS_READ, api_format_query, API, OP(query, FORMAT_QUERY) },
	{ ASK, "/api/v1/parse_query", NEEDS_READ, api_parse_query, API, OP(query, PARSE_QUERY) },
	{ HTTP_GET, "/api/v1/language", NEEDS_READ, api_language, API, OP(query, LANGUAGE) },
	{ ASK, "/api/v1/query_exemplars", NEEDS_READ, api_query_exemplars, API,
		OP(query, QUERY_EXEMPLARS) },
	{ HTTP_GET, "/api/v1/rules", NEEDS_READ_ALL, api_rules, RULES, OP(rule, RULES) },
	{ HTTP_GET, "/api/v1/rules/saved", NEEDS_READ_ALL, rules_saved_get, API, OP(rule, SAVED) },
	{ HTTP_POST, "/api/v1/rules/saved", NEEDS_ADMIN, rules_saved_post, SAVE_RULES,
		OP(rule, SAVED_POST), rules_saved_admit },
	{ HTTP_DELETE, "/api/v1/rules/saved", NEEDS_ADMIN, rules_saved_delete, RULES | ROUTE_CHANGES,
		OP(rule, SAVED_DELETE) },
	{ HTTP_GET, "/api/v1/rules/saved/history", NEEDS_READ_ALL, rules_saved_history, API,
		OP(rule, SAVED_HISTORY) },
	{ HTTP_POST, "/api/v1/rules/saved/undo", NEEDS_ADMIN, rules_saved_undo, RULES | ROUTE_CHANGES,
		OP(rule, SAVED_UNDO) },
	{ HTTP_GET, "/api/v1/alerts", NEEDS_READ_ALL, api_alerts, RULES, OP(rule, ALERTS) },
	{ HTTP_GET, "/api/v1/alertmanagers", NEEDS_READ_ALL, api_alertmanagers, API,
		OP(rule, ALERTMANAGERS) },
	{ ASK, "/api/v1/functions", NEEDS_READ_ALL, api_functions, DATA, OP(metadata, FUNCTIONS) },
	{ HTTP_GET, "/api/v1/metadata", NEEDS_READ, api_metadata, DATA, OP(metadata, METADATA) },
	{ ASK, "/api/v1/explain_query", NEEDS_READ, api_explain_query, DATA, OP(query, EXPLAIN_QUERY) },
	{ ASK, "/api/v1/series", NEEDS_READ, api_series, DATA, OP(metadata, SERIES) },
	{ ASK, "/api/v1/labels", NEEDS_READ, api_label_names, DATA, OP(metadata, LABELS) },
	{ HTTP_GET, "/api/v1/label/*/values", NEEDS_READ, api_label_values, DATA,
		OP(metadata, LABEL_VALUES) },
	{ ASK, "/api/v1/label_counts", NEEDS_READ, api_label_counts, DATA, OP(metadata, LABEL_COUNTS) },
	{ HTTP_GET, "/api/v1/profile_types", NEEDS_READ, api_profile_types, DATA,
		OP(metadata, PROFILE_TYPES) },
	{ HTTP_GET, "/api/v1/annotations", NEEDS_READ, annotations_get, DATA,
		OP(metadata, ANNOTATIONS) },
	{ HTTP_POST, "/api/v1/annotations", NEEDS_INGEST, annotations_post, PUSH | ROUTE_MARKS,
		OP(ingest, ANNOTATIONS_POST), annotations_admit },
	{ ASK, "/api/v1/links", NEEDS_READ, api_links, DATA, OP(query, LINKS) },
	{ HTTP_GET, "/api/v1/source", NEEDS_READ_ALL, api_source, DATA, OP(query, SOURCE) },
	{ HTTP_GET, "/api/v1/source_links", NEEDS_READ, api_source_links, API,
		OP(query, SOURCE_LINKS) },
	{ HTTP_GET, "/api/v1/targets", NEEDS_READ_ALL, api_targets, API, OP(target, TARGETS) },
	{ ASK, "/api/v1/targets/relabel_steps", NEEDS_READ_ALL, api_relabel_steps, API,
		OP(target, RELABEL_STEPS) },
	{ HTTP_GET, "/api/v1/targets/metadata", NEEDS_READ_ALL, api_targets_metadata, DATA,
		OP(target, TARGETS_METADATA) },
	{ HTTP_GET, "/api/v1/senders", NEEDS_READ_ALL, api_senders, DATA, OP(target, SENDERS) },
	{ HTTP_POST, "/api/v1/targets/profile", NEEDS_ADMIN, api_targets_profile, ADMIN,
		OP(target, TARGETS_PROFILE) },
	{ HTTP_GET, "/api/v1/scrape_pools", NEEDS_READ_ALL, api_scrape_pools, API,
		OP(target, SCRAPE_POOLS) },
	{ HTTP_GET, "/api/v1/symbols", NEEDS_READ_ALL, debuginfo_symbols, DATA, OP(symbol, SYMBOLS) },
	{ HTTP_POST, "/api/v1/files", NEEDS_READ, files_post, DATA | ROUTE_CHANGES | ROUTE_BODY,
		OP(file, FILES_POST) },
	{ HTTP_GET, "/api/v1/files", NEEDS_ADMIN, files_list, API, OP(file, FILES_LIST) },
	{ HTTP_GET, "/api/v1/files/*", NEEDS_READ, files_get, DATA, OP(file, FILES_GET) },
	{ HTTP_DELETE, "/api/v1/files/*", NEEDS_READ, files_delete, API | ROUTE_CHANGES,
		OP(file, FILES_DELETE) },
	{ HTTP_GET, "/api/v1/openapi.json", NEEDS_USER, openapi_handle, ROUTE_API,
		OP(status, OPENAPI) },
	{ HTTP_GET, "/api/v1/status/buildinfo", NEEDS_READ, api_buildinfo, API, OP(status, BUILDINFO) },
	{ HTTP_GET, "/api/v1/status/runtimeinfo", NEEDS_READ, api_runtimeinfo, API,
		OP(status, RUNTIMEINFO) },
	{ HTTP_GET, "/api/v1/status/config", NEEDS_READ_ALL, api_config, API, OP(status, CONFIG) },
	{ HTTP_GET, "/api/v1/status/flags", NEEDS_READ_ALL, api_flags, API, OP(status, FLAGS) },
	{ HTTP_GET, "/api/v1/status/tsdb", NEEDS_READ_ALL, api_tsdb, API, OP(status, TSDB) },
	{ HTTP_GET, "/api/v1/status/tsdb/blocks", NEEDS_READ_ALL, api_tsdb_blocks, API,
		OP(status, TSDB_BLOCKS) },
	{ HTTP_GET, "/api/v1/status/walreplay", NEEDS_READ, api_walreplay, ROUTE_API,
		OP(status, WALREPLAY) },
	{ HTTP_GET, "/api/v1/notifications", NEEDS_READ_ALL, api_notifications, API,
		OP(status, NOTIFICATIONS) },
	{ HTTP_GET, "/api/v1/notifications/live", NEEDS_READ, api_notifications_live, ROUTE_API,
		OP(status, NOTIFICATIONS_LIVE) },
	{ HTTP_GET, "/api/v1/features", NEEDS_READ, api_features, API, OP(status, FEATURES) },
	{ HTTP_GET, "/api/v1/status/cluster", NEEDS_READ_ALL, api_cluster, API, OP(status, CLUSTER) },
	{ DO, "/api/v1/admin/tsdb/delete_series", NEEDS_ADMIN, api_delete_series, ADMIN,
		OP(admin, DELETE_SERIES) },
	{ DO, "/api/v1/admin/tsdb/snapshot", NEEDS_ADMIN, api_snapshot, ADMIN, OP(admin, SNAPSHOT) },
	{ DO, "/api/v1/admin/tsdb/accept_losses", NEEDS_ADMIN, api_accept_losses, ADMIN,
		OP(admin, ACCEPT_LOSSES) },
	{ HTTP_POST, "/api/v1/ingest", NEEDS_INGEST, api_ingest, PUSH, OP(ingest, INGEST) },
	{ HTTP_POST, "/v1development/profiles", NEEDS_INGEST, otlp_handle, PUSH, OP(ingest, OTLP) },
	{ HTTP_POST, "/ingest", NEEDS_INGEST, ingest_handle, PUSH, OP(ingest, PYROSCOPE_INGEST) },
	{ HTTP_POST, "/push.v1.PusherService/Push", NEEDS_INGEST, push_v1_handle, PUSH | ROUTE_CONNECT,
		OP(ingest, PYROSCOPE_PUSH) },
	{ HTTP_POST, PUSH_ENTRIES_PATH, NEEDS_INGEST, shard_profiles_handle, PEERS,
		OP(ingest, SHARD_PROFILES), shard_profiles_admit },
	{ HTTP_POST, "/api/v1/symbols/upload", NEEDS_INGEST, debuginfo_put, FILE_PUSH,
		OP(symbol, SYMBOLS_UPLOAD), debuginfo_admit_put },
	{ HTTP_POST, DEBUGINFO_SERVICE "ShouldInitiateUpload", NEEDS_INGEST,
		debuginfo_should_upload, FILE_CALL,
		OP(symbol, SHOULD_INITIATE_UPLOAD) },
	{ HTTP_POST, DEBUGINFO_SERVICE "Upload/*", NEEDS_INGEST, debuginfo_upload, FILE_PUSH,
		OP(symbol, UPLOAD), debuginfo_admit_upload },
	{ HTTP_POST, DEBUGINFO_SERVICE "UploadFinished", NEEDS_INGEST,
		debuginfo_upload_finished, FILE_CALL,
		OP(symbol, UPLOAD_FINISHED) },

	{ HTTP_POST, "/api/0/profiles", NEEDS_INGEST, profefe_collect, PUSH,
		OP(profefe, PROFEFE_COLLECT) },
	{ HTTP_GET, "/api/0/profiles", NEEDS_READ, profefe_find, DATA, OP(profefe, PROFEFE_FIND) },
	{ HTTP_GET, "/api/0/profiles/merge", NEEDS_READ, profefe_merge, DATA,
		OP(profefe, PROFEFE_MERGE) },
	{ HTTP_GET, "/api/0/profiles/*", NEEDS_READ, profefe_get, DATA, OP(profefe, PROFEFE_GET) },
	{ HTTP_GET, "/api/0/services", NEEDS_READ, profefe_services, DATA,
		OP(profefe, PROFEFE_SERVICES) },
	{ HTTP_GET, "/api/0/version", NEEDS_USER, profefe_version, API, OP(profefe, PROFEFE_VERSION) },

	{ HTTP_POST, QUERIER "ProfileTypes", NEEDS_READ, pyroscope_handle, RPC,
		OP(pyroscope, QUERIER_TYPES) },
	{ HTTP_POST, QUERIER "LabelNames", NEEDS_READ, pyroscope_handle, RPC,
		OP(pyroscope, QUERIER_LABEL_NAMES) },
	{ HTTP_POST, QUERIER "LabelValues", NEEDS_READ, pyroscope_handle, RPC,
		OP(pyroscope, QUERIER_LABEL_VALUES) },
	{ HTTP_POST, QUERIER "Series", NEEDS_READ, pyroscope_handle, RPC,
		OP(pyroscope, QUERIER_SERIES) },
	{ HTTP_POST, QUERIER "SelectSeries", NEEDS_READ, pyroscope_handle, RPC,
		OP(pyroscope, QUERIER_SELECT_SERIES) },
	{ HTTP_POST, QUERIER "SelectMergeStacktraces", NEEDS_READ, pyroscope_handle, RPC,
		OP(pyroscope, QUERIER_FLAME) },
	{ HTTP_POST, QUERIER "SelectMergeProfile", NEEDS_READ, pyroscope_handle, RPC,
		OP(pyroscope, QUERIER_PROFILE) },
	{ HTTP_POST, QUERIER "Diff", NEEDS_READ, pyroscope_handle, RPC, OP(pyroscope, QUERIER_DIFF) },
	{ HTTP_POST, QUERIER "GetProfileStats", NEEDS_READ, pyroscope_handle, RPC,
		OP(pyroscope, QUERIER_STATS) },
	{ HTTP_POST, QUERIER "*", NEEDS_READ, pyroscope_handle, RPC, OP(pyroscope, QUERIER_OTHER) },

	{ HTTP_POST, "/mcp", NEEDS_READ, mcp_handle, DATA | ROUTE_CHANGES | ROUTE_BODY,
		OP(query, MCP), mcp_admit },
	{ READ | HTTP_DELETE, "/mcp", NEEDS_READ, mcp_refuse_method, 0, NULL, mcp_admit },

	{ READ, "/-/healthy", NEEDS_USER, handle_healthy, HEALTH, OP(server, HEALTHY) },
	{ READ, "/-/ready", NEEDS_USER, handle_ready, HEALTH, OP(server, READY) },
	{ READ, "/ready", NEEDS_USER, handle_ready, HEALTH, OP(server, READY_PROFILECLI) },
	{ DO, "/-/reload", NEEDS_ADMIN, handle_reload, LIFECYCLE | ROUTE_READY | ROUTE_SLOW,
		OP(admin, RELOAD) },
	{ DO, "/-/quit", NEEDS_ADMIN, handle_quit, LIFECYCLE, OP(admin, QUIT) },
	{ READ, "/metrics", NEEDS_READ_ALL, handle_metrics, 0, OP(server, METRICS) },
	{ HTTP_GET, "/federate", NEEDS_READ, api_federate, ROUTE_READY | ROUTE_SLOW,
		OP(rule, FEDERATE) },
	{ HTTP_GET, "/metrics/recorded", NEEDS_READ, api_recorded, ROUTE_READY | ROUTE_SLOW,
		OP(rule, RECORDED) },
	{ HTTP_GET, "/debug/pprof/profile", NEEDS_READ_ALL, handle_pprof_profile, 0,
		OP(server, PPROF_PROFILE) },
	{ READ, "/debug/pprof/", NEEDS_READ_ALL, handle_pprof_index, 0, OP(server, PPROF_INDEX) },

	{ READ, "/", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/explore", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/services", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/compare", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/alerts", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/rules", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/targets", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/senders", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/service-discovery", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/status", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/tsdb-status", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/cluster", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/symbols", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/config", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/flags", NEEDS_USER, handle_page, 0, NULL },
	{ READ, "/docs", NEEDS_USER, handle_book_root, 0, NULL },
	{ READ, "/docs/", NEEDS_USER, handle_book, 0, NULL },
	{ READ, "/*", NEEDS_USER, handle_asset, ROUTE_FILES, NULL },
};
/* clang-format on */
const size_t web_routes_n = sizeof(web_routes) / sizeof(web_routes[0]);
