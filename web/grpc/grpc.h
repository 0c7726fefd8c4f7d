/*
 * gRPC: a server of unary calls over HTTP/2: h2c with prior knowledge, or TLS with ALPN "h2".
 *
 * One thread receives all connections (base/net/loop.h). The head of a call decides whether its
 * message is taken; a password that must be verified is verified on a worker, and meanwhile the
 * call's window stays shut. A whole message goes to a worker. Its answer goes back to the receiving
 * thread.
 *
 * A method sees a call as handlers see an HTTP request (struct http_in): body is the message
 * without its prefix, as it was sent; content_encoding says how it is compressed. canceled is set
 * when the caller is gone.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    grpc_server_open: ERR_INVALID for an address that is none, ERR_UNAVAILABLE "listen on
 *            ADDRESS: Address already in use", ERR_NOMEM.
 * Ownership: a call lives for one call of its method and until its answer is sent; its arena too.
 * Threads:   a method runs on a worker; any number at once.
 * Source:    RFC 9113; "gRPC over HTTP2", "Statuscodes" of grpc/grpc; google/rpc/status.proto and
 *            error_details.proto.
 */
#ifndef WEB_GRPC_GRPC_H
#define WEB_GRPC_GRPC_H

#include "web/http/http.h"

#define GRPC_STREAMS_MAX 100u /* calls at once of one connection */
#define GRPC_CALLS_MAX 4096u /* of all */
#define GRPC_HEAD_BYTES_MAX (16u << 10) /* names and values of a head, 32 more for each */
#define GRPC_PREFIX_BYTES 5u

enum grpc_status {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
};
/* "OK", "UNAVAILABLE", ... */
const char *grpc_status_name(enum grpc_status s);

struct grpc_answer {
	enum grpc_status status;
	unsigned retry_s; /* a RetryInfo says that the same may come again after this; 0: none */
	struct buf message; /* of a status that is not OK */
	struct buf body; /* the message that is answered, of OK */
};
void grpc_fail(struct grpc_answer *a, enum grpc_status status, unsigned retry_s, const char *fmt,
	...) PRINTF_LIKE(4, 5);

struct grpc_method;
/* The method that a call's path names; admission sees only those that there are. */
const struct grpc_method *grpc_method_find(
	const struct grpc_method *methods, size_t n, struct str path);

typedef void grpc_method_fn(void *ctx, struct http_in *in, struct grpc_answer *out);

struct grpc_method {
	const char *path; /* "/package.Service/Method" */
	enum http_needs needs; /* of its users; options.admit checks it */
	grpc_method_fn *fn;
};

struct grpc_server_options {
	const char *listen_address; /* "host:port", "[v6]:port", ":port"; an address or localhost */
	struct listen_bound *bound; /* of that address (web/http/listen.h); NULL: it is bound here */
	unsigned workers;
	unsigned connections_max;
	int64_t read_timeout_ns; /* for an idle connection */
	int64_t body_timeout_ns; /* to deliver a whole call */
	size_t body_bytes_max; /* of a message, as it is sent */
	size_t bodies_bytes_max, address_bodies_bytes_max; /* of all; of an address */
	http_admit_fn admit; /* as of an HTTP server; NULL: every call */
	/* A call was refused before its method was called, by admission or by the server; NULL: nobody
	 * asks. On the receiving thread: it must not wait. */
	void (*refused)(
		void *ctx, const struct http_in *in, enum grpc_status status, struct str message);
	const struct grpc_method *methods; /* outlive the server */
	size_t methods_n;
	void *ctx;
	/* TLS where not NULL: a gnutls_certificate_retrieve_function2 and a priority string. */
	void *tls_certificate_fn;
	const char *tls_priorities;
};

struct grpc_server;
MUST_CHECK enum err_code grpc_server_open(
	const struct grpc_server_options *o, struct grpc_server **out, struct err *err);
unsigned grpc_server_port(const struct grpc_server *s);
/*
 * No new calls: each connection gets a GOAWAY, calls whose message is not whole are to come again.
 * Running ones get grace_ns, then in->canceled; ends when all are answered. NULL is fine.
 */
void grpc_server_close(struct grpc_server *s, int64_t grace_ns);

#endif
