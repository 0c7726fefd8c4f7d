/* top: the most expensive functions, and what is left out. */
#include <stdlib.h>

#include "base/clock.h"
#include "promql/engine/engine.h"
#include "web/mcp/tool.h"

#define ROWS_DEFAULT 30u
#define ROWS_MAX 500u

static int tool_top_cmp_cum(const void *pa, const void *pb)
{
	const struct top_row *a = pa, *b = pb;
	int64_t x = llabs(a->cum), y = llabs(b->cum);

	return x != y ? (x < y) - (x > y) : str_cmp(a->function, b->function);
}

static void tool_top_next(struct tool_call *c, const struct tool_profiles *of,
	const struct tool_window *window, const struct top_row *first)
{
	struct buf text;
	struct json j;

	reply_next_begin(&j, &text);
	json_key(&j, "function");
	json_str(&j, first->function);
	tool_next_same(c, &j, of, window);
	reply_next(&c->reply, "function", &j, "who calls it, its lines");
}

/* Rows are all of the table, the first of them shown. */
static void tool_top_tell(struct tool_call *c, const struct top_table *t,
	const struct tool_places *places, bool by_cum, size_t rows)
{
	static const char *const columns[] = { "flat", "flat%", "cum", "cum%", "function", "where" };
	struct reply_table *to = reply_table(
		&c->reply, "functions", "functions", columns, sizeof(columns) / sizeof(*columns));
	struct str unit = t->type.sample_unit;

	for (size_t i = 0; i < t->n && i < rows; i++) {
		const struct top_row *row = &t->rows[i];

		reply_cell_amount(&c->reply, to, row->flat, unit);
		reply_cell_percent(&c->reply, to, tool_percent(row->flat, t->total));
		reply_cell_amount(&c->reply, to, row->cum, unit);
		reply_cell_percent(&c->reply, to, tool_percent(row->cum, t->total));
		reply_cell_text(&c->reply, to, row->function);
		reply_cell_text(&c->reply, to, tool_place(places, c->arena, row->function));
		if (!by_cum)
			reply_row_share(&c->reply, to, tool_percent(row->flat, t->total));
	}
	if (!to)
		return;
	to->all_n = t->n;
	to->share_of = by_cum ? NULL : "flat cost";
	for (size_t i = rows; i < t->n && !by_cum; i++)
		to->shares_all += tool_percent(t->rows[i].flat, t->total);
}

enum err_code tool_top_run(struct tool_call *c, struct err *err)
{
	struct tool_window window = { c->now_ns - TOOL_WINDOW_NS, c->now_ns };
	size_t rows = tool_whole(c, "limit", ROWS_DEFAULT, ROWS_MAX);
	bool by_cum = str_is(tool_string(c, "sort"), "cum");
	const struct profile_value *p;
	const struct top_table *t;
	struct tool_places *places = NULL;
	struct tool_profiles of;
	struct query *q = NULL;
	struct str *names;
	enum err_code rc;

	if ((rc = tool_read_window(c, "window", "end", &window, err)) ||
		(rc = tool_read_profiles(c, "profiles", &of, err)) ||
		(rc = tool_ask_merged(c, &window, &of, &q, &p, &t, err)))
		goto out;
	if (by_cum && t->n)
		qsort(t->rows, t->n, sizeof(*t->rows), tool_top_cmp_cum);
	names = tool_row_names(t, t->n < rows ? t->n : rows, query_arena(q));
	rc = names ? tool_places_open(q, p, names, t->n < rows ? t->n : rows, &places, err) :
				 arena_fail(query_arena(q), "top", err);
	if (rc)
		goto out;
	tool_tell_merged(c, &of, &window, p);
	tool_top_tell(c, t, places, by_cum, rows);
	if (t->n)
		tool_top_next(c, &of, &window, &t->rows[0]);
out:
	tool_places_close(places);
	query_close(q);
	return rc;
}
