/*
 * Refusal: a scrape that got no profile, as an error that says what is wrong and where it led to.
 * Somebody can then mend the job or the target. Examples:
 *
 * - server returned HTTP status 503 Service Unavailable: its own words
 * - server returned HTTP status 400 Bad Request: the target speaks TLS, set "scheme: https"
 * - tls 10.0.0.1:80: wrong version number: the target does not speak TLS, set "scheme: http"
 * - server returned HTTP status 302 Found: it leads to /login, and the job
 *   has "follow_redirects: false"
 * - target answers a web page (...), not a profile; the target redirected to http://sso/login
 *
 * Errors:    those that are made; no function here fails.
 * Ownership: nothing is kept.
 * Threads:   any.
 */
#ifndef SCRAPE_REFUSAL_H
#define SCRAPE_REFUSAL_H

#include "base/net/http_client.h"

#define REFUSAL_TEXT_SHOWN 200u /* bytes of a server's text or URL that are shown */
#define REFUSAL_TEXT_BYTES (REFUSAL_TEXT_SHOWN + 8u)

/* An answer that is not 200: ERR_UNAVAILABLE. asked: its URL before any redirect. */
enum err_code refusal_status(
	const struct http_response *res, struct str asked, bool follows, struct err *err);
/* An exchange that failed: adds what a wrong scheme has to do with it. */
void refusal_explain_failure(const struct http_response *res, struct str asked, struct err *err);
/* Adds where redirects led to. */
void refusal_add_way(struct str led_to, struct err *err);
/* The URL of an answer after redirects, without secrets, cut; nothing if there were none. */
void refusal_print_way(struct buf *out, const struct http_response *res);

/* The answer of a process whose profiler somebody else has. */
bool refusal_profiler_taken(int status, struct str body);

/* The first bytes of a text on one line, without control characters, cut between characters. */
void refusal_text(char out[REFUSAL_TEXT_BYTES], struct str text);
/* Without parameters: "text/html; charset=utf-8" is text/html. */
bool refusal_type_is(struct str content_type, const char *type);

#endif
