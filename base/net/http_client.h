/*
 * HTTP client: requests on an event loop, with the limits that scraping strangers needs. HTTP/1.1,
 * or HTTP/2 where the configuration allows it and a server of TLS chooses it.
 *
 * One struct http_client serves many requests to many hosts from its event loop; connections are
 * kept alive per (scheme, host, port, TLS settings, proxy). c-ares resolves names (a static glibc
 * cannot), "localhost" and /etc/hosts included. Each request has an absolute deadline (a trickle of
 * bytes does not extend it) and limits of header bytes and body bytes. Redirects are followed if
 * the configuration wants it, at most HTTP_REDIRECTS_MAX; credentials never go to another host,
 * port or scheme.
 *
 * A proxy of http:// or https:// gets requests for http as they are, with the whole URL, and opens
 * tunnels for https (CONNECT); one of socks5:// opens tunnels for both.
 *
 * A request may go through a socket of this machine (`unix_path`); the URL then gives the Host
 * header and the target only, and no proxy is taken.
 *
 * An answer that has no end, or that is too large to hold, comes in pieces: see `data`.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    in the response: ERR_TIMEOUT "context deadline exceeded" or "nothing received for
 *            30s", ERR_LIMIT "body size limit exceeded", ERR_UNAVAILABLE (connect, resolve, TLS,
 *            reset; the message says which and where), ERR_INVALID (not HTTP). A status other than
 *            200 is no error here.
 * Ownership: a request copies what it is given. The response is valid during the callback only, but
 *            for a body that was taken out of it.
 * Threads:   all calls for a client happen on the thread that runs its event base; callbacks too.
 * Source:    RFC 9110, RFC 9112, RFC 9113; the field names of Prometheus's HTTPClientConfig.
 */
#ifndef BASE_NET_HTTP_CLIENT_H
#define BASE_NET_HTTP_CLIENT_H

#include "base/labels.h"
#include "base/yaml/yaml.h"

#define HTTP_REDIRECTS_MAX 10
#define HTTP_HEADER_BYTES_MAX (64u << 10)
#define HTTP_UNIX_PATH_MAX 107 /* the kernel's */
#define HTTP_BODY_BYTES_DEFAULT (64u << 20) /* if a request names no limit */

struct event_base;
struct http_client;
struct http_request;

struct http_proxy_config { /* base/net/http_proxy.h says what the fields mean */
	struct str url, no_proxy;
	bool from_environment;
	struct labels connect_headers; /* of CONNECT, in order; a name may come twice */
};

/* How to reach a target, as configured; base/net/http_config.h decodes it. */
struct http_config {
	struct str username, username_file, password, password_file; /* basic_auth */
	bool has_basic_auth;
	struct str auth_type, credentials, credentials_file; /* authorization, bearer_token(_file) */
	bool has_authorization;
	struct str tls_ca, tls_ca_file, tls_cert, tls_cert_file, tls_key, tls_key_file, tls_server_name;
	struct str tls_min_version, tls_max_version; /* TLS10..TLS13, "" */
	bool tls_insecure_skip_verify;
	bool follow_redirects; /* default true */
	bool enable_http2; /* offered to servers of TLS; default true */
	struct labels headers; /* http_headers */
	struct labels header_files; /* http_headers with files: name -> path, read per request */
	struct http_proxy_config proxy;
	const struct http_oauth2 *oauth2; /* NULL: none */
};

/*
 * OAuth 2.0, client credentials (RFC 6749, 4.4). Clients of the process share the token of equal
 * settings. It is asked for once, however many requests wait; it is renewed before it ends. A
 * server that answers 401 gets the request once more, with a new token.
 */
struct http_oauth2 {
	struct str client_id, client_secret, client_secret_file, token_url;
	struct str scope; /* the scopes with spaces between */
	struct labels endpoint_params;
	struct http_config http; /* TLS and proxy on the way to token_url */
};

struct http_response {
	enum err_code rc; /* ERR_OK: status, headers and body are valid */
	struct err err;
	int status; /* 200 also if the body went to `data` and broke off */
	struct str reason; /* "Service Unavailable" as the server wrote it; HTTP/2 has none: "" */
	struct str head; /* status line and header lines as HTTP/1.1 has them */
	struct str content_type, content_encoding, location;
	struct str body;
	const char *final_url;
	unsigned redirects; /* that were followed, also where it failed afterwards */
	int64_t elapsed_ns;
	int64_t connected_ns; /* monotonic: when the connection that gave the answer was opened */
	struct buf *body_buf; /* the client's, of `body`: for http_response_take_body */
};

/* A header's value, the first if there are several, "" if there is none. */
struct str http_response_header(const struct http_response *res, const char *name);
/*
 * Within the callback, once: moves the body to *out, which is the caller's from then on. It takes
 * no more memory than it has bytes. The response's `body` points nowhere then; its length stays.
 */
void http_response_take_body(const struct http_response *res, struct buf *out);

typedef void (*http_done_fn)(void *ctx, const struct http_response *res);
/* Some bytes of the body as they came, cut anywhere. May cancel its request. */
typedef void (*http_data_fn)(void *ctx, struct str piece);

/* A body that is read while it is sent, so that it needs no memory. */
struct http_body_source {
	uint64_t bytes;
	/* All n bytes from `at` on. Begins at 0 again where a request is sent again. */
	enum err_code (*read)(void *ctx, uint64_t at, char *to, size_t n, struct err *err);
	void *ctx;
};

struct http_request_options {
	const char *method; /* NULL: "GET" */
	struct str url; /* http:// or https:// */
	struct str unix_path; /* of a socket to connect to, whatever the URL's host; "": none */
	const struct http_config *config; /* lives as long as the request; NULL: none, no redirects */
	struct labels headers; /* added after config's; User-Agent and Authorization replace ours */
	struct str body;
	const struct http_body_source *source; /* instead; lives as long as the request */
	int64_t timeout_ns; /* absolute from the call on */
	int64_t idle_timeout_ns; /* without a byte from the server, from the call on; 0: none */
	size_t body_size_max; /* of the bytes as sent; 0: HTTP_BODY_BYTES_DEFAULT */
	/*
	 * Gets the body of an answer 200 (with the ctx of `done`) as it comes, without a limit to its
	 * sum; the response's body is empty then. Other bodies are gathered. NULL: all are gathered.
	 */
	http_data_fn data;
};

struct http_client_options {
	struct event_base *base;
	size_t connections_max; /* open at once; more wait in line within their deadline; 0: 1024 */
	const char *user_agent; /* NULL: "Epimetheus/VERSION" */
	/*
	 * What came of an answer is acknowledged at once while more is expected. A server that sends
	 * head and body apart, without TCP_NODELAY, waits for that: 40 ms each time.
	 */
	bool quick_ack;
	const char *dns_servers; /* "10.0.0.1,10.0.0.2:5353"; NULL: those of /etc/resolv.conf */
};

MUST_CHECK enum err_code http_client_open(
	const struct http_client_options *o, struct http_client **out, struct err *err);
/* Ends all requests with ERR_CANCELED. Not to be called from a callback. NULL is fine. */
void http_client_close(struct http_client *c);

/*
 * Calls done exactly once, later. Fails itself, without calling done, when something is wrong
 * before anything is sent: the URL, a header, a credentials file that cannot be read. `out` may be
 * NULL; *out is gone once done was called.
 */
MUST_CHECK enum err_code http_client_send(struct http_client *c,
	const struct http_request_options *o, http_done_fn done, void *ctx, struct http_request **out,
	struct err *err);
/* An absolute path that the kernel takes; ERR_INVALID says what is wrong. */
MUST_CHECK enum err_code http_unix_path_check(struct str path, struct err *err);
/* Calls nothing any more; NULL is fine. */
void http_request_cancel(struct http_request *r);

struct http_client_stats {
	size_t connections; /* open now, idle ones included */
	uint64_t connects; /* established since the client was opened */
	uint64_t reuses; /* requests served by a kept-alive connection */
};
struct http_client_stats http_client_stats(const struct http_client *c);

#endif
