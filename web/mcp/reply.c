/* What a reply is made of; reply_write.c writes it. */
#include "web/mcp/reply.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/array.h"
#include "base/quote.h"
#include "proto/report/pprof_unit.h"

#define NOTES_MAX 8u
#define NOTE_BYTES_MAX 300u
#define NUMBER_BYTES_MAX 64u

/* A copy that prints, cut to max bytes and what says so. */
static struct str reply_copy(struct reply *r, struct str text, size_t max)
{
	struct buf b = { 0 };
	struct str out;
	size_t cut = text.len;

	if (cut > max) {
		/* Not within a character. */
		for (cut = max; cut && ((unsigned char)text.ptr[cut] & 0xc0) == 0x80; cut--)
			;
	}
	buf_add_printable(&b, (struct str){ text.ptr, cut });
	if (cut < text.len)
		buf_printf(&b, "... (%zu bytes more)", text.len - cut);
	out = str_dup(r->arena, buf_str(&b));
	r->failed |= buf_failed(&b) || !out.ptr;
	buf_release(&b);
	return out;
}

static struct str reply_take(struct reply *r, struct buf *b)
{
	struct str out = str_dup(r->arena, buf_str(b));

	r->failed |= buf_failed(b) || !out.ptr;
	buf_release(b);
	return out;
}

static struct reply_cell reply_amount(struct reply *r, int64_t value, struct str unit)
{
	struct buf b = { 0 };

	pprof_unit_print(&b, value, unit, STR("auto"));
	return (struct reply_cell){ .text = reply_take(r, &b), .kind = REPLY_WHOLE, .whole = value };
}

static struct reply_cell reply_whole(struct reply *r, int64_t value)
{
	struct buf b = { 0 };

	buf_add_i64(&b, value);
	return (struct reply_cell){ .text = reply_take(r, &b), .kind = REPLY_WHOLE, .whole = value };
}

/* ---- facts, notes, next calls ---- */

static void reply_fact_add(struct reply *r, const char *name, struct reply_cell cell)
{
	if (!arena_array_room(r->arena, &r->facts, r->facts_n, 1, &r->facts_cap)) {
		r->failed = true;
		return;
	}
	r->facts[r->facts_n++] = (struct reply_fact){ name, cell };
}

void reply_fact(struct reply *r, const char *name, struct str text)
{
	reply_fact_add(
		r, name, (struct reply_cell){ .text = reply_copy(r, text, REPLY_TEXT_BYTES_MAX) });
}

void reply_fact_amount(struct reply *r, const char *name, int64_t value, struct str unit)
{
	reply_fact_add(r, name, reply_amount(r, value, unit));
}

void reply_fact_whole(struct reply *r, const char *name, uint64_t value)
{
	reply_fact_add(r, name, reply_whole(r, (int64_t)value));
}

void reply_body(struct reply *r, struct str lines)
{
	r->body = str_dup(r->arena, lines);
	r->failed |= lines.len && !r->body.ptr;
}

void reply_note(struct reply *r, struct str text)
{
	struct str copy;

	if (r->notes_n == NOTES_MAX)
		return;
	copy = reply_copy(r, text, NOTE_BYTES_MAX);
	for (size_t i = 0; i < r->notes_n; i++)
		if (str_eq(r->notes[i], copy))
			return;
	if (!arena_array_room(r->arena, &r->notes, r->notes_n, 1, &r->notes_cap)) {
		r->failed = true;
		return;
	}
	r->notes[r->notes_n++] = copy;
}

void reply_notef(struct reply *r, const char *fmt, ...)
{
	char text[2 * NOTE_BYTES_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	reply_note(r, str_of(text));
}

void reply_next_begin(struct json *j, struct buf *text)
{
	*text = (struct buf){ 0 };
	json_init(j, text);
	json_object(j);
}

void reply_next(struct reply *r, const char *tool, struct json *j, const char *why)
{
	struct str arguments;

	json_object_end(j);
	arguments = reply_take(r, j->out);
	if (!arena_array_room(r->arena, &r->next, r->next_n, 1, &r->next_cap)) {
		r->failed = true;
		return;
	}
	r->next[r->next_n++] = (struct reply_next){ tool, arguments, why };
}

/* ---- tables ---- */

struct reply_table *reply_table(struct reply *r, const char *name, const char *rows_are,
	const char *const *columns, size_t columns_n)
{
	struct reply_table *t = arena_new(r->arena, struct reply_table);

	if (!t || !arena_array_room(r->arena, &r->tables, r->tables_n, 1, &r->tables_cap)) {
		r->failed = true;
		return NULL;
	}
	*t = (struct reply_table){
		.name = name, .rows_are = rows_are, .columns = columns, .columns_n = columns_n
	};
	return r->tables[r->tables_n++] = t;
}

static void reply_cell_add(struct reply *r, struct reply_table *t, struct reply_cell cell)
{
	if (!t || !arena_array_room(r->arena, &t->cells, t->cells_n, 1, &t->cells_cap)) {
		r->failed = true;
		return;
	}
	t->cells[t->cells_n++] = cell;
	t->all_n = t->cells_n / t->columns_n;
}

void reply_cell_indented(struct reply *r, struct reply_table *t, struct str text, uint32_t indent)
{
	reply_cell_add(r, t,
		(struct reply_cell){ .text = reply_copy(r, text, REPLY_TEXT_BYTES_MAX), .indent = indent });
}

void reply_cell_text(struct reply *r, struct reply_table *t, struct str text)
{
	reply_cell_indented(r, t, text, 0);
}

void reply_cell_amount(struct reply *r, struct reply_table *t, int64_t value, struct str unit)
{
	reply_cell_add(r, t, reply_amount(r, value, unit));
}

void reply_cell_whole(struct reply *r, struct reply_table *t, int64_t value)
{
	reply_cell_add(r, t, reply_whole(r, value));
}

void reply_cell_percent(struct reply *r, struct reply_table *t, double percent)
{
	struct buf b = { 0 };

	buf_printf(&b, "%.2f%%", percent);
	reply_cell_add(r, t,
		(struct reply_cell){ .text = reply_take(r, &b),
			.kind = REPLY_NUMBER,
			.number = round(percent * 1e4) / 1e4 });
}

void reply_cell_none(struct reply *r, struct reply_table *t)
{
	reply_cell_add(r, t, (struct reply_cell){ .text = STR("-"), .kind = REPLY_NONE });
}

void reply_cell_number(struct reply *r, struct reply_table *t, double value)
{
	struct buf b = { 0 };

	buf_add_double(&b, value);
	reply_cell_add(r, t,
		(struct reply_cell){ .text = reply_take(r, &b), .kind = REPLY_NUMBER, .number = value });
}

void reply_row_share(struct reply *r, struct reply_table *t, double percent)
{
	if (!t || !arena_array_room(r->arena, &t->shares, t->shares_n, 1, &t->shares_cap)) {
		r->failed = true;
		return;
	}
	t->shares[t->shares_n++] = percent;
	t->shares_all += percent;
}
