/*
 * A blocking client of HTTP/2 for tests of gRPC: nghttp2's client side on a socket, plain or TLS.
 *
 * Errors:    a connection that ends is `ended`; calls on it do nothing.
 * Ownership: the caller's memory; h2_close ends it.
 */
#ifndef TESTS_WEB_GRPC_H2_CLIENT_H
#define TESTS_WEB_GRPC_H2_CLIENT_H

#include <gnutls/gnutls.h>
#include <nghttp2/nghttp2.h>

#include "base/str.h"

#define H2_TIMEOUT_S 120
#define H2_REPLIES_MAX 256u

struct h2_reply {
	int32_t stream;
	bool closed;
	uint32_t reset; /* the code it was closed with */
	int http_status;
	int status; /* of gRPC; -1: none came */
	char message[1100], details[1600], accepts[64];
	struct buf body;
	struct buf to_send;
	size_t sent, taken; /* bytes of to_send; taken: given to nghttp2, which has sent them */
	bool end; /* after to_send */
};

struct h2_client {
	int fd;
	gnutls_session_t tls;
	gnutls_certificate_credentials_t credentials;
	nghttp2_session *h2;
	struct h2_reply replies[H2_REPLIES_MAX];
	unsigned replies_n;
	bool ended, goaway;
	uint32_t goaway_code;
	unsigned pings; /* answered */
};

struct h2_tls {
	const char *alpn; /* NULL: none */
	const char *cert_file, *key_file;
};

void h2_open(struct h2_client *c, unsigned port, const struct h2_tls *tls); /* tls NULL: plain */
void h2_close(struct h2_client *c);

/*
 * fields: names and values, NULL at the end; they replace or follow those of a plain call; "+name"
 * follows.
 */
struct h2_reply *h2_call(
	struct h2_client *c, const char *path, const char *const *fields, struct str body, bool end);
void h2_more(struct h2_client *c, struct h2_reply *r, struct str body, bool end);
/* Sends what there is and receives once. False: the connection has ended. */
bool h2_turn(struct h2_client *c);
void h2_send(struct h2_client *c); /* what there is to send now */
void h2_raw(struct h2_client *c, const void *bytes, size_t n);
void h2_wait(struct h2_client *c, const struct h2_reply *r);
/* A message with its prefix. */
void h2_message(struct buf *out, unsigned char flag, struct str message);

#endif
