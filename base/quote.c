#include <stdio.h>

#include "base/quote.h"

size_t utf8_decode(struct str s, uint32_t *code)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4, i;

	if (len > s.len || !str_is_utf8((struct str){ s.ptr, len }))
		return 0;
	if (len == 1) {
		*code = p[0];
		return 1;
	}
	*code = p[0] & (0x7fu >> len);
	for (i = 1; i < len; i++)
		*code = *code << 6 | (p[i] & 0x3f);
	return len;
}

/*
 * Code points without a glyph: spaces other than ' ', controls, format characters (some of them
 * turn the direction of a line), private use and noncharacters.
 */
/* clang-format off */
static const struct {
	uint32_t first, last;
} invisible[] = {
	{ 0x7f, 0xa0 }, { 0xad, 0xad }, { 0x600, 0x605 }, { 0x61c, 0x61c }, { 0x1680, 0x1680 },
	{ 0x180e, 0x180e }, { 0x2000, 0x200f }, { 0x2028, 0x202f }, { 0x205f, 0x206f },
	{ 0x3000, 0x3000 }, { 0xe000, 0xf8ff }, { 0xfeff, 0xfeff }, { 0xfff0, 0xfffb },
	{ 0xfffe, 0xffff }, { 0xe0000, 0xe0fff }, { 0xf0000, 0x10ffff },
};
/* clang-format on */

static bool quote_prints(uint32_t code)
{
	size_t i;

	if (code < 0x7f)
		return code >= 0x20;
	for (i = 0; i < sizeof(invisible) / sizeof(invisible[0]); i++)
		if (code >= invisible[i].first && code <= invisible[i].last)
			return false;
	return true;
}

static void quote_add_escape(struct buf *b, uint32_t code)
{
	static const char letters[] = "abtnvfr"; /* 7..13 */

	if (code >= 7 && code <= 13) {
		buf_add_char(b, '\\');
		buf_add_char(b, letters[code - 7]);
	} else if (code < 0x80) {
		buf_printf(b, "\\x%02x", code);
	} else {
		buf_printf(b, code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
	}
}

size_t utf8_write(uint32_t code_point, char out[4])
{
	if (code_point < 0x80) {
		out[0] = (char)code_point;
		return 1;
	}
	if (code_point < 0x800) {
		out[0] = (char)(0xc0 | code_point >> 6);
		out[1] = (char)(0x80 | (code_point & 0x3f));
		return 2;
	}
	if (code_point < 0x10000) {
		out[0] = (char)(0xe0 | code_point >> 12);
		out[1] = (char)(0x80 | (code_point >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code_point & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code_point >> 18);
	out[1] = (char)(0x80 | (code_point >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code_point >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code_point & 0x3f));
	return 4;
}

void buf_add_utf8(struct buf *b, uint32_t code)
{
	char bytes[4];

	buf_add(b, bytes, utf8_write(code, bytes));
}

/* The code point at the front of s, which is not empty, as it prints; its length in s. */
static size_t quote_add_front(struct buf *b, struct str s)
{
	uint32_t code;
	size_t n = utf8_decode(s, &code);

	if (n == 0) {
		buf_printf(b, "\\x%02x", (unsigned char)s.ptr[0]);
		return 1;
	}
	if (quote_prints(code))
		buf_add(b, s.ptr, n);
	else
		quote_add_escape(b, code);
	return n;
}

void buf_add_quoted(struct buf *b, struct str s)
{
	size_t n;

	buf_add_char(b, '"');
	while (s.len) {
		if (s.ptr[0] == '"' || s.ptr[0] == '\\')
			buf_add_char(b, '\\');
		n = quote_add_front(b, s);
		s.ptr += n;
		s.len -= n;
	}
	buf_add_char(b, '"');
}

/* The number of bytes at the front of s that print as they are. */
static size_t quote_plain_length(struct str s)
{
	size_t i = 0, n;
	uint32_t code;

	while (i < s.len) {
		code = (unsigned char)s.ptr[i];
		n = code < 0x80 ? 1 : utf8_decode((struct str){ s.ptr + i, s.len - i }, &code);
		if (n == 0 || !quote_prints(code))
			break;
		i += n;
	}
	return i;
}

void buf_add_printable(struct buf *b, struct str s)
{
	size_t n;

	while (s.len) {
		n = quote_plain_length(s); /* copied in runs */
		if (n > 0)
			buf_add(b, s.ptr, n);
		else
			n = quote_add_front(b, s);
		s.ptr += n;
		s.len -= n;
	}
}

struct str str_printable(struct arena *a, struct str s)
{
	struct buf text = { 0 };
	struct str out = { NULL, 0 };

	if (quote_plain_length(s) == s.len)
		return s.ptr ? s : STR("");
	buf_add_printable(&text, s);
	if (!buf_failed(&text))
		out = str_dup(a, buf_str(&text));
	buf_release(&text);
	return out;
}

struct quoted quoted_of(struct str s)
{
	struct quoted q = { "\"...\"" };
	struct buf b = { 0 };
	size_t room = sizeof(q.text) - 1;
	bool cut = s.len > room; /* the rest would not fit anyhow */

	if (cut)
		s.len = room;
	buf_add_quoted(&b, s);
	if (!buf_failed(&b)) {
		size_t n = b.len;

		if (cut || n > room) {
			n = n > room - 4 ? room - 4 : n - 1;
			memcpy(q.text, b.ptr, n);
			memcpy(q.text + n, "...\"", 4);
			n += 4;
		} else {
			memcpy(q.text, b.ptr, n);
		}
		q.text[n] = '\0';
	}
	buf_release(&b);
	return q;
}

struct quoted did_you_mean(const struct nearest *n)
{
	struct quoted q = { "" };

	if (n->name.len)
		snprintf(q.text, sizeof(q.text), "; did you mean %.230s?", QUOTED(n->name));
	return q;
}
