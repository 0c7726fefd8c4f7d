/*
 * Audit: a line of the log for each request that was refused (401, 403), and for each that only an
 * admin may send or that deletes, whatever came of it.
 *
 *	level=warn component=audit msg="request refused" user=ci sign_in=token address=10.0.0.7:51322
 *		method=GET path=/api/v1/query status=403 needs=read
 *
 * Lines of admins are never left out. Of one address a bounded number of refusals has lines of its
 * own in ten seconds; the others are counted, and the count has a line at the end of that time. So
 * guessing fills no log, and no refusal is silent. Metrics count all.
 *
 * Units:     nanoseconds of the monotonic clock.
 * Threads:   any, after open; a thread of its own writes the counts.
 */
#ifndef WEB_ROUTER_AUDIT_H
#define WEB_ROUTER_AUDIT_H

#include "web/http/http.h"

#define AUDIT_LINES_MAX 10u /* of refusals of an address, in AUDIT_WINDOW_NS */
#define AUDIT_WINDOW_NS INT64_C(10000000000)

struct audit;
MUST_CHECK enum err_code audit_open(struct audit **out, struct err *err);
/* The thread that writes the counts; without it that is the caller's. */
MUST_CHECK enum err_code audit_start(struct audit *a, struct err *err);
void audit_close(struct audit *a); /* writes the counts; NULL is fine */

/*
 * After each request, at a time that never goes back. needs NEEDS_NOT_SAID: it has no route. a may
 * be NULL: nothing is written.
 */
void audit_request(struct audit *a, const struct http_in *in, const struct http_out *out,
	enum http_needs needs, int64_t now_ns);
/* Writes the counts of windows that have ended. */
void audit_tell_hidden(struct audit *a, int64_t now_ns);

#endif
