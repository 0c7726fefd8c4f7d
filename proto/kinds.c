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

static enum value_kind kind_of(const struct pprof *p, struct str name, struct str type,
	const struct kind_override *overrides, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(overrides[i].sample_type, type))
			return overrides[i].kind;
	if (p->duration_nanos != 0)
		return KIND_DELTA;
	if (str_has_prefix(type, STR("alloc_")) || str_is(name, "block") || str_is(name, "mutex"))
		return KIND_CUMULATIVE;
	return KIND_GAUGE;
}

void pprof_kinds(const struct pprof *p, struct str name, const struct kind_override *overrides,
	size_t n, enum value_kind *kinds)
{
	for (uint32_t i = 0; i < p->types_n; i++)
		kinds[i] = kind_of(p, name, p->strings[p->types[i].type], overrides, n);
}
