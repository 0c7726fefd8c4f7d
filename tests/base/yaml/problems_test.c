/* Errors and warnings that are kept: their order, their limits, and that each is kept once. */
#include "base/yaml/problems.h"

#include "tests/check.h"

struct pair {
	uint64_t a, b;
};

static enum err_code refuse_13(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct pair *p = out;

	return p->a == 13 ? yaml_err(n, err, ERR_INVALID, "13 brings bad luck") : ERR_OK;
}

static const struct yaml_foreign foreign[] = {
	{ "hint", YAML_FOREIGN_HINT, "write a" },
	{ "harmless", YAML_FOREIGN_HARMLESS, "it does nothing" },
	{ "empty", YAML_FOREIGN_EMPTY, "only without a value" },
	{ "section", YAML_FOREIGN_SECTION, "it is elsewhere" },
	{ NULL },
};
static const struct yaml_field pair_fields[] = {
	{ "alpha", YAML_UINT, offsetof(struct pair, a) },
	{ "beta", YAML_UINT, offsetof(struct pair, b) },
};
static const struct yaml_schema pair_schema = { "pair", sizeof(struct pair), pair_fields, 2, NULL,
	refuse_13, (const struct yaml_foreign *const[]){ foreign, NULL } };

struct all {
	struct yaml_list list;
	struct pair one;
};
static const struct yaml_field all_fields[] = {
	{ "list", YAML_LIST, offsetof(struct all, list), &pair_schema },
	{ "one", YAML_STRUCT, offsetof(struct all, one), &pair_schema },
};
static const struct yaml_schema all_schema = { "all", sizeof(struct all), all_fields, 2 };

static void decode(const char *text, bool take_foreign, struct yaml_problems *p)
{
	struct yaml_ctx ctx = { .problems = p, .take_foreign = take_foreign };
	struct yaml_node *root;
	struct arena a;
	struct all out;
	struct err err;

	arena_init(&a, 0);
	ctx.arena = &a;
	yaml_problems_init(p);
	if (yaml_parse_all(&a, "f", str_of(text), p, &root, &err) ||
		yaml_decode(&ctx, &all_schema, root, &out, &err))
		yaml_problems_add(p, &err);
	yaml_problems_sort(p);
	arena_release(&a);
}

TEST(each_is_kept_once)
{
	/* clang-format off */
	static const struct {
		const char *text, *want;
		bool take_foreign;
	} rows[] = {
		{ "one: {alpha: 1}", "" },
		{ "one: {alpha: x, beta: w}\nlist: [{beta: z}, ~, {alpha: 13}, {alpah: 1}]\nnone: 1",
		  "f:1:14: cannot unmarshal !!str `x` into uint64\n"
		  "f:1:23: cannot unmarshal !!str `w` into uint64\n"
		  "f:2:15: cannot unmarshal !!str `z` into uint64\n"
		  "f:2:19: empty or null pair section\n"
		  "f:2:22: 13 brings bad luck\n"
		  "f:2:36: field alpah not found in type pair; did you mean \"alpha\"?\n"
		  "f:3:1: field none not found in type all; did you mean \"one\"?\n" },
		/* a struct with an error is not checked */
		{ "one: {alpha: 13, beta: w}", "f:1:24: cannot unmarshal !!str `w` into uint64\n" },
		{ "one: {hint: 1, harmless: 1, empty: [], section: 1}",
		  "f:1:7: field hint not found in type pair: write a\n"
		  "warning f:1:16: harmless is not used here: it does nothing\n"
		  "warning f:1:29: empty is not used here: only without a value\n"
		  "f:1:40: field section not found in type pair: it is elsewhere; "
		"--config.ignore-foreign skips the field\n" },
		{ "one: {empty: [1], section: 1}",
		  "f:1:7: field empty not found in type pair: only without a value\n"
		  "warning f:1:19: section is not used here: it is elsewhere\n", true },
		{ "one: {}\none: {}\nlist: {}", "f:2:1: mapping key \"one\" already defined at line 1\n"
		  "f:3:7: cannot unmarshal !!map into a list\n" },
		{ "[", "f:2:1: did not find expected node content (while parsing a flow node at 2:1)\n" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf got = { 0 };
		struct yaml_problems p;

		decode(rows[i].text, rows[i].take_foreign, &p);
		for (size_t k = 0; k < p.n; k++)
			buf_printf(&got, "%s%s\n", p.v[k].code ? "" : "warning ", p.v[k].text);
		if (!str_is(buf_str(&got), rows[i].want))
			CHECK_FAIL("row %zu:\n" STR_FMT, i, STR_ARG(buf_str(&got)));
		buf_release(&got);
		yaml_problems_release(&p);
	}
}

TEST(order)
{
	static const char *const texts[] = { "b.yml:10:2: x", "a:1: no place", "a.yml:2:1: y",
		"b.yml:9:3: z", "b.yml:10:1: w", "a.yml:1:1: v" };
	static const char *const want[] = { "b.yml:9:3: z", "b.yml:10:1: w", "b.yml:10:2: x",
		"a:1: no place", "a.yml:1:1: v", "a.yml:2:1: y" };
	struct yaml_problems p;
	struct err err;

	yaml_problems_init(&p);
	for (size_t i = 0; i < 6; i++) {
		err_set(&err, ERR_INVALID, "%s", texts[i]);
		yaml_problems_add(&p, &err);
	}
	yaml_problems_sort(&p);
	for (size_t i = 0; i < 6; i++)
		CHECK_STR(str_of(p.v[i].text), want[i]);
	yaml_problems_release(&p);
}

TEST(limits)
{
	struct buf text = { 0 };
	struct yaml_problems p;

	buf_add_cstr(&text, "list:\n");
	for (int i = 0; i < 500; i++)
		buf_printf(&text, "- {harmless: 1%s}\n", i >= 300 ? ", alpha: x" : "");
	buf_add_char(&text, '\0');
	decode(text.ptr, false, &p);
	CHECK_INT(p.errors_n, YAML_PROBLEMS_MAX);
	CHECK_INT(p.warnings_n, 400); /* decoding ends with the last error */
	CHECK_INT(p.n, 2 * YAML_PROBLEMS_MAX);
	yaml_problems_release(&p);
	buf_release(&text);
}
