/*
 * A client that keeps no connection and says whether an answer is whole: a body as long as it was
 * announced, or chunks up to the last.
 *
 * Ownership: buffers are the caller's.
 */
#ifndef TESTS_TORTURE_CLIENT_H
#define TESTS_TORTURE_CLIENT_H

#include "base/str.h"

/* The status; 0: no answer, or not all of it. request: "GET /path". A body that begins with { is
 * JSON. */
int client_ask(unsigned port, const char *request, struct str body, struct buf *answer);
/* A port of 127.0.0.1 that nobody has now. */
unsigned client_free_port(void);

#endif
