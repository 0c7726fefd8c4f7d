/* services: what is profiled, by the questions that the page's Services asks. */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/quote.h"
#include "promql/engine/engine.h"
#include "promql/syntax/type_names.h"
#include "proto/annotation.h"
#include "web/mcp/tool.h"
#include "web/router/strings.h"

#define SERVICES_MAX 2000u
#define KINDS_MAX 16u /* profiles that are counted by service */

enum service_cost { SERVICE_CORES, SERVICE_MEMORY, SERVICE_TASKS, SERVICE_COSTS };

struct service {
	struct str name;
	double cost[SERVICE_COSTS]; /* negative: none */
	struct buf kinds; /* "cpu 90, mutex 90" */
	struct str kind; /* the first of them */
};

struct service_list {
	struct tool_call *c;
	struct tool_window window;
	struct str by; /* as the language has it */
	struct str label;
	struct service *v;
	size_t n, cap;
	struct router_strings kinds; /* names of profiles */
	bool has[SERVICE_COSTS];
	size_t over; /* services beyond the limit */
};

/* NULL: memory ran out, or there are too many. */
static struct service *service_of(struct service_list *l, struct str name)
{
	struct service *s;

	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i].name, name))
			return &l->v[i];
	if (l->n == SERVICES_MAX) {
		l->over++;
		return NULL;
	}
	if (!arena_array_room(l->c->arena, &l->v, l->n, 1, &l->cap)) {
		l->c->reply.failed = true;
		return NULL;
	}
	s = &l->v[l->n++];
	*s = (struct service){ .name = str_dup(l->c->arena, name), .cost = { -1, -1, -1 } };
	return s;
}

/* ---- what there is ---- */

static enum err_code service_note_types(
	struct service_list *l, const struct profile_type *types, size_t n, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < n && !rc; i++) {
		struct str name, type;

		if (str_is(types[i].name, ANNOTATION_NAME))
			continue;
		type_short_name(&types[i], &name, &type);
		l->has[SERVICE_CORES] |= str_is(name, "cpu") && !type.len;
		l->has[SERVICE_MEMORY] |= str_is(name, "memory") && !type.len;
		l->has[SERVICE_TASKS] |= str_is(name, "goroutine");
		rc = strings_add(&l->kinds, l->c->arena, &types[i].name, 1, err);
	}
	strings_unique(&l->kinds);
	return rc;
}

static enum err_code service_find_types(struct service_list *l, struct err *err)
{
	struct tool_call *c = l->c;
	struct profile_type *types;
	struct db_querier *q = NULL;
	size_t n = 0;
	enum err_code rc = db_querier_open_limited(c->w->o.db, c->in->user.limits, l->window.start_ns,
		l->window.end_ns, &c->in->canceled, &q, err);

	if (!rc)
		rc = db_profile_types(q, c->arena, &types, &n, err);
	if (!rc)
		rc = service_note_types(l, types, n, err);
	db_querier_close(q);
	return rc;
}

/* ---- what it costs ---- */

static enum err_code service_ask_cost(
	struct service_list *l, enum service_cost cost, struct str query, struct err *err)
{
	struct query *q = NULL;
	struct service *s;
	enum err_code rc = tool_askf(l->c, &l->window, false, &q, err,
		"total(merge by (" STR_FMT ") (" STR_FMT "))", STR_ARG(l->by), STR_ARG(query));
	const struct result *r = rc ? NULL : query_result(q);

	for (size_t i = 0; r && r->type == RESULT_VECTOR && i < r->n; i++)
		if ((s = service_of(l, labels_get(r->vector[i].metric, l->label))))
			s->cost[cost] = r->vector[i].value;
	query_close(q);
	return rc;
}

static enum err_code service_ask_costs(struct service_list *l, struct err *err)
{
	char *cpu = arena_printf(l->c->arena, "mean_rate(cpu[%llds])",
		(long long)((l->window.end_ns - l->window.start_ns + NS_PER_S - 1) / NS_PER_S));
	enum err_code rc = cpu ? ERR_OK : arena_fail(l->c->arena, "services", err);

	if (!rc && l->has[SERVICE_CORES])
		rc = service_ask_cost(l, SERVICE_CORES, str_of(cpu), err);
	if (!rc && l->has[SERVICE_MEMORY])
		rc = service_ask_cost(l, SERVICE_MEMORY, STR("memory"), err);
	if (!rc && l->has[SERVICE_TASKS])
		rc = service_ask_cost(l, SERVICE_TASKS, STR("goroutine"), err);
	return rc;
}

/* How many profiles of this name each has. */
static enum err_code service_ask_kind(struct service_list *l, struct str kind, struct err *err)
{
	struct buf text = { 0 };
	struct query *q = NULL;
	const struct result *r;
	struct service *s;
	struct str shown = str_is(kind, "process_cpu") ? STR("cpu") : kind;
	enum err_code rc;

	buf_printf(&text, "sum by (" STR_FMT ") (count_over_time({__name__=", STR_ARG(l->by));
	buf_add_quoted(&text, kind);
	buf_printf(&text, "}[%llds]))",
		(long long)((l->window.end_ns - l->window.start_ns + NS_PER_S - 1) / NS_PER_S));
	rc = buf_failed(&text) ? err_nomem(err, "services") :
							 tool_ask(l->c, &l->window, false, buf_str(&text), &q, err);
	r = rc ? NULL : query_result(q);
	for (size_t i = 0; r && r->type == RESULT_VECTOR && i < r->n; i++) {
		if (!(s = service_of(l, labels_get(r->vector[i].metric, l->label))))
			continue;
		buf_printf(&s->kinds, "%s" STR_FMT " %.0f", s->kinds.len ? ", " : "", STR_ARG(shown),
			r->vector[i].value);
		if (!s->kind.len || str_is(shown, "cpu"))
			s->kind = shown;
	}
	buf_release(&text);
	query_close(q);
	return rc;
}

/* ---- the answer ---- */

static int service_cmp(const void *pa, const void *pb)
{
	const struct service *a = pa, *b = pb;

	for (size_t i = 0; i < SERVICE_COSTS; i++)
		if (a->cost[i] != b->cost[i])
			return a->cost[i] < b->cost[i] ? 1 : -1;
	return str_cmp(a->name, b->name);
}

static void service_tell_cost(
	struct reply *r, struct reply_table *t, enum service_cost cost, double value)
{
	if (value < 0)
		reply_cell_none(r, t);
	else if (cost == SERVICE_CORES)
		reply_cell_number(r, t, round(value / 1e6) / 1e3);
	else if (cost == SERVICE_MEMORY)
		reply_cell_amount(r, t, (int64_t)value, STR("bytes"));
	else
		reply_cell_whole(r, t, (int64_t)value);
}

static void service_tell(struct service_list *l)
{
	static const char *const columns[] = { "cores", "memory", "goroutines", "service", "profiles" };
	struct reply *r = &l->c->reply;
	struct reply_table *t = reply_table(r, "services", "services", columns, 5);

	for (size_t i = 0; i < l->n; i++) {
		struct service *s = &l->v[i];

		for (int cost = 0; cost < SERVICE_COSTS; cost++)
			service_tell_cost(r, t, cost, s->cost[cost]);
		reply_cell_text(r, t, s->name.len ? s->name : STR("(none)"));
		reply_cell_text(r, t, buf_str(&s->kinds));
		r->failed |= buf_failed(&s->kinds);
	}
	if (t)
		t->all_n = l->n;
	if (l->over)
		reply_notef(r, "more than %u services: the others are not counted", SERVICES_MAX);
}

static void service_next(struct service_list *l)
{
	struct reply *r = &l->c->reply;
	struct tool_profiles of;
	struct buf name = { 0 }, text;
	struct json j;

	if (!l->n || !l->v[0].kind.len)
		return;
	buf_add_str(&name, l->v[0].kind);
	buf_printf(&name, "{" STR_FMT "=", STR_ARG(l->by));
	buf_add_quoted(&name, l->v[0].name);
	buf_add_char(&name, '}');
	of = (struct tool_profiles){ .text = buf_str(&name) };
	reply_next_begin(&j, &text);
	tool_next_same(l->c, &j, &of, &l->window);
	reply_next(r, "top", &j, "its most expensive functions");
	reply_next_begin(&j, &text);
	tool_next_same(l->c, &j, &of, &l->window);
	reply_next(r, "compare", &j, "what changed against the window before");
	r->failed |= buf_failed(&name);
	buf_release(&name);
}

static enum err_code service_read(struct service_list *l, struct err *err)
{
	struct str label = tool_string(l->c, "by");
	struct buf by = { 0 };

	l->label = label.len ? label : STR(LABEL_SERVICE);
	if (!any_name_valid(l->label))
		return err_set(err, ERR_INVALID, "argument by must be the name of a label");
	if (label_name_valid(l->label))
		buf_add_str(&by, l->label);
	else
		buf_add_quoted(&by, l->label);
	l->by = str_dup(l->c->arena, buf_str(&by));
	l->c->reply.failed |= buf_failed(&by) || !l->by.ptr;
	buf_release(&by);
	return tool_read_window(l->c, "window", "end", &l->window, err);
}

enum err_code tool_services_run(struct tool_call *c, struct err *err)
{
	struct service_list l = { .c = c, .window = { c->now_ns - TOOL_WINDOW_NS, c->now_ns } };
	enum err_code rc;

	if ((rc = service_read(&l, err)) || (rc = service_find_types(&l, err)) ||
		(rc = service_ask_costs(&l, err)))
		goto out;
	for (size_t i = 0; i < l.kinds.n && i < KINDS_MAX && !rc; i++)
		rc = service_ask_kind(&l, l.kinds.v[i], err);
	if (rc)
		goto out;
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), service_cmp);
	tool_tell_window(c, "window", &l.window);
	reply_fact(&c->reply, "by", l.label);
	service_tell(&l);
	if (!l.n)
		reply_notef(&c->reply,
			"no profiles in this window: take a longer one (window), or one that "
			"ends earlier (end)");
	service_next(&l);
out:
	for (size_t i = 0; i < l.n; i++)
		buf_release(&l.v[i].kinds);
	return rc;
}
