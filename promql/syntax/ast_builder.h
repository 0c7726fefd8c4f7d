/*
 * Builder: what the rules of grammar.y do. Makes nodes within the limits of parse.h. For parse.c
 * and the grammar alone.
 *
 * Errors:    the first one stays in rc (and *err, *where); after it every call does nothing and
 *            gives NULL, so that the parser can unwind.
 * Ownership: nodes in the arena; regexes belong to the matchers of the selectors in `parsed`.
 */
#ifndef PROMQL_SYNTAX_AST_BUILDER_H
#define PROMQL_SYNTAX_AST_BUILDER_H

#include "promql/syntax/lexer.h"
#include "promql/syntax/parse.h"

/* A piece of a list while it grows. */
struct ast_builder_item {
	struct ast_builder_item *next;
	struct lexer_token name; /* of a label or a matcher */
	struct lexer_token op, value;
	struct expr *expr;
};

struct list {
	struct ast_builder_item *first, *last;
	size_t n;
	struct span at; /* with its brackets, once they are known */
};

struct modifier { /* by (a, b) */
	enum grouping grouping;
	struct list labels;
	struct span at;
};

struct matching { /* bool on (a) group_left (b) */
	bool returns_bool;
	struct modifier on;
	enum cardinality card;
	struct list include;
};

struct ast_builder {
	struct arena *arena;
	struct parsed *parsed;
	struct expr *selector_last;
	struct lexer_token token; /* that is being read */
	uint32_t token_before; /* end of the last one */
	size_t regexes_n;
	struct query_error *where;
	struct err *err;
	enum err_code rc;
};

void build_fail(struct ast_builder *b, struct span at, enum err_code code, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/* The token read last is in the wrong place; expected[0..n) are names of tokens that would do. */
void build_unexpected(struct ast_builder *b, const char *const *expected, size_t n);
void build_too_deep(struct ast_builder *b);

struct list build_list(struct ast_builder *b, struct list l, struct ast_builder_item item,
	size_t max, const char *what);
struct list list_at(struct list l, struct lexer_token first, struct lexer_token last);
struct modifier build_modifier(struct lexer_token word, struct list labels);

struct expr *build_number(struct ast_builder *b, struct lexer_token t);
struct expr *build_string(struct ast_builder *b, struct lexer_token t);
struct expr *build_paren(
	struct ast_builder *b, struct expr *e, struct lexer_token first, struct lexer_token last);
struct expr *build_unary(struct ast_builder *b, struct lexer_token op, struct expr *e);
struct expr *build_binary(struct ast_builder *b, struct expr *lhs, struct lexer_token op,
	struct matching m, struct expr *rhs);
struct expr *build_call(struct ast_builder *b, struct lexer_token name, struct modifier m,
	struct list args, struct modifier behind);
struct expr *build_selector(
	struct ast_builder *b, const struct lexer_token *name, const struct list *matchers);
struct expr *build_window(
	struct ast_builder *b, struct expr *e, struct lexer_token duration, struct lexer_token last);
/* step: NULL: the default. */
struct expr *build_subquery(struct ast_builder *b, struct expr *arg, struct lexer_token range,
	const struct lexer_token *step, struct lexer_token last);
struct expr *build_offset(struct ast_builder *b, struct expr *e, struct lexer_token word,
	bool negative, struct lexer_token duration);
struct expr *build_at_time(struct ast_builder *b, struct expr *e, struct lexer_token at,
	bool negative, struct lexer_token number);
struct expr *build_at_edge(struct ast_builder *b, struct expr *e, struct lexer_token at,
	struct lexer_token edge, struct lexer_token last);

/*
 * The text of a string token with escapes resolved; *fault says what is wrong with it, *at is the
 * place.
 */
bool string_unescape(
	struct arena *a, struct lexer_token t, struct str *out, struct span *at, const char **fault);
/* The value of a number token, as strconv reads it: 0x1f, 017 (octal), 1e3, Inf, NaN. */
bool number_parse(struct str text, double *out);

#endif
