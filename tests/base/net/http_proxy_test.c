#include "base/net/http_proxy.h"

#include <stdlib.h>

#include "base/net/http_client_internal.h"
#include "tests/base/net/no_proxy_table.h"
#include "tests/check.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

TEST(no_proxy_is_read_as_go_reads_it)
{
	struct http_url url;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < COUNT(no_proxy_rows); i++)
		for (size_t k = 0; k < COUNT(no_proxy_urls); k++) {
			bool got;

			REQUIRE_OK(http_url_parse(&a, str_of(no_proxy_urls[k]), &url, &err), &err);
			got = http_proxy_is_bypassed(str_of(no_proxy_rows[i].list), url.host, url.port);
			if (got != (no_proxy_rows[i].want[k] == 'd'))
				CHECK_FAIL("no_proxy \"%s\" and %s: %s, unlike Go", no_proxy_rows[i].list,
					no_proxy_urls[k], got ? "directly" : "by the proxy");
		}
	arena_release(&a);
}

TEST(long_and_odd_lists)
{
	struct buf list = { 0 };

	for (size_t i = 0; i < 600; i++)
		buf_add_char(&list, 'x');
	buf_add_cstr(&list, ",a.b");
	CHECK(http_proxy_is_bypassed(buf_str(&list), STR("a.b"), 80));
	CHECK(!http_proxy_is_bypassed((struct str){ list.ptr, 600 }, STR("a.b"), 80));
	CHECK(!http_proxy_is_bypassed((struct str){ "a.b\0c", 5 }, STR("a.b"), 80));
	CHECK(!http_proxy_is_bypassed((struct str){ "10.0.0.0\0/8", 11 }, STR("10.1.1.1"), 80));
	buf_release(&list);
}

static void check_parse(
	struct arena *a, const char *url, bool loose, enum err_code code, const char *want)
{
	struct http_proxy p = { 0 };
	struct buf got = { 0 };
	struct err err;
	enum err_code rc = http_proxy_parse(a, str_of(url), loose, &p, &err);

	if (rc)
		buf_add_cstr(&got, err.msg);
	else
		buf_printf(&got, "%d " STR_FMT " %u", p.kind, STR_ARG(p.host), p.port);
	if (!rc && p.has_user)
		buf_printf(&got, " " STR_FMT "|" STR_FMT, STR_ARG(p.user), STR_ARG(p.password));
	if (rc != code || !str_is(buf_str(&got), want))
		CHECK_FAIL("%s gives %d: " STR_FMT, url, rc, STR_ARG(buf_str(&got)));
	buf_release(&got);
}

TEST(urls_of_proxies)
{
	static const struct {
		const char *url;
		bool loose;
		enum err_code code;
		const char *want;
	} rows[] = {
		{ "http://p", false, ERR_OK, "1 p 80" },
		{ "HTTPS://P.example:8443/ignored?x#y", false, ERR_OK, "2 p.example 8443" },
		{ "https://p", false, ERR_OK, "2 p 443" },
		{ "socks5://p", false, ERR_OK, "3 p 1080" },
		{ "socks5h://[::1]:9050", false, ERR_OK, "3 ::1 9050" },
		{ "http://us%40er:p%3Ass+@p:3128", false, ERR_OK, "1 p 3128 us@er|p:ss+" },
		{ "http://user@p", false, ERR_OK, "1 p 80 user|" },
		{ "http://a:b@c@p", false, ERR_OK, "1 p 80 a|b@c" },
		{ "p:3128", true, ERR_OK, "1 p 3128" },
		{ "user:pw@p", true, ERR_OK, "1 p 80 user|pw" },
		{ "p:3128", false, ERR_INVALID,
			"the URL of a proxy begins with http://, https://, socks5:// or socks5h://" },
		{ "socks4://p", false, ERR_INVALID, "proxy scheme \"socks4\" is not supported" },
		{ "http://", false, ERR_INVALID, "invalid URL of a proxy: no host" },
		{ "http://user:secret@", false, ERR_INVALID, "invalid URL of a proxy: no host" },
		{ "http://user:secret@p q", false, ERR_INVALID,
			"invalid URL of a proxy: invalid character in host name" },
		{ "http://p:0", false, ERR_INVALID, "invalid URL of a proxy: invalid port" },
		{ "http://[::1", false, ERR_INVALID, "invalid URL of a proxy: missing ']' in host" },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < COUNT(rows); i++)
		check_parse(&a, rows[i].url, rows[i].loose, rows[i].code, rows[i].want);
	arena_release(&a);
}

TEST(an_address_ends_at_its_bracket)
{
	static const char text[] = "http://[::1\0x]:80";
	struct http_proxy p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	CHECK_ERR(http_proxy_parse(&a, (struct str){ text, sizeof(text) - 1 }, false, &p, &err), &err,
		ERR_INVALID, "invalid URL of a proxy: not an IPv6 address in brackets");
	arena_release(&a);
}

/* The proxy's host, "-" for none, or the error. */
static const char *choose(
	struct arena *a, const struct http_proxy_config *c, bool tls, const char *host)
{
	struct http_proxy p;
	struct err err;

	if (http_proxy_choose(a, c, tls, str_of(host), tls ? 443 : 80, &p, &err))
		return arena_strndup(a, err.msg, strlen(err.msg));
	return p.kind ? p.host.ptr : "-";
}

TEST(a_url_alone_is_for_all_hosts)
{
	struct http_proxy_config c = { .url = STR("http://p") };
	struct arena a;

	arena_init(&a, 0);
	CHECK_STR(str_of(choose(&a, &c, false, "localhost")), "p");
	CHECK_STR(str_of(choose(&a, &c, true, "a.b")), "p");
	c.no_proxy = STR("a.b"); /* with a list Go's other rules count, too */
	CHECK_STR(str_of(choose(&a, &c, false, "localhost")), "-");
	CHECK_STR(str_of(choose(&a, &c, true, "a.b")), "-");
	CHECK_STR(str_of(choose(&a, &c, true, "c.d")), "p");
	c = (struct http_proxy_config){ 0 };
	CHECK_STR(str_of(choose(&a, &c, true, "c.d")), "-");
	arena_release(&a);
}

TEST(the_environment)
{
	static const char *const names[] = { "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY",
		"no_proxy", "NO_PROXY" };
	struct http_proxy_config c = { .from_environment = true };
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < COUNT(names); i++)
		unsetenv(names[i]);
	CHECK_STR(str_of(choose(&a, &c, false, "a.b")), "-");
	setenv("HTTP_PROXY", "upper:1", 1);
	setenv("HTTPS_PROXY", "https://secure", 1);
	CHECK_STR(str_of(choose(&a, &c, false, "a.b")), "upper");
	CHECK_STR(str_of(choose(&a, &c, true, "a.b")), "secure");
	CHECK_STR(str_of(choose(&a, &c, false, "localhost")), "-");
	CHECK_STR(str_of(choose(&a, &c, true, "127.0.0.1")), "-");
	setenv("http_proxy", "http://lower", 1);
	CHECK_STR(str_of(choose(&a, &c, false, "a.b")), "lower");
	setenv("http_proxy", "", 1);
	CHECK_STR(str_of(choose(&a, &c, false, "a.b")), "upper");
	setenv("NO_PROXY", "a.b", 1);
	CHECK_STR(str_of(choose(&a, &c, false, "a.b")), "-");
	setenv("no_proxy", "other", 1);
	CHECK_STR(str_of(choose(&a, &c, false, "a.b")), "upper");
	setenv("HTTP_PROXY", "ftp://user:secret@p", 1);
	CHECK_STR(str_of(choose(&a, &c, false, "a.b")),
		"HTTP_PROXY of the environment: proxy scheme \"ftp\" is not supported");
	for (size_t i = 0; i < COUNT(names); i++)
		unsetenv(names[i]);
	arena_release(&a);
}
