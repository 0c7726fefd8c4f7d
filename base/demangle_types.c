/*
 * Reading of C++ types, template arguments and expressions. Expressions are only read to find
 * their end, and for the candidates of substitution in them.
 */
#include <string.h>

#include "base/demangle_cpp.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static struct node *enter(struct reading *r)
{
	static struct node entered;

	if (r->failed || r->depth >= DEMANGLE_DEPTH_MAX)
		return reading_fail(r);
	r->depth++;
	return &entered;
}

static bool next_is(const struct reading *r, const char *code)
{
	return reading_peek(r, 0) == code[0] && reading_peek(r, 1) == code[1];
}

/* ---- qualifiers ---- */

/* r, V, K are written the other way round: " const volatile restrict". */
struct str read_qualifiers(struct reading *r)
{
	struct str out = STR(""), one;
	char c;

	while (!r->failed) {
		c = reading_peek(r, 0);
		if (c == 'r' || c == 'V' || c == 'K') {
			r->at++;
			one = c == 'r' ? STR(" restrict") : c == 'V' ? STR(" volatile") : STR(" const");
		} else if (next_is(r, "Dx") || next_is(r, "Do")) {
			one = r->at[1] == 'x' ? STR(" transaction_safe") : STR(" noexcept");
			r->at += 2;
		} else if (next_is(r, "DO") || next_is(r, "Dw")) {
			struct node list = { 0 };
			bool computed = r->at[1] == 'O';

			r->at += 2;
			if (computed)
				read_expression(r);
			else
				read_types(r, &list);
			reading_expect(r, 'E');
			one = computed ? STR(" noexcept") : STR(" throw");
		} else {
			break;
		}
		out = out.len ? reading_printf(r, STR_FMT STR_FMT, STR_ARG(one), STR_ARG(out)) : one;
	}
	return out;
}

/* ---- types ---- */

static const struct {
	char code;
	const char *name;
} builtins[] = {
	{ 'a', "signed char" },
	{ 'b', "bool" },
	{ 'c', "char" },
	{ 'd', "double" },
	{ 'e', "long double" },
	{ 'f', "float" },
	{ 'g', "__float128" },
	{ 'h', "unsigned char" },
	{ 'i', "int" },
	{ 'j', "unsigned int" },
	{ 'l', "long" },
	{ 'm', "unsigned long" },
	{ 'n', "__int128" },
	{ 'o', "unsigned __int128" },
	{ 's', "short" },
	{ 't', "unsigned short" },
	{ 'v', "void" },
	{ 'w', "wchar_t" },
	{ 'x', "long long" },
	{ 'y', "unsigned long long" },
	{ 'z', "..." },
}, d_builtins[] = {
	{ 'a', "auto" },
	{ 'c', "decltype(auto)" },
	{ 'd', "decimal64" },
	{ 'e', "decimal128" },
	{ 'f', "decimal32" },
	{ 'h', "half" },
	{ 'i', "char32_t" },
	{ 'n', "decltype(nullptr)" },
	{ 's', "char16_t" },
	{ 'u', "char8_t" },
};

static const char *builtin(char c)
{
	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (builtins[i].code == c)
			return builtins[i].name;
	return NULL;
}

static const char *d_builtin(char c)
{
	for (size_t i = 0; i < sizeof(d_builtins) / sizeof(d_builtins[0]); i++)
		if (d_builtins[i].code == c)
			return d_builtins[i].name;
	return NULL;
}

static struct node *text_node(struct reading *r, const char *text)
{
	return node_new(r, NODE_TEXT, NULL, str_of(text));
}

static bool is_text(const struct node *n, const char *text)
{
	return n && n->kind == NODE_TEXT && str_is(n->text, text);
}

void read_types(struct reading *r, struct node *list)
{
	uint32_t first = list ? list->n : 0;
	char c;

	while (!r->failed && r->at < r->end) {
		c = reading_peek(r, 0);
		if (c == 'E' || c == '.' || c == 'Q' ||
			((c == 'R' || c == 'O') && reading_peek(r, 1) == 'E'))
			break;
		node_add(r, list, read_type(r, false));
	}
	if (r->failed || list->n == first)
		r->failed = true;
	else if (list->n == first + 1 && is_text(list->list[first], "void"))
		list->n = first;
}

static struct node *read_function_type(struct reading *r)
{
	struct node *n = node_new(r, NODE_PROTOTYPE, NULL, STR(""));

	r->at++; /* F */
	reading_take(r, 'Y');
	if (!n)
		return NULL;
	n->a = read_type(r, false);
	if (!r->failed)
		read_types(r, n);
	if (reading_peek(r, 1) == 'E' && reading_take(r, 'R'))
		n->text = STR(" &");
	else if (reading_peek(r, 1) == 'E' && reading_take(r, 'O'))
		n->text = STR(" &&");
	return reading_expect(r, 'E') ? n : NULL;
}

static struct node *read_array(struct reading *r, bool is_cast)
{
	const char *at = ++r->at; /* A */
	struct node *n;

	while (is_digit(reading_peek(r, 0)))
		r->at++;
	if (r->at == at && reading_peek(r, 0) != '_')
		read_expression(r);
	n = node_new(r, NODE_ARRAY, NULL, (struct str){ at, (size_t)(r->at - at) });
	if (n && at < r->at && !is_digit(*at))
		n->text = STR("...");
	if (!reading_expect(r, '_'))
		return NULL;
	n->a = read_type(r, is_cast);
	return n;
}

/* T_, T0_, TL0__ */
struct node *read_parameter(struct reading *r)
{
	int level = 0, i;
	struct node *n, *scope;
	bool of_lambda;

	r->at++; /* T */
	if (reading_take(r, 'L'))
		level = read_compact(r);
	i = read_compact(r);
	if (r->failed)
		return NULL;
	of_lambda = r->lambda_level > 0 && (unsigned)level == r->lambda_level - 1;
	scope = (unsigned)level < r->scopes_n ? r->scopes[level] : NULL;
	if ((unsigned)level >= r->scopes_n || (scope && (uint32_t)i >= scope->n)) {
		if (!of_lambda)
			return reading_fail(r);
		if ((n = node_new(r, NODE_AUTO, NULL, STR(""))))
			n->num = i;
		return n;
	}
	if ((n = node_new(r, NODE_PARAMETER, NULL, STR("")))) {
		n->num = i;
		n->scope = scope;
	}
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

/*
 * Behind a parameter that a cast is to, arguments are the parameter's only if others follow; else
 * they are of the cast.
 */
static struct node *cast_arguments(struct reading *r, struct node *parameter, bool add)
{
	struct reading before = *r;
	struct node *pack = read_arguments(r), *n;

	if (r->failed || reading_peek(r, 0) != 'I') {
		*r = before;
		return parameter;
	}
	if (add)
		node_add(r, &r->subs, parameter);
	n = node_new(r, NODE_TEMPLATE, parameter, STR(""));
	if (n) {
		n->list = pack->list;
		n->n = pack->n;
	}
	return n;
}

static struct node *read_template_parameter(struct reading *r, bool is_cast)
{
	struct node *n;
	char c = reading_peek(r, 1);

	if (c == 's' || c == 'u' || c == 'e') {
		r->at += 2;
		n = read_name(r);
		return node_new(r, NODE_PREFIXED, n,
			c == 's' ? STR("struct ") : c == 'u' ? STR("union ") : STR("enum "));
	}
	n = read_parameter(r);
	if (r->failed || reading_peek(r, 0) != 'I')
		return n;
	if (is_cast)
		return cast_arguments(r, n, true);
	node_add(r, &r->subs, n);
	return with_arguments(r, n);
}

static struct node *read_substituted(struct reading *r, bool is_cast, bool *add)
{
	char c = reading_peek(r, 1);
	struct node *n, *next;
	size_t subs_n = r->subs.n;
	const char *at = r->at;
	bool standard;

	if (is_digit(c) || c == '_' || is_upper(c)) {
		n = read_substitution(r, false, &standard);
		if (r->failed || reading_peek(r, 0) != 'I') {
			*add = false;
			return n;
		}
		next = n->kind == NODE_RESCOPED ? n->a : n;
		if (next->kind != NODE_PARAMETER || !is_cast)
			return with_arguments(r, n);
		next = cast_arguments(r, n, false);
		*add = next != n;
		return next;
	}
	n = read_name(r);
	/* A standard name alone is no candidate. */
	if (r->at - at == 2 && r->subs.n == subs_n)
		*add = false;
	return n;
}

static struct node *read_fixed_point(struct reading *r, bool is_cast)
{
	if (is_digit(reading_peek(r, 0)))
		read_number(r);
	if (reading_take(r, '_'))
		return text_node(r, "_Float");
	read_type(r, is_cast);
	if (is_digit(reading_peek(r, 0)))
		read_number(r);
	if (r->at < r->end)
		r->at++;
	return text_node(r, "_Fract");
}

static struct node *read_vector(struct reading *r, bool is_cast)
{
	const char *at = r->at;
	struct node *n;
	struct str size;

	if (reading_take(r, '_')) {
		read_expression(r);
		size = STR("...");
	} else {
		read_number(r);
		size = (struct str){ at, (size_t)(r->at - at) };
	}
	if (!reading_expect(r, '_'))
		return NULL;
	n = read_type(r, is_cast);
	return node_new(r, NODE_CV, n, reading_printf(r, " __vector(" STR_FMT ")", STR_ARG(size)));
}

static struct node *read_d_type(struct reading *r, bool is_cast, bool *add)
{
	char c = reading_peek(r, 1);
	struct node *n;

	if (r->end - r->at < 2)
		return reading_fail(r);
	r->at += 2;
	*add = c == 'T' || c == 't' || c == 'p' || c == 'v';
	switch (c) {
	case 'T':
	case 't':
		read_expression(r);
		return reading_expect(r, 'E') ? text_node(r, "decltype (...)") : NULL;
	case 'p':
		n = read_type(r, is_cast);
		return node_new(r, NODE_EXPANSION, n, STR(""));
	case 'F':
		return read_fixed_point(r, is_cast);
	case 'v':
		return read_vector(r, is_cast);
	case 'B':
	case 'U':
		if (is_digit(reading_peek(r, 0)))
			read_number(r);
		else
			read_expression(r);
		return reading_expect(r, '_') ?
			text_node(r, c == 'B' ? "_BitInt" : "unsigned _BitInt") : NULL;
	case 'k':
	case 'K':
		n = read_name(r);
		return node_new(r, NODE_CV, n, c == 'k' ? STR(" auto") : STR(" decltype(auto)"));
	default:
		return d_builtin(c) ? text_node(r, d_builtin(c)) : reading_fail(r);
	}
}

static struct node *read_u_type(struct reading *r, bool is_cast, bool *add)
{
	struct node *n, *type;

	switch (reading_peek(r, 1)) {
	case 'l':
		*add = false;
		return read_lambda(r);
	case 't':
		*add = false;
		return read_unnamed(r);
	default:
		r->at++;
		n = read_source_name(r);
		if (!r->failed && reading_peek(r, 0) == 'I')
			n = with_arguments(r, n);
		type = read_type(r, is_cast);
		return r->failed ? NULL :
				   node_new(r, NODE_CV, type,
					   reading_printf(r, " " STR_FMT, STR_ARG(n->text)));
	}
}

static struct node *read_member(struct reading *r, bool is_cast)
{
	struct node *n = node_new(r, NODE_MEMBER, NULL, STR(""));

	r->at++; /* M */
	if (!n)
		return NULL;
	n->a = read_type(r, false);
	n->b = read_type(r, is_cast);
	return r->failed ? NULL : n;
}

static struct node *read_vendor_type(struct reading *r)
{
	struct node *n;

	r->at++; /* u */
	n = read_source_name(r);
	if (!r->failed && reading_take(r, 'I')) {
		read_type(r, false);
		reading_expect(r, 'E');
	}
	return r->failed ? NULL : n;
}

static struct node *read_plain_type(struct reading *r, bool is_cast, bool *add)
{
	static const char pointers[] = "PRO";
	static const struct str texts[] = { { "*", 1 }, { "&", 1 }, { "&&", 2 } };
	char c = reading_peek(r, 0);
	const char *at;
	struct node *n;

	if (is_digit(c))
		return read_name(r);
	switch (c) {
	case 'N':
	case 'Z':
		return read_name(r);
	case 'u':
		return read_vendor_type(r);
	case 'F':
		return read_function_type(r);
	case 'A':
		return read_array(r, is_cast);
	case 'M':
		return read_member(r, is_cast);
	case 'T':
		return read_template_parameter(r, is_cast);
	case 'S':
		return read_substituted(r, is_cast, add);
	case 'C':
	case 'G':
		r->at++;
		n = read_type(r, is_cast);
		return node_new(r, NODE_CV, n, c == 'C' ? STR(" _Complex") : STR(" _Imaginary"));
	case 'U':
		return read_u_type(r, is_cast, add);
	case 'D':
		return read_d_type(r, is_cast, add);
	default:
		at = c ? strchr(pointers, c) : NULL;
		if (!at)
			return reading_fail(r);
		r->at++;
		n = read_type(r, is_cast);
		return node_new(r, NODE_POINTER, n, texts[at - pointers]);
	}
}

static struct node *qualified(struct reading *r, struct node *n, struct str behind)
{
	struct node *out;

	if (r->failed)
		return NULL;
	if (n->kind != NODE_PROTOTYPE) {
		/* Of an array they are those of its elements. */
		if (n->kind == NODE_CV && str_eq(n->text, behind))
			return n;
		return node_new(r, NODE_CV, n, behind);
	}
	if ((out = node_new(r, NODE_PROTOTYPE, n->a, STR("")))) {
		out->list = n->list;
		out->n = n->n;
		out->text = reading_printf(r, STR_FMT STR_FMT, STR_ARG(behind), STR_ARG(n->text));
	}
	return out;
}

struct node *read_type(struct reading *r, bool is_cast)
{
	struct str behind;
	struct node *n;
	bool add = true;

	if (!enter(r))
		return NULL;
	behind = read_qualifiers(r);
	if (!r->failed && builtin(reading_peek(r, 0))) {
		n = text_node(r, builtin(*r->at++));
		add = false;
	} else {
		/* Those in front of a function are of `this`. */
		add = !(behind.len && reading_peek(r, 0) == 'F');
		n = r->failed ? NULL : read_plain_type(r, is_cast, &add);
	}
	if (add)
		node_add(r, &r->subs, n);
	if (behind.len && !r->failed) {
		n = qualified(r, n, behind);
		node_add(r, &r->subs, n);
	}
	r->depth--;
	return r->failed ? NULL : n;
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

	if (!enter(r))
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
		/* What is declared may be about the arguments before it. */
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
	if (!enter(r))
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
		n = r->failed ? NULL :
				node_new(r, NODE_CV, n,
					reading_printf(r, " " STR_FMT, STR_ARG((*value)->text)));
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

/* What is read to find its end is written as this. */
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

	if (next_is(r, "dn")) {
		r->at += 2;
		if (is_digit(reading_peek(r, 0)))
			read_source_name(r);
		else
			read_type(r, false);
	} else if (is_digit(reading_peek(r, 0))) {
		read_source_name(r);
	} else {
		if (next_is(r, "on"))
			r->at += 2;
		read_operator(r, true, &operands, &code);
	}
	read_optional_arguments(r);
}

static void read_unresolved(struct reading *r)
{
	struct node *scope = NULL, *n;
	char c;

	while (next_is(r, "gs"))
		r->at += 2;
	if (!next_is(r, "sr")) {
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
			n = with_arguments(r, n);
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
	if (next_is(r, "pi")) {
		r->at += 2;
		read_expressions(r, 'E');
	} else if (next_is(r, "il")) {
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
	if (c == 'f' && (reading_peek(r, 1) == 'p' ||
				(reading_peek(r, 1) == 'L' && is_digit(reading_peek(r, 2))))) {
		r->at++;
		read_function_parameter(r);
	} else if (next_is(r, "so")) {
		r->at += 2;
		read_subobject(r);
	} else if (next_is(r, "sr")) {
		read_unresolved(r);
	} else if (next_is(r, "sp") || next_is(r, "sZ")) {
		r->at += 2;
		read_expression(r);
	} else if (next_is(r, "sP")) {
		r->at += 2;
		while (!r->failed && !reading_take(r, 'E'))
			read_argument(r, NULL);
	} else if (next_is(r, "mc")) {
		r->at += 2;
		read_member_cast(r);
	} else if (is_digit(c) || next_is(r, "on")) {
		if (c == 'o')
			r->at += 2;
		read_unqualified(r, &is_cast);
		read_optional_arguments(r);
	} else if (next_is(r, "il") || next_is(r, "tl")) {
		r->at += 2;
		if (c == 't')
			read_type(r, false);
		read_expressions(r, 'E');
	} else if (c == 'u') {
		read_vendor_expression(r);
	} else if (next_is(r, "rq") || next_is(r, "rQ")) {
		read_requirements(r);
	} else {
		read_operation(r);
	}
	return some(r);
}

struct node *read_expression(struct reading *r)
{
	struct node *n;

	if (!enter(r))
		return NULL;
	n = read_expression_inner(r);
	r->depth--;
	return r->failed ? NULL : n;
}
