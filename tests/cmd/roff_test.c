#include "cmd/dist/roff.h"

#include "tests/check.h"

TEST(text_is_no_request_and_no_escape)
{
	static const struct {
		const char *before, *text, *want;
	} cases[] = {
		{ "", "plain", "plain" },
		{ "", "--name=\"x\"", "\\-\\-name=\\(dqx\\(dq" },
		{ "", "a\\fB", "a\\efB" },
		{ "", ".SH x", "\\&.SH x" },
		{ "", "'br", "\\(aqbr" },
		{ "a ", ".5", "a .5" },
		{ "a\n", "...", "a\n\\&..." },
		{ "", "two\nlines", "two lines" },
		{ "", "~ ^ `", "\\(ti \\(ha \\(ga" },
		{ "", "", "" },
	};
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&out);
		buf_add_cstr(&out, cases[i].before);
		roff_text(&out, str_of(cases[i].text));
		CHECK_STR(buf_str(&out), cases[i].want);
	}
	buf_release(&out);
}

TEST(lines_stay_lines)
{
	struct buf out = { 0 };

	roff_lines(&out, STR("one\n\n  .two\n.three"));
	CHECK_STR(buf_str(&out), ".nf\none\n.sp\n  .two\n\\&.three\n.fi\n");
	buf_clear(&out);
	roff_lines(&out, STR("one\n"));
	CHECK_STR(buf_str(&out), ".nf\none\n.fi\n");
	buf_release(&out);
}

TEST(headings_and_bold)
{
	struct buf out = { 0 };

	roff_section(&out, "NAME");
	roff_subsection(&out, STR("check \"x\" -y"));
	roff_bold(&out, STR("--x"));
	CHECK_STR(buf_str(&out), ".SH NAME\n.SS \"check \\(dqx\\(dq \\-y\"\n\\fB\\-\\-x\\fR");
	buf_release(&out);
}
