/* Alloy's language: what is parsed, as text again, and what is refused, with its place. */
#include "cmd/epitool/convert/alloy.h"

#include "base/quote.h"
#include "tests/check.h"

static void show_expr(struct buf *out, const struct alloy_expr *e)
{
	static const char *const kinds[] = { [ALLOY_LIST] = "list",
		[ALLOY_OBJECT] = "object",
		[ALLOY_CALL] = "call",
		[ALLOY_ACCESS] = "access",
		[ALLOY_INDEX] = "index" };

	if (e->key.len)
		buf_printf(out, STR_FMT "=", STR_ARG(e->key));
	if (e->kind == ALLOY_STRING) {
		buf_add_quoted(out, e->text);
		return;
	}
	if (e->kind != ALLOY_OPERATOR && (e->kind < ALLOY_LIST || e->kind == ALLOY_NAME)) {
		buf_add_str(out, e->text);
		return;
	}
	buf_add_char(out, '(');
	if (e->kind == ALLOY_OPERATOR)
		buf_add_str(out, e->text);
	else
		buf_add_cstr(out, kinds[e->kind]);
	if (e->kind == ALLOY_ACCESS)
		buf_printf(out, " ." STR_FMT, STR_ARG(e->text));
	for (const struct alloy_expr *c = e->child; c; c = c->next) {
		buf_add_char(out, ' ');
		show_expr(out, c);
	}
	buf_add_char(out, ')');
}

static void show(struct buf *out, const struct alloy_statement *s)
{
	for (; s; s = s->next) {
		if (s->comment.len)
			buf_printf(out, "<" STR_FMT ">", STR_ARG(s->comment));
		buf_add_str(out, s->name);
		if (s->label.len)
			buf_printf(out, " '" STR_FMT "'", STR_ARG(s->label));
		if (s->value) {
			buf_add_cstr(out, "=");
			show_expr(out, s->value);
		} else {
			buf_add_char(out, '{');
			show(out, s->child);
			buf_add_char(out, '}');
		}
		if (s->next)
			buf_add_char(out, ';');
	}
}

/* clang-format off */
static const char *const parsed[][2] = {
	{ "", "" },
	{ "\n// nothing\n", "" },
	{ "a = 1", "a=1" },
	{ "a = 1\nb = -2.5e-3\r\n", "a=1;b=(- 2.5e-3)" },
	{ "a.b.c \"x\" {\n}\nd { }\ne { f = true }", "a.b.c 'x'{};d{};e{f=true}" },
	{ "a = \"\\t\\\"\\u00e9\\x41\\101\"\nb = `c\\d\n\"e\"`",
	  "a=\"\\t\\\"\u00e9AA\";b=\"c\\\\d\\n\\\"e\\\"\"" },
	{ "a = [\n\t1,\n\t[],\n]\nb = {\n\tc = null, \"d e\" = {},\n}",
	  "a=(list 1 (list));b=(object c=null d e=(object))" },
	{ "a = x.y.z\nb = f(x, 2).g[\"h\"]\nc = f()",
	  "a=x.y.z;b=(index (access .g (call f x 2)) \"h\");c=(call f)" },
	{ "a = 1 + 2 * 3 ^ 4 == 5 && !b || c",
	  "a=(|| (&& (== (+ 1 (* 2 (^ 3 4))) 5) (! b)) c)" },
	{ "a = (1 + 2) * 3\nb = 1 +\n\n\t2", "a=(* (+ 1 2) 3);b=(+ 1 2)" },
	{ "a = f(\n\t1,\n\t2,\n)", "a=(call f 1 2)" },
	{ "// one\n// two\na = 1 /* three */\n/* four\n   five */ b {\n\t// six\n\tc = 2\n}",
	  "<one\ntwo>a=1;<three\nfour\nfive>b{<six>c=2}" },
	{ "a = sys.env(\"X\")\n", "a=(call sys.env \"X\")" },
};

static const char *const refused[][2] = {
	{ "scrape_configs: []\n", "f:1:15: a character that the language does not have" },
	{ "a", "f:1:2: expected \"=\", a label or \"{\", found the end of the file" },
	{ "a \"b\"\n", "f:2:1: expected \"{\", found the end of the line" },
	{ "a = \n", "f:2:1: expected a value, found the end of the line" },
	{ "a = 1 b = 2", "f:1:7: expected the end of the line, found \"b\"" },
	{ "a {", "f:1:4: expected \"}\", found the end of the file" },
	{ "}", "f:1:1: \"}\" closes nothing" },
	{ "a = [1 2]", "f:1:8: expected \",\" or a closing bracket, found \"2\"" },
	{ "a = {1 = 2}", "f:1:6: expected a key, found \"1\"" },
	{ "a = \"b\n\"", "f:1:5: a string is not closed" },
	{ "a = `b\n", "f:1:5: a string is not closed" },
	{ "a = \"\\q\"", "f:1:5: a string has a wrong escape" },
	{ "a = \"\\xff\"", "f:1:5: a string is not UTF-8" },
	{ "a = \"\\ud800\"", "f:1:5: a string has a wrong escape" },
	{ "/* a", "f:1:5: a comment is not closed" },
	{ "a. = 1", "f:1:4: expected a name, found \"=\"" },
	{ "a = b.", "f:1:7: expected a name, found the end of the file" },
	{ "\xff", "f:1:1: file is not UTF-8" },
};
/* clang-format on */

TEST(parsed)
{
	for (size_t i = 0; i < sizeof(parsed) / sizeof(parsed[0]); i++) {
		struct alloy_statement *s;
		struct buf out = { 0 };
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		if (alloy_parse(&a, "f", str_of(parsed[i][0]), &s, &err)) {
			CHECK_FAIL("row %zu: %s", i, err.msg);
		} else {
			show(&out, s);
			if (!str_is(buf_str(&out), parsed[i][1]))
				CHECK_FAIL("row %zu: %.*s, want %s", i, (int)out.len, out.ptr, parsed[i][1]);
		}
		buf_release(&out);
		arena_release(&a);
	}
}

TEST(refused)
{
	struct alloy_statement *s;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		CHECK_ERR(alloy_parse(&a, "f", str_of(refused[i][0]), &s, &err), &err, ERR_INVALID,
			refused[i][1]);
	arena_release(&a);
}

/* Text that is repeated n times, and the limit that it passes. */
TEST(limits)
{
	static const struct {
		const char *begin, *repeated;
		size_t n;
		const char *want;
	} rows[] = {
		{ "a = ", "[", 100, "f:1:69: nested too deeply, limit 64 levels" },
		{ "a = ", "-", 100, "f:1:68: nested too deeply, limit 64 levels" },
		{ "", "a {\n", 100, "f:65:3: nested too deeply, limit 64 levels" },
		{ "a = 1", "+1", 100, "f:1:134: an expression is too long" },
		{ "a = 1", "[1]", 100, "f:1:198: an expression is too long" },
		{ "", "a = 1\n", 30000, "f:25001:1: more than 50000 expressions and statements" },
		{ "", "#", (1u << 20) + 1, "f:1:1: file is 1048577 bytes, limit 1048576" },
	};
	struct alloy_statement *s;
	struct arena a;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf text = { 0 };

		arena_init(&a, 0);
		buf_add_cstr(&text, rows[i].begin);
		for (size_t k = 0; k < rows[i].n; k++)
			buf_add_cstr(&text, rows[i].repeated);
		CHECK_ERR(alloy_parse(&a, "f", buf_str(&text), &s, &err), &err, ERR_LIMIT, rows[i].want);
		buf_release(&text);
		arena_release(&a);
	}
}
