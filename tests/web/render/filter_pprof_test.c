/*
 * `go tool pprof` reads a filtered profile that we sent as it reads the unfiltered one with its
 * own filter, except for percentages: the file has no other total than that of its samples.
 */
#include "base/gzip/gzip.h"
#include "promql/profiles/filter.h"
#include "promql/syntax/check.h"
#include "tests/oracle.h"
#include "tests/promql/expressions.h"
#include "tests/values.h"
#include "web/render/render.h"

/* "FLAT CUM NAME" of each row. */
static void without_percents(struct buf *out, struct str s)
{
	char line[8192], flat[64], cum[64];
	bool in_rows = false;
	int at;

	while (s.len > 0) {
		ptrdiff_t end = str_find(s, STR("\n"));
		struct str l = { s.ptr, end < 0 ? s.len : (size_t)end };

		s = (struct str){ l.ptr + l.len + (end >= 0), s.len - l.len - (end >= 0) };
		snprintf(line, sizeof(line), STR_FMT, STR_ARG(l));
		if (in_rows && sscanf(line, "%63s %*s %*s %63s %*s %n", flat, cum, &at) == 2)
			buf_printf(out, "%s %s %s\n", flat, cum, line + at);
		in_rows |= strstr(line, "flat%") != NULL;
	}
}

static bool write_filtered(struct values *values, struct str text, struct profile_value *p)
{
	struct value v = { .type = VALUE_PROFILES, .n = 1, .profiles = p };
	struct work work = { .arena = &values->arena };
	struct render_options o = { .arena = &values->arena };
	struct result r = { .type = RESULT_PROFILES, .n = 1 };
	struct parsed *query = NULL;
	struct buf gz = { 0 };
	struct err err;
	bool ok;

	ok = !parse_query(&values->arena, text, &query, NULL, &err) && !check_query(query, NULL, &err);
	work.query = query;
	ok = ok && !filters_apply(&work, query->root, &v, &err);
	r.profiles = v.profiles;
	ok = ok && !render_pprof_gz(&r, &o, &gz, &err) &&
		oracle_write(buf_str(&gz), oracle_dir(), "filtered.pb.gz");
	if (!ok)
		CHECK_FAIL(STR_FMT ": %s", STR_ARG(text), err.msg);
	parsed_release(query);
	buf_release(&gz);
	return ok;
}

static void check_filter(const char *file, const char *option, const char *expression)
{
	struct buf body = { 0 }, want = { 0 }, got = { 0 }, want_rows = { 0 }, got_rows = { 0 };
	struct profile_value *v;
	char flags[256], what[512];
	struct values values;
	struct pprof *p;

	REQUIRE(values_init(&values, "test"));
	CHECK(oracle_read(&body, oracle_dir(), file));
	p = values_decode(&values, buf_str(&body));
	REQUIRE(p && (v = values_add(&values, p, p->types_n - 1, true)));
	if (!strcmp(option, "noinlines")) {
		expression = "true";
		snprintf(what, sizeof(what), "noinlines(x)");
	} else {
		snprintf(what, sizeof(what), "%s(x, '%s')", option, expression);
	}
	snprintf(flags, sizeof(flags), "-top -nodefraction=0 -unit=" STR_FMT " -sample_index=" STR_FMT,
		STR_ARG(v->type.sample_unit), STR_ARG(v->type.sample_type));
	if (write_filtered(&values, str_of(what), v) &&
		oracle_pprof(&got, flags, oracle_dir(), "filtered.pb.gz")) {
		snprintf(
			flags + strlen(flags), sizeof(flags) - strlen(flags), " '-%s=%s'", option, expression);
		CHECK(oracle_pprof(&want, flags, oracle_dir(), file));
		without_percents(&want_rows, buf_str(&want));
		without_percents(&got_rows, buf_str(&got));
		snprintf(what, sizeof(what), "%s %s=%s", file, option, expression);
		oracle_check_text(what, buf_str(&got_rows), buf_str(&want_rows));
	} else {
		CHECK_FAIL("%s: no answer", what);
	}
	values_release(&values);
	buf_release(&body);
	buf_release(&want);
	buf_release(&got);
	buf_release(&want_rows);
	buf_release(&got_rows);
}

TEST(real_profiles)
{
	static const char *const files[] = { "cpu.pb.gz", "heap.pb.gz", "mutex.pb.gz" };
	static const char *const expressions[] = { "encoding/json", "recurse|sort", "main[.]go$" };

	REQUIRE(oracle_profiles());
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		for (size_t k = 0; k < FILTER_OPTIONS; k++) {
			bool is_tag = is_tag_filter(k);

			if (check_is_short() && k % 3 != i)
				continue; /* each option on one of the files */
			check_filter(files[i], filter_options[k],
				is_tag ? (i == 1 ? "bytes=100b:" : "handler") : expressions[(i + k) % 3]);
		}
}

/* With drop_frames: the reader drops the same frames. */
TEST(drawn_profiles)
{
	static const char *const expressions[] = { "^main[.]e$", "rt[.]", "demo", "b[.]go", "^main" };
	struct buf wire = { 0 }, gz = { 0 };
	struct arena a;
	struct pprof *p;
	struct err err;

	REQUIRE(oracle_dir());
	for (uint32_t i = 0; i < 32; i++) {
		struct draw d = { 4242 + i * UINT64_C(0x9e3779b97f4a7c15) };
		bool is_tag = is_tag_filter(i % FILTER_OPTIONS);

		arena_init(&a, 0);
		buf_clear(&wire);
		buf_clear(&gz);
		REQUIRE((p = draw_profile(&a, &d, &err)));
		CHECK_OK(pprof_encode(p, &wire, &err), &err);
		CHECK_OK(gzip_compress(buf_str(&wire), 1, &gz, &err), &err);
		CHECK(oracle_write(buf_str(&gz), oracle_dir(), "drawn.pb.gz"));
		check_filter("drawn.pb.gz", filter_options[i % FILTER_OPTIONS],
			is_tag ? "id=20:" : expressions[i % 5]);
		arena_release(&a);
	}
	buf_release(&wire);
	buf_release(&gz);
}
