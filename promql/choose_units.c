#include "promql/choose.h"

#define UNITS_SHOWN 8 /* in an error */

/* Columns of a selector must fit together: one unit, and all of them levels or none. */

static enum err_code unit_fault(
	struct eval *ev, const struct expr *e, const struct str *units, size_t n, struct err *err)
{
	static const char *const numbers[UNITS_SHOWN + 1] = { "", "", "two", "three", "four", "five",
		"six", "seven", "eight" };
	struct buf list = { 0 }, text = { 0 };
	enum err_code rc;

	for (size_t i = 0; i < n; i++)
		buf_printf(&list, "%s" STR_FMT,
			i == 0         ? "" :
				i + 1 == n ? " and " :
							 ", ",
			STR_ARG(units[i]));
	expr_print(&text, e);
	rc = eval_fault(ev, e, err, ERR_INVALID, STR_FMT " selects %s units: " STR_FMT,
		STR_ARG(buf_str(&text)), numbers[n], STR_ARG(buf_str(&list)));
	buf_release(&list);
	buf_release(&text);
	return rc;
}

enum err_code choose_check_types(
	struct eval *ev, const struct expr *e, const struct chosen *c, size_t n, struct err *err)
{
	struct str units[UNITS_SHOWN];
	struct buf a = { 0 }, b = { 0 };
	size_t units_n = 0, k;
	enum err_code rc;

	for (size_t i = 0; i < n && units_n < UNITS_SHOWN; i++) {
		for (k = 0; k < units_n && !str_eq(units[k], c[i].type.sample_unit); k++)
			;
		if (k == units_n)
			units[units_n++] = c[i].type.sample_unit;
	}
	if (units_n > 1)
		return unit_fault(ev, e, units, units_n, err);
	for (size_t i = 1; i < n; i++) {
		if (c[i].type.delta == c[0].type.delta)
			continue;
		profile_type_print(&a, &c[0].type);
		profile_type_print(&b, &c[i].type);
		rc = eval_fault(ev, e, err, ERR_INVALID,
			"this selects levels and amounts: " STR_FMT " and " STR_FMT, STR_ARG(buf_str(&a)),
			STR_ARG(buf_str(&b)));
		buf_release(&a);
		buf_release(&b);
		return rc;
	}
	return ERR_OK;
}
