#include "promql/syntax/type_names.h"

#include <assert.h>

#include "proto/report/pprof_unit.h"
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

/* What an alias also means: one type of a profile of another name. */
static const struct elsewhere {
	struct str alias, name, sample_type;
} elsewhere[] = {
	{ STR("cpu"), STR("wall"), STR("cpu") }, /* Node's SDKs: CPU time beside wall time */
	{ STR("cpu"), STR("itimer"), STR("itimer") }, /* async-profiler's OTLP: ticks */
	{ STR("cpu"), STR("ctimer"), STR("ctimer") },
};

/* Sample types of the profiles that are scraped by name; those of Go and of others. */
static const struct known_type {
	struct str name, sample_type, unit;
	bool is_level, is_default; /* _default: the name alone means it, whatever pprof's rule is */
} known[] = {
	{ STR("process_cpu"), STR("cpu"), STR("nanoseconds"), false, true },
	{ STR("process_cpu"), STR("samples"), STR("count"), false, false },
	{ STR("memory"), STR("alloc_objects"), STR("count"), false, false },
	{ STR("memory"), STR("alloc_space"), STR("bytes"), false, false },
	{ STR("memory"), STR("inuse_objects"), STR("count"), true, false },
	{ STR("memory"), STR("inuse_space"), STR("bytes"), true, true },
	{ STR("block"), STR("contentions"), STR("count"), false, false },
	{ STR("block"), STR("delay"), STR("nanoseconds"), false, true },
	{ STR("mutex"), STR("contentions"), STR("count"), false, false },
	{ STR("mutex"), STR("delay"), STR("nanoseconds"), false, true },
	{ STR("goroutine"), STR("goroutine"), STR("count"), true, false },
	{ STR("goroutine"), STR("goroutines"), STR("count"), true, false },
	{ STR("goroutineleak"), STR("goroutineleak"), STR("count"), true, false },
	{ STR("threadcreate"), STR("threadcreate"), STR("count"), true, false },
	{ STR("fgprof"), STR("samples"), STR("count"), false, false },
	{ STR("fgprof"), STR("time"), STR("nanoseconds"), false, false },
	{ STR("wall"), STR("samples"), STR("count"), false, false },
	{ STR("wall"), STR("wall"), STR("nanoseconds"), false, false },
};
/* clang-format on */

#define KNOWN_N (sizeof(known) / sizeof(known[0]))
#define ELSEWHERE_N (sizeof(elsewhere) / sizeof(elsewhere[0]))

static_assert(ELSEWHERE_N + 3 <= TYPE_PATTERN_NAMES_MAX, "as many names as the header says");

static struct str type_names_stored(struct str name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (str_eq(name, aliases[i].alias))
			return aliases[i].name;
	return name;
}

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
	*out = (struct type_pattern){
		.name = type_names_stored(parts[0]),
		.written = parts[0],
		.text = name,
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
	for (size_t i = 0; i < KNOWN_N; i++)
		if (str_eq(p->name, known[i].name) &&
			(p->parts == 1 || str_eq(p->sample_type, known[i].sample_type)))
			return true;
	return false;
}

bool type_pattern_meaning(const struct type_pattern *p, struct type_meaning *out)
{
	for (size_t i = 0; i < KNOWN_N; i++) {
		const struct known_type *t = &known[i];

		if (!str_eq(p->name, t->name) ||
			(p->parts == 1 ? !t->is_default : !str_eq(p->sample_type, t->sample_type)))
			continue;
		*out = (struct type_meaning){ .unit = t->unit, .is_level = t->is_level };
		return true;
	}
	return false;
}

static bool type_names_part_match(struct str pattern, struct str s)
{
	return pattern.len == 0 || str_eq(pattern, s);
}

bool type_pattern_is_whole(const struct type_pattern *p, struct str name)
{
	return p->parts > 1 && str_eq(name, p->text);
}

static bool type_names_means(const struct type_pattern *p, const struct elsewhere *e)
{
	return p->parts < 5 && str_eq(p->written, e->alias) &&
		type_names_part_match(p->sample_type, e->sample_type);
}

bool type_pattern_is_elsewhere(const struct type_pattern *p, struct str name)
{
	for (size_t i = 0; i < ELSEWHERE_N; i++)
		if (str_eq(elsewhere[i].name, name) && type_names_means(p, &elsewhere[i]))
			return true;
	return false;
}

static bool type_names_match_elsewhere(const struct type_pattern *p, const struct profile_type *t)
{
	for (size_t i = 0; i < ELSEWHERE_N; i++)
		if (str_eq(elsewhere[i].name, t->name) &&
			str_eq(elsewhere[i].sample_type, t->sample_type) &&
			type_names_part_match(p->sample_unit, t->sample_unit) &&
			type_names_means(p, &elsewhere[i]))
			return true;
	return false;
}

bool type_pattern_match(const struct type_pattern *p, const struct profile_type *t)
{
	if (type_pattern_is_whole(p, t->name) || type_names_match_elsewhere(p, t))
		return true;
	return (str_eq(p->name, t->name) || str_eq(p->written, t->name)) &&
		type_names_part_match(p->sample_type, t->sample_type) &&
		type_names_part_match(p->sample_unit, t->sample_unit) &&
		type_names_part_match(p->period_type, t->period_type) &&
		type_names_part_match(p->period_unit, t->period_unit) && (!p->delta_only || t->delta);
}

size_t type_pattern_names(const struct type_pattern *p, struct str out[TYPE_PATTERN_NAMES_MAX])
{
	size_t n = 0;

	out[n++] = p->name;
	if (!str_eq(p->written, p->name))
		out[n++] = p->written;
	if (p->parts > 1)
		out[n++] = p->text;
	for (size_t i = 0; i < ELSEWHERE_N; i++)
		if (type_names_means(p, &elsewhere[i]))
			out[n++] = elsewhere[i].name;
	return n;
}

static size_t type_names_find_known(const struct profile_type *types, size_t n)
{
	struct str name = type_names_stored(types[0].name);
	size_t i = 0, k = 0;

	while (i < KNOWN_N && !(known[i].is_default && str_eq(name, known[i].name)))
		i++;
	while (i < KNOWN_N && k < n &&
		!(str_eq(types[k].sample_type, known[i].sample_type) &&
			pprof_unit_fits(types[k].sample_unit, known[i].unit)))
		k++;
	return i < KNOWN_N ? k : n;
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
		for (found = 0; found < n && !str_eq(types[found].sample_type, default_sample_type);)
			found++;
	return found < n ? found : n - 1;
}

void type_short_name(const struct profile_type *t, struct str *name, struct str *sample_type)
{
	*name = str_eq(t->name, aliases[0].name) ? aliases[0].alias : t->name;
	*sample_type = t->sample_type;
	if (!t->name.len || str_eq(t->sample_type, t->name))
		*sample_type = (struct str){ 0 };
	for (size_t i = 0; i < KNOWN_N; i++)
		if (known[i].is_default && str_eq(t->name, known[i].name) &&
			str_eq(t->sample_type, known[i].sample_type))
			*sample_type = (struct str){ 0 };
}
