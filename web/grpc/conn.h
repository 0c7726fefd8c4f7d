/*
 * Connection: a socket, plain or with TLS, and its session. Private to web/grpc.
 *
 * Threads: the receiving thread, but for workers' calls.
 */
#ifndef WEB_GRPC_CONN_H
#define WEB_GRPC_CONN_H

#include <event2/event.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include "base/thread.h"
#include "web/grpc/session.h"

enum grpc_conn_state {
	CONN_HANDSHAKE, /* of TLS */
	CONN_OPEN,
	CONN_LINGER, /* all is sent; waits for the other side, which may still read */
	CONN_ENDED, /* workers still have calls of it */
};

struct grpc_conn {
	struct grpc_conn *prev, *next; /* of the server's ring */
	struct grpc_server *server;
	enum grpc_conn_state state;
	int fd;
	struct event *readable, *writable;
	gnutls_session_t tls; /* NULL: plain */
	struct session_host host;
	struct session *session;
	char remote[HTTP_REMOTE_BYTES];
	struct buf out; /* not sent yet, from out_at on */
	size_t out_at;
	bool blocked; /* the socket takes no more: nothing is read meanwhile */
	int64_t since_ns; /* of its state, of being blocked, of its last call */
};

struct grpc_server {
	struct grpc_server_options o;
	struct loop *loop;
	struct pool *pool;
	int fd;
	unsigned port;
	gnutls_certificate_credentials_t credentials; /* NULL: no TLS */
	gnutls_priority_t priorities;
	/* The receiving thread's: */
	struct event *acceptable, *tick;
	bool accepting, closing;
	struct grpc_conn conns; /* head of the ring */
	unsigned calls_n;
	struct bodies bodies;
	struct mutex lock; /* guards conns_n */
	struct cond changed; /* conns_n is 0 */
	unsigned conns_n;
};

/* Takes over the socket. */
void grpc_conn_open(struct grpc_server *s, int fd, const struct sockaddr *client);
/* Sends what there is, and ends the connection if that was all. It may be gone afterwards. */
void grpc_conn_flush(struct grpc_conn *c);
/* Once a second. It may be gone afterwards. */
void grpc_conn_tick(struct grpc_conn *c, int64_t now_ns);
void grpc_conn_shut(struct grpc_conn *c); /* session_shut and grpc_conn_flush */
/* Ends one without calls, to make room. */
void grpc_conn_evict(struct grpc_conn *c);
void grpc_conn_refuse(int fd); /* there is no room */
/* why: of epimetheus_grpc_connections_dropped_total; NULL: an orderly end. */
void grpc_conn_end(struct grpc_conn *c, const char *why);

#endif
