/*
 * compare: two windows or selectors, function by function, by how far shares moved.
 *
 * Shares, since windows may differ in length and in what ran; the totals are facts. A verdict is
 * changed_interval's, which takes selectors alone.
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/quote.h"
#include "promql/engine/engine.h"
#include "web/mcp/tool.h"

#define ROWS_DEFAULT 25u
#define ROWS_MAX 200u
#define POINTS_MIN 0.005 /* a smaller move is none */

struct compared_row {
	struct str function;
	int64_t flat[2], cum[2]; /* new, base */
	double low, high; /* points */
	struct str verdict; /* empty: none */
};

struct comparison {
	struct tool_call *c;
	struct tool_window window[2];
	struct tool_profiles of[2];
	struct query *q[2];
	const struct profile_value *p[2]; /* NULL: there are none */
	const struct top_table *t[2];
	struct compared_row *v;
	size_t n, cap;
	struct map map;
	struct str unit;
	bool by_cum; /* while rows are ordered */
	bool judged;
};

static int64_t compared_total(const struct comparison *pair, size_t side)
{
	return pair->t[side] ? pair->t[side]->total : 0;
}

static double compared_points(const struct comparison *pair, const struct compared_row *row)
{
	const int64_t *cost = pair->by_cum ? row->cum : row->flat;

	return tool_percent(cost[0], compared_total(pair, 0)) -
		tool_percent(cost[1], compared_total(pair, 1));
}

static bool compared_row_eq(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(*(const struct str *)key, ((const struct comparison *)ctx)->v[id].function);
}

/* NULL: there is none. */
static struct compared_row *compared_find(const struct comparison *pair, struct str function)
{
	uint32_t id = map_find(
		&pair->map, hash_bytes(function.ptr, function.len, 0), compared_row_eq, pair, &function);

	return id == MAP_NONE ? NULL : &pair->v[id];
}

static enum err_code compared_add(struct comparison *pair, size_t side, struct err *err)
{
	const struct top_table *t = pair->t[side];

	for (size_t i = 0; t && i < t->n; i++) {
		const struct top_row *from = &t->rows[i];
		struct compared_row *row = compared_find(pair, from->function);

		if (!row) {
			if (!arena_array_room(query_arena(pair->q[0]), &pair->v, pair->n, 1, &pair->cap))
				return arena_fail(query_arena(pair->q[0]), "compare", err);
			if (!map_add(&pair->map, hash_bytes(from->function.ptr, from->function.len, 0),
					(uint32_t)pair->n))
				return err_nomem(err, "compare");
			row = &pair->v[pair->n++];
			*row = (struct compared_row){ .function = from->function };
		}
		/* Functions of one name, of several files. */
		row->flat[side] += from->flat;
		row->cum[side] += from->cum;
	}
	return ERR_OK;
}

/* ---- the verdict ---- */

static void compared_judge_row(struct comparison *pair, const struct cost *cost)
{
	struct compared_row *row = compared_find(pair, labels_get(cost->metric, STR("function")));
	bool low = str_is(labels_get(cost->metric, STR("bound")), "low");

	/* With more labels it is about one series alone, which an info tells. */
	if (!row || cost->metric.n != 3)
		return;
	row->verdict = str_dup(pair->c->arena, labels_get(cost->metric, STR("verdict")));
	*(low ? &row->low : &row->high) = 100 * cost->value;
}

static void compared_print_side(const struct comparison *pair, size_t side, struct buf *b)
{
	const struct tool_window *w = &pair->window[side];

	buf_printf(b, STR_FMT "[%llds] @ %.3f", STR_ARG(pair->of[side].text),
		(long long)((w->end_ns - w->start_ns + NS_PER_S - 1) / NS_PER_S),
		(double)(w->end_ns / NS_PER_MS) / 1e3);
}

/* What cannot be judged is compared all the same. */
static enum err_code compared_judge(struct comparison *pair, struct err *err)
{
	struct buf text = { 0 };
	struct query *q = NULL;
	const struct result *r;
	enum err_code rc;

	if (!pair->of[0].is_selector || !pair->of[1].is_selector) {
		reply_notef(
			&pair->c->reply, "no significance test: that needs bare selectors on both sides");
		return ERR_OK;
	}
	buf_add_cstr(&text, "changed_interval(");
	compared_print_side(pair, 0, &text);
	buf_add_cstr(&text, ", ");
	compared_print_side(pair, 1, &text);
	buf_add_char(&text, ')');
	rc = tool_ask(pair->c, &pair->window[0], false, buf_str(&text), &q, err);
	buf_release(&text);
	if (rc == ERR_INVALID || rc == ERR_LIMIT) {
		reply_notef(&pair->c->reply, "no significance test: %s", QUOTED(str_of(err->msg)));
		return ERR_OK;
	}
	if (!rc) {
		r = query_result(q);
		pair->judged = true;
		for (size_t i = 0; r->type == RESULT_VECTOR && i < r->n; i++)
			compared_judge_row(pair, &r->vector[i]);
	}
	query_close(q);
	return rc;
}

/* ---- the answer ---- */

/* By how far they moved. What one gains another loses; of two that moved as far, the one that rose
 * is first. */
static int compared_cmp(const void *pa, const void *pb, void *ctx)
{
	const struct compared_row *a = pa, *b = pb;
	int64_t x = llround(1e6 * compared_points(ctx, a)), y = llround(1e6 * compared_points(ctx, b));

	if (llabs(x) != llabs(y))
		return llabs(x) < llabs(y) ? 1 : -1;
	return x != y ? (x < y) - (x > y) : str_cmp(a->function, b->function);
}

static void compared_tell_row(struct comparison *pair, struct reply_table *t,
	const struct compared_row *row, const struct tool_places *const places[2])
{
	const int64_t *cost = pair->by_cum ? row->cum : row->flat;
	struct reply *r = &pair->c->reply;
	struct buf b = { 0 };
	struct str place;

	reply_cell_amount(r, t, cost[0], pair->unit);
	reply_cell_percent(r, t, tool_percent(cost[0], compared_total(pair, 0)));
	reply_cell_amount(r, t, cost[1], pair->unit);
	reply_cell_percent(r, t, tool_percent(cost[1], compared_total(pair, 1)));
	reply_cell_number(r, t, round(compared_points(pair, row) * 1e4) / 1e4);
	reply_cell_text(r, t, row->function);
	if (!pair->by_cum) {
		buf_clear(&b);
		if (row->verdict.len)
			buf_printf(&b, STR_FMT " (%+.2f to %+.2f)", STR_ARG(row->verdict), row->low, row->high);
		else
			buf_add_cstr(&b, pair->judged ? "not tested" : "no test");
		reply_cell_text(r, t, buf_str(&b));
	}
	place = places[0] ? tool_place(places[0], pair->c->arena, row->function) : STR("");
	if (!place.len && places[1])
		place = tool_place(places[1], pair->c->arena, row->function);
	reply_cell_text(r, t, place);
	r->failed |= buf_failed(&b);
	buf_release(&b);
}

/* Opens the places of what is shown, on each side that there is. */
static enum err_code compared_tell(
	struct comparison *pair, bool by_cum, size_t rows, struct err *err)
{
	static const char *const flat[] = { "new", "new%", "base", "base%", "points", "function",
		"verdict", "where" };
	static const char *const cum[] = { "new", "new%", "base", "base%", "points", "function",
		"where" };
	struct tool_places *places[2] = { NULL, NULL };
	struct reply_table *t;
	struct str *names;
	size_t moved = 0;
	enum err_code rc = ERR_OK;

	pair->by_cum = by_cum;
	if (pair->n)
		qsort_r(pair->v, pair->n, sizeof(*pair->v), compared_cmp, pair);
	while (moved < pair->n && fabs(compared_points(pair, &pair->v[moved])) >= POINTS_MIN)
		moved++;
	if (rows > moved)
		rows = moved;
	if (!(names = arena_array(query_arena(pair->q[0]), struct str, rows + 1)))
		return arena_fail(query_arena(pair->q[0]), "compare", err);
	for (size_t i = 0; i < rows; i++)
		names[i] = pair->v[i].function;
	for (size_t side = 0; side < 2 && !rc; side++)
		if (pair->p[side])
			rc = tool_places_open(pair->q[side], pair->p[side], names, rows, &places[side], err);
	if (!rc) {
		t = by_cum ? reply_table(&pair->c->reply, "with_callees", "functions that moved", cum, 7) :
					 reply_table(&pair->c->reply, "functions", "functions that moved", flat, 8);
		for (size_t i = 0; i < rows; i++)
			compared_tell_row(pair, t, &pair->v[i], (const struct tool_places *const *)places);
		if (t)
			t->all_n = moved;
	}
	tool_places_close(places[0]);
	tool_places_close(places[1]);
	return rc;
}

static void compared_tell_totals(struct comparison *pair)
{
	struct reply *r = &pair->c->reply;
	int64_t now = compared_total(pair, 0), base = compared_total(pair, 1);
	struct buf b = { 0 };

	reply_fact(r, "new", pair->of[0].text);
	tool_tell_window(pair->c, "new_window", &pair->window[0]);
	reply_fact(r, "base", pair->of[1].text);
	tool_tell_window(pair->c, "base_window", &pair->window[1]);
	reply_fact(r, "unit", pair->unit);
	reply_fact_amount(r, "new_total", now, pair->unit);
	reply_fact_amount(r, "base_total", base, pair->unit);
	reply_fact_whole(r, "new_merged", pair->p[0] ? pair->p[0]->profiles : 0);
	reply_fact_whole(r, "base_merged", pair->p[1] ? pair->p[1]->profiles : 0);
	if (now && base) {
		buf_printf(&b, "%.3g times base", (double)now / (double)base);
		reply_fact(r, "new_is", buf_str(&b));
	}
	if (!base)
		reply_notef(r, "base has no cost in its window: all of new is a change");
	if (pair->window[0].end_ns - pair->window[0].start_ns !=
		pair->window[1].end_ns - pair->window[1].start_ns)
		reply_notef(r, "the windows differ in length: compare shares, not amounts");
	buf_release(&b);
}

/* The function that rose most; of a lock, whose own share stays, the one that calls it. */
static void compared_next(struct comparison *pair)
{
	const struct compared_row *best = NULL;
	struct buf text;
	struct json j;

	for (size_t i = 0; i < pair->n && !best; i++)
		if (compared_points(pair, &pair->v[i]) >= POINTS_MIN)
			best = &pair->v[i];
	if (!best || pair->c->reply.next_n)
		return;
	reply_next_begin(&j, &text);
	json_key(&j, "function");
	json_str(&j, best->function);
	tool_next_same(pair->c, &j, &pair->of[0], &pair->window[0]);
	reply_next(&pair->c->reply, "function", &j, "who calls it, its lines");
}

/* The base's window ends where the new one begins; with selectors of two versions both are the
 * same. */
static enum err_code compared_read(struct comparison *pair, struct err *err)
{
	struct tool_call *c = pair->c;
	bool has_base = tool_string(c, "base").len > 0;
	enum err_code rc;

	pair->window[0] = (struct tool_window){ c->now_ns - TOOL_WINDOW_NS, c->now_ns };
	if ((rc = tool_read_window(c, "window", "end", &pair->window[0], err)) ||
		(rc = tool_read_profiles(c, "profiles", &pair->of[0], err)))
		return rc;
	pair->window[1] = pair->window[0];
	if (!has_base) {
		pair->of[1] = pair->of[0];
		pair->window[1].end_ns = pair->window[0].start_ns;
		pair->window[1].start_ns -= pair->window[0].end_ns - pair->window[0].start_ns;
	} else if ((rc = tool_read_profiles(c, "base", &pair->of[1], err))) {
		return rc;
	}
	return tool_read_window(c, "base_window", "base_end", &pair->window[1], err);
}

static enum err_code compared_ask(struct comparison *pair, struct err *err)
{
	enum err_code rc;

	if ((rc = tool_ask_merged(
			 pair->c, &pair->window[0], &pair->of[0], &pair->q[0], &pair->p[0], &pair->t[0], err)))
		return rc;
	rc = tool_ask_merged(
		pair->c, &pair->window[1], &pair->of[1], &pair->q[1], &pair->p[1], &pair->t[1], err);
	if (rc == ERR_NOT_FOUND)
		return ERR_OK;
	if (!rc && !str_eq(pair->p[0]->type.sample_unit, pair->p[1]->type.sample_unit))
		return err_set(err, ERR_INVALID, "new has the unit %s, base %s",
			QUOTED(pair->p[0]->type.sample_unit), QUOTED(pair->p[1]->type.sample_unit));
	return rc;
}

enum err_code tool_compare_run(struct tool_call *c, struct err *err)
{
	size_t rows = tool_whole(c, "limit", ROWS_DEFAULT, ROWS_MAX);
	struct comparison pair = { .c = c };
	enum err_code rc;

	map_init(&pair.map);
	if ((rc = compared_read(&pair, err)) || (rc = compared_ask(&pair, err)))
		goto out;
	pair.unit = pair.p[0]->type.sample_unit;
	if ((rc = compared_add(&pair, 0, err)) || (rc = compared_add(&pair, 1, err)) ||
		(rc = compared_judge(&pair, err)))
		goto out;
	compared_tell_totals(&pair);
	if ((rc = compared_tell(&pair, false, rows, err)))
		goto out;
	compared_next(&pair);
	if (!(rc = compared_tell(&pair, true, rows / 2 + 1, err)))
		compared_next(&pair);
out:
	map_release(&pair.map);
	query_close(pair.q[0]);
	query_close(pair.q[1]);
	return rc;
}
