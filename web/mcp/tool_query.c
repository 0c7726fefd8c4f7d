/* query: any query, run, checked or planned. */
#include "base/clock.h"
#include "base/quote.h"
#include "promql/engine/engine.h"
#include "promql/syntax/check.h"
#include "web/mcp/tool.h"

#define ROWS_DEFAULT 50u
#define ROWS_MAX 1000u
#define TABLES_MAX 5u /* profiles whose functions are shown */
#define POINTS_SHOWN 12u /* of a series, the last ones */

static enum err_code query_tool_validate(struct tool_call *c, struct err *err)
{
	struct parsed *p = NULL;
	struct buf text = { 0 };
	enum err_code rc;

	if (!(rc = parse_query(c->arena, tool_string(c, "query"), &p, NULL, err)) &&
		!(rc = check_query(p, NULL, err))) {
		expr_print(&text, p->root);
		reply_fact(&c->reply, "valid", buf_str(&text));
		buf_clear(&text);
		value_types_print(&text, p->root->types);
		reply_fact(&c->reply, "gives", buf_str(&text));
	}
	c->reply.failed |= buf_failed(&text);
	buf_release(&text);
	parsed_release(p);
	return rc;
}

/* ---- answers ---- */

static void query_tool_tell_labels(struct reply *r, struct reply_table *t, struct labels labels)
{
	struct buf b = { 0 };

	labels_print(&b, labels);
	reply_cell_text(r, t, buf_str(&b));
	r->failed |= buf_failed(&b);
	buf_release(&b);
}

static void query_tool_tell_vector(struct reply *r, const struct result *result, size_t rows)
{
	static const char *const columns[] = { "value", "labels" };
	struct reply_table *t = reply_table(r, "costs", "costs", columns, 2);

	for (size_t i = 0; i < result->n && i < rows; i++) {
		reply_cell_number(r, t, result->vector[i].value);
		query_tool_tell_labels(r, t, result->vector[i].metric);
	}
	if (t)
		t->all_n = result->n;
}

static void query_tool_tell_series(
	struct reply *r, struct reply_table *t, const struct cost_series *s)
{
	double min = s->points[0].value, max = min, sum = 0;
	struct buf b = { 0 };

	for (size_t i = 0; i < s->n; i++) {
		double value = s->points[i].value;

		min = value < min ? value : min;
		max = value > max ? value : max;
		sum += value;
	}
	reply_cell_whole(r, t, (int64_t)s->n);
	reply_cell_number(r, t, s->points[0].value);
	reply_cell_number(r, t, min);
	reply_cell_number(r, t, sum / (double)s->n);
	reply_cell_number(r, t, max);
	reply_cell_number(r, t, s->points[s->n - 1].value);
	query_tool_tell_labels(r, t, s->metric);
	for (size_t i = s->n > POINTS_SHOWN ? s->n - POINTS_SHOWN : 0; i < s->n; i++)
		buf_printf(&b, "%s%.4g", b.len ? " " : "", s->points[i].value);
	reply_cell_text(r, t, buf_str(&b));
	r->failed |= buf_failed(&b);
	buf_release(&b);
}

static void query_tool_tell_matrix(struct reply *r, const struct result *result, size_t rows)
{
	static const char *const columns[] = { "points", "first", "min", "mean", "max", "last",
		"labels", "last_points" };
	struct reply_table *t = reply_table(r, "series", "series", columns, 8);

	for (size_t i = 0; i < result->n && i < rows; i++)
		if (result->matrix[i].n)
			query_tool_tell_series(r, t, &result->matrix[i]);
	if (t)
		t->all_n = result->n;
}

static void query_tool_tell_rows(struct reply *r, const struct top_table *top, size_t rows)
{
	static const char *const columns[] = { "flat", "flat%", "cum", "cum%", "function" };
	static const char *const names[TABLES_MAX] = { "functions", "functions_2", "functions_3",
		"functions_4", "functions_5" };
	struct reply_table *t = reply_table(r, names[r->tables_n ? r->tables_n - 1 : 0], "functions",
		columns, sizeof(columns) / sizeof(*columns));

	for (size_t i = 0; i < top->n && i < rows; i++) {
		reply_cell_amount(r, t, top->rows[i].flat, top->type.sample_unit);
		reply_cell_percent(r, t, top->rows[i].flat_percent);
		reply_cell_amount(r, t, top->rows[i].cum, top->type.sample_unit);
		reply_cell_percent(r, t, top->rows[i].cum_percent);
		reply_cell_text(r, t, top->rows[i].function);
	}
	if (t)
		t->all_n = top->functions_n > top->n ? top->functions_n : top->n;
}

/* A table of the elements, then their functions, of the first few. */
static void query_tool_tell_tops(struct reply *r, const struct result *result, size_t rows)
{
	static const char *const columns[] = { "total", "merged", "labels", "unit" };
	struct reply_table *t = reply_table(r, "profiles", "profiles", columns, 4);

	for (size_t i = 0; i < result->n && i < rows; i++) {
		reply_cell_amount(r, t, result->tops[i].total, result->tops[i].type.sample_unit);
		reply_cell_whole(r, t, (int64_t)result->tops[i].profiles);
		query_tool_tell_labels(r, t, result->tops[i].metric);
		reply_cell_text(r, t, result->tops[i].type.sample_unit);
	}
	if (t)
		t->all_n = result->n;
	for (size_t i = 0; i < result->n && i < TABLES_MAX; i++)
		query_tool_tell_rows(r, &result->tops[i], rows);
}

static void query_tool_tell(struct reply *r, const struct result *result, size_t rows)
{
	struct buf b = { 0 };

	if (result->unit.len)
		reply_fact(r, "unit", result->unit);
	switch (result->type) {
	case RESULT_PROFILES:
	case RESULT_TOP:
		query_tool_tell_tops(r, result, rows);
		break;
	case RESULT_VECTOR:
		query_tool_tell_vector(r, result, rows);
		break;
	case RESULT_MATRIX:
		query_tool_tell_matrix(r, result, rows);
		break;
	case RESULT_SCALAR:
		buf_add_double(&b, result->scalar);
		reply_fact(r, "value", buf_str(&b));
		break;
	case RESULT_STRING:
		reply_fact(r, "value", result->string);
		break;
	case RESULT_SCRAPE: /* only whole_scrape asks for it */
		break;
	}
	r->failed |= buf_failed(&b);
	buf_release(&b);
}

/* ---- runs ---- */

static enum err_code query_tool_options(
	struct tool_call *c, struct query_options *o, struct err *err)
{
	struct tool_window window = { c->now_ns - TOOL_WINDOW_NS, c->now_ns };
	struct str step = tool_string(c, "step");
	enum err_code rc = tool_read_window(c, "window", "end", &window, err);

	if (rc)
		return rc;
	*o = (struct query_options){ .text = tool_string(c, "query"),
		.t_ns = window.end_ns,
		.has_span = !step.len,
		.start_ns = window.start_ns,
		.end_ns = window.end_ns,
		.tables = !step.len,
		.rows_only = true,
		.hints = true };
	o->limits = c->in->user.limits;
	if (!step.len)
		return ERR_OK;
	if ((rc = duration_parse(step, &o->step_ns, err)))
		return err_wrap(err, rc, "argument step");
	if (o->step_ns <= 0 || (o->end_ns - o->start_ns) / o->step_ns > ENGINE_POINTS_MAX)
		return err_set(err, ERR_INVALID, "argument step: at most %d steps fit into the window",
			ENGINE_POINTS_MAX);
	return ERR_OK;
}

static void query_tool_explain(struct tool_call *c, const struct query *q)
{
	struct buf text = { 0 };

	query_explain_print(q, &text);
	reply_body(&c->reply, buf_str(&text));
	c->reply.failed |= buf_failed(&text);
	buf_release(&text);
}

enum err_code tool_query_run(struct tool_call *c, struct err *err)
{
	struct str mode = tool_string(c, "mode");
	struct query_options o;
	struct query *q = NULL;
	const struct result *r;
	enum err_code rc;

	if (str_is(mode, "validate"))
		return query_tool_validate(c, err);
	if ((rc = query_tool_options(c, &o, err)))
		return rc;
	o.explain = str_is(mode, "explain");
	if ((rc = query_run_cancelable(c->w->o.engine, &o, &c->in->canceled, &q, err)))
		return rc;
	r = query_result(q);
	reply_fact(&c->reply, "query", o.text);
	tool_tell_window(c, "window", &(struct tool_window){ o.start_ns, o.end_ns });
	for (size_t i = 0; i < r->warnings_n; i++)
		reply_note(&c->reply, r->warnings[i]);
	for (size_t i = 0; i < r->infos_n; i++)
		reply_note(&c->reply, r->infos[i]);
	if (o.explain)
		query_tool_explain(c, q);
	else
		query_tool_tell(&c->reply, r, tool_whole(c, "limit", ROWS_DEFAULT, ROWS_MAX));
	query_close(q);
	return ERR_OK;
}
