/*
 * Tokens of templates' actions, as Go's text/template/parse has them.
 */
#include "promql/rules/template/lex.h"

#include <stdio.h>

#include "base/quote.h"

enum err_code template_fault(
	struct str text, uint32_t at, struct err *err, enum err_code code, const char *fmt, ...)
{
	unsigned line = 1, column = 1;
	char msg[512];
	va_list ap;

	for (uint32_t i = 0; i < at && i < text.len; i++) {
		if (text.ptr[i] == '\n') {
			line++;
			column = 1;
		} else {
			column += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
		}
	}
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_set(err, code, "%u:%u: %s", line, column, msg);
}

#define fault(p, at, ...) template_fault((p)->text, (at), (p)->err, ERR_INVALID, __VA_ARGS__)

/* ---- tokens ---- */

bool lex_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool template_is_word(unsigned char c)
{
	return c == '_' || c >= 0x80 || (c >= '0' && c <= '9') ||
		((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

char lex_peek_at(const struct parser *p, size_t ahead)
{
	return p->pos + ahead < p->text.len ? p->text.ptr[p->pos + ahead] : '\0';
}

bool lex_is_next(const struct parser *p, const char *text)
{
	struct str rest = { p->text.ptr + p->pos, p->text.len - p->pos };

	return str_has_prefix(rest, str_of(text));
}

static void template_take_word(struct parser *p)
{
	size_t start = p->pos;

	while (p->pos < p->text.len && template_is_word((unsigned char)p->text.ptr[p->pos]))
		p->pos++;
	p->token.text = (struct str){ p->text.ptr + start, p->pos - start };
}

/* Reads n digits of an escape; false: there are fewer. */
static bool template_take_digits(struct parser *p, unsigned n, unsigned base, uint32_t *out)
{
	*out = 0;
	for (unsigned i = 0; i < n; i++, p->pos++) {
		char c = lex_peek_at(p, 0), lower = c | 0x20;
		unsigned d = c >= '0' && c <= '9' ? (unsigned)(c - '0') :
			lower >= 'a' && lower <= 'f'  ? (unsigned)(lower - 'a' + 10) :
											99;

		if (d >= base)
			return false;
		*out = *out * base + d;
	}
	return true;
}

/* Called after the backslash. */
static bool template_take_escape(struct parser *p, char quote, struct buf *b)
{
	static const char from[] = "abfnrtv\\", to[] = "\a\b\f\n\r\t\v\\";
	char c = lex_peek_at(p, 0);
	const char *known = c ? strchr(from, c) : NULL;
	uint32_t v;

	if (known || (c && c == quote)) {
		buf_add_char(b, known ? to[known - from] : quote);
		p->pos++;
		return true;
	}
	if (c >= '0' && c <= '7') {
		if (!template_take_digits(p, 3, 8, &v) || v > 255)
			return false;
		buf_add_char(b, (char)v);
		return true;
	}
	p->pos++;
	if (c == 'x') {
		if (!template_take_digits(p, 2, 16, &v))
			return false;
		buf_add_char(b, (char)v);
		return true;
	}
	if ((c != 'u' && c != 'U') || !template_take_digits(p, c == 'u' ? 4 : 8, 16, &v) ||
		v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
		return false;
	buf_add_utf8(b, v);
	return true;
}

static enum err_code template_take_quoted(struct parser *p)
{
	char quote = lex_peek_at(p, 0);
	uint32_t at = (uint32_t)p->pos++;
	const char *what = quote == '\'' ? "character constant" : "quoted string";
	struct buf b = { 0 };
	enum err_code rc = ERR_OK;

	for (;;) {
		char c = lex_peek_at(p, 0);

		if (p->pos >= p->text.len || (c == '\n' && quote != '`')) {
			rc = fault(p, at, "unterminated %s%s", quote == '`' ? "raw " : "", what);
			break;
		}
		p->pos++;
		if (c == quote)
			break;
		if (c != '\\' || quote == '`') {
			buf_add_char(&b, c);
		} else if (!template_take_escape(p, quote, &b)) {
			rc = fault(p, at, "invalid syntax in %s", what);
			break;
		}
	}
	if (!rc) {
		p->token.kind = quote == '\'' ? TOKEN_CHAR : TOKEN_STRING;
		p->token.text = b.len ? str_dup(p->arena, buf_str(&b)) : STR("");
		if (buf_failed(&b) || !p->token.text.ptr)
			rc = arena_fail(p->arena, "template", p->err);
	}
	buf_release(&b);
	return rc;
}

static void template_take_number(struct parser *p)
{
	size_t start = p->pos;

	p->pos += lex_peek_at(p, 0) == '+' || lex_peek_at(p, 0) == '-';
	while (template_is_word((unsigned char)lex_peek_at(p, 0)) || lex_peek_at(p, 0) == '.' ||
		((lex_peek_at(p, 0) == '+' || lex_peek_at(p, 0) == '-') && p->pos > start &&
			(p->text.ptr[p->pos - 1] | 0x20) == 'e' &&
			(p->pos - start < 2 || (p->text.ptr[start + 1] | 0x20) != 'x')))
		p->pos++;
	p->token.kind = TOKEN_NUMBER;
	p->token.text = (struct str){ p->text.ptr + start, p->pos - start };
}

static enum err_code template_take_sign(struct parser *p, char c)
{
	struct quoted shown;

	if (lex_is_next(p, ":=")) {
		p->token.kind = TOKEN_DECLARE;
		p->pos += 2;
		return ERR_OK;
	}
	switch (c) {
	case '=':
		p->token.kind = TOKEN_ASSIGN;
		break;
	case '|':
		p->token.kind = TOKEN_PIPE;
		break;
	case ',':
		p->token.kind = TOKEN_COMMA;
		break;
	case '(':
		p->token.kind = TOKEN_OPEN_PAREN;
		break;
	case ')':
		p->token.kind = TOKEN_CLOSE_PAREN;
		break;
	default:
		shown = quoted_of((struct str){ &c, 1 });
		return fault(p, p->token.at, "unexpected %s in an action", shown.text);
	}
	p->pos++;
	return ERR_OK;
}

enum err_code lex_advance(struct parser *p)
{
	char c = lex_peek_at(p, 0), d = lex_peek_at(p, 1);
	bool digit = d >= '0' && d <= '9';

	p->token = (struct token){ .at = (uint32_t)p->pos };
	if (p->pos >= p->text.len)
		return fault(p, p->token.at, "unclosed action");
	if (lex_is_next(p, "}}"))
		return ERR_OK; /* TOKEN_CLOSE; template_close_action steps over it */
	if (lex_is_space(c)) {
		while (lex_is_space(lex_peek_at(p, 0)))
			p->pos++;
		if (lex_is_next(p, "-}}")) /* the marker belongs to the end of the action */
			return ERR_OK;
		p->token.kind = TOKEN_SPACE;
		return ERR_OK;
	}
	if (c == '"' || c == '`' || c == '\'')
		return template_take_quoted(p);
	if (c == '$') {
		p->pos++;
		template_take_word(p);
		p->token.kind = TOKEN_VARIABLE;
		p->token.text = (struct str){ p->token.text.ptr - 1, p->token.text.len + 1 };
		return ERR_OK;
	}
	if ((c >= '0' && c <= '9') || ((c == '.' || c == '+' || c == '-') && digit) ||
		((c == '+' || c == '-') && d == '.')) {
		template_take_number(p);
		return ERR_OK;
	}
	if (c == '.') {
		p->pos++;
		template_take_word(p);
		p->token.kind = p->token.text.len ? TOKEN_FIELD : TOKEN_DOT;
		return ERR_OK;
	}
	if (template_is_word((unsigned char)c)) {
		template_take_word(p);
		p->token.kind = TOKEN_WORD;
		return ERR_OK;
	}
	return template_take_sign(p, c);
}
