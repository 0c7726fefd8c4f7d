/*
 * Exchange: one request and its answer, as the HTTP server passes them between the receiving thread
 * and a worker. Private to server.c, conns.c, accept.c and exchange.c.
 */
#ifndef WEB_HTTP_EXCHANGE_H
#define WEB_HTTP_EXCHANGE_H

#include <microhttpd.h>

#include "base/thread.h"
#include "web/http/bodies.h"
#include "web/http/crowd.h"
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
	struct crowd_member waiting; /* RECEIVING, unless it was let go; the first field */
	struct conn *prev, *next;
	int fd;
	enum conn_state state;
	int64_t since_ns;
	struct http_sender client;
	bool answered; /* a request of it was: at rest it may end without a word */
	bool let_go; /* its socket is shut down; libmicrohttpd has not closed it yet */
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
	struct thread watcher, acceptor;
	struct mutex lock; /* guards all of these, and each conn */
	struct cond changed; /* closing, and then when working went down */
	struct cond room; /* a connection came into the ring or left it */
	struct conn conns; /* head of the ring, the newest first */
	struct crowd crowd; /* those that wait for a head */
	unsigned conns_n, working;
	unsigned pending_n; /* accepted, and not in the ring yet */
	unsigned let_go_n; /* of the ring */
	unsigned room_made_n; /* connections that made room, since the last line of the log */
	int64_t pending_ns, logged_ns; /* when pending_n changed; of that line */
	int64_t pressed_until_ns; /* of accept.c */
	bool closing;
	struct bodies bodies; /* receiving thread only */
};

/* e: of a worker's request, in these states only. */
void conn_set(struct http_server *s, struct conn *c, enum conn_state state, struct exchange *e);
/*
 * Lets one connection go, so that another has room. False: none may go now. Those that wait for a
 * head go first, but not while bytes of it are unread or came within quiet_ms; then those whose
 * body or answer moved no byte for a second.
 */
bool conns_make_room(struct http_server *s, unsigned quiet_ms);
void conns_count_no_memory(void); /* a connection ended, because there was none for it */
/* libmicrohttpd's notification. */
void conns_notify(void *ctx, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode what);
/* The acceptor: takes connections while there is room, until http_accept_stop. */
void http_accept(void *ctx);
void http_accept_stop(struct http_server *s); /* waits for its end; fine if it was not started */
/* The watcher: ends connections that are too slow, until the server closes and has none. */
void conns_watch(void *ctx);

/* Takes over the head of a request. NULL: out of memory. */
struct exchange *exchange_open(
	struct http_server *s, struct MHD_Connection *connection, const char *url, const char *method);
void exchange_close(struct exchange *e);

bool exchange_has_header(const struct exchange *e, const char *name);
bool exchange_has_body(const struct exchange *e);
/* Two lengths: where the body ends, nobody can know. */
bool exchange_has_no_end(const struct exchange *e);
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
