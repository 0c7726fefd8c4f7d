/*
 * Origin: whether a request comes from a page of another site, and whether it was sent to a name of
 * this server's.
 *
 * A browser lets any page send a request here. It says from where: Sec-Fetch-Site, or Origin, which
 * no page can forge. Who sends neither is no browser. Against a page whose own name was made to
 * point here (DNS rebinding) only the list of our names helps: its requests are of one origin.
 *
 * Source: https://fetch.spec.whatwg.org, "Origin header"; Fetch Metadata Request Headers (W3C).
 */
#ifndef WEB_ROUTER_ORIGIN_H
#define WEB_ROUTER_ORIGIN_H

#include "base/self/flags.h"
#include "web/http/http.h"

/* own: scheme://host[:port] of the external URL, or "". */
bool origin_is_foreign(const struct http_in *in, struct str own);

/*
 * Whether a Host header names one of ours: `names` are host or host:port (then of that port alone),
 * own is as above. No names: every one does. Addresses and localhost always do, since no foreign
 * name is one, and so does a request without the header, which no browser sends.
 */
bool origin_host_allowed(struct str host, const struct flag_list *names, struct str own);
/* ERR_INVALID for what is neither host nor host:port. */
MUST_CHECK enum err_code origin_check_names(const struct flag_list *names, struct err *err);

#endif
