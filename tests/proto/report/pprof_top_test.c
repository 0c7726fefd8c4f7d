#include "proto/report/pprof_top.h"

#include "base/gzip/gzip.h"
#include "proto/report/pprof_unit.h"
#include "tests/draw.h"
#include "tests/oracle.h"

static void compare(
	const char *dir, const char *file, const struct pprof *p, uint32_t type, size_t rows)
{
	struct buf want = { 0 }, got = { 0 }, want_rows = { 0 }, got_rows = { 0 };
	char flags[256], what[512];
	struct pprof_options options = pprof_options_default;
	struct pprof_top_options o = { .type = type, .options = &options };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	options.nodecount = (int64_t)rows;
	/* The printer takes names as they are in the profile. */
	snprintf(flags, sizeof(flags),
		"-symbolize=none -top -nodefraction=0 -nodecount=%zu -sample_index=" STR_FMT, rows,
		STR_ARG(p->strings[p->types[type].type]));
	snprintf(what, sizeof(what), "%.240s %.200s", flags, file);
	CHECK(oracle_pprof(&want, flags, dir, file));
	CHECK_OK(pprof_top_print(p, &o, &a, &got, &err), &err);
	oracle_without_time(&want_rows, buf_str(&want));
	oracle_without_time(&got_rows, buf_str(&got));
	oracle_check_text(what, buf_str(&got_rows), buf_str(&want_rows));
	arena_release(&a);
	buf_release(&want);
	buf_release(&got);
	buf_release(&want_rows);
	buf_release(&got_rows);
}

static struct pprof *load(struct arena *a, const char *dir, const char *file, struct buf *body)
{
	struct pprof *p = NULL;
	struct err err;
	struct str raw;

	if (!oracle_read(body, dir, file))
		return NULL;
	if (pprof_inflate(a, buf_str(body), &pprof_limits_default, &raw, &err))
		return NULL;
	if (pprof_decode(a, raw, &pprof_limits_default, &p, &err))
		return NULL;
	return p;
}

TEST(real_profiles_print_as_the_tool_does)
{
	static const char *const files[] = { "cpu", "heap", "allocs", "block", "mutex", "goroutine",
		"threadcreate" };
	static const size_t rows[] = { 0, 10, 25 };
	const char *dir = oracle_profiles();
	struct buf body = { 0 };
	struct arena a;
	struct pprof *p;
	char name[64];

	REQUIRE(dir);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "%s.pb.gz", files[i]);
		arena_init(&a, 0);
		p = load(&a, dir, name, &body);
		CHECK(p);
		for (uint32_t t = 0; p && t < p->types_n; t++)
			for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
				compare(dir, name, p, t, rows[r]);
		arena_release(&a);
	}
	buf_release(&body);
}

TEST(drawn_profiles_print_as_the_tool_does)
{
	static const size_t rows[] = { 0, 3, 8 };
	const char *dir = oracle_dir();
	struct buf wire = { 0 }, gz = { 0 };
	struct arena a;
	struct pprof *p;
	struct err err;
	char name[64];

	REQUIRE(dir);
	for (uint32_t i = 0; i < 24; i++) {
		struct draw d = { 12345 + i * UINT64_C(0x9e3779b97f4a7c15) };

		arena_init(&a, 0);
		buf_clear(&wire);
		buf_clear(&gz);
		p = draw_profile(&a, &d, &err);
		CHECK(p);
		if (p) {
			snprintf(name, sizeof(name), "drawn%u.pb.gz", i);
			CHECK_OK(pprof_encode(p, &wire, &err), &err);
			CHECK_OK(gzip_compress(buf_str(&wire), 1, &gz, &err), &err);
			CHECK(oracle_write(buf_str(&gz), dir, name));
			compare(dir, name, p, 0, rows[i % 3]);
		}
		arena_release(&a);
	}
	buf_release(&wire);
	buf_release(&gz);
}

TEST(units)
{
	static const struct {
		int64_t value;
		const char *from, *to, *want;
	} cases[] = {
		{ 1500000000, "nanoseconds", "auto", "1.50s" },
		{ 0, "nanoseconds", "auto", "0" },
		{ -250000, "nanoseconds", "minimum", "-250us" },
		{ 7200, "seconds", "auto", "2hrs" },
		{ 1536, "bytes", "auto", "1.50kB" },
		{ 1536, "bytes", "MB", "0" },
		{ 5, "count", "auto", "5" },
		{ 5, "widgets", "widgets", "5widgets" },
		{ 10, "Milliseconds", "ns", "10000000ns" },
		{ 3, "bytes", "nonsense", "3B" },
	};
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&out);
		pprof_unit_print(&out, cases[i].value, str_of(cases[i].from), str_of(cases[i].to));
		CHECK_STR(buf_str(&out), cases[i].want);
	}
	buf_release(&out);
}

TEST(units_that_convert)
{
	static const struct {
		const char *a, *b;
		int64_t ratio; /* of b in a; 0: they do not fit */
		const char *finer;
	} rows[] = {
		{ "seconds", "nanoseconds", 1000000000, "nanoseconds" },
		{ "us", "ns", 1000, "ns" },
		{ "\xce\xbcs", "ns", 1000, "ns" },
		{ "\xc2\xb5s", "microseconds", 1, "microseconds" },
		{ "Milliseconds", "microsecond", 1000, "microsecond" },
		{ "hrs", "s", 3600, "s" },
		{ "hours", "minutes", 60, "minutes" },
		{ "ns", "nanoseconds", 1, "nanoseconds" },
		{ "nanoseconds", "ns", 1, "nanoseconds" },
		{ "ns", "nanosecond", 1, "ns" },
		{ "kB", "B", 1024, "B" },
		{ "KiB", "bytes", 1024, "bytes" },
		{ "kilobytes", "kib", 1, "kilobytes" },
		{ "PB", "byte", INT64_C(1) << 50, "byte" },
		{ "GCU", "nanoGCU", 1000000000, "nanoGCU" },
		{ "petagcu", "nanogcu", 0, NULL }, /* beyond 63 bits */
		{ "bytes", "nanoseconds", 0, NULL },
		{ "count", "count", 1, "count" },
		{ "count", "counts", 0, NULL },
		{ "", "bytes", 0, NULL },
		{ "", "", 1, "" },
		{ "s", "", 0, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str a = str_of(rows[i].a), b = str_of(rows[i].b);

		CHECK_INT(pprof_unit_ratio(a, b), rows[i].ratio);
		CHECK_INT(pprof_unit_ratio(b, a), rows[i].ratio == 1);
		CHECK_INT(pprof_unit_fits(a, b), rows[i].ratio != 0);
		CHECK_INT(pprof_unit_fits(b, a), rows[i].ratio != 0);
		if (!rows[i].ratio)
			continue;
		CHECK_STR(pprof_unit_finer(a, b), rows[i].finer);
		if (rows[i].ratio > 1)
			CHECK_STR(pprof_unit_finer(b, a), rows[i].finer);
	}
}

TEST(percentages)
{
	static const struct {
		int64_t value, total;
		const char *want;
	} cases[] = {
		{ 1, 1, "  100%" },
		{ 9995, 10000, "  100%" },
		{ 1, 3, "33.33%" },
		{ -1, 50, " 2.00%" },
		{ 1, 128, " 0.78%" },
		{ 1, 1000000, "0.0001%" },
		{ 1, 100000000, "1e-06%" },
		{ 0, 5, "    0%" },
		{ 5, 0, "    0%" },
		{ 300, 100, "300.00%" },
	};
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&out);
		pprof_percent_print(&out, cases[i].value, cases[i].total);
		CHECK_STR(buf_str(&out), cases[i].want);
	}
	buf_release(&out);
}
