/*
 * A gRPC server with three methods, and how a test sends to it: ECHO answers its message, its
 * content_encoding before it; FAIL fails with the message as its text; HOLD waits for
 * fixture_let_go, and then fails if it was canceled.
 *
 * Ownership: one at a time.
 */
#ifndef TESTS_WEB_GRPC_FIXTURE_H
#define TESTS_WEB_GRPC_FIXTURE_H

#include <stdatomic.h>

#include "tests/web/grpc/h2_client.h"
#include "web/grpc/grpc.h"

#define ECHO "/test.Test/Echo"
#define FAIL "/test.Test/Fail"
#define HOLD "/test.Test/Hold"

struct fixture {
	struct grpc_server *server;
	unsigned port;
	atomic_uint held, canceled; /* methods that wait now; those that saw that they were canceled */
	atomic_bool let_go;
};
extern struct fixture fixture;

/* Options that the test wants otherwise; 0: the fixture's. */
void fixture_open(struct grpc_server_options o);
void fixture_close(void);
void fixture_let_go(void);

/* One call on its own connection: body as it is, prefix included. */
struct h2_reply fixture_ask(const char *path, const char *const *fields, struct str body);
void reply_release(struct h2_reply *r);

#endif
