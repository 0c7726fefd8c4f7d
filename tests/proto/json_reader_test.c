/* The JSON reader: what is read in place, as spans, as strings and as numbers; whole messages. */
#include "proto/json_reader.h"

#include <inttypes.h>

#include "tests/check.h"

#define LIT(s) \
	{ \
		s, sizeof(s) - 1 \
	}

/* Reads a value in place, and prints it without white space and escapes. */
static enum err_code read_in_place(struct json_reader *r, struct arena *a, struct buf *out)
{
	char open = json_reader_peek(r);
	enum err_code rc;
	bool more, escaped;
	struct str s;

	if (open == '"') {
		if (!(rc = json_reader_string(r, a, &s)))
			buf_printf(out, "\"" STR_FMT "\"", STR_ARG(s));
		return rc;
	}
	if (open != '{' && open != '[') {
		s = json_reader_scalar(r);
		buf_add_str(out, s);
		return s.len ? ERR_OK : json_reader_expected(r, s.ptr, "a value");
	}
	if ((rc = json_reader_open(r, open)))
		return rc;
	buf_add_char(out, open);
	while (!rc && !(rc = json_reader_more(r, open, &more)) && more) {
		if (open == '{') {
			if ((rc = json_reader_name(r, &s, &escaped)))
				return rc;
			buf_printf(out, STR_FMT "%s=", STR_ARG(s), escaped ? " escaped" : "");
		}
		rc = read_in_place(r, a, out);
		buf_add_char(out, ' ');
	}
	if (!rc)
		buf_add_char(out, (char)(open + 2));
	return rc;
}

static enum err_code read_all(struct json_reader *r, struct arena *a, struct buf *out)
{
	enum err_code rc = read_in_place(r, a, out);

	return rc ? rc : json_reader_end(r);
}

/* Checks the whole, then prints the members of an object as spans. */
static enum err_code read_members(struct json_reader *r, struct arena *a, struct buf *out)
{
	enum err_code rc = json_reader_whole(r);
	struct str key, value;
	bool more = true;

	(void)a;
	rc = rc ? rc : json_reader_open(r, '{');
	while (!rc && !(rc = json_reader_member(r, &key, &value, &more)) && more)
		buf_printf(out, STR_FMT "%s " STR_FMT "; ", STR_ARG(key),
			json_reader_is(key, "name") ? " is name:" : "", STR_ARG(value));
	return rc;
}

static enum err_code read_number(struct json_reader *r, struct arena *a, struct buf *out)
{
	struct json_reader_number n;
	enum err_code rc;

	(void)a;
	if ((rc = json_reader_number(r, &n)))
		return rc;
	CHECK(!n.is_integer || n.d == (double)n.i);
	if (n.is_integer)
		buf_printf(out, "%" PRId64 " at %td", n.i, n.at - r->text.ptr);
	else
		buf_printf(out, "%g at %td", n.d, n.at - r->text.ptr);
	return json_reader_end(r);
}

/* Empty spans are values that are missing. */
static enum err_code read_missing(struct json_reader *r, struct arena *a, struct buf *out)
{
	struct json_reader at = json_reader_at(r, STR(""));

	(void)a;
	(void)out;
	return json_reader_open(&at, '[');
}

typedef enum err_code (*read_fn)(struct json_reader *r, struct arena *a, struct buf *out);

/* clang-format off */
static const struct {
	read_fn read;
	struct str text;
	const char *want; /* or the error */
} rows[] = {
	{ read_all, LIT(" { } "), "{}" },
	{ read_all, LIT("[]"), "[]" },
	{ read_all, LIT("{\"a\" : [1 ,-2.5e3,true , {\"b\":\n\tnull}],\"a\":\"\"}"),
		"{a=[1 -2.5e3 true {b=null } ] a=\"\" }" },
	{ read_all, LIT("[[[]],{},\"[\"]"), "[[[] ] {} \"[\" ]" },
	{ read_all, LIT("{\"\\u0061\":1}"), "{\\u0061 escaped=1 }" },
	{ read_all, LIT(""), "invalid input: JSON ends at byte 0: expected a value" },
	{ read_all, LIT("\xef\xbb\xbf{}"), "invalid input: byte 0: expected a value" },
	{ read_all, LIT("{}x"), "invalid input: byte 2: expected the end" },
	{ read_all, LIT("{}\0"), "invalid input: byte 2: expected the end" },
	{ read_all, LIT("{"), "invalid input: JSON ends at byte 1: expected a name" },
	{ read_all, LIT("{,"), "invalid input: byte 1: expected a name" },
	{ read_all, LIT("{\"a\":1,}"), "invalid input: byte 7: expected a name" },
	{ read_all, LIT("{1:1}"), "invalid input: byte 1: expected a name" },
	{ read_all, LIT("{\"a\" 1}"), "invalid input: byte 5: expected ':'" },
	{ read_all, LIT("{\"a\":}"), "invalid input: byte 5: expected a value" },
	{ read_all, LIT("{\"a\":1 \"b\"}"), "invalid input: byte 7: expected ',' or '}'" },
	{ read_all, LIT("{\"a\":1]"), "invalid input: byte 6: expected ',' or '}'" },
	{ read_all, LIT("[1 2]"), "invalid input: byte 3: expected ',' or ']'" },
	{ read_all, LIT("[1"), "invalid input: JSON ends at byte 2: expected ',' or ']'" },
	{ read_all, LIT("[1,]"), "invalid input: byte 3: expected a value" },
	{ read_all, LIT("[,1]"), "invalid input: byte 1: expected a value" },
	{ read_all, LIT("[\"a"), "invalid input: byte 1: expected a string that ends" },
	{ read_all, LIT("[\"a\\\""), "invalid input: byte 1: expected a string that ends" },
	{ read_all, LIT("[\"a\\"), "invalid input: byte 1: expected a string that ends" },
	{ read_all, LIT("{\"a\n\":1}"), "invalid input: byte 3: expected no control character" },

	{ read_all, LIT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00E9\\u20ac\""),
		"\"\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\"" },
	{ read_all, LIT("\"\\ud83d\\ude00\\uD83D\\uDE00\""),
		"\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\"" },
	{ read_all, LIT("\"\\ud83d\""), "\"\xef\xbf\xbd\"" },
	{ read_all, LIT("\"\\ude00x\""), "\"\xef\xbf\xbdx\"" },
	{ read_all, LIT("\"\\ud83d\\u0041\\ud83d\\n\""), "\"\xef\xbf\xbd" "A\xef\xbf\xbd\n\"" },
	{ read_all, LIT("\"\\ud83d\\ud83d\\ude00\""), "\"\xef\xbf\xbd\xf0\x9f\x98\x80\"" },
	{ read_all, LIT("\"\x7f\xff\""), "\"\x7f\xff\"" }, /* not UTF-8: the caller's matter */
	{ read_all, LIT("\"\\x\""), "invalid input: byte 2: expected an escape" },
	{ read_all, LIT("\"a\\\0\""), "invalid input: byte 3: expected an escape" },
	{ read_all, LIT("\"\\u12\""), "invalid input: byte 2: expected four hex digits" },
	{ read_all, LIT("\"\\u12g4\""), "invalid input: byte 2: expected four hex digits" },
	{ read_all, LIT("\"\\ud83d\\u12\""), "invalid input: byte 8: expected four hex digits" },
	{ read_all, LIT("\"a\tb\""), "invalid input: byte 2: expected no control character" },
	{ read_all, LIT("\"a\0b\""), "invalid input: byte 2: expected no control character" },

	{ read_members, LIT(" {\"name\": {\"x\":[\"]}\"]} , \"b\":1.5e3,\"b\":\"\\\"\"} "),
		"\"name\" is name: {\"x\":[\"]}\"]}; \"b\" 1.5e3; \"b\" \"\\\"\"; " },
	{ read_members, LIT("{}"), "" },
	{ read_members, LIT("{\"n\\u0061me\":nonsense,\"a\tb\":[1 {:} \\x]}"), /* nobody reads it */
		"\"n\\u0061me\" nonsense; \"a\tb\" [1 {:} \\x]; " },
	{ read_members, LIT(""), "invalid input: JSON ends at byte 0: expected a value" },
	{ read_members, LIT("[]"), "invalid input: byte 0: expected an object" },
	{ read_members, LIT("null"), "invalid input: byte 0: expected an object" },
	{ read_members, LIT("{} {}"), "invalid input: byte 3: expected the end" },
	{ read_members, LIT("{\"a\":["),
		"invalid input: JSON ends at byte 6: expected the end of what begins before" },
	{ read_members, LIT("{\"a\":[}"), "invalid input: byte 6: expected ']'" },
	{ read_members, LIT("{\"a\":{]}"), "invalid input: byte 6: expected '}'" },
	{ read_members, LIT("{\"a\":\"b}"), "invalid input: byte 5: expected a string that ends" },
	{ read_members, LIT("{\"a\":,}"), "invalid input: byte 5: expected a value" },
	{ read_members, LIT("{\"a\" 1}"), "invalid input: byte 5: expected ':'" },
	{ read_members, LIT("{\"a\":1;}"), "invalid input: byte 6: expected ',' or '}'" },
	{ read_members, LIT("{\"a\":1,}"), "invalid input: byte 7: expected a name" },

	{ read_number, LIT(" 0 "), "0 at 1" },
	{ read_number, LIT("-9223372036854775808"), "-9223372036854775808 at 0" },
	{ read_number, LIT("9223372036854775807"), "9223372036854775807 at 0" },
	{ read_number, LIT("9223372036854775808"), "9.22337e+18 at 0" },
	{ read_number, LIT("-0.25"), "-0.25 at 0" },
	{ read_number, LIT("1E+3"), "1000 at 0" },
	{ read_number, LIT("2e-1"), "0.2 at 0" },
	{ read_number, LIT("1e308"), "1e+308 at 0" },
	{ read_number, LIT("1e309"), "invalid input: byte 0: expected a smaller number" },
	{ read_number, LIT(""), "invalid input: JSON ends at byte 0: expected a number" },
	{ read_number, LIT("01"), "invalid input: byte 0: expected a number" },
	{ read_number, LIT("+1"), "invalid input: byte 0: expected a number" },
	{ read_number, LIT("-"), "invalid input: byte 0: expected a number" },
	{ read_number, LIT(".5"), "invalid input: byte 0: expected a number" },
	{ read_number, LIT("5."), "invalid input: byte 0: expected a number" },
	{ read_number, LIT("5.e1"), "invalid input: byte 0: expected a number" },
	{ read_number, LIT("1e"), "invalid input: byte 0: expected a number" },
	{ read_number, LIT("1e+"), "invalid input: byte 0: expected a number" },
	{ read_number, LIT(" 1x"), "invalid input: byte 1: expected a number" },
	{ read_number, LIT("0x10"), "invalid input: byte 0: expected a number" },
	{ read_number, LIT("NaN"), "invalid input: byte 0: expected a number" },
	{ read_number, LIT("\"1\""), "invalid input: byte 0: expected a number" },
	{ read_number, LIT("1 2"), "invalid input: byte 2: expected the end" },
	{ read_number, LIT("1234567890123456789012345678901234567890123456789012345678901234"),
		"1.23457e+63 at 0" },
	{ read_number, LIT("12345678901234567890123456789012345678901234567890123456789012345"),
		"invalid input: byte 0: expected a number" },

	{ read_missing, LIT("{}"), "invalid input: byte 0: expected an array" },
};
/* clang-format on */

/* In memory of its exact size, so that the address sanitizer sees each read beyond. */
static enum err_code read_copy(read_fn read, struct str text, const char *name, struct buf *out)
{
	char *copy = malloc(text.len + !text.len);
	struct err err = { 0 };
	struct json_reader r;
	enum err_code rc;
	struct arena a;

	memcpy(copy, text.ptr, text.len);
	arena_init(&a, 0);
	r = json_reader_of((struct str){ copy, text.len }, &err);
	r.name = name;
	buf_clear(out);
	rc = read(&r, &a, out);
	if (rc) {
		buf_clear(out);
		buf_printf(out, "%s: %s", err_code_name(rc), err.msg);
	}
	arena_release(&a);
	free(copy);
	return rc;
}

TEST(each_value)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		read_copy(rows[i].read, rows[i].text, NULL, &out);
		CHECK_STR(buf_str(&out), rows[i].want);
	}
	buf_release(&out);
}

TEST(an_error_names_the_member)
{
	struct buf out = { 0 };

	CHECK_INT(read_copy(read_all, STR("[1 2]"), "values", &out), ERR_INVALID);
	CHECK_STR(buf_str(&out), "invalid input: byte 3, values: expected ',' or ']'");
	CHECK_INT(read_copy(read_all, STR("[1"), "values", &out), ERR_INVALID);
	CHECK_STR(buf_str(&out), "invalid input: JSON ends at byte 2, values: expected ',' or ']'");
	buf_release(&out);
}

TEST(a_text_that_is_cut_is_refused)
{
	static const char text[] = "{\"a\":[1,{\"b\\u00e9\":\"\\ud83d\\ude00\"},true],\"c\":\"\\n\"}";
	struct buf out = { 0 };

	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		CHECK_INT(read_copy(read_all, (struct str){ text, n }, NULL, &out), ERR_INVALID);
		CHECK_INT(read_copy(read_members, (struct str){ text, n }, NULL, &out), ERR_INVALID);
	}
	CHECK_INT(read_copy(read_all, str_of(text), NULL, &out), ERR_OK);
	CHECK_INT(read_copy(read_members, str_of(text), NULL, &out), ERR_OK);
	buf_release(&out);
}

TEST(nesting_of_spans_is_limited)
{
	struct buf text = { 0 }, out = { 0 };

	for (unsigned depth = JSON_READER_DEPTH_MAX; depth <= JSON_READER_DEPTH_MAX + 1; depth++) {
		buf_clear(&text);
		buf_add_cstr(&text, "{\"a\":");
		for (unsigned i = 1; i < depth; i++)
			buf_add_char(&text, '[');
		for (unsigned i = 1; i < depth; i++)
			buf_add_char(&text, ']');
		buf_add_char(&text, '}');
		CHECK_INT(read_copy(read_members, buf_str(&text), NULL, &out),
			depth > JSON_READER_DEPTH_MAX ? ERR_LIMIT : ERR_OK);
	}
	CHECK_STR(buf_str(&out), "limit exceeded: byte 0: nesting of more than 64, the limit");
	buf_release(&text);
	buf_release(&out);
}

TEST(a_full_arena_is_an_error)
{
	struct json_reader r;
	struct err err;
	struct arena a;
	struct str s;

	arena_init(&a, 1);
	r = json_reader_of(STR("\"a\""), &err);
	CHECK_INT(json_reader_string(&r, &a, &s), ERR_LIMIT);
	arena_release(&a);
}
