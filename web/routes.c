#include "web/routes.h"
#include "web/api/handlers.h"
#include "web/debuginfo/debuginfo.h"
#include "web/files/files.h"
#include "web/handlers.h"
#include "web/profefe/profefe.h"
#include "web/push/forms.h"
#include "web/pyroscope/pyroscope.h"

#define READ (HTTP_GET | HTTP_HEAD)
#define ASK (HTTP_GET | HTTP_POST)
#define DO (HTTP_POST | HTTP_PUT)
#define API (ROUTE_API | ROUTE_READY)
#define RPC (API | ROUTE_SLOW | ROUTE_BODY)
#define QUERIER "/querier.v1.QuerierService/"
#define DATA (API | ROUTE_SLOW) /* asks the database */
#define ADMIN (DATA | ROUTE_ADMIN | ROUTE_CHANGES)
#define PUSH (DATA | ROUTE_INGEST | ROUTE_CHANGES | ROUTE_BODY)
#define FILE_PUSH \
	(API | ROUTE_INGEST | ROUTE_NO_PROFILES | ROUTE_CHANGES | ROUTE_BODY | ROUTE_PIECES)
#define FILE_CALL (PUSH | ROUTE_NO_PROFILES)
#define LIFECYCLE (ROUTE_LIFECYCLE | ROUTE_CHANGES)
#define RULES (API | ROUTE_SLOW) /* waits while rules are reloaded, which waits for queries */

/* The first row that fits counts. */
/* clang-format off */
const struct route web_routes[] = {
	{ ASK, "/api/v1/query", api_query, DATA, "evaluate at one time, or over a span",
		files_admit_query },
	{ ASK, "/api/v1/query_range", api_query_range, DATA, "evaluate at steps" },
	{ ASK, "/api/v1/format_query", api_format_query, API, "a query, laid out" },
	{ ASK, "/api/v1/parse_query", api_parse_query, API, "a query as a tree" },
	{ HTTP_GET, "/api/v1/language", api_language, API, "functions and words of the language" },
	{ ASK, "/api/v1/query_exemplars", api_query_exemplars, API, "none; Grafana asks for them" },
	{ HTTP_GET, "/api/v1/rules", api_rules, RULES, "groups of rules" },
	{ HTTP_GET, "/api/v1/alerts", api_alerts, RULES, "alerts that are pending or fire" },
	{ HTTP_GET, "/api/v1/alertmanagers", api_alertmanagers, API, "where alerts go" },
	{ ASK, "/api/v1/functions", api_functions, DATA, "names of functions in the data" },
	{ HTTP_GET, "/api/v1/metadata", api_metadata, DATA, "units and kinds of profile types" },
	{ ASK, "/api/v1/explain_query", api_explain_query, DATA,
		"what a query would read, or has read" },
	{ ASK, "/api/v1/series", api_series, DATA, "label sets by match[]" },
	{ ASK, "/api/v1/labels", api_label_names, DATA, "names of labels" },
	{ HTTP_GET, "/api/v1/label/*/values", api_label_values, DATA, "values of a label" },
	{ ASK, "/api/v1/label_counts", api_label_counts, DATA,
		"how many series and values labels have" },
	{ HTTP_GET, "/api/v1/profile_types", api_profile_types, DATA, "what can be selected" },
	{ ASK, "/api/v1/links", api_links, DATA, "samples that were taken while spans ran" },
	{ HTTP_GET, "/api/v1/source", api_source, DATA,
		"a file of source code, from a debuginfod server" },
	{ HTTP_GET, "/api/v1/source_links", api_source_links, API, "links to source code" },
	{ HTTP_GET, "/api/v1/targets", api_targets, API, "targets and their last scrape" },
	{ ASK, "/api/v1/targets/relabel_steps", api_relabel_steps, API,
		"what each rule does to a target's labels" },
	{ HTTP_GET, "/api/v1/targets/metadata", api_targets_metadata, DATA,
		"units and kinds of the types of each target" },
	{ HTTP_POST, "/api/v1/targets/profile", api_targets_profile, ADMIN,
		"profile a target now" },
	{ HTTP_GET, "/api/v1/scrape_pools", api_scrape_pools, API, "names of jobs" },
	{ HTTP_GET, "/api/v1/symbols", debuginfo_symbols, DATA,
		"binaries of native code, and their symbols" },
	{ HTTP_POST, "/api/v1/files", files_post, DATA | ROUTE_CHANGES | ROUTE_BODY,
		"what is in a profile's file; keeps it" },
	{ HTTP_GET, "/api/v1/files", files_list, API, "files that are kept" },
	{ HTTP_GET, "/api/v1/files/*", files_get, DATA, "a file that is kept" },
	{ HTTP_DELETE, "/api/v1/files/*", files_delete, API | ROUTE_CHANGES,
		"remove a file that is kept" },
	{ HTTP_GET, "/api/v1/status/buildinfo", api_buildinfo, API, "version" },
	{ HTTP_GET, "/api/v1/status/runtimeinfo", api_runtimeinfo, API,
		"start time, last reload, counts" },
	{ HTTP_GET, "/api/v1/status/config", api_config, API, "configuration in force" },
	{ HTTP_GET, "/api/v1/status/flags", api_flags, API, "command line" },
	{ HTTP_GET, "/api/v1/status/tsdb", api_tsdb, API, "what is stored" },
	{ HTTP_GET, "/api/v1/status/tsdb/blocks", api_tsdb_blocks, API,
		"blocks, as Prometheus lists them" },
	{ HTTP_GET, "/api/v1/status/walreplay", api_walreplay, ROUTE_API,
		"for Prometheus's clients: nothing is left to replay" },
	{ HTTP_GET, "/api/v1/notifications", api_notifications, API,
		"what is wrong with the server now" },
	{ HTTP_GET, "/api/v1/notifications/live", api_notifications_live, ROUTE_API,
		"for Prometheus's clients: 204, there is no stream" },
	{ HTTP_GET, "/api/v1/features", api_features, API, "features, by Prometheus's names" },
	{ HTTP_GET, "/api/v1/status/cluster", api_cluster, API,
		"the bucket, its shards, what they cost" },
	{ DO, "/api/v1/admin/tsdb/delete_series", api_delete_series, ADMIN,
		"delete rows of series by match[]" },
	{ DO, "/api/v1/admin/tsdb/snapshot", api_snapshot, ADMIN,
		"a copy of the data directory" },
	{ DO, "/api/v1/admin/tsdb/accept_losses", api_accept_losses, ADMIN,
		"losses that a person has accepted" },
	{ HTTP_POST, "/api/v1/ingest", api_ingest, PUSH,
		"store a profile" },
	{ HTTP_POST, "/v1development/profiles", otlp_handle, PUSH,
		"OTLP: store profiles" },
	{ HTTP_POST, "/ingest", ingest_handle, PUSH,
		"for Pyroscope's SDKs: store a profile" },
	{ HTTP_POST, "/push.v1.PusherService/Push", push_v1_handle, PUSH,
		"for Pyroscope's SDKs and Alloy: store profiles" },
	{ HTTP_POST, "/api/v1/symbols/upload", debuginfo_put, FILE_PUSH,
		"store symbols: a file of native code", debuginfo_admit_put },
	{ HTTP_POST, DEBUGINFO_SERVICE "ShouldInitiateUpload", debuginfo_should_upload, FILE_CALL,
		"for Alloy: whether symbols of a file are wanted" },
	{ HTTP_POST, DEBUGINFO_SERVICE "Upload/*", debuginfo_upload, FILE_PUSH,
		"for Alloy: store symbols of a file that was announced", debuginfo_admit_upload },
	{ HTTP_POST, DEBUGINFO_SERVICE "UploadFinished", debuginfo_upload_finished, FILE_CALL,
		"for Alloy: an upload has ended" },

	{ HTTP_POST, "/api/0/profiles", profefe_collect, PUSH,
		"for profefe's agents: store a profile" },
	{ HTTP_GET, "/api/0/profiles", profefe_find, DATA, "for profefe's tools: what is stored" },
	{ HTTP_GET, "/api/0/profiles/merge", profefe_merge, DATA,
		"for profefe's tools: what is stored, as one profile" },
	{ HTTP_GET, "/api/0/profiles/*", profefe_get, DATA,
		"for profefe's tools: profiles by their ids" },
	{ HTTP_GET, "/api/0/services", profefe_services, DATA, "for profefe's tools: services" },
	{ HTTP_GET, "/api/0/version", profefe_version, API, "for profefe's tools: version" },

	{ HTTP_POST, QUERIER "ProfileTypes", pyroscope_handle, RPC,
		"for Grafana: what can be selected" },
	{ HTTP_POST, QUERIER "LabelNames", pyroscope_handle, RPC,
		"for Grafana: names of labels" },
	{ HTTP_POST, QUERIER "LabelValues", pyroscope_handle, RPC,
		"for Grafana: values of a label" },
	{ HTTP_POST, QUERIER "Series", pyroscope_handle, RPC,
		"for Grafana: label sets" },
	{ HTTP_POST, QUERIER "SelectSeries", pyroscope_handle, RPC,
		"for Grafana: totals at steps" },
	{ HTTP_POST, QUERIER "SelectMergeStacktraces", pyroscope_handle, RPC,
		"for Grafana: a flame graph" },
	{ HTTP_POST, QUERIER "SelectMergeProfile", pyroscope_handle, RPC,
		"for Grafana: a merged profile as pprof" },
	{ HTTP_POST, QUERIER "Diff", pyroscope_handle, RPC,
		"for Grafana: two flame graphs compared" },
	{ HTTP_POST, QUERIER "GetProfileStats", pyroscope_handle, RPC,
		"for Grafana: times of the oldest and newest data" },
	{ HTTP_POST, QUERIER "*", pyroscope_handle, RPC, "for Grafana: says what is not served" },

	{ READ, "/-/healthy", handle_healthy, ROUTE_ANY_HOST, "200 while the process lives" },
	{ READ, "/-/ready", handle_ready, ROUTE_ANY_HOST, "200 once requests are served" },
	{ READ, "/ready", handle_ready, ROUTE_ANY_HOST, "for profilecli: the same" },
	{ DO, "/-/reload", handle_reload, LIFECYCLE | ROUTE_READY | ROUTE_SLOW,
		"read the files again" },
	{ DO, "/-/quit", handle_quit, LIFECYCLE, "end the server" },
	{ READ, "/metrics", handle_metrics, 0, "the server's own numbers" },
	{ HTTP_GET, "/federate", api_federate, ROUTE_READY | ROUTE_SLOW,
		"latest numbers by match[], for another Prometheus" },
	{ HTTP_GET, "/metrics/recorded", api_recorded, ROUTE_READY | ROUTE_SLOW,
		"latest numbers of recording rules, for a Prometheus" },
	{ HTTP_GET, "/debug/pprof/profile", handle_pprof_profile, 0, "CPU profile of the server" },
	{ READ, "/debug/pprof/", handle_pprof_index, 0, "which profiles there are" },

	{ READ, "/", handle_page, 0, "the page" },
	{ READ, "/explore", handle_page, 0, "the page" },
	{ READ, "/services", handle_page, 0, "the page" },
	{ READ, "/compare", handle_page, 0, "the page" },
	{ READ, "/alerts", handle_page, 0, "the page" },
	{ READ, "/rules", handle_page, 0, "the page" },
	{ READ, "/targets", handle_page, 0, "the page" },
	{ READ, "/service-discovery", handle_page, 0, "the page" },
	{ READ, "/status", handle_page, 0, "the page" },
	{ READ, "/tsdb-status", handle_page, 0, "the page" },
	{ READ, "/cluster", handle_page, 0, "the page" },
	{ READ, "/symbols", handle_page, 0, "the page" },
	{ READ, "/config", handle_page, 0, "the page" },
	{ READ, "/flags", handle_page, 0, "the page" },
	{ READ, "/*", handle_asset, ROUTE_FILES, "files of the page" },
};
/* clang-format on */
const size_t web_routes_n = sizeof(web_routes) / sizeof(web_routes[0]);
