/*
 * Reads C++ names. A name that "S1_" may refer to later is a candidate. Candidates are counted in
 * the order in which they are read, so types are read even if they are not written.
 */
#include <string.h>

#include "base/demangle/cpp.h"

static bool demangle_is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* ---- names ---- */

/* The class that a constructor is named after. */
static struct node *demangle_last_name(struct node *n)
{
	while (n &&
		(n->kind == NODE_TEMPLATE || n->kind == NODE_QUALIFIED || n->kind == NODE_TAGGED ||
			n->kind == NODE_RESCOPED))
		n = n->kind == NODE_QUALIFIED ? n->b : n->a;
	return n;
}

struct node *demangle_read_with_arguments(struct reading *r, struct node *name)
{
	struct node *n = node_new(r, NODE_TEMPLATE, name, STR("")), *pack = demangle_read_arguments(r);

	if (r->failed)
		return NULL;
	n->list = pack->list;
	n->n = pack->n;
	return n;
}

/* The type of a cast may name parameters of the template that the cast turns out to be. */
static void demangle_set_scope(struct node *n, struct node *scope, unsigned depth)
{
	if (!n || depth > DEMANGLE_DEPTH_MAX || n->kind == NODE_LAMBDA)
		return;
	if (n->kind == NODE_PARAMETER && !n->scope)
		n->scope = scope;
	if (n->kind == NODE_TEMPLATE || n->kind == NODE_RESCOPED)
		return; /* arguments are not written */
	demangle_set_scope(n->a, scope, depth + 1);
	demangle_set_scope(n->b, scope, depth + 1);
}

static struct node *demangle_read_ctor(struct reading *r, struct node *last)
{
	struct node *n = demangle_last_name(last);
	bool inheriting;

	r->at++; /* C */
	inheriting = reading_take(r, 'I');
	if (!n || r->at == r->end)
		return reading_fail(r);
	r->at++;
	if (inheriting)
		demangle_read_type(r, false);
	return demangle_read_tags(r, node_new(r, NODE_PREFIXED, n, STR("")));
}

static struct node *demangle_read_dtor(struct reading *r, struct node *last)
{
	struct node *n = demangle_last_name(last);

	if (!n || r->end - r->at < 2)
		return reading_fail(r);
	r->at += 2;
	return demangle_read_tags(r, node_new(r, NODE_DESTRUCTOR, n, STR("")));
}

/* "J" in place of "I": some clangs write it. */
static struct node *demangle_read_bare_arguments(struct reading *r, struct node *name)
{
	struct node *n = node_new(r, NODE_TEMPLATE, name, STR(""));

	while (!r->failed && !reading_take(r, 'E'))
		node_add(r, n, demangle_read_argument(r, NULL));
	return n;
}

/* The next part of a prefix; NULL without failure: the prefix ends. */
static struct node *demangle_read_component(
	struct reading *r, struct node *a, struct node *last, struct node **cast)
{
	char c = reading_peek(r, 0), c2 = reading_peek(r, 1);
	struct node *n, *named;
	bool flag;

	if (demangle_is_digit(c) || demangle_is_lower(c) || c == 'U' || c == 'L' || c == 'F' ||
		(c == 'D' && c2 == 'C')) {
		n = named = demangle_read_unqualified(r, &flag);
		while (named && (named->kind == NODE_TAGGED || named->kind == NODE_PREFIXED))
			named = named->a;
		if (flag)
			*cast = named;
		return n;
	}
	switch (c) {
	case 'C':
		return demangle_read_ctor(r, last);
	case 'D':
		return c2 == 'T' || c2 == 't' ? demangle_read_type(r, false) : demangle_read_dtor(r, last);
	case 'S':
		return demangle_read_substitution(r, true, &flag);
	case 'T':
		return demangle_read_parameter(r);
	case 'I':
	case 'J':
		if (!a)
			return reading_fail(r);
		if (c == 'J')
			r->at++;
		n = c == 'I' ? demangle_read_with_arguments(r, a) : demangle_read_bare_arguments(r, a);
		if (*cast && n)
			demangle_set_scope(*cast, n, 0);
		*cast = NULL;
		return n;
	default:
		return reading_fail(r);
	}
}

static struct node *demangle_read_prefix(struct reading *r)
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
		if (!(n = demangle_read_component(r, a, last, &cast)))
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

static struct node *demangle_read_nested(struct reading *r)
{
	struct str behind = STR("");
	struct node *n;

	r->at++; /* N */
	if (!reading_take(r, 'H')) {
		behind = demangle_read_qualifiers(r);
		if (reading_peek(r, 0) == 'R' || reading_peek(r, 0) == 'O')
			behind = reading_printf(
				r, STR_FMT "%s", STR_ARG(behind), *r->at++ == 'R' ? " &" : " &&");
	}
	n = demangle_read_prefix(r);
	if (!reading_expect(r, 'E'))
		return NULL;
	return behind.len ? node_new(r, NODE_METHOD, n, behind) : n;
}

static struct node *demangle_read_local(struct reading *r)
{
	struct node *around, *n;
	int parameter = -1;

	r->at++; /* Z */
	around = demangle_read_encoding(r, true);
	if (!reading_expect(r, 'E'))
		return NULL;
	if (reading_take(r, 's')) {
		n = node_new(r, NODE_TEXT, NULL, STR("string literal"));
		demangle_read_discriminator(r);
	} else {
		if (reading_take(r, 'd'))
			parameter = demangle_read_compact(r);
		n = demangle_read_name(r);
		demangle_read_discriminator(r);
		if (parameter >= 0 && (n = node_new(r, NODE_DEFAULT, n, STR(""))))
			n->num = parameter;
	}
	around = node_new(r, NODE_QUALIFIED, around, STR(""));
	if (around)
		around->b = n;
	return r->failed ? NULL : around;
}

static struct node *demangle_read_name_inner(struct reading *r)
{
	bool is_cast = false, standard, substituted = false;
	char c = reading_peek(r, 0);
	struct node *n, *cast, *std;

	switch (c) {
	case 'N':
		return demangle_read_nested(r);
	case 'Z':
		return demangle_read_local(r);
	case 'S':
		if (reading_peek(r, 1) == 't') {
			r->at += 2;
			std = node_std(r, "");
			n = demangle_read_unqualified(r, &is_cast);
			if (std)
				std->b = n;
			n = std;
		} else {
			n = demangle_read_substitution(r, false, &standard);
			substituted = true;
		}
		break;
	default:
		n = demangle_read_unqualified(r, &is_cast);
		break;
	}
	cast = is_cast && n ? (n->kind == NODE_QUALIFIED ? n->b : n) : NULL;
	if (!r->failed && c != 'U' && reading_peek(r, 0) == 'I') {
		if (!substituted)
			node_add(r, &r->subs, n);
		n = demangle_read_with_arguments(r, n);
		demangle_set_scope(cast, n, 0);
	}
	return r->failed ? NULL : n;
}

struct node *demangle_read_name(struct reading *r)
{
	struct node *n;

	if (r->failed || r->depth >= DEMANGLE_DEPTH_MAX || ++r->steps > DEMANGLE_STEPS_MAX)
		return reading_fail(r);
	r->depth++;
	n = demangle_read_name_inner(r);
	r->depth--;
	return n;
}

/* ---- encodings ---- */

static void demangle_read_offset(struct reading *r, char c)
{
	if (!c && r->at < r->end)
		c = *r->at++;
	if (c == 'v') {
		demangle_read_number(r);
		reading_expect(r, '_');
	} else if (c != 'h') {
		r->failed = true;
	}
	demangle_read_number(r);
	reading_expect(r, '_');
}

static struct node *demangle_prefixed(struct reading *r, const char *text, struct node *n)
{
	return node_new(r, NODE_PREFIXED, n, str_of(text));
}

static struct node *demangle_read_construction(struct reading *r)
{
	struct node *derived = demangle_read_type(r, false), *base, *n;

	if (demangle_read_number(r) < 0)
		r->failed = true;
	reading_expect(r, '_');
	base = r->failed ? NULL : demangle_read_type(r, false);
	n = node_new(r, NODE_QUALIFIED, base, STR("-in-"));
	if (n)
		n->b = derived;
	return demangle_prefixed(r, "construction vtable for ", n);
}

static struct node *demangle_read_special(struct reading *r)
{
	char c = reading_peek(r, 0), c2 = reading_peek(r, 1);

	if (r->end - r->at < 2)
		return reading_fail(r);
	r->at += 2;
	if (c == 'G') {
		switch (c2) {
		case 'V':
			return demangle_prefixed(r, "guard variable for ", demangle_read_name(r));
		case 'R':
			return demangle_prefixed(r, "reference temporary for ", demangle_read_name(r));
		case 'A':
			return demangle_prefixed(r, "hidden alias for ", demangle_read_encoding(r, false));
		case 'T':
			if (r->at == r->end)
				return reading_fail(r);
			c = *r->at++;
			return demangle_prefixed(r,
				c == 'n' ? "non-transaction clone for " : "transaction clone for ",
				demangle_read_encoding(r, false));
		default:
			return reading_fail(r);
		}
	}
	switch (c2) {
	case 'V':
		return demangle_prefixed(r, "vtable for ", demangle_read_type(r, false));
	case 'T':
		return demangle_prefixed(r, "VTT for ", demangle_read_type(r, false));
	case 'I':
		return demangle_prefixed(r, "typeinfo for ", demangle_read_type(r, false));
	case 'S':
		return demangle_prefixed(r, "typeinfo name for ", demangle_read_type(r, false));
	case 'F':
		return demangle_prefixed(r, "typeinfo fn for ", demangle_read_type(r, false));
	case 'J':
		return demangle_prefixed(r, "java Class for ", demangle_read_type(r, false));
	case 'H':
		return demangle_prefixed(r, "TLS init function for ", demangle_read_name(r));
	case 'W':
		return demangle_prefixed(r, "TLS wrapper function for ", demangle_read_name(r));
	case 'h':
	case 'v':
		demangle_read_offset(r, c2);
		return demangle_prefixed(r, c2 == 'h' ? "non-virtual thunk to " : "virtual thunk to ",
			demangle_read_encoding(r, false));
	case 'c':
		demangle_read_offset(r, 0);
		demangle_read_offset(r, 0);
		return demangle_prefixed(r, "covariant return thunk to ", demangle_read_encoding(r, false));
	case 'C':
		return demangle_read_construction(r);
	default:
		return reading_fail(r);
	}
}

/* The template whose parameters a function's types may name; NULL: none. */
static struct node *demangle_template_of(struct node *n)
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
static bool demangle_says_return(struct node *n)
{
	n = demangle_template_of(n);
	for (n = n ? n->a : NULL; n && n->kind == NODE_QUALIFIED;)
		n = n->b;
	return n && n->kind != NODE_DESTRUCTOR && n->kind != NODE_CAST &&
		!(n->kind == NODE_PREFIXED && n->text.len == 0);
}

struct node *demangle_read_encoding(struct reading *r, bool local)
{
	unsigned scopes_n = r->scopes_n, level = r->lambda_level;
	struct node *name, *scope, *n;
	char c = reading_peek(r, 0);
	bool returns;

	if (r->failed || r->depth >= DEMANGLE_DEPTH_MAX || ++r->steps > DEMANGLE_STEPS_MAX)
		return reading_fail(r);
	r->depth++;
	name = c == 'G' || c == 'T' ? demangle_read_special(r) : demangle_read_name(r);
	r->depth--;
	if (r->failed || c == 'G' || c == 'T' || r->at == r->end || reading_peek(r, 0) == 'E')
		return name;
	n = node_new(r, local ? NODE_LOCAL : NODE_FUNCTION, name, STR(""));
	if ((scope = demangle_template_of(name))) {
		if (r->scopes_n == DEMANGLE_SCOPES_MAX)
			return reading_fail(r);
		r->scopes[r->scopes_n++] = scope;
		r->lambda_level = 0;
	}
	if ((size_t)(r->end - r->at) > 13 && !memcmp(r->at, "Ua9enable_ifI", 13)) {
		r->at += 12;
		demangle_read_arguments(r);
	}
	returns = demangle_says_return(name);
	returns |= reading_take(r, 'J');
	if (n && returns)
		n->b = demangle_read_type(r, false);
	if (!r->failed)
		demangle_read_types(r, n);
	if (!r->failed && reading_peek(r, 0) == 'Q')
		demangle_read_constraint(r);
	r->scopes_n = scopes_n;
	r->lambda_level = level;
	return r->failed ? NULL : n;
}

/* ---- whole symbols ---- */

/* Skips everything behind the name, such as parameters. */
static struct node *demangle_read_symbol(struct reading *r)
{
	char c = reading_peek(r, 0);
	struct node *n = c == 'G' || c == 'T' ? demangle_read_special(r) : demangle_read_name(r);

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
	n = demangle_read_symbol(&r);
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
