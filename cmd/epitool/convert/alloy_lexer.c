#include "cmd/epitool/convert/alloy_lexer.h"

#include <ctype.h>

#include "base/quote.h"

void alloy_lexer_init(struct alloy_lexer *l, struct arena *a, const char *file, struct str text)
{
	*l = (struct alloy_lexer){ .arena = a, .file = file, .line = 1 };
	l->at = l->line_begin = text.len ? text.ptr : "";
	l->end = l->at + text.len;
}

static enum err_code convert_wrong(
	const struct alloy_lexer *l, const char *at, struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, "%s:%u:%zu: %s", l->file, l->line,
		(size_t)(at - l->line_begin) + 1, what);
}

static bool convert_is_name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static bool convert_is_name_part(char c)
{
	return convert_is_name_start(c) || isdigit((unsigned char)c);
}

/* l->at is the line feed. */
static void convert_new_line(struct alloy_lexer *l)
{
	l->at++;
	l->line++;
	l->line_begin = l->at;
}

/* ---- comments ---- */

#define COMMENT_BYTES_MAX 4096u /* each line copies those before it */

static enum err_code convert_keep_comment(struct alloy_lexer *l, struct str s, struct err *err)
{
	char *made;

	if (l->comment.len > COMMENT_BYTES_MAX)
		return ERR_OK;
	s = str_trim(s);
	if (l->comment.len)
		made = arena_printf(l->arena, STR_FMT "\n" STR_FMT, STR_ARG(l->comment), STR_ARG(s));
	else
		made = arena_strndup(l->arena, s.len ? s.ptr : "", s.len);
	if (!made)
		return arena_fail(l->arena, l->file, err);
	l->comment = str_of(made);
	return ERR_OK;
}

static enum err_code convert_skip_comment(struct alloy_lexer *l, struct err *err)
{
	const char *begin = l->at + 2, *stop;
	bool is_line = l->at[1] == '/';
	enum err_code rc = ERR_OK;

	l->at = begin;
	while (l->at < l->end) {
		stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
		stop = stop ? stop : l->end;
		if (!is_line) {
			const char *close = memmem(l->at, (size_t)(stop - l->at), "*/", 2);

			if (close) {
				rc = convert_keep_comment(l, (struct str){ l->at, (size_t)(close - l->at) }, err);
				l->at = close + 2;
				return rc;
			}
		}
		if ((rc = convert_keep_comment(l, (struct str){ l->at, (size_t)(stop - l->at) }, err)))
			return rc;
		l->at = stop;
		if (is_line)
			return ERR_OK;
		if (l->at < l->end)
			convert_new_line(l);
	}
	return is_line ? ERR_OK : convert_wrong(l, l->at, err, "a comment is not closed");
}

/* ---- strings ---- */

/* Digits of an escape; false: they are no such number. */
static bool convert_read_digits(
	const char **text, const char *end, unsigned n, unsigned base, uint32_t *out)
{
	uint32_t v = 0;

	for (; n; n--, ++*text) {
		unsigned c = *text < end ? (unsigned char)**text : 0;
		unsigned d = c >= '0' && c <= '9'          ? c - '0' :
			(c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 :
													 99;

		if (d >= base)
			return false;
		v = v * base + d;
	}
	*out = v;
	return true;
}

/* *text is the character after the backslash. */
static bool convert_read_escape(const char **text, const char *end, struct buf *out)
{
	static const char letters[] = "abfnrtv\\\"'", values[] = "\a\b\f\n\r\t\v\\\"'";
	const char *letter = *text < end && **text ? strchr(letters, **text) : NULL;
	uint32_t v;

	if (letter) {
		buf_add_char(out, values[letter - letters]);
		++*text;
		return true;
	}
	if (*text < end && (**text == 'x' || **text == 'u' || **text == 'U')) {
		char kind = *(*text)++;

		if (!convert_read_digits(text, end, kind == 'x' ? 2 : kind == 'u' ? 4 : 8, 16, &v))
			return false;
		if (kind == 'x')
			buf_add_char(out, (char)v);
		else if (v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
			return false;
		else
			buf_add_utf8(out, v);
		return true;
	}
	if (!convert_read_digits(text, end, 3, 8, &v) || v > 255)
		return false;
	buf_add_char(out, (char)v);
	return true;
}

static enum err_code convert_read_string(
	struct alloy_lexer *l, struct alloy_token *t, struct err *err)
{
	struct buf value = { 0 };
	enum err_code rc = ERR_OK;
	const char *p = l->at + 1;

	while (!rc && p < l->end && *p != '"' && *p != '\n') {
		if (*p != '\\')
			buf_add_char(&value, *p++);
		else if (p++, !convert_read_escape(&p, l->end, &value))
			rc = convert_wrong(l, l->at, err, "a string has a wrong escape");
	}
	if (!rc && (p == l->end || *p != '"'))
		rc = convert_wrong(l, l->at, err, "a string is not closed");
	if (!rc) {
		t->text = str_dup(l->arena, buf_str(&value));
		if (buf_failed(&value) || !t->text.ptr)
			rc = arena_fail(l->arena, l->file, err);
		else if (!str_is_utf8(t->text))
			rc = convert_wrong(l, l->at, err, "a string is not UTF-8");
		l->at = p + 1;
	}
	buf_release(&value);
	return rc;
}

static enum err_code convert_read_raw_string(
	struct alloy_lexer *l, struct alloy_token *t, struct err *err)
{
	const char *begin = l->at + 1;
	const char *close = memchr(begin, '`', (size_t)(l->end - begin));

	if (!close)
		return convert_wrong(l, l->at, err, "a string is not closed");
	t->text = (struct str){ begin, (size_t)(close - begin) };
	while (l->at < close)
		if (*l->at == '\n')
			convert_new_line(l);
		else
			l->at++;
	l->at = close + 1;
	return ERR_OK;
}

/* ---- tokens ---- */

static void convert_read_number(struct alloy_lexer *l)
{
	while (l->at < l->end &&
		(convert_is_name_part(*l->at) || *l->at == '.' ||
			((*l->at == '-' || *l->at == '+') && (l->at[-1] | 0x20) == 'e')))
		l->at++;
}

static enum err_code convert_read_punctuation(struct alloy_lexer *l, struct err *err)
{
	static const char *const two[] = { "==", "!=", "<=", ">=", "&&", "||" };

	for (size_t i = 0; l->end - l->at >= 2 && i < sizeof(two) / sizeof(two[0]); i++)
		if (!memcmp(l->at, two[i], 2)) {
			l->at += 2;
			return ERR_OK;
		}
	if (!*l->at || !strchr("=<>+-*/%^!.,()[]{}", *l->at))
		return convert_wrong(l, l->at, err, "a character that the language does not have");
	l->at++;
	return ERR_OK;
}

static enum err_code convert_read_token(
	struct alloy_lexer *l, struct alloy_token *t, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (*l->at == '"') {
		t->kind = TOKEN_STRING;
		rc = convert_read_string(l, t, err);
	} else if (*l->at == '`') {
		t->kind = TOKEN_STRING;
		rc = convert_read_raw_string(l, t, err);
	} else if (isdigit((unsigned char)*l->at)) {
		t->kind = TOKEN_NUMBER;
		convert_read_number(l);
	} else if (convert_is_name_start(*l->at)) {
		t->kind = TOKEN_NAME;
		while (l->at < l->end && convert_is_name_part(*l->at))
			l->at++;
	} else {
		t->kind = TOKEN_PUNCTUATION;
		rc = convert_read_punctuation(l, err);
	}
	t->end = l->at;
	if (t->kind != TOKEN_STRING)
		t->text = (struct str){ t->begin, (size_t)(t->end - t->begin) };
	return rc;
}

enum err_code alloy_next(struct alloy_lexer *l, struct alloy_token *out, struct err *err)
{
	bool newline = false;
	enum err_code rc;

	while (l->at < l->end) {
		if (*l->at == '\n') {
			newline = true;
			convert_new_line(l);
		} else if (*l->at == ' ' || *l->at == '\t' || *l->at == '\r') {
			l->at++;
		} else if (l->end - l->at >= 2 && l->at[0] == '/' && (l->at[1] == '/' || l->at[1] == '*')) {
			if ((rc = convert_skip_comment(l, err)))
				return rc;
		} else {
			break;
		}
	}
	*out = (struct alloy_token){ .line = l->line,
		.column = (uint32_t)(l->at - l->line_begin) + 1,
		.begin = l->at,
		.end = l->at };
	if (newline) {
		out->kind = TOKEN_NEWLINE;
		return ERR_OK;
	}
	return l->at < l->end ? convert_read_token(l, out, err) : ERR_OK;
}
