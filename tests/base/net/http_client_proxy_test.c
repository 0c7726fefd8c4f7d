/*
 * Proxies, real ones: a thread per connection answers CONNECT and SOCKS5 and carries the bytes on
 * to the target, plainly or within TLS of its own.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/net/http_client.h"
#include "tests/base/net/h2_server.h"
#include "tests/base/net/http_pair.h"
#include "tests/base/net/identity.h"
#include "tests/check.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define BIG 3000000 /* many records of TLS */

static struct http_server proxy;
static struct identity ca, leaf;
static struct arena arena;
static char proxy_url[128], want[512];
static atomic_uint socks_names; /* targets that came as names */

/* -------------------------------------------------------------------------------------------- */
/* The proxy */

static int connect_target(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sa.sin_port = htons((uint16_t)server.port);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		close(fd);
		return -1;
	}
	return fd;
}

static ssize_t take(struct peer *p, void *to, size_t n)
{
	return p->ssl ? SSL_read(p->ssl, to, (int)n) : recv(p->fd, to, n, 0);
}

static bool take_all(struct peer *p, void *to, size_t n)
{
	for (ssize_t got; n; n -= (size_t)got, to = (char *)to + got)
		if ((got = take(p, to, n)) <= 0)
			return false;
	return true;
}

/* Carries bytes both ways until one side ends. */
static void carry(struct peer *p)
{
	char bytes[20000];
	int fd = connect_target();
	struct pollfd fds[2] = { { p->fd, POLLIN, 0 }, { fd, POLLIN, 0 } };
	ssize_t n = 1;

	while (fd >= 0 && n > 0) {
		if (!(p->ssl && SSL_pending(p->ssl)) && poll(fds, 2, -1) < 0)
			break;
		if ((p->ssl && SSL_pending(p->ssl)) || fds[0].revents) {
			n = take(p, bytes, sizeof(bytes));
			if (n > 0)
				n = send(fd, bytes, (size_t)n, MSG_NOSIGNAL);
		} else if (fds[1].revents) {
			n = recv(fd, bytes, sizeof(bytes), 0);
			if (n > 0 && !peer_write(p, (struct str){ bytes, (size_t)n }))
				n = 0;
		}
		fds[0].revents = fds[1].revents = 0;
	}
	if (fd >= 0)
		close(fd);
}

/* Requests that are no CONNECT are answered here: their target need not exist. */
static void script_proxy(struct peer *p, void *ctx)
{
	while (peer_read_request(p)) {
		if (!str_has_prefix(buf_str(&p->request), STR("CONNECT "))) {
			if (!peer_print(p, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nproxied"))
				return;
			continue;
		}
		if (peer_print(p, "HTTP/1.0 200 Connection established\r\nX: y\r\n\r\n"))
			carry(p);
		return;
	}
}

static bool socks_password(struct peer *p)
{
	unsigned char version, n, user[256] = "", password[256] = "";

	if (!peer_write(p, (struct str){ "\x05\x02", 2 }) || !take_all(p, &version, 1) ||
		version != 1 || !take_all(p, &n, 1) || !take_all(p, user, n) || !take_all(p, &n, 1) ||
		!take_all(p, password, n))
		return false;
	if (strcmp((char *)user, "me") != 0 || strcmp((char *)password, "p:w") != 0) {
		peer_write(p, (struct str){ "\x01\x01", 2 });
		return false;
	}
	return peer_write(p, (struct str){ "\x01\x00", 2 });
}

/* ctx not NULL: a password is asked for. Whatever is asked for, the target is ours. */
static void script_socks(struct peer *p, void *ctx)
{
	unsigned char head[4], rest[300];

	if (!take_all(p, head, 2) || head[0] != 5 || !take_all(p, rest, head[1]))
		return;
	if (ctx ? !socks_password(p) : !peer_write(p, (struct str){ "\x05\x00", 2 }))
		return;
	if (!take_all(p, head, 4) || head[0] != 5 || head[1] != 1)
		return;
	rest[0] = 0;
	if (head[3] == 3)
		atomic_fetch_add(&socks_names, 1);
	if ((head[3] == 3 && !take_all(p, rest, 1)) ||
		!take_all(p, rest + 1,
			(head[3] == 1        ? 4u :
					head[3] == 4 ? 16u :
								   rest[0]) +
				2u))
		return;
	/* the bound address as a name, in two pieces */
	if (!peer_write(p, (struct str){ "\x05\x00\x00\x03\x04na", 7 }))
		return;
	sleep_ms(5);
	if (peer_write(p, (struct str){ "me\x12\x34", 4 }))
		carry(p);
}

/* ctx: what is written once the first bytes came. */
static void script_says(struct peer *p, void *ctx)
{
	char bytes[4096];

	if (take(p, bytes, sizeof(bytes)) > 0) {
		peer_print(p, ctx);
		while (take(p, bytes, sizeof(bytes)) > 0)
			;
	}
}

static void script_silent(struct peer *p, void *ctx)
{
	char bytes[4096];

	while (take(p, bytes, sizeof(bytes)) > 0)
		;
}

static void script_closes(struct peer *p, void *ctx)
{
	char bytes[4096];

	take(p, bytes, sizeof(bytes));
}

/* -------------------------------------------------------------------------------------------- */
/* The tests' frame */

static void script_big(struct peer *p, void *ctx)
{
	struct buf b = { 0 };

	buf_printf(&b, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BIG);
	for (size_t i = 0; i < BIG; i++)
		buf_add_char(&b, (char)('a' + i % 23));
	while (peer_read_request(p) && peer_write(p, buf_str(&b)))
		;
	buf_release(&b);
}

static bool start(script_fn target, bool target_tls, script_fn script, const void *ctx,
	const char *scheme, bool proxy_tls)
{
	arena_init(&arena, 0);
	if (!identity_make(&ca, "test CA", NULL, NULL) ||
		!identity_make(&leaf, "server", &ca, "DNS:localhost,DNS:target.test,IP:127.0.0.1") ||
		!pair_start(target, OK, target_tls ? identity_server(&leaf, NULL) : NULL, "/x?y=z") ||
		!http_server_start(&proxy, script, (void *)(uintptr_t)ctx,
			proxy_tls ? identity_server(&leaf, NULL) : NULL))
		return false;
	snprintf(proxy_url, sizeof(proxy_url), "%s127.0.0.1:%u", scheme, proxy.port);
	return true;
}

static void stop(void)
{
	client_close(&client);
	http_server_stop(&proxy);
	http_server_stop(&server);
	SSL_CTX_free(server.tls);
	SSL_CTX_free(proxy.tls);
	result_release(&res);
	res = (struct http_result){ 0 };
	identity_release(&ca);
	identity_release(&leaf);
	arena_release(&arena);
}

static struct http_config config_of(void)
{
	return (struct http_config){ .tls_ca = identity_pem(&arena, &ca, false),
		.proxy = { .url = str_of(proxy_url) } };
}

static void check_answer(const char *to, const struct http_config *c, const char *body)
{
	client_get(&client, to, c, &res);
	CHECK_STR(str_of(res.msg), "");
	CHECK_INT(res.status, 200);
	CHECK_STR(buf_str(&res.body), body);
}

static void check_seen(struct http_server *s, const char *text)
{
	if (http_server_saw(s, text))
		return;
	mutex_lock(&s->lock);
	CHECK_FAIL("no %s in " STR_FMT, text, STR_ARG(buf_str(&s->last)));
	mutex_unlock(&s->lock);
}

/* The message, in which PROXY and TARGET are the ports. */
static void check_problem(
	const char *to, const struct http_config *c, enum err_code code, const char *message)
{
	struct buf b = { 0 };

	for (const char *at = message; *at;) {
		if (strncmp(at, "PROXY", 5) == 0) {
			buf_printf(&b, "127.0.0.1:%u", proxy.port);
			at += 5;
		} else if (strncmp(at, "TARGET", 6) == 0) {
			buf_printf(&b, "127.0.0.1:%u", server.port);
			at += 6;
		} else {
			buf_add_char(&b, *at++);
		}
	}
	client_get(&client, to, c, &res);
	CHECK_STR(str_of(res.msg), b.len ? (buf_add_char(&b, '\0'), b.ptr) : "");
	CHECK_INT(res.rc, code);
	buf_release(&b);
}

/* -------------------------------------------------------------------------------------------- */
/* Tests */

TEST(plain_requests_carry_the_whole_url)
{
	struct http_config c;
	struct label header = { STR("X-Connect"), STR("secret") };

	REQUIRE(start(script_answers, false, script_proxy, NULL, "http://us%40er:p%3Aw@", false));
	c = config_of();
	c.proxy.connect_headers = (struct labels){ &header, 1 };
	check_answer("http://A.example/x?y=z#f", &c, "proxied"); /* no name is looked up here */
	check_seen(&proxy, "GET http://a.example/x?y=z HTTP/1.1\r\nHost: a.example\r\n");
	check_seen(&proxy, "\r\nProxy-Authorization: Basic dXNAZXI6cDp3\r\n");
	CHECK(!http_server_saw(&proxy, "X-Connect"));
	check_answer("http://b.example:81/", &c, "proxied");
	check_seen(&proxy, "GET http://b.example:81/ HTTP/1.1\r\nHost: b.example:81\r\n");
	CHECK_INT(http_client_stats(client.http).reuses, 1); /* one connection for all targets */
	CHECK_INT(atomic_load(&proxy.connections), 1);
	c.proxy.no_proxy = STR("localhost");
	check_answer(url, &c, "ok"); /* loopback, now that there is a list */
	CHECK(!http_server_saw(&server, "Proxy-Authorization"));
	check_seen(&server, "GET /x?y=z HTTP/1.1\r\n");
	stop();
}

TEST(connect_for_https)
{
	struct label headers[] = { { STR("X-Tenant"), STR("one") },
		{ STR("X-Tenant"), STR("two") }, { STR("Proxy-Authorization"), STR("replaced") } };
	struct http_config c;

	REQUIRE(start(script_answers, true, script_proxy, NULL, "http://user:pw@", false));
	c = config_of();
	c.has_authorization = true;
	c.credentials = STR("for-the-target");
	c.proxy.connect_headers = (struct labels){ headers, 3 };
	check_answer(url, &c, "ok");
	snprintf(want, sizeof(want),
		"CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: test/1\r\n"
		"X-Tenant: one\r\nX-Tenant: two\r\nProxy-Authorization: Basic dXNlcjpwdw==\r\n\r\n",
		server.port, server.port);
	check_seen(&proxy, want);
	CHECK(!http_server_saw(&proxy, "for-the-target"));
	check_seen(&server, "\r\nAuthorization: Bearer for-the-target\r\n");
	CHECK(!http_server_saw(&server, "Proxy-Authorization") && !http_server_saw(&server, "Tenant"));
	check_answer(url, &c, "ok");
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	CHECK_INT(atomic_load(&proxy.requests), 1);
	c.proxy.connect_headers.n = 1; /* another tenant's tunnel is another's */
	check_answer(url, &c, "ok");
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	c.proxy.url = STR("");
	check_answer(url, &c, "ok");
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	CHECK_INT(atomic_load(&proxy.requests), 2);
	stop();
}

TEST(http2_through_a_tunnel)
{
	struct http_config c;

	REQUIRE(start(h2_script, true, script_proxy, NULL, "https://", true));
	h2_offer(server.tls);
	c = config_of();
	c.enable_http2 = true;
	check_answer(url, &c, "ok");
	check_seen(&proxy, "CONNECT 127.0.0.1:");
	check_seen(&server, ":path: /x?y=z\n");
	check_answer(url, &c, "ok");
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	stop();
}

TEST(a_name_goes_to_the_proxy_and_its_certificate_is_checked)
{
	struct http_config c;

	REQUIRE(start(script_answers, true, script_proxy, NULL, "http://", false));
	c = config_of();
	check_answer("https://target.test/", &c, "ok");
	check_seen(&proxy, "CONNECT target.test:443 HTTP/1.1\r\n");
	check_problem("https://other.test/", &c, ERR_UNAVAILABLE,
		"tls other.test:443: certificate verify failed: hostname mismatch (it is not for "
		"other.test)");
	client_get(&client, "https://[::1]:81/", &c, &res);
	check_seen(&proxy, "CONNECT [::1]:81 HTTP/1.1\r\nHost: [::1]:81\r\n");
	stop();
}

static void check_big(const struct http_config *c)
{
	client_run(&client,
		(struct http_request_options){ .url = str_of(url), .config = c, .body_size_max = BIG + 1 },
		&res);
	CHECK_STR(str_of(res.msg), "");
	CHECK_INT(res.body.len, BIG);
	for (size_t i = 0; i < res.body.len; i++)
		if (res.body.ptr[i] != (char)('a' + i % 23)) {
			CHECK_FAIL("byte %zu is %c", i, res.body.ptr[i]);
			break;
		}
}

TEST(tls_within_the_proxys_tls)
{
	struct http_config c;

	REQUIRE(start(script_big, true, script_proxy, NULL, "https://", true));
	c = config_of();
	check_big(&c);
	check_big(&c);
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	check_answer("http://a.example/", &c, "proxied"); /* TLS to the proxy only */
	check_answer("http://b.example/", &c, "proxied");
	CHECK_INT(http_client_stats(client.http).reuses, 2);
	c.tls_ca = STR("");
	check_problem(url, &c, ERR_UNAVAILABLE,
		"proxy tls PROXY: certificate verify failed: unable to get local issuer certificate");
	stop();
}

TEST(a_large_body_is_sent_through_both)
{
	struct http_config c;
	struct buf body = { 0 };

	REQUIRE(start(script_answers, true, script_proxy, NULL, "https://", true));
	for (size_t i = 0; i < BIG; i++)
		buf_add_char(&body, (char)('a' + i % 23));
	c = config_of();
	client_run(&client,
		(struct http_request_options){
			.method = "POST", .url = str_of(url), .config = &c, .body = buf_str(&body) },
		&res);
	CHECK_STR(str_of(res.msg), "");
	CHECK_STR(buf_str(&res.body), "ok");
	mutex_lock(&server.lock);
	CHECK(str_has_suffix(buf_str(&server.last), buf_str(&body)));
	mutex_unlock(&server.lock);
	buf_release(&body);
	stop();
}

static void check_socks(bool tls, const void *password, const char *scheme)
{
	struct http_config c;

	atomic_store(&socks_names, 0);
	REQUIRE(start(script_answers, tls, script_socks, password, scheme, false));
	c = config_of();
	check_answer(url, &c, "ok");
	check_seen(&server, "GET /x?y=z HTTP/1.1\r\n");
	CHECK_INT(atomic_load(&socks_names), 0);
	check_answer(url, &c, "ok");
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	check_answer(tls ? "https://target.test/" : "http://target.test/", &c, "ok");
	CHECK_INT(atomic_load(&socks_names), 1); /* the proxy resolves it */
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	stop();
}

TEST(socks5)
{
	check_socks(false, NULL, "socks5://");
	check_socks(true, NULL, "socks5h://");
	check_socks(false, "", "socks5://me:p%3Aw@");
	check_socks(true, "", "socks5://me:p%3Aw@");
	check_socks(false, NULL, "socks5://unneeded@");
}

TEST(socks5_refusals)
{
	struct http_config c;

	REQUIRE(start(script_answers, false, script_socks, "", "socks5://me:wrong@", false));
	c = config_of();
	check_problem(url, &c, ERR_UNAVAILABLE,
		"proxy PROXY: SOCKS5 to TARGET: the proxy refused the user or the password");
	snprintf(proxy_url, sizeof(proxy_url), "socks5://:x@127.0.0.1:%u", proxy.port);
	c.proxy.url = str_of(proxy_url);
	check_problem(url, &c, ERR_INVALID,
		"proxy PROXY: SOCKS5 to TARGET: a user of 1 to 255 bytes and a password of at most 255 "
		"are needed");
	snprintf(proxy_url, sizeof(proxy_url), "socks5://127.0.0.1:%u", proxy.port);
	c.proxy.url = str_of(proxy_url);
	check_problem(url, &c, ERR_UNAVAILABLE,
		"proxy PROXY: SOCKS5 to TARGET: the proxy takes none of our ways to authenticate");
	stop();
}

/* -------------------------------------------------------------------------------------------- */
/* Hostile and broken proxies */

static void check_said(bool socks, const char *answer, enum err_code code, const char *message)
{
	struct http_config c;

	REQUIRE(
		start(script_answers, true, script_says, answer, socks ? "socks5://" : "http://", false));
	c = config_of();
	check_problem(url, &c, code, message);
	stop();
}

TEST(answers_to_connect)
{
	static const struct {
		const char *answer;
		enum err_code code;
		const char *message;
	} rows[] = {
		{ "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\nhello",
			ERR_UNAVAILABLE,
			"proxy PROXY: CONNECT to TARGET: server returned HTTP status 407 Proxy "
			"Authentication Required" },
		{ "HTTP/1.1 502\r\n\r\n", ERR_UNAVAILABLE,
			"proxy PROXY: CONNECT to TARGET: server returned HTTP status 502" },
		{ "HTTP/1.1 204 No Content\r\n\r\n", ERR_UNAVAILABLE,
			"proxy PROXY: CONNECT to TARGET: server returned HTTP status 204 No Content" },
		{ "HTTP/1.1 302 Found\r\nLocation: http://evil/\r\n\r\n", ERR_UNAVAILABLE,
			"proxy PROXY: CONNECT to TARGET: server returned HTTP status 302 Found" },
		{ "SSH-2.0-x\r\n", ERR_INVALID,
			"proxy PROXY: CONNECT to TARGET: malformed HTTP response \"SSH-2.0-x..\"" },
		{ "HTTP/1.1 200 OK\r\nbad header\r\n\r\n", ERR_INVALID,
			"proxy PROXY: CONNECT to TARGET: malformed HTTP response \"bad header\"" },
		{ "HTTP/1.1 200 OK\r\n\r\n\x16\x03\x01", ERR_INVALID,
			"proxy PROXY: CONNECT to TARGET: bytes came behind the answer, before anything was "
			"asked" },
		{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 403 Forbidden\r\n\r\n", ERR_UNAVAILABLE,
			"proxy PROXY: CONNECT to TARGET: server returned HTTP status 403 Forbidden" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_said(false, rows[i].answer, rows[i].code, rows[i].message);
}

TEST(an_answer_to_connect_without_end)
{
	struct buf b = { 0 };

	buf_add_cstr(&b, "HTTP/1.1 200 OK\r\nX: ");
	for (size_t i = 0; i < HTTP_HEADER_BYTES_MAX; i++)
		buf_add_char(&b, 'x');
	buf_add_char(&b, '\0');
	check_said(false, b.ptr, ERR_LIMIT,
		"proxy PROXY: CONNECT to TARGET: response header is larger than 65536 bytes");
	buf_clear(&b); /* interim answers count together */
	while (b.len < 2 * HTTP_HEADER_BYTES_MAX)
		buf_add_cstr(&b, "HTTP/1.1 100 Continue\r\n\r\n");
	buf_add_char(&b, '\0');
	check_said(false, b.ptr, ERR_LIMIT,
		"proxy PROXY: CONNECT to TARGET: response header is larger than 65536 bytes");
	buf_release(&b);
}

TEST(answers_of_socks)
{
	check_said(true, "HTTP/1.1 400 Bad Request\r\n\r\n", ERR_UNAVAILABLE,
		"proxy PROXY: SOCKS5 to TARGET: the answer is not SOCKS5");
	check_said(true, "\x05\xff", ERR_UNAVAILABLE,
		"proxy PROXY: SOCKS5 to TARGET: the proxy takes none of our ways to authenticate");
}

TEST(a_proxy_that_is_not_there_or_goes)
{
	struct http_config c;

	REQUIRE(start(script_answers, true, script_closes, NULL, "http://", false));
	c = config_of();
	check_problem(url, &c, ERR_UNAVAILABLE, "proxy PROXY: CONNECT to TARGET: connection closed");
	c.proxy.url = STR("http://127.0.0.1:1");
	check_problem(url, &c, ERR_UNAVAILABLE, "proxy connect 127.0.0.1:1: Connection refused");
	c.proxy.url = STR("http://proxy.invalid:1");
	client_get(&client, url, &c, &res);
	CHECK(str_has_prefix(str_of(res.msg), STR("proxy lookup proxy.invalid: ")));
	stop();
}

static void check_deadline(const char *scheme)
{
	struct http_config c;

	REQUIRE(start(script_answers, true, script_silent, NULL, scheme, false));
	c = config_of();
	client_run(&client,
		(struct http_request_options){
			.url = str_of(url), .config = &c, .timeout_ns = NS_PER_S / 5 },
		&res);
	CHECK_INT(res.rc, ERR_TIMEOUT);
	CHECK_STR(str_of(res.msg), "context deadline exceeded");
	CHECK_INT(http_client_stats(client.http).connections, 0);
	client_run(&client,
		(struct http_request_options){
			.url = str_of(url), .config = &c, .idle_timeout_ns = NS_PER_S / 5 },
		&res);
	CHECK_STR(str_of(res.msg), "nothing received for 200ms");
	stop();
}

TEST(deadlines_cover_the_proxy)
{
	check_deadline("http://");
	check_deadline("https://");
	check_deadline("socks5://");
}

/* A redirect to another scheme takes the other way through the proxy. */
TEST(redirects_choose_again)
{
	static char answer[256];
	struct http_config c;

	REQUIRE(start(script_answers, true, script_answers, answer, "http://", false));
	snprintf(answer, sizeof(answer),
		"HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:%u/\r\nContent-Length: 0\r\n\r\n",
		server.port);
	c = config_of();
	c.follow_redirects = true;
	check_problem("http://a.example/", &c, ERR_UNAVAILABLE,
		"proxy PROXY: CONNECT to TARGET: server returned HTTP status 302 Found");
	snprintf(want, sizeof(want), "127.0.0.1:%u", server.port);
	c.proxy.no_proxy = STR("127.0.0.1");
	check_answer("http://a.example/", &c, "ok"); /* the second one is direct */
	stop();
}
