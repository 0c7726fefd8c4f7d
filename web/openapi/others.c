/* Interfaces of other servers, for their clients: profefe's and Pyroscope's. */
#include "web/openapi/operations.h"
#include "web/openapi/params.h"

#define PARAM_SERVICE \
	{ \
		"service", PARAM_STRING, PARAM_REQUIRED, NULL, NULL, "Its `service_name` or `job`.", \
			"demo" \
	}
#define TYPES "cpu|heap|block|mutex|goroutine|threadcreate|other"
#define PARAM_LABELS \
	{ \
		"labels", PARAM_STRING, 0, NULL, NULL, "`NAME=VALUE,...`.", NULL \
	}
#define PARAMS_FROM_TO \
	{ "from", PARAM_STRING, PARAM_REQUIRED, NULL, NULL, \
		"First time: `2006-01-02T15:04:05`, UTC unless a zone follows.", "2026-11-23T14:00:00" }, \
	{ \
		"to", PARAM_STRING, PARAM_REQUIRED, NULL, NULL, "Last time.", "2026-11-23T15:00:00" \
	}
#define PARAM_NEWEST \
	{ \
		"limit", PARAM_UINT, 0, NULL, "0", "At most so many, the newest; 0: all.", NULL \
	}
#define PPROF ANSWERS({ 200, "application/octet-stream", NULL, "pprof." })
#define READ_ERRORS "400 404 422 499 503"

const struct operation profefe_operations[PROFEFE_OPERATIONS] = {
	[OP_PROFEFE_COLLECT] = {
		.id = "profefeCollect",
		.summary = "Store a profile of profefe's agents",
		.params = PARAMS(PARAM_SERVICE,
			{ "type", PARAM_STRING, PARAM_REQUIRED, TYPES, NULL, "Type of the profile.", "cpu" },
			PARAM_LABELS,
			{ "created_at", PARAM_STRING, 0, NULL, "the profile's end", "Time of the profile.",
				NULL },
			{ "instance_id", PARAM_STRING, 0, NULL, NULL, "Becomes the label `instance`.", NULL }),
		.bodies = BODIES({ "application/octet-stream", NULL, "pprof." }),
		.answers = ANSWERS({ 200, "application/json", "ProfefeStored", NULL }),
		.error_form = ERRORS_PROFEFE,
		.errors = "400 409 413 415 422 503",
	},
	[OP_PROFEFE_FIND] = {
		.id = "profefeFind",
		.summary = "List profiles for profefe's tools, the newest first",
		.params = PARAMS(PARAM_SERVICE,
			{ "type", PARAM_STRING, 0, TYPES, NULL, "Only this type.", NULL }, PARAM_LABELS,
			PARAMS_FROM_TO, PARAM_NEWEST),
		.answers = ANSWERS({ 200, "application/json", "ProfefeProfiles", NULL }),
		.error_form = ERRORS_PROFEFE,
		.errors = READ_ERRORS,
	},
	[OP_PROFEFE_MERGE] = {
		.id = "profefeMerge",
		.summary = "Merge profiles for profefe's tools",
		.params = PARAMS(PARAM_SERVICE,
			{ "type", PARAM_STRING, PARAM_REQUIRED, TYPES, NULL, "Type of the profiles.", "cpu" },
			PARAM_LABELS, PARAMS_FROM_TO, PARAM_NEWEST),
		.answers = PPROF,
		.error_form = ERRORS_PROFEFE,
		.errors = READ_ERRORS,
	},
	[OP_PROFEFE_GET] = {
		.id = "profefeGet",
		.summary = "Return a profile by its id, or several merged, for profefe's tools",
		.params = PARAMS({ "id", PARAM_STRING, PARAM_IN_PATH | PARAM_REQUIRED, NULL, NULL,
			"Ids with `+` between them; 256 at most.", "ID" }),
		.answers = PPROF,
		.error_form = ERRORS_PROFEFE,
		.errors = READ_ERRORS,
	},
	[OP_PROFEFE_SERVICES] = {
		.id = "profefeServices",
		.summary = "List services for profefe's tools",
		.answers = ANSWERS({ 200, "application/json", "ProfefeServices", NULL }),
		.error_form = ERRORS_PROFEFE,
		.errors = "404 422 499 503",
	},
	[OP_PROFEFE_VERSION] = {
		.id = "profefeVersion",
		.summary = "Return the version for profefe's tools",
		.answers = ANSWERS({ 200, "application/json", "ProfefeVersion", NULL }),
		.error_form = ERRORS_PROFEFE,
		.errors = "503",
	},
};

#define CALL \
	.bodies = BODIES({ "application/json", "any", "The request's message; fields in camelCase." }, \
		{ "application/proto", NULL, "The same as protobuf." }), \
	.answers = ANSWERS({ 200, "application/json", "any", "The response's message." }, \
		{ 200, "application/proto", NULL, "The same as protobuf." }), \
	.error_form = ERRORS_CONNECT, .errors = "400 404 415 422 429 499 501 503 504"

const struct operation pyroscope_operations[PYROSCOPE_OPERATIONS] = {
	[OP_QUERIER_TYPES] = { .id = "querierProfileTypes", .summary = "List profile types", CALL },
	[OP_QUERIER_LABEL_NAMES] = { .id = "querierLabelNames",
		.summary = "List names of labels",
		CALL },
	[OP_QUERIER_LABEL_VALUES] = { .id = "querierLabelValues",
		.summary = "List values of a label",
		CALL },
	[OP_QUERIER_SERIES] = { .id = "querierSeries", .summary = "List label sets", CALL },
	[OP_QUERIER_SELECT_SERIES] = { .id = "querierSelectSeries",
		.summary = "Return totals at steps",
		CALL },
	[OP_QUERIER_FLAME] = { .id = "querierSelectMergeStacktraces",
		.summary = "Return a flame graph",
		CALL },
	[OP_QUERIER_PROFILE] = { .id = "querierSelectMergeProfile",
		.summary = "Return a merged profile, pprof",
		CALL },
	[OP_QUERIER_DIFF] = { .id = "querierDiff", .summary = "Compare two flame graphs", CALL },
	[OP_QUERIER_STATS] = { .id = "querierGetProfileStats",
		.summary = "Return the times of the oldest and newest data",
		CALL },
	[OP_QUERIER_OTHER] = { .id = "querierOther",
		.summary = "Refuse any other method by its name",
		.params = PARAMS({ "method", PARAM_STRING, PARAM_IN_PATH | PARAM_REQUIRED, NULL, NULL,
			"Of `querier.v1.QuerierService`.", "SelectHeatmap" }),
		.bodies = BODIES({ "application/json", "any", "Any." }),
		.answers = ANSWERS({ 404, "application/json", "ConnectError", "`unimplemented`." }),
		.error_form = ERRORS_CONNECT,
		.errors = "415" },
};
