#include <math.h>
#include <stdlib.h>

#include "tests/fleet/internal.h"

/*
 * A tree of stacks. Each new stack parts from an earlier one somewhere and adds a few frames to its
 * depth. A function calls few others, the first of them most often, so that names, call sites and
 * recursion repeat as in a program. Calls and samples fall on different sites of a function:
 * therefore no stack is the beginning of another, every stack's leaf is a node of its own, and
 * leaves ascend with the stacks.
 */
struct grower {
	struct fleet *f;
	struct map map; /* nodes */
	uint64_t random;
	uint32_t *depth; /* of each stack */
};

static uint64_t node_hash(struct node n)
{
	return mix2(n.parent, n.location);
}

static bool node_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct node *a = (const struct node *)ctx + id, *b = key;

	return a->parent == b->parent && a->location == b->location;
}

static uint32_t node_find(struct grower *g, struct node n)
{
	return map_find(&g->map, node_hash(n), node_eq, g->f->nodes, &n);
}

/* 0: out of memory. */
static uint32_t node_add(struct grower *g, struct node n)
{
	struct fleet *f = g->f;

	if (f->nodes_n == f->nodes_cap) {
		uint32_t cap = f->nodes_cap * 2;
		struct node *wide = realloc(f->nodes, cap * sizeof(*wide));

		if (!wide)
			return 0;
		f->nodes = wide;
		f->nodes_cap = cap;
	}
	f->nodes[f->nodes_n] = n;
	if (!map_add(&g->map, node_hash(n), f->nodes_n))
		return 0;
	return f->nodes_n++;
}

static uint32_t geometric(struct grower *g, double mean) /* 0, 1, ... */
{
	return mean <= 0 ? 0 :
					   (uint32_t)(log(uniform(next_random(&g->random))) / log(mean / (mean + 1)));
}

/* Some functions are called from everywhere, most from a few places. */
static uint32_t callee(struct grower *g, uint32_t function)
{
	uint32_t which = geometric(g, 1.5);
	double u = uniform(mix2(g->f->p.seed, function * 64 + which % 64));

	if (next_random(&g->random) % 50 == 0)
		return function; /* recursion */
	return (uint32_t)(pow(u, g->f->p.shared) * g->f->p.functions);
}

static uint32_t draw_depth(struct grower *g)
{
	double a = uniform(next_random(&g->random)), b = uniform(next_random(&g->random));
	double d = g->f->p.depth_mean + g->f->p.depth_deviation * sqrt(-2 * log(a)) * cos(2 * M_PI * b);

	return d < 2 ? 2 : d > 64 ? 64 : (uint32_t)(d + 0.5);
}

/* A node of an earlier stack, at most at this depth; its depth in *depth. */
static uint32_t part_from(struct grower *g, uint32_t stack, uint32_t *depth)
{
	uint32_t from = 0, at;

	for (int i = 0; i < 8; i++) {
		from = (uint32_t)(next_random(&g->random) % stack);
		if (g->depth[from] > *depth)
			break;
	}
	at = g->f->stack_leaf[from];
	for (uint32_t d = g->depth[from]; d > *depth || d == g->depth[from]; d--)
		at = g->f->nodes[at].parent;
	if (*depth >= g->depth[from])
		*depth = g->depth[from] - 1;
	return at;
}

static bool add_stack(struct grower *g, uint32_t stack)
{
	struct fleet *f = g->f;
	uint32_t depth = draw_depth(g), shared = 1 + geometric(g, f->p.new_nodes - 1), at = 0;
	struct node n;
	uint32_t function, found;

	shared = shared < depth ? depth - shared : 0;
	if (stack == 0)
		shared = 0;
	if (shared)
		at = part_from(g, stack, &shared);
	function = at ? f->nodes[at].location / SITES :
					(uint32_t)(next_random(&g->random) % 4 % f->p.functions);
	for (uint32_t d = shared; d + 1 < depth; d++) {
		n.parent = at;
		n.location = function * SITES + geometric(g, 0.4) % (SITES / 2);
		if (d > 0) {
			function = callee(g, function);
			n.location = function * SITES + geometric(g, 0.4) % (SITES / 2);
		}
		if ((found = node_find(g, n)) == MAP_NONE && !(found = node_add(g, n)))
			return false;
		at = found;
	}
	n.parent = at;
	for (uint32_t i = 0; i == 0 || node_find(g, n) != MAP_NONE; i++) {
		/* All callees of the function may be used already. */
		found = i < 16 ? callee(g, function) : (uint32_t)(next_random(&g->random) % f->p.functions);
		n.location = found * SITES + SITES / 2 + geometric(g, 0.5 + i / 4.0) % (SITES / 2);
	}
	if (!(at = node_add(g, n)))
		return false;
	f->stack_leaf[stack] = at;
	g->depth[stack] = depth;
	return true;
}

enum err_code fleet_grow_stacks(struct fleet *f, struct err *err)
{
	struct grower g = { .f = f, .random = mix2(f->p.seed, 1) };
	bool ok;

	map_init(&g.map);
	f->nodes_cap = 1024;
	f->nodes = calloc(f->nodes_cap, sizeof(*f->nodes));
	f->nodes_n = 1;
	g.depth = calloc(f->stacks_n, sizeof(*g.depth));
	ok = f->nodes && g.depth;
	for (uint32_t i = 0; i < f->stacks_n && ok; i++)
		ok = add_stack(&g, i);
	free(g.depth);
	map_release(&g.map);
	return ok ? ERR_OK : err_set(err, ERR_NOMEM, "stacks of a fleet: out of memory");
}
