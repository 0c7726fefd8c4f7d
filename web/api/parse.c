/*
 * Queries as text and as trees. parse_query answers in the shape of Prometheus's: the same node
 * types and fields. Extensions of PromQL are in further fields (position and valueTypes; modifier
 * and labels of calls) and in one further node, frameMatchers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "promql/syntax/check.h"
#include "promql/syntax/functions.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

static void api_write_node(struct json *j, const struct expr *e);

static void api_write_names(struct json *j, const char *key, struct name_list l)
{
	json_key(j, key);
	json_array(j);
	for (size_t i = 0; i < l.n; i++)
		json_str(j, l.v[i]);
	json_array_end(j);
}

/* As Go's FormatFloat(v, 'f', -1, 64): the shortest that reads back, without an exponent. */
static void api_write_number(struct json *j, double value)
{
	char text[512];
	int digits = 0;

	if (isnan(value) || isinf(value)) {
		json_cstr(j, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
		return;
	}
	do
		snprintf(text, sizeof(text), "%.*f", digits, value);
	while (strtod(text, NULL) != value && digits++ < 400);
	json_cstr(j, text);
}

static void api_write_matchers(struct json *j, const struct selector *s)
{
	static const char *const ops[] = {
		[MATCH_EQ] = "=", [MATCH_NE] = "!=", [MATCH_RE] = "=~", [MATCH_NRE] = "!~"
	};

	json_key(j, "matchers");
	json_array(j);
	for (size_t i = 0; i <= s->matchers_n; i++) {
		bool is_name = i == s->matchers_n;
		const struct matcher *m = is_name ? NULL : &s->matchers[i];

		if (is_name && !s->name.len)
			break;
		json_object(j);
		json_key(j, "name");
		json_str(j, is_name ? STR(LABEL_NAME) : m->name);
		json_key(j, "value");
		json_str(j, is_name ? s->name : m->value);
		json_key(j, "type");
		json_cstr(j, is_name ? "=" : ops[m->op]);
		json_object_end(j);
	}
	json_array_end(j);
}

static void api_write_offset(struct json *j, const struct time_shift *s)
{
	json_key(j, "offset");
	json_i64(j, s->offset_ns / NS_PER_MS);
}

static void api_write_at(struct json *j, const struct time_shift *s)
{
	json_key(j, "timestamp");
	if (s->at == AT_TIME)
		json_i64(j, s->at_ns / NS_PER_MS);
	else
		json_null(j);
	json_key(j, "startOrEnd");
	if (s->at == AT_START || s->at == AT_END)
		json_cstr(j, s->at == AT_START ? "start" : "end");
	else
		json_null(j);
}

static void api_write_selector(struct json *j, const struct selector *s)
{
	json_key(j, "name");
	json_str(j, s->name);
	if (s->window_ns) {
		json_key(j, "range");
		json_i64(j, s->window_ns / NS_PER_MS);
	}
	api_write_offset(j, &s->shift);
	api_write_matchers(j, s);
	api_write_at(j, &s->shift);
}

static void api_write_subquery(struct json *j, const struct subquery *s)
{
	json_key(j, "expr");
	api_write_node(j, s->arg);
	json_key(j, "range");
	json_i64(j, s->range_ns / NS_PER_MS);
	json_key(j, "step");
	json_i64(j, s->step_ns / NS_PER_MS);
	api_write_offset(j, &s->shift);
	api_write_at(j, &s->shift);
}

/* ---- calls ---- */

/* Prometheus's names of types; alternatives have a bar between them. */
static void api_parse_write_types(struct json *j, unsigned types, bool is_window)
{
	static const struct {
		unsigned type;
		const char *name;
	} names[] = {
		{ VALUE_SCALAR, "scalar" },
		{ VALUE_STRING, "string" },
		{ VALUE_COSTS, "vector" },
		{ VALUE_PROFILES, "profiles" },
		{ VALUE_TABLE, "table" },
		{ VALUE_FRAMES, "frames" },
		{ VALUE_RANGE, "matrix" },
	};
	struct buf text = { 0 };

	if (is_window) {
		json_cstr(j, "matrix");
		return;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (types & names[i].type)
			buf_printf(&text, "%s%s", text.len ? "|" : "", names[i].name);
	json_str(j, buf_str(&text));
	buf_release(&text);
}

static void api_parse_write_function(struct json *j, const struct function *f)
{
	unsigned slots = f->args_max < FUNCTION_ARGS ? f->args_max : FUNCTION_ARGS;

	json_key(j, "func");
	json_object(j);
	json_key(j, "name");
	json_cstr(j, f->name);
	json_key(j, "argTypes");
	json_array(j);
	for (unsigned i = 0; i < slots && f->args[i]; i++)
		api_parse_write_types(j, f->args[i], f->args[i] & ARG_WINDOW);
	json_array_end(j);
	/* The number of arguments that may be left out; -1: any number may follow. */
	json_key(j, "variadic");
	json_i64(j, f->args_max > FUNCTION_ARGS ? -1 : (int64_t)(f->args_max - f->args_min));
	json_key(j, "returnType");
	api_parse_write_types(j, f->result, false);
	json_object_end(j);
}

static void api_write_aggregation(struct json *j, const struct call *c)
{
	json_key(j, "op");
	json_str(j, c->name);
	json_key(j, "expr");
	api_write_node(j, c->args[c->args_n - 1]);
	json_key(j, "param");
	if (c->args_n > 1)
		api_write_node(j, c->args[0]);
	else
		json_null(j);
	api_write_names(j, "grouping", c->labels);
	json_key(j, "without");
	json_bool(j, c->grouping == GROUPING_WITHOUT);
}

static void api_write_call(struct json *j, const struct call *c)
{
	static const char *const modifiers[] = { [GROUPING_BY] = "by",
		[GROUPING_WITHOUT] = "without",
		[GROUPING_ON] = "on",
		[GROUPING_IGNORING] = "ignoring" };

	api_parse_write_function(j, c->fn);
	json_key(j, "args");
	json_array(j);
	for (size_t i = 0; i < c->args_n; i++)
		api_write_node(j, c->args[i]);
	json_array_end(j);
	if (c->grouping == GROUPING_NONE)
		return;
	json_key(j, "modifier");
	json_cstr(j, modifiers[c->grouping]);
	api_write_names(j, "labels", c->labels);
}

/* ---- operators ---- */

static void api_write_binary(struct json *j, const struct binary *b)
{
	static const char *const cards[] = { [CARD_ONE_TO_ONE] = "one-to-one",
		[CARD_GROUP_LEFT] = "many-to-one",
		[CARD_GROUP_RIGHT] = "one-to-many" };

	json_key(j, "op");
	json_cstr(j, binary_op_name(b->op));
	json_key(j, "lhs");
	api_write_node(j, b->lhs);
	json_key(j, "rhs");
	api_write_node(j, b->rhs);
	json_key(j, "matching");
	if (b->lhs->types == VALUE_SCALAR || b->rhs->types == VALUE_SCALAR) {
		json_null(j);
	} else {
		json_object(j);
		json_key(j, "card");
		json_cstr(j, binary_op_is_set(b->op) ? "many-to-many" : cards[b->card]);
		api_write_names(j, "labels", b->labels);
		json_key(j, "on");
		json_bool(j, b->matching == GROUPING_ON);
		api_write_names(j, "include", b->include);
		json_object_end(j);
	}
	json_key(j, "bool");
	json_bool(j, b->returns_bool);
}

/* ---- nodes ---- */

static const char *api_node_type(const struct expr *e)
{
	switch (e->kind) {
	case EXPR_NUMBER:
		return "numberLiteral";
	case EXPR_STRING:
		return "stringLiteral";
	case EXPR_SELECTOR:
		return e->types == VALUE_FRAMES ? "frameMatchers" :
			e->selector.window_ns != 0  ? "matrixSelector" :
										  "vectorSelector";
	case EXPR_SUBQUERY:
		return "subquery";
	case EXPR_UNARY:
		return "unaryExpr";
	case EXPR_BINARY:
		return "binaryExpr";
	case EXPR_CALL:
		/* merge() groups as an aggregation does, and has no other form in Prometheus. */
		return e->call.fn->flags & FUNCTION_AGGREGATION || e->call.fn->id == FN_MERGE ?
			"aggregation" :
			"call";
	case EXPR_PAREN:
		return "parenExpr";
	}
	return "";
}

static void api_write_fields(struct json *j, const struct expr *e)
{
	switch (e->kind) {
	case EXPR_NUMBER:
		json_key(j, "val");
		api_write_number(j, e->number);
		break;
	case EXPR_STRING:
		json_key(j, "val");
		json_str(j, e->string);
		break;
	case EXPR_SELECTOR:
		if (e->types == VALUE_FRAMES)
			api_write_matchers(j, &e->selector);
		else
			api_write_selector(j, &e->selector);
		break;
	case EXPR_SUBQUERY:
		api_write_subquery(j, &e->subquery);
		break;
	case EXPR_UNARY:
		json_key(j, "op");
		json_cstr(j, e->unary.negative ? "-" : "+");
		json_key(j, "expr");
		api_write_node(j, e->unary.arg);
		break;
	case EXPR_BINARY:
		api_write_binary(j, &e->binary);
		break;
	case EXPR_CALL:
		if (!strcmp(api_node_type(e), "aggregation"))
			api_write_aggregation(j, &e->call);
		else
			api_write_call(j, &e->call);
		break;
	case EXPR_PAREN:
		json_key(j, "expr");
		api_write_node(j, e->paren);
		break;
	}
}

static void api_write_node(struct json *j, const struct expr *e)
{
	json_object(j);
	json_key(j, "type");
	json_cstr(j, api_node_type(e));
	api_write_fields(j, e);
	json_key(j, "valueTypes");
	api_parse_write_types(j, e->types, false);
	json_key(j, "position");
	json_object(j);
	json_key(j, "start");
	json_u64(j, e->at.start);
	json_key(j, "end");
	json_u64(j, e->at.end);
	json_object_end(j);
	json_object_end(j);
}

/* ---- handlers ---- */

static void api_parse_answer(struct http_in *in, struct http_out *out,
	void (*write)(struct json *j, const struct expr *root))
{
	struct parsed *parsed = NULL;
	struct json j;
	struct err err;
	enum err_code rc = parse_query(&in->arena, http_param(in, "query"), &parsed, NULL, &err);

	if (!rc)
		rc = check_query(parsed, NULL, &err);
	if (rc) {
		api_fail(out, rc, &err);
	} else {
		api_begin(out, &j);
		write(&j, parsed->root);
		api_end(&j, NULL, 0, NULL, 0);
	}
	parsed_release(parsed);
}

void api_parse_query(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)w;
	api_parse_answer(in, out, api_write_node);
}

static void api_parse_write_text(struct json *j, const struct expr *root)
{
	struct buf text = { 0 };

	expr_print_pretty(&text, root);
	json_str(j, buf_str(&text));
	buf_release(&text);
}

void api_format_query(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)w;
	api_parse_answer(in, out, api_parse_write_text);
}
