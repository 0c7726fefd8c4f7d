/* Bodies that a handler reads while they come, over real sockets. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/thread.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/http/any_port.h"
#include "tests/web/http/http_peer.h"
#include "web/http/http.h"
#include "web/http/intake.h"

#define BODY_MAX ((size_t)40 << 20)
#define BIG ((size_t)20 << 20)
#define REFUSED_NS (10 * NS_PER_S) /* for the rest of a body: web/http/conns.c */

struct fixture {
	struct http_server *server;
	unsigned port;
	atomic_uint calls, canceled;
	atomic_bool release; /* "/slow" reads on, "/early" answers */
};

static enum http_admission admit(void *ctx, struct http_in *in, struct http_out *out, bool may_wait)
{
	(void)ctx, (void)may_wait;
	if (str_is(in->path, "/refused")) {
		http_text(out, 429, "not now");
		return HTTP_ANSWERED;
	}
	in->by_pieces = !str_is(in->path, "/whole");
	in->body_bytes_max = in->by_pieces ? BODY_MAX : in->body_bytes_max;
	return HTTP_ADMITTED;
}

/* Answers how many bytes came and their sum; "/early" after the first piece. */
static void handle(void *ctx, struct http_in *in, struct http_out *out)
{
	struct fixture *f = ctx;
	unsigned long long n = 0, sum = 0;
	struct str piece = STR("");
	enum err_code rc;
	struct err err;

	atomic_fetch_add(&f->calls, 1);
	while (!(rc = http_read(in, &piece, &err)) && piece.len) {
		CHECK(piece.len <= INTAKE_BYTES_MAX);
		for (size_t i = 0; i < piece.len; i++)
			sum += (unsigned char)piece.ptr[i];
		n += piece.len;
		if (str_is(in->path, "/early"))
			break;
		if (str_is(in->path, "/slow"))
			(void)!WAIT_FOR(atomic_load(&f->release) || atomic_load(&in->canceled));
	}
	if (rc == ERR_CANCELED)
		atomic_fetch_add(&f->canceled, 1);
	if (rc)
		http_text(out, rc == ERR_LIMIT ? 413 : 500, "%s", err.msg);
	else
		http_text(out, 200, "%llu %llu", n, sum);
}

static bool start(struct fixture *f, int64_t body_timeout_ns)
{
	const struct http_server_options o = {
		.read_timeout_ns = NS_PER_MIN,
		.body_timeout_ns = body_timeout_ns,
		.body_bytes_max = 1000,
		.admit = admit,
		.handler = handle,
		.ctx = f,
	};

	*f = (struct fixture){ 0 };
	return open_on_any_port(o, &f->server, &f->port);
}

static unsigned long long fill(struct buf *b, size_t n)
{
	unsigned long long sum = 0;

	buf_reserve(b, n);
	for (size_t i = 0; i < n; i++) {
		b->ptr[b->len++] = (char)map_hash_u64(i);
		sum += (unsigned char)b->ptr[i];
	}
	return sum;
}

static void check_sum(const struct response *r, size_t n, unsigned long long sum)
{
	char want[64];

	snprintf(want, sizeof(want), "%zu %llu\n", n, sum);
	CHECK_INT(r->status, 200);
	CHECK_STR(buf_str(&r->body), want);
}

TEST(every_byte_arrives_and_the_connection_goes_on)
{
	struct fixture f;
	struct response r = { 0 };
	struct buf big = { 0 };
	unsigned long long sum = fill(&big, BIG);
	struct peer p;

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	peer_ask_on(&p, &r, "POST /", "", buf_str(&big));
	check_sum(&r, BIG, sum);
	peer_ask_on(&p, &r, "POST /", "", STR("ab"));
	check_sum(&r, 2, 'a' + 'b');
	peer_ask_on(&p, &r, "POST /", "", STR(""));
	check_sum(&r, 0, 0);
	peer_ask_on(&p, &r, "GET /", "", (struct str){ 0 });
	check_sum(&r, 0, 0);
	peer_ask_on(&p, &r, "POST /whole", "", STR("whole"));
	CHECK_INT(r.status, 200);
	peer_send(&p,
		STR("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
			"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"));
	peer_receive(&p, &r, false);
	check_sum(&r, 3, 'a' + 'b' + 'c');
	CHECK_INT(http_server_connections(f.server), 1);
	peer_close(&p);
	buf_release(&big);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

struct sender {
	struct peer *peer;
	struct str body;
	atomic_bool sent;
};

static void send_body(void *ctx)
{
	struct sender *s = ctx;

	peer_send(s->peer, s->body);
	atomic_store(&s->sent, true);
}

/* The worker reads nothing, so the sender waits; others are answered meanwhile. */
TEST(a_slow_reader_slows_its_sender_alone)
{
	struct fixture f;
	struct response r = { 0 };
	struct buf big = { 0 };
	unsigned long long sum = fill(&big, BIG);
	struct thread thread;
	struct sender s;
	struct peer p;
	char head[128];
	struct err err;

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	snprintf(
		head, sizeof(head), "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", BIG);
	peer_send(&p, str_of(head));
	s = (struct sender){ .peer = &p, .body = buf_str(&big) };
	REQUIRE(!thread_start(&thread, "sender", send_body, &s, &err));
	CHECK(WAIT_FOR(atomic_load(&f.calls) == 1));
	for (int i = 0; i < 20; i++) {
		peer_ask(f.port, &r, "POST /", "", STR("a"));
		check_sum(&r, 1, 'a');
	}
	CHECK(!atomic_load(&s.sent));
	atomic_store(&f.release, true);
	thread_join(&thread);
	peer_receive(&p, &r, false);
	check_sum(&r, BIG, sum);
	peer_close(&p);
	buf_release(&big);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

/* Three answers on one connection. False: it was cut, as the rest of a body did not come in time.
 */
static bool ask_early(unsigned port, struct response *r, struct str big)
{
	int64_t began = clock_monotonic_ns();
	struct peer p;

	peer_open(&p, port);
	peer_ask_on(&p, r, "POST /early", "", big);
	if (r->status) {
		CHECK_INT(r->status, 200);
		CHECK(r->body.len > 2);
		peer_ask_on(&p, r, "POST /refused", "", big);
	}
	if (r->status) {
		CHECK_INT(r->status, 429);
		peer_ask_on(&p, r, "POST /", "", STR("a"));
	}
	if (r->status)
		check_sum(r, 1, 'a');
	else
		CHECK(clock_monotonic_ns() - began > REFUSED_NS);
	peer_close(&p);
	return r->status != 0;
}

TEST(an_answer_before_the_end_reaches_who_sends_on)
{
	struct fixture f;
	struct response r = { 0 };
	struct buf big = { 0 };

	fill(&big, BIG / 2);
	REQUIRE(start(&f, NS_PER_MIN));
	CHECK(WAIT_FOR(ask_early(f.port, &r, buf_str(&big))));
	buf_release(&big);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

TEST(a_body_over_its_limit)
{
	struct fixture f;
	struct response r = { 0 };
	struct buf big = { 0 };
	struct peer p;

	fill(&big, BODY_MAX + 1);
	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	peer_ask_on(&p, &r, "POST /", "", buf_str(&big));
	CHECK_INT(r.status, 413);
	CHECK_STR(buf_str(&r.body), "the body is longer than 41943040 bytes\n");
	peer_close(&p);

	/* So long that its end is not waited for: before its first byte. */
	for (int i = 0; i < 2; i++) {
		peer_open(&p, f.port);
		peer_send(&p,
			i ? STR("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n") :
				STR("POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n"));
		peer_receive(&p, &r, false);
		CHECK_INT(r.status, i ? 413 : 429);
		CHECK(peer_ended(&p));
		peer_close(&p);
	}
	CHECK_INT(atomic_load(&f.calls), 1);
	buf_release(&big);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

#define UNFINISHED "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc"

TEST(a_client_that_leaves_cancels_the_handler)
{
	struct fixture f;
	struct peer p;

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	peer_send(&p, STR(UNFINISHED));
	CHECK(WAIT_FOR(atomic_load(&f.calls) == 1));
	peer_close(&p);
	CHECK(WAIT_FOR(atomic_load(&f.canceled) == 1));
	http_server_close(f.server, NS_PER_S);
}

/* Its end lies behind bytes that nobody has read. */
TEST(a_client_that_leaves_while_it_is_paused_cancels_the_handler)
{
	struct fixture f;
	struct buf big = { 0 };
	struct thread thread;
	struct sender s;
	struct peer p;
	struct err err;

	fill(&big, BIG);
	REQUIRE(start(&f, NS_PER_HOUR));
	peer_open(&p, f.port);
	peer_send(&p, STR("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 30000000\r\n\r\n"));
	s = (struct sender){ .peer = &p, .body = buf_str(&big) };
	REQUIRE(!thread_start(&thread, "sender", send_body, &s, &err));
	CHECK(WAIT_FOR(atomic_load(&f.calls) == 1));
	shutdown(p.fd, SHUT_RDWR);
	atomic_store(&f.release, true);
	CHECK(WAIT_FOR(atomic_load(&f.canceled) == 1));
	thread_join(&thread);
	peer_close(&p);
	buf_release(&big);
	http_server_close(f.server, NS_PER_S);
}

/* Bytes and end come together: none of them waits for the body timeout. */
TEST(an_end_right_behind_the_bytes_is_seen)
{
	struct fixture f;
	struct peer p[50];

	REQUIRE(start(&f, NS_PER_HOUR));
	for (unsigned i = 0; i < 50; i++) {
		peer_open(&p[i], f.port);
		peer_send(&p[i], STR(UNFINISHED));
		shutdown(p[i].fd, SHUT_WR);
	}
	CHECK(WAIT_FOR(atomic_load(&f.canceled) == 50));
	for (unsigned i = 0; i < 50; i++)
		peer_close(&p[i]);
	http_server_close(f.server, NS_PER_S);
}

TEST(whoever_drips_is_cut)
{
	struct fixture f;
	struct peer p;
	ssize_t sent = 1;

	REQUIRE(start(&f, 2 * NS_PER_S));
	peer_open(&p, f.port);
	peer_send(&p, STR("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"));
	for (int i = 0; i < 2000 && sent > 0; i++) {
		sent = send(p.fd, "a", 1, MSG_NOSIGNAL);
		usleep(50000);
	}
	CHECK(sent < 0);
	CHECK(WAIT_FOR(atomic_load(&f.canceled) == 1));
	peer_close(&p);
	http_server_close(f.server, NS_PER_S);
}

TEST(closing_cancels_unfinished_bodies)
{
	struct fixture f;
	struct peer p;

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	peer_send(&p, STR(UNFINISHED));
	CHECK(WAIT_FOR(atomic_load(&f.calls) == 1));
	http_server_close(f.server, 0);
	CHECK_INT(atomic_load(&f.canceled), 1);
	peer_close(&p);
}
