#include "proto/report/pprof_options.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/quote.h"

#define NUMBER_CHARS_MAX 63u

const struct pprof_options pprof_options_default = {
	.trim = true, .edgefraction = 0.001, .divide_by = 1, .unit = { "minimum", 7 }
};

#define AT(field) offsetof(struct pprof_options, field)

/* clang-format off */
const struct pprof_option pprof_option_rows[] = {
	{ "nodecount", PPROF_OPTION_COUNT, AT(nodecount), NULL, "At most so many rows; 0: all." },
	{ "nodefraction", PPROF_OPTION_SHARE, AT(nodefraction), NULL,
	  "Drops rows whose cum is below this share of the total; pprof's own default is 0.005." },
	{ "edgefraction", PPROF_OPTION_SHARE, AT(edgefraction), NULL,
	  "Calls below this share of the total do not count for the mark `(inline)`." },
	{ "trim", PPROF_OPTION_BOOL, AT(trim), NULL,
	  "`false`: `nodecount`, `nodefraction` and `edgefraction` are 0." },
	{ "sort", PPROF_OPTION_CHOICE, AT(sort), "flat|cum", "Which cost rows are sorted by." },
	{ "granularity", PPROF_OPTION_CHOICE, AT(granularity),
	  "functions|filefunctions|files|lines|addresses", "What a row is." },
	{ "noinlines", PPROF_OPTION_BOOL, AT(noinlines), NULL,
	  "Costs of inlined functions count for the function that they were inlined into." },
	{ "unit", PPROF_OPTION_TEXT, AT(unit), NULL,
	  "Unit of the costs: `ms`, `MB`; `minimum` is one for all rows, `auto` one for each." },
	{ "divide_by", PPROF_OPTION_DIVISOR, AT(divide_by), NULL, "Costs are shown divided by this." },
	{ "relative_percentages", PPROF_OPTION_BOOL, AT(relative_percentages), NULL,
	  "Percentages are of what the query's filters left." },
	{ "drop_negative", PPROF_OPTION_BOOL, AT(drop_negative), NULL,
	  "Leaves out rows whose cost is below 0." },
	{ "compact_labels", PPROF_OPTION_BOOL, AT(compact_labels), NULL,
	  "Leaves out the lines about the profile above the table." },
	{ "showcolumns", PPROF_OPTION_BOOL, AT(showcolumns), NULL,
	  "With `granularity=lines`: columns too." },
	{ "tagroot", PPROF_OPTION_TEXT, AT(tagroot), NULL,
	  "Values of these labels of samples, by comma, become frames at the root." },
	{ "tagleaf", PPROF_OPTION_TEXT, AT(tagleaf), NULL,
	  "Values of these labels of samples, by comma, become frames at the leaf." },
	{ "trim_path", PPROF_OPTION_TEXT, AT(trim_path), NULL,
	  "These beginnings, by colon, are cut off paths of files." },
	{ "source_path", PPROF_OPTION_TEXT, AT(source_path), NULL,
	  "Without `trim_path`: paths are cut behind the last folder of one of these, by colon." },
};
/* clang-format on */
const size_t pprof_option_rows_n = sizeof(pprof_option_rows) / sizeof(pprof_option_rows[0]);

static enum err_code pprof_option_refuse(
	const struct pprof_option *row, const char *what, struct str value, struct err *err)
{
	return err_set(err, ERR_INVALID, "%s: must be %s, not %s", row->name, what, QUOTED(value));
}

static enum err_code pprof_option_read_bool(
	const struct pprof_option *row, struct str value, bool *out, struct err *err)
{
	static const char *const words[] = { "false", "true", "f", "t", "no", "yes", "n", "y", "0",
		"1" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_eq_nocase(value, str_of(words[i]))) {
			*out = i & 1;
			return ERR_OK;
		}
	return pprof_option_refuse(row, "true or false", value, err);
}

static bool pprof_option_read_number(struct str value, double *out)
{
	char text[NUMBER_CHARS_MAX + 1], *end;

	if (value.len == 0 || value.len > NUMBER_CHARS_MAX)
		return false;
	for (size_t i = 0; i < value.len; i++) /* no hexadecimal, no blanks, no words */
		if (!strchr("0123456789+-.eE", value.ptr[i]) || !value.ptr[i])
			return false;
	memcpy(text, value.ptr, value.len);
	text[value.len] = '\0';
	*out = strtod(text, &end);
	return end == text + value.len && isfinite(*out);
}

static enum err_code pprof_option_read_choice(
	const struct pprof_option *row, struct str value, uint32_t *out, struct err *err)
{
	const char *at = row->choices;
	uint32_t n = 0;

	for (;; n++) {
		size_t len = strcspn(at, "|");

		if (str_eq(value, (struct str){ at, len })) {
			*out = n;
			return ERR_OK;
		}
		if (!at[len])
			break;
		at += len + 1;
	}
	return err_set(
		err, ERR_INVALID, "%s: must be one of %s, not %s", row->name, row->choices, QUOTED(value));
}

enum err_code pprof_options_set(
	struct pprof_options *o, const struct pprof_option *row, struct str value, struct err *err)
{
	void *field = (char *)o + row->offset;
	double number;

	assert(row->offset < sizeof(*o));
	switch (row->kind) {
	case PPROF_OPTION_BOOL:
		return pprof_option_read_bool(row, value, field, err);
	case PPROF_OPTION_COUNT:
		return str_to_i64(value, field) ? ERR_OK :
										  pprof_option_refuse(row, "a whole number", value, err);
	case PPROF_OPTION_SHARE:
		if (!pprof_option_read_number(value, &number) || number < 0 || number > 1)
			return pprof_option_refuse(row, "a number from 0 to 1", value, err);
		*(double *)field = number;
		return ERR_OK;
	case PPROF_OPTION_DIVISOR:
		if (!pprof_option_read_number(value, &number) || number <= 0)
			return pprof_option_refuse(row, "a number above 0", value, err);
		*(double *)field = number;
		return ERR_OK;
	case PPROF_OPTION_TEXT:
		*(struct str *)field = value;
		return ERR_OK;
	case PPROF_OPTION_CHOICE:
		return pprof_option_read_choice(row, value, field, err);
	}
	return ERR_OK;
}
