/* Reads C++ types. */
#include <string.h>

#include "base/demangle/cpp.h"

static bool demangle_types_is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* ---- qualifiers ---- */

/* r, V, K are written the other way round: " const volatile restrict". */
struct str demangle_read_qualifiers(struct reading *r)
{
	struct str out = STR(""), one;
	char c;

	while (!r->failed) {
		c = reading_peek(r, 0);
		if (c == 'r' || c == 'V' || c == 'K') {
			r->at++;
			one = c == 'r' ? STR(" restrict") : c == 'V' ? STR(" volatile") : STR(" const");
		} else if (reading_next_is(r, "Dx") || reading_next_is(r, "Do")) {
			one = r->at[1] == 'x' ? STR(" transaction_safe") : STR(" noexcept");
			r->at += 2;
		} else if (reading_next_is(r, "DO") || reading_next_is(r, "Dw")) {
			struct node list = { 0 };
			bool computed = r->at[1] == 'O';

			r->at += 2;
			if (computed)
				demangle_read_expression(r);
			else
				demangle_read_types(r, &list);
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

static const char *demangle_builtin(char c)
{
	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (builtins[i].code == c)
			return builtins[i].name;
	return NULL;
}

static const char *demangle_d_builtin(char c)
{
	for (size_t i = 0; i < sizeof(d_builtins) / sizeof(d_builtins[0]); i++)
		if (d_builtins[i].code == c)
			return d_builtins[i].name;
	return NULL;
}

static struct node *demangle_types_text_node(struct reading *r, const char *text)
{
	return node_new(r, NODE_TEXT, NULL, str_of(text));
}

static bool demangle_types_is_text(const struct node *n, const char *text)
{
	return n && n->kind == NODE_TEXT && str_is(n->text, text);
}

void demangle_read_types(struct reading *r, struct node *list)
{
	uint32_t first = list ? list->n : 0;
	char c;

	while (!r->failed && r->at < r->end) {
		c = reading_peek(r, 0);
		if (c == 'E' || c == '.' || c == 'Q' ||
			((c == 'R' || c == 'O') && reading_peek(r, 1) == 'E'))
			break;
		node_add(r, list, demangle_read_type(r, false));
	}
	if (r->failed || list->n == first)
		r->failed = true;
	else if (list->n == first + 1 && demangle_types_is_text(list->list[first], "void"))
		list->n = first;
}

static struct node *demangle_read_function_type(struct reading *r)
{
	struct node *n = node_new(r, NODE_PROTOTYPE, NULL, STR(""));

	r->at++; /* F */
	reading_take(r, 'Y');
	if (!n)
		return NULL;
	n->a = demangle_read_type(r, false);
	if (!r->failed)
		demangle_read_types(r, n);
	if (reading_peek(r, 1) == 'E' && reading_take(r, 'R'))
		n->text = STR(" &");
	else if (reading_peek(r, 1) == 'E' && reading_take(r, 'O'))
		n->text = STR(" &&");
	return reading_expect(r, 'E') ? n : NULL;
}

static struct node *demangle_read_array(struct reading *r, bool is_cast)
{
	const char *at = ++r->at; /* A */
	struct node *n;

	while (demangle_is_digit(reading_peek(r, 0)))
		r->at++;
	if (r->at == at && reading_peek(r, 0) != '_')
		demangle_read_expression(r);
	n = node_new(r, NODE_ARRAY, NULL, (struct str){ at, (size_t)(r->at - at) });
	if (n && at < r->at && !demangle_is_digit(*at))
		n->text = STR("...");
	if (!reading_expect(r, '_'))
		return NULL;
	n->a = demangle_read_type(r, is_cast);
	return n;
}

/* T_, T0_, TL0__ */
struct node *demangle_read_parameter(struct reading *r)
{
	int level = 0, i;
	struct node *n, *scope;
	bool of_lambda;

	r->at++; /* T */
	if (reading_take(r, 'L'))
		level = demangle_read_compact(r);
	i = demangle_read_compact(r);
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

/*
 * Behind a parameter as the type of a cast, arguments belong to the parameter only if others
 * follow; else they belong to the cast.
 */
static struct node *demangle_cast_arguments(struct reading *r, struct node *parameter, bool add)
{
	struct reading before = *r;
	struct node *pack = demangle_read_arguments(r), *n;

	if (r->failed || reading_peek(r, 0) != 'I') {
		before.steps = r->steps;
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

static struct node *demangle_read_template_parameter(struct reading *r, bool is_cast)
{
	struct node *n;
	char c = reading_peek(r, 1);

	if (c == 's' || c == 'u' || c == 'e') {
		r->at += 2;
		n = demangle_read_name(r);
		return node_new(r, NODE_PREFIXED, n,
			c == 's' ? STR("struct ") : c == 'u' ? STR("union ") : STR("enum "));
	}
	n = demangle_read_parameter(r);
	if (r->failed || reading_peek(r, 0) != 'I')
		return n;
	if (is_cast)
		return demangle_cast_arguments(r, n, true);
	node_add(r, &r->subs, n);
	return demangle_read_with_arguments(r, n);
}

static struct node *demangle_read_substituted(struct reading *r, bool is_cast, bool *add)
{
	char c = reading_peek(r, 1);
	struct node *n, *next;
	size_t subs_n = r->subs.n;
	const char *at = r->at;
	bool standard;

	if (demangle_is_digit(c) || c == '_' || demangle_types_is_upper(c)) {
		n = demangle_read_substitution(r, false, &standard);
		if (r->failed || reading_peek(r, 0) != 'I') {
			*add = false;
			return n;
		}
		next = n->kind == NODE_RESCOPED ? n->a : n;
		if (next->kind != NODE_PARAMETER || !is_cast)
			return demangle_read_with_arguments(r, n);
		next = demangle_cast_arguments(r, n, false);
		*add = next != n;
		return next;
	}
	n = demangle_read_name(r);
	/* A standard name alone is no candidate. */
	if (r->at - at == 2 && r->subs.n == subs_n)
		*add = false;
	return n;
}

static struct node *demangle_read_fixed_point(struct reading *r, bool is_cast)
{
	int bits = demangle_is_digit(reading_peek(r, 0)) ? demangle_read_number(r) : 0;

	if (bits && reading_take(r, '_'))
		return node_new(r, NODE_TEXT, NULL, reading_printf(r, "_Float%d", bits));
	demangle_read_type(r, is_cast);
	if (demangle_is_digit(reading_peek(r, 0)))
		demangle_read_number(r);
	if (r->at < r->end)
		r->at++;
	return demangle_types_text_node(r, "_Fract");
}

static struct node *demangle_read_vector(struct reading *r, bool is_cast)
{
	const char *at = r->at;
	struct node *n;
	struct str size;

	if (reading_take(r, '_')) {
		demangle_read_expression(r);
		size = STR("...");
	} else {
		demangle_read_number(r);
		size = (struct str){ at, (size_t)(r->at - at) };
	}
	if (!reading_expect(r, '_'))
		return NULL;
	n = demangle_read_type(r, is_cast);
	return node_new(r, NODE_CV, n, reading_printf(r, " __vector(" STR_FMT ")", STR_ARG(size)));
}

static struct node *demangle_read_d_type(struct reading *r, bool is_cast, bool *add)
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
		demangle_read_expression(r);
		return reading_expect(r, 'E') ? demangle_types_text_node(r, "decltype (...)") : NULL;
	case 'p':
		n = demangle_read_type(r, is_cast);
		return node_new(r, NODE_EXPANSION, n, STR(""));
	case 'F':
		return demangle_read_fixed_point(r, is_cast);
	case 'v':
		return demangle_read_vector(r, is_cast);
	case 'B':
	case 'U':
		if (demangle_is_digit(reading_peek(r, 0)))
			demangle_read_number(r);
		else
			demangle_read_expression(r);
		return reading_expect(r, '_') ?
			demangle_types_text_node(r, c == 'B' ? "_BitInt" : "unsigned _BitInt") :
			NULL;
	case 'k':
	case 'K':
		n = demangle_read_name(r);
		return node_new(r, NODE_CV, n, c == 'k' ? STR(" auto") : STR(" decltype(auto)"));
	default:
		return demangle_d_builtin(c) ? demangle_types_text_node(r, demangle_d_builtin(c)) :
									   reading_fail(r);
	}
}

static struct node *demangle_read_u_type(struct reading *r, bool is_cast, bool *add)
{
	struct node *n, *type;

	switch (reading_peek(r, 1)) {
	case 'l':
		*add = false;
		return demangle_read_lambda(r);
	case 't':
		*add = false;
		return demangle_read_unnamed(r);
	default:
		r->at++;
		n = demangle_read_source_name(r);
		if (!r->failed && reading_peek(r, 0) == 'I')
			n = demangle_read_with_arguments(r, n);
		type = demangle_read_type(r, is_cast);
		return r->failed ?
			NULL :
			node_new(r, NODE_CV, type, reading_printf(r, " " STR_FMT, STR_ARG(n->text)));
	}
}

static struct node *demangle_read_member(struct reading *r, bool is_cast)
{
	struct node *n = node_new(r, NODE_MEMBER, NULL, STR(""));

	r->at++; /* M */
	if (!n)
		return NULL;
	n->a = demangle_read_type(r, false);
	n->b = demangle_read_type(r, is_cast);
	return r->failed ? NULL : n;
}

static struct node *demangle_read_vendor_type(struct reading *r)
{
	struct node *n;

	r->at++; /* u */
	n = demangle_read_source_name(r);
	if (!r->failed && reading_take(r, 'I')) {
		demangle_read_type(r, false);
		reading_expect(r, 'E');
	}
	return r->failed ? NULL : n;
}

static struct node *demangle_read_plain_type(struct reading *r, bool is_cast, bool *add)
{
	static const char pointers[] = "PRO";
	static const struct str texts[] = { { "*", 1 }, { "&", 1 }, { "&&", 2 } };
	char c = reading_peek(r, 0);
	const char *at;
	struct node *n;

	if (demangle_is_digit(c))
		return demangle_read_name(r);
	switch (c) {
	case 'N':
	case 'Z':
		return demangle_read_name(r);
	case 'u':
		return demangle_read_vendor_type(r);
	case 'F':
		return demangle_read_function_type(r);
	case 'A':
		return demangle_read_array(r, is_cast);
	case 'M':
		return demangle_read_member(r, is_cast);
	case 'T':
		return demangle_read_template_parameter(r, is_cast);
	case 'S':
		return demangle_read_substituted(r, is_cast, add);
	case 'C':
	case 'G':
		r->at++;
		n = demangle_read_type(r, is_cast);
		return node_new(r, NODE_CV, n, c == 'C' ? STR(" _Complex") : STR(" _Imaginary"));
	case 'U':
		return demangle_read_u_type(r, is_cast, add);
	case 'D':
		return demangle_read_d_type(r, is_cast, add);
	default:
		at = c ? strchr(pointers, c) : NULL;
		if (!at)
			return reading_fail(r);
		r->at++;
		n = demangle_read_type(r, is_cast);
		return node_new(r, NODE_POINTER, n, texts[at - pointers]);
	}
}

static struct node *demangle_qualified(struct reading *r, struct node *n, struct str behind)
{
	struct node *out;

	if (r->failed)
		return NULL;
	if (n->kind != NODE_PROTOTYPE) {
		/* The qualifiers of an array are those of its elements. */
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

struct node *demangle_read_type(struct reading *r, bool is_cast)
{
	struct str behind;
	struct node *n;
	bool add = true;

	if (!reading_enter(r))
		return NULL;
	behind = demangle_read_qualifiers(r);
	if (!r->failed && demangle_builtin(reading_peek(r, 0))) {
		n = demangle_types_text_node(r, demangle_builtin(*r->at++));
		add = false;
	} else {
		/* Qualifiers in front of a function are those of `this`. */
		add = !(behind.len && reading_peek(r, 0) == 'F');
		n = r->failed ? NULL : demangle_read_plain_type(r, is_cast, &add);
	}
	if (add)
		node_add(r, &r->subs, n);
	if (behind.len && !r->failed) {
		n = demangle_qualified(r, n, behind);
		node_add(r, &r->subs, n);
	}
	r->depth--;
	return r->failed ? NULL : n;
}
