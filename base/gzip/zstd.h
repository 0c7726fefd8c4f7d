/*
 * zstd: whole messages, inflated.
 *
 * Errors:    ERR_INVALID, ERR_LIMIT (it inflates to more than the caller allows, or asks for a
 *            window of more than 8 MiB, which RFC 8878 lets a decoder refuse), ERR_NOMEM.
 * Ownership: inflated bytes are the arena's.
 * Threads:   pure functions.
 * Source:    RFC 8878.
 */
#ifndef BASE_GZIP_ZSTD_H
#define BASE_GZIP_ZSTD_H

#include "base/arena.h"
#include "base/str.h"

bool zstd_is(struct str s); /* begins as a frame does */
/* All frames of the body, one after the other. `what` names it in errors. */
MUST_CHECK enum err_code zstd_inflate(struct arena *a, struct str body, const char *what,
	size_t raw_max, struct str *out, struct err *err);

#endif
