/*
 * Web: the HTTP server of Epimetheus: the API, the page, health, metrics, the profile of itself.
 *
 * Reload and quit, admin calls and ingest are off unless their flag is given.
 *
 * Errors:    ERR_UNAVAILABLE (address in use), ERR_INVALID (options; the web configuration, with
 *            file:line:column).
 * Ownership: what the options point to must outlive the server.
 * Threads:   web_open, web_set_parts and web_close from one thread; web_set_ready from any; workers
 *            call the callbacks.
 */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "web/router/options.h"

struct web;

MUST_CHECK enum err_code web_open(const struct web_options *o, struct web **out, struct err *err);
/*
 * The parts of a server that was opened without them, so that it says what its start waits for: db,
 * sink, assignment, shard_sink, engine, manager, debuginfo, debuginfod, files, saved_rules,
 * notifier, senders_path, put_senders and rules_report of these options; the others are those of
 * web_open. Once, before the server is ready for the first time.
 */
MUST_CHECK enum err_code web_set_parts(struct web *w, const struct web_options *o, struct err *err);
/* Until it is ready, all that needs a part is answered with 503 and what the server waits for. */
void web_set_ready(struct web *w, bool ready);
/* The port it listens on (also for ":0"); the scheme, "http" or "https". */
unsigned web_port(const struct web *w);
unsigned web_grpc_port(const struct web *w); /* 0: it is off */
const char *web_scheme(const struct web *w);
const char *web_external_url(const struct web *w); /* without a slash at its end */
const char *web_prefix(const struct web *w); /* "" or "/x" */
/* Takes no more requests, gives running ones 5 s, cancels the rest. NULL is fine. */
void web_close(struct web *w);

#endif
