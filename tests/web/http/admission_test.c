/* Admission before the body comes; bodies that never end do not keep others out. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/web/http/any_port.h"
#include "tests/web/http/http_peer.h"
#include "web/http/http.h"

#define BODY_MAX 100000
#define BODIES_MAX (8 * BODY_MAX)

struct fixture {
	struct http_server *server;
	unsigned port;
	atomic_uint asked, waited, calls;
};

/* "/no" is refused, "/later-no" too, "/later" is taken; both of these only where it may wait. */
static enum http_admission admit(void *ctx, struct http_in *in, struct http_out *out, bool may_wait)
{
	struct fixture *f = ctx;

	atomic_fetch_add(&f->asked, 1);
	if (str_has_prefix(in->path, STR("/later")) && !may_wait)
		return HTTP_ADMIT_LATER;
	if (may_wait)
		atomic_fetch_add(&f->waited, 1);
	if (!str_is(in->path, "/no") && !str_is(in->path, "/later-no"))
		return HTTP_ADMITTED;
	http_text(out, 403, "not you");
	return HTTP_ANSWERED;
}

static void handle(void *ctx, struct http_in *in, struct http_out *out)
{
	struct fixture *f = ctx;

	atomic_fetch_add(&f->calls, 1);
	http_text(out, in->body_refused ? in->body_refused : 200, "%zu", in->body.len);
}

static bool start(struct fixture *f, int64_t body_timeout_ns)
{
	const struct http_server_options o = {
		.read_timeout_ns = NS_PER_MIN,
		.body_timeout_ns = body_timeout_ns,
		.body_bytes_max = BODY_MAX,
		.bodies_bytes_max = BODIES_MAX,
		.address_bodies_bytes_max = 5 * BODY_MAX,
		.admit = admit,
		.handler = handle,
		.ctx = f,
	};

	*f = (struct fixture){ 0 };
	return open_on_any_port(o, &f->server, &f->port);
}

static struct str zeros(size_t n)
{
	static const char bytes[BODY_MAX + 1];

	return (struct str){ bytes, n };
}

TEST(a_refused_request_is_answered_and_its_body_is_not_kept)
{
	static const char *const paths[] = { "POST /no", "POST /later-no" };
	struct response r = { 0 };
	struct fixture f;
	struct peer p;

	REQUIRE(start(&f, NS_PER_MIN));
	for (int i = 0; i < 2; i++) {
		peer_open(&p, f.port);
		peer_ask_on(&p, &r, paths[i], "", zeros(BODY_MAX));
		CHECK_INT(r.status, 403);
		CHECK_STR(buf_str(&r.body), "not you\n");
		CHECK_INT(atomic_load(&f.calls), i);
		peer_ask_on(&p, &r, "POST /yes", "", zeros(10)); /* the connection goes on */
		CHECK_INT(r.status, 200);
		CHECK_STR(buf_str(&r.body), "10\n");
		peer_close(&p);
	}
	CHECK_INT(atomic_load(&f.asked), 5); /* one of them twice */
	CHECK_INT(atomic_load(&f.waited), 1);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

TEST(who_asks_before_he_sends_is_told_before_he_sends)
{
	struct response r = { 0 };
	struct fixture f;
	struct peer p;

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	peer_send(&p,
		STR("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
		    "Expect: 100-continue\r\n\r\n"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 403);
	peer_close(&p);

	peer_open(&p, f.port);
	peer_send(&p,
		STR("POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
		    "Expect: 100-continue\r\n\r\n"));
	peer_receive(&p, &r, true);
	CHECK_INT(r.status, 100);
	peer_send(&p, STR("abc"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 200);
	CHECK_STR(buf_str(&r.body), "3\n");
	peer_close(&p);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

TEST(a_body_that_waits_for_its_admission_comes_whole)
{
	struct response r = { 0 };
	struct fixture f;
	struct peer p;

	REQUIRE(start(&f, NS_PER_MIN));
	peer_open(&p, f.port);
	for (int i = 0; i < 20; i++) {
		peer_ask_on(&p, &r, "POST /later", "", zeros(BODY_MAX));
		CHECK_INT(r.status, 200);
		CHECK_STR(buf_str(&r.body), "100000\n");
	}
	peer_send(&p,
		STR("POST /later HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 200);
	CHECK_STR(buf_str(&r.body), "6\n");
	CHECK_INT(atomic_load(&f.waited), 21);
	/* Without a body the handler is asked at once. */
	peer_ask_on(&p, &r, "POST /later", "", (struct str){ 0 });
	CHECK_INT(r.status, 200);
	CHECK_INT(atomic_load(&f.waited), 21);
	peer_close(&p);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}

TEST(a_body_has_a_deadline_of_its_own)
{
	int64_t began = clock_monotonic_ns();
	struct fixture f;
	struct peer p;
	ssize_t sent = 1;

	REQUIRE(start(&f, 500 * NS_PER_MS));
	peer_open(&p, f.port);
	peer_send(&p, STR("POST /yes HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"));
	for (int i = 0; i < 400 && sent > 0; i++) {
		sent = send(p.fd, "a", 1, MSG_NOSIGNAL);
		usleep(50000);
	}
	CHECK(sent < 0);
	CHECK(clock_monotonic_ns() - began >= 500 * NS_PER_MS);
	CHECK_INT(atomic_load(&f.calls), 0);
	peer_close(&p);
	http_server_close(f.server, NS_PER_S);
}

/* Sends all of a body but its last byte. */
static void hold(struct peer *p, const struct fixture *f, unsigned from, const char *path)
{
	char head[128];

	peer_open_from(p, from, f->port);
	snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", path,
		BODY_MAX);
	peer_send(p, str_of(head));
	peer_send(p, zeros(BODY_MAX - 1));
}

static int finish(struct peer *p, struct response *r)
{
	peer_send(p, zeros(1));
	peer_receive(p, r, false);
	peer_close(p);
	return r->status;
}

TEST(bodies_that_never_end_keep_nobody_else_out)
{
	struct response r = { 0 };
	struct peer held[16], p;
	struct fixture f;
	int kept = 0;

	REQUIRE(start(&f, NS_PER_MIN));
	for (unsigned i = 0; i < 16; i++) /* eight of each would fill all there is */
		hold(&held[i], &f, 2 + i % 2, "/yes");
	for (int i = 0; i < 5; i++) {
		peer_open(&p, f.port);
		peer_ask_on(&p, &r, "POST /yes", "", zeros(BODY_MAX));
		CHECK_INT(r.status, 200);
		peer_close(&p);
	}
	for (unsigned i = 0; i < 16; i++)
		kept += finish(&held[i], &r) == 200;
	CHECK(kept >= 6 && kept <= 7); /* of eight that there was room for; the rest was told */
	for (unsigned i = 8; i < 16; i++) /* of those who were refused nothing was kept */
		hold(&held[i], &f, 2 + i % 2, "/later-no");
	for (int i = 0; i < 8; i++)
		hold(&held[i], &f, 2 + (unsigned)i % 2, "/yes");
	for (unsigned i = 0; i < 8; i++)
		CHECK_INT(finish(&held[i], &r), 200);
	for (unsigned i = 8; i < 16; i++)
		CHECK_INT(finish(&held[i], &r), 403);
	response_release(&r);
	http_server_close(f.server, NS_PER_S);
}
