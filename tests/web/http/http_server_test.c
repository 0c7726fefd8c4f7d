/* The server over real sockets: what clients of all manners do to it, and what handlers see. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/http/any_port.h"
#include "tests/web/http/http_peer.h"
#include "web/http/http.h"
#include "web/http/listen.h"

#define BODY_MAX 100000

struct fixture {
	struct http_server *server;
	unsigned port;
	atomic_uint calls, canceled;
	atomic_bool release; /* "/wait" ends */
};

/* "/echo" gives back what came; "/wait" until released or canceled. */
static void handle(void *ctx, struct http_in *in, struct http_out *out)
{
	struct fixture *f = ctx;

	atomic_fetch_add(&f->calls, 1);
	if (str_is(in->path, "/wait")) {
		(void)!WAIT_FOR(atomic_load(&f->release) || atomic_load(&in->canceled));
		if (atomic_load(&in->canceled))
			atomic_fetch_add(&f->canceled, 1);
		http_text(out, 200, "waited");
		return;
	}
	if (in->body_refused) {
		http_text(out, in->body_refused, "refused");
		return;
	}
	out->status = 200;
	out->content_type = "text/plain";
	buf_printf(&out->body, "%d " STR_FMT " [" STR_FMT "] " STR_FMT, in->method, STR_ARG(in->path),
		STR_ARG(http_param(in, "q")), STR_ARG(in->body));
}

static bool start(struct fixture *f, int64_t read_timeout_ns)
{
	const struct http_server_options o = {
		.read_timeout_ns = read_timeout_ns,
		.body_bytes_max = BODY_MAX,
		.handler = handle,
		.ctx = f,
	};

	*f = (struct fixture){ 0 };
	return open_on_any_port(o, &f->server, &f->port);
}

static void until(atomic_uint *counter, unsigned want)
{
	CHECK(WAIT_FOR(atomic_load(counter) >= want));
	CHECK_INT(atomic_load(counter), want);
}

TEST(keeps_a_connection_for_the_next_request)
{
	struct fixture f;
	struct response r = { 0 };
	struct peer p;

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	peer_ask_on(&p, &r, "GET /echo/%41?q=a+b%26", "", (struct str){ 0 });
	CHECK_INT(r.status, 200);
	CHECK_STR(buf_str(&r.body), "1 /echo/A [a b&] ");
	peer_ask_on(&p, &r, "POST /echo", "", STR("body"));
	CHECK_STR(buf_str(&r.body), "4 /echo [] body");
	peer_ask_on(&p, &r, "HEAD /echo", "", (struct str){ 0 });
	CHECK_INT(r.status, 200);
	peer_ask_on(&p, &r, "OPTIONS /echo", "", (struct str){ 0 });
	CHECK_STR(buf_str(&r.body), "32 /echo [] ");
	CHECK_INT(http_server_connections(f.server), 1);
	peer_close(&p);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

TEST(answers_pipelined_requests_in_order)
{
	struct fixture f;
	struct response r = { 0 };
	struct peer p;
	char want[32];

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	peer_send(&p,
		STR("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
			  "POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
			  "GET /3 HTTP/1.1\r\nHost: x\r\n\r\n"));
	for (int i = 1; i <= 3; i++) {
		peer_receive(&p, &r, false);
		snprintf(want, sizeof(want), "%d /%d [] %s", i == 2 ? 4 : 1, i, i == 2 ? "abc" : "");
		CHECK_STR(buf_str(&r.body), want);
	}
	peer_close(&p);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

/* False: it was cut, as a busy machine did not send its head within the read timeout. */
static bool ask_in_time(unsigned port, struct response *r, unsigned *asked)
{
	++*asked;
	peer_ask(port, r, "GET /echo", "", (struct str){ 0 });
	return r->status == 200;
}

TEST(cuts_whoever_drips_bytes_and_serves_others_meanwhile)
{
	struct fixture f;
	struct response r = { 0 };
	struct peer slow;
	int64_t began = clock_monotonic_ns();
	unsigned asked = 0;
	ssize_t sent = 1;

	REQUIRE(start(&f, 2 * NS_PER_S));
	peer_open(&slow, f.port);
	peer_send(&slow, STR("GET / HTTP/1.1\r\nX: "));
	CHECK(WAIT_FOR(ask_in_time(f.port, &r, &asked)));
	for (int i = 0; i < 2000 && sent > 0; i++) {
		sent = send(slow.fd, "a", 1, MSG_NOSIGNAL);
		usleep(50000);
	}
	CHECK(sent < 0);
	CHECK(clock_monotonic_ns() - began >= 2 * NS_PER_S);
	CHECK(atomic_load(&f.calls) >= 1 && atomic_load(&f.calls) <= asked);
	peer_close(&slow);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

TEST(cuts_an_idle_connection)
{
	struct fixture f;
	struct response r = { 0 };
	int64_t until = 0;
	struct peer p;

	REQUIRE(start(&f, 2 * NS_PER_S));
	peer_open(&p, f.port);
	peer_ask_on(&p, &r, "GET /echo", "", (struct str){ 0 });
	while (r.status != 200 && wait_more(&until)) { /* it was cut before its head came */
		peer_close(&p);
		peer_open(&p, f.port);
		peer_ask_on(&p, &r, "GET /echo", "", (struct str){ 0 });
	}
	CHECK_INT(r.status, 200);
	CHECK(peer_ended(&p));
	peer_close(&p);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

TEST(connections_that_say_nothing_do_not_keep_others_out)
{
	struct fixture f;
	struct response r = { 0 };
	struct peer idle[64];
	int64_t began = clock_monotonic_ns();

	REQUIRE(start(&f, NS_PER_HOUR));
	for (int i = 0; i < 64; i++) {
		peer_open(&idle[i], f.port);
		peer_send(&idle[i], STR("GET / HTTP/1.1\r\n"));
	}
	peer_ask(f.port, &r, "GET /echo", "", (struct str){ 0 });
	CHECK_INT(r.status, 200);
	CHECK(clock_monotonic_ns() - began < WAIT_NS);
	for (int i = 0; i < 64; i++)
		peer_close(&idle[i]);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

TEST(a_body_over_the_limit_is_said_and_not_kept)
{
	struct fixture f;
	struct response r = { 0 };
	struct buf big = { 0 };
	struct peer p;

	REQUIRE(start(&f, NS_PER_MIN));
	for (int i = 0; i < BODY_MAX; i++)
		buf_add_char(&big, 'x');
	peer_open(&p, f.port);
	peer_ask_on(&p, &r, "POST /echo", "", buf_str(&big));
	CHECK_INT(r.status, 200);
	CHECK_INT(r.body.len, BODY_MAX + strlen("4 /echo [] "));
	buf_add_char(&big, 'x');
	peer_ask_on(&p, &r, "POST /echo", "", buf_str(&big));
	CHECK_INT(r.status, 413);
	CHECK_STR(buf_str(&r.body), "refused\n");
	peer_ask_on(&p, &r, "GET /echo", "", (struct str){ 0 }); /* the connection goes on */
	CHECK_INT(r.status, 200);
	peer_close(&p);

	/* So long that its end is not waited for: before its first byte. */
	peer_open(&p, f.port);
	peer_send(&p, STR("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 413);
	CHECK_STR(buf_str(&r.body), "the body is too large\n");
	CHECK(peer_ended(&p));
	peer_close(&p);
	buf_release(&big);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

TEST(a_header_over_the_limit_is_refused)
{
	struct fixture f;
	struct response r = { 0 };
	struct buf head = { 0 };
	struct peer p;

	REQUIRE(start(&f, NS_PER_MIN));
	buf_add_cstr(&head, "GET / HTTP/1.1\r\nX: ");
	for (int i = 0; i < 70000; i++)
		buf_add_char(&head, 'x');
	buf_add_cstr(&head, "\r\n\r\n");
	peer_open(&p, f.port);
	peer_send(&p, buf_str(&head));
	peer_receive(&p, &r, false);
	CHECK(r.status == 431 || r.status == 0);
	CHECK_INT(atomic_load(&f.calls), 0);
	peer_close(&p);
	buf_release(&head);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

TEST(a_handler_is_told_that_its_client_is_gone)
{
	struct fixture f;
	struct peer p;

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	peer_send(&p, STR("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
	until(&f.calls, 1);
	peer_close(&p);
	until(&f.canceled, 1);
	http_server_close(f.server, NS_PER_S);
}

struct closing {
	struct fixture *f;
	int64_t grace_ns;
};

static void close_server(void *ctx)
{
	struct closing *c = ctx;

	http_server_close(c->f->server, c->grace_ns);
}

TEST(closing_lets_a_running_request_end_and_takes_no_other)
{
	struct fixture f;
	struct closing c = { &f, WAIT_NS };
	struct thread t = { 0 };
	struct response r = { 0 };
	struct peer p, late;
	struct err err;

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	peer_open(&late, f.port);
	peer_send(&p, STR("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
	until(&f.calls, 1);
	REQUIRE_OK(thread_start(&t, "closer", close_server, &c, &err), &err);
	CHECK(WAIT_FOR((peer_ask_on(&late, &r, "GET /echo", "", (struct str){ 0 }), r.status != 200)));
	CHECK_INT(r.status, 503);
	CHECK_STR(buf_str(&r.body), "the server is shutting down\n");
	atomic_store(&f.release, true);
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 200);
	CHECK_STR(buf_str(&r.body), "waited\n");
	thread_join(&t);
	CHECK_INT(atomic_load(&f.canceled), 0);
	peer_close(&p);
	peer_close(&late);
	peer_open(&late, f.port);
	CHECK(late.dead); /* nobody listens */
	peer_close(&late);
	response_release(&r);
}

TEST(closing_cancels_what_runs_longer_than_its_grace)
{
	struct fixture f;
	struct closing c = { &f, 100 * NS_PER_MS };
	struct response r = { 0 };
	struct thread t = { 0 };
	struct peer p;
	struct err err;
	int64_t began;

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	peer_send(&p, STR("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
	until(&f.calls, 1);
	began = clock_monotonic_ns();
	REQUIRE_OK(thread_start(&t, "closer", close_server, &c, &err), &err);
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 200); /* what the handler answers still arrives */
	thread_join(&t);
	CHECK_INT(atomic_load(&f.canceled), 1);
	CHECK(clock_monotonic_ns() - began < WAIT_NS);
	peer_close(&p);
	response_release(&r);
}

TEST(an_address_that_is_taken_or_none_is_an_error)
{
	struct http_server_options o = { .workers = 1, .connections_max = 8, .handler = handle };
	struct fixture f;
	struct http_server *second = NULL;
	struct err err;
	char address[64], want[128];

	REQUIRE(start(&f, NS_PER_MIN));
	snprintf(address, sizeof(address), "127.0.0.1:%u", f.port);
	snprintf(want, sizeof(want), "listen on %s: Address already in use", address);
	o.listen_address = address;
	CHECK_ERR(http_server_open(&o, &second, &err), &err, ERR_UNAVAILABLE, want);
	o.listen_address = "somewhere:80";
	CHECK_ERR(http_server_open(&o, &second, &err), &err, ERR_INVALID,
		"listen on somewhere:80: the host must be an address");
	o.listen_address = "127.0.0.1";
	CHECK_ERR(http_server_open(&o, &second, &err), &err, ERR_INVALID,
		"listen on 127.0.0.1: not host:port");
	http_server_close(f.server, NS_PER_S);
}

static int connect_to(unsigned port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), code;

	code = connect(fd, (struct sockaddr *)&a, sizeof(a)) ? errno : 0;
	close(fd);
	return code;
}

TEST(a_bound_port_listens_later)
{
	struct listen_bound bound = { .fd = -1 }, other = { .fd = -1 };
	char address[64], want[128];
	unsigned port;
	struct err err;
	int fd = -1, second = -1;

	REQUIRE_OK(listen_bind("127.0.0.1:0", &bound, &err), &err);
	snprintf(address, sizeof(address), "127.0.0.1:%u", bound.port);
	CHECK_INT(connect_to(bound.port), ECONNREFUSED);
	REQUIRE_OK(listen_bind(address, &other, &err), &err); /* nobody listens yet */
	REQUIRE_OK(listen_open(address, &bound, &fd, &port, &err), &err);
	CHECK_INT(bound.fd, -1);
	CHECK_INT(port, bound.port);
	CHECK_INT(connect_to(port), 0);
	snprintf(want, sizeof(want), "listen on %s: Address already in use", address);
	CHECK_ERR(listen_open(address, &other, &second, &port, &err), &err, ERR_UNAVAILABLE, want);
	CHECK_INT(other.fd, -1);
	CHECK_ERR(listen_bind(address, &other, &err), &err, ERR_UNAVAILABLE, want);
	listen_unbind(&other);
	close(fd);
	REQUIRE_OK(listen_bind("127.0.0.1:0", &bound, &err), &err);
	listen_unbind(&bound);
	CHECK_INT(bound.fd, -1);
}

struct asking {
	unsigned port;
	atomic_uint ok;
};

static void ask_many(void *ctx)
{
	struct asking *a = ctx;
	struct response r = { 0 };
	struct peer p;

	for (int i = 0; i < 20; i++) {
		peer_open(&p, a->port);
		for (int k = 0; k < 5; k++) {
			peer_ask_on(&p, &r, "POST /echo?q=x", "", STR("y"));
			if (r.status == 200 && str_is(buf_str(&r.body), "4 /echo [x] y"))
				atomic_fetch_add(&a->ok, 1);
		}
		peer_close(&p);
	}
	response_release(&r);
}

TEST(many_clients_at_once)
{
	struct fixture f;
	struct asking a = { 0 };
	struct thread threads[8] = { 0 };
	struct err err;

	REQUIRE(start(&f, NS_PER_MIN));
	a.port = f.port;
	for (int i = 0; i < 8; i++)
		REQUIRE_OK(thread_start(&threads[i], "asker", ask_many, &a, &err), &err);
	for (int i = 0; i < 8; i++)
		thread_join(&threads[i]);
	CHECK_INT(atomic_load(&a.ok), 8 * 20 * 5);
	http_server_close(f.server, NS_PER_S);
}
