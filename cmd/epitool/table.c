#include "cmd/epitool/table.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/integer.h"
#include "base/quote.h"
#include "proto/report/pprof_unit.h"

#define GAP 2u
#define NARROW 12u /* a column is not cut below this */

void text_table_init(struct text_table *t, struct arena *a)
{
	*t = (struct text_table){ .arena = a };
}

/* A copy that prints; ptr NULL: out of memory. */
static struct str text_table_copy_of(struct text_table *t, struct str s)
{
	struct str shown = str_printable(t->arena, s);

	shown = shown.ptr == s.ptr && s.len ? str_dup(t->arena, s) : shown;
	t->failed = t->failed || !shown.ptr;
	return shown;
}

void table_column(struct text_table *t, const char *title, bool right)
{
	if (t->columns_n == TABLE_COLUMNS_MAX)
		return;
	t->columns[t->columns_n].title = text_table_copy_of(t, str_of(title));
	t->columns[t->columns_n++].right = right;
}

void table_cell(struct text_table *t, struct str s)
{
	struct str copy = text_table_copy_of(t, s);

	if (!arena_array_room(t->arena, &t->cells, t->cells_n, 1, &t->cells_cap))
		t->failed = true;
	if (!t->failed)
		t->cells[t->cells_n++] = copy;
}

static bool tool_table_is_inside(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t tool_table_characters(struct str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += !tool_table_is_inside(s.ptr[i]);
	return n;
}

/* The last n characters. */
static struct str tool_table_tail(struct str s, size_t n)
{
	size_t at = s.len;

	while (at > 0 && n > 0)
		n -= !tool_table_is_inside(s.ptr[--at]);
	return (struct str){ s.ptr + at, s.len - at };
}

static void tool_table_spaces(struct buf *out, size_t n)
{
	buf_printf(out, "%*s", (int)n, "");
}

/* Takes from the widest column that may be cut until all fit. */
static void text_table_fit(const struct text_table *t, size_t *widths, size_t width)
{
	size_t all = 0, widest;

	for (size_t c = 0; c < t->columns_n; c++)
		all += widths[c] + (c ? GAP : 0);
	while (all > width) {
		widest = t->columns_n;
		for (size_t c = 0; c < t->columns_n; c++)
			if (!t->columns[c].right && widths[c] > NARROW &&
				(widest == t->columns_n || widths[c] > widths[widest]))
				widest = c;
		if (widest == t->columns_n)
			return;
		widths[widest]--;
		all--;
	}
}

static void text_table_print_row(
	const struct text_table *t, const struct str *cells, const size_t *widths, struct buf *out)
{
	for (size_t c = 0; c < t->columns_n; c++) {
		struct str s = cells ? cells[c] : t->columns[c].title;
		size_t n = tool_table_characters(s), gap = c ? GAP : 0;

		if (n > widths[c]) {
			s = tool_table_tail(s, widths[c] - 1);
			n = widths[c];
			tool_table_spaces(out, gap);
			buf_add_cstr(out, "\xe2\x80\xa6"); /* an ellipsis */
			gap = 0;
		}
		tool_table_spaces(out, gap + (t->columns[c].right ? widths[c] - n : 0));
		buf_add_str(out, s);
		if (!t->columns[c].right && c + 1 < t->columns_n)
			tool_table_spaces(out, widths[c] - n);
	}
	while (out->len && out->ptr[out->len - 1] == ' ')
		out->len--;
	buf_add_char(out, '\n');
}

void table_print(const struct text_table *t, size_t width, struct buf *out)
{
	size_t widths[TABLE_COLUMNS_MAX], n;

	assert(t->columns_n > 0 || !t->cells_n);
	if (t->failed) {
		out->failed = true;
		return;
	}
	for (size_t c = 0; c < t->columns_n; c++)
		widths[c] = tool_table_characters(t->columns[c].title);
	for (size_t i = 0; i < t->cells_n; i++) {
		n = tool_table_characters(t->cells[i]);
		if (n > widths[i % t->columns_n])
			widths[i % t->columns_n] = n;
	}
	if (width)
		text_table_fit(t, widths, width);
	text_table_print_row(t, NULL, widths, out);
	for (size_t i = 0; i + t->columns_n <= t->cells_n; i += t->columns_n)
		text_table_print_row(t, t->cells + i, widths, out);
}

size_t terminal_width(void)
{
	struct winsize w;

	return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) ? w.ws_col : 0;
}

/* ---- numbers ---- */

static bool tool_table_is_scaled(struct str unit)
{
	struct str shown;

	pprof_unit_scale(1, unit, STR("minimum"), &shown);
	return shown.len > 0;
}

static void tool_table_plain(struct buf *out, double value)
{
	if (value == trunc(value) && fabs(value) < 1e15)
		buf_printf(out, "%.0f", value == 0 ? 0.0 : value);
	else
		buf_printf(out, "%.6g", value);
}

void number_print(struct buf *out, double value, struct str unit)
{
	if (isnan(value)) {
		buf_add_cstr(out, "NaN");
	} else if (isinf(value)) {
		buf_add_cstr(out, value > 0 ? "+Inf" : "-Inf");
	} else if (str_is(unit, "ratio")) {
		buf_printf(out, "%.2f%%", value * 100);
	} else if (tool_table_is_scaled(unit) && fabs(value) < 9e18 &&
		(value == 0 || fabs(value) >= 1)) {
		pprof_unit_print(out, (int64_t)llround(value), unit, STR("auto"));
	} else {
		tool_table_plain(out, value);
		if (unit.len && !str_is(unit, "count"))
			buf_printf(out, " " STR_FMT, STR_ARG(unit));
	}
}

struct str number_unit(int64_t smallest, int64_t total, struct str unit)
{
	struct str small, large, middle;
	uint64_t min = integer_magnitude64(smallest), all = integer_magnitude64(total);

	if (!tool_table_is_scaled(unit) || min == 0 || min > INT64_MAX || all > INT64_MAX)
		return unit;
	pprof_unit_scale((int64_t)min, unit, STR("minimum"), &small);
	pprof_unit_scale((int64_t)all, unit, STR("minimum"), &large);
	if (!str_eq(small, large) && min < all / 100) {
		pprof_unit_scale((int64_t)(100 * min), unit, STR("minimum"), &middle);
		return middle;
	}
	return small;
}
