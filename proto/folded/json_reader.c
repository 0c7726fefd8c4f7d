#include "proto/folded/json_reader.h"

#include <math.h>
#include <stdlib.h>

#include "base/quote.h"

#define NUMBER_BYTES_MAX 64u

static const char *json_reader_skip_white(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at;
}

enum err_code json_expected(struct str text, const char *at, const char *what, struct err *err)
{
	if (at >= text.ptr + text.len)
		return err_set(err, ERR_INVALID, "JSON ends at byte %zu: expected %s", text.len, what);
	return err_set(err, ERR_INVALID, "byte %zu: expected %s", (size_t)(at - text.ptr), what);
}

/* Behind the string that begins at `at`; NULL: it does not end. */
static const char *json_reader_skip_string(const char *at, const char *end)
{
	for (at++; at < end; at++) {
		if (*at == '"')
			return at + 1;
		if (*at == '\\')
			at++;
	}
	return NULL;
}

static bool json_reader_is_scalar(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
		c == '-' || c == '.';
}

/* Passes over a value at `at`; brackets are matched, what is between them is not looked at. */
static enum err_code json_reader_skip_value(
	struct str text, const char *at, const char **out, struct err *err)
{
	const char *end = text.ptr + text.len, *begin = at;
	char closing[JSON_READER_DEPTH_MAX];
	unsigned depth = 0;

	if (at < end && json_reader_is_scalar(*at)) {
		while (at < end && json_reader_is_scalar(*at))
			at++;
		*out = at;
		return ERR_OK;
	}
	if (at >= end || (*at != '"' && *at != '{' && *at != '['))
		return json_expected(text, at, "a value", err);
	do {
		if (at >= end)
			return json_expected(text, at, "the end of what begins before", err);
		if (*at == '"') {
			const char *string = at;

			if (!(at = json_reader_skip_string(at, end)))
				return json_expected(text, string, "a string that ends", err);
			continue;
		}
		if (*at == '{' || *at == '[') {
			if (depth == JSON_READER_DEPTH_MAX)
				return err_set(err, ERR_LIMIT, "byte %zu: nesting of more than %u, the limit",
					(size_t)(begin - text.ptr), JSON_READER_DEPTH_MAX);
			closing[depth++] = *at == '{' ? '}' : ']';
		} else if ((*at == '}' || *at == ']') && *at != closing[--depth]) {
			return json_expected(text, at, *at == '}' ? "']'" : "'}'", err);
		}
		at++;
	} while (depth);
	*out = at;
	return ERR_OK;
}

static struct str json_reader_span_of(const char *begin, const char *end)
{
	return (struct str){ begin, (size_t)(end - begin) };
}

enum err_code json_text(struct str text, struct str *value, struct err *err)
{
	const char *end = text.ptr + text.len, *at = json_reader_skip_white(text.ptr, end), *after;
	enum err_code rc;

	if ((rc = json_reader_skip_value(text, at, &after, err)))
		return rc;
	*value = json_reader_span_of(at, after);
	if (json_reader_skip_white(after, end) != end)
		return json_expected(text, json_reader_skip_white(after, end), "the end", err);
	return ERR_OK;
}

enum err_code json_open(
	struct json_members *m, struct str text, struct str span, char open, struct err *err)
{
	if (!span.len || span.ptr[0] != open)
		return json_expected(
			text, span.len ? span.ptr : text.ptr, open == '{' ? "an object" : "an array", err);
	*m = (struct json_members){ .begin = text.ptr,
		.at = span.ptr + 1,
		.end = span.ptr + span.len,
		.close = open == '{' ? '}' : ']',
		.first = true,
		.err = err };
	return ERR_OK;
}

enum err_code json_next(struct json_members *m, struct str *key, struct str *value, bool *more)
{
	struct str text = json_reader_span_of(m->begin, m->end);
	const char *at = json_reader_skip_white(m->at, m->end), *after;
	enum err_code rc;

	*key = STR("");
	*more = false;
	if (at + 1 == m->end && *at == m->close && m->first)
		return ERR_OK;
	if (!m->first) {
		if (at + 1 == m->end && *at == m->close)
			return ERR_OK;
		if (at >= m->end || *at != ',')
			return json_expected(text, at, "','", m->err);
		at = json_reader_skip_white(at + 1, m->end);
	}
	m->first = false;
	if (m->close == '}') {
		if (at >= m->end || *at != '"' || !(after = json_reader_skip_string(at, m->end)))
			return json_expected(text, at, "a name", m->err);
		*key = json_reader_span_of(at, after);
		at = json_reader_skip_white(after, m->end);
		if (at >= m->end || *at != ':')
			return json_expected(text, at, "':'", m->err);
		at = json_reader_skip_white(at + 1, m->end);
	}
	if ((rc = json_reader_skip_value(text, at, &after, m->err)))
		return rc;
	*value = json_reader_span_of(at, after);
	m->at = after;
	*more = true;
	return ERR_OK;
}

bool json_is(struct str span, const char *s)
{
	return span.len >= 2 && span.ptr[0] == '"' &&
		str_is((struct str){ span.ptr + 1, span.len - 2 }, s);
}

/* ------------------------------------------------------------------------------------------------
 * Strings. */

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
enum err_code json_read_string(
	struct arena *a, struct str text, struct str span, struct str *out, struct err *err)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at, *end;
	char *to_at, *copy;

	if (span.len < 2 || span.ptr[0] != '"')
		return json_expected(text, span.len ? span.ptr : text.ptr, "a string", err);
	at = span.ptr + 1;
	end = span.ptr + span.len - 1;
	if (!(copy = to_at = arena_alloc_raw(a, span.len, 1)))
		return arena_fail(a, "JSON", err);
	while (at < end) {
		const char *found;
		unsigned c;

		if ((unsigned char)*at < 0x20)
			return json_expected(text, at, "no control character", err);
		if (*at != '\\') {
			*to_at++ = *at++;
			continue;
		}
		at++;
		if (at < end && *at == 'u') {
			if (!(found = json_reader_unicode(at + 1, end, &c)))
				return json_expected(text, at, "four hex digits", err);
			to_at += utf8_write(c, to_at);
			at = found;
		} else {
			found = at < end && *at ? strchr(from, *at) : NULL;
			if (!found)
				return json_expected(text, at, "an escape", err);
			*to_at++ = to[found - from];
			at++;
		}
	}
	*out = (struct str){ copy, (size_t)(to_at - copy) };
	return ERR_OK;
}

/* ------------------------------------------------------------------------------------------------
 * Numbers. */

/* -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool json_reader_is_number(struct str s, bool *is_integer)
{
	size_t i = s.len && s.ptr[0] == '-', begin = i;

	*is_integer = true;
	while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
		i++;
	if (i == begin || (s.ptr[begin] == '0' && i > begin + 1))
		return false;
	if (i < s.len && s.ptr[i] == '.') {
		*is_integer = false;
		for (begin = ++i; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9';)
			i++;
		if (i == begin)
			return false;
	}
	if (i < s.len && (s.ptr[i] | 0x20) == 'e') {
		*is_integer = false;
		i++;
		i += i < s.len && (s.ptr[i] == '+' || s.ptr[i] == '-');
		for (begin = i; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9';)
			i++;
		if (i == begin)
			return false;
	}
	return i == s.len;
}

enum err_code json_read_number(
	struct str text, struct str span, struct json_number *out, struct err *err)
{
	char copy[NUMBER_BYTES_MAX + 1];
	bool is_integer;

	if (span.len > NUMBER_BYTES_MAX || !json_reader_is_number(span, &is_integer))
		return json_expected(text, span.len ? span.ptr : text.ptr, "a number", err);
	out->is_integer = is_integer && str_to_i64(span, &out->i);
	memcpy(copy, span.ptr, span.len);
	copy[span.len] = '\0';
	out->d = out->is_integer ? (double)out->i : strtod(copy, NULL);
	if (!isfinite(out->d))
		return json_expected(text, span.ptr, "a smaller number", err);
	return ERR_OK;
}
