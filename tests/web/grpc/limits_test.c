/* Connections that break rules, say too much, too little, or are too many. */
#include <sys/socket.h>

#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/grpc/fixture.h"

#define EMPTY ((struct str){ "\0\0\0\0", 5 })

static void check_alive(void)
{
	struct h2_reply r = fixture_ask(ECHO, NULL, EMPTY);

	CHECK_INT(r.status, 0);
	reply_release(&r);
}

static int greeted(struct h2_client *c)
{
	struct h2_reply *r = h2_call(c, ECHO, NULL, EMPTY, true);

	h2_wait(c, r);
	return r->status;
}

static void greet(struct h2_client *c)
{
	CHECK_INT(greeted(c), 0);
}

static void ping(struct h2_client *c)
{
	nghttp2_submit_ping(c->h2, NGHTTP2_FLAG_NONE, NULL);
}

static void send_settings(struct h2_client *c)
{
	const nghttp2_settings_entry e = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 65535 };

	nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, &e, 1);
}

static void prioritize(struct h2_client *c)
{
	/* PRIORITY of stream 1001: depends on 0, weight 1 */
	h2_raw(c, "\0\0\5\2\0\0\0\3\351\0\0\0\0\0", 14);
}

static void open_and_reset(struct h2_client *c)
{
	struct h2_reply *r;

	c->replies_n = 2; /* nobody waits for it */
	r = h2_call(c, ECHO, NULL, STR(""), false);
	h2_send(c);
	nghttp2_submit_rst_stream(c->h2, NGHTTP2_FLAG_NONE, r->stream, NGHTTP2_CANCEL);
	h2_send(c);
	nghttp2_session_set_stream_user_data(c->h2, r->stream, NULL);
	buf_release(&r->to_send);
}

static void send_empty_data(struct h2_client *c)
{
	/* DATA without a byte, on stream 3 */
	h2_raw(c, "\0\0\0\0\0\0\0\0\3", 9);
}

TEST(floods_end_their_connection)
{
	static void (*const floods[])(struct h2_client * c) = { ping, send_settings, prioritize,
		open_and_reset, send_empty_data };

	fixture_open((struct grpc_server_options){ 0 });
	for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
		struct h2_client *c = malloc(sizeof(*c));

		h2_open(c, fixture.port, NULL);
		greet(c);
		h2_call(c, ECHO, NULL, EMPTY, false); /* for DATA */
		for (unsigned n = 0; n < 100000 && !c->ended; n++) {
			floods[i](c);
			h2_send(c);
		}
		while (h2_turn(c))
			;
		CHECK(c->ended);
		h2_close(c);
		free(c);
		check_alive();
	}
	fixture_close();
}

TEST(pings_are_answered)
{
	struct h2_client *c = malloc(sizeof(*c));

	fixture_open((struct grpc_server_options){ 0 });
	h2_open(c, fixture.port, NULL);
	for (unsigned i = 1; i <= 100; i++) {
		ping(c);
		while (c->pings < i && h2_turn(c))
			;
		CHECK_INT(c->pings, i);
	}
	CHECK(!c->goaway);
	h2_close(c);
	free(c);
	fixture_close();
}

TEST(a_connection_that_is_no_http2_ends)
{
	static const char *const begins[] = { "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello, but nearly",
		"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n more",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff "
		"more than any frame" };

	fixture_open((struct grpc_server_options){ 0 });
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		struct h2_client *c = malloc(sizeof(*c));
		char bytes[1000];

		h2_open(c, fixture.port, NULL);
		h2_raw(c, begins[i], strlen(begins[i]));
		while (recv(c->fd, bytes, sizeof(bytes), 0) > 0)
			;
		c->ended = true;
		h2_close(c);
		free(c);
		check_alive();
	}
	fixture_close();
}

TEST(a_call_that_does_not_come_whole_ends)
{
	struct h2_client *c = malloc(sizeof(*c));
	struct h2_reply *r;

	fixture_open((struct grpc_server_options){ .body_timeout_ns = NS_PER_S });
	h2_open(c, fixture.port, NULL);
	r = h2_call(c, ECHO, NULL, (struct str){ "\0\0\0\0\2x", 6 }, false);
	h2_wait(c, r);
	CHECK_INT(r->status, GRPC_DEADLINE_EXCEEDED);
	CHECK_STR(str_of(r->message), "the call did not come whole within 1 s (--web.body-timeout)");
	CHECK_STR(str_of(r->details), "");
	CHECK(WAIT_FOR(greeted(c) == 0 || c->ended)); /* on a busy machine it comes late, too */
	CHECK(!c->ended);
	h2_close(c);
	free(c);
	fixture_close();
}

TEST(a_head_that_never_ends_ends_its_connection)
{
	/* HEADERS on stream 1 without END_HEADERS: ":method: POST" */
	static const char head[] = "\0\0\1\1\0\0\0\0\1\203";
	struct h2_client *c = malloc(sizeof(*c));

	fixture_open((struct grpc_server_options){ .body_timeout_ns = NS_PER_S });
	h2_open(c, fixture.port, NULL);
	h2_send(c);
	h2_raw(c, head, sizeof(head) - 1);
	while (h2_turn(c))
		;
	CHECK(c->goaway);
	h2_close(c);
	free(c);
	check_alive();
	fixture_close();
}

TEST(an_idle_connection_is_told_to_go)
{
	struct h2_client *c = malloc(sizeof(*c));
	int64_t until = 0;

	fixture_open((struct grpc_server_options){ .read_timeout_ns = NS_PER_S });
	h2_open(c, fixture.port, NULL);
	while (greeted(c) != 0 && wait_more(&until)) { /* told to go before its call came */
		h2_close(c);
		h2_open(c, fixture.port, NULL);
	}
	CHECK_INT(c->replies[0].status, 0);
	while (h2_turn(c))
		;
	CHECK(c->goaway);
	CHECK_INT(c->goaway_code, NGHTTP2_NO_ERROR);
	h2_close(c);
	free(c);
	fixture_close();
}

TEST(the_idlest_connection_makes_room)
{
	struct h2_client *c = malloc(4 * sizeof(*c));
	struct h2_reply *busy;

	fixture_open((struct grpc_server_options){ .connections_max = 2 });
	h2_open(&c[0], fixture.port, NULL);
	busy = h2_call(&c[0], HOLD, NULL, EMPTY, true);
	h2_send(&c[0]);
	CHECK(WAIT_FOR(atomic_load(&fixture.held) == 1));
	h2_open(&c[1], fixture.port, NULL);
	greet(&c[1]);
	h2_open(&c[2], fixture.port, NULL);
	greet(&c[2]);
	while (h2_turn(&c[1]))
		;
	CHECK(c[1].goaway);
	h2_call(&c[2], HOLD, NULL, EMPTY, true);
	h2_send(&c[2]);
	CHECK(WAIT_FOR(atomic_load(&fixture.held) == 2));
	h2_open(&c[3], fixture.port, NULL); /* nobody is idle now */
	while (h2_turn(&c[3]))
		;
	fixture_let_go();
	h2_wait(&c[0], busy);
	CHECK_INT(busy->status, 0);
	for (int i = 0; i < 4; i++)
		h2_close(&c[i]);
	free(c);
	fixture_close();
}

TEST(an_answer_that_is_not_read_is_given_up)
{
	const nghttp2_settings_entry none = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0 };
	struct h2_client *c = malloc(sizeof(*c));
	struct h2_reply *r;
	int64_t until = 0;

	fixture_open((struct grpc_server_options){ .body_timeout_ns = NS_PER_S });
	h2_open(c, fixture.port, NULL);
	nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, &none, 1);
	do { /* on a busy machine the call may be late itself */
		r = h2_call(c, ECHO, NULL, (struct str){ "\0\0\0\0\1x", 6 }, true);
		h2_wait(c, r);
	} while (r->status == GRPC_DEADLINE_EXCEEDED && wait_more(&until));
	CHECK_INT(r->http_status, 200);
	CHECK_INT(r->status, -1);
	CHECK_INT(r->reset, NGHTTP2_CANCEL);
	h2_close(c);
	free(c);
	fixture_close();
}
