/* Answers in pieces: each goes to a function at once; silence ends in a timeout. */
#include <event2/event.h>

#include "base/clock.h"
#include "base/net/http_client.h"
#include "tests/base/net/http_pair.h"
#include "tests/check.h"
#include "tests/wait.h"

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
#define CHUNKED OK_HEAD "Transfer-Encoding: chunked\r\n\r\n"

struct stream { /* result first: done gets the same ctx */
	struct http_result result;
	struct buf got;
	size_t pieces, cancel_at; /* bytes after which the request is canceled; 0: never */
	struct http_request *request;
};

static struct stream stream;

static void on_data(void *ctx, struct str piece)
{
	struct stream *s = ctx;

	CHECK(!s->result.done && piece.len > 0);
	s->pieces++;
	buf_add_str(&s->got, piece);
	if (s->cancel_at && s->got.len >= s->cancel_at) {
		http_request_cancel(s->request);
		event_base_loopbreak(client.base);
	}
}

static void on_quiet(evutil_socket_t fd, short what, void *ctx)
{
	event_base_loopbreak(client.base);
}

/* Runs the loop for so long at most. */
static void run(int64_t ns)
{
	struct timeval tv = { ns / NS_PER_S, ns % NS_PER_S / 1000 };
	struct event *e = evtimer_new(client.base, on_quiet, NULL);

	evtimer_add(e, &tv);
	event_base_dispatch(client.base);
	event_free(e);
}

static void run_until_data(void)
{
	CHECK(WAIT_FOR((run(10 * NS_PER_MS), stream.got.len >= 5)));
}

static bool start(script_fn script, const void *ctx)
{
	if (!pair_start(script, ctx, NULL, "/watch"))
		return false;
	stream.result.base = client.base;
	return true;
}

static void send_request(struct http_request_options o)
{
	struct err err;

	o.url = str_of(url);
	o.data = on_data;
	if (!o.timeout_ns)
		o.timeout_ns = WAIT_NS;
	CHECK_OK(http_client_send(client.http, &o, result_done, &stream, &stream.request, &err), &err);
}

static void stop(void)
{
	pair_stop();
	result_release(&stream.result);
	buf_release(&stream.got);
	stream = (struct stream){ 0 };
}

/* All of an answer, and then again: on a busy machine either side may be later than a timeout. */
static void attempt(script_fn script, struct http_request_options o)
{
	if (stream.result.base)
		stop();
	if (!start(script, NULL))
		abort();
	send_request(o);
	run(WAIT_NS);
}

TEST(the_body_comes_to_the_function_and_then_done)
{
	static const struct {
		const char *answer;
		enum err_code code;
		int status;
		const char *data, *rest; /* rest: body, or part of the message */
	} rows[] = {
		{ CHUNKED "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n", ERR_OK, 200, "abcdefg", "" },
		{ OK_HEAD "\r\nto the end", ERR_OK, 200, "to the end", "" },
		{ OK_HEAD "Content-Length: 6\r\n\r\nlength", ERR_OK, 200, "length", "" },
		{ OK_HEAD "Content-Length: 0\r\n\r\n", ERR_OK, 200, "", "" },
		{ CHUNKED "3\r\nabc\r\n4\r\nde", ERR_UNAVAILABLE, 200, "abcde", "unexpected EOF" },
		{ CHUNKED "3\r\nabc\r\nzz", ERR_INVALID, 200, "abc", "malformed chunked encoding" },
		{ "HTTP/1.1 410 Gone\r\nContent-Length: 3\r\n\r\nold", ERR_OK, 410, "", "old" },
		{ "HTTP/1.1 410 Gone\r\nContent-Length: 30\r\n\r\n", ERR_LIMIT, 0, "",
			"body size limit exceeded" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE(start(script_answers_once, rows[i].answer));
		send_request((struct http_request_options){ .body_size_max = 5 });
		run(WAIT_NS);
		CHECK_INT(stream.result.calls, 1);
		CHECK_INT(stream.result.rc, rows[i].code);
		CHECK_INT(stream.result.status, rows[i].status);
		CHECK_STR(buf_str(&stream.got), rows[i].data);
		if (stream.result.rc)
			CHECK(strstr(stream.result.msg, rows[i].rest));
		else
			CHECK_STR(buf_str(&stream.result.body), rows[i].rest);
		stop();
	}
}

static atomic_bool go_on;

/* Two pieces of four; the others once the test goes on, or nothing once the client is gone. */
static void script_halves(struct peer *p, void *ctx)
{
	static const char half[] = "5\r\n12345\r\n5\r\n12345\r\n";

	if (!peer_read_request(p) || !peer_print(p, CHUNKED) || !peer_print(p, half))
		return;
	while (!atomic_load(&go_on) && !peer_gone(p))
		sleep_ms(1);
	if (peer_print(p, half))
		peer_print(p, "0\r\n\r\n");
}

/* Four pieces, 600 ms apart. */
static void script_steps(struct peer *p, void *ctx)
{
	if (!peer_read_request(p) || !peer_print(p, CHUNKED))
		return;
	for (int i = 0; i < 4; i++) {
		sleep_ms(600);
		if (!peer_print(p, "5\r\n12345\r\n"))
			return;
	}
	peer_print(p, "0\r\n\r\n");
}

/* Pieces until the client is gone. */
static void script_endless(struct peer *p, void *ctx)
{
	if (!peer_read_request(p) || !peer_print(p, CHUNKED))
		return;
	while (peer_print(p, "5\r\n12345\r\n"))
		sleep_ms(50);
}

TEST(pieces_come_while_the_answer_lasts)
{
	atomic_store(&go_on, false);
	REQUIRE(start(script_halves, NULL));
	send_request((struct http_request_options){ 0 });
	run_until_data();
	CHECK(!stream.result.done);
	atomic_store(&go_on, true);
	run(WAIT_NS);
	CHECK_INT(stream.result.rc, ERR_OK);
	CHECK_INT(stream.got.len, 20);
	stop();
}

TEST(silence_ends_it_and_bytes_do_not)
{
	struct http_request_options o = { .idle_timeout_ns = 2 * NS_PER_S };

	/* 2.4 s in all */
	CHECK(WAIT_FOR((attempt(script_steps, o), stream.result.rc != ERR_TIMEOUT)));
	CHECK_INT(stream.result.rc, ERR_OK);
	CHECK_INT(stream.got.len, 20);
	stop();

	atomic_store(&go_on, false);
	CHECK(WAIT_FOR((attempt(script_halves, o), stream.got.len >= 10)));
	CHECK_ERR(stream.result.rc, &(struct err){ .msg = "nothing received for 2s" }, ERR_TIMEOUT,
		stream.result.msg);
	CHECK_INT(stream.got.len, 10);
	stop();
}

static void script_silent(struct peer *p, void *ctx)
{
	if (peer_read_request(p))
		peer_read_request(p); /* until the client is gone */
}

TEST(silence_before_the_answer)
{
	REQUIRE(start(script_silent, NULL));
	send_request((struct http_request_options){ .idle_timeout_ns = 100 * NS_PER_MS });
	run(WAIT_NS);
	CHECK_INT(stream.result.rc, ERR_TIMEOUT);
	CHECK_INT(stream.result.calls, 1);
	stop();
}

TEST(the_deadline_stays_absolute)
{
	struct http_request_options o = { .timeout_ns = NS_PER_S };

	CHECK(WAIT_FOR((attempt(script_endless, o), stream.got.len >= 5)));
	CHECK_ERR(stream.result.rc, &(struct err){ .msg = "context deadline exceeded" }, ERR_TIMEOUT,
		stream.result.msg);
	stop();
}

TEST(canceled_from_the_function)
{
	/* while it lasts; with its last bytes, when the request is finished already; a cut one */
	static const char *const answers[] = { CHUNKED "3\r\nabc\r\n", CHUNKED "3\r\nabc\r\n0\r\n\r\n",
		CHUNKED "8\r\nabc" };

	atomic_store(&go_on, false);
	REQUIRE(start(script_halves, NULL));
	stream.cancel_at = 10;
	send_request((struct http_request_options){ .idle_timeout_ns = WAIT_NS });
	run(WAIT_NS);
	atomic_store(&go_on, true);
	run(300 * NS_PER_MS);
	CHECK_INT(stream.got.len, 10);
	CHECK_INT(stream.result.calls, 0);
	CHECK_INT(http_client_stats(client.http).connections, 0);
	stop();
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		REQUIRE(start(script_answers_once, answers[i]));
		stream.cancel_at = 1;
		send_request((struct http_request_options){ 0 });
		run(WAIT_NS);
		run(50 * NS_PER_MS);
		CHECK_STR(buf_str(&stream.got), "abc");
		CHECK_INT(stream.result.calls, 0);
		stop();
	}
}

TEST(canceled_between_pieces_and_closed)
{
	atomic_store(&go_on, false);
	REQUIRE(start(script_halves, NULL));
	send_request((struct http_request_options){ .idle_timeout_ns = WAIT_NS });
	run_until_data();
	http_request_cancel(stream.request);
	run(100 * NS_PER_MS);
	CHECK_INT(stream.result.calls, 0);
	stream.got.len = 0;
	send_request((struct http_request_options){ 0 });
	run_until_data();
	stop();
}

#define BLOCK_BYTES (1u << 20)
#define BLOCKS 48

static void script_long(struct peer *p, void *ctx)
{
	static char block[BLOCK_BYTES];

	memset(block, 'x', sizeof(block));
	if (!peer_read_request(p) || !peer_print(p, CHUNKED))
		return;
	for (int i = 0; i < BLOCKS; i++)
		if (!peer_print(p, "100000\r\n") || !peer_write(p, (struct str){ block, sizeof(block) }) ||
			!peer_print(p, "\r\n"))
			return;
	peer_print(p, "0\r\n\r\n");
}

static size_t long_bytes, long_max;

static void count_data(void *ctx, struct str piece)
{
	long_bytes += piece.len;
	long_max = piece.len > long_max ? piece.len : long_max;
}

/* There is no limit, and little memory: bytes are handed over before more are read. */
TEST(a_long_answer_is_never_held_whole)
{
	struct http_request_options o = {
		.timeout_ns = WAIT_NS, .data = count_data, .body_size_max = 1000
	};
	struct err err;

	REQUIRE(start(script_long, NULL));
	o.url = str_of(url);
	REQUIRE_OK(http_client_send(client.http, &o, result_done, &stream, NULL, &err), &err);
	run(WAIT_NS);
	CHECK_INT(stream.result.rc, ERR_OK);
	CHECK_INT(long_bytes, (size_t)BLOCKS * BLOCK_BYTES);
	CHECK(long_max <= 4u << 20);
	stop();
}
