/*
 * Names of Rust: those since 2021 ("v0", _R), and the older ones that look like C++'s with a hash.
 *
 * A path may refer back to one that was written before; then it is read again there. So a short
 * name may be very long to read: the text and the steps have a bound.
 */
#include <inttypes.h>
#include <string.h>

#include "base/demangle_cpp.h"
#include "base/quote.h"

#define STEPS_MAX 200000u

struct rust {
	struct str whole; /* behind "_R" */
	size_t at, end;
	struct buf *out;
	size_t from; /* of out */
	unsigned quiet; /* > 0: read, not written */
	unsigned depth, steps;
	uint64_t lifetimes; /* that are bound */
	char last; /* written */
	bool failed;
};

static void read_path(struct rust *r, bool in_value);
static void read_rust_type(struct rust *r);

static bool fail(struct rust *r)
{
	r->failed = true;
	return false;
}

static bool enter(struct rust *r)
{
	if (r->failed || ++r->steps > STEPS_MAX || r->depth >= DEMANGLE_DEPTH_MAX ||
		r->out->len - r->from > DEMANGLE_TEXT_MAX)
		return fail(r);
	r->depth++;
	return true;
}

static char peek(const struct rust *r)
{
	return !r->failed && r->at < r->end ? r->whole.ptr[r->at] : '\0';
}

static bool take(struct rust *r, char c)
{
	if (peek(r) != c || r->at >= r->end)
		return false;
	r->at++;
	return true;
}

static void expect(struct rust *r, char c)
{
	if (!take(r, c))
		r->failed = true;
}

static void write_str(struct rust *r, struct str s)
{
	if (r->quiet || !s.len)
		return;
	buf_add_str(r->out, s);
	r->last = s.ptr[s.len - 1];
}

static void write_text(struct rust *r, const char *s)
{
	write_str(r, str_of(s));
}

static void write_u64(struct rust *r, uint64_t v)
{
	if (r->quiet)
		return;
	buf_printf(r->out, "%" PRIu64, v);
	r->last = '0';
}

/* ---- numbers and identifiers ---- */

/* "_" is 0, "0_" 1; digits, small letters, capital letters. */
static uint64_t read_base62(struct rust *r)
{
	uint64_t v = 0;
	char c;

	if (take(r, '_'))
		return 0;
	while (!r->failed && !take(r, '_')) {
		c = peek(r);
		if (v > UINT64_MAX / 62 - 62 || r->at >= r->end) {
			r->failed = true;
		} else if (c >= '0' && c <= '9') {
			v = v * 62 + (uint64_t)(c - '0');
		} else if (c >= 'a' && c <= 'z') {
			v = v * 62 + (uint64_t)(c - 'a') + 10;
		} else if (c >= 'A' && c <= 'Z') {
			v = v * 62 + (uint64_t)(c - 'A') + 36;
		} else {
			r->failed = true;
		}
		r->at++;
	}
	return v + 1;
}

static uint64_t read_disambiguator(struct rust *r)
{
	return take(r, 's') ? read_base62(r) + 1 : 0;
}

#define PUNYCODE_MAX 1024u

/* RFC 3492, with '_' for '-'. False: it is none. */
static bool add_punycode(struct str id, struct buf *out)
{
	uint32_t points[PUNYCODE_MAX], n = 0, code = 128, bias = 72, i = 0, at = 0;
	bool first = true;

	for (size_t k = id.len; k-- > 0;)
		if (id.ptr[k] == '_') {
			if (k > PUNYCODE_MAX)
				return false;
			while (n < k) {
				points[n] = (unsigned char)id.ptr[n];
				n++;
			}
			at = n + 1;
			break;
		}
	while (at < id.len) {
		uint32_t before = i, w = 1, digit, t, delta, steps = 0;

		for (uint32_t k = 36;; k += 36) {
			char c = at < id.len ? id.ptr[at++] : '\0';

			if (c >= '0' && c <= '9')
				digit = (uint32_t)(c - '0') + 26;
			else if (c >= 'A' && c <= 'Z')
				digit = (uint32_t)(c - 'A');
			else if (c >= 'a' && c <= 'z')
				digit = (uint32_t)(c - 'a');
			else
				return false;
			if (digit > (INT32_MAX - i) / w)
				return false;
			i += digit * w;
			t = k <= bias ? 1 : k > bias + 26 ? 26 : k - bias;
			if (digit < t)
				break;
			if (w >= INT32_MAX / 36)
				return false;
			w *= 36 - t;
		}
		delta = (i - before) / (first ? 700 : 2);
		first = false;
		delta += delta / (n + 1);
		for (; delta > 35 * 26 / 2; steps += 36)
			delta /= 35;
		bias = steps + 36 * delta / (delta + 38);
		code += i / (n + 1);
		if (n == PUNYCODE_MAX || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			return false;
		i %= n + 1;
		memmove(&points[i + 1], &points[i], (n - i) * sizeof(*points));
		points[i++] = code;
		n++;
	}
	for (uint32_t k = 0; k < n; k++)
		buf_add_utf8(out, points[k]);
	return true;
}

/* The bytes, and whether they are punycode. */
static struct str read_bytes(struct rust *r, bool *punycode)
{
	uint64_t n = 0;
	struct str id;

	*punycode = take(r, 'u');
	if (r->at >= r->end)
		r->failed = true;
	while (peek(r) >= '0' && peek(r) <= '9') {
		n = n * 10 + (uint64_t)(peek(r) - '0');
		r->at++;
		if (n > DEMANGLE_NAME_MAX)
			r->failed = true;
	}
	take(r, '_');
	if (r->failed || n > r->end - r->at) {
		r->failed = true;
		return STR("");
	}
	id = (struct str){ r->whole.ptr + r->at, (size_t)n };
	r->at += id.len;
	for (size_t i = 0; i < id.len; i++)
		if (!(id.ptr[i] >= '0' && id.ptr[i] <= '9') &&
			!((id.ptr[i] | 32) >= 'a' && (id.ptr[i] | 32) <= 'z') && id.ptr[i] != '_')
			r->failed = true;
	return id;
}

static void write_identifier(struct rust *r, struct str id, bool punycode)
{
	struct buf text = { 0 };

	if (!punycode) {
		write_str(r, id);
		return;
	}
	if (!add_punycode(id, &text) || buf_failed(&text))
		r->failed = true;
	else
		write_str(r, buf_str(&text));
	buf_release(&text);
}

static void read_identifier(struct rust *r)
{
	bool punycode;
	struct str id = read_bytes(r, &punycode);

	write_identifier(r, id, punycode);
}

/* ---- what refers back ---- */

/* What stands there is read as if it stood here. */
static void read_back(struct rust *r, void (*again)(struct rust *r, bool flag), bool flag)
{
	size_t from = r->at, at, end;
	uint64_t to;

	expect(r, 'B');
	to = read_base62(r);
	if (r->failed || r->quiet)
		return;
	if (to >= from) {
		r->failed = true;
		return;
	}
	at = r->at;
	end = r->end;
	r->at = (size_t)to;
	r->end = from;
	again(r, flag);
	r->at = at;
	r->end = end;
}

static void type_again(struct rust *r, bool flag)
{
	(void)flag;
	read_rust_type(r);
}

/* ---- lifetimes, constants ---- */

static void write_lifetime(struct rust *r, uint64_t lifetime)
{
	uint64_t depth = r->lifetimes - lifetime;

	write_text(r, "'");
	if (lifetime == 0) {
		write_text(r, "_");
	} else if (lifetime > r->lifetimes) {
		r->failed = true;
	} else if (depth < 26) {
		char c = (char)('a' + (int)depth);

		write_str(r, (struct str){ &c, 1 });
	} else {
		write_text(r, "z");
		write_u64(r, depth - 26 + 1);
	}
}

static void read_binder(struct rust *r)
{
	uint64_t n;

	if (!take(r, 'G'))
		return;
	n = read_base62(r) + 1;
	if (r->failed || n + r->lifetimes >= r->end - r->at) {
		r->failed = true;
		return;
	}
	write_text(r, "for<");
	for (uint64_t i = 0; i < n; i++) {
		if (i)
			write_text(r, ", ");
		r->lifetimes++;
		write_lifetime(r, 1);
	}
	write_text(r, "> ");
}

static void write_char(struct rust *r, uint64_t v)
{
	char c = (char)v;

	write_text(r, "'");
	if (v == '\t' || v == '\r' || v == '\n')
		write_text(r, v == '\t' ? "\\t" : v == '\r' ? "\\r" : "\\n");
	else if (v == '\\' || v == '\'')
		write_text(r, v == '\\' ? "\\\\" : "\\'");
	else if (v >= ' ' && v <= '~')
		write_str(r, (struct str){ &c, 1 });
	else if (!r->quiet)
		buf_printf(r->out, "\\u{%" PRIx64 "}", v);
	write_text(r, "'");
}

static void read_const(struct rust *r, bool flag);

static void read_const_value(struct rust *r, char type)
{
	size_t from, digits;
	uint64_t v = 0;
	bool is_signed = strchr("aslxni", type) != NULL;

	if (is_signed && take(r, 'n'))
		write_text(r, "-");
	from = r->at;
	while (!r->failed && peek(r) != '_') {
		char c = peek(r);

		if (c >= '0' && c <= '9')
			v = v * 16 + (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (uint64_t)(c - 'a') + 10;
		else
			r->failed = true;
		r->at++;
		if (!r->failed && r->at == from + 1 && c == '0' && peek(r) != '_')
			r->failed = true;
	}
	digits = r->at - from;
	expect(r, '_');
	if (digits == 0 || (type == 'b' && v > 1) || (type == 'b' && digits > 1) ||
		(type == 'c' && digits > 6))
		r->failed = true;
	if (r->failed)
		return;
	if (type == 'b') {
		write_text(r, v ? "true" : "false");
	} else if (type == 'c') {
		write_char(r, v);
	} else if (digits > 16) {
		write_text(r, "0x");
		write_str(r, (struct str){ r->whole.ptr + from, digits });
	} else {
		write_u64(r, v);
	}
}

static void read_const(struct rust *r, bool flag)
{
	char c = peek(r);

	if (!enter(r))
		return;
	if (c == 'B') {
		read_back(r, read_const, flag);
	} else if (take(r, 'p')) {
		write_text(r, "_");
	} else if (c && strchr("aslxnihtmyojbc", c)) {
		r->at++;
		read_const_value(r, c);
	} else {
		r->failed = true;
	}
	r->depth--;
}

/* ---- types ---- */

static const char *basic_type(char c)
{
	static const char *const names[26] = { "i8", "bool", "char", "f64", "str", "f32", NULL, "u8",
		"isize", "usize", NULL, "i32", "u32", "i128", "u128", "_", NULL, NULL, "i16", "u16",
		"()", "...", NULL, "i64", "u64", "!" };

	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void read_signature(struct rust *r)
{
	bool punycode;
	struct str abi;
	bool first = true;

	read_binder(r);
	if (take(r, 'U'))
		write_text(r, "unsafe ");
	if (take(r, 'K')) {
		write_text(r, "extern \"");
		if (take(r, 'C')) {
			write_text(r, "C");
		} else {
			abi = read_bytes(r, &punycode);
			r->failed |= punycode;
			for (size_t i = 0; i < abi.len; i++)
				write_str(r, abi.ptr[i] == '_' ? STR("-") :
								 (struct str){ abi.ptr + i, 1 });
		}
		write_text(r, "\" ");
	}
	write_text(r, "fn(");
	for (; r->at < r->end && peek(r) && peek(r) != 'E'; first = false) {
		if (!first)
			write_text(r, ", ");
		read_rust_type(r);
	}
	expect(r, 'E');
	write_text(r, ")");
	if (take(r, 'u'))
		return;
	write_text(r, " -> ");
	read_rust_type(r);
}

/* None of the arguments is written. */
static void read_generic_arguments(struct rust *r)
{
	r->quiet++;
	while (!r->failed && r->at < r->end && peek(r) != 'E') {
		if (take(r, 'L'))
			write_lifetime(r, read_base62(r));
		else if (take(r, 'K'))
			read_const(r, false);
		else
			read_rust_type(r);
	}
	r->quiet--;
}

/* True: "<" is written and not closed. */
static bool read_open_path(struct rust *r)
{
	size_t from = r->at, at, end;
	bool open = false;
	uint64_t to;

	if (!enter(r))
		return false;
	if (take(r, 'I')) {
		read_path(r, false);
		write_text(r, "<");
		read_generic_arguments(r);
		expect(r, 'E');
		open = true;
	} else if (take(r, 'B')) {
		to = read_base62(r);
		if (to >= from)
			r->failed = true;
		if (!r->failed && !r->quiet) {
			at = r->at;
			end = r->end;
			r->at = (size_t)to;
			r->end = from;
			open = read_open_path(r);
			r->at = at;
			r->end = end;
		}
	} else {
		read_path(r, false);
	}
	r->depth--;
	return open;
}

static void read_dyn(struct rust *r)
{
	bool open, first = true;

	write_text(r, "dyn ");
	read_binder(r);
	for (; !r->failed && r->at < r->end && peek(r) != 'E'; first = false) {
		if (!first)
			write_text(r, " + ");
		open = read_open_path(r);
		while (take(r, 'p')) {
			write_text(r, open ? ", " : "<");
			open = true;
			read_identifier(r);
			write_text(r, " = ");
			read_rust_type(r);
		}
		if (open)
			write_text(r, ">");
	}
	expect(r, 'E');
}

static void read_tuple(struct rust *r)
{
	size_t n = 0;

	write_text(r, "(");
	for (; !r->failed && r->at < r->end && peek(r) != 'E'; n++) {
		if (n)
			write_text(r, ", ");
		read_rust_type(r);
	}
	write_text(r, n == 1 ? ",)" : ")");
	expect(r, 'E');
}

static void read_reference(struct rust *r, bool mut)
{
	uint64_t lifetime;

	write_text(r, "&");
	if (take(r, 'L') && (lifetime = read_base62(r))) {
		write_lifetime(r, lifetime);
		write_text(r, " ");
	}
	if (mut)
		write_text(r, "mut ");
	read_rust_type(r);
}

static void read_dyn_type(struct rust *r)
{
	uint64_t bound = r->lifetimes, lifetime;

	read_dyn(r);
	r->lifetimes = bound;
	expect(r, 'L');
	if ((lifetime = read_base62(r))) {
		write_text(r, r->last == ' ' ? "+ " : " + ");
		write_lifetime(r, lifetime);
	}
}

static void read_compound_type(struct rust *r, char c)
{
	uint64_t bound = r->lifetimes;

	r->at++;
	switch (c) {
	case 'A':
	case 'S':
		write_text(r, "[");
		read_rust_type(r);
		if (c == 'A') {
			write_text(r, "; ");
			read_const(r, false);
		}
		write_text(r, "]");
		break;
	case 'T':
		read_tuple(r);
		break;
	case 'R':
	case 'Q':
		read_reference(r, c == 'Q');
		break;
	case 'P':
	case 'O':
		write_text(r, c == 'P' ? "*const " : "*mut ");
		read_rust_type(r);
		break;
	case 'F':
		read_signature(r);
		r->lifetimes = bound;
		break;
	case 'D':
		read_dyn_type(r);
		break;
	default:
		r->failed = true;
		break;
	}
}

static void read_rust_type(struct rust *r)
{
	char c = peek(r);

	if (!enter(r))
		return;
	if (basic_type(c)) {
		r->at++;
		write_text(r, basic_type(c));
	} else if (c && strchr("CMXYNI", c)) {
		read_path(r, false);
	} else if (c == 'B') {
		read_back(r, type_again, false);
	} else {
		read_compound_type(r, c);
	}
	r->depth--;
}

/* ---- paths ---- */

static void read_impl(struct rust *r, char c)
{
	r->at++;
	if (c != 'Y') { /* where the impl stands: not written */
		r->quiet++;
		read_disambiguator(r);
		read_path(r, false);
		r->quiet--;
	}
	write_text(r, "<");
	read_rust_type(r);
	if (c != 'M') {
		write_text(r, " as ");
		read_path(r, false);
	}
	write_text(r, ">");
}

static void read_nested_path(struct rust *r, bool in_value)
{
	uint64_t disambiguator;
	bool punycode, special;
	struct str id;
	char kind;

	r->at++; /* N */
	kind = peek(r);
	special = kind >= 'A' && kind <= 'Z';
	if (!special && !(kind >= 'a' && kind <= 'z')) {
		r->failed = true;
		return;
	}
	r->at++;
	read_path(r, in_value);
	disambiguator = read_disambiguator(r);
	id = read_bytes(r, &punycode);
	write_text(r, special ? "::{" : "::");
	if (!special) {
		write_identifier(r, id, punycode);
		return;
	}
	if (kind == 'C' || kind == 'S')
		write_text(r, kind == 'C' ? "closure" : "shim");
	else
		write_str(r, (struct str){ &kind, 1 });
	if (id.len) {
		write_text(r, ":");
		write_identifier(r, id, punycode);
	}
	write_text(r, "#");
	write_u64(r, disambiguator);
	write_text(r, "}");
}

/* in_value: "::" stands in front of "<". */
static void read_path(struct rust *r, bool in_value)
{
	char c = peek(r);

	if (!enter(r))
		return;
	switch (c) {
	case 'C':
		r->at++;
		read_disambiguator(r);
		read_identifier(r);
		break;
	case 'M':
	case 'X':
	case 'Y':
		read_impl(r, c);
		break;
	case 'N':
		read_nested_path(r, in_value);
		break;
	case 'I':
		r->at++;
		read_path(r, in_value);
		write_text(r, in_value ? "::<" : "<");
		read_generic_arguments(r);
		write_text(r, ">");
		expect(r, 'E');
		break;
	case 'B':
		read_back(r, read_path, in_value);
		break;
	default:
		r->failed = true;
		break;
	}
	r->depth--;
}

bool demangle_rust(struct str name, struct buf *out)
{
	ptrdiff_t dot = str_find(name, STR("."));
	struct rust r = { .out = out, .from = out->len };

	if (dot >= 0) /* of a copy */
		name.len = (size_t)dot;
	if (name.len < 3 || name.len > DEMANGLE_NAME_MAX || !str_has_prefix(name, STR("_R")) ||
		(name.ptr[2] >= '0' && name.ptr[2] <= '9'))
		return false;
	r.whole = (struct str){ name.ptr + 2, name.len - 2 };
	r.end = r.whole.len;
	read_path(&r, true);
	if (!r.failed && r.at < r.end) { /* the crate that made the instance */
		r.quiet++;
		read_path(&r, false);
	}
	if (!r.failed && r.at == r.end && !buf_failed(out))
		return true;
	out->len = r.from;
	return false;
}

/* ---- the older form ---- */

#define HASH_BYTES 20u /* "17h", 16 digits, "E" */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A hash looks like one: five different digits at least. */
static bool is_hash(const char *digits)
{
	unsigned seen = 0;

	for (size_t i = 0; i < 16; i++) {
		int v = hex_digit(digits[i]);

		if (v < 0)
			return false;
		seen |= 1u << v;
	}
	return __builtin_popcount(seen) >= 5;
}

/* What "$LT$" stands for, and how long it is; 0: it is no such thing. */
static size_t escape(struct str s, char *out)
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
		int high = hex_digit(s.ptr[2]), low = hex_digit(s.ptr[3]);

		*out = (char)(high * 16 + low);
		return high >= 2 && high <= 7 && low >= 0 ? 5 : 0;
	}
	return 0;
}

static void add_old_identifier(struct buf *out, struct str id)
{
	size_t n;
	char c;

	if (str_has_prefix(id, STR("_$")))
		id = (struct str){ id.ptr + 1, id.len - 1 };
	while (id.len > 0) {
		n = 1;
		if (id.ptr[0] == '$') {
			if (!(n = escape(id, &c))) {
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
		!is_hash(name.ptr + end - 17))
		return false;
	end -= HASH_BYTES;
	while (at < end) {
		for (n = 0; at < end && name.ptr[at] >= '0' && name.ptr[at] <= '9'; at++)
			if ((n = n * 10 + (size_t)(name.ptr[at] - '0')) > DEMANGLE_NAME_MAX)
				goto none;
		if (name.ptr[at - 1] < '0' || name.ptr[at - 1] > '9')
			goto none;
		if (at < end && name.ptr[at] == '_' && n > 0) {
			at++;
			n--;
		}
		if (n > end - at)
			goto none;
		if (out->len > from)
			buf_add_cstr(out, "::");
		add_old_identifier(out, (struct str){ name.ptr + at, n });
		at += n;
	}
	return !buf_failed(out);
none:
	out->len = from;
	return false;
}

/* ---- any of them ---- */

bool demangle(struct str name, struct buf *out)
{
	if (!demangle_may(name))
		return false;
	return str_has_prefix(name, STR("_R")) ? demangle_rust(name, out) :
						 demangle_old_rust(name, out) || demangle_cpp(name, out);
}
