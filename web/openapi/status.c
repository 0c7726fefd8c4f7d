/* The server's state, its administration, its own metrics and profile. */
#include "web/openapi/operations.h"
#include "web/openapi/params.h"

const struct operation status_operations[STATUS_OPERATIONS] = {
	[OP_OPENAPI] = {
		.id = "openapi",
		.summary = "Return this description, OpenAPI 3.1",
		.answers = ANSWERS({ 200, "application/json", "any", "The document." }),
	},
	[OP_BUILDINFO] = {
		.id = "buildInfo",
		.summary = "Return version, revision and linked libraries",
		.answers = ANSWER("BuildInfo", "Fields about Go and the builder are empty."),
		.errors = "503",
	},
	[OP_RUNTIMEINFO] = {
		.id = "runtimeInfo",
		.summary = "Return start time, last reload and limits of memory",
		.answers = ANSWER("RuntimeInfo", NULL),
		.errors = "503",
	},
	[OP_CONFIG] = {
		.id = "config",
		.summary = "Return the configuration in force",
		.answers = ANSWER("Config", "Secrets are hidden."),
		.errors = "503",
	},
	[OP_FLAGS] = {
		.id = "flags",
		.summary = "Return the values of all flags",
		.answers = ANSWER("{}string", "By the flag's name."),
		.errors = "503",
	},
	[OP_TSDB] = {
		.id = "tsdbStatus",
		.summary = "Return what is stored: head, blocks, losses",
		.answers = ANSWER("TsdbStatus", NULL),
		.errors = "503",
	},
	[OP_TSDB_BLOCKS] = {
		.id = "tsdbBlocks",
		.summary = "List blocks as Prometheus does",
		.answers = ANSWER("Blocks", NULL),
		.errors = "503",
	},
	[OP_WALREPLAY] = {
		.id = "walReplay",
		.summary = "Return zeros, since nothing is left to replay",
		.description = "Clients of Prometheus ask for it.",
		.answers = ANSWER("WalReplay", NULL),
	},
	[OP_CLUSTER] = {
		.id = "clusterStatus",
		.summary = "Return the state of the bucket and its shards",
		.answers = ANSWER("Cluster", "Without a bucket only `mode`. Unknown values are left out."),
		.errors = "422 503",
	},
	[OP_NOTIFICATIONS] = {
		.id = "notifications",
		.summary = "List what is wrong with the server now",
		.description = "A reload failed, the database is not ready, the clock made a step, "
					   "retention waits.",
		.answers = ANSWER("[]Notification", NULL),
		.errors = "503",
	},
	[OP_NOTIFICATIONS_LIVE] = {
		.id = "notificationsLive",
		.summary = "Return 204, since there is no stream of notifications",
		.description = "Clients of Prometheus ask for it.",
		.answers = ANSWERS({ 204, NULL, NULL, "Always." }),
	},
	[OP_FEATURES] = {
		.id = "features",
		.summary = "List features by Prometheus's names",
		.answers = ANSWER("{}{}bool", "By category and name. Our own are in `epimetheus`, and in "
								   "`user` what the user who asks may do."),
		.errors = "503",
	},
};

const struct operation admin_operations[ADMIN_OPERATIONS] = {
	[OP_DELETE_SERIES] = {
		.id = "deleteSeries",
		.summary = "Delete rows of series",
		.params = PARAMS({ "match[]", PARAM_SELECTOR, PARAM_REPEATED | PARAM_REQUIRED, NULL, NULL,
							 "Series that one of them selects; whole profiles, not single types.",
							 "process_cpu{job=\"old\"}" },
			PARAMS_WINDOW),
		.answers = ANSWERS({ 204, NULL, NULL, "They are deleted." }),
		.errors = "400 422 503",
	},
	[OP_SNAPSHOT] = {
		.id = "snapshot",
		.summary = "Copy the data directory",
		.description = "The copy is made of hard links where it can.",
		.answers = ANSWER("Snapshot", "The folder, below `snapshots/` of the data directory."),
		.errors = "409 422 503",
	},
	[OP_ACCEPT_LOSSES] = {
		.id = "acceptLosses",
		.summary = "Accept losses of data, which ends their alert",
		.params = PARAMS({ "loss", PARAM_UINT, PARAM_REPEATED, NULL, NULL,
			"`number` of a loss in `status/tsdb`; none: all losses.", NULL }),
		.answers = ANSWER("AcceptedLosses", NULL),
		.errors = "400 404 503",
	},
	[OP_RELOAD] = {
		.id = "reload",
		.summary = "Read configuration and rules again",
		.answers = ANSWERS({ 200, NULL, NULL, "They are in force." }),
		.error_form = ERRORS_TEXT,
		.errors = "500 503",
	},
	[OP_QUIT] = {
		.id = "quit",
		.summary = "End the server",
		.answers = ANSWERS({ 200, "text/plain", NULL, "It ends after this answer." }),
		.error_form = ERRORS_TEXT,
	},
};

const struct operation server_operations[SERVER_OPERATIONS] = {
	[OP_HEALTHY] = {
		.id = "healthy",
		.summary = "Return 200 while the process lives",
		.answers = ANSWERS({ 200, "text/plain", NULL, "`Epimetheus is Healthy.`" }),
		.error_form = ERRORS_TEXT,
	},
	[OP_READY] = {
		.id = "ready",
		.summary = "Return 200 once requests are served, before that what the server waits for",
		.answers = ANSWERS({ 200, "text/plain", NULL, "`Epimetheus is Ready.`" }),
		.error_form = ERRORS_TEXT,
		.errors = "503",
	},
	[OP_READY_PROFILECLI] = {
		.id = "readyForProfilecli",
		.summary = "Return 200 once requests are served, for profilecli",
		.answers = ANSWERS({ 200, "text/plain", NULL, "`Epimetheus is Ready.`" }),
		.error_form = ERRORS_TEXT,
		.errors = "503",
	},
	[OP_METRICS] = {
		.id = "metrics",
		.summary = "Return the server's own metrics",
		.answers = ANSWERS({ 200, "text/plain; version=0.0.4", NULL, "Prometheus's text format." }),
		.error_form = ERRORS_TEXT,
		.errors = "500",
	},
	[OP_PPROF_PROFILE] = {
		.id = "profileServer",
		.summary = "Return a CPU profile of the server itself",
		.params = PARAMS(
			{ "seconds", PARAM_UINT, 0, NULL, "30", "Its length, 1 to 600.", "1" }),
		.answers = ANSWERS({ 200, "application/octet-stream", NULL, "A gzipped profile." }),
		.error_form = ERRORS_TEXT,
		.errors = "400 500 503",
	},
	[OP_PPROF_INDEX] = {
		.id = "profilesOfServer",
		.summary = "List profiles of the server itself",
		.answers = ANSWERS({ 200, "text/plain", NULL, "For people." }),
		.error_form = ERRORS_TEXT,
		.errors = "404",
	},
};
