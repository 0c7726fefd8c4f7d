/*
 * Parts of C++ names: numbers, identifiers, operators, lambdas, substitutions.
 */
#include "base/demangle/cpp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

struct node *reading_fail(struct reading *r)
{
	r->failed = true;
	return NULL;
}

struct node *node_new(struct reading *r, enum node_kind kind, struct node *a, struct str text)
{
	struct node *n = r->failed ? NULL : arena_new(r->arena, struct node);

	if (!n)
		return reading_fail(r);
	n->kind = kind;
	n->a = a;
	n->text = text;
	return n;
}

void node_add(struct reading *r, struct node *list, struct node *item)
{
	if (r->failed || !item || !arena_array_room(r->arena, &list->list, list->n, 1, &list->cap)) {
		r->failed = true;
		return;
	}
	list->list[list->n++] = item;
}

struct str reading_printf(struct reading *r, const char *fmt, ...)
{
	char text[512];
	struct str out;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text))
		r->failed = true;
	out = r->failed ? STR("") : str_dup(r->arena, (struct str){ text, (size_t)n });
	if (!out.ptr)
		r->failed = true;
	return out;
}

static bool demangle_parts_is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool demangle_is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* ---- numbers ---- */

int demangle_read_number(struct reading *r)
{
	bool negative = reading_take(r, 'n');
	int v = 0;

	if (!demangle_is_digit(reading_peek(r, 0)))
		r->failed = true;
	while (!r->failed && demangle_is_digit(reading_peek(r, 0))) {
		if (v >= INT32_MAX / 10 - 10)
			r->failed = true;
		else
			v = v * 10 + (*r->at++ - '0');
	}
	return negative ? -v : v;
}

int demangle_read_compact(struct reading *r)
{
	int v;

	if (reading_take(r, '_'))
		return 0;
	if (reading_peek(r, 0) == 'n')
		r->failed = true;
	v = r->failed ? 0 : demangle_read_number(r) + 1;
	reading_expect(r, '_');
	return v;
}

static uint32_t demangle_read_sequence(struct reading *r)
{
	uint32_t v = 0;
	char c;

	if (reading_take(r, '_'))
		return 0;
	while (!r->failed && !reading_take(r, '_')) {
		c = reading_peek(r, 0);
		if ((!demangle_is_digit(c) && !demangle_is_upper(c)) || v > UINT32_MAX / 36 - 36) {
			r->failed = true;
			return 0;
		}
		v = v * 36 + (uint32_t)(demangle_is_digit(c) ? c - '0' : c - 'A' + 10);
		r->at++;
	}
	return v + 1;
}

/* ---- parts of names ---- */

struct node *demangle_read_source_name(struct reading *r)
{
	static const struct str global = { "_GLOBAL_", 8 };
	int n = demangle_read_number(r);
	struct str id;

	if (r->failed || n <= 0 || r->end - r->at < n)
		return reading_fail(r);
	id = (struct str){ r->at, (size_t)n };
	r->at += n;
	/* gcc's name of unnamed things */
	if (id.len > global.len + 2 && str_has_prefix(id, global) &&
		strchr("._$", id.ptr[global.len]) && id.ptr[global.len + 1] == 'N')
		id = STR("(anonymous namespace)");
	return node_new(r, NODE_TEXT, NULL, id);
}

struct node *demangle_read_tags(struct reading *r, struct node *name)
{
	struct node *tag;

	while (!r->failed && reading_take(r, 'B')) {
		tag = demangle_read_source_name(r);
		name = node_new(r, NODE_TAGGED, name, tag ? tag->text : STR(""));
	}
	return name;
}

/* clang-format off */
static const struct {
	char code[3];
	char operands;
	const char *text;
} operators[] = {
	{ "aN", 2, "&=" }, { "aS", 2, "=" }, { "aa", 2, "&&" }, { "ad", 1, "&" }, { "an", 2, "&" },
	{ "at", 1, "alignof" }, { "aw", 1, "co_await" }, { "az", 1, "alignof" },
	{ "cc", 2, "const_cast" }, { "cl", 2, "()" }, { "cp", 2, "()" }, { "cm", 2, "," },
	{ "co", 1, "~" }, { "dV", 2, "/=" }, { "dX", 3, "[...]=" }, { "da", 1, "delete[]" },
	{ "dc", 2, "dynamic_cast" }, { "de", 1, "*" }, { "di", 2, "=" }, { "dl", 1, "delete" },
	{ "ds", 2, ".*" }, { "dt", 2, "." }, { "dv", 2, "/" }, { "dx", 2, "]=" }, { "eO", 2, "^=" },
	{ "eo", 2, "^" }, { "eq", 2, "==" }, { "fl", 2, "..." }, { "fr", 2, "..." },
	{ "fL", 3, "..." }, { "fR", 3, "..." }, { "ge", 2, ">=" }, { "gs", 1, "::" },
	{ "gt", 2, ">" }, { "ix", 2, "[]" }, { "lS", 2, "<<=" }, { "le", 2, "<=" },
	{ "li", 1, "\"\" " }, { "ls", 2, "<<" }, { "lt", 2, "<" }, { "mI", 2, "-=" },
	{ "mL", 2, "*=" }, { "mi", 2, "-" }, { "ml", 2, "*" }, { "mm", 1, "--" },
	{ "na", 3, "new[]" }, { "ne", 2, "!=" }, { "ng", 1, "-" }, { "nt", 1, "!" },
	{ "nw", 3, "new" }, { "nx", 1, "noexcept" }, { "oR", 2, "|=" }, { "oo", 2, "||" },
	{ "or", 2, "|" }, { "pL", 2, "+=" }, { "pl", 2, "+" }, { "pm", 2, "->*" }, { "pp", 1, "++" },
	{ "ps", 1, "+" }, { "pt", 2, "->" }, { "qu", 3, "?" }, { "rM", 2, "%=" }, { "rS", 2, ">>=" },
	{ "rc", 2, "reinterpret_cast" }, { "rm", 2, "%" }, { "rs", 2, ">>" }, { "sP", 1, "sizeof..." },
	{ "sZ", 1, "sizeof..." }, { "sc", 2, "static_cast" }, { "ss", 2, "<=>" },
	{ "st", 1, "sizeof" }, { "sz", 1, "sizeof" }, { "te", 1, "typeid" }, { "ti", 1, "typeid" },
	{ "tr", 0, "throw" }, { "tw", 1, "throw" },
};
/* clang-format on */

/* *code: the operator's code if the table has it, else NULL. */
struct node *demangle_read_operator(
	struct reading *r, bool in_expression, int *operands, const char **code)
{
	char c[2] = { reading_peek(r, 0), reading_peek(r, 1) };
	struct node *name;

	*code = NULL;
	*operands = 1;
	if (r->end - r->at < 2)
		return reading_fail(r);
	r->at += 2;
	if (c[0] == 'v' && demangle_is_digit(c[1])) { /* a vendor's */
		*operands = c[1] - '0';
		name = demangle_read_source_name(r);
		return node_new(r, NODE_OPERATOR, NULL, name ? name->text : STR(""));
	}
	if (c[0] == 'c' && c[1] == 'v') {
		if (!in_expression) {
			if (r->scopes_n == DEMANGLE_SCOPES_MAX)
				return reading_fail(r);
			r->scopes[r->scopes_n++] = NULL;
		}
		name = demangle_read_type(r, !in_expression);
		r->scopes_n -= !in_expression;
		return node_new(r, NODE_CAST, name, STR(""));
	}
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (!memcmp(operators[i].code, c, 2)) {
			*code = operators[i].code;
			*operands = operators[i].operands;
			return node_new(r, NODE_OPERATOR, NULL, str_of(operators[i].text));
		}
	return reading_fail(r);
}

void demangle_read_discriminator(struct reading *r)
{
	const char *at = r->at;
	bool twice;
	int v;

	if (!reading_take(r, '_')) {
		while (at < r->end && demangle_is_digit(*at))
			at++;
		if (at == r->end)
			r->at = at;
		return;
	}
	twice = reading_take(r, '_');
	v = demangle_read_number(r);
	if (v < 0)
		r->failed = true;
	if (twice && v >= 10)
		reading_expect(r, '_');
}

struct node *demangle_read_unnamed(struct reading *r)
{
	struct node *n;

	r->at += 2; /* Ut */
	n = node_new(r, NODE_UNNAMED, NULL, STR(""));
	if (!n)
		return NULL;
	n->num = demangle_read_compact(r);
	node_add(r, &r->subs, n);
	return n;
}

struct node *demangle_read_lambda(struct reading *r)
{
	unsigned level = r->lambda_level, scopes_n = r->scopes_n;
	struct node *n = node_new(r, NODE_LAMBDA, NULL, STR(""));
	struct node *scope = node_new(r, NODE_TEMPLATE, NULL, STR("")), *value, *declared;

	r->at += 2; /* Ul */
	r->lambda_level = r->scopes_n + 1;
	if (n)
		n->b = node_new(r, NODE_PACK, NULL, STR(""));
	while (!r->failed && reading_peek(r, 0) == 'T') {
		if (!(declared = demangle_read_declaration(r, &value)))
			break;
		if (r->scopes_n == scopes_n) {
			if (r->scopes_n == DEMANGLE_SCOPES_MAX)
				return reading_fail(r);
			r->scopes[r->scopes_n++] = scope;
		}
		node_add(r, n->b, declared);
		node_add(r, scope, value);
	}
	if (!r->failed && reading_peek(r, 0) == 'Q')
		demangle_read_constraint(r);
	if (!r->failed)
		demangle_read_types(r, n);
	r->lambda_level = level;
	r->scopes_n = scopes_n;
	if (!r->failed && reading_peek(r, 0) == 'Q')
		demangle_read_constraint(r);
	if (!reading_expect(r, 'E'))
		return NULL;
	n->num = demangle_read_compact(r);
	return n;
}

static struct node *demangle_read_bindings(struct reading *r)
{
	struct buf text = { 0 };
	struct node *name, *n = NULL;

	r->at += 2; /* DC */
	buf_add_char(&text, '[');
	do {
		if (!(name = demangle_read_source_name(r)))
			break;
		buf_printf(&text, "%s" STR_FMT, text.len > 1 ? ", " : "", STR_ARG(name->text));
	} while (!reading_take(r, 'E'));
	buf_add_char(&text, ']');
	if (!r->failed)
		n = node_new(r, NODE_TEXT, NULL, str_dup(r->arena, buf_str(&text)));
	if (buf_failed(&text) || (n && !n->text.ptr))
		r->failed = true;
	buf_release(&text);
	return n;
}

struct node *demangle_read_unqualified(struct reading *r, bool *is_cast)
{
	bool is_friend = reading_take(r, 'F');
	struct node *n = NULL, *name;
	char c = reading_peek(r, 0), c2 = reading_peek(r, 1);
	const char *code;
	int operands;

	*is_cast = false;
	if (r->failed)
		return NULL;
	if (demangle_is_digit(c)) {
		n = demangle_read_source_name(r);
	} else if (demangle_parts_is_lower(c)) {
		n = demangle_read_operator(r, false, &operands, &code);
		*is_cast = n && n->kind == NODE_CAST;
		if (n && code && !memcmp(code, "li", 2) && (name = demangle_read_source_name(r)))
			n->text = reading_printf(r, "\"\" " STR_FMT, STR_ARG(name->text));
	} else if (c == 'D' && c2 == 'C') {
		n = demangle_read_bindings(r);
	} else if (c == 'L') {
		r->at++;
		n = demangle_read_source_name(r);
		demangle_read_discriminator(r);
	} else if (c == 'U' && c2 == 'l') {
		n = demangle_read_lambda(r);
	} else if (c == 'U' && c2 == 't') {
		n = demangle_read_unnamed(r);
	} else if (c == 'U' && c2 == 'b') {
		r->at += 2;
		demangle_read_compact(r);
		n = node_new(r, NODE_TEXT, NULL, STR("'block-literal'"));
	} else {
		return reading_fail(r);
	}
	n = demangle_read_tags(r, n);
	return is_friend ? node_new(r, NODE_PREFIXED, n, STR("friend ")) : n;
}

/* ---- substitutions ---- */

struct node *node_std(struct reading *r, const char *name)
{
	struct node *n = node_new(r, NODE_QUALIFIED, node_new(r, NODE_TEXT, NULL, STR("std")), STR(""));

	if (n)
		n->b = node_new(r, NODE_TEXT, NULL, str_of(name));
	return n;
}

/* In front of a constructor's name the class has its long one. */
static struct node *demangle_standard_name(struct reading *r, char c, bool in_full)
{
	switch (c) {
	case 't':
		return node_new(r, NODE_TEXT, NULL, STR("std"));
	case 'a':
		return node_std(r, "allocator");
	case 'b':
		return node_std(r, "basic_string");
	case 's':
		return node_std(r, in_full ? "basic_string" : "string");
	case 'i':
		return node_std(r, in_full ? "basic_istream" : "istream");
	case 'o':
		return node_std(r, in_full ? "basic_ostream" : "ostream");
	case 'd':
		return node_std(r, in_full ? "basic_iostream" : "iostream");
	default:
		return reading_fail(r);
	}
}

/* Template parameters in a substituted name are those of the template that is read now. */
static struct node *demangle_rescoped(struct reading *r, struct node *n)
{
	struct node *out = node_new(r, NODE_RESCOPED, n, STR(""));
	struct node *scope = r->scopes_n ? r->scopes[r->scopes_n - 1] : NULL;

	if (!out || n->kind == NODE_TEXT || (!scope && !r->lambda_level))
		return n;
	out->scope = r->lambda_level ? NULL : scope;
	out->num = r->lambda_level > 0;
	return out;
}

/* standard: it is none of the candidates. */
struct node *demangle_read_substitution(struct reading *r, bool in_prefix, bool *standard)
{
	struct node *n;
	uint32_t id;
	char c, next;

	r->at++; /* S */
	c = reading_peek(r, 0);
	*standard = c != '_' && !demangle_is_digit(c) && !demangle_is_upper(c);
	if (!*standard) {
		id = demangle_read_sequence(r);
		if (r->failed || id >= r->subs.n)
			return reading_fail(r);
		return demangle_rescoped(r, r->subs.list[id]);
	}
	if (r->at < r->end)
		r->at++;
	next = reading_peek(r, 0);
	n = demangle_standard_name(r, c, in_prefix && (next == 'C' || next == 'D'));
	if (next == 'B') {
		n = demangle_read_tags(r, n);
		node_add(r, &r->subs, n);
		*standard = false;
	}
	return n;
}
