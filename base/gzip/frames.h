/*
 * Frames: inflating of what is a row of frames, for zstd.c and lz4.c: memory that grows, the limit,
 * and bytes that end too early.
 *
 * Errors:    ERR_INVALID, ERR_LIMIT, ERR_NOMEM, with the coding's name in front.
 * Ownership: inflated bytes are the arena's.
 * Threads:   a context belongs to one.
 */
#ifndef BASE_GZIP_FRAMES_H
#define BASE_GZIP_FRAMES_H

#include "base/arena.h"
#include "base/str.h"

struct frames_coding {
	const char *name;
	/*
	 * Goes on at `in`. *taken: of its bytes; *made: room at `to`, then bytes there; *left: 0 where
	 * a frame has ended. Gives what is wrong, or NULL.
	 */
	const char *(*step)(
		void *context, struct str in, size_t *taken, char *to, size_t *made, size_t *left);
};

/* All frames of the body, one after the other. `what` names it in errors. */
MUST_CHECK enum err_code frames_inflate(const struct frames_coding *c, void *context,
	struct arena *a, struct str body, const char *what, size_t raw_max, struct str *out,
	struct err *err);

#endif
