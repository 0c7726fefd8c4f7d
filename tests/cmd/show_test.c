#include "cmd/epitool/show.h"

#include "tests/check.h"

#define DATA(text) "{\"status\":\"success\",\"data\":{" text "}}"

/* clang-format off */
static const struct {
	const char *answer, *want;
} cases[] = {
	{ DATA("\"resultType\":\"scalar\",\"result\":[1,\"2\"]"), "2\n" },
	{ DATA("\"resultType\":\"scalar\",\"unit\":\"bytes\",\"result\":[1,\"2048\"]"), "2kB\n" },
	{ DATA("\"resultType\":\"string\",\"result\":[1,\"a b\"]"), "a b\n" },
	{ DATA("\"resultType\":\"vector\",\"result\":[]"), "" },
	{ DATA("\"resultType\":\"vector\",\"unit\":\"ratio\",\"result\":["
	       "{\"metric\":{\"job\":\"a\"},\"value\":[1,\"0.5\"]},"
	       "{\"metric\":{\"function\":\"f\",\"job\":\"b\"},\"value\":[1,\"NaN\"]}]"),
		" value  job  function\n"
		"50.00%  a\n"
		"   NaN  b    f\n" },
	/* Long names come last: what is behind a column is as far to the right as it is wide. */
	{ DATA("\"resultType\":\"vector\",\"result\":["
	       "{\"metric\":{\"function\":\"a/long/name.Of\",\"verdict\":\"changed\"},"
	       "\"value\":[1,\"2\"]},"
	       "{\"metric\":{\"function\":\"f\",\"job\":\"b\"},\"value\":[1,\"3\"]}]"),
		"value  verdict  job  function\n"
		"    2  changed       a/long/name.Of\n"
		"    3           b    f\n" },
	{ DATA("\"resultType\":\"matrix\",\"unit\":\"nanoseconds\",\"result\":["
	       "{\"metric\":{\"job\":\"a\"},\"values\":[[1,\"1000000\"],[61.5,\"25000000\"]]},"
	       "{\"metric\":{},\"values\":[[1,\"0\"]]}]"),
		"{job=\"a\"}\n"
		"time                      value\n"
		"1970-01-01T00:00:01Z        1ms\n"
		"1970-01-01T00:01:01.500Z   25ms\n"
		"\n"
		"{}\n"
		"time                  value\n"
		"1970-01-01T00:00:01Z      0\n" },
	{ DATA("\"resultType\":\"top\",\"result\":[{\"metric\":{},\"unit\":\"nanoseconds\","
	       "\"total\":5000000000,\"rows\":[{\"function\":\"f\",\"flat\":4990000000,"
	       "\"cum\":5000000000,\"flat_percent\":99.8,\"cum_percent\":100,"
	       "\"sum_percent\":99.8},{\"function\":\"g\",\"flat\":10000000,"
	       "\"cum\":10000000,\"flat_percent\":0.2,\"cum_percent\":0.2,"
	       "\"sum_percent\":100}]}]"),
		"{}  total 5s\n"
		" flat   flat%     sum%    cum     cum%  function\n"
		"4.99s  99.80%   99.80%     5s  100.00%  f\n"
		"0.01s   0.20%  100.00%  0.01s    0.20%  g\n" },
	{ DATA("\"resultType\":\"profiles\",\"result\":[{\"metric\":{\"job\":\"a\"},"
	       "\"unit\":\"count\",\"total\":9,\"cost\":-7,\"profiles\":12,"
	       "\"flamebearer\":{}}]"),
		"cost  profiles  job\n"
		"  -7        12  a\n" },
	/* Names from profiles of strangers. */
	{ DATA("\"resultType\":\"vector\",\"result\":[{\"metric\":{\"a\\u001b\":\"b\\n\\u0000c\"},"
	       "\"value\":[1,\"2\"]}]"),
		"value  a\\x1b\n"
		"    2  b\\n\\x00c\n" },
	{ DATA("\"resultType\":\"matrix\",\"unit\":\"u\\n\",\"result\":["
	       "{\"metric\":{\"a\":\"\\u001b\\\"\\u0000\"},\"values\":[[1,\"1\"]]}]"),
		"{a=\"\\x1b\\\"\\x00\"}\n"
		"time                  value\n"
		"1970-01-01T00:00:01Z  1 u\\n\n" },
	{ DATA("\"resultType\":\"scalar\",\"unit\":\"\\u001b\",\"result\":[1,\"2\"]"),
		"2 \\x1b\n" },
	{ DATA("\"resultType\":\"string\",\"result\":[1,\"\\u001b[2J\"]"), "\\x1b[2J\n" },
	{ DATA("\"resultType\":\"top\",\"result\":[{\"metric\":{},\"unit\":\"\\n\","
	       "\"total\":1,\"rows\":[{\"function\":\"f\\u0000\",\"flat\":1,\"cum\":1,"
	       "\"flat_percent\":100,\"cum_percent\":100,\"sum_percent\":100}]}]"),
		"{}  total 1\n"
		"flat    flat%     sum%  cum     cum%  function\n"
		" 1\\n  100.00%  100.00%  1\\n  100.00%  f\\x00\n" },
	/* Answers of other programs. */
	{ "{}", "" },
	{ "[1]", "" },
	{ DATA("\"resultType\":7,\"result\":\"x\""), "" },
	{ DATA("\"resultType\":\"vector\",\"result\":[7,{\"metric\":[],\"value\":7}]"),
		"value\n"
		"    0\n"
		"    0\n" },
};
/* clang-format on */

TEST(answers)
{
	struct buf out = { 0 };
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&out);
		CHECK_OK(show_answer(str_of(cases[i].answer), 0, &out, &err), &err);
		CHECK_STR(buf_str(&out), cases[i].want);
	}
	CHECK_ERR(show_answer(STR("<html>"), 0, &out, &err), &err, ERR_INVALID,
		"the answer is not JSON: '[' or '{' expected near '<'");
	buf_release(&out);
}

TEST(many_labels)
{
	struct buf answer = { 0 }, out = { 0 };
	struct err err;

	buf_add_cstr(&answer, "{\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{");
	for (int i = 0; i < 40; i++)
		buf_printf(&answer, "%s\"l%d\":\"v\"", i ? "," : "", i);
	buf_add_cstr(&answer, "},\"value\":[1,\"1\"]}]}}");
	CHECK_OK(show_answer(buf_str(&answer), 0, &out, &err), &err);
	CHECK(str_has_prefix(buf_str(&out), STR("value  labels\n    1  {l0=\"v\", l1=\"v\"")));
	buf_release(&answer);
	buf_release(&out);
}
