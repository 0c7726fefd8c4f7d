/*
 * Shows a plan as a tree of JSON objects, and as text: a line per expression, and lines for what
 * each selector reads.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "promql/plan.h"

/* ---- common to both ---- */

static const char *engine_explain_kind_name(const struct expr *e)
{
	static const char *const names[] = { [EXPR_NUMBER] = "number",
		[EXPR_STRING] = "string",
		[EXPR_SELECTOR] = "selector",
		[EXPR_SUBQUERY] = "subquery",
		[EXPR_UNARY] = "unary",
		[EXPR_BINARY] = "binary",
		[EXPR_CALL] = "call",
		[EXPR_PAREN] = "paren" };

	return e->kind == EXPR_SELECTOR && e->types == VALUE_FRAMES ? "frames" : names[e->kind];
}

static const char *engine_explain_values_name(const struct plan_read *r)
{
	return !r->set             ? "numbers" :
		r->merging.totals_only ? "totals" :
		r->merging.by_name     ? "names of functions" :
								 "stacks";
}

static const char *engine_explain_grouping_name(const struct plan_read *r)
{
	return r->merging.each                      ? "each series" :
		r->merging.grouping == GROUPING_BY      ? "by" :
		r->merging.grouping == GROUPING_WITHOUT ? "without" :
												  "all together";
}

struct children {
	const struct expr *const *v;
	size_t n;
	const struct expr *pair[2];
};

static void children_of(const struct expr *e, struct children *c)
{
	c->v = (const struct expr *const *)c->pair;
	c->n = 0;
	switch (e->kind) {
	case EXPR_PAREN:
		c->pair[c->n++] = e->paren;
		break;
	case EXPR_UNARY:
		c->pair[c->n++] = e->unary.arg;
		break;
	case EXPR_SUBQUERY:
		c->pair[c->n++] = e->subquery.arg;
		break;
	case EXPR_BINARY:
		c->pair[c->n++] = e->binary.lhs;
		c->pair[c->n++] = e->binary.rhs;
		break;
	case EXPR_CALL:
		c->v = (const struct expr *const *)e->call.args;
		c->n = e->call.args_n;
		break;
	case EXPR_NUMBER:
	case EXPR_STRING:
	case EXPR_SELECTOR:
		break;
	}
}

static const struct plan_node *engine_explain_node_of(
	const struct query_plan *p, const struct expr *e)
{
	const struct plan_node *n = p->nodes;

	while (n && n->expr != e)
		n = n->next;
	return n;
}

/* scope: the subquery that e is in. */
static bool engine_explain_reads(
	const struct plan_read *r, const struct expr *e, const struct expr *scope)
{
	return e->kind == EXPR_SELECTOR && e->types != VALUE_FRAMES && r->scope == scope &&
		expr_eq(r->expr, e);
}

/* Of what is below e. */
static const struct expr *engine_explain_scope_below(const struct expr *e, const struct expr *scope)
{
	return e->kind == EXPR_SUBQUERY ? e : scope;
}

/* Each distinct one: types of the columns that are read. */
static bool engine_explain_is_first_of_type(const struct chosen_set *s, size_t i)
{
	for (size_t k = i < 64 ? 0 : i - 64; k < i; k++)
		if (profile_type_eq(&s->v[k].type, &s->v[i].type))
			return false;
	return true;
}

struct source_count {
	const char *name;
	uint64_t n;
};
#define SOURCES 8u

/* Which sources answer, and how many pieces of each there are about. */
static void engine_explain_sources_of(
	const struct sum_estimate *e, struct source_count out[SOURCES])
{
	const struct source_count all[SOURCES] = { { "headRows", e->head_rows },
		{ "chunks", e->chunks }, { "seriesHours", e->series_sums[0] },
		{ "seriesDays", e->series_sums[1] }, { "groupHours", e->group_sums[0] },
		{ "groupDays", e->group_sums[1] }, { "functionHours", e->function_sums[0] },
		{ "functionDays", e->function_sums[1] } };

	memcpy(out, all, sizeof(all));
}

/* ---- JSON ---- */

static void json_seconds(struct json *j, int64_t ns)
{
	char text[40];
	int n = snprintf(text, sizeof(text), "%s%lld.%03lld", ns < 0 ? "-" : "",
		(long long)(ns / 1000000000) * (ns < 0 ? -1 : 1),
		(long long)(ns / 1000000 % 1000) * (ns < 0 ? -1 : 1));

	json_raw(j, (struct str){ text, (size_t)n });
}

static void json_window(struct json *j, const char *key, const struct time_window *w)
{
	json_key(j, key);
	json_array(j);
	json_seconds(j, w->min_ns);
	json_seconds(j, w->max_ns);
	json_array_end(j);
}

static void json_estimate(struct json *j, const struct sum_estimate *e)
{
	struct source_count sources[SOURCES];

	json_object(j);
	json_key(j, "profiles");
	json_u64(j, e->rows);
	json_key(j, "samples");
	json_u64(j, e->samples);
	json_key(j, "bytes");
	json_u64(j, e->bytes);
	json_key(j, "sources");
	json_object(j);
	engine_explain_sources_of(e, sources);
	for (size_t i = 0; i < SOURCES; i++)
		if (sources[i].n) {
			json_key(j, sources[i].name);
			json_u64(j, sources[i].n);
		}
	json_object_end(j);
	json_object_end(j);
}

static void json_set(struct json *j, const struct chosen_set *s)
{
	struct buf text = { 0 };

	json_key(j, "columns");
	json_array(j);
	for (size_t i = 0; i < s->n; i++) {
		if (!engine_explain_is_first_of_type(s, i))
			continue;
		buf_clear(&text);
		profile_type_print(&text, &s->v[i].type);
		json_str(j, buf_str(&text));
	}
	json_array_end(j);
	json_key(j, "sampleLabels");
	json_bool(j, s->by_labels);
	buf_release(&text);
}

static void json_read(struct json *j, const struct query_plan *p, const struct plan_read *r)
{
	const struct selector *s = &r->expr->selector;
	struct buf text = { 0 };

	json_object(j);
	json_key(j, "name");
	json_str(j, s->name);
	json_key(j, "matchers");
	json_array(j);
	for (size_t i = 0; i < s->matchers_n; i++) {
		buf_clear(&text);
		matcher_print(&text, &s->matchers[i]);
		json_str(j, buf_str(&text));
	}
	json_array_end(j);
	buf_release(&text);
	json_key(j, "values");
	json_cstr(j, engine_explain_values_name(r));
	json_key(j, "grouping");
	json_cstr(j, r->set ? engine_explain_grouping_name(r) : "each series");
	json_key(j, "labels");
	json_array(j);
	for (size_t i = 0; i < r->merging.labels.n; i++)
		json_str(j, r->merging.labels.v[i]);
	json_array_end(j);
	json_key(j, "places");
	json_u64(j, r->places);
	json_key(j, "steps");
	json_u64(j, r->steps);
	json_window(j, "first", &r->first);
	json_window(j, "last", &r->last);
	json_key(j, "latest");
	json_bool(j, r->first.latest);
	json_key(j, "series");
	json_u64(j, r->series_n);
	json_key(j, "elements");
	json_u64(j, r->elements);
	if (r->set)
		json_set(j, r->set);
	json_key(j, "estimate");
	json_estimate(j, &r->estimate);
	if (p->analyze) {
		json_key(j, "read");
		json_object(j);
		json_key(j, "times");
		json_u64(j, r->reads);
		json_key(j, "profiles");
		json_u64(j, r->profiles);
		json_key(j, "samples");
		json_u64(j, r->samples);
		json_key(j, "seconds");
		json_double(j, (double)r->took_ns / 1e9);
		json_object_end(j);
	}
	json_object_end(j);
}

static void json_expr(
	struct json *j, const struct query_plan *p, const struct expr *e, const struct expr *scope)
{
	const struct plan_node *node = engine_explain_node_of(p, expr_strip(e));
	struct buf text = { 0 };
	struct children c;

	json_object(j);
	json_key(j, "expression");
	expr_print(&text, e);
	json_str(j, buf_str(&text));
	json_key(j, "kind");
	json_cstr(j, engine_explain_kind_name(e));
	buf_clear(&text);
	value_types_print(&text, e->types);
	json_key(j, "type");
	json_str(j, buf_str(&text));
	buf_release(&text);
	if (node && e->kind != EXPR_PAREN) {
		json_key(j, "times");
		json_u64(j, node->n);
		json_key(j, "seconds");
		json_double(j, (double)node->took_ns / 1e9);
	}
	if (e->kind == EXPR_SELECTOR && e->types != VALUE_FRAMES) {
		json_key(j, "reads");
		json_array(j);
		for (const struct plan_read *r = p->reads; r; r = r->next)
			if (engine_explain_reads(r, e, scope))
				json_read(j, p, r);
		json_array_end(j);
	}
	children_of(e, &c);
	if (c.n) {
		json_key(j, "children");
		json_array(j);
		for (size_t i = 0; i < c.n; i++)
			json_expr(j, p, c.v[i], engine_explain_scope_below(e, scope));
		json_array_end(j);
	}
	json_object_end(j);
}

void plan_json(struct json *j, const struct parsed *parsed, const struct query_plan *p)
{
	struct err refused;

	json_object(j);
	json_key(j, "tree");
	json_expr(j, p, parsed->root, NULL);
	json_key(j, "estimate");
	json_estimate(j, &p->all);
	json_key(j, "seriesSteps");
	json_u64(j, p->series_steps);
	json_key(j, "memoryBytes");
	json_u64(j, p->memory_bytes);
	json_key(j, "limits");
	json_object(j);
	json_key(j, "samples");
	json_u64(j, p->samples_max);
	json_key(j, "memoryBytes");
	json_u64(j, p->memory_bytes_max);
	json_object_end(j);
	if (plan_check(p, &refused)) {
		json_key(j, "refused");
		json_cstr(j, refused.msg);
	}
	json_object_end(j);
}

/* ---- text ---- */

static void engine_explain_print_time(struct buf *out, int64_t ns)
{
	if (ns < 0)
		buf_add_cstr(out, "the beginning");
	else
		time_print_rfc3339(out, ns);
}

static void engine_explain_print_window(struct buf *out, const struct time_window *w)
{
	buf_add_char(out, '(');
	engine_explain_print_time(out, w->min_ns);
	buf_add_cstr(out, ", ");
	engine_explain_print_time(out, w->max_ns);
	buf_add_char(out, ']');
}

static void engine_explain_print_sources(struct buf *out, const struct sum_estimate *e)
{
	static const char *const names[SOURCES] = { "rows of the head", "chunks", "hours of series",
		"days of series", "hours of groups", "days of groups", "hours of functions",
		"days of functions" };
	struct source_count sources[SOURCES];

	engine_explain_sources_of(e, sources);
	for (size_t i = 0; i < SOURCES; i++)
		if (sources[i].n)
			buf_printf(out, ", %llu %s", (unsigned long long)sources[i].n, names[i]);
}

static void engine_explain_indent(struct buf *out, unsigned depth)
{
	buf_printf(out, "%*s", (int)depth * 2, "");
}

static void engine_explain_print_read(
	struct buf *out, const struct query_plan *p, const struct plan_read *r, unsigned depth)
{
	const struct sum_estimate *e = &r->estimate;

	engine_explain_indent(out, depth);
	buf_printf(out, "reads %s of %llu series, ", engine_explain_values_name(r),
		(unsigned long long)r->series_n);
	buf_add_cstr(out, r->set ? engine_explain_grouping_name(r) : "each series");
	for (size_t i = 0; i < r->merging.labels.n; i++)
		buf_printf(out, "%s" STR_FMT, i ? ", " : " (", STR_ARG(r->merging.labels.v[i]));
	buf_add_cstr(out, r->merging.labels.n ? ")" : "");
	buf_printf(out, ": %llu elements%s\n", (unsigned long long)r->elements,
		r->places > 1 ? ", shared with an equal selector" : "");
	engine_explain_indent(out, depth);
	buf_add_cstr(out, r->first.latest ? "the latest in " : "in ");
	engine_explain_print_window(out, &r->first);
	if (r->steps > 1) {
		buf_printf(out, " and %llu more, to ", (unsigned long long)r->steps - 1);
		engine_explain_print_window(out, &r->last);
	}
	buf_add_cstr(out, "\n");
	engine_explain_indent(out, depth);
	buf_printf(out, "about %llu profiles, %llu samples, %llu bytes", (unsigned long long)e->rows,
		(unsigned long long)e->samples, (unsigned long long)e->bytes);
	engine_explain_print_sources(out, e);
	buf_add_cstr(out, "\n");
	if (!p->analyze)
		return;
	engine_explain_indent(out, depth);
	buf_printf(out, "read %llu times: %llu profiles, %llu samples, %.3f s\n",
		(unsigned long long)r->reads, (unsigned long long)r->profiles,
		(unsigned long long)r->samples, (double)r->took_ns / 1e9);
}

static void engine_explain_print_expr(struct buf *out, const struct query_plan *p,
	const struct expr *e, const struct expr *scope, unsigned depth)
{
	const struct plan_node *node = engine_explain_node_of(p, e);
	struct children c;

	if (e->kind == EXPR_PAREN) {
		engine_explain_print_expr(out, p, e->paren, scope, depth);
		return;
	}
	engine_explain_indent(out, depth);
	expr_print(out, e);
	buf_add_cstr(out, "  # ");
	value_types_print(out, e->types);
	if (node)
		buf_printf(
			out, ", %llu times, %.3f s", (unsigned long long)node->n, (double)node->took_ns / 1e9);
	buf_add_char(out, '\n');
	for (const struct plan_read *r = p->reads; r; r = r->next)
		if (engine_explain_reads(r, e, scope))
			engine_explain_print_read(out, p, r, depth + 1);
	children_of(e, &c);
	for (size_t i = 0; i < c.n; i++)
		engine_explain_print_expr(out, p, c.v[i], engine_explain_scope_below(e, scope), depth + 1);
}

void plan_print(struct buf *out, const struct parsed *parsed, const struct query_plan *p)
{
	struct err refused;

	engine_explain_print_expr(out, p, parsed->root, NULL, 0);
	buf_printf(out, "all: about %llu samples of %llu, %llu bytes",
		(unsigned long long)p->all.samples, (unsigned long long)p->samples_max,
		(unsigned long long)p->all.bytes);
	engine_explain_print_sources(out, &p->all);
	buf_add_char(out, '\n');
	if (plan_check(p, &refused))
		buf_printf(out, "refused: %s\n", refused.msg);
}
