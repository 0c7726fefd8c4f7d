/* Queries, and what helps to write them. */
#include "proto/report/pprof_options.h"
#include "web/openapi/operations.h"
#include "web/openapi/params.h"

#define PARAM_FORMAT \
	{ \
		"format", PARAM_STRING, 0, "json|pprof|pgo|folded|text|speedscope", "json", \
			"Form of the answer.", NULL \
	}

#define PARAMS_ANSWER \
	PARAM_FORMAT, PARAM_LIMIT("elements of the result"), \
		{ "max_nodes", PARAM_UINT, 0, NULL, "8192", \
			"Boxes of a flame graph; what is lighter is summed up as `other`.", NULL }, \
		{ "call_site[]", PARAM_STRING, PARAM_REPEATED, NULL, NULL, \
			"Names of frames from the root down: only stacks that begin so.", NULL }, \
		{ "call_site_skip", PARAM_UINT, 0, NULL, NULL, \
			"Leaves out the node's own cost and its heaviest callees, so many.", NULL }, \
		{ "search", PARAM_STRING, 0, NULL, NULL, \
			"What matches in each profile: `matched`, of all its functions. A regular expression " \
			"(RE2) that matches any part of a function's name. It ignores case unless it has an " \
			"upper case letter; one behind a backslash does not count.", \
			NULL }, \
		{ "files", PARAM_BOOL, 0, NULL, "false", \
			"A flame graph also has the file and line of each function.", NULL }, \
		{ "types", PARAM_STRING, 0, "all", NULL, \
			"With `format=pprof`: one scrape with all its sample types, as it was scraped.", \
			NULL }, \
	{ \
		"profiles", PARAM_STRING, 0, "totals|flame", "flame", \
			"`totals`: numbers in place of profiles and tables. It is the default for Grafana, " \
			"promtool and Prometheus's client library for Go.", \
			NULL \
	}

/* Options of pprof's report. */
#define PARAM_OF_BOOL PARAM_BOOL
#define PARAM_OF_COUNT PARAM_UINT
#define PARAM_OF_SHARE PARAM_STRING
#define PARAM_OF_DIVISOR PARAM_STRING
#define PARAM_OF_TEXT PARAM_STRING
#define PARAM_OF_CHOICE PARAM_STRING
#define PARAM_OF_REPORT(name, kind, choices, fallback, help) \
	{ #name, PARAM_OF_##kind, 0, choices, fallback, "With `format=text`: " help, NULL },

#define PARAMS_REPORT \
	PPROF_OPTION_ROWS(PARAM_OF_REPORT){ "base", PARAM_QUERY, 0, NULL, NULL, \
		"With `format=text`: a query whose answer is subtracted; equal samples cancel out.", \
		NULL }, \
		{ "diff_base", PARAM_QUERY, 0, NULL, NULL, \
			"As `base`, but percentages are of the base's total.", NULL }, \
	{ \
		"normalize", PARAM_BOOL, 0, NULL, "false", \
			"With `base` and `diff_base`: the answer is scaled to the base's total first.", NULL \
	}

#define PARAMS_INSTANT \
	{ "time", PARAM_TIME, 0, NULL, "now", "Evaluates at this time.", NULL }, \
		{ "start", PARAM_TIME, 0, NULL, NULL, "With `end`, in place of `time`: a window.", NULL }, \
	{ \
		"end", PARAM_TIME, 0, NULL, NULL, "End of the window.", NULL \
	}

#define BODY_FILES \
	BODIES({ "multipart/form-data", "FilesForm", \
		"The parameters as fields, and files, which the query names: `file(\"NAME\")`. " \
		"Two files of 16 MiB at most." })

#define FORMATS \
	{ 200, "application/octet-stream", NULL, "`pprof` and `pgo`: a gzipped profile." }, \
		{ 200, "text/plain", NULL, "`folded` and `text`." }, \
	{ \
		200, "application/json; profile=speedscope", NULL, "`speedscope`." \
	}

#define QUERY_ERRORS "400 404 413 422 499 503"

const struct operation query_operations[QUERY_OPERATIONS] = {
	[OP_QUERY] = {
		.id = "query",
		.summary = "Evaluate a query at one time, or over one window",
		.description =
			"With `time`, selectors without a window give the newest profile of each series within "
			"the lookback. With `start` and `end`, profiles of the window are merged. "
			"Profiles come back as flame graphs, `top` as rows, costs as Prometheus's `vector`.",
		.params = PARAMS(PARAM_OF_QUERY("top(3, cpu)"), PARAMS_INSTANT, PARAM_TIMEOUT,
			PARAMS_ANSWER, PARAMS_REPORT),
		.bodies = BODY_FILES,
		.answers = ANSWERS({ 200, NULL, "QueryData", "`json`." }, FORMATS),
		.error_form = ERRORS_BOTH,
		.errors = QUERY_ERRORS,
	},
	[OP_QUERY_RANGE] = {
		.id = "queryRange",
		.summary = "Evaluate a query at steps",
		.description = "At most 11,000 steps. Profiles become their totals; tables are refused.",
		.params = PARAMS(PARAM_OF_QUERY("sum by (job) (total(cpu))"),
			{ "start", PARAM_TIME, PARAM_REQUIRED, NULL, NULL, "First step.", "1795953300" },
			{ "end", PARAM_TIME, PARAM_REQUIRED, NULL, NULL, "The last step, at the latest.",
				"1795953360" },
			{ "step", PARAM_DURATION, PARAM_REQUIRED, NULL, NULL, "From step to step.", "15s" },
			PARAM_TIMEOUT, PARAMS_ANSWER, PARAMS_REPORT),
		.bodies = BODY_FILES,
		.answers = ANSWERS({ 200, NULL, "QueryData", "`json`: a `matrix`." }, FORMATS),
		.error_form = ERRORS_BOTH,
		.errors = QUERY_ERRORS,
	},
	[OP_FORMAT_QUERY] = {
		.id = "formatQuery",
		.summary = "Lay out a query",
		.params = PARAMS(PARAM_OF_QUERY("sum(total(cpu))")),
		.answers = ANSWER("string", "The query on lines of its own where it is long."),
		.errors = "400",
	},
	[OP_PARSE_QUERY] = {
		.id = "parseQuery",
		.summary = "Parse a query into a tree",
		.description = "Node types and fields are Prometheus's. `valueTypes`, `position` and "
					   "`frameMatchers` are added.",
		.params = PARAMS(PARAM_OF_QUERY("total(cpu)")),
		.answers = ANSWER("QueryNode", "The root."),
		.errors = "400",
	},
	[OP_EXPLAIN_QUERY] = {
		.id = "explainQuery",
		.summary = "Estimate what a query would read, or measure what it reads",
		.description = "Without `step` as `query`, with `step` as `query_range`.",
		.params = PARAMS(PARAM_OF_QUERY("sum(total(cpu))"), PARAMS_INSTANT,
			{ "step", PARAM_DURATION, 0, NULL, NULL, "From step to step.", NULL }, PARAM_TIMEOUT,
			{ "analyze", PARAM_BOOL, 0, NULL, "false",
				"Evaluates too, and adds how much was read and how long it took.", NULL },
			{ "format", PARAM_STRING, 0, "json|text", "json", "`text` is for people.", NULL }),
		.answers = ANSWERS({ 200, NULL, "Explanation", "`json`." },
			{ 200, "text/plain", NULL, "`text`." }),
		.errors = "400 404 422 499 503",
	},
	[OP_LANGUAGE] = {
		.id = "language",
		.summary = "List functions, operators and words of the query language",
		.answers = ANSWER("Language", "For editors and for programs that write queries."),
	},
	[OP_QUERY_EXEMPLARS] = {
		.id = "queryExemplars",
		.summary = "Return no exemplars, since profiles have none",
		.description = "Grafana asks for them.",
		.params = PARAMS(PARAM_OF_QUERY("cpu")),
		.answers = ANSWER("[]any", "Empty."),
		.errors = "400",
	},
	[OP_LINKS] = {
		.id = "links",
		.summary = "List samples that were taken while spans ran",
		.description =
			"Rows of the selected series and time are read, 1 GiB at most; `warnings` say if there "
			"were more. OTLP alone sends such links.",
		.params = PARAMS(PARAM_MATCH("One selector; none: all series."), PARAMS_WINDOW,
			{ "trace_id", PARAM_STRING, 0, NULL, NULL, "32 hexadecimal digits.", NULL },
			{ "span_id", PARAM_STRING, 0, NULL, NULL, "16 hexadecimal digits.", NULL },
			{ "limit", PARAM_UINT, 0, NULL, "1000", "At most so many samples; 10,000 at most.",
				NULL }),
		.answers = ANSWER("[]Link", "Samples of one stack, label set and span are one element."),
		.errors = "400 422 499 503",
	},
	[OP_SOURCE] = {
		.id = "source",
		.summary = "Return a file of source code from a debuginfod server",
		.description = "Servers with `source: true` are asked. At most 4 MiB; eight files at "
			"once. What no "
			"server has is asked for again after ten minutes.",
		.params = PARAMS({ "build_id", PARAM_STRING, PARAM_REQUIRED, NULL, NULL,
							 "GNU build id of the binary.", "8a3f0c6d5b2e4f71" },
			{ "path", PARAM_STRING, PARAM_REQUIRED, NULL, NULL,
				"Of the source file, with a `/` in front.", "/src/main.c" },
			{ "binary", PARAM_STRING, 0, NULL, NULL,
				"Path of the binary, for the server's `allow_paths`.", NULL }),
		.answers = ANSWER("Source", NULL),
		.errors = "400 404 422 503",
	},
	[OP_SOURCE_LINKS] = {
		.id = "sourceLinks",
		.summary = "Return the link to a line of source code",
		.description = "Links come from `source_links` of the configuration. Nothing is fetched.",
		.params = PARAMS({ "path", PARAM_STRING, 0, NULL, NULL, "Of the source file.",
			"/src/main.go" },
			{ "line", PARAM_UINT, 0, NULL, NULL, "Without it `${line}` stays in the link.", "10" },
			{ "label.", PARAM_STRING, PARAM_PREFIX, NULL, NULL,
				"`label.NAME`: the label of the profile that links look at.", NULL }),
		.answers = ANSWER("SourceLinks", NULL),
		.errors = "400",
	},
	[OP_MCP] = {
		.id = "mcp",
		.summary = "Answer an assistant, by the Model Context Protocol",
		.description = "One message of JSON-RPC 2.0, see [Assistants](overview.md#assistants). "
					   "Needs `--web.enable-mcp`. Errors are those of JSON-RPC.",
		.bodies = BODIES({ "application/json", "any", "A request or a notification." }),
		.answers = ANSWERS({ 200, "application/json", "any", "The response." }),
		.error_form = ERRORS_TEXT,
		.errors = "400 403 404 406 413 415 503",
	},
};
