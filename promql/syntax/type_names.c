#include "promql/syntax/type_names.h"

#include <assert.h>

#include "tsdb/symbols/profile_type.h"

#define PARTS_MAX 6

/* clang-format off */
/* Common names of profiles, and the names that they are stored under. */
static const struct {
	struct str alias, name;
} aliases[] = {
	{ STR("cpu"), STR("process_cpu") },
	{ STR("heap"), STR("memory") },
};

/* The column that a bare name means, if it is not pprof's own rule. An empty unit: any. */
static const struct {
	struct str name, sample_type, sample_unit;
} defaults[] = {
	{ STR("process_cpu"), STR("cpu"), STR("nanoseconds") },
	{ STR("memory"), STR("inuse_space"), STR("") },
	{ STR("block"), STR("delay"), STR("") },
	{ STR("mutex"), STR("delay"), STR("") },
};

/* Sample types of the profiles that are scraped by name; those of Go and of others. */
static const struct {
	struct str name;
	const char *sample_types[5];
} known[] = {
	{ STR("process_cpu"), { "cpu", "samples" } },
	{ STR("memory"), { "alloc_objects", "alloc_space", "inuse_objects", "inuse_space" } },
	{ STR("block"), { "contentions", "delay" } },
	{ STR("mutex"), { "contentions", "delay" } },
	{ STR("goroutine"), { "goroutine", "goroutines" } },
	{ STR("threadcreate"), { "threadcreate" } },
	{ STR("fgprof"), { "samples", "time" } },
	{ STR("wall"), { "samples", "wall" } },
};
/* clang-format on */

/* Number of parts, or 0: an empty one, or too many. */
static unsigned type_names_split(struct str s, struct str parts[PARTS_MAX])
{
	unsigned n = 0;
	const char *colon;

	for (;;) {
		colon = s.len ? memchr(s.ptr, ':', s.len) : NULL;
		if (n == PARTS_MAX || s.len == 0 || colon == s.ptr)
			return 0;
		parts[n] = s;
		if (!colon)
			return n + 1;
		parts[n].len = (size_t)(colon - s.ptr);
		s.len -= parts[n].len + 1;
		s.ptr = colon + 1;
		n++;
	}
}

bool type_pattern_parse(struct str name, struct type_pattern *out)
{
	struct str parts[PARTS_MAX] = { 0 };
	unsigned n = type_names_split(name, parts);

	if (n == 0 || n == 4 || (n == 6 && !str_is(parts[5], "delta")))
		return false;
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (str_eq(parts[0], aliases[i].alias))
			parts[0] = aliases[i].name;
	*out = (struct type_pattern){
		.name = parts[0],
		.sample_type = parts[1],
		.sample_unit = parts[2],
		.period_type = parts[3],
		.period_unit = parts[4],
		.delta_only = n == 6,
		.parts = n,
	};
	return true;
}

bool type_pattern_known(const struct type_pattern *p)
{
	if (p->parts >= 5)
		return true;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!str_eq(p->name, known[i].name))
			continue;
		for (const char *const *type = known[i].sample_types; *type; type++)
			if (p->parts == 1 || str_is(p->sample_type, *type))
				return true;
	}
	return false;
}

static bool type_names_part_match(struct str pattern, struct str s)
{
	return pattern.len == 0 || str_eq(pattern, s);
}

bool type_pattern_match(const struct type_pattern *p, const struct profile_type *t)
{
	return str_eq(p->name, t->name) && type_names_part_match(p->sample_type, t->sample_type) &&
		type_names_part_match(p->sample_unit, t->sample_unit) &&
		type_names_part_match(p->period_type, t->period_type) &&
		type_names_part_match(p->period_unit, t->period_unit) && (!p->delta_only || t->delta);
}

static size_t type_names_find_type(
	const struct profile_type *types, size_t n, struct str type, struct str unit)
{
	size_t i = 0;

	while (i < n &&
		!(str_eq(types[i].sample_type, type) && type_names_part_match(unit, types[i].sample_unit)))
		i++;
	return i;
}

static size_t type_names_find_known(const struct profile_type *types, size_t n)
{
	size_t found = n;

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]) && found == n; i++)
		if (str_eq(types[0].name, defaults[i].name))
			found = type_names_find_type(
				types, n, defaults[i].sample_type, defaults[i].sample_unit);
	return found;
}

bool type_default_known(const struct profile_type *types, size_t n)
{
	assert(n > 0);
	return type_names_find_known(types, n) < n;
}

size_t type_default(const struct profile_type *types, size_t n, struct str default_sample_type)
{
	size_t found = type_names_find_known(types, n);

	assert(n > 0);
	if (found == n && default_sample_type.len)
		found = type_names_find_type(types, n, default_sample_type, (struct str){ 0 });
	return found < n ? found : n - 1;
}

void type_short_name(const struct profile_type *t, struct str *name, struct str *sample_type)
{
	*name = str_eq(t->name, aliases[0].name) ? aliases[0].alias : t->name;
	*sample_type = t->sample_type;
	if (!t->name.len || str_eq(t->sample_type, t->name))
		*sample_type = (struct str){ 0 };
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		if (str_eq(t->name, defaults[i].name) && str_eq(t->sample_type, defaults[i].sample_type))
			*sample_type = (struct str){ 0 };
}
