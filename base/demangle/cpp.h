/*
 * C++ names: reading (cpp.c, types.c, expressions.c, parts.c) and writing (print.c). Private to
 * base/demangle.
 *
 * A name is read into nodes that refer to each other as substitutions do, so it takes memory in
 * proportion to its length. The written name may be far longer, so writing has a limit.
 */
#ifndef BASE_DEMANGLE_CPP_H
#define BASE_DEMANGLE_CPP_H

#include "base/arena.h"
#include "base/demangle/demangle.h"

enum node_kind {
	NODE_TEXT,
	NODE_QUALIFIED, /* a::b; text, if any, in place of "::" */
	NODE_TEMPLATE, /* a of the arguments `list`, which are not written */
	NODE_DESTRUCTOR, /* ~a */
	NODE_OPERATOR, /* text */
	NODE_CAST, /* operator a */
	NODE_TAGGED, /* a[abi:text] */
	NODE_LAMBDA, /* {lambda<declared>(list)#num}; declared: b's list */
	NODE_UNNAMED, /* {unnamed type#num} */
	NODE_DEFAULT, /* {default arg#num}::a */
	NODE_METHOD, /* a with the text behind a method */
	NODE_FUNCTION, /* the encoding of function a with parameters `list`; num: it returns b */
	NODE_LOCAL, /* a function around a name inside of it */
	NODE_PREFIXED, /* text, then a */
	NODE_POINTER, /* a, then text: "*", "&", "&&" */
	NODE_CV, /* a, then text: " const" */
	NODE_PROTOTYPE, /* function type: returns a, takes list, then text */
	NODE_ARRAY, /* of a; text: the dimension */
	NODE_MEMBER, /* pointer to member: of class a, type b */
	NODE_PARAMETER, /* of template `scope`, num */
	NODE_RESCOPED, /* a, whose parameters are those of `scope`; num: they are a lambda's */
	NODE_PACK, /* arguments `list` */
	NODE_EXPANSION, /* a for each of a pack */
	NODE_AUTO, /* parameter num of a lambda */
};

struct node {
	enum node_kind kind;
	int num;
	struct str text;
	struct node *a, *b;
	struct node *scope; /* NODE_TEMPLATE */
	struct node **list;
	uint32_t n, cap;
};

#define DEMANGLE_DEPTH_MAX 400u
#define DEMANGLE_STEPS_MAX 200000u
#define DEMANGLE_SCOPES_MAX 64u

struct reading {
	struct arena *arena;
	const char *at, *end;
	bool failed;
	unsigned depth;
	unsigned steps; /* a part is read twice to see what it is, and so are parts of it */
	struct node subs; /* list: candidates for substitution */
	struct node *scopes[DEMANGLE_SCOPES_MAX]; /* templates whose parameters may be meant; NULL: of a
							 cast, known later */
	unsigned scopes_n;
	unsigned lambda_level; /* scopes_n + 1 where a lambda's types are read; 0: none is */
	int declared[3]; /* type, value and template parameters of lambdas */
};

/* ---- parts.c ---- */

struct node *node_new(struct reading *r, enum node_kind kind, struct node *a, struct str text);
void node_add(struct reading *r, struct node *list, struct node *item);
struct node *reading_fail(struct reading *r);
struct str reading_printf(struct reading *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

static inline char reading_peek(const struct reading *r, size_t i)
{
	return (size_t)(r->end - r->at) > i ? r->at[i] : '\0';
}
static inline bool reading_take(struct reading *r, char c)
{
	if (reading_peek(r, 0) != c || r->at == r->end)
		return false;
	r->at++;
	return true;
}
static inline bool reading_expect(struct reading *r, char c)
{
	if (!reading_take(r, c))
		r->failed = true;
	return !r->failed;
}

/* Below: NULL is a failure, and r->failed says so. */

struct node *node_std(struct reading *r, const char *name); /* std::name */
int demangle_read_number(struct reading *r);
int demangle_read_compact(struct reading *r); /* "_" is 0, "0_" is 1 */
struct node *demangle_read_unqualified(struct reading *r, bool *is_cast);
struct node *demangle_read_source_name(struct reading *r);
struct node *demangle_read_operator(
	struct reading *r, bool in_expression, int *operands, const char **code);
struct node *demangle_read_substitution(struct reading *r, bool in_prefix, bool *standard);
struct node *demangle_read_tags(struct reading *r, struct node *name); /* [abi:cxx11] */
void demangle_read_discriminator(struct reading *r);
struct node *demangle_read_lambda(struct reading *r);
struct node *demangle_read_unnamed(struct reading *r);

/* ---- cpp.c: names ---- */

struct node *demangle_read_name(struct reading *r);
struct node *demangle_read_with_arguments(struct reading *r, struct node *name);
/* local: of a function around a name inside of it */
struct node *demangle_read_encoding(struct reading *r, bool local);

/* ---- types.c ---- */

struct node *demangle_read_type(struct reading *r, bool is_cast);
/* Adds types to `list` up to their end; one `void` counts as none. */
void demangle_read_types(struct reading *r, struct node *list);
struct str demangle_read_qualifiers(
	struct reading *r); /* of types and methods; as they are written */
struct node *demangle_read_parameter(struct reading *r);

/* ---- expressions.c ---- */

struct node *demangle_read_arguments(struct reading *r); /* NODE_PACK */
struct node *demangle_read_argument(struct reading *r, struct node *before);
/* Reads a template parameter; *value is its name. NULL without a failure: there is none. */
struct node *demangle_read_declaration(struct reading *r, struct node **value);
struct node *demangle_read_expression(struct reading *r);
void demangle_read_constraint(struct reading *r);

/* ---- whole names: demangle.h ---- */

bool demangle_cpp(struct str name, struct buf *out);
bool demangle_rust(struct str name, struct buf *out); /* _R... */
bool demangle_old_rust(struct str name, struct buf *out); /* _ZN...17h0123456789abcdefE */

/* ---- print.c ---- */

/* False: it is too long, or refers to something missing. */
bool node_print(const struct node *node, struct buf *out);

static inline bool demangle_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool reading_next_is(const struct reading *r, const char *code)
{
	return reading_peek(r, 0) == code[0] && reading_peek(r, 1) == code[1];
}

/* Called before each node that may hold others. False, and failed: too deep or too long. */
static inline bool reading_enter(struct reading *r)
{
	if (r->failed || r->depth >= DEMANGLE_DEPTH_MAX || ++r->steps > DEMANGLE_STEPS_MAX) {
		r->failed = true;
		return false;
	}
	r->depth++;
	return true;
}

#endif
