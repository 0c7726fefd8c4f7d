/*
 * The tokens of Alloy's language. For alloy_parser.c.
 */
#ifndef CMD_EPITOOL_CONVERT_ALLOY_LEXER_H
#define CMD_EPITOOL_CONVERT_ALLOY_LEXER_H

#include "base/err.h"
#include "cmd/epitool/convert/alloy.h"

enum alloy_token_kind {
	TOKEN_END,
	TOKEN_NEWLINE, /* one or more */
	TOKEN_NAME,
	TOKEN_STRING,
	TOKEN_NUMBER,
	TOKEN_PUNCTUATION, /* operators too */
};

struct alloy_token {
	enum alloy_token_kind kind;
	uint32_t line, column;
	const char *begin, *end; /* in the text */
	struct str text; /* a string's value, else as written */
};

struct alloy_lexer {
	struct arena *arena;
	const char *file;
	const char *at, *end, *line_begin;
	uint32_t line;
	struct str comment; /* lines of comments since the last token that is no newline */
};

void alloy_lexer_init(struct alloy_lexer *l, struct arena *a, const char *file, struct str text);
MUST_CHECK enum err_code alloy_next(
	struct alloy_lexer *l, struct alloy_token *out, struct err *err);

#endif
