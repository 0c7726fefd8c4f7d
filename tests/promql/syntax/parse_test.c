#include "promql/syntax/parse.h"

#include <math.h>

#include "promql/syntax/functions.h"
#include "tests/check.h"
#include "tests/promql/syntax/rows.h"

#define MIN_NS INT64_C(60000000000)

static bool describe_tree(struct parsed *q, struct buf *out, struct err *err)
{
	expr_print(out, q->root);
	return true;
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]), describe_tree)

/* clang-format off */
TEST(accepts)
{
	static const struct row rows[] = {
		/* numbers */
		{ "1", "1" }, { "1.", "1" }, { ".5", "0.5" }, { "1e3", "1000" }, { "1e-3", "0.001" },
		{ "1E+3", "1000" }, { "0x1F", "31" }, { "0Xff", "255" }, { "017", "15" },
		{ "08", "8" }, { "Inf", "Inf" }, { "+inf", "Inf" }, { "-iNF", "-Inf" },
		{ "NaN", "NaN" }, { "nan", "NaN" }, { "-1", "-1" }, { "- 1", "-1" }, { "--1", "1" },
		{ "-0", "-0" }, { "1e308", "1e308" }, { "0xe5", "229" }, { "1e-400", "0" },
		{ "9223372036854775807", "9223372036854776000" },
		/* strings */
		{ "\"a\"", "\"a\"" }, { "'a\"b'", "\"a\\\"b\"" }, { "`a\\n`", "\"a\\\\n\"" },
		{ "\"\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\"", "\"\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\"" },
		{ "'\\''", "\"'\"" }, { "\"\\101\\x41\\u0041\\U00000041\"", "\"AAAA\"" },
		{ "\"\\xff\\377\"",
			"\"\\xff\\xff\"" }, { "\"\\u00e9\\u20ac\\U0001f600\"", "\"é€😀\"" },
		{ "`line\nline`", "\"line\\nline\"" }, { "\"é\"", "\"é\"" },
		/* selectors and their names */
		{ "cpu", "cpu" }, { "cpu{}", "cpu" }, { "cpu:samples", "cpu:samples" },
		{ "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{job=\"a\"}",
		  "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{job=\"a\"}" },
		{ ":", ":" }, { "{job=\"a\"}", "{job=\"a\"}" },
		{ "{__name__=\"process_cpu\",__type__=\"samples\"}",
		  "{__name__=\"process_cpu\",__type__=\"samples\"}" },
		{ "cpu { a = 'x' , b != \"y\" , c =~ `z.*` , d !~ \"w\" , }",
		  "cpu{a=\"x\",b!=\"y\",c=~\"z.*\",d!~\"w\"}" },
		{ "cpu{and=\"a\",by='b',sum=`c`,offset=\"d\",inf=\"e\"}",
		  "cpu{and=\"a\",by=\"b\",sum=\"c\",offset=\"d\",inf=\"e\"}" },
		{ "sum", "sum" }, { "by", "by" }, { "offset", "offset" }, { "start", "start" },
		{ "and and and", "and and and" },
		{ "OR or Or", "OR or Or" },
		{ "end{a=\"b\"}", "end{a=\"b\"}" },
		{ "offset offset 5m", "offset offset 5m" },
		/* the other spelling of the braces */
		{ "cpu:samples<job=\"parca\">", "cpu:samples{job=\"parca\"}" },
		{ "cpu< job = 'a' , b=~\"c\", >[5m]", "cpu{job=\"a\",b=~\"c\"}[5m]" },
		{ "cpu<job=\"a\">>5", "cpu{job=\"a\"} > 5" }, { "cpu<a!~`x`>>=5", "cpu{a!~\"x\"} >= 5" },
		{ "a < b", "a < b" }, { "a<b", "a < b" }, { "a<b==c", "a < b == c" },
		{ "a<b!=c", "a < b != c" }, { "a<1", "a < 1" }, { "a<=b", "a <= b" },
		{ "a<sum(b)", "a < sum(b)" }, { "a <b!=\"x\"", "a < b != \"x\"" },
		{ "(a)<b!=\"x\"", "(a) < b != \"x\"" }, { "a<b{c=\"d\"}", "a < b{c=\"d\"}" },
		/* windows, offset, @ */
		{ "cpu[5m]", "cpu[5m]" }, { "cpu[ 5m ]", "cpu[5m]" }, { "cpu[90m]", "cpu[1h30m]" },
		{ "cpu[1y2w3d4h5m6s7ms]", "cpu[382d4h5m6s7ms]" }, { "cpu[1000ms]", "cpu[1s]" },
		{ "cpu offset 5m", "cpu offset 5m" }, { "cpu OFFSET -5m", "cpu offset -5m" },
		{ "cpu[5m] @ start() offset 1d", "cpu[5m] @ start() offset 1d" },
		{ "cpu offset 1d @ end()", "cpu @ end() offset 1d" },
		{ "cpu @ 1609746000", "cpu @ 1609746000.000" }, { "cpu @ -1.5004", "cpu @ -1.500" },
		{ "cpu @ +0x10", "cpu @ 16.000" }, { "cpu @1e3", "cpu @ 1000.000" },
		{ "-cpu @ 1", "-cpu @ 1.000" }, { "cpu @ 5m", "cpu @ 300.000" },
		{ "cpu[300]", "cpu[5m]" }, { "cpu[0x10]", "cpu[16s]" }, { "cpu[1.5]", "cpu[1s500ms]" },
		{ "cpu offset -90", "cpu offset -1m30s" }, { "cpu offset +5m", "cpu offset 5m" },
		{ "cpu offset 0s", "cpu" },
		/* operators */
		{ "1+2*3", "1 + 2 * 3" }, { "(1+2)*3", "(1 + 2) * 3" }, { "a ATAN2 b", "a atan2 b" },
		{ "a==bool b", "a == bool b" }, { "a>=BOOL 1", "a >= bool 1" },
		{ "a+on(x)b", "a + on (x) b" }, { "a + ignoring ( x , y , ) b", "a + ignoring (x, y) b" },
		{ "a*on()group_left b", "a * on () group_left () b" },
		{ "a * on(x) group_right(y) b", "a * on (x) group_right (y) b" },
		{ "a * on(x) group_left (y) (b)", "a * on (x) group_left (y) (b)" },
		{ "a * on(x) (b)", "a * on (x) (b)" },
		{ "a == bool ignoring (on) group_left (by, bool) b",
		  "a == bool ignoring (on) group_left (by, bool) b" },
		{ "a and on(x) b or c unless d", "a and on (x) b or c unless d" },
		{ "-a", "-a" }, { "+a", "+a" }, { "- -a", "--a" }, { "-a^2", "-a ^ 2" },
		/* calls */
		{ "time()", "time()" }, { "topk(5, a)", "topk(5, a)" },
		{ "sum by (job) (a)", "sum by (job) (a)" }, { "sum(a) by (job)", "sum by (job) (a)" },
		{ "SUM BY (job,) (a)", "sum by (job) (a)" }, { "sum without () (a)", "sum without () (a)" },
		{ "merge by (by, on, sum) (cpu[5m])", "merge by (by, on, sum) (cpu[5m])" },
		{ "diff on (job) (a, b)", "diff on (job) (a, b)" },
		{ "diff ignoring (version) (a, b)", "diff ignoring (version) (a, b)" },
		{ "flat by (function) (cpu, {function=~\"encoding/.*\"})",
		  "flat by (function) (cpu, {function=~\"encoding/.*\"})" },
		{ "cum_share(merge by (job) (cpu[5m]), {function=\"json.Marshal\"}) > 0.1",
		  "cum_share(merge by (job) (cpu[5m]), {function=\"json.Marshal\"}) > 0.1" },
		{ "nonesuch(a, 'b', 3)", "nonesuch(a, \"b\", 3)" },
	};

	CHECK_ROWS(rows);
}

TEST(accepts_more)
{
	static const struct row rows[] = {
		/* subqueries */
		{ "up[30m:1m]", "up[30m:1m]" }, { "up[30m:]", "up[30m:]" },
		{ "up [ 30m : 60 ] offset 1h @ 5", "up[30m:1m] @ 5.000 offset 1h" },
		{ "rate(up[5m])[1h:1m] @ end()", "rate(up[5m])[1h:1m] @ end()" },
		{ "max_over_time(avg_over_time(up[5m:30s])[1h:5m] offset -1d)",
		  "max_over_time(avg_over_time(up[5m:30s])[1h:5m] offset -1d)" },
		{ "(a + b)[5m:]", "(a + b)[5m:]" }, { "a + b[5m:]", "a + b[5m:]" },
		/* durations as numbers */
		{ "5m", "5m" }, { "90s", "1m30s" }, { "-5m", "-5m" }, { "0s", "0s" },
		{ "5m * 2 > 1h30m", "5m * 2 > 1h30m" }, { "up > 1ms", "up > 1ms" },
		/* names of any characters */
		{ "{\"my.metric\"}", "{\"my.metric\"}" }, { "{\"up\"}", "up" }, { "{'on'}", "{\"on\"}" },
		{ "{a='b', \"é\", \"k.v\"!~`x`,}", "{\"é\",a=\"b\",\"k.v\"!~\"x\"}" },
		{ "cpu{\"a\"=\"b\"}[5m]", "cpu{a=\"b\"}[5m]" }, { "{\"a b\"}[5m:]", "{\"a b\"}[5m:]" },
		{ "sum by (\"k.v\", \"job\") (a)", "sum by (\"k.v\", job) (a)" },
		{ "a * on (\"k.v\") group_left (\"\\x41\") b", "a * on (\"k.v\") group_left (A) b" },
		{ "sum by (a:b) (c)", "sum by (\"a:b\") (c)" },
		/* blanks and comments */
		{ "# first\n 1 # one\n+ # plus\r\n\t2 # \xe2\x82\xac", "1 + 2" },
		{ "cpu{ # in\n a=\"#no\" # comment\n}", "cpu{a=\"#no\"}" },
	};

	CHECK_ROWS(rows);
}
/* clang-format on */

TEST(refuses)
{
	/* clang-format off */
	static const struct row rows[] = {
		{ "", "1:1: unexpected end of query" },
		{ "  # nothing", "1:1: unexpected end of query" },
		{ "1 +", "1:4: unexpected end of query" },
		{ "1 +\n  ", "1:4: unexpected end of query" },
		{ "1\n+\n*", "3:1: unexpected \"*\"" },
		{ "cpu{job=}", "1:9: unexpected \"}\", expected string" },
		{ "cpu{", "1:5: unexpected end of query, expected string, \"}\" or label name" },
		{ "cpu{,}", "1:5: unexpected \",\", expected string, \"}\" or label name" },
		{ "cpu{a=\"b\" c=\"d\"}", "1:11: unexpected \"c\", expected \",\" or \"}\"" },
		{ "cpu{a=\"b\",,}", "1:11: unexpected \",\", expected string, \"}\" or label name" },
		{ "cpu{a", "1:6: unexpected end of query, expected \"=\", \"!=\", \"=~\" or \"!~\"" },
		{ "cpu{a==\"b\"}", "1:7: unexpected \"=\", expected string" },
		{ "cpu{1=\"b\"}", "1:5: unexpected \"1\", expected string, \"}\" or label name" },
		{ "cpu{a:b=\"c\"}", "1:6: unexpected \":\", expected \"=\", \"!=\", \"=~\" or \"!~\"" },
		{ "{\"a\"}{\"b\"}", "1:6: unexpected \"{\"" },
		{ "a{\"b\"}", "1:3: the name is set twice: \"a\" and \"b\"" },
		{ "{\"a\", \"b\"}", "1:7: the name is set twice: \"a\" and \"b\"" },
		{ "{\"\"}", "1:2: invalid series name \"\"" },
		{ "{\"\\xff\"=\"a\"}", "1:2: invalid label name \"\\xff\"" },
		{ "sum by (\"\") (a)", "1:9: invalid label name \"\"" },
		{ "cpu<a=\"b\"}", "1:10: unexpected \"}\", expected \",\" or \">\"" },
		{ "cpu{a=\"b\">", "1:10: unexpected \">\", expected \",\" or \"}\"" },
		{ "cpu <a=\"b\">", "1:7: unexpected \"=\"" },
		{ "{a=\"b\"}<c=\"d\">", "1:10: unexpected \"=\"" },
		{ "cpu{}{}", "1:6: unexpected \"{\"" },
		{ "cpu{a=~\"(\"}", "1:8: error parsing regexp: missing ): (" },
		{ "a b", "1:3: unexpected \"b\"" },
		{ "(a", "1:3: unexpected end of query" },
		{ "a)", "1:2: unexpected \")\"" },
		{ "sum(a,)", "1:7: unexpected \")\"" },
		{ "sum(a b)", "1:7: unexpected \"b\", expected \")\" or \",\"" },
		{ "sum by a (b)", "1:8: unexpected \"a\", expected \"(\"" },
		{ "sum by (1) (b)", "1:9: unexpected \"1\", expected string, \")\" or label name" },
		{ "sum by (a b) (c)", "1:11: unexpected \"b\", expected \")\" or \",\"" },
		{ "sum by (a) b", "1:12: unexpected \"b\", expected \"(\"" },
		{ "sum by (a) (b) by (c)", "1:16: unexpected \"by\"" },
		{ "cpu:samples(a)", "1:12: unexpected \"(\"" },
		{ "a == bool on b", "1:14: unexpected \"b\", expected \"(\"" },
		{ "a + group_left b", "1:5: unexpected \"group_left\"" },
		{ "a + bool", "1:9: unexpected end of query" },
		{ "1 = 2", "1:3: unexpected \"=\"" },
		{ "1 ! 2", "1:3: unexpected \"!\"" },
		{ "a =~ \"b\"", "1:3: unexpected \"=\"" },
		{ "a $ b", "1:3: unexpected \"$\"" },
		{ "é", "1:1: unexpected \"é\"" },
		{ "\"é\" é", "1:5: unexpected \"é\"" },
		{ "5m1m", "1:1: not a valid duration string: \"5m1m\"" },
		{ "300y", "1:1: duration out of range" },
		{ "1..2", "1:3: unexpected \".2\"" },
		{ "1_000", "1:1: bad number or duration" }, { "1x", "1:1: bad number or duration" },
		{ "0x", "1:1: bad number or duration" }, { "1e", "1:1: bad number or duration" },
		{ "a[5m5]", "1:3: bad number or duration" }, { "a[1.5h]", "1:3: bad number or duration" },
		{ "1e309", "1:1: number out of range: \"1e309\"" },
		{ "0xfffffffffffffffff", "1:1: number out of range: \"0xfffffffffffffffff\"" },
	};
	/* clang-format on */

	CHECK_ROWS(rows);
}

TEST(refuses_modifiers)
{
	/* clang-format off */
	static const struct row rows[] = {
		{ "a[]", "1:3: unexpected \"]\", expected number or duration" },
		{ "a[-5m]", "1:3: unexpected \"-\", expected number or duration" },
		{ "a[b]", "1:3: unexpected \"b\", expected number or duration" },
		{ "a[5m:b]", "1:6: unexpected \"b\", expected number, duration or \"]\"" },
		{ "a[5m:1m:1m]", "1:8: unexpected \":\", expected \"]\"" },
		{ "a[5m:0]", "1:6: duration must be greater than 0" },
		{ "a[0.0001]", "1:3: duration must be greater than 0" },
		{ "a[1e30]", "1:3: duration out of range" }, { "a[NaN]", "1:3: duration out of range" },
		{ "a[5m", "1:5: unexpected end of query, expected \"]\" or \":\"" },
		{ "a[5m1h]", "1:3: not a valid duration string: \"5m1h\"" },
		{ "a[0s]", "1:3: duration must be greater than 0" },
		{ "a[300y]", "1:3: duration out of range" }, { "a[200y]", "1:3: duration out of range" },
		{ "a[5m][5m]", "1:7: a selector has only one window" },
		{ "a offset 1m [5m]", "1:14: a window must come before offset and @" },
		{ "(a)[5m]", "1:5: a window is allowed only directly after a selector; "
			"a subquery has a colon: [5m:]" },
		{ "sum(a)[5m]", "1:8: a window is allowed only directly after a selector; "
			"a subquery has a colon: [5m:]" },
		{ "a offset", "1:9: unexpected end of query, expected \"+\", \"-\", number or duration" },
		{ "a offset 1e30", "1:10: duration out of range" },
		{ "a offset 1m offset 2m", "1:13: offset may not be set twice" },
		{ "1 offset 5m", "1:3: offset is allowed only directly after a selector or a subquery" },
		{ "a @ 1 @ 2", "1:7: @ may not be set twice" },
		{ "a @ start", "1:10: unexpected end of query, expected \"(\"" },
		{ "a @ b", "1:5: unexpected \"b\"" },
		{ "a @ NaN", "1:5: time out of range: \"NaN\"" },
		{ "a @ 1e30", "1:5: time out of range: \"1e30\"" },
		{ "sum(a) @ 1", "1:8: @ is allowed only directly after a selector or a subquery" },
	};
	/* clang-format on */

	CHECK_ROWS(rows);
}

TEST(refuses_strings)
{
	static const struct row rows[] = {
		{ "\"abc", "1:1: unterminated quoted string" },
		{ "'a\nb'", "1:1: unterminated quoted string" },
		{ "\"abc\\", "1:1: unterminated quoted string" },
		{ "`abc", "1:1: unterminated raw string" },
		{ "a{b=\"c", "1:5: unterminated quoted string" },
		{ "\"\\q\"", "1:2: unknown escape sequence" },
		{ "\"\\'\"", "1:2: unknown escape sequence" },
		{ "'a\\\"'", "1:3: unknown escape sequence" },
		{ "\"\\x4\"", "1:2: bad digit in escape sequence" },
		{ "\"\\08\"", "1:2: bad digit in escape sequence" },
		{ "\"\\400\"", "1:2: escape sequence above \\377" },
		{ "\"\\ud800\"", "1:2: escape sequence is not a Unicode character" },
		{ "\"\\U00110000\"", "1:2: escape sequence is not a Unicode character" },
		{ "a\xff", "1:2: query is not UTF-8" },
	};

	CHECK_ROWS(rows);
}

/* "(1 + (2 * 3))": how operators group. */
static void add_grouped(struct buf *out, const struct expr *e)
{
	if (e->kind == EXPR_BINARY) {
		buf_add_char(out, '(');
		add_grouped(out, e->binary.lhs);
		buf_printf(out, " %s ", binary_op_name(e->binary.op));
		add_grouped(out, e->binary.rhs);
		buf_add_char(out, ')');
	} else if (e->kind == EXPR_UNARY) {
		buf_add_cstr(out, e->unary.negative ? "(-" : "(+");
		add_grouped(out, e->unary.arg);
		buf_add_char(out, ')');
	} else {
		expr_print(out, e);
	}
}

TEST(precedence)
{
	static const struct row rows[] = {
		{ "a + b * c ^ d", "(a + (b * (c ^ d)))" },
		{ "a ^ b ^ c", "(a ^ (b ^ c))" },
		{ "a - b - c", "((a - b) - c)" },
		{ "a / b * c % d", "(((a / b) * c) % d)" },
		{ "a * b atan2 c", "((a * b) atan2 c)" },
		{ "a or b and c unless d", "(a or ((b and c) unless d))" },
		{ "a and b or c", "((a and b) or c)" },
		{ "a + b > c and d", "(((a + b) > c) and d)" },
		{ "a < b < c", "((a < b) < c)" },
		{ "a == b >= c", "((a == b) >= c)" },
		{ "-a ^ b", "(-(a ^ b))" },
		{ "-1 ^ 2", "(-(1 ^ 2))" },
		{ "-a * b", "((-a) * b)" },
		{ "-a + b", "((-a) + b)" },
		{ "a ^ -b", "(a ^ (-b))" },
		{ "a ^ -b * c", "((a ^ (-b)) * c)" },
		{ "a - -b", "(a - (-b))" },
		{ "a + on (x) b * on (y) c", "(a + (b * c))" },
	};
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed *q = NULL;
		struct buf b = { 0 };
		struct arena a;

		arena_init(&a, 0);
		REQUIRE_OK(parse_query(&a, str_of(rows[i].text), &q, NULL, &err), &err);
		add_grouped(&b, q->root);
		CHECK_STR(buf_str(&b), rows[i].want);
		buf_release(&b);
		parsed_release(q);
		arena_release(&a);
	}
}

TEST(tree)
{
	const char *text = "sum by (job) (up{env=\"a\"}) - on (job) group_left (pod) "
					   "heap[5m] offset -1h @ 12.5";
	struct parsed *q = NULL;
	const struct expr *e, *l, *r;
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 0);
	REQUIRE_OK(parse_query(&a, str_of(text), &q, NULL, &err), &err);
	e = q->root;
	REQUIRE(e->kind == EXPR_BINARY);
	CHECK_INT(e->at.start, 0);
	CHECK_INT(e->at.end, strlen(text));
	CHECK_INT(e->depth, 3);
	CHECK_INT(e->binary.op, OP_SUB);
	CHECK_INT(e->binary.op_at.start, 27);
	CHECK_INT(e->binary.op_at.end, 28);
	CHECK_INT(e->binary.matching, GROUPING_ON);
	CHECK_INT(e->binary.card, CARD_GROUP_LEFT);
	CHECK_INT(e->binary.labels.n, 1);
	CHECK(name_list_has(e->binary.labels, STR("job")));
	CHECK(name_list_has(e->binary.include, STR("pod")));
	CHECK(!name_list_has(e->binary.include, STR("job")));
	l = e->binary.lhs;
	REQUIRE(l->kind == EXPR_CALL);
	CHECK(l->call.fn == &functions[FN_SUM]);
	CHECK_INT(l->call.grouping, GROUPING_BY);
	CHECK_STR(l->call.labels.v[0], "job");
	CHECK_INT(l->call.args_n, 1);
	CHECK_INT(l->at.end, 26);
	CHECK_INT(l->call.args[0]->at.start, 14);
	CHECK_INT(l->call.args[0]->at.end, 25);
	CHECK_STR(l->call.args[0]->selector.name, "up");
	CHECK_INT(l->call.args[0]->selector.matchers_n, 1);
	r = e->binary.rhs;
	REQUIRE(r->kind == EXPR_SELECTOR);
	CHECK_STR(r->selector.name, "heap");
	CHECK_INT(r->selector.window_ns, 5 * MIN_NS);
	CHECK_INT(r->selector.shift.offset_ns, -60 * MIN_NS);
	CHECK_INT(r->selector.shift.at, AT_TIME);
	CHECK_INT(r->selector.shift.at_ns, INT64_C(12500000000));
	CHECK(q->selectors == l->call.args[0]);
	CHECK(q->selectors->selector.next == r);
	CHECK(r->selector.next == NULL);
	parsed_release(q);
	arena_release(&a);
}

/* n times `open`, the middle, n times `close`. */
static void add_nested(
	struct buf *b, const char *open, const char *middle, const char *close, size_t n)
{
	buf_clear(b);
	for (size_t i = 0; i < n; i++)
		buf_add_cstr(b, open);
	buf_add_cstr(b, middle);
	for (size_t i = 0; i < n; i++)
		buf_add_cstr(b, close);
}

static enum err_code parse_only(struct str text, struct err *err)
{
	struct parsed *q = NULL;
	enum err_code rc;
	struct arena a;

	arena_init(&a, 0);
	rc = parse_query(&a, text, &q, NULL, err);
	if (!rc)
		parsed_release(q);
	arena_release(&a);
	return rc;
}

TEST(limits)
{
	static const struct {
		const char *open, *middle, *close;
		size_t fit;
		const char *msg; /* one more */
	} rows[] = {
		{ "(", "1", ")", 99, "1:202: query nests deeper than 100" },
		{ "-", "a", "", 99, "1:102: query nests deeper than 100" },
		{ "abs(", "a", ")", 99, "1:502: query nests deeper than 100" },
		{ "sum by (a) (", "a", ")", 99, "1:1302: query nests deeper than 100" },
		{ "topk(1,", "a", ")", 99, "1:802: query nests deeper than 100" },
		{ "", "a", "+a", 99, "1:202: query nests deeper than 100" },
		{ "a^", "a", "", 99, "1:202: query nests deeper than 100" },
		{ "a + on (x) group_left (y) ", "a", "", 0, NULL },
		{ "cpu{", "a=\"b\"", ",a=\"b\"", 0, NULL },
	};
	struct buf b = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!rows[i].msg)
			continue;
		add_nested(&b, rows[i].open, rows[i].middle, rows[i].close, rows[i].fit);
		CHECK_OK(parse_only(buf_str(&b), &err), &err);
		add_nested(&b, rows[i].open, rows[i].middle, rows[i].close, rows[i].fit + 1);
		CHECK_ERR(parse_only(buf_str(&b), &err), &err, ERR_LIMIT, rows[i].msg);
	}
	/* The parser's own stack ends before memory does. */
	add_nested(&b, "(", "1", ")", 5000);
	CHECK_ERR(parse_only(buf_str(&b), &err), &err, ERR_LIMIT, "1:640: query nests deeper than 100");
	buf_release(&b);
}

/* `head`, n times `piece` with commas between, `tail`. */
static void add_repeated(
	struct buf *b, const char *head, const char *piece, size_t n, const char *tail)
{
	buf_clear(b);
	buf_add_cstr(b, head);
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_add_char(b, ',');
		buf_add_cstr(b, piece);
	}
	buf_add_cstr(b, tail);
}

TEST(limits_of_lists)
{
	static const struct {
		const char *head, *piece, *tail;
		size_t fit;
		const char *msg;
	} rows[] = {
		{ "a{", "b=\"\"", "}", 64, "1:323: more than 64 matchers" },
		{ "a{", "b=~\"\"", "}", 64, "1:387: more than 64 matchers" },
		{ "f(", "b", ")", 16, "1:35: more than 16 arguments" },
		{ "sum by (", "b", ") (a)", 64, "1:137: more than 64 labels" },
		{ "f(", "a{b=~\"x\",c!~\"y\",d=~\"z\",e=~\"w\"}", ")", 16, NULL },
	};
	struct buf b = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		add_repeated(&b, rows[i].head, rows[i].piece, rows[i].fit, rows[i].tail);
		CHECK_OK(parse_only(buf_str(&b), &err), &err);
		if (!rows[i].msg)
			continue;
		add_repeated(&b, rows[i].head, rows[i].piece, rows[i].fit + 1, rows[i].tail);
		CHECK_ERR(parse_only(buf_str(&b), &err), &err, ERR_LIMIT, rows[i].msg);
	}
	add_repeated(&b, "f(", "a{b=~\"x\",c!~\"y\",d=~\"z\",e=~\"w\",f=~\"v\"}", 16, ")");
	CHECK_ERR(
		parse_only(buf_str(&b), &err), &err, ERR_LIMIT, "1:492: more than 64 regular expressions");
	buf_clear(&b);
	for (size_t i = 0; i < 65537; i++)
		buf_add_char(&b, ' ');
	CHECK_ERR(
		parse_only(buf_str(&b), &err), &err, ERR_LIMIT, "query is 65537 bytes long, limit 65536");
	b.len--;
	CHECK_ERR(parse_only(buf_str(&b), &err), &err, ERR_INVALID, "1:1: unexpected end of query");
	buf_release(&b);
}

TEST(arena_over_budget)
{
	struct parsed *q = NULL;
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 512);
	CHECK_ERR(parse_query(&a, STR("sum by (a, b, c) (cpu{a=~\"b\"})"), &q, NULL, &err), &err,
		ERR_LIMIT, "query needs more memory than its limit of 512 bytes");
	arena_release(&a);
}

TEST(caret)
{
	static const struct row rows[] = {
		{ "cpu{job=}", "cpu{job=}\n        ^ unexpected \"}\", expected string" },
		{ "1 +", "1 +\n   ^ unexpected end of query" },
		{ "\"é\" +\n\t\"é\" é # there\n+ 2", "\t\"é\" é # there\n\t    ^ unexpected \"é\"" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa + aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ! "
		  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
			"aaaaaaaaaaaaaaaaaaaaaa + aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ! "
			"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"
			"                                                            ^ unexpected \"!\"" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct query_error where;
		struct parsed *q = NULL;
		struct buf b = { 0 };
		struct arena a;

		arena_init(&a, 0);
		CHECK_INT(parse_query(&a, str_of(rows[i].text), &q, &where, NULL), ERR_INVALID);
		query_error_print(&b, str_of(rows[i].text), &where);
		CHECK_STR(buf_str(&b), rows[i].want);
		buf_release(&b);
		arena_release(&a);
	}
}

TEST(place_of_error)
{
	struct query_error where;
	struct parsed *q = NULL;
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 0);
	CHECK_ERR(parse_query(&a, STR("sum(\n  'é' nonsense)"), &q, &where, &err), &err, ERR_INVALID,
		"2:7: unexpected \"nonsense\", expected \")\" or \",\"");
	CHECK_INT(where.code, ERR_INVALID);
	CHECK_INT(where.line, 2);
	CHECK_INT(where.column, 7);
	CHECK_INT(where.at.start, 12);
	CHECK_INT(where.at.end, 20);
	CHECK_STR(str_of(where.msg), "unexpected \"nonsense\", expected \")\" or \",\"");
	arena_release(&a);
}

TEST(selectors_alone)
{
	/* clang-format off */
	static const struct {
		const char *text, *msg; /* NULL: fine */
	} rows[] = {
		{ "cpu", NULL }, { "{job=\"a\"}", NULL }, { "cpu:samples<a=~\"b\">", NULL },
		{ "cpu[5m]", "1:1: expected a selector: name{label=\"value\", ...}" },
		{ "cpu offset 5m", "1:1: expected a selector: name{label=\"value\", ...}" },
		{ "cpu @ 5", "1:1: expected a selector: name{label=\"value\", ...}" },
		{ "(cpu)", "1:1: expected a selector: name{label=\"value\", ...}" },
		{ "1", "1:1: expected a selector: name{label=\"value\", ...}" },
		{ "{}", "1:1: selector must contain at least one non-empty matcher" },
		{ "cpu{", "1:5: unexpected end of query, expected string, \"}\" or label name" },
	};
	/* clang-format on */
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed *q = NULL;
		struct arena a;

		arena_init(&a, 0);
		if (rows[i].msg)
			CHECK_ERR(parse_selector(&a, str_of(rows[i].text), &q, NULL, &err), &err, ERR_INVALID,
				rows[i].msg);
		else
			CHECK_OK(parse_selector(&a, str_of(rows[i].text), &q, NULL, &err), &err);
		parsed_release(q);
		arena_release(&a);
	}
}

TEST(numbers_of_text)
{
	struct parsed *q = NULL;
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 0);
	REQUIRE_OK(parse_query(&a, STR("0.1"), &q, NULL, &err), &err);
	CHECK(q->root->number == 0.1);
	REQUIRE_OK(parse_query(&a, STR("-Inf"), &q, NULL, &err), &err);
	CHECK(isinf(q->root->number) && q->root->number < 0);
	CHECK_INT(q->root->at.start, 0);
	REQUIRE_OK(parse_query(&a, STR("nAn"), &q, NULL, &err), &err);
	CHECK(isnan(q->root->number));
	arena_release(&a);
}
