#include "cmd/epitool/compare/verdict.h"

#include "cmd/epitool/compare/names.h"
#include "tests/check.h"
#include "tests/cmd/folded_profile.h"

TEST(packages)
{
	static const struct {
		const char *name, *package, *brief;
		bool own;
	} cases[] = {
		{ "main.main", "main", "main.main", true },
		{ "encoding/json.(*Decoder).Decode", "encoding/json", "json.(*Decoder).Decode", false },
		{ "github.com/a/b.F", "github.com/a/b", "b.F", true },
		{ "runtime.memmove", "runtime", "runtime.memmove", false },
		{ "leveldb::DBImpl::Write(int)", "leveldb", "leveldb::DBImpl::Write(int)", true },
		{ "void ns::f<int>(int)", "ns", "void ns::f<int>(int)", true },
		{ "std::vector<int>::push_back", "std", "std::vector<int>::push_back", false },
		{ "<alloc::vec::Vec<T> as Drop>::drop", "alloc", "<alloc::vec::Vec<T> as Drop>::drop",
			false },
		{ "java.util.HashMap.put", "java.util", "HashMap.put", false },
		{ "org/example/Main.run", "org/example", "Main.run", true },
		{ "head_append", "head", "head_append", true },
		{ "malloc", "malloc", "malloc", false },
		{ "__libc_start_main", "_", "__libc_start_main", false },
		{ "[kernel]", "[kernel]", "[kernel]", false },
		{ "", "", "", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str name = str_of(cases[i].name);

		CHECK_STR(name_package(name), cases[i].package);
		CHECK_STR(name_short(name), cases[i].brief);
		if (name_is_own(name) != cases[i].own)
			CHECK_FAIL("%s: own is %d", cases[i].name, !cases[i].own);
	}
}

static void check(const char *base, const char *next, double factor, const char *type,
	const char *unit, const char *want)
{
	const struct pprof *p[2];
	const uint32_t types[2] = { 0 };
	struct buf out = { 0 };
	struct verdict v;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	p[0] = folded_profile(&a, base, type, unit);
	p[1] = folded_profile(&a, next, type, unit);
	REQUIRE(p[0] && p[1]);
	CHECK_OK(verdict_make(&a, p, types, factor, &v, &err), &err);
	verdict_print(&v, &out);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
	arena_release(&a);
}

TEST(sentences)
{
	/* The time of memmove is that of who called it. */
	check("main.main;main.handle;main.parse 10\nmain.main;main.serve 90\n",
		"main.main;main.handle;main.parse 10\n"
		"main.main;main.handle;main.parse;runtime.memmove 100\nmain.main;main.serve 90\n",
		1, "cpu", "nanoseconds",
		"main.parse changed most: 10% -> 55% (5.5x, +100ns of CPU), called only by main.handle.\n");
	/* Most of what a caller's cum gained is another function's. */
	check("main.f 10\nmain.f;main.g 50\nmain.f;main.h 40\n",
		"main.f 40\nmain.f;main.g 79\nmain.f;main.h 69\n", 1, "samples", "count",
		"main.f itself changed most: 10% -> 21% (2.1x, +30).\n");
	check("main.a;main.f 50\nmain.b;main.f 30\nmain.c;main.f 20\nmain.x 100\n", "main.x 100\n", 1,
		"alloc_space", "bytes",
		"main.f changed most: 50% -> 0% (gone, -100B allocated), called by main.a, main.b and 1 "
		"more.\n");
	check("main.f 1024\nmain.x 10\n", "main.f 4096\nmain.x 10\n", 1, "inuse_space", "bytes",
		"main.f changed most: 1kB -> 4kB (4x, +3kB).\n");
	check("main.x 100\n", "main.x 100\nmain.f 5\n", 1, "samples", "count",
		"main.f changed most: 0% -> 4.8% (new, +5).\n");
	/* Nothing is the program's own. */
	check("runtime.a 1\nruntime.b 5\n", "runtime.a 9\nruntime.b 5\n", 1, "samples", "count",
		"runtime.a changed most: 17% -> 64% (3.9x, +8).\n");
	check("main.x 100\n", "main.x 100\n", 1, "cpu", "nanoseconds", "Both sides cost the same.\n");
	/* Twice as much of the same is the same share. */
	check("main.x 10\nmain.y 30\n", "main.x 20\nmain.y 60\n", 0.5, "cpu", "nanoseconds",
		"Both sides cost the same.\n");
}
