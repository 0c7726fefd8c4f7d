/*
 * tree: the call tree, breadth first within the bytes of the answer.
 *
 * A line is a chain: a frame, and the frames below it as long as each calls just one and costs
 * nothing itself. Lines are chosen level by level, in each the most expensive first, until the next
 * one would not fit; those of less than half a percent are left out. They are printed as an
 * outline, so whoever reads sees each call below its caller.
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "promql/engine/engine.h"
#include "web/mcp/tool.h"
#include "web/render/heaviest.h"

#define NODES_MAX 4096u
#define SHARE_MIN 0.5 /* percent */
#define LINE_BYTES 64u /* of a line without its names and its indent, at most */
#define REST_BYTES 1600u /* of facts, notes and the next call */
#define JOIN STR(" > ")

struct chain {
	uint32_t first, last; /* nodes */
	uint32_t parent, depth; /* parent: a chain; its own number: none */
	uint32_t hidden_n; /* children that are left out */
	int64_t hidden;
	bool chosen;
};

struct outline {
	struct tool_call *c;
	struct frame_tree tree;
	int64_t (*other)[2];
	uint32_t *child, *sibling; /* per node; 0: none. Children are by descending total */
	struct chain *v;
	size_t n, cap;
	int64_t total;
	struct str unit;
};

static enum err_code outline_link(struct outline *o, struct err *err)
{
	struct frame_tree *t = &o->tree;

	o->child = arena_array(t->arena, uint32_t, t->n);
	o->sibling = arena_array(t->arena, uint32_t, t->n);
	if (!o->child || !o->sibling)
		return arena_fail(t->arena, "tree", err);
	/* Nodes were added by descending total, so from the last on each goes to the front. */
	for (uint32_t i = t->n; i-- > 1;) {
		o->sibling[i] = o->child[t->nodes[i].parent];
		o->child[t->nodes[i].parent] = i;
	}
	return ERR_OK;
}

/* The last node of the chain that begins with this one. */
static uint32_t outline_chain_end(const struct outline *o, uint32_t node)
{
	for (;;) {
		uint32_t child = o->child[node];

		if (!child || o->tree.nodes[node].self[0] || o->other[node][0] || o->sibling[child])
			return node;
		node = child;
	}
}

static size_t outline_line_bytes(const struct outline *o, const struct chain *chain)
{
	size_t bytes = LINE_BYTES + chain->depth;
	uint32_t at = chain->last;

	for (;; at = o->tree.nodes[at].parent) {
		bytes += o->tree.names[o->tree.nodes[at].name].len + JOIN.len;
		if (at == chain->first)
			break;
	}
	return bytes < LINE_BYTES + chain->depth + REPLY_TEXT_BYTES_MAX ?
		bytes :
		LINE_BYTES + chain->depth + REPLY_TEXT_BYTES_MAX;
}

static int outline_cmp_total(const void *pa, const void *pb, void *ctx)
{
	const struct outline *o = ctx;
	const struct chain *a = pa, *b = pb;
	int64_t x = o->tree.nodes[a->first].total[0], y = o->tree.nodes[b->first].total[0];

	return x != y ? (x < y) - (x > y) : (a->first > b->first) - (a->first < b->first);
}

/* Adds the chains below a node; parent: UINT32_MAX of the root's. */
static enum err_code outline_add_below(
	struct outline *o, uint32_t node, uint32_t parent, uint32_t depth, struct err *err)
{
	for (uint32_t i = o->child[node]; i; i = o->sibling[i]) {
		if (!arena_array_room(o->tree.arena, &o->v, o->n, 1, &o->cap))
			return arena_fail(o->tree.arena, "tree", err);
		o->v[o->n++] = (struct chain){
			.first = i, .last = outline_chain_end(o, i), .parent = parent, .depth = depth
		};
	}
	return ERR_OK;
}

static void outline_hide(struct outline *o, const struct chain *chain)
{
	if (chain->parent == UINT32_MAX)
		return;
	o->v[chain->parent].hidden_n++;
	o->v[chain->parent].hidden += o->tree.nodes[chain->first].total[0];
}

/* Chooses lines level by level. The line of a caller tells how much of its calls is left out. */
static enum err_code outline_choose(
	struct outline *o, uint32_t top, size_t room, size_t *all_n, struct err *err)
{
	size_t level = 0, end;
	bool full = false;
	enum err_code rc = outline_add_below(o, top, UINT32_MAX, 0, err);

	while (!rc && level < o->n) {
		end = o->n;
		qsort_r(&o->v[level], end - level, sizeof(*o->v), outline_cmp_total, o);
		for (size_t i = level; i < end; i++) {
			size_t bytes = outline_line_bytes(o, &o->v[i]);

			full |= bytes > room;
			if (full || tool_percent(o->tree.nodes[o->v[i].first].total[0], o->total) < SHARE_MIN) {
				outline_hide(o, &o->v[i]);
				continue;
			}
			room -= bytes;
			o->v[i].chosen = true;
		}
		for (size_t i = level; i < end && !rc; i++)
			if (o->v[i].chosen)
				rc = outline_add_below(o, o->v[i].last, (uint32_t)i, o->v[i].depth + 1, err);
		level = end;
	}
	*all_n = o->n;
	return rc;
}

static void outline_print_names(const struct outline *o, const struct chain *chain, struct buf *b)
{
	uint32_t at = chain->first;

	for (;;) {
		buf_add_str(b, o->tree.names[o->tree.nodes[at].name]);
		if (at == chain->last)
			break;
		buf_add_str(b, JOIN);
		at = o->child[at];
	}
}

static void outline_tell_line(struct outline *o, struct reply_table *t, const struct chain *chain)
{
	struct reply *r = &o->c->reply;
	const struct tree_node *first = &o->tree.nodes[chain->first];
	int64_t other = chain->hidden + o->other[chain->last][0];
	struct buf b = { 0 };

	reply_cell_whole(r, t, chain->depth);
	reply_cell_amount(r, t, first->total[0], o->unit);
	reply_cell_percent(r, t, tool_percent(first->total[0], o->total));
	reply_cell_amount(r, t, o->tree.nodes[chain->last].self[0], o->unit);
	outline_print_names(o, chain, &b);
	reply_cell_indented(r, t, buf_str(&b), chain->depth);
	buf_clear(&b);
	if (other)
		buf_printf(&b, "+%.1f%% in calls left out", tool_percent(other, o->total));
	reply_cell_text(r, t, buf_str(&b));
	r->failed |= buf_failed(&b);
	buf_release(&b);
}

/* An outline: each chosen chain, then those below it. Chains of a level follow each other. */
static void outline_tell_below(struct outline *o, struct reply_table *t, uint32_t parent)
{
	for (size_t i = 0; i < o->n; i++) {
		if (!o->v[i].chosen || o->v[i].parent != parent)
			continue;
		outline_tell_line(o, t, &o->v[i]);
		outline_tell_below(o, t, (uint32_t)i);
	}
}

/* The path to the chain that leaves most out, where there is one. */
static void outline_next(
	struct outline *o, const struct tool_profiles *of, const struct tool_window *window)
{
	const struct chain *best = NULL;
	uint32_t *up = arena_array(o->tree.arena, uint32_t, o->tree.n), n = 0;
	struct buf text;
	struct json j;

	for (size_t i = 0; i < o->n; i++)
		if (o->v[i].chosen && o->v[i].hidden && (!best || o->v[i].hidden > best->hidden))
			best = &o->v[i];
	if (!best || !up)
		return;
	for (uint32_t at = best->last; at; at = o->tree.nodes[at].parent)
		up[n++] = at;
	reply_next_begin(&j, &text);
	tool_next_same(o->c, &j, of, window);
	json_key(&j, "path");
	json_array(&j);
	while (n)
		json_str(&j, o->tree.names[o->tree.nodes[up[--n]].name]);
	json_array_end(&j);
	if (text.len <= REPLY_BYTES_MIN)
		reply_next(&o->c->reply, "tree", &j, "what is left out below it");
	else
		buf_release(&text);
}

static enum err_code outline_run(struct outline *o, const struct profile_value *p,
	const struct str *path, size_t path_n, struct err *err)
{
	static const char *const columns[] = { ".depth", "total", "total%", "self", "calls",
		"left_out" };
	const struct tree_part part = { .path = path, .n = path_n };
	size_t max = tool_whole(o->c, "max_bytes", REPLY_BYTES_DEFAULT, REPLY_BYTES_MAX), all_n = 0;
	struct reply_table *t;
	uint32_t top = 0;
	enum err_code rc;

	if ((rc = frame_tree_heaviest(&o->tree, p, &part, NODES_MAX, &o->other, err)) ||
		(rc = outline_link(o, err)))
		return rc;
	for (size_t i = 0; i < path_n; i++)
		top = o->child[top];
	if (path_n && !o->tree.nodes[top].total[0])
		return err_set(err, ERR_NOT_FOUND, "no stack begins with this path");
	if (path_n)
		reply_fact_amount(&o->c->reply, "below_path", o->tree.nodes[top].total[0], o->unit);
	if ((rc = outline_choose(
			 o, top, max > 2 * REST_BYTES ? max - REST_BYTES : max / 2, &all_n, err)))
		return rc;
	t = reply_table(&o->c->reply, "tree", "calls", columns, sizeof(columns) / sizeof(*columns));
	outline_tell_below(o, t, UINT32_MAX);
	if (t && all_n > t->all_n)
		t->all_n = all_n;
	return ERR_OK;
}

enum err_code tool_tree_run(struct tool_call *c, struct err *err)
{
	struct tool_window window = { c->now_ns - TOOL_WINDOW_NS, c->now_ns };
	struct outline o = { .c = c };
	const struct profile_value *p;
	struct tool_profiles of;
	struct query *q = NULL;
	bool begun = false;
	struct str *path;
	size_t path_n;
	enum err_code rc;

	if ((rc = tool_read_window(c, "window", "end", &window, err)) ||
		(rc = tool_read_profiles(c, "profiles", &of, err)) ||
		(rc = tool_strings(c, "path", &path, &path_n, err)) ||
		(rc = tool_ask_merged(c, &window, &of, &q, &p, NULL, err)))
		goto out;
	if (p->is_diff || !heaviest_can(p)) {
		rc = err_set(err, ERR_INVALID, "a tree has no costs below 0: compare shows differences");
		goto out;
	}
	if ((rc = frame_tree_init(&o.tree, query_arena(q), err)))
		goto out;
	begun = true;
	o.tree.canceled = query_stop_flag(q);
	o.total = p->total;
	o.unit = p->type.sample_unit;
	tool_tell_merged(c, &of, &window, p);
	if (!(rc = outline_run(&o, p, path, path_n, err)))
		outline_next(&o, &of, &window);
out:
	if (begun)
		frame_tree_release(&o.tree);
	query_close(q);
	return rc;
}
