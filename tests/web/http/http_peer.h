/*
 * Peer: a blocking client for tests that sends HTTP/1.1 byte by byte, plain or over TLS.
 *
 * Errors:    a peer that fails is `dead`; calls on it do nothing.
 * Ownership: the caller's memory; peer_close ends it.
 */
#ifndef TESTS_WEB_HTTP_PEER_H
#define TESTS_WEB_HTTP_PEER_H

#include <gnutls/gnutls.h>

#include "base/str.h"

#define PEER_TIMEOUT_S 120

struct peer {
	int fd;
	gnutls_session_t tls;
	gnutls_certificate_credentials_t credentials;
	struct buf in; /* received and not yet read */
	bool dead;
};

struct response {
	int status; /* 0: the connection ended before a whole answer */
	struct buf head; /* status line and headers */
	struct buf body;
};

struct peer_tls {
	const char *cert_file, *key_file; /* NULL: no client certificate */
	const char *priorities; /* NULL: NORMAL */
};

void peer_open(struct peer *p, unsigned port);
/* The client's address is 127.0.0.N. */
void peer_open_from(struct peer *p, unsigned n, unsigned port);
/* The server's certificate is not verified. A failed handshake leaves it dead. */
void peer_open_tls(struct peer *p, unsigned port, const struct peer_tls *tls);
void peer_close(struct peer *p);

void peer_send(struct peer *p, struct str bytes);
/* Reads one answer; of a HEAD or 304 there is no body. */
void peer_receive(struct peer *p, struct response *r, bool no_body);
/* True when the server ends the connection within the time, and nothing but that comes. */
bool peer_ended(struct peer *p);
/* The common name of the server's certificate. */
void peer_server_name(struct peer *p, struct buf *out);

/* One request on one connection: "GET /path", further headers each with \r\n behind, a body. */
void peer_ask(
	unsigned port, struct response *r, const char *request, const char *headers, struct str body);
void peer_ask_on(
	struct peer *p, struct response *r, const char *request, const char *headers, struct str body);
void response_release(struct response *r);
/* The value of a header; empty when missing. */
struct str response_header(const struct response *r, const char *name);

#endif
