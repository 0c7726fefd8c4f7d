#include "proto/kinds.h"

#include <assert.h>

static const char *const names[] = {
	[KIND_GAUGE] = "gauge",
	[KIND_DELTA] = "delta",
	[KIND_CUMULATIVE] = "cumulative",
};

const char *value_kind_name(enum value_kind kind)
{
	assert((size_t)kind < sizeof(names) / sizeof(names[0]));
	return names[kind];
}

bool value_kind_parse(struct str s, enum value_kind *out)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_is(s, names[i])) {
			*out = (enum value_kind)i;
			return true;
		}
	return false;
}

bool value_is_level(struct str profile, struct str type)
{
	static const char *const profiles[] = { "goroutine", "goroutines", "goroutineleak", "thread",
		"threads", "threadcreate" };
	static const char *const types[] = { "live", "live_bytes", "old_objects", "old_bytes" };

	for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
		if (str_is(profile, profiles[i]) || str_eq_nocase(type, str_of(profiles[i])))
			return true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (str_is(type, types[i]))
			return true;
	return str_has_prefix(type, STR("inuse_"));
}

static enum value_kind pprof_kind_of(
	const struct pprof *p, struct str name, struct str type, const struct kind_rules *rules)
{
	for (size_t i = 0; i < rules->overrides_n; i++)
		if (str_eq(rules->overrides[i].sample_type, type))
			return rules->overrides[i].kind;
	if ((rules->since_last || !rules->measured) && value_is_level(name, type))
		return KIND_GAUGE;
	if (rules->since_last)
		return KIND_DELTA;
	/* Go begins to count the duration when its writer first runs: on a busy machine at the end. */
	if (str_is(p->strings[p->period_type.type], "cpu") ||
		p->duration_nanos <= -KIND_DURATION_MIN_NS || p->duration_nanos >= KIND_DURATION_MIN_NS)
		return KIND_DELTA;
	if (str_has_prefix(type, STR("alloc_")) || str_is(name, "block") || str_is(name, "mutex"))
		return KIND_CUMULATIVE;
	return KIND_GAUGE;
}

void pprof_kinds(
	const struct pprof *p, struct str name, const struct kind_rules *rules, enum value_kind *kinds)
{
	static const struct kind_rules none = { 0 };

	for (uint32_t i = 0; i < p->types_n; i++)
		kinds[i] = pprof_kind_of(p, name, p->strings[p->types[i].type], rules ? rules : &none);
}
