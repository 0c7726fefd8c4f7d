/*
 * The shortest decimal that reads back as the same double. C has no such conversion (a loop over
 * %.15g .. %.17g misses some at powers of two). The C++ library has one, so this file is C++.
 */
#include <charconv>
#include <cmath>
#include <cstring>

extern "C" {
#include "base/json.h"
}

/*
 * The layout is that of Prometheus's samples: digits without an exponent from 1e-6 up to 1e21, else
 * d.ddde+XX with at least two digits of exponent.
 */
extern "C" void buf_add_double(struct buf *b, double v)
{
	char text[40], digits[24];
	size_t n = 0;
	int exponent = 0, i;
	const char *p;

	if (!std::isfinite(v)) {
		buf_add_cstr(b, std::isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
		return;
	}
	if (std::signbit(v))
		buf_add_char(b, '-');
	v = std::fabs(v);
	auto end = std::to_chars(text, text + sizeof(text) - 1, v, std::chars_format::scientific);
	*end.ptr = '\0';
	for (p = text; *p && *p != 'e'; p++)
		if (*p != '.')
			digits[n++] = *p;
	if (*p) /* "e+07": from_chars takes no plus */
		std::from_chars(p + (p[1] == '+' ? 2 : 1), end.ptr, exponent);
	if (v != 0 && (v < 1e-6 || v >= 1e21)) {
		buf_add_char(b, digits[0]);
		if (n > 1) {
			buf_add_char(b, '.');
			buf_add(b, digits + 1, n - 1);
		}
		buf_printf(b, "e%c%02d", exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
		return;
	}
	if (exponent < 0) {
		buf_add_cstr(b, "0.");
		for (i = -1; i > exponent; i--)
			buf_add_char(b, '0');
		buf_add(b, digits, n);
		return;
	}
	for (i = 0; i <= exponent; i++)
		buf_add_char(b, (size_t)i < n ? digits[i] : '0');
	if (n > (size_t)exponent + 1) {
		buf_add_char(b, '.');
		buf_add(b, digits + exponent + 1, n - (size_t)exponent - 1);
	}
}
