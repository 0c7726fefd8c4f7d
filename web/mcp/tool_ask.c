/* Queries of tools, and what their replies share. */
#include <stdarg.h>

#include "base/clock.h"
#include "base/quote.h"
#include "promql/engine/engine.h"
#include "web/mcp/tool.h"
#include "web/render/frame_origin.h"

enum err_code tool_ask(struct tool_call *c, const struct tool_window *window, bool tables,
	struct str text, struct query **out, struct err *err)
{
	struct query_options o = { .text = text,
		.t_ns = window->end_ns,
		.has_span = true,
		.start_ns = window->start_ns,
		.end_ns = window->end_ns,
		.tables = tables,
		.rows_only = tables,
		.hints = true };
	const struct result *r;
	enum err_code rc;

	o.limits = c->in->user.limits;
	if ((rc = query_run_cancelable(c->w->o.engine, &o, &c->in->canceled, out, err)))
		return rc;
	r = query_result(*out);
	for (size_t i = 0; i < r->warnings_n; i++)
		reply_note(&c->reply, r->warnings[i]);
	for (size_t i = 0; i < r->infos_n; i++)
		reply_note(&c->reply, r->infos[i]);
	return ERR_OK;
}

enum err_code tool_askf(struct tool_call *c, const struct tool_window *window, bool tables,
	struct query **out, struct err *err, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !(text = arena_alloc_raw(c->arena, (size_t)n + 1, 1)))
		return arena_fail(c->arena, "query", err);
	va_start(ap, fmt);
	vsnprintf(text, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return tool_ask(c, window, tables, str_of(text), out, err);
}

enum err_code tool_ask_merged(struct tool_call *c, const struct tool_window *window,
	const struct tool_profiles *of, struct query **out, const struct profile_value **profile,
	const struct top_table **table, struct err *err)
{
	const struct result *r;
	enum err_code rc;

	if ((rc = tool_askf(
			 c, window, table != NULL, out, err, "merge(" STR_FMT ")", STR_ARG(of->text))))
		return rc;
	r = query_result(*out);
	if (r->type != RESULT_PROFILES)
		return err_set(err, ERR_INVALID, "%s gives numbers, not profiles", QUOTED(of->text));
	if (!r->n)
		return err_set(err, ERR_NOT_FOUND, "no profiles of %s in the window", QUOTED(of->text));
	*profile = &r->profiles[0];
	if (table)
		*table = &r->tops[0];
	return ERR_OK;
}

/* ---- parts of replies ---- */

/* Whole seconds are written without milliseconds. */
static void tool_print_time(struct buf *b, int64_t ns)
{
	size_t at = b->len;

	time_print_rfc3339(b, ns);
	if (str_has_suffix((struct str){ b->ptr + at, b->len - at }, STR(".000Z"))) {
		b->len -= sizeof(".000Z") - 1;
		buf_add_char(b, 'Z');
	}
}

void tool_tell_window(struct tool_call *c, const char *name, const struct tool_window *window)
{
	struct buf b = { 0 };

	tool_print_time(&b, window->start_ns);
	buf_add_cstr(&b, " to ");
	tool_print_time(&b, window->end_ns);
	reply_fact(&c->reply, name, buf_str(&b));
	c->reply.failed |= buf_failed(&b);
	buf_release(&b);
}

void tool_tell_merged(struct tool_call *c, const struct tool_profiles *of,
	const struct tool_window *window, const struct profile_value *p)
{
	struct reply *r = &c->reply;

	reply_fact(r, "profiles", of->text);
	tool_tell_window(c, "window", window);
	reply_fact(r, "unit", p->type.sample_unit);
	reply_fact_amount(r, "total", p->total, p->type.sample_unit);
	reply_fact_whole(r, "merged", p->profiles);
}

void tool_next_same(struct tool_call *c, struct json *j, const struct tool_profiles *of,
	const struct tool_window *window)
{
	struct buf b = { 0 };

	json_key(j, "profiles");
	json_str(j, of->text);
	buf_printf(
		&b, "%llds", (long long)((window->end_ns - window->start_ns + NS_PER_S - 1) / NS_PER_S));
	json_key(j, "window");
	json_str(j, buf_str(&b));
	buf_clear(&b);
	tool_print_time(&b, window->end_ns);
	json_key(j, "end");
	json_str(j, buf_str(&b));
	c->reply.failed |= buf_failed(&b);
	buf_release(&b);
}

/* ---- where functions are ---- */

struct tool_places {
	struct frame_tree tree; /* of names alone */
	struct frame_origin *origins;
};

enum err_code tool_places_open(struct query *q, const struct profile_value *p,
	const struct str *names, size_t n, struct tool_places **out, struct err *err)
{
	struct arena *a = query_arena(q);
	struct tool_places *places = arena_new(a, struct tool_places);
	uint32_t id;
	enum err_code rc;

	if (!places)
		return arena_fail(a, "places", err);
	if ((rc = frame_tree_init(&places->tree, a, err)))
		return rc;
	places->tree.canceled = query_stop_flag(q);
	for (size_t i = 0; i < n && !rc; i++)
		rc = frame_tree_intern(&places->tree, names[i], &id, err);
	if (!rc)
		rc = frame_origins(&places->tree, p, &places->origins, err);
	if (rc)
		tool_places_close(places);
	else
		*out = places;
	return rc;
}

struct str tool_place(const struct tool_places *p, struct arena *a, struct str name)
{
	uint32_t id = frame_tree_name(&p->tree, name);
	const struct frame_origin *o = id == MAP_NONE ? NULL : &p->origins[id];
	char *text;

	if (!o || !o->file.len)
		return STR("");
	text = o->line > 0 ? arena_printf(a, STR_FMT ":%lld", STR_ARG(o->file), (long long)o->line) :
						 arena_strndup(a, o->file.ptr, o->file.len);
	return text ? str_of(text) : STR("");
}

void tool_places_close(struct tool_places *p)
{
	if (p)
		frame_tree_release(&p->tree);
}

struct str *tool_row_names(const struct top_table *t, size_t n, struct arena *a)
{
	struct str *names = arena_array(a, struct str, n + 1);

	for (size_t i = 0; i < n && names; i++)
		names[i] = t->rows[i].function;
	return names;
}
