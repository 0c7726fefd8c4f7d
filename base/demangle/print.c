/* Writes nodes. A type is written around its name: "void (*" left of it, ")(int)" right of it. */
#include <stdio.h>

#include "base/demangle/cpp.h"

#define STEPS_MAX 200000u

struct printing {
	struct buf *out;
	size_t from; /* of out */
	unsigned steps, depth;
	bool failed;
	struct node *scope; /* parameters are of this template, whatever they say */
	bool autos; /* parameters are those of a lambda: "auto:1" */
	bool in_pack;
	uint32_t element; /* of the pack that is expanded */
};

static void demangle_left(struct printing *p, const struct node *n);
static void demangle_right(struct printing *p, const struct node *n);

static void demangle_both(struct printing *p, const struct node *n)
{
	demangle_left(p, n);
	demangle_right(p, n);
}

static bool demangle_enter(struct printing *p)
{
	if (p->failed || ++p->steps > STEPS_MAX || p->depth >= DEMANGLE_DEPTH_MAX ||
		p->out->len - p->from > DEMANGLE_TEXT_MAX)
		p->failed = true;
	else
		p->depth++;
	return !p->failed;
}

/* The argument of a parameter; NULL: unknown. */
static const struct node *demangle_argument(const struct printing *p, const struct node *n)
{
	const struct node *scope = p->scope ? p->scope : n->scope;

	return scope && (uint32_t)n->num < scope->n ? scope->list[n->num] : NULL;
}

/* The pack that an expansion is over; NULL: none is found. */
static const struct node *demangle_find_pack(struct printing *p, const struct node *n)
{
	const struct node *found = NULL, *arg;

	if (!n || !demangle_enter(p))
		return NULL;
	if (n->kind == NODE_PARAMETER) {
		arg = demangle_argument(p, n);
		found = arg && arg->kind == NODE_PACK ? arg : NULL;
	} else if (n->kind != NODE_EXPANSION && n->kind != NODE_LAMBDA) {
		found = demangle_find_pack(p, n->a);
		if (!found)
			found = demangle_find_pack(p, n->b);
		for (uint32_t i = 0; i < n->n && !found; i++)
			found = demangle_find_pack(p, n->list[i]);
	}
	p->depth--;
	return found;
}

static bool demangle_is_empty(struct printing *p, const struct node *n)
{
	const struct node *pack;

	if (n->kind == NODE_PACK) {
		for (uint32_t i = 0; i < n->n; i++)
			if (!demangle_is_empty(p, n->list[i]))
				return false;
		return true;
	}
	if (n->kind == NODE_PARAMETER)
		return (pack = demangle_argument(p, n)) && pack->kind == NODE_PACK && pack->n == 0;
	return n->kind == NODE_EXPANSION && (pack = demangle_find_pack(p, n->a)) && pack->n == 0;
}

static void print_list(struct printing *p, const struct node *list, bool without_empty)
{
	bool first = true;

	for (uint32_t i = 0; i < list->n; i++) {
		if (without_empty && demangle_is_empty(p, list->list[i]))
			continue;
		if (!first)
			buf_add_cstr(p->out, ", ");
		first = false;
		demangle_both(p, list->list[i]);
	}
}

static void print_parameter(struct printing *p, const struct node *n)
{
	const struct node *arg = demangle_argument(p, n);
	struct printing outer = *p;

	if (p->autos) {
		buf_printf(p->out, "auto:%d", n->num + 1);
		return;
	}
	if (!arg) {
		p->failed = true;
		return;
	}
	if (arg->kind == NODE_PACK && p->in_pack && p->element < arg->n)
		arg = arg->list[p->element];
	p->scope = NULL; /* its own parameters belong to the place where it was given */
	p->in_pack = false;
	demangle_both(p, arg);
	p->scope = outer.scope;
	p->in_pack = outer.in_pack;
}

static void print_expansion(struct printing *p, const struct node *n)
{
	const struct node *pack = demangle_find_pack(p, n->a);
	struct printing outer = *p;

	if (!pack) {
		buf_add_char(p->out, '(');
		demangle_both(p, n->a);
		buf_add_cstr(p->out, ")...");
		return;
	}
	p->in_pack = true;
	for (uint32_t i = 0; i < pack->n && !p->failed; i++) {
		if (i)
			buf_add_cstr(p->out, ", ");
		p->element = i;
		demangle_both(p, n->a);
	}
	p->in_pack = outer.in_pack;
	p->element = outer.element;
}

static void print_lambda(struct printing *p, const struct node *n)
{
	struct node *scope = p->scope;
	bool in_pack = p->in_pack;

	buf_add_cstr(p->out, "{lambda");
	if (n->b && n->b->n) {
		buf_add_char(p->out, '<');
		print_list(p, n->b, false);
		buf_add_char(p->out, '>');
	}
	buf_add_char(p->out, '(');
	print_list(p, n, false);
	buf_printf(p->out, ")#%d}", n->num + 1);
	p->scope = scope;
	p->in_pack = in_pack;
}

static void demangle_print_operator(struct printing *p, struct str text)
{
	buf_add_cstr(p->out, "operator");
	if (text.len && text.ptr[0] >= 'a' && text.ptr[0] <= 'z')
		buf_add_char(p->out, ' ');
	buf_add_str(p->out, text);
}

/* "int f(char) const"; is_local: without its types, "f() const". */
static void print_function(struct printing *p, const struct node *n, bool is_local)
{
	const struct node *f = n->a;
	struct str behind = STR("");
	struct node inner; /* a name inside of another function */

	if (f->kind == NODE_METHOD) {
		behind = f->text;
		f = f->a;
	} else if (f->kind == NODE_QUALIFIED && f->b->kind == NODE_METHOD) {
		behind = f->b->text;
		inner = *f;
		inner.b = f->b->a;
		f = &inner;
	}
	if (n->b && !is_local) {
		demangle_left(p, n->b);
		buf_add_char(p->out, ' ');
	}
	demangle_both(p, f);
	buf_add_char(p->out, '(');
	if (!is_local)
		print_list(p, n, true);
	buf_add_char(p->out, ')');
	if (n->b && !is_local)
		demangle_right(p, n->b);
	buf_add_str(p->out, behind);
}

/* Functions and arrays are written around a pointer to them. */
static bool demangle_is_around(const struct printing *p, const struct node *n)
{
	while (n && (n->kind == NODE_RESCOPED || n->kind == NODE_CV))
		n = n->a;
	if (n && n->kind == NODE_PARAMETER && !p->in_pack)
		n = demangle_argument(p, n);
	return n && (n->kind == NODE_PROTOTYPE || n->kind == NODE_ARRAY);
}

static void demangle_left_pointer(struct printing *p, const struct node *n)
{
	const struct node *base = n->a;
	struct str text = n->text;

	/* A reference to a reference is written as one reference. */
	while (text.ptr[0] == '&' && base->kind == NODE_POINTER && base->text.ptr[0] == '&') {
		if (base->text.len < text.len)
			text = base->text;
		base = base->a;
	}
	demangle_left(p, base);
	if (demangle_is_around(p, base) && p->out->len > p->from) {
		if (p->out->ptr[p->out->len - 1] != ' ')
			buf_add_char(p->out, ' ');
		buf_add_char(p->out, '(');
	}
	buf_add_str(p->out, text);
}

static void demangle_right_pointer(struct printing *p, const struct node *n)
{
	const struct node *base = n->a;

	while (n->text.ptr[0] == '&' && base->kind == NODE_POINTER && base->text.ptr[0] == '&')
		base = base->a;
	if (demangle_is_around(p, base))
		buf_add_char(p->out, ')');
	demangle_right(p, base);
}

static void demangle_left_member(struct printing *p, const struct node *n)
{
	demangle_left(p, n->b);
	if (demangle_is_around(p, n->b)) {
		if (p->out->len > p->from && p->out->ptr[p->out->len - 1] != ' ')
			buf_add_char(p->out, ' ');
		buf_add_char(p->out, '(');
	} else {
		buf_add_char(p->out, ' ');
	}
	demangle_both(p, n->a);
	buf_add_cstr(p->out, "::*");
}

static void demangle_left_type(struct printing *p, const struct node *n)
{
	switch (n->kind) {
	case NODE_POINTER:
		demangle_left_pointer(p, n);
		break;
	case NODE_CV:
		demangle_left(p, n->a);
		buf_add_str(p->out, n->text);
		break;
	case NODE_PROTOTYPE:
		demangle_left(p, n->a);
		buf_add_char(p->out, ' ');
		break;
	case NODE_ARRAY:
		demangle_left(p, n->a);
		break;
	case NODE_MEMBER:
		demangle_left_member(p, n);
		break;
	case NODE_PARAMETER:
		print_parameter(p, n);
		break;
	case NODE_PACK:
		print_list(p, n, true);
		break;
	case NODE_EXPANSION:
		print_expansion(p, n);
		break;
	default:
		p->failed = true;
		break;
	}
}

static void demangle_left_name(struct printing *p, const struct node *n)
{
	switch (n->kind) {
	case NODE_QUALIFIED:
		demangle_both(p, n->a);
		buf_add_str(p->out, n->text.len ? n->text : STR("::"));
		demangle_both(p, n->b);
		break;
	case NODE_TEMPLATE:
		demangle_both(p, n->a);
		break;
	case NODE_DESTRUCTOR:
		buf_add_char(p->out, '~');
		demangle_both(p, n->a);
		break;
	case NODE_OPERATOR:
		demangle_print_operator(p, n->text);
		break;
	case NODE_CAST:
		buf_add_cstr(p->out, "operator ");
		demangle_both(p, n->a);
		break;
	case NODE_TAGGED:
		demangle_both(p, n->a);
		buf_printf(p->out, "[abi:" STR_FMT "]", STR_ARG(n->text));
		break;
	case NODE_LAMBDA:
		print_lambda(p, n);
		break;
	case NODE_UNNAMED:
		buf_printf(p->out, "{unnamed type#%d}", n->num + 1);
		break;
	case NODE_DEFAULT:
		buf_printf(p->out, "{default arg#%d}::", n->num + 1);
		demangle_both(p, n->a);
		break;
	case NODE_METHOD:
		demangle_both(p, n->a);
		buf_add_str(p->out, n->text);
		break;
	case NODE_FUNCTION:
	case NODE_LOCAL:
		print_function(p, n, n->kind == NODE_LOCAL);
		break;
	case NODE_PREFIXED:
		buf_add_str(p->out, n->text);
		demangle_both(p, n->a);
		break;
	case NODE_AUTO:
		buf_printf(p->out, "auto:%d", n->num + 1);
		break;
	default:
		demangle_left_type(p, n);
		break;
	}
}

static void demangle_left(struct printing *p, const struct node *n)
{
	struct node *scope = p->scope;
	bool autos = p->autos;

	if (!demangle_enter(p))
		return;
	if (n->kind == NODE_TEXT) {
		buf_add_str(p->out, n->text);
	} else if (n->kind == NODE_RESCOPED) {
		if (!p->scope)
			p->scope = n->scope;
		p->autos |= n->num;
		demangle_left(p, n->a);
		p->scope = scope;
		p->autos = autos;
	} else {
		demangle_left_name(p, n);
	}
	p->depth--;
}

static void demangle_right(struct printing *p, const struct node *n)
{
	struct node *scope = p->scope;
	bool autos = p->autos;

	if (!demangle_enter(p))
		return;
	switch (n->kind) {
	case NODE_RESCOPED:
		if (!p->scope)
			p->scope = n->scope;
		p->autos |= n->num;
		demangle_right(p, n->a);
		p->scope = scope;
		p->autos = autos;
		break;
	case NODE_POINTER:
		demangle_right_pointer(p, n);
		break;
	case NODE_CV:
		demangle_right(p, n->a);
		break;
	case NODE_PROTOTYPE:
		buf_add_char(p->out, '(');
		print_list(p, n, true);
		buf_add_char(p->out, ')');
		buf_add_str(p->out, n->text);
		demangle_right(p, n->a);
		break;
	case NODE_ARRAY:
		buf_printf(p->out, " [" STR_FMT "]", STR_ARG(n->text));
		demangle_right(p, n->a);
		break;
	case NODE_MEMBER:
		if (demangle_is_around(p, n->b))
			buf_add_char(p->out, ')');
		demangle_right(p, n->b);
		break;
	default:
		break;
	}
	p->depth--;
}

bool node_print(const struct node *node, struct buf *out)
{
	struct printing p = { .out = out, .from = out->len };

	demangle_both(&p, node);
	return !p.failed && !buf_failed(out);
}
