/*
 * Lexer: query text to tokens. For parse.c alone.
 *
 * Words, numbers, durations, strings and comments follow Prometheus's lexer. Inside the braces of a
 * selector there are only label names, match operators, strings and commas; inside the brackets of
 * a window a colon is a token. A `<` is a brace where
 * it is directly behind a name and before `label (= != =~ !~) string`; its partner is then `>`.
 *
 * Errors: TOKEN_ILLEGAL; error says what is wrong with the token, or is NULL: it is only in the
 *         wrong place (a character that starts no token at all).
 */
#ifndef PROMQL_SYNTAX_LEXER_H
#define PROMQL_SYNTAX_LEXER_H

#include "promql/syntax/parse.h"

struct lexer_token {
	int id; /* TOKEN_* of the generated grammar.h; 0: end of query */
	struct span at;
	struct str text;
	const char *error;
};

struct lexer {
	const char *start, *at, *end; /* *end is NUL; end - start < 4 GiB */
	const char *name_end; /* end of the last token if it was a name, else NULL */
	char closer; /* inside matchers: '}' or '>'; else 0 */
	bool in_brackets; /* of a window */
};

void lexer_init(struct lexer *l, struct str text); /* text.ptr[text.len] is NUL */
void lexer_next(struct lexer *l, struct lexer_token *out);
const char *lexer_keyword(size_t i); /* NULL behind the last */
enum query_keyword_kind lexer_keyword_kind(size_t i);

#endif
