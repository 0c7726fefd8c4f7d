/* The table of formats, totals in all of them, and pgo. */
#include "tests/draw.h"
#include "tests/values.h"
#include "web/render/flame.h"
#include "web/render/render.h"

#define SEEDS (check_is_short() ? 3u : 12u)

TEST(the_table_of_formats)
{
	CHECK_STR(str_of(RENDER_JSON->name), "json");
	for (size_t i = 0; i < render_formats_n; i++) {
		const struct render_format *f = &render_formats[i];

		CHECK(render_format_find(str_of(f->name)) == f); /* each name once */
		CHECK(f->content_type && (f->write || f == RENDER_JSON));
	}
	CHECK(!render_format_find(STR("xml")) && !render_format_find(STR("")));
}

/* ---- flame graphs cut to max_nodes ---- */

struct sums {
	int64_t self[2]; /* left, right */
	size_t boxes, others;
};

static struct sums sums_of(const struct flame_picture *f)
{
	size_t width = f->is_diff ? 7 : 4;
	struct sums s = { 0 };

	for (size_t i = 0; i < f->rows_n; i++)
		for (size_t k = 0; k < f->rows[i].n; k += width) {
			const int64_t *v = f->rows[i].v + k;

			s.boxes++;
			s.others += str_is(f->names[v[width - 1]], "other");
			s.self[1] += f->is_diff ? v[5] : v[2];
			s.self[0] += f->is_diff ? v[2] : 0;
		}
	return s;
}

/* Pyroscope's tree: the sum of the boxes' own costs. */
static int64_t tree_sum(struct str bytes)
{
	struct cursor c = cursor_of(bytes);
	int64_t sum = 0;

	while (cursor_left(&c) && !c.bad) {
		cursor_lenstr(&c);
		sum += (int64_t)cursor_varint(&c);
		cursor_varint(&c);
	}
	CHECK(!c.bad);
	return sum;
}

static void check_cuts(struct values *values, const struct profile_value *p)
{
	struct flame_options o = { .max_nodes = RENDER_NODES_MAX };
	struct flame_picture whole, f;
	struct buf tree = { 0 };
	struct sums all, s;
	struct err err;

	CHECK_OK(flame_layout(p, &o, &values->arena, &whole, &err), &err);
	all = sums_of(&whole);
	CHECK_INT(all.self[0], whole.left_ticks);
	CHECK_INT(all.self[1], whole.right_ticks);
	CHECK_INT(all.others, 0);
	for (o.max_nodes = 1; o.max_nodes <= all.boxes + 1; o.max_nodes++) {
		CHECK_OK(flame_layout(p, &o, &values->arena, &f, &err), &err);
		s = sums_of(&f);
		CHECK_INT(f.left_ticks, whole.left_ticks);
		CHECK_INT(f.right_ticks, whole.right_ticks);
		CHECK_INT(s.self[0], whole.left_ticks);
		CHECK_INT(s.self[1], whole.right_ticks);
		CHECK(s.boxes - s.others <= o.max_nodes);
		if (o.max_nodes >= all.boxes)
			CHECK_INT(s.boxes, all.boxes);
		buf_clear(&tree);
		CHECK_OK(flame_tree(p, &o, &values->arena, &tree, &err), &err);
		CHECK_INT(tree_sum(buf_str(&tree)), whole.right_ticks);
	}
	buf_release(&tree);
}

TEST(totals_hold_wherever_a_flame_graph_is_cut)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct draw d = { seed * UINT64_C(0x9e3779b97f4a7c15) };
		struct profile_value *v;
		struct values values;
		struct pprof *p;
		struct err err;

		REQUIRE(values_init(&values, "test"));
		REQUIRE((p = draw_profile(&values.arena, &d, &err)) != NULL);
		REQUIRE((v = values_add(&values, p, 0, true)) != NULL);
		for (size_t i = 0; i < v->parts[0].n; i++)
			if (v->parts[0].cells[i].value < 0)
				v->parts[0].cells[i].value *= -1;
		check_cuts(&values, v);
		v->is_diff = true;
		for (size_t i = 0; i < v->parts[0].n; i++) {
			struct cell *c = &v->parts[0].cells[i];

			c->base = draw(&d, 3) ? draw(&d, 1000) : 0;
			if (draw(&d, 4) == 0)
				c->value = 0;
		}
		check_cuts(&values, v);
		values_release(&values);
	}
}

/* ---- pgo ---- */

struct code {
	struct values values;
	struct pprof_builder *b;
	uint32_t functions[10];
	uint32_t locations; /* render_options.pgo_... */
	bool leaf_lines;
};

/* Functions f0..f9; fN starts at line 100 * N, or has no start line. */
static bool code_open(struct code *c, const char *type, const char *unit, bool starts)
{
	struct err err;

	c->locations = 0;
	c->leaf_lines = false;
	if (!values_init(&c->values, "test") || pprof_builder_open(&c->values.arena, &c->b, &err))
		return false;
	pprof_builder_type(c->b, str_of(type), str_of(unit));
	for (uint32_t i = 0; i < 10; i++) {
		char name[] = { 'f', (char)('0' + i), '\0' };
		uint32_t id = pprof_builder_string(c->b, str_of(name));

		c->functions[i] = pprof_builder_function(c->b,
			&(struct pprof_function){ .name = id,
				.system_name = id,
				.filename = pprof_builder_string(c->b, STR("x.go")),
					.start_line = starts ? 100 * (int64_t)i : 0 });
	}
	return true;
}

/* A location of n frames, innermost first: function, line. n 0: a location without lines. */
static uint32_t location(struct code *c, uint64_t address, const int64_t (*frames)[2], uint32_t n)
{
	struct pprof_line lines[4];

	for (uint32_t i = 0; i < n; i++)
		lines[i] = (struct pprof_line){ c->functions[frames[i][0]], frames[i][1], 0 };
	return pprof_builder_location(
		c->b, (struct pprof_location){ .address = address, .mapping = PPROF_NONE }, lines, n);
}

#define LOCATION(c, address, ...) \
	location(c, address, (const int64_t[][2]){ __VA_ARGS__ }, \
		sizeof((const int64_t[][2]){ __VA_ARGS__ }) / sizeof(int64_t[2]))

static enum err_code code_pgo(struct code *c, bool is_diff, struct pprof **out, struct err *err)
{
	struct render_options o = {
		.arena = &c->values.arena, .pgo_locations = c->locations, .pgo_leaf_lines = c->leaf_lines
	};
	struct result r = { .type = RESULT_PROFILES, .n = 1 };
	struct buf gz = { 0 };
	struct str raw;
	struct pprof *p;
	enum err_code rc;

	if ((rc = pprof_builder_finish(c->b, &p, err)))
		return rc;
	if (!(r.profiles = values_add(&c->values, p, 0, true)))
		return ERR_NOMEM;
	r.profiles->is_diff = is_diff;
	if (!(rc = render_pgo_gz(&r, &o, &gz, err)) &&
		!(rc = pprof_inflate(&c->values.arena, str_dup(&c->values.arena, buf_str(&gz)),
			  &pprof_limits_default, &raw, err)))
		rc = pprof_decode(&c->values.arena, raw, &pprof_limits_default, out, err);
	buf_release(&gz);
	return rc;
}

/*
 * "f1:150,f3:306 f2:200 3\n": locations leaf first, in each the innermost line first, value. If
 * the address of a location is not its place, it follows.
 */
static void print_stacks(const struct pprof *p, struct buf *out)
{
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		for (uint32_t k = 0; k < s->location_n; k++) {
			const struct pprof_location *l = &p->locations[p->location_ids[s->location_first + k]];

			CHECK_INT(l->mapping, PPROF_NONE);
			for (uint32_t n = 0; n < l->line_n; n++) {
				const struct pprof_line *line = &p->lines[l->line_first + n];

				buf_printf(out, "%s" STR_FMT ":%lld", n ? "," : "",
					STR_ARG(p->strings[p->functions[line->function].name]), (long long)line->line);
			}
			if (l->line_n == 0)
				buf_add_char(out, '?');
			if (l->address != k)
				buf_printf(out, "@%llu", (unsigned long long)l->address);
			buf_add_char(out, ' ');
		}
		CHECK_INT(s->label_n, 0);
		buf_add_i64(out, p->values[i]);
		buf_add_char(out, '\n');
	}
}

static void check_stacks(struct code *c, const char *want)
{
	struct buf text = { 0 };
	struct pprof *p = NULL;
	struct err err;

	CHECK_OK(code_pgo(c, false, &p, &err), &err);
	if (p) {
		print_stacks(p, &text);
		CHECK_STR(buf_str(&text), want);
		CHECK_INT(p->types_n, 1);
		CHECK_STR(p->strings[p->types[0].type], "cpu");
		CHECK_STR(p->strings[p->types[0].unit], "nanoseconds");
		CHECK_INT(p->mappings_n, 0);
		for (uint32_t i = 0; i < p->functions_n; i++)
			CHECK(p->functions[i].start_line > 0);
	}
	buf_release(&text);
	values_release(&c->values);
}

#define SAMPLE(c, value, ...) \
	pprof_builder_sample((c)->b, (const uint32_t[]){ __VA_ARGS__ }, \
		sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), NULL, 0, \
		(const int64_t[]){ value })

TEST(pgo_keeps_names_lines_and_five_locations)
{
	struct code c;
	uint32_t l[8], other;

	REQUIRE(code_open(&c, "cpu", "nanoseconds", true));
	for (uint32_t i = 0; i < 8; i++)
		l[i] = LOCATION(&c, 4096 + i, { 7 - (int64_t)i, 100 * (7 - (int64_t)i) + 5 });
	/* Another line of the leaf, or another address of a caller, is the same call. */
	other = LOCATION(&c, 5000, { 7, 711 });
	pprof_builder_sample(c.b, l, 8, NULL, 0, (int64_t[]){ 10 });
	SAMPLE(&c, 5, other, l[1], l[2], l[3], l[4]);
	SAMPLE(&c, 2, l[0], LOCATION(&c, 5001, { 6, 605 }));
	SAMPLE(&c, 1, other, l[1]);
	SAMPLE(&c, 7, l[3]);
	check_stacks(&c,
		"f7:700 f6:605 f5:505 f4:405 f3:305 15\n"
		"f7:700 f6:605 3\n"
		"f4:400 7\n");
}

TEST(pgo_keeps_as_many_locations_as_are_asked_for)
{
	static const struct {
		uint32_t locations;
		bool leaf_lines;
		const char *want;
	} table[] = {
		{ 1, false, "f7:700 15\n" },
		{ 1, true, "f7:705 10\nf7:711 5\n" },
		{ 2, false, "f7:700 f6:605 15\n" },
		{ 6, false, "f7:700 f6:605 f5:505 f4:405 f3:305 f2:205 10\nf7:700 f6:605 5\n" },
		{ UINT32_MAX, true,
			"f7:705 f6:605 f5:505 f4:405 f3:305 f2:205 f1:105 10\nf7:711 f6:605 5\n" },
	};

	for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
		struct code c;
		uint32_t l[7];

		REQUIRE(code_open(&c, "cpu", "nanoseconds", true));
		c.locations = table[k].locations;
		c.leaf_lines = table[k].leaf_lines;
		for (uint32_t i = 0; i < 7; i++)
			l[i] = LOCATION(&c, 4096 + i, { 7 - (int64_t)i, 100 * (7 - (int64_t)i) + 5 });
		pprof_builder_sample(c.b, l, 7, NULL, 0, (int64_t[]){ 10 });
		SAMPLE(&c, 5, LOCATION(&c, 5000, { 7, 711 }), l[1]);
		check_stacks(&c, table[k].want);
	}
}

/* The compiler takes an edge only from the last two locations, with all their lines. */
TEST(pgo_keeps_what_is_inlined_in_its_location)
{
	struct code c;
	uint32_t inlined, callers, outer;

	REQUIRE(code_open(&c, "cpu", "nanoseconds", true));
	inlined = LOCATION(&c, 5000, { 9, 903 }, { 8, 801 }, { 7, 702 });
	callers = LOCATION(&c, 5001, { 6, 601 }, { 5, 502 }, { 4, 403 });
	outer = LOCATION(&c, 5002, { 3, 301 });
	SAMPLE(&c, 3, inlined, callers, outer, outer, outer, outer);
	SAMPLE(&c, 1, callers, inlined);
	check_stacks(&c,
		"f9:900,f8:801,f7:702 f6:601,f5:502,f4:403 f3:301 f3:301@2 f3:301@2 3\n"
		"f6:600,f5:502,f4:403 f9:903,f8:801,f7:702 1\n");
}

/* An edge over a frame without a function is not in the code, but has a weight. */
TEST(pgo_keeps_unknown_locations)
{
	struct code c;
	uint32_t a, b, unknown, other;

	REQUIRE(code_open(&c, "cpu", "nanoseconds", true));
	a = LOCATION(&c, 4096, { 2, 205 });
	b = LOCATION(&c, 4097, { 3, 305 });
	unknown = location(&c, 5001, NULL, 0);
	other = location(&c, 5002, NULL, 0);
	SAMPLE(&c, 2, a, unknown, b);
	SAMPLE(&c, 1, unknown, a, b);
	SAMPLE(&c, 4, unknown, other);
	SAMPLE(&c, 5, unknown, unknown);
	SAMPLE(&c, 7, unknown);
	check_stacks(&c,
		"f2:200 ? f3:305 2\n"
		"? f2:205 f3:305 1\n"
		"? ? 4\n"
		"? 7\n"
		"? ?@0 5\n");
}

/* A recursive function has an edge unless caller and callee are at the same place in it. */
TEST(pgo_keeps_places_of_recursion_apart)
{
	struct code c;
	uint32_t leaf, call, same, mixed;

	REQUIRE(code_open(&c, "cpu", "nanoseconds", true));
	leaf = LOCATION(&c, 4096, { 2, 203 });
	call = LOCATION(&c, 4097, { 2, 203 });
	same = LOCATION(&c, 4096, { 2, 207 });
	mixed = LOCATION(&c, 4098, { 2, 209 }, { 2, 205 });
	SAMPLE(&c, 1, leaf, call);
	SAMPLE(&c, 2, leaf, leaf);
	SAMPLE(&c, 4, leaf, same);
	SAMPLE(&c, 8, mixed);
	SAMPLE(&c, 16, leaf);
	check_stacks(&c,
		"f2:203 f2:203 1\n"
		"f2:200 16\n"
		"f2:203 f2:203@0 2\n"
		"f2:203 f2:207@0 4\n"
		"f2:209,f2:205 8\n");
}

TEST(pgo_wants_a_cpu_profile_with_start_lines)
{
	static const struct {
		const char *type, *unit;
		bool starts, is_diff;
		const char *want;
	} table[] = {
		{ "cpu", "nanoseconds", false, false,
			"-pgo needs the start line of each function: build with Go 1.20 or later" },
		{ "inuse_space", "bytes", true, false,
			"-pgo needs a CPU profile (samples/count or cpu/nanoseconds), got inuse_space/bytes" },
		{ "samples", "count", true, true, "-pgo needs a profile, not a difference" },
		{ "samples", "count", true, false, NULL },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct code c;
		struct pprof *p = NULL;
		struct err err;
		uint32_t l;

		REQUIRE(code_open(&c, table[i].type, table[i].unit, table[i].starts));
		l = LOCATION(&c, 4096, { 1, 101 });
		pprof_builder_sample(c.b, &l, 1, NULL, 0, (int64_t[]){ 1 });
		if (table[i].want) {
			CHECK_INT(code_pgo(&c, table[i].is_diff, &p, &err), ERR_INVALID);
			CHECK_STR(str_of(err.msg), table[i].want);
		} else {
			CHECK_OK(code_pgo(&c, false, &p, &err), &err);
		}
		values_release(&c.values);
	}
}
