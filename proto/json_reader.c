#include "proto/json_reader.h"

#include <math.h>
#include <stdlib.h>

#include "base/quote.h"

#define NUMBER_BYTES_MAX 64u
#define CLOSE_OF(open) ((char)((open) + 2)) /* ASCII has '}' and ']' two behind '{' and '[' */

enum { IN_STRING = 1, IN_SPAN = 2, IN_SCALAR = 4 };

/* Bytes that end a run of plain ones in a string or a span; bytes that a scalar is made of. */
/* clang-format off */
static const unsigned char classes[256] = {
	[0 ... 0x1f] = IN_STRING, ['\\'] = IN_STRING, ['"'] = IN_STRING | IN_SPAN,
	['{'] = IN_SPAN, ['}'] = IN_SPAN, ['['] = IN_SPAN, [']'] = IN_SPAN,
	['0' ... '9'] = IN_SCALAR, ['a' ... 'z'] = IN_SCALAR, ['A' ... 'Z'] = IN_SCALAR,
	['+'] = IN_SCALAR, ['-'] = IN_SCALAR, ['.'] = IN_SCALAR,
};
/* clang-format on */

static bool json_reader_byte_is(char c, unsigned class)
{
	return classes[(unsigned char)c] & class;
}

struct json_reader json_reader_of(struct str text, struct err *err)
{
	return (
		struct json_reader){ .text = text, .at = text.ptr, .end = text.ptr + text.len, .err = err };
}

struct json_reader json_reader_at(const struct json_reader *r, struct str span)
{
	struct json_reader of = *r;

	of.at = span.len ? span.ptr : r->text.ptr;
	of.end = of.at + span.len;
	return of;
}

enum err_code json_reader_expected(const struct json_reader *r, const char *at, const char *what)
{
	size_t byte = (size_t)(at - r->text.ptr);

	return err_set(r->err, ERR_INVALID, "%s %zu%s%s: expected %s",
		byte < r->text.len ? "byte" : "JSON ends at byte", byte, r->name ? ", " : "",
		r->name ? r->name : "", what);
}

enum err_code json_reader_end(struct json_reader *r)
{
	json_reader_peek(r);
	return r->at == r->end ? ERR_OK : json_reader_expected(r, r->at, "the end");
}

/* ------------------------------------------------------------------------------------------------
 * Objects and arrays. */

enum err_code json_reader_open(struct json_reader *r, char open)
{
	if (json_reader_peek(r) != open)
		return json_reader_expected(r, r->at, open == '{' ? "an object" : "an array");
	r->at++;
	return ERR_OK;
}

enum err_code json_reader_more(struct json_reader *r, char open, bool *more)
{
	bool first = r->at[-1] == open; /* no value ends with an opening bracket */
	char c = json_reader_peek(r);

	*more = c != CLOSE_OF(open);
	if (first && *more)
		return ERR_OK;
	if (c != ',' && *more)
		return json_reader_expected(r, r->at, open == '{' ? "',' or '}'" : "',' or ']'");
	r->at++;
	return ERR_OK;
}

static enum err_code json_reader_colon(struct json_reader *r)
{
	if (json_reader_peek(r) != ':')
		return json_reader_expected(r, r->at, "':'");
	r->at++;
	return ERR_OK;
}

enum err_code json_reader_name(struct json_reader *r, struct str *raw, bool *escaped)
{
	enum err_code rc;

	if (json_reader_peek(r) != '"')
		return json_reader_expected(r, r->at, "a name");
	rc = json_reader_raw(r, raw, escaped);
	return rc ? rc : json_reader_colon(r);
}

enum err_code json_reader_member(
	struct json_reader *r, struct str *key, struct str *value, bool *more)
{
	enum err_code rc = json_reader_more(r, '{', more);

	if (rc || !*more)
		return rc;
	if (json_reader_peek(r) != '"')
		return json_reader_expected(r, r->at, "a name");
	if ((rc = json_reader_span(r, key)) || (rc = json_reader_colon(r)))
		return rc;
	return json_reader_span(r, value);
}

/* ------------------------------------------------------------------------------------------------
 * Spans. */

/* Takes the string at r->at. *control: its first control character, or NULL. */
static enum err_code json_reader_pass_string(
	struct json_reader *r, struct str *raw, bool *escaped, const char **control)
{
	const char *begin = r->at + 1, *at = begin;

	*escaped = false;
	*control = NULL;
	for (;; at++) {
		while (at < r->end && !json_reader_byte_is(*at, IN_STRING))
			at++;
		if (at < r->end && *at == '"')
			break;
		if (at < r->end && *at == '\\') {
			*escaped = true;
			at++;
		} else if (!*control) {
			*control = at;
		}
		if (at >= r->end)
			return json_reader_expected(r, r->at, "a string that ends");
	}
	*raw = (struct str){ begin, (size_t)(at - begin) };
	r->at = at + 1;
	return ERR_OK;
}

enum err_code json_reader_span(struct json_reader *r, struct str *span)
{
	char c = json_reader_peek(r), closing[JSON_READER_DEPTH_MAX];
	const char *begin = r->at, *control;
	unsigned depth = 0;
	enum err_code rc;
	struct str raw;
	bool escaped;

	if (json_reader_byte_is(c, IN_SCALAR)) {
		*span = json_reader_scalar(r);
		return ERR_OK;
	}
	if (c != '"' && c != '{' && c != '[')
		return json_reader_expected(r, r->at, "a value");
	do {
		while (r->at < r->end && !json_reader_byte_is(*r->at, IN_SPAN))
			r->at++;
		if (r->at >= r->end)
			return json_reader_expected(r, r->at, "the end of what begins before");
		c = *r->at;
		if (c == '"') {
			if ((rc = json_reader_pass_string(r, &raw, &escaped, &control)))
				return rc;
			continue;
		}
		if (c == '{' || c == '[') {
			if (depth == JSON_READER_DEPTH_MAX)
				return err_set(r->err, ERR_LIMIT, "byte %zu: nesting of more than %u, the limit",
					(size_t)(begin - r->text.ptr), JSON_READER_DEPTH_MAX);
			closing[depth++] = CLOSE_OF(c);
		} else if (c != closing[--depth]) {
			return json_reader_expected(r, r->at, c == '}' ? "']'" : "'}'");
		}
		r->at++;
	} while (depth);
	*span = (struct str){ begin, (size_t)(r->at - begin) };
	return ERR_OK;
}

enum err_code json_reader_whole(struct json_reader *r)
{
	const char *at = r->at;
	struct str ignored;
	enum err_code rc = json_reader_span(r, &ignored);

	rc = rc ? rc : json_reader_end(r);
	r->at = at;
	return rc;
}

bool json_reader_is(struct str span, const char *text)
{
	return span.len >= 2 && span.ptr[0] == '"' &&
		str_is((struct str){ span.ptr + 1, span.len - 2 }, text);
}

/* ------------------------------------------------------------------------------------------------
 * Strings. */

enum err_code json_reader_raw(struct json_reader *r, struct str *raw, bool *escaped)
{
	const char *control;
	enum err_code rc;

	if (json_reader_peek(r) != '"')
		return json_reader_expected(r, r->at, "a string");
	if ((rc = json_reader_pass_string(r, raw, escaped, &control)))
		return rc;
	return control ? json_reader_expected(r, control, "no control character") : ERR_OK;
}

static int json_reader_hex4(const char *at, const char *end)
{
	int v = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = at[i], lower = (char)(c | 0x20);

		if (c >= '0' && c <= '9')
			v = v << 4 | (c - '0');
		else if (lower >= 'a' && lower <= 'f')
			v = v << 4 | (lower - 'a' + 10);
		else
			return -1;
	}
	return v;
}

/* "\u12ab" at `at`, behind its 'u'. Two surrogates are one character. */
static const char *json_reader_unicode(const char *at, const char *end, unsigned *out)
{
	int high = json_reader_hex4(at, end), low;

	if (high < 0)
		return NULL;
	at += 4;
	*out = (unsigned)high;
	if (high < 0xd800 || high > 0xdfff)
		return at;
	*out = 0xfffd;
	if (high >= 0xdc00 || end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return at;
	low = json_reader_hex4(at + 2, end);
	if (low < 0xdc00 || low > 0xdfff)
		return at;
	*out = 0x10000 + ((unsigned)(high - 0xd800) << 10 | (unsigned)(low - 0xdc00));
	return at + 6;
}

/* What an escape takes is never less than what it gives. */
enum err_code json_reader_unescape(const struct json_reader *r, struct str raw, char *to, size_t *n)
{
	static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *at = raw.ptr, *end = at + raw.len, *found;
	char *begin = to;
	unsigned c;

	while (at < end) {
		if (*at != '\\') {
			*to++ = *at++;
			continue;
		}
		at++; /* a string does not end here */
		if (*at == 'u') {
			if (!(found = json_reader_unicode(at + 1, end, &c)))
				return json_reader_expected(r, at, "four hex digits");
			to += utf8_write(c, to);
			at = found;
		} else {
			if (!*at || !(found = strchr(letters, *at)))
				return json_reader_expected(r, at, "an escape");
			*to++ = values[found - letters];
			at++;
		}
	}
	*n = (size_t)(to - begin);
	return ERR_OK;
}

enum err_code json_reader_string(struct json_reader *r, struct arena *a, struct str *out)
{
	enum err_code rc;
	struct str raw;
	bool escaped;
	char *copy;
	size_t n;

	if ((rc = json_reader_raw(r, &raw, &escaped)))
		return rc;
	n = raw.len;
	if (!(copy = arena_alloc_raw(a, n + 1, 1)))
		return arena_fail(a, "JSON", r->err);
	if (!escaped)
		memcpy(copy, raw.ptr, n);
	else if ((rc = json_reader_unescape(r, raw, copy, &n)))
		return rc;
	*out = (struct str){ copy, n };
	return ERR_OK;
}

/* ------------------------------------------------------------------------------------------------
 * Numbers. */

struct str json_reader_scalar(struct json_reader *r)
{
	const char *begin;

	json_reader_peek(r);
	begin = r->at;
	while (r->at < r->end && json_reader_byte_is(*r->at, IN_SCALAR))
		r->at++;
	return (struct str){ begin, (size_t)(r->at - begin) };
}

static bool json_reader_digits(struct str s, size_t *i)
{
	size_t begin = *i;

	while (*i < s.len && s.ptr[*i] >= '0' && s.ptr[*i] <= '9')
		++*i;
	return *i > begin;
}

/* -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool json_reader_is_number(struct str s, bool *is_integer)
{
	size_t i = s.len && s.ptr[0] == '-', begin = i;

	*is_integer = true;
	if (!json_reader_digits(s, &i) || (s.ptr[begin] == '0' && i > begin + 1))
		return false;
	if (i < s.len && s.ptr[i] == '.') {
		*is_integer = false;
		i++;
		if (!json_reader_digits(s, &i))
			return false;
	}
	if (i < s.len && (s.ptr[i] | 0x20) == 'e') {
		*is_integer = false;
		i++;
		i += i < s.len && (s.ptr[i] == '+' || s.ptr[i] == '-');
		if (!json_reader_digits(s, &i))
			return false;
	}
	return i == s.len;
}

enum err_code json_reader_number(struct json_reader *r, struct json_reader_number *out)
{
	struct str s = json_reader_scalar(r);
	char copy[NUMBER_BYTES_MAX + 1];
	bool is_integer;

	out->at = s.ptr;
	if (s.len > NUMBER_BYTES_MAX || !json_reader_is_number(s, &is_integer))
		return json_reader_expected(r, s.ptr, "a number");
	out->is_integer = is_integer && str_to_i64(s, &out->i);
	memcpy(copy, s.ptr, s.len);
	copy[s.len] = '\0';
	out->d = out->is_integer ? (double)out->i : strtod(copy, NULL);
	return isfinite(out->d) ? ERR_OK : json_reader_expected(r, s.ptr, "a smaller number");
}
