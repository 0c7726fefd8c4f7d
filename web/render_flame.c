#include "web/render_flame.h"

#include <stdlib.h>

#include "web/frame_tree.h"

#define NO_NODE UINT32_MAX

/* A box of the picture: a node, or what was left out below one. */
struct box {
	uint32_t node; /* NO_NODE: an "other" leaf */
	int64_t total[2]; /* the same sides as in the tree */
	int64_t self[2];
	int64_t x[2];
};

struct flame {
	struct json *j;
	struct arena *arena;
	struct frame_tree tree;
	bool is_diff;
	char *kept; /* per node */
	int64_t (*other)[2]; /* per node: totals of the children left out */
	uint32_t *children; /* kept nodes by (parent, name) */
	uint32_t children_n;
	uint32_t *first; /* per node: its first place in children; [n]: the end */
	uint32_t *name_id; /* per name of the tree: index in the output + 1 */
	uint32_t *name_order; /* names in the order of the output */
	uint32_t names_n; /* "total" and "other" not counted */
	int64_t max_self;
};

static int64_t weight(const struct tree_node *n)
{
	return n->total[0] + n->total[1];
}

/* ---- which nodes to keep ---- */

static int descending(const void *a, const void *b)
{
	int64_t l = *(const int64_t *)a, r = *(const int64_t *)b;

	return l > r ? -1 : l < r;
}

/*
 * The max_nodes heaviest. A parent is as heavy as its child at least and comes before it, so with a
 * node its parent is kept too.
 */
static enum err_code choose_nodes(struct flame *f, size_t max_nodes, struct err *err)
{
	uint32_t n = f->tree.n, ties = 0;
	int64_t *weights, least;

	f->kept = arena_array(f->arena, char, n);
	f->other = arena_calloc(f->arena, n, sizeof(*f->other));
	if (!f->kept || !f->other)
		return arena_fail(f->arena, "flame graph", err);
	memset(f->kept, 1, n);
	if (n <= max_nodes)
		return ERR_OK;
	if (!(weights = arena_alloc_raw(f->arena, n, sizeof(*weights))))
		return arena_fail(f->arena, "flame graph", err);
	for (uint32_t i = 0; i < n; i++)
		weights[i] = weight(&f->tree.nodes[i]);
	qsort(weights, n, sizeof(*weights), descending);
	least = weights[max_nodes - 1];
	for (size_t i = 0; i < max_nodes; i++)
		ties += weights[i] == least;
	for (uint32_t i = 0; i < n; i++) {
		const struct tree_node *node = &f->tree.nodes[i];

		if (weight(node) > least || (weight(node) == least && ties > 0)) {
			ties -= weight(node) == least;
			continue;
		}
		f->kept[i] = 0;
		if (!f->kept[node->parent])
			continue;
		f->other[node->parent][0] += node->total[0];
		f->other[node->parent][1] += node->total[1];
	}
	return ERR_OK;
}

/* ---- children in order ---- */

static int by_parent_then_name(const void *a, const void *b, void *ctx)
{
	const struct frame_tree *t = ctx;
	const struct tree_node *l = &t->nodes[*(const uint32_t *)a];
	const struct tree_node *r = &t->nodes[*(const uint32_t *)b];

	if (l->parent != r->parent)
		return l->parent < r->parent ? -1 : 1;
	return str_cmp(t->names[l->name], t->names[r->name]);
}

static enum err_code order_children(struct flame *f, struct err *err)
{
	uint32_t n = f->tree.n, k = 0;

	f->children = arena_array(f->arena, uint32_t, n);
	f->first = arena_array(f->arena, uint32_t, (size_t)n + 1);
	f->name_id = arena_array(f->arena, uint32_t, f->tree.names_n + 1);
	f->name_order = arena_array(f->arena, uint32_t, f->tree.names_n + 1);
	if (!f->children || !f->first || !f->name_id || !f->name_order)
		return arena_fail(f->arena, "flame graph", err);
	for (uint32_t i = 1; i < n; i++)
		if (f->kept[i] && weight(&f->tree.nodes[i]) > 0)
			f->children[f->children_n++] = i;
	qsort_r(f->children, f->children_n, sizeof(*f->children), by_parent_then_name, &f->tree);
	for (uint32_t i = 0; i <= n; i++) {
		while (k < f->children_n && f->tree.nodes[f->children[k]].parent < i)
			k++;
		f->first[i] = k;
	}
	return ERR_OK;
}

/* ---- rows ---- */

/* "total" is 0 and "other", where there is one, stands behind all names of the tree. */
static uint32_t name_number(struct flame *f, const struct box *b)
{
	uint32_t name;

	if (b->node == 0)
		return 0;
	name = b->node == NO_NODE ? f->tree.names_n : f->tree.nodes[b->node].name;
	if (!f->name_id[name]) {
		f->name_order[f->names_n] = name;
		f->name_id[name] = ++f->names_n;
	}
	return f->name_id[name];
}

static void add_numbers(struct flame *f, const struct box *b, int64_t end[2])
{
	static const int sides_of_diff[] = { 1, 0 }, side_of_one[] = { 0 };
	const int *sides = f->is_diff ? sides_of_diff : side_of_one; /* left is the base */

	for (int i = 0; i < (f->is_diff ? 2 : 1); i++) {
		int s = sides[i];

		json_i64(f->j, b->x[s] - end[s]);
		json_i64(f->j, b->total[s]);
		json_i64(f->j, b->node == 0 ? 0 : b->self[s]);
		end[s] = b->x[s] + b->total[s];
		if (b->node != 0 && b->self[s] > f->max_self)
			f->max_self = b->self[s];
	}
	json_u64(f->j, name_number(f, b));
}

static size_t add_children(const struct flame *f, const struct box *b, struct box *out)
{
	int64_t x[2] = { b->x[0] + b->self[0], b->x[1] + b->self[1] };
	size_t n = 0;

	if (b->node == NO_NODE)
		return 0;
	for (uint32_t i = f->first[b->node]; i < f->first[b->node + 1]; i++) {
		const struct tree_node *node = &f->tree.nodes[f->children[i]];
		struct box *c = &out[n++];

		*c = (struct box){ .node = f->children[i] };
		for (int s = 0; s < 2; s++) {
			c->total[s] = node->total[s];
			c->self[s] = node->self[s];
			c->x[s] = x[s];
			x[s] += node->total[s];
		}
	}
	if (f->other[b->node][0] + f->other[b->node][1] > 0) {
		struct box *c = &out[n++];

		*c = (struct box){ .node = NO_NODE };
		for (int s = 0; s < 2; s++) {
			c->total[s] = c->self[s] = f->other[b->node][s];
			c->x[s] = x[s];
		}
	}
	return n;
}

static enum err_code add_levels(struct flame *f, struct err *err)
{
	/* every kept node and at most one "other" below each */
	size_t max = 2 * ((size_t)f->children_n + 1), n = 1, next_n;
	struct box *row = arena_array(f->arena, struct box, max);
	struct box *next = arena_array(f->arena, struct box, max), *swap;
	const struct tree_node *root = &f->tree.nodes[0];
	int64_t end[2];

	if (!row || !next)
		return arena_fail(f->arena, "flame graph", err);
	row[0] = (struct box){ .total = { root->total[0], root->total[1] },
		.self = { root->self[0], root->self[1] } };
	json_key(f->j, "levels");
	json_array(f->j);
	while (n > 0) {
		json_array(f->j);
		next_n = 0;
		end[0] = end[1] = 0;
		for (size_t i = 0; i < n; i++) {
			add_numbers(f, &row[i], end);
			next_n += add_children(f, &row[i], next + next_n);
		}
		json_array_end(f->j);
		swap = row;
		row = next;
		next = swap;
		n = next_n;
	}
	json_array_end(f->j);
	return ERR_OK;
}

static void add_names(struct flame *f)
{
	json_key(f->j, "names");
	json_array(f->j);
	json_cstr(f->j, "total");
	for (uint32_t i = 0; i < f->names_n; i++) {
		uint32_t name = f->name_order[i];

		json_str(f->j, name == f->tree.names_n ? STR("other") : f->tree.names[name]);
	}
	json_array_end(f->j);
}

enum err_code render_flame(struct json *j, const struct profile_value *p, size_t max_nodes,
	struct arena *a, struct err *err)
{
	struct flame f = { .j = j, .arena = a, .is_diff = p->is_diff };
	const int64_t *total;
	enum err_code rc;

	if ((rc = frame_tree_init(&f.tree, a, err)) || (rc = frame_tree_add(&f.tree, 0, p, err)))
		goto out;
	frame_tree_total(&f.tree);
	if ((rc = choose_nodes(&f, max_nodes, err)) || (rc = order_children(&f, err)))
		goto out;
	total = f.tree.nodes[0].total;
	json_object(j);
	json_key(j, "format");
	json_cstr(j, f.is_diff ? "double" : "single");
	if ((rc = add_levels(&f, err)))
		goto out;
	add_names(&f);
	json_key(j, "numTicks");
	json_i64(j, total[0] + total[1]);
	if (f.is_diff) {
		json_key(j, "leftTicks");
		json_i64(j, total[1]);
		json_key(j, "rightTicks");
		json_i64(j, total[0]);
	}
	json_key(j, "maxSelf");
	json_i64(j, f.max_self);
	json_object_end(j);
out:
	frame_tree_release(&f.tree);
	return rc;
}
