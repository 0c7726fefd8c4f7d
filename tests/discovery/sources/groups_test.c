#include "discovery/sources/groups.h"
#include "tests/check.h"

typedef enum err_code (*parse_fn)(
	struct arena *, const char *, struct str, struct target_group **, size_t *, struct err *);

static void print_groups(struct buf *out, const struct target_group *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_add_str(out, v[i].source);
		buf_add_char(out, ' ');
		labels_print(out, v[i].labels);
		for (size_t k = 0; k < v[i].targets_n; k++) {
			buf_add_char(out, ' ');
			labels_print(out, v[i].targets[k]);
		}
		buf_add_char(out, '\n');
	}
}

/* The document as parse reads it, or its error. */
static void check_document(parse_fn parse, const char *path, const char *text, const char *want)
{
	struct target_group *v = NULL;
	struct buf out = { 0 };
	struct arena a;
	struct err err;
	size_t n = 0;

	arena_init(&a, 0);
	if (parse(&a, path, str_of(text), &v, &n, &err))
		buf_add_cstr(&out, err.msg);
	else
		print_groups(&out, v, n);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
	arena_release(&a);
}

TEST(yaml)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "[]", "" },
		{ "- targets: ['a:1', \"b:2\"]\n  labels: {env: prod, empty: ''}\n- targets: [c]\n",
			"x.yml:0 {env=\"prod\"} {__address__=\"a:1\"} {__address__=\"b:2\"}\n"
			"x.yml:1 {} {__address__=\"c\"}\n" },
		{ "- labels: {a: b}\n", "x.yml:0 {a=\"b\"}\n" },
		{ "- targets: [1, true]\n", "x.yml:0 {} {__address__=\"1\"} {__address__=\"true\"}\n" },
		{ "- {}\n- ~\n", "x.yml:2:3: empty or null target group" },
		{ "targets: [a]\n", "x.yml:1:1: expected a list of target groups" },
		{ "- source: a\n", "x.yml:1:3: field source not found in type target group" },
		{ "- targets: a\n", "x.yml:1:12: expected a list of addresses" },
		{ "- targets: [[a]]\n", "x.yml:1:13: expected an address" },
		{ "- targets: [~]\n", "x.yml:1:13: expected an address" },
		{ "- labels: {a-b: c}\n",
			"x.yml:1:12: \"a-b\" is not a valid label name: " LABEL_NAME_RULE },
		{ "- labels: {a: [c]}\n", "x.yml:1:15: expected the value of label \"a\"" },
		{ "- labels: [a]\n", "x.yml:1:11: expected a map of label names to values" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_document(target_groups_from_yaml, "x.yml", rows[i][0], rows[i][1]);
}

TEST(json)
{
	static const char *const rows[][2] = {
		{ "[]", "" },
		{ "[{\"targets\": [\"a:1\"], \"labels\": {\"env\": \"prod\", \"e\": \"\"}}, {\"targets\": "
		  "null}]",
			"x.json:0 {env=\"prod\"} {__address__=\"a:1\"}\nx.json:1 {}\n" },
		{ "{}", "x.json: not an array of target groups" },
		{ "[1]", "x.json: group 0 is not an object" },
		{ "[{\"targets\": {}}]", "x.json: group 0: targets is not an array" },
		{ "[{}, {\"targets\": [\"a\", 1]}]", "x.json: group 1: target 1 is not a string" },
		{ "[{\"labels\": []}]", "x.json: group 0: labels is not an object" },
		{ "[{\"labels\": {\"a-b\": \"\"}}]",
			"x.json: group 0: \"a-b\" is not a valid label name: " LABEL_NAME_RULE },
		{ "[{\"labels\": {\"a\": 1}}]", "x.json: group 0: label a is not a string" },
		{ "[{\"source\": \"a\"}]", "x.json: group 0: unknown field \"source\"" },
		{ "[{\"targets\": [", "x.json:1:14: ']' expected near end of file" },
		{ "[{\"a\": 1, \"a\": 2}]", "x.json:1:13: duplicate object key near '\"a\"'" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_document(target_groups_from_json, "x.json", rows[i][0], rows[i][1]);
}

TEST(equality)
{
	struct groups *a = groups_new(0), *b = groups_new(0);
	struct err err;

	REQUIRE(a && b);
	CHECK_OK(target_groups_from_yaml(
		&a->arena, "x", STR("[{targets: [a, b], labels: {c: d}}]"), &a->v, &a->n, &err), &err);
	CHECK_OK(target_groups_from_yaml(
		&b->arena, "x", STR("[{targets: [a, b], labels: {c: e}}]"), &b->v, &b->n, &err), &err);
	CHECK(groups_eq(a, a));
	CHECK(!groups_eq(a, b));
	groups_unref(groups_ref(a));
	groups_unref(a);
	groups_unref(b);
	groups_unref(NULL);
}

static struct groups *packed(const char *yaml)
{
	struct groups *g = NULL;
	struct target_group *v;
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	CHECK_OK(target_groups_from_yaml(&a, "x", str_of(yaml), &v, &n, &err), &err);
	CHECK_OK(groups_pack(v, n, &g, &err), &err);
	arena_release(&a);
	return g;
}

TEST(sets_are_joined_without_copies)
{
	struct groups *a = packed("[{targets: [a, b], labels: {c: d}}, {}]");
	struct groups *b = packed("[{targets: [e]}]"), *none = packed("[]");
	struct groups *ab = NULL, *again = NULL, *other = NULL;
	struct buf out = { 0 };
	struct err err;

	REQUIRE(a && b && none);
	REQUIRE_OK(groups_join((struct groups *[]){ a, NULL, none, b }, 4, &ab, &err), &err);
	REQUIRE_OK(groups_join(&ab, 1, &again, &err), &err);
	REQUIRE_OK(groups_join((struct groups *[]){ b, a }, 2, &other, &err), &err);
	CHECK(ab->v[0].targets == a->v[0].targets && ab->v[2].source.ptr == b->v[0].source.ptr);
	CHECK(groups_eq(ab, again));
	CHECK(!groups_eq(ab, other));
	groups_unref(a);
	groups_unref(b);
	groups_unref(none);
	groups_unref(ab);
	groups_unref(other);
	print_groups(&out, again->v, again->n); /* holds what it was joined from */
	CHECK_STR(buf_str(&out),
		"x:0 {c=\"d\"} {__address__=\"a\"} {__address__=\"b\"}\nx:1 {}\n"
		"x:0 {} {__address__=\"e\"}\n");
	buf_release(&out);
	groups_unref(again);
}

/* Prints the groups of a walk. */
static void print_walk(struct buf *out, const struct groups *set)
{
	const struct target_group *g;
	struct groups_cursor c;

	buf_clear(out);
	groups_begin(&c, set);
	while ((g = groups_next(&c)))
		print_groups(out, g, 1);
	CHECK(!groups_next(&c));
}

TEST(bundles_are_walked_and_compared)
{
	struct groups *a = packed("[{targets: [a, b]}, {}]"), *b = packed("[{targets: [e]}]");
	struct groups *like_b = packed("[{targets: [e]}]"), *none = packed("[]");
	struct groups *flat, *of, *in, *same, *cut, *other, *empty;
	struct buf out = { 0 };
	struct err err;

	REQUIRE_OK(groups_join((struct groups *[]){ a, b }, 2, &flat, &err), &err);
	REQUIRE_OK(groups_bundle((struct groups *[]){ a, NULL, none, b }, 4, &of, &err), &err);
	REQUIRE_OK(groups_bundle((struct groups *[]){ none, of, flat }, 3, &in, &err), &err);
	REQUIRE_OK(groups_bundle((struct groups *[]){ a, like_b }, 2, &same, &err), &err);
	REQUIRE_OK(groups_bundle((struct groups *[]){ flat, a, b }, 3, &cut, &err), &err);
	REQUIRE_OK(groups_bundle((struct groups *[]){ b, a }, 2, &other, &err), &err);
	REQUIRE_OK(groups_bundle(NULL, 0, &empty, &err), &err);
	print_walk(&out, of);
	CHECK_STR(buf_str(&out),
		"x:0 {} {__address__=\"a\"} {__address__=\"b\"}\nx:1 {}\nx:0 {} {__address__=\"e\"}\n");
	CHECK_INT(groups_count(in), 6);
	CHECK_INT(groups_targets(in), 6);
	CHECK(groups_eq(of, flat) && groups_eq(flat, of) && groups_eq(of, same));
	CHECK(groups_eq(in, cut) && !groups_eq(of, other) && !groups_eq(in, of));
	CHECK(groups_eq(empty, none) && groups_count(empty) == 0);
	print_walk(&out, empty);
	CHECK_STR(buf_str(&out), "");
	groups_unref(a);
	groups_unref(b);
	groups_unref(like_b);
	groups_unref(none);
	groups_unref(flat);
	groups_unref(of);
	print_walk(&out, in);
	CHECK_INT(out.len,
		2 *
			strlen("x:0 {} {__address__=\"a\"} {__address__=\"b\"}\nx:1 {}\n"
				   "x:0 {} {__address__=\"e\"}\n"));
	groups_unref(in);
	groups_unref(same);
	groups_unref(cut);
	groups_unref(other);
	groups_unref(empty);
	buf_release(&out);
}
