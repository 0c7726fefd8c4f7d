/*
 * Refused: pushes that end before a handler decodes them, on the list of senders. Users and rights,
 * bodies that are too long or too many, flags, wrong paths: each has a row there, as what a handler
 * refuses has.
 *
 * Threads: any.
 */
#ifndef WEB_ROUTER_REFUSED_H
#define WEB_ROUTER_REFUSED_H

#include "scrape/receive/senders.h"
#include "web/router/router.h"

/* Who sent a request. The texts are the request's. */
struct sender_name router_sender(const struct http_in *in);
/* One profile, as nobody knows how many there were. reason: enum err_code or refusal_reason. */
void router_refuse_profiles(
	struct web *w, const struct http_in *in, unsigned reason, struct str why);
/*
 * After each request: does it if it is a push that the router or the server answered. A POST to
 * a path that takes nothing is one.
 */
void router_tell_refused(struct web *w, const struct http_in *in, const struct http_out *out);

#endif
