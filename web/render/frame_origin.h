/*
 * Origins: in which file, on which line the functions of a frame tree are defined.
 *
 * A name may be several functions' (of two programs, or static functions of two files): the one
 * that costs most names file and line, the cost of every frame of it counted, both sides of a
 * diff; what runs in two jobs are two functions. Among equals the first file in the order of bytes
 * counts, then the first line. Functions without a file do not count; names of binaries and
 * NO_STACK have none.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the tree's arena; ERR_CANCELED.
 * Ownership: in the tree's arena; files point into symbols.
 * Threads:   one at a time.
 */
#ifndef WEB_RENDER_FRAME_ORIGIN_H
#define WEB_RENDER_FRAME_ORIGIN_H

#include "web/render/frame_tree.h"

struct frame_origin {
	struct str file; /* empty: not known */
	int64_t line; /* 0: not known */
	double cost; /* of the function that names them */
};

/* *out: per name of the tree, which p was added to. */
MUST_CHECK enum err_code frame_origins(const struct frame_tree *t, const struct profile_value *p,
	struct frame_origin **out, struct err *err);

#endif
