/*
 * JSON reader: reads JSON from its bytes, value by value, without a tree and without memory.
 *
 * A reader is a place in a text. A value is read where it is, or first found and read later:
 *
 *	rc = json_reader_open(r, '[');
 *	while (!rc && !(rc = json_reader_more(r, '[', &more)) && more)
 *		rc = json_reader_number(r, &number);
 *
 *	rc = json_reader_open(r, '{');
 *	while (!rc && !(rc = json_reader_member(r, &key, &value, &more)) && more)
 *		if (json_reader_is(key, "x"))
 *			found = value;
 *	at = json_reader_at(r, found);
 *
 * A span is the text of a value. Of a span that nobody reads only brackets and ends of strings are
 * checked. All that is read is checked, but for UTF-8. Of members with one name each is seen.
 *
 * Errors:    ERR_INVALID "byte 12: expected ...", "JSON ends at byte 12: expected ...", with a name
 *            "byte 12, name: expected ..."; ERR_LIMIT (nesting of a span), ERR_NOMEM. An error is
 *            the end of the reader.
 * Ownership: spans and raw strings point into the text; strings live in the arena.
 * Threads:   values.
 * Source:    RFC 8259.
 */
#ifndef PROTO_JSON_READER_H
#define PROTO_JSON_READER_H

#include "base/str.h"

#define JSON_READER_DEPTH_MAX 64u /* of a span */

struct json_reader {
	struct str text; /* the whole, for errors */
	const char *at, *end;
	const char *name; /* of the member at hand, for errors; NULL: none. The caller sets it. */
	struct err *err;
};

struct json_reader_number {
	const char *at; /* in the text, for errors */
	bool is_integer; /* of 64 bits: then i is exact */
	int64_t i;
	double d;
};

struct json_reader json_reader_of(struct str text, struct err *err);
/* A reader of one value of the text. An empty span is a value that is missing. */
struct json_reader json_reader_at(const struct json_reader *r, struct str span);
/* The whole text is one value, checked as a span is. The reader stays in front of it. */
MUST_CHECK enum err_code json_reader_whole(struct json_reader *r);
/* Nothing but white space may follow. */
MUST_CHECK enum err_code json_reader_end(struct json_reader *r);

/* The next byte that is not white space; '\0' at the end. r->at is there then. */
static inline char json_reader_peek(struct json_reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
		r->at++;
	return r->at < r->end ? *r->at : '\0';
}

/* open: '{' or '['. */
MUST_CHECK enum err_code json_reader_open(struct json_reader *r, char open);
/* Behind json_reader_open, and behind each value: takes the ',', or the end of the list. */
MUST_CHECK enum err_code json_reader_more(struct json_reader *r, char open, bool *more);
/* A member's name as json_reader_raw, and the ':'. */
MUST_CHECK enum err_code json_reader_name(struct json_reader *r, struct str *raw, bool *escaped);
/* json_reader_more in an object, and the spans of the member's name and of its value. */
MUST_CHECK enum err_code json_reader_member(
	struct json_reader *r, struct str *key, struct str *value, bool *more);

MUST_CHECK enum err_code json_reader_span(struct json_reader *r, struct str *span);
/* A span of a string without escapes that is these characters. */
bool json_reader_is(struct str span, const char *text);

/* Letters, digits, '+', '-' and '.' up to anything else: a number or a word. May be empty. */
struct str json_reader_scalar(struct json_reader *r);
MUST_CHECK enum err_code json_reader_number(struct json_reader *r, struct json_reader_number *out);

/* What is between the quotes of a string, as it is. */
MUST_CHECK enum err_code json_reader_raw(struct json_reader *r, struct str *raw, bool *escaped);
/* Writes at most raw.len bytes. Surrogates without a partner become U+FFFD. */
MUST_CHECK enum err_code json_reader_unescape(
	const struct json_reader *r, struct str raw, char *to, size_t *n);
MUST_CHECK enum err_code json_reader_string(
	struct json_reader *r, struct arena *a, struct str *out);

/* Sets the error; ERR_INVALID. at: a byte of the text, or its end. */
enum err_code json_reader_expected(const struct json_reader *r, const char *at, const char *what);

#endif
