/*
 * Takes one file from the body of a request into the store, piece by piece.
 *
 * Errors: an HTTP status, with *err set; 429 and 503 have Retry-After. 400 no ELF file, or another
 *         one; 408, 409 not wanted, 413, 499 its sender is gone. Nothing of the file is kept then.
 */
#ifndef WEB_DEBUGINFO_TAKE_H
#define WEB_DEBUGINFO_TAKE_H

#include "tsdb/debuginfo/store/store.h"
#include "web/router/router.h"

struct take {
	struct debuginfo_id id;
	bool has_id; /* else it becomes the file's */
	struct debuginfo_offer offer;
};
/* 0: the file is queued, durably. */
MUST_CHECK int debuginfo_take(
	struct web *w, struct http_in *in, struct http_out *out, struct take *t, struct err *err);
/* On the head of a request. 0: it may send its body. */
MUST_CHECK int debuginfo_take_check(
	struct web *w, struct http_in *in, struct http_out *out, struct err *err);

#endif
