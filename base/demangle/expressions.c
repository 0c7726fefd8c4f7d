/*
 * Reads template arguments and expressions. Expressions are only read to find their end, and the
 * candidates for substitution in them.
 */
#include <string.h>

#include "base/demangle/cpp.h"

static struct node *demangle_text_node(struct reading *r, const char *text)
{
	return node_new(r, NODE_TEXT, NULL, str_of(text));
}

static bool demangle_is_text(const struct node *n, const char *text)
{
	return n && n->kind == NODE_TEXT && str_is(n->text, text);
}

/* ---- template arguments ---- */

struct node *demangle_read_arguments(struct reading *r)
{
	struct node *n = node_new(r, NODE_PACK, NULL, STR(""));

	r->at++; /* I, J */
	while (!r->failed && !reading_take(r, 'E')) {
		node_add(r, n, demangle_read_argument(r, n));
		if (!r->failed && reading_peek(r, 0) == 'Q') {
			demangle_read_constraint(r);
			if (reading_peek(r, 0) != 'E')
				r->failed = true;
		}
	}
	return r->failed ? NULL : n;
}

/* Literals of these types need no value. */
static bool demangle_may_be_empty(const struct node *type)
{
	if (type->kind == NODE_CV)
		type = type->a;
	return type->kind == NODE_LAMBDA || type->kind == NODE_ARRAY ||
		demangle_is_text(type, "decltype(nullptr)");
}

static struct node *demangle_read_primary(struct reading *r)
{
	struct node *n;

	r->at++; /* L */
	if (reading_peek(r, 0) == '_' || reading_peek(r, 0) == 'Z') {
		reading_take(r, '_');
		if (!reading_expect(r, 'Z'))
			return NULL;
		n = demangle_read_encoding(r, false);
	} else {
		n = demangle_read_type(r, false);
		reading_take(r, 'n');
		if (!r->failed && reading_peek(r, 0) == 'E' && !demangle_may_be_empty(n))
			return reading_fail(r);
		while (!r->failed && r->at < r->end && reading_peek(r, 0) != 'E')
			r->at++;
		n = demangle_text_node(r, "");
	}
	return reading_expect(r, 'E') ? n : NULL;
}

struct node *demangle_read_argument(struct reading *r, struct node *before)
{
	char c = reading_peek(r, 0), c2 = reading_peek(r, 1);
	struct node *n = NULL, *value, *scope;

	if (!reading_enter(r))
		return NULL;
	if (c == 'X') {
		r->at++;
		n = demangle_read_expression(r);
		reading_expect(r, 'E');
	} else if (c == 'L') {
		n = demangle_read_primary(r);
	} else if (c == 'I' || c == 'J') {
		n = demangle_read_arguments(r);
	} else if (c == 'T' && c2 && strchr("yntpk", c2)) {
		/* The declared type may refer to the arguments before it. */
		scope = node_new(r, NODE_TEMPLATE, NULL, STR(""));
		if (scope && before) {
			scope->list = before->list;
			scope->n = before->n;
		}
		if (r->scopes_n == DEMANGLE_SCOPES_MAX) {
			r->failed = true;
		} else {
			r->scopes[r->scopes_n++] = scope;
			demangle_read_declaration(r, &value);
			r->scopes_n--;
		}
		n = demangle_read_argument(r, NULL);
	} else {
		n = demangle_read_type(r, false);
	}
	r->depth--;
	return r->failed ? NULL : n;
}

static struct node *demangle_declared_name(struct reading *r, unsigned kind)
{
	static const char *const names[] = { "$T", "$N", "$TT" };
	int i = r->declared[kind]++;

	return node_new(r, NODE_TEXT, NULL,
		i ? reading_printf(r, "%s%d", names[kind], i - 1) : str_of(names[kind]));
}

/* Ty, Tk NAME, Tn TYPE, Tt ... E, Tp DECLARATION; NULL without failure: it is none of these. */
struct node *demangle_read_declaration(struct reading *r, struct node **value)
{
	char c = reading_peek(r, 1);
	struct node *n, *inner;

	*value = NULL;
	if (reading_peek(r, 0) != 'T' || !c || !strchr("yktnp", c))
		return NULL;
	if (!reading_enter(r))
		return NULL;
	r->at += 2;
	switch (c) {
	case 'k':
		n = demangle_read_name(r);
		*value = demangle_declared_name(r, 0);
		n = node_new(r, NODE_QUALIFIED, n, STR(""));
		if (n)
			n->kind = NODE_PREFIXED;
		break;
	case 'n':
		*value = demangle_declared_name(r, 1);
		n = demangle_read_type(r, false);
		n = r->failed ?
			NULL :
			node_new(r, NODE_CV, n, reading_printf(r, " " STR_FMT, STR_ARG((*value)->text)));
		break;
	case 't':
		*value = demangle_declared_name(r, 2);
		while (!r->failed && !reading_take(r, 'E')) {
			if (!demangle_read_declaration(r, &inner))
				r->failed = true;
			else if (reading_peek(r, 0) == 'Q')
				demangle_read_constraint(r);
		}
		n = *value;
		break;
	case 'p':
		if (!(n = demangle_read_declaration(r, value)))
			r->failed = true;
		else
			n = node_new(r, NODE_CV, n, STR("..."));
		break;
	default:
		*value = demangle_declared_name(r, 0);
		n = r->failed ? NULL : node_new(r, NODE_PREFIXED, *value, STR("typename "));
		break;
	}
	r->depth--;
	return r->failed ? NULL : n;
}

/* ---- expressions ---- */

/* Expressions are written as this. */
static struct node *demangle_some(struct reading *r)
{
	return demangle_text_node(r, "");
}

static void demangle_read_expressions(struct reading *r, char end)
{
	while (!r->failed && !reading_take(r, end))
		demangle_read_expression(r);
}

void demangle_read_constraint(struct reading *r)
{
	r->at++; /* Q */
	demangle_read_expression(r);
}

static void demangle_read_optional_arguments(struct reading *r)
{
	if (!r->failed && reading_peek(r, 0) == 'I')
		demangle_read_arguments(r);
}

static void demangle_read_base_unresolved(struct reading *r)
{
	const char *code;
	int operands;

	if (reading_next_is(r, "dn")) {
		r->at += 2;
		if (demangle_is_digit(reading_peek(r, 0)))
			demangle_read_source_name(r);
		else
			demangle_read_type(r, false);
	} else if (demangle_is_digit(reading_peek(r, 0))) {
		demangle_read_source_name(r);
	} else {
		if (reading_next_is(r, "on"))
			r->at += 2;
		demangle_read_operator(r, true, &operands, &code);
	}
	demangle_read_optional_arguments(r);
}

static void demangle_read_unresolved(struct reading *r)
{
	struct node *scope = NULL, *n;
	char c;

	while (reading_next_is(r, "gs"))
		r->at += 2;
	if (!reading_next_is(r, "sr")) {
		demangle_read_base_unresolved(r);
		return;
	}
	r->at += 2;
	c = reading_peek(r, 0);
	if (c == 'T' || c == 'D' || c == 'S') {
		scope = demangle_read_type(r, false);
		demangle_read_base_unresolved(r);
		if (!r->failed && reading_peek(r, 0) == 'I') {
			demangle_read_arguments(r);
			node_add(r, &r->subs, demangle_some(r));
		}
		return;
	}
	if (reading_take(r, 'N'))
		scope = demangle_read_type(r, false);
	while (!r->failed && !reading_take(r, 'E')) {
		if (scope && r->at < r->end && !demangle_is_digit(reading_peek(r, 0)) &&
			scope->kind == NODE_QUALIFIED) { /* gcc leaves out the E */
			n = scope->a;
			if (n->kind == NODE_TEMPLATE)
				node_add(r, &r->subs, n->a);
			node_add(r, &r->subs, n);
			return;
		}
		n = demangle_read_source_name(r);
		if (!r->failed && reading_peek(r, 0) == 'I') {
			node_add(r, &r->subs, n);
			n = demangle_read_with_arguments(r, n);
		}
		if (!scope) {
			scope = n;
		} else if ((scope = node_new(r, NODE_QUALIFIED, scope, STR("")))) {
			scope->b = n;
		}
	}
	if (!scope)
		r->failed = true;
	else
		demangle_read_base_unresolved(r);
}

static void demangle_read_requirements(struct reading *r)
{
	bool has_parameters = r->at[1] == 'Q';
	char c;

	r->at += 2;
	while (has_parameters && !r->failed && !reading_take(r, '_'))
		demangle_read_type(r, false);
	while (!r->failed && !reading_take(r, 'E')) {
		c = reading_peek(r, 0);
		if (r->at < r->end)
			r->at++;
		if (c == 'T') {
			demangle_read_type(r, false);
		} else if (c == 'Q') {
			demangle_read_expression(r);
		} else if (c == 'X') {
			demangle_read_expression(r);
			reading_take(r, 'N');
			if (reading_take(r, 'R'))
				demangle_read_name(r);
		} else {
			r->failed = true;
		}
	}
}

static void demangle_read_new(struct reading *r)
{
	demangle_read_expressions(r, '_');
	demangle_read_type(r, false);
	if (r->failed || reading_take(r, 'E'))
		return;
	if (reading_next_is(r, "pi")) {
		r->at += 2;
		demangle_read_expressions(r, 'E');
	} else if (reading_next_is(r, "il")) {
		demangle_read_expression(r);
	} else {
		r->failed = true;
	}
}

static void demangle_read_binary(struct reading *r, const char *code)
{
	const char *of;
	bool is_cast;
	int operands;

	if (code[0] == 'f') {
		demangle_read_operator(r, true, &operands, &of);
		demangle_read_expression(r);
		return;
	}
	if (!strcmp(code, "sc") || !strcmp(code, "dc") || !strcmp(code, "cc") || !strcmp(code, "rc"))
		demangle_read_type(r, false);
	else if (!strcmp(code, "di"))
		demangle_read_unqualified(r, &is_cast);
	else
		demangle_read_expression(r);
	if (!strcmp(code, "cl") || !strcmp(code, "cp")) {
		demangle_read_expressions(r, 'E');
	} else if (!strcmp(code, "dt") || !strcmp(code, "pt")) {
		if (reading_peek(r, 0) == 'L')
			demangle_read_primary(r);
		else
			demangle_read_unresolved(r);
		demangle_read_optional_arguments(r);
	} else {
		demangle_read_expression(r);
	}
}

static void demangle_read_operation(struct reading *r)
{
	const char *code, *of;
	struct node *op;
	int operands, fold;

	if (!(op = demangle_read_operator(r, true, &operands, &code)))
		return;
	if (operands == 1) {
		if (code && (!strcmp(code, "pp") || !strcmp(code, "mm")))
			reading_take(r, '_');
		if (op->kind == NODE_CAST && reading_take(r, '_'))
			demangle_read_expressions(r, 'E');
		else if (code && (!strcmp(code, "st") || !strcmp(code, "ti") || !strcmp(code, "at")))
			demangle_read_type(r, false);
		else
			demangle_read_expression(r);
	} else if (operands == 2 && code) {
		demangle_read_binary(r, code);
	} else if (operands == 3 && code && code[0] == 'n') {
		demangle_read_new(r);
	} else if (operands == 3 && code && code[0] == 'f') {
		demangle_read_operator(r, true, &fold, &of);
		demangle_read_expression(r);
		demangle_read_expression(r);
	} else {
		for (int i = 0; i < operands && !r->failed; i++)
			demangle_read_expression(r);
	}
}

/* fp_, fL0p_ */
static void demangle_read_function_parameter(struct reading *r)
{
	if (reading_take(r, 'L')) {
		demangle_read_number(r);
		reading_expect(r, 'p');
	} else {
		r->at++; /* p */
		if (reading_take(r, 'T'))
			return;
	}
	demangle_read_qualifiers(r);
	demangle_read_compact(r);
}

static void demangle_read_subobject(struct reading *r)
{
	demangle_read_type(r, false);
	demangle_read_expression(r);
	if (reading_peek(r, 0) == 'n' || demangle_is_digit(reading_peek(r, 0)))
		demangle_read_number(r);
	while (!r->failed && reading_take(r, '_'))
		if (reading_peek(r, 0) == 'n' || demangle_is_digit(reading_peek(r, 0)))
			demangle_read_number(r);
	reading_take(r, 'p');
	reading_expect(r, 'E');
}

static void demangle_read_member_cast(struct reading *r)
{
	demangle_read_type(r, false);
	demangle_read_expression(r);
	if (reading_peek(r, 0) == 'n' || demangle_is_digit(reading_peek(r, 0)))
		demangle_read_number(r);
	reading_expect(r, 'E');
}

static void demangle_read_vendor_expression(struct reading *r)
{
	struct node *name;

	r->at++; /* u */
	name = demangle_read_source_name(r);
	if (demangle_is_text(name, "__uuidof") && reading_take(r, 't')) {
		demangle_read_type(r, false);
		return;
	}
	if (demangle_is_text(name, "__uuidof") && reading_take(r, 'z')) {
		demangle_read_expression(r);
		return;
	}
	while (!r->failed && !reading_take(r, 'E'))
		demangle_read_argument(r, NULL);
}

static struct node *demangle_read_expression_inner(struct reading *r)
{
	char c = reading_peek(r, 0);
	bool is_cast;

	if (c == 'L')
		return demangle_read_primary(r);
	if (c == 'T')
		return demangle_read_parameter(r);
	if (c == 'f' &&
		(reading_peek(r, 1) == 'p' ||
			(reading_peek(r, 1) == 'L' && demangle_is_digit(reading_peek(r, 2))))) {
		r->at++;
		demangle_read_function_parameter(r);
	} else if (reading_next_is(r, "so")) {
		r->at += 2;
		demangle_read_subobject(r);
	} else if (reading_next_is(r, "sr")) {
		demangle_read_unresolved(r);
	} else if (reading_next_is(r, "sp") || reading_next_is(r, "sZ")) {
		r->at += 2;
		demangle_read_expression(r);
	} else if (reading_next_is(r, "sP")) {
		r->at += 2;
		while (!r->failed && !reading_take(r, 'E'))
			demangle_read_argument(r, NULL);
	} else if (reading_next_is(r, "mc")) {
		r->at += 2;
		demangle_read_member_cast(r);
	} else if (demangle_is_digit(c) || reading_next_is(r, "on")) {
		if (c == 'o')
			r->at += 2;
		demangle_read_unqualified(r, &is_cast);
		demangle_read_optional_arguments(r);
	} else if (reading_next_is(r, "il") || reading_next_is(r, "tl")) {
		r->at += 2;
		if (c == 't')
			demangle_read_type(r, false);
		demangle_read_expressions(r, 'E');
	} else if (c == 'u') {
		demangle_read_vendor_expression(r);
	} else if (reading_next_is(r, "rq") || reading_next_is(r, "rQ")) {
		demangle_read_requirements(r);
	} else {
		demangle_read_operation(r);
	}
	return demangle_some(r);
}

struct node *demangle_read_expression(struct reading *r)
{
	struct node *n;

	if (!reading_enter(r))
		return NULL;
	n = demangle_read_expression_inner(r);
	r->depth--;
	return r->failed ? NULL : n;
}
