/*
 * Reads template arguments and expressions. Expressions are only read to find their end, and the
 * candidates for substitution in them.
 */
#include <string.h>

#include "base/demangle/cpp.h"

static struct node *text_node(struct reading *r, const char *text)
{
	return node_new(r, NODE_TEXT, NULL, str_of(text));
}

static bool is_text(const struct node *n, const char *text)
{
	return n && n->kind == NODE_TEXT && str_is(n->text, text);
}

/* ---- template arguments ---- */

struct node *read_arguments(struct reading *r)
{
	struct node *n = node_new(r, NODE_PACK, NULL, STR(""));

	r->at++; /* I, J */
	while (!r->failed && !reading_take(r, 'E')) {
		node_add(r, n, read_argument(r, n));
		if (!r->failed && reading_peek(r, 0) == 'Q') {
			read_constraint(r);
			if (reading_peek(r, 0) != 'E')
				r->failed = true;
		}
	}
	return r->failed ? NULL : n;
}

/* Literals of these types need no value. */
static bool may_be_empty(const struct node *type)
{
	if (type->kind == NODE_CV)
		type = type->a;
	return type->kind == NODE_LAMBDA || type->kind == NODE_ARRAY ||
		is_text(type, "decltype(nullptr)");
}

static struct node *read_primary(struct reading *r)
{
	struct node *n;

	r->at++; /* L */
	if (reading_peek(r, 0) == '_' || reading_peek(r, 0) == 'Z') {
		reading_take(r, '_');
		if (!reading_expect(r, 'Z'))
			return NULL;
		n = read_encoding(r, false);
	} else {
		n = read_type(r, false);
		reading_take(r, 'n');
		if (!r->failed && reading_peek(r, 0) == 'E' && !may_be_empty(n))
			return reading_fail(r);
		while (!r->failed && r->at < r->end && reading_peek(r, 0) != 'E')
			r->at++;
		n = text_node(r, "");
	}
	return reading_expect(r, 'E') ? n : NULL;
}

struct node *read_argument(struct reading *r, struct node *before)
{
	char c = reading_peek(r, 0), c2 = reading_peek(r, 1);
	struct node *n = NULL, *value, *scope;

	if (!reading_enter(r))
		return NULL;
	if (c == 'X') {
		r->at++;
		n = read_expression(r);
		reading_expect(r, 'E');
	} else if (c == 'L') {
		n = read_primary(r);
	} else if (c == 'I' || c == 'J') {
		n = read_arguments(r);
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
			read_declaration(r, &value);
			r->scopes_n--;
		}
		n = read_argument(r, NULL);
	} else {
		n = read_type(r, false);
	}
	r->depth--;
	return r->failed ? NULL : n;
}

static struct node *declared_name(struct reading *r, unsigned kind)
{
	static const char *const names[] = { "$T", "$N", "$TT" };
	int i = r->declared[kind]++;

	return node_new(r, NODE_TEXT, NULL,
		i ? reading_printf(r, "%s%d", names[kind], i - 1) : str_of(names[kind]));
}

/* Ty, Tk NAME, Tn TYPE, Tt ... E, Tp DECLARATION; NULL without failure: it is none of these. */
struct node *read_declaration(struct reading *r, struct node **value)
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
		n = read_name(r);
		*value = declared_name(r, 0);
		n = node_new(r, NODE_QUALIFIED, n, STR(""));
		if (n)
			n->kind = NODE_PREFIXED;
		break;
	case 'n':
		*value = declared_name(r, 1);
		n = read_type(r, false);
		n = r->failed ?
			NULL :
			node_new(r, NODE_CV, n, reading_printf(r, " " STR_FMT, STR_ARG((*value)->text)));
		break;
	case 't':
		*value = declared_name(r, 2);
		while (!r->failed && !reading_take(r, 'E')) {
			if (!read_declaration(r, &inner))
				r->failed = true;
			else if (reading_peek(r, 0) == 'Q')
				read_constraint(r);
		}
		n = *value;
		break;
	case 'p':
		if (!(n = read_declaration(r, value)))
			r->failed = true;
		else
			n = node_new(r, NODE_CV, n, STR("..."));
		break;
	default:
		*value = declared_name(r, 0);
		n = r->failed ? NULL : node_new(r, NODE_PREFIXED, *value, STR("typename "));
		break;
	}
	r->depth--;
	return r->failed ? NULL : n;
}

/* ---- expressions ---- */

/* Expressions are written as this. */
static struct node *some(struct reading *r)
{
	return text_node(r, "");
}

static void read_expressions(struct reading *r, char end)
{
	while (!r->failed && !reading_take(r, end))
		read_expression(r);
}

void read_constraint(struct reading *r)
{
	r->at++; /* Q */
	read_expression(r);
}

static void read_optional_arguments(struct reading *r)
{
	if (!r->failed && reading_peek(r, 0) == 'I')
		read_arguments(r);
}

static void read_base_unresolved(struct reading *r)
{
	const char *code;
	int operands;

	if (reading_next_is(r, "dn")) {
		r->at += 2;
		if (is_digit(reading_peek(r, 0)))
			read_source_name(r);
		else
			read_type(r, false);
	} else if (is_digit(reading_peek(r, 0))) {
		read_source_name(r);
	} else {
		if (reading_next_is(r, "on"))
			r->at += 2;
		read_operator(r, true, &operands, &code);
	}
	read_optional_arguments(r);
}

static void read_unresolved(struct reading *r)
{
	struct node *scope = NULL, *n;
	char c;

	while (reading_next_is(r, "gs"))
		r->at += 2;
	if (!reading_next_is(r, "sr")) {
		read_base_unresolved(r);
		return;
	}
	r->at += 2;
	c = reading_peek(r, 0);
	if (c == 'T' || c == 'D' || c == 'S') {
		scope = read_type(r, false);
		read_base_unresolved(r);
		if (!r->failed && reading_peek(r, 0) == 'I') {
			read_arguments(r);
			node_add(r, &r->subs, some(r));
		}
		return;
	}
	if (reading_take(r, 'N'))
		scope = read_type(r, false);
	while (!r->failed && !reading_take(r, 'E')) {
		if (scope && r->at < r->end && !is_digit(reading_peek(r, 0)) &&
			scope->kind == NODE_QUALIFIED) { /* gcc leaves out the E */
			n = scope->a;
			if (n->kind == NODE_TEMPLATE)
				node_add(r, &r->subs, n->a);
			node_add(r, &r->subs, n);
			return;
		}
		n = read_source_name(r);
		if (!r->failed && reading_peek(r, 0) == 'I') {
			node_add(r, &r->subs, n);
			n = read_with_arguments(r, n);
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
		read_base_unresolved(r);
}

static void read_requirements(struct reading *r)
{
	bool has_parameters = r->at[1] == 'Q';
	char c;

	r->at += 2;
	while (has_parameters && !r->failed && !reading_take(r, '_'))
		read_type(r, false);
	while (!r->failed && !reading_take(r, 'E')) {
		c = reading_peek(r, 0);
		if (r->at < r->end)
			r->at++;
		if (c == 'T') {
			read_type(r, false);
		} else if (c == 'Q') {
			read_expression(r);
		} else if (c == 'X') {
			read_expression(r);
			reading_take(r, 'N');
			if (reading_take(r, 'R'))
				read_name(r);
		} else {
			r->failed = true;
		}
	}
}

static void read_new(struct reading *r)
{
	read_expressions(r, '_');
	read_type(r, false);
	if (r->failed || reading_take(r, 'E'))
		return;
	if (reading_next_is(r, "pi")) {
		r->at += 2;
		read_expressions(r, 'E');
	} else if (reading_next_is(r, "il")) {
		read_expression(r);
	} else {
		r->failed = true;
	}
}

static void read_binary(struct reading *r, const char *code)
{
	const char *of;
	bool is_cast;
	int operands;

	if (code[0] == 'f') {
		read_operator(r, true, &operands, &of);
		read_expression(r);
		return;
	}
	if (!strcmp(code, "sc") || !strcmp(code, "dc") || !strcmp(code, "cc") || !strcmp(code, "rc"))
		read_type(r, false);
	else if (!strcmp(code, "di"))
		read_unqualified(r, &is_cast);
	else
		read_expression(r);
	if (!strcmp(code, "cl") || !strcmp(code, "cp")) {
		read_expressions(r, 'E');
	} else if (!strcmp(code, "dt") || !strcmp(code, "pt")) {
		if (reading_peek(r, 0) == 'L')
			read_primary(r);
		else
			read_unresolved(r);
		read_optional_arguments(r);
	} else {
		read_expression(r);
	}
}

static void read_operation(struct reading *r)
{
	const char *code, *of;
	struct node *op;
	int operands, fold;

	if (!(op = read_operator(r, true, &operands, &code)))
		return;
	if (operands == 1) {
		if (code && (!strcmp(code, "pp") || !strcmp(code, "mm")))
			reading_take(r, '_');
		if (op->kind == NODE_CAST && reading_take(r, '_'))
			read_expressions(r, 'E');
		else if (code && (!strcmp(code, "st") || !strcmp(code, "ti") || !strcmp(code, "at")))
			read_type(r, false);
		else
			read_expression(r);
	} else if (operands == 2 && code) {
		read_binary(r, code);
	} else if (operands == 3 && code && code[0] == 'n') {
		read_new(r);
	} else if (operands == 3 && code && code[0] == 'f') {
		read_operator(r, true, &fold, &of);
		read_expression(r);
		read_expression(r);
	} else {
		for (int i = 0; i < operands && !r->failed; i++)
			read_expression(r);
	}
}

/* fp_, fL0p_ */
static void read_function_parameter(struct reading *r)
{
	if (reading_take(r, 'L')) {
		read_number(r);
		reading_expect(r, 'p');
	} else {
		r->at++; /* p */
		if (reading_take(r, 'T'))
			return;
	}
	read_qualifiers(r);
	read_compact(r);
}

static void read_subobject(struct reading *r)
{
	read_type(r, false);
	read_expression(r);
	if (reading_peek(r, 0) == 'n' || is_digit(reading_peek(r, 0)))
		read_number(r);
	while (!r->failed && reading_take(r, '_'))
		if (reading_peek(r, 0) == 'n' || is_digit(reading_peek(r, 0)))
			read_number(r);
	reading_take(r, 'p');
	reading_expect(r, 'E');
}

static void read_member_cast(struct reading *r)
{
	read_type(r, false);
	read_expression(r);
	if (reading_peek(r, 0) == 'n' || is_digit(reading_peek(r, 0)))
		read_number(r);
	reading_expect(r, 'E');
}

static void read_vendor_expression(struct reading *r)
{
	struct node *name;

	r->at++; /* u */
	name = read_source_name(r);
	if (is_text(name, "__uuidof") && reading_take(r, 't')) {
		read_type(r, false);
		return;
	}
	if (is_text(name, "__uuidof") && reading_take(r, 'z')) {
		read_expression(r);
		return;
	}
	while (!r->failed && !reading_take(r, 'E'))
		read_argument(r, NULL);
}

static struct node *read_expression_inner(struct reading *r)
{
	char c = reading_peek(r, 0);
	bool is_cast;

	if (c == 'L')
		return read_primary(r);
	if (c == 'T')
		return read_parameter(r);
	if (c == 'f' &&
		(reading_peek(r, 1) == 'p' ||
			(reading_peek(r, 1) == 'L' && is_digit(reading_peek(r, 2))))) {
		r->at++;
		read_function_parameter(r);
	} else if (reading_next_is(r, "so")) {
		r->at += 2;
		read_subobject(r);
	} else if (reading_next_is(r, "sr")) {
		read_unresolved(r);
	} else if (reading_next_is(r, "sp") || reading_next_is(r, "sZ")) {
		r->at += 2;
		read_expression(r);
	} else if (reading_next_is(r, "sP")) {
		r->at += 2;
		while (!r->failed && !reading_take(r, 'E'))
			read_argument(r, NULL);
	} else if (reading_next_is(r, "mc")) {
		r->at += 2;
		read_member_cast(r);
	} else if (is_digit(c) || reading_next_is(r, "on")) {
		if (c == 'o')
			r->at += 2;
		read_unqualified(r, &is_cast);
		read_optional_arguments(r);
	} else if (reading_next_is(r, "il") || reading_next_is(r, "tl")) {
		r->at += 2;
		if (c == 't')
			read_type(r, false);
		read_expressions(r, 'E');
	} else if (c == 'u') {
		read_vendor_expression(r);
	} else if (reading_next_is(r, "rq") || reading_next_is(r, "rQ")) {
		read_requirements(r);
	} else {
		read_operation(r);
	}
	return some(r);
}

struct node *read_expression(struct reading *r)
{
	struct node *n;

	if (!reading_enter(r))
		return NULL;
	n = read_expression_inner(r);
	r->depth--;
	return r->failed ? NULL : n;
}
