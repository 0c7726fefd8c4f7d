#include "proto/report/pprof_unit.h"

#include <assert.h>
#include <stdio.h>

#include "proto/report/top_rows.h"

struct pprof_unit {
	const char *name; /* NULL: pprof does not know it */
	const char *words[3]; /* pprof's; the last one is the long one */
	const char *more[2];
	double factor;
	unsigned __int128 size; /* in the family's smallest unit */
};

struct unit_family {
	const struct pprof_unit *units;
	size_t n;
	const char *default_name;
	double default_factor;
};

#define TEN9 ((unsigned __int128)1000000000)

/* clang-format off */
static const struct pprof_unit bytes[] = {
	{ "B", { "b", "byte" }, { 0 }, 1, 1 },
	{ "kB", { "kb", "kbyte", "kilobyte" }, { "kib", "kibibyte" }, 0x1p10, 1 << 10 },
	{ "MB", { "mb", "mbyte", "megabyte" }, { "mib", "mebibyte" }, 0x1p20, 1 << 20 },
	{ "GB", { "gb", "gbyte", "gigabyte" }, { "gib", "gibibyte" }, 0x1p30, 1 << 30 },
	{ "TB", { "tb", "tbyte", "terabyte" }, { "tib", "tebibyte" }, 0x1p40, UINT64_C(1) << 40 },
	{ "PB", { "pb", "pbyte", "petabyte" }, { "pib", "pebibyte" }, 0x1p50, UINT64_C(1) << 50 },
};

static const struct pprof_unit times[] = {
	{ "ns", { "ns", "nanosecond" }, { "nsec" }, 1, 1 },
	{ "us", { "\xce\xbcs", "us", "microsecond" }, { "\xc2\xb5s", "usec" }, 1e3, 1000 },
	{ "ms", { "ms", "millisecond" }, { "msec" }, 1e6, 1000000 },
	{ "s", { "s", "sec", "second" }, { 0 }, 1e9, TEN9 },
	{ NULL, { 0 }, { "min", "minute" }, 60e9, 60 * TEN9 },
	{ "hrs", { "hr", "hour" }, { 0 }, 3600e9, 3600 * TEN9 },
};

static const struct pprof_unit gcus[] = {
	{ "n*GCU", { "nanogcu" }, { 0 }, 1e-9, 1 },
	{ "u*GCU", { "microgcu" }, { 0 }, 1e-6, 1000 },
	{ "m*GCU", { "milligcu" }, { 0 }, 1e-3, 1000000 },
	{ "GCU", { "gcu" }, { 0 }, 1, TEN9 },
	{ "k*GCU", { "kilogcu" }, { 0 }, 1e3, 1000 * TEN9 },
	{ "M*GCU", { "megagcu" }, { 0 }, 1e6, 1000000 * TEN9 },
	{ "G*GCU", { "gigagcu" }, { 0 }, 1e9, TEN9 * TEN9 },
	{ "T*GCU", { "teragcu" }, { 0 }, 1e12, 1000 * TEN9 * TEN9 },
	{ "P*GCU", { "petagcu" }, { 0 }, 1e15, 1000000 * TEN9 * TEN9 },
};

static const struct unit_family families[] = {
	{ bytes, sizeof(bytes) / sizeof(bytes[0]), "B", 1 },
	{ times, sizeof(times) / sizeof(times[0]), "s", 1e9 },
	{ gcus, sizeof(gcus) / sizeof(gcus[0]), "GCU", 1 },
};
/* clang-format on */

#define FAMILIES_N (sizeof(families) / sizeof(families[0]))

static bool pprof_unit_is_word(const char *const *words, size_t n, struct str name)
{
	for (size_t i = 0; i < n && words[i]; i++)
		if (str_eq_nocase(name, str_of(words[i])))
			return true;
	return false;
}

/* Without a plural s; short names have none. */
static struct str pprof_unit_singular(struct str name)
{
	if (name.len > 2 && (name.ptr[name.len - 1] == 's' || name.ptr[name.len - 1] == 'S'))
		name.len--;
	return name;
}

/* Ignores case, and a plural s of names longer than two letters. */
static const struct pprof_unit *unit_family_find(const struct unit_family *f, struct str name)
{
	name = pprof_unit_singular(name);
	for (size_t i = 0; i < f->n; i++)
		if (pprof_unit_is_word(f->units[i].words, 3, name))
			return &f->units[i];
	return NULL;
}

static double unit_family_scale_auto(const struct unit_family *f, double value, struct str *unit)
{
	const struct pprof_unit *best = NULL;

	for (size_t i = 0; i < f->n; i++)
		if (f->units[i].name && (!best || f->units[i].factor >= best->factor) &&
			value / f->units[i].factor >= 1)
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
	for (size_t i = 0; i < FAMILIES_N; i++) {
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

/* Its row, also by the words that pprof does not know, and its family; NULL: it has none. */
static const struct pprof_unit *pprof_unit_find(struct str unit, const struct unit_family **family)
{
	struct str singular = pprof_unit_singular(unit);

	for (size_t i = 0; i < FAMILIES_N; i++) {
		*family = &families[i];
		for (size_t k = 0; k < families[i].n; k++) {
			const struct pprof_unit *u = &families[i].units[k];

			if (pprof_unit_is_word(u->words, 3, singular) ||
				pprof_unit_is_word(u->words, 3, unit) || pprof_unit_is_word(u->more, 2, singular) ||
				pprof_unit_is_word(u->more, 2, unit))
				return u;
		}
	}
	*family = NULL;
	return NULL;
}

int64_t pprof_unit_ratio(struct str from, struct str to)
{
	const struct unit_family *of_from, *of_to;
	const struct pprof_unit *a, *b;

	if (str_eq(from, to)) /* so nearly always */
		return 1;
	a = pprof_unit_find(from, &of_from);
	b = pprof_unit_find(to, &of_to);
	if (!a || of_from != of_to || a->size % b->size || a->size / b->size > INT64_MAX)
		return 0;
	return (int64_t)(a->size / b->size);
}

bool pprof_unit_fits(struct str a, struct str b)
{
	return pprof_unit_ratio(a, b) || pprof_unit_ratio(b, a);
}

struct str pprof_unit_finer(struct str a, struct str b)
{
	int64_t ratio = pprof_unit_ratio(b, a);
	struct str singular = pprof_unit_singular(b);
	const struct unit_family *family;
	const struct pprof_unit *u;

	if (ratio > 1 || str_eq(a, b))
		return a;
	if (!ratio)
		return b;
	u = pprof_unit_find(b, &family);
	for (int i = 2; i > 0; i--)
		if (u->words[i])
			return str_is(singular, u->words[i]) && singular.len < b.len ? b : a;
	return a;
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
