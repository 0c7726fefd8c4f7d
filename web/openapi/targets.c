/* Targets, and those who push. */
#include "web/openapi/operations.h"
#include "web/openapi/params.h"

const struct operation target_operations[TARGET_OPERATIONS] = {
	[OP_TARGETS] = {
		.id = "targets",
		.summary = "List targets and their last scrape",
		.description = "Each profile of a process is a target. Values that may be keys are hidden. "
					   "A query node lists those of all shards, two minutes old at most.",
		.params = PARAMS({ "state", PARAM_STRING, 0, "active|dropped|any", "any",
							 "Which of both lists is filled.", NULL },
			{ "scrapePool", PARAM_STRING, 0, NULL, NULL, "Only of this job.", NULL },
			{ "health", PARAM_STRING, 0, "up|down|unknown", NULL,
				"Only active targets of this health.", NULL }),
		.answers = ANSWER("Targets", NULL),
		.errors = "400 503",
	},
	[OP_SCRAPE_POOLS] = {
		.id = "scrapePools",
		.summary = "List names of jobs",
		.answers = ANSWER("ScrapePools", NULL),
		.errors = "503",
	},
	[OP_RELABEL_STEPS] = {
		.id = "relabelSteps",
		.summary = "Show what each relabelling rule does to a target's labels",
		.params = PARAMS({ "scrapePool", PARAM_STRING, PARAM_REQUIRED, NULL, NULL,
							 "The job, as configured.", "demo" },
			{ "labels", PARAM_STRING, PARAM_REQUIRED, NULL, NULL,
				"Labels as discovered, a JSON object of strings.",
				"{\"__address__\":\"10.0.0.1:8080\"}" }),
		.answers = ANSWER("RelabelSteps", NULL),
		.errors = "400 404",
	},
	[OP_TARGETS_METADATA] = {
		.id = "targetsMetadata",
		.summary = "List units and kinds of the types of each target",
		.params = PARAMS({ "match_target", PARAM_SELECTOR, 0, NULL, NULL,
							 "Only targets with such labels.", NULL },
			{ "metric", PARAM_STRING, 0, NULL, NULL,
				"Only this profile (`process_cpu`) or type (`cpu`).", "cpu" },
			PARAM_LIMIT("processes")),
		.answers = ANSWER("[]TargetMetadata", "By the series of the last minutes."),
		.errors = "400 422 499 503",
	},
	[OP_TARGETS_PROFILE] = {
		.id = "profileTarget",
		.summary = "Profile a target now",
		.description = "The profile is stored as a scrape's. Answers once that is done.",
		.params = PARAMS({ "match[]", PARAM_SELECTOR, 0, NULL, NULL,
							 "The target's labels, in place of the three below.", NULL },
			{ "scrapePool", PARAM_STRING, 0, NULL, NULL, "The job.", "demo" },
			{ "scrapeUrl", PARAM_STRING, 0, NULL, NULL, "As `targets` shows it.", NULL },
			{ "scrapeUnixSocket", PARAM_STRING, 0, NULL, NULL,
				"As `targets` shows it, for targets behind a Unix socket.", NULL },
			{ "seconds", PARAM_UINT, 0, NULL, "the job's",
				"Length of a profile that takes time; 600 at most.", "1" },
			{ "format", PARAM_STRING, 0, "json|pprof", "json",
				"`pprof`: the profile itself.", NULL }),
		.answers = ANSWERS({ 200, NULL, "ProfiledTarget", "`json`." },
			{ 200, "application/octet-stream", NULL, "`pprof`." }),
		.errors = "400 404 409 422 499 503",
	},
	[OP_SENDERS] = {
		.id = "senders",
		.summary = "List who pushes profiles, and what of it is refused",
		.description = "A row for each address, user, path and job; 10,000 at most. A query node "
					   "lists those of all shards, up to a minute old. A restart keeps the list.",
		.answers = ANSWER("Senders", NULL),
		.errors = "503",
	},
};
