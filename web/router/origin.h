/*
 * Origin: whether a request comes from a page of another site, and whether it names this server.
 *
 * A browser lets any page send a request here, and says where it comes from: Sec-Fetch-Site or
 * Origin, which no page can forge. A request with neither is not from a browser. Only the list of
 * our names helps against a page whose own name was made to point here (DNS rebinding), because its
 * requests are of one origin.
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
 * True if a Host header names this server. `names` are host, or host:port for that port only; own
 * is as above. Without names every host is allowed. Addresses and localhost are always allowed,
 * since no foreign name is one. A request without the header is allowed: no browser sends it.
 */
bool origin_host_allowed(struct str host, const struct flag_list *names, struct str own);
/* The same of a host that is not empty, where only these count: without names just addresses,
 * localhost and the external URL's. */
bool origin_host_known(struct str host, const struct flag_list *names, struct str own);
/* ERR_INVALID if one is neither host nor host:port. */
MUST_CHECK enum err_code origin_check_names(const struct flag_list *names, struct err *err);

#endif
