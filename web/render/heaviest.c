#include "web/render/heaviest.h"

#include <assert.h>

#include "base/array.h"
#include "promql/profiles/frame.h"
#include "web/render/render.h"

#define UNCHECKED 4096u /* stacks between checks for cancellation */
#define NONE UINT32_MAX

struct heaviest_stacks {
	const struct part *part;
	struct pruned pruned;
	uint32_t ids; /* stack nodes of the cells are below */
	uint32_t first; /* number of the root; those of the other nodes follow, callers first */
	uint32_t *name_of; /* per function: its name in the tree + 1; 0: not looked up */
};

/* A node of the tree that may be kept. */
struct candidate {
	uint32_t parent, name;
	uint32_t stacks; /* the first of the stack nodes that end in its frame */
	int64_t total[2];
};

/*
 * A stack node with a cost, in one candidate at a time. All that is looked at together is in one
 * place.
 */
struct heaviest_stack {
	int64_t total;
	uint32_t location; /* NONE: of a root, and of no stack */
	uint32_t part;
	uint32_t child, sibling;
	uint32_t next; /* the next of the same candidate */
	uint32_t line; /* the candidate's frame: 0 is the innermost of the location */
};

/* While a part is read, by id of stack nodes; those of a group without costs are not set. */
struct by_id {
	int64_t total[2]; /* the second is 0 but for diffs */
	uint32_t location;
	uint32_t up; /* first the caller's id, then its own number */
};
#define GROUP 64u /* ids that are cleared together */

struct heap_entry {
	int64_t weight; /* of both sides */
	uint32_t candidate;
};

/* The outermost frame of a location, its name looked up. */
struct outer {
	uint32_t part; /* its number + 1; 0: free */
	uint32_t location;
	uint32_t name, line;
};
#define OUTER 4096u /* are kept, by location */

struct unfolding {
	struct frame_tree *t;
	struct heaviest_stacks *parts;
	uint32_t parts_n;
	struct heaviest_stack *stacks; /* of all parts */
	uint32_t stacks_n, stacks_cap;
	int64_t *base; /* per stack its total; NULL: not a diff */
	uint32_t base_cap;
	struct by_id *by_id; /* of the part that is read */
	char *group_used; /* per group of ids */
	struct candidate *v;
	uint32_t n, cap;
	struct heap_entry *heap; /* the heaviest at the top */
	uint32_t heap_n, heap_cap;
	uint32_t *newest, newest_cap; /* per name: its latest candidate + 1 */
	struct outer *outer;
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

static struct by_id *heaviest_at_id(struct unfolding *x, uint32_t id)
{
	char *used = &x->group_used[id / GROUP];

	if (!*used) {
		memset(&x->by_id[id / GROUP * GROUP], 0, GROUP * sizeof(*x->by_id));
		*used = 1;
	}
	return &x->by_id[id];
}

/* Adds the part's cells to their stack nodes. *none: of stacks without frames. */
static enum err_code heaviest_add_cells(
	struct unfolding *x, const struct heaviest_stacks *s, struct by_id *none, struct err *err)
{
	const struct part *part = s->part;
	enum err_code rc;

	for (size_t i = 0; i < part->n; i++) {
		const struct cell *c = &part->cells[i];
		uint32_t id = pruned_stack(&s->pruned, c->stack);
		struct by_id *to = id ? heaviest_at_id(x, id) : none;

		if (i % UNCHECKED == 0 && (rc = render_wanted(x->t->canceled, err)))
			return rc;
		to->total[0] += c->value;
		to->total[1] += c->base;
	}
	return ERR_OK;
}

/*
 * Adds each node's total to its caller, which has a lower id. No cost is negative, so the nodes
 * that cells use are those with a total.
 */
static enum err_code heaviest_add_up(
	struct unfolding *x, const struct heaviest_stacks *s, uint32_t *nodes_n, struct err *err)
{
	const struct partition *p = s->part->partition;
	enum err_code rc;

	*nodes_n = 0;
	for (uint32_t group = (s->ids + GROUP - 1) / GROUP; group-- > 0;) {
		if (group % (UNCHECKED / GROUP) == 0 && (rc = render_wanted(x->t->canceled, err)))
			return rc;
		if (!x->group_used[group])
			continue;
		for (uint32_t id = (group + 1) * GROUP; id-- > group * GROUP && id > 0;) {
			struct by_id *of = &x->by_id[id], *above;
			struct sym_node node;

			if (!(of->total[0] | of->total[1]))
				continue;
			node = sym_node(p, id);
			of->location = node.location;
			of->up = node.parent;
			above = heaviest_at_id(x, node.parent);
			above->total[0] += of->total[0];
			above->total[1] += of->total[1];
			++*nodes_n;
		}
	}
	return ERR_OK;
}

static enum err_code heaviest_make_room(
	struct unfolding *x, bool is_diff, uint32_t n, struct err *err)
{
	struct arena *a = x->t->arena;

	return arena_array_room(a, &x->stacks, x->stacks_n, n, &x->stacks_cap) &&
			(!is_diff || arena_array_room(a, &x->base, x->stacks_n, n, &x->base_cap)) ?
		ERR_OK :
		arena_fail(a, "flame graph", err);
}

/* Returns its number. parent: the caller's; NONE: it is a root. */
static uint32_t heaviest_add_stack(
	struct unfolding *x, uint32_t part, const struct by_id *of, uint32_t parent)
{
	uint32_t at = x->stacks_n++;
	struct heaviest_stack *above = parent == NONE ? NULL : &x->stacks[parent];

	x->stacks[at] = (struct heaviest_stack){ .total = of->total[0],
		.location = of->location,
		.part = part,
		.child = NONE,
		.sibling = above ? above->child : NONE };
	if (above)
		above->child = at;
	if (x->base)
		x->base[at] = of->total[1];
	return at;
}

static enum err_code heaviest_link_nodes(
	struct unfolding *x, const struct heaviest_stacks *s, const struct by_id *none, struct err *err)
{
	uint32_t part = (uint32_t)(s - x->parts);
	struct by_id root = *heaviest_at_id(x, 0);
	enum err_code rc;

	root.location = NONE;
	root.total[0] += none->total[0];
	root.total[1] += none->total[1];
	x->by_id[0].up = heaviest_add_stack(x, part, &root, NONE);
	for (uint32_t group = 0; group < (s->ids + GROUP - 1) / GROUP; group++) {
		if (group % (UNCHECKED / GROUP) == 0 && (rc = render_wanted(x->t->canceled, err)))
			return rc;
		if (!x->group_used[group])
			continue;
		for (uint32_t id = group ? group * GROUP : 1; id < (group + 1) * GROUP; id++) {
			struct by_id *of = &x->by_id[id];

			if (of->total[0] | of->total[1])
				of->up = heaviest_add_stack(x, part, of, x->by_id[of->up].up);
		}
	}
	if (none->total[0] | none->total[1])
		heaviest_add_stack(x, part, none, s->first);
	return ERR_OK;
}

static enum err_code heaviest_read_part(
	struct unfolding *x, struct heaviest_stacks *s, bool is_diff, struct err *err)
{
	struct by_id none = { .location = NONE };
	uint32_t n;
	enum err_code rc;

	memset(x->group_used, 0, s->ids / GROUP + 1);
	if ((rc = heaviest_add_cells(x, s, &none, err)) || (rc = heaviest_add_up(x, s, &n, err)))
		return rc;
	if (n >= NONE - x->stacks_n - 2) /* with the root and the one of no stack */
		return err_set(err, ERR_LIMIT, "flame graph: too many stacks");
	if ((rc = heaviest_make_room(x, is_diff, n + 2, err)))
		return rc;
	s->first = x->stacks_n;
	return heaviest_link_nodes(x, s, &none, err);
}

static enum err_code heaviest_find_parts(
	struct unfolding *x, const struct profile_value *p, uint32_t *ids_max, struct err *err)
{
	struct arena *a = x->t->arena;
	enum err_code rc;

	if (!(x->parts = arena_array(a, struct heaviest_stacks, p->parts_n + 1)))
		return arena_fail(a, "flame graph", err);

	for (size_t i = 0; i < p->parts_n; i++) {
		const struct part *part = &p->parts[i];
		struct heaviest_stacks *s = &x->parts[x->parts_n];

		if (part->n == 0)
			continue;
		assert(part->cells[0].stack <= part->cells[part->n - 1].stack); /* cells are in order */
		*s = (struct heaviest_stacks){ .part = part, .ids = part->cells[part->n - 1].stack + 1 };
		if ((rc = pruned_init(&s->pruned, p, part, a, err)))
			return rc;
		s->name_of = arena_array(a, uint32_t, (size_t)sym_functions_n(part->partition) + 1);
		if (!s->name_of)
			return arena_fail(a, "flame graph", err);
		if (s->ids > *ids_max)
			*ids_max = s->ids;
		x->parts_n++;
	}
	return ERR_OK;
}

static enum err_code heaviest_read_profile(
	struct unfolding *x, const struct profile_value *p, struct err *err)
{
	struct arena *a = x->t->arena;
	uint32_t ids_max = 0, groups;
	enum err_code rc;

	if ((rc = heaviest_find_parts(x, p, &ids_max, err)))
		return rc;
	groups = ids_max / GROUP + 1;
	x->group_used = arena_alloc_raw(a, groups, 1);
	x->by_id = arena_alloc_raw(a, (size_t)groups * GROUP, sizeof(*x->by_id));
	x->outer = arena_array(a, struct outer, OUTER);
	if (!x->group_used || !x->by_id || !x->outer)
		return arena_fail(a, "flame graph", err);
	for (uint32_t i = 0; i < x->parts_n && !rc; i++)
		rc = heaviest_read_part(x, &x->parts[i], p->is_diff, err);
	return rc;
}

/* ---- the heap ---- */

static bool heap_entry_heavier(const struct heap_entry *l, const struct heap_entry *r)
{
	return l->weight != r->weight ? l->weight > r->weight : l->candidate < r->candidate;
}

static enum err_code heaviest_heap_add(struct unfolding *x, uint32_t candidate, struct err *err)
{
	const struct candidate *c = &x->v[candidate];
	struct heap_entry e = { c->total[0] + c->total[1], candidate };
	uint32_t at = x->heap_n, above;

	if (!arena_array_room(x->t->arena, &x->heap, x->heap_n, 1, &x->heap_cap))
		return arena_fail(x->t->arena, "flame graph", err);
	x->heap_n++;
	for (; at; at = above) {
		above = (at - 1) / 2;
		if (!heap_entry_heavier(&e, &x->heap[above]))
			break;
		x->heap[at] = x->heap[above];
	}
	x->heap[at] = e;
	return ERR_OK;
}

static uint32_t heaviest_heap_take(struct unfolding *x)
{
	struct heap_entry last = x->heap[--x->heap_n];
	uint32_t top = x->heap[0].candidate, at = 0, below;

	for (; (below = 2 * at + 1) < x->heap_n; at = below) {
		if (below + 1 < x->heap_n && heap_entry_heavier(&x->heap[below + 1], &x->heap[below]))
			below++;
		if (!heap_entry_heavier(&x->heap[below], &last))
			break;
		x->heap[at] = x->heap[below];
	}
	x->heap[at] = last;
	return top;
}

/* ---- unfolding ---- */

static enum err_code heaviest_name_of(
	struct unfolding *x, const struct heaviest_stack *at, uint32_t *out, struct err *err)
{
	struct heaviest_stacks *s = &x->parts[at->part];
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
	name = frame_address_name(x->t->arena, p, l, line);
	if (!name.ptr)
		return arena_fail(x->t->arena, "flame graph", err);
	rc = frame_tree_intern(x->t, name, out, err);
	if (!rc && line && sym_function_name(p, sym_function(p, line->function)).len)
		s->name_of[line->function] = *out + 1;
	return rc;
}

/* Sets the line of a stack node to its outermost, and *name to the name there. */
static enum err_code heaviest_outermost(
	struct unfolding *x, struct heaviest_stack *at, uint32_t *name, struct err *err)
{
	struct outer *o = &x->outer[at->location % OUTER];
	const struct sym_location *l = NULL;
	enum err_code rc;

	if (o->part != at->part + 1 || o->location != at->location) {
		if (at->location != NONE)
			l = sym_location(x->parts[at->part].part->partition, at->location);
		at->line = l && l->lines_n ? l->lines_n - 1 : 0;
		if ((rc = heaviest_name_of(x, at, name, err)))
			return rc;
		*o = (struct outer){ at->part + 1, at->location, *name, at->line };
	}
	at->line = o->line;
	*name = o->name;
	return ERR_OK;
}

/* Room for a name; there is no candidate of it yet. */
static bool heaviest_newest_room(struct unfolding *x, uint32_t name)
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
static enum err_code heaviest_add_frame(
	struct unfolding *x, uint32_t parent, uint32_t at, uint32_t name, struct err *err)
{
	struct heaviest_stack *stack = &x->stacks[at];
	struct candidate *c;
	uint32_t found;

	if (!heaviest_newest_room(x, name) || !arena_array_room(x->t->arena, &x->v, x->n, 1, &x->cap))
		return arena_fail(x->t->arena, "flame graph", err);
	found = x->newest[name];
	if (!found || x->v[found - 1].parent != parent) {
		x->v[x->n] = (struct candidate){ .parent = parent, .name = name, .stacks = NONE };
		found = x->newest[name] = ++x->n;
	}
	c = &x->v[found - 1];
	c->total[0] += stack->total;
	c->total[1] += x->base ? x->base[at] : 0;
	stack->next = c->stacks;
	c->stacks = at;
	return ERR_OK;
}

/* The frames below one frame of a stack node: the next inlined one, or those that it calls. */
static enum err_code heaviest_unfold_frame(
	struct unfolding *x, uint32_t node, uint32_t at, struct err *err)
{
	struct heaviest_stack *stack = &x->stacks[at], *child;
	const struct heaviest_stacks *s = &x->parts[stack->part];
	enum err_code rc = ERR_OK;
	int64_t self[2];
	uint32_t name;

	if (stack->location != NONE && stack->line > pruned_line(&s->pruned, stack->location)) {
		stack->line--;
		rc = heaviest_name_of(x, stack, &name, err);
		return rc ? rc : heaviest_add_frame(x, node, at, name, err);
	}
	self[0] = stack->total;
	self[1] = x->base ? x->base[at] : 0;
	for (uint32_t c = stack->child; c != NONE && !rc; c = child->sibling) {
		child = &x->stacks[c];
		if (child->sibling != NONE)
			__builtin_prefetch(&x->stacks[child->sibling]);
		self[0] -= child->total;
		self[1] -= x->base ? x->base[c] : 0;
		if (!(rc = heaviest_outermost(x, child, &name, err)))
			rc = heaviest_add_frame(x, node, c, name, err);
	}
	x->t->nodes[node].self[0] += self[0];
	x->t->nodes[node].self[1] += self[1];
	return rc;
}

/* Makes its children candidates. */
static enum err_code heaviest_unfold(
	struct unfolding *x, uint32_t node, uint32_t stacks, struct err *err)
{
	uint32_t first = x->n;
	enum err_code rc = ERR_OK;

	for (uint32_t at = stacks, next; at != NONE && !rc; at = next) {
		next = x->stacks[at].next; /* it may go to a child's list */
		rc = heaviest_unfold_frame(x, node, at, err);
	}
	for (uint32_t i = first; i < x->n && !rc; i++)
		rc = heaviest_heap_add(x, i, err);
	return rc;
}

/* All parts begin there. */
static enum err_code heaviest_unfold_root(struct unfolding *x, struct err *err)
{
	uint32_t stacks = NONE;

	for (uint32_t i = x->parts_n; i-- > 0;) {
		uint32_t at = x->parts[i].first;

		x->t->nodes[0].total[0] += x->stacks[at].total;
		x->t->nodes[0].total[1] += x->base ? x->base[at] : 0;
		x->stacks[at].next = stacks;
		stacks = at;
	}
	return heaviest_unfold(x, 0, stacks, err);
}

static enum err_code heaviest_keep(struct unfolding *x, uint32_t candidate, struct err *err)
{
	struct candidate c = x->v[candidate];
	struct frame_tree *t = x->t;
	uint32_t node = t->n;

	if (!arena_array_room(t->arena, &t->nodes, t->n, 1, &t->cap))
		return arena_fail(t->arena, "flame graph", err);
	t->nodes[t->n++] = (struct tree_node){
		.parent = c.parent, .name = c.name, .total = { c.total[0], c.total[1] }
	};
	return heaviest_unfold(x, node, c.stacks, err);
}

/* ---- parts ---- */

static void heaviest_clear_costs(struct frame_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		t->nodes[i].self[0] = t->nodes[i].self[1] = t->nodes[i].total[0] = t->nodes[i].total[1] = 0;
}

/* Keeps the child of the node that was kept last, and none of its siblings. */
static enum err_code heaviest_descend(
	struct unfolding *x, struct str to, bool *found, struct err *err)
{
	struct frame_tree *t = x->t;
	uint32_t name = frame_tree_name(t, to), at = 0;

	if (name < x->newest_cap)
		at = x->newest[name];
	*found = at && x->v[at - 1].parent == t->n - 1;
	x->heap_n = 0;
	t->nodes[t->n - 1].self[0] = t->nodes[t->n - 1].self[1] = 0;
	return *found ? heaviest_keep(x, at - 1, err) : ERR_OK;
}

/* Leaves only the children of the part among the candidates, and its total on the way to it. */
static enum err_code heaviest_keep_part(
	struct unfolding *x, const struct tree_part *part, struct err *err)
{
	struct frame_tree *t = x->t;
	struct tree_node *end;
	bool found = true;
	enum err_code rc;

	for (size_t i = 0; i < part->n && found; i++)
		if ((rc = heaviest_descend(x, part->path[i], &found, err)))
			return rc;
	if (!found) {
		heaviest_clear_costs(t);
		return ERR_OK;
	}
	end = &t->nodes[t->n - 1];
	if (part->rest)
		for (int side = 0; side < 2; side++) {
			end->total[side] -= end->self[side];
			end->self[side] = 0;
		}
	for (size_t i = 0; part->rest && i < part->skip && x->heap_n; i++) {
		const struct candidate *c = &x->v[heaviest_heap_take(x)];

		end->total[0] -= c->total[0];
		end->total[1] -= c->total[1];
	}
	for (uint32_t i = 0; i < t->n - 1; i++)
		memcpy(t->nodes[i].total, end->total, sizeof(end->total));
	return ERR_OK;
}

enum err_code frame_tree_heaviest(struct frame_tree *t, const struct profile_value *p,
	const struct tree_part *part, size_t max_nodes, int64_t (**other)[2], struct err *err)
{
	struct unfolding x = { .t = t };
	enum err_code rc;

	assert(t->n == 1 && max_nodes > 0);
	if ((rc = heaviest_read_profile(&x, p, err)) || (rc = heaviest_unfold_root(&x, err)) ||
		(part && (rc = heaviest_keep_part(&x, part, err))))
		return rc;
	while (x.heap_n && t->n < max_nodes) {
		if ((rc = render_wanted(t->canceled, err)) ||
			(rc = heaviest_keep(&x, heaviest_heap_take(&x), err)))
			return rc;
	}
	if (!(*other = arena_calloc(t->arena, t->n, sizeof(**other))))
		return arena_fail(t->arena, "flame graph", err);
	for (uint32_t i = 0; i < x.heap_n; i++) {
		const struct candidate *c = &x.v[x.heap[i].candidate];

		(*other)[c->parent][0] += c->total[0];
		(*other)[c->parent][1] += c->total[1];
	}
	return ERR_OK;
}
