/* What a scrape without a profile says: statuses, schemes that are wrong, redirects. */

#include "scrape/refusal.h"
#include "tests/check.h"
#include "tests/scrape/fixture.h"

#define HTTP "http://a:1/x"
#define HTTPS "https://a:1/x"
#define STATUS "server returned HTTP status "

TEST(statuses)
{
	static const struct {
		int status;
		const char *type, *location, *body, *asked;
		unsigned redirects;
		bool follows;
		const char *want;
	} rows[] = {
		{ 503, "text/plain; charset=utf-8", "", "no\n", HTTP, 0, true,
			STATUS "503 Service Unavailable: no" },
		{ 500, "TEXT/PLAIN", "", "a\nb\x01\tc", HTTP, 0, true,
			STATUS "500 Internal Server Error: a b  c" },
		{ 404, "text/html", "", "<p>", HTTP, 0, true, STATUS "404 Not Found" },
		{ 404, "", "", "no", HTTP, 0, true, STATUS "404 Not Found" },
		{ 404, "text/plain", "", " \n ", HTTP, 0, true, STATUS "404 Not Found" },
		{ 299, "", "", "", HTTP, 0, true, STATUS "299" },
		{ 400, "text/plain", "", "bad \xff byte", HTTP, 0, true,
			STATUS "400 Bad Request: bad ? byte" },
		/* Go, nginx, Apache */
		{ 400, "", "", "Client sent an HTTP request to an HTTPS server.\n", HTTP, 0, true,
			STATUS "400 Bad Request: the target speaks TLS, set \"scheme: https\"" },
		{ 400, "text/html", "",
			"<html><head><title>400 The plain HTTP request was sent to HTTPS port</title>", HTTP, 0,
			true, STATUS "400 Bad Request: the target speaks TLS, set \"scheme: https\"" },
		{ 400, "text/html; charset=iso-8859-1", "",
			"Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />", HTTP, 0,
			true, STATUS "400 Bad Request: the target speaks TLS, set \"scheme: https\"" },
		/* not of the job's making */
		{ 400, "text/plain", "", "Client sent an HTTP request to an HTTPS server.", HTTPS, 0, true,
			STATUS "400 Bad Request: Client sent an HTTP request to an HTTPS server." },
		{ 400, "text/plain", "", "Client sent an HTTP request to an HTTPS server.", HTTP, 1, true,
			STATUS "400 Bad Request: Client sent an HTTP request to an HTTPS server." },
		{ 500, "text/plain", "", "Client sent an HTTP request to an HTTPS server.", HTTP, 0, true,
			STATUS "500 Internal Server Error: Client sent an HTTP request to an HTTPS server." },
		{ 302, "text/html", "http://u:p@sso/login?next=%2Fx&seconds=3", "<a>", HTTP, 0, false,
			STATUS
			"302 Found: it leads to http://xxxxx@sso/login?next=xxxxx&seconds=3, and the job "
			"has \"follow_redirects: false\"" },
		{ 301, "text/plain", "/login", "moved", HTTP, 0, false,
			STATUS "301 Moved Permanently: it leads to /login, and the job has "
				   "\"follow_redirects: false\"" },
		{ 307, "", "", "", HTTP, 0, true,
			STATUS "307 Temporary Redirect: it does not say where to" },
		{ 304, "", "/x", "", HTTP, 0, true, STATUS "304 Not Modified" },
	};
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct http_response res = { .status = rows[i].status,
			.redirects = rows[i].redirects,
			.content_type = str_of(rows[i].type),
			.location = str_of(rows[i].location),
			.body = str_of(rows[i].body),
			.final_url = "http://b/" };

		CHECK_ERR(refusal_status(&res, str_of(rows[i].asked), rows[i].follows, &err), &err,
			ERR_UNAVAILABLE, rows[i].want);
	}
}

TEST(long_texts_are_cut)
{
	struct http_response res = { .status = 500, .content_type = STR("text/plain") };
	struct buf way = { 0 };
	char wide[400], url[400];
	struct err err;

	/* 199 bytes and a character of two: cut before it, not in it */
	memset(wide, 'x', sizeof(wide));
	memcpy(wide + 199, "\xc3\xa4", 2);
	res.body = (struct str){ wide, sizeof(wide) };
	CHECK_INT(refusal_status(&res, STR(HTTP), true, &err), ERR_UNAVAILABLE);
	CHECK_INT(strlen(err.msg), strlen(STATUS "500 Internal Server Error: ") + 199);
	snprintf(url, sizeof(url), "http://b/%0300d", 0);
	res.redirects = 1;
	res.final_url = url;
	refusal_print_way(&way, &res);
	CHECK_INT(way.len, 203);
	CHECK_STR(((struct str){ way.ptr + 190, 13 }), "0000000000...");
	buf_clear(&way);
	res.redirects = 0;
	refusal_print_way(&way, &res);
	CHECK_INT(way.len, 0);
	buf_release(&way);
}

TEST(failures_of_wrong_schemes)
{
	static const struct {
		const char *asked;
		unsigned redirects;
		const char *msg, *want;
	} rows[] = {
		{ HTTPS, 0, "tls 10.0.0.1:1: wrong version number",
			"tls 10.0.0.1:1: wrong version number: the target does not speak TLS, set "
			"\"scheme: http\"" },
		{ HTTPS, 1, "tls 10.0.0.1:1: wrong version number",
			"tls 10.0.0.1:1: wrong version number" },
		{ HTTPS, 0, "proxy tls 10.0.0.1:1: wrong version number",
			"proxy tls 10.0.0.1:1: wrong version number" },
		{ HTTPS, 0, "tls 10.0.0.1:1: connection closed", "tls 10.0.0.1:1: connection closed" },
		{ HTTP, 0, "malformed HTTP response: the server speaks TLS",
			"malformed HTTP response: the server speaks TLS: set \"scheme: https\"" },
		{ HTTP, 0, "malformed HTTP response: the server speaks HTTP/2",
			"malformed HTTP response: the server speaks HTTP/2: set \"scheme: https\" if it has "
			"TLS, "
			"else let it serve HTTP/1.1 too" },
		{ HTTPS, 0, "malformed HTTP response: the server speaks HTTP/2",
			"malformed HTTP response: the server speaks HTTP/2: remove \"enable_http2: false\", or "
			"let "
			"the target offer h2 by ALPN" },
		{ HTTPS, 0, "tls 127.0.0.1:1: tlsv1 alert no application protocol",
			"tls 127.0.0.1:1: tlsv1 alert no application protocol: the target speaks only HTTP/2, "
			"remove \"enable_http2: false\"" },
		{ HTTPS, 0, "HTTP/2: the server reset the stream: HTTP_1_1_REQUIRED",
			"HTTP/2: the server reset the stream: HTTP_1_1_REQUIRED: set \"enable_http2: false\"" },
		{ HTTP, 2, "malformed HTTP response: the server speaks TLS",
			"malformed HTTP response: the server speaks TLS" },
		{ HTTP, 0, "malformed HTTP response \"SSH-2.0\"", "malformed HTTP response \"SSH-2.0\"" },
	};
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct http_response res = { .redirects = rows[i].redirects };

		err_set(&err, ERR_UNAVAILABLE, "%s", rows[i].msg);
		refusal_explain_failure(&res, str_of(rows[i].asked), &err);
		CHECK_STR(str_of(err.msg), rows[i].want);
		CHECK_INT(err.code, ERR_UNAVAILABLE);
	}
}

/* Over sockets, as the page shows them. */
TEST(what_is_shown_of_a_target)
{
	static const struct {
		const char *name, *settings, *path, *want;
	} rows[] = {
		{ "tls", "", "/tls",
			STATUS "400 Bad Request: the target speaks TLS, set \"scheme: https\"" },
		{ "alert", "", "/alert",
			"malformed HTTP response: the server speaks TLS: set \"scheme: https\"" },
		{ "plain", "scheme: https, ", "/good",
			"tls 127.0.0.1:PORT: wrong version number: the target does not speak TLS, set "
			"\"scheme: http\"" },
		{ "login", "", "/to/html",
			"target answers a web page (Content-Type \"text/html; charset=utf-8\"), not a profile: "
			"a login or error page may have answered; check the "
			"address and the credentials; "
			"the target redirected to http://127.0.0.1:PORT/html" },
		{ "lost", "", "/to/404page",
			STATUS "404 Not Found; the target redirected to http://127.0.0.1:PORT/404page" },
		{ "cut", "", "/to/reset",
			"read 127.0.0.1:PORT: unexpected EOF; the target redirected to "
			"http://127.0.0.1:PORT/reset" },
		{ "round", "", "/to/round",
			"stopped after 10 redirects; the target redirected to http://127.0.0.1:PORT/to/round" },
		{ "still", "follow_redirects: false, ", "/to/html",
			STATUS "302 Found: it leads to /html, and the job has \"follow_redirects: false\"" },
		{ "moved", "", "/to/good", "" },
	};
	struct buf jobs = { 0 }, want = { 0 };
	struct fixture f;
	struct err err;

	fixture_init(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		buf_printf(&jobs,
			"- {job_name: %s, %s static_configs: [{targets: [PORT], labels: {" PATIENT "}}], "
			"profiling_config: {pprof_config: {" OFF ", %s: {path: %s}}}}\n",
			rows[i].name, rows[i].settings, rows[i].name, rows[i].path);
	buf_add_char(&jobs, '\0');
	REQUIRE_OK(fixture_apply(&f, jobs.ptr, &err), &err);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct target_info t = fixture_wait_scraped(&f, rows[i].name, 0);
		const char *port = strstr(rows[i].want, "PORT");

		buf_clear(&want);
		for (const char *at = rows[i].want; *at; at++) {
			if (at != port) {
				buf_add_char(&want, *at);
				continue;
			}
			buf_printf(&want, "%d", http_target_port(f.target));
			at += 3;
			port = strstr(at, "PORT");
		}
		if (!str_eq(t.last_error, buf_str(&want)))
			CHECK_FAIL("%s: \"" STR_FMT "\", want \"" STR_FMT "\"", rows[i].name,
				STR_ARG(t.last_error), STR_ARG(buf_str(&want)));
	}
	buf_release(&jobs);
	buf_release(&want);
	fixture_release(&f);
}
