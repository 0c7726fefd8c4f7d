#include "cmd/epitool/compare/costs.h"

#include <math.h>

#include "tests/check.h"

/* Two functions: main calls leaf, and itself. */
static const char *leaf = "leaf";

static void add(struct costs *c, unsigned side, int64_t in_main, int64_t in_leaf)
{
	struct arena *a = c->arena;
	struct pprof_builder *b;
	struct pprof *p;
	struct err err;
	uint32_t at[2], stack[3];

	REQUIRE_OK(pprof_builder_open(a, &b, &err), &err);
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	for (uint32_t i = 0; i < 2; i++) {
		struct pprof_function f = { .name = pprof_builder_string(b, i ? str_of(leaf) : STR("main")),
										.filename = pprof_builder_string(b, STR("x.go")) };
		struct pprof_line line = { .function = pprof_builder_function(b, &f), .line = 7 + i };

		at[i] = pprof_builder_location(
			b, (struct pprof_location){ .mapping = PPROF_NONE }, &line, 1);
	}
	stack[0] = at[1];
	stack[1] = stack[2] = at[0];
	pprof_builder_sample(b, stack, 3, NULL, 0, &in_leaf);
	pprof_builder_sample(b, stack + 1, 2, NULL, 0, &in_main);
	REQUIRE_OK(pprof_builder_finish(b, &p, &err), &err);
	CHECK_OK(costs_add(c, p, 0, side, &err), &err);
}

struct want {
	const char *name;
	int64_t flat[2], cum[2], change;
	double percent;
	bool exceeds;
};

static void check(enum costs_by by, const struct compare_options *o, const struct want *want,
	size_t n, size_t exceeding)
{
	struct costs c;
	struct arena a;

	arena_init(&a, 0);
	costs_init(&c, &a, by);
	add(&c, COSTS_BASE, 60, 40);
	add(&c, COSTS_NEW, 60, 140);
	CHECK_INT(c.total[COSTS_BASE], 100);
	CHECK_INT(c.total[COSTS_NEW], 200);
	costs_compare(&c, o);
	CHECK_INT(c.n, n);
	CHECK_INT(c.exceeding, exceeding);
	for (size_t i = 0; i < c.n && i < n; i++) {
		CHECK_STR(c.rows[i].name, want[i].name);
		for (size_t k = 0; k < 2; k++) {
			CHECK_INT(c.rows[i].flat[k], want[i].flat[k]);
			CHECK_INT(c.rows[i].cum[k], want[i].cum[k]);
		}
		CHECK_INT(c.rows[i].change, want[i].change);
		CHECK(fabs(c.rows[i].percent - want[i].percent) < 1e-9);
		CHECK(c.rows[i].exceeds == want[i].exceeds);
	}
	costs_release(&c);
	arena_release(&a);
}

TEST(costs)
{
	const struct compare_options o = { .threshold = 50 };
	const struct want want[] = {
		{ "leaf", { 40, 140 }, { 40, 140 }, 100, 100, true },
		{ "main", { 60, 60 }, { 100, 200 }, 0, 0, false },
	};

	check(BY_FUNCTION, &o, want, 2, 1);
}

TEST(shares)
{
	struct compare_options o = { .threshold = 20, .normalize = true };
	struct want want[] = {
		{ "leaf", { 40, 70 }, { 40, 70 }, 30, 30, true },
		{ "main", { 60, 30 }, { 100, 100 }, -30, -30, false },
	};

	check(BY_FUNCTION, &o, want, 2, 1);
	o.both_ways = want[1].exceeds = true;
	check(BY_FUNCTION, &o, want, 2, 2);
}

/* Samples in it are those of the function that it interrupts, if that is asked for. */
TEST(preempts)
{
	struct costs c;
	struct arena a;

	leaf = "runtime.asyncPreempt";
	for (int no_preempts = 0; no_preempts < 2; no_preempts++) {
		arena_init(&a, 0);
		costs_init(&c, &a, BY_FUNCTION);
		c.no_preempts = no_preempts;
		add(&c, COSTS_BASE, 60, 40);
		costs_compare(&c, &(const struct compare_options){ .threshold = -1 });
		CHECK_INT(c.n, no_preempts ? 1 : 2);
		for (size_t i = 0; i < c.n; i++)
			if (str_is(c.rows[i].name, "main"))
				CHECK_INT(c.rows[i].flat[COSTS_BASE], no_preempts ? 100 : 60);
		CHECK_INT(c.total[COSTS_BASE], 100);
		costs_release(&c);
		arena_release(&a);
	}
	leaf = "leaf";
}

TEST(cum_of_lines)
{
	const struct compare_options o = { .threshold = -1, .cum = true };
	const struct want want[] = {
		{ "x.go:7", { 60, 60 }, { 100, 200 }, 100, 100, false },
		{ "x.go:8", { 40, 140 }, { 40, 140 }, 100, 100, false },
	};

	check(BY_LINE, &o, want, 2, 0);
}

TEST(whole_files)
{
	const struct compare_options o = { .threshold = 100 };
	const struct want want[] = { { "x.go", { 100, 200 }, { 100, 200 }, 100, 100, false } };
	enum costs_by by;
	struct err err;

	check(BY_FILENAME, &o, want, 1, 0);
	CHECK(!costs_check_flags("mapping", "cum", &by, &err) && by == BY_MAPPING);
	CHECK(costs_check_flags("age", "flat", &by, &err) == ERR_INVALID);
	CHECK_STR(str_of(err.msg),
		"unknown --by \"age\"; known are function, system_name, filename, line, mapping");
	CHECK(costs_check_flags("line", "both", &by, &err) == ERR_INVALID);
	CHECK_STR(str_of(err.msg), "--measure is flat or cum, not \"both\"");
}
