/* The server ends while calls are under way. */
#include "base/thread.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/grpc/fixture.h"

#define EMPTY ((struct str){ "\0\0\0\0", 5 })

static void close_server(void *ctx)
{
	grpc_server_close(fixture.server, *(int64_t *)ctx);
}

TEST(running_calls_are_answered_and_others_are_to_come_again)
{
	struct h2_client *c = malloc(2 * sizeof(*c));
	struct h2_reply *running, *half;
	int64_t grace_ns = NS_PER_HOUR;
	struct thread closer = { 0 };
	struct err err;

	fixture_open((struct grpc_server_options){ 0 });
	h2_open(&c[0], fixture.port, NULL);
	h2_open(&c[1], fixture.port, NULL);
	running = h2_call(&c[0], HOLD, NULL, EMPTY, true);
	half = h2_call(&c[0], ECHO, NULL, (struct str){ "\0\0\0\0\2x", 6 }, false);
	h2_send(&c[0]);
	CHECK(WAIT_FOR(atomic_load(&fixture.held) == 1));
	h2_wait(&c[1], h2_call(&c[1], ECHO, NULL, EMPTY, true)); /* then idle */
	CHECK_OK(thread_start(&closer, "closer", close_server, &grace_ns, &err), &err);
	while (h2_turn(&c[1]))
		;
	CHECK(c[1].goaway);
	h2_close(&c[1]);
	h2_wait(&c[0], half);
	CHECK_INT(half->status, GRPC_UNAVAILABLE);
	CHECK_STR(str_of(half->message), "the server is shutting down");
	CHECK(half->details[0] != '\0');
	CHECK(!running->closed);
	fixture_let_go();
	h2_wait(&c[0], running);
	CHECK_INT(running->status, GRPC_OK);
	while (h2_turn(&c[0]))
		;
	CHECK(c[0].goaway);
	CHECK_INT(c[0].goaway_code, NGHTTP2_NO_ERROR);
	h2_close(&c[0]);
	thread_join(&closer);
	h2_open(&c[0], fixture.port, NULL);
	CHECK(c[0].ended);
	h2_close(&c[0]);
	free(c);
}

TEST(after_the_grace_running_calls_are_canceled)
{
	struct h2_client *c = malloc(sizeof(*c));
	struct h2_reply *running, *queued;
	int64_t grace_ns = 0;
	struct thread closer = { 0 };
	struct err err;

	fixture_open((struct grpc_server_options){ .workers = 1 });
	h2_open(c, fixture.port, NULL);
	running = h2_call(c, HOLD, NULL, EMPTY, true);
	queued = h2_call(c, HOLD, NULL, EMPTY, true);
	h2_send(c);
	CHECK(WAIT_FOR(atomic_load(&fixture.held) == 1));
	/* Both are with the server once a third one is answered by it. */
	h2_wait(c, h2_call(c, "/test.Test/Other", NULL, EMPTY, true));
	CHECK_OK(thread_start(&closer, "closer", close_server, &grace_ns, &err), &err);
	h2_wait(c, running);
	h2_wait(c, queued);
	CHECK_INT(running->status, GRPC_CANCELLED);
	CHECK_INT(queued->status, GRPC_CANCELLED);
	h2_close(c);
	thread_join(&closer);
	CHECK_INT(atomic_load(&fixture.canceled), 2);
	free(c);
}

TEST(an_address_that_is_taken_is_an_error)
{
	struct grpc_server_options o = { .workers = 1,
		.connections_max = 1,
		.read_timeout_ns = 1,
		.body_timeout_ns = 1,
		.body_bytes_max = 1,
		.bodies_bytes_max = 1,
		.address_bodies_bytes_max = 1 };
	struct grpc_server *s = NULL;
	char address[64], want[160];
	struct err err;

	fixture_open((struct grpc_server_options){ 0 });
	snprintf(address, sizeof(address), "127.0.0.1:%u", fixture.port);
	snprintf(want, sizeof(want), "listen on %s: Address already in use", address);
	o.listen_address = address;
	CHECK_ERR(grpc_server_open(&o, &s, &err), &err, ERR_UNAVAILABLE, want);
	o.listen_address = "4317";
	CHECK_ERR(grpc_server_open(&o, &s, &err), &err, ERR_INVALID, "listen on 4317: not host:port");
	fixture_close();
}
