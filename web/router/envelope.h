/*
 * The API's common forms: Prometheus's envelope, errors, parameters.
 *
 * Errors: enum err_code to Prometheus's errorType and status: bad_data 400 (ERR_INVALID,
 *         ERR_UNSUPPORTED), execution 422 (ERR_LIMIT), timeout 503, canceled 499, unavailable 503,
 *         not_found 404, conflict 409, internal 500 (all others). For calls of Connect to its
 * codes: invalid_argument 400 (ERR_INVALID, and ERR_LIMIT, which asking again does not change),
 *         unimplemented 501 (ERR_UNSUPPORTED), deadline_exceeded 504, canceled 499, unavailable
 * 503, not_found 404, already_exists 409, internal 500 (all others).
 */
#ifndef WEB_ROUTER_ENVELOPE_H
#define WEB_ROUTER_ENVELOPE_H

#include "base/json.h"
#include "web/http/http.h"

struct labels;

void api_error(struct http_out *out, int status, const char *type, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
void api_fail(struct http_out *out, enum err_code rc, const struct err *err);
/* The status of an error, and its errorType where type is not NULL. */
int api_status(enum err_code rc, const char **type);

/* Connect's JSON of an error, {"code":"...","message":"..."}, of the routes with ROUTE_CONNECT. */
void connect_error(struct http_out *out, int status, const char *code, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
void connect_fail(struct http_out *out, enum err_code rc, const struct err *err);
/* The status of an error, and its code where code is not NULL. */
int connect_status(enum err_code rc, const char **code);

/* {"status":"success","data": - the caller writes the value - then api_end. */
void api_begin(struct http_out *out, struct json *j);
/* warnings and infos may be NULL with n 0. */
void api_end(struct json *j, const struct str *warnings, size_t warnings_n, const struct str *infos,
	size_t infos_n);

/*
 * Parameters. A missing or empty one leaves *out as it is and sets *has (may be NULL) to false.
 * ERR_INVALID names it.
 */
MUST_CHECK enum err_code api_time(
	const struct http_in *in, const char *name, int64_t *out, bool *has, struct err *err);
/* Float seconds or "5m"; not negative. */
MUST_CHECK enum err_code api_duration(
	const struct http_in *in, const char *name, int64_t *out, bool *has, struct err *err);
MUST_CHECK enum err_code api_uint(
	const struct http_in *in, const char *name, uint64_t *out, struct err *err);
/* "true" or "false"; *out is false where it is missing. */
MUST_CHECK enum err_code api_bool(
	const struct http_in *in, const char *name, bool *out, struct err *err);

#endif
