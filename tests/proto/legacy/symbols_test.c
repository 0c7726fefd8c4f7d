/* Requests for names, answers, and profiles with names. */
#include "proto/legacy/symbols.h"

#include "base/fs.h"
#include "proto/legacy/legacy.h"
#include "tests/check.h"

static const char body[] = "goroutine profile: total 3\n"
						   "2 @ 0x401001 0x402001\n1 @ 0x401001 0x403001 0x7fff00000011\n"
						   "--- Memory map: ---\n400000-500000 r-xp 0 00:00 1 /bin/x\n"
						   "7fff00000000-7fff00001000 r-xp 0 00:00 0 [vdso]\n";

static void frames(const struct pprof *p, struct buf *out)
{
	buf_clear(out);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		buf_add_cstr(out, i ? " |" : "");
		for (uint32_t k = 0; k < p->samples[i].location_n; k++) {
			const struct pprof_location *l =
				&p->locations[p->location_ids[p->samples[i].location_first + k]];
			const struct pprof_function *f = l->line_n ?
				&p->functions[p->lines[l->line_first].function] :
				NULL;

			CHECK(l->line_n <= 1);
			if (f)
				buf_printf(out, " " STR_FMT, STR_ARG(p->strings[f->name]));
			else
				buf_printf(out, " %" PRIx64, l->address);
		}
	}
}

TEST(names_of_a_profile)
{
	struct symbols s = { 0 };
	struct buf out = { 0 };
	const struct pprof *named, *again;
	struct pprof *p;
	uint64_t *addresses;
	struct arena a;
	struct err err;
	uint32_t n;

	arena_init(&a, 0);
	REQUIRE_OK(legacy_decode(&a, str_of(body), &pprof_limits_default, &p, &err), &err);
	REQUIRE_OK(symbols_wanted(&a, p, &addresses, &n, &err), &err);
	symbols_request(addresses, n, &out);
	CHECK_STR(buf_str(&out), "0x401000+0x402000+0x403000");
	buf_clear(&out);
	symbols_request(addresses + 1, 1, &out);
	CHECK_STR(buf_str(&out), "0x402000");
	buf_clear(&out);
	symbols_request((const uint64_t[]){ 0, UINT64_MAX }, 2, &out);
	CHECK_STR(buf_str(&out), "0x0+0xffffffffffffffff");

	CHECK_OK(symbols_apply(&a, p, &s, &named, &err), &err);
	CHECK(named == p);
	CHECK_OK(symbols_read(&a, STR("num_symbols: 1\n0x403000 first\n0x9 other\n"), &s, &err), &err);
	CHECK_OK(symbols_read(&a,
		STR("0x0000000000401000\tstd::map<int, int>::find(int const&) const\r\n"
					 "0x403000\tmain.f\n0x402000 ??\nno address\n0x402000\n0x402000 cut o"),
			&s, &err),
		&err);
	CHECK_INT(s.n, 4);
	symbols_sort(&s);
	CHECK_INT(s.n, 3);
	REQUIRE_OK(symbols_apply(&a, p, &s, &named, &err), &err);
	frames(named, &out);
	CHECK_STR(buf_str(&out),
		" std::map<int, int>::find(int const&) const 402000 |"
		" std::map<int, int>::find(int const&) const main.f 7fff00000010");
	CHECK_INT(named->functions_n, 2);
	CHECK(named->mappings[0].has_functions && !named->mappings[1].has_functions);
	CHECK(!p->functions_n && !p->mappings[0].has_functions);

	/* What has a name keeps it; the rest is still wanted. */
	REQUIRE_OK(symbols_wanted(&a, named, &addresses, &n, &err), &err);
	CHECK_INT(n, 1);
	CHECK_OK(symbols_read(&a, STR("0x402000 main.f\n0x403000 late\n"), &s, &err), &err);
	symbols_sort(&s);
	REQUIRE_OK(symbols_apply(&a, named, &s, &again, &err), &err);
	frames(again, &out);
	CHECK_STR(buf_str(&out),
		" std::map<int, int>::find(int const&) const main.f |"
		" std::map<int, int>::find(int const&) const main.f 7fff00000010");
	buf_clear(&out);
	CHECK_OK(pprof_encode(again, &out, &err), &err);
	REQUIRE_OK(pprof_decode(&a, buf_str(&out), &pprof_limits_default, &p, &err), &err);
	CHECK_INT(p->functions_n, 3);
	arena_release(&a);
	buf_release(&out);
}

TEST(one_name_is_one_function)
{
	struct symbols s = { 0 };
	const struct pprof *named;
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(legacy_decode(&a, str_of(body), &pprof_limits_default, &p, &err), &err);
	CHECK_OK(symbols_read(&a, STR("0x401000 f\n0x402000 f\n0x403000 g\n"), &s, &err), &err);
	symbols_sort(&s);
	REQUIRE_OK(symbols_apply(&a, p, &s, &named, &err), &err);
	CHECK_INT(named->functions_n, 2);
	CHECK_INT(named->lines_n, 3);
	arena_release(&a);
}

/* Go's own texts: the frames that they name, each with its file and line. */
TEST(names_in_comments)
{
	static const struct {
		const char *file, *want; /* the first stack */
	} files[] = {
		{ "go_mutex.txt",
			" sync.(*Mutex).Unlock main.inlined main.contend main.main.gowrap1 4844a0" },
		{ "go_goroutine.txt", " 47de8d 41491b 414516 main.main.func1 4844a0" },
		{ "go_block.txt",
			" sync.(*Mutex).Lock main.inlined main.contend main.main.gowrap1 4844a0" },
		{ "go_heap.txt",
			" 47c5cb 47f568 runtime/pprof.writeHeapInternal runtime/pprof.writeHeap"
			" runtime/pprof.(*Profile).WriteTo main.main runtime.main 4844a0" },
	};
	struct buf text = { 0 }, out = { 0 };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const struct pprof *named;
		struct symbols s = { 0 };
		struct pprof *p;
		struct arena a;
		struct err err;
		char path[128], *end;

		arena_init(&a, 0);
		snprintf(path, sizeof(path), "tests/proto/legacy/testdata/%s", files[i].file);
		buf_clear(&text);
		REQUIRE_OK(fs_read_file(path, 1 << 20, &text, &err), &err);
		REQUIRE_OK(legacy_decode(&a, buf_str(&text), &pprof_limits_default, &p, &err), &err);
		REQUIRE_OK(symbols_read_comments(&a, buf_str(&text), &s, &err), &err);
		symbols_sort(&s);
		REQUIRE_OK(symbols_apply(&a, p, &s, &named, &err), &err);
		frames(named, &out);
		buf_add_char(&out, '\0');
		end = strstr(out.ptr, " |");
		CHECK_STR(
			((struct str){ out.ptr, end ? (size_t)(end - out.ptr) : out.len - 1 }), files[i].want);
		arena_release(&a);
	}
	buf_release(&text);
	buf_release(&out);
}

TEST(files_and_lines_of_comments)
{
	struct symbols s = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	CHECK_OK(symbols_read_comments(&a,
		STR("#\t0x10\tmain.(*T[...]).f+0x20\t\t/src/a b.go:12\n"
					 "#\t0x11\tmain.g+0x1\n#\t0x12\n#\t0x13\tno+offset\tno place\n"
					 "# 0x14\tnot\tone:1\n1 @ 0x15\n#\t0x16\tcut off+0x1\ta.go:1"),
			&s, &err),
		&err);
	symbols_sort(&s);
	REQUIRE(s.n == 3);
	CHECK_STR(s.v[0].name, "main.(*T[...]).f");
	CHECK_STR(s.v[0].file, "/src/a b.go");
	CHECK_INT(s.v[0].line, 12);
	CHECK_STR(s.v[1].name, "main.g");
	CHECK_STR(s.v[1].file, "");
	CHECK_STR(s.v[2].name, "no+offset");
	CHECK_STR(s.v[2].file, "");
	CHECK(!symbols_find(&s, 0x14) && symbols_find(&s, 0x13));
	arena_release(&a);
}

TEST(bad_answers)
{
	struct symbols s = { 0 };
	struct buf b = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	CHECK_ERR(symbols_read(&a, STR("0x11111111111111111 f\n"), &s, &err), &err, ERR_INVALID,
		"symbols: an address has more than 64 bits");
	buf_add_cstr(&b, "0x1 ");
	for (int i = 0; i < 16385; i++)
		buf_add_char(&b, 'n');
	buf_add_char(&b, '\n');
	CHECK_ERR(symbols_read(&a, buf_str(&b), &s, &err), &err, ERR_LIMIT,
		"symbols: a name of 16385 bytes, limit 16384");
	buf_clear(&b);
	for (int i = 0; i < 1000001; i++)
		buf_add_cstr(&b, "0x1 n\n");
	CHECK_ERR(symbols_read(&a, buf_str(&b), &s, &err), &err, ERR_LIMIT,
		"symbols: more than 1000000, the limit");
	CHECK_INT(s.n, 1000000);
	symbols_sort(&s);
	CHECK_INT(s.n, 1);
	arena_release(&a);
	arena_init(&a, 1000);
	s = (struct symbols){ 0 };
	CHECK_ERR(symbols_read(&a, buf_str(&b), &s, &err), &err, ERR_LIMIT,
		"symbols needs more memory than its limit of 1000 bytes");
	arena_release(&a);
	buf_release(&b);
}
