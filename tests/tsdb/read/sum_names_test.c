/* Stacks as costs by name, against a walk over each stack; and those that stay stacks. */
#include "tests/check.h"
#include "tests/draw.h"
#include "tsdb/read/sum_internal.h"
#include "tsdb/symbols/partition.h"
#include "tsdb/symbols/shown.h"

#define NODES 6000u /* three pages of an accumulator */
#define LOCATIONS 90u
#define FUNCTIONS 40u
#define NAMES 30u
#define CELLS 500u

enum tree {
	PLAIN = 0,
	NAMELESS = 1, /* some frames have no name */
	DROPS = 2, /* the header drops frames */
	TWOFOLD = 4, /* two functions of one name are shown under different ones */
	LESS = 8, /* a cost is negative */
	MOVES = 16, /* and those above do not */
	SHOWN = 16, /* functions are shown under other names, some of them as one */
};

struct town {
	struct draw d;
	struct partition *p;
	uint32_t header;
	uint32_t stacks[CELLS];
	int64_t values[CELLS];
};

static uint32_t string_id(struct partition *p, const char *s)
{
	uint32_t id = 0;

	CHECK(!sym_intern_string(p, str_of(s), &id, NULL));
	return id;
}

static void add_functions(struct town *t, unsigned tree, uint32_t *functions)
{
	char name[32];

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct sym_function f = { .start_line = i };

		snprintf(name, sizeof(name), "f%d", (int)draw(&t->d, NAMES));
		if (tree & SHOWN &&
			draw(&t->d, 2)) /* each of ten with any of three parameters, or "foo::f1" */
			snprintf(name, sizeof(name), draw(&t->d, 5) ? "_ZN3foo2f%dE%c" : "foo::f%d",
				(int)draw(&t->d, 10), "ijl"[draw(&t->d, 3)]);
		f.name = f.system_name = string_id(t->p, name);
		if (tree & TWOFOLD && i < 2) {
			f.name = string_id(t->p, "_ZN3foo3barEv");
			f.system_name = i ? f.name : string_id(t->p, "other");
		}
		CHECK(!sym_intern_function(t->p, &f, &functions[i], NULL));
	}
}

static void add_locations(struct town *t, unsigned tree, uint32_t *locations)
{
	uint32_t functions[FUNCTIONS];
	struct sym_line lines[4];

	add_functions(t, tree, functions);
	for (uint32_t i = 0; i < LOCATIONS; i++) {
		uint32_t n = draw(&t->d, 3) ? 1 : 1 + (uint32_t)draw(&t->d, 4);

		if (tree & NAMELESS && i % 8 == 0)
			n = 0;
		for (uint32_t k = 0; k < n; k++)
			lines[k] = (struct sym_line){ functions[draw(&t->d, FUNCTIONS)], (int64_t)i, 0 };
		CHECK(!sym_intern_location(t->p,
			&(struct sym_location){
				.address = i, .mapping = SYM_NONE, .lines_n = n, .lines = lines },
			&locations[i], NULL));
	}
}

static bool open_town(struct town *t, uint64_t seed, unsigned tree)
{
	const struct symbol_limits limits = { 100000, 100000, 100000, 1 << 26 };
	uint32_t locations[LOCATIONS], node;
	struct sym_header h = { .types_n = 1 };
	struct sym_type type = { .kind = KIND_DELTA };
	struct err err;

	*t = (struct town){ .d = { seed } };
	if (partition_open(STR("job"), 0, 0, &limits, &t->p, &err)) {
		CHECK_FAIL("%s", err.msg);
		return false;
	}
	add_locations(t, tree, locations);
	h.types = &type;
	h.drop_frames = string_id(t->p, tree & DROPS ? "f1" : "");
	CHECK(!sym_intern_header(t->p, &h, &t->header, NULL));
	while ((node = sym_nodes_n(t->p)) < NODES)
		CHECK(!sym_intern_node(t->p,
			draw(&t->d, 4) ? node - 1 :
				node > 1   ? (uint32_t)draw(&t->d, node) :
							 0,
			locations[draw(&t->d, LOCATIONS)], &node, NULL));
	for (uint32_t i = 0; i < CELLS; i++) {
		t->stacks[i] = i ? (uint32_t)draw(&t->d, NODES) : 0; /* the empty stack, too */
		t->values[i] = (int64_t)draw(&t->d, 1000) * 10000000;
	}
	if (tree & LESS)
		t->values[7] = -1;
	return true;
}

/* ---- the long way ---- */

struct named {
	struct str text;
	int64_t flat, cum;
	uint32_t seen; /* the last stack it was in */
};

static struct named *named_of(const struct town *t, struct named *v, uint32_t function)
{
	struct str text = sym_function_name(t->p, sym_function(t->p, function));

	while (v->text.ptr && !str_eq(v->text, text))
		v++;
	v->text = text;
	return v;
}

static void walk(const struct town *t, struct named *by_name, int64_t *total)
{
	for (uint32_t i = 0; i < CELLS; i++) {
		*total += t->values[i];
		for (uint32_t node = t->stacks[i]; node; node = sym_node(t->p, node).parent) {
			const struct sym_location l = sym_location(t->p, sym_node(t->p, node).location);

			for (uint32_t k = 0; k < l.lines_n; k++) {
				struct named *n = named_of(t, by_name, l.lines[k].function);

				n->flat += node == t->stacks[i] && k == 0 ? t->values[i] : 0;
				n->cum += n->seen == i + 1 ? 0 : t->values[i];
				n->seen = i + 1;
			}
		}
	}
}

static void compare(const struct town *t, struct function_sums *f)
{
	struct named *want = calloc(FUNCTIONS + 1, sizeof(*want));
	const struct function_sum *got;
	int64_t total = 0, got_total;
	size_t n = 0, at = 0;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	walk(t, want, &total);
	CHECK_OK(function_sums_list(f, &a, &got, &n, &got_total, &err), &err);
	CHECK_INT(got_total, total);
	for (struct named *w = want; w->text.ptr; w++) {
		int64_t flat = 0, cum = 0;

		for (size_t i = 0; i < n; i++)
			if (!got[i].unnamed && str_eq(sym_shown_string(t->p, got[i].name), w->text)) {
				flat += got[i].flat;
				cum += got[i].cum;
			}
		if (flat != w->flat || cum != w->cum)
			CHECK_FAIL(STR_FMT " differs", STR_ARG(w->text));
		at += cum != 0;
	}
	CHECK_INT(at, n);
	CHECK(n > 10);
	arena_release(&a);
	free(want);
}

/* ---- both ---- */

static size_t cells_n(struct accum *acc)
{
	struct accum_cell cell;
	size_t at = 0, n = 0;
	struct err err;

	CHECK_OK(accum_seal(acc, &err), &err);
	while (accum_next(acc, &at, &cell))
		n++;
	return n;
}

static void check_town(uint64_t seed, unsigned tree)
{
	struct sum_stats stats = { 0 };
	struct db_querier q = { 0 };
	struct summing t = { .q = &q, .stats = &stats };
	struct town town;
	struct err err;
	size_t before;

	if (!open_town(&town, seed, tree))
		return;
	stats.headers = &town.header;
	stats.headers_n = 1;
	t.p = town.p;
	REQUIRE_OK(accum_open(town.p, 0, &t.acc, &err), &err);
	REQUIRE_OK(function_sums_open(&t.functions, &err), &err);
	CHECK_OK(sum_names(&t, &err), &err); /* of nothing */
	for (int half = 0; half < 2; half++) {
		CHECK_OK(accum_add(t.acc, town.stacks + half * CELLS / 2, NULL,
					 town.values + half * CELLS / 2, CELLS / 2, 1, &err),
			&err);
		before = cells_n(t.acc);
		CHECK_OK(sum_names(&t, &err), &err);
		CHECK_INT(cells_n(t.acc), tree % MOVES ? before : 0);
	}
	if (!(tree % MOVES))
		compare(&town, t.functions);
	accum_close(t.acc);
	function_sums_close(t.functions);
	partition_close(town.p);
}

TEST(costs_by_name_are_those_of_a_walk_over_each_stack)
{
	for (uint64_t seed = 0; seed < 20; seed++)
		check_town(seed, seed % 2 ? PLAIN : SHOWN);
}

TEST(stacks_stay_where_names_tell_less)
{
	for (unsigned tree = 1; tree <= LESS; tree *= 2)
		check_town(tree, tree);
}

TEST(costs_that_do_not_fit_stay_stacks)
{
	const int64_t most[] = { INT64_MAX, 1 };
	struct sum_stats stats = { 0 };
	struct db_querier q = { 0 };
	struct summing t = { .q = &q, .stats = &stats };
	struct town town;
	struct err err;

	if (!open_town(&town, 1, PLAIN))
		return;
	t.p = town.p;
	REQUIRE_OK(accum_open(town.p, 0, &t.acc, &err), &err);
	REQUIRE_OK(function_sums_open(&t.functions, &err), &err);
	CHECK_OK(accum_add(t.acc, (const uint32_t[]){ 1, 2 }, NULL, most, 2, 1, &err), &err);
	CHECK_OK(sum_names(&t, &err), &err);
	CHECK_INT(cells_n(t.acc), 2);
	accum_close(t.acc);
	function_sums_close(t.functions);
	partition_close(town.p);
}
