/*
 * Sign-in: from the headers of a request to its user.
 *
 * A header of a trusted proxy counts first, then a bearer token, then a name and a password. A
 * proxy's header from any other address counts for nothing.
 *
 * Ownership: in->user points into the rights and the request.
 * Threads:   any.
 */
#ifndef WEB_HTTP_SIGN_IN_H
#define WEB_HTTP_SIGN_IN_H

#include "web/http/http.h"
#include "web/http/rights.h"
#include "web/http/users.h"

struct sign_in {
	struct users *users;
	struct labels passwords; /* basic_auth_users */
	const struct rights *rights;
};

bool sign_in_is_asked(const struct sign_in *s); /* false: everybody may do everything */
/* As users_verify; sets in->user, of a refused one only why. */
enum users_verdict sign_in_verify(const struct sign_in *s, struct http_in *in, bool may_wait);
/* What a 401 asks for. */
void sign_in_challenge(const struct sign_in *s, struct http_out *out);

#endif
