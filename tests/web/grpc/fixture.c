#include "tests/web/grpc/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/wait.h"

struct fixture fixture;

static void echo(void *ctx, struct http_in *in, struct grpc_answer *out)
{
	(void)ctx;
	buf_add_str(&out->body, in->content_encoding);
	buf_add_str(&out->body, in->body);
}

static void fail(void *ctx, struct http_in *in, struct grpc_answer *out)
{
	(void)ctx;
	grpc_fail(out, GRPC_UNAVAILABLE, 7, STR_FMT, STR_ARG(in->body));
}

static void hold(void *ctx, struct http_in *in, struct grpc_answer *out)
{
	(void)ctx;
	atomic_fetch_add(&fixture.held, 1);
	(void)WAIT_FOR(atomic_load(&fixture.let_go) || atomic_load(&in->canceled));
	atomic_fetch_sub(&fixture.held, 1);
	if (!atomic_load(&in->canceled))
		return;
	atomic_fetch_add(&fixture.canceled, 1);
	grpc_fail(out, GRPC_CANCELLED, 0, "canceled");
}

static const struct grpc_method methods[] = { { ECHO, NEEDS_USER, echo },
	{ FAIL, NEEDS_USER, fail }, { HOLD, NEEDS_USER, hold } };

void fixture_open(struct grpc_server_options o)
{
	struct err err;

	memset(&fixture, 0, sizeof(fixture));
	o.listen_address = "127.0.0.1:0";
	o.workers = o.workers ? o.workers : 4;
	o.connections_max = o.connections_max ? o.connections_max : 64;
	o.read_timeout_ns = o.read_timeout_ns ? o.read_timeout_ns : NS_PER_HOUR;
	o.body_timeout_ns = o.body_timeout_ns ? o.body_timeout_ns : NS_PER_HOUR;
	o.body_bytes_max = o.body_bytes_max ? o.body_bytes_max : 4u << 20;
	o.bodies_bytes_max = o.bodies_bytes_max ? o.bodies_bytes_max : 64u << 20;
	o.address_bodies_bytes_max = o.address_bodies_bytes_max ? o.address_bodies_bytes_max :
															  64u << 20;
	o.methods = methods;
	o.methods_n = sizeof(methods) / sizeof(methods[0]);
	if (grpc_server_open(&o, &fixture.server, &err)) {
		printf("server: %s\n", err.msg);
		exit(1);
	}
	fixture.port = grpc_server_port(fixture.server);
}

void fixture_close(void)
{
	grpc_server_close(fixture.server, NS_PER_MIN);
	fixture.server = NULL;
}

void fixture_let_go(void)
{
	atomic_store(&fixture.let_go, true);
}

struct h2_reply fixture_ask(const char *path, const char *const *fields, struct str body)
{
	struct h2_client *c = malloc(sizeof(*c));
	struct h2_reply *r, out;

	h2_open(c, fixture.port, NULL);
	r = h2_call(c, path, fields, body, true);
	h2_wait(c, r);
	out = *r;
	r->body = (struct buf){ 0 };
	h2_close(c);
	free(c);
	return out;
}

void reply_release(struct h2_reply *r)
{
	buf_release(&r->body);
}
