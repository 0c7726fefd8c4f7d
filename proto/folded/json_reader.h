/*
 * Reads JSON from its bytes, value by value: what nobody asks for is passed over and costs no
 * memory. Private to proto/folded.
 *
 * A value is first a span of the text; then it is opened, or read as a string or a number. Only
 * what is read that way must be right: of a value that is passed over, just brackets and strings.
 *
 * Errors:    ERR_INVALID "byte 12: expected ..."; ERR_LIMIT (nesting), ERR_NOMEM.
 * Source:    RFC 8259.
 */
#ifndef PROTO_FOLDED_JSON_READER_H
#define PROTO_FOLDED_JSON_READER_H

#include "base/str.h"

#define JSON_READER_DEPTH_MAX 64u

/* An object or an array of which one member after the other is read. */
struct json_members {
	const char *begin; /* of the whole text, for errors */
	const char *at, *end;
	char close;
	bool first;
	struct err *err;
};

struct json_number {
	bool is_integer; /* then i is exact */
	int64_t i;
	double d;
};

/* The whole text as a span; nothing but white space may follow the value. */
MUST_CHECK enum err_code json_text(struct str text, struct str *value, struct err *err);

/* open: '{' or '['. text: where the span is from. */
MUST_CHECK enum err_code json_open(
	struct json_members *m, struct str text, struct str span, char open, struct err *err);
/* *key: the span of a string; empty in an array. False in *more: there was none. */
MUST_CHECK enum err_code json_next(
	struct json_members *m, struct str *key, struct str *value, bool *more);

/* ptr NULL: no memory. Surrogates without a partner become U+FFFD. */
MUST_CHECK enum err_code json_read_string(
	struct arena *a, struct str text, struct str span, struct str *out, struct err *err);
MUST_CHECK enum err_code json_read_number(
	struct str text, struct str span, struct json_number *out, struct err *err);
/* A span of a string without escapes that is these characters. */
bool json_is(struct str span, const char *s);

enum err_code json_expected(struct str text, const char *at, const char *what, struct err *err);

#endif
