/*
 * Web: the HTTP server of Epimetheus: the API, the page, health, metrics, the profile of itself.
 *
 * One MHD daemon receives; a pool of workers answers (web/http/server.c). What the server may do to
 * others is off unless its flag is given: reload and quit, admin calls, ingest.
 *
 * Errors:    ERR_UNAVAILABLE (address in use), ERR_INVALID (web configuration, with
 * file:line:column). Ownership: what the options point to must outlive the server. Threads:   open
 * and close from one thread; set_ready from any; the callbacks are called from workers.
 */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "web/router/options.h"

struct web;

MUST_CHECK enum err_code web_open(const struct web_options *o, struct web **out, struct err *err);
void web_set_ready(struct web *w, bool ready);
/* The port that is listened on (for ":0"), and scheme "http" or "https" and prefix as in force. */
unsigned web_port(const struct web *w);
const char *web_scheme(const struct web *w);
const char *web_external_url(const struct web *w); /* without a slash at its end */
const char *web_prefix(const struct web *w); /* "" or "/x" */
/* Stops taking requests, lets running ones end for up to 5 s, cancels the rest. NULL is fine. */
void web_close(struct web *w);

#endif
