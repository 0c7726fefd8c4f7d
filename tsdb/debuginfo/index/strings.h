/*
 * Strings of a builder, each once: their bytes in large pieces, ids 0, 1, 2 ... in the order in
 * which they came.
 *
 * Errors:    ERR_LIMIT, ERR_NOMEM.
 * Ownership: bytes are copied; strings_at points to them until strings_release.
 * Threads:   one.
 */
#ifndef TSDB_DEBUGINFO_INDEX_STRINGS_H
#define TSDB_DEBUGINFO_INDEX_STRINGS_H

#include "base/str.h"
#include "tsdb/debuginfo/index/ids.h"
#include "tsdb/debuginfo/index/vec.h"

struct string {
	const char *ptr;
	uint32_t len;
	uint32_t hash; /* of the bytes, without a seed: it orders what else is equal */
};

struct strings {
	struct vec v; /* struct string */
	struct ids ids;
	uint64_t seed; /* so that a file cannot make hashes collide */
	char **piece;
	size_t pieces, pieces_cap, used; /* used: of the last piece */
	size_t bytes, bytes_max;
};

void strings_init(struct strings *s, size_t bytes_max);
void strings_release(struct strings *s);
MUST_CHECK enum err_code strings_intern(
	struct strings *s, struct str text, uint32_t *out, struct err *err);

static inline const struct string *strings_at(const struct strings *s, uint32_t id)
{
	return vec_at(&s->v, id);
}

#endif
