/*
 * Runs the scripts in tests/promql/scripts and the examples of promql/LANGUAGE.md, each in several
 * ways; and sees that nothing of the language is left out of them.
 */
#include "tests/promql/script.h"

#include <glob.h>
#include <unistd.h>

#include "promql/syntax/functions.h"
#include "promql/syntax/parse.h"
#include "tests/check.h"

#define DOCUMENT "promql/LANGUAGE.md"

static void run_file(const char *path, enum script_way way)
{
	static const char *const ways[] = { "in the head", "after a restart", "in blocks", "in a union",
		"in a union of blocks" };
	struct script s;

	if (!script_read(&s, path))
		CHECK_FAIL("cannot read %s", path);
	else
		script_run(&s, way);
	if (s.faults > 0)
		CHECK_FAIL("%zu faults %s\n" STR_FMT, s.faults, ways[way], STR_ARG(buf_str(&s.report)));
	if (s.evaluated == 0)
		CHECK_FAIL("%s asks nothing", path);
	script_close(&s);
}

static void each_file(void (*fn)(const char *path, void *ctx), void *ctx)
{
	glob_t found = { 0 };

	if (glob("tests/promql/scripts/*.test", 0, NULL, &found) || found.gl_pathc == 0)
		CHECK_FAIL("no scripts: is this the top of the tree?");
	for (size_t i = 0; i < found.gl_pathc; i++)
		fn(found.gl_pathv[i], ctx);
	globfree(&found);
}

struct turn {
	enum script_way way;
	unsigned n;
};

/* In short, a union has every other script in its heads, and the others in blocks. */
static void run_one(const char *path, void *ctx)
{
	struct turn *t = ctx;
	bool is_odd = t->n++ % 2;

	if (!check_is_short() || t->way < SCRIPT_IN_UNION || is_odd == (t->way == SCRIPT_IN_UNION))
		run_file(path, t->way);
}

static void run_all(enum script_way way)
{
	struct turn t = { way, 0 };

	each_file(run_one, &t);
	run_file(DOCUMENT, way);
}

TEST(in_the_head)
{
	run_all(SCRIPT_IN_HEAD);
}

TEST(after_a_restart)
{
	run_all(SCRIPT_RESTARTED);
}

TEST(in_blocks)
{
	run_all(SCRIPT_IN_BLOCKS);
}

TEST(in_a_union)
{
	run_all(SCRIPT_IN_UNION);
}

TEST(in_a_union_of_blocks)
{
	run_all(SCRIPT_IN_UNION_OF_BLOCKS);
}

/* ---- nothing is left out ---- */

struct used {
	bool functions[FUNCTIONS], operators[OP_UNLESS + 1];
};

static void walk(struct used *u, const struct expr *e)
{
	e = expr_strip(e);
	if (e->kind == EXPR_UNARY)
		walk(u, e->unary.arg);
	if (e->kind == EXPR_SUBQUERY)
		walk(u, e->subquery.arg);
	if (e->kind == EXPR_BINARY) {
		u->operators[e->binary.op] = true;
		walk(u, e->binary.lhs);
		walk(u, e->binary.rhs);
	}
	if (e->kind == EXPR_CALL && e->call.fn) {
		u->functions[e->call.fn->id] = true;
		for (size_t i = 0; i < e->call.args_n; i++)
			walk(u, e->call.args[i]);
	}
}

static void note_query(void *ctx, struct str query)
{
	struct parsed *parsed = NULL;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	if (!parse_query(&a, query, &parsed, NULL, &err))
		walk(ctx, parsed->root);
	parsed_release(parsed);
	arena_release(&a);
}

static void note_file(const char *path, void *ctx)
{
	struct script s;

	if (script_read(&s, path))
		script_queries(&s, note_query, ctx);
	script_close(&s);
}

TEST(every_function_and_operator_is_in_a_script)
{
	struct used u = { 0 };

	each_file(note_file, &u);
	for (size_t i = 0; i < FUNCTIONS; i++)
		if (!u.functions[i])
			CHECK_FAIL("%s() is in no script", functions[i].name);
	for (unsigned i = 0; i <= OP_UNLESS; i++)
		if (!u.operators[i])
			CHECK_FAIL("%s is in no script", binary_op_name((enum binary_op)i));
}

TEST(every_function_and_operator_is_documented)
{
	struct used u = { 0 };
	struct script s;
	struct buf want = { 0 };

	note_file(DOCUMENT, &u);
	REQUIRE(script_read(&s, DOCUMENT));
	for (size_t i = 0; i < FUNCTIONS; i++) {
		buf_clear(&want);
		buf_printf(&want, "`%s`", functions[i].usage);
		if (str_find(buf_str(&s.text), buf_str(&want)) < 0)
			CHECK_FAIL("%s does not say " STR_FMT, DOCUMENT, STR_ARG(buf_str(&want)));
		if (!u.functions[i])
			CHECK_FAIL("%s has no example of %s()", DOCUMENT, functions[i].name);
	}
	for (unsigned i = 0; i <= OP_UNLESS; i++)
		if (!u.operators[i])
			CHECK_FAIL("%s has no example of %s", DOCUMENT, binary_op_name((enum binary_op)i));
	buf_release(&want);
	script_close(&s);
}

/* ---- the runner itself: a wrong script fails ---- */

static const struct {
	const char *text, *want;
} wrong[] = {
	{ "eval instant at 1s 1\n\t2\n",
		":1: eval instant at 1s 1\n  expected\n    2\n  got\n    1\n" },
	{ "eval instant at 1s vector(1)\n\t{} 1\n\t{} 1\n",
		":1: eval instant at 1s vector(1)\n  expected\n    {} 1\n    {} 1\n  got\n    {} 1\n" },
	{ "\n# nothing\neval_fail instant at 1s 1\n\tno\n",
		":3: eval_fail instant at 1s 1\n  does not fail\n" },
	{ "eval_fail instant at 1s 1 +\n\tno\n",
		":1: eval_fail instant at 1s 1 +\n  expected\n    no\n  got\n"
		"    1:4: unexpected end of query\n" },
	{ "eval instant at 1s 1 +\n",
		":1: eval instant at 1s 1 +\n  fails: 1:4: unexpected end of query\n" },
	{ "load 10s\n\tgoroutine{job=\"a\"}\n\t\tmain;f 3\neval instant at 10s goroutine\n"
	  "\tgoroutine{job=\"a\"} 3 count\n\t\tmain;g 3\n",
		":4: eval instant at 10s goroutine\n  expected\n    goroutine{job=\"a\"} 3 count\n"
		"        main;g 3\n  got\n    goroutine{job=\"a\"} 3 count\n        main;f 3\n" },
	{ "load 10s\n\tup 1 2y3\n", ":2: no x and how often\n" },
	{ "load 10s\n\tthing{}\n\t\tmain 3\n", ":2: no types of samples: \n" },
	{ "clear size=3\n", ":1: no option: size=3\n" },
	{ "hello\n",
		":1: eval[_fail|_ordered] instant at T | span from A to B | range from A to B step S\n" },
};

TEST(wrong_scripts_fail)
{
	char path[] = "/tmp/epi-wrong-XXXXXX";
	int fd = mkstemp(path);
	struct script s;
	FILE *f;

	REQUIRE(fd >= 0 && (f = fdopen(fd, "w")));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		rewind(f);
		CHECK(ftruncate(fd, 0) == 0);
		fputs(wrong[i].text, f);
		fflush(f);
		if (script_read(&s, path))
			script_run(&s, SCRIPT_IN_HEAD);
		if (!str_has_prefix(buf_str(&s.report), str_of(path)) ||
			!str_is((struct str){ s.report.ptr + strlen(path), s.report.len - strlen(path) },
				wrong[i].want))
			CHECK_FAIL("%s\n    is   " STR_FMT "\n    want %s", wrong[i].text,
				STR_ARG(buf_str(&s.report)), wrong[i].want);
		script_close(&s);
	}
	fclose(f);
	unlink(path);
}
