/* A reply as text that keeps its bound, and the same as an object. */
#include <stdio.h>

#include "web/mcp/reply.h"

#define GAP 2u /* blanks between columns */
#define LEFT_OUT_BYTES_MAX 120u /* of the line below a table */
#define CUT "... cut: raise max_bytes\n"

static size_t reply_rows(const struct reply_table *t)
{
	return t->cells_n / t->columns_n;
}

static bool reply_is_hidden(const struct reply_table *t, size_t column)
{
	return t->columns[column][0] == '.';
}

/* Numbers are aligned; texts are behind them, as wide as they are. */
static size_t reply_width(const struct reply_table *t, size_t column, size_t rows)
{
	size_t width = strlen(t->columns[column]), len;

	for (size_t i = 0; i < rows; i++) {
		const struct reply_cell *c = &t->cells[i * t->columns_n + column];

		len = c->text.len;
		if (c->kind != REPLY_TEXT && len > width)
			width = len;
	}
	return width;
}

static bool reply_is_text(const struct reply_table *t, size_t column)
{
	return t->cells_n > column && t->cells[column].kind == REPLY_TEXT;
}

static size_t reply_text_width(const struct reply_cell *c)
{
	return c->indent + c->text.len;
}

/* The bytes of the table with its first rows, and of the line below it at most. */
static size_t reply_table_size(const struct reply_table *t, size_t rows)
{
	size_t size = LEFT_OUT_BYTES_MAX;

	for (size_t c = 0; c < t->columns_n; c++) {
		size_t width = reply_width(t, c, rows);

		if (reply_is_hidden(t, c))
			continue;
		size += strlen(t->columns[c]) > width ? strlen(t->columns[c]) : width;
		size += GAP + 1;
		for (size_t i = 0; i < rows; i++)
			size += GAP + 1 +
				(reply_is_text(t, c) ? reply_text_width(&t->cells[i * t->columns_n + c]) : width);
	}
	return size;
}

static size_t reply_rows_that_fit(const struct reply_table *t, size_t room)
{
	size_t low = 0, high = reply_rows(t);

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (reply_table_size(t, middle) <= room)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void reply_print_padded(struct buf *b, struct str text, size_t width)
{
	for (size_t n = text.len; n < width; n++)
		buf_add_char(b, ' ');
	buf_add_str(b, text);
}

/* row: SIZE_MAX is the head. */
static void reply_print_row(
	const struct reply_table *t, size_t row, const size_t *widths, struct buf *b)
{
	bool first = true;

	for (size_t c = 0; c < t->columns_n; c++) {
		struct str text = row == SIZE_MAX ? str_of(t->columns[c]) :
											t->cells[row * t->columns_n + c].text;

		if (reply_is_hidden(t, c))
			continue;
		if (!first)
			buf_add_cstr(b, "  ");
		reply_print_padded(b, text,
			!reply_is_text(t, c) ? widths[c] :
				row == SIZE_MAX  ? 0 :
								   reply_text_width(&t->cells[row * t->columns_n + c]));
		first = false;
	}
	while (b->len && b->ptr[b->len - 1] == ' ')
		b->len--;
	buf_add_char(b, '\n');
}

static void reply_print_left_out(const struct reply_table *t, struct buf *b)
{
	double shown = 0;

	if (t->shown >= t->all_n)
		return;
	buf_printf(b, "%zu of %zu %s", t->shown, t->all_n, t->rows_are);
	for (size_t i = 0; i < t->shown && i < t->shares_n; i++)
		shown += t->shares[i];
	if (t->share_of)
		buf_printf(b, "; the other %zu have %.2f%% of the %s", t->all_n - t->shown,
			t->shares_all > shown ? t->shares_all - shown : 0, t->share_of);
	buf_add_char(b, '\n');
}

static void reply_print_table(struct reply_table *t, size_t room, struct buf *b)
{
	size_t widths[REPLY_COLUMNS_MAX];

	t->shown = reply_rows_that_fit(t, room);
	for (size_t c = 0; c < t->columns_n; c++)
		widths[c] = reply_width(t, c, t->shown);
	buf_printf(b, "%s:\n", t->name);
	if (t->shown)
		reply_print_row(t, SIZE_MAX, widths, b);
	for (size_t i = 0; i < t->shown; i++)
		reply_print_row(t, i, widths, b);
	if (!t->all_n)
		buf_add_cstr(b, "none\n");
	reply_print_left_out(t, b);
}

static void reply_print_end(const struct reply *r, struct buf *b)
{
	for (size_t i = 0; i < r->notes_n; i++)
		buf_printf(b, "note: " STR_FMT "\n", STR_ARG(r->notes[i]));
	for (size_t i = 0; i < r->next_n; i++)
		buf_printf(b, "next: %s " STR_FMT " (%s)\n", r->next[i].tool, STR_ARG(r->next[i].arguments),
			r->next[i].why);
}

/* Cuts at the end of a line, so that with what says so it has at most max bytes. */
static void reply_cut(struct buf *b, size_t max)
{
	size_t n = max - (sizeof(CUT) - 1);

	if (b->len <= max)
		return;
	while (n && b->ptr[n - 1] != '\n')
		n--;
	b->len = n;
	buf_add_cstr(b, CUT);
}

/* Tables share what facts, notes and next calls leave; what one does not use is the next one's. */
static void reply_print(struct reply *r, size_t max_bytes, struct buf *b)
{
	struct buf end = { 0 };
	size_t room;

	reply_print_end(r, &end);
	for (size_t i = 0; i < r->facts_n; i++)
		buf_printf(b, "%s: " STR_FMT "\n", r->facts[i].name, STR_ARG(r->facts[i].cell.text));
	if (r->body.len) {
		buf_add_str(b, r->body);
		reply_cut(b, max_bytes > end.len + sizeof(CUT) ? max_bytes - end.len : sizeof(CUT));
	}
	for (size_t i = 0; i < r->tables_n; i++) {
		room = max_bytes > b->len + end.len ? max_bytes - b->len - end.len : 0;
		room /= r->tables_n - i;
		room -= room < strlen(r->tables[i]->name) + 2 ? room : strlen(r->tables[i]->name) + 2;
		reply_print_table(r->tables[i], room, b);
	}
	buf_add_str(b, buf_str(&end));
	if (buf_failed(&end))
		b->failed = true;
	buf_release(&end);
	reply_cut(b, max_bytes);
}

/* ---- structured content ---- */

static void reply_write_cell(struct json *j, const struct reply_cell *c)
{
	switch (c->kind) {
	case REPLY_TEXT:
		json_str(j, c->text);
		break;
	case REPLY_WHOLE:
		json_i64(j, c->whole);
		break;
	case REPLY_NUMBER:
		json_double(j, c->number);
		break;
	case REPLY_NONE:
		json_null(j);
		break;
	}
}

static void reply_write_table(struct json *j, const struct reply_table *t)
{
	json_key(j, t->name);
	json_object(j);
	json_key(j, "columns");
	json_array(j);
	for (size_t c = 0; c < t->columns_n; c++)
		json_cstr(j, t->columns[c] + reply_is_hidden(t, c));
	json_array_end(j);
	json_key(j, "rows");
	json_array(j);
	for (size_t i = 0; i < t->shown; i++) {
		json_array(j);
		for (size_t c = 0; c < t->columns_n; c++)
			reply_write_cell(j, &t->cells[i * t->columns_n + c]);
		json_array_end(j);
	}
	json_array_end(j);
	json_key(j, "left_out");
	json_u64(j, t->all_n - t->shown);
	json_object_end(j);
}

static void reply_write_object(struct json *j, const struct reply *r)
{
	json_object(j);
	for (size_t i = 0; i < r->facts_n; i++) {
		json_key(j, r->facts[i].name);
		reply_write_cell(j, &r->facts[i].cell);
	}
	if (r->body.len) {
		json_key(j, "text");
		json_str(j, r->body);
	}
	for (size_t i = 0; i < r->tables_n; i++)
		reply_write_table(j, r->tables[i]);
	json_key(j, "notes");
	json_array(j);
	for (size_t i = 0; i < r->notes_n; i++)
		json_str(j, r->notes[i]);
	json_array_end(j);
	json_key(j, "next");
	json_array(j);
	for (size_t i = 0; i < r->next_n; i++) {
		json_object(j);
		json_key(j, "tool");
		json_cstr(j, r->next[i].tool);
		json_key(j, "arguments");
		json_raw(j, r->next[i].arguments);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

enum err_code reply_write(
	struct reply *r, size_t max_bytes, struct buf *text, struct json *j, struct err *err)
{
	if (r->failed)
		return arena_fail(r->arena, "answer", err);
	reply_print(r, max_bytes, text);
	if (r->body.len > max_bytes)
		r->body.len = max_bytes;
	reply_write_object(j, r);
	return buf_failed(text) || buf_failed(j->out) ? err_nomem(err, "answer") : ERR_OK;
}
