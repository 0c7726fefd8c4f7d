/*
 * An API server for tests: real HTTP on 127.0.0.1, in the test's own event loop. The test
 * sets its answers before; an unexpected request is answered with 500 and counted.
 *
 * Ownership: kube_server_start and kube_server_stop pair; strings given live as long as the server.
 * Threads:   the loop's.
 */
#ifndef TESTS_DISCOVERY_KUBE_SERVER_H
#define TESTS_DISCOVERY_KUBE_SERVER_H

#include "base/str.h"

#define KUBE_SERVER_STEPS_MAX 64

struct event_base;
struct evhttp;
struct evhttp_request;

enum kube_end {
	KUBE_WHOLE, /* with a Content-Length */
	KUBE_CLEAN, /* chunked, and the end */
	KUBE_CUT, /* chunked, then the connection is cut */
	KUBE_HOLD, /* chunked, and more may be pushed */
};

struct kube_step {
	const char *match; /* is in the request's URI */
	int status;
	enum kube_end end;
	const char *body;
	const char *retry_after; /* NULL: none */
	unsigned times; /* 0: once; UINT_MAX: always */
	/* of kube_server.c: a request whose answer was not ended, and whether it can still be */
	struct evhttp_request *request;
	bool held;
};

struct kube_server {
	struct event_base *base;
	struct evhttp *http;
	unsigned port;
	struct kube_step steps[KUBE_SERVER_STEPS_MAX];
	size_t steps_n;
	struct buf log; /* "URI\n" of each request */
	struct buf auth; /* "Authorization\n" of each */
	unsigned requests, unexpected;
};

bool kube_server_start(struct kube_server *s, struct event_base *base);
void kube_server_stop(struct kube_server *s);
/* The first step with something left that matches answers. */
void kube_server_add(struct kube_server *s, struct kube_step step);
/* Sends one more chunk in the stream that the step of this match holds. False: it holds none. */
bool kube_server_push(struct kube_server *s, const char *match, struct str bytes);
bool kube_server_end(struct kube_server *s, const char *match, enum kube_end end);
bool kube_server_holds(struct kube_server *s, const char *match);

#endif
