/*
 * A flame graph as one looks at it: what is zoomed to, selected and searched for. Keys change it,
 * and it draws itself into a buffer; the terminal is screen.h's.
 *
 * Errors:    those of layout.h; out of memory while drawing shows in the buffer.
 * Ownership: the tree is the caller's; cells live in the view's arena, until flame_view_close.
 * Threads:   one.
 */
#ifndef CMD_EPITOOL_FLAME_VIEW_H
#define CMD_EPITOOL_FLAME_VIEW_H

#include "cmd/epitool/flame/layout.h"

#define FLAME_SEARCH_MAX 128u

enum flame_key {
	KEY_NONE = 0, /* 1..255: a byte as it was typed */
	KEY_UP = 256,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_ENTER,
	KEY_BACK, /* Backspace, or Escape alone */
	KEY_ERASE, /* Backspace while typing; else KEY_BACK */
	KEY_HOME,
};

struct flame_view {
	const struct flame_tree *tree;
	const char *title; /* what was asked */
	uint32_t width, height;
	uint32_t zoom, selected; /* nodes; the selected one has a cell */
	uint32_t top; /* the first row that is shown */
	char search[FLAME_SEARCH_MAX]; /* "": none */
	size_t search_n;
	bool typing, over; /* over: q was typed */
	int64_t found; /* cost of all stacks with a match */
	struct arena arena;
	struct flame_cells cells;
};

MUST_CHECK enum err_code flame_view_open(const struct flame_tree *t, const char *title,
	uint32_t width, uint32_t height, struct flame_view *out, struct err *err);
void flame_view_close(struct flame_view *v);
MUST_CHECK enum err_code flame_view_resize(
	struct flame_view *v, uint32_t width, uint32_t height, struct err *err);
MUST_CHECK enum err_code flame_view_key(struct flame_view *v, int key, struct err *err);
/* The whole screen: a title, the rows, and a line about the selected function. */
void flame_view_draw(const struct flame_view *v, struct buf *out);
/* All rows in colours, for a terminal that is not taken over. */
void flame_view_print(const struct flame_view *v, struct buf *out);

/*
 * The first key of what came from a terminal; *used: its bytes. KEY_NONE with *used 0: more bytes
 * must come first; `complete`: none will, so that Escape is a key.
 */
int flame_key_read(struct str bytes, bool complete, size_t *used);

#endif
