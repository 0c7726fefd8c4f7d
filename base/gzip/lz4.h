/*
 * lz4: whole messages in lz4's frame format, inflated.
 *
 * Errors:    ERR_INVALID (damaged, cut short, of the format before frames), ERR_LIMIT (it inflates
 *            to more than the caller allows), ERR_NOMEM.
 * Ownership: inflated bytes are the arena's.
 * Threads:   pure functions.
 * Source:    lz4's doc/lz4_Frame_format.md, 1.6.
 */
#ifndef BASE_GZIP_LZ4_H
#define BASE_GZIP_LZ4_H

#include "base/arena.h"
#include "base/str.h"

bool lz4_is(struct str s); /* begins as a frame does */
/* All frames of the body, one after the other. `what` names it in errors. */
MUST_CHECK enum err_code lz4_inflate(struct arena *a, struct str body, const char *what,
	size_t raw_max, struct str *out, struct err *err);

#endif
