#include "base/net/http_client.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "tests/base/net/http_pair.h"
#include "tests/check.h"
#include "tests/wait.h"

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
#define OK OK_HEAD "Content-Length: 2\r\n\r\nok"

static struct http_server other;
static char want[256];

static bool start(script_fn script, const void *ctx)
{
	return pair_start(script, ctx, NULL, "/path?q=1");
}

/* A message with %u for the server's port. */
static const char *with_port(const char *fmt)
{
	const char *at = strstr(fmt, "%u");

	if (!at)
		return fmt;
	snprintf(want, sizeof(want), "%.*s%u%s", (int)(at - fmt), fmt, server.port, at + 2);
	return want;
}

TEST(a_request_and_its_answer)
{
	REQUIRE(start(script_answers, OK));
	client_get(&client, url, NULL, &res);
	CHECK_ERR(res.rc, &(struct err){ 0 }, ERR_OK, "");
	CHECK_INT(res.status, 200);
	CHECK_STR(buf_str(&res.body), "ok");
	CHECK_STR(str_of(res.content_type), "text/plain");
	CHECK_STR(str_of(res.reason), "OK");
	CHECK_STR(str_of(res.url), url);
	snprintf(want, sizeof(want),
		"GET /path?q=1 HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: test/1\r\n\r\n", server.port);
	mutex_lock(&server.lock);
	CHECK_STR(buf_str(&server.last), want);
	mutex_unlock(&server.lock);
	pair_stop();
}

static void take_body(void *ctx, const struct http_response *r)
{
	struct http_result *out = ctx;

	out->rc = r->rc;
	if (!r->rc)
		http_response_take_body(r, &out->body);
	event_base_loopbreak(out->base);
}

TEST(a_body_is_taken_out_of_the_response)
{
	static const struct {
		const char *answer, *want;
	} rows[] = {
		{ OK, "ok" },
		{ OK_HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde" },
		{ OK_HEAD "Content-Length: 0\r\n\r\n", "" },
	};
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE(start(script_answers, rows[i].answer));
		res = (struct http_result){ .base = client.base };
		REQUIRE_OK(http_client_send(client.http,
					   &(struct http_request_options){ .url = str_of(url), .timeout_ns = WAIT_NS },
					   take_body, &res, NULL, &err),
			&err);
		event_base_dispatch(client.base);
		CHECK_INT(res.rc, ERR_OK);
		CHECK_STR(buf_str(&res.body), rows[i].want); /* the request is gone, the body is not */
		CHECK_INT(res.body.cap, res.body.len);
		pair_stop();
	}
}

TEST(answers_in_all_framings)
{
	static const struct {
		const char *answer;
		enum err_code code;
		const char *want; /* body, or message */
	} rows[] = {
		{ OK_HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", ERR_OK, "abc" },
		{ OK_HEAD "\r\nto the end", ERR_OK, "to the end" },
		{ "HTTP/1.1 100 Continue\r\n\r\n" OK, ERR_OK, "ok" },
		{ OK "left over", ERR_OK, "ok" },
		{ OK_HEAD "Content-Length: 20\r\n\r\nshort", ERR_UNAVAILABLE,
			"read 127.0.0.1:%u: unexpected EOF" },
		{ "", ERR_UNAVAILABLE, "read 127.0.0.1:%u: connection closed without an answer" },
		{ "<html>", ERR_INVALID, "malformed HTTP response \"<html>\"" },
		{ OK_HEAD "Content-Length: 2000000\r\n\r\n", ERR_LIMIT, "body size limit exceeded" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE(start(script_answers_once, rows[i].answer));
		client_get(&client, url, NULL, &res);
		CHECK_INT(res.rc, rows[i].code);
		CHECK_STR(res.rc ? str_of(res.msg) : buf_str(&res.body), with_port(rows[i].want));
		pair_stop();
	}
}

static void script_drip(struct peer *p, void *ctx)
{
	peer_read_request(p);
	for (const char *s = OK_HEAD "Content-Length: 100000\r\n\r\n"; *s; s++) {
		if (!peer_write(p, (struct str){ s, 1 }))
			return;
		sleep_ms(50);
	}
	while (peer_print(p, "x"))
		sleep_ms(50);
}

TEST(a_drip_does_not_extend_the_deadline)
{
	struct http_request_options o = { .timeout_ns = 300 * NS_PER_MS };

	REQUIRE(start(script_drip, NULL));
	o.url = str_of(url);
	client_run(&client, o, &res);
	CHECK_ERR(res.rc, &(struct err){ .msg = "context deadline exceeded" }, ERR_TIMEOUT, res.msg);
	CHECK(res.elapsed_ns > 250 * NS_PER_MS);
	pair_stop();
}

static void script_endless(struct peer *p, void *ctx)
{
	static char block[65536];

	peer_read_request(p);
	peer_print(p, ctx);
	memset(block, 'x', sizeof(block));
	while (peer_write(p, (struct str){ block, sizeof(block) })) /* until the client has enough */
		;
}

static void script_endless_chunks(struct peer *p, void *ctx)
{
	peer_read_request(p);
	peer_print(p, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n");
	while (peer_print(p, "4\r\nabcd\r\n"))
		;
}

static void script_endless_head(struct peer *p, void *ctx)
{
	peer_read_request(p);
	peer_print(p, "HTTP/1.1 200 OK\r\n");
	while (peer_print(p, "X-Bomb: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"))
		;
}

TEST(what_has_no_end_is_cut)
{
	REQUIRE(start(script_endless, OK_HEAD "\r\n"));
	client_get(&client, url, NULL, &res);
	CHECK_ERR(res.rc, &(struct err){ .msg = "body size limit exceeded" }, ERR_LIMIT, res.msg);
	pair_stop();
	REQUIRE(start(script_endless_chunks, NULL));
	client_get(&client, url, NULL, &res);
	CHECK_ERR(res.rc, &(struct err){ .msg = "body size limit exceeded" }, ERR_LIMIT, res.msg);
	pair_stop();
	REQUIRE(start(script_endless_head, NULL));
	client_get(&client, url, NULL, &res);
	CHECK_STR(str_of(res.msg), "response header is larger than 65536 bytes");
	CHECK_INT(res.rc, ERR_LIMIT);
	pair_stop();
}

static void script_reset(struct peer *p, void *ctx)
{
	peer_read_request(p);
	peer_print(p, OK_HEAD "Content-Length: 100\r\n\r\nhalf");
	sleep_ms(50); /* so that the client has what was sent before the reset */
	peer_reset(p);
}

TEST(a_reset_in_the_body)
{
	REQUIRE(start(script_reset, NULL));
	client_get(&client, url, NULL, &res);
	CHECK_INT(res.rc, ERR_UNAVAILABLE);
	CHECK_STR(str_of(res.msg), with_port("read 127.0.0.1:%u: Connection reset by peer"));
	pair_stop();
}

/* -------------------------------------------------------------------------------------------- */
/* Connections */

TEST(connections_are_kept_and_counted)
{
	struct http_client_stats stats;

	int64_t began = clock_monotonic_ns(), first = 0;

	REQUIRE(start(script_answers, OK));
	for (int i = 0; i < 5; i++) {
		client_get(&client, url, NULL, &res);
		CHECK_INT(res.rc, ERR_OK);
		first = first ? first : res.connected_ns;
		CHECK(res.connected_ns >= began && res.connected_ns == first);
	}
	stats = http_client_stats(client.http);
	CHECK_INT(stats.connects, 1);
	CHECK_INT(stats.reuses, 4);
	CHECK_INT(stats.connections, 1);
	CHECK_INT(server.connections, 1);
	CHECK_INT(server.requests, 5);
	pair_stop();
}

/* Answers once, then reads the next request and hangs up on it. */
static void script_goes_stale(struct peer *p, void *ctx)
{
	if (peer_read_request(p) && peer_print(p, OK))
		peer_read_request(p);
}

TEST(a_stale_connection_is_tried_once_more)
{
	struct http_request_options post = { .method = "POST" };

	REQUIRE(start(script_goes_stale, NULL));
	for (int i = 0; i < 3; i++) {
		client_get(&client, url, NULL, &res);
		CHECK_INT(res.rc, ERR_OK);
	}
	CHECK_INT(server.connections, 3);
	CHECK_INT(server.requests, 5); /* two of them twice */
	post.url = str_of(url);
	client_run(&client, post, &res); /* the server may have acted on it: never repeated */
	CHECK_INT(res.rc, ERR_UNAVAILABLE);
	CHECK_STR(str_of(res.msg), with_port("read 127.0.0.1:%u: connection closed without an answer"));
	pair_stop();
}

TEST(a_connection_that_closed_while_idle_is_not_used)
{
	struct http_request_options post = { .method = "POST" };

	REQUIRE(start(script_answers_once, OK));
	post.url = str_of(url);
	for (unsigned i = 0; i < 3; i++) {
		client_run(&client, post, &res);
		CHECK_INT(res.rc, ERR_OK);
		CHECK(WAIT_FOR(atomic_load(&server.closed) == i + 1));
	}
	CHECK_INT(server.connections, 3);
	CHECK_INT(http_client_stats(client.http).reuses, 0);
	pair_stop();
}

static void script_slow(struct peer *p, void *ctx)
{
	while (peer_read_request(p)) {
		sleep_ms(30);
		if (!peer_print(p, OK))
			return;
	}
}

static void run_all(struct client *c, struct http_result *r, size_t n)
{
	bool waiting = true;

	while (waiting && event_base_loop(c->base, EVLOOP_ONCE) == 0) {
		waiting = false;
		for (size_t i = 0; i < n; i++)
			waiting |= !r[i].done;
	}
}

TEST(connections_are_limited_and_the_line_moves)
{
	struct http_request_options o = { .timeout_ns = NS_PER_MIN };
	static struct http_result all[8];
	struct err err;

	memset(all, 0, sizeof(all));
	REQUIRE(http_server_start(&server, script_slow, NULL, NULL));
	REQUIRE(http_server_start(&other, script_slow, NULL, NULL));
	REQUIRE(client_open(&client, 2, NULL));
	/* by turns, so that kept connections of one must make room for the other */
	for (size_t i = 0; i < 8; i++) {
		snprintf(url, sizeof(url), "http://127.0.0.1:%u/", i % 2 ? server.port : other.port);
		o.url = str_of(url);
		REQUIRE_OK(http_client_send(client.http, &o, result_done, &all[i], NULL, &err), &err);
	}
	run_all(&client, all, 8);
	for (size_t i = 0; i < 8; i++) {
		CHECK_INT(all[i].rc, ERR_OK);
		CHECK_INT(all[i].calls, 1);
		CHECK_STR(buf_str(&all[i].body), "ok");
		result_release(&all[i]);
	}
	CHECK(http_client_stats(client.http).connections <= 2);
	CHECK(server.active_max <= 2 && other.active_max <= 2);
	pair_stop();
	http_server_stop(&other);
}

static void script_silent(struct peer *p, void *ctx)
{
	while (peer_read_request(p))
		;
}

TEST(waiting_in_line_ends_with_the_deadline)
{
	static struct http_result held, waiting;
	struct http_request_options o = { .timeout_ns = NS_PER_MIN };
	struct http_request *r;
	struct err err;

	held = waiting = (struct http_result){ 0 };
	REQUIRE(http_server_start(&server, script_silent, NULL, NULL));
	REQUIRE(client_open(&client, 1, NULL));
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", server.port);
	o.url = str_of(url);
	REQUIRE_OK(http_client_send(client.http, &o, result_done, &held, &r, &err), &err);
	o.timeout_ns = 50 * NS_PER_MS;
	REQUIRE_OK(http_client_send(client.http, &o, result_done, &waiting, NULL, &err), &err);
	run_all(&client, &waiting, 1);
	CHECK_INT(waiting.rc, ERR_TIMEOUT);
	CHECK_STR(str_of(waiting.msg),
		"context deadline exceeded: no connection was free, all 1 were "
		"in use (the limit of open files allows no more)");
	CHECK(!held.done);
	http_request_cancel(r);
	CHECK(!held.done);
	pair_stop();
}

TEST(closing_the_client_answers_what_waits)
{
	static struct http_result held;
	struct http_request_options o = { .timeout_ns = NS_PER_MIN };
	struct err err;

	held = (struct http_result){ 0 };
	REQUIRE(start(script_silent, NULL));
	o.url = str_of(url);
	REQUIRE_OK(http_client_send(client.http, &o, result_done, &held, NULL, &err), &err);
	CHECK(!held.done); /* never from inside send */
	while (!server.requests && event_base_loop(client.base, EVLOOP_NONBLOCK) >= 0)
		sleep_ms(1);
	pair_stop();
	CHECK_INT(held.rc, ERR_CANCELED);
	CHECK_STR(str_of(held.msg), "the HTTP client is closing");
	CHECK_INT(held.calls, 1);
}

static void script_hang_up(struct peer *p, void *ctx)
{
	char byte;

	if (recv(p->fd, &byte, 1, 0) == 1)
		peer_reset(p);
}

static void script_refuses_early(struct peer *p, void *ctx)
{
	char some[16]; /* slowly, so that the answer comes first */

	if (recv(p->fd, some, 1, 0) != 1)
		return;
	peer_print(p, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
	while (recv(p->fd, some, sizeof(some), 0) > 0) /* until the client has the answer and closes */
		;
}

/* SIGPIPE would end the test program. */
TEST(a_peer_that_leaves_while_we_send)
{
	struct http_request_options o = { .method = "POST" };
	struct buf body = { 0 };

	buf_reserve(&body, 8u << 20);
	memset(body.ptr, 'x', 8u << 20);
	o.body = (struct str){ body.ptr, 8u << 20 };
	REQUIRE(start(script_hang_up, NULL));
	o.url = str_of(url);
	client_run(&client, o, &res);
	CHECK_INT(res.rc, ERR_UNAVAILABLE);
	if (strcmp(res.msg, with_port("read 127.0.0.1:%u: Connection reset by peer")) != 0 &&
		strcmp(res.msg, with_port("write 127.0.0.1:%u: Broken pipe")) != 0)
		CHECK_STR(str_of(res.msg), with_port("write 127.0.0.1:%u: Connection reset by peer"));
	pair_stop();
	REQUIRE(start(script_refuses_early, NULL)); /* an answer before the body was sent counts */
	o.url = str_of(url);
	client_run(&client, o, &res);
	CHECK_INT(res.rc, ERR_OK);
	CHECK_INT(res.status, 413);
	CHECK_INT(http_client_stats(client.http).connections, 0);
	pair_stop();
	buf_release(&body);
}

/* -------------------------------------------------------------------------------------------- */
/* Addresses and names */

TEST(addresses)
{
	unsigned port;

	REQUIRE(start(script_answers, OK));
	snprintf(url, sizeof(url), "http://localhost:%u/", server.port);
	client_get(&client, url, NULL, &res);
	CHECK_INT(res.rc, ERR_OK);
	snprintf(want, sizeof(want), "Host: localhost:%u\r\n", server.port);
	CHECK(http_server_saw(&server, want));
	port = server.port;
	pair_stop();
	REQUIRE(client_open(&client, 0, NULL));
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port); /* nobody listens any more */
	client_get(&client, url, NULL, &res);
	CHECK_INT(res.rc, ERR_UNAVAILABLE);
	snprintf(want, sizeof(want), "connect 127.0.0.1:%u: Connection refused", port);
	CHECK_STR(str_of(res.msg), want);
	snprintf(url, sizeof(url), "http://[::1]:%u/", port);
	client_get(&client, url, NULL, &res);
	CHECK_INT(res.rc, ERR_UNAVAILABLE);
	snprintf(want, sizeof(want), "connect [::1]:%u: ", port);
	CHECK(str_has_prefix(str_of(res.msg), str_of(want)));
	client_close(&client);
	result_release(&res);
}

/* A name server on 127.0.0.1 that knows one name: good.test is 127.0.0.2 and 127.0.0.1. */
struct dns {
	int fd;
	unsigned port;
	struct thread thread;
	atomic_uint queries; /* sent again for want of an answer, one counts once */
	bool silent;
};

static void run_dns(void *ctx)
{
	static const unsigned char addresses[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0,
		2, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1 };
	static bool seen[1 << 16]; /* by the number of the question */
	unsigned char q[512];
	struct sockaddr_in from;
	struct dns *d = ctx;
	ssize_t n;

	memset(seen, 0, sizeof(seen));

	for (;;) {
		socklen_t len = sizeof(from);
		bool good, a;

		n = recvfrom(d->fd, q, sizeof(q) - sizeof(addresses), 0, (struct sockaddr *)&from, &len);
		if (n < 17) /* one byte: the end */
			return;
		if (!seen[q[0] << 8 | q[1]])
			atomic_fetch_add(&d->queries, 1);
		seen[q[0] << 8 | q[1]] = true;
		good = memcmp(q + 12, "\4good\4test", 11) == 0;
		a = memcmp(q + 12, "\4good\4test\0\0\1", 13) == 0;
		for (ssize_t i = 12; i < n; i++)
			if (q[i] == 0 && i + 5 <= n) { /* the question without the EDNS behind it */
				n = i + 5;
				break;
			}
		q[2] = 0x81;
		q[3] = good ? 0x80 : 0x83;
		q[7] = a ? 2 : 0;
		q[8] = q[9] = q[10] = q[11] = 0;
		if (a)
			memcpy(q + n, addresses, sizeof(addresses));
		if (!d->silent)
			sendto(d->fd, q, (size_t)n + (a ? sizeof(addresses) : 0), 0, (struct sockaddr *)&from,
				len);
	}
}

static bool dns_start(struct dns *d, bool silent)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);
	struct err err;

	*d = (struct dns){ .silent = silent, .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) };
	if (d->fd < 0 || bind(d->fd, (struct sockaddr *)&sa, sizeof(sa)) ||
		getsockname(d->fd, (struct sockaddr *)&sa, &len))
		return false;
	d->port = ntohs(sa.sin_port);
	return thread_start(&d->thread, "dns", run_dns, d, &err) == ERR_OK;
}

static void dns_stop(struct dns *d)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)d->port) };

	sendto(d->fd, "", 1, 0, (struct sockaddr *)&sa, sizeof(sa));
	thread_join(&d->thread);
	close(d->fd);
}

TEST(names_are_looked_up_and_addresses_tried_in_turn)
{
	static struct http_result all[4];
	struct http_request_options o = { .timeout_ns = NS_PER_MIN };
	char servers[64];
	struct dns dns;
	struct err err;

	REQUIRE(dns_start(&dns, false));
	snprintf(servers, sizeof(servers), "127.0.0.1:%u", dns.port);
	REQUIRE(http_server_start(&server, script_answers, (void *)(uintptr_t)OK, NULL));
	REQUIRE(client_open(&client, 0, servers));
	client_get(&client, "http://nosuch.invalid./", NULL, &res);
	CHECK_INT(res.rc, ERR_UNAVAILABLE);
	CHECK_STR(str_of(res.msg), "lookup nosuch.invalid.: Domain name not found");
	/* 127.0.0.2 refuses: the server listens on 127.0.0.1 alone */
	snprintf(url, sizeof(url), "http://good.test.:%u/", server.port);
	o.url = str_of(url);
	dns.queries = 0;
	memset(all, 0, sizeof(all));
	for (size_t i = 0; i < 4; i++)
		REQUIRE_OK(http_client_send(client.http, &o, result_done, &all[i], NULL, &err), &err);
	run_all(&client, all, 4);
	for (size_t i = 0; i < 4; i++) {
		CHECK_INT(all[i].rc, ERR_OK);
		CHECK_STR(str_of(all[i].msg), "");
		result_release(&all[i]);
	}
	CHECK_INT(dns.queries, 2); /* one A and one AAAA for all four */
	pair_stop();
	dns_stop(&dns);
}

TEST(a_silent_name_server_costs_no_more_than_the_deadline)
{
	struct http_request_options o = { .url = STR("http://good.test./"),
										  .timeout_ns = 100 * NS_PER_MS };
	char servers[64];
	struct dns dns;

	REQUIRE(dns_start(&dns, true));
	snprintf(servers, sizeof(servers), "127.0.0.1:%u", dns.port);
	REQUIRE(client_open(&client, 0, servers));
	client_run(&client, o, &res);
	CHECK_ERR(res.rc, &(struct err){ .msg = "context deadline exceeded" }, ERR_TIMEOUT, res.msg);
	client_close(&client); /* with the query still under way */
	dns_stop(&dns);
}
