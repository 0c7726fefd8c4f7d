#include "web/render/flame.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "web/render/frame_origin.h"
#include "web/render/heaviest.h"

#define NO_NODE UINT32_MAX
#define AT_ONCE 512u /* numbers of a row that are written before the answer is flushed */

/* A box of the picture: a node, or the sum of the children that were left out of one. */
struct box {
	uint32_t node; /* NO_NODE: an "other" leaf */
	int64_t total[2]; /* the same sides as in the tree */
	int64_t self[2];
	int64_t x[2];
};

struct flame {
	struct arena *arena;
	struct frame_tree tree;
	const struct frame_origin *origins; /* per name of the tree; NULL: not requested */
	bool is_diff;
	char *kept; /* per node; NULL: all are */
	int64_t (*other)[2]; /* per node: totals of the children left out */
	uint32_t *children; /* kept nodes by (parent, name) */
	uint32_t children_n;
	uint32_t *first; /* per node: its first place in children; [n]: the end */
	uint32_t *name_id; /* per name of the tree: index in the output + 1 */
	uint32_t *name_order; /* names in the order of the output */
	uint32_t names_n; /* "total" and "other" not counted */
	int64_t max_self;
};

static int64_t flame_weight(const struct tree_node *n)
{
	return n->total[0] + n->total[1];
}

/* ---- which nodes to keep ---- */

static int flame_descending(const void *a, const void *b)
{
	int64_t l = *(const int64_t *)a, r = *(const int64_t *)b;

	return l > r ? -1 : l < r;
}

/*
 * Keeps the max_nodes heaviest. A parent is at least as heavy as its child and comes before it,
 * so the parent of a kept node is kept too.
 */
static enum err_code flame_choose_nodes(struct flame *f, size_t max_nodes, struct err *err)
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
		weights[i] = flame_weight(&f->tree.nodes[i]);
	qsort(weights, n, sizeof(*weights), flame_descending);
	least = weights[max_nodes - 1];
	for (size_t i = 0; i < max_nodes; i++)
		ties += weights[i] == least;
	for (uint32_t i = 0; i < n; i++) {
		const struct tree_node *node = &f->tree.nodes[i];

		if (flame_weight(node) > least || (flame_weight(node) == least && ties > 0)) {
			ties -= flame_weight(node) == least;
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

static int flame_by_parent_then_name(const void *a, const void *b, void *ctx)
{
	const struct frame_tree *t = ctx;
	const struct tree_node *l = &t->nodes[*(const uint32_t *)a];
	const struct tree_node *r = &t->nodes[*(const uint32_t *)b];

	if (l->parent != r->parent)
		return l->parent < r->parent ? -1 : 1;
	return str_cmp(t->names[l->name], t->names[r->name]);
}

static enum err_code flame_order_children(struct flame *f, struct err *err)
{
	uint32_t n = f->tree.n, k = 0;

	f->children = arena_array(f->arena, uint32_t, n);
	f->first = arena_array(f->arena, uint32_t, (size_t)n + 1);
	f->name_id = arena_array(f->arena, uint32_t, f->tree.names_n + 1);
	f->name_order = arena_array(f->arena, uint32_t, f->tree.names_n + 1);
	if (!f->children || !f->first || !f->name_id || !f->name_order)
		return arena_fail(f->arena, "flame graph", err);
	for (uint32_t i = 1; i < n; i++)
		if ((!f->kept || f->kept[i]) && flame_weight(&f->tree.nodes[i]) > 0)
			f->children[f->children_n++] = i;
	qsort_r(f->children, f->children_n, sizeof(*f->children), flame_by_parent_then_name, &f->tree);
	for (uint32_t i = 0; i <= n; i++) {
		while (k < f->children_n && f->tree.nodes[f->children[k]].parent < i)
			k++;
		f->first[i] = k;
	}
	return ERR_OK;
}

/* ---- rows ---- */

/* "total" is 0. "other" comes behind all names of the tree. */
static uint32_t flame_name_number(struct flame *f, const struct box *b)
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

static void flame_add_numbers(
	struct flame *f, const struct box *b, int64_t end[2], struct flame_row *to)
{
	static const int sides_of_diff[] = { 1, 0 }, side_of_one[] = { 0 };
	const int *sides = f->is_diff ? sides_of_diff : side_of_one; /* left is the base */

	for (int i = 0; i < (f->is_diff ? 2 : 1); i++) {
		int s = sides[i];

		to->v[to->n++] = b->x[s] - end[s];
		to->v[to->n++] = b->total[s];
		to->v[to->n++] = b->node == 0 ? 0 : b->self[s];
		end[s] = b->x[s] + b->total[s];
		if (b->node != 0 && b->self[s] > f->max_self)
			f->max_self = b->self[s];
	}
	to->v[to->n++] = flame_name_number(f, b);
}

static size_t flame_add_children(const struct flame *f, const struct box *b, struct box *out)
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

static struct box flame_root_box(const struct flame *f)
{
	const struct tree_node *root = &f->tree.nodes[0];

	return (struct box){ .total = { root->total[0], root->total[1] },
		.self = { root->self[0], root->self[1] } };
}

/* Each kept node, and at most one "other" below each. */
static size_t flame_boxes_max(const struct flame *f)
{
	return 2 * ((size_t)f->children_n + 1);
}

static enum err_code flame_add_row(
	struct flame *f, struct flame_picture *out, size_t *cap, size_t boxes, struct err *err)
{
	struct flame_row row = { .n = 0 };

	if (!arena_array_room(f->arena, &out->rows, out->rows_n, 1, cap) ||
		!(row.v = arena_alloc_raw(f->arena, boxes * (f->is_diff ? 7 : 4), sizeof(*row.v))))
		return arena_fail(f->arena, "flame graph", err);
	out->rows[out->rows_n++] = row;
	return ERR_OK;
}

static enum err_code flame_add_levels(struct flame *f, struct flame_picture *out, struct err *err)
{
	size_t max = flame_boxes_max(f), n = 1, next_n, cap = 0;
	struct box *row = arena_array(f->arena, struct box, max);
	struct box *next = arena_array(f->arena, struct box, max), *swap;
	int64_t end[2];
	enum err_code rc;

	if (!row || !next)
		return arena_fail(f->arena, "flame graph", err);
	row[0] = flame_root_box(f);
	while (n > 0) {
		if ((rc = render_wanted(f->tree.canceled, err)) ||
			(rc = flame_add_row(f, out, &cap, n, err)))
			return rc;
		next_n = 0;
		end[0] = end[1] = 0;
		for (size_t i = 0; i < n; i++) {
			flame_add_numbers(f, &row[i], end, &out->rows[out->rows_n - 1]);
			next_n += flame_add_children(f, &row[i], next + next_n);
		}
		assert(next_n <= max);
		swap = row;
		row = next;
		next = swap;
		n = next_n;
	}
	return ERR_OK;
}

static struct str flame_name_of(const struct flame *f, uint32_t name)
{
	return name == f->tree.names_n ? STR("other") : f->tree.names[name];
}

static enum err_code flame_add_names(struct flame *f, struct flame_picture *out, struct err *err)
{
	out->names_n = (size_t)f->names_n + 1;
	if (!(out->names = arena_array(f->arena, struct str, out->names_n)))
		return arena_fail(f->arena, "flame graph", err);
	out->names[0] = STR("total");
	for (uint32_t i = 0; i < f->names_n; i++)
		out->names[i + 1] = flame_name_of(f, f->name_order[i]);
	return ERR_OK;
}

static bool flame_file_eq(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(*(const struct str *)key, ((const struct flame_picture *)ctx)->files[id]);
}

static bool flame_file_number(
	struct map *known, struct flame_picture *out, struct str file, uint32_t *id)
{
	uint64_t hash = hash_bytes(file.ptr, file.len, 0);

	*id = map_find(known, hash, flame_file_eq, out, &file);
	if (*id != MAP_NONE)
		return true;
	*id = (uint32_t)out->files_n;
	out->files[out->files_n++] = file;
	return map_add(known, hash, *id);
}

static enum err_code flame_add_files(struct flame *f, struct flame_picture *out, struct err *err)
{
	struct map known;
	bool ok = true;

	out->files = arena_array(f->arena, struct str, out->names_n + 1);
	out->name_files = arena_array(f->arena, uint32_t, out->names_n);
	out->name_lines = arena_array(f->arena, int64_t, out->names_n);
	if (!out->files || !out->name_files || !out->name_lines)
		return arena_fail(f->arena, "flame graph", err);
	map_init(&known);
	ok = flame_file_number(&known, out, STR(""), &out->name_files[0]);
	for (uint32_t i = 0; i < f->names_n && ok; i++) {
		const struct frame_origin *o = &f->origins[f->name_order[i]];

		if (f->name_order[i] == f->tree.names_n) /* "other" */
			continue;
		ok = flame_file_number(&known, out, o->file, &out->name_files[i + 1]);
		out->name_lines[i + 1] = o->line;
	}
	map_release(&known);
	return ok ? ERR_OK : err_nomem(err, "flame graph");
}

static enum err_code flame_whole_tree(struct flame *f, const struct profile_value *p,
	const struct flame_options *o, const struct tree_part *part, struct err *err)
{
	enum err_code rc;

	if ((rc = frame_tree_add(&f->tree, 0, p, err)))
		return rc;
	if ((rc = frame_tree_total_part(&f->tree, part, err)))
		return rc;
	rc = render_wanted(o->canceled, err);
	return rc ? rc : flame_choose_nodes(f, o->max_nodes, err);
}

static enum err_code flame_init(struct flame *f, const struct profile_value *p,
	const struct flame_options *o, struct arena *a, struct err *err)
{
	const struct tree_part part = { o->call_site, o->call_site_n, o->call_site_rest,
		o->call_site_skip };
	enum err_code rc;

	assert(o->max_nodes > 0 && (o->call_site || !o->call_site_n));
	*f = (struct flame){ .arena = a, .is_diff = p->is_diff };
	if ((rc = frame_tree_init(&f->tree, a, err)))
		return rc;
	f->tree.canceled = o->canceled;
	rc = heaviest_can(p) ? frame_tree_heaviest(&f->tree, p, &part, o->max_nodes, &f->other, err) :
						   flame_whole_tree(f, p, o, &part, err);
	if (rc)
		return rc;
	if (o->files) {
		struct frame_origin *origins;

		if ((rc = frame_origins(&f->tree, p, &origins, err)))
			return rc;
		f->origins = origins;
	}
	return flame_order_children(f, err);
}

enum err_code flame_layout(const struct profile_value *p, const struct flame_options *o,
	struct arena *a, struct flame_picture *out, struct err *err)
{
	struct flame f;
	enum err_code rc = flame_init(&f, p, o, a, err);

	if (rc)
		goto out;
	*out = (struct flame_picture){ .is_diff = f.is_diff,
		.left_ticks = f.tree.nodes[0].total[1],
		.right_ticks = f.tree.nodes[0].total[0] };
	if ((rc = flame_add_levels(&f, out, err)) || (rc = flame_add_names(&f, out, err)) ||
		(f.origins && (rc = flame_add_files(&f, out, err))))
		goto out;
	out->max_self = f.max_self;
	out->other = f.name_id[f.tree.names_n];
out:
	frame_tree_release(&f.tree);
	return rc;
}

enum err_code flame_tree(const struct profile_value *p, const struct flame_options *o,
	struct arena *a, struct buf *out, struct err *err)
{
	struct flame f;
	struct box *stack = NULL, at;
	enum err_code rc = flame_init(&f, p, o, a, err);
	size_t n = 0, below;

	if (!rc && !(stack = arena_array(a, struct box, flame_boxes_max(&f))))
		rc = arena_fail(a, "flame graph", err);
	/* A tree without boxes is empty. */
	if (!rc && f.tree.nodes[0].total[0] > 0)
		stack[n++] = flame_root_box(&f);
	while (!rc && n > 0) {
		at = stack[--n];
		below = flame_add_children(&f, &at, stack + n);
		if (at.node == 0)
			buf_add_lenstr(out, STR(""));
		else
			buf_add_lenstr(out,
				flame_name_of(
					&f, at.node == NO_NODE ? f.tree.names_n : f.tree.nodes[at.node].name));
		buf_add_varint(out, (uint64_t)at.self[0]);
		buf_add_varint(out, below);
		n += below;
	}
	frame_tree_release(&f.tree);
	if (!rc && buf_failed(out))
		rc = err_nomem(err, "flame graph");
	return rc;
}

/* ---- JSON ---- */

static enum err_code flame_write_levels(
	struct json *j, const struct flame_picture *f, const struct render_options *o, struct err *err)
{
	enum err_code rc;

	json_key(j, "levels");
	json_array(j);
	for (size_t i = 0; i < f->rows_n; i++) {
		json_array(j);
		for (size_t k = 0, n; k < f->rows[i].n; k += n) {
			n = f->rows[i].n - k < AT_ONCE ? f->rows[i].n - k : AT_ONCE;
			json_i64s(j, f->rows[i].v + k, n);
			if ((rc = render_flush(o, j->out, err)))
				return rc;
		}
		json_array_end(j);
	}
	json_array_end(j);
	json_key(j, "names");
	json_array(j);
	for (size_t i = 0; i < f->names_n; i++) {
		json_str(j, f->names[i]);
		if ((rc = render_flush(o, j->out, err)))
			return rc;
	}
	json_array_end(j);
	return ERR_OK;
}

static enum err_code flame_write_files(
	struct json *j, const struct flame_picture *f, const struct render_options *o, struct err *err)
{
	enum err_code rc;

	json_key(j, "files");
	json_array(j);
	for (size_t i = 0; i < f->files_n; i++) {
		json_str(j, f->files[i]);
		if ((rc = render_flush(o, j->out, err)))
			return rc;
	}
	json_array_end(j);
	json_key(j, "nameFiles");
	json_array(j);
	for (size_t i = 0; i < f->names_n; i++) {
		json_u64(j, f->name_files[i]);
		if ((rc = render_flush(o, j->out, err)))
			return rc;
	}
	json_array_end(j);
	json_key(j, "nameLines");
	json_array(j);
	for (size_t i = 0; i < f->names_n; i++) {
		json_i64(j, f->name_lines[i]);
		if ((rc = render_flush(o, j->out, err)))
			return rc;
	}
	json_array_end(j);
	return ERR_OK;
}

enum err_code render_flame(
	struct json *j, const struct profile_value *p, const struct render_options *o, struct err *err)
{
	size_t max = o->max_nodes ? o->max_nodes : RENDER_NODES_DEFAULT;
	const struct flame_options options = {
		/* The path to a part is not what is asked for. */
		.max_nodes = (max < RENDER_NODES_MAX ? max : RENDER_NODES_MAX) + o->call_site_n,
		.call_site = o->call_site,
		.call_site_n = o->call_site_n,
		.call_site_rest = o->call_site_rest,
		.call_site_skip = o->call_site_skip,
		.files = o->files,
		.canceled = o->canceled,
	};
	struct flame_picture f;
	enum err_code rc;

	if ((rc = flame_layout(p, &options, o->arena, &f, err)))
		return rc;
	json_object(j);
	json_key(j, "format");
	json_cstr(j, f.is_diff ? "double" : "single");
	if ((rc = flame_write_levels(j, &f, o, err)) ||
		(f.files && (rc = flame_write_files(j, &f, o, err))))
		return rc;
	json_key(j, "numTicks");
	json_i64(j, f.left_ticks + f.right_ticks);
	if (f.is_diff) {
		json_key(j, "leftTicks");
		json_i64(j, f.left_ticks);
		json_key(j, "rightTicks");
		json_i64(j, f.right_ticks);
	}
	json_key(j, "maxSelf");
	json_i64(j, f.max_self);
	if (f.other) {
		json_key(j, "other");
		json_u64(j, f.other);
	}
	json_object_end(j);
	return ERR_OK;
}
