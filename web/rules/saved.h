/*
 * Saved rules over HTTP: users save alerts and recording rules, delete them, undo changes.
 *
 * Threads: handlers run on workers.
 * Source:  web/rules/README.md.
 */
#ifndef WEB_RULES_SAVED_H
#define WEB_RULES_SAVED_H

#include "web/router/router.h"

void rules_saved_get(struct web *w, struct http_in *in, struct http_out *out);
void rules_saved_history(struct web *w, struct http_in *in, struct http_out *out);
void rules_saved_post(struct web *w, struct http_in *in, struct http_out *out);
void rules_saved_delete(struct web *w, struct http_in *in, struct http_out *out);
void rules_saved_undo(struct web *w, struct http_in *in, struct http_out *out);

/* A route_admit_fn of rules_saved_post: a rule is short. */
bool rules_saved_admit(struct web *w, struct http_in *in, struct http_out *out);

#endif
