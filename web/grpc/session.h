/*
 * Session: HTTP/2 of one connection, from bytes received to bytes to send; it knows no socket.
 *
 * A session gives its caller a GOAWAY and is over when it breaks HTTP/2's rules, when it sends too
 * many frames that carry nothing (PING, SETTINGS, RST_STREAM, PRIORITY, empty DATA ...), or after
 * session_shut, once its calls are answered.
 *
 * Errors:    session_open: ERR_NOMEM. session_receive: ERR_INVALID: the bytes are no HTTP/2,
 *            ERR_NOMEM; nothing more can be received then.
 * Ownership: session_open hands *out to the caller. After session_close calls may still be with
 *            workers: session_free is for when session_handed is 0.
 * Threads:   one, the receiving thread.
 * Source:    RFC 9113; nghttp2.
 */
#ifndef WEB_GRPC_SESSION_H
#define WEB_GRPC_SESSION_H

#include "web/grpc/call.h"

struct session;

/* What all sessions of a server share, and what a connection knows. Outlives the session. */
struct session_host {
	const struct grpc_server_options *o;
	struct bodies *bodies;
	unsigned *calls_n; /* of all sessions */
	/* Gives the call to a worker, which runs call_run; session_returned follows. False: not now. */
	bool (*hand)(void *ctx, struct grpc_call *c);
	void *ctx;
	struct http_sender client;
	struct str remote;
	void *tls_session;
};

MUST_CHECK enum err_code session_open(
	const struct session_host *host, struct session **out, struct err *err);
/* Ends all its calls: those that are with workers are marked canceled. */
void session_close(struct session *s);
void session_free(struct session *s); /* NULL is fine */

MUST_CHECK enum err_code session_receive(
	struct session *s, const void *data, size_t n, struct err *err);
/* The next bytes to send, valid until the next call; empty: there are none now. */
struct str session_next(struct session *s);
/* Called once a second: ends calls that take too long to come. */
void session_tick(struct session *s, int64_t now_ns);
/* GOAWAY: no new calls. Those whose message is not whole are to come again, others go on. */
void session_shut(struct session *s);
void session_cancel(struct session *s); /* marks calls of workers; none is handed on any more */
/* A call is back from its worker. Afterwards it may be gone. */
void session_returned(struct session *s, struct grpc_call *c);

/* Nothing more is to be received; session_next may still have bytes. */
bool session_is_over(const struct session *s);
bool session_greeted(const struct session *s); /* its first SETTINGS came */
bool session_flooded(const struct session *s); /* over, for frames that carry nothing */
unsigned session_calls(const struct session *s); /* under way */
unsigned session_handed(const struct session *s); /* of workers, also after session_close */

#endif
