/* Tells requests of other sites' pages from ours, and our names from others. */
#include "web/router/origin.h"

#include "tests/check.h"

TEST(which_requests_come_from_a_foreign_page)
{
	static const struct {
		const char *origin, *site, *host, *own;
		bool foreign;
	} rows[] = {
		{ "", "", "a.example:7272", "", false }, /* no browser */
		{ "http://a.example:7272", "", "a.example:7272", "", false },
		{ "HTTP://A.example:7272", "", "a.Example:7272", "", false },
		{ "http://a.example", "", "a.example:80", "", false },
		{ "http://a.example:80", "", "a.example", "", false },
		{ "https://a.example", "", "a.example", "", false }, /* TLS ends before us */
		{ "http://[::1]:7272", "", "[::1]:7272", "", false },
		{ "http://a.example", "", "a.example:7272", "", true },
		{ "http://a.example:7272", "", "a.example:7273", "", true },
		{ "http://evil.example", "", "a.example:7272", "", true },
		{ "http://a.example.evil:7272", "", "a.example:7272", "", true },
		{ "http://evil.example/a.example:7272", "", "a.example:7272", "", true },
		{ "null", "", "a.example:7272", "", true },
		{ "null", "", "null", "", true },
		{ "file://", "", "", "", true },
		{ "http://", "", "", "", true },
		/* A proxy that passes on another Host: its URL is the external one. */
		{ "https://epi.example", "", "10.0.0.1:7272", "https://epi.example", false },
		{ "https://epi.example:443", "", "10.0.0.1:7272", "https://epi.example", false },
		{ "https://epi.example", "", "10.0.0.1:7272", "https://epi.example:443", false },
		{ "http://epi.example", "", "10.0.0.1:7272", "https://epi.example", true },
		{ "https://epi.example:444", "", "10.0.0.1:7272", "https://epi.example", true },
		/* The browser's own word, Sec-Fetch-Site. */
		{ "", "same-origin", "a.example", "", false },
		{ "", "none", "a.example", "", false },
		{ "https://x.example", "same-origin", "10.0.0.1", "", false },
		{ "", "cross-site", "a.example", "", true },
		{ "", "same-site", "a.example", "", true },
		{ "http://a.example", "cross-site", "a.example", "", true },
		{ "https://epi.example", "cross-site", "a.example", "https://epi.example", false },
		{ "null", "cross-site", "a.example", "", true },
		{ "", "whatever", "a.example", "", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct http_in in = { .origin = str_of(rows[i].origin),
			.fetch_site = str_of(rows[i].site),
			.host = str_of(rows[i].host) };

		if (origin_is_foreign(&in, str_of(rows[i].own)) != rows[i].foreign)
			CHECK_FAIL("origin %s, site %s, host %s, own %s: want %d", rows[i].origin, rows[i].site,
				rows[i].host, rows[i].own, rows[i].foreign);
	}
}

TEST(which_names_are_ours)
{
	static const struct flag_list none = { .n = 0 };
	static const struct flag_list names = { { "epi.example", "other:7272", "[fd00::1]" }, 3 };
	static const struct {
		const char *host;
		bool allowed;
	} rows[] = {
		{ "", true },
		{ "epi.example", true },
		{ "EPI.example:1", true },
		{ "other:7272", true },
		{ "other", false },
		{ "other:7273", false },
		{ "outside.example:99", true }, /* of the external URL */
		{ "localhost:7272", true },
		{ "127.0.0.1:7272", true },
		{ "10.1.2.3", true },
		{ "[::1]:7272", true },
		{ "[::1]", true },
		{ "evil.example", false },
		{ "evil.epi.example", false },
		{ "epi.example.evil", false },
		{ "127.0.0.1.evil.example", false },
		{ "localhost.evil", false },
		{ ":7272", false },
		{ "epi.example:", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str host = str_of(rows[i].host), own = STR("https://outside.example");

		if (origin_host_allowed(host, &names, own) != rows[i].allowed)
			CHECK_FAIL("host \"%s\": want %d", rows[i].host, rows[i].allowed);
		CHECK(origin_host_allowed(host, &none, own));
	}
}

TEST(names_that_are_none)
{
	static const char *const wrong[] = { "", "http://a", "a b", "a/b", ":1", "a:b", "*.a" };
	struct err err;
	char want[128];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct flag_list names = { { "fine", wrong[i] }, 2 };

		snprintf(want, sizeof(want), "allowed host \"%s\": neither HOST nor HOST:PORT", wrong[i]);
		CHECK_ERR(origin_check_names(&names, &err), &err, ERR_INVALID, want);
	}
}
