/*
 * The parts of the HTTP client, as they see each other. Others include base/net/http_client.h.
 *
 *	http_client.c          requests: the line, deadlines, redirects, delivery
 *	http_client_send.c     the bytes to send: headers, credentials, body
 *	http_client_oauth2.c   tokens: requests wait for them, a server may refuse them
 *	http_client_conn.c     connections: addresses in turn, handshake, the exchange, the pool
 *	http_client_proxy.c    tunnels: CONNECT and SOCKS5
 *	http_client_io.c       a connection's socket; its bytes, plain and TLS
 *	http_client_parse.c    bytes of a response to status, headers, body; touches no socket
 *	http_client_h2.c       HTTP/2: frames to and from the same requests and responses; no socket
 *	http_client_resolve.c  names to addresses, each asked once at a time
 *	http_client_tls.c      TLS contexts, kept per settings, made again when their files change
 *	http_client_url.c      URLs: parsing, and references of redirects
 *
 * Threads: the event loop's only. Only the kick in http_client.c calls the user's function, so no
 * other function can be re-entered.
 */
#ifndef BASE_NET_HTTP_CLIENT_INTERNAL_H
#define BASE_NET_HTTP_CLIENT_INTERNAL_H

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/net/http_client.h"
#include "base/net/http_proxy.h"
#include "base/net/http_token.h"

struct event;

/* -------------------------------------------------------------------------------------------- */
/* URL */

#define HTTP_URL_BYTES_MAX 8192

struct http_url {
	bool tls;
	struct str host; /* lower case; an IPv6 address without brackets */
	uint16_t port;
	struct str authority; /* for Host: as written, lower case */
	struct str target; /* path and query, percent-encoded where needed, begins with "/" */
	const char *text; /* the whole URL without fragment */
};

MUST_CHECK enum err_code http_url_parse(
	struct arena *a, struct str text, struct http_url *out, struct err *err);
/* A reference as in a Location header. */
MUST_CHECK enum err_code http_url_resolve(struct arena *a, const struct http_url *from,
	struct str ref, struct http_url *out, struct err *err);
/*
 * HOST, HOST:PORT, [ADDRESS], [ADDRESS]:PORT. Gives the problem, or NULL. *host points into auth;
 * *port stays where there is none.
 */
const char *http_authority_parse(struct str auth, struct str *host, uint16_t *port);
struct str http_lower_dup(struct arena *a, struct str s); /* ASCII; ptr NULL: out of memory */
bool http_url_same_origin(const struct http_url *a, const struct http_url *b);

/* -------------------------------------------------------------------------------------------- */
/* Parser */

enum http_parse_state {
	PARSE_HEAD,
	PARSE_LENGTH,
	PARSE_CLOSE,
	PARSE_CHUNK_SIZE,
	PARSE_CHUNK_EXT,
	PARSE_CHUNK_DATA,
	PARSE_CHUNK_END,
	PARSE_TRAILER,
	PARSE_DONE,
};

struct http_parser {
	enum http_parse_state state;
	bool is_head; /* the request was HEAD: no body follows */
	bool keep_alive; /* the connection may serve again after PARSE_DONE */
	bool any; /* a byte was seen */
	bool stream_200; /* the body of an answer 200 is taken out of `body` as it comes */
	bool stream; /* this is such an answer: no body_max */
	int status;
	size_t body_max;
	size_t head_used; /* head bytes so far, of 1xx answers and trailers too */
	size_t line_at; /* start of the head's unfinished line; in trailers: its length */
	unsigned digits; /* of the chunk size */
	uint64_t left; /* of the body or of the chunk */
	uint64_t body_bytes; /* so far, those taken out included */
	uint64_t overhead; /* chunk framing */
	struct buf head, body;
	struct str reason;
};

/* The caller sets stream_200 afterwards. */
void http_parser_init(struct http_parser *p, bool is_head, size_t body_max);
void http_parser_release(struct http_parser *p);
/* Takes bytes off the front of *in. Bytes left after PARSE_DONE are no part of the answer. */
MUST_CHECK enum err_code http_parser_feed(struct http_parser *p, struct str *in, struct err *err);
/* The peer closed: ends a body that has no length, else an error. */
MUST_CHECK enum err_code http_parser_eof(struct http_parser *p, struct err *err);
/* Value of the first header of that name; false: none. */
bool http_head_get(struct str head, const char *name, struct str *out);
bool http_token_valid(struct str s); /* a header's name, a method */
bool http_header_value_valid(struct str s); /* no control characters, so no second header inside */

/* -------------------------------------------------------------------------------------------- */
/* Names */

#define HTTP_ADDRESSES_MAX 16

struct http_address {
	union { /* no sockaddr_storage: thousands of connections have sixteen each */
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} sa;
	socklen_t len;
};

struct lookups;
struct lookup;
struct resolve_waiter;

/*
 * n > 0, or 0 with the error's text ("Domain name not found"). The waiter is off its list already.
 */
typedef void (*resolve_fn)(
	struct resolve_waiter *w, const struct http_address *v, size_t n, const char *problem);

struct resolve_waiter {
	LIST_ENTRY(resolve_waiter) link;
	struct lookup *lookup; /* NULL: waits for nothing */
	resolve_fn fn;
};

MUST_CHECK enum err_code lookups_open(
	struct event_base *base, const char *servers, struct lookups **out, struct err *err);
void lookups_close(struct lookups *ls); /* waiters are called with 0 addresses */
/* fn may be called before this returns. Addresses come without a port. */
void lookup_start(struct lookups *ls, const char *host, struct resolve_waiter *w, resolve_fn fn);
void lookup_cancel(struct resolve_waiter *w); /* fn is not called any more */

/* -------------------------------------------------------------------------------------------- */
/* TLS */

struct tls_cache;

struct tls_context {
	SSL_CTX *ctx;
	uint64_t
		id; /* another one each time it is made: connections of older ones are not used again */
	bool skip_verify;
};

MUST_CHECK enum err_code tls_cache_open(struct tls_cache **out, struct err *err);
void tls_cache_close(struct tls_cache *c);
/*
 * The context for a configuration (NULL: system CAs only), valid until the next call. Reads changed
 * files again. client_cert false: without the client's certificate.
 */
MUST_CHECK enum err_code tls_cache_get(struct tls_cache *c, const struct http_config *config,
	bool client_cert, struct tls_context *out, struct err *err);
/*
 * A session on fd, or inside of another one that must outlive it, that checks the peer against
 * name. through NULL: on fd. http2: it is offered, before HTTP/1.1.
 */
MUST_CHECK enum err_code tls_session(const struct tls_context *t, int fd, SSL *through,
	const char *name, bool http2, SSL **out, struct err *err);
bool tls_chose_http2(const SSL *ssl); /* the server did, in the handshake */
/* Prints SSL_get_error's and the error queue's reason of a failed call; errno is from that call. */
void tls_describe(SSL *ssl, int ssl_error, int errno_value, const char *name, struct buf *out);

/* -------------------------------------------------------------------------------------------- */
/* Sending */

struct http_request;

/* Sets r->authorization; files are read each time, since secrets rotate. */
MUST_CHECK enum err_code request_authorize(struct http_request *r, struct err *err);
/* Refuses headers that change the framing: they would desynchronise the connection. */
MUST_CHECK enum err_code request_check_headers(struct labels headers, struct err *err);
MUST_CHECK enum err_code request_compose(struct http_request *r, struct err *err); /* into r->out */
/* Reads the next piece of the body's source when the last one was sent. */
MUST_CHECK enum err_code request_next_piece(struct http_request *r, struct err *err);
/* Chooses r->proxy for r->url; before request_compose. */
MUST_CHECK enum err_code request_route(struct http_request *r, struct err *err);
/* It goes through r->unix_path. A redirect to another origin does not. */
bool request_is_local(const struct http_request *r);
/* The value of a header: "Basic ...". ptr NULL: out of memory. */
struct str http_basic_credentials(struct arena *a, struct str user, struct str password);
bool header_is_in(struct labels headers, const char *name);
void header_print(struct buf *b, struct str name, struct str value);
/* A value, or its file's content without white space around it; files are read each time. */
MUST_CHECK enum err_code http_read_secret(struct arena *a, struct str value, struct str file,
	const char *what, struct str *out, struct err *err);

/* -------------------------------------------------------------------------------------------- */
/* Tunnels */

#define SOCKS_ANSWER_BYTES_MAX (4u + 1 + 255 + 2)

enum tunnel_phase { TUNNEL_CONNECT, TUNNEL_METHOD, TUNNEL_PASSWORD, TUNNEL_REQUEST };

struct tunnel { /* that a proxy is opening */
	const struct http_proxy *proxy;
	const struct http_url *url; /* of the target */
	enum tunnel_phase phase;
	struct buf out; /* cleared when all of it is sent */
	size_t out_at;
	struct http_parser parser; /* of CONNECT's answer */
	unsigned char in[SOCKS_ANSWER_BYTES_MAX]; /* of the phase's answer */
	size_t in_n;
	char target[300]; /* host:port */
};

/* Takes the proxy's bytes off the front of *in; what is to be sent next is in t->out. */
MUST_CHECK enum err_code tunnel_feed(struct tunnel *t, struct str *in, bool *done, struct err *err);

/* -------------------------------------------------------------------------------------------- */
/* Connections */

#define HTTP_IDLE_NS (INT64_C(300) * 1000000000)
#define HTTP_POOL_BUCKETS 1024 /* a power of two */

struct conn_key { /* connections with equal keys serve each other's requests */
	bool tls, http2; /* http2: offered to the server */
	struct str host; /* "": any, through a proxy that reads URLs */
	uint16_t port;
	uint64_t tls_id;
	struct str server_name;
	struct str proxy; /* all its settings, or the path of a socket; "": none */
	uint64_t proxy_tls_id;
	struct str proxy_name; /* that its certificate must be for */
};

enum conn_state {
	CONN_RESOLVING,
	CONN_CONNECTING,
	CONN_PROXY_HANDSHAKE,
	CONN_TUNNEL,
	CONN_HANDSHAKE, /* from here on it is the target whom we talk to */
	CONN_ACTIVE,
	CONN_IDLE
};

struct http_client_conn {
	struct http_client *client;
	TAILQ_ENTRY(http_client_conn) link; /* of client->conns */
	TAILQ_ENTRY(http_client_conn) idle_link; /* of client->idle, oldest first */
	LIST_ENTRY(http_client_conn) pool_link; /* of its bucket while idle */
	struct arena arena; /* key */
	struct conn_key key;
	enum conn_state state;
	struct http_request *req; /* NULL while idle */
	struct resolve_waiter waiter;
	struct http_address addresses[HTTP_ADDRESSES_MAX];
	size_t addresses_n, address_i;
	const char *address; /* the one in use, as text with port; or the path of a socket */
	char address_text[64];
	const char *first_problem; /* of the first address that failed */
	int fd;
	SSL *ssl; /* what is read and written; NULL: the socket is */
	SSL *proxy_ssl; /* what ssl is inside of; NULL: nothing */
	const char *tls_name; /* that the peer of ssl must prove to be */
	struct tunnel *tunnel; /* while it is being opened */
	struct h2_coding *h2; /* NULL: HTTP/1.1 */
	struct event *io, *timer;
	short watching; /* EV_READ, EV_WRITE */
	bool reused;
	int64_t opened_ns; /* monotonic */
	char write_error[128]; /* of a write that failed; "": none */
	size_t out_at; /* of req->out */
};
TAILQ_HEAD(conn_list, http_client_conn);
LIST_HEAD(conn_bucket, http_client_conn);

enum request_state { REQUEST_IN_LINE, REQUEST_WAITING, REQUEST_ACTIVE, REQUEST_FINISHED };
TAILQ_HEAD(request_list, http_request);

struct http_request {
	struct http_client *client;
	TAILQ_ENTRY(http_request) link; /* of client->line, a grant's, ->active or ->finished */
	TAILQ_ENTRY(http_request) pieces_link; /* of client->pieces, while has_pieces */
	struct arena arena;
	http_done_fn done;
	http_data_fn data; /* NULL: the body is gathered */
	void *ctx;
	const struct http_config *config;
	const char *method;
	struct str body, authorization;
	struct http_token_id token_id; /* of oauth2, once it was looked for */
	uint64_t token_serial; /* of the token in `authorization`; 0: none is there */
	bool token_is_new; /* it was fetched while the request waited */
	bool token_again; /* a server refused a token, and this is the second attempt */
	const struct http_body_source *source; /* of the body, or NULL */
	struct buf piece; /* of it, and how much of that was sent; */
	size_t piece_at;
	uint64_t source_at; /* behind the piece */
	struct labels headers;
	size_t body_size_max;
	int64_t start_ns, deadline_ns;
	int64_t connected_ns; /* the connection of the last answer */
	int64_t idle_timeout_ns, received_ns; /* when the last byte came */
	struct event *deadline, *idle; /* idle is NULL where there is no such timeout */
	struct http_url url;
	struct str unix_path; /* "": none */
	struct http_proxy proxy; /* of the URL */
	struct str proxy_key; /* of the way: the proxy's settings or the socket's path */
	unsigned redirects;
	bool foreign; /* a redirect left the first origin: nothing secret is sent any more */
	bool has_pieces;
	bool in_data; /* the user's function has the body's bytes now */
	bool canceled; /* by that function; its caller frees the request */
	bool retried; /* on a new connection, after a kept-alive one was found dead */
	struct http_client_conn *conn;
	struct buf out; /* head and body as HTTP/1.1 has them */
	size_t head_bytes; /* of out */
	struct http_parser parser;
	enum request_state state;
	struct request_list *list; /* that it is on */
	enum err_code rc;
	struct err err;
};

struct grant;

#define HTTP_SCRATCH_BYTES (64u << 10)

struct http_client {
	struct event_base *base;
	char *user_agent;
	size_t connections_max, connections_n;
	/* pieces are handed over, finished requests delivered, those in line started */
	struct event *kick;
	struct request_list line, active, finished;
	TAILQ_HEAD(, http_request) pieces; /* active ones whose body's bytes wait to be handed over */
	TAILQ_HEAD(, grant) grants; /* tokens that requests wait for */
	struct conn_list conns, idle;
	struct conn_bucket pool[HTTP_POOL_BUCKETS];
	struct lookups *lookups;
	struct tls_cache *tls;
	unsigned char scratch[HTTP_SCRATCH_BYTES]; /* for reading; one event at a time */
	uint64_t connects, reuses;
	bool quick_ack;
	bool closing;
};

/* A kept-alive connection for the key, proven alive, or NULL. */
struct http_client_conn *conn_take(struct http_client *c, const struct conn_key *key);
/* Starts connecting; ends in request_answered or request_failed, perhaps before this returns. */
void conn_open(struct http_request *r, const struct conn_key *key);
void conn_exchange(
	struct http_client_conn *c, struct http_request *r); /* sends r->out and reads the answer */
void conn_park(struct http_client_conn *c); /* into the pool */
void conn_close(struct http_client_conn *c);

/* The request's bytes as HTTP/1.1 has them, c->out_at and further. "": all were sent. */
MUST_CHECK enum err_code conn_unsent(struct http_client_conn *c, struct str *out, struct err *err);
void conn_count_sent(struct http_client_conn *c, size_t n);
bool conn_is_sent(const struct http_client_conn *c);

void conn_reached(struct http_client_conn *c); /* bytes go to the target now */
bool conn_watch(struct http_client_conn *c, short what); /* false: out of memory */
/* Closes the connection, and its request fails. */
void conn_fail(struct http_client_conn *c, enum err_code rc, const struct err *err);
void conn_fail_io(struct http_client_conn *c, const char *phase, const char *why);

/* Asks the proxy for a tunnel; ends in conn_reached or conn_fail, perhaps before this returns. */
void tunnel_start(struct http_client_conn *c);
void tunnel_step(struct http_client_conn *c);
void tunnel_end(struct http_client_conn *c); /* frees what it needed */

enum io_status { IO_DONE, IO_WANT_READ, IO_WANT_WRITE, IO_EOF, IO_FAILED };

enum io_status conn_read(
	struct http_client_conn *c, void *bytes, size_t n, size_t *done, struct buf *why);
/* *broken: the socket failed; TLS may still have something to read. */
enum io_status conn_write(
	struct http_client_conn *c, struct str out, size_t *done, struct buf *why, bool *broken);
enum io_status conn_handshake(struct http_client_conn *c, struct buf *why);
/* Begins to connect to the address whose turn it is, and names it in c->address. 0, or errno. */
int conn_connect(struct http_client_conn *c);
const char *conn_problem(const struct http_client_conn *c, int errno_value); /* of connecting */

bool conn_is_alive(struct http_client_conn *c); /* an idle one can serve another request */

/* -------------------------------------------------------------------------------------------- */
/* HTTP/2 of a connection */

MUST_CHECK enum err_code http2_open(struct http_client_conn *c, struct err *err); /* sets c->h2 */
void http2_close(struct h2_coding *h); /* NULL is fine */
MUST_CHECK enum err_code http2_begin(struct http_client_conn *c, struct err *err); /* of c->req */
/* What is to be sent next, valid until the next call; "": nothing now. */
MUST_CHECK enum err_code http2_unsent(struct http_client_conn *c, struct str *out, struct err *err);
void http2_count_sent(struct http_client_conn *c, size_t n);
/* Bytes of the server, also while no request is under way. After an error the session is dead. */
MUST_CHECK enum err_code http2_feed(struct http_client_conn *c, struct str in, struct err *err);
bool http2_is_answered(const struct http_client_conn *c);
/* No request is under way: sends what is left to be sent. False: no other request may follow. */
bool http2_park(struct http_client_conn *c);

/* -------------------------------------------------------------------------------------------- */
/* What connections call */

/* Bytes came, perhaps some of the body. */
void request_received(struct http_request *r);
/* The request's connection is gone or parked after these. */
void request_answered(struct http_request *r);
/* stale: it was a kept-alive connection that ended before a byte of the answer. */
void request_failed(struct http_request *r, enum err_code rc, const struct err *err, bool stale);

/* To `finished`; its connection ends. */
void request_finish(struct http_request *r, enum err_code rc, const struct err *err);
void request_wait(struct http_request *r, struct request_list *list); /* out of the line */
void request_in_line(struct http_request *r); /* again, with its authorization */

/* -------------------------------------------------------------------------------------------- */
/* Tokens */

bool request_needs_token(const struct http_request *r);
/* Sets its authorization, or lets it wait for the token. */
MUST_CHECK enum err_code request_get_token(struct http_request *r, struct err *err);
/* The answer refuses the token, and another attempt may help: it has no authorization then. */
bool request_token_refused(struct http_request *r);
void request_describe_wait(
	const struct http_request *r, struct err *err); /* ended by its deadline */
void grants_cancel(struct http_client *c, const struct err *err); /* the requests that wait end */
void grants_close(struct http_client *c); /* when no request is left */

#endif
