#include "tests/base/net/http_pair.h"
#include "tests/check.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static struct http_server other;
static char want[256];

static bool start(script_fn script, const void *ctx)
{
	return pair_start(script, ctx, NULL, "/path?q=1");
}

static const struct http_config follow = { .follow_redirects = true };

static struct label secret_headers[] = { { { "X-Secret", 8 }, { "s", 1 } } };
static struct label plain_headers[] = { { { "Accept-Encoding", 15 }, { "gzip", 4 } },
	{ { "X-Mine", 6 }, { "m", 1 } } };

static struct http_config with_credentials(void)
{
	struct http_config c = { .follow_redirects = true,
		.has_basic_auth = true,
		.username = STR("Aladdin"),
			.password = STR("open sesame"), .headers = { secret_headers, 1 } };

	return c;
}

TEST(a_redirect_loop_ends)
{
	REQUIRE(start(
		script_answers, "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"));
	client_get(&client, url, &follow, &res);
	CHECK_INT(res.rc, ERR_LIMIT);
	CHECK_STR(str_of(res.msg), "stopped after 10 redirects");
	CHECK_INT(server.requests, 11);
	CHECK_INT(server.connections, 1);
	CHECK(http_server_saw(&server, "GET /again HTTP/1.1\r\n"));
	client_get(&client, url, NULL, &res); /* nobody asked to follow */
	CHECK_INT(res.rc, ERR_OK);
	CHECK_INT(res.status, 302);
	pair_stop();
}

TEST(a_redirect_to_another_origin_loses_what_is_secret)
{
	struct http_config config = with_credentials();
	struct http_request_options o = { .config = &config, .headers = { plain_headers, 2 } };
	char location[256];

	REQUIRE(http_server_start(&other, script_answers, (void *)(uintptr_t)OK, NULL));
	snprintf(location, sizeof(location),
		"HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\n"
		"Location: http://127.0.0.1:%u/there\r\n\r\n",
		other.port);
	REQUIRE(start(script_answers, location));
	o.url = str_of(url);
	client_run(&client, o, &res);
	CHECK_INT(res.rc, ERR_OK);
	CHECK_STR(buf_str(&res.body), "ok");
	CHECK(http_server_saw(&server, "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
	CHECK(http_server_saw(&server, "X-Secret: s\r\n"));
	CHECK(http_server_saw(&server, "X-Mine: m\r\n"));
	snprintf(want, sizeof(want),
		"GET /there HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: test/1\r\n"
		"Accept-Encoding: gzip\r\n\r\n",
		other.port);
	mutex_lock(&other.lock);
	CHECK_STR(buf_str(&other.last), want);
	mutex_unlock(&other.lock);
	snprintf(want, sizeof(want), "http://127.0.0.1:%u/there", other.port);
	CHECK_STR(str_of(res.url), want);
	pair_stop();
	http_server_stop(&other);
}

static void script_redirect_once(struct peer *p, void *ctx)
{
	if (peer_read_request(p) && peer_print(p, ctx) && peer_read_request(p))
		peer_print(p, OK);
}

TEST(methods_over_redirects)
{
	/* clang-format off */
	static const struct {
		const char *status, *method, *want;
	} rows[] = {
		{ "301", "POST", "GET /b " }, { "302", "POST", "GET /b " }, { "303", "PUT", "GET /b " },
		{ "307", "POST", "POST /b " }, { "308", "PUT", "PUT /b " }, { "303", "HEAD", "HEAD /b " },
	};
	/* clang-format on */
	struct http_config config = with_credentials();
	char answer[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_request_options o = { .config = &config,
			.method = rows[i].method,
			.body = strcmp(rows[i].method, "HEAD") ? STR("body") : STR("") };

		snprintf(answer, sizeof(answer),
			"HTTP/1.1 %s X\r\nLocation: b\r\nContent-Length: 0\r\n\r\n", rows[i].status);
		REQUIRE(start(script_redirect_once, answer));
		o.url = str_of(url);
		client_run(&client, o, &res);
		CHECK_INT(res.rc, ERR_OK);
		CHECK_INT(res.status, 200);
		CHECK(http_server_saw(&server, rows[i].want));
		CHECK(http_server_saw(&server, "Authorization: Basic "));
		CHECK(http_server_saw(&server, "\r\n\r\nbody") == (rows[i].want[0] == 'P'));
		pair_stop();
	}
}

TEST(a_redirect_to_elsewhere_than_http)
{
	REQUIRE(start(script_answers,
		"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"));
	client_get(&client, url, &follow, &res);
	CHECK_INT(res.rc, ERR_INVALID);
	CHECK_STR(str_of(res.msg),
		"redirect: invalid URL \"file:///etc/passwd\": unsupported protocol scheme");
	pair_stop();
}
