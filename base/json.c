#include "base/json.h"

#include <assert.h>
#include <math.h>

#include "base/quote.h"

#define LAST_CONTROL 0x9f /* JSON allows those from 0x7f on, but a terminal may obey them */

void json_init(struct json *j, struct buf *out)
{
	*j = (struct json){ .out = out };
	j->first[0] = true;
}

/* Adds the comma before a value, unless a key or an opening bracket is in front of it. */
static void json_before_value(struct json *j)
{
	if (j->after_key)
		j->after_key = false;
	else if (j->first[j->depth])
		j->first[j->depth] = false;
	else
		buf_add_char(j->out, ',');
}

static void json_open_bracket(struct json *j, char c, char closing)
{
	json_before_value(j);
	buf_add_char(j->out, c);
	assert(j->depth + 1 < JSON_DEPTH_MAX);
	j->first[++j->depth] = true;
	j->closing[j->depth] = closing;
}

static void json_close_bracket(struct json *j, char c)
{
	assert(j->depth > 0 && !j->after_key && j->closing[j->depth] == c);
	j->depth--;
	buf_add_char(j->out, c);
}

void json_object(struct json *j)
{
	json_open_bracket(j, '{', '}');
}

void json_object_end(struct json *j)
{
	json_close_bracket(j, '}');
}

void json_array(struct json *j)
{
	json_open_bracket(j, '[', ']');
}

void json_array_end(struct json *j)
{
	json_close_bracket(j, ']');
}

/* 0: as it is; 1: a longer sequence begins; 'u': \u00xx; else the letter behind the backslash */
static char json_escape_of(unsigned char c)
{
	switch (c) {
	case '"':
	case '\\':
		return (char)c;
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return c < 0x20 || c == 0x7f ? 'u' : c >= 0x80 ? 1 : 0;
	}
}

static bool json_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void json_add_text(struct buf *b, struct str s)
{
	size_t plain = 0, i = 0, n;
	uint32_t code;
	char e;

	buf_add_char(b, '"');
	for (;;) {
		while (i < s.len && json_is_plain((unsigned char)s.ptr[i]))
			i++;
		if (i == s.len)
			break;
		e = json_escape_of((unsigned char)s.ptr[i]);
		n = 1;
		code = (unsigned char)s.ptr[i];
		if (e == 1 && (n = utf8_decode((struct str){ s.ptr + i, s.len - i }, &code)) &&
			code <= LAST_CONTROL)
			e = 'u';
		if (e == 0 || (e == 1 && n > 0)) { /* copied in runs */
			i += n;
			continue;
		}
		buf_add(b, s.ptr + plain, i - plain);
		if (e == 1)
			buf_add_cstr(b, "\xef\xbf\xbd"); /* U+FFFD */
		else if (e == 'u')
			buf_printf(b, "\\u%04x", code);
		else
			buf_add(b, (char[]){ '\\', e }, 2);
		plain = i += n ? n : 1;
	}
	buf_add(b, s.ptr ? s.ptr + plain : "", i - plain);
	buf_add_char(b, '"');
}

void json_key_str(struct json *j, struct str key)
{
	assert(j->closing[j->depth] == '}' && !j->after_key);
	json_before_value(j);
	json_add_text(j->out, key);
	buf_add_char(j->out, ':');
	j->after_key = true;
}

void json_key(struct json *j, const char *key)
{
	json_key_str(j, str_of(key));
}

void json_str(struct json *j, struct str s)
{
	json_before_value(j);
	json_add_text(j->out, s);
}

void json_cstr(struct json *j, const char *value)
{
	json_str(j, str_of(value));
}

void json_i64(struct json *j, int64_t value)
{
	json_before_value(j);
	buf_add_i64(j->out, value);
}

void json_i64s(struct json *j, const int64_t *values, size_t n)
{
	assert(j->closing[j->depth] == ']');
	if (!n)
		return;
	json_before_value(j);
	buf_add_i64s(j->out, values, n);
}

void json_u64(struct json *j, uint64_t value)
{
	json_before_value(j);
	buf_add_u64(j->out, value);
}

void json_double(struct json *j, double value)
{
	json_before_value(j);
	if (isfinite(value))
		buf_add_double(j->out, value);
	else
		buf_add_cstr(j->out, "null");
}

void json_bool(struct json *j, bool value)
{
	json_raw(j, value ? STR("true") : STR("false"));
}

void json_null(struct json *j)
{
	json_raw(j, STR("null"));
}

void json_raw(struct json *j, struct str s)
{
	json_before_value(j);
	buf_add_str(j->out, s);
}

void json_sample_value(struct json *j, double value)
{
	json_before_value(j);
	buf_add_char(j->out, '"');
	buf_add_double(j->out, value);
	buf_add_char(j->out, '"');
}
