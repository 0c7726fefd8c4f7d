/* Calls over a real connection: answers, heads and messages that are refused, windows, memory. */
#include "proto/base64.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/grpc/fixture.h"

static void check_reply(const struct h2_reply *r, int http_status, int status, const char *message)
{
	CHECK(r->closed);
	CHECK_INT(r->http_status, http_status);
	CHECK_INT(r->status, status);
	CHECK_STR(str_of(r->message), message);
}

TEST(a_message_is_answered)
{
	struct buf body = { 0 };
	struct h2_reply r;

	fixture_open((struct grpc_server_options){ 0 });
	h2_message(&body, 0, STR("hello"));
	r = fixture_ask(ECHO, NULL, buf_str(&body));
	check_reply(&r, 200, 0, "");
	CHECK_INT(r.reset, NGHTTP2_NO_ERROR);
	CHECK_STR(str_of(r.accepts), "identity,gzip,zstd");
	CHECK_INT(r.body.len, 10);
	CHECK(r.body.len == 10 && !memcmp(r.body.ptr, "\0\0\0\0\5hello", 10));
	reply_release(&r);
	/* An empty one is a message too. */
	r = fixture_ask(ECHO, NULL, (struct str){ "\0\0\0\0", 5 });
	check_reply(&r, 200, 0, "");
	CHECK_INT(r.body.len, 5);
	reply_release(&r);
	fixture_close();
	buf_release(&body);
}

TEST(the_method_gets_the_message_s_coding)
{
	static const char *const gzip[] = { "grpc-encoding", "gzip", NULL };
	static const char *const zstd[] = { "grpc-encoding", "zstd", NULL };
	static const struct {
		const char *const *fields;
		struct str body;
		const char *want;
	} rows[] = {
		{ gzip, { "\1\0\0\0\1x", 6 }, "gzipx" }, { zstd, { "\1\0\0\0\1x", 6 }, "zstdx" },
		{ gzip, { "\0\0\0\0\1x", 6 }, "x" }, /* it may be sent as it is */
	};

	fixture_open((struct grpc_server_options){ 0 });
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct h2_reply r = fixture_ask(ECHO, rows[i].fields, rows[i].body);

		check_reply(&r, 200, 0, "");
		REQUIRE(r.body.len > 5);
		CHECK_STR(((struct str){ r.body.ptr + 5, r.body.len - 5 }), rows[i].want);
		reply_release(&r);
	}
	fixture_close();
}

TEST(heads_that_are_refused)
{
	static char long_value[20001], long_user[9001];
	static const struct {
		const char *path, *fields[5];
		int http_status, status;
		const char *message;
	} rows[] = {
		{ "/test.Test/Other", { NULL }, 200, GRPC_UNIMPLEMENTED,
			"this service or method is not served here" },
		{ ECHO "/", { NULL }, 200, GRPC_UNIMPLEMENTED,
			"this service or method is not served here" },
		{ ECHO, { "content-type", "application/json" }, 415, GRPC_INTERNAL,
			"this port serves gRPC: content-type must be application/grpc" },
		{ ECHO, { ":method", "GET" }, 405, GRPC_INTERNAL,
			"the HTTP method of a gRPC call is POST" },
		{ ECHO, { "grpc-encoding", "snappy" }, 200, GRPC_UNIMPLEMENTED,
			"grpc-encoding must be identity, gzip or zstd" },
		{ ECHO, { "x-long", long_value }, 200, GRPC_RESOURCE_EXHAUSTED,
			"the head is longer than 16384 bytes" },
		{ ECHO, { "authorization", "Basic a", "+authorization", "Basic b" }, 200,
			GRPC_INVALID_ARGUMENT, "header authorization is repeated" },
		{ ECHO, { "+content-type", "application/grpc" }, 200, GRPC_INVALID_ARGUMENT,
			"header content-type is repeated" },
		{ ECHO, { "grpc-encoding", "gzip", "+grpc-encoding", "zstd" }, 200, GRPC_INVALID_ARGUMENT,
			"header grpc-encoding is repeated" },
		{ ECHO, { "authorization", long_user }, 200, GRPC_RESOURCE_EXHAUSTED,
			"authorization is longer than 8192 bytes" },
	};

	memset(long_value, 'x', sizeof(long_value) - 1);
	memset(long_user, 'x', sizeof(long_user) - 1);
	fixture_open((struct grpc_server_options){ 0 });
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct h2_reply r;

		r = fixture_ask(rows[i].path, rows[i].fields, (struct str){ "\0\0\0\0", 5 });
		check_reply(&r, rows[i].http_status, rows[i].status, rows[i].message);
		CHECK_STR(str_of(r.details), "");
		reply_release(&r);
	}
	fixture_close();
}

TEST(messages_that_are_refused)
{
	static const struct {
		struct str body;
		int status;
		const char *message;
	} rows[] = {
		{ { "", 0 }, GRPC_INVALID_ARGUMENT,
			"the call ends after 0 bytes, before the message's prefix of 5" },
		{ { "\0\0\0\0", 4 }, GRPC_INVALID_ARGUMENT,
			"the call ends after 4 bytes, before the message's prefix of 5" },
		{ { "\0\0\0\0\3xy", 7 }, GRPC_INVALID_ARGUMENT,
			"the call ends after 2 of 3 bytes of its message" },
		{ { "\0\0\0\0\1xy", 7 }, GRPC_INVALID_ARGUMENT,
			"more bytes than the message's prefix says, 1: one message per call" },
		{ { "\0\0\0\0\1x\0\0\0\0\1x", 12 }, GRPC_INVALID_ARGUMENT,
			"more bytes than the message's prefix says, 1: one message per call" },
		{ { "\2\0\0\0\1x", 6 }, GRPC_INVALID_ARGUMENT,
			"the message's prefix begins with 2: 0 and 1 are known" },
		{ { "\1\0\0\0\1x", 6 }, GRPC_INTERNAL,
			"the message is marked as compressed, but grpc-encoding is missing" },
		{ { "\0\0\0\4\1", 5 }, GRPC_RESOURCE_EXHAUSTED,
			"the message is 1025 bytes long, limit 1024" },
		{ { "\0\377\377\377\377", 5 }, GRPC_RESOURCE_EXHAUSTED,
			"the message is 4294967295 bytes long, limit 1024" },
	};

	fixture_open((struct grpc_server_options){ .body_bytes_max = 1024 });
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct h2_reply r = fixture_ask(ECHO, NULL, rows[i].body);

		check_reply(&r, 200, rows[i].status, rows[i].message);
		CHECK_STR(str_of(r.details), "");
		CHECK_INT(r.body.len, 0);
	}
	fixture_close();
}

TEST(a_message_that_is_too_long_is_refused_before_it_comes)
{
	struct h2_client *c = malloc(sizeof(*c));
	struct h2_reply *r;

	fixture_open((struct grpc_server_options){ .body_bytes_max = 1024 });
	h2_open(c, fixture.port, NULL);
	r = h2_call(c, ECHO, NULL, (struct str){ "\0\0\1\0\0", 5 }, false);
	h2_wait(c, r);
	check_reply(r, 200, GRPC_RESOURCE_EXHAUSTED, "the message is 65536 bytes long, limit 1024");
	CHECK_INT(r->reset, NGHTTP2_NO_ERROR);
	/* The connection serves others. */
	r = h2_call(c, ECHO, NULL, (struct str){ "\0\0\0\0", 5 }, true);
	h2_wait(c, r);
	check_reply(r, 200, 0, "");
	h2_close(c);
	free(c);
	fixture_close();
}

TEST(a_failure_says_why_and_when_to_try_again)
{
	struct buf body = { 0 };
	char details[1600];
	struct h2_reply r;
	size_t n;

	fixture_open((struct grpc_server_options){ 0 });
	h2_message(&body, 0, STR("50% of \xc3\xbc\n"));
	r = fixture_ask(FAIL, NULL, buf_str(&body));
	check_reply(&r, 200, GRPC_UNAVAILABLE, "50%25 of %C3%BC%0A");
	REQUIRE(base64_decode(str_of(r.details), details, &n));
	CHECK_STR(((struct str){ details, n }),
		"\x08\x0e\x12\x0a"
		"50% of \xc3\xbc\n"
		"\x1a\x30\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x07");
	reply_release(&r);
	fixture_close();
	buf_release(&body);
}

TEST(a_hundred_calls_of_one_connection_run_side_by_side)
{
	struct h2_client *c = malloc(sizeof(*c));
	struct buf body = { 0 };
	char text[32];

	fixture_open((struct grpc_server_options){ .workers = 8 });
	h2_open(c, fixture.port, NULL);
	for (unsigned i = 0; i < 200; i++) { /* a hundred of them wait in the client */
		snprintf(text, sizeof(text), "call %u", i);
		buf_clear(&body);
		h2_message(&body, 0, str_of(text));
		h2_call(c, ECHO, NULL, (struct str){ body.ptr, 4 }, false);
	}
	for (unsigned i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "call %u", i);
		buf_clear(&body);
		h2_message(&body, 0, str_of(text));
		h2_more(c, &c->replies[i], (struct str){ body.ptr + 4, body.len - 4 }, true);
	}
	for (unsigned i = 0; i < 200; i++) {
		struct h2_reply *r = &c->replies[i];

		h2_wait(c, r);
		snprintf(text, sizeof(text), "call %u", i);
		check_reply(r, 200, 0, "");
		REQUIRE(r->body.len > 5);
		CHECK_STR(((struct str){ r->body.ptr + 5, r->body.len - 5 }), text);
	}
	h2_close(c);
	free(c);
	fixture_close();
	buf_release(&body);
}

TEST(a_message_may_be_longer_than_any_window)
{
	struct buf body = { 0 }, message = { 0 };
	struct h2_reply r;

	fixture_open((struct grpc_server_options){ 0 });
	for (uint32_t i = 0; i < (3u << 20) / 4; i++)
		buf_add_u32be(&message, i * 2654435761u);
	h2_message(&body, 0, buf_str(&message));
	r = fixture_ask(ECHO, NULL, buf_str(&body));
	check_reply(&r, 200, 0, "");
	CHECK(str_eq(buf_str(&r.body), buf_str(&body)));
	reply_release(&r);
	fixture_close();
	buf_release(&body);
	buf_release(&message);
}

TEST(an_address_has_a_share_of_the_memory)
{
	struct h2_client *c = malloc(sizeof(*c));
	struct h2_reply *first, *second;
	struct buf body = { 0 }, message = { 0 };

	fixture_open((struct grpc_server_options){ .address_bodies_bytes_max = 300000 });
	buf_reserve(&message, 200000);
	memset(message.ptr, 'x', 200000);
	message.len = 200000;
	h2_message(&body, 0, buf_str(&message));
	h2_open(c, fixture.port, NULL);
	first = h2_call(c, ECHO, NULL, (struct str){ body.ptr, body.len - 1 }, false);
	second = h2_call(c, ECHO, NULL, buf_str(&body), false);
	while (!first->closed && !second->closed && h2_turn(c))
		;
	if (first->closed) { /* whichever came later */
		struct h2_reply *r = first;

		first = second;
		second = r;
	}
	check_reply(second, 200, GRPC_UNAVAILABLE,
		"too many messages at once from this address: try again later "
		"(--web.max-body-memory-per-address is 300000 bytes)");
	CHECK(second->details[0] != '\0');
	CHECK(!first->closed);
	h2_more(c, first, first->to_send.len < body.len ? STR("x") : STR(""), true);
	h2_wait(c, first);
	check_reply(first, 200, 0, "");
	h2_close(c);
	free(c);
	fixture_close();
	buf_release(&body);
	buf_release(&message);
}

TEST(a_call_that_its_sender_gives_up_is_canceled)
{
	struct h2_client *c = malloc(sizeof(*c));
	struct h2_reply *r;

	fixture_open((struct grpc_server_options){ 0 });
	h2_open(c, fixture.port, NULL);
	r = h2_call(c, HOLD, NULL, (struct str){ "\0\0\0\0", 5 }, true);
	h2_send(c);
	CHECK(WAIT_FOR(atomic_load(&fixture.held) == 1));
	nghttp2_submit_rst_stream(c->h2, NGHTTP2_FLAG_NONE, r->stream, NGHTTP2_CANCEL);
	h2_send(c);
	CHECK(WAIT_FOR(atomic_load(&fixture.canceled) == 1));
	r = h2_call(c, HOLD, NULL, (struct str){ "\0\0\0\0", 5 }, true);
	h2_send(c);
	CHECK(WAIT_FOR(atomic_load(&fixture.held) == 1));
	h2_close(c); /* so is one whose connection ends */
	CHECK(WAIT_FOR(atomic_load(&fixture.canceled) == 2));
	free(c);
	fixture_close();
}
