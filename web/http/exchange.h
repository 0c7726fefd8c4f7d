/*
 * Exchange: one request and its answer, as the HTTP server passes them between the receiving thread
 * and a worker. Private to server.c, conns.c and exchange.c.
 */
#ifndef WEB_HTTP_EXCHANGE_H
#define WEB_HTTP_EXCHANGE_H

#include <microhttpd.h>

#include "base/thread.h"
#include "web/http/bodies.h"
#include "web/http/http.h"
#include "web/http/intake.h"
#include "web/http/stream.h"

enum conn_state {
	CONN_RECEIVING,
	CONN_BODY,
	CONN_PIECES,
	CONN_REFUSED_BODY,
	CONN_WORKING,
	CONN_SENDING
};

struct conn {
	struct conn *prev, *next;
	int fd;
	enum conn_state state;
	int64_t since_ns;
	struct exchange *exchange; /* WORKING, PIECES */
};

struct exchange {
	struct http_server *server;
	struct MHD_Connection *connection;
	struct conn *conn;
	struct http_in in;
	struct http_out out;
	struct http_body body; /* receiving thread; constant between pool_submit and the answer */
	size_t discarded;
	enum http_admission admission; /* HTTP_ADMIT_LATER until it is known */
	bool admitting; /* suspended for its admission: at the next call it is known */
	bool submitted;
	struct stream stream;
	struct intake intake; /* of a body that is taken by pieces */
	size_t progress; /* bytes since the sender was last given time */
	bool working; /* server.lock: a worker has it */
	bool waits; /* server.lock: suspended until the worker is done */
	bool orphaned; /* server.lock: the connection is gone, the worker frees it */
};

struct http_server {
	struct http_server_options o;
	struct MHD_Daemon *daemon;
	struct pool *pool;
	int fd;
	unsigned port;
	struct thread watcher;
	struct mutex lock; /* guards conns, conns_n, working, closing, and each conn */
	struct cond changed; /* closing, and then when working went down */
	struct conn conns; /* head of the ring */
	unsigned conns_n, working;
	bool closing;
	struct bodies bodies; /* receiving thread only */
};

/* e: of a worker's request, in these states only. */
void conn_set(
	const struct http_server *s, struct conn *c, enum conn_state state, struct exchange *e);
/* libmicrohttpd's notification. */
void conns_notify(void *ctx, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode what);
/* The watcher: ends connections that are too slow, until the server closes and has none. */
void conns_watch(void *ctx);

/* Takes over the head of a request. NULL: out of memory. */
struct exchange *exchange_open(
	struct http_server *s, struct MHD_Connection *connection, const char *url, const char *method);
void exchange_close(struct exchange *e);

bool exchange_has_header(const struct exchange *e, const char *name);
bool exchange_has_body(const struct exchange *e);
/* An answer waits that nobody reads before he has sent more than is dropped of a body. */
bool exchange_is_too_long(const struct exchange *e, uint64_t taken);
/* Adds to a body that is gathered, or drops. False: more was dropped than the limit. */
bool exchange_take(struct exchange *e, const char *data, size_t n);
/* Suspends the connection; for intake_add. */
void exchange_sleep(void *ctx);

/* MHD's reader of an answer that is sent while it is written. */
ssize_t exchange_read_stream(void *ctx, uint64_t at, char *to, size_t max);
/* Sends the rest of a streamed answer and ends it. */
void exchange_end_stream(struct exchange *e);

#endif
