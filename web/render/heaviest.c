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

static struct by_id *heaviest_at_id(struct unfolding *u, uint32_t id)
{
	char *used = &u->group_used[id / GROUP];

	if (!*used) {
		memset(&u->by_id[id / GROUP * GROUP], 0, GROUP * sizeof(*u->by_id));
		*used = 1;
	}
	return &u->by_id[id];
}

/* Adds the part's cells to their stack nodes. *none: of stacks without frames. */
static enum err_code heaviest_add_cells(
	struct unfolding *u, const struct heaviest_stacks *s, struct by_id *none, struct err *err)
{
	const struct part *part = s->part;
	enum err_code rc;

	for (size_t i = 0; i < part->n; i++) {
		const struct cell *c = &part->cells[i];
		uint32_t id = pruned_stack(&s->pruned, c->stack);
		struct by_id *to = id ? heaviest_at_id(u, id) : none;

		if (i % UNCHECKED == 0 && (rc = render_wanted(u->t->canceled, err)))
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
	struct unfolding *u, const struct heaviest_stacks *s, uint32_t *nodes_n, struct err *err)
{
	const struct partition *p = s->part->partition;
	enum err_code rc;

	*nodes_n = 0;
	for (uint32_t group = (s->ids + GROUP - 1) / GROUP; group-- > 0;) {
		if (group % (UNCHECKED / GROUP) == 0 && (rc = render_wanted(u->t->canceled, err)))
			return rc;
		if (!u->group_used[group])
			continue;
		for (uint32_t id = (group + 1) * GROUP; id-- > group * GROUP && id > 0;) {
			struct by_id *of = &u->by_id[id], *above;
			struct sym_node node;

			if (!(of->total[0] | of->total[1]))
				continue;
			node = sym_node(p, id);
			of->location = node.location;
			of->up = node.parent;
			above = heaviest_at_id(u, node.parent);
			above->total[0] += of->total[0];
			above->total[1] += of->total[1];
			++*nodes_n;
		}
	}
	return ERR_OK;
}

static enum err_code heaviest_make_room(
	struct unfolding *u, bool is_diff, uint32_t n, struct err *err)
{
	struct arena *a = u->t->arena;

	return arena_array_room(a, &u->stacks, u->stacks_n, n, &u->stacks_cap) &&
			(!is_diff || arena_array_room(a, &u->base, u->stacks_n, n, &u->base_cap)) ?
		ERR_OK :
		arena_fail(a, "flame graph", err);
}

/* Returns its number. parent: the caller's; NONE: it is a root. */
static uint32_t heaviest_add_stack(
	struct unfolding *u, uint32_t part, const struct by_id *of, uint32_t parent)
{
	uint32_t at = u->stacks_n++;
	struct heaviest_stack *above = parent == NONE ? NULL : &u->stacks[parent];

	u->stacks[at] = (struct heaviest_stack){ .total = of->total[0],
		.location = of->location,
		.part = part,
		.child = NONE,
		.sibling = above ? above->child : NONE };
	if (above)
		above->child = at;
	if (u->base)
		u->base[at] = of->total[1];
	return at;
}

static enum err_code heaviest_link_nodes(
	struct unfolding *u, const struct heaviest_stacks *s, const struct by_id *none, struct err *err)
{
	uint32_t part = (uint32_t)(s - u->parts);
	struct by_id root = *heaviest_at_id(u, 0);
	enum err_code rc;

	root.location = NONE;
	root.total[0] += none->total[0];
	root.total[1] += none->total[1];
	u->by_id[0].up = heaviest_add_stack(u, part, &root, NONE);
	for (uint32_t group = 0; group < (s->ids + GROUP - 1) / GROUP; group++) {
		if (group % (UNCHECKED / GROUP) == 0 && (rc = render_wanted(u->t->canceled, err)))
			return rc;
		if (!u->group_used[group])
			continue;
		for (uint32_t id = group ? group * GROUP : 1; id < (group + 1) * GROUP; id++) {
			struct by_id *of = &u->by_id[id];

			if (of->total[0] | of->total[1])
				of->up = heaviest_add_stack(u, part, of, u->by_id[of->up].up);
		}
	}
	if (none->total[0] | none->total[1])
		heaviest_add_stack(u, part, none, s->first);
	return ERR_OK;
}

static enum err_code heaviest_read_part(
	struct unfolding *u, struct heaviest_stacks *s, bool is_diff, struct err *err)
{
	struct by_id none = { .location = NONE };
	uint32_t n;
	enum err_code rc;

	memset(u->group_used, 0, s->ids / GROUP + 1);
	if ((rc = heaviest_add_cells(u, s, &none, err)) || (rc = heaviest_add_up(u, s, &n, err)))
		return rc;
	if (n >= NONE - u->stacks_n - 2) /* with the root and the one of no stack */
		return err_set(err, ERR_LIMIT, "flame graph: too many stacks");
	if ((rc = heaviest_make_room(u, is_diff, n + 2, err)))
		return rc;
	s->first = u->stacks_n;
	return heaviest_link_nodes(u, s, &none, err);
}

static enum err_code heaviest_find_parts(
	struct unfolding *u, const struct profile_value *p, uint32_t *ids_max, struct err *err)
{
	struct arena *a = u->t->arena;
	enum err_code rc;

	if (!(u->parts = arena_array(a, struct heaviest_stacks, p->parts_n + 1)))
		return arena_fail(a, "flame graph", err);

	for (size_t i = 0; i < p->parts_n; i++) {
		const struct part *part = &p->parts[i];
		struct heaviest_stacks *s = &u->parts[u->parts_n];

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
		u->parts_n++;
	}
	return ERR_OK;
}

static enum err_code heaviest_read_profile(
	struct unfolding *u, const struct profile_value *p, struct err *err)
{
	struct arena *a = u->t->arena;
	uint32_t ids_max = 0, groups;
	enum err_code rc;

	if ((rc = heaviest_find_parts(u, p, &ids_max, err)))
		return rc;
	groups = ids_max / GROUP + 1;
	u->group_used = arena_alloc_raw(a, groups, 1);
	u->by_id = arena_alloc_raw(a, (size_t)groups * GROUP, sizeof(*u->by_id));
	u->outer = arena_array(a, struct outer, OUTER);
	if (!u->group_used || !u->by_id || !u->outer)
		return arena_fail(a, "flame graph", err);
	for (uint32_t i = 0; i < u->parts_n && !rc; i++)
		rc = heaviest_read_part(u, &u->parts[i], p->is_diff, err);
	return rc;
}

/* ---- the heap ---- */

static bool heap_entry_heavier(const struct heap_entry *h, const struct heap_entry *e)
{
	return h->weight != e->weight ? h->weight > e->weight : h->candidate < e->candidate;
}

static enum err_code heaviest_heap_add(struct unfolding *u, uint32_t candidate, struct err *err)
{
	const struct candidate *c = &u->v[candidate];
	struct heap_entry e = { c->total[0] + c->total[1], candidate };
	uint32_t at = u->heap_n, above;

	if (!arena_array_room(u->t->arena, &u->heap, u->heap_n, 1, &u->heap_cap))
		return arena_fail(u->t->arena, "flame graph", err);
	u->heap_n++;
	for (; at; at = above) {
		above = (at - 1) / 2;
		if (!heap_entry_heavier(&e, &u->heap[above]))
			break;
		u->heap[at] = u->heap[above];
	}
	u->heap[at] = e;
	return ERR_OK;
}

static uint32_t heaviest_heap_take(struct unfolding *u)
{
	struct heap_entry last = u->heap[--u->heap_n];
	uint32_t top = u->heap[0].candidate, at = 0, below;

	for (; (below = 2 * at + 1) < u->heap_n; at = below) {
		if (below + 1 < u->heap_n && heap_entry_heavier(&u->heap[below + 1], &u->heap[below]))
			below++;
		if (!heap_entry_heavier(&u->heap[below], &last))
			break;
		u->heap[at] = u->heap[below];
	}
	u->heap[at] = last;
	return top;
}

/* ---- unfolding ---- */

static enum err_code heaviest_name_of(
	struct unfolding *u, const struct heaviest_stack *at, uint32_t *out, struct err *err)
{
	struct heaviest_stacks *s = &u->parts[at->part];
	const struct partition *p = s->part->partition;
	struct sym_location l;
	const struct sym_line *line;
	struct str name;
	enum err_code rc;

	if (at->location == NONE)
		return frame_tree_intern(u->t, NO_STACK, out, err);
	l = sym_location(p, at->location);
	line = l.lines_n ? &l.lines[at->line] : NULL;
	if (line && s->name_of[line->function]) {
		*out = s->name_of[line->function] - 1;
		return ERR_OK;
	}
	name = frame_address_name(u->t->arena, p, &l, line);
	if (!name.ptr)
		return arena_fail(u->t->arena, "flame graph", err);
	rc = frame_tree_intern(u->t, name, out, err);
	if (!rc && line && sym_function_name(p, sym_function(p, line->function)).len)
		s->name_of[line->function] = *out + 1;
	return rc;
}

/* Sets the line of a stack node to its outermost, and *name to the name there. */
static enum err_code heaviest_outermost(
	struct unfolding *u, struct heaviest_stack *at, uint32_t *name, struct err *err)
{
	struct outer *o = &u->outer[at->location % OUTER];
	struct sym_location l = { 0 };
	enum err_code rc;

	if (o->part != at->part + 1 || o->location != at->location) {
		if (at->location != NONE)
			l = sym_location(u->parts[at->part].part->partition, at->location);
		at->line = l.lines_n ? l.lines_n - 1 : 0;
		if ((rc = heaviest_name_of(u, at, name, err)))
			return rc;
		*o = (struct outer){ at->part + 1, at->location, *name, at->line };
	}
	at->line = o->line;
	*name = o->name;
	return ERR_OK;
}

/* Room for a name; there is no candidate of it yet. */
static bool heaviest_newest_room(struct unfolding *u, uint32_t name)
{
	uint32_t had = u->newest_cap;

	if (name < had)
		return true;
	if (!arena_array_room(u->t->arena, &u->newest, had, name - had + 1, &u->newest_cap))
		return false;
	memset(u->newest + had, 0, (u->newest_cap - had) * sizeof(*u->newest));
	return true;
}

/* The frame of a stack node becomes a part of the node's child with its name. */
static enum err_code heaviest_add_frame(
	struct unfolding *u, uint32_t parent, uint32_t at, uint32_t name, struct err *err)
{
	struct heaviest_stack *stack = &u->stacks[at];
	struct candidate *c;
	uint32_t found;

	if (!heaviest_newest_room(u, name) || !arena_array_room(u->t->arena, &u->v, u->n, 1, &u->cap))
		return arena_fail(u->t->arena, "flame graph", err);
	found = u->newest[name];
	if (!found || u->v[found - 1].parent != parent) {
		u->v[u->n] = (struct candidate){ .parent = parent, .name = name, .stacks = NONE };
		found = u->newest[name] = ++u->n;
	}
	c = &u->v[found - 1];
	c->total[0] += stack->total;
	c->total[1] += u->base ? u->base[at] : 0;
	stack->next = c->stacks;
	c->stacks = at;
	return ERR_OK;
}

/* The frames below one frame of a stack node: the next inlined one, or those that it calls. */
static enum err_code heaviest_unfold_frame(
	struct unfolding *u, uint32_t node, uint32_t at, struct err *err)
{
	struct heaviest_stack *stack = &u->stacks[at], *child;
	const struct heaviest_stacks *s = &u->parts[stack->part];
	enum err_code rc = ERR_OK;
	int64_t self[2];
	uint32_t name;

	if (stack->location != NONE && stack->line > pruned_line(&s->pruned, stack->location)) {
		stack->line--;
		rc = heaviest_name_of(u, stack, &name, err);
		return rc ? rc : heaviest_add_frame(u, node, at, name, err);
	}
	self[0] = stack->total;
	self[1] = u->base ? u->base[at] : 0;
	for (uint32_t c = stack->child; c != NONE && !rc; c = child->sibling) {
		child = &u->stacks[c];
		if (child->sibling != NONE)
			__builtin_prefetch(&u->stacks[child->sibling]);
		self[0] -= child->total;
		self[1] -= u->base ? u->base[c] : 0;
		if (!(rc = heaviest_outermost(u, child, &name, err)))
			rc = heaviest_add_frame(u, node, c, name, err);
	}
	u->t->nodes[node].self[0] += self[0];
	u->t->nodes[node].self[1] += self[1];
	return rc;
}

/* Makes its children candidates. */
static enum err_code heaviest_unfold(
	struct unfolding *u, uint32_t node, uint32_t stacks, struct err *err)
{
	uint32_t first = u->n;
	enum err_code rc = ERR_OK;

	for (uint32_t at = stacks, next; at != NONE && !rc; at = next) {
		next = u->stacks[at].next; /* it may go to a child's list */
		rc = heaviest_unfold_frame(u, node, at, err);
	}
	for (uint32_t i = first; i < u->n && !rc; i++)
		rc = heaviest_heap_add(u, i, err);
	return rc;
}

/* All parts begin there. */
static enum err_code heaviest_unfold_root(struct unfolding *u, struct err *err)
{
	uint32_t stacks = NONE;

	for (uint32_t i = u->parts_n; i-- > 0;) {
		uint32_t at = u->parts[i].first;

		u->t->nodes[0].total[0] += u->stacks[at].total;
		u->t->nodes[0].total[1] += u->base ? u->base[at] : 0;
		u->stacks[at].next = stacks;
		stacks = at;
	}
	return heaviest_unfold(u, 0, stacks, err);
}

static enum err_code heaviest_keep(struct unfolding *u, uint32_t candidate, struct err *err)
{
	struct candidate c = u->v[candidate];
	struct frame_tree *t = u->t;
	uint32_t node = t->n;

	if (!arena_array_room(t->arena, &t->nodes, t->n, 1, &t->cap))
		return arena_fail(t->arena, "flame graph", err);
	t->nodes[t->n++] = (struct tree_node){
		.parent = c.parent, .name = c.name, .total = { c.total[0], c.total[1] }
	};
	return heaviest_unfold(u, node, c.stacks, err);
}

/* ---- parts ---- */

static void heaviest_clear_costs(struct frame_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		t->nodes[i].self[0] = t->nodes[i].self[1] = t->nodes[i].total[0] = t->nodes[i].total[1] = 0;
}

/* Keeps the child of the node that was kept last, and none of its siblings. */
static enum err_code heaviest_descend(
	struct unfolding *u, struct str to, bool *found, struct err *err)
{
	struct frame_tree *t = u->t;
	uint32_t name = frame_tree_name(t, to), at = 0;

	if (name < u->newest_cap)
		at = u->newest[name];
	*found = at && u->v[at - 1].parent == t->n - 1;
	u->heap_n = 0;
	t->nodes[t->n - 1].self[0] = t->nodes[t->n - 1].self[1] = 0;
	return *found ? heaviest_keep(u, at - 1, err) : ERR_OK;
}

/* Leaves only the children of the part among the candidates, and its total on the way to it. */
static enum err_code heaviest_keep_part(
	struct unfolding *u, const struct tree_part *part, struct err *err)
{
	struct frame_tree *t = u->t;
	struct tree_node *end;
	bool found = true;
	enum err_code rc;

	for (size_t i = 0; i < part->n && found; i++)
		if ((rc = heaviest_descend(u, part->path[i], &found, err)))
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
	for (size_t i = 0; part->rest && i < part->skip && u->heap_n; i++) {
		const struct candidate *c = &u->v[heaviest_heap_take(u)];

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
