#include "promql/syntax/functions.h"
#include "promql/syntax/parse.h"
#include "tests/check.h"

static void reads_back(const char *text)
{
	struct parsed *q = NULL, *line = NULL, *tall = NULL;
	struct buf b = { 0 };
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 0);
	REQUIRE_OK(parse_query(&a, str_of(text), &q, NULL, &err), &err);
	expr_print(&b, q->root);
	REQUIRE_OK(parse_query(&a, buf_str(&b), &line, NULL, &err), &err);
	if (!expr_eq(q->root, line->root))
		CHECK_FAIL("`%s` printed as `" STR_FMT "` differs", text, STR_ARG(buf_str(&b)));
	buf_clear(&b);
	expr_print_pretty(&b, q->root);
	REQUIRE_OK(parse_query(&a, buf_str(&b), &tall, NULL, &err), &err);
	CHECK(expr_eq(q->root, tall->root));
	buf_release(&b);
	parsed_release(q);
	parsed_release(line);
	parsed_release(tall);
	arena_release(&a);
}

/* parse_test compares the printed text; here reading it back must give the same tree. */
TEST(round_trip)
{
	/* clang-format off */
	static const char *const rows[] = {
		"1", "-1", "-0", "Inf", "-Inf", "NaN", "-NaN", "0.1", "1e21", "1e-7", "123456789.125",
		"1.7976931348623157e308", "5e-324", "0x7fffffffffffffff", "--1", "- - a", "-+-a",
		"'\\x00\\xff\\u202e\"\\\\`'", "`\\\n\"'`", "cpu", "{a='b'}", "cpu{a='\"',b!~`\\d+`}",
		"cpu<job=\"a\">", "a:b:c<d!='e'>[1h] offset -3ms", "cpu @ 0", "cpu @ -0.001",
		"cpu @ start()", "cpu[1y1ms] @ end() offset 1w", "cpu @ 4000000000.1234",
		"sum(a) by (b, b)", "sum without () (a)", "SUM(a)", "diff ignoring () (a, b)",
		"a + on () b", "a + ignoring () b", "a * on (x) group_left (b) (c)",
		"a * on (x) group_right () (c)", "a == bool on (by, on) group_left (bool) b",
		"(a + b) * -c ^ d", "a < b", "a <b{c='d'}", "and and and", "offset offset 5m",
		"start @ start()", "f()", "f(g(1), 'h', {i='j'}, (k))", "-(1)", "(-1) ^ 2", "-1 ^ 2",
		"by + without", "a ^ Inf ^ -Inf ^ b", "a atan2 b % c",
		"focus(cpu, 'a|b')", "hide(show(ignore(a, \"x\"), `\\.go$`), '\\n\"')",
		"show_from(prune_from(cpu[5m], ''), 'y')", "callers(callees(a, 'f'), 'g')",
		"tagfocus(tagignore(a - b, 'bytes=1mb:2mb'), 'k=v,w') * 2",
		"a[1h:5m]", "a[1h:] offset 1d", "(a + 1)[1h:1ms] @ start()", "-a[5m:]", "a ^ b[5m:]",
		"f(g(a[5m])[1h:1m] @ 3 offset -1w)", "a[5m:1m][1h:]", "5m", "-1h30m", "-0s ^ 2", "- 0h",
		"1ms ^ 2d", "total(rate(cpu[5m])) / 1e9 > 1.5e6", "1e6 - 1e-6", "-3e11 ^ -1234567000",
		"{'a.b'}", "{'inf'}", "{'NAN'}", "{'bool'}[5m:]", "{'offset'}", "{'\"', '\\n'='c'}",
		"sum by ('a.b', 'on', \"'\", 'without', 'INF') (c)", "a * on ('é') group_left ('x y') b",
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		reads_back(rows[i]);
}

/* The shorter spelling; a number that people write with digits keeps them. */
TEST(numbers)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "1e9", "1e9" },
		{ "1000000000", "1e9" },
		{ "total(cpu) / 1e9 > 3e11", "total(cpu) / 1e9 > 3e11" },
		{ "5e3", "5000" },
		{ "100000", "100000" },
		{ "1e6", "1e6" },
		{ "1048576", "1048576" },
		{ "1500000", "1.5e6" },
		{ "12345670", "12345670" },
		{ "123456700", "123456700" },
		{ "1234567000", "1234567000" },
		{ "123456700000", "1.234567e11" },
		{ "1000000.5", "1000000.5" },
		{ "1e21", "1e21" },
		{ "1.7976931348623157e308", "1.7976931348623157e308" },
		{ "-1e9", "-1e9" },
		{ "0.0001", "0.0001" },
		{ "0.00001", "1e-5" },
		{ "0.000012345", "1.2345e-5" },
		{ "2.5e-7", "2.5e-7" },
		{ "5e-324", "5e-324" },
		{ "0", "0" },
		{ "-0", "-0" },
		{ "NaN", "NaN" },
		{ "-Inf", "-Inf" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed *q = NULL;
		struct buf b = { 0 };
		struct err err = { 0 };
		struct arena a;

		arena_init(&a, 0);
		REQUIRE_OK(parse_query(&a, str_of(rows[i].text), &q, NULL, &err), &err);
		expr_print(&b, q->root);
		CHECK_STR(buf_str(&b), rows[i].want);
		buf_release(&b);
		parsed_release(q);
		arena_release(&a);
		reads_back(rows[i].text);
	}
}

/* Something of a kind that a function takes. */
static const char *argument(unsigned types)
{
	if (types & ARG_WINDOW)
		return "cpu{a='b'}[5m] offset 1h";
	if (types & VALUE_PROFILES)
		return "cpu{a='b'}";
	if (types & VALUE_COSTS)
		return "total(cpu)";
	if (types & VALUE_FRAMES)
		return "{function=~'f.*'}";
	return types & VALUE_STRING ? "'a \\' \\n b'" : "0.5";
}

TEST(round_trip_of_all_functions)
{
	/* clang-format off */
	static const struct {
		unsigned flag;
		const char *text;
	} groupings[] = {
		{ 0, "" }, { FUNCTION_BY, " by (a, b)" }, { FUNCTION_WITHOUT, " without (a)" },
		{ FUNCTION_BY, " by ()" }, { FUNCTION_ON, " on (a)" },
		{ FUNCTION_ON, " ignoring (a, b)" },
		{ FUNCTION_FRAMES_BY, " by (function, line, a)" },
	};
	/* clang-format on */
	struct buf text = { 0 };
	size_t calls = 0;

	for (size_t f = 0; f < FUNCTIONS; f++)
		for (size_t g = 0; g < sizeof(groupings) / sizeof(groupings[0]); g++) {
			const struct function *fn = &functions[f];
			size_t most = fn->args_max < FUNCTION_ARGS ? fn->args_max : FUNCTION_ARGS;

			if (groupings[g].flag && !(fn->flags & groupings[g].flag))
				continue;
			for (size_t n = fn->args_min; n <= most; n++) {
				buf_clear(&text);
				buf_printf(&text, "%s%s(", fn->name, groupings[g].text);
				for (size_t i = 0; i < n; i++)
					buf_printf(&text, "%s%s", i ? ", " : "", argument(fn->args[i]));
				buf_add_char(&text, ')');
				buf_add_char(&text, '\0');
				reads_back(text.ptr);
				calls++;
			}
		}
	CHECK(calls > FUNCTIONS);
	buf_release(&text);
}

TEST(pretty)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "sum(a)", "sum(a)" },
		{ "topk(5,sum by (job,instance)("
		  "cum_share(merge by (job) (cpu{env=\"production\",region=\"eu-west\"}"
		  "[5m]),{function=\"json.Marshal\"})))",
			"topk(\n"
			"  5,\n"
			"  sum by (job, instance) (\n"
			"    cum_share(\n"
			"      merge by (job) (cpu{env=\"production\",region=\"eu-west\"}[5m]),\n"
			"      {function=\"json.Marshal\"}\n"
			"    )\n"
			"  )\n"
			")" },
		{ "total(cpu{environment=\"production\",region=\"europe\"}) / on (job) group_left (team) "
		  "(total(heap{environment=\"production\",region=\"europe\"}) > 0)",
			"  total(cpu{environment=\"production\",region=\"europe\"})\n"
			"/ on (job) group_left (team)\n"
			"  (total(heap{environment=\"production\",region=\"europe\"}) > 0)" },
		{ "-(total(cpu{environment=\"production\",region=\"europe\"}) + "
		  "total(heap{environment=\"production\",region=\"europe\"}))",
			"-(\n"
			"    total(cpu{environment=\"production\",region=\"europe\"})\n"
			"  +\n"
			"    total(heap{environment=\"production\",region=\"europe\"})\n"
			")" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed *q = NULL;
		struct buf b = { 0 };
		struct err err = { 0 };
		struct arena a;

		arena_init(&a, 0);
		REQUIRE_OK(parse_query(&a, str_of(rows[i].text), &q, NULL, &err), &err);
		expr_print_pretty(&b, q->root);
		CHECK_STR(buf_str(&b), rows[i].want);
		buf_release(&b);
		parsed_release(q);
		arena_release(&a);
	}
}

TEST(equality)
{
	/* clang-format off */
	static const struct {
		const char *a, *b;
		bool eq;
	} rows[] = {
		{ "1", "1.0", true }, { "1", "2", false }, { "NaN", "-NaN", true }, { "0", "-0", false },
		{ "'a'", "\"a\"", true }, { "'a'", "a", false }, { "a", "a{}", true },
		{ "a", "a[5m]", false }, { "a[60s]", "a[1m]", true }, { "a", "a offset 1s", false },
		{ "a @ 1", "a @ 2", false }, { "a @ start()", "a @ end()", false },
		{ "a{b='c'}", "a{b!='c'}", false }, { "a{b='c'}", "a{b='d'}", false },
		{ "a{b='c'}", "a{d='c'}", false }, { "a<b='c'>", "a{b='c',}", true },
		{ "a + b", "a - b", false }, { "a + b", "a + c", false }, { "a + b", "c + b", false },
		{ "a + on (x) b", "a + on (y) b", false }, { "a + on () b", "a + b", false },
		{ "a > b", "a > bool b", false }, { "a + on(x) group_left b", "a + on(x) b", false },
		{ "a + on(x) group_left(c) b", "a + on(x) group_left(d) b", false },
		{ "f(a)", "g(a)", false },
		{ "SUM(a)", "sum(a)", true },
		{ "f(a)", "f(a, a)", false },
		{ "sum(a)", "sum by () (a)", false },
		{ "sum by (a) (b)", "sum(b) by (a)", true }, { "(a)", "a", false }, { "-a", "+a", false },
		{ "a[5m:]", "a[5m]", false }, { "a[5m:]", "a[5m:1m]", false }, { "5m", "300", true },
		{ "a[5m:60]", "a[300:1m]", true }, { "a[5m:] @ 1", "a[5m:]", false },
		{ "{'a'}", "a", true }, { "{'a', 'b'='c'}", "a{b='c'}", true },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed *x = NULL, *y = NULL;
		struct err err = { 0 };
		struct arena a;

		arena_init(&a, 0);
		REQUIRE_OK(parse_query(&a, str_of(rows[i].a), &x, NULL, &err), &err);
		REQUIRE_OK(parse_query(&a, str_of(rows[i].b), &y, NULL, &err), &err);
		if (expr_eq(x->root, y->root) != rows[i].eq || expr_eq(y->root, x->root) != rows[i].eq)
			CHECK_FAIL("`%s` and `%s` are%s equal", rows[i].a, rows[i].b, rows[i].eq ? " not" : "");
		parsed_release(x);
		parsed_release(y);
		arena_release(&a);
	}
}
