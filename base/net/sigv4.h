/*
 * AWS Signature Version 4: signs an HTTP request with a secret that is never sent.
 *
 * The signature covers the method, the path, the query, the headers given and the body's hash. So
 * what is sent must be what was signed: the caller sends sigv4_print_target's target, the signed
 * headers as given, and the headers that sigv4_sign makes.
 *
 * A path is encoded once, segment by segment, as S3 wants it. Other services want it encoded twice
 * after its dots were removed; that is the same for "/", the path of their query APIs.
 *
 * Units:     seconds since 1970.
 * Errors:    ERR_NOMEM, ERR_LIMIT (the arena), ERR_INVALID (time, path). No message holds a secret.
 * Ownership: what is made lives in the arena, or points into the request.
 * Threads:   values; no I/O.
 * Source:    "Signature Version 4 for API requests" in the AWS IAM user guide; "Authenticating
 *            Requests" in the Amazon S3 API reference.
 */
#ifndef BASE_NET_SIGV4_H
#define BASE_NET_SIGV4_H

#include "base/labels.h"

#define SIGV4_UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD" /* a hash of the body that says nothing of it */
#define SIGV4_HASH_LEN 64 /* of a SHA-256 as hex digits */
#define SIGV4_HEADERS_MAX 4 /* that sigv4_sign makes */

struct sigv4_credentials {
	struct str access_key, secret_key;
	struct str session_token; /* of temporary credentials; "": none */
};

struct sigv4_scope {
	struct str region, service;
	int64_t time_s;
};

struct sigv4_request {
	const char *method;
	struct str path; /* not encoded, begins with "/" */
	struct labels query; /* not encoded, in any order; a name may come twice */
	struct labels headers; /* to be signed, in any order; "host" among them */
	struct str payload_hash; /* sigv4_hash of the body, or SIGV4_UNSIGNED_PAYLOAD */
	bool hash_header; /* also sent as x-amz-content-sha256: S3 wants it */
};

/* Lower-case hex digits of the SHA-256, NUL-terminated. */
void sigv4_hash(struct str bytes, char out[SIGV4_HASH_LEN + 1]);

/* The target of the request line: the path and the query as they are signed. */
MUST_CHECK enum err_code sigv4_print_target(
	struct buf *out, struct str path, struct labels query, struct err *err);

/*
 * The headers that make the request signed: x-amz-date, x-amz-content-sha256, x-amz-security-token
 * and authorization, those that are needed. All but the last are signed.
 */
MUST_CHECK enum err_code sigv4_sign(struct arena *a, const struct sigv4_credentials *c,
	const struct sigv4_scope *s, const struct sigv4_request *r, struct labels *out,
	struct err *err);

/* The steps of the algorithm; for tests. `r` holds all the headers that are signed. */
MUST_CHECK enum err_code sigv4_canonical_request(
	struct buf *out, struct buf *signed_names, const struct sigv4_request *r, struct err *err);
MUST_CHECK enum err_code sigv4_string_to_sign(
	struct buf *out, const struct sigv4_scope *s, struct str canonical, struct err *err);
void sigv4_signature(struct str secret_key, const struct sigv4_scope *s, struct str string_to_sign,
	char out[SIGV4_HASH_LEN + 1]);

#endif
