/*
 * Reads C++ names. A name that "S1_" may refer to later is a candidate. Candidates are counted in
 * the order in which they are read, so types are read even if they are not written.
 */
#include <string.h>

#include "base/demangle/cpp.h"

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* ---- names ---- */

/* The class that a constructor is named after. */
static struct node *last_name(struct node *n)
{
	while (n &&
		(n->kind == NODE_TEMPLATE || n->kind == NODE_QUALIFIED || n->kind == NODE_TAGGED ||
			n->kind == NODE_RESCOPED))
		n = n->kind == NODE_QUALIFIED ? n->b : n->a;
	return n;
}

struct node *read_with_arguments(struct reading *r, struct node *name)
{
	struct node *n = node_new(r, NODE_TEMPLATE, name, STR("")), *pack = read_arguments(r);

	if (r->failed)
		return NULL;
	n->list = pack->list;
	n->n = pack->n;
	return n;
}

/* The type of a cast may name parameters of the template that the cast turns out to be. */
static void set_scope(struct node *n, struct node *scope, unsigned depth)
{
	if (!n || depth > DEMANGLE_DEPTH_MAX || n->kind == NODE_LAMBDA)
		return;
	if (n->kind == NODE_PARAMETER && !n->scope)
		n->scope = scope;
	if (n->kind == NODE_TEMPLATE || n->kind == NODE_RESCOPED)
		return; /* arguments are not written */
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

/* The next part of a prefix; NULL without failure: the prefix ends. */
static struct node *read_component(
	struct reading *r, struct node *a, struct node *last, struct node **cast)
{
	char c = reading_peek(r, 0), c2 = reading_peek(r, 1);
	struct node *n, *named;
	bool flag;

	if (is_digit(c) || is_lower(c) || c == 'U' || c == 'L' || c == 'F' || (c == 'D' && c2 == 'C')) {
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
		n = c == 'I' ? read_with_arguments(r, a) : read_bare_arguments(r, a);
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
			behind = reading_printf(
				r, STR_FMT "%s", STR_ARG(behind), *r->at++ == 'R' ? " &" : " &&");
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
			std = node_std(r, "");
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
		n = read_with_arguments(r, n);
		set_scope(cast, n, 0);
	}
	return r->failed ? NULL : n;
}

struct node *read_name(struct reading *r)
{
	struct node *n;

	if (r->failed || r->depth >= DEMANGLE_DEPTH_MAX || ++r->steps > DEMANGLE_STEPS_MAX)
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
			return prefixed(r, c == 'n' ? "non-transaction clone for " : "transaction clone for ",
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
		return prefixed(
			r, c2 == 'h' ? "non-virtual thunk to " : "virtual thunk to ", read_encoding(r, false));
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

/* Functions from templates have a return type, except constructors and conversions. */
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

	if (r->failed || r->depth >= DEMANGLE_DEPTH_MAX || ++r->steps > DEMANGLE_STEPS_MAX)
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

/* Skips everything behind the name, such as parameters. */
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
		return demangle_symbol((struct str){ name.ptr + 2, name.len - 2 }, "", out);
	if (!str_has_prefix(name, STR("___Z")))
		return false;
	/* clang's blocks: the last one counts */
	for (rest = name; (next = str_find(rest, block)) >= 0;) {
		at = (rest.ptr - name.ptr) + next;
		rest = (struct str){ name.ptr + at + 1, name.len - (size_t)at - 1 };
	}
	return at > 4 &&
		demangle_symbol(
			(struct str){ name.ptr + 4, (size_t)at - 4 }, "invocation function for block in ", out);
}
