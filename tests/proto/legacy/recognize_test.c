/*
 * Formats before protobuf are told apart from others, and read or refused by name. `go tool pprof`
 * reads those that it knows, which proves that the bodies are of these formats.
 */
#include "proto/legacy/reader.h"
#include "tests/oracle.h"

#define LIT(s) \
	{ \
		s, sizeof(s) - 1 \
	}
#define Z4 "\0\0\0\0"
#define STACK32 \
	"\2\0\0\0" \
	"\1\0\0\0" \
	"\0\x10\0\0" \
	"\0\0\0\0" \
	"\1\0\0\0" \
	"\0\0\0\0"
#define MAPS "400000-401000 r-xp 00000000 00:00 1 /bin/x\n"

/* clang-format off */
static const struct {
	struct str body;
	const char *name; /* NULL: something else */
	bool read; /* by the tool */
} bodies[] = {
	/* 0, 3, 0, 10000, 0; a stack that was met twice; the end; mappings */
	{ LIT(Z4 "\3\0\0\0" Z4 "\x10\x27\0\0" Z4 STACK32 MAPS),
		"CPU profile of gperftools (binary)", true },
	{ LIT(Z4 "\0\0\0\3" Z4 "\0\0\x27\x10" Z4 "\0\0\0\2" "\0\0\0\1" "\0\0\x10\0" Z4 "\0\0\0\1" Z4
		MAPS), "CPU profile of gperftools (binary)", true },
	{ LIT(Z4 Z4 "\3\0\0\0" Z4 Z4 Z4 "\x10\x27\0\0" Z4 Z4 Z4
		"\2\0\0\0" Z4 "\1\0\0\0" Z4 "\0\x10\0\0" Z4 Z4 Z4 "\1\0\0\0" Z4 Z4 Z4 MAPS),
		"CPU profile of gperftools (binary)", true },
	{ LIT(Z4 Z4 Z4 "\0\0\0\3" Z4 Z4 Z4 "\0\0\x27\x10" Z4 Z4
		Z4 "\0\0\0\2" Z4 "\0\0\0\1" Z4 "\0\0\x10\0" Z4 Z4 Z4 "\0\0\0\1" Z4 Z4 MAPS),
		"CPU profile of gperftools (binary)", true },
	{ LIT(Z4 "\3\0\0\0" "\1\0\0\0" "\x10\x27\0\0" Z4 STACK32 "0x1000 a.b (c.java:1)\n"),
		"CPU profile of Java (binary)", true },
	{ LIT("heap profile: 1: 4096 [ 2: 8192] @ heapprofile\n"
		"1: 4096 [2: 8192] @ 0x1000 0x2000\nMAPPED_LIBRARIES:\n" MAPS),
		"heap profile (text)", true },
	{ LIT("heap profile: 1: 4096 [2: 8192] @ heap/1048576\n1: 4096 [2: 8192] @ 0x1000 0x2000\n"),
		"heap profile (text)", true },
	{ LIT("heap profile: 1: 4096 [ 1: 4096] @ growthz\n1: 4096 [1: 4096] @ 0x1000\n"),
		"heap profile (text)", true },
	{ LIT("heap_v2/524288\n  t*: 1: 4096 [0: 0]\n@ 0x1000 0x2000\n  t*: 1: 4096 [0: 0]\n"),
		"heap profile of jemalloc (text)", false },
	{ LIT("--- contentionz 1 ---\ncycles/second=1000\nsampling period=100\n"
		"100 1 @ 0x1000 0x2000\n--- Memory map: ---\n" MAPS), "contention profile (text)", true },
	{ LIT("--- mutex:\ncycles/second=1000\nsampling period=1\n100 1 @ 0x1000 0x2000\n"),
		"mutex profile (text)", true },
	{ LIT("--- contention:\ncycles/second=1000\n100 1 @ 0x1000 0x2000\n"),
		"contention profile (text)", true },
	{ LIT("--- heapz 1 ---\nformat = java\nresolution=bytes\n 1 4096 @ 0x1000\n"
		"0x1000 a.b (c.java:1)\n"), "heap profile of Java (text)", true },
	{ LIT("goroutine profile: total 2\n2 @ 0x1000 0x2000\n#\t0x1000\tmain.f+0x1\n"),
		"profile of counts (text)", true },
	{ LIT("\n# a comment\nthreadcreate profile: total 1\n1 @ 0x1000\n"),
		"profile of counts (text)", true },
	{ LIT("--- threadz 1 ---\n\n--- Thread 7f1 (name: main/12) stack: ---\n  0x1000\n"
		"--- Memory map: ---\n" MAPS), "thread profile (text)", true },
	{ LIT("--- Thread 7f1 (name: main/12) stack: ---\n  0x1000\n--- Memory map: ---\n" MAPS),
		"thread profile (text)", true },
	{ LIT("--- symbol\nbinary=/bin/x\n0x1000 f\n---\n--- profile\n"),
		"symbolized profile of gperftools", false },
	{ LIT(Z4 "\3\0\0\0" Z4 Z4 Z4 STACK32), NULL, false }, /* no period */
	{ LIT(Z4 "\4\0\0\0" Z4 "\x10\x27\0\0" Z4 STACK32), NULL, false },
	{ LIT(Z4 "\3\0\0\0" Z4 "\x10\x27\0\0" "\0\0\0"), NULL, false },
	{ LIT("<!DOCTYPE html>"), NULL, false },
	{ LIT("a b profile: total 2\n"), NULL, false },
	{ LIT("goroutine profile: total \n"), NULL, false },
	{ LIT("goroutine profile: total 2x\n"), NULL, false },
	{ LIT("#\n#\n"), NULL, false },
	{ LIT("\n"), NULL, false },
	{ LIT("what\nheap profile:"), NULL, false },
};
/* clang-format on */

TEST(each_is_read_or_refused_by_its_name)
{
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		const char *name = legacy_name(bodies[i].body);
		bool refused = name && (strstr(name, "Java") || strstr(name, "symbolized"));
		struct legacy_any any;
		struct arena a;
		struct err err, plain;
		struct pprof *p;
		enum err_code rc;

		arena_init(&a, 0);
		CHECK_STR(str_of(name ? name : "-"), bodies[i].name ? bodies[i].name : "-");
		CHECK_INT(pprof_decode(&a, bodies[i].body, &pprof_limits_default, &p, &plain), ERR_INVALID);
		rc = legacy_decode_any(&a, bodies[i].body, &pprof_limits_default, &any, &err);
		CHECK_INT(any.is_legacy, name != NULL);
		CHECK_INT(rc, refused ? ERR_UNSUPPORTED : name ? ERR_OK : ERR_INVALID);
		if (!name) {
			CHECK_STR(str_of(err.msg), plain.msg);
		} else if (refused) {
			CHECK(strstr(err.msg, " is not supported"));
		} else {
			CHECK_INT(any.profile->samples_n, 1);
			CHECK_INT(any.kinds != NULL, strstr(name, "CPU") != NULL);
		}
		arena_release(&a);
	}
}

/* What is damaged is not taken for something else. */
TEST(damage_is_told_of_the_format_it_is_in)
{
	static const struct {
		struct str body;
		const char *want;
	} rows[] = {
		{ LIT("heap profile: 1: 4096 [3: 4096\n"),
			"heap profile (text): its first line is damaged" },
		{ LIT("goroutine profile: total 2\n2 @ 0x10000000000000000\n"), "" },
		{ LIT("heap_v2/524288\n  t*: 1: 4096 [0: 0]\n@ 0x1000\n  x\n"), "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct legacy_any any;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		CHECK_INT(
			legacy_decode_any(&a, rows[i].body, &pprof_limits_default, &any, &err), ERR_INVALID);
		CHECK(any.is_legacy);
		if (rows[i].want[0])
			CHECK_STR(str_of(err.msg), rows[i].want);
		arena_release(&a);
	}
}

/* Names are in comments, so that nobody is asked. */
TEST(a_text_with_its_names)
{
	static const char text[] =
		"goroutine profile: total 2\n2 @ 0x1000 0x2000\n"
		"#\t0xfff\tmain.f+0x10\t/a.go:7\n#\t0x1fff\tmain.main+0x1\t/a.go:9\n";
	struct legacy_any any;
	struct arena a;
	struct err err;
	const struct pprof *p;

	arena_init(&a, 0);
	REQUIRE_OK(legacy_decode_any(&a, str_of(text), &pprof_limits_default, &any, &err), &err);
	p = any.profile;
	REQUIRE(p->functions_n >= 1);
	CHECK_STR(p->strings[p->functions[0].name], "main.f");
	CHECK_INT(p->lines[0].line, 7);
	arena_release(&a);
}

TEST(the_tool_reads_them)
{
	struct buf out = { 0 };

	REQUIRE(oracle_dir());
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		if (!bodies[i].read)
			continue;
		CHECK(oracle_write(bodies[i].body, oracle_dir(), "legacy"));
		if (!oracle_pprof(&out, "-raw", oracle_dir(), "legacy"))
			CHECK_FAIL("body %zu, %s: the tool does not read it", i, bodies[i].name);
	}
	buf_release(&out);
}
