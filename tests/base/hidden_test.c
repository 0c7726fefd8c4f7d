/* URLs and labels that may hold a secret, as they are shown. */
#include "base/hidden.h"

#include "tests/check.h"

TEST(urls)
{
	static const struct {
		const char *url, *want;
	} rows[] = {
		{ "", "" },
		{ "http://host:6060/debug/pprof/profile", NULL },
		{ "http://host:6060/debug/pprof/profile?seconds=9", NULL },
		{ "http://host/p?debug=1&gc=1&seconds=5", NULL },
		{ "http://host/p?token=S", "http://host/p?token=xxxxx" },
		{ "http://host/p?a=S&seconds=5&b=S;c=S",
			"http://host/p?a=xxxxx&seconds=5&b=xxxxx;c=xxxxx" },
		{ "http://host/p?seconds=5&S", "http://host/p?seconds=5&xxxxx" },
		{ "http://host/p?S", "http://host/p?xxxxx" },
		{ "http://host?S=", "http://host?S=xxxxx" },
		{ "http://host/p?", NULL },
		{ "http://host/p?&", NULL },
		{ "http://host/p?a=b=S", "http://host/p?a=xxxxx" },
		{ "http://host/p?secondsS=S", "http://host/p?secondsS=xxxxx" },
		{ "http://user:S@host/p", "http://xxxxx@host/p" },
		{ "https://S@host:1/p?gc", "https://xxxxx@host:1/p?gc" },
		{ "http://u:S@S@host/p", "http://xxxxx@host/p" },
		{ "http://host/a@b?c=d@e", "http://host/a@b?c=xxxxx" },
		{ "http://host/p#S", "http://host/p#xxxxx" },
		{ "http://host/p?t=S#S", "http://host/p?t=xxxxx#xxxxx" },
		{ "http://host#S?seconds=1", "http://host#xxxxx" },
		{ "host:6060", NULL },
		{ "user:S@host:6060", "xxxxx@host:6060" },
		{ "@host", "xxxxx@host" },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str url = str_of(rows[i].url), got = hidden_url(&a, url);

		CHECK_STR(got, rows[i].want ? rows[i].want : rows[i].url);
		CHECK(rows[i].want ? !*rows[i].want || got.ptr != url.ptr : got.ptr == url.ptr);
	}
	arena_release(&a);
}

TEST(labels)
{
	struct label v[] = {
		{ STR("__address__"), STR("u:S@host:1") },
			{ STR("__meta_url"), STR("http://host/sd?token=S") },
				{ STR("__param_empty"), STR("") },
					{ STR("__param_seconds"), STR("9") },
						{ STR("__param_token"), STR("S") },
							{ STR("job"), STR("a?b=c@d") },
						};
	static const char *const want[] = { "xxxxx@host:1", "http://host/sd?token=xxxxx", "", "9",
		"<secret>", "a?b=c@d" };
	struct labels l = { v, 6 }, plain = { v + 5, 1 }, got;
	struct arena a;

	arena_init(&a, 0);
	got = hidden_labels(&a, l);
	REQUIRE(got.n == 6);
	for (size_t i = 0; i < 6; i++) {
		CHECK(str_eq(got.v[i].name, v[i].name));
		CHECK_STR(got.v[i].value, want[i]);
	}
	CHECK_STR(v[4].value, "S");
	CHECK(hidden_labels(&a, plain).v == plain.v);
	arena_release(&a);
}
