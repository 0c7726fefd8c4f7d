/*
 * Tokens of OAuth 2.0: the answers of token servers, and the tokens that the process has.
 *
 * A token is kept under an identity, a digest of all settings that lead to it, so that clients of
 * all loops share it, and a new configuration with equal settings finds it. One client at a time
 * asks for the token of an identity.
 *
 * Units:     nanoseconds of the monotonic clock.
 * Errors:    ERR_INVALID: the answer has no token that can be sent. No message repeats a secret.
 * Ownership: the store copies what it is given; what it gives is a copy in the caller's arena.
 * Threads:   any.
 * Source:    RFC 6749, 4.4, 5.1 and 5.2; golang.org/x/oauth2, which Prometheus uses.
 */
#ifndef BASE_NET_HTTP_TOKEN_H
#define BASE_NET_HTTP_TOKEN_H

#include "base/str.h"

#define HTTP_TOKEN_BODY_BYTES_MAX (64u << 10) /* of an answer */
#define HTTP_TOKENS_MAX 256u /* the one not used for longest goes */
#define HTTP_TOKEN_MARGIN_NS (INT64_C(10) * 1000000000) /* renewed before its end; at most half */
#define HTTP_TOKEN_PAUSE_NS (INT64_C(1) * 1000000000) /* between requests for one token */

struct http_token_id {
	unsigned char digest[32];
};

/*
 * The answer 200 of a token server. *authorization: "Bearer TOKEN", in the arena. *life_ns: how
 * long it may be used; INT64_MAX without an end.
 */
MUST_CHECK enum err_code http_token_parse(struct arena *a, struct str content_type, struct str body,
	struct str *authorization, int64_t *life_ns, struct err *err);
/* Prints ": invalid_client" of an answer with an error, or nothing. Never what holds the secret. */
void http_token_print_error(struct buf *out, struct str body, struct str secret);

enum http_token_state {
	HTTP_TOKEN_VALID,
	HTTP_TOKEN_ASK, /* nobody has it: the caller asks, and calls http_token_put or _fail */
	HTTP_TOKEN_BUSY, /* somebody else asks */
	HTTP_TOKEN_FAILED, /* a moment ago: *err says why */
	HTTP_TOKEN_NOMEM,
};

/* How a token server takes the client's name and secret. It is found out by the first request. */
enum http_token_style { HTTP_TOKEN_UNKNOWN, HTTP_TOKEN_IN_HEADER, HTTP_TOKEN_IN_BODY };

struct http_token {
	struct str authorization;
	uint64_t serial; /* of the token; never 0 */
	enum http_token_style style; /* for ASK */
};

/* *err is set with FAILED. */
enum http_token_state http_token_get(struct arena *a, const struct http_token_id *id,
	int64_t now_ns, struct http_token *out, struct err *err);
/* Gives the token's serial. */
uint64_t http_token_put(const struct http_token_id *id, int64_t now_ns, struct str authorization,
	int64_t life_ns, enum http_token_style style);
/* err NULL: nobody's fault, so the next one asks at once. */
void http_token_fail(
	const struct http_token_id *id, int64_t now_ns, enum err_code rc, const struct err *err);
/*
 * A server refused this token. True: it was dropped, now or before, so another one can be asked
 * for; false: it is too young for that.
 */
bool http_token_refused(const struct http_token_id *id, int64_t now_ns, uint64_t serial);

#endif
