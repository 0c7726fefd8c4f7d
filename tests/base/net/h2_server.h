/*
 * HTTP/2 for the server of tests (http_server.h): scripts that speak it with nghttp2, or that write
 * any bytes.
 */
#ifndef TESTS_BASE_H2_SERVER_H
#define TESTS_BASE_H2_SERVER_H

#include "tests/base/net/http_server.h"

/* Takes h2 in the handshake, if the client offers it; otherwise nothing is chosen. */
void h2_offer(SSL_CTX *tls);

/*
 * A server. Each request is kept as text, for http_server_last: "POST https://host/path", its
 * fields as lines, an empty line, the body. Paths:
 *
 *	/echo      the body of the request
 *	/early     103 with a field, then an answer "ok"
 *	/trailers  "ok" and a trailer
 *	/last      "ok"; no further request on this connection
 *	/ping      "ok"; then PING, before the next request
 *	/refuse    the stream is reset
 *	/to        leads to /there
 *	others     "ok"
 */
void h2_script(struct peer *p, void *ctx);

struct h2_bytes { /* of one answer */
	struct str once, again; /* `again` is sent `times` times, or until the client goes */
	unsigned times;
	bool stays; /* the connection stays open behind them */
};
/* ctx: struct h2_bytes. Waits for a request first. */
void h2_script_bytes(struct peer *p, void *ctx);

#endif
