#include "base/version.h"
#include "promql/profiles/profiles.h"
#include "tests/values.h"
#include "web/render/call_site.h"
#include "web/render/flame.h"
#include "web/render/render.h"

/*
 * main calls work (twice inlined into one location below) and idle:
 *
 *	main                 self 1
 *	  idle               self 2
 *	  work               self 3, in two locations
 *	    leaf             self 4 (inlined into work's second location)
 *	[libx.so+0x388]      self 5, a location without lines
 *	(an empty stack)     self 6
 */
struct made {
	struct values values;
	struct profile_value *v;
};

static uint32_t function(struct pprof_builder *b, const char *name)
{
	return pprof_builder_function(
		b, &(struct pprof_function){ .name = pprof_builder_string(b, str_of(name)) });
}

static bool make(struct made *m)
{
	struct pprof_builder *b;
	uint32_t mapping, main_fn, idle_fn, work_fn, leaf_fn, l[5];
	struct pprof_line lines[2];
	struct pprof *p;
	struct err err;

	if (!values_init(&m->values, "job") || pprof_builder_open(&m->values.arena, &b, &err))
		return false;
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	mapping = pprof_builder_mapping(b,
		&(struct pprof_mapping){ .start = 4096,
			.limit = 8192,
			.filename = pprof_builder_string(b, STR("/lib/libx.so")) });
	main_fn = function(b, "main");
	idle_fn = function(b, "idle");
	work_fn = function(b, "work;er");
	leaf_fn = function(b, "leaf");
	lines[0] = (struct pprof_line){ main_fn, 1, 0 };
	l[0] = pprof_builder_location(
		b, (struct pprof_location){ .address = 1, .mapping = PPROF_NONE }, lines, 1);
	lines[0].function = idle_fn;
	l[1] = pprof_builder_location(
		b, (struct pprof_location){ .address = 2, .mapping = PPROF_NONE }, lines, 1);
	lines[0].function = work_fn;
	l[2] = pprof_builder_location(
		b, (struct pprof_location){ .address = 3, .mapping = PPROF_NONE }, lines, 1);
	lines[0].function = leaf_fn;
	lines[1] = (struct pprof_line){ work_fn, 7, 0 };
	l[3] = pprof_builder_location(
		b, (struct pprof_location){ .address = 4, .mapping = PPROF_NONE }, lines, 2);
	l[4] = pprof_builder_location(
		b, (struct pprof_location){ .address = 5000, .mapping = mapping }, NULL, 0);
	pprof_builder_sample(b, (uint32_t[]){ l[0] }, 1, NULL, 0, (int64_t[]){ 1 });
	pprof_builder_sample(b, (uint32_t[]){ l[1], l[0] }, 2, NULL, 0, (int64_t[]){ 2 });
	pprof_builder_sample(b, (uint32_t[]){ l[2], l[0] }, 2, NULL, 0, (int64_t[]){ 3 });
	pprof_builder_sample(b, (uint32_t[]){ l[3], l[0] }, 2, NULL, 0, (int64_t[]){ 4 });
	pprof_builder_sample(b, (uint32_t[]){ l[4] }, 1, NULL, 0, (int64_t[]){ 5 });
	pprof_builder_sample(b, l, 0, NULL, 0, (int64_t[]){ 6 });
	if (pprof_builder_finish(b, &p, &err))
		return false;
	m->v = values_add(&m->values, p, 0, true);
	return m->v != NULL;
}

/* leaf: 4 became 40; idle is gone. */
static void make_diff(struct made *m)
{
	m->v->is_diff = true;
	for (size_t i = 0; i < m->v->parts[0].n; i++) {
		struct cell *c = &m->v->parts[0].cells[i];

		if (c->value == 4)
			*c = (struct cell){ c->stack, 0, 40, 4 };
		else if (c->value == 2)
			*c = (struct cell){ c->stack, 0, 0, 2 };
		else
			c->base = c->value;
	}
	m->v->value_total = 55;
	m->v->base_total = 21;
}

static void check_json(struct made *m, size_t max_nodes, const char *want)
{
	struct result r = { .type = RESULT_PROFILES, .profiles = m->v, .n = 1 };
	struct render_options o = { .arena = &m->values.arena, .max_nodes = max_nodes };
	struct buf out = { 0 };
	struct json j;
	struct err err;

	json_init(&j, &out);
	CHECK_OK(render_json(&j, &r, &o, &err), &err);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
}

static void check_written(struct made *m,
	enum err_code (*write)(
		const struct result *r, const struct render_options *o, struct buf *out, struct err *err),
	const char *want)
{
	struct result r = { .type = RESULT_PROFILES, .profiles = m->v, .n = 1 };
	struct render_options o = { .arena = &m->values.arena };
	struct buf out = { 0 };
	struct err err;

	CHECK_OK(write(&r, &o, &out, &err), &err);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
}

TEST(levels_and_names)
{
	struct made m;

	REQUIRE(make(&m));
	check_json(&m, 0,
		"{\"resultType\":\"profiles\",\"result\":[{\"metric\":{},"
		"\"type\":\"test:cpu:nanoseconds::\",\"unit\":\"nanoseconds\",\"total\":21,"
		"\"cost\":21,\"profiles\":1,"
		"\"flamebearer\":{\"format\":\"single\",\"levels\":["
		"[0,21,0,0],"
		"[0,5,5,1,0,6,6,2,0,10,1,3],"
		"[12,2,2,4,0,7,3,5],"
		"[17,4,4,6]],"
		"\"names\":[\"total\",\"[libx.so+0x388]\",\"[no "
		"stack]\",\"main\",\"idle\",\"work;er\",\"leaf\"],"
		"\"numTicks\":21,\"maxSelf\":6}}]}");
	values_release(&m.values);
}

/* The five heaviest: total 21, main 10, work 7, no stack 6, libx 5; idle and leaf fold below their
 * callers. */
TEST(light_nodes_fold)
{
	struct made m;

	REQUIRE(make(&m));
	check_json(&m, 5,
		"{\"resultType\":\"profiles\",\"result\":[{\"metric\":{},"
		"\"type\":\"test:cpu:nanoseconds::\",\"unit\":\"nanoseconds\",\"total\":21,"
		"\"cost\":21,\"profiles\":1,"
		"\"flamebearer\":{\"format\":\"single\",\"levels\":["
		"[0,21,0,0],"
		"[0,5,5,1,0,6,6,2,0,10,1,3],"
		"[12,7,3,4,0,2,2,5],"
		"[15,4,4,5]],"
		"\"names\":[\"total\",\"[libx.so+0x388]\",\"[no stack]\",\"main\",\"work;er\",\"other\"],"
		"\"numTicks\":21,\"maxSelf\":6,\"other\":5}}]}");
	values_release(&m.values);
}

TEST(a_diff_has_two_sides)
{
	struct made m;

	REQUIRE(make(&m));
	make_diff(&m);
	check_json(&m, 0,
		"{\"resultType\":\"profiles\",\"result\":[{\"metric\":{},"
		"\"type\":\"test:cpu:nanoseconds::\",\"unit\":\"nanoseconds\",\"total\":21,"
		"\"cost\":34,\"left_total\":21,\"right_total\":55,\"profiles\":1,"
		"\"flamebearer\":{\"format\":\"double\",\"levels\":["
		"[0,21,0,0,55,0,0],"
		"[0,5,5,0,5,5,1,0,6,6,0,6,6,2,0,10,1,0,44,1,3],"
		"[12,2,2,12,0,0,4,0,7,3,0,43,3,5],"
		"[17,4,4,15,40,40,6]],"
		"\"names\":[\"total\",\"[libx.so+0x388]\",\"[no "
		"stack]\",\"main\",\"idle\",\"work;er\",\"leaf\"],"
		"\"numTicks\":76,\"leftTicks\":21,\"rightTicks\":55,\"maxSelf\":40}}]}");
	values_release(&m.values);
}

/* ---- where functions are defined ---- */

struct defined {
	const char *name, *file;
	int64_t start_line;
};

/* Two functions are called "twin" and two "same"; "bare" has no file, "[x]" is a binary. */
static const struct defined defined[] = {
	{ "main", "/src/main.go", 3 },
	{ "twin", "/src/b.go", 20 },
	{ "twin", "/src/a.go", 10 },
	{ "same", "/src/b.go", 7 },
	{ "same", "/src/main.go", 0 },
	{ "bare", "", 5 },
	{ "leaf", "/src/leaf.go", 0 },
};

static struct profile_value *make_defined(struct values *values)
{
	/* By index in defined, leaf first; 255 ends; 7 is a location without lines. */
	static const uint8_t stacks[][5] = {
		{ 1, 0, 255 },
		{ 2, 0, 255 },
		{ 2, 2, 0, 255 }, /* a.go's calls itself */
		{ 3, 0, 255 },
		{ 4, 0, 255 },
		{ 6, 5, 0, 255 },
		{ 7, 255 },
	};
	static const int64_t costs[] = { 10, 4, 4, 2, 2, 1, 3 };
	const size_t n = sizeof(defined) / sizeof(defined[0]);
	struct pprof_builder *b;
	uint32_t locations[8], stack[5];
	struct pprof *p;
	struct err err;

	if (!values_init(values, "job") || pprof_builder_open(&values->arena, &b, &err))
		return NULL;
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	for (size_t i = 0; i < n; i++) {
		struct pprof_function f = {
			.name = pprof_builder_string(b, str_of(defined[i].name)),
			.filename = pprof_builder_string(b, str_of(defined[i].file)),
			.start_line = defined[i].start_line,
		};
		struct pprof_line line = { pprof_builder_function(b, &f), 99, 0 };

		locations[i] = pprof_builder_location(
			b, (struct pprof_location){ .address = i, .mapping = PPROF_NONE }, &line, 1);
	}
	locations[n] = pprof_builder_location(
		b, (struct pprof_location){ .address = n, .mapping = PPROF_NONE }, NULL, 0);
	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
		size_t depth = 0;

		for (; stacks[i][depth] != 255; depth++)
			stack[depth] = locations[stacks[i][depth]];
		pprof_builder_sample(b, stack, depth, NULL, 0, &costs[i]);
	}
	return pprof_builder_finish(b, &p, &err) ? NULL : values_add(values, p, 0, true);
}

static void check_files(struct values *values, const struct profile_value *v, size_t max_nodes,
	bool files, const char *want)
{
	struct render_options o = { .arena = &values->arena, .max_nodes = max_nodes, .files = files };
	struct buf out = { 0 };
	struct json j;
	struct err err;

	json_init(&j, &out);
	CHECK_OK(render_flame(&j, v, &o, &err), &err);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
}

/*
 * a.go's twin costs 4 + 4 + 4, since it calls itself; b.go's costs 10; both functions called same
 * cost 2.
 */
TEST(files_and_lines_of_names)
{
	struct values values;
	struct profile_value *v = make_defined(&values);

	REQUIRE(v);
#define PICTURE \
	"{\"format\":\"single\",\"levels\":[" \
	"[0,26,0,0],[0,3,3,1,0,23,0,2]," \
	"[3,1,0,3,0,4,4,4,0,18,14,5],[3,1,1,6,18,4,4,5]]," \
	"\"names\":[\"total\",\"[0x7]\",\"main\",\"bare\",\"same\",\"twin\",\"leaf\"],"
	check_files(&values, v, 0, false, PICTURE "\"numTicks\":26,\"maxSelf\":14}");
	check_files(&values, v, 0, true,
		PICTURE "\"files\":[\"\",\"/src/main.go\",\"/src/b.go\",\"/src/a.go\",\"/src/leaf.go\"],"
				"\"nameFiles\":[0,0,1,0,2,3,4],\"nameLines\":[0,0,3,0,7,10,0],"
				"\"numTicks\":26,\"maxSelf\":14}");
	check_files(&values, v, 3, true,
		"{\"format\":\"single\",\"levels\":[[0,26,0,0],[0,23,0,1,0,3,3,2],"
		"[0,18,14,3,0,5,5,2],[14,4,4,2]],"
		"\"names\":[\"total\",\"main\",\"other\",\"twin\"],"
		"\"files\":[\"\",\"/src/main.go\",\"/src/a.go\"],"
		"\"nameFiles\":[0,1,0,2],\"nameLines\":[0,3,0,10],"
		"\"numTicks\":26,\"maxSelf\":14,\"other\":2}");
	values_release(&values);
}

/* The base counts too: the most expensive function gives the file. */
TEST(files_of_a_diff)
{
	struct values values;
	struct profile_value *v = make_defined(&values);
	struct flame_options o = { .max_nodes = 100, .files = true };
	struct flame_picture f;
	struct err err;

	REQUIRE(v);
	v->is_diff = true;
	for (size_t i = 0; i < v->parts[0].n; i++)
		if (v->parts[0].cells[i].value == 10)
			v->parts[0].cells[i].base = 7;
	REQUIRE_OK(flame_layout(v, &o, &values.arena, &f, &err), &err);
	for (size_t i = 0; i < f.names_n; i++)
		if (str_is(f.names[i], "twin")) {
			CHECK_STR(f.files[f.name_files[i]], "/src/b.go");
			CHECK_INT(f.name_lines[i], 20);
		}
	o.files = false;
	REQUIRE_OK(flame_layout(v, &o, &values.arena, &f, &err), &err);
	CHECK(!f.files && !f.name_files && !f.name_lines);
	values_release(&values);
}

/*
 * Frames as a flame graph has them: inlined ones, binaries for locations without lines, no stack.
 */
TEST(call_sites)
{
	/* clang-format off */
	static const struct {
		struct str path[3];
		size_t n;
		int64_t sum;
	} rows[] = {
		{ { STR("") }, 0, 21 },
		{ { STR("main") }, 1, 10 },
		{ { STR("main"), STR("work;er") }, 2, 7 },
		{ { STR("main"), STR("work;er"), STR("leaf") }, 3, 4 },
		{ { STR("main"), STR("idle") }, 2, 2 },
		{ { STR("main"), STR("idle"), STR("leaf") }, 3, 0 },
		{ { STR("main"), STR("leaf") }, 2, 0 },
		{ { STR("work;er") }, 1, 0 },
		{ { STR("[libx.so+0x388]") }, 1, 5 },
		{ { STR("[no stack]") }, 1, 6 },
		{ { STR("[no stack]"), STR("main") }, 2, 0 },
	};
	/* clang-format on */
	struct profile_value kept;
	struct made m;
	struct err err;
	size_t n;

	REQUIRE(make(&m));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE_OK(
			call_site_keep(m.v, rows[i].path, rows[i].n, &m.values.arena, &kept, &n, &err), &err);
		CHECK_INT(kept.value_total, rows[i].sum);
		CHECK_INT(n, rows[i].sum > 0);
	}
	values_release(&m.values);
}

TEST(folded_lines)
{
	struct made m;

	REQUIRE(make(&m));
	check_written(&m, render_folded,
		"main 1\nmain;idle 2\nmain;work:er 3\nmain;work:er;leaf 4\n[libx.so+0x388] 5\n"
		"[no stack] 6\n");
	values_release(&m.values);
}

TEST(folded_diffs_have_two_columns)
{
	struct made m;

	REQUIRE(make(&m));
	make_diff(&m);
	check_written(&m, render_folded,
		"main 1 1\nmain;idle 2 0\nmain;work:er 3 3\nmain;work:er;leaf 4 40\n"
		"[libx.so+0x388] 5 5\n[no stack] 6 6\n");
	values_release(&m.values);
}

#define SCOPE(name) \
	"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"," \
	"\"exporter\":\"epimetheus@" EPI_VERSION "\",\"name\":\"" name "\"," \
	"\"activeProfileIndex\":0,\"shared\":{\"frames\":[{\"name\":\"main\"}," \
	"{\"name\":\"idle\"},{\"name\":\"work;er\"},{\"name\":\"leaf\"}," \
	"{\"name\":\"[libx.so+0x388]\"},{\"name\":\"[no stack]\"}]},\"profiles\":["
#define SHEET(name, samples, weights, end) \
	"{\"type\":\"sampled\",\"name\":\"" name "\",\"unit\":\"nanoseconds\"," \
	"\"samples\":[" samples "],\"weights\":[" weights "],\"startValue\":0,\"endValue\":" end "}"
#define ALL_STACKS "[0],[0,1],[0,2],[0,2,3],[4],[5]"

TEST(speedscope)
{
	struct made m;

	REQUIRE(make(&m));
	check_written(&m, render_speedscope,
		SCOPE("test:cpu:nanoseconds::")
			SHEET("test:cpu:nanoseconds::", ALL_STACKS, "1,2,3,4,5,6", "21") "]}\n");
	make_diff(&m);
	check_written(&m, render_speedscope,
		SCOPE("test:cpu:nanoseconds:: (base)") SHEET("test:cpu:nanoseconds:: (base)", ALL_STACKS,
			"1,2,3,4,5,6", "21") "," SHEET("test:cpu:nanoseconds:: (new)",
			"[0],[0,2],[0,2,3],[4],[5]", "1,3,40,5,6", "55") "]}\n");
	values_release(&m.values);
}

/* A cost of 4 becomes -4, and 3 becomes 10 - 7: costs that cancel out are not lost. */
TEST(costs_below_zero_count)
{
	struct made m;
	struct cell *cells;
	struct part *part;
	struct err err;
	size_t n = 0;

	REQUIRE(make(&m));
	part = &m.v->parts[0];
	REQUIRE(cells = arena_array(&m.values.arena, struct cell, part->n + 1));
	for (size_t i = 0; i < part->n; i++) {
		struct cell c = part->cells[i];

		if (c.value == 4)
			c.value = -4;
		if (c.value == 3) {
			cells[n++] = (struct cell){ c.stack, 0, 10, 0 };
			c = (struct cell){ c.stack, 1, -7, 0 };
		}
		cells[n++] = c;
	}
	part->cells = cells;
	part->n = n;
	CHECK_OK(profile_totals(m.v, &err), &err);
	check_written(&m, render_speedscope,
		SCOPE("test:cpu:nanoseconds::") SHEET("test:cpu:nanoseconds::", "[0],[0,1],[0,2],[4],[5]",
			"1,2,10,5,6", "24") "," SHEET("test:cpu:nanoseconds:: (negative)", "[0,2],[0,2,3]",
			"7,4", "11") "]}\n");
	check_json(&m, 1,
		"{\"resultType\":\"profiles\",\"result\":[{\"metric\":{},"
		"\"type\":\"test:cpu:nanoseconds::\",\"unit\":\"nanoseconds\",\"total\":35,"
		"\"cost\":13,\"profiles\":1,"
		"\"flamebearer\":{\"format\":\"single\",\"levels\":["
		"[0,17,0,0],[0,17,17,1]],\"names\":[\"total\",\"other\"],"
		"\"numTicks\":17,\"maxSelf\":17,\"other\":1}}]}");
	values_release(&m.values);
}

TEST(folded_elements_have_their_labels_in_front)
{
	static const struct label one[] = { { STR("job"), STR("a") }, { STR("zone"), STR("x") } };
	static const struct label two[] = { { STR("job"), STR("b") }, { STR("zone"), STR("x") } };
	struct made m;
	struct profile_value both[2];
	struct result r = { .type = RESULT_PROFILES, .profiles = both, .n = 2 };
	struct render_options o = { 0 };
	struct buf out = { 0 };
	struct err err;

	REQUIRE(make(&m));
	m.v->parts[0].n = 2;
	both[0] = both[1] = *m.v;
	both[0].metric = (struct labels){ one, 2 };
	both[1].metric = (struct labels){ two, 2 };
	o.arena = &m.values.arena;
	CHECK_OK(render_folded(&r, &o, &out, &err), &err);
	CHECK_STR(
		buf_str(&out), "job=a;main 1\njob=a;[no stack] 6\njob=b;main 1\njob=b;[no stack] 6\n");
	buf_release(&out);
	values_release(&m.values);
}

/* ---- numbers, as Prometheus gives them ---- */

static void check_result(const struct result *r, const char *json, const char *text)
{
	struct render_options o = { 0 };
	struct buf out = { 0 };
	struct arena a;
	struct json j;
	struct err err;

	arena_init(&a, 0);
	o.arena = &a;
	json_init(&j, &out);
	CHECK_OK(render_json(&j, r, &o, &err), &err);
	CHECK_STR(buf_str(&out), json);
	buf_clear(&out);
	CHECK_OK(render_text(r, &o, &out, &err), &err);
	CHECK_STR(buf_str(&out), text);
	buf_release(&out);
	arena_release(&a);
}

TEST(numbers)
{
	static const struct label metric[] = { { STR("function"), STR("main.\"f\"") } };
	struct cost cost = { { metric, 1 }, 1.5, INT64_C(1700000000123000000) };
	struct point points[] = { { INT64_C(1700000000000000000), 1 },
		{ INT64_C(1700000010000000000), -0.25 } };
	struct cost_series series = { { metric, 1 }, points, 2 };
	struct result r = { .type = RESULT_VECTOR, .vector = &cost, .n = 1 };

	check_result(&r,
		"{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"function\":\"main."
		"\\\"f\\\"\"},"
		"\"value\":[1700000000.123,\"1.5\"]}]}",
		"{function=\"main.\\\"f\\\"\"} 1.5\n");
	r = (struct result){ .type = RESULT_MATRIX, .matrix = &series, .n = 1 };
	check_result(&r,
		"{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"function\":\"main."
		"\\\"f\\\"\"},"
		"\"values\":[[1700000000,\"1\"],[1700000010,\"-0.25\"]]}]}",
		"{function=\"main.\\\"f\\\"\"}\n1 @1700000000\n-0.25 @1700000010\n");
	r = (struct result){ .type = RESULT_SCALAR, .scalar = 0.0 / 0.0, .t_ns = 5000000000 };
	check_result(&r, "{\"resultType\":\"scalar\",\"result\":[5,\"NaN\"]}", "NaN\n");
	r = (struct result){ .type = RESULT_STRING, .string = STR("x\ny"), .t_ns = 0 };
	check_result(&r, "{\"resultType\":\"string\",\"result\":[0,\"x\\ny\"]}", "x\\ny\n");
	r = (struct result){ .type = RESULT_VECTOR };
	check_result(&r, "{\"resultType\":\"vector\",\"result\":[]}", "");
}

TEST(tables)
{
	struct top_row row = { .function = STR("main.f"), .flat = 3, .cum = 4, .flat_percent = 75,
							   .sum_percent = 75, .cum_percent = 100 };
	struct top_table table = {
		.type = { .name = STR("process_cpu"),
					  .sample_type = STR("samples"),
						  .sample_unit = STR("count"),
							  .period_type = STR("cpu"),
								  .period_unit = STR("nanoseconds"), .delta = true },
							  .total = 4, .rows = &row, .n = 1, .functions_n = 2, .profiles = 1 };
	struct result r = { .type = RESULT_TOP, .tops = &table, .n = 1 };
	struct render_options o = { 0 };
	struct buf out = { 0 };
	struct json j;
	struct err err;

	json_init(&j, &out);
	CHECK_OK(render_json(&j, &r, &o, &err), &err);
	CHECK_STR(buf_str(&out),
		"{\"resultType\":\"top\",\"result\":[{\"metric\":{},"
		"\"type\":\"process_cpu:samples:count:cpu:nanoseconds:delta\",\"unit\":\"count\","
		"\"total\":4,"
		"\"profiles\":1,\"functions\":2,\"rows\":[{\"function\":\"main.f\",\"flat\":3,"
		"\"flat_percent\":75,\"sum_percent\":75,\"cum\":4,\"cum_percent\":100}]}]}");
	buf_release(&out);
}

/* In every format an answer ends soon after it was canceled. */
TEST(answers_that_are_not_wanted_end)
{
	static const struct {
		enum err_code (*write)(const struct result *r, const struct render_options *o,
			struct buf *out, struct err *err);
		const char *want;
	} writers[] = {
		{ render_text, "the request was canceled" },
		{ render_pprof_gz, "the request was canceled" },
		{ render_folded, "the client closed the connection" },
		{ render_speedscope, "the client closed the connection" },
	};
	atomic_bool canceled = true;
	struct cost cost = { .value = 1 };
	struct result costs = { .type = RESULT_VECTOR, .vector = &cost, .n = 1 }, r;
	struct render_options o = { .canceled = &canceled };
	struct buf out = { 0 };
	struct made m;
	struct json j;
	struct err err;

	REQUIRE(make(&m));
	r = (struct result){ .type = RESULT_PROFILES, .profiles = m.v, .n = 1 };
	o.arena = &m.values.arena;
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++)
		CHECK_ERR(writers[i].write(&r, &o, &out, &err), &err, ERR_CANCELED, writers[i].want);
	CHECK_ERR(render_text(&costs, &o, &out, &err), &err, ERR_CANCELED,
		"the client closed the connection");
	buf_clear(&out);
	json_init(&j, &out);
	json_object(&j);
	json_key(&j, "flamebearer");
	CHECK_ERR(
		render_flame(&j, m.v, &o, &err), &err, ERR_CANCELED, "the client closed the connection");
	CHECK_STR(buf_str(&out), "{\"flamebearer\":"); /* before anything is written */
	buf_release(&out);
	values_release(&m.values);
}
