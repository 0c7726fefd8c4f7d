#include "base/net/percent.h"

#include "tests/check.h"

#define DIGITS "0123456789"
#define LARGE "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define SMALL "abcdefghijklmnopqrstuvwxyz"

/* Every byte: kept by exactly those parts that say so. */
TEST(what_each_part_keeps)
{
	static const struct {
		enum percent_part part;
		const char *keeps, *space;
	} rows[] = {
		{ PERCENT_VALUE, DIGITS LARGE SMALL "-_.~", "%20" },
		{ PERCENT_FORM, DIGITS LARGE SMALL "-_.~", "+" },
		{ PERCENT_PATH, DIGITS LARGE SMALL "-_.~$&+,/:;=@", "%20" },
		{ PERCENT_TARGET, DIGITS LARGE SMALL "-_.~$&+,/:;=@!#%'()*?[\\]^`{|}", "%20" },
	};
	struct buf b = { 0 };
	char want[8];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int c = 0; c < 256; c++) {
			char byte = (char)c;

			if (c == ' ')
				snprintf(want, sizeof(want), "%s", rows[i].space);
			else if (c && strchr(rows[i].keeps, c))
				snprintf(want, sizeof(want), "%c", c);
			else
				snprintf(want, sizeof(want), "%%%02X", (unsigned)c);
			buf_clear(&b);
			percent_encode(&b, (struct str){ &byte, 1 }, rows[i].part);
			CHECK_STR(buf_str(&b), want);
		}
	buf_release(&b);
}

TEST(texts_are_encoded_behind_what_is_there)
{
	struct buf b = { 0 };
	char out[3 * 6];

	buf_add_cstr(&b, "/?q=");
	percent_encode(&b, STR("a b&\xc3\xa9"), PERCENT_FORM);
	buf_add_cstr(&b, "&r=");
	percent_encode(&b, STR(""), PERCENT_FORM);
	percent_encode(&b, (struct str){ NULL, 0 }, PERCENT_VALUE);
	CHECK_STR(buf_str(&b), "/?q=a+b%26%C3%A9&r=");
	buf_release(&b);
	CHECK_INT(percent_encode_to(out, STR("\0\"<>\x7f\xff"), PERCENT_TARGET), sizeof(out));
	CHECK_STR(((struct str){ out, sizeof(out) }), "%00%22%3C%3E%7F%FF");
}

TEST(forms_are_decoded)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "" }, { "plain-text_.~", "plain-text_.~" }, { "a+b%20c", "a b c" },
		{ "%41%6a%4A%2B", "AjJ+" }, { "%C3%a9", "\xc3\xa9" }, { "100%", "100%" }, { "%4", "%4" },
		{ "%4g%g4%", "%4g%g4%" }, { "%%41", "%A" }, { "%+41", "% 41" },
		{ "%2541", "%41" }, /* once only */
	};
	char out[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str s = str_of(rows[i].text);

		CHECK_STR(((struct str){ out, percent_decode_form(out, s) }), rows[i].want);
		memcpy(out, s.ptr, s.len);
		CHECK_STR(((struct str){ out, percent_decode_form(out, (struct str){ out, s.len }) }),
			rows[i].want);
	}
}

TEST(decoding_undoes_encoding)
{
	struct buf b = { 0 };
	char all[256], out[sizeof(all) * 3];

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	for (int part = PERCENT_VALUE; part <= PERCENT_FORM; part++) {
		buf_clear(&b);
		percent_encode(&b, (struct str){ all, sizeof(all) }, (enum percent_part)part);
		CHECK_INT(percent_decode_form(out, buf_str(&b)), sizeof(all));
		CHECK(memcmp(out, all, sizeof(all)) == 0);
	}
	buf_release(&b);
}

TEST(only_a_form_has_spaces_as_plus)
{
	static const char text[] = "a%20b+c%2Bd%zz%";
	char out[sizeof(text)];
	size_t n = percent_decode(out, str_of(text));

	CHECK_STR(((struct str){ out, n }), "a b+c+d%zz%");
	n = percent_decode_form(out, str_of(text));
	CHECK_STR(((struct str){ out, n }), "a b c+d%zz%");
}
