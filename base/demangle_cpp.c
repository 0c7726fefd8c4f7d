/*
 * Reading of C++ names. Where a name may be meant again later ("S1_") it is a candidate: they are
 * counted in the order in which they were read, so types are read too where they are not written.
 */
#include "base/demangle_cpp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
	struct node **grown;

	if (r->failed || !item) {
		r->failed = true;
		return;
	}
	if (list->n == list->cap) {
		list->cap = list->cap ? list->cap * 2 : 4;
		grown = arena_array(r->arena, struct node *, list->cap);
		if (!grown) {
			r->failed = true;
			return;
		}
		if (list->n)
			memcpy(grown, list->list, list->n * sizeof(struct node *));
		list->list = grown;
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

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* ---- numbers ---- */

int read_number(struct reading *r)
{
	bool negative = reading_take(r, 'n');
	int v = 0;

	if (!is_digit(reading_peek(r, 0)))
		r->failed = true;
	while (!r->failed && is_digit(reading_peek(r, 0))) {
		if (v >= INT32_MAX / 10 - 10)
			r->failed = true;
		else
			v = v * 10 + (*r->at++ - '0');
	}
	return negative ? -v : v;
}

int read_compact(struct reading *r)
{
	int v;

	if (reading_take(r, '_'))
		return 0;
	if (reading_peek(r, 0) == 'n')
		r->failed = true;
	v = r->failed ? 0 : read_number(r) + 1;
	reading_expect(r, '_');
	return v;
}

static uint32_t read_sequence(struct reading *r)
{
	uint32_t v = 0;
	char c;

	if (reading_take(r, '_'))
		return 0;
	while (!r->failed && !reading_take(r, '_')) {
		c = reading_peek(r, 0);
		if ((!is_digit(c) && !is_upper(c)) || v > UINT32_MAX / 36 - 36) {
			r->failed = true;
			return 0;
		}
		v = v * 36 + (uint32_t)(is_digit(c) ? c - '0' : c - 'A' + 10);
		r->at++;
	}
	return v + 1;
}

/* ---- parts of names ---- */

struct node *read_source_name(struct reading *r)
{
	static const struct str global = { "_GLOBAL_", 8 };
	int n = read_number(r);
	struct str id;

	if (r->failed || n <= 0 || r->end - r->at < n)
		return reading_fail(r);
	id = (struct str){ r->at, (size_t)n };
	r->at += n;
	/* gcc's name of what has none */
	if (id.len > global.len + 2 && str_has_prefix(id, global) &&
		strchr("._$", id.ptr[global.len]) && id.ptr[global.len + 1] == 'N')
		id = STR("(anonymous namespace)");
	return node_new(r, NODE_TEXT, NULL, id);
}

static struct node *read_tags(struct reading *r, struct node *name)
{
	struct node *tag;

	while (!r->failed && reading_take(r, 'B')) {
		tag = read_source_name(r);
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

/* code: of those of the table, else NULL. */
struct node *read_operator(struct reading *r, bool in_expression, int *operands, const char **code)
{
	char c[2] = { reading_peek(r, 0), reading_peek(r, 1) };
	struct node *name;

	*code = NULL;
	*operands = 1;
	if (r->end - r->at < 2)
		return reading_fail(r);
	r->at += 2;
	if (c[0] == 'v' && is_digit(c[1])) { /* a vendor's */
		*operands = c[1] - '0';
		name = read_source_name(r);
		return node_new(r, NODE_OPERATOR, NULL, name ? name->text : STR(""));
	}
	if (c[0] == 'c' && c[1] == 'v') {
		if (!in_expression) {
			if (r->scopes_n == DEMANGLE_SCOPES_MAX)
				return reading_fail(r);
			r->scopes[r->scopes_n++] = NULL;
		}
		name = read_type(r, !in_expression);
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

static void read_discriminator(struct reading *r)
{
	const char *at = r->at;
	bool twice;
	int v;

	if (!reading_take(r, '_')) {
		while (at < r->end && is_digit(*at))
			at++;
		if (at == r->end)
			r->at = at;
		return;
	}
	twice = reading_take(r, '_');
	v = read_number(r);
	if (v < 0)
		r->failed = true;
	if (twice && v >= 10)
		reading_expect(r, '_');
}

struct node *read_unnamed(struct reading *r)
{
	struct node *n;

	r->at += 2; /* Ut */
	n = node_new(r, NODE_UNNAMED, NULL, STR(""));
	if (!n)
		return NULL;
	n->num = read_compact(r);
	node_add(r, &r->subs, n);
	return n;
}

struct node *read_lambda(struct reading *r)
{
	unsigned level = r->lambda_level, scopes_n = r->scopes_n;
	struct node *n = node_new(r, NODE_LAMBDA, NULL, STR(""));
	struct node *scope = node_new(r, NODE_TEMPLATE, NULL, STR("")), *value, *declared;

	r->at += 2; /* Ul */
	r->lambda_level = r->scopes_n + 1;
	if (n)
		n->b = node_new(r, NODE_PACK, NULL, STR(""));
	while (!r->failed && reading_peek(r, 0) == 'T') {
		if (!(declared = read_declaration(r, &value)))
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
		read_constraint(r);
	if (!r->failed)
		read_types(r, n);
	r->lambda_level = level;
	r->scopes_n = scopes_n;
	if (!r->failed && reading_peek(r, 0) == 'Q')
		read_constraint(r);
	if (!reading_expect(r, 'E'))
		return NULL;
	n->num = read_compact(r);
	return n;
}

static struct node *read_bindings(struct reading *r)
{
	struct buf text = { 0 };
	struct node *name, *n = NULL;

	r->at += 2; /* DC */
	buf_add_char(&text, '[');
	do {
		if (!(name = read_source_name(r)))
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

struct node *read_unqualified(struct reading *r, bool *is_cast)
{
	bool is_friend = reading_take(r, 'F');
	struct node *n = NULL, *name;
	char c = reading_peek(r, 0), c2 = reading_peek(r, 1);
	const char *code;
	int operands;

	*is_cast = false;
	if (r->failed)
		return NULL;
	if (is_digit(c)) {
		n = read_source_name(r);
	} else if (is_lower(c)) {
		n = read_operator(r, false, &operands, &code);
		*is_cast = n && n->kind == NODE_CAST;
		if (n && code && !memcmp(code, "li", 2) && (name = read_source_name(r)))
			n->text = reading_printf(r, "\"\" " STR_FMT, STR_ARG(name->text));
	} else if (c == 'D' && c2 == 'C') {
		n = read_bindings(r);
	} else if (c == 'L') {
		r->at++;
		n = read_source_name(r);
		read_discriminator(r);
	} else if (c == 'U' && c2 == 'l') {
		n = read_lambda(r);
	} else if (c == 'U' && c2 == 't') {
		n = read_unnamed(r);
	} else if (c == 'U' && c2 == 'b') {
		r->at += 2;
		read_compact(r);
		n = node_new(r, NODE_TEXT, NULL, STR("'block-literal'"));
	} else {
		return reading_fail(r);
	}
	n = read_tags(r, n);
	return is_friend ? node_new(r, NODE_PREFIXED, n, STR("friend ")) : n;
}

/* ---- substitutions ---- */

static struct node *std_name(struct reading *r, const char *name)
{
	struct node *n = node_new(
		r, NODE_QUALIFIED, node_new(r, NODE_TEXT, NULL, STR("std")), STR(""));

	if (n)
		n->b = node_new(r, NODE_TEXT, NULL, str_of(name));
	return n;
}

/* In front of a constructor's name the class has its long one. */
static struct node *standard_name(struct reading *r, char c, bool in_full)
{
	switch (c) {
	case 't':
		return node_new(r, NODE_TEXT, NULL, STR("std"));
	case 'a':
		return std_name(r, "allocator");
	case 'b':
		return std_name(r, "basic_string");
	case 's':
		return std_name(r, in_full ? "basic_string" : "string");
	case 'i':
		return std_name(r, in_full ? "basic_istream" : "istream");
	case 'o':
		return std_name(r, in_full ? "basic_ostream" : "ostream");
	case 'd':
		return std_name(r, in_full ? "basic_iostream" : "iostream");
	default:
		return reading_fail(r);
	}
}

/* Parameters of templates in what is meant again are those of the template that is read now. */
static struct node *rescoped(struct reading *r, struct node *n)
{
	struct node *out = node_new(r, NODE_RESCOPED, n, STR(""));
	struct node *scope = r->scopes_n ? r->scopes[r->scopes_n - 1] : NULL;

	if (!out || n->kind == NODE_TEXT || !scope)
		return n;
	out->scope = scope;
	return out;
}

/* standard: it is none of the candidates. */
struct node *read_substitution(struct reading *r, bool in_prefix, bool *standard)
{
	struct node *n;
	uint32_t id;
	char c, next;

	r->at++; /* S */
	c = reading_peek(r, 0);
	*standard = c != '_' && !is_digit(c) && !is_upper(c);
	if (!*standard) {
		id = read_sequence(r);
		if (r->failed || id >= r->subs.n)
			return reading_fail(r);
		return rescoped(r, r->subs.list[id]);
	}
	if (r->at < r->end)
		r->at++;
	next = reading_peek(r, 0);
	n = standard_name(r, c, in_prefix && (next == 'C' || next == 'D'));
	if (next == 'B') {
		n = read_tags(r, n);
		node_add(r, &r->subs, n);
		*standard = false;
	}
	return n;
}

/* ---- names ---- */

/* The class that a constructor is named after. */
static struct node *last_name(struct node *n)
{
	while (n && (n->kind == NODE_TEMPLATE || n->kind == NODE_QUALIFIED ||
			    n->kind == NODE_TAGGED || n->kind == NODE_RESCOPED))
		n = n->kind == NODE_QUALIFIED ? n->b : n->a;
	return n;
}

static struct node *with_arguments(struct reading *r, struct node *name)
{
	struct node *n = node_new(r, NODE_TEMPLATE, name, STR("")), *pack = read_arguments(r);

	if (r->failed)
		return NULL;
	n->list = pack->list;
	n->n = pack->n;
	return n;
}

/* What a cast is to may be parameters of the template that it turns out to be. */
static void set_scope(struct node *n, struct node *scope, unsigned depth)
{
	if (!n || depth > DEMANGLE_DEPTH_MAX || n->kind == NODE_LAMBDA)
		return;
	if (n->kind == NODE_PARAMETER && !n->scope)
		n->scope = scope;
	if (n->kind == NODE_TEMPLATE || n->kind == NODE_RESCOPED)
		return; /* what stands in arguments is not written */
	set_scope(n->a, scope, depth + 1);
	set_scope(n->b, scope, depth + 1);
}

static struct node *read_ctor(struct reading *r, struct node *last)
{
	struct node *n = last_name(last);
	bool inheriting;

	r->at++; /* C */
	inheriting = reading_take(r, 'I');
	if (!n || r->at == r->end)
		return reading_fail(r);
	r->at++;
	if (inheriting)
		read_type(r, false);
	return read_tags(r, node_new(r, NODE_PREFIXED, n, STR("")));
}

static struct node *read_dtor(struct reading *r, struct node *last)
{
	struct node *n = last_name(last);

	if (!n || r->end - r->at < 2)
		return reading_fail(r);
	r->at += 2;
	return read_tags(r, node_new(r, NODE_DESTRUCTOR, n, STR("")));
}

/* "J" in place of "I": some clangs write it. */
static struct node *read_bare_arguments(struct reading *r, struct node *name)
{
	struct node *n = node_new(r, NODE_TEMPLATE, name, STR(""));

	while (!r->failed && !reading_take(r, 'E'))
		node_add(r, n, read_argument(r, NULL));
	return n;
}

/* What is next of a prefix; NULL without failure: nothing that is a part of it. */
static struct node *read_component(
	struct reading *r, struct node *a, struct node *last, struct node **cast)
{
	char c = reading_peek(r, 0), c2 = reading_peek(r, 1);
	struct node *n, *named;
	bool flag;

	if (is_digit(c) || is_lower(c) || c == 'U' || c == 'L' || c == 'F' ||
		(c == 'D' && c2 == 'C')) {
		n = named = read_unqualified(r, &flag);
		while (named && (named->kind == NODE_TAGGED || named->kind == NODE_PREFIXED))
			named = named->a;
		if (flag)
			*cast = named;
		return n;
	}
	switch (c) {
	case 'C':
		return read_ctor(r, last);
	case 'D':
		return c2 == 'T' || c2 == 't' ? read_type(r, false) : read_dtor(r, last);
	case 'S':
		return read_substitution(r, true, &flag);
	case 'T':
		return read_parameter(r);
	case 'I':
	case 'J':
		if (!a)
			return reading_fail(r);
		if (c == 'J')
			r->at++;
		n = c == 'I' ? with_arguments(r, a) : read_bare_arguments(r, a);
		if (*cast && n)
			set_scope(*cast, n, 0);
		*cast = NULL;
		return n;
	default:
		return reading_fail(r);
	}
}

static struct node *read_prefix(struct reading *r)
{
	struct node *a = NULL, *last = NULL, *cast = NULL, *n, *joined;
	char c;

	for (;;) {
		c = reading_peek(r, 0);
		if (r->failed)
			return NULL;
		if (c == 'E')
			return a ? a : reading_fail(r);
		if (c == 'M' && a) { /* the scope of a lambda in an initializer */
			r->at++;
			continue;
		}
		if (!(n = read_component(r, a, last, &cast)))
			return reading_fail(r);
		if (!a || c == 'I' || c == 'J') {
			a = n;
		} else {
			joined = node_new(r, NODE_QUALIFIED, a, STR(""));
			if (!joined)
				return NULL;
			joined->b = n;
			a = joined;
		}
		last = n;
		if (c != 'S' && reading_peek(r, 0) != 'E')
			node_add(r, &r->subs, a);
	}
}

static struct node *read_nested(struct reading *r)
{
	struct str behind = STR("");
	struct node *n;

	r->at++; /* N */
	if (!reading_take(r, 'H')) {
		behind = read_qualifiers(r);
		if (reading_peek(r, 0) == 'R' || reading_peek(r, 0) == 'O')
			behind = reading_printf(r, STR_FMT "%s", STR_ARG(behind),
				*r->at++ == 'R' ? " &" : " &&");
	}
	n = read_prefix(r);
	if (!reading_expect(r, 'E'))
		return NULL;
	return behind.len ? node_new(r, NODE_METHOD, n, behind) : n;
}

static struct node *read_local(struct reading *r)
{
	struct node *around, *n;
	int parameter = -1;

	r->at++; /* Z */
	around = read_encoding(r, true);
	if (!reading_expect(r, 'E'))
		return NULL;
	if (reading_take(r, 's')) {
		n = node_new(r, NODE_TEXT, NULL, STR("string literal"));
		read_discriminator(r);
	} else {
		if (reading_take(r, 'd'))
			parameter = read_compact(r);
		n = read_name(r);
		read_discriminator(r);
		if (parameter >= 0 && (n = node_new(r, NODE_DEFAULT, n, STR(""))))
			n->num = parameter;
	}
	around = node_new(r, NODE_QUALIFIED, around, STR(""));
	if (around)
		around->b = n;
	return r->failed ? NULL : around;
}

static struct node *read_name_inner(struct reading *r)
{
	bool is_cast = false, standard, substituted = false;
	char c = reading_peek(r, 0);
	struct node *n, *cast, *std;

	switch (c) {
	case 'N':
		return read_nested(r);
	case 'Z':
		return read_local(r);
	case 'S':
		if (reading_peek(r, 1) == 't') {
			r->at += 2;
			std = std_name(r, "");
			n = read_unqualified(r, &is_cast);
			if (std)
				std->b = n;
			n = std;
		} else {
			n = read_substitution(r, false, &standard);
			substituted = true;
		}
		break;
	default:
		n = read_unqualified(r, &is_cast);
		break;
	}
	cast = is_cast && n ? (n->kind == NODE_QUALIFIED ? n->b : n) : NULL;
	if (!r->failed && c != 'U' && reading_peek(r, 0) == 'I') {
		if (!substituted)
			node_add(r, &r->subs, n);
		n = with_arguments(r, n);
		set_scope(cast, n, 0);
	}
	return r->failed ? NULL : n;
}

struct node *read_name(struct reading *r)
{
	struct node *n;

	if (r->failed || r->depth >= DEMANGLE_DEPTH_MAX)
		return reading_fail(r);
	r->depth++;
	n = read_name_inner(r);
	r->depth--;
	return n;
}

/* ---- encodings ---- */

static void read_offset(struct reading *r, char c)
{
	if (!c && r->at < r->end)
		c = *r->at++;
	if (c == 'v') {
		read_number(r);
		reading_expect(r, '_');
	} else if (c != 'h') {
		r->failed = true;
	}
	read_number(r);
	reading_expect(r, '_');
}

static struct node *prefixed(struct reading *r, const char *text, struct node *n)
{
	return node_new(r, NODE_PREFIXED, n, str_of(text));
}

static struct node *read_construction(struct reading *r)
{
	struct node *derived = read_type(r, false), *base, *n;

	if (read_number(r) < 0)
		r->failed = true;
	reading_expect(r, '_');
	base = r->failed ? NULL : read_type(r, false);
	n = node_new(r, NODE_QUALIFIED, base, STR("-in-"));
	if (n)
		n->b = derived;
	return prefixed(r, "construction vtable for ", n);
}

static struct node *read_special(struct reading *r)
{
	char c = reading_peek(r, 0), c2 = reading_peek(r, 1);

	if (r->end - r->at < 2)
		return reading_fail(r);
	r->at += 2;
	if (c == 'G') {
		switch (c2) {
		case 'V':
			return prefixed(r, "guard variable for ", read_name(r));
		case 'R':
			return prefixed(r, "reference temporary for ", read_name(r));
		case 'A':
			return prefixed(r, "hidden alias for ", read_encoding(r, false));
		case 'T':
			if (r->at == r->end)
				return reading_fail(r);
			c = *r->at++;
			return prefixed(r,
				c == 'n' ? "non-transaction clone for " : "transaction clone for ",
				read_encoding(r, false));
		default:
			return reading_fail(r);
		}
	}
	switch (c2) {
	case 'V':
		return prefixed(r, "vtable for ", read_type(r, false));
	case 'T':
		return prefixed(r, "VTT for ", read_type(r, false));
	case 'I':
		return prefixed(r, "typeinfo for ", read_type(r, false));
	case 'S':
		return prefixed(r, "typeinfo name for ", read_type(r, false));
	case 'F':
		return prefixed(r, "typeinfo fn for ", read_type(r, false));
	case 'J':
		return prefixed(r, "java Class for ", read_type(r, false));
	case 'H':
		return prefixed(r, "TLS init function for ", read_name(r));
	case 'W':
		return prefixed(r, "TLS wrapper function for ", read_name(r));
	case 'h':
	case 'v':
		read_offset(r, c2);
		return prefixed(r, c2 == 'h' ? "non-virtual thunk to " : "virtual thunk to ",
			read_encoding(r, false));
	case 'c':
		read_offset(r, 0);
		read_offset(r, 0);
		return prefixed(r, "covariant return thunk to ", read_encoding(r, false));
	case 'C':
		return read_construction(r);
	default:
		return reading_fail(r);
	}
}

/* The template whose parameters a function's types may name; NULL: none. */
static struct node *template_of(struct node *n)
{
	while (n) {
		if (n->kind == NODE_TEMPLATE)
			return n;
		if (n->kind == NODE_METHOD)
			n = n->a;
		else if (n->kind == NODE_QUALIFIED && n->a && n->a->kind == NODE_LOCAL)
			n = n->b;
		else
			return NULL;
	}
	return NULL;
}

/* Functions from templates say what they return, but for constructors and conversions. */
static bool says_return(struct node *n)
{
	n = template_of(n);
	for (n = n ? n->a : NULL; n && n->kind == NODE_QUALIFIED;)
		n = n->b;
	return n && n->kind != NODE_DESTRUCTOR && n->kind != NODE_CAST &&
		!(n->kind == NODE_PREFIXED && n->text.len == 0);
}

struct node *read_encoding(struct reading *r, bool local)
{
	unsigned scopes_n = r->scopes_n, level = r->lambda_level;
	struct node *name, *scope, *n;
	char c = reading_peek(r, 0);
	bool returns;

	if (r->failed || r->depth >= DEMANGLE_DEPTH_MAX)
		return reading_fail(r);
	r->depth++;
	name = c == 'G' || c == 'T' ? read_special(r) : read_name(r);
	r->depth--;
	if (r->failed || c == 'G' || c == 'T' || r->at == r->end || reading_peek(r, 0) == 'E')
		return name;
	n = node_new(r, local ? NODE_LOCAL : NODE_FUNCTION, name, STR(""));
	if ((scope = template_of(name))) {
		if (r->scopes_n == DEMANGLE_SCOPES_MAX)
			return reading_fail(r);
		r->scopes[r->scopes_n++] = scope;
		r->lambda_level = 0;
	}
	if ((size_t)(r->end - r->at) > 13 && !memcmp(r->at, "Ua9enable_ifI", 13)) {
		r->at += 12;
		read_arguments(r);
	}
	returns = says_return(name);
	returns |= reading_take(r, 'J');
	if (n && returns)
		n->b = read_type(r, false);
	if (!r->failed)
		read_types(r, n);
	if (!r->failed && reading_peek(r, 0) == 'Q')
		read_constraint(r);
	r->scopes_n = scopes_n;
	r->lambda_level = level;
	return r->failed ? NULL : n;
}

/* ---- whole symbols ---- */

/* What stands behind the name, parameters among it, is not looked at. */
static struct node *read_symbol(struct reading *r)
{
	char c = reading_peek(r, 0);
	struct node *n = c == 'G' || c == 'T' ? read_special(r) : read_name(r);

	if (!r->failed && n->kind == NODE_METHOD)
		n = n->a;
	if (!r->failed && n->kind == NODE_QUALIFIED && n->a->kind == NODE_LOCAL &&
		n->b->kind == NODE_METHOD)
		n->b = n->b->a;
	return r->failed ? NULL : n;
}

static bool demangle_symbol(struct str name, const char *before, struct buf *out)
{
	struct reading r = { .at = name.ptr, .end = name.ptr + name.len };
	size_t len = out->len;
	struct arena scratch;
	struct node *n;
	bool ok;

	arena_init(&scratch, 0);
	r.arena = &scratch;
	n = read_symbol(&r);
	buf_add_cstr(out, before);
	ok = n && node_print(n, out);
	if (!ok)
		out->len = len;
	arena_release(&scratch);
	return ok;
}

bool demangle_cpp(struct str name, struct buf *out)
{
	static const struct str block = { "_block_invoke", 13 };
	ptrdiff_t at = -1, next = 0;
	struct str rest;

	if (name.len > DEMANGLE_NAME_MAX)
		return false;
	if (str_has_prefix(name, STR("_Z")))
		return demangle_symbol(
			(struct str){ name.ptr + 2, name.len - 2 }, "", out);
	if (!str_has_prefix(name, STR("___Z")))
		return false;
	/* clang's blocks: the last one counts */
	for (rest = name; next >= 0; rest = (struct str){ name.ptr + at + 1, name.len - (size_t)at - 1 }) {
		next = str_find(rest, block);
		if (next < 0)
			break;
		at = (rest.ptr - name.ptr) + next;
	}
	return at > 4 &&
		demangle_symbol((struct str){ name.ptr + 4, (size_t)at - 4 },
			"invocation function for block in ", out);
}
