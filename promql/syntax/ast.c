#include "promql/syntax/ast.h"

/* clang-format off */
static const char *const op_names[] = {
	[OP_ADD] = "+", [OP_SUB] = "-", [OP_MUL] = "*", [OP_DIV] = "/", [OP_MOD] = "%",
	[OP_POW] = "^", [OP_ATAN2] = "atan2", [OP_EQ] = "==", [OP_NE] = "!=", [OP_LT] = "<",
	[OP_LE] = "<=", [OP_GT] = ">", [OP_GE] = ">=", [OP_AND] = "and", [OP_OR] = "or",
	[OP_UNLESS] = "unless",
};
/* clang-format on */

const char *binary_op_name(enum binary_op op)
{
	return op_names[op];
}

/* As in grammar.y; tests/web/api/language_test.c proves it. */
int binary_op_binds(enum binary_op op)
{
	static const int binds[BINARY_OPS] = {
		[OP_OR] = 1,
		[OP_AND] = 2,
		[OP_UNLESS] = 2,
		[OP_EQ] = 3,
		[OP_NE] = 3,
		[OP_LT] = 3,
		[OP_LE] = 3,
		[OP_GT] = 3,
		[OP_GE] = 3,
		[OP_ADD] = 4,
		[OP_SUB] = 4,
		[OP_MUL] = 5,
		[OP_DIV] = 5,
		[OP_MOD] = 5,
		[OP_ATAN2] = 5,
		[OP_POW] = 6,
	};

	return binds[op];
}

void value_types_print(struct buf *out, unsigned types)
{
	static const struct {
		unsigned type;
		const char *name;
	} names[] = {
		{ VALUE_PROFILES, "profiles" },
		{ VALUE_COSTS, "costs" },
		{ VALUE_SCALAR, "a scalar" },
		{ VALUE_STRING, "a string" },
		{ VALUE_TABLE, "a table" },
		{ VALUE_FRAMES, "frame matchers in braces" },
		{ VALUE_RANGE, "a range of costs" },
	};
	bool first = true;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(types & names[i].type))
			continue;
		if (!first)
			buf_add_cstr(out, " or ");
		buf_add_cstr(out, names[i].name);
		first = false;
	}
}

bool name_list_has(struct name_list l, struct str name)
{
	for (size_t i = 0; i < l.n; i++)
		if (str_eq(l.v[i], name))
			return true;
	return false;
}

const struct expr *expr_strip(const struct expr *e)
{
	while (e->kind == EXPR_PAREN)
		e = e->paren;
	return e;
}

static bool name_list_eq(struct name_list a, struct name_list b)
{
	bool eq = a.n == b.n;

	for (size_t i = 0; i < a.n && eq; i++)
		eq = str_eq(a.v[i], b.v[i]);
	return eq;
}

static bool time_shift_eq(const struct time_shift *a, const struct time_shift *b)
{
	return a->offset_ns == b->offset_ns && a->at == b->at && a->at_ns == b->at_ns;
}

static bool selector_eq(const struct selector *a, const struct selector *b)
{
	bool eq = str_eq(a->name, b->name) && a->matchers_n == b->matchers_n &&
		a->window_ns == b->window_ns && time_shift_eq(&a->shift, &b->shift);

	for (size_t i = 0; i < a->matchers_n && eq; i++)
		eq = a->matchers[i].op == b->matchers[i].op &&
			str_eq(a->matchers[i].name, b->matchers[i].name) &&
			str_eq(a->matchers[i].value, b->matchers[i].value);
	return eq;
}

static bool subquery_eq(const struct subquery *a, const struct subquery *b)
{
	return a->range_ns == b->range_ns && a->step_ns == b->step_ns &&
		time_shift_eq(&a->shift, &b->shift) && expr_eq(a->arg, b->arg);
}

static bool ast_binary_eq(const struct binary *a, const struct binary *b)
{
	return a->op == b->op && a->returns_bool == b->returns_bool && a->matching == b->matching &&
		a->card == b->card && name_list_eq(a->labels, b->labels) &&
		name_list_eq(a->include, b->include) && expr_eq(a->lhs, b->lhs) && expr_eq(a->rhs, b->rhs);
}

static bool ast_call_eq(const struct call *a, const struct call *b)
{
	bool eq = str_eq(a->name, b->name) && a->fn == b->fn && a->grouping == b->grouping &&
		a->args_n == b->args_n && name_list_eq(a->labels, b->labels);

	for (size_t i = 0; i < a->args_n && eq; i++)
		eq = expr_eq(a->args[i], b->args[i]);
	return eq;
}

bool expr_eq(const struct expr *a, const struct expr *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case EXPR_NUMBER: /* 0 and -0 differ, NaNs do not */
		return (a->number != a->number && b->number != b->number) ||
			memcmp(&a->number, &b->number, sizeof(a->number)) == 0;
	case EXPR_STRING:
		return str_eq(a->string, b->string);
	case EXPR_SELECTOR:
		return selector_eq(&a->selector, &b->selector);
	case EXPR_SUBQUERY:
		return subquery_eq(&a->subquery, &b->subquery);
	case EXPR_UNARY:
		return a->unary.negative == b->unary.negative && expr_eq(a->unary.arg, b->unary.arg);
	case EXPR_BINARY:
		return ast_binary_eq(&a->binary, &b->binary);
	case EXPR_CALL:
		return ast_call_eq(&a->call, &b->call);
	case EXPR_PAREN:
		return expr_eq(a->paren, b->paren);
	}
	return false;
}
