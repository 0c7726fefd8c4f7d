/*
 * OAuth 2.0: a token server and a server that wants its tokens. The token server numbers the
 * tokens it gives, so that each test sees which one a request carried.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/net/http_client.h"
#include "tests/base/net/http_pair.h"
#include "tests/base/net/identity.h"
#include "tests/check.h"

#define REQUESTS 40

static struct http_server tokens;
static struct identity ca, leaf;
static struct arena arena;
static char token_url[128], dir[64];
static struct http_oauth2 oauth2;
static struct http_config config;

/* How the servers behave; set before a request. */
static struct {
	atomic_uint given; /* tokens */
	atomic_uint wanted; /* the target takes this token only; 0: any */
	atomic_uint expires_s; /* 0: not said */
	atomic_uint status; /* of the token server; 0: 200 */
	atomic_bool silent, in_body_only;
} now;

static void script_tokens(struct peer *p, void *ctx)
{
	while (peer_read_request(p)) {
		bool header = str_find(buf_str(&p->request), STR("\r\nAuthorization: ")) >= 0;
		unsigned status = atomic_load(&now.status);
		struct buf body = { 0 }, out = { 0 };
		bool sent;

		while (atomic_load(&now.silent) && !peer_gone(p) && !atomic_load(&tokens.stopping))
			sleep_ms(2);
		if (peer_gone(p)) /* nobody gets this token, so it has no number */
			return;
		if (!status && header && atomic_load(&now.in_body_only))
			status = 400;
		if (status) {
			buf_printf(&body, "{\"error\":\"invalid_client\",\"hint\":\"geheim\"}");
			buf_printf(&out, "HTTP/1.1 %u No\r\n", status);
		} else {
			buf_printf(&body, "{\"access_token\":\"t%u\"", atomic_fetch_add(&now.given, 1) + 1);
			if (atomic_load(&now.expires_s))
				buf_printf(&body, ",\"expires_in\":%u", atomic_load(&now.expires_s));
			buf_add_char(&body, '}');
			buf_add_cstr(&out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n");
		}
		buf_printf(&out, "Content-Length: %zu\r\n\r\n", body.len);
		buf_add_str(&out, buf_str(&body));
		sent = peer_write(p, buf_str(&out));
		buf_release(&out);
		buf_release(&body);
		if (!sent)
			return;
	}
}

/* Answers with the token's number. */
static void script_target(struct peer *p, void *ctx)
{
	while (peer_read_request(p)) {
		ptrdiff_t at = str_find(buf_str(&p->request), STR("\r\nAuthorization: Bearer t"));
		unsigned n = at < 0 ? 0 : (unsigned)strtoul(p->request.ptr + at + 25, NULL, 10);
		unsigned wanted = atomic_load(&now.wanted);
		char text[128];

		snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%u",
			!n || (wanted && n != wanted) ? "401 Unauthorized" : "200 OK", n > 9 ? 2 : 1, n);
		if (!peer_print(p, text))
			return;
	}
}

static bool start(bool tls)
{
	memset(&now, 0, sizeof(now));
	arena_init(&arena, 0);
	snprintf(dir, sizeof(dir), "/tmp/epimetheus-oauth2-XXXXXX");
	if (!mkdtemp(dir) || !identity_make(&ca, "test CA", NULL, NULL) ||
		!identity_make(&leaf, "server", &ca, "IP:127.0.0.1") ||
		!pair_start(script_target, NULL, NULL, "/") ||
		!http_server_start(&tokens, script_tokens, NULL, tls ? identity_server(&leaf, NULL) : NULL))
		return false;
	snprintf(token_url, sizeof(token_url), "http%s://127.0.0.1:%u/token?key=geheim", tls ? "s" : "",
		tokens.port);
	oauth2 = (struct http_oauth2){
		.client_id = STR("me: you"),
			.client_secret = STR("geheim"), .token_url = str_of(token_url) };
	config = (struct http_config){ .oauth2 = &oauth2 };
	return true;
}

static void stop(void)
{
	struct err err;

	atomic_store(&now.silent, false);
	client_close(&client);
	http_server_stop(&tokens);
	http_server_stop(&server);
	SSL_CTX_free(tokens.tls);
	result_release(&res);
	res = (struct http_result){ 0 };
	identity_release(&ca);
	identity_release(&leaf);
	arena_release(&arena);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
}

static void check_token(const char *number)
{
	client_get(&client, url, &config, &res);
	CHECK_STR(str_of(res.msg), "");
	CHECK_INT(res.status, 200);
	CHECK_STR(buf_str(&res.body), number);
}

static void check_problem(const char *problem)
{
	char want[512];

	client_get(&client, url, &config, &res);
	snprintf(want, sizeof(want),
		"oauth2: cannot fetch token from http://127.0.0.1:%u/token?key=xxxxx: %s", tokens.port,
		problem);
	CHECK_STR(str_of(res.msg), want);
	CHECK_INT(res.rc, ERR_UNAVAILABLE);
}

static void check_asked(const char *text)
{
	mutex_lock(&tokens.lock);
	if (str_find(buf_str(&tokens.last), str_of(text)) < 0)
		CHECK_FAIL("no %s in " STR_FMT, text, STR_ARG(buf_str(&tokens.last)));
	mutex_unlock(&tokens.lock);
}

TEST(a_token_is_asked_for_once)
{
	struct label params[] = { { STR("audience"), STR("a&b") } };

	REQUIRE(start(false));
	oauth2.scope = STR("read write");
	oauth2.endpoint_params = (struct labels){ params, 1 };
	check_token("1");
	check_token("1");
	check_token("1");
	CHECK_INT(atomic_load(&tokens.requests), 1);
	check_asked("POST /token?key=geheim HTTP/1.1\r\n");
	check_asked("\r\nContent-Type: application/x-www-form-urlencoded\r\n");
	check_asked("\r\nAuthorization: Basic bWUlM0EreW91OmdlaGVpbQ==\r\n"); /* me%3A+you:geheim */
	check_asked("\r\n\r\ngrant_type=client_credentials&scope=read+write&audience=a%26b");
	oauth2.scope = STR("read"); /* another token */
	check_token("2");
	oauth2.scope = STR("read write"); /* as after a reload that was taken back */
	check_token("1");
	stop();
}

TEST(a_server_that_wants_credentials_in_the_body)
{
	REQUIRE(start(false));
	atomic_store(&now.in_body_only, true);
	atomic_store(&now.expires_s, 1);
	check_token("1");
	CHECK_INT(atomic_load(&tokens.requests), 2);
	check_asked("\r\n\r\ngrant_type=client_credentials&client_id=me%3A+you&client_secret=geheim");
	sleep_ms(600); /* half of its life is over: it is renewed, and the way is known */
	check_token("2");
	CHECK_INT(atomic_load(&tokens.requests), 3);
	stop();
}

static void on_done(void *ctx, const struct http_response *r)
{
	unsigned *left = ctx;

	CHECK_INT(r->status, 200);
	CHECK_STR(r->body, "1");
	if (!--*left)
		event_base_loopbreak(client.base);
}

TEST(many_requests_wait_for_one_token)
{
	struct http_request_options o = { .timeout_ns = NS_PER_MIN };
	unsigned left = REQUESTS;
	struct err err;

	REQUIRE(start(false));
	o.url = str_of(url);
	o.config = &config;
	for (unsigned i = 0; i < REQUESTS; i++)
		REQUIRE_OK(http_client_send(client.http, &o, on_done, &left, NULL, &err), &err);
	while (left && event_base_dispatch(client.base) == 0)
		;
	CHECK_INT(left, 0);
	CHECK_INT(atomic_load(&tokens.requests), 1);
	stop();
}

/* Loops of one process share tokens: the second one waits for the first one's answer. */
TEST(another_client_gets_the_same_token)
{
	struct http_request_options o = { .timeout_ns = NS_PER_MIN };
	struct client other;
	struct http_result theirs = { 0 };
	unsigned left = 1;
	struct err err;

	REQUIRE(start(false) && client_open(&other, 0, NULL));
	atomic_store(&now.silent, true);
	o.url = str_of(url);
	o.config = &config;
	REQUIRE_OK(http_client_send(client.http, &o, on_done, &left, NULL, &err), &err);
	while (!atomic_load(&tokens.requests))
		event_base_loop(client.base, EVLOOP_NONBLOCK);
	client_run(&other,
		(struct http_request_options){
			.url = str_of(url), .config = &config, .timeout_ns = NS_PER_S / 10 },
		&theirs);
	CHECK_INT(theirs.rc, ERR_TIMEOUT); /* its own deadline, while the first one asks */
	CHECK(str_has_prefix(str_of(theirs.msg),
		STR("context deadline exceeded: no token came from http://127.0.0.1:")));
	CHECK(str_has_suffix(str_of(theirs.msg), STR("/token?key=xxxxx")));
	atomic_store(&now.silent, false);
	while (left && event_base_dispatch(client.base) == 0)
		;
	client_get(&other, url, &config, &theirs);
	CHECK_STR(buf_str(&theirs.body), "1");
	CHECK_INT(atomic_load(&tokens.requests), 1);
	client_close(&other);
	result_release(&theirs);
	stop();
}

/* The client that asked is gone: the next one asks anew. */
TEST(a_client_that_ends_while_it_asks)
{
	struct http_request_options o = { .timeout_ns = NS_PER_MIN };
	struct http_result theirs = { 0 };
	struct client other;
	struct err err;

	REQUIRE(start(false) && client_open(&other, 0, NULL));
	atomic_store(&now.silent, true);
	o.url = str_of(url);
	o.config = &config;
	REQUIRE_OK(http_client_send(other.http, &o, result_done, &theirs, NULL, &err), &err);
	while (!atomic_load(&tokens.requests))
		event_base_loop(other.base, EVLOOP_NONBLOCK);
	client_close(&other);
	CHECK_INT(theirs.rc, ERR_CANCELED);
	atomic_store(&now.silent, false);
	check_token("1");
	result_release(&theirs);
	stop();
}

TEST(a_request_that_is_canceled_while_it_waits)
{
	struct http_request_options o = { .timeout_ns = NS_PER_MIN };
	struct http_request *r;
	struct err err;

	REQUIRE(start(false));
	atomic_store(&now.silent, true);
	o.url = str_of(url);
	o.config = &config;
	REQUIRE_OK(http_client_send(client.http, &o, on_done, NULL, &r, &err), &err);
	while (!atomic_load(&tokens.requests))
		event_base_loop(client.base, EVLOOP_NONBLOCK);
	http_request_cancel(r);
	oauth2 = (struct http_oauth2){ 0 }; /* its configuration goes with it */
	atomic_store(&now.silent, false);
	while (!atomic_load(&now.given))
		event_base_loop(client.base, EVLOOP_NONBLOCK);
	stop();
}

TEST(a_refused_token_is_dropped_once)
{
	REQUIRE(start(false));
	check_token("1");
	sleep_ms(1000); /* a token is at least that old before another one is asked for */
	atomic_store(&now.wanted, 2);
	check_token("2");
	CHECK_INT(atomic_load(&server.requests), 3); /* 200, 401, 200 */
	atomic_store(&now.wanted, 99);
	sleep_ms(1000);
	client_get(&client, url, &config, &res); /* no token is taken: the 401 is the answer */
	CHECK_INT(res.status, 401);
	CHECK_STR(buf_str(&res.body), "3"); /* asked once more, not twice */
	CHECK_INT(atomic_load(&tokens.requests), 3);
	stop();
}

TEST(problems_name_the_url_and_no_secret)
{
	REQUIRE(start(false));
	atomic_store(&now.status, 401);
	check_problem("server returned HTTP status 401 No: invalid_client");
	CHECK(str_find(str_of(res.msg), STR("geheim")) < 0);
	CHECK_INT(atomic_load(&tokens.requests), 2); /* in the header, then in the body */
	atomic_store(&now.status, 0);
	sleep_ms(1000);
	check_token("1");
	stop();
}

TEST(a_token_server_that_is_not_there)
{
	REQUIRE(start(false));
	oauth2.token_url = STR("http://127.0.0.1:1/");
	client_get(&client, url, &config, &res);
	CHECK_STR(str_of(res.msg),
		"oauth2: cannot fetch token from http://127.0.0.1:1/: connect 127.0.0.1:1: Connection "
		"refused");
	stop();
}

TEST(tls_of_its_own)
{
	REQUIRE(start(true));
	client_get(&client, url, &config, &res);
	CHECK(str_find(str_of(res.msg), STR("certificate verify failed")) > 0);
	oauth2.http.tls_ca = identity_pem(&arena, &ca, false);
	check_token("1");
	stop();
}

static void script_proxy(struct peer *p, void *ctx)
{
	while (peer_read_request(p))
		if (!peer_print(
				p, "HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n{\"access_token\":\"t7\"} "))
			return;
}

TEST(a_proxy_of_its_own)
{
	struct http_server proxy;
	char proxy_url[64];

	REQUIRE(start(false));
	REQUIRE(http_server_start(&proxy, script_proxy, NULL, NULL));
	snprintf(proxy_url, sizeof(proxy_url), "http://127.0.0.1:%u", proxy.port);
	oauth2.http.proxy.url = str_of(proxy_url);
	check_token("7");
	CHECK(http_server_saw(&proxy, "POST http://127.0.0.1:"));
	CHECK_INT(atomic_load(&tokens.requests), 0);
	client_close(&client);
	http_server_stop(&proxy);
	REQUIRE(client_open(&client, 0, NULL));
	stop();
}

TEST(a_secret_of_a_file)
{
	char path[128], want[256];
	struct err err;

	REQUIRE(start(false));
	snprintf(path, sizeof(path), "%s/secret", dir);
	oauth2.client_secret = STR("");
	oauth2.client_secret_file = str_of(path);
	client_get(&client, url, &config, &res);
	snprintf(want, sizeof(want),
		"unable to read oauth2 client secret file: open %s: No such file or directory", path);
	CHECK_STR(str_of(res.msg), want);
	CHECK_OK(fs_write_file(&fs_posix, path, STR(" geheim\n"), &err), &err);
	check_token("1");
	check_asked("\r\nAuthorization: Basic bWUlM0EreW91OmdlaGVpbQ==\r\n");
	CHECK_OK(fs_write_file(&fs_posix, path, STR("other"), &err), &err);
	check_token("2"); /* another secret is another token */
	check_asked("\r\nAuthorization: Basic bWUlM0EreW91Om90aGVy\r\n");
	stop();
}

/* Another origin gets no token, and a caller's own header wins. */
TEST(who_gets_no_token)
{
	struct label header = { STR("Authorization"), STR("Bearer t55") };
	struct http_server first;
	char answer[256], to[64];

	REQUIRE(start(false));
	client_run(&client,
		(struct http_request_options){
			.url = str_of(url), .config = &config, .headers = { &header, 1 } },
		&res);
	CHECK_STR(buf_str(&res.body), "55");
	CHECK_INT(atomic_load(&tokens.requests), 0);
	snprintf(answer, sizeof(answer),
		"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", url);
	REQUIRE(http_server_start(&first, script_answers, answer, NULL));
	snprintf(to, sizeof(to), "http://127.0.0.1:%u/", first.port);
	config.follow_redirects = true;
	client_get(&client, to, &config, &res);
	CHECK_INT(res.status, 401);
	CHECK_STR(buf_str(&res.body), "0");
	CHECK(http_server_saw(&first, "Bearer t1"));
	client_close(&client);
	http_server_stop(&first);
	REQUIRE(client_open(&client, 0, NULL));
	stop();
}
