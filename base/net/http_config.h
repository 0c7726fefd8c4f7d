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
#define HTTP_CONFIG_CUSTOM(name, at, decode, help) \
	{ \
		name, YAML_CUSTOM, (at), NULL, decode, help, 0 \
	}
/* The same for struct http_proxy_config. */
#define HTTP_PROXY_FIELDS(at) \
	{ "proxy_url", YAML_STRING, (at) + offsetof(struct http_proxy_config, url), NULL, NULL, \
		"URL of a proxy", 0 }, \
		{ "no_proxy", YAML_STRING, (at) + offsetof(struct http_proxy_config, no_proxy), NULL, \
			NULL, "hosts that take no proxy", 0 }, \
		{ "proxy_from_environment", YAML_BOOL, \
			(at) + offsetof(struct http_proxy_config, from_environment), NULL, NULL, \
			"proxies as the environment names them", 0 }, \
		HTTP_CONFIG_CUSTOM("proxy_connect_header", \
			(at) + offsetof(struct http_proxy_config, connect_headers), \
			http_config_connect_header, "headers of CONNECT")
#define HTTP_CONFIG_FIELDS(at) \
	HTTP_CONFIG_CUSTOM("basic_auth", at, http_config_basic_auth, "user name and password"), \
		HTTP_CONFIG_CUSTOM( \
			"authorization", at, http_config_authorization, "Authorization header"), \
		HTTP_CONFIG_CUSTOM("bearer_token", at, http_config_bearer_token, "bearer token"), \
		HTTP_CONFIG_CUSTOM( \
			"bearer_token_file", at, http_config_bearer_token_file, "file with one"), \
		HTTP_CONFIG_CUSTOM("oauth2", at, http_config_oauth2, "tokens of a token server"), \
		HTTP_CONFIG_CUSTOM("tls_config", at, http_config_tls, "TLS settings"), \
		{ "follow_redirects", YAML_BOOL, (at) + offsetof(struct http_config, follow_redirects), \
			NULL, NULL, "follow HTTP redirects", 0 }, \
		{ "enable_http2", YAML_BOOL, (at) + offsetof(struct http_config, enable_http2), NULL, \
			NULL, "HTTP/2 with servers of TLS that speak it", 0 }, \
		HTTP_PROXY_FIELDS((at) + offsetof(struct http_config, proxy)), \
		HTTP_CONFIG_CUSTOM("http_headers", at, http_config_headers, "headers to send")

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
