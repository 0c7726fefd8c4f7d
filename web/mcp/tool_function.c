/*
 * function: one function's costs, callers, callees, lines, and where its source is.
 *
 * The language's callers() and callees() give the stacks up to its outermost frame and from it, so
 * each stack counts once, also where it calls itself.
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/quote.h"
#include "promql/engine/engine.h"
#include "scrape/config/config.h"
#include "web/mcp/tool.h"
#include "web/render/frame_tree.h"

#define NEAR_MAX 20u /* names that have the text, where none is the text */
#define NEIGHBOURS_MAX 20u
#define LINES_MAX 20u

/* Callers or callees, by name. */
struct neighbour {
	struct str name;
	int64_t cost;
};

struct close_up {
	struct tool_call *c;
	struct tool_window window;
	struct tool_profiles of;
	struct str name;
	struct str unit, file; /* file: "" where it is not known */
	int64_t cum, line;
};

/* ---- the name as the language's texts have it ---- */

/* An expression that matches it alone: all but letters, digits and _ is escaped. */
static void close_up_print_pattern(const struct close_up *u, struct buf *out)
{
	struct buf b = { 0 };

	buf_add_char(&b, '^');
	for (size_t i = 0; i < u->name.len; i++) {
		unsigned char ch = (unsigned char)u->name.ptr[i];

		if (ch < 0x80 && ch != '_' && !(ch >= '0' && ch <= '9') &&
			!((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z'))
			buf_add_char(&b, '\\');
		buf_add_char(&b, (char)ch);
	}
	buf_add_char(&b, '$');
	buf_add_quoted(out, buf_str(&b));
	out->failed |= buf_failed(&b);
	buf_release(&b);
}

static enum err_code close_up_ask(struct close_up *u, const char *before, const char *behind,
	bool pattern, struct query **out, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	buf_add_cstr(&text, before);
	buf_printf(&text, "(merge(" STR_FMT "), ", STR_ARG(u->of.text));
	if (pattern) {
		close_up_print_pattern(u, &text);
	} else {
		buf_add_cstr(&text, "{function=");
		buf_add_quoted(&text, u->name);
		buf_add_char(&text, '}');
	}
	buf_add_cstr(&text, behind);
	rc = buf_failed(&text) ? err_nomem(err, "query") :
							 tool_ask(u->c, &u->window, false, buf_str(&text), out, err);
	buf_release(&text);
	return rc;
}

/* ---- callers and callees ---- */

static int neighbour_cmp(const void *pa, const void *pb)
{
	const struct neighbour *a = pa, *b = pb;
	int64_t x = llabs(a->cost), y = llabs(b->cost);

	return x != y ? (x < y) - (x > y) : str_cmp(a->name, b->name);
}

static void close_up_tell_neighbours(
	struct close_up *u, const char *name, struct neighbour *all, size_t n, struct str itself)
{
	static const char *const columns[] = { "cost", "of_it%", "function" };
	struct reply *r = &u->c->reply;
	struct reply_table *t = reply_table(r, name, name, columns, 3);

	if (n)
		qsort(all, n, sizeof(*all), neighbour_cmp);
	for (size_t i = 0; i < n && i < NEIGHBOURS_MAX; i++) {
		reply_cell_amount(r, t, all[i].cost, u->unit);
		reply_cell_percent(r, t, tool_percent(all[i].cost, u->cum));
		reply_cell_text(r, t, all[i].name.ptr ? all[i].name : itself);
	}
	if (t)
		t->all_n = n;
}

/* Adds each node's cost to the entry of its name, of callers to that of its parent's. */
static enum err_code close_up_sum_tree(struct close_up *u, struct frame_tree *t, bool callers,
	struct neighbour **out, size_t *n, struct err *err)
{
	uint32_t self = frame_tree_name(t, u->name), names = t->names_n;
	struct neighbour *v = arena_array(t->arena, struct neighbour, (size_t)names + 1);

	if (!v)
		return arena_fail(t->arena, "function", err);
	for (uint32_t i = 1; i < t->n; i++) {
		const struct tree_node *node = &t->nodes[i], *above = &t->nodes[node->parent];

		if (callers && node->self[0])
			v[node->parent ? above->name : names].cost += node->self[0];
		else if (!callers && !node->parent && node->name == self)
			v[names].cost += node->self[0];
		else if (!callers && node->parent && !above->parent && above->name == self)
			v[node->name].cost += node->total[0];
	}
	*n = 0;
	for (uint32_t i = 0; i <= names; i++)
		if (v[i].cost)
			v[(*n)++] = (struct neighbour){ .name = i < names ? t->names[i] : (struct str){ 0 },
				.cost = v[i].cost };
	*out = v;
	return ERR_OK;
}

static enum err_code close_up_neighbours(struct close_up *u, bool callers, struct err *err)
{
	struct query *q = NULL;
	struct frame_tree tree;
	struct neighbour *v;
	size_t n;
	enum err_code rc = close_up_ask(u, callers ? "callers" : "callees", ")", true, &q, err);

	if (rc || query_result(q)->type != RESULT_PROFILES || !query_result(q)->n) {
		query_close(q);
		return rc;
	}
	if (!(rc = frame_tree_init(&tree, query_arena(q), err))) {
		tree.canceled = query_stop_flag(q);
		rc = frame_tree_add(&tree, 0, &query_result(q)->profiles[0], err);
		frame_tree_total(&tree);
		if (!rc)
			rc = close_up_sum_tree(u, &tree, callers, &v, &n, err);
		if (!rc)
			close_up_tell_neighbours(u, callers ? "callers" : "callees", v, n,
				callers ? STR("(nobody: it is a root)") : STR("(itself)"));
		frame_tree_release(&tree);
	}
	query_close(q);
	return rc;
}

/* ---- lines ---- */

static int close_up_cmp_line(const void *pa, const void *pb)
{
	const struct cost *a = pa, *b = pb;

	return a->value != b->value ? (a->value < b->value) - (a->value > b->value) :
								  labels_cmp(a->metric, b->metric);
}

static double close_up_flat_of(const struct result *flat, struct labels line)
{
	for (size_t i = 0; i < flat->n; i++)
		if (labels_eq(flat->vector[i].metric, line))
			return flat->vector[i].value;
	return 0;
}

static void close_up_tell_lines(
	struct close_up *u, const struct result *cum, const struct result *flat)
{
	static const char *const columns[] = { "flat", "cum", "line" };
	struct reply *r = &u->c->reply;
	struct reply_table *t = reply_table(r, "lines", "lines", columns, 3);
	struct buf b = { 0 };

	if (cum->n)
		qsort(cum->vector, cum->n, sizeof(*cum->vector), close_up_cmp_line);
	for (size_t i = 0; i < cum->n && i < LINES_MAX; i++) {
		struct labels metric = cum->vector[i].metric;
		struct str file = labels_get(metric, STR("filename")),
					   line = labels_get(metric, STR("line"));

		buf_clear(&b);
		buf_printf(&b, STR_FMT ":" STR_FMT, STR_ARG(file), STR_ARG(line));
		reply_cell_amount(r, t, (int64_t)close_up_flat_of(flat, metric), u->unit);
		reply_cell_amount(r, t, (int64_t)cum->vector[i].value, u->unit);
		reply_cell_text(r, t, file.len ? buf_str(&b) : STR("(no line is known)"));
	}
	if (t)
		t->all_n = cum->n;
	if (cum->n) { /* the hottest one: where the source is opened */
		struct labels first = cum->vector[0].metric;

		u->file = str_dup(u->c->arena, labels_get(first, STR("filename")));
		if (!str_to_i64(labels_get(first, STR("line")), &u->line))
			u->line = 0;
	}
	r->failed |= buf_failed(&b);
	buf_release(&b);
}

static enum err_code close_up_lines(struct close_up *u, struct err *err)
{
	struct query *cum = NULL, *flat = NULL;
	enum err_code rc = close_up_ask(u, "cum by (filename, line) ", ")", false, &cum, err);

	if (!rc)
		rc = close_up_ask(u, "flat by (filename, line) ", ")", false, &flat, err);
	if (!rc && query_result(cum)->type == RESULT_VECTOR &&
		query_result(flat)->type == RESULT_VECTOR)
		close_up_tell_lines(u, query_result(cum), query_result(flat));
	query_close(flat);
	query_close(cum);
	return rc;
}

/* The link of source_links, where one is configured that needs no labels. */
static void close_up_source(struct close_up *u)
{
	const struct web_options *o = &u->c->w->o;
	struct config *config = o->config ? o->config(o->ctx) : NULL;
	struct buf url = { 0 }, line = { 0 };

	if (config && u->file.len) {
		buf_add_i64(&line, u->line);
		(void)source_links_url(
			&config->source_links, u->file, buf_str(&line), (struct labels){ 0 }, &url);
	}
	if (url.len)
		reply_fact(&u->c->reply, "source", buf_str(&url));
	u->c->reply.failed |= buf_failed(&url) || buf_failed(&line);
	buf_release(&url);
	buf_release(&line);
	config_unref(config);
}

/* ---- the function itself ---- */

static bool close_up_has(struct str name, struct str part)
{
	for (size_t i = 0; i + part.len <= name.len; i++)
		if (str_eq_nocase((struct str){ name.ptr + i, part.len }, part))
			return true;
	return false;
}

/* Names that have the text, which is none itself. */
static enum err_code close_up_tell_near(
	struct close_up *u, const struct top_table *t, struct err *err)
{
	static const char *const columns[] = { "flat", "cum", "function" };
	struct reply *r = &u->c->reply;
	struct nearest near = nearest_to(u->name);
	struct reply_table *to = NULL;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct top_row *row = &t->rows[i];

		nearest_try(&near, row->function);
		if (!close_up_has(row->function, u->name) || n++ >= NEAR_MAX)
			continue;
		if (!to)
			to = reply_table(r, "functions", "functions that have this text", columns, 3);
		reply_cell_amount(r, to, row->flat, u->unit);
		reply_cell_amount(r, to, row->cum, u->unit);
		reply_cell_text(r, to, row->function);
	}
	if (!n)
		return err_set(err, ERR_NOT_FOUND, "no function %s in these profiles%s", QUOTED(u->name),
			DID_YOU_MEAN(&near));
	if (to)
		to->all_n = n;
	reply_notef(r,
		"no function is called %s; these have it in their names: call function again "
		"with one of them",
		QUOTED(u->name));
	return ERR_OK;
}

static void close_up_next(struct close_up *u)
{
	struct buf text;
	struct json j;

	reply_next_begin(&j, &text);
	tool_next_same(u->c, &j, &u->of, &u->window);
	reply_next(&u->c->reply, "compare", &j, "whether it was so before");
}

static enum err_code close_up_find(struct close_up *u, bool *found, struct err *err)
{
	struct tool_places *places = NULL;
	const struct profile_value *p;
	const struct top_table *t;
	struct query *q = NULL;
	enum err_code rc = tool_ask_merged(u->c, &u->window, &u->of, &q, &p, &t, err);

	*found = false;
	if (rc || (rc = tool_places_open(q, p, &u->name, 1, &places, err)))
		goto out;
	u->unit = str_dup(u->c->arena, p->type.sample_unit);
	tool_tell_merged(u->c, &u->of, &u->window, p);
	for (size_t i = 0; i < t->n && !*found; i++) {
		const struct top_row *row = &t->rows[i];

		if (!str_eq(row->function, u->name))
			continue;
		*found = true;
		u->cum = row->cum;
		reply_fact(&u->c->reply, "function", u->name);
		reply_fact(&u->c->reply, "where", tool_place(places, u->c->arena, u->name));
		reply_fact_amount(&u->c->reply, "flat", row->flat, u->unit);
		reply_fact_amount(&u->c->reply, "cum", row->cum, u->unit);
	}
	if (!*found)
		rc = close_up_tell_near(u, t, err);
out:
	tool_places_close(places);
	query_close(q);
	return rc;
}

enum err_code tool_function_run(struct tool_call *c, struct err *err)
{
	struct close_up u = { .c = c,
		.window = { c->now_ns - TOOL_WINDOW_NS, c->now_ns },
		.name = tool_string(c, "function") };
	bool found;
	enum err_code rc;

	if ((rc = tool_read_window(c, "window", "end", &u.window, err)) ||
		(rc = tool_read_profiles(c, "profiles", &u.of, err)) ||
		(rc = close_up_find(&u, &found, err)) || !found)
		return rc;
	if ((rc = close_up_neighbours(&u, true, err)) || (rc = close_up_neighbours(&u, false, err)) ||
		(rc = close_up_lines(&u, err)))
		return rc;
	close_up_source(&u);
	close_up_next(&u);
	return ERR_OK;
}
