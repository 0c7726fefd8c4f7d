#include "web/render/frame_tree.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "promql/profiles/frame.h"
#include "web/render/render.h"

#define UNCHECKED 4096u /* nodes or cells between checks for cancellation */

enum err_code frame_tree_init(struct frame_tree *t, struct arena *a, struct err *err)
{
	*t = (struct frame_tree){ .arena = a };
	map_init(&t->node_map);
	map_init(&t->name_map);
	if (!arena_array_room(a, &t->nodes, 0, 1, &t->cap))
		return arena_fail(a, "frame tree", err);
	t->nodes[t->n++] = (struct tree_node){ 0 };
	return ERR_OK;
}

void frame_tree_release(struct frame_tree *t)
{
	map_release(&t->node_map);
	map_release(&t->name_map);
}

static bool frame_tree_name_eq(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(*(const struct str *)key, ((const struct frame_tree *)ctx)->names[id]);
}

enum err_code frame_tree_intern(
	struct frame_tree *t, struct str name, uint32_t *out, struct err *err)
{
	uint64_t hash = hash_bytes(name.ptr, name.len, 0);

	*out = map_find(&t->name_map, hash, frame_tree_name_eq, t, &name);
	if (*out != MAP_NONE)
		return ERR_OK;
	if (!arena_array_room(t->arena, &t->names, t->names_n, 1, &t->names_cap))
		return arena_fail(t->arena, "frame tree", err);
	*out = t->names_n;
	if (!map_add(&t->name_map, hash, *out))
		return err_nomem(err, "frame tree");
	t->names[t->names_n++] = name;
	return ERR_OK;
}

uint32_t frame_tree_name(const struct frame_tree *t, struct str name)
{
	return map_find(&t->name_map, hash_bytes(name.ptr, name.len, 0), frame_tree_name_eq, t, &name);
}

static bool child_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct tree_node *a = key, *b = &((const struct frame_tree *)ctx)->nodes[id];

	return a->parent == b->parent && a->name == b->name;
}

static enum err_code frame_tree_find_child(
	struct frame_tree *t, uint32_t parent, uint32_t name, uint32_t *out, struct err *err)
{
	struct tree_node key = { .parent = parent, .name = name };
	uint64_t hash = map_hash_u64((uint64_t)parent << 32 | name);

	*out = map_find(&t->node_map, hash, child_eq, t, &key);
	if (*out != MAP_NONE)
		return ERR_OK;
	if (!arena_array_room(t->arena, &t->nodes, t->n, 1, &t->cap))
		return arena_fail(t->arena, "frame tree", err);
	*out = t->n;
	if (!map_add(&t->node_map, hash, *out))
		return err_nomem(err, "frame tree");
	t->nodes[t->n++] = key;
	return ERR_OK;
}

enum err_code frame_tree_child(
	struct frame_tree *t, uint32_t parent, struct str name, uint32_t *out, struct err *err)
{
	enum err_code rc;

	assert(parent < t->n && name.ptr);
	rc = frame_tree_intern(t, name, out, err);
	return rc ? rc : frame_tree_find_child(t, parent, *out, out, err);
}

/* Adds a part: maps its nodes and locations to nodes and names of the tree. */
struct frame_tree_adding {
	struct frame_tree *t;
	const struct partition *p;
	struct pruned pruned;
	char *is_used; /* per stack node */
	uint32_t *tree_of; /* per stack node: where its leaf frame is in the tree */
	uint32_t *first_name; /* per location: index into names + 1; 0: not looked up */
	uint32_t *names; /* ids, innermost first */
	size_t names_n, names_cap;
};

static enum err_code frame_tree_names_of(struct frame_tree_adding *f, uint32_t location,
	const uint32_t **out, uint32_t *n, struct err *err)
{
	const struct sym_location l = sym_location(f->p, location);
	struct arena *a = f->t->arena;
	uint32_t skip;
	struct str name;
	enum err_code rc;

	*n = l.lines_n ? l.lines_n : 1;
	if (!f->first_name[location]) {
		if (!arena_array_room(a, &f->names, f->names_n, *n, &f->names_cap))
			return arena_fail(a, "frame tree", err);
		for (uint32_t i = 0; i < *n; i++) {
			name = frame_address_name(a, f->p, &l, l.lines_n ? &l.lines[i] : NULL);
			if (!name.ptr)
				return arena_fail(a, "frame tree", err);
			if ((rc = frame_tree_intern(f->t, name, &f->names[f->names_n + i], err)))
				return rc;
		}
		f->first_name[location] = (uint32_t)f->names_n + 1;
		f->names_n += *n;
	}
	skip = pruned_line(&f->pruned, location);
	*out = f->names + f->first_name[location] - 1 + skip;
	*n -= skip;
	return ERR_OK;
}

static enum err_code frame_tree_add_stack_node(
	struct frame_tree_adding *f, uint32_t id, struct err *err)
{
	struct sym_node node = sym_node(f->p, id);
	uint32_t at = f->tree_of[node.parent], n;
	const uint32_t *names;
	enum err_code rc;

	if ((rc = frame_tree_names_of(f, node.location, &names, &n, err)))
		return rc;
	while (n-- > 0)
		if ((rc = frame_tree_find_child(f->t, at, names[n], &at, err)))
			return rc;
	f->tree_of[id] = at;
	return ERR_OK;
}

enum { BOTH_SIDES = -1 };

static void tree_node_add_cell(struct tree_node *node, const struct cell *c, int side)
{
	int64_t v = side ? c->base : c->value;

	if (side == BOTH_SIDES) {
		node->self[0] += c->value;
		node->self[1] += c->base;
	} else {
		node->self[v < 0] += v < 0 ? -v : v; /* not INT64_MIN: see profile_totals */
	}
}

static enum err_code frame_tree_add_part(struct frame_tree *t, uint32_t below,
	const struct profile_value *p, const struct part *part, int side, struct err *err)
{
	struct frame_tree_adding x = { .t = t, .p = part->partition };
	uint32_t nodes, at, stack;
	enum err_code rc;

	if (part->n == 0)
		return ERR_OK;
	assert(part->cells[0].stack <= part->cells[part->n - 1].stack); /* cells are in order */
	nodes = part->cells[part->n - 1].stack + 1;
	if ((rc = pruned_init(&x.pruned, p, part, t->arena, err)))
		return rc;
	x.is_used = arena_array(t->arena, char, nodes);
	x.tree_of = arena_array(t->arena, uint32_t, nodes);
	x.first_name = arena_array(t->arena, uint32_t, sym_locations_n(x.p) + 1);
	if (!x.is_used || !x.tree_of || !x.first_name)
		return arena_fail(t->arena, "frame tree", err);
	for (size_t i = 0; i < part->n; i++)
		x.is_used[pruned_stack(&x.pruned, part->cells[i].stack)] = 1;
	for (uint32_t i = nodes; i-- > 1;)
		if (x.is_used[i])
			x.is_used[sym_node(x.p, i).parent] = 1;
	x.tree_of[0] = below;
	for (uint32_t i = 1; i < nodes; i++)
		if ((i % UNCHECKED == 0 && (rc = render_wanted(t->canceled, err))) ||
			(x.is_used[i] && (rc = frame_tree_add_stack_node(&x, i, err))))
			return rc;
	for (size_t i = 0; i < part->n; i++) {
		const struct cell *c = &part->cells[i];

		if (i % UNCHECKED == 0 && (rc = render_wanted(t->canceled, err)))
			return rc;
		stack = pruned_stack(&x.pruned, c->stack);
		at = x.tree_of[stack];
		if (stack == 0 && (rc = frame_tree_child(t, below, NO_STACK, &at, err)))
			return rc;
		tree_node_add_cell(&t->nodes[at], c, side);
	}
	return ERR_OK;
}

static enum err_code frame_tree_add_parts(
	struct frame_tree *t, uint32_t below, const struct profile_value *p, int side, struct err *err)
{
	enum err_code rc = ERR_OK;

	assert(below < t->n);
	for (size_t i = 0; i < p->parts_n && !rc; i++)
		rc = frame_tree_add_part(t, below, p, &p->parts[i], side, err);
	return rc;
}

enum err_code frame_tree_add(
	struct frame_tree *t, uint32_t below, const struct profile_value *p, struct err *err)
{
	return frame_tree_add_parts(t, below, p, BOTH_SIDES, err);
}

enum err_code frame_tree_add_signed(
	struct frame_tree *t, uint32_t below, const struct profile_value *p, int side, struct err *err)
{
	assert(side == 0 || side == 1);
	return frame_tree_add_parts(t, below, p, side, err);
}

enum err_code frame_tree_keep(
	struct frame_tree *t, const struct str *path, size_t n, struct err *err)
{
	/* Per node: the number of frames of the path it has so far. */
	uint32_t *depth = arena_array(t->arena, uint32_t, t->n);

	assert(path && n > 0 && n < UINT32_MAX);
	if (!depth)
		return arena_fail(t->arena, "frame tree", err);
	for (uint32_t i = 0; i < t->n; i++) {
		struct tree_node *node = &t->nodes[i];
		uint32_t above = i ? depth[node->parent] : 0;

		/* n: it has all of the path; UINT32_MAX: it left the path. */
		if (i == 0)
			depth[i] = 0;
		else if (above == UINT32_MAX || above == n)
			depth[i] = above;
		else
			depth[i] = str_eq(t->names[node->name], path[above]) ? above + 1 : UINT32_MAX;
		if (depth[i] != n)
			node->self[0] = node->self[1] = 0;
	}
	return ERR_OK;
}

void frame_tree_total(struct frame_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		for (int side = 0; side < 2; side++) {
			if (t->nodes[i].self[side] < 0)
				t->nodes[i].self[side] = 0;
			t->nodes[i].total[side] = t->nodes[i].self[side];
		}
	for (uint32_t i = t->n; i-- > 1;)
		for (int side = 0; side < 2; side++)
			t->nodes[t->nodes[i].parent].total[side] += t->nodes[i].total[side];
}

/* ---- parts ---- */

/* The node at the end of a path; t->n: there is none. */
static uint32_t frame_tree_node_at(const struct frame_tree *t, const struct tree_part *part)
{
	uint32_t at = 0, name;

	for (size_t i = 0; i < part->n && at < t->n; i++) {
		struct tree_node key = { .parent = at };

		if ((name = frame_tree_name(t, part->path[i])) == MAP_NONE)
			return t->n;
		key.name = name;
		at = map_find(&t->node_map, map_hash_u64((uint64_t)at << 32 | name), child_eq, t, &key);
		if (at == MAP_NONE)
			return t->n;
	}
	return at;
}

struct child {
	int64_t weight;
	uint32_t node;
};

static int frame_tree_heavier_first(const void *a, const void *b)
{
	const struct child *l = a, *r = b;

	if (l->weight != r->weight)
		return l->weight > r->weight ? -1 : 1;
	return l->node < r->node ? -1 : l->node > r->node;
}

/* Sets the costs of the node, of its `skip` heaviest children and of all below these to 0. */
static enum err_code frame_tree_skip_children(
	struct frame_tree *t, uint32_t above, size_t skip, struct err *err)
{
	struct child *children = arena_array(t->arena, struct child, t->n);
	char *is_left_out = arena_array(t->arena, char, t->n);
	size_t n = 0;

	if (!children || !is_left_out)
		return arena_fail(t->arena, "frame tree", err);
	for (uint32_t i = above + 1; i < t->n; i++)
		if (t->nodes[i].parent == above)
			children[n++] = (struct child){ t->nodes[i].total[0] + t->nodes[i].total[1], i };
	qsort(children, n, sizeof(*children), frame_tree_heavier_first);
	for (size_t i = 0; i < n && i < skip; i++)
		is_left_out[children[i].node] = 1;
	for (uint32_t i = above + 1; i < t->n; i++) {
		struct tree_node *node = &t->nodes[i];

		is_left_out[i] |= is_left_out[node->parent];
		if (is_left_out[i])
			node->self[0] = node->self[1] = 0;
	}
	t->nodes[above].self[0] = t->nodes[above].self[1] = 0;
	return ERR_OK;
}

enum err_code frame_tree_total_part(
	struct frame_tree *t, const struct tree_part *part, struct err *err)
{
	uint32_t above;
	enum err_code rc;

	if (part->n && (rc = frame_tree_keep(t, part->path, part->n, err)))
		return rc;
	frame_tree_total(t);
	if (!part->rest || (above = frame_tree_node_at(t, part)) == t->n)
		return ERR_OK;
	if ((rc = frame_tree_skip_children(t, above, part->skip, err)))
		return rc;
	frame_tree_total(t);
	return ERR_OK;
}
