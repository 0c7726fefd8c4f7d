#include "base/labels.h"

#include "tests/check.h"

static struct arena arena;

/* name, value, name, value, ..., NULL in any order */
static struct labels make(const char *const *pairs)
{
	struct labels_builder b;
	struct labels ls = { 0 };
	struct err err;

	labels_builder_init(&b, &arena, (struct labels){ 0 });
	for (; pairs[0]; pairs += 2)
		labels_builder_set(&b, str_of(pairs[0]), str_of(pairs[1]));
	CHECK_OK(labels_builder_build(&b, &ls, &err), &err);
	return ls;
}
#define MAKE(...) make((const char *const[]){ __VA_ARGS__, NULL })

static struct str printed(struct labels ls)
{
	struct buf b = { 0 };
	struct str s;

	labels_print(&b, ls);
	s = str_dup(&arena, buf_str(&b));
	buf_release(&b);
	return s;
}

TEST(service_is_read_of_two_labels)
{
	static const struct label v[] = { { STR("job"), STR("j") }, { STR("service_name"), STR("s") } };
	const struct labels both = { v, 2 }, job = { v, 1 }, own = { v + 1, 1 }, none = { v, 0 };

	CHECK_STR(labels_get(both, STR(LABEL_SERVICE)), "s");
	CHECK_STR(labels_get(own, STR(LABEL_SERVICE)), "s");
	CHECK_STR(labels_get(job, STR(LABEL_SERVICE)), "j");
	CHECK_STR(labels_get(none, STR(LABEL_SERVICE)), "");
	CHECK(labels_has(job, STR(LABEL_SERVICE)) && !labels_has(none, STR(LABEL_SERVICE)));
	CHECK(!labels_has(job, STR("service_name")));
}

TEST(builder_sorts_replaces_deletes)
{
	struct labels_builder b;
	struct labels one, two;
	struct err err;

	one = MAKE("job", "api", "a", "1", "zone", "z", "empty", "", "a", "2");
	CHECK_STR(printed(one), "{a=\"2\", job=\"api\", zone=\"z\"}");
	labels_builder_init(&b, &arena, one);
	labels_builder_del(&b, STR("job"));
	labels_builder_del(&b, STR("nothing"));
	labels_builder_set(&b, STR("zone"), STR(""));
	CHECK_STR(labels_builder_get(&b, STR("a")), "2");
	CHECK_STR(labels_builder_get(&b, STR("zone")), "");
	REQUIRE_OK(labels_builder_build(&b, &two, &err), &err);
	labels_builder_set(&b, STR("a"), STR("changed after the build"));
	CHECK_STR(printed(two), "{a=\"2\"}");
	CHECK_STR(printed(one), "{a=\"2\", job=\"api\", zone=\"z\"}");
	for (int i = 0; i < 100; i++)
		labels_builder_set(&b, str_of(arena_printf(&arena, "l%03d", i * 37 % 100)), STR("x"));
	REQUIRE_OK(labels_builder_build(&b, &two, &err), &err);
	CHECK_INT(two.n, 101);
	for (size_t i = 1; i < two.n; i++)
		CHECK(str_cmp(two.v[i - 1].name, two.v[i].name) < 0);
	arena_release(&arena);
}

TEST(builder_over_budget)
{
	struct labels_builder b;
	struct labels ls;
	struct arena small;
	struct err err;

	arena_init(&small, 600);
	labels_builder_init(&b, &small, (struct labels){ 0 });
	for (int i = 0; i < 100; i++)
		labels_builder_set(&b, str_of(arena_printf(&arena, "l%d", i)), STR("x"));
	CHECK_ERR(labels_builder_build(&b, &ls, &err), &err, ERR_LIMIT,
		"labels needs more memory than its limit of 600 bytes");
	arena_release(&small);
	arena_release(&arena);
}

TEST(get_and_compare)
{
	struct labels ab = MAKE("a", "1", "b", "2"), a = MAKE("a", "1"), ac = MAKE("a", "1", "b", "3");
	struct labels none = { 0 }, joined = MAKE("a", "1b");
	const struct str wanted[] = { STR("aa"), STR("b"), STR("c") };
	struct label picked[3];

	CHECK_STR(labels_get(ab, STR("b")), "2");
	CHECK_STR(labels_get(ab, STR("c")), "");
	CHECK(labels_has(ab, STR("a")) && !labels_has(ab, STR("c")) && !labels_has(none, STR("a")));
	CHECK_INT(labels_pick(ab, wanted, 3, picked), 1);
	CHECK_STR(picked[0].name, "b");
	CHECK_STR(picked[0].value, "2");
	CHECK_INT(labels_pick(none, wanted, 3, picked), 0);
	CHECK(labels_cmp(a, ab) < 0 && labels_cmp(ab, a) > 0 && labels_cmp(ab, ac) < 0);
	CHECK_INT(labels_cmp(ab, MAKE("b", "2", "a", "1")), 0);
	CHECK(labels_cmp(none, a) < 0);
	CHECK(labels_eq(ab, MAKE("a", "1", "b", "2")) && !labels_eq(ab, ac) && !labels_eq(a, ab));
	CHECK(labels_hash(ab) == labels_hash(MAKE("b", "2", "a", "1")));
	CHECK(labels_hash(ab) != labels_hash(ac));
	CHECK(labels_hash(MAKE("a1", "b")) != labels_hash(joined));
	/* On disk and across machines: these numbers never change. */
	CHECK(labels_hash(none) == 0);
	if (labels_hash(ab) != UINT64_C(0x915f985958252427))
		CHECK_FAIL("hash of {a=1,b=2} is %" PRIx64, labels_hash(ab));
	arena_release(&arena);
}

TEST(printing)
{
	CHECK_STR(printed((struct labels){ 0 }), "{}");
	CHECK_STR(printed(MAKE("__name__", "cpu")), "cpu");
	CHECK_STR(printed(MAKE("__name__", "process_cpu", "job", "a\"b\\c\n")),
		"process_cpu{job=\"a\\\"b\\\\c\\n\"}");
	CHECK_STR(printed(MAKE("__name__", "a:b", "A", "first")), "a:b{A=\"first\"}");
	CHECK_STR(printed(MAKE("__name__", "no name", "x", "y")), "{__name__=\"no name\", x=\"y\"}");
	CHECK_STR(printed(MAKE("x.y", "\xff\xc3\xa9")), "{\"x.y\"=\"\\xff\xc3\xa9\"}");
	arena_release(&arena);
}

TEST(names_and_values)
{
	CHECK(label_name_valid(STR("a")) &&
		label_name_valid(STR("_a1")) && label_name_valid(STR("__x__")));
	CHECK(!label_name_valid(STR("")) &&
		!label_name_valid(STR("1a")) && !label_name_valid(STR("a:b")));
	CHECK(!label_name_valid(STR("a-b")) && !label_name_valid(STR("\xc3\xa9")));
	CHECK(label_value_valid(STR("")) && label_value_valid(STR("\xc3\xa9")));
	CHECK(!label_value_valid(STR("\xff")));
}

TEST(sanitized_names)
{
	static const struct {
		const char *name, *want;
	} rows[] = {
		{ "", "p_" },
		{ "app.kubernetes.io/name", "p_app_kubernetes_io_name" },
		{ "aZ09_-:", "p_aZ09___" },
		{ "\xc3\xa9\xe2\x82\xac!", "p____" },
		{ "a\xff", "p_a_" },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(label_name_sanitized(&a, "p_", str_of(rows[i].name)), rows[i].want);
	arena_release(&a);
	arena_init(&a, 1);
	CHECK(!label_name_sanitized(&a, "p_", STR("x")).ptr);
	arena_release(&a);
}

TEST(dup_does_not_share)
{
	char text[] = "value";
	struct label l = { STR("name"), { text, 5 } };
	struct labels copy = labels_dup(&arena, (struct labels){ &l, 1 });
	struct arena tiny;

	text[0] = 'X';
	CHECK_STR(printed(copy), "{name=\"value\"}");
	CHECK_INT(labels_dup(&arena, (struct labels){ 0 }).n, 0);
	l.value = (struct str){ NULL, 0 };
	CHECK_STR(printed(labels_dup(&arena, (struct labels){ &l, 1 })), "{name=\"\"}");
	arena_init(&tiny, 16);
	CHECK(labels_dup(&tiny, copy).v == NULL);
	arena_release(&tiny);
	arena_release(&arena);
}

TEST(encoding_round_trips_and_refuses_damage)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *msg;
	} rows[] = {
		{ "", 0, "labels: cut short" },
		{ "\x01", 1, "labels: cut short" },
		{ "\xff\xff\xff\xff\x0f", 5, "labels: cut short" },
		{ "\x01\x01"
		  "a\x05"
		  "b",
			5, "labels: cut short" },
		{ "\x01\x01"
		  "a\x00",
			5, "labels: empty value of \"a\"" },
		{ "\x02\x01"
		  "b\x01"
		  "x\x01"
		  "a\x01"
		  "x",
			9, "labels: \"a\" after \"b\"" },
		{ "\x02\x01"
		  "a\x01"
		  "x\x01"
		  "a\x01"
		  "x",
			9, "labels: \"a\" after \"a\"" },
	};
	struct labels ls = MAKE("__name__", "cpu", "job", "api", "z", "\xff"), back;
	struct buf b = { 0 };
	struct cursor in;
	struct err err;

	labels_encode(&b, ls);
	labels_encode(&b, (struct labels){ 0 });
	in = cursor_of(buf_str(&b));
	REQUIRE_OK(labels_decode(&arena, &in, &back, &err), &err);
	memset(b.ptr, 0, b.len - 1); /* the result does not point into the input */
	CHECK(labels_eq(ls, back));
	REQUIRE_OK(labels_decode(&arena, &in, &back, &err), &err);
	CHECK_INT(back.n, 0);
	CHECK_INT(cursor_left(&in), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		in = cursor_of((struct str){ rows[i].bytes, rows[i].len });
		CHECK_ERR(labels_decode(&arena, &in, &back, &err), &err, ERR_CORRUPT, rows[i].msg);
	}
	buf_clear(&b);
	labels_encode(&b, ls);
	for (size_t len = 0; len < b.len; len++) {
		in = cursor_of((struct str){ b.ptr, len });
		CHECK(labels_decode(&arena, &in, &back, &err) == ERR_CORRUPT);
	}
	buf_release(&b);
	arena_release(&arena);
}

TEST(matchers)
{
	/* clang-format off */
	static const struct {
		enum match_op op;
		const char *value, *of_label;
		bool want;
	} rows[] = {
		{ MATCH_EQ, "api", "api", true }, { MATCH_EQ, "api", "ap", false },
		{ MATCH_EQ, "", "", true },
		{ MATCH_NE, "api", "", true }, { MATCH_NE, "api", "api", false },
		{ MATCH_RE, "a|b", "b", true }, { MATCH_RE, "a|b", "ab", false },
		{ MATCH_RE, "ap.*", "api", true },
		{ MATCH_RE, ".*", "", true }, { MATCH_RE, ".+", "", false },
		{ MATCH_NRE, "a|b", "c", true },
		{ MATCH_NRE, ".*", "c", false },
	};
	/* clang-format on */
	struct matcher m;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct labels ls = rows[i].of_label[0] ? MAKE("job", rows[i].of_label) : MAKE("x", "y");

		REQUIRE_OK(matcher_init(&m, rows[i].op, STR("job"), str_of(rows[i].value), &err), &err);
		if (matcher_test(&m, str_of(rows[i].of_label)) != rows[i].want)
			CHECK_FAIL("%s %s on %s", match_op_name(rows[i].op), rows[i].value, rows[i].of_label);
		if (matcher_test_labels(&m, ls) != rows[i].want)
			CHECK_FAIL("%s %s on labels", match_op_name(rows[i].op), rows[i].value);
		matcher_release(&m);
	}
	CHECK_ERR(matcher_init(&m, MATCH_RE, STR("job"), STR("a("), &err), &err, ERR_INVALID,
		"error parsing regexp: missing ): a(");
	matcher_release(&m); /* after a failure too */
	arena_release(&arena);
}

TEST(matchers_print)
{
	static const struct {
		enum match_op op;
		const char *name, *value, *want;
	} rows[] = {
		{ MATCH_EQ, "job", "a\"b", "job=\"a\\\"b\"" },
		{ MATCH_NE, "job", "", "job!=\"\"" },
		{ MATCH_RE, "job", "a\\.b", "job=~\"a\\\\.b\"" },
		{ MATCH_NRE, "x.y", "z", "\"x.y\"!~\"z\"" },
	};
	struct buf b = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct matcher m = { rows[i].op, str_of(rows[i].name), str_of(rows[i].value), NULL };

		buf_clear(&b);
		matcher_print(&b, &m);
		CHECK_STR(buf_str(&b), rows[i].want);
	}
	buf_release(&b);
}
