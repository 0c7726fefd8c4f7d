/*
 * Options of the text report, under the names that `go tool pprof` has for them. The table is
 * walked by the API's parameters and by epitool's flags.
 *
 * Errors:    ERR_INVALID: "must be a number from 0 to 1, not \"x\""; the caller adds the name.
 * Ownership: texts point into what was given.
 * Threads:   values; the table is constant.
 * Source:    google/pprof, internal/driver: config.go, commands.go.
 */
#ifndef PROTO_REPORT_PPROF_OPTIONS_H
#define PROTO_REPORT_PPROF_OPTIONS_H

#include "base/str.h"

enum pprof_granularity {
	PPROF_FUNCTIONS,
	PPROF_FILEFUNCTIONS,
	PPROF_FILES,
	PPROF_LINES,
	PPROF_ADDRESSES,
};

struct pprof_options {
	uint32_t granularity; /* enum pprof_granularity */
	uint32_t sort; /* 0: by flat, 1: by cum */
	bool noinlines; /* of inlined frames only the outermost is kept, which has their costs */
	bool trim; /* false: nodecount, nodefraction and edgefraction are 0 */
	bool drop_negative; /* no rows with costs below 0 */
	bool relative_percentages; /* of what filters left */
	bool compact_labels; /* no lines about the profile itself */
	bool showcolumns; /* columns behind lines */
	int64_t nodecount; /* rows at most; 0 or less: all */
	double nodefraction; /* rows whose |cum| is less than so much of the total are dropped */
	double edgefraction; /* lighter calls give no mark "(inline)" */
	double divide_by; /* shown values are divided by it; above 0 */
	struct str unit; /* "minimum", "auto", or a unit; may hold any byte, as the texts below */
	struct str tagroot, tagleaf; /* keys of labels whose values become frames, by comma */
	struct str trim_path, source_path; /* beginnings of files' paths that are cut, by colon */
};

/* The tool's defaults, but for nodefraction, which is 0: all rows are there. */
extern const struct pprof_options pprof_options_default;

enum pprof_option_kind {
	PPROF_OPTION_BOOL,
	PPROF_OPTION_COUNT, /* int64_t */
	PPROF_OPTION_SHARE, /* double, 0 to 1 */
	PPROF_OPTION_DIVISOR, /* double, above 0 */
	PPROF_OPTION_TEXT, /* struct str */
	PPROF_OPTION_CHOICE, /* uint32_t: which of the choices */
};

struct pprof_option {
	const char *name;
	enum pprof_option_kind kind;
	size_t offset; /* in struct pprof_options */
	const char *choices; /* "flat|cum"; NULL: any */
	const char *fallback; /* what counts where it is left out; NULL: nothing */
	const char *help; /* one sentence */
};

/* The rows, of which other tables make theirs: X(name, kind, choices, fallback, help). */
/* clang-format off */
#define PPROF_OPTION_ROWS(X) \
	X(nodecount, COUNT, NULL, "0", "At most so many rows; 0: all.") \
	X(nodefraction, SHARE, NULL, "0", \
		"Drops rows whose cum is below this share of the total; pprof's own default is 0.005.") \
	X(edgefraction, SHARE, NULL, "0.001", \
		"Calls below this share of the total do not count for the mark (inline).") \
	X(trim, BOOL, NULL, "true", "false: nodecount, nodefraction and edgefraction are 0.") \
	X(sort, CHOICE, "flat|cum", "flat", "Cost that rows are sorted by: flat or cum.") \
	X(granularity, CHOICE, "functions|filefunctions|files|lines|addresses", "functions", \
		"What a row is: functions, filefunctions, files, lines or addresses.") \
	X(noinlines, BOOL, NULL, "false", \
		"Costs of inlined functions count for the function that they were inlined into.") \
	X(unit, TEXT, NULL, "minimum", \
		"Unit of the costs: ms, MB; minimum is one for all rows, auto one for each.") \
	X(divide_by, DIVISOR, NULL, "1", "Costs are shown divided by this.") \
	X(relative_percentages, BOOL, NULL, "false", \
		"Percentages are of what the query's filters left.") \
	X(drop_negative, BOOL, NULL, "false", "Leaves out rows whose cost is below 0.") \
	X(compact_labels, BOOL, NULL, "false", \
		"Leaves out the lines about the profile above the table.") \
	X(showcolumns, BOOL, NULL, "false", "With granularity=lines: columns too.") \
	X(tagroot, TEXT, NULL, NULL, \
		"Values of these labels of samples, by comma, become frames at the root.") \
	X(tagleaf, TEXT, NULL, NULL, \
		"Values of these labels of samples, by comma, become frames at the leaf.") \
	X(trim_path, TEXT, NULL, NULL, "These beginnings, by colon, are cut off paths of files.") \
	X(source_path, TEXT, NULL, NULL, \
		"Without trim_path: paths are cut behind the last folder of one of these, by colon.")
/* clang-format on */

#define PPROF_OPTION_COUNTED(name, kind, choices, fallback, help) +1
#define PPROF_OPTIONS (0 PPROF_OPTION_ROWS(PPROF_OPTION_COUNTED))
extern const struct pprof_option pprof_option_rows[PPROF_OPTIONS];

/* Sets the option of this row; true, t, yes, y and 1 are one, as in the tool, and their opposites.
 */
MUST_CHECK enum err_code pprof_options_set(
	struct pprof_options *o, const struct pprof_option *row, struct str value, struct err *err);

#endif
