#include "base/quote.h"

#include "tests/check.h"

TEST(quoting)
{
	static const struct {
		const char *text;
		size_t len;
		const char *want;
	} rows[] = {
		{ "", 0, "\"\"" },
		{ "plain text", 10, "\"plain text\"" },
		{ "a\"b\\c", 5, "\"a\\\"b\\\\c\"" },
		{ "\a\b\f\n\r\t\v", 7, "\"\\a\\b\\f\\n\\r\\t\\v\"" },
		{ "\0\x1f\x7f", 3, "\"\\x00\\x1f\\x7f\"" },
		{ "\xff\xc3\xa9\xc3", 4, "\"\\xff\xc3\xa9\\xc3\"" },
		{ "\xe2\x80\xae", 3, "\"\\u202e\"" }, /* turns the line around */
		{ "\xf3\xa0\x80\x81", 4, "\"\\U000e0001\"" },
		{ "\xc2\xa0", 2, "\"\\u00a0\"" },
		{ "\xf0\x9f\x99\x82", 4, "\"\xf0\x9f\x99\x82\"" },
	};
	struct buf b = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str s = { rows[i].text, rows[i].len };

		buf_clear(&b);
		buf_add_quoted(&b, s);
		CHECK_STR(buf_str(&b), rows[i].want);
		CHECK_STR(str_of(QUOTED(s)), rows[i].want);
	}
	buf_release(&b);
}

TEST(printable_text)
{
	/* clang-format off */
	static const struct {
		const char *text;
		size_t len;
		const char *want;
	} rows[] = {
		{ "", 0, "" },
		{ "main.(*T).run \"x\" App\\Foo::bar", 30, "main.(*T).run \"x\" App\\Foo::bar" },
		{ "a\nb\r\tc", 6, "a\\nb\\r\\tc" },
		{ "\x1b[31mred\0", 9, "\\x1b[31mred\\x00" },
		{ "\xff\xc3\xa9\xc3", 4, "\\xff\xc3\xa9\\xc3" },
		{ "\xe2\x80\xae" "evil\x7f", 8, "\\u202eevil\\x7f" },
		{ "\xc2\x9b" "2J", 4, "\\u009b2J" }, /* a control that some terminals obey */
		{ "\xef\xbf\xbd", 3, "\xef\xbf\xbd" },
	};
	/* clang-format on */
	struct buf b = { 0 };
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str s = { rows[i].text, rows[i].len }, p;

		buf_clear(&b);
		buf_add_printable(&b, s);
		CHECK_STR(buf_str(&b), rows[i].want);
		p = str_printable(&a, s);
		CHECK_STR(p, rows[i].want);
		CHECK((p.ptr == s.ptr) == (s.len == strlen(rows[i].want)));
	}
	CHECK(str_printable(&a, (struct str){ NULL, 0 }).ptr != NULL);
	arena_release(&a);
	buf_release(&b);
}

TEST(long_text_is_cut)
{
	char text[1000];
	struct quoted q;

	memset(text, 'x', sizeof(text));
	q = quoted_of((struct str){ text, sizeof(text) });
	CHECK_INT(strlen(q.text), 255);
	CHECK_STR(((struct str){ q.text + 248, 7 }), "xxx...\"");
	memset(text, '\n', sizeof(text));
	q = quoted_of((struct str){ text, 200 });
	CHECK_INT(strlen(q.text), 255);
	CHECK_STR(((struct str){ q.text + 251, 4 }), "...\"");
	memset(text, 'x', sizeof(text));
	q = quoted_of((struct str){ text, 253 });
	CHECK_INT(strlen(q.text), 255);
	CHECK_STR(((struct str){ q.text + 252, 3 }), "xx\"");
}
