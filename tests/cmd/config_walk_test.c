#include "cmd/book/config_walk.h"

#include "base/labels.h"
#include "cmd/book/book.h"
#include "cmd/book/markdown.h"
#include "tests/check.h"

struct fake {
	struct str text;
	int64_t number;
};

static void fake_defaults(struct yaml_ctx *ctx, void *out)
{
	*(struct fake *)out = (struct fake){ STR("inner"), 7 };
}

static enum err_code fake_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	return ERR_OK;
}

/* clang-format off */
static const struct yaml_field deep_fields[] = {
	{ "silent", YAML_STRING, offsetof(struct fake, text), NULL, NULL, NULL, 0 },
	{ "fine", YAML_INT, offsetof(struct fake, number), NULL, NULL, "A number.", 0 },
};
static const struct yaml_schema deep = { .name = "deep", .size = sizeof(struct fake),
	.fields = deep_fields, .fields_n = 2, .defaults = fake_defaults };
static const struct yaml_field outer_fields[] = {
	{ "list", YAML_CUSTOM, 0, &deep, fake_decode, "Items.", 0, .takes = "list of" },
	{ "riddle", YAML_CUSTOM, 0, NULL, fake_decode, "Whatever it takes.", 0 },
	{ "fragment", YAML_STRING, 0, NULL, NULL, "of the URL", 0 },
};
static const struct yaml_schema outer = { .name = "outer", .size = sizeof(struct fake),
	.fields = outer_fields, .fields_n = 3 };
/* clang-format on */

TEST(every_key_of_the_configuration_is_described_and_printed)
{
	struct err err = { 0 };

	if (config_part_check(&err))
		CHECK_FAIL("%s", err.msg);
}

TEST(what_is_not_described_or_printed_is_found)
{
	struct config_walk w;
	struct err err = { 0 };

	config_walk_init(&w);
	CHECK(!config_walk_add(&w, &outer, NULL, &err));
	CHECK_INT(w.n, 2);
	CHECK(config_part_find_problems(&w, &err) == ERR_INVALID);
	CHECK_STR(str_of(err.msg),
		"configuration keys:\n"
		"outer: riddle: nothing says what it takes\n"
		"outer: fragment: help is no sentence\n"
		"deep: silent: help is no sentence\n"
		"outer: no part prints this schema\n"
		"deep: no part prints this schema\n");
	config_walk_release(&w);
}

TEST(defaults_are_those_of_the_schema)
{
	const struct fake set = { STR("set"), 9 };
	struct config_walk w;
	struct err err = { 0 };

	config_walk_init(&w);
	CHECK(!config_walk_add(&w, &outer, &set, &err));
	CHECK(!config_walk_add(&w, &outer, NULL, &err)); /* is there */
	CHECK_INT(w.n, 2);
	CHECK(w.v[0].values == &set);
	CHECK_INT(((const struct fake *)w.v[1].values)->number, 7);
	config_walk_release(&w);
}

TEST(parts_have_rows_with_types_and_defaults)
{
	static const struct {
		const char *part, *row;
	} cases[] = {
		{ "config-global", "\n| `scrape_interval` | duration | `1m` | How often" },
		{ "config-global", "\n| `body_size_limit` | size | `16MiB` | " },
		{ "config-scrape", "\n| `scrape_interval` | duration | that of `global` | " },
		{ "config-scrape",
			", `http_headers` | | | See [HTTP client settings]"
			"(../configure/http-clients.md#http-client-settings). |\n" },
		{ "config-bucket", "\n| `get_per_million` | number | `0.4` | " },
		{ "config-pprof",
			"\n| `pprof_config` | map of names to [pprof_config]"
			"(../configure/profiles.md#pprof_config) |  | " },
		{ "config-sd-consul", "\n| `allow_stale` | boolean | `true` | " },
		{ "config-rules", "\n### groups\n\n| key | type | default | what |\n|---|---|---|---|\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct book_part part = { cases[i].part, config_part_write };
		struct buf out = { 0 };
		struct err err = { 0 };

		if (config_part_write(&part, &out, &err))
			CHECK_FAIL("%s", err.msg);
		if (str_find(buf_str(&out), str_of(cases[i].row)) < 0)
			CHECK_FAIL(
				"%s has no %s:\n" STR_FMT, cases[i].part, cases[i].row, STR_ARG(buf_str(&out)));
		buf_release(&out);
	}
}

TEST(an_unknown_part_is_an_error)
{
	const struct book_part part = { "config-nothing", config_part_write };
	struct buf out = { 0 };
	struct err err = { 0 };

	CHECK(config_part_write(&part, &out, &err) == ERR_NOT_FOUND);
	CHECK_STR(str_of(err.msg), "no schema is printed by part config-nothing");
	buf_release(&out);
}

TEST(cells_stay_one_cell)
{
	struct buf out = { 0 };

	markdown_text(&out, STR("a|b\n<c> [d] `e`\t*f* g_h\n"));
	CHECK_STR(buf_str(&out), "a\\|b \\<c\\> \\[d\\] \\`e\\` \\*f\\* g\\_h");
	buf_clear(&out);
	markdown_code(&out, STR("  a |\n   b  "));
	CHECK_STR(buf_str(&out), "`a \\| b`");
	buf_clear(&out);
	markdown_code(&out, STR("a`b"));
	CHECK_STR(buf_str(&out), "`` a`b ``");
	buf_clear(&out);
	markdown_inline(&out, "`a|b`\nc");
	CHECK_STR(buf_str(&out), "`a\\|b` c");
	buf_release(&out);
}
