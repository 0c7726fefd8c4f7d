#include "base/quote.h"
#include "promql/syntax/ast_builder.h"

/* Escapes are Go's: \a \b \f \n \r \t \v \\, the quote itself, \123, \x12, \u1234, \U00012345. */

static int unescape_digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* A numeric escape behind its backslash. Returns the bytes read, or 0 and why. */
static size_t unescape_numeric_escape(struct str s, char *out, size_t *out_n, const char **fault)
{
	char kind = s.ptr[0];
	int base = kind == 'x' || kind == 'u' || kind == 'U' ? 16 : 8;
	size_t skip = base == 16, n = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 3;
	uint64_t v = 0;
	int d;

	for (size_t i = skip; i < skip + n; i++) {
		d = i < s.len ? unescape_digit_of(s.ptr[i]) : 16;
		if (d >= base) {
			*fault = "bad digit in escape sequence";
			return 0;
		}
		v = v * (unsigned)base + (unsigned)d;
	}
	if (kind != 'u' && kind != 'U') {
		if (v > 255) {
			*fault = "escape sequence above \\377";
			return 0;
		}
		out[0] = (char)v;
		*out_n = 1;
	} else {
		if (v > 0x10ffff || (v >= 0xd800 && v < 0xe000)) {
			*fault = "escape sequence is not a Unicode character";
			return 0;
		}
		*out_n = utf8_write((uint32_t)v, out);
	}
	return skip + n;
}

/* s begins behind the backslash. */
static size_t unescape_escape(
	struct str s, char quote, char *out, size_t *out_n, const char **fault)
{
	static const char from[] = "abfnrtv\\", to[] = "\a\b\f\n\r\t\v\\";
	const char *at = s.len && s.ptr[0] ? strchr(from, s.ptr[0]) : NULL;

	*out_n = 1;
	if (at) {
		out[0] = to[at - from];
		return 1;
	}
	if (s.len && s.ptr[0] == quote) {
		out[0] = quote;
		return 1;
	}
	if (s.len && (unescape_digit_of(s.ptr[0]) < 8 || strchr("xuU", s.ptr[0] ? s.ptr[0] : '?')))
		return unescape_numeric_escape(s, out, out_n, fault);
	*fault = "unknown escape sequence";
	return 0;
}

bool string_unescape(
	struct arena *a, struct lexer_token t, struct str *out, struct span *at, const char **fault)
{
	char quote = t.text.ptr[0], *p;
	size_t i = 0, n = 0, read, wrote;
	struct str s = { t.text.ptr + 1, t.text.len - 2 };

	p = arena_alloc_raw(a, s.len + 1, 1); /* no escape is shorter than its value */
	if (!p)
		return false;
	while (i < s.len) {
		if (s.ptr[i] != '\\' || quote == '`') {
			p[n++] = s.ptr[i++];
			continue;
		}
		*at = (struct span){ t.at.start + 1 + (uint32_t)i, t.at.start + 3 + (uint32_t)i };
		read = unescape_escape(
			(struct str){ s.ptr + i + 1, s.len - i - 1 }, quote, p + n, &wrote, fault);
		if (!read)
			return false;
		i += 1 + read;
		n += wrote;
	}
	p[n] = '\0';
	*out = (struct str){ p, n };
	return true;
}
