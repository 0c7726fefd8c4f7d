#include "base/gzip/gzip.h"
#include "promql/profiles/profiles.h"
#include "tests/draw.h"
#include "tests/oracle.h"
#include "tests/values.h"
#include "web/render/render.h"

static void compare(const char *what, struct str got, struct str want)
{
	struct buf g = { 0 }, w = { 0 };

	oracle_without_time(&g, got);
	oracle_without_time(&w, want);
	oracle_check_text(what, buf_str(&g), buf_str(&w));
	buf_release(&g);
	buf_release(&w);
}

/*
 * The tool prints the same for the original and for our pprof, and our own text is the same.
 * `sources` are the tool's arguments for the original.
 */
static void check_result(
	struct values *values, struct profile_value *v, size_t rows, const char *sources)
{
	struct result r = { .type = RESULT_PROFILES, .profiles = v, .n = 1 };
	struct render_options o = { .arena = &values->arena, .rows_max = rows };
	struct buf text = { 0 }, gz = { 0 }, ours = { 0 }, original = { 0 };
	char flags[128];
	struct err err;

	snprintf(flags, sizeof(flags), "-top -nodefraction=0 -nodecount=%zu -sample_index=" STR_FMT,
		rows, STR_ARG(v->type.sample_type));
	CHECK_OK(render_text(&r, &o, &text, &err), &err);
	CHECK_OK(render_pprof_gz(&r, &o, &gz, &err), &err);
	CHECK(oracle_write(buf_str(&gz), oracle_dir(), "ours.pb.gz"));
	CHECK(oracle_pprof(&ours, flags, oracle_dir(), "ours.pb.gz"));
	CHECK(oracle_pprof(&original, flags, oracle_dir(), sources));
	compare(sources, buf_str(&text), buf_str(&original));
	compare("ours", buf_str(&ours), buf_str(&original));
	buf_release(&text);
	buf_release(&gz);
	buf_release(&ours);
	buf_release(&original);
}

static void check_file(const char *file, size_t rows)
{
	struct buf body = { 0 };
	struct profile_value *v;
	struct values values;
	struct pprof *p;

	if (!values_init(&values, "test"))
		return;
	CHECK(oracle_read(&body, oracle_dir(), file));
	p = values_decode(&values, buf_str(&body));
	for (uint32_t t = 0; p && t < p->types_n; t++)
		if ((v = values_add(&values, p, t, true)))
			check_result(&values, v, rows, file);
	buf_release(&body);
	values_release(&values);
}

static bool write_drawn(uint64_t seed, const char *name)
{
	struct draw d = { seed * UINT64_C(0x9e3779b97f4a7c15) };
	struct buf wire = { 0 }, gz = { 0 };
	struct arena a;
	struct pprof *p;
	struct err err;
	bool ok;

	arena_init(&a, 0);
	p = draw_profile(&a, &d, &err);
	ok = p && !pprof_encode(p, &wire, &err) && !gzip_compress(buf_str(&wire), 1, &gz, &err) &&
		oracle_write(buf_str(&gz), oracle_dir(), name);
	arena_release(&a);
	buf_release(&wire);
	buf_release(&gz);
	return ok;
}

TEST(real_profiles_come_out_as_they_went_in)
{
	static const char *const files[] = { "cpu.pb.gz", "heap.pb.gz", "block.pb.gz", "mutex.pb.gz",
		"goroutine.pb.gz" };

	REQUIRE(oracle_profiles());
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		check_file(files[i], i % 2 ? 0 : 12);
}

TEST(drawn_profiles_come_out_as_they_went_in)
{
	char name[32];

	REQUIRE(oracle_dir());
	for (uint32_t i = 0; i < (check_is_short() ? 4 : 12); i++) {
		snprintf(name, sizeof(name), "drawn%u.pb.gz", i);
		CHECK(write_drawn(1000 + i, name));
		check_file(name, i % 3 ? 0 : 5);
	}
}

static void write_side(struct values *values, struct profile_value *v, const char *name)
{
	struct result r = { .type = RESULT_PROFILES, .profiles = v, .n = 1 };
	struct render_options o = { .arena = &values->arena };
	struct buf gz = { 0 };
	struct err err;

	CHECK_OK(render_pprof_gz(&r, &o, &gz, &err), &err);
	CHECK(oracle_write(buf_str(&gz), oracle_dir(), name));
	buf_release(&gz);
}

/*
 * For the tool a diff sent as one profile is the same as -diff_base of the two. With
 * normalization it rounds sample by sample, and Go writes some samples twice; so the tool gets
 * the sides merged, as we send them.
 */
static void check_diff(const char *new_file, const char *base_file, bool normalized)
{
	struct buf body[2] = { { 0 }, { 0 } };
	struct value side[2], out;
	struct work work = { 0 };
	struct values values;
	struct pprof *p;
	char sources[256];
	struct err err;

	if (!values_init(&values, "test"))
		return;
	work.arena = &values.arena;
	for (int i = 0; i < 2; i++) {
		CHECK(oracle_read(&body[i], oracle_dir(), i ? base_file : new_file));
		p = values_decode(&values, buf_str(&body[i]));
		side[i] = (struct value){ .type = VALUE_PROFILES, .n = 1 };
		side[i].profiles = values_add(&values, p, p->types_n - 1, true);
		write_side(&values, side[i].profiles, i ? "base.pb.gz" : "new.pb.gz");
	}
	CHECK_OK(profiles_diff(&work, NULL, &side[0], &side[1], GROUPING_NONE, (struct name_list){ 0 },
				 normalized, &out, &err),
		&err);
	if (normalized)
		snprintf(sources, sizeof(sources), "-normalize -diff_base base.pb.gz new.pb.gz");
	else
		snprintf(sources, sizeof(sources), "-diff_base %s %s", base_file, new_file);
	check_result(&values, &out.profiles[0], 0, sources);
	buf_release(&body[0]);
	buf_release(&body[1]);
	values_release(&values);
}

TEST(diffs_are_the_tools_diffs)
{
	const char *dir = oracle_profiles();
	struct buf out = { 0 };

	REQUIRE(dir);
	/* another run of the same program */
	REQUIRE(oracle_run(&out,
		"mkdir -p '%s/again' && go run tests/proto/goprofiles/main.go -cpu %s '%s/again' "
		"2>&1 && cp '%s/again/cpu.pb.gz' '%s/cpu2.pb.gz' && cp '%s/again/heap.pb.gz' "
		"'%s/heap2.pb.gz'",
		dir, check_is_short() ? "500ms" : "1s", dir, dir, dir, dir, dir));
	check_diff("cpu2.pb.gz", "cpu.pb.gz", false);
	check_diff("cpu2.pb.gz", "cpu.pb.gz", true);
	check_diff("heap2.pb.gz", "heap.pb.gz", false);
	check_diff("heap.pb.gz", "heap2.pb.gz", true);
	check_diff("cpu.pb.gz", "cpu.pb.gz", false);
	buf_release(&out);
}

TEST(what_is_no_profile_has_no_pprof)
{
	struct result vector = { .type = RESULT_VECTOR }, none = { .type = RESULT_PROFILES };
	struct render_options o = { 0 };
	struct arena a;
	struct pprof *p;
	struct err err;
	struct buf out = { 0 };

	arena_init(&a, 0);
	o.arena = &a;
	CHECK_ERR(render_pprof(&vector, &o, &p, &err), &err, ERR_INVALID,
		"format=pprof needs profiles, the query gives a vector");
	CHECK_ERR(render_folded(&vector, &o, &out, &err), &err, ERR_INVALID,
		"format=folded needs profiles, the query gives a vector");
	CHECK_ERR(
		render_pprof(&none, &o, &p, &err), &err, ERR_NOT_FOUND, "the query found no profiles");
	buf_release(&out);
	arena_release(&a);
}

/* A long answer ends soon after it was canceled. */
TEST(an_answer_that_is_not_wanted_ends)
{
	struct point points[3] = { { 1, 2 }, { 2, 3 }, { 3, 4 } };
	struct cost_series series = { .points = points, .n = 3 };
	struct result r = { .type = RESULT_MATRIX, .matrix = &series, .n = 1 };
	atomic_bool canceled = false;
	struct render_options o = { .canceled = &canceled };
	struct buf out = { 0 };
	struct json j;
	struct err err;

	json_init(&j, &out);
	CHECK_OK(render_json(&j, &r, &o, &err), &err);
	atomic_store(&canceled, true);
	buf_clear(&out);
	json_init(&j, &out);
	CHECK_ERR(
		render_json(&j, &r, &o, &err), &err, ERR_CANCELED, "the client closed the connection");
	buf_release(&out);
}
