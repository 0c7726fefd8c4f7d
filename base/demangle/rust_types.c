/*
 * Types, constants and lifetimes of Rust's names.
 */
#include <inttypes.h>
#include <string.h>

#include "base/demangle/rust.h"

/* ---- lifetimes, constants ---- */

static void demangle_write_lifetime(struct rust *r, uint64_t lifetime)
{
	uint64_t depth = r->lifetimes - lifetime;

	rust_write_text(r, "'");
	if (lifetime == 0) {
		rust_write_text(r, "_");
	} else if (lifetime > r->lifetimes) {
		r->failed = true;
	} else if (depth < 26) {
		char c = (char)('a' + (int)depth);

		rust_write(r, (struct str){ &c, 1 });
	} else {
		rust_write_text(r, "z");
		rust_write_u64(r, depth - 26 + 1);
	}
}

static void demangle_read_binder(struct rust *r)
{
	uint64_t n;

	if (!rust_take(r, 'G'))
		return;
	n = rust_base62(r) + 1;
	if (r->failed || n + r->lifetimes >= r->end - r->at) {
		r->failed = true;
		return;
	}
	rust_write_text(r, "for<");
	for (uint64_t i = 0; i < n; i++) {
		if (i)
			rust_write_text(r, ", ");
		r->lifetimes++;
		demangle_write_lifetime(r, 1);
	}
	rust_write_text(r, "> ");
}

static void demangle_write_char(struct rust *r, uint64_t value)
{
	char c = (char)value;

	rust_write_text(r, "'");
	if (value == '\t' || value == '\r' || value == '\n')
		rust_write_text(r, value == '\t' ? "\\t" : value == '\r' ? "\\r" : "\\n");
	else if (value == '\\' || value == '\'')
		rust_write_text(r, value == '\\' ? "\\\\" : "\\'");
	else if (value >= ' ' && value <= '~')
		rust_write(r, (struct str){ &c, 1 });
	else if (!r->quiet)
		buf_printf(r->out, "\\u{%" PRIx64 "}", value);
	rust_write_text(r, "'");
}

static void demangle_read_const(struct rust *r, bool flag);

static void demangle_read_const_value(struct rust *r, char type)
{
	size_t from, digits;
	uint64_t v = 0;
	bool is_signed = strchr("aslxni", type) != NULL;

	if (is_signed && rust_take(r, 'n'))
		rust_write_text(r, "-");
	from = r->at;
	while (!r->failed && rust_peek(r) != '_') {
		char c = rust_peek(r);

		if (c >= '0' && c <= '9')
			v = v * 16 + (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (uint64_t)(c - 'a') + 10;
		else
			r->failed = true;
		r->at++;
		if (!r->failed && r->at == from + 1 && c == '0' && rust_peek(r) != '_')
			r->failed = true;
	}
	digits = r->at - from;
	rust_expect(r, '_');
	if (digits == 0 || (type == 'b' && v > 1) || (type == 'b' && digits > 1) ||
		(type == 'c' && digits > 6))
		r->failed = true;
	if (r->failed)
		return;
	if (type == 'b') {
		rust_write_text(r, v ? "true" : "false");
	} else if (type == 'c') {
		demangle_write_char(r, v);
	} else if (digits > 16) {
		rust_write_text(r, "0x");
		rust_write(r, (struct str){ r->whole.ptr + from, digits });
	} else {
		rust_write_u64(r, v);
	}
}

static void demangle_read_const(struct rust *r, bool flag)
{
	char c = rust_peek(r);

	if (!rust_enter(r))
		return;
	if (c == 'B') {
		rust_back(r, demangle_read_const, flag);
	} else if (rust_take(r, 'p')) {
		rust_write_text(r, "_");
	} else if (c && strchr("aslxnihtmyojbc", c)) {
		r->at++;
		demangle_read_const_value(r, c);
	} else {
		r->failed = true;
	}
	r->depth--;
}

/* ---- types ---- */

static void type_again(struct rust *r, bool flag)
{
	(void)flag;
	rust_type(r);
}

static const char *demangle_basic_type(char c)
{
	static const char *const names[26] = { "i8", "bool", "char", "f64", "str", "f32", NULL, "u8",
		"isize", "usize", NULL, "i32", "u32", "i128", "u128", "_", NULL, NULL, "i16", "u16", "()",
		"...", NULL, "i64", "u64", "!" };

	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void demangle_read_signature(struct rust *r)
{
	bool punycode;
	struct str abi;
	bool first = true;

	demangle_read_binder(r);
	if (rust_take(r, 'U'))
		rust_write_text(r, "unsafe ");
	if (rust_take(r, 'K')) {
		rust_write_text(r, "extern \"");
		if (rust_take(r, 'C')) {
			rust_write_text(r, "C");
		} else {
			abi = rust_bytes(r, &punycode);
			r->failed |= punycode;
			for (size_t i = 0; i < abi.len; i++)
				rust_write(r, abi.ptr[i] == '_' ? STR("-") : (struct str){ abi.ptr + i, 1 });
		}
		rust_write_text(r, "\" ");
	}
	rust_write_text(r, "fn(");
	for (; r->at < r->end && rust_peek(r) && rust_peek(r) != 'E'; first = false) {
		if (!first)
			rust_write_text(r, ", ");
		rust_type(r);
	}
	rust_expect(r, 'E');
	rust_write_text(r, ")");
	if (rust_take(r, 'u'))
		return;
	rust_write_text(r, " -> ");
	rust_type(r);
}

/* Reads generic arguments and writes none of them. */
void rust_arguments(struct rust *r)
{
	r->quiet++;
	while (!r->failed && r->at < r->end && rust_peek(r) != 'E') {
		if (rust_take(r, 'L'))
			demangle_write_lifetime(r, rust_base62(r));
		else if (rust_take(r, 'K'))
			demangle_read_const(r, false);
		else
			rust_type(r);
	}
	r->quiet--;
}

/* True: "<" is written and not closed. */
static bool demangle_read_open_path(struct rust *r)
{
	size_t from = r->at, at, end;
	bool open = false;
	uint64_t to;

	if (!rust_enter(r))
		return false;
	if (rust_take(r, 'I')) {
		rust_path(r, false);
		rust_write_text(r, "<");
		rust_arguments(r);
		rust_expect(r, 'E');
		open = true;
	} else if (rust_take(r, 'B')) {
		to = rust_base62(r);
		if (to >= from)
			r->failed = true;
		if (!r->failed && !r->quiet) {
			at = r->at;
			end = r->end;
			r->at = (size_t)to;
			r->end = from;
			open = demangle_read_open_path(r);
			r->at = at;
			r->end = end;
		}
	} else {
		rust_path(r, false);
	}
	r->depth--;
	return open;
}

static void demangle_read_dyn(struct rust *r)
{
	bool open, first = true;

	rust_write_text(r, "dyn ");
	demangle_read_binder(r);
	for (; !r->failed && r->at < r->end && rust_peek(r) != 'E'; first = false) {
		if (!first)
			rust_write_text(r, " + ");
		open = demangle_read_open_path(r);
		while (rust_take(r, 'p')) {
			rust_write_text(r, open ? ", " : "<");
			open = true;
			rust_identifier(r);
			rust_write_text(r, " = ");
			rust_type(r);
		}
		if (open)
			rust_write_text(r, ">");
	}
	rust_expect(r, 'E');
}

static void demangle_read_tuple(struct rust *r)
{
	size_t n = 0;

	rust_write_text(r, "(");
	for (; !r->failed && r->at < r->end && rust_peek(r) != 'E'; n++) {
		if (n)
			rust_write_text(r, ", ");
		rust_type(r);
	}
	rust_write_text(r, n == 1 ? ",)" : ")");
	rust_expect(r, 'E');
}

static void demangle_read_reference(struct rust *r, bool mut)
{
	uint64_t lifetime;

	rust_write_text(r, "&");
	if (rust_take(r, 'L') && (lifetime = rust_base62(r))) {
		demangle_write_lifetime(r, lifetime);
		rust_write_text(r, " ");
	}
	if (mut)
		rust_write_text(r, "mut ");
	rust_type(r);
}

static void demangle_read_dyn_type(struct rust *r)
{
	uint64_t bound = r->lifetimes, lifetime;

	demangle_read_dyn(r);
	r->lifetimes = bound;
	rust_expect(r, 'L');
	if ((lifetime = rust_base62(r))) {
		rust_write_text(r, r->last == ' ' ? "+ " : " + ");
		demangle_write_lifetime(r, lifetime);
	}
}

static void demangle_read_compound_type(struct rust *r, char c)
{
	uint64_t bound = r->lifetimes;

	r->at++;
	switch (c) {
	case 'A':
	case 'S':
		rust_write_text(r, "[");
		rust_type(r);
		if (c == 'A') {
			rust_write_text(r, "; ");
			demangle_read_const(r, false);
		}
		rust_write_text(r, "]");
		break;
	case 'T':
		demangle_read_tuple(r);
		break;
	case 'R':
	case 'Q':
		demangle_read_reference(r, c == 'Q');
		break;
	case 'P':
	case 'O':
		rust_write_text(r, c == 'P' ? "*const " : "*mut ");
		rust_type(r);
		break;
	case 'F':
		demangle_read_signature(r);
		r->lifetimes = bound;
		break;
	case 'D':
		demangle_read_dyn_type(r);
		break;
	default:
		r->failed = true;
		break;
	}
}

void rust_type(struct rust *r)
{
	char c = rust_peek(r);

	if (!rust_enter(r))
		return;
	if (demangle_basic_type(c)) {
		r->at++;
		rust_write_text(r, demangle_basic_type(c));
	} else if (c && strchr("CMXYNI", c)) {
		rust_path(r, false);
	} else if (c == 'B') {
		rust_back(r, type_again, false);
	} else {
		demangle_read_compound_type(r, c);
	}
	r->depth--;
}
