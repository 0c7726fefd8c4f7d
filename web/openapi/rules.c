/* Rules, alerts, and recorded numbers. */
#include "web/openapi/operations.h"
#include "web/openapi/params.h"

#define EXPOSITION "text/plain; version=0.0.4"
#define ELSEWHERE \
	"Every query node answers what one of them evaluates. A warning says so if that is older " \
	"than " \
	"15 s, or cannot be had."

const struct operation rule_operations[RULE_OPERATIONS] = {
	[OP_RULES] = {
		.id = "rules",
		.summary = "List groups of rules",
		.description = ELSEWHERE,
		.params = PARAMS(
			{ "type", PARAM_STRING, 0, "alert|record", NULL, "Only rules of this kind.", NULL },
			{ "rule_name[]", PARAM_STRING, PARAM_REPEATED, NULL, NULL, "Only these rules.", NULL },
			{ "rule_group[]", PARAM_STRING, PARAM_REPEATED, NULL, NULL, "Only these groups.",
				NULL },
			{ "file[]", PARAM_STRING, PARAM_REPEATED, NULL, NULL, "Only groups of these files.",
				NULL },
			PARAM_MATCH("Rules whose labels, as the file has them, fit one of these."),
			{ "exclude_alerts", PARAM_BOOL, 0, NULL, "false", "Leaves out the rules' alerts.",
				NULL },
			{ "group_limit", PARAM_UINT, 0, NULL, "0", "At most so many groups; 0: all.", NULL },
			{ "group_next_token", PARAM_STRING, 0, NULL, NULL,
				"`groupNextToken` of the answer before; needs `group_limit`.", NULL }),
		.answers = ANSWER("Rules", NULL),
		.errors = "400 404 503",
	},
	[OP_SAVED] = {
		.id = "savedRules",
		.summary = "List groups of rules that users saved",
		.description = "`enabled` says whether users can save rules on this server, `why` why "
					   "not, `mayChange` whether this user may.",
		.answers = ANSWER("SavedRules", NULL),
		.errors = "503",
	},
	[OP_SAVED_POST] = {
		.id = "saveRules",
		.summary = "Save a group of rules, which runs from then on",
		.description = "Needs `--web.enable-rules`. The body is a rule file with one group. Once "
					   "this answers, the group is on the disk and runs. 409: a group of this "
					   "name is saved already, or a rule file has a rule of the same name and "
					   "labels. In a cluster, where several servers evaluate rules, 403.",
		.params = PARAMS({ "replace", PARAM_BOOL, 0, NULL, "false",
			"A group of this name that is saved already is replaced.", NULL }),
		.bodies = BODIES({ "application/yaml", NULL, "One group of rules; 1 MiB at most." },
			{ "application/json", NULL, "The same in JSON." }),
		.answers = ANSWER("SavedChange", NULL),
		.errors = "400 403 409 413 422 503",
	},
	[OP_SAVED_DELETE] = {
		.id = "deleteSavedRules",
		.summary = "Delete a group of rules that was saved",
		.description = "Needs `--web.enable-rules`.",
		.params = PARAMS({ "group", PARAM_STRING, PARAM_REQUIRED, NULL, NULL,
			"Name of the group.", "ShopCostsMore" }),
		.answers = ANSWER("SavedChange", NULL),
		.errors = "400 403 404 503",
	},
	[OP_SAVED_HISTORY] = {
		.id = "savedRulesHistory",
		.summary = "List versions of the saved rules before the one in force",
		.description = "The newest first, 20 at most.",
		.answers = ANSWER("SavedHistory", NULL),
		.errors = "503",
	},
	[OP_SAVED_UNDO] = {
		.id = "undoSavedRules",
		.summary = "Restore a version of the saved rules",
		.description = "Needs `--web.enable-rules`. It becomes a new version, so an undo can be "
					   "undone.",
		.params = PARAMS({ "version", PARAM_UINT, 0, NULL, "the one before the last change",
			"Number of the version.", NULL }),
		.answers = ANSWER("SavedChange", NULL),
		.errors = "400 403 404 503",
	},
	[OP_ALERTS] = {
		.id = "alerts",
		.summary = "List alerts that are pending or firing",
		.description = ELSEWHERE,
		.answers = ANSWER("Alerts", NULL),
		.errors = "503",
	},
	[OP_ALERTMANAGERS] = {
		.id = "alertmanagers",
		.summary = "List Alertmanagers that get the alerts",
		.answers = ANSWER("Alertmanagers", NULL),
		.errors = "503",
	},
	[OP_FEDERATE] = {
		.id = "federate",
		.summary = "Return the latest number of each series, for another Prometheus",
		.description = "Series with a number within the lookback. Names that are no words are in "
					   "quotes if `Accept` has `escaping=allow-utf-8`, else they have `_`.",
		.params = PARAMS({ "match[]", PARAM_SELECTOR, PARAM_REPEATED, NULL, NULL,
			"Series that one of them selects; none: no series.", "up" }),
		.answers = ANSWERS({ 200, EXPOSITION, NULL, "Prometheus's text format." }),
		.error_form = ERRORS_TEXT,
		.errors = "400 422 499 503",
	},
	[OP_RECORDED] = {
		.id = "recordedMetrics",
		.summary = "Return the latest numbers of recording rules, for a Prometheus",
		.description = "As `/federate` for all that recording rules record as numbers, without "
					   "times.",
		.answers = ANSWERS({ 200, EXPOSITION, NULL, "Prometheus's text format." }),
		.error_form = ERRORS_TEXT,
		.errors = "422 499 503",
	},
};
