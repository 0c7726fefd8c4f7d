/*
 * Users: names and passwords of HTTP's Basic authentication against bcrypt hashes.
 *
 * bcrypt is slow by design, so a bounded number of verdicts is cached. The key is a keyed hash of
 * name, password and stored hash: no password is kept, and a changed file makes old verdicts
 * useless. An unknown name takes as long as a known one. At most two hashes are computed at once,
 * one for an address, and few wait. An address has a share of the queue; when the queue is full,
 * the address with most places loses one. So guessing takes neither workers nor the queue away from
 * others.
 *
 * Errors:    ERR_INVALID for a hash that is not bcrypt; the message does not show the hash.
 * Ownership: users_open hands *out to the caller.
 * Threads:   any, after open.
 * Source:    RFC 7617; crypt(5), "bcrypt".
 */
#ifndef WEB_HTTP_USERS_H
#define WEB_HTTP_USERS_H

#include "base/labels.h"
#include "web/http/http.h"

#define USERS_PER_ADDRESS_DEFAULT 4u
#define USERS_BCRYPT_COST_MAX 16 /* four seconds here; 31 would be a day and a half */

/* True if `hash` can be verified: $2a$, $2b$ or $2y$. */
MUST_CHECK enum err_code users_check_hash(struct str hash, struct err *err);

struct users;
/* per_address: verifications of one address that may run or wait; 0: the default. */
MUST_CHECK enum err_code users_open(unsigned per_address, struct users **out, struct err *err);
void users_close(struct users *u); /* NULL is fine */

enum users_verdict {
	USERS_OK,
	USERS_REFUSED,
	USERS_UNNAMED, /* the request has no credentials (sign_in_verify alone says so) */
	USERS_BUSY, /* too many verifications run or wait, of this address or of all */
	USERS_LATER, /* the verdict is not known yet, and may_wait is false */
};

/*
 * Verifies an Authorization header against `known`: name -> hash, each checked before; not empty.
 * scratch holds the decoded header.
 */
struct users_request {
	struct str authorization;
	struct http_sender client;
	bool may_wait;
};
enum users_verdict users_verify(
	struct users *u, struct labels known, const struct users_request *r, struct arena *scratch);
/* The name in an Authorization header, in the arena. False: it is none of Basic authentication. */
bool users_name(struct arena *a, struct str authorization, struct str *name);
/* Hashes computed so far, to measure what the cache saves. */
uint64_t users_computed(struct users *u);

#endif
