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
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "proto/base64.h"
#include "proto/json_reader.h"
#include "proto/otlp/decoder.h"
#include "proto/otlp/messages.h"

#define NESTING_MAX 64
#define NESTING_WORDS "at most 64 levels of nesting"
#define NAME_MAX_BYTES 64 /* longer ones are unknown */
#define LENGTH_BYTES 5

struct otlp_reader {
	struct json_reader in;
	struct arena *a;
	char *out;
	size_t out_n, out_cap;
};

/* ------------------------------------------------------------------------------------------------
 * The wire side. */

static char *otlp_reader_room(struct otlp_reader *r, size_t n)
{
	return arena_array_room(r->a, &r->out, r->out_n, n, &r->out_cap) ? r->out + r->out_n : NULL;
}

static enum err_code otlp_reader_no_memory(const struct otlp_reader *r)
{
	return arena_fail(r->a, "request", r->in.err);
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

static enum err_code otlp_reader_put_varint(struct otlp_reader *r, uint64_t value)
{
	char bytes[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[n++] = (char)(value | 0x80);
	bytes[n++] = (char)value;
	return otlp_reader_put(r, bytes, n);
}

static enum err_code otlp_reader_put_fixed(struct otlp_reader *r, uint64_t value)
{
	value = htole64(value);
	return otlp_reader_put(r, (const char *)&value, sizeof(value));
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

static bool otlp_reader_take_word(struct otlp_reader *r, struct str word)
{
	json_reader_peek(&r->in);
	if (!str_has_prefix((struct str){ r->in.at, (size_t)(r->in.end - r->in.at) }, word))
		return false;
	r->in.at += word.len;
	return true;
}

/* Of what numbers are made; strtod judges the order. */
static bool otlp_is_number(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!strchr("0123456789-+.eE", s.ptr[i]))
			return false;
	return s.len;
}

/* A value that nobody wants; it must be JSON all the same. */
static enum err_code otlp_reader_skip(struct otlp_reader *r, int depth)
{
	char open = json_reader_peek(&r->in);
	enum err_code rc;
	bool escaped, more;
	struct str s;

	if (open == '"')
		return json_reader_raw(&r->in, &s, &escaped);
	if (open != '{' && open != '[') {
		s = json_reader_scalar(&r->in);
		return str_is(s, "true") || str_is(s, "false") || str_is(s, "null") || otlp_is_number(s) ?
			ERR_OK :
			json_reader_expected(&r->in, s.ptr, "a value");
	}
	if (depth >= NESTING_MAX)
		return json_reader_expected(&r->in, r->in.at, NESTING_WORDS);
	r->in.at++;
	while (!(rc = json_reader_more(&r->in, open, &more)) && more)
		if ((open == '{' && (rc = json_reader_name(&r->in, &s, &escaped))) ||
			(rc = otlp_reader_skip(r, depth + 1)))
			return rc;
	return rc;
}

/* ------------------------------------------------------------------------------------------------
 * Values by type. */

static enum err_code otlp_reader_number_text(struct otlp_reader *r, struct str *out)
{
	bool escaped;

	if (json_reader_peek(&r->in) == '"')
		return json_reader_raw(&r->in, out, &escaped);
	*out = json_reader_scalar(&r->in);
	return ERR_OK;
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
		return json_reader_expected(&r->in, s.ptr, "an integer of 64 bits");
	*out = (uint64_t)v;
	return ERR_OK;
}

static enum err_code otlp_reader_put_double(struct otlp_reader *r)
{
	bool bare = json_reader_peek(&r->in) != '"';
	char text[64], *end;
	enum err_code rc;
	uint64_t bits;
	struct str s;
	double v;

	if ((rc = otlp_reader_number_text(r, &s)))
		return rc;
	if (!s.len || s.len >= sizeof(text) || memchr(s.ptr, '\0', s.len) ||
		(bare && !otlp_is_number(s)))
		return json_reader_expected(&r->in, s.ptr, "a number");
	memcpy(text, s.ptr, s.len);
	text[s.len] = '\0';
	v = strtod(text, &end);
	if (*end)
		return json_reader_expected(&r->in, s.ptr, "a number");
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

static int otlp_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
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
	bool escaped;
	struct str raw;
	size_t begin, n;
	char *to;

	if ((rc = json_reader_raw(&r->in, &raw, &escaped)) ||
		(rc = otlp_reader_put_open(r, m->number, &begin)))
		return rc;
	if (!(to = otlp_reader_room(r, raw.len)))
		return otlp_reader_no_memory(r);
	n = raw.len;
	if (m->type == OTLP_T_HEX) {
		if (!otlp_from_hex(raw, to, &n))
			return json_reader_expected(&r->in, raw.ptr, "hex digits");
	} else {
		if (escaped && (rc = json_reader_unescape(&r->in, raw, to, &n)))
			return rc;
		if (m->type == OTLP_T_BASE64) {
			if (!base64_decode(escaped ? (struct str){ to, n } : raw, to, &n))
				return json_reader_expected(&r->in, raw.ptr, "base64");
		} else if (!escaped && n) {
			memcpy(to, raw.ptr, n);
		}
	}
	r->out_n += n;
	otlp_reader_put_close(r, begin);
	return ERR_OK;
}

static enum err_code otlp_reader_put_bool(struct otlp_reader *r)
{
	bool v = otlp_reader_take_word(r, STR("true"));

	if (!v && !otlp_reader_take_word(r, STR("false")))
		return json_reader_expected(&r->in, r->in.at, "true or false");
	return otlp_reader_put_varint(r, v);
}

static enum err_code otlp_reader_put_scalar(struct otlp_reader *r, const struct otlp_member *m)
{
	enum err_code rc;
	uint64_t v;

	switch (m->type) {
	case OTLP_T_BOOL:
		return otlp_reader_put_bool(r);
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
		return json_reader_expected(&r->in, r->in.at, NESTING_WORDS);
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
	bool packed = m->type != OTLP_T_MESSAGE && !otlp_is_bytes(m), more;
	enum err_code rc;
	size_t begin = 0;

	if ((rc = json_reader_open(&r->in, '[')) || (rc = json_reader_more(&r->in, '[', &more)) ||
		!more || (packed && (rc = otlp_reader_put_open(r, m->number, &begin))))
		return rc;
	do
		rc = packed ? otlp_reader_put_scalar(r, m) : otlp_reader_put_one(r, m, depth);
	while (!rc && !(rc = json_reader_more(&r->in, '[', &more)) && more);
	if (!rc && packed)
		otlp_reader_put_close(r, begin);
	return rc;
}

static enum err_code otlp_reader_find_member(
	struct otlp_reader *r, const struct otlp_message *m, const struct otlp_member **out)
{
	char name[NAME_MAX_BYTES];
	enum err_code rc;
	struct str raw;
	bool escaped;

	if ((rc = json_reader_name(&r->in, &raw, &escaped)))
		return rc;
	*out = NULL;
	if (raw.len > sizeof(name))
		return ERR_OK;
	if (escaped) {
		if ((rc = json_reader_unescape(&r->in, raw, name, &raw.len)))
			return rc;
		raw.ptr = name;
	}
	*out = otlp_member_by_name(m, raw);
	return ERR_OK;
}

static enum err_code otlp_reader_put_member(
	struct otlp_reader *r, const struct otlp_message *m, int depth)
{
	char what[NAME_MAX_BYTES + sizeof("there is a member ")];
	const struct otlp_member *member;
	enum err_code rc;

	if ((rc = otlp_reader_find_member(r, m, &member)))
		return rc;
	if (otlp_reader_take_word(r, STR("null")))
		return ERR_OK;
	if (!member)
		return otlp_reader_skip(r, depth);
	r->in.name = member->name;
	if (member->type == OTLP_T_OLD) {
		snprintf(what, sizeof(what), "there is a member %s", member->name);
		return otlp_too_old(r->in.err, what);
	}
	return member->flags & OTLP_M_REPEATED ? otlp_reader_put_list(r, member, depth) :
											 otlp_reader_put_one(r, member, depth);
}

static enum err_code otlp_reader_put_object(
	struct otlp_reader *r, const struct otlp_message *m, int depth)
{
	enum err_code rc = json_reader_open(&r->in, '{');
	bool more = true;

	while (!rc && !(rc = json_reader_more(&r->in, '{', &more)) && more)
		rc = otlp_reader_put_member(r, m, depth);
	return rc;
}

enum err_code otlp_decode_json(struct arena *a, struct str text, const struct otlp_options *options,
	struct otlp_request **out, struct err *err)
{
	struct otlp_reader r = { .in = json_reader_of(text, err), .a = a };
	enum err_code rc;

	if (text.len > options->limits->raw_bytes_max || text.len > INT32_MAX / 8)
		return err_set(err, ERR_LIMIT, "request is %zu bytes inflated, limit %zu", text.len,
			options->limits->raw_bytes_max);
	if (!str_is_utf8(text))
		return err_set(err, ERR_INVALID, "request is not OTLP JSON: not UTF-8");
	if (!otlp_reader_room(&r, text.len + 1))
		return otlp_reader_no_memory(&r);
	rc = otlp_reader_put_object(&r, &otlp_request_message, 0);
	r.in.name = NULL;
	if (rc || (rc = json_reader_end(&r.in)))
		return rc == ERR_INVALID ? err_wrap(err, rc, "request is not OTLP JSON") : rc;
	return otlp_decode_wire(a, (struct str){ r.out, r.out_n }, true, options, out, err);
}
