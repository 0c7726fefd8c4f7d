#include "promql/syntax/type_names.h"

#include "tests/check.h"
#include "tsdb/db.h"

TEST(patterns)
{
	/* clang-format off */
	static const struct {
		const char *text, *want; /* parts, name/type/unit/period type/period unit, delta */
	} rows[] = {
		{ "cpu", "1 process_cpu////" },
		{ "heap", "1 memory////" },
		{ "goroutine", "1 goroutine////" },
		{ "cpu:samples", "2 process_cpu/samples///" },
		{ "process_cpu:samples", "2 process_cpu/samples///" },
		{ "heap:alloc_space:bytes", "3 memory/alloc_space/bytes//" },
		{ "a:b:c:d", NULL },
		{ "memory:inuse_space:bytes:space:bytes", "5 memory/inuse_space/bytes/space/bytes" },
		{ "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
		  "6 process_cpu/cpu/nanoseconds/cpu/nanoseconds delta" },
		{ "cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
		  "6 process_cpu/cpu/nanoseconds/cpu/nanoseconds delta" },
		{ "a:b:c:d:e:f", NULL }, { "a:b:c:d:e:delta:g", NULL }, { "a:b:c:d:e:", NULL },
		{ "", NULL }, { ":", NULL }, { "a:", NULL }, { ":a", NULL }, { "a::b", NULL },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct type_pattern p;
		struct buf b = { 0 };

		if (!type_pattern_parse(str_of(rows[i].text), &p)) {
			if (rows[i].want)
				CHECK_FAIL("`%s` is no pattern", rows[i].text);
			continue;
		}
		buf_printf(&b, "%u " STR_FMT "/" STR_FMT "/" STR_FMT "/" STR_FMT "/" STR_FMT "%s", p.parts,
			STR_ARG(p.name), STR_ARG(p.sample_type), STR_ARG(p.sample_unit), STR_ARG(p.period_type),
			STR_ARG(p.period_unit), p.delta_only ? " delta" : "");
		if (rows[i].want)
			CHECK_STR(buf_str(&b), rows[i].want);
		else
			CHECK_FAIL("`%s` is a pattern: " STR_FMT, rows[i].text, STR_ARG(buf_str(&b)));
		buf_release(&b);
	}
}

static struct profile_type type_of(
	const char *name, const char *sample, const char *unit, bool delta)
{
	return (struct profile_type){
		str_of(name), str_of(sample), str_of(unit), STR("cpu"), STR("nanoseconds"), delta };
}

TEST(matching)
{
	static const struct {
		const char *pattern;
		bool delta, other, samples; /* matches cpu delta, cpu without delta, samples delta */
	} rows[] = {
		{ "cpu", true, true, true },
		{ "cpu:cpu", true, true, false },
		{ "cpu:samples", false, false, true },
		{ "cpu:cpu:nanoseconds", true, true, false },
		{ "cpu:cpu:seconds", false, false, false },
		{ "process_cpu:cpu:nanoseconds:cpu:nanoseconds", true, true, false },
		{ "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", true, false, false },
		{ "process_cpu:cpu:nanoseconds:wall:nanoseconds", false, false, false },
		{ "process_cpu:cpu:nanoseconds:cpu:seconds", false, false, false },
		{ "memory", false, false, false },
	};
	struct profile_type delta = type_of("process_cpu", "cpu", "nanoseconds", true);
	struct profile_type other = type_of("process_cpu", "cpu", "nanoseconds", false);
	struct profile_type samples = type_of("process_cpu", "samples", "count", true);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct type_pattern p;

		REQUIRE(type_pattern_parse(str_of(rows[i].pattern), &p));
		if (type_pattern_match(&p, &delta) != rows[i].delta ||
			type_pattern_match(&p, &other) != rows[i].other ||
			type_pattern_match(&p, &samples) != rows[i].samples)
			CHECK_FAIL("%s matches other types than it should", rows[i].pattern);
	}
}

TEST(defaults)
{
	struct profile_type cpu[] = { type_of("process_cpu", "cpu", "nanoseconds", true),
		type_of("process_cpu", "samples", "count", true) };
	struct profile_type odd_cpu[] = { type_of("process_cpu", "cpu", "ticks", true),
		type_of("process_cpu", "samples", "count", true) };
	struct profile_type alias[] = { type_of("cpu", "cpu", "us", true),
		type_of("cpu", "samples", "count", true) };
	struct profile_type memory[] = { type_of("memory", "alloc_space", "bytes", true),
		type_of("memory", "inuse_objects", "count", false),
		type_of("memory", "inuse_space", "bytes", false),
		type_of("memory", "other", "count", false) };
	struct profile_type block[] = { type_of("block", "delay", "nanoseconds", true),
		type_of("block", "contentions", "count", true) };
	struct profile_type mine[] = { type_of("mine", "a", "count", true),
		type_of("mine", "b", "count", true), type_of("mine", "c", "count", true) };

	CHECK_INT(type_default(cpu, 2, STR("")), 0);
	CHECK_INT(type_default(cpu, 2, STR("samples")), 0);
	CHECK_INT(type_default(cpu + 1, 1, STR("")), 0);
	CHECK_INT(type_default(odd_cpu, 2, STR("")), 1);
	CHECK_INT(type_default(odd_cpu, 2, STR("cpu")), 0);
	CHECK_INT(type_default(alias, 2, STR("")), 0);
	CHECK_INT(type_default(memory, 4, STR("alloc_space")), 2);
	CHECK_INT(type_default(block, 2, STR("contentions")), 0);
	CHECK_INT(type_default(mine, 3, STR("")), 2);
	CHECK_INT(type_default(mine, 3, STR("b")), 1);
	CHECK_INT(type_default(mine, 3, STR("nonesuch")), 2);
}

TEST(names_of_a_pattern)
{
	static const struct {
		const char *pattern, *names; /* each with a blank behind it */
	} rows[] = {
		{ "goroutine", "goroutine " },
		{ "cpu", "process_cpu cpu wall itimer ctimer " },
		{ "cpu:cpu", "process_cpu cpu cpu:cpu wall " },
		{ "cpu:samples", "process_cpu cpu cpu:samples " },
		{ "process_cpu", "process_cpu " },
		{ "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
			"process_cpu process_cpu:cpu:nanoseconds:cpu:nanoseconds " },
		{ "heap:inuse_space", "memory heap heap:inuse_space " },
		{ "memory:inuse_space", "memory memory:inuse_space " },
	};
	struct profile_type named = type_of("cpu:samples", "ticks", "count", true);
	struct profile_type alias = type_of("cpu", "samples", "count", true);
	struct type_pattern p;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str names[TYPE_PATTERN_NAMES_MAX];
		struct buf b = { 0 };
		size_t n;

		REQUIRE(type_pattern_parse(str_of(rows[i].pattern), &p));
		n = type_pattern_names(&p, names);
		for (size_t k = 0; k < n; k++)
			buf_printf(&b, STR_FMT " ", STR_ARG(names[k]));
		CHECK_STR(buf_str(&b), rows[i].names);
		buf_release(&b);
	}
	REQUIRE(type_pattern_parse(STR("cpu:samples"), &p));
	CHECK(type_pattern_match(&p, &named));
	CHECK(type_pattern_match(&p, &alias));
	REQUIRE(type_pattern_parse(STR("cpu:cpu"), &p));
	CHECK(!type_pattern_match(&p, &named));
	CHECK(!type_pattern_match(&p, &alias));
}

TEST(cpu_time_under_other_names)
{
	static const struct {
		const char *pattern, *name, *sample_type;
		bool matches;
	} rows[] = {
		{ "cpu", "wall", "cpu", true },
		{ "cpu", "wall", "wall", false },
		{ "cpu", "wall", "samples", false },
		{ "cpu", "itimer", "itimer", true },
		{ "cpu", "ctimer", "ctimer", true },
		{ "cpu:cpu", "wall", "cpu", true },
		{ "cpu:cpu:nanoseconds", "wall", "cpu", true },
		{ "cpu:cpu:seconds", "wall", "cpu", false },
		{ "cpu:samples", "wall", "samples", false },
		{ "cpu:wall", "wall", "wall", false },
		{ "process_cpu", "wall", "cpu", false },
		{ "wall", "wall", "wall", true },
		{ "heap", "wall", "cpu", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct profile_type t = type_of(rows[i].name, rows[i].sample_type, "nanoseconds", true);
		struct type_pattern p;

		REQUIRE(type_pattern_parse(str_of(rows[i].pattern), &p));
		if (type_pattern_match(&p, &t) != rows[i].matches)
			CHECK_FAIL("%s and %s:%s", rows[i].pattern, rows[i].name, rows[i].sample_type);
	}
	struct type_pattern p;
	REQUIRE(type_pattern_parse(STR("cpu"), &p));
	CHECK(type_pattern_is_elsewhere(&p, STR("wall")));
	CHECK(!type_pattern_is_elsewhere(&p, STR("process_cpu")));
	CHECK(!type_pattern_is_elsewhere(&p, STR("cpu")));
}

TEST(meanings)
{
	static const struct {
		const char *pattern, *unit; /* NULL: not known */
		bool is_level;
	} rows[] = {
		{ "cpu", "nanoseconds", false },
		{ "process_cpu:samples", "count", false },
		{ "heap", "bytes", true },
		{ "memory:alloc_space", "bytes", false },
		{ "mutex", "nanoseconds", false },
		{ "goroutine", NULL, false }, /* pprof's rule decides */
		{ "goroutine:goroutine", "count", true },
		{ "goroutineleak:goroutineleak", "count", true },
		{ "mine", NULL, false },
		{ "memory:mine", NULL, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct type_meaning m;
		struct type_pattern p;
		bool known;

		REQUIRE(type_pattern_parse(str_of(rows[i].pattern), &p));
		known = type_pattern_meaning(&p, &m);
		CHECK_INT(known, rows[i].unit != NULL);
		if (!known || !rows[i].unit)
			continue;
		CHECK_STR(m.unit, rows[i].unit);
		CHECK_INT(m.is_level, rows[i].is_level);
	}
}

TEST(short_names)
{
	static const struct {
		const char *name, *sample_type, *want;
	} rows[] = {
		{ "process_cpu", "cpu", "cpu " },
		{ "process_cpu", "samples", "cpu samples" },
		{ "memory", "inuse_space", "memory " },
		{ "memory", "alloc_space", "memory alloc_space" },
		{ "mutex", "delay", "mutex " },
		{ "goroutine", "goroutine", "goroutine " },
		{ "mine", "delay", "mine delay" },
		{ "", "cpu", " " },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct profile_type t = type_of(rows[i].name, rows[i].sample_type, "count", false);
		struct str name, sample_type;
		struct buf b = { 0 };

		type_short_name(&t, &name, &sample_type);
		buf_printf(&b, STR_FMT " " STR_FMT, STR_ARG(name), STR_ARG(sample_type));
		CHECK_STR(buf_str(&b), rows[i].want);
		buf_release(&b);
	}
}
