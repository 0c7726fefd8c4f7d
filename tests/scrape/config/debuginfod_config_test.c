#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/scrape/config/refused.h"

TEST(it_is_off_by_default)
{
	struct config *c;
	struct err err;

	REQUIRE_OK(load("{}", &c, &err), &err);
	CHECK_INT(c->debuginfod.n + c->debuginfod.directories_n, 0);
	CHECK(!debuginfod_gives_source(&c->debuginfod));
	config_unref(c);
	REQUIRE_OK(load("{debuginfod: [], debug_directories: []}", &c, &err), &err);
	CHECK_INT(c->debuginfod.n + c->debuginfod.directories_n, 0);
	config_unref(c);
}

TEST(servers_and_directories)
{
	const struct debuginfod_server *s;
	struct config *c;
	struct err err;

	REQUIRE_OK(load("debuginfod:\n"
					"- url: https://debuginfod.example/\n"
					"- url: HTTP://files.example:8002/a/b//\n"
					"  timeout: 2m\n"
					"  max_size: 1GB\n"
					"  source: true\n"
					"  allow_paths: ['/opt/.*', /usr/bin/x]\n"
					"  allow_build_ids: ['00.*']\n"
					"  basic_auth: {username: u, password_file: pw}\n"
					"  follow_redirects: false\n"
					"debug_directories: [/usr/lib/debug, image]\n",
				   &c, &err),
		&err);
	REQUIRE(c->debuginfod.n == 2 && c->debuginfod.directories_n == 2);
	s = &c->debuginfod.v[0];
	CHECK_STR(s->url, "https://debuginfod.example");
	CHECK_INT(s->timeout_ns, 30 * NS_PER_S);
	CHECK_INT(s->max_size, 512 << 20);
	CHECK(s->http.follow_redirects);
	CHECK(!s->source);
	CHECK(debuginfod_allows(s, STR(""), STR("abcd")));
	s = &c->debuginfod.v[1];
	CHECK_STR(s->url, "HTTP://files.example:8002/a/b");
	CHECK_INT(s->timeout_ns, 2 * NS_PER_MIN);
	CHECK_INT(s->max_size, 1 << 30);
	CHECK(s->source);
	CHECK(debuginfod_gives_source(&c->debuginfod));
	CHECK(!s->http.follow_redirects);
	CHECK_STR(s->http.password_file, "/etc/epimetheus/pw");
	CHECK(debuginfod_allows(s, STR("/opt/a"), STR("abcd")));
	CHECK(debuginfod_allows(s, STR("/usr/bin/x"), STR("abcd")));
	CHECK(debuginfod_allows(s, STR("/usr/bin/y"), STR("00cd")));
	CHECK(!debuginfod_allows(s, STR("/usr/bin/xx"), STR("abcd")));
	CHECK(!debuginfod_allows(s, STR("/mnt/opt/a"), STR("ab00cd")));
	CHECK(!debuginfod_allows(s, STR(""), STR("abcd")));
	CHECK_STR(c->debuginfod.directories[0], "/usr/lib/debug");
	CHECK_STR(c->debuginfod.directories[1], "/etc/epimetheus/image");
	config_unref(c);
}

/* clang-format off */
static const char *const refused_rows[][2] = {
	{ "debuginfod: {}", "c.yml:1:13: expected a list" },
	{ "debuginfod: [~]", "c.yml:1:14: empty or null debuginfod config section" },
	{ "debuginfod: [http://a]",
	  "c.yml:1:14: cannot unmarshal !!str `http://a` into debuginfod_config" },
	{ "debuginfod: [{}]", "c.yml:1:14: URL is missing" },
	{ "debuginfod: [{url: a}]", "c.yml:1:20: URL scheme must be 'http' or 'https'" },
	{ "debuginfod: [{url: 'ftp://a'}]", "c.yml:1:20: URL scheme must be 'http' or 'https'" },
	{ "debuginfod: [{url: 'http://'}]", "c.yml:1:20: host is missing in URL" },
	{ "debuginfod: [{url: 'http://u:p@a'}]",
	  "c.yml:1:20: user information in a URL is not supported, use basic_auth" },
	{ "debuginfod: [{url: 'http://a/?b=c'}]",
	  "c.yml:1:20: URL of a debuginfod server cannot have a query or a fragment" },
	{ "debuginfod: [{url: 'http://a#b'}]",
	  "c.yml:1:20: URL of a debuginfod server cannot have a query or a fragment" },
	{ "debuginfod: [{url: 'http://a', urls: b}]",
	  "c.yml:1:32: field urls not found in type debuginfod_config; did you mean \"url\"?" },
	{ "debuginfod: [{url: 'http://a', timeout: 0s}]",
	  "c.yml:1:41: timeout of a debuginfod server cannot be 0" },
	{ "debuginfod: [{url: 'http://a', timeout: 30}]",
	  "c.yml:1:41: not a valid duration string: \"30\"" },
	{ "debuginfod: [{url: 'http://a', max_size: 0}]",
	  "c.yml:1:42: max_size of a debuginfod server cannot be 0" },
	{ "debuginfod: [{url: 'http://a', allow_paths: [a, '(']}]",
	  "c.yml:1:45: allow_paths: \"(\": error parsing regexp: missing ): (" },
	{ "debuginfod: [{url: 'http://a', allow_paths: [a], allow_build_ids: ['a)', '(b']}]",
	  "c.yml:1:67: allow_build_ids: \"a)\": error parsing regexp: unexpected ): a)" },
	{ "debuginfod: [{url: 'http://a', basic_auth: {username: u}, bearer_token: t}]",
	  "c.yml:1:44: at most one of basic_auth, oauth2, bearer_token & bearer_token_file must be "
	  "configured" },
	{ "debuginfod:\n- url: http://a\n- url: http://a/\n",
	  "c.yml:3:8: found multiple debuginfod servers with URL \"http://a\"" },
	{ "debug_directories: /usr/lib/debug", "c.yml:1:20: expected a list" },
	{ "debug_directories: [a, '']", "c.yml:1:24: expected the path of a directory" },
	{ "debug_directories: [[a]]", "c.yml:1:21: expected the path of a directory" },
};
/* clang-format on */

TEST(refusals_name_the_place)
{
	refuse_each(refused_rows, sizeof(refused_rows) / sizeof(refused_rows[0]));
}

static void too_many(const char *before, const char *one, unsigned n, const char *want)
{
	struct buf text = { 0 };
	struct config *c;
	struct err err;

	buf_add_cstr(&text, before);
	for (unsigned i = 0; i < n; i++)
		buf_printf(&text, one, i);
	buf_add_char(&text, ']');
	buf_add_char(&text, '\0');
	CHECK_ERR(load(text.ptr, &c, &err), &err, ERR_LIMIT, want);
	buf_release(&text);
}

TEST(limits)
{
	too_many("debuginfod: [", "{url: 'http://a/%u'},", DEBUGINFOD_SERVERS_MAX + 1,
		"c.yml:1:13: more than 16 debuginfod servers");
	too_many("debug_directories: [", "a%u,", DEBUGINFOD_DIRECTORIES_MAX + 1,
		"c.yml:1:20: more than 64 debug_directories");
}

TEST(secrets_are_hidden)
{
	struct buf out = { 0 };
	struct config *c;
	struct err err;

	REQUIRE_OK(load("debuginfod:\n- {url: 'http://a/', authorization: {credentials: geheim}}\n"
					"- {url: 'http://b/', oauth2: {client_id: me, client_secret: geheim, "
					"token_url: 'http://t/?k=geheim'}}\n"
					"- {url: 'http://c/', http_headers: {X: {secrets: [geheim]}}, "
					"proxy_url: 'http://geheim@p'}\n",
				   &c, &err),
		&err);
	config_print(&out, c);
	CHECK(str_find(buf_str(&out), STR("geheim")) < 0);
	CHECK(str_find(buf_str(&out), STR("<secret>")) > 0);
	CHECK(str_find(buf_str(&out), STR("http://b/")) > 0);
	config_unref(c);
	buf_release(&out);
}

TEST(files_are_checked)
{
	char dir[] = "/tmp/epi-debuginfod-config-XXXXXX", text[256], want[256];
	struct config *c;
	struct err err;

	REQUIRE(mkdtemp(dir));
	snprintf(text, sizeof(text), "debug_directories: [%s, %s/gone]", dir, dir);
	snprintf(want, sizeof(want), "debug directory %s/gone: No such file or directory", dir);
	REQUIRE_OK(load(text, &c, &err), &err);
	CHECK_ERR(config_check_files(c, NULL, &err), &err, ERR_NOT_FOUND, want);
	config_unref(c);
	snprintf(text, sizeof(text), "debug_directories: [%s]", dir);
	REQUIRE_OK(load(text, &c, &err), &err);
	CHECK_OK(config_check_files(c, NULL, &err), &err);
	config_unref(c);
	CHECK(rmdir(dir) == 0);
	REQUIRE_OK(
		load("debuginfod: [{url: 'http://a/', bearer_token_file: /gone/x}]", &c, &err), &err);
	CHECK_ERR(config_check_files(c, NULL, &err), &err, ERR_NOT_FOUND,
		"debuginfod server http://a: authorization credentials file /gone/x: No such file or "
		"directory");
	config_unref(c);
}

/* A reload with the same servers leaves what is under way alone. */
TEST(equal_settings_have_equal_bytes)
{
	const char *const texts[] = { "debuginfod: [{url: 'http://a'}]",
		"{debuginfod: [{url: 'http://a/'}], debug_directories: [x]}",
		"debuginfod: [{url: 'http://a', timeout: 31s}]",
		"debuginfod: [{url: 'http://a', max_size: 1MB}]",
		"debuginfod: [{url: 'http://a', source: true}]",
		"debuginfod: [{url: 'http://a', allow_paths: [a]}]",
		"debuginfod: [{url: 'http://a', allow_build_ids: [a]}]",
		"debuginfod: [{url: 'http://a', bearer_token: a}]",
		"debuginfod: [{url: 'http://a'}, {url: 'http://b'}]" };
	struct buf first = { 0 }, other = { 0 };
	struct config *c;
	struct err err;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		REQUIRE_OK(load(texts[i], &c, &err), &err);
		buf_clear(&other);
		debuginfod_config_encode(i ? &other : &first, &c->debuginfod);
		config_unref(c);
		if (i && str_eq(buf_str(&first), buf_str(&other)) != (i == 1))
			CHECK_FAIL("row %zu", i);
	}
	buf_release(&first);
	buf_release(&other);
}
