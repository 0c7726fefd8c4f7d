/*
 * HTTP: requests and responses as handlers see them, and the server that carries them.
 *
 * libmicrohttpd receives on one thread. The head of a request decides whether its body is taken. A
 * whole request goes to a worker while its connection is suspended; the answer is sent when the
 * worker is done. A watcher thread ends connections that do not deliver a request in time
 * (libmicrohttpd's own timeout sees only idle ones, so a byte a second would hold on for ever), and
 * tells a handler that its client is gone.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    handlers answer; http_server_open: ERR_INVALID for an address that is none,
 *            ERR_UNAVAILABLE "listen on ADDRESS: Address already in use".
 * Ownership: a request lives for one call of its handler and until its answer is sent; its arena
 *            too. The response's body is its own; header values live as long as the request.
 * Threads:   a handler runs on a worker; any number at once.
 */
#ifndef WEB_HTTP_HTTP_H
#define WEB_HTTP_HTTP_H

#include <stdatomic.h>

#include "base/str.h"
#include "web/http/user.h"

#define HTTP_HEADERS_MAX 24
#define HTTP_KEPT_HEADERS_MAX 32u
#define HTTP_PARAMS_MAX 1024u
#define HTTP_FORM_BYTES_MAX (1u << 20)
#define HTTP_REQUEST_ARENA_BYTES (64u << 20)

enum http_method {
	HTTP_GET = 1,
	HTTP_HEAD = 2,
	HTTP_POST = 4,
	HTTP_PUT = 8,
	HTTP_DELETE = 16,
	HTTP_OPTIONS = 32,
	HTTP_OTHER = 64,
};

const char *http_method_name(enum http_method method); /* "GET"; "" of HTTP_OTHER */

struct http_param {
	struct str name, value;
};

/* Limits per address count these: an IPv4 address, or the /64 of an IPv6 address. */
struct http_sender {
	unsigned char bytes[8 + 1]; /* the last byte: which of both */
};
bool http_same_client(struct http_sender a, struct http_sender b);

/* Whose a socket address is, and its text: address:port. Neither IPv4 nor IPv6: both are empty. */
#define HTTP_REMOTE_BYTES 64
struct sockaddr;
void http_client_of(
	const struct sockaddr *a, struct http_sender *out, char text[HTTP_REMOTE_BYTES]);

/* The host of such a text: 10.0.0.1, 2001:db8::1. Empty: it has none. */
struct str http_remote_host(struct str remote);

/* The decision on the head of a request, before its body is taken. */
enum http_admission {
	HTTP_ADMITTED,
	HTTP_ANSWERED, /* refused: *out is the answer */
	HTTP_ADMIT_LATER, /* it takes long: ask again on a worker */
};

struct intake;
struct route;

enum http_coding { HTTP_PLAIN, HTTP_GZIP, HTTP_ZSTD }; /* of an answer */

struct http_in {
	enum http_method method;
	struct str path; /* decoded */
	struct http_param *params; /* of the query string; http_form_parse adds those of a form */
	size_t params_n;
	bool params_over; /* there were more than HTTP_PARAMS_MAX */
	bool no_memory; /* memory ran out while it was read: the answer is 503 */
	const char *repeated; /* a header that came more than once and may not; NULL: none */
	struct str body;
	/*
	 * 0, or why the body was dropped: 413 longer than the limit, 429 too much at once from this
	 * address, 503 too much from all.
	 */
	int body_refused;
	size_t body_bytes_max; /* the server's; admission may change it */
	uint64_t body_announced; /* Content-Length; 0: none */
	bool by_pieces; /* admission says so: the body is not gathered, the handler calls http_read */
	struct intake *intake; /* the server's: for http_read */
	const struct route *route; /* the router's, once the request is admitted */
	/* The router's: whether the route's operation has such a parameter; NULL: it may have any. */
	bool (*has_param)(const struct http_in *in, struct str name);
	bool handled; /* the router's: a handler was called */
	struct str accept_encoding, authorization, content_type, content_encoding, if_none_match;
	struct str origin, host, fetch_site; /* the latter: Sec-Fetch-Site */
	struct str user_agent, accept;
	struct http_param *kept; /* http_keeps_header */
	size_t kept_n;
	bool kept_over; /* there were more than HTTP_KEPT_HEADERS_MAX */
	struct str connect_version, connect_timeout_ms; /* Connect-Protocol-Version, ... */
	struct str remote; /* address:port of the client */
	struct http_sender client;
	struct http_user user; /* admission says who; the server ends it */
	void *tls_session; /* gnutls_session_t, or NULL */
	struct arena arena;
	atomic_bool canceled; /* the client closed the connection, or the server closes */
};

struct http_header {
	const char *name;
	struct str value; /* NUL-terminated */
};

struct http_out {
	int status;
	const char *content_type; /* NULL: no body expected */
	struct buf body;
	const void *fixed_body; /* instead of body: bytes that outlive the server */
	size_t fixed_len;
	bool encoded; /* body is encoded already: leave it */
	struct stream *stream; /* the server's: for http_flush */
	bool failed; /* after http_flush: the rest of the answer is missing */
	struct http_header headers[HTTP_HEADERS_MAX];
	size_t headers_n;
};

/*
 * The first value of a parameter; the empty string (ptr NULL) when missing. Asserted: the operation
 * of the request's route has it, so that nothing is read that is not documented.
 */
struct str http_param(const struct http_in *in, const char *name);
/*
 * Each value of one that may come again and again, likewise: *at is 0 before the first call. False:
 * there is no other.
 */
bool http_next_param(const struct http_in *in, const char *name, size_t *at, struct str *value);
/* A media type or coding is `want`, whatever its parameters and case. */
bool http_type_is(struct str type, const char *want);
/* Headers that a proxy in front may set: they begin with X- or Remote-. Others are not kept. */
bool http_keeps_header(struct str name);
/* Keeps it if it is one, or one of the Model Context Protocol's, which begin with Mcp-. */
void http_keep_header(struct http_in *in, struct str name, struct str value);
/* The first value of one; how often it is there. */
struct str http_kept_header(const struct http_in *in, struct str name, size_t *times);
/* True if the client accepts gzip, by its Accept-Encoding. */
bool http_takes_gzip(const struct http_in *in);
/*
 * The coding of an answer: the one with the highest weight, zstd of two that are equal (RFC 9110).
 * "*" is none. Both are at their fastest levels: JSON of a flame graph still shrinks to a quarter.
 * zstd takes 0.75 ms for gzip's 0.86 and as many bytes; of a megabyte of JSON half the time and two
 * thirds of the bytes. Its windows have 512 KiB, of 8 MiB that clients take (RFC 9659).
 */
enum http_coding http_coding_of(const struct http_in *in);
/* Adds the headers of a body in this coding. */
void http_add_coding(struct http_out *out, enum http_coding coding);
/* Appends all of an answer in a coding that is not HTTP_PLAIN. */
#define CODING_GZIP_LEVEL 1
#define CODING_ZSTD_LEVEL 1
MUST_CHECK enum err_code coding_add(
	enum http_coding coding, struct str raw, struct buf *out, struct err *err);

void http_add_header(struct http_out *out, const char *name, struct str value);
/* Adds it unless there is one of that name already; case does not count. */
void http_default_header(struct http_out *out, const char *name, struct str value);
/* Replaces the response, except for its headers, by text/plain and a newline. */
void http_text(struct http_out *out, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/*
 * The next bytes of a body that is taken by pieces, valid until the next call; len 0: it has ended.
 * Waits for them; the client has the body's time for each HTTP_PIECES_BYTES_MIN. The handler may
 * answer before the end; the rest is dropped then. Such an answer is not flushed.
 *
 * ERR_CANCELED: the client closed the connection, or the server closes; ERR_LIMIT: more than
 * body_bytes_max.
 */
#define HTTP_PIECES_BYTES_MIN (256u << 10)
MUST_CHECK enum err_code http_read(struct http_in *in, struct str *piece, struct err *err);

/*
 * Sends what the body holds so far and empties it. At the first call status and headers go with it,
 * those of its coding too, and may not change afterwards; what the handler leaves in the body is
 * the last piece. ERR_CANCELED, ERR_TIMEOUT where the client does not take it. After an error, set
 * out->failed.
 */
MUST_CHECK enum err_code http_flush(struct http_in *in, struct http_out *out, struct err *err);
/* Pieces of this answer are on their way. */
bool http_is_streaming(const struct http_out *out);

typedef void (*http_handler_fn)(void *ctx, struct http_in *in, struct http_out *out);
/*
 * Called before a body is taken: first on the receiving thread, where it must not wait, and after
 * HTTP_ADMIT_LATER once more on a worker. The body of a refused request is read and dropped. A
 * request without a body goes to the handler at once; the handler admits it.
 */
typedef enum http_admission (*http_admit_fn)(
	void *ctx, struct http_in *in, struct http_out *out, bool may_wait);

struct listen_bound;

struct http_server_options {
	const char *listen_address; /* "host:port", "[v6]:port", ":port"; an address or localhost */
	struct listen_bound *bound; /* of that address (web/http/listen.h); NULL: it is bound here */
	unsigned workers;
	unsigned connections_max;
	int64_t read_timeout_ns; /* to deliver a whole head; and for an idle connection */
	int64_t body_timeout_ns; /* to deliver a whole body; 0: read_timeout_ns */
	size_t body_bytes_max;
	size_t bodies_bytes_max, address_bodies_bytes_max; /* of all; of an address; 0: no limit */
	http_admit_fn admit; /* NULL: every request */
	http_handler_fn handler;
	void *ctx;
	/* TLS where not NULL: a gnutls_certificate_retrieve_function2 and a priority string. */
	void *tls_certificate_fn;
	const char *tls_priorities;
};

struct http_server;
MUST_CHECK enum err_code http_server_open(
	const struct http_server_options *o, struct http_server **out, struct err *err);
unsigned http_server_port(const struct http_server *s);
unsigned http_server_connections(struct http_server *s);
/*
 * No new requests; running ones get grace_ns, then in->canceled; ends when all have answered.
 * NULL is fine.
 */
void http_server_close(struct http_server *s, int64_t grace_ns);

#endif
