/*
 * gzip: whole messages, inflated and compressed.
 *
 * Errors:    ERR_INVALID: Go's compress/gzip refuses it too; ERR_LIMIT: it inflates to more than
 *            the caller allows; ERR_NOMEM.
 * Ownership: inflated bytes are the arena's; compressed ones are appended to the buffer.
 * Threads:   pure functions.
 * Source:    RFC 1952.
 */
#ifndef BASE_GZIP_GZIP_H
#define BASE_GZIP_GZIP_H

#include "base/arena.h"
#include "base/str.h"

bool gzip_is(struct str s); /* begins as gzip does */
/*
 * The size that the body claims to inflate to, for a first buffer. It is exact for one honest
 * member, and never more than deflate can make of the body.
 */
size_t gzip_raw_hint(struct str body);
/* All members of the body, one after the other. `what` names it in errors: "profile". */
MUST_CHECK enum err_code gzip_inflate(struct arena *a, struct str body, const char *what,
	size_t raw_max, struct str *out, struct err *err);
/* Appends one member, level 1..9, without a time stamp: equal input gives equal output. */
MUST_CHECK enum err_code gzip_compress(struct str raw, int level, struct buf *out, struct err *err);

#endif
