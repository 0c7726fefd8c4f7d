/*
 * Rust's names since 2021 ("v0", _R).
 *
 * A path may refer back to an earlier one; then that one is read again there. So a short name may
 * take very long to read: text and steps have limits.
 */
#include <inttypes.h>
#include <string.h>

#include "base/demangle/rust.h"
#include "base/quote.h"

#define STEPS_MAX 200000u

bool rust_enter(struct rust *r)
{
	if (r->failed || ++r->steps > STEPS_MAX || r->depth >= DEMANGLE_DEPTH_MAX ||
		r->out->len - r->from > DEMANGLE_TEXT_MAX)
		return !(r->failed = true);
	r->depth++;
	return true;
}

char rust_peek(const struct rust *r)
{
	return !r->failed && r->at < r->end ? r->whole.ptr[r->at] : '\0';
}

bool rust_take(struct rust *r, char c)
{
	if (rust_peek(r) != c || r->at >= r->end)
		return false;
	r->at++;
	return true;
}

void rust_expect(struct rust *r, char c)
{
	if (!rust_take(r, c))
		r->failed = true;
}

void rust_write(struct rust *r, struct str s)
{
	if (r->quiet || !s.len)
		return;
	buf_add_str(r->out, s);
	r->last = s.ptr[s.len - 1];
}

void rust_write_text(struct rust *r, const char *text)
{
	rust_write(r, str_of(text));
}

void rust_write_u64(struct rust *r, uint64_t value)
{
	if (r->quiet)
		return;
	buf_printf(r->out, "%" PRIu64, value);
	r->last = '0';
}

/* ---- numbers and identifiers ---- */

/* "_" is 0, "0_" 1; digits, small letters, capital letters. */
uint64_t rust_base62(struct rust *r)
{
	uint64_t v = 0;
	char c;

	if (rust_take(r, '_'))
		return 0;
	while (!r->failed && !rust_take(r, '_')) {
		c = rust_peek(r);
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

static uint64_t rust_disambiguator(struct rust *r)
{
	return rust_take(r, 's') ? rust_base62(r) + 1 : 0;
}

#define PUNYCODE_MAX 1024u

/* RFC 3492, with '_' for '-'. False: it is none. */
static bool demangle_add_punycode(struct str id, struct buf *out)
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
struct str rust_bytes(struct rust *r, bool *punycode)
{
	uint64_t n = 0;
	struct str id;

	*punycode = rust_take(r, 'u');
	if (r->at >= r->end)
		r->failed = true;
	while (rust_peek(r) >= '0' && rust_peek(r) <= '9') {
		n = n * 10 + (uint64_t)(rust_peek(r) - '0');
		r->at++;
		if (n > DEMANGLE_NAME_MAX)
			r->failed = true;
	}
	rust_take(r, '_');
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

static void demangle_write_identifier(struct rust *r, struct str id, bool punycode)
{
	struct buf text = { 0 };

	if (!punycode) {
		rust_write(r, id);
		return;
	}
	if (!demangle_add_punycode(id, &text) || buf_failed(&text))
		r->failed = true;
	else
		rust_write(r, buf_str(&text));
	buf_release(&text);
}

void rust_identifier(struct rust *r)
{
	bool punycode;
	struct str id = rust_bytes(r, &punycode);

	demangle_write_identifier(r, id, punycode);
}

/* ---- what refers back ---- */

/* Reads the text there as if it were here. */
void rust_back(struct rust *r, void (*again)(struct rust *r, bool flag), bool flag)
{
	size_t from = r->at, at, end;
	uint64_t to;

	rust_expect(r, 'B');
	to = rust_base62(r);
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

/* ---- paths ---- */

static void demangle_read_impl(struct rust *r, char c)
{
	r->at++;
	if (c != 'Y') { /* the place of the impl: not written */
		r->quiet++;
		rust_disambiguator(r);
		rust_path(r, false);
		r->quiet--;
	}
	rust_write_text(r, "<");
	rust_type(r);
	if (c != 'M') {
		rust_write_text(r, " as ");
		rust_path(r, false);
	}
	rust_write_text(r, ">");
}

static void demangle_read_nested_path(struct rust *r, bool in_value)
{
	uint64_t disambiguator;
	bool punycode, special;
	struct str id;
	char kind;

	r->at++; /* N */
	kind = rust_peek(r);
	special = kind >= 'A' && kind <= 'Z';
	if (!special && !(kind >= 'a' && kind <= 'z')) {
		r->failed = true;
		return;
	}
	r->at++;
	rust_path(r, in_value);
	disambiguator = rust_disambiguator(r);
	id = rust_bytes(r, &punycode);
	rust_write_text(r, special ? "::{" : "::");
	if (!special) {
		demangle_write_identifier(r, id, punycode);
		return;
	}
	if (kind == 'C' || kind == 'S')
		rust_write_text(r, kind == 'C' ? "closure" : "shim");
	else
		rust_write(r, (struct str){ &kind, 1 });
	if (id.len) {
		rust_write_text(r, ":");
		demangle_write_identifier(r, id, punycode);
	}
	rust_write_text(r, "#");
	rust_write_u64(r, disambiguator);
	rust_write_text(r, "}");
}

/* in_value: writes "::" in front of "<". */
void rust_path(struct rust *r, bool in_value)
{
	char c = rust_peek(r);

	if (!rust_enter(r))
		return;
	switch (c) {
	case 'C':
		r->at++;
		rust_disambiguator(r);
		rust_identifier(r);
		break;
	case 'M':
	case 'X':
	case 'Y':
		demangle_read_impl(r, c);
		break;
	case 'N':
		demangle_read_nested_path(r, in_value);
		break;
	case 'I':
		r->at++;
		rust_path(r, in_value);
		rust_write_text(r, in_value ? "::<" : "<");
		rust_arguments(r);
		rust_write_text(r, ">");
		rust_expect(r, 'E');
		break;
	case 'B':
		rust_back(r, rust_path, in_value);
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
	if (name.len < 3 || name.len > DEMANGLE_NAME_MAX ||
		!str_has_prefix(name, STR("_R")) || (name.ptr[2] >= '0' && name.ptr[2] <= '9'))
		return false;
	r.whole = (struct str){ name.ptr + 2, name.len - 2 };
	r.end = r.whole.len;
	rust_path(&r, true);
	if (!r.failed && r.at < r.end) { /* the crate that made the instance */
		r.quiet++;
		rust_path(&r, false);
	}
	if (!r.failed && r.at == r.end && !buf_failed(out))
		return true;
	out->len = r.from;
	return false;
}
