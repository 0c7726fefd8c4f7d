/*
 * Pyroscope's binary forms. Both are nodes in the order in which a walk meets them, parents before
 * children:
 *
 *	varint name_bytes, name, varint value, varint children
 *
 * In a tree a node is a frame; the first one is the root, which has no name and no value of its
 * own. In a trie a node is a piece of text: the pieces from the root on are a stack, "main;run",
 * and pieces begin and end anywhere.
 *
 * Nodes that are not yet complete are kept in a stack of their own, so nesting costs no recursion.
 * For each of them the trie keeps the call of its complete frames, and where in the text the one
 * begins that is not complete; so a piece is looked at once.
 */
#include <inttypes.h>

#include "base/array.h"
#include "proto/folded/calls.h"

struct folded_node {
	struct str name;
	uint64_t value, children;
};

/* A node whose children are being read. */
struct open_node {
	uint64_t left; /* children to come */
	uint32_t call; /* of all complete frames */
	size_t frame, end; /* in the text: the incomplete frame */
};

struct nodes_walk {
	struct calls *c;
	struct cursor in;
	struct buf text; /* of the pieces from the root on */
	struct open_node *open;
	uint32_t open_n, open_cap;
	uint64_t nodes_n;
};

static enum err_code nodes_walk_read_node(struct nodes_walk *w, struct folded_node *n)
{
	struct calls *c = w->c;

	if (w->nodes_n++ >= c->limits->elements_max)
		return err_set(
			c->err, ERR_LIMIT, "more than %" PRIu32 " nodes, the limit", c->limits->elements_max);
	n->name = cursor_lenstr(&w->in);
	n->value = cursor_varint(&w->in);
	n->children = cursor_varint(&w->in);
	if (w->in.bad)
		return err_set(c->err, ERR_INVALID, "node %" PRIu64 " is cut off", w->nodes_n);
	if (n->value > INT64_MAX)
		return err_set(
			c->err, ERR_INVALID, "the value of node %" PRIu64 " has more than 63 bits", w->nodes_n);
	/* A node has three bytes at least. */
	if (n->children > cursor_left(&w->in) / 3)
		return err_set(c->err, ERR_INVALID,
			"node %" PRIu64 " has %" PRIu64 " children, but %zu bytes follow", w->nodes_n,
			n->children, cursor_left(&w->in));
	return ERR_OK;
}

/* Opens a node if it has children; closes those that have no more. */
static enum err_code nodes_walk_descend(struct nodes_walk *w, struct open_node node)
{
	if (node.left) {
		if (!arena_array_room(w->c->a, &w->open, w->open_n, 1, &w->open_cap))
			return arena_fail(w->c->a, "profile", w->c->err);
		w->open[w->open_n++] = node;
		return ERR_OK;
	}
	while (w->open_n && !--w->open[w->open_n - 1].left)
		w->open_n--;
	return ERR_OK;
}

static enum err_code nodes_walk_add(struct nodes_walk *w, uint32_t call, uint64_t value)
{
	struct calls *c = w->c;

	if (!value)
		return ERR_OK;
	if (c->values_n++ >= c->limits->samples_max)
		return err_set(
			c->err, ERR_LIMIT, "more than %" PRIu32 " values, the limit", c->limits->samples_max);
	return calls_add(c, call, (int64_t)value, c->meaning->scale);
}

static enum err_code nodes_walk_tree_node(struct nodes_walk *w)
{
	struct calls *c = w->c;
	struct open_node below = { 0 };
	struct folded_node n;
	uint32_t frame;
	enum err_code rc;

	if ((rc = nodes_walk_read_node(w, &n)))
		return rc;
	if (!w->open_n && (n.name.len || n.value))
		return err_set(c->err, ERR_INVALID, "the root has a name or a value");
	below.left = n.children;
	below.call = w->open_n ? w->open[w->open_n - 1].call : CALLS_ROOT;
	if (n.name.len &&
		((rc = calls_frame(c, n.name, &frame)) ||
			(rc = calls_child(c, below.call, frame, &below.call))))
		return rc;
	if ((rc = nodes_walk_add(w, below.call, n.value)))
		return rc;
	return nodes_walk_descend(w, below);
}

/* The call of the text's incomplete frame below the complete ones. */
static enum err_code nodes_walk_end_frame(
	struct nodes_walk *w, const struct open_node *n, size_t end, uint32_t *call)
{
	uint32_t frame;
	enum err_code rc;

	*call = n->call;
	if (end == n->frame)
		return ERR_OK;
	if ((rc = calls_frame(w->c, (struct str){ w->text.ptr + n->frame, end - n->frame }, &frame)))
		return rc;
	return calls_child(w->c, n->call, frame, call);
}

/* Adds a piece to the text; each ';' in it ends a frame. */
static enum err_code nodes_walk_add_piece(
	struct nodes_walk *w, struct str piece, struct open_node *n)
{
	size_t at = n->end;
	enum err_code rc;

	w->text.len = n->end;
	buf_add_str(&w->text, piece);
	if (buf_failed(&w->text))
		return err_nomem(w->c->err, "profile");
	n->end = w->text.len;
	for (const char *end; at < n->end && (end = memchr(w->text.ptr + at, ';', n->end - at));) {
		at = (size_t)(end - w->text.ptr);
		if ((rc = nodes_walk_end_frame(w, n, at, &n->call)))
			return rc;
		n->frame = ++at;
	}
	return ERR_OK;
}

static enum err_code nodes_walk_trie_node(struct nodes_walk *w)
{
	struct open_node below = { .call = CALLS_ROOT };
	struct folded_node n;
	uint32_t call;
	enum err_code rc;

	if ((rc = nodes_walk_read_node(w, &n)))
		return rc;
	if (w->open_n)
		below = w->open[w->open_n - 1];
	below.left = n.children;
	if ((rc = nodes_walk_add_piece(w, n.name, &below)))
		return rc;
	if (n.value &&
		((rc = nodes_walk_end_frame(w, &below, below.end, &call)) ||
			(rc = nodes_walk_add(w, call, n.value))))
		return rc;
	return nodes_walk_descend(w, below);
}

static enum err_code nodes_walk(
	struct calls *c, struct str raw, enum err_code (*read)(struct nodes_walk *w))
{
	struct nodes_walk w = { .c = c, .in = cursor_of(raw) };
	enum err_code rc;

	do
		rc = read(&w);
	while (!rc && w.open_n);
	if (!rc && cursor_left(&w.in))
		rc = err_set(c->err, ERR_INVALID, "%zu bytes after the last node", cursor_left(&w.in));
	buf_release(&w.text);
	return rc;
}

enum err_code folded_tree(struct calls *c, struct str raw)
{
	return nodes_walk(c, raw, nodes_walk_tree_node);
}

enum err_code folded_trie(struct calls *c, struct str raw)
{
	/* A sender that saw nothing may send nothing. */
	return raw.len ? nodes_walk(c, raw, nodes_walk_trie_node) : ERR_OK;
}
