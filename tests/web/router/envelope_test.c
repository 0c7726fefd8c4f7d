/* Errors of the server as clients of the API and of Connect see them. */
#include "web/router/envelope.h"

#include "tests/check.h"

/*
 * The API's are Prometheus's. Clients of Connect ask again after unavailable and
 * resource_exhausted: what fails each time is neither.
 */
TEST(each_error_has_a_status_and_a_name)
{
	static const struct {
		enum err_code rc;
		int api;
		const char *type;
		int connect;
		const char *code;
	} rows[] = {
		{ ERR_NOMEM, 500, "internal", 500, "internal" },
		{ ERR_IO, 500, "internal", 500, "internal" },
		{ ERR_CORRUPT, 500, "internal", 500, "internal" },
		{ ERR_INVALID, 400, "bad_data", 400, "invalid_argument" },
		{ ERR_LIMIT, 422, "execution", 400, "invalid_argument" },
		{ ERR_NOT_FOUND, 404, "not_found", 404, "not_found" },
		{ ERR_EXISTS, 409, "conflict", 409, "already_exists" },
		{ ERR_TIMEOUT, 503, "timeout", 504, "deadline_exceeded" },
		{ ERR_CANCELED, 499, "canceled", 499, "canceled" },
		{ ERR_UNAVAILABLE, 503, "unavailable", 503, "unavailable" },
		{ ERR_UNSUPPORTED, 400, "bad_data", 501, "unimplemented" },
	};
	struct http_out out = { 0 };
	char want[128];
	const char *name;
	struct err err;

	CHECK_INT(sizeof(rows) / sizeof(rows[0]), ERR_CODES - 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_INT(rows[i].rc, i + 1);
		CHECK_INT(api_status(rows[i].rc, &name), rows[i].api);
		CHECK_STR(str_of(name), rows[i].type);
		CHECK_INT(connect_status(rows[i].rc, &name), rows[i].connect);
		CHECK_STR(str_of(name), rows[i].code);
		err_set(&err, rows[i].rc, "no \"%zu\"", i);
		api_fail(&out, rows[i].rc, &err);
		CHECK_INT(out.status, rows[i].api);
		snprintf(want, sizeof(want),
			"{\"status\":\"error\",\"errorType\":\"%s\",\"error\":\"no \\\"%zu\\\"\"}",
			rows[i].type, i);
		CHECK_STR(buf_str(&out.body), want);
		connect_fail(&out, rows[i].rc, &err);
		CHECK_INT(out.status, rows[i].connect);
		snprintf(want, sizeof(want), "{\"code\":\"%s\",\"message\":\"no \\\"%zu\\\"\"}",
			rows[i].code, i);
		CHECK_STR(buf_str(&out.body), want);
	}
	buf_release(&out.body);
}
