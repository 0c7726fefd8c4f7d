/*
 * Queries that Prometheus 3 accepts, and queries that it refuses: each text was given to its parser
 * (oracle/main.go). parse_test.c has the syntax beyond Prometheus.
 */
#include "promql/syntax/check.h"
#include "tests/check.h"

/* clang-format off */
static const char *const accepted[] = {
	"1", "1.", ".5", "1e3", "0x1F", "0Xff", "017", "08", "00", "0777777777777777777777777",
	"inf", "+Inf", "-iNf", "nan", "\"a\"", "'a'", "`a`", "\"\\\"\"", "'\\''", "\"\\x41\"",
	"\"\\377\"", "\"\\u00e9\"", "\"\\U0010ffff\"", "\"\xc3\xa9\"", "a", "a:b", ":", "a{}",
	"{a=\"b\"}", "{a=~\".+\"}", "{a!~\".*\"}", "{a!=\"\"}", "{a=\"b\",c=\"\"}",
	"{a=\"\",c=\"d\"}", "{a='b',}", "a{a=~\"(?i)x\"}", "a{a=~\"\\\\d\"}", "a{a=~`\\d`}",
	"{__name__=\"b\"}", "{__name__=~\"b.*\"}",
	"a{and=\"b\",by=\"c\",sum=\"d\",bool=\"e\",inf=\"f\",nan=\"g\",offset=\"h\",on=\"i\","
	"start=\"j\"}",
	"sum", "avg", "by", "without", "and", "or", "unless", "offset", "start", "end",
	"count_values", "and and and", "or or or", "unless unless unless", "offset offset 5m",
	"by{a=\"b\"}", "sum{a=\"b\"}", "a[5m]", "a[ 5m ]", "a[5m ]", "a[1h5m]", "a[1h5m3s2ms]",
	"a[5ms]", "a[1y2w3d]", "a[5m] offset 5m", "a{b=\"c\"}[5m]", "a offset 5m",
	"a OFFSET 5m", "a offset -5m", "a offset - 5m", "a offset 1h @ 5", "a @ 5 offset 1h",
	"a @ 5", "a @5", "a @ -5", "a @ +5", "a @ 1.5", "a @ 0x10", "a @ start()", "a @ end()",
	"a @ START()", "a @ start ()", "-a @ 5", "-a offset 5m", "1+2", "+ 1", "- 1", "--1",
	"- - 1", "-+1", "1 - -1", "1+-+-1", "a+b", "a + + b", "1 == bool 2", "a == b",
	"a == bool b", "a unless b", "a AND b", "a Or b", "a + on() b", "a + on(x) b",
	"a + on (x,) b", "a + on(sum) b", "a + on(atan2) b",
	"a + on(bool, group_left, start) b", "a + ignoring(x) b", "a + on(x) group_left b",
	"a + on(x) group_left(y) b", "a + on(x) group_left() b", "a + on(x) group_left (y) (b)",
	"a + on(x) group_right(y) b", "a + ignoring(x) group_left(x) b", "a and on(x) b",
	"a or ignoring(x) b", "a > 1", "1 < bool a", "a > bool 1", "-a", "+a", "a < b", "a<b",
	"a<b<c", "a < b == c", "a ^ b ^ c", "2^-1", "-2^2", "a % b", "a atan2 b", "a ATAN2 b",
	"1 atan2 2", "a * b / c % d", "sum(a)", "sum by (x) (a)", "sum by() (a)",
	"sum by(x,) (a)", "sum by(x,y)(a)", "sum(a) by (x)", "sum without (x) (a)",
	"sum(a) without (x)", "SUM(a)", "Sum By (x) (a)", "sum by (sum) (a)", "topk(5, a)",
	"bottomk(1+1, a)", "count(a) by (x)", "group(a)", "avg(a) > 1", "min(max(a))", "abs(a)",
	"scalar(a)", "vector(1)", "time()", "time", "(1)", "((1))", "a # comment", "a-b",
	"a - b", "a/b", "(a[5m])", "a == bool on(x) b",
	"foo{bar!=\"baz\",bar=~\"x|y\"} offset 1w", "foo{bar='\\x00'}", "foo{bar=\"\\n\"}",
	"foo\t+\tbar", "foo{a=\"b\",a=\"c\"}", "0.", "-0", "- 0", "NaN == bool NaN",
	"a offset 1h30m", "a offset 1y", "a @ 1609746000.123", "a @ 1609746000.1239", "a[\n5m]",
	"`a\nb`", "a # c\n+ b", "a{ # c\n b=\"c\"}", "a\r\n+\tb", "a{b=\"\xc3\xbf\"}",
	"{a=\"b\" # x\n,c=\"d\"}", "a[5m # x\n]", "a offset # x\n 5m", "a[5m\n]",
	"5m", "1h30m + 1", "x > 1h", "a[5]", "a[0x10]", "a[1.5]", "a offset 5", "a offset -1.5",
	"a offset +5m", "a offset 0s", "a @ 5m", "a @ -1m", "a[5m:1m]", "a[5m:]", "a[5m : 1m]",
	"a[300:60]", "a[5m:1m] offset 1h @ 5", "a[5m:1m] @ end() offset -1m", "(a)[5m:]",
	"sum(a)[5m:1m]", "rate(a[5m])[30m:1m]", "max_over_time(rate(a[1m])[1h:5m] offset 1d)",
	"vector(1)[5m:1m]", "{\"my.metric\"}", "{\"my.metric\", a=\"b\"}",
	"{a=\"b\", \"my.metric\"}", "{'my.metric', \"k.v\"!=\"x\",}", "a{\"k.v\"=~\"x.*\"}",
	"a + on(\"x\") b", "a + on(x:y) b", "a + ignoring(\"x.y\", z) group_left(\"p.q\") b",
	"sum by (\"x\") (a)", "sum by (x:y) (a)", "sum without (\"x.y\") (a)",
	"predict_linear(a[1h], 4h)", "limitk(2, a)", "limit_ratio(0.5, a)", "hour()", "hour(a)",
	"pi()", "sort_by_label(a, \"x\")", "mad_over_time(a[5m])",
	"double_exponential_smoothing(a[5m], 0.5, 0.5)", "a[5m:1m] # x", "LIMITK(2, a)",
};
/* clang-format on */

/* clang-format off */
static const char *const refused[] = {
	"0o17", "0b1", "0x", "0x1.8", "0x1p3", "1e", "1e+", "1e400",
	"0xfffffffffffffffff", "1x", "1..2", ".", "\"a\\q\"", "\"\\'\"", "'\\\"'",
	"\"\\x4\"", "\"\\400\"", "\"\\08\"", "\"\\ud800\"", "\"\\U00110000\"", "\"a", "b\"",
	"\"abc", "'abc", "`abc", "\"\\", "\xc3\xa9", "{}", "{a=\"\"}", "{a=~\".*\"}",
	"{a!=\"x\"}", "{,}", "{a=\"b\",,}", "{a=\"b\" c=\"d\"}", "a{a=\"b\"", "a{a=b}",
	"a{a=\"b\"}}", "a{1a=\"b\"}", "a{a:b=\"b\"}", "a{a==\"b\"}",
	"a{a=~\"(\"}", "a{a=~\"\\d\"}", "a{a!~\"[a-\"}", "a{__name__=\"b\"}", "on", "ignoring",
	"bool", "atan2", "group_left", "group_right", "inf{}", "on{a=\"b\"}", "a[", "5m]",
	"a[]", "a[-5m]", "a[0s]", "a[5m5]", "a[5m1h]", "a[1h1h]", "a[1.5h]", "a[5M]",
	"a[5msm]", "a[1d2w]", "a[300y]", "a[5m][5m]", "a offset 5m[5m]", "a @ 5 [5m]",
	"(a)[5m]", "a[5m]{b=\"c\"}", "a offset",
	"a offset 5m offset 5m", "a @ inf", "a @ nan", "a @ 1e30", "a @ start", "a @ start(1)",
	"a @ 5 @ 6", "a @ b", "(a) @ 5", "(a) offset 5m", "1 @ 5", "1 offset 5m",
	"sum(a) offset 5m", "sum(a) @ 5", "1 +", "1 = 2", "1 == 2", "1 =~ 2", "1 ! 2",
	"a + bool b", "a bool == b", "a and bool b", "1 and 2", "a and 1", "1 or a",
	"a + on (,) b", "a + on (x y) b", "a + on x b", "a + on(1) b",
	"a + on(inf) b", "a + on(nan) b", "a + on(without) b",
	"a + ignoring(x) on(y) b", "a + on(x) group_left(x) b", "a + group_left b",
	"a + group_left(y) b", "a and on(x) group_left b", "1 + on(x) 2", "a + on(x) 2",
	"1 > 2", "\"a\" + 1", "\"a\" == \"a\"", "a + \"b\"", "-\"a\"", "sum(a,)", "sum()",
	"sum(a, b)", "sum(1)", "sum(\"a\")", "sum(a[5m])", "sum by (x) a", "sum by x (a)",
	"sum by(,) (a)", "sum(a) by x", "sum by (x) (a) by (y)", "sum on (x) (a)",
	"sum by (1) (a)", "topk(a, 5)", "topk(5)",
	"topk(\"5\", a)", "ABS(a)", "abs(1)", "abs(a[5m])", "abs()", "abs(a, b)", "abs(a,)",
	"abs by (x) (a)", "abs(a) by (x)", "scalar(1)", "vector(a)", "time(1)", "unknown(a)",
	"a(b)", "a:b(c)", "()", "(1", "1)", "a b", "a 1", "1 a", "1 2", "\"a\" \"b\"",
	"# comment", "a{ # comment", "", "sum(a", "sum)", "[5m]", "a[5m", "a]", "a $ b",
	"a ~ b", "a & b", "a ; b", "a.b", "{a=\"b\"}{c=\"d\"}", "a{b=\"c\"} d", "a,b", "=",
	"==", "@", "@ 5", "offset 5m", "by (x)", "a by (x)", "sum by (x)", "+", "group_left(x)",
	"1 + (2", "a[5m] + b", "a[5m] == b", "-a[5m]", "a == on(x) bool b", "1e3e3", "1.2.3",
	"a @ 9223372036854775807", "\"a\nb\"", "a\x0b""b", "a\xc2\xa0+b", " ", "\n", "#",
	"a[5 m]", "a[5m 1s]",
	"a[5m:0s]", "a[0:1m]", "a[5m:-1m]", "a[:1m]", "a[5m:1m:1m]", "a[5m::]", "1[5m:1m]",
	"time()[5m:1m]", "\"x\"[5m:1m]", "a[5m][5m:1m]", "a[5m:1m][5m:1m]", "rate(a[5m:1m][5m:])",
	"sum(a[5m:1m])", "a{\"x\"}", "a{\"b\"=\"c\", \"x\"}", "{\"k.v\"=}", "{k.v=\"x\"}",
	"{\"x\" \"y\"}", "sum by (a.b) (a)", "rate(a)", "rate(sum(a))",
	"rate(a[5m] offset 1m) offset 1m", "predict_linear(a[1h])", "limitk(a)", "hour(1)", "pi(1)",
	"a offset", "a offset 1mm", "a[1m1m:1m]",
};
/* clang-format on */

static bool accepts(struct str text)
{
	struct parsed *q = NULL;
	struct arena a;
	bool ok;

	arena_init(&a, 0);
	ok = !parse_query(&a, text, &q, NULL, NULL) && !check_query(q, NULL, NULL);
	parsed_release(q);
	arena_release(&a);
	return ok;
}

TEST(accepts_what_prometheus_accepts)
{
	for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++)
		if (!accepts(str_of(accepted[i])))
			CHECK_FAIL("`%s` is refused", accepted[i]);
}

TEST(refuses_what_prometheus_refuses)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (accepts(str_of(refused[i])))
			CHECK_FAIL("`%s` is accepted", refused[i]);
}
