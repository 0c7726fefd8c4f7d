/*
 * Origins: the file and line where the functions of a frame tree are defined.
 *
 * Several functions may have one name (of two programs, or static functions of two files). Then
 * the one that costs most gives file and line: the cost is that of all its frames, of both sides
 * of a diff. One function in two jobs counts as two. If costs are equal, the first file in byte
 * order wins, then the first line. Functions without a file do not count; names of binaries and
 * NO_STACK have no origin.
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
	double cost; /* of the function that the file and line are of */
};

/* *out has an entry per name of the tree. p was added to the tree before. */
MUST_CHECK enum err_code frame_origins(const struct frame_tree *t, const struct profile_value *p,
	struct frame_origin **out, struct err *err);

#endif
