/* Names of what is stored. */
#include "web/openapi/operations.h"
#include "web/openapi/params.h"

#define NAMES_ERRORS "400 422 499 503"

const struct operation metadata_operations[METADATA_OPERATIONS] = {
	[OP_SERIES] = {
		.id = "series",
		.summary = "List label sets of series",
		.params = PARAMS({ "match[]", PARAM_SELECTOR, PARAM_REPEATED | PARAM_REQUIRED, NULL, NULL,
							 "Series that one of them selects.", "cpu" },
			PARAMS_WINDOW, PARAM_LIMIT("series")),
		.answers = ANSWER("[]Labels", "`__name__` among the labels."),
		.errors = NAMES_ERRORS,
	},
	[OP_LABELS] = {
		.id = "labels",
		.summary = "List names of labels",
		.params = PARAMS(PARAM_MATCH("Only of these series."), PARAMS_WINDOW, PARAM_LIMIT("names")),
		.answers = ANSWER("[]string", "In order."),
		.errors = NAMES_ERRORS,
	},
	[OP_LABEL_VALUES] = {
		.id = "labelValues",
		.summary = "List values of a label",
		.params = PARAMS({ "name", PARAM_STRING, PARAM_IN_PATH | PARAM_REQUIRED, NULL, NULL,
							 "Of the label: any UTF-8, also as Prometheus 3 writes it into paths "
							 "(`U__host_2e_name`).",
							 "job" },
			PARAM_MATCH("Only of these series."), PARAMS_WINDOW, PARAM_LIMIT("values")),
		.answers = ANSWER("[]string", "In order."),
		.errors = NAMES_ERRORS,
	},
	[OP_LABEL_COUNTS] = {
		.id = "labelCounts",
		.summary = "Count series and values of labels",
		.description = "Most series first. Labels of samples are not counted.",
		.params = PARAMS(PARAM_MATCH("Only of these series."),
			{ "label", PARAM_STRING, 0, NULL, NULL, "Values of this label in place of all labels.",
				NULL },
			PARAMS_WINDOW, PARAM_LIMIT("labels or values")),
		.answers = ANSWER("[]LabelCount|[]ValueCount", "`ValueCount` with `label`."),
		.errors = NAMES_ERRORS,
	},
	[OP_PROFILE_TYPES] = {
		.id = "profileTypes",
		.summary = "List types of profiles that are stored",
		.params = PARAMS(PARAM_MATCH("Only of these series."), PARAMS_WINDOW, PARAM_LIMIT("types")),
		.answers = ANSWER("[]ProfileType", NULL),
		.errors = NAMES_ERRORS,
	},
	[OP_FUNCTIONS] = {
		.id = "functions",
		.summary = "List names of functions in the profiles",
		.description = "The names come from the symbols of the jobs that match, so a name may be "
					   "there that no profile of the window has.",
		.params = PARAMS(
			{ "prefix", PARAM_STRING, 0, NULL, NULL, "Names that begin so.", "main." },
			{ "substring", PARAM_STRING, 0, NULL, NULL,
				"Names that have this; case does not count.", NULL },
			PARAM_MATCH("Jobs of these series."), PARAMS_WINDOW, PARAM_LIMIT("names")),
		.answers = ANSWER("[]string", "In order."),
		.errors = NAMES_ERRORS,
	},
	[OP_METADATA] = {
		.id = "metadata",
		.summary = "List units and kinds of profile types, by name",
		.params = PARAMS({ "metric", PARAM_STRING, 0, NULL, NULL,
							 "Only this profile (`process_cpu`) or type (`cpu`).", "cpu" },
			PARAM_LIMIT("names"),
			{ "limit_per_metric", PARAM_UINT, 0, NULL, "0", "At most so many of each; 0: all.",
				NULL },
			PARAMS_WINDOW),
		.answers = ANSWER("{}[]TypeMetadata", "By the profile's name."),
		.errors = NAMES_ERRORS,
	},
	[OP_ANNOTATIONS] = {
		.id = "annotations",
		.summary = "List marks of time lines: deploys",
		.description =
			"Marks that were posted, and those of versions: where a version of a service (label "
			"`version`, `service_version` or `app_version`) has its first profile, after that of "
			"another version. A service is all series with the same `app`, `cluster`, "
			"`environment`, `job`, `namespace`, `service`, `service_name` and "
			"`service_namespace`. A mark is tested by the matchers about labels that it has: one "
			"of `{job=\"shop\"}` is listed for `{job=\"shop\", pod=\"x\"}`. Names of profiles "
			"do not count. Its begin says whether it is in the window.",
		.params = PARAMS(PARAM_MATCH("Only marks whose labels fit."), PARAMS_WINDOW,
			PARAM_LIMIT("marks")),
		.answers = ANSWER("[]Annotation", "By time."),
		.errors = NAMES_ERRORS,
	},
};
