/*
 * A tree of objects is copied: what is there already with the same size and hash is left alone, so
 * a copy that was interrupted goes on where it ended.
 *
 * A manifest names what is there, and meta.json makes a block whole. So the manifests are read
 * first and written last, and each meta.json behind the other files of blocks: whoever reads the
 * copy finds what it names.
 *
 * Errors:    ERR_CANCELED after Ctrl-C; those of places.
 * Threads:   starts `workers` (copiers.h) and waits for them.
 */
#ifndef CMD_EPITOOL_BUCKET_COPY_H
#define CMD_EPITOOL_BUCKET_COPY_H

#include "cmd/epitool/bucket/place.h"

struct copy_result {
	uint64_t copied, bytes; /* now */
	uint64_t there; /* already */
	uint64_t gone; /* deleted while we were copying: their manifest has changed */
	uint64_t odd; /* no keys that a bucket takes, or no regular files */
};

MUST_CHECK enum err_code objects_copy_tree(const struct place *from, const struct place *to,
	unsigned workers, struct copy_result *out, struct err *err);

#endif
