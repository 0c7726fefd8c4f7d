/*
 * More connections than are allowed: who makes room for the next one. All timeouts are an hour, so
 * nothing here is answered because one has passed.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/thread.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/http/any_port.h"
#include "tests/web/http/http_peer.h"

#define CONNECTIONS 64 /* of any_port.h */
#define SHARE (CONNECTIONS / 8)
#define BIG_BYTES (32u << 20) /* more than sockets hold */
#define LOOK_US 300000

struct fixture {
	struct http_server *server;
	unsigned port;
	atomic_uint heads; /* of requests with a body */
	atomic_uint calls;
	atomic_bool release; /* "/wait" and "/hold" end */
	char *big;
	struct peer peers[CONNECTIONS];
	double crowded, stalled; /* at the beginning */
};

static void handle(void *ctx, struct http_in *in, struct http_out *out)
{
	struct fixture *f = ctx;

	atomic_fetch_add(&f->calls, 1);
	if (str_is(in->path, "/wait"))
		(void)!WAIT_FOR(atomic_load(&f->release) || atomic_load(&in->canceled));
	http_text(out, 200, "answered");
	if (str_is(in->path, "/big")) {
		out->fixed_body = f->big;
		out->fixed_len = BIG_BYTES;
	}
}

static enum http_admission admit(void *ctx, struct http_in *in, struct http_out *out, bool may_wait)
{
	struct fixture *f = ctx;

	(void)out;
	(void)may_wait;
	atomic_fetch_add(&f->heads, 1);
	if (str_is(in->path, "/hold")) /* the receiving thread */
		(void)!WAIT_FOR(atomic_load(&f->release));
	return HTTP_ADMITTED;
}

/* Of epimetheus_http_connections_dropped_total. */
static double dropped(const char *reason)
{
	struct buf text = { 0 }, line = { 0 };
	const char *at;
	double n = 0;

	buf_printf(&line, "\nepimetheus_http_connections_dropped_total{reason=\"%s\"} ", reason);
	metrics_print(&text);
	if ((at = memmem(text.ptr, text.len, line.ptr, line.len)))
		n = atof(at + line.len);
	buf_release(&text);
	buf_release(&line);
	return n;
}

static struct fixture *start(void)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct http_server_options o = {
		.read_timeout_ns = NS_PER_HOUR,
		.body_bytes_max = 1000,
		.admit = admit,
		.handler = handle,
		.ctx = f,
	};

	f->big = calloc(1, BIG_BYTES);
	f->crowded = dropped("crowded");
	f->stalled = dropped("stalled");
	if (open_on_any_port(o, &f->server, &f->port))
		return f;
	free(f->big);
	free(f);
	return NULL;
}

static void finish(struct fixture *f)
{
	for (int i = 0; i < CONNECTIONS; i++)
		peer_close(&f->peers[i]);
	http_server_close(f->server, NS_PER_S);
	free(f->big);
	free(f);
}

/* addresses: so many have the same number of the connections. */
static void fill(struct fixture *f, unsigned addresses, const char *text)
{
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		peer_open_from(&f->peers[i], 2 + i % addresses, f->port);
		peer_send(&f->peers[i], str_of(text));
	}
	CHECK(WAIT_FOR(http_server_connections(f->server) == CONNECTIONS));
}

static bool is_ended(const struct peer *p)
{
	char byte;

	return recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static int ended(const struct fixture *f)
{
	int n = 0;

	for (int i = 0; i < CONNECTIONS; i++)
		n += is_ended(&f->peers[i]);
	return n;
}

static void check_answered(struct fixture *f, unsigned from)
{
	struct response r = { 0 };
	struct peer p;

	peer_open_from(&p, from, f->port);
	peer_ask_on(&p, &r, "GET /", "", (struct str){ 0 });
	CHECK_INT(r.status, 200);
	peer_close(&p);
	response_release(&r);
}

TEST(the_longest_at_rest_makes_room_and_no_other)
{
	struct fixture *f = start();
	struct response r = { 0 };

	REQUIRE(f);
	fill(f, 16, "");
	peer_ask_on(&f->peers[0], &r, "GET /", "", (struct str){ 0 }); /* the second is the longest */
	CHECK_INT(r.status, 200);
	check_answered(f, 100);
	CHECK_INT(ended(f), 1);
	CHECK(is_ended(&f->peers[1]));
	CHECK_INT(dropped("crowded") - f->crowded, 1);
	for (int i = 2; i < CONNECTIONS; i++) {
		peer_ask_on(&f->peers[i], &r, "GET /", "", (struct str){ 0 });
		CHECK_INT(r.status, 200);
	}
	response_release(&r);
	finish(f);
}

TEST(half_a_head_is_at_rest)
{
	struct fixture *f = start();

	REQUIRE(f);
	fill(f, 16, "GET / HTTP/1.1\r\nX: ");
	check_answered(f, 100);
	CHECK_INT(ended(f), 1);
	CHECK_INT(dropped("crowded") - f->crowded, 1);
	finish(f);
}

TEST(a_request_that_waits_to_be_read_is_passed_over)
{
	struct fixture *f = start();
	struct response r = { 0 };
	struct peer late;

	REQUIRE(f);
	fill(f, 16, "");
	peer_send(&f->peers[CONNECTIONS - 1],
		STR("POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"));
	CHECK(WAIT_FOR(atomic_load(&f->heads) == 1));
	peer_send(&f->peers[0], STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
	peer_open_from(&late, 100, f->port);
	CHECK(WAIT_FOR(is_ended(&f->peers[1])));
	CHECK_INT(ended(f), 1);
	atomic_store(&f->release, true);
	peer_receive(&f->peers[0], &r, false);
	CHECK_INT(r.status, 200);
	peer_ask_on(&late, &r, "GET /", "", (struct str){ 0 });
	CHECK_INT(r.status, 200);
	peer_close(&late);
	response_release(&r);
	finish(f);
}

/* A byte each few milliseconds never makes a head whole. */
TEST(drips_make_room_too)
{
	struct fixture *f = start();
	struct response r = { 0 };
	struct peer late;
	char byte;

	REQUIRE(f);
	fill(f, 16, "GET / HTTP/1.1\r\nX: ");
	peer_open_from(&late, 100, f->port);
	peer_send(&late, STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
	CHECK(WAIT_FOR(({
		for (int i = 0; i < CONNECTIONS; i++)
			(void)!send(f->peers[i].fd, "x", 1, MSG_NOSIGNAL);
		recv(late.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
	})));
	peer_receive(&late, &r, false);
	CHECK_INT(r.status, 200);
	CHECK(dropped("crowded") > f->crowded);
	peer_close(&late);
	response_release(&r);
	finish(f);
}

TEST(where_there_is_room_nobody_goes)
{
	struct fixture *f = start();

	REQUIRE(f);
	for (int i = 0; i < CONNECTIONS - 1; i++)
		peer_open(&f->peers[i], f->port);
	f->peers[CONNECTIONS - 1].fd = -1;
	CHECK(WAIT_FOR(http_server_connections(f->server) == CONNECTIONS - 1));
	for (int i = 0; i < 10; i++) {
		check_answered(f, 2);
		CHECK(WAIT_FOR(http_server_connections(f->server) == CONNECTIONS - 1));
	}
	CHECK_INT(dropped("crowded") - f->crowded, 0);
	finish(f);
}

TEST(an_address_over_its_share_gives_its_own)
{
	struct fixture *f = start();
	struct peer others[CONNECTIONS];
	int n = CONNECTIONS - 1 - SHARE;

	REQUIRE(f);
	peer_open_from(&f->peers[0], 2, f->port); /* the longest of all */
	for (int i = 1; i < CONNECTIONS; i++)
		peer_open_from(&f->peers[i], 3, f->port);
	CHECK(WAIT_FOR(http_server_connections(f->server) == CONNECTIONS));
	for (int i = 0; i < n; i++)
		peer_open_from(&others[i], 4 + (unsigned)i, f->port);
	CHECK(WAIT_FOR(ended(f) == n));
	CHECK(!is_ended(&f->peers[0]));
	CHECK(is_ended(&f->peers[n]) && !is_ended(&f->peers[n + 1]));
	check_answered(f, 100); /* nobody is over the share now */
	CHECK(is_ended(&f->peers[0]));
	CHECK_INT(ended(f), n + 1);
	for (int i = 0; i < n; i++)
		peer_close(&others[i]);
	finish(f);
}

TEST(a_body_that_does_not_come_makes_room)
{
	struct fixture *f = start();

	REQUIRE(f);
	fill(f, 16, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n");
	CHECK(WAIT_FOR(atomic_load(&f->heads) == CONNECTIONS));
	check_answered(f, 100);
	CHECK_INT(ended(f), 1);
	CHECK_INT(dropped("stalled") - f->stalled, 1);
	finish(f);
}

TEST(an_answer_that_nobody_reads_makes_room)
{
	struct fixture *f = start();

	REQUIRE(f);
	fill(f, 16, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
	CHECK(WAIT_FOR(atomic_load(&f->calls) == CONNECTIONS));
	check_answered(f, 100);
	CHECK_INT(dropped("stalled") - f->stalled, 1);
	finish(f);
}

TEST(a_request_under_way_never_makes_room)
{
	struct fixture *f = start();
	struct response r = { 0 };
	struct peer late;

	REQUIRE(f);
	fill(f, 16, "POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
	CHECK(WAIT_FOR(atomic_load(&f->heads) == CONNECTIONS));
	CHECK(WAIT_FOR(atomic_load(&f->calls) == 4)); /* the others are in the queue */
	peer_open_from(&late, 100, f->port);
	peer_send(&late, STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
	usleep(LOOK_US);
	CHECK_INT(ended(f), 0);
	CHECK_INT(http_server_connections(f->server), CONNECTIONS);
	atomic_store(&f->release, true);
	for (int i = 0; i < CONNECTIONS; i++) {
		peer_receive(&f->peers[i], &r, false);
		CHECK_INT(r.status, 200);
	}
	peer_receive(&late, &r, false);
	CHECK_INT(r.status, 200);
	peer_close(&late);
	response_release(&r);
	finish(f);
}

TEST(closing_ends_while_a_connection_waits_for_room)
{
	struct fixture *f = start();
	struct peer late;

	REQUIRE(f);
	fill(f, 16, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
	CHECK(WAIT_FOR(atomic_load(&f->calls) == 4));
	peer_open_from(&late, 100, f->port);
	usleep(LOOK_US);
	finish(f);
	peer_close(&late);
}
