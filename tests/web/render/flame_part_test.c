/* Parts of a flame graph: what is below a call path, and what its "other" has. */
#include "tests/values.h"
#include "web/render/flame.h"

/*
 *	main                 self 1
 *	  idle               self 2
 *	  work               self 3
 *	    leaf             self 4
 *	lib                  self 5
 *	other                self 6, a function
 */
struct made {
	struct values values;
	struct profile_value *v;
};

static uint32_t location(struct pprof_builder *b, const char *name)
{
	struct pprof_function f = { .name = pprof_builder_string(b, str_of(name)) };
	struct pprof_line line = { pprof_builder_function(b, &f), 1, 0 };

	return pprof_builder_location(
		b, (struct pprof_location){ .address = 1, .mapping = PPROF_NONE }, &line, 1);
}

static bool make(struct made *m)
{
	struct pprof_builder *b;
	uint32_t main, idle, work, leaf, lib, other;
	struct pprof *p;
	struct err err;

	if (!values_init(&m->values, "job") || pprof_builder_open(&m->values.arena, &b, &err))
		return false;
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	main = location(b, "main");
	idle = location(b, "idle");
	work = location(b, "work");
	leaf = location(b, "leaf");
	lib = location(b, "lib");
	other = location(b, "other");
	pprof_builder_sample(b, (uint32_t[]){ main }, 1, NULL, 0, (int64_t[]){ 1 });
	pprof_builder_sample(b, (uint32_t[]){ idle, main }, 2, NULL, 0, (int64_t[]){ 2 });
	pprof_builder_sample(b, (uint32_t[]){ work, main }, 2, NULL, 0, (int64_t[]){ 3 });
	pprof_builder_sample(b, (uint32_t[]){ leaf, work, main }, 3, NULL, 0, (int64_t[]){ 4 });
	pprof_builder_sample(b, (uint32_t[]){ lib }, 1, NULL, 0, (int64_t[]){ 5 });
	pprof_builder_sample(b, (uint32_t[]){ other }, 1, NULL, 0, (int64_t[]){ 6 });
	if (pprof_builder_finish(b, &p, &err))
		return false;
	m->v = values_add(&m->values, p, 0, true);
	return m->v != NULL;
}

static void check_levels(const struct made *m, const struct render_options *o, const char *want)
{
	struct buf out = { 0 };
	struct json j;
	struct err err;

	json_init(&j, &out);
	REQUIRE_OK(render_flame(&j, m->v, o, &err), &err);
	if (str_find(buf_str(&out), str_of(want)) < 0)
		CHECK_FAIL("%s is not in " STR_FMT, want, STR_ARG(buf_str(&out)));
	buf_release(&out);
}

TEST(parts)
{
	static const struct str path[] = { STR("main"), STR("work") };
	/* clang-format off */
	static const struct {
		size_t n;
		int skip; /* -1: all of it */
		size_t max_nodes;
		const char *want;
	} rows[] = {
		{ 1, -1, 10, "[[0,10,0,0],[0,10,1,1],[1,2,2,2,0,7,3,3],[6,4,4,4]]" },
		{ 2, -1, 10, "[[0,7,0,0],[0,7,0,1],[0,7,3,2],[3,4,4,3]]" },
		/* Two nodes besides the path, which is main alone: the root counts too. */
		{ 1, -1, 2, "[[0,10,0,0],[0,10,1,1],[1,7,3,2,0,2,2,3],[4,4,4,3]]" },
		/* All callees of main, without its own cost. */
		{ 1, 0, 10, "[[0,9,0,0],[0,9,0,1],[0,2,2,2,0,7,3,3],[5,4,4,4]]" },
		{ 1, 1, 10, "[[0,2,0,0],[0,2,0,1],[0,2,2,2]]" },
		{ 1, 2, 10, "[[0,0,0,0]]" },
		{ 1, 99, 10, "[[0,0,0,0]]" },
		{ 0, 1, 10, "[[0,11,0,0],[0,5,5,1,0,6,6,2]]" },
	};
	/* clang-format on */
	struct made m;

	REQUIRE(make(&m));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_levels(&m,
			&(struct render_options){ .arena = &m.values.arena,
				.max_nodes = rows[i].max_nodes,
				.call_site = path,
				.call_site_n = rows[i].n,
				.call_site_rest = rows[i].skip >= 0,
				.call_site_skip = rows[i].skip < 0 ? 0 : (size_t)rows[i].skip },
			rows[i].want);
	values_release(&m.values);
}

/* With a cost below 0 the tree is built whole. That cost is not shown. */
TEST(parts_beside_negative_costs)
{
	static const struct str path[] = { STR("main") };
	struct render_options o;
	struct made m;

	REQUIRE(make(&m));
	for (size_t i = 0; i < m.v->parts[0].n; i++)
		if (m.v->parts[0].cells[i].value == 5)
			m.v->parts[0].cells[i].value = -5;
	o = (struct render_options){
		.arena = &m.values.arena, .call_site = path, .call_site_rest = true, .call_site_skip = 1
	};
	check_levels(&m, &o, "[[0,6,0,0],[0,6,6,1]]");
	o.call_site_n = 1;
	check_levels(&m, &o, "[[0,2,0,0],[0,2,0,1],[0,2,2,2]]");
	o.call_site_rest = false;
	check_levels(&m, &o, "[[0,10,0,0],[0,10,1,1],[1,2,2,2,0,7,3,3],[6,4,4,4]]");
	values_release(&m.values);
}

/* Both sides of a difference; a child that costs more on one side only. */
TEST(parts_of_a_difference)
{
	static const struct str path[] = { STR("main") };
	struct made m;

	REQUIRE(make(&m));
	m.v->is_diff = true;
	for (size_t i = 0; i < m.v->parts[0].n; i++)
		if (m.v->parts[0].cells[i].value == 2)
			m.v->parts[0].cells[i].base = 20;
	/* idle has 22, work 7: idle is the heavier one. */
	check_levels(&m,
		&(struct render_options){ .arena = &m.values.arena,
			.call_site = path,
			.call_site_n = 1,
			.call_site_rest = true,
			.call_site_skip = 1 },
		"[[0,0,0,0,7,0,0],[0,0,0,0,7,0,1],[0,0,0,0,7,3,2],[0,0,0,3,4,4,3]]");
	values_release(&m.values);
}

/* A function may be called "other" too. */
TEST(the_name_of_what_is_left_out)
{
	struct flame_options o = { .max_nodes = 3 };
	struct flame_picture f;
	struct made m;
	struct err err;

	REQUIRE(make(&m));
	REQUIRE_OK(flame_layout(m.v, &o, &m.values.arena, &f, &err), &err);
	REQUIRE(f.other > 0 && f.other < f.names_n);
	CHECK_STR(f.names[f.other], "other");
	/* Of 21, main, work and what is left out of the root are drawn; lib and the function are in it.
	 */
	CHECK_INT(f.rows[1].n, 8);
	CHECK_INT(f.rows[1].v[7], f.other);
	o.max_nodes = 100;
	REQUIRE_OK(flame_layout(m.v, &o, &m.values.arena, &f, &err), &err);
	CHECK_INT(f.other, 0);
	values_release(&m.values);
}
