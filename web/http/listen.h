/*
 * A listening socket from an address as flags give it. The right to a port below 1024 is needed to
 * bind it, so a program may bind first, give up its rights, and listen later. Until then the system
 * refuses connections, as if nobody were there.
 *
 * Ownership: the socket of a listen_bound is its holder's, until listen_open takes it.
 * Errors: ERR_INVALID for an address that is none, ERR_UNAVAILABLE "listen on X: Address already in
 * use".
 */
#ifndef WEB_HTTP_LISTEN_H
#define WEB_HTTP_LISTEN_H

#include "base/err.h"

struct listen_bound {
	int fd; /* -1: none */
	unsigned port;
};

/* "host:port", "[v6]:port" or ":port" (all addresses, IPv6 too); host is numeric or "localhost". */
MUST_CHECK enum err_code listen_bind(
	const char *address, struct listen_bound *out, struct err *err);
/* bound: of this address, and is without a socket then; NULL, or without one: binds first. */
MUST_CHECK enum err_code listen_open(
	const char *address, struct listen_bound *bound, int *fd, unsigned *port, struct err *err);
void listen_unbind(struct listen_bound *b); /* without a socket: nothing */

#endif
