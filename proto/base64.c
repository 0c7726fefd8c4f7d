#include "proto/base64.h"

void base64_add(struct buf *out, struct str bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)bytes.ptr;

	for (size_t left = bytes.len; left; p += 3) {
		uint32_t v = (uint32_t)p[0] << 16;
		char four[4];

		if (left > 1)
			v |= (uint32_t)p[1] << 8;
		if (left > 2)
			v |= p[2];
		four[0] = digits[v >> 18];
		four[1] = digits[v >> 12 & 63];
		four[2] = left > 1 ? digits[v >> 6 & 63] : '=';
		four[3] = left > 2 ? digits[v & 63] : '=';
		buf_add(out, four, 4);
		left -= left < 3 ? left : 3;
	}
}

static int base64_digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

bool base64_decode(struct str text, char *out, size_t *len)
{
	uint32_t v = 0;
	size_t n = 0, padding = 0;
	int bits = 0, digit;

	while (text.len && padding < 2 && text.ptr[text.len - 1] == '=') {
		text.len--;
		padding++;
	}
	if (text.len % 4 == 1 || (padding && (text.len + padding) % 4))
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if ((digit = base64_digit_of(text.ptr[i])) < 0)
			return false;
		v = v << 6 | (uint32_t)digit;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[n++] = (char)(v >> bits);
		}
	}
	*len = n;
	return true;
}
