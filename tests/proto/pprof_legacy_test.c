/*
 * Formats before protobuf: each is refused by its name. `go tool pprof` reads those that it
 * knows, which proves that the bodies are of these formats.
 */
#include "proto/pprof_legacy.h"

#include "proto/pprof.h"
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

TEST(each_is_refused_by_its_name)
{
	char want[128];

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		const char *name = pprof_legacy(bodies[i].body);
		struct pprof *p = NULL;
		struct arena a;
		struct err err;
		enum err_code rc;

		arena_init(&a, 0);
		CHECK_STR(str_of(name ? name : "-"), bodies[i].name ? bodies[i].name : "-");
		rc = pprof_decode(&a, bodies[i].body, &pprof_limits_default, &p, &err);
		CHECK_INT(rc, bodies[i].name ? ERR_UNSUPPORTED : ERR_INVALID);
		if (bodies[i].name) {
			snprintf(want, sizeof(want), "a legacy %s is not supported: only pprof's protobuf is",
				bodies[i].name);
			CHECK_STR(str_of(err.msg), want);
		}
		arena_release(&a);
	}
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
