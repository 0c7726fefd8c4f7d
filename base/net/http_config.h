/*
 * HTTP client configuration as Prometheus writes it: basic_auth, authorization, oauth2,
 * bearer_token(_file), tls_config, follow_redirects, proxies, http_headers. The fields are inline
 * in a scrape config, so this is a decoder over its mapping.
 */
#ifndef BASE_NET_HTTP_CONFIG_H
#define BASE_NET_HTTP_CONFIG_H

#include "base/net/http_client.h"

/*
 * One yaml_field row per inline name, for a schema whose struct holds `struct http_config` at
 * offset `at`.
 */
#define HTTP_CONFIG_CUSTOM(name, at, schema, decode, takes_, help) \
	{ \
		name, YAML_CUSTOM, (at), schema, decode, help, 0, .takes = (takes_), \
														  .home = &http_config_schema \
	}
/* The same for struct http_proxy_config. */
/* clang-format off */
#define HTTP_PROXY_FIELDS(at) \
	{ "proxy_url", YAML_STRING, (at) + offsetof(struct http_proxy_config, url), NULL, NULL, \
		"The proxy: `http`, `https` or `socks5`.", 0, .takes = "URL", \
		.example = "http://proxy.example:3128", .home = &http_config_schema }, \
	{ "no_proxy", YAML_STRING, (at) + offsetof(struct http_proxy_config, no_proxy), NULL, NULL, \
		"Hosts, domains and networks that are reached without the proxy, with commas between.", 0, \
		.example = "10.0.0.0/8,.svc.cluster.local", .home = &http_config_schema }, \
	{ "proxy_from_environment", YAML_BOOL, \
		(at) + offsetof(struct http_proxy_config, from_environment), NULL, NULL, \
		"The proxies of `http_proxy`, `https_proxy` and `no_proxy` in the environment.", 0, \
		.home = &http_config_schema }, \
	HTTP_CONFIG_CUSTOM("proxy_connect_header", \
		(at) + offsetof(struct http_proxy_config, connect_headers), NULL, \
		http_config_connect_header, "map of names to lists of secrets", \
		"Headers of the request to the proxy itself.")
#define HTTP_TLS_FIELD(at) \
	HTTP_CONFIG_CUSTOM("tls_config", at, &http_tls_schema, http_config_tls, NULL, \
		"TLS: whom to trust, and a client certificate.")
#define HTTP_HEADERS_FIELD(at) \
	HTTP_CONFIG_CUSTOM("http_headers", at, &http_header_schema, http_config_headers, \
		"map of names to", "Headers to send.")
#define HTTP_CONFIG_FIELDS(at) \
	HTTP_CONFIG_CUSTOM("basic_auth", at, &http_basic_auth_schema, http_config_basic_auth, NULL, \
		"User name and password."), \
	HTTP_CONFIG_CUSTOM("authorization", at, &http_authorization_schema, \
		http_config_authorization, NULL, "The header `Authorization`."), \
	HTTP_CONFIG_CUSTOM("bearer_token", at, NULL, http_config_bearer_token, "secret", \
		"A bearer token; the older form of `authorization`."), \
	HTTP_CONFIG_CUSTOM("bearer_token_file", at, NULL, http_config_bearer_token_file, "path", \
		"A file with one, read for each request."), \
	HTTP_CONFIG_CUSTOM("oauth2", at, &http_oauth2_schema, http_config_oauth2, NULL, \
		"Tokens of a token server, by client credentials."), \
	HTTP_TLS_FIELD(at), \
	{ "follow_redirects", YAML_BOOL, (at) + offsetof(struct http_config, follow_redirects), \
		NULL, NULL, "Redirects are followed.", 0, .home = &http_config_schema }, \
	{ "enable_http2", YAML_BOOL, (at) + offsetof(struct http_config, enable_http2), NULL, NULL, \
		"HTTP/2 is offered to servers with TLS.", 0, .home = &http_config_schema }, \
	HTTP_PROXY_FIELDS((at) + offsetof(struct http_config, proxy)), \
	HTTP_HEADERS_FIELD(at)
/* clang-format on */

/* All of these fields and nothing else, into a struct http_config; and their parts. */
extern const struct yaml_schema http_config_schema;
extern const struct yaml_schema http_basic_auth_schema, http_authorization_schema, http_tls_schema,
	http_header_schema, http_oauth2_schema;

void http_config_defaults(struct http_config *c);
/* What is wrong with a URL that a configuration names, in Prometheus's words; NULL: nothing. */
const char *http_config_url_problem(struct str url);
/* After decoding: checks Prometheus's exclusions, and makes file paths relative to ctx->dir. */
MUST_CHECK enum err_code http_config_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct http_config *c, struct err *err);
/* Prometheus's exclusions of the proxy's fields; http_config_check does it for those of c. */
MUST_CHECK enum err_code http_config_check_proxy(struct yaml_ctx *ctx, const struct yaml_node *n,
	const struct http_proxy_config *c, struct err *err);
/* A path relative to ctx->dir becomes absolute; "" stays. */
MUST_CHECK enum err_code http_config_make_absolute(
	struct yaml_ctx *ctx, struct str *path, struct err *err);
/* Every setting, so that equal bytes are equal settings. The bytes hold secrets. */
void http_config_encode(struct buf *out, const struct http_config *c);
void http_oauth2_encode(struct buf *out, const struct http_oauth2 *o);
/* A deep copy in the arena. */
MUST_CHECK enum err_code http_config_dup(
	struct arena *a, const struct http_config *c, struct http_config *out, struct err *err);
MUST_CHECK enum err_code http_oauth2_dup(
	struct arena *a, const struct http_oauth2 *o, struct http_oauth2 *out, struct err *err);
/* Checks that its files exist and can be read; for `check config`. */
MUST_CHECK enum err_code http_config_check_files(const struct http_config *c, struct err *err);

enum err_code http_config_basic_auth(
	struct yaml_ctx *, const struct yaml_node *, void *, struct err *);
enum err_code http_config_authorization(
	struct yaml_ctx *, const struct yaml_node *, void *, struct err *);
enum err_code http_config_bearer_token(
	struct yaml_ctx *, const struct yaml_node *, void *, struct err *);
enum err_code http_config_bearer_token_file(
	struct yaml_ctx *, const struct yaml_node *, void *, struct err *);
enum err_code http_config_oauth2(struct yaml_ctx *, const struct yaml_node *, void *, struct err *);
enum err_code http_config_tls(struct yaml_ctx *, const struct yaml_node *, void *, struct err *);
enum err_code http_config_connect_header(
	struct yaml_ctx *, const struct yaml_node *, void *, struct err *);
enum err_code http_config_headers(
	struct yaml_ctx *, const struct yaml_node *, void *, struct err *);

#endif
