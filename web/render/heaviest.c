#include "web/render/heaviest.h"

#include <assert.h>

#include "base/array.h"
#include "promql/profiles/frame.h"
#include "web/render/render.h"

#define UNCHECKED 4096u /* stacks between checks for cancellation */
#define NONE UINT32_MAX

/* The stack nodes of a part that its cells use, numbered without gaps; callers come first. */
struct stacks {
	const struct part *part;
	struct pruned pruned;
	uint64_t *used; /* a bit per stack node */
	uint32_t *before; /* per word of used: how many bits are set in the words before */
	uint32_t words, n;
	uint32_t first; /* number of the root; behind the last node is the one of no stack */
	uint32_t *name_of; /* per function: its name in the tree + 1; 0: not looked up */
};

/* A node of the tree that may be kept. */
struct candidate {
	uint32_t parent, name;
	uint32_t stacks; /* the first of the stack nodes that end in its frame */
	int64_t total[2];
};

/* A stack node, in one candidate at a time. All that is looked at together is in one place. */
struct stack {
	uint32_t location; /* NONE: of a root, and of no stack */
	uint32_t part;
	uint32_t child, sibling;
	uint32_t next; /* the next of the same candidate; while the profile is read: the caller */
	uint32_t line; /* the candidate's frame: 0 is the innermost of the location */
	int64_t self, total;
};

struct side {
	int64_t self, total;
};

struct unfolding {
	struct frame_tree *t;
	struct stacks *parts;
	uint32_t parts_n;
	struct stack *stacks; /* of all parts */
	struct side *base; /* per stack; NULL: not a diff */
	struct candidate *v;
	uint32_t n, cap;
	uint32_t *heap, heap_n, heap_cap; /* candidates, the heaviest at the top */
	uint32_t *newest, newest_cap; /* per name: its latest candidate + 1 */
};

bool heaviest_can(const struct profile_value *p)
{
	for (size_t i = 0; i < p->parts_n; i++)
		for (size_t k = 0; k < p->parts[i].n; k++)
			if (p->parts[i].cells[k].value < 0 || p->parts[i].cells[k].base < 0)
				return false;
	return true;
}

/* ---- stack nodes ---- */

static uint32_t number_of(const struct stacks *s, uint32_t node)
{
	uint64_t below = s->used[node / 64] & ((UINT64_C(1) << node % 64) - 1);

	return s->first + s->before[node / 64] + (uint32_t)__builtin_popcountll(below);
}

static void mark(struct stacks *s, uint32_t node)
{
	while (!(s->used[node / 64] >> node % 64 & 1)) {
		s->used[node / 64] |= UINT64_C(1) << node % 64;
		node = sym_node(s->part->partition, node).parent;
	}
}

static enum err_code find_stacks(struct unfolding *x, struct stacks *s,
	const struct profile_value *p, const struct part *part, struct err *err)
{
	struct arena *a = x->t->arena;
	enum err_code rc;

	*s = (struct stacks){ .part = part };
	assert(part->cells[0].stack <= part->cells[part->n - 1].stack); /* cells are in order */
	if ((rc = pruned_init(&s->pruned, p, part, a, err)))
		return rc;
	s->words = part->cells[part->n - 1].stack / 64 + 1;
	s->used = arena_array(a, uint64_t, s->words);
	s->before = arena_alloc_raw(a, s->words, sizeof(*s->before));
	s->name_of = arena_array(a, uint32_t, (size_t)sym_functions_n(part->partition) + 1);
	if (!s->used || !s->before || !s->name_of)
		return arena_fail(a, "flame graph", err);
	s->used[0] = 1;
	for (size_t i = 0; i < part->n; i++) {
		if (i % UNCHECKED == 0 && (rc = render_wanted(x->t->canceled, err)))
			return rc;
		mark(s, pruned_stack(&s->pruned, part->cells[i].stack));
	}
	for (uint32_t w = 0; w < s->words; w++) {
		s->before[w] = s->n;
		s->n += (uint32_t)__builtin_popcountll(s->used[w]);
	}
	return ERR_OK;
}

static enum err_code make_room(struct unfolding *x, bool is_diff, uint32_t n, struct err *err)
{
	x->stacks = arena_alloc_raw(x->t->arena, n, sizeof(*x->stacks));
	if (is_diff)
		x->base = arena_calloc(x->t->arena, n, sizeof(*x->base));
	return x->stacks && (x->base || !is_diff) ? ERR_OK :
												arena_fail(x->t->arena, "flame graph", err);
}

static void link_node(struct unfolding *x, uint32_t at, uint32_t location, uint32_t parent)
{
	struct stack *above = &x->stacks[parent];

	x->stacks[at] = (struct stack){ .location = location,
		.part = above->part,
		.child = NONE,
		.sibling = above->child,
		.next = parent };
	above->child = at;
}

static enum err_code link_nodes(struct unfolding *x, const struct stacks *s, struct err *err)
{
	uint32_t at = s->first;
	struct sym_node node;
	enum err_code rc;

	x->stacks[at++] = (struct stack){
		.location = NONE, .part = (uint32_t)(s - x->parts), .child = NONE, .sibling = NONE
	};
	for (uint32_t w = 0; w < s->words; w++) {
		uint64_t rest = w ? s->used[w] : s->used[0] & ~UINT64_C(1);

		if ((rc = render_wanted(x->t->canceled, err)))
			return rc;
		for (; rest; rest &= rest - 1) {
			node = sym_node(s->part->partition, w * 64 + (uint32_t)__builtin_ctzll(rest));
			link_node(x, at++, node.location, number_of(s, node.parent));
		}
	}
	assert(at == s->first + s->n);
	link_node(x, at, NONE, s->first);
	return ERR_OK;
}

static void add_costs(struct unfolding *x, const struct stacks *s)
{
	for (size_t i = 0; i < s->part->n; i++) {
		const struct cell *c = &s->part->cells[i];
		uint32_t stack = pruned_stack(&s->pruned, c->stack);
		uint32_t at = stack ? number_of(s, stack) : s->first + s->n;

		x->stacks[at].self += c->value;
		if (x->base)
			x->base[at].self += c->base;
	}
	for (uint32_t at = s->first + s->n + 1; at-- > s->first;) {
		struct stack *stack = &x->stacks[at];
		bool is_root = at == s->first;

		stack->total += stack->self;
		if (!is_root)
			x->stacks[stack->next].total += stack->total;
		if (!x->base)
			continue;
		x->base[at].total += x->base[at].self;
		if (!is_root)
			x->base[stack->next].total += x->base[at].total;
	}
}

static enum err_code read_profile(
	struct unfolding *x, const struct profile_value *p, struct err *err)
{
	uint32_t n = 0;
	enum err_code rc;

	if (!(x->parts = arena_array(x->t->arena, struct stacks, p->parts_n + 1)))
		return arena_fail(x->t->arena, "flame graph", err);
	for (size_t i = 0; i < p->parts_n; i++) {
		struct stacks *s = &x->parts[x->parts_n];

		if (p->parts[i].n == 0)
			continue;
		if ((rc = find_stacks(x, s, p, &p->parts[i], err)))
			return rc;
		if (s->n >= NONE - n - 1)
			return err_set(err, ERR_LIMIT, "flame graph: too many stacks");
		s->first = n;
		n += s->n + 1;
		x->parts_n++;
	}
	if ((rc = make_room(x, p->is_diff, n, err)))
		return rc;
	for (uint32_t i = 0; i < x->parts_n; i++) {
		if ((rc = link_nodes(x, &x->parts[i], err)))
			return rc;
		add_costs(x, &x->parts[i]);
	}
	return ERR_OK;
}

/* ---- the heap ---- */

static bool heavier(const struct unfolding *x, uint32_t a, uint32_t b)
{
	const struct candidate *l = &x->v[a], *r = &x->v[b];
	int64_t left = l->total[0] + l->total[1], right = r->total[0] + r->total[1];

	return left != right ? left > right : a < b;
}

static enum err_code heap_add(struct unfolding *x, uint32_t candidate, struct err *err)
{
	uint32_t at = x->heap_n, above;

	if (!arena_array_room(x->t->arena, &x->heap, x->heap_n, 1, &x->heap_cap))
		return arena_fail(x->t->arena, "flame graph", err);
	x->heap_n++;
	for (; at; at = above) {
		above = (at - 1) / 2;
		if (!heavier(x, candidate, x->heap[above]))
			break;
		x->heap[at] = x->heap[above];
	}
	x->heap[at] = candidate;
	return ERR_OK;
}

static uint32_t heap_take(struct unfolding *x)
{
	uint32_t top = x->heap[0], last = x->heap[--x->heap_n], at = 0, below;

	for (; (below = 2 * at + 1) < x->heap_n; at = below) {
		if (below + 1 < x->heap_n && heavier(x, x->heap[below + 1], x->heap[below]))
			below++;
		if (!heavier(x, x->heap[below], last))
			break;
		x->heap[at] = x->heap[below];
	}
	x->heap[at] = last;
	return top;
}

/* ---- unfolding ---- */

static enum err_code name_of(
	struct unfolding *x, const struct stack *at, uint32_t *out, struct err *err)
{
	struct stacks *s = &x->parts[at->part];
	const struct partition *p = s->part->partition;
	const struct sym_location *l;
	const struct sym_line *line;
	struct str name;
	enum err_code rc;

	if (at->location == NONE)
		return frame_tree_intern(x->t, NO_STACK, out, err);
	l = sym_location(p, at->location);
	line = l->lines_n ? &l->lines[at->line] : NULL;
	if (line && s->name_of[line->function]) {
		*out = s->name_of[line->function] - 1;
		return ERR_OK;
	}
	name = frame_name(x->t->arena, p, l, line);
	if (!name.ptr)
		return arena_fail(x->t->arena, "flame graph", err);
	rc = frame_tree_intern(x->t, name, out, err);
	if (!rc && line && sym_function_name(p, sym_function(p, line->function)).len)
		s->name_of[line->function] = *out + 1;
	return rc;
}

/* Room for a name; there is no candidate of it yet. */
static bool newest_room(struct unfolding *x, uint32_t name)
{
	uint32_t had = x->newest_cap;

	if (name < had)
		return true;
	if (!arena_array_room(x->t->arena, &x->newest, had, name - had + 1, &x->newest_cap))
		return false;
	memset(x->newest + had, 0, (x->newest_cap - had) * sizeof(*x->newest));
	return true;
}

/* The frame of a stack node becomes a part of the node's child with its name. */
static enum err_code add_frame(struct unfolding *x, uint32_t parent, uint32_t at, struct err *err)
{
	struct stack *stack = &x->stacks[at];
	struct candidate *c;
	uint32_t name, found;
	enum err_code rc;

	if (stack->total == 0 && (!x->base || x->base[at].total == 0))
		return ERR_OK;
	if ((rc = name_of(x, stack, &name, err)))
		return rc;
	if (!newest_room(x, name) || !arena_array_room(x->t->arena, &x->v, x->n, 1, &x->cap))
		return arena_fail(x->t->arena, "flame graph", err);
	found = x->newest[name];
	if (!found || x->v[found - 1].parent != parent) {
		x->v[x->n] = (struct candidate){ .parent = parent, .name = name, .stacks = NONE };
		found = x->newest[name] = ++x->n;
	}
	c = &x->v[found - 1];
	c->total[0] += stack->total;
	c->total[1] += x->base ? x->base[at].total : 0;
	stack->next = c->stacks;
	c->stacks = at;
	return ERR_OK;
}

/* The frames below one frame of a stack node: the next inlined one, or those that it calls. */
static enum err_code unfold_frame(struct unfolding *x, uint32_t node, uint32_t at, struct err *err)
{
	struct stack *stack = &x->stacks[at], *child;
	const struct stacks *s = &x->parts[stack->part];
	enum err_code rc = ERR_OK;

	if (stack->location != NONE && stack->line > pruned_line(&s->pruned, stack->location)) {
		stack->line--;
		return add_frame(x, node, at, err);
	}
	x->t->nodes[node].self[0] += stack->self;
	x->t->nodes[node].self[1] += x->base ? x->base[at].self : 0;
	for (uint32_t c = stack->child; c != NONE && !rc; c = child->sibling) {
		const struct sym_location *l;

		child = &x->stacks[c];
		l = child->location == NONE ? NULL : sym_location(s->part->partition, child->location);
		child->line = l && l->lines_n ? l->lines_n - 1 : 0;
		rc = add_frame(x, node, c, err);
	}
	return rc;
}

/* Makes its children candidates. */
static enum err_code unfold(struct unfolding *x, uint32_t node, uint32_t stacks, struct err *err)
{
	uint32_t first = x->n;
	enum err_code rc = ERR_OK;

	for (uint32_t at = stacks, next; at != NONE && !rc; at = next) {
		next = x->stacks[at].next; /* it may go to a child's list */
		rc = unfold_frame(x, node, at, err);
	}
	for (uint32_t i = first; i < x->n && !rc; i++)
		rc = heap_add(x, i, err);
	return rc;
}

/* All parts begin there. */
static enum err_code unfold_root(struct unfolding *x, struct err *err)
{
	uint32_t stacks = NONE;

	for (uint32_t i = x->parts_n; i-- > 0;) {
		uint32_t at = x->parts[i].first;

		x->t->nodes[0].total[0] += x->stacks[at].total;
		x->t->nodes[0].total[1] += x->base ? x->base[at].total : 0;
		x->stacks[at].next = stacks;
		stacks = at;
	}
	return unfold(x, 0, stacks, err);
}

static enum err_code keep(struct unfolding *x, uint32_t candidate, struct err *err)
{
	struct candidate c = x->v[candidate];
	struct frame_tree *t = x->t;
	uint32_t node = t->n;

	if (!arena_array_room(t->arena, &t->nodes, t->n, 1, &t->cap))
		return arena_fail(t->arena, "flame graph", err);
	t->nodes[t->n++] = (struct tree_node){
		.parent = c.parent, .name = c.name, .total = { c.total[0], c.total[1] }
	};
	return unfold(x, node, c.stacks, err);
}

enum err_code frame_tree_heaviest(struct frame_tree *t, const struct profile_value *p,
	size_t max_nodes, int64_t (**other)[2], struct err *err)
{
	struct unfolding x = { .t = t };
	enum err_code rc;

	assert(t->n == 1 && max_nodes > 0);
	if ((rc = read_profile(&x, p, err)) || (rc = unfold_root(&x, err)))
		return rc;
	while (x.heap_n && t->n < max_nodes) {
		if ((rc = render_wanted(t->canceled, err)) || (rc = keep(&x, heap_take(&x), err)))
			return rc;
	}
	if (!(*other = arena_calloc(t->arena, t->n, sizeof(**other))))
		return arena_fail(t->arena, "flame graph", err);
	for (uint32_t i = 0; i < x.heap_n; i++) {
		const struct candidate *c = &x.v[x.heap[i]];

		(*other)[c->parent][0] += c->total[0];
		(*other)[c->parent][1] += c->total[1];
	}
	return ERR_OK;
}
