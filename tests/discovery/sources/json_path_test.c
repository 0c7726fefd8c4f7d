#include "discovery/sources/json_path.h"

#include "tests/check.h"

static const char document[] = "{\"name\": \"a\", \"n\": 7, \"in\": {\"er\": [{\"x\": \"0x\"}, "
							   "\"one\"], \"0\": \"zero\"}, \"\": \"none\"}";

TEST(values_by_path)
{
	/* clang-format off */
	static const struct {
		const char *path;
		const char *text;
	} rows[] = {
		{ "name", "a" },
		{ "name|n", "a" },
		{ "n", "" },
		{ "in.er.0.x", "0x" },
		{ "in.er.1", "one" },
		{ "in.er.2", "" },
		{ "in.er.x", "" },
		{ "in.0", "zero" },
		{ "in.er.0.x.y", "" },
		{ "name.x", "" },
		{ "missing.name", "" },
		{ "in", "" },
	};
	/* clang-format on */
	json_t *v = json_loads(document, 0, NULL);

	REQUIRE(v);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(json_path_text(v, rows[i].path), rows[i].text);
	CHECK(json_path_at(v, "") == v);
	CHECK(json_path_at(NULL, "name") == NULL);
	CHECK_INT(json_integer_value(json_path_at(v, "n")), 7);
	json_decref(v);
}
