/*
 * Parser: query text to tree (ast.h).
 *
 *	struct parsed *q;
 *	rc = parse_query(&arena, text, &q, &where, err);
 *	if (!rc)
 *		rc = check_query(q, &where, err);       (check.h)
 *	...
 *	parsed_release(q);
 *
 * Units:     positions in bytes; lines and columns from 1, a column is a character (UTF-8), not a
 *            byte.
 * Errors:    ERR_INVALID "1:4: unexpected end of query" (line:column: message); ERR_LIMIT names
 *            the limit of the ones below that was passed; ERR_NOMEM, or ERR_LIMIT for an arena
 *            over its budget.
 * Ownership: the tree and a copy of the text live in the arena given; compiled regexes do not, so
 *            a parsed query is released before its arena. Nothing is left behind where parsing
 *            fails.
 * Threads:   a parsed and checked query is immutable; share freely.
 * Source:    promql/syntax/lexer.re and promql/syntax/grammar.y.
 */
#ifndef PROMQL_SYNTAX_PARSE_H
#define PROMQL_SYNTAX_PARSE_H

#include "promql/syntax/ast.h"

#define QUERY_TEXT_MAX (64u << 10) /* bytes */
#define QUERY_DEPTH_MAX 100u /* of the tree; a chain of n operators is n deep */
#define QUERY_MATCHERS_MAX 64u /* of one selector */
#define QUERY_REGEXES_MAX 64u /* in a query, compiled while parsing */
#define QUERY_ARGS_MAX 16u /* of one call */
#define QUERY_LABELS_MAX 64u /* of one list in parentheses */

struct parsed {
	struct arena *arena;
	struct str text; /* our copy */
	struct expr *root;
	struct expr *selectors; /* every selector (also frame matchers), linked by selector.next */
};

/* The place and the cause of an error; msg is without the position. */
struct query_error {
	enum err_code code;
	struct span at;
	uint32_t line, column;
	char msg[512];
};

/*
 * where may be NULL; where->line stays 0 where the fault has no place in the text (ERR_NOMEM and
 * the like).
 */
MUST_CHECK enum err_code parse_query(struct arena *a, struct str text, struct parsed **out,
	struct query_error *where, struct err *err);
void parsed_release(struct parsed *p); /* NULL is fine */

/* The language's keywords, without names of functions, found in any case; NULL behind the last. */
const char *query_keyword(size_t i);

enum query_keyword_kind {
	KEYWORD_OPERATOR, /* and, atan2 */
	KEYWORD_LABELS, /* a list of labels in parentheses may follow: by, group_left */
	KEYWORD_NUMBER, /* inf, nan */
	KEYWORD_OTHER,
};

enum query_keyword_kind query_keyword_kind(size_t i); /* of query_keyword(i), which is not NULL */

/*
 * A fault at a place of the text, for the checker and the evaluator: "1:6: <message>" in *err, and
 * all of it in *where (may be NULL). Returns code.
 */
enum err_code query_error_at(struct str text, struct span at, struct query_error *where,
	struct err *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(6, 7);

/*
 * The line at fault and a caret below its first character, no newline at the end:
 *	cpu{job=}
 *	        ^ unexpected "}", expected string
 */
void query_error_print(struct buf *out, struct str text, const struct query_error *where);

/*
 * A list of matchers in braces and nothing else, or a selector without window and modifiers: for
 * match[] and the like. Gives the whole as a parsed query whose root is a selector.
 */
MUST_CHECK enum err_code parse_selector(struct arena *a, struct str text, struct parsed **out,
	struct query_error *where, struct err *err);

#endif
