/*
 * Tokens of templates' actions. Private to promql/rules/.
 *
 * Errors:    ERR_INVALID with line and column, ERR_NOMEM.
 * Ownership: tokens point into the text, strings' values into the arena.
 * Threads:   none of its own.
 */
#ifndef PROMQL_RULES_TEMPLATE_LEX_H
#define PROMQL_RULES_TEMPLATE_LEX_H

#include "promql/rules/template/internal.h"

enum token_kind {
	TOKEN_CLOSE, /* }} */
	TOKEN_SPACE,
	TOKEN_WORD,
	TOKEN_FIELD, /* .name; text is the name */
	TOKEN_DOT,
	TOKEN_VARIABLE,
	TOKEN_NUMBER,
	TOKEN_CHAR,
	TOKEN_STRING, /* text is the value */
	TOKEN_PIPE,
	TOKEN_COMMA,
	TOKEN_DECLARE,
	TOKEN_ASSIGN,
	TOKEN_OPEN_PAREN,
	TOKEN_CLOSE_PAREN,
};

struct token {
	enum token_kind kind;
	uint32_t at;
	struct str text;
};

struct parser {
	struct arena *arena;
	struct str text;
	size_t pos;
	struct token token; /* the current one */
	struct str *names; /* variables declared so far */
	size_t names_n, names_cap;
	unsigned depth, loops;
	struct err *err;
};

bool lex_is_space(char c);
char lex_peek_at(const struct parser *p, size_t ahead); /* NUL after the end */
bool lex_is_next(const struct parser *p, const char *text);
/*
 * Reads the next token of an action into p->token. It does not pass the end of the action (}}, or
 * -}} after white space).
 */
MUST_CHECK enum err_code lex_advance(struct parser *p);

#endif
