#include "proto/function_name.h"

#include "base/demangle/demangle.h"

/*
 * True of C++ and false of "Class.<init>" of Java or "pkg.(*T[...]).Method" of Go. The tool turns
 * both of Rust's "<A as Debug>::fmt" and "<B as Debug>::fmt" into "::fmt", which makes one
 * function of many; here such names stay as they are.
 */
static bool function_name_looks_like_cpp(struct str name)
{
	bool found = false;

	if (str_has_prefix(name, STR("<")))
		return false;
	for (size_t i = 0; i < name.len; i++) {
		struct str rest = { name.ptr + i, name.len - i };
		char c = name.ptr[i];

		if (str_has_prefix(rest, STR(".<")) || str_has_prefix(rest, STR("]).")))
			return false;
		found |= c == '<' || c == '>' || c == '[' || c == ']' || str_has_prefix(rest, STR("::"));
	}
	return found;
}

/* Appends the name without its parts in brackets, or all of it if the brackets do not match. */
static void function_name_add_without(struct buf *out, struct str name, char open, char close)
{
	size_t len = out->len, depth = 0;

	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (c == close && depth == 0) {
			out->len = len;
			break;
		}
		depth += c == open;
		if (depth == 0)
			buf_add_char(out, c);
		depth -= c == close && depth > 0;
	}
	if (depth == 0 && out->len > len)
		return;
	out->len = len;
	buf_add_str(out, name);
}

static bool function_name_demangled(struct str symbol, struct buf *out)
{
	if (!demangle_may(symbol))
		return false;
	if (demangle_name(symbol, out))
		return true;
	/* On macOS all symbols have one more underscore. */
	return demangle_name((struct str){ symbol.ptr + 1, symbol.len - 1 }, out);
}

bool function_name_shown(struct str name, struct str system_name, struct buf *out)
{
	struct buf without = { 0 };
	size_t len = out->len;

	if (system_name.len == 0 || (name.len > 0 && !str_eq(name, system_name)))
		return false;
	if (function_name_demangled(system_name, out))
		return !buf_failed(out);
	if (function_name_looks_like_cpp(system_name)) {
		function_name_add_without(&without, system_name, '(', ')');
		function_name_add_without(out, buf_str(&without), '<', '>');
		if (buf_failed(&without))
			out->len = len;
		buf_release(&without);
	} else if (name.len == 0) {
		buf_add_str(out, system_name);
	}
	if (buf_failed(out) || out->len == len ||
		str_eq((struct str){ out->ptr + len, out->len - len }, name)) {
		out->len = len;
		return false;
	}
	return true;
}
