#include "proto/report/pprof_options.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/quote.h"

#define NUMBER_CHARS_MAX 63u

const struct pprof_options pprof_options_default = {
	.trim = true, .edgefraction = 0.001, .divide_by = 1, .unit = { "minimum", 7 }
};

#define ROW(name, kind, choices, fallback, help) \
	{ #name, PPROF_OPTION_##kind, offsetof(struct pprof_options, name), choices, fallback, help },

const struct pprof_option pprof_option_rows[PPROF_OPTIONS] = { PPROF_OPTION_ROWS(ROW) };

static enum err_code pprof_option_refuse(const char *what, struct str value, struct err *err)
{
	return err_set(err, ERR_INVALID, "must be %s, not %s", what, QUOTED(value));
}

static enum err_code pprof_option_read_bool(struct str value, bool *out, struct err *err)
{
	static const char *const words[] = { "false", "true", "f", "t", "no", "yes", "n", "y", "0",
		"1" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_eq_nocase(value, str_of(words[i]))) {
			*out = i & 1;
			return ERR_OK;
		}
	return pprof_option_refuse("true or false", value, err);
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
	return err_set(err, ERR_INVALID, "must be one of %s, not %s", row->choices, QUOTED(value));
}

enum err_code pprof_options_set(
	struct pprof_options *o, const struct pprof_option *row, struct str value, struct err *err)
{
	void *field = (char *)o + row->offset;
	double number;

	assert(row->offset < sizeof(*o));
	switch (row->kind) {
	case PPROF_OPTION_BOOL:
		return pprof_option_read_bool(value, field, err);
	case PPROF_OPTION_COUNT:
		return str_to_i64(value, field) ? ERR_OK :
										  pprof_option_refuse("a whole number", value, err);
	case PPROF_OPTION_SHARE:
		if (!pprof_option_read_number(value, &number) || number < 0 || number > 1)
			return pprof_option_refuse("a number from 0 to 1", value, err);
		*(double *)field = number;
		return ERR_OK;
	case PPROF_OPTION_DIVISOR:
		if (!pprof_option_read_number(value, &number) || number <= 0)
			return pprof_option_refuse("a number above 0", value, err);
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
