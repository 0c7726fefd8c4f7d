/* The answers, byte by byte: Go's types read them in tests of the whole server. */
#include "proto/otlp/otlp.h"
#include "tests/check.h"

#define LIT(s) \
	{ \
		s, sizeof(s) - 1 \
	}

/* clang-format off */
static const struct {
	uint64_t rejected;
	struct str message;
	struct str protobuf;
	const char *json;
} responses[] = {
	{ 0, LIT(""), LIT(""), "{}" },
	{ 300, LIT("a \"b\""), LIT("\x0a\x0a\x08\xac\x02\x12\x05" "a \"b\""),
		"{\"partialSuccess\":{\"rejectedProfiles\":\"300\",\"errorMessage\":\"a \\\"b\\\"\"}}" },
	{ 0, LIT("a warning"), LIT("\x0a\x0b\x12\x09" "a warning"),
		"{\"partialSuccess\":{\"rejectedProfiles\":\"0\",\"errorMessage\":\"a warning\"}}" },
	/* what is no UTF-8 is replaced */
	{ 1, LIT("\xc3\xa9\xff\xc3"), LIT("\x0a\x0c\x08\x01\x12\x08\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"),
		"{\"partialSuccess\":{\"rejectedProfiles\":\"1\",\"errorMessage\":"
		"\"\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\"}}" },
};
/* clang-format on */

TEST(responses)
{
	for (size_t i = 0; i < sizeof(responses) / sizeof(responses[0]); i++) {
		struct buf out = { 0 };

		otlp_add_response(&out, OTLP_PROTOBUF, responses[i].rejected, responses[i].message);
		CHECK(str_eq(buf_str(&out), responses[i].protobuf));
		buf_clear(&out);
		otlp_add_response(&out, OTLP_JSON, responses[i].rejected, responses[i].message);
		CHECK_STR(buf_str(&out), responses[i].json);
		buf_release(&out);
	}
}

TEST(statuses)
{
	struct buf out = { 0 };

	otlp_add_status(&out, OTLP_PROTOBUF, 3, STR("no"));
	CHECK(str_eq(buf_str(&out), STR("\x08\x03\x12\x02no")));
	buf_clear(&out);
	otlp_add_status(&out, OTLP_JSON, 14, STR("later"));
	CHECK_STR(buf_str(&out), "{\"code\":14,\"message\":\"later\"}");
	buf_release(&out);
}

TEST(codes_of_errors)
{
	CHECK_INT(otlp_status_code(ERR_OK), 0);
	CHECK_INT(otlp_status_code(ERR_INVALID), 3);
	CHECK_INT(otlp_status_code(ERR_UNSUPPORTED), 3);
	CHECK_INT(otlp_status_code(ERR_LIMIT), 8);
	CHECK_INT(otlp_status_code(ERR_UNAVAILABLE), 14);
	CHECK_INT(otlp_status_code(ERR_IO), 13);
}
