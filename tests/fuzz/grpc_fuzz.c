/*
 * fuzz: web/grpc
 * The bytes of a connection, in pieces: a session of HTTP/2 and gRPC takes any, stays within its
 * limits, and forgets all when it ends. The first byte says how long pieces are, whether the
 * client's magic comes first, and whether workers are slow.
 */
#include <assert.h>

#include "tests/fuzz/fuzz.h"
#include "web/grpc/session.h"

#define BODY_MAX 4096u
#define BODIES_MAX (64u << 10)
#define MAGIC "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

struct fuzzed {
	struct grpc_server_options o;
	struct bodies bodies;
	unsigned calls_n;
	struct grpc_call *queue; /* of workers, linked by owner */
	struct session *session;
};

static void echo(void *ctx, struct http_in *in, struct grpc_answer *out)
{
	(void)ctx;
	require(in->body.len <= BODY_MAX);
	if (in->body.len % 3 == 1)
		grpc_fail(out, GRPC_UNAVAILABLE, 1, STR_FMT, STR_ARG(in->body));
	else
		buf_add_str(&out->body, in->body);
}

static enum http_admission admit(void *ctx, struct http_in *in, struct http_out *out, bool may_wait)
{
	(void)ctx;
	out->status = 200;
	if (!in->authorization.len)
		return HTTP_ADMITTED;
	if (!may_wait)
		return HTTP_ADMIT_LATER;
	if (in->authorization.ptr[0] == 'B')
		return HTTP_ADMITTED;
	http_text(out, in->authorization.len % 2 ? 401 : 429, "no");
	return HTTP_ANSWERED;
}

static bool hand(void *ctx, struct grpc_call *c)
{
	struct fuzzed *f = ctx;

	c->owner = f->queue;
	f->queue = c;
	return true;
}

/* Calls that come meanwhile wait for the next time. */
static void work(struct fuzzed *f)
{
	struct grpc_call *c = f->queue, *next;

	for (f->queue = NULL; c; c = next) {
		next = c->owner;
		call_run(c);
		session_returned(f->session, c);
	}
}

static void drain(struct fuzzed *f)
{
	while (session_next(f->session).len)
		;
	require(session_calls(f->session) == f->calls_n);
	require(f->bodies.bytes <= BODIES_MAX);
}

static void run(struct fuzzed *f, const uint8_t *data, size_t size, uint8_t how)
{
	size_t piece = (size_t)(how >> 2) * 4 + 1;

	if ((how & 1) && session_receive(f->session, MAGIC, sizeof(MAGIC) - 1, NULL))
		return;
	for (unsigned i = 0; size; i++) {
		size_t n = size < piece ? size : piece;

		if (session_receive(f->session, data, n, NULL))
			return;
		data += n;
		size -= n;
		if (!(how & 2) || i % 8 == 7)
			work(f);
		drain(f);
		if (session_is_over(f->session))
			return;
		if (i % 64 == 63)
			session_tick(f->session, 0);
	}
	session_tick(f->session, INT64_MAX / 2); /* what has not come whole */
	drain(f);
	if (session_is_over(f->session))
		return;
	session_shut(f->session);
	drain(f);
	work(f);
	drain(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct grpc_method methods[] = { { "/t/E", NEEDS_USER, echo } };
	struct fuzzed f = { .o = { .admit = admit,
							.methods = methods,
							.methods_n = 1,
							.body_timeout_ns = 1,
							.body_bytes_max = BODY_MAX,
							.bodies_bytes_max = BODIES_MAX,
							.address_bodies_bytes_max = BODIES_MAX / 2 } };
	struct session_host host = {
		.o = &f.o, .bodies = &f.bodies, .calls_n = &f.calls_n, .hand = hand, .ctx = &f
	};

	if (!size)
		return 0;
	bodies_init(&f.bodies, f.o.bodies_bytes_max, f.o.address_bodies_bytes_max);
	require(!session_open(&host, &f.session, NULL));
	drain(&f);
	run(&f, data + 1, size - 1, data[0]);
	session_close(f.session);
	work(&f); /* of workers that were slower */
	require(!session_handed(f.session) && !session_calls(f.session));
	require(!f.calls_n && !f.bodies.bytes);
	session_free(f.session);
	return 0;
}
