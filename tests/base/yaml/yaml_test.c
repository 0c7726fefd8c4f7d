#include "base/yaml/yaml.h"
#include "tests/check.h"

static struct arena arena;

static enum err_code parse(struct str text, struct yaml_node **out, struct err *err)
{
	arena_release(&arena);
	arena_init(&arena, 256u << 20);
	return yaml_parse(&arena, "f.yml", text, out, err);
}

/* The tree as text: positions and kinds, one line. */
static void show(struct buf *b, const struct yaml_node *n)
{
	const struct yaml_node *c;

	buf_printf(b, "%u:%u", n->line, n->column);
	if (n->kind == YAML_SCALAR) {
		buf_printf(b, n->plain ? "=%.*s" : "='%.*s'", STR_ARG(n->text));
		return;
	}
	buf_printf(b, n->kind == YAML_SEQUENCE ? "[%zu" : "{%zu", n->n);
	for (c = n->child; c; c = c->next) {
		buf_add_char(b, ' ');
		if (c->key) {
			show(b, c->key);
			buf_add_char(b, ' ');
		}
		show(b, c);
	}
	buf_add_char(b, n->kind == YAML_SEQUENCE ? ']' : '}');
}

TEST(documents)
{
	/* clang-format off */
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "1:1=" },
		{ "# nothing\n", "1:1=" },
		{ "a", "1:1=a" },
		{ "a: 1\nb:\n  - x\n  - 'y'\n", "1:1{2 1:1=a 1:4=1 2:1=b 3:3[2 3:5=x 4:5='y']}" },
		{ "{a: [], b: {}, c: ~}", "1:1{3 1:2=a 1:5[0] 1:9=b 1:12{0} 1:16=c 1:19=~}" },
		{ "a: |\n  x\n  y\n", "1:1{1 1:1=a 1:4='x\ny\n'}" },
		{ "a: \"\\u00e9\\t\"", "1:1{1 1:1=a 1:4='\xc3\xa9\t'}" },
		{ "%YAML 1.1\n---\na: 1\n", "3:1{1 3:1=a 3:4=1}" },
		{ "a: !!str 1\nb: !!int \"2\"\nc: ! 3", "1:1{3 1:1=a 1:4='1' 2:1=b 2:4=2 3:1=c 3:4='3'}" },
		{ "a: &x 1\nb: *x\n", "1:1{2 1:1=a 1:4=1 2:1=b 1:4=1}" },
		{ "a: &x [1, 2]\nb: *x\n", "1:1{2 1:1=a 1:4[2 1:8=1 1:11=2] 2:1=b 1:4[2 1:8=1 1:11=2]}" },
		{ "a: &x 1\nb: &x 2\nc: *x\n", "1:1{3 1:1=a 1:4=1 2:1=b 2:4=2 3:1=c 2:4=2}" },
		{ "a: &x [&x 1]\nb: *x\n", "1:1{2 1:1=a 1:4[1 1:8=1] 2:1=b 1:8=1}" },
		{ "&k a: 1\nb: *k\n", "1:1{2 1:1=a 1:7=1 2:1=b 1:1=a}" },
		{ "? a\n: b\n", "1:1{1 1:3=a 2:3=b}" },
		{ "\xef\xbb\xbf" "a: 1", "1:1{1 1:1=a 1:4=1}" },
	};
	/* clang-format on */
	struct yaml_node *n;
	struct buf b = { 0 };
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&b);
		CHECK_OK(parse(str_of(rows[i].text), &n, &err), &err);
		if (err.msg[0])
			continue;
		show(&b, n);
		CHECK_STR(buf_str(&b), rows[i].want);
	}
	buf_release(&b);
	arena_release(&arena);
}

TEST(refused)
{
	static const struct {
		const char *text;
		enum err_code code;
		const char *want;
	} rows[] = {
		{ "a: 1\na: 2\n", ERR_INVALID, "f.yml:2:1: mapping key \"a\" already defined at line 1" },
		{ "a: 1\n'a': 2\n", ERR_INVALID, "f.yml:2:1: mapping key \"a\" already defined at line 1" },
		{ "{1: ,2: ,3: ,4: ,5: ,6: ,7: ,8: ,9: ,\n3: }", ERR_INVALID,
			"f.yml:2:1: mapping key \"3\" already defined at line 1" },
		{ "a: 1\n---\nb: 1\n", ERR_INVALID, "f.yml:2:1: expected one document" },
		{ "---\n---\n", ERR_INVALID, "f.yml:2:1: expected one document" },
		{ "a: *x\n", ERR_INVALID, "f.yml:1:4: unknown anchor \"x\" referenced" },
		{ "a: &x [1, *x]\n", ERR_INVALID, "f.yml:1:11: anchor \"x\" contains itself" },
		{ "&x a: *x\nb: &y {c: *y}", ERR_INVALID, "f.yml:2:11: anchor \"y\" contains itself" },
		{ "[a]: 1\n", ERR_INVALID, "f.yml:1:1: a mapping's key must be a scalar" },
		{ "a: &x [1]\n*x : 1\n", ERR_INVALID, "f.yml:2:1: a mapping's key must be a scalar" },
		{ "a: !!binary aGk=\n", ERR_INVALID,
			"f.yml:1:4: tag tag:yaml.org,2002:binary is not known here" },
		{ "a: !x 1\n", ERR_INVALID, "f.yml:1:4: tag !x is not known here" },
		{ "a: !!seq {}\n", ERR_INVALID, "f.yml:1:4: tag tag:yaml.org,2002:seq is not known here" },
		{ "a: b: c\n", ERR_INVALID, "f.yml:1:5: mapping values are not allowed in this context" },
		{ "a: [1\n", ERR_INVALID,
			"f.yml:2:1: did not find expected ',' or ']' "
			"(while parsing a flow sequence at 1:4)" },
		{ "a:\n\t- b\n", ERR_INVALID,
			"f.yml:2:1: found character that cannot start any token "
			"(while scanning for the next token at 2:1)" },
		{ "a: 1\nb: \xff\n", ERR_INVALID, "f.yml:2:4: invalid leading UTF-8 octet" },
		{ "a: \x01\n", ERR_INVALID, "f.yml:1:4: control characters are not allowed" },
	};
	struct yaml_node *n;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(parse(str_of(rows[i].text), &n, &err), &err, rows[i].code, rows[i].want);
	arena_release(&arena);
}

static struct str repeat(struct buf *b, const char *before, const char *unit, size_t bytes)
{
	buf_clear(b);
	buf_add_cstr(b, before);
	while (b->len + strlen(unit) <= bytes)
		buf_add_cstr(b, unit);
	return buf_str(b);
}

/*
 * Each of these is a megabyte that costs libyaml minutes to hours when it is read to its end. The
 * place of the error shows that reading stopped where the limit was passed.
 */
TEST(deep_nesting_is_refused_where_it_begins)
{
	static const struct {
		const char *before, *unit, *want;
	} rows[] = {
		{ "", "[", "f.yml:1:65: nested too deeply, limit 64 levels" },
		{ "", "{", "f.yml:1:2: a mapping's key must be a scalar" },
		{ "", "{a: ", "f.yml:1:254: nested too deeply, limit 64 levels" },
		{ "", "[\n", "f.yml:65:1: nested too deeply, limit 64 levels" },
		{ "", "- ", "f.yml:1:129: nested too deeply, limit 64 levels" },
		{ "", "[{a: ", "f.yml:1:158: nested too deeply, limit 64 levels" },
		{ "x:\n- y\n- [[[]]]\n- ", "[[a], ", "f.yml:4:365: nested too deeply, limit 64 levels" },
		{ "", "%TAG !a! x\n", "f.yml:17:1: more than 16 directives" },
		{ "a: 1\n...\n", "%TAG !a! x\n", "f.yml:19:1: more than 16 directives" },
	};
	struct buf b = { 0 };
	struct yaml_node *n;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str text = repeat(&b, rows[i].before, rows[i].unit, YAML_FILE_BYTES_MAX);
		enum err_code want = strstr(rows[i].want, "scalar") ? ERR_INVALID : ERR_LIMIT;

		CHECK_ERR(parse(text, &n, &err), &err, want, rows[i].want);
	}
	repeat(&b, "", "[", YAML_DEPTH_MAX);
	for (size_t i = 0; i < YAML_DEPTH_MAX; i++)
		buf_add_char(&b, ']');
	CHECK_OK(parse(buf_str(&b), &n, &err), &err);
	buf_release(&b);
	arena_release(&arena);
}

TEST(size_and_aliases_are_bounded)
{
	struct buf b = { 0 };
	struct yaml_node *n;
	struct err err;

	repeat(&b, "", "#", YAML_FILE_BYTES_MAX);
	CHECK_OK(parse(buf_str(&b), &n, &err), &err);
	buf_add_char(&b, '#');
	CHECK_ERR(parse(buf_str(&b), &n, &err), &err, ERR_LIMIT,
		"f.yml:1:1: file is 1048577 bytes, limit 1048576");

	/* nine lists of ten aliases each, one of the other: 10^9 nodes when walked */
	buf_clear(&b);
	buf_add_cstr(&b, "a0: &a0 [x]\n");
	for (int i = 1; i < 10; i++) {
		buf_printf(&b, "a%d: &a%d [", i, i);
		for (int k = 0; k < 10; k++)
			buf_printf(&b, "*a%d,", i - 1);
		buf_add_cstr(&b, "]\n");
	}
	CHECK_ERR(parse(buf_str(&b), &n, &err), &err, ERR_LIMIT,
		"f.yml:7:10: more than 400000 nodes, aliases expanded");
	CHECK(arena.used_bytes < 64u << 10);

	/* each line is one level deeper through its alias */
	buf_clear(&b);
	buf_add_cstr(&b, "a0: &a0 x\n");
	for (int i = 1; i < 80; i++)
		buf_printf(&b, "a%d: &a%d [*a%d]\n", i, i, i - 1);
	CHECK_ERR(parse(buf_str(&b), &n, &err), &err, ERR_LIMIT,
		"f.yml:64:12: nested too deeply, limit 64 levels");

	repeat(&b, "", "-\n", YAML_FILE_BYTES_MAX);
	CHECK_ERR(parse(buf_str(&b), &n, &err), &err, ERR_LIMIT,
		"f.yml:400000:2: more than 400000 nodes, aliases expanded");

	/* many keys and many anchors are found by table, not by comparing all pairs */
	buf_clear(&b);
	for (int i = 0; i < 60000; i++)
		buf_printf(&b, "k%d: &k%d\n", i, i);
	CHECK_OK(parse(buf_str(&b), &n, &err), &err);
	CHECK_INT(n->n, 60000);
	buf_add_cstr(&b, "k7: *k9\n");
	CHECK_ERR(parse(buf_str(&b), &n, &err), &err, ERR_INVALID,
		"f.yml:60001:1: mapping key \"k7\" already defined at line 8");
	buf_release(&b);
	arena_release(&arena);
}

TEST(an_arena_over_its_budget_ends_the_parse)
{
	struct yaml_node *n;
	struct arena small;
	struct err err;

	arena_init(&small, 1000);
	CHECK_ERR(
		yaml_parse(&small, "f.yml", STR("[a, b, c, d, e, f, g, h, i, j, k, l, m, n]"), &n, &err),
			&err, ERR_LIMIT, "f.yml needs more memory than its limit of 1000 bytes");
	arena_release(&small);
}

TEST(get_null_and_errors)
{
	struct yaml_node *n;
	struct err err;

	REQUIRE_OK(parse(STR("a: ~\nb: 'null'\nc: null\nd:\n  e: 1\n"), &n, &err), &err);
	CHECK(yaml_is_null(yaml_get(n, "a")));
	CHECK(!yaml_is_null(yaml_get(n, "b")));
	CHECK(yaml_is_null(yaml_get(n, "c")));
	CHECK(yaml_is_null(yaml_get(n, "none")));
	CHECK(yaml_get(yaml_get(n, "a"), "x") == NULL);
	CHECK_ERR(yaml_err(yaml_get(yaml_get(n, "d"), "e"), &err, ERR_LIMIT, "%d is too much", 1), &err,
		ERR_LIMIT, "f.yml:5:6: 1 is too much");
	CHECK_ERR(yaml_err(NULL, &err, ERR_INVALID, "no place"), &err, ERR_INVALID, "no place");
	arena_release(&arena);
}

TEST(tags)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "abc", "!!str" },
		{ "'1'", "!!str" },
		{ "1", "!!int" },
		{ "-0x1F", "!!int" },
		{ "010", "!!int" },
		{ "08", "!!float" },
		{ "1_000", "!!int" },
		{ "1.5", "!!float" },
		{ "1e3", "!!float" },
		{ ".inf", "!!float" },
		{ "-.INF", "!!float" },
		{ ".nan", "!!float" },
		{ "inf", "!!str" },
		{ "nan", "!!str" },
		{ "1s", "!!str" },
		{ "yes", "!!bool" },
		{ "Off", "!!bool" },
		{ "~", "!!null" },
		{ "", "!!null" },
		{ "[]", "!!seq" },
		{ "{}", "!!map" },
		{ "+", "!!str" },
		{ ".", "!!str" },
		{ "18446744073709551616", "!!float" },
		{ "1.2.3.4", "!!str" },
	};
	struct yaml_node *n;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_OK(parse(str_of(rows[i].text), &n, &err), &err);
		if (strcmp(yaml_tag(n), rows[i].want) != 0)
			CHECK_FAIL("%s is %s, want %s", rows[i].text, yaml_tag(n), rows[i].want);
	}
	arena_release(&arena);
}

static enum yaml_shown shown(const struct yaml_node *mapping, const struct yaml_node *value)
{
	if (str_is(value->key->text, "password") || str_is(value->key->text, "keys") ||
		(mapping->key && str_is(mapping->key->text, "params")))
		return YAML_HIDDEN;
	return str_has_prefix(value->key->text, STR("url")) ? YAML_URL : YAML_SHOWN;
}

TEST(print)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "null\n" },
		{ "{}", "{}\n" },
		{ "a: 1", "a: 1\n" },
		{ "a: '1'\nb: 'x'\nc: \"yes\"\nd: ''\n", "a: \"1\"\nb: x\nc: \"yes\"\nd: \"\"\n" },
		{ "a: {b: [c, {d: e, f: ~}, [g, h], []], i: {}}",
			"a:\n  b:\n  - c\n  - d: e\n    f: null\n  - - g\n    - h\n  - []\n  i: {}\n" },
		{ "a: |\n  x\n  y\n", "a: \"x\\ny\\n\"\n" },
		{ "a: 'x: y'\nb: 'x #y'\nc: '#'\nd: \"\\e\\\\\"\ne: '-1x'\nf: '- a'\ng: 'a:'\n",
			"a: \"x: y\"\nb: \"x #y\"\nc: \"#\"\nd: \"\\x1b\\\\\"\ne: -1x\nf: \"- a\"\ng: "
			"\"a:\"\n" },
		{ "a: \"\\u2028\\u0085\\ufeff\xc3\xa9\"", "a: \"\\u2028\\u0085\\ufeff\xc3\xa9\"\n" },
		{ "password: hunter2\nx: [{password: ~}, {keys: [a, b]}]",
			"password: <secret>\nx:\n- password: null\n- keys: [<secret>]\n" },
		{ "params: {a: [x], b: y}\nurl: http://u:p@h?c=d\n",
			"params:\n  a: [<secret>]\n  b: <secret>\nurl: http://xxxxx@h?c=xxxxx\n" },
		{ "urls: [p@h, 'h:1', [q@h]]\nurl: ~\n",
			"urls:\n- xxxxx@h\n- h:1\n- - xxxxx@h\nurl: null\n" },
		{ "a: &x [1]\nb: *x\n", "a:\n- 1\nb:\n- 1\n" },
		{ "null: ~\n~: null\n? \n: a\n", "null: null\n~: null\n\"\": a\n" },
	};
	struct yaml_node *n;
	struct buf b = { 0 };
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&b);
		CHECK_OK(parse(str_of(rows[i].text), &n, &err), &err);
		yaml_print(&b, n, shown);
		CHECK_STR(buf_str(&b), rows[i].want);
	}
	repeat(&b, "", "k", 2000); /* longer than a key before ":" may be */
	buf_add_cstr(&b, "\n: [v]\n");
	memcpy(b.ptr, "? ", 2);
	CHECK_OK(parse(buf_str(&b), &n, &err), &err);
	buf_clear(&b);
	yaml_print(&b, n, shown);
	CHECK_OK(parse(buf_str(&b), &n, &err), &err);
	CHECK_INT(n->child->key->text.len, 1998);
	CHECK_STR(n->child->child->text, "v");
	buf_release(&b);
	arena_release(&arena);
}
