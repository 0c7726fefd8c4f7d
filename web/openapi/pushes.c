/* What senders push: profiles, symbols, files. */
#include "web/openapi/operations.h"
#include "web/openapi/params.h"

#define PUSH_ERRORS "400 409 413 415 422 429 503"
#define BYTES "application/octet-stream"

const struct operation ingest_operations[INGEST_OPERATIONS] = {
	[OP_INGEST] = {
		.id = "ingest",
		.summary = "Store a profile",
		.description =
			"Answers once the profile is durable. Every parameter that is not below is a label. "
			"A different profile of a series and time gets the next nanosecond; the same one "
			"again is stored once.",
		.params = PARAMS(
			{ "name", PARAM_STRING, 0, NULL, NULL,
				"Name of the profile, as `cpu` or `memory`. A recording of Java may leave it out: "
				"all its profiles are stored then.",
				"cpu" },
			{ "time", PARAM_TIME, 0, NULL, "the profile's end, else now", "Time of the profile.",
				NULL },
			{ "interval", PARAM_DURATION, 0, NULL,
				"the profile's duration, else the time since the series' last push",
				"How often a level is pushed; a day at most.", NULL },
			{ "cumulative", PARAM_BOOL, 0, NULL, "false",
				"Counters are sums since the process began.", NULL },
			{ "", PARAM_STRING, PARAM_PREFIX, NULL, NULL, "A label: `job=shop`.", "shop" }),
		.bodies = BODIES({ BYTES, NULL,
			"pprof, gzipped or not; JFR; stacks as text; pprof's formats before protobuf." }),
		.answers = ANSWER("Ingested", NULL),
		.errors = PUSH_ERRORS,
	},
	[OP_OTLP] = {
		.id = "otlpProfiles",
		.summary = "Store profiles of OpenTelemetry",
		.description = "OTLP over HTTP, also gzipped. Over gRPC it has an address of its own: "
					   "`--web.otlp-grpc-listen-address`.",
		.bodies = BODIES({ "application/x-protobuf", NULL, "ExportProfilesServiceRequest." },
			{ "application/json", "any", "The same as JSON." }),
		.answers = ANSWERS({ 200, "application/x-protobuf", NULL,
							   "`partial_success` counts what was refused for good." },
			{ 200, "application/json", "any", "The same as JSON." }),
		.error_form = ERRORS_TEXT,
		.errors = "400 409 413 415 429 503",
	},
	[OP_PYROSCOPE_INGEST] = {
		.id = "pyroscopeIngest",
		.summary = "Store a profile of Pyroscope's SDKs",
		.params = PARAMS({ "name", PARAM_STRING, PARAM_REQUIRED, NULL, NULL,
							 "Application and labels: `shop.cpu{region=eu}`.", "shop" },
			{ "from", PARAM_STRING, 0, NULL, NULL, "Begin, as Pyroscope's SDKs write it.", NULL },
			{ "until", PARAM_STRING, 0, NULL, "now", "End.", NULL },
			{ "format", PARAM_STRING, 0, NULL, "what the bytes are",
				"pprof, jfr, folded, trie, tree, lines, ...", NULL },
			{ "sampleRate", PARAM_UINT, 0, NULL, "100",
				"Samples a second of a profile that has stacks and counts alone.", NULL }),
		.bodies = BODIES({ BYTES, NULL, "The profile." },
			{ "multipart/form-data", "any", "Parts: the profile, its types, labels." }),
		.answers = ANSWERS({ 200, NULL, NULL, "Stored; the text may be a warning." }),
		.error_form = ERRORS_TEXT,
		.errors = PUSH_ERRORS,
	},
	[OP_PYROSCOPE_PUSH] = {
		.id = "pyroscopePush",
		.summary = "Store profiles of Pyroscope's SDKs and Alloy",
		.description = "A unary call of Connect.",
		.bodies = BODIES({ "application/proto", NULL, "PushRequest." },
			{ "application/json", "any", "The same as JSON." }),
		.answers = ANSWERS({ 200, "application/proto", NULL, "Empty." },
			{ 200, "application/json", "any", "An empty object." }),
		.error_form = ERRORS_CONNECT,
		.errors = "400 409 415 429 501 503 504",
	},
	[OP_ANNOTATIONS_POST] = {
		.id = "postAnnotation",
		.summary = "Mark a time: a deploy, an incident",
		.description =
			"Answers once the mark is durable. A JSON object, or parameters in a form or in the "
			"address. The mark is stored as a profile of type `annotation:events`, under its "
			"labels, and has the limits of pushed profiles. Versions need no mark: their first "
			"profiles are marks.",
		.params = PARAMS(
			{ "text", PARAM_STRING, 0, NULL, NULL, "What happened: 1 to 4096 bytes of UTF-8.",
				"deploy v41" },
			{ "time", PARAM_TIME, 0, NULL, "now", "When it began.", NULL },
			{ "end", PARAM_TIME, 0, NULL, NULL, "When it ended, or will end.", NULL },
			{ "label[]", PARAM_STRING, PARAM_REPEATED, NULL, NULL,
				"A label of the mark: `job=shop`. Without any, the mark is for all.",
				"job=shop" }),
		.bodies = BODIES({ "application/json", "PostedAnnotation",
							 "Instead of parameters; `text` is needed." },
			{ "application/x-www-form-urlencoded", "any", "The parameters." }),
		.answers = ANSWER("Annotation", "As it is stored."),
		.errors = "400 409 413 422 429 503",
	},
	[OP_SHARD_PROFILES] = {
		.id = "shardProfiles",
		.summary = "Store profiles that another shard got and this one keeps",
		.description =
			"Internal: the shards of a cluster call it, and no other program. `Authorization` has "
			"`Bearer` and a secret that the shards share in the bucket; users and tokens of the "
			"web configuration do not count. The form of both bodies may change from version to "
			"version. 404: this server is no shard that has joined others.",
		.bodies = BODIES({ BYTES, NULL, "Labels, times and pprof of up to 256 profiles." }),
		.answers = ANSWERS({ 200, BYTES, NULL, "What became of each profile." }),
		.error_form = ERRORS_TEXT,
		.errors = "400 403 404 413 429 503",
	},
};

const struct operation symbol_operations[SYMBOL_OPERATIONS] = {
	[OP_SYMBOLS] = {
		.id = "symbols",
		.summary = "List binaries of native code and their symbols",
		.description = "Those with most addresses without lines first, 1,000 at most.",
		.params = PARAMS({ "start", PARAM_TIME, 0, NULL, "an hour ago", "Begin of the window.",
							 NULL },
			{ "end", PARAM_TIME, 0, NULL, "now", "End of the window.", NULL },
			{ "id", PARAM_STRING, 0, NULL, NULL,
				"Only this build id, by what the store alone knows.", NULL }),
		.answers = ANSWER("Symbols", NULL),
		.errors = "400 422 499 503",
	},
	[OP_SYMBOLS_UPLOAD] = {
		.id = "uploadSymbols",
		.summary = "Store symbols: a file of native code",
		.description = "Answers once the file is durable, before its symbols are read.",
		.params = PARAMS({ "name", PARAM_STRING, 0, NULL, NULL, "Path of the file.", "libx.so" },
			{ "id", PARAM_STRING, 0, NULL, "the file's build id", "Build id.", NULL },
			{ "kind", PARAM_STRING, 0, "gnu|go|file", "gnu", "Kind of `id`.", NULL },
			{ "content", PARAM_STRING, 0, "full|no_text|stripped", "full",
				"What was left of the file.", NULL },
			{ "force", PARAM_BOOL, 0, NULL, "false",
				"Take the file also where as good symbols are stored.", NULL }),
		.bodies = BODIES({ BYTES, NULL,
			"An ELF file; or a bundle: the file, and behind it those with other parts of its "
			"debug data (split DWARF, dwz)." }),
		.answers = ANSWER("UploadedSymbols", NULL),
		.errors = "400 404 409 413 429 503",
	},
	[OP_SHOULD_INITIATE_UPLOAD] = {
		.id = "shouldInitiateUpload",
		.summary = "Say whether the symbols of a file are wanted, for Alloy",
		.description = "A unary call of Connect: debuginfo.v1alpha1 of Pyroscope.",
		.bodies = BODIES({ "application/proto", NULL, "ShouldInitiateUploadRequest." },
			{ "application/json", "any", "The same as JSON." }),
		.answers = ANSWERS({ 200, "application/proto", NULL, "ShouldInitiateUploadResponse." },
			{ 200, "application/json", "any", "The same as JSON." }),
		.error_form = ERRORS_CONNECT,
		.errors = "400 404 415 429 501 503",
	},
	[OP_UPLOAD] = {
		.id = "uploadAnnounced",
		.summary = "Store symbols of a file that was announced, for Alloy",
		.params = PARAMS({ "id", PARAM_STRING, PARAM_IN_PATH | PARAM_REQUIRED, NULL, NULL,
			"GNU build id of the file.", "abcdef0123456789" }),
		.bodies = BODIES({ BYTES, NULL, "An ELF file." }),
		.answers = ANSWERS({ 200, NULL, NULL, "The file is durable." }),
		.error_form = ERRORS_TEXT,
		.errors = "400 404 412 413 429 503",
	},
	[OP_UPLOAD_FINISHED] = {
		.id = "uploadFinished",
		.summary = "Say that an upload has ended, for Alloy",
		.description = "A unary call of Connect: debuginfo.v1alpha1 of Pyroscope.",
		.bodies = BODIES({ "application/proto", NULL, "UploadFinishedRequest." },
			{ "application/json", "any", "The same as JSON." }),
		.answers = ANSWERS({ 200, "application/proto", NULL, "UploadFinishedResponse." },
			{ 200, "application/json", "any", "The same as JSON." }),
		.error_form = ERRORS_CONNECT,
		.errors = "400 404 415 501 503",
	},
};

const struct operation file_operations[FILE_OPERATIONS] = {
	[OP_FILES_POST] = {
		.id = "lookAtFile",
		.summary = "Say what is in a profile's file, and keep it",
		.description = "Without `keep` nothing is stored. `keep` needs `--web.enable-files`. A "
					   "query shows a kept file by its id: `file(\"ID\")`. In a cluster every "
					   "member has the file once this answers; 503: the bucket does not answer.",
		.params = PARAMS({ "name", PARAM_STRING, 0, NULL, NULL, "Name of the file.", "cpu.pb.gz" },
			{ "keep", PARAM_DURATION, 0, NULL, NULL, "How long it is kept.", "7d" }),
		.bodies = BODIES({ BYTES, NULL, "A profile in any format; 16 MiB at most." }),
		.answers = ANSWER("FileContents", "`id`, `created` and `expires` if it is kept."),
		.errors = "400 404 413 422 503",
	},
	[OP_FILES_LIST] = {
		.id = "listFiles",
		.summary = "List files that are kept",
		.description = "Needs `--web.enable-admin-api`: whoever knows an id may read the file. "
					   "In a cluster these are the files of all members; while the bucket does "
					   "not answer, a warning says of when.",
		.answers = ANSWER("Files", NULL),
		.errors = "403 404 503",
	},
	[OP_FILES_GET] = {
		.id = "getFile",
		.summary = "Return a file that is kept, or what is in it",
		.params = PARAMS({ "id", PARAM_STRING, PARAM_IN_PATH | PARAM_REQUIRED, NULL, NULL,
							 "Of the answer that kept it.", "9f3c0a52d6f84b1e8a77c1d05e2b6f90" },
			{ "content", PARAM_BOOL, 0, NULL, "false", "The bytes of the file.", NULL }),
		.answers = ANSWERS({ 200, NULL, "FileContents", NULL },
			{ 200, BYTES, NULL, "With `content=true`." }),
		.errors = "400 404 422 503",
	},
	[OP_FILES_DELETE] = {
		.id = "deleteFile",
		.summary = "Remove a file that is kept",
		.description = "Needs `--web.enable-files`. In a cluster it is gone for all members.",
		.params = PARAMS({ "id", PARAM_STRING, PARAM_IN_PATH | PARAM_REQUIRED, NULL, NULL,
			"Of the answer that kept it.", "9f3c0a52d6f84b1e8a77c1d05e2b6f90" }),
		.answers = ANSWER("null", "It is gone."),
		.errors = "404 503",
	},
};
