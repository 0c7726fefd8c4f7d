#include "cmd/epitool/flame/layout.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/quote.h"
#include "cmd/epitool/compare/names.h"

#define TEXT_MIN 3u

struct str flame_name(const struct flame_tree *t, uint32_t node)
{
	uint32_t row = t->nodes[node].row;

	return row == FLAME_NONE ? STR("total") : t->names.rows[row].name;
}

/* ---- the tree ---- */

struct flame_edge {
	uint32_t parent, row;
};

static bool flame_edge_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct flame_node *n = &((const struct flame_tree *)ctx)->nodes[id];
	const struct flame_edge *e = key;

	return n->parent == e->parent && n->row == e->row;
}

static bool flame_tree_node_add(struct flame_tree *t, uint32_t parent, uint32_t row)
{
	struct flame_node *up;

	if (!arena_array_room(t->names.arena, &t->nodes, t->n, 1, &t->cap))
		return false;
	t->nodes[t->n] = (struct flame_node){
		.row = row, .parent = parent, .first = FLAME_NONE, .next = FLAME_NONE
	};
	if (parent != FLAME_NONE) {
		up = &t->nodes[parent];
		t->nodes[t->n].next = up->first;
		up->first = t->n;
	}
	t->n++;
	return true;
}

static uint32_t flame_tree_child_of(struct flame_tree *t, uint32_t parent, uint32_t row)
{
	struct flame_edge e = { parent, row };
	uint64_t hash = hash_bytes(&e, sizeof(e), 0);
	uint32_t id = map_find(&t->map, hash, flame_edge_eq, t, &e);

	if (id != MAP_NONE)
		return id;
	if (!flame_tree_node_add(t, parent, row) || !map_add(&t->map, hash, t->n - 1))
		return FLAME_NONE;
	return t->n - 1;
}

static enum err_code flame_add_stack(
	void *ctx, const uint32_t *rows, size_t n, int64_t value, struct err *err)
{
	struct flame_tree *t = ctx;
	uint32_t at = FLAME_ROOT;

	t->nodes[at].total += value;
	for (size_t i = 0; i < n; i++) {
		at = flame_tree_child_of(t, at, rows[i]);
		if (at == FLAME_NONE)
			return arena_fail(t->names.arena, "flame graph", err);
		t->nodes[at].total += value;
	}
	t->nodes[at].self += value;
	return ERR_OK;
}

static _Thread_local const struct flame_tree *sorted;

static int flame_by_total(const void *a, const void *b)
{
	uint32_t l = *(const uint32_t *)a, r = *(const uint32_t *)b;
	int64_t lt = sorted->nodes[l].total, rt = sorted->nodes[r].total;

	return lt != rt ? (lt < rt ? 1 : -1) : str_cmp(flame_name(sorted, l), flame_name(sorted, r));
}

/* The most expensive child first. */
static enum err_code flame_tree_sort_children(struct flame_tree *t, struct err *err)
{
	uint32_t *list = arena_array(t->names.arena, uint32_t, t->n), n;

	if (!list)
		return arena_fail(t->names.arena, "flame graph", err);
	sorted = t;
	for (uint32_t i = 0; i < t->n; i++) {
		n = 0;
		for (uint32_t c = t->nodes[i].first; c != FLAME_NONE; c = t->nodes[c].next)
			list[n++] = c;
		if (n > 1)
			qsort(list, n, sizeof(*list), flame_by_total);
		for (uint32_t k = 0; k < n; k++)
			t->nodes[list[k]].next = k + 1 < n ? list[k + 1] : FLAME_NONE;
		t->nodes[i].first = n ? list[0] : FLAME_NONE;
	}
	return ERR_OK;
}

enum err_code flame_tree_make(
	struct arena *a, const struct pprof *p, uint32_t type, struct flame_tree *out, struct err *err)
{
	const struct pprof_type *kind = &p->types[type];
	enum err_code rc;

	*out = (struct flame_tree){ .type = p->strings[kind->type], .unit = p->strings[kind->unit] };
	costs_init(&out->names, a, BY_FUNCTION);
	map_init(&out->map);
	rc = flame_tree_node_add(out, FLAME_NONE, FLAME_NONE) ?
		costs_walk(&out->names, p, type, flame_add_stack, out, err) :
		arena_fail(a, "flame graph", err);
	if (rc || (rc = flame_tree_sort_children(out, err)))
		return rc;
	if (out->nodes[FLAME_ROOT].total <= 0)
		return err_set(
			err, ERR_INVALID, "the profile has no costs of type " STR_FMT, STR_ARG(out->type));
	return ERR_OK;
}

void flame_tree_release(struct flame_tree *t)
{
	map_release(&t->map);
	costs_release(&t->names);
}

/* ---- cells ---- */

static bool flame_cell_add(struct arena *a, struct flame_cells *out, struct flame_cell cell)
{
	if (!arena_array_room(a, &out->v, out->n, 1, &out->cap))
		return false;
	out->v[out->n++] = cell;
	out->rows = cell.row + 1;
	return true;
}

static uint32_t flame_column(int64_t cost, int64_t total, uint32_t width)
{
	double x = (double)cost / (double)total * width;

	return x <= 0 ? 0 : x >= width ? width : (uint32_t)x;
}

static bool flame_lay_children(struct arena *a, const struct flame_tree *t, struct flame_cell of,
	int64_t total, uint32_t width, struct flame_cells *out)
{
	int64_t left = of.left;

	for (uint32_t c = t->nodes[of.node].first; c != FLAME_NONE; c = t->nodes[c].next) {
		int64_t cost = t->nodes[c].total;
		uint32_t x = flame_column(left, total, width),
				 end = flame_column(left + cost, total, width);

		if (cost > 0 && end > of.x + of.width) /* of a profile with costs below 0 */
			end = of.x + of.width;
		if (cost > 0 && end > x &&
			!flame_cell_add(a, out, (struct flame_cell){ c, of.row + 1, x, end - x, left }))
			return false;
		left += cost > 0 ? cost : 0;
	}
	return true;
}

enum err_code flame_lay(struct arena *a, const struct flame_tree *t, uint32_t zoom, uint32_t width,
	struct flame_cells *out, struct err *err)
{
	uint32_t above = 0, at;
	size_t first;

	out->n = out->rows = 0;
	for (at = zoom; at != FLAME_ROOT; at = t->nodes[at].parent)
		above++;
	for (uint32_t row = 0; row <= above; row++) {
		at = zoom;
		for (uint32_t up = row; up < above; up++)
			at = t->nodes[at].parent;
		if (!flame_cell_add(a, out, (struct flame_cell){ at, row, 0, width, 0 }))
			return arena_fail(a, "flame graph", err);
	}
	first = out->n - 1;
	for (size_t i = first; i < out->n; i++) /* those that it adds too: row after row */
		if (!flame_lay_children(a, t, out->v[i], t->nodes[zoom].total, width, out))
			return arena_fail(a, "flame graph", err);
	return ERR_OK;
}

/* ---- text ---- */

static size_t flame_characters(struct str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
	return n;
}

static struct str flame_first_characters(struct str s, size_t n)
{
	size_t i = 0;

	for (; i < s.len; i++)
		if (((unsigned char)s.ptr[i] & 0xc0) != 0x80 && n-- == 0)
			break;
	return (struct str){ s.ptr, i };
}

void flame_text(struct buf *out, struct str name, uint32_t width)
{
	struct buf text = { 0 };
	size_t n;

	buf_add_printable(&text, name);
	if (flame_characters(buf_str(&text)) > width) {
		buf_clear(&text);
		buf_add_printable(&text, name_short(name));
	}
	n = flame_characters(buf_str(&text));
	if (n > width && width < TEXT_MIN) {
		n = 0;
	} else if (n > width) {
		buf_add_str(out, flame_first_characters(buf_str(&text), width - 1));
		buf_add_cstr(out, "\xe2\x80\xa6"); /* an ellipsis */
		n = width;
	} else {
		buf_add_str(out, buf_str(&text));
	}
	buf_printf(out, "%*s", (int)(width - n), "");
	out->failed = out->failed || buf_failed(&text);
	buf_release(&text);
}

void flame_print_plain(
	const struct flame_tree *t, const struct flame_cells *cells, uint32_t width, struct buf *out)
{
	uint32_t x = 0;

	for (size_t i = 0; i < cells->n; i++) {
		const struct flame_cell *c = &cells->v[i];

		if (i && c->row != cells->v[i - 1].row) {
			while (out->len && out->ptr[out->len - 1] == ' ')
				out->len--;
			buf_add_char(out, '\n');
			x = 0;
		}
		buf_printf(out, "%*s|", (int)(c->x - x), "");
		flame_text(out, flame_name(t, c->node), c->width - 1);
		x = c->x + c->width;
	}
	while (out->len && out->ptr[out->len - 1] == ' ')
		out->len--;
	buf_add_char(out, '\n');
}
