#include <math.h>

#include "base/clock.h"
#include "base/labels.h"
#include "base/yaml/yaml.h"
#include "tests/check.h"

struct inner {
	struct str path;
	int64_t seconds;
};

struct everything {
	struct str string, secret;
	bool flag, flag_set;
	int64_t number, duration, custom;
	uint64_t count, size;
	double ratio;
	struct inner inner, other;
	struct yaml_list list, strings;
	struct labels labels;
};

static const struct yaml_field inner_fields[] = {
	{ "path", YAML_STRING, offsetof(struct inner, path), .help = "where" },
	{ "seconds", YAML_INT, offsetof(struct inner, seconds), .help = "how long" },
};

static void inner_defaults(struct yaml_ctx *ctx, void *out)
{
	((struct inner *)out)->path = STR("/default");
}

static enum err_code inner_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct inner *in = out;

	if (in->seconds < 0)
		return yaml_err(yaml_get(n, "seconds"), err, ERR_INVALID, "seconds may not be negative");
	return ERR_OK;
}

static const struct yaml_schema inner_schema = { "inner_thing", sizeof(struct inner), inner_fields,
	2, inner_defaults, inner_check };
/* Without defaults: the outer struct's value stays. */
static const struct yaml_schema other_schema = { "other", sizeof(struct inner), inner_fields, 2,
	NULL, NULL };

static enum err_code decode_custom(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	*(int64_t *)field = (int64_t)n->n + *(int64_t *)ctx->user;
	return ERR_OK;
}

#define AT(f) offsetof(struct everything, f)
static const struct yaml_field fields[] = {
	{ "string", YAML_STRING, AT(string) },
	{ "secret", YAML_SECRET, AT(secret) },
	{ "flag", YAML_BOOL, AT(flag), .set_offset = AT(flag_set) + 1 },
	{ "number", YAML_INT, AT(number) },
	{ "count", YAML_UINT, AT(count) },
	{ "ratio", YAML_FLOAT, AT(ratio) },
	{ "duration", YAML_DURATION, AT(duration) },
	{ "size", YAML_BYTES, AT(size) },
	{ "inner", YAML_STRUCT, AT(inner), &inner_schema },
	{ "other", YAML_STRUCT, AT(other), &other_schema },
	{ "list", YAML_LIST, AT(list), &inner_schema },
	{ "strings", YAML_LIST, AT(strings) },
	{ "labels", YAML_STRING_MAP, AT(labels) },
	{ "custom", YAML_CUSTOM, AT(custom), NULL, decode_custom },
};

static void everything_defaults(struct yaml_ctx *ctx, void *out)
{
	struct everything *e = out;

	e->string = STR("kept");
	e->number = 7;
	e->inner.path = STR("/outer");
	e->other = (struct inner){ STR("/other"), 3 };
}

static const struct yaml_schema plain_schema = { "everything", sizeof(struct everything), fields,
	sizeof(fields) / sizeof(fields[0]), NULL, NULL };
static const struct yaml_schema schema = { "everything", sizeof(struct everything), fields,
	sizeof(fields) / sizeof(fields[0]), everything_defaults, NULL };

static struct arena arena;

static enum err_code decode(
	const struct yaml_schema *s, const char *text, struct everything *out, struct err *err)
{
	static int64_t user = 100;
	struct yaml_ctx ctx = { .arena = &arena, .dir = STR("."), .user = &user };
	struct yaml_node *n;
	enum err_code rc;

	arena_release(&arena);
	arena_init(&arena, 1u << 20);
	if ((rc = yaml_parse(&arena, "c.yml", str_of(text), &n, err)))
		return rc;
	return yaml_decode(&ctx, s, n, out, err);
}

TEST(every_type)
{
	struct everything e;
	const struct inner *item;
	struct err err;

	REQUIRE_OK(decode(&schema,
				   "string: 1.50\n"
				   "secret: yes\n"
				   "flag: on\n"
				   "number: -0x10\n"
				   "count: 18446744073709551615\n"
				   "ratio: 2.5e-1\n"
				   "duration: 1h30m\n"
				   "size: 10MB\n"
				   "inner: {seconds: 9}\n"
				   "other: {seconds: 4}\n"
				   "list: [{path: a}, {seconds: 1e3}]\n"
				   "strings: [x, 2, ~, 'y z']\n"
				   "labels: {b: 2, a: 'x', c: '', d: ~}\n"
				   "custom: [1, 2, 3]\n",
				   &e, &err),
		&err);
	CHECK_STR(e.string, "1.50");
	CHECK_STR(e.secret, "yes");
	CHECK(e.flag && e.flag_set);
	CHECK_INT(e.number, -16);
	CHECK(e.count == UINT64_MAX);
	CHECK(e.ratio == 0.25);
	CHECK_INT(e.duration, 90 * NS_PER_MIN);
	CHECK_INT(e.size, 10 << 20);
	CHECK_STR(e.inner.path, "/default");
	CHECK_INT(e.inner.seconds, 9);
	CHECK_STR(e.other.path, "/other");
	CHECK_INT(e.other.seconds, 4);
	REQUIRE(e.list.n == 2 && e.strings.n == 4 && e.labels.n == 2);
	item = e.list.v;
	CHECK_STR(item[0].path, "a");
	CHECK_STR(item[1].path, "/default");
	CHECK_INT(item[1].seconds, 1000);
	CHECK_STR(((struct str *)e.strings.v)[1], "2");
	CHECK_STR(((struct str *)e.strings.v)[2], "");
	CHECK_STR(((struct str *)e.strings.v)[3], "y z");
	CHECK_STR(e.labels.v[0].name, "a");
	CHECK_STR(e.labels.v[0].value, "x");
	CHECK_STR(e.labels.v[1].name, "b");
	CHECK_STR(e.labels.v[1].value, "2");
	CHECK_INT(e.custom, 103);
	arena_release(&arena);
}

TEST(a_copy_outlives_its_original)
{
	struct everything e, copy;
	const struct inner *item;
	struct arena own;
	struct err err;

	REQUIRE_OK(decode(&schema,
				   "string: s\nsecret: t\nnumber: 7\nflag: true\ninner: {path: i}\n"
				   "list: [{path: a}, {seconds: 3}]\nstrings: [x, ~, y]\nlabels: {a: x}\n"
				   "custom: [1]\n",
				   &e, &err),
		&err);
	arena_init(&own, 0);
	REQUIRE_OK(yaml_dup(&own, &schema, &e, &copy, &err), &err);
	arena_release(&arena);
	CHECK_STR(copy.string, "s");
	CHECK_STR(copy.secret, "t");
	CHECK_INT(copy.number, 7);
	CHECK(copy.flag && copy.flag_set);
	CHECK_STR(copy.inner.path, "i");
	REQUIRE(copy.list.n == 2 && copy.strings.n == 3 && copy.labels.n == 1);
	item = copy.list.v;
	CHECK_STR(item[0].path, "a");
	CHECK_STR(item[1].path, "/default");
	CHECK_INT(item[1].seconds, 3);
	CHECK_STR(((struct str *)copy.strings.v)[0], "x");
	CHECK_STR(((struct str *)copy.strings.v)[1], "");
	CHECK_STR(((struct str *)copy.strings.v)[2], "y");
	CHECK_STR(copy.labels.v[0].value, "x");
	CHECK_INT(copy.custom, e.custom);
	arena_release(&own);
	REQUIRE_OK(decode(&schema, "string: s\nlist: [{path: a}]\nlabels: {a: x}\n", &e, &err), &err);
	for (size_t budget = 1; budget < 100; budget++) {
		arena_init(&own, budget);
		if (!yaml_dup(&own, &schema, &e, &copy, &err))
			budget = 100;
		arena_release(&own);
	}
	arena_release(&arena);
}

TEST(missing_and_null_keep_the_defaults)
{
	static const char *const texts[] = { "", "~", "{}",
		"string: ~\nflag:\nnumber: null\ninner:\nother: ~\n"
		"list:\nstrings: ~\nlabels:\ncustom: ~\nduration: ~\nsize:\nratio:\ncount:\nsecret:\n" };
	struct everything e;
	struct err err;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		memset(&e, 0xff, sizeof(e));
		CHECK_OK(decode(&schema, texts[i], &e, &err), &err);
		CHECK_STR(e.string, "kept");
		CHECK_STR(e.inner.path, "/outer");
		CHECK_INT(e.number, 7);
		CHECK_INT(e.other.seconds, 3);
		CHECK(!e.flag && !e.flag_set && e.list.n == 0 && e.custom == 0);
	}
	memset(&e, 0xff, sizeof(e));
	CHECK_OK(decode(&plain_schema, "", &e, &err), &err);
	CHECK_STR(e.string, "");
	CHECK_STR(e.inner.path, "/default"); /* none above it has defaults, so it gets its own */
	CHECK_STR(e.other.path, "");
	arena_release(&arena);
}

TEST(scalars)
{
	static const struct {
		const char *text;
		int64_t number;
	} ints[] = {
		{ "0", 0 },
		{ "+5", 5 },
		{ "010", 8 },
		{ "0o17", 15 },
		{ "0b101", 5 },
		{ "1_000", 1000 },
		{ "5.0", 5 },
		{ "-1e3", -1000 },
		{ "9223372036854775807", INT64_MAX },
		{ "-9223372036854775808", INT64_MIN },
	};
	static const char *const trues[] = { "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On",
		"ON", "y", "Y" };
	static const char *const falses[] = { "false", "no", "off", "n", "False", "NO", "OFF", "N",
		"No", "Off" };
	struct everything e;
	char text[64];
	struct err err;

	for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
		snprintf(text, sizeof(text), "number: %s", ints[i].text);
		CHECK_OK(decode(&schema, text, &e, &err), &err);
		CHECK_INT(e.number, ints[i].number);
	}
	for (size_t i = 0; i < sizeof(trues) / sizeof(trues[0]); i++) {
		snprintf(text, sizeof(text), "flag: %s", trues[i]);
		CHECK_OK(decode(&schema, text, &e, &err), &err);
		CHECK(e.flag);
	}
	for (size_t i = 0; i < sizeof(falses) / sizeof(falses[0]); i++) {
		snprintf(text, sizeof(text), "flag: %s", falses[i]);
		CHECK_OK(decode(&schema, text, &e, &err), &err);
		CHECK(!e.flag && e.flag_set);
	}
	CHECK_OK(decode(&schema, "ratio: -.inf", &e, &err), &err);
	CHECK(isinf(e.ratio) && e.ratio < 0);
	CHECK_OK(decode(&schema, "ratio: .nan", &e, &err), &err);
	CHECK(isnan(e.ratio));
	CHECK_OK(decode(&schema, "ratio: -3", &e, &err), &err);
	CHECK(e.ratio == -3);
	arena_release(&arena);
}

TEST(errors_say_where_and_what)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "a", "c.yml:1:1: cannot unmarshal !!str `a` into everything" },
		{ "string: x\nfoo: 1\n", "c.yml:2:1: field foo not found in type everything" },
		{ "inner:\n  foo: 1\n", "c.yml:2:3: field foo not found in type inner_thing" },
		{ "inner: [1]", "c.yml:1:8: cannot unmarshal !!seq into inner_thing" },
		{ "inner:\n  seconds: -1", "c.yml:2:12: seconds may not be negative" },
		{ "string: [a]", "c.yml:1:9: cannot unmarshal !!seq into string" },
		{ "string: \"a\\0b\"", "c.yml:1:9: a string may not hold a NUL byte" },
		{ "flag: abc", "c.yml:1:7: cannot unmarshal !!str `abc` into bool" },
		{ "flag: 'true'", "c.yml:1:7: cannot unmarshal !!str `true` into bool" },
		{ "flag: 1", "c.yml:1:7: cannot unmarshal !!int `1` into bool" },
		{ "flag: {}", "c.yml:1:7: cannot unmarshal !!map into bool" },
		{ "number: 1.5", "c.yml:1:9: cannot unmarshal !!float `1.5` into int64" },
		{ "number: 9223372036854775808",
			"c.yml:1:9: cannot unmarshal !!int `9223372036854775808` into int64" },
		{ "number: '1'", "c.yml:1:9: cannot unmarshal !!str `1` into int64" },
		{ "count: -1", "c.yml:1:8: cannot unmarshal !!int `-1` into uint64" },
		{ "ratio: yes", "c.yml:1:8: cannot unmarshal !!bool `yes` into float64" },
		{ "duration: [1s]", "c.yml:1:11: cannot unmarshal !!seq into duration" },
		{ "duration: abc", "c.yml:1:11: not a valid duration string: \"abc\"" },
		{ "list: x", "c.yml:1:7: cannot unmarshal !!str `x` into a list" },
		{ "list:\n- path: a\n-\n", "c.yml:3:2: empty or null inner thing section" },
		{ "list: [{seconds: -2}]", "c.yml:1:18: seconds may not be negative" },
		{ "strings: {a: b}", "c.yml:1:10: cannot unmarshal !!map into []string" },
		{ "strings: [[a]]", "c.yml:1:11: cannot unmarshal !!seq into string" },
		{ "labels: [a]", "c.yml:1:9: cannot unmarshal !!seq into map[string]string" },
		{ "labels: {a: [b]}", "c.yml:1:13: cannot unmarshal !!seq into string" },
		{ "flag: 'a string that is longer than anyone wants to read'",
			"c.yml:1:7: cannot unmarshal !!str `a string that is longer than anyone want...` into "
			"bool" },
	};
	struct everything e;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(decode(&schema, rows[i].text, &e, &err), &err, ERR_INVALID, rows[i].want);
	CHECK_INT(decode(&schema, "size: 10", &e, &err), ERR_INVALID);
	CHECK(str_has_prefix(str_of(err.msg), STR("c.yml:1:7: ")));
	arena_release(&arena);
}
