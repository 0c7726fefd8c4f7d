/*
 * Layout of a flame graph on a grid of characters: the tree of a profile, and the cells of a part
 * of it. The root is at the top; a cell is as wide as its share of what is zoomed to, and its
 * children lie below it, the most expensive first. What is narrower than a character has no cell.
 *
 * Units:     costs in the unit of the profile; x and widths in characters.
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena; ERR_INVALID: nothing has a cost above 0.
 * Ownership: all lives in the arena given; names point into the profile. flame_tree_release ends
 *            the rest.
 * Threads:   a tree is immutable once made.
 */
#ifndef CMD_EPITOOL_FLAME_LAYOUT_H
#define CMD_EPITOOL_FLAME_LAYOUT_H

#include "cmd/epitool/compare/costs.h"

#define FLAME_ROOT 0u
#define FLAME_NONE UINT32_MAX

struct flame_node {
	uint32_t row; /* of the names; FLAME_NONE: the root */
	uint32_t parent, first, next; /* first child, next sibling; FLAME_NONE: none */
	int64_t total, self;
};

struct flame_tree {
	struct costs names;
	struct flame_node *nodes; /* parents come before their children */
	uint32_t n, cap;
	struct map map; /* of parent and name */
	struct str type, unit;
};

MUST_CHECK enum err_code flame_tree_make(
	struct arena *a, const struct pprof *p, uint32_t type, struct flame_tree *out, struct err *err);
void flame_tree_release(struct flame_tree *t);
struct str flame_name(const struct flame_tree *t, uint32_t node); /* "total" of the root */

struct flame_cell {
	uint32_t node;
	uint32_t row, x, width; /* row 0: the root */
	int64_t left; /* cost on the left of it */
};
struct flame_cells {
	struct flame_cell *v; /* row after row, from left to right */
	size_t n, cap;
	uint32_t rows;
};

/* `zoom` and those above it are as wide as all. `out` is used again, in the same arena. */
MUST_CHECK enum err_code flame_lay(struct arena *a, const struct flame_tree *t, uint32_t zoom,
	uint32_t width, struct flame_cells *out, struct err *err);

/*
 * The name of a cell in exactly `width` characters: whole, without its package's directory, or cut;
 * nothing but blanks where not even three characters fit. Characters that do not print are escaped.
 */
void flame_text(struct buf *out, struct str name, uint32_t width);

/* Rows of cells as lines: "|main.main      |runtime.mcall". */
void flame_print_plain(
	const struct flame_tree *t, const struct flame_cells *cells, uint32_t width, struct buf *out);

#endif
