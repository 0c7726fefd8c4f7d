#include "proto/report/pprof_unit.h"

#include <assert.h>
#include <stdio.h>

#include "proto/report/top_rows.h"

struct pprof_unit {
	const char *name;
	const char *aliases[4];
	double factor;
};

struct unit_family {
	const struct pprof_unit *units;
	size_t n;
	const char *default_name;
	double default_factor;
};

/* clang-format off */
static const struct pprof_unit bytes[] = {
	{ "B", { "b", "byte" }, 1 },
	{ "kB", { "kb", "kbyte", "kilobyte" }, 1024.0 },
	{ "MB", { "mb", "mbyte", "megabyte" }, 1048576.0 },
	{ "GB", { "gb", "gbyte", "gigabyte" }, 1073741824.0 },
	{ "TB", { "tb", "tbyte", "terabyte" }, 1099511627776.0 },
	{ "PB", { "pb", "pbyte", "petabyte" }, 1125899906842624.0 },
};

static const struct pprof_unit times[] = {
	{ "ns", { "ns", "nanosecond" }, 1 },
	{ "us", { "\xce\xbcs", "us", "microsecond" }, 1e3 },
	{ "ms", { "ms", "millisecond" }, 1e6 },
	{ "s", { "s", "sec", "second" }, 1e9 },
	{ "hrs", { "hour", "hr" }, 3600e9 },
};

static const struct pprof_unit gcus[] = {
	{ "n*GCU", { "nanogcu" }, 1e-9 },
	{ "u*GCU", { "microgcu" }, 1e-6 },
	{ "m*GCU", { "milligcu" }, 1e-3 },
	{ "GCU", { "gcu" }, 1 },
	{ "k*GCU", { "kilogcu" }, 1e3 },
	{ "M*GCU", { "megagcu" }, 1e6 },
	{ "G*GCU", { "gigagcu" }, 1e9 },
	{ "T*GCU", { "teragcu" }, 1e12 },
	{ "P*GCU", { "petagcu" }, 1e15 },
};

static const struct unit_family families[] = {
	{ bytes, sizeof(bytes) / sizeof(bytes[0]), "B", 1 },
	{ times, sizeof(times) / sizeof(times[0]), "s", 1e9 },
	{ gcus, sizeof(gcus) / sizeof(gcus[0]), "GCU", 1 },
};
/* clang-format on */

/* Ignores case, and a plural s of names longer than two letters. */
static const struct pprof_unit *unit_family_find(const struct unit_family *f, struct str name)
{
	if (name.len > 2 && (name.ptr[name.len - 1] == 's' || name.ptr[name.len - 1] == 'S'))
		name.len--;
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < 4 && f->units[i].aliases[k]; k++)
			if (str_eq_nocase(name, str_of(f->units[i].aliases[k])))
				return &f->units[i];
	return NULL;
}

static double unit_family_scale_auto(const struct unit_family *f, double value, struct str *unit)
{
	const struct pprof_unit *best = NULL;

	for (size_t i = 0; i < f->n; i++)
		if ((!best || f->units[i].factor >= best->factor) && value / f->units[i].factor >= 1)
			best = &f->units[i];
	*unit = str_of(best ? best->name : f->default_name);
	return value / (best ? best->factor : f->default_factor);
}

double pprof_unit_scale(int64_t value, struct str from, struct str to, struct str *unit)
{
	bool is_auto = str_is(to, "minimum") || str_is(to, "auto");
	const struct pprof_unit *source, *target;
	double v;

	assert(unit);
	if (value < 0 && value != INT64_MIN)
		return -pprof_unit_scale(-value, from, to, unit);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		source = unit_family_find(&families[i], from);
		if (!source)
			continue;
		v = (double)value * source->factor;
		if (is_auto)
			return unit_family_scale_auto(&families[i], v, unit);
		target = unit_family_find(&families[i], to);
		*unit = str_of(target ? target->name : families[i].default_name);
		return v / (target ? target->factor : families[i].default_factor);
	}
	*unit = is_auto || str_is(to, "count") || str_is(to, "sample") || str_is(to, "unit") ? STR("") :
																						   to;
	return (double)value;
}

void pprof_unit_print(struct buf *out, int64_t value, struct str from, struct str to)
{
	struct str unit;
	char text[64];
	int n = snprintf(text, sizeof(text), "%.2f", pprof_unit_scale(value, from, to, &unit));
	struct str s = { text, (size_t)n };

	if (str_has_suffix(s, STR(".00")))
		s.len -= 3;
	if (str_is(s, "0") || str_is(s, "-0")) {
		buf_add_char(out, '0');
		return;
	}
	buf_add_str(out, s);
	buf_add_str(out, unit);
}

void pprof_percent_print(struct buf *out, int64_t value, int64_t total)
{
	double ratio = top_percent(value, total);

	if (ratio >= 99.95 && ratio <= 100.05)
		buf_add_cstr(out, "  100%");
	else if (ratio >= 1)
		buf_printf(out, "%5.2f%%", ratio);
	else
		buf_printf(out, "%5.2g%%", ratio);
}
