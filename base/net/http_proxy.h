/*
 * Which proxy a request takes: proxy_url, no_proxy, proxy_from_environment.
 *
 * no_proxy is a list with commas. An entry is an address, a network in CIDR notation, a domain, or
 * "*" for everything; addresses and domains may have a port. "a.b" and its subdomains match "a.b";
 * only the subdomains match ".a.b" and "*.a.b". Wherever such a list or the environment decides,
 * localhost and loopback addresses take no proxy; with a proxy_url alone they take it, too.
 *
 * The environment is http_proxy, https_proxy and no_proxy, in lower case first, else in upper case.
 *
 * Errors:    ERR_INVALID: no URL of a proxy; the message repeats no user information.
 * Ownership: what is made lives in the arena, or points into the configuration.
 * Threads:   values.
 * Source:    golang.org/x/net/http/httpproxy and Go's net/http, as Prometheus uses them.
 */
#ifndef BASE_NET_HTTP_PROXY_H
#define BASE_NET_HTTP_PROXY_H

#include "base/net/http_client.h"

enum http_proxy_kind {
	HTTP_PROXY_NONE, /* straight to the target */
	HTTP_PROXY_HTTP,
	HTTP_PROXY_HTTPS, /* TLS to the proxy */
	HTTP_PROXY_SOCKS5, /* the proxy resolves names, with socks5h:// and with socks5:// */
};

struct http_proxy {
	enum http_proxy_kind kind;
	struct str host; /* lower case; an IPv6 address without brackets */
	uint16_t port;
	bool has_user;
	struct str user, password;
};

/* scheme://[user[:password]@]host[:port]; loose: http:// where no scheme is given. */
MUST_CHECK enum err_code http_proxy_parse(
	struct arena *a, struct str url, bool loose, struct http_proxy *out, struct err *err);
/* True if the list sends requests to the host past the proxy. host: lower case, no brackets. */
bool http_proxy_is_bypassed(struct str no_proxy, struct str host, uint16_t port);
/* The proxy of a request to the host; tls: it is one of https. */
MUST_CHECK enum err_code http_proxy_choose(struct arena *a, const struct http_proxy_config *c,
	bool tls, struct str host, uint16_t port, struct http_proxy *out, struct err *err);

#endif
