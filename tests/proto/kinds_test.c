/* Which values add up over time. */

#include "base/clock.h"
#include "proto/kinds.h"
#include "tests/check.h"

#define TYPES_MAX 4u

struct made {
	struct arena arena;
	const struct pprof *profile;
};

/* types: names, separated by spaces. */
static bool make(struct made *m, const char *types, const char *period, int64_t duration_ns)
{
	struct pprof_builder *b;
	struct pprof *p;
	struct err err;

	arena_init(&m->arena, 0);
	if (pprof_builder_open(&m->arena, &b, &err))
		return false;
	for (const char *at = types; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		pprof_builder_type(b, (struct str){ at, n }, STR("count"));
		at += n;
	}
	pprof_builder_profile(b)->duration_nanos = duration_ns;
	pprof_builder_profile(b)->period_type.type = pprof_builder_string(b, str_of(period));
	if (pprof_builder_finish(b, &p, &err))
		return false;
	m->profile = p;
	return p->types_n <= TYPES_MAX;
}

static const struct kind_override overrides[] = {
	{ { "samples", 7 }, KIND_GAUGE },
	{ { "inuse_space", 11 }, KIND_CUMULATIVE },
};

#define D "delta "
#define G "gauge "
#define C "cumulative "

TEST(kinds)
{
	static const struct {
		const char *name, *types;
		int64_t duration_ns;
		bool measured;
		size_t overrides_n;
		const char *want;
		const char *period; /* NULL: none */
		bool since_last;
	} rows[] = {
		/* Go */
		{ "process_cpu", "samples cpu", 9 * NS_PER_S, true, 0, D D },
		{ "memory", "alloc_objects alloc_space inuse_objects inuse_space", 0, false, 0, C C G G },
		{ "block", "contentions delay", 0, false, 0, C C },
		{ "mutex", "contentions delay", 0, false, 0, C C },
		{ "goroutine", "goroutine", 0, false, 0, G },
		{ "goroutineleak", "goroutineleak", 0, false, 0, G },
		{ "", "goroutineleak", 60 * NS_PER_S, false, 0, G },
		{ "threadcreate", "threadcreate", 0, false, 0, G },
		/* its writer of profiles got no processor before the end */
		{ "process_cpu", "samples cpu", 0, true, 0, D D, "cpu" },
		{ "process_cpu", "samples cpu", 1000, false, 0, D D, "cpu" },
		{ "memory", "alloc_space inuse_space", 0, false, 0, C G, "space" },
		/* Go's answers to ?seconds=9 are differences */
		{ "memory", "alloc_objects alloc_space inuse_objects inuse_space", 9 * NS_PER_S, true, 0,
			D D D D },
		{ "goroutine", "goroutine", 9 * NS_PER_S, true, 0, D },
		{ "mutex", "contentions delay", 9 * NS_PER_S, true, 0, D D },
		/* levels in a file that has a duration for its other types */
		{ "", "cpu alloc_samples inuse_objects inuse_space", 60 * NS_PER_S, false, 0, D D G G },
		{ "goroutine", "count", 60 * NS_PER_S, false, 0, G },
		{ "goroutines", "goroutines", 60 * NS_PER_S, false, 0, G },
		{ "thread", "count", 60 * NS_PER_S, false, 0, G },
		{ "stacks", "Threads", 60 * NS_PER_S, false, 0, G },
		{ "stacks", "thread_time", 60 * NS_PER_S, false, 0, D },
		/* Java's, as a recording has them: of a file, or of stacks by name */
		{ "memory", "live live_bytes old_objects old_bytes", 60 * NS_PER_S, false, 0, G G G G },
		/* pypprof: all but CPU and wall time last a nanosecond */
		{ "goroutine", "sample THREADS", 1, false, 0, G G },
		{ "stacks", "sample THREADS", 1, false, 0, G G },
		{ "memory", "sample HEAP", 1, false, 0, G G },
		{ "wall", "sample WALL", 9 * NS_PER_S, true, 0, D D },
		{ "memory", "alloc_space space", 999999, false, 0, C G },
		{ "memory", "alloc_space space", 1000000, false, 0, D D },
		{ "memory", "space", -1000000, false, 0, D },
		/* the configuration's come first */
		{ "process_cpu", "samples cpu", 9 * NS_PER_S, true, 2, G D },
		{ "memory", "inuse_objects inuse_space", 0, false, 2, G C },
		{ "memory", "inuse_objects inuse_space", 9 * NS_PER_S, false, 2, G C },
		/* godeltaprof: the duration is the time that writing took, under any name */
		{ "memory", "alloc_objects alloc_space inuse_objects inuse_space", 0, false, 0, D D G G,
			NULL, true },
		{ "memory", "alloc_space inuse_space", 5 * NS_PER_MS, true, 0, D G, "space", true },
		{ "waits", "contentions delay", 200000, false, 0, D D, "contentions", true },
		{ "memory", "alloc_space inuse_space", 0, false, 2, D C, NULL, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct kind_rules rules = { overrides, rows[i].overrides_n, rows[i].measured,
			rows[i].since_last };
		enum value_kind kinds[TYPES_MAX];
		struct buf got = { 0 };
		struct made m;

		REQUIRE(make(&m, rows[i].types, rows[i].period ? rows[i].period : "", rows[i].duration_ns));
		pprof_kinds(m.profile, str_of(rows[i].name), &rules, kinds);
		for (uint32_t k = 0; k < m.profile->types_n; k++)
			buf_printf(&got, "%s ", value_kind_name(kinds[k]));
		if (!str_is(buf_str(&got), rows[i].want))
			CHECK_FAIL("row %zu, %s: " STR_FMT ", want %s", i, rows[i].types,
				STR_ARG(buf_str(&got)), rows[i].want);
		if (!rows[i].overrides_n && !rows[i].measured && !rows[i].since_last) {
			enum value_kind same[TYPES_MAX];

			pprof_kinds(m.profile, str_of(rows[i].name), NULL, same);
			CHECK(!memcmp(kinds, same, m.profile->types_n * sizeof(*kinds)));
		}
		buf_release(&got);
		arena_release(&m.arena);
	}
}
