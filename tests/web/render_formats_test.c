/* What formats promise of any profile: totals that hold however much is left out, and pgo. */
#include "tests/draw.h"
#include "tests/values.h"
#include "web/render.h"
#include "web/render_flame.h"

#define SEEDS 12u

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

/* Pyroscope's tree: the sum of what each box says is its own. */
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
};

/* Functions f0..f9; fN starts at line 100 * N, or nowhere. */
static bool code_open(struct code *c, const char *type, const char *unit, bool starts)
{
	struct err err;

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

/* A location of n frames, innermost first: function, line; n 0: none is known. */
static uint32_t location(struct code *c, uint64_t address, const int64_t (*frames)[2], uint32_t n)
{
	struct pprof_line lines[4];

	for (uint32_t i = 0; i < n; i++)
		lines[i] = (struct pprof_line){ c->functions[frames[i][0]], frames[i][1], 0 };
	return pprof_builder_location(c->b,
		(struct pprof_location){ .address = address, .mapping = PPROF_NONE }, lines, n);
}

#define LOCATION(c, address, ...) \
	location(c, address, (const int64_t[][2]){ __VA_ARGS__ }, \
		sizeof((const int64_t[][2]){ __VA_ARGS__ }) / sizeof(int64_t[2]))

static enum err_code code_pgo(struct code *c, bool is_diff, struct pprof **out, struct err *err)
{
	struct render_options o = { .arena = &c->values.arena };
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

/* "f1:150 f2:200 3\n": frames leaf first, value. */
static void print_stacks(const struct pprof *p, struct buf *out)
{
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		for (uint32_t k = 0; k < s->location_n; k++) {
			const struct pprof_location *l =
				&p->locations[p->location_ids[s->location_first + k]];
			const struct pprof_line *line = &p->lines[l->line_first];

			CHECK_INT(l->line_n, 1);
			CHECK_INT(l->address, 0);
			CHECK_INT(l->mapping, PPROF_NONE);
			buf_printf(out, STR_FMT ":%lld ",
				STR_ARG(p->strings[p->functions[line->function].name]),
				(long long)line->line);
		}
		CHECK_INT(s->label_n, 0);
		buf_add_i64(out, p->values[i]);
		buf_add_char(out, '\n');
	}
}

TEST(pgo_keeps_names_lines_and_five_frames)
{
	struct code c;
	struct pprof *p = NULL;
	struct buf text = { 0 };
	struct err err;
	uint32_t l[8], known, unknown, inlined;

	REQUIRE(code_open(&c, "cpu", "nanoseconds", true));
	for (uint32_t i = 0; i < 8; i++)
		l[i] = LOCATION(&c, 4096 + i, { 7 - (int64_t)i, 100 * (7 - (int64_t)i) + 5 });
	/* Another line of the leaf is the same call. */
	known = LOCATION(&c, 5000, { 7, 711 });
	unknown = location(&c, 5001, NULL, 0);
	inlined = LOCATION(&c, 5002, { 9, 903 }, { 8, 801 });
	pprof_builder_sample(c.b, l, 8, NULL, 0, (int64_t[]){ 10 });
	pprof_builder_sample(
		c.b, (uint32_t[]){ known, l[1], l[2], l[3], l[4] }, 5, NULL, 0, (int64_t[]){ 5 });
	pprof_builder_sample(c.b, (uint32_t[]){ inlined, l[1] }, 2, NULL, 0, (int64_t[]){ 3 });
	/* Below what nobody knows is the stack, above it are no edges. */
	pprof_builder_sample(
		c.b, (uint32_t[]){ l[1], l[2], unknown, l[3] }, 4, NULL, 0, (int64_t[]){ 2 });
	pprof_builder_sample(
		c.b, (uint32_t[]){ unknown, l[2], l[3] }, 3, NULL, 0, (int64_t[]){ 1 });
	pprof_builder_sample(c.b, (uint32_t[]){ unknown }, 1, NULL, 0, (int64_t[]){ 7 });
	CHECK_OK(code_pgo(&c, false, &p, &err), &err);
	REQUIRE(p != NULL);
	print_stacks(p, &text);
	CHECK_STR(buf_str(&text),
		"f7:700 f6:605 f5:505 f4:405 f3:305 15\n"
		"f9:900 f8:801 f6:605 3\n"
		"f6:600 f5:505 2\n"
		"f5:500 f4:405 1\n");
	CHECK_INT(p->types_n, 1);
	CHECK_STR(p->strings[p->types[0].type], "cpu");
	CHECK_STR(p->strings[p->types[0].unit], "nanoseconds");
	CHECK_INT(p->mappings_n, 0);
	for (uint32_t i = 0; i < p->functions_n; i++)
		CHECK(p->functions[i].start_line > 0);
	buf_release(&text);
	values_release(&c.values);
}

TEST(pgo_wants_a_cpu_profile_with_start_lines)
{
	static const struct {
		const char *type, *unit;
		bool starts, is_diff;
		const char *want;
	} table[] = {
		{ "cpu", "nanoseconds", false, false,
			"format=pgo wants functions that say on which line they start: programs "
			"built "
			"with Go 1.20 or later say so" },
		{ "inuse_space", "bytes", true, false,
			"format=pgo wants a CPU profile (samples/count or cpu/nanoseconds), the "
			"query "
			"gives inuse_space/bytes" },
		{ "samples", "count", true, true,
			"format=pgo wants a profile, the query gives a difference" },
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
