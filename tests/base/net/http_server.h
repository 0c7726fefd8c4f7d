/*
 * A server for tests of the HTTP client: a thread per connection runs a script over plain bytes or
 * TLS on 127.0.0.1. The client side sends one request and waits for its answer.
 *
 * Ownership: http_server_stop ends the threads; results are released by the caller.
 * Threads:   scripts run on threads of the server; counters are atomic.
 */
#ifndef TESTS_BASE_HTTP_SERVER_H
#define TESTS_BASE_HTTP_SERVER_H

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "base/net/http_client.h"
#include "base/thread.h"

#define SERVER_CONNECTIONS_MAX 1024 /* that are ever taken */

struct http_server;

struct peer {
	struct http_server *server;
	int fd;
	SSL *ssl;
	struct thread thread;
	struct buf request; /* the last one read: head and body */
};

typedef void (*script_fn)(struct peer *p, void *ctx);

struct http_server {
	int fd;
	unsigned port;
	script_fn script;
	void *ctx;
	SSL_CTX *tls; /* NULL: plain */
	struct thread thread;
	struct peer peers[SERVER_CONNECTIONS_MAX];
	atomic_uint connections, requests, active, active_max, closed;
	atomic_uint pongs; /* of HTTP/2 (h2_server.h) */
	atomic_bool stopping;
	struct mutex lock; /* guards last */
	struct buf last; /* the last request that any peer read */
};

/* False: no socket. port 0: any. */
bool http_server_start(struct http_server *s, script_fn script, void *ctx, SSL_CTX *tls);
/* The same on a socket of this machine. */
bool http_server_start_unix(struct http_server *s, const char *path, script_fn script, void *ctx);
void http_server_stop(struct http_server *s);
bool http_server_saw(struct http_server *s, const char *text); /* in the last request */
void http_server_last(struct http_server *s, struct buf *out); /* adds the last request */
bool peer_read_request(struct peer *p); /* false: the client is gone */
ssize_t peer_recv(struct peer *p, void *to, size_t n); /* some bytes; 0 or less: none come */
bool peer_write(struct peer *p, struct str bytes);
bool peer_print(struct peer *p, const char *text);
bool peer_gone(struct peer *p); /* has the client closed? Without waiting */
void peer_reset(struct peer *p); /* closes with RST */
void sleep_ms(unsigned ms);

/* Scripts. ctx is a C string: sent as it is, once per request, until the client goes. */
void script_answers(struct peer *p, void *ctx);
/* The same, then the connection is closed. */
void script_answers_once(struct peer *p, void *ctx);

struct http_result {
	bool done;
	unsigned calls;
	enum err_code rc;
	char msg[1040];
	int status;
	struct buf body;
	char content_type[128], reason[64], url[256];
	int64_t elapsed_ns, connected_ns;
	struct event_base *base; /* whose loop ends with the call; NULL: goes on */
};

void result_release(struct http_result *r);
void result_done(
	void *ctx, const struct http_response *res); /* an http_done_fn; ctx: struct http_result */

struct client {
	struct event_base *base;
	struct http_client *http;
};
bool client_open(struct client *c, size_t connections_max, const char *dns_servers);
void client_close(struct client *c);
/* Sends and runs the loop until the answer. Defaults: GET, a minute, 1 MiB. */
void client_run(struct client *c, struct http_request_options o, struct http_result *out);
void client_get(
	struct client *c, const char *url, const struct http_config *config, struct http_result *out);

#endif
