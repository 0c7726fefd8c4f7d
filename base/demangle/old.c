/* Rust's older names, which look like C++'s with a hash; and the choice of the form of a name. */
#include <string.h>

#include "base/demangle/cpp.h"

/* ---- the older form ---- */

#define HASH_BYTES 20u /* "17h", 16 digits, "E" */

static int demangle_hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A hash looks like one: five different digits at least. */
static bool demangle_is_hash(const char *digits)
{
	unsigned seen = 0;

	for (size_t i = 0; i < 16; i++) {
		int v = demangle_hex_digit(digits[i]);

		if (v < 0)
			return false;
		seen |= 1u << v;
	}
	return __builtin_popcount(seen) >= 5;
}

/* The character that "$LT$" means, and the length of the escape; 0: it is none. */
static size_t demangle_escape(struct str s, char *out)
{
	static const struct {
		const char *code;
		char c;
	} codes[] = { { "$C$", ',' }, { "$SP$", '@' }, { "$BP$", '*' }, { "$RF$", '&' },
		{ "$LT$", '<' }, { "$GT$", '>' }, { "$LP$", '(' }, { "$RP$", ')' } };

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (str_has_prefix(s, str_of(codes[i].code))) {
			*out = codes[i].c;
			return strlen(codes[i].code);
		}
	if (s.len > 4 && s.ptr[1] == 'u' && s.ptr[4] == '$') {
		int high = demangle_hex_digit(s.ptr[2]), low = demangle_hex_digit(s.ptr[3]);

		*out = (char)(high * 16 + low);
		return high >= 2 && high <= 7 && low >= 0 ? 5 : 0;
	}
	return 0;
}

static void demangle_add_old_identifier(struct buf *out, struct str id)
{
	size_t n;
	char c;

	if (str_has_prefix(id, STR("_$")))
		id = (struct str){ id.ptr + 1, id.len - 1 };
	while (id.len > 0) {
		n = 1;
		if (id.ptr[0] == '$') {
			if (!(n = demangle_escape(id, &c))) {
				buf_add_str(out, id);
				return;
			}
			buf_add_char(out, c);
		} else if (str_has_prefix(id, STR(".."))) {
			buf_add_cstr(out, "::");
			n = 2;
		} else {
			buf_add_char(out, id.ptr[0]);
		}
		id = (struct str){ id.ptr + n, id.len - n };
	}
}

bool demangle_old_rust(struct str name, struct buf *out)
{
	size_t from = out->len, end = name.len, at = 3, n;

	for (size_t i = name.len; i-- > 1;) /* "E.llvm.123" */
		if (name.ptr[i] == '.' && name.ptr[i - 1] == 'E') {
			end = i;
			break;
		}
	if (name.len > DEMANGLE_NAME_MAX || end <= 3 + HASH_BYTES ||
		!str_has_prefix(name, STR("_ZN")) || name.ptr[end - 1] != 'E' ||
			memcmp(name.ptr + end - HASH_BYTES, "17h", 3) != 0 ||
			!demangle_is_hash(name.ptr + end - 17))
		return false;
	end -= HASH_BYTES;
	while (at < end) {
		size_t digits = at;

		for (n = 0; at < end && name.ptr[at] >= '0' && name.ptr[at] <= '9'; at++)
			if ((n = n * 10 + (size_t)(name.ptr[at] - '0')) > DEMANGLE_NAME_MAX)
				goto none;
		if (at == digits)
			goto none;
		if (at < end && name.ptr[at] == '_' && n > 0) {
			at++;
			n--;
		}
		if (n > end - at)
			goto none;
		if (out->len > from)
			buf_add_cstr(out, "::");
		demangle_add_old_identifier(out, (struct str){ name.ptr + at, n });
		at += n;
	}
	return !buf_failed(out);
none:
	out->len = from;
	return false;
}

/* ---- any of them ---- */

bool demangle_name(struct str name, struct buf *out)
{
	size_t len = out->len;

	if (!demangle_may(name))
		return false;
	if (str_has_prefix(name, STR("_R"))) {
		if (!demangle_rust(name, out))
			return false;
	} else if (!demangle_old_rust(name, out) && !demangle_cpp(name, out)) {
		return false;
	}
	return out->len > len || buf_failed(out); /* nothing was written: not a name */
}
