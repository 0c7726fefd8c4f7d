/*
 * OTLP's JSON becomes the protobuf form by the table of messages, so that one decoder with one set
 * of limits reads both.
 *
 * The text is read once, from front to back, without a tree of values: a tree needs some thirty
 * times the bytes of the text, and no limit of the arena would cover them. Lengths of messages are
 * written as varints of five bytes, filled in at the message's end.
 *
 * Members are found by their camelCase name or their name in the .proto file; unknown ones are
 * skipped. Numbers may be strings. Ids are hex, other bytes base64.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/quote.h"
#include "proto/base64.h"
#include "proto/otlp/decoder.h"
#include "proto/otlp/messages.h"

#define NESTING_MAX 64
#define NAME_MAX_BYTES 64 /* longer ones are unknown */
#define LENGTH_BYTES 5

struct otlp_reader {
	const char *begin, *at, *end;
	struct arena *a;
	char *out;
	size_t out_n, out_cap;
	const char *name; /* of the member at hand */
	struct err *err;
};

static enum err_code otlp_reader_fault(const struct otlp_reader *r, const char *what)
{
	return err_set(r->err, ERR_INVALID, "request is not OTLP JSON: byte %zu, %s%s%s",
		(size_t)(r->at - r->begin), r->name ? r->name : "", r->name ? ": " : "", what);
}

/* ------------------------------------------------------------------------------------------------
 * The wire side. */

static char *otlp_reader_room(struct otlp_reader *r, size_t n)
{
	return arena_array_room(r->a, &r->out, r->out_n, n, &r->out_cap) ? r->out + r->out_n : NULL;
}

static enum err_code otlp_reader_no_memory(const struct otlp_reader *r)
{
	return arena_fail(r->a, "request", r->err);
}

static enum err_code otlp_reader_put(struct otlp_reader *r, const char *bytes, size_t n)
{
	char *to = otlp_reader_room(r, n);

	if (!to)
		return otlp_reader_no_memory(r);
	if (n)
		memcpy(to, bytes, n);
	r->out_n += n;
	return ERR_OK;
}

static enum err_code otlp_reader_put_varint(struct otlp_reader *r, uint64_t v)
{
	char bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (char)(v | 0x80);
	bytes[n++] = (char)v;
	return otlp_reader_put(r, bytes, n);
}

static enum err_code otlp_reader_put_fixed(struct otlp_reader *r, uint64_t v)
{
	v = htole64(v);
	return otlp_reader_put(r, (const char *)&v, sizeof(v));
}

/* A tag and room for a length; *begin is where the contents begin. */
static enum err_code otlp_reader_put_open(struct otlp_reader *r, unsigned number, size_t *begin)
{
	enum err_code rc = otlp_reader_put_varint(r, WIRE_TAG(number, WIRE_BYTES));

	rc = rc ? rc : otlp_reader_put(r, "\0\0\0\0", LENGTH_BYTES);
	*begin = r->out_n;
	return rc;
}

static void otlp_reader_put_close(struct otlp_reader *r, size_t begin)
{
	size_t len = r->out_n - begin;

	for (int i = 0; i < LENGTH_BYTES; i++, len >>= 7)
		r->out[begin - LENGTH_BYTES + (size_t)i] = (char)((len & 0x7f) |
			(i < LENGTH_BYTES - 1 ? 0x80 : 0));
}

/* ------------------------------------------------------------------------------------------------
 * The text side. */

static void otlp_reader_skip_blanks(struct otlp_reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

/* The next byte that is not blank; 0 at the end. */
static char otlp_reader_peek(struct otlp_reader *r)
{
	otlp_reader_skip_blanks(r);
	return r->at < r->end ? *r->at : '\0';
}

static bool otlp_reader_take(struct otlp_reader *r, char c)
{
	if (otlp_reader_peek(r) != c || r->at == r->end)
		return false;
	r->at++;
	return true;
}

static bool otlp_reader_take_word(struct otlp_reader *r, struct str word)
{
	otlp_reader_skip_blanks(r);
	if (!str_has_prefix((struct str){ r->at, (size_t)(r->end - r->at) }, word))
		return false;
	r->at += word.len;
	return true;
}

/* The text between two quotes, as it is. */
static enum err_code otlp_reader_take_raw(struct otlp_reader *r, struct str *out, bool *escaped)
{
	const char *begin;

	*escaped = false;
	if (!otlp_reader_take(r, '"'))
		return otlp_reader_fault(r, "a string is expected");
	for (begin = r->at; r->at < r->end && *r->at != '"'; r->at++) {
		if ((unsigned char)*r->at < 0x20)
			return otlp_reader_fault(r, "a control character in a string");
		if (*r->at == '\\') {
			*escaped = true;
			if (++r->at == r->end)
				break;
		}
	}
	if (r->at == r->end)
		return otlp_reader_fault(r, "a string has no end");
	*out = (struct str){ begin, (size_t)(r->at - begin) };
	r->at++;
	return ERR_OK;
}

static int otlp_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool otlp_hex_four(const char *at, const char *end, uint32_t *out)
{
	*out = 0;
	if (end - at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		int digit = otlp_hex_digit(at[i]);

		if (digit < 0)
			return false;
		*out = *out << 4 | (uint32_t)digit;
	}
	return true;
}

/* What follows \u. Half of a pair alone is U+FFFD. NULL: no four hex digits. */
static const char *otlp_unescape_u(const char *at, const char *end, char *to, size_t *n)
{
	uint32_t c, low;

	if (!otlp_hex_four(at, end, &c))
		return NULL;
	at += 4;
	if (c >= 0xd800 && c < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u' &&
		otlp_hex_four(at + 2, end, &low) && low >= 0xdc00 && low < 0xe000) {
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		at += 6;
	} else if (c >= 0xd800 && c < 0xe000) {
		c = 0xfffd;
	}
	*n += utf8_write(c, to + *n);
	return at;
}

/* Writes at most raw.len bytes. */
static bool otlp_unescape(struct str raw, char *to, size_t *out_n)
{
	static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *at = raw.ptr, *end = at + raw.len, *letter;
	size_t n = 0;

	while (at < end) {
		if (*at != '\\') {
			to[n++] = *at++;
			continue;
		}
		if (++at == end)
			return false;
		if (*at == 'u') {
			if (!(at = otlp_unescape_u(at + 1, end, to, &n)))
				return false;
		} else {
			if (!*at || !(letter = strchr(letters, *at)))
				return false;
			to[n++] = values[letter - letters];
			at++;
		}
	}
	*out_n = n;
	return true;
}

static enum err_code otlp_reader_skip(struct otlp_reader *r, int depth);

static enum err_code otlp_reader_skip_list(struct otlp_reader *r, int depth, char close)
{
	enum err_code rc;
	struct str name;
	bool escaped;

	if (depth >= NESTING_MAX)
		return otlp_reader_fault(r, "nested too deeply");
	r->at++;
	if (otlp_reader_take(r, close))
		return ERR_OK;
	do {
		if (close == '}') {
			if ((rc = otlp_reader_take_raw(r, &name, &escaped)))
				return rc;
			if (!otlp_reader_take(r, ':'))
				return otlp_reader_fault(r, "':' is expected");
		}
		if ((rc = otlp_reader_skip(r, depth + 1)))
			return rc;
	} while (otlp_reader_take(r, ','));
	return otlp_reader_take(r, close) ?
		ERR_OK :
		otlp_reader_fault(r, "',' or the end of a list is expected");
}

static bool otlp_reader_take_number(struct otlp_reader *r, struct str *out)
{
	const char *begin;

	otlp_reader_skip_blanks(r);
	begin = r->at;
	while (r->at < r->end &&
		((*r->at >= '0' && *r->at <= '9') || *r->at == '-' || *r->at == '+' || *r->at == '.' ||
			*r->at == 'e' || *r->at == 'E'))
		r->at++;
	*out = (struct str){ begin, (size_t)(r->at - begin) };
	return out->len;
}

/* A value that nobody wants. */
static enum err_code otlp_reader_skip(struct otlp_reader *r, int depth)
{
	struct str ignored;
	bool escaped;

	switch (otlp_reader_peek(r)) {
	case '"':
		return otlp_reader_take_raw(r, &ignored, &escaped);
	case '{':
		return otlp_reader_skip_list(r, depth, '}');
	case '[':
		return otlp_reader_skip_list(r, depth, ']');
	default:
		if (otlp_reader_take_word(r, STR("true")) ||
				otlp_reader_take_word(r, STR("false")) ||
					otlp_reader_take_word(r, STR("null")) || otlp_reader_take_number(r, &ignored))
			return ERR_OK;
		return otlp_reader_fault(r, "a value is expected");
	}
}

/* ------------------------------------------------------------------------------------------------
 * Values by type. */

static enum err_code otlp_reader_number_text(struct otlp_reader *r, struct str *out)
{
	bool escaped;

	if (otlp_reader_peek(r) == '"')
		return otlp_reader_take_raw(r, out, &escaped);
	return otlp_reader_take_number(r, out) ? ERR_OK : otlp_reader_fault(r, "a number is expected");
}

/* From -2^63 to 2^64 - 1. */
static enum err_code otlp_reader_integer(struct otlp_reader *r, uint64_t *out)
{
	enum err_code rc;
	struct str s;
	int64_t v;

	if ((rc = otlp_reader_number_text(r, &s)))
		return rc;
	if (str_to_u64(s, out))
		return ERR_OK;
	if (!str_to_i64(s, &v))
		return otlp_reader_fault(r, "an integer of 64 bits is expected");
	*out = (uint64_t)v;
	return ERR_OK;
}

static enum err_code otlp_reader_put_double(struct otlp_reader *r)
{
	char text[64], *end;
	enum err_code rc;
	uint64_t bits;
	struct str s;
	double v;

	if ((rc = otlp_reader_number_text(r, &s)))
		return rc;
	if (!s.len || s.len >= sizeof(text) || memchr(s.ptr, '\0', s.len))
		return otlp_reader_fault(r, "a number is expected");
	memcpy(text, s.ptr, s.len);
	text[s.len] = '\0';
	v = strtod(text, &end);
	if (*end)
		return otlp_reader_fault(r, "a number is expected");
	memcpy(&bits, &v, sizeof(bits));
	return otlp_reader_put_fixed(r, bits);
}

static enum err_code otlp_reader_put_temporality(struct otlp_reader *r)
{
	uint64_t v = 0;
	enum err_code rc;

	if (otlp_reader_take_word(r, STR("\"AGGREGATION_TEMPORALITY_UNSPECIFIED\"")))
		v = OTLP_UNSPECIFIED;
	else if (otlp_reader_take_word(r, STR("\"AGGREGATION_TEMPORALITY_DELTA\"")))
		v = OTLP_DELTA;
	else if (otlp_reader_take_word(r, STR("\"AGGREGATION_TEMPORALITY_CUMULATIVE\"")))
		v = OTLP_CUMULATIVE;
	else if ((rc = otlp_reader_integer(r, &v)))
		return rc;
	return otlp_reader_put_varint(r, v);
}

static bool otlp_from_hex(struct str s, char *to, size_t *n)
{
	if (s.len % 2)
		return false;
	for (size_t i = 0; i < s.len; i += 2) {
		int high = otlp_hex_digit(s.ptr[i]), low = otlp_hex_digit(s.ptr[i + 1]);

		if (high < 0 || low < 0)
			return false;
		to[i / 2] = (char)(high << 4 | low);
	}
	*n = s.len / 2;
	return true;
}

/* A string, or bytes as text. */
static enum err_code otlp_reader_put_string(struct otlp_reader *r, const struct otlp_member *m)
{
	enum err_code rc;
	bool escaped, ok;
	struct str raw;
	size_t begin, n;
	char *to;

	if ((rc = otlp_reader_take_raw(r, &raw, &escaped)) ||
		(rc = otlp_reader_put_open(r, m->number, &begin)))
		return rc;
	if (!(to = otlp_reader_room(r, raw.len)))
		return otlp_reader_no_memory(r);
	if (m->type == OTLP_T_HEX) {
		if (!otlp_from_hex(raw, to, &n))
			return otlp_reader_fault(r, "hex digits are expected");
	} else {
		n = raw.len;
		ok = !escaped || otlp_unescape(raw, to, &n);
		if (!ok)
			return otlp_reader_fault(r, "an escape that JSON does not have");
		if (m->type == OTLP_T_BASE64) {
			if (!base64_decode(escaped ? (struct str){ to, n } : raw, to, &n))
				return otlp_reader_fault(r, "base64 is expected");
		} else if (!escaped && n) {
			memcpy(to, raw.ptr, n);
		}
	}
	r->out_n += n;
	otlp_reader_put_close(r, begin);
	return ERR_OK;
}

static enum err_code otlp_reader_put_scalar(struct otlp_reader *r, const struct otlp_member *m)
{
	enum err_code rc;
	uint64_t v;

	switch (m->type) {
	case OTLP_T_BOOL:
		if (otlp_reader_take_word(r, STR("true")))
			return otlp_reader_put_varint(r, 1);
		return otlp_reader_take_word(r,
			STR("false")) ? otlp_reader_put_varint(r, 0) :
							otlp_reader_fault(r, "true or false is expected");
	case OTLP_T_DOUBLE:
		return otlp_reader_put_double(r);
	case OTLP_T_TEMPORALITY:
		return otlp_reader_put_temporality(r);
	default:
		if ((rc = otlp_reader_integer(r, &v)))
			return rc;
		return m->type == OTLP_T_FIXED ? otlp_reader_put_fixed(r, v) : otlp_reader_put_varint(r, v);
	}
}

static bool otlp_is_bytes(const struct otlp_member *m)
{
	return m->type == OTLP_T_STRING || m->type == OTLP_T_BASE64 || m->type == OTLP_T_HEX;
}

static enum err_code otlp_reader_put_object(
	struct otlp_reader *r, const struct otlp_message *m, int depth);

static enum err_code otlp_reader_put_message(
	struct otlp_reader *r, const struct otlp_member *m, int depth)
{
	enum err_code rc;
	size_t begin;

	if (depth >= NESTING_MAX)
		return otlp_reader_fault(r, "nested too deeply");
	if ((rc = otlp_reader_put_open(r, m->number, &begin)) ||
		(rc = otlp_reader_put_object(r, m->message, depth + 1)))
		return rc;
	otlp_reader_put_close(r, begin);
	return ERR_OK;
}

static enum err_code otlp_reader_put_one(
	struct otlp_reader *r, const struct otlp_member *m, int depth)
{
	bool fixed = m->type == OTLP_T_FIXED || m->type == OTLP_T_DOUBLE;
	enum err_code rc;

	if (m->type == OTLP_T_MESSAGE)
		return otlp_reader_put_message(r, m, depth);
	if (otlp_is_bytes(m))
		return otlp_reader_put_string(r, m);
	rc = otlp_reader_put_varint(r, WIRE_TAG(m->number, fixed ? WIRE_FIXED64 : WIRE_VARINT));
	return rc ? rc : otlp_reader_put_scalar(r, m);
}

/* Numbers are packed. */
static enum err_code otlp_reader_put_list(
	struct otlp_reader *r, const struct otlp_member *m, int depth)
{
	bool packed = m->type != OTLP_T_MESSAGE && !otlp_is_bytes(m);
	enum err_code rc;
	size_t begin = 0;

	if (!otlp_reader_take(r, '['))
		return otlp_reader_fault(r, "an array is expected");
	if (otlp_reader_take(r, ']'))
		return ERR_OK;
	if (packed && (rc = otlp_reader_put_open(r, m->number, &begin)))
		return rc;
	do {
		rc = packed ? otlp_reader_put_scalar(r, m) : otlp_reader_put_one(r, m, depth);
		if (rc)
			return rc;
	} while (otlp_reader_take(r, ','));
	if (!otlp_reader_take(r, ']'))
		return otlp_reader_fault(r, "',' or ']' is expected");
	if (packed)
		otlp_reader_put_close(r, begin);
	return ERR_OK;
}

static enum err_code otlp_reader_find_member(
	struct otlp_reader *r, const struct otlp_message *m, const struct otlp_member **out)
{
	char name[NAME_MAX_BYTES];
	enum err_code rc;
	struct str raw;
	bool escaped;

	if ((rc = otlp_reader_take_raw(r, &raw, &escaped)))
		return rc;
	*out = NULL;
	if (raw.len > sizeof(name))
		return ERR_OK;
	if (escaped) {
		if (!otlp_unescape(raw, name, &raw.len))
			return otlp_reader_fault(r, "an escape that JSON does not have");
		raw.ptr = name;
	}
	*out = otlp_member_by_name(m, raw);
	return ERR_OK;
}

static enum err_code otlp_reader_put_member(
	struct otlp_reader *r, const struct otlp_message *m, int depth)
{
	const struct otlp_member *member;
	enum err_code rc;

	if ((rc = otlp_reader_find_member(r, m, &member)))
		return rc;
	if (!otlp_reader_take(r, ':'))
		return otlp_reader_fault(r, "':' is expected");
	if (otlp_reader_take_word(r, STR("null")))
		return ERR_OK;
	if (!member)
		return otlp_reader_skip(r, depth);
	r->name = member->name;
	if (member->type == OTLP_T_OLD)
		return err_set(r->err, ERR_UNSUPPORTED,
			"profiles of OTLP before 1.8 are not supported, only 1.8 to 1.11: they have a member "
			"%s",
			member->name);
	return member->flags & OTLP_M_REPEATED ? otlp_reader_put_list(r, member, depth) :
											 otlp_reader_put_one(r, member, depth);
}

static enum err_code otlp_reader_put_object(
	struct otlp_reader *r, const struct otlp_message *m, int depth)
{
	enum err_code rc;

	if (!otlp_reader_take(r, '{'))
		return otlp_reader_fault(r, "an object is expected");
	if (otlp_reader_take(r, '}'))
		return ERR_OK;
	do {
		if ((rc = otlp_reader_put_member(r, m, depth)))
			return rc;
	} while (otlp_reader_take(r, ','));
	return otlp_reader_take(r, '}') ? ERR_OK : otlp_reader_fault(r, "',' or '}' is expected");
}

enum err_code otlp_decode_json(struct arena *a, struct str text, const struct otlp_options *options,
	struct otlp_request **out, struct err *err)
{
	struct otlp_reader r = {
		.begin = text.ptr, .at = text.ptr, .end = text.ptr + text.len, .a = a, .err = err
	};
	enum err_code rc;

	if (text.len > options->limits->raw_bytes_max || text.len > INT32_MAX / 8)
		return err_set(err, ERR_LIMIT, "request is %zu bytes inflated, limit %zu", text.len,
			options->limits->raw_bytes_max);
	if (!str_is_utf8(text))
		return err_set(err, ERR_INVALID, "request is not OTLP JSON: it is not UTF-8");
	if (!otlp_reader_room(&r, text.len + 1))
		return otlp_reader_no_memory(&r);
	if ((rc = otlp_reader_put_object(&r, &otlp_request_message, 0)))
		return rc;
	r.name = NULL;
	if (otlp_reader_peek(&r) || r.at < r.end)
		return otlp_reader_fault(&r, "the end is expected");
	return otlp_decode_wire(a, (struct str){ r.out, r.out_n }, true, options, out, err);
}
