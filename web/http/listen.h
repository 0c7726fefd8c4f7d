/*
 * A listening socket from an address as flags give it.
 *
 * Errors: ERR_INVALID for an address that is none, ERR_UNAVAILABLE "listen on X: Address already in
 * use".
 */
#ifndef WEB_HTTP_LISTEN_H
#define WEB_HTTP_LISTEN_H

#include "base/err.h"

/* "host:port", "[v6]:port" or ":port" (all addresses, IPv6 too); host is numeric or "localhost". */
MUST_CHECK enum err_code listen_open(const char *address, int *fd, unsigned *port, struct err *err);

#endif
