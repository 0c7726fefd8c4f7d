#include "base/regex.h"

#include "tests/check.h"

TEST(anchored_matches)
{
	/* clang-format off */
	static const struct {
		const char *pattern, *text;
		bool want;
	} rows[] = {
		{ "", "", true }, { "", "a", false }, { "foo", "foo", true }, { "foo", "foobar", false },
		{ "f|oo", "foo", false }, { "f|oo", "f", true }, { "f|oo", "oo", true },
		{ "f|oo", "o", false },
		{ "(a|b)", "b", true }, { "(a|b)", "(a", false }, { "a|", "", true }, { "a|", "b", false },
		{ "()", "", true }, { "(a)|(b)", "b", true }, { "a\\.b", "a.b", true },
		{ "a\\.b", "axb", false },
		{ "a.b", "a\nb", true }, { ".*", "x\ny", true }, { ".+", "", false },
		{ "(?i)abc", "ABC", true },
		{ "a{", "a{", true }, { "a{2}", "aa", true }, { "x\\d", "x1", true },
		{ "x\\d", "xd", false },
		{ "\\x41", "A", true }, { "\xc3\xa9|e", "\xc3\xa9", true }, { ".", "\xc3\xa9", true },
		{ "$", "", true }, { "^a$", "a", true }, { "a\\|b", "a|b", true }, { "a\\|b", "a", false },
		{ "\\Qa|b\\E", "a|b", true }, { "\\Q\\C\\E", "\\C", true },
		{ "a-b:c/d", "a-b:c/d", true }, { "z|a|m|a", "a", true },
		{ "z|a|m|a", "n", false }, { "[ab]|c", "b", true },
	};
	/* clang-format on */
	struct regex *re;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str group[REGEX_GROUPS_MAX];

		REQUIRE_OK(regex_compile(str_of(rows[i].pattern), REGEX_ANCHORED, &re, &err), &err);
		if (regex_match(re, str_of(rows[i].text)) != rows[i].want)
			CHECK_FAIL("%s on %s: want %d", rows[i].pattern, rows[i].text, rows[i].want);
		regex_free(re);
		/* regex_groups never takes the short cut for literals: both must agree */
		REQUIRE_OK(
			regex_compile(str_of(rows[i].pattern), REGEX_ANCHORED | REGEX_GROUPS, &re, &err), &err);
		if (regex_groups(re, str_of(rows[i].text), group) != rows[i].want)
			CHECK_FAIL(
				"%s on %s with groups: want %d", rows[i].pattern, rows[i].text, rows[i].want);
		regex_free(re);
	}
}

/* Every pattern of up to five signs from a nasty alphabet: the short cut and RE2 agree. In short
 * one of five, which is all of up to four signs. */
TEST(literals_mean_what_re2_says)
{
	static const char signs[] = "ab|()\\.";
	static const char *const texts[] = { "", "a", "b", "ab", "|", "(", ".", "a|b", "()", "\\",
		"a.b" };
	struct regex *re, *program;
	const int step = check_is_short() ? 5 : 1;
	int compiled = 0;
	struct err err, why;

	for (int n = 0; n < 7 * 7 * 7 * 7 * 7; n += step) {
		struct str group[REGEX_GROUPS_MAX];
		char p[6] = "";
		int rest = n;

		for (int i = 0; i < 5; i++, rest /= 7)
			p[i] = signs[rest % 7];
		for (int len = 1; len <= 5; len++) {
			struct str pattern = { p, (size_t)len };
			enum err_code rc = regex_compile(pattern, REGEX_ANCHORED, &re, &err);

			if (regex_compile(pattern, REGEX_ANCHORED | REGEX_GROUPS, &program, &why)) {
				CHECK_ERR(rc, &err, why.code, why.msg);
				continue;
			}
			REQUIRE_OK(rc, &err);
			compiled++;
			for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
				struct str text = str_of(texts[t]);

				if (regex_match(re, text) != regex_groups(program, text, group))
					CHECK_FAIL("%.*s on %s", len, p, texts[t]);
			}
			regex_free(program);
			regex_free(re);
		}
	}
	CHECK(compiled > 10000 / step);
}

TEST(unanchored_finds)
{
	struct regex *re;
	struct err err;

	REQUIRE_OK(regex_compile(STR("b.d"), 0, &re, &err), &err);
	CHECK(regex_match(re, STR("abcde")));
	CHECK(!regex_match(re, STR("ab\nde")));
	CHECK(!regex_match(re, (struct str){ 0 }));
	regex_free(re);
	regex_free(NULL);
}

TEST(errors)
{
	static const struct {
		const char *pattern;
		enum err_code code;
		const char *msg;
	} rows[] = {
		{ "a(", ERR_INVALID, "error parsing regexp: missing ): a(" },
		{ "a)(b", ERR_INVALID, "error parsing regexp: unexpected ): a)(b" },
		{ "*", ERR_INVALID, "error parsing regexp: no argument for repetition operator: *" },
		{ "[z-a]", ERR_INVALID, "error parsing regexp: invalid character class range: z-a" },
		{ "a{1001}", ERR_INVALID, "error parsing regexp: invalid repetition size: {1001}" },
		{ "(?=a)", ERR_INVALID, "error parsing regexp: invalid perl operator: (?=" },
		{ "\\1", ERR_INVALID, "error parsing regexp: invalid escape sequence: \\1" },
		{ "a\\C", ERR_INVALID, "error parsing regexp: invalid escape sequence: \\C" },
		{ "[\\\\]\\C", ERR_INVALID, "error parsing regexp: invalid escape sequence: \\C" },
		{ "\xff", ERR_INVALID, "error parsing regexp: invalid UTF-8" },
		{ "((\\pL{30}){30}){1}\\pN{500}[[:word:]]{500}\\pL{900}", ERR_LIMIT,
			"regular expression needs more than its limit of 8388608 bytes of memory" },
	};
	struct regex *re;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned flags = 0; flags <= (REGEX_ANCHORED | REGEX_GROUPS); flags++)
			CHECK_ERR(regex_compile(str_of(rows[i].pattern), flags, &re, &err), &err, rows[i].code,
				rows[i].msg);
}

TEST(pattern_length)
{
	static char text[(64u << 10) + 1];
	struct regex *re;
	struct err err;

	memset(text, 'a', sizeof(text));
	for (unsigned flags = 0; flags <= (REGEX_ANCHORED | REGEX_GROUPS); flags++) {
		REQUIRE_OK(regex_compile((struct str){ text, 64u << 10 }, flags, &re, &err), &err);
		regex_free(re);
		CHECK_ERR(regex_compile((struct str){ text, sizeof(text) }, flags, &re, &err), &err,
			ERR_LIMIT, "regular expression is 65537 bytes, limit 65536");
	}
}

TEST(literals_are_listed_in_order)
{
	static const struct {
		const char *pattern, *want;
	} rows[] = {
		{ "b|a|c|a", "a b c " },
		{ "(10\\.0|10\\.1)", "10.0 10.1 " },
		{ "|x", " x " },
		{ "a|b+", "" },
		{ "\xff", "" },
	};
	struct buf text = { 0 };
	struct regex *re;
	struct str s;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned flags = REGEX_ANCHORED; flags <= (REGEX_ANCHORED | REGEX_GROUPS);
			 flags += 2) {
			buf_clear(&text);
			if (regex_compile(str_of(rows[i].pattern), flags, &re, NULL))
				continue; /* no UTF-8 */
			for (size_t k = 0; regex_literal(re, k, &s); k++)
				buf_printf(&text, STR_FMT " ", STR_ARG(s));
			CHECK_STR(buf_str(&text), rows[i].want);
			regex_free(re);
		}
	buf_release(&text);
}

TEST(groups)
{
	struct str g[REGEX_GROUPS_MAX];
	struct regex *re;
	struct err err;

	REQUIRE_OK(
		regex_compile(STR("(a)|(?P<rest>b*)(c)?"), REGEX_ANCHORED | REGEX_GROUPS, &re, &err), &err);
	CHECK_INT(regex_group_count(re), 3);
	CHECK_INT(regex_group_index(re, STR("rest")), 2);
	CHECK_INT(regex_group_index(re, STR("none")), -1);
	CHECK(regex_groups(re, STR("bb"), g));
	CHECK_STR(g[0], "bb");
	CHECK(!g[1].ptr && !g[3].ptr && !g[4].ptr && !g[31].ptr);
	CHECK_STR(g[2], "bb");
	CHECK(regex_groups(re, (struct str){ 0 }, g));
	CHECK(g[2].ptr && g[2].len == 0);
	CHECK(!regex_groups(re, STR("x"), g));
	CHECK(!g[0].ptr);
	regex_free(re);
}

TEST(more_groups_than_are_reported)
{
	struct str g[REGEX_GROUPS_MAX];
	struct buf p = { 0 }, out = { 0 };
	struct regex *re;
	struct err err;

	for (int i = 0; i < 40; i++)
		buf_printf(&p, "(%c)", 'a' + i % 26);
	REQUIRE_OK(regex_compile(buf_str(&p), REGEX_GROUPS, &re, &err), &err);
	CHECK_INT(regex_group_count(re), 40);
	CHECK(regex_groups(re, STR("abcdefghijklmnopqrstuvwxyzabcdefghijklmn"), g));
	CHECK_STR(g[31], "e");
	regex_expand(re, STR("<$31$32>"), g, &out);
	CHECK_STR(buf_str(&out), "<e>");
	regex_free(re);
	buf_release(&p);
	buf_release(&out);
}

TEST(expansion_by_the_rules_of_go)
{
	/* clang-format off */
	static const struct {
		const char *replacement, *want;
	} rows[] = {
		{ "", "" }, { "x", "x" }, { "$1", "one" }, { "${1}_x", "one_x" }, { "$1_x", "" },
		{ "$1-x", "one-x" },
		{ "$$1", "$1" }, { "$$$1", "$one" }, { "$", "$" }, { "a$", "a$" }, { "$-", "$-" },
		{ "${", "${" },
		{ "${1", "${1" }, { "${}", "${}" }, { "${1 }", "${1 }" }, { "$name", "two" },
		{ "${name}s", "twos" },
		{ "$names", "" }, { "$0", "one two" }, { "$00", "" }, { "$01", "" }, { "$3", "" },
		{ "$4", "" },
		{ "$99999999999999999999", "" }, { "$1$2", "onetwo" }, { "[$other]", "[]" },
		{ "$1\xc3\xa9", "" }, { "$1x", "" },
	};
	/* clang-format on */
	struct str g[REGEX_GROUPS_MAX];
	struct buf b = { 0 };
	struct regex *re;
	struct err err;

	REQUIRE_OK(regex_compile(
		STR("(\\w+) (?P<name>\\w+)(x)?"), REGEX_ANCHORED | REGEX_GROUPS, &re, &err), &err);
	REQUIRE(regex_groups(re, STR("one two"), g));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&b);
		regex_expand(re, str_of(rows[i].replacement), g, &b);
		if (!str_is(buf_str(&b), rows[i].want))
			CHECK_FAIL("%s gives " STR_FMT, rows[i].replacement, STR_ARG(buf_str(&b)));
	}
	regex_free(re);
	buf_release(&b);
}
