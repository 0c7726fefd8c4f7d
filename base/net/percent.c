#include "base/net/percent.h"

#include <assert.h>

/* Which parts keep a byte: bit 1 << part. */
#define VALUE (1 << PERCENT_VALUE)
#define FORM (1 << PERCENT_FORM)
#define PATH (1 << PERCENT_PATH)
#define TARGET (1 << PERCENT_TARGET)
#define ALL (VALUE | FORM | PATH | TARGET)

/* clang-format off */
static const unsigned char keeps[256] = {
	['!'] = TARGET,
	['#'] = TARGET,
	['$'] = TARGET | PATH,
	['%'] = TARGET,
	['&'] = TARGET | PATH,
	['\''] = TARGET, ['('] = TARGET, [')'] = TARGET, ['*'] = TARGET,
	['+'] = TARGET | PATH, [','] = TARGET | PATH,
	['-'] = ALL, ['.'] = ALL,
	['/'] = TARGET | PATH,
	['0' ... '9'] = ALL,
	[':'] = TARGET | PATH, [';'] = TARGET | PATH,
	['='] = TARGET | PATH,
	['?'] = TARGET,
	['@'] = TARGET | PATH,
	['A' ... 'Z'] = ALL,
	['['] = TARGET, ['\\'] = TARGET, [']'] = TARGET, ['^'] = TARGET,
	['_'] = ALL,
	['`'] = TARGET,
	['a' ... 'z'] = ALL,
	['{'] = TARGET, ['|'] = TARGET, ['}'] = TARGET,
	['~'] = ALL,
};

static const signed char hex_values[256] = { /* one more than the digit's value */
	['0'] = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
	['A'] = 11, 12, 13, 14, 15, 16,
	['a'] = 11, 12, 13, 14, 15, 16,
};
/* clang-format on */

size_t percent_encode_to(char *out, struct str s, enum percent_part part)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	assert(part <= PERCENT_TARGET);
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (keeps[c] & (1 << part)) {
			out[n++] = (char)c;
		} else if (c == ' ' && part == PERCENT_FORM) {
			out[n++] = '+';
		} else {
			out[n++] = '%';
			out[n++] = digits[c >> 4];
			out[n++] = digits[c & 15];
		}
	}
	return n;
}

void percent_encode(struct buf *out, struct str s, enum percent_part part)
{
	if (s.len && buf_reserve(out, s.len * 3))
		out->len += percent_encode_to(out->ptr + out->len, s, part);
}

/* The byte that "%41" is, or -1. */
static int percent_decoded(const char *text, size_t len)
{
	int high, low;

	if (len < 3 || text[0] != '%')
		return -1;
	high = hex_values[(unsigned char)text[1]] - 1;
	low = hex_values[(unsigned char)text[2]] - 1;
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static size_t net_percent_decode(char *out, struct str s, char plus)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		int c = percent_decoded(s.ptr + i, s.len - i);

		if (c >= 0) {
			out[n++] = (char)c;
			i += 2;
		} else {
			out[n++] = s.ptr[i] == '+' ? plus : s.ptr[i];
		}
	}
	return n;
}

size_t percent_decode(char *out, struct str s)
{
	return net_percent_decode(out, s, '+');
}

size_t percent_decode_form(char *out, struct str s)
{
	return net_percent_decode(out, s, ' ');
}
