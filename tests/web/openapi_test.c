/* The table of routes and the tables of operations describe each other. */
#include <ctype.h>
#include <stdio.h>

#include "tests/check.h"
#include "web/handlers.h"
#include "web/mcp/mcp.h"
#include "web/openapi/openapi.h"
#include "web/openapi/operations.h"
#include "web/openapi/schemas.h"
#include "web/routes.h"

static size_t count_in_path(const struct operation *op)
{
	size_t n = 0;

	for (const struct operation_param *p = op->params; p && p->name; p++)
		n += (p->flags & PARAM_IN_PATH) != 0;
	return n;
}

static size_t count_stars(const char *path)
{
	size_t n = 0;

	for (; *path; path++)
		n += *path == '*';
	return n;
}

/* Only the page and the book, which are for browsers, have none, and what refuses a method. */
TEST(each_route_has_an_operation)
{
	size_t described = 0;

	for (size_t i = 0; i < web_routes_n; i++) {
		const struct route *r = &web_routes[i];

		if (r->fn == handle_page || r->fn == handle_asset || r->fn == handle_book ||
			r->fn == handle_book_root || r->fn == mcp_refuse_method) {
			CHECK(!r->op);
			continue;
		}
		if (!r->op || !operation_tag_of(r->op)) {
			CHECK_FAIL("%s has no operation", r->path);
			continue;
		}
		if (count_in_path(r->op) != count_stars(r->path))
			CHECK_FAIL("%s: its operation has other parts of the path", r->path);
		described++;
	}
	CHECK(described > 70);
}

TEST(each_operation_has_one_route)
{
	for (size_t t = 0; t < operation_tags_n; t++)
		for (size_t k = 0; k < operation_tags[t].n; k++) {
			const struct operation *op = &operation_tags[t].v[k];
			size_t n = 0;

			for (size_t i = 0; i < web_routes_n; i++)
				n += web_routes[i].op == op;
			if (n != 1)
				CHECK_FAIL("%s %zu (%s) has %zu routes", operation_tags[t].name, k,
					op->id ? op->id : "no id", n);
		}
}

static size_t count_id(const char *id)
{
	size_t n = 0;

	for (size_t t = 0; t < operation_tags_n; t++)
		for (size_t k = 0; k < operation_tags[t].n; k++)
			n += !strcmp(operation_tags[t].v[k].id, id);
	return n;
}

static bool is_sentence(const char *text)
{
	return text[0] && text[strlen(text) - 1] == '.';
}

TEST(each_operation_is_whole)
{
	for (size_t t = 0; t < operation_tags_n; t++)
		for (size_t k = 0; k < operation_tags[t].n; k++) {
			const struct operation *op = &operation_tags[t].v[k];

			if (count_id(op->id) != 1)
				CHECK_FAIL("%s is not unique", op->id);
			if (!op->summary || !isupper((unsigned char)op->summary[0]) || is_sentence(op->summary))
				CHECK_FAIL("%s: the summary is no line", op->id);
			if (op->description && !is_sentence(op->description))
				CHECK_FAIL("%s: the description is no sentence", op->id);
			if (!op->answers || !op->answers[0].status)
				CHECK_FAIL("%s has no answer", op->id);
			for (const struct operation_param *p = op->params; p && p->name; p++)
				if (!p->help || !is_sentence(p->help))
					CHECK_FAIL("%s %s: the help is no sentence", op->id, p->name);
		}
}

TEST(parameters_are_found_by_name_and_by_prefix)
{
	static const struct {
		const struct operation *op;
		const char *name;
		bool has;
	} rows[] = {
		{ &query_operations[OP_QUERY], "query", true },
		{ &query_operations[OP_QUERY], "quer", false },
		{ &query_operations[OP_QUERY], "step", false },
		{ &metadata_operations[OP_LABEL_VALUES], "match[]", true },
		{ &metadata_operations[OP_LABEL_VALUES], "name", false }, /* of the path */
		{ &query_operations[OP_SOURCE_LINKS], "label.job", true },
		{ &query_operations[OP_SOURCE_LINKS], "labels", false },
		{ &ingest_operations[OP_INGEST], "region", true }, /* any label */
		{ &status_operations[OP_FLAGS], "query", false },
		{ NULL, "query", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK(operation_has_param(rows[i].op, str_of(rows[i].name)) == rows[i].has);
}

static void check_schema_type(const char *type, const char *want)
{
	struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	schema_write_type(&j, type);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
}

TEST(types_become_schemas)
{
	check_schema_type("int", "{\"type\":\"integer\"}");
	check_schema_type("any", "{}");
	check_schema_type("datetime", "{\"type\":\"string\",\"format\":\"date-time\"}");
	check_schema_type("[][]int",
		"{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}");
	check_schema_type("{}Labels",
		"{\"type\":\"object\",\"additionalProperties\":"
		"{\"$ref\":\"#/components/schemas/Labels\"}}");
	check_schema_type("'a'|''", "{\"type\":\"string\",\"enum\":[\"a\",\"\"]}");
	check_schema_type("[]int|null",
		"{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},"
		"{\"type\":\"null\"}]}");
}

TEST(the_document_has_paths_with_names_and_the_prefix)
{
	static const char *const parts[] = {
		"\"openapi\":\"3.1.0\"",
		"\"servers\":[{\"url\":\"/x\"}]",
		"\"/api/v1/label/{name}/values\":{\"get\":{\"operationId\":\"labelValues\"",
		"\"operationId\":\"queryByForm\"",
		"\"x-role\":\"admin\",\"x-flag\":\"--web.enable-admin-api\"",
	};
	struct buf out = { 0 };

	openapi_write(&out, web_routes, web_routes_n, "/x");
	CHECK(!buf_failed(&out));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (str_find(buf_str(&out), str_of(parts[i])) < 0)
			CHECK_FAIL("the document lacks %s", parts[i]);
	buf_release(&out);
}
