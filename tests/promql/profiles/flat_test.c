#include "base/gzip/gzip.h"
#include "promql/profiles/flat.h"
#include "promql/profiles/profiles.h"
#include "tests/draw.h"
#include "tests/oracle.h"
#include "tests/promql/top_rows.h"
#include "tests/values.h"

static struct oracle_rows oracle;

static bool ask(
	struct buf *out, const char *file, const struct pprof *p, uint32_t type, const char *more)
{
	char flags[512];

	snprintf(flags, sizeof(flags),
		"-top -nodefraction=0 -sample_index=" STR_FMT " -unit=" STR_FMT " %s",
		STR_ARG(p->strings[p->types[type].type]), STR_ARG(p->strings[p->types[type].unit]), more);
	return oracle_pprof(out, flags, oracle_dir(), file) && oracle_read_top(buf_str(out), &oracle);
}

/* The tool has a row per file and function's first line: flat costs of a file add up, cum costs do
 * not. */
static void join_rows(void)
{
	size_t n = 0, k;

	for (size_t i = 0; i < oracle.n; i++) {
		for (k = 0; k < n && !str_eq(oracle.v[k].name, oracle.v[i].name); k++)
			;
		if (k < n)
			oracle.v[k].flat += oracle.v[i].flat;
		else
			oracle.v[n++] = oracle.v[i];
	}
	oracle.n = n;
}

static void check_top(struct work *work, const struct profile_value *p, size_t k, const char *what)
{
	struct value in = { .type = VALUE_PROFILES, .n = 1 }, out;
	struct err err;

	in.profiles = arena_new(work->arena, struct profile_value);
	in.profiles[0] = *p;
	CHECK_OK(profiles_top(work, &in, k ? (double)k : 1e6, &out, &err), &err);
	check_top_rows(what, &out.tops[0], &oracle, true);
}

/* Every cost of flat and cum by these fields is the tool's, and there are no more. */
static void check_costs(struct work *work, const struct profile_value *p, bool cum,
	const char *const *fields, size_t fields_n, const char *what)
{
	struct str names[4];
	struct flat_options o = { .cum = cum, .grouping = GROUPING_BY, .labels = { names, fields_n } };
	struct value in = { .type = VALUE_PROFILES, .n = 1 }, out;
	size_t want_n = 0;
	struct str *texts;
	struct err err;

	for (size_t i = 0; i < fields_n; i++)
		names[i] = str_of(fields[i]);
	in.profiles = arena_new(work->arena, struct profile_value);
	in.profiles[0] = *p;
	CHECK_OK(profiles_flat(work, &in, &o, &out, &err), &err);
	texts = arena_array(work->arena, struct str, out.n);
	for (size_t k = 0; k < out.n; k++) {
		struct labels m = out.costs[k].metric;

		texts[k] = labels_get(m, names[0]);
		if (fields_n == 3)
			texts[k] = str_of(arena_printf(work->arena, STR_FMT " " STR_FMT ":" STR_FMT,
				STR_ARG(labels_get(m, STR("function"))),
					STR_ARG(labels_get(m, STR("filename"))), STR_ARG(labels_get(m, STR("line")))));
	}
	for (size_t i = 0; i < oracle.n; i++) {
		int64_t want = cum ? oracle.v[i].cum : oracle.v[i].flat;
		size_t k = 0;

		if (want == 0)
			continue;
		want_n++;
		while (k < out.n && !str_eq(oracle.v[i].name, texts[k]))
			k++;
		if (k == out.n)
			CHECK_FAIL("%s: no cost for " STR_FMT, what, STR_ARG(oracle.v[i].name));
		else if (out.costs[k].value != (double)want)
			CHECK_FAIL("%s: " STR_FMT " is %.0f, want %" PRId64, what, STR_ARG(oracle.v[i].name),
				out.costs[k].value, want);
	}
	if (out.n != want_n)
		CHECK_FAIL("%s: %zu costs, want %zu", what, out.n, want_n);
}

static void check_file(const char *file, bool only_top)
{
	static const char *const by_function[] = { "function" }, *const by_file[] = { "filename" };
	static const char *const by_line[] = { "function", "filename", "line" };
	struct buf body = { 0 }, text = { 0 };
	struct profile_value *v;
	struct work work = { 0 };
	struct values values;
	struct pprof *p;
	char what[128];

	if (!values_init(&values, "test")) {
		CHECK_FAIL("no partition");
		return;
	}
	work.arena = &values.arena;
	CHECK(oracle_read(&body, oracle_dir(), file));
	p = values_decode(&values, buf_str(&body));
	for (uint32_t t = 0; p && t < p->types_n; t++) {
		if (!(v = values_add(&values, p, t, t == 0)))
			continue;
		snprintf(what, sizeof(what), "%s " STR_FMT, file, STR_ARG(p->strings[p->types[t].type]));
		CHECK(ask(&text, file, p, t, ""));
		check_top(&work, v, 0, what);
		if (only_top)
			continue;
		check_costs(&work, v, false, by_function, 1, what);
		check_costs(&work, v, true, by_function, 1, what);
		CHECK(ask(&text, file, p, t, "-nodecount=10"));
		check_top(&work, v, 10, what);
		CHECK(ask(&text, file, p, t, "-files"));
		join_rows();
		check_costs(&work, v, false, by_file, 1, what);
		CHECK(ask(&text, file, p, t, "-lines"));
		check_costs(&work, v, false, by_line, 3, what);
		check_costs(&work, v, true, by_line, 3, what);
	}
	buf_release(&body);
	buf_release(&text);
	values_release(&values);
}

TEST(real_profiles_cost_what_the_tool_says)
{
	static const char *const files[] = { "cpu", "heap", "block", "mutex", "goroutine" };
	char name[64];

	REQUIRE(oracle_profiles());
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "%s.pb.gz", files[i]);
		check_file(name, false);
	}
}

TEST(drawn_profiles_rank_as_the_tool_says)
{
	struct buf wire = { 0 }, gz = { 0 };
	struct arena a;
	struct pprof *p;
	struct err err;
	char name[64];

	REQUIRE(oracle_dir());
	for (uint32_t i = 0; i < 16; i++) {
		struct draw d = { 777 + i * UINT64_C(0x9e3779b97f4a7c15) };

		arena_init(&a, 0);
		buf_clear(&wire);
		buf_clear(&gz);
		snprintf(name, sizeof(name), "drawn%u.pb.gz", i);
		if ((p = draw_profile(&a, &d, &err))) {
			CHECK_OK(pprof_encode(p, &wire, &err), &err);
			CHECK_OK(gzip_compress(buf_str(&wire), 1, &gz, &err), &err);
			CHECK(oracle_write(buf_str(&gz), oracle_dir(), name));
			check_file(name, true);
		}
		arena_release(&a);
	}
	buf_release(&wire);
	buf_release(&gz);
}
