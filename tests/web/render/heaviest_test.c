/* The heaviest nodes of a tree, beside the tree that is built whole. */
#include "tests/draw.h"
#include "tests/values.h"
#include "web/render/heaviest.h"

#define SEEDS (check_is_short() ? 10u : 40u)
#define PARTS 12u /* nodes whose parts are looked at */

static int64_t weight(const struct tree_node *n)
{
	return n->total[0] + n->total[1];
}

/* The node of the whole tree with this name below this parent. */
static uint32_t child_of(const struct frame_tree *whole, uint32_t parent, struct str name)
{
	for (uint32_t i = parent + 1; i < whole->n; i++)
		if (whole->nodes[i].parent == parent && str_eq(whole->names[whole->nodes[i].name], name))
			return i;
	return 0;
}

static size_t heavier_than(const struct frame_tree *t, int64_t least)
{
	size_t n = 0;

	for (uint32_t i = 1; i < t->n; i++)
		n += weight(&t->nodes[i]) > least;
	return n;
}

static size_t with_cost(const struct frame_tree *t)
{
	return heavier_than(t, 0);
}

/* Each node of t is in the whole tree with the same costs, and `other` is what its children lack.
 */
static void check_nodes(const struct frame_tree *t, int64_t (*other)[2],
	const struct frame_tree *whole, struct arena *a)
{
	uint32_t *same = arena_array(a, uint32_t, t->n);
	int64_t(*below)[2] = arena_calloc(a, t->n, sizeof(*below));

	for (uint32_t i = 0; i < t->n; i++) {
		const struct tree_node *n = &t->nodes[i], *w;

		if (i) {
			same[i] = child_of(whole, same[n->parent], t->names[n->name]);
			CHECK(same[i] != 0);
		}
		w = &whole->nodes[same[i]];
		for (int side = 0; side < 2; side++) {
			CHECK_INT(n->self[side], w->self[side]);
			CHECK_INT(n->total[side], w->total[side]);
			if (i)
				below[n->parent][side] += n->total[side];
		}
	}
	for (uint32_t i = 0; i < t->n; i++)
		for (int side = 0; side < 2; side++)
			CHECK_INT(
				other[i][side], t->nodes[i].total[side] - t->nodes[i].self[side] - below[i][side]);
}

static void check_cut(
	const struct profile_value *p, const struct frame_tree *whole, size_t max, struct arena *a)
{
	struct frame_tree t;
	int64_t(*other)[2], least = INT64_MAX;
	size_t all = with_cost(whole) + 1;
	struct err err;

	REQUIRE_OK(frame_tree_init(&t, a, &err), &err);
	CHECK_OK(frame_tree_heaviest(&t, p, NULL, max, &other, &err), &err);
	CHECK_INT(t.n, all < max ? all : max);
	for (uint32_t i = 1; i < t.n; i++)
		least = weight(&t.nodes[i]) < least ? weight(&t.nodes[i]) : least;
	if (t.n > 1)
		CHECK(heavier_than(whole, least) <= t.n - 2);
	check_nodes(&t, other, whole, a);
	frame_tree_release(&t);
}

/* The names from the root down to a node. */
static struct tree_part part_of(const struct frame_tree *t, uint32_t node, struct arena *a)
{
	struct tree_part part = { .n = 0 };
	struct str *path;

	for (uint32_t i = node; i; i = t->nodes[i].parent)
		part.n++;
	path = arena_array(a, struct str, part.n + 1);
	part.path = path;
	for (size_t i = part.n; i-- > 0; node = t->nodes[node].parent)
		path[i] = t->names[t->nodes[node].name];
	return part;
}

/* The node of t at the end of a path; NO_NODE: there is none. */
#define NO_NODE UINT32_MAX
static uint32_t find(const struct frame_tree *t, const struct tree_part *part)
{
	uint32_t at = 0;

	for (size_t i = 0; i < part->n; i++)
		if (!(at = child_of(t, at, part->path[i])))
			return NO_NODE;
	return at;
}

/* The same nodes with costs and the same costs, in whatever order. */
static void check_same(const struct frame_tree *a, const struct frame_tree *b, struct arena *arena)
{
	uint32_t *same = arena_array(arena, uint32_t, a->n);

	CHECK_INT(with_cost(a), with_cost(b));
	for (uint32_t i = 0; i < a->n; i++) {
		const struct tree_node *n = &a->nodes[i];

		if (!weight(n))
			continue;
		if (i) {
			same[i] = child_of(b, same[n->parent], a->names[n->name]);
			CHECK(same[i] != 0);
		}
		for (int side = 0; side < 2; side++) {
			CHECK_INT(n->self[side], b->nodes[same[i]].self[side]);
			CHECK_INT(n->total[side], b->nodes[same[i]].total[side]);
		}
	}
}

/* A part by both ways; returns its total. */
static int64_t check_part(
	const struct profile_value *p, const struct tree_part *part, struct arena *a)
{
	struct frame_tree heaviest, whole;
	int64_t(*other)[2], total;
	struct err err;

	CHECK_OK(frame_tree_init(&whole, a, &err), &err);
	CHECK_OK(frame_tree_add(&whole, 0, p, &err), &err);
	CHECK_OK(frame_tree_total_part(&whole, part, &err), &err);
	CHECK_OK(frame_tree_init(&heaviest, a, &err), &err);
	CHECK_OK(frame_tree_heaviest(&heaviest, p, part, SIZE_MAX, &other, &err), &err);
	total = weight(&whole.nodes[0]);
	CHECK_INT(weight(&heaviest.nodes[0]), total);
	/* Of equals the first is skipped; what is first is not the same in both. */
	if (!part->rest)
		check_same(&heaviest, &whole, a);
	frame_tree_release(&heaviest);
	frame_tree_release(&whole);
	return total;
}

/*
 * What a cut tree lacks below a node is what the parts there have: the node's total, and what
 * "other" has without the children that are shown. So a zoom finds all of it, step by step.
 */
static void check_parts(
	const struct profile_value *p, const struct frame_tree *whole, size_t max, struct arena *a)
{
	struct frame_tree cut, rest;
	int64_t(*other)[2], (*none)[2];
	struct err err;

	REQUIRE_OK(frame_tree_init(&cut, a, &err), &err);
	CHECK_OK(frame_tree_heaviest(&cut, p, NULL, max, &other, &err), &err);
	for (uint32_t i = 0; i < cut.n; i++) {
		struct tree_part part = part_of(&cut, i, a);
		uint32_t at;

		CHECK_INT(check_part(p, &part, a), weight(&cut.nodes[i]));
		for (uint32_t k = i + 1; k < cut.n; k++)
			part.skip += cut.nodes[k].parent == i;
		part.rest = true; /* also where no child is shown */
		CHECK_INT(check_part(p, &part, a), other[i][0] + other[i][1]);
		REQUIRE_OK(frame_tree_init(&rest, a, &err), &err);
		CHECK_OK(frame_tree_heaviest(&rest, p, &part, SIZE_MAX, &none, &err), &err);
		if ((at = find(&rest, &part)) != NO_NODE) {
			uint32_t in_whole = find(whole, &part);

			CHECK_INT(weight(&rest.nodes[at]), other[i][0] + other[i][1]);
			for (uint32_t k = at + 1; k < rest.n; k++)
				if (rest.nodes[k].parent == at) {
					struct str name = rest.names[rest.nodes[k].name];

					CHECK(!child_of(&cut, i, name)); /* none is shown twice */
					CHECK_INT(weight(&rest.nodes[k]),
						weight(&whole->nodes[child_of(whole, in_whole, name)]));
				}
		}
		frame_tree_release(&rest);
	}
	frame_tree_release(&cut);
}

static void check_profile(struct profile_value *p, struct arena *a)
{
	struct frame_tree whole;
	struct err err;
	size_t all;

	REQUIRE(heaviest_can(p));
	REQUIRE_OK(frame_tree_init(&whole, a, &err), &err);
	REQUIRE_OK(frame_tree_add(&whole, 0, p, &err), &err);
	frame_tree_total(&whole);
	all = with_cost(&whole) + 1;
	for (size_t max = 1; max < all; max += 1 + max / 4)
		check_cut(p, &whole, max, a);
	check_cut(p, &whole, all, a);
	check_cut(p, &whole, all + 1, a);
	check_parts(p, &whole, all / 4 < PARTS ? 1 + all / 4 : PARTS, a);
	frame_tree_release(&whole);
}

static void no_negative_costs(struct profile_value *p, struct draw *d)
{
	for (size_t i = 0; i < p->parts_n; i++)
		for (size_t k = 0; k < p->parts[i].n; k++) {
			struct cell *c = &p->parts[i].cells[k];

			c->value = c->value < 0 ? -c->value : c->value;
			c->base = p->is_diff ? draw(d, 1000) : 0;
		}
}

/* Of one job and of two, whose stacks share names, and as a diff. */
TEST(the_heaviest_are_those_of_the_whole_tree)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct draw d = { seed * UINT64_C(0x9e3779b97f4a7c15) };
		struct profile_value *v[2], both;
		struct values values[2];
		struct part parts[2];
		struct pprof *p;
		struct err err;

		for (int i = 0; i < 2; i++) {
			REQUIRE(values_init(&values[i], i ? "second" : "first"));
			REQUIRE((p = draw_profile(&values[i].arena, &d, &err)) != NULL);
			REQUIRE((v[i] = values_add(&values[i], p, 0, true)) != NULL);
			no_negative_costs(v[i], &d);
			parts[i] = v[i]->parts[0];
		}
		check_profile(v[0], &values[0].arena);
		both = *v[0];
		both.parts = parts;
		both.parts_n = 2;
		check_profile(&both, &values[0].arena);
		both.is_diff = true;
		no_negative_costs(&both, &d);
		check_profile(&both, &values[0].arena);
		values_release(&values[1]);
		values_release(&values[0]);
	}
}

/* A profile uses few of its job's stacks, here and there. */
TEST(stacks_far_apart)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct draw d = { seed * UINT64_C(0x9e3779b97f4a7c15) };
		struct profile_value *v = NULL;
		struct values values;
		struct pprof *p;
		struct part *part;
		struct err err;

		REQUIRE(values_init(&values, "job"));
		for (int i = 0; i < 60; i++) {
			REQUIRE((p = draw_profile(&values.arena, &d, &err)) != NULL);
			REQUIRE((v = values_add(&values, p, 0, true)) != NULL);
		}
		no_negative_costs(v, &d);
		part = &v->parts[0];
		CHECK(part->n > 0 && part->cells[part->n - 1].stack > 500);
		check_profile(v, &values.arena);
		part->cells[0] = part->cells[part->n - 1];
		part->n = 1;
		check_profile(v, &values.arena);
		values_release(&values);
	}
}

TEST(not_with_negative_costs)
{
	struct cell cells[] = { { 1, 0, 5, 0 }, { 2, 0, 0, -1 } };
	struct part part = { .cells = cells, .n = 2 };
	struct profile_value p = { .parts = &part, .parts_n = 1 };

	CHECK(!heaviest_can(&p));
	cells[1].base = 0;
	CHECK(heaviest_can(&p));
	cells[0].value = -5;
	CHECK(!heaviest_can(&p));
	part.n = 0;
	CHECK(heaviest_can(&p));
}

TEST(a_path_that_is_not_there_has_no_cost)
{
	struct draw d = { 7 };
	struct str path[] = { STR("nobody"), STR("calls"), STR("it") };
	struct tree_part part = { .path = path, .n = 3, .rest = true, .skip = 1 };
	struct profile_value *v = NULL;
	struct values values;
	struct pprof *p;
	struct err err;

	REQUIRE(values_init(&values, "job"));
	REQUIRE((p = draw_profile(&values.arena, &d, &err)) != NULL);
	REQUIRE((v = values_add(&values, p, 0, true)) != NULL);
	no_negative_costs(v, &d);
	CHECK_INT(check_part(v, &part, &values.arena), 0);
	part.rest = false;
	CHECK_INT(check_part(v, &part, &values.arena), 0);
	values_release(&values);
}

TEST(a_profile_without_stacks_is_a_root)
{
	struct profile_value none = { .parts_n = 0 };
	struct frame_tree t;
	struct arena a;
	int64_t(*other)[2];
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(frame_tree_init(&t, &a, &err), &err);
	CHECK_OK(frame_tree_heaviest(&t, &none, NULL, 10, &other, &err), &err);
	CHECK_INT(t.n, 1);
	CHECK_INT(weight(&t.nodes[0]), 0);
	frame_tree_release(&t);
	arena_release(&a);
}
