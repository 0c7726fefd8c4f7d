/*
 * Lines, and the numbers in them.
 *
 * google/pprof reads lines by regular expressions that may begin anywhere in a line. Each is a
 * function here that looks at a byte a bounded number of times, however the line is made.
 */
#include "proto/legacy/reader.h"

bool reader_next(struct legacy_reader *r)
{
	const char *end;
	size_t len;

	r->line = STR("");
	r->ended = !r->rest.len;
	if (r->ended)
		return false;
	end = memchr(r->rest.ptr, '\n', r->rest.len);
	len = end ? (size_t)(end - r->rest.ptr) : r->rest.len;
	r->line = (struct str){ r->rest.ptr, len };
	len += end != NULL;
	r->rest = (struct str){ r->rest.ptr + len, r->rest.len - len };
	if (r->line.len && r->line.ptr[r->line.len - 1] == '\r')
		r->line.len--;
	r->line_n++;
	return true;
}

bool line_is_blank(struct str line)
{
	line = str_trim(line);
	return !line.len || line.ptr[0] == '#';
}

bool line_is_maps(struct str line)
{
	return str_find(line, STR("--- Memory map: ---")) >= 0 ||
		str_find(line, STR("MAPPED_LIBRARIES:")) >= 0;
}

bool line_has_prefix(struct str line, const char *prefix)
{
	return str_has_prefix(line, str_of(prefix));
}

static int legacy_text_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t run_digits(struct str s, size_t i)
{
	size_t begin = i;

	while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
		i++;
	return i - begin;
}

size_t run_hex(struct str s, size_t i)
{
	size_t begin = i;

	while (i < s.len && legacy_text_hex_digit(s.ptr[i]) >= 0)
		i++;
	return i - begin;
}

size_t run_spaces(struct str s, size_t i)
{
	size_t begin = i;

	while (i < s.len && s.ptr[i] == ' ')
		i++;
	return i - begin;
}

static bool legacy_digits_in_base(struct str s, unsigned base, uint64_t *out)
{
	uint64_t v = 0;

	if (!s.len)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int digit = legacy_text_hex_digit(s.ptr[i]);

		if (digit < 0 || (unsigned)digit >= base || __builtin_mul_overflow(v, base, &v) ||
			__builtin_add_overflow(v, (uint64_t)digit, &v))
			return false;
	}
	*out = v;
	return true;
}

bool number_hex(struct str s, uint64_t *out)
{
	return legacy_digits_in_base(s, 16, out);
}

static bool legacy_signed_in_base(struct str s, bool negative, unsigned base, int64_t *out)
{
	uint64_t v;

	if (!legacy_digits_in_base(s, base, &v) || v > (uint64_t)INT64_MAX + negative)
		return false;
	*out = (int64_t)(negative ? -v : v);
	return true;
}

bool number_i64(struct str s, int64_t *out)
{
	bool negative = legacy_at(s, 0) == '-';

	return legacy_signed_in_base(
		(struct str){ s.ptr + negative, s.len - negative }, negative, 10, out);
}

bool number_any_base(struct str s, int64_t *out)
{
	bool negative = legacy_at(s, 0) == '-';
	size_t skip = negative || legacy_at(s, 0) == '+';
	unsigned base = 10;

	if (legacy_at(s, skip) == '0' && s.len > skip + 1) {
		char c = (char)(legacy_at(s, skip + 1) | 0x20);

		base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
		skip += c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
	}
	return legacy_signed_in_base((struct str){ s.ptr + skip, s.len - skip }, negative, base, out);
}
