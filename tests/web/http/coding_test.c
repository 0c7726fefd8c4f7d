/* Which coding an answer gets, by what the client accepts. */
#include <zstd.h>

#include "tests/check.h"
#include "web/http/http.h"

TEST(the_coding_is_the_one_with_the_highest_weight)
{
	static const struct {
		const char *accepts;
		enum http_coding coding;
		bool gzip; /* is taken */
	} cases[] = {
		{ "", HTTP_PLAIN, false },
		{ "identity", HTTP_PLAIN, false },
		{ "*", HTTP_PLAIN, false },
		{ "gzip", HTTP_GZIP, true },
		{ "gzip, deflate, br", HTTP_GZIP, true },
		{ "gzip, deflate, br, zstd", HTTP_ZSTD, true },
		{ "zstd", HTTP_ZSTD, false },
		{ "zstd,gzip", HTTP_ZSTD, true },
		{ "zstandard, x-gzip", HTTP_PLAIN, false },
		{ "zstd;q=0, gzip", HTTP_GZIP, true },
		{ "zstd;q=0", HTTP_PLAIN, false },
		{ "gzip;q=0", HTTP_PLAIN, false },
		{ "gzip; q=0.00, zstd;q=0.001", HTTP_ZSTD, false },
		{ "zstd;q=0.5, gzip", HTTP_GZIP, true },
		{ "zstd;q=0.5, gzip;q=0.50", HTTP_ZSTD, true },
		{ "zstd;q=0.499, gzip;q=0.5", HTTP_GZIP, true },
		{ "zstd ; q=1.0, gzip;q=0.9", HTTP_ZSTD, true },
		{ "zstd;q=x, gzip;q=0.1", HTTP_GZIP, true },
		{ "zstd;q=", HTTP_PLAIN, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http_in in = { .accept_encoding = str_of(cases[i].accepts) };

		if (http_coding_of(&in) != cases[i].coding || http_takes_gzip(&in) != cases[i].gzip)
			CHECK_FAIL("\"%s\": %d", cases[i].accepts, (int)http_coding_of(&in));
	}
}

TEST(a_body_in_zstd_is_one_frame)
{
	struct buf coded = { 0 };
	char plain[64];
	struct err err;

	buf_add_cstr(&coded, "before");
	CHECK_OK(coding_add(HTTP_ZSTD, STR("some text, some text, some text"), &coded, &err), &err);
	CHECK_INT(ZSTD_decompress(plain, sizeof(plain), coded.ptr + 6, coded.len - 6), 31);
	CHECK(str_eq((struct str){ plain, 31 }, STR("some text, some text, some text")));
	buf_release(&coded);
}
