/* The API's parts of the book have each route. */
#include "cmd/book/book.h"
#include "tests/check.h"
#include "web/openapi/openapi.h"
#include "web/openapi/operations.h"
#include "web/routes.h"

TEST(each_route_is_in_the_part_of_its_tag)
{
	struct buf out = { 0 }, heading = { 0 };
	struct err err = { 0 };
	char name[64];
	const struct book_part part = { name, api_part_write };

	for (size_t i = 0; i < operation_tags_n; i++) {
		snprintf(name, sizeof(name), API_PART_PREFIX "%s", operation_tags[i].name);
		REQUIRE_OK(api_part_write(&part, &out, &err), &err);
	}
	REQUIRE(!buf_failed(&out));
	for (size_t i = 0; i < web_routes_n; i++) {
		if (!web_routes[i].op)
			continue;
		buf_clear(&heading);
		buf_add_char(&heading, ' ');
		openapi_path(&heading, &web_routes[i]);
		buf_printf(&heading, "\n\n%s.", web_routes[i].op->summary);
		if (str_find(buf_str(&out), buf_str(&heading)) < 0)
			CHECK_FAIL("no part has" STR_FMT, STR_ARG(buf_str(&heading)));
	}
	buf_release(&heading);
	buf_release(&out);
}
