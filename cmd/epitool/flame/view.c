#include "cmd/epitool/flame/view.h"

#include "base/quote.h"
#include "cmd/epitool/flame/color.h"
#include "proto/report/pprof_unit.h"

#define ESC "\033"
#define LINES 2u /* the title and the status */
#define HEIGHT_MIN 3u
#define COLOR_SELECTED 16u
#define COLOR_SELECTED_TEXT 231u
#define COLOR_MATCH 215u

static enum err_code flame_view_lay(struct flame_view *v, struct err *err)
{
	return flame_lay(&v->arena, v->tree, v->zoom, v->width, &v->cells, err);
}

enum err_code flame_view_open(const struct flame_tree *t, const char *title, uint32_t width,
	uint32_t height, struct flame_view *out, struct err *err)
{
	*out = (struct flame_view){ .tree = t, .title = title };
	arena_init(&out->arena, 0);
	return flame_view_resize(out, width, height, err);
}

void flame_view_close(struct flame_view *v)
{
	arena_release(&v->arena);
}

static uint32_t flame_view_rows_shown(const struct flame_view *v)
{
	return v->height - LINES;
}

/* ---- where one is ---- */

static const struct flame_cell *flame_view_cell_of(const struct flame_view *v, uint32_t node)
{
	for (size_t i = 0; i < v->cells.n; i++)
		if (v->cells.v[i].node == node)
			return &v->cells.v[i];
	return NULL;
}

/* Selects a node that has a cell: this one, or the nearest above it. */
static void flame_view_select_node(struct flame_view *v, uint32_t node)
{
	const struct flame_cell *c;

	while (!(c = flame_view_cell_of(v, node)))
		node = v->tree->nodes[node].parent; /* the root always has one */
	v->selected = node;
	if (c->row < v->top)
		v->top = c->row;
	if (c->row >= v->top + flame_view_rows_shown(v))
		v->top = c->row - flame_view_rows_shown(v) + 1;
}

enum err_code flame_view_resize(
	struct flame_view *v, uint32_t width, uint32_t height, struct err *err)
{
	enum err_code rc;

	v->width = width ? width : 1;
	v->height = height < HEIGHT_MIN ? HEIGHT_MIN : height;
	if ((rc = flame_view_lay(v, err)))
		return rc;
	flame_view_select_node(v, v->selected);
	return ERR_OK;
}

static void flame_view_move_sideways(struct flame_view *v, int by)
{
	const struct flame_cell *c = flame_view_cell_of(v, v->selected), *to = c + by;

	if (to >= v->cells.v && to < v->cells.v + v->cells.n && to->row == c->row)
		flame_view_select_node(v, to->node);
}

/* The first child that has a cell, which is the widest. */
static void flame_view_move_down(struct flame_view *v)
{
	for (const struct flame_cell *c = flame_view_cell_of(v, v->selected);
		 c < v->cells.v + v->cells.n; c++)
		if (v->tree->nodes[c->node].parent == v->selected) {
			flame_view_select_node(v, c->node);
			return;
		}
}

static enum err_code flame_view_zoom_to(
	struct flame_view *v, uint32_t node, uint32_t selected, struct err *err)
{
	enum err_code rc;

	v->zoom = node;
	if ((rc = flame_view_lay(v, err)))
		return rc;
	flame_view_select_node(v, selected);
	return ERR_OK;
}

/* ---- search ---- */

static bool flame_view_matches(const struct flame_view *v, uint32_t node)
{
	struct str name = flame_name(v->tree, node), what = { v->search, v->search_n };

	for (size_t i = 0; what.len && node != FLAME_ROOT && i + what.len <= name.len; i++)
		if (str_has_prefix_nocase((struct str){ name.ptr + i, name.len - i }, what))
			return true;
	return false;
}

/* Each stack counts once, at its outermost match. */
static void flame_view_find(struct flame_view *v)
{
	uint32_t at = FLAME_ROOT;

	v->found = 0;
	while (v->search_n && at != FLAME_NONE) {
		bool match = flame_view_matches(v, at);
		uint32_t down = match ? FLAME_NONE : v->tree->nodes[at].first;

		v->found += match ? v->tree->nodes[at].total : 0;
		if (down != FLAME_NONE) {
			at = down;
			continue;
		}
		while (at != FLAME_ROOT && v->tree->nodes[at].next == FLAME_NONE)
			at = v->tree->nodes[at].parent;
		at = at == FLAME_ROOT ? FLAME_NONE : v->tree->nodes[at].next;
	}
}

/* The next cell with a match, from the selected one on, and from the root on again. */
static void flame_view_next_match(struct flame_view *v)
{
	size_t from = (size_t)(flame_view_cell_of(v, v->selected) - v->cells.v);

	for (size_t i = 1; i <= v->cells.n; i++) {
		uint32_t node = v->cells.v[(from + i) % v->cells.n].node;

		if (flame_view_matches(v, node)) {
			flame_view_select_node(v, node);
			return;
		}
	}
}

static void flame_view_type_key(struct flame_view *v, int key)
{
	if (key == KEY_ENTER) {
		v->typing = false;
		flame_view_next_match(v);
	} else if (key == KEY_BACK) {
		v->typing = false;
		v->search_n = 0;
	} else if (key == KEY_ERASE && v->search_n) {
		do
			v->search_n--;
		while (v->search_n && ((unsigned char)v->search[v->search_n] & 0xc0) == 0x80);
	} else if (key >= ' ' && key < 256 && key != 127 && v->search_n < FLAME_SEARCH_MAX) {
		v->search[v->search_n++] = (char)key;
	}
	flame_view_find(v);
}

/* ---- keys ---- */

/* Out of a search first, then out of the zoom. */
static enum err_code flame_view_go_back(struct flame_view *v, struct err *err)
{
	if (v->search_n) {
		v->search_n = 0;
		return ERR_OK;
	}
	if (v->zoom == FLAME_ROOT)
		return ERR_OK;
	return flame_view_zoom_to(v, v->tree->nodes[v->zoom].parent, v->zoom, err);
}

enum err_code flame_view_key(struct flame_view *v, int key, struct err *err)
{
	if (v->typing) {
		flame_view_type_key(v, key);
		return ERR_OK;
	}
	switch (key) {
	case KEY_LEFT:
	case 'h':
		flame_view_move_sideways(v, -1);
		break;
	case KEY_RIGHT:
	case 'l':
		flame_view_move_sideways(v, 1);
		break;
	case KEY_UP:
	case 'k':
		if (v->selected != FLAME_ROOT)
			flame_view_select_node(v, v->tree->nodes[v->selected].parent);
		break;
	case KEY_DOWN:
	case 'j':
		flame_view_move_down(v);
		break;
	case KEY_ENTER:
		return flame_view_zoom_to(v, v->selected, v->selected, err);
	case KEY_BACK:
	case KEY_ERASE:
		return flame_view_go_back(v, err);
	case KEY_HOME:
		return flame_view_zoom_to(v, FLAME_ROOT, v->selected, err);
	case '/':
		v->typing = true;
		v->search_n = 0;
		break;
	case 'n':
		flame_view_next_match(v);
		break;
	case 'q':
		v->over = true;
		break;
	}
	return ERR_OK;
}

int flame_key_read(struct str bytes, bool complete, size_t *used)
{
	static const struct {
		const char *bytes;
		int key;
	} known[] = { { ESC "[A", KEY_UP }, { ESC "OA", KEY_UP }, { ESC "[B", KEY_DOWN },
		{ ESC "OB", KEY_DOWN }, { ESC "[C", KEY_RIGHT }, { ESC "OC", KEY_RIGHT },
		{ ESC "[D", KEY_LEFT }, { ESC "OD", KEY_LEFT }, { ESC "[H", KEY_HOME },
		{ ESC "OH", KEY_HOME }, { ESC "[1~", KEY_HOME }, { "\r", KEY_ENTER }, { "\n", KEY_ENTER },
		{ "\177", KEY_ERASE }, { "\b", KEY_ERASE } };
	size_t n = 0;

	*used = 0;
	if (!bytes.len)
		return KEY_NONE;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_has_prefix(bytes, str_of(known[i].bytes))) {
			*used = strlen(known[i].bytes);
			return known[i].key;
		}
	*used = 1;
	if (bytes.ptr[0] != ESC[0])
		return (unsigned char)bytes.ptr[0];
	if (bytes.len == 1 || (bytes.ptr[1] != '[' && bytes.ptr[1] != 'O')) {
		*used = bytes.len > 1 || complete;
		return *used ? KEY_BACK : KEY_NONE;
	}
	/* Another sequence: parameters, then one byte that ends it. */
	for (n = 2; n < bytes.len && (unsigned char)bytes.ptr[n] < '@';)
		n++;
	*used = n < bytes.len ? n + 1 : complete ? n : 0;
	return KEY_NONE;
}

/* ---- drawing ---- */

static void flame_view_add_share(const struct flame_view *v, int64_t cost, struct buf *out)
{
	pprof_unit_print(out, cost, v->tree->unit, STR("auto"));
	buf_printf(out, " (%.2f%%)", (double)cost / (double)v->tree->nodes[FLAME_ROOT].total * 100);
}

/* A line as wide as the screen. */
static void flame_view_draw_line(
	const struct flame_view *v, const struct buf *text, struct buf *out)
{
	buf_add_cstr(out, ESC "[0m");
	flame_text(out, buf_str(text), v->width);
}

static void flame_view_draw_title(const struct flame_view *v, struct buf *out)
{
	struct buf text = { 0 };

	buf_add_str(&text, v->tree->type);
	buf_add_cstr(&text, "  ");
	pprof_unit_print(&text, v->tree->nodes[FLAME_ROOT].total, v->tree->unit, STR("auto"));
	buf_printf(&text, "  %s", v->title);
	flame_view_draw_line(v, &text, out);
	buf_release(&text);
}

static void flame_view_draw_status(const struct flame_view *v, struct buf *out)
{
	const struct flame_node *n = &v->tree->nodes[v->selected];
	struct buf text = { 0 };

	if (v->typing) {
		buf_printf(&text, "/%.*s_", (int)v->search_n, v->search);
	} else {
		flame_view_add_share(v, n->total, &text);
		buf_add_cstr(&text, ", itself ");
		flame_view_add_share(v, n->self, &text);
		buf_add_cstr(&text, "  ");
		buf_add_str(&text, flame_name(v->tree, v->selected));
	}
	if (v->search_n) {
		buf_add_cstr(&text, "  found ");
		flame_view_add_share(v, v->found, &text);
	}
	if (!v->typing)
		buf_add_cstr(&text, "   Enter zooms, Backspace out, / searches, n next, q quits");
	flame_view_draw_line(v, &text, out);
	buf_release(&text);
}

static void flame_view_draw_cell(
	const struct flame_view *v, const struct flame_cell *c, struct buf *out)
{
	unsigned back = c->node == FLAME_ROOT ? COLOR_ROOT : color_of(flame_name(v->tree, c->node));
	unsigned text = COLOR_TEXT;

	if (v->search_n)
		back = flame_view_matches(v, c->node) ? COLOR_MATCH : COLOR_DIM;
	if (c->node == v->selected) {
		back = COLOR_SELECTED;
		text = COLOR_SELECTED_TEXT;
	}
	buf_printf(out, ESC "[48;5;%um" ESC "[38;5;%um", back, text);
	/* A cell of one character has no room for its edge. */
	if (c->width > 1) {
		flame_text(out, flame_name(v->tree, c->node), c->width - 1);
		buf_add_cstr(out, ESC "[0m ");
	} else {
		buf_add_cstr(out, " " ESC "[0m");
	}
}

/* Rows from..end. placed: each at its place of the screen, below the title; else line after line.
 */
static void flame_view_draw_rows(
	const struct flame_view *v, uint32_t from, uint32_t end, bool placed, struct buf *out)
{
	uint32_t row = UINT32_MAX, x = 0;

	for (size_t i = 0; i < v->cells.n; i++) {
		const struct flame_cell *c = &v->cells.v[i];

		if (c->row < from || c->row >= end)
			continue;
		if (c->row != row) {
			row = c->row;
			x = 0;
			if (placed)
				buf_printf(out, ESC "[%u;1H", row - from + LINES);
			else if (row > from)
				buf_add_char(out, '\n');
		}
		buf_printf(out, "%*s", (int)(c->x - x), "");
		flame_view_draw_cell(v, c, out);
		x = c->x + c->width;
	}
}

void flame_view_draw(const struct flame_view *v, struct buf *out)
{
	buf_add_cstr(out, ESC "[0m" ESC "[2J" ESC "[H");
	flame_view_draw_title(v, out);
	flame_view_draw_rows(v, v->top, v->top + flame_view_rows_shown(v), true, out);
	buf_printf(out, ESC "[%u;1H", v->height);
	flame_view_draw_status(v, out);
}

void flame_view_print(const struct flame_view *v, struct buf *out)
{
	struct flame_view still = *v;

	still.selected = FLAME_NONE;
	flame_view_draw_rows(&still, 0, UINT32_MAX, false, out);
	buf_add_char(out, '\n');
}
