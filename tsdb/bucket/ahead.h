/*
 * Ahead: objects of a bucket that are read one after the other, a few of them before their turn,
 * so that the time of a request does not add up.
 *
 * Units:     bytes.
 * Errors:    those of bucket_get.
 * Ownership: keys are copied; the bucket outlives it.
 * Threads:   one caller; `slots` - 1 of its own, from the first time on that it wants several.
 */
#ifndef TSDB_BUCKET_AHEAD_H
#define TSDB_BUCKET_AHEAD_H

#include "tsdb/bucket/bucket.h"

#define AHEAD_SLOTS_MAX 8u
#define AHEAD_KEY_BYTES_MAX 256u

struct ahead;
struct ahead_object {
	char key[AHEAD_KEY_BYTES_MAX];
	uint64_t bytes; /* as far as its size is known */
};

/* bytes_max: of all objects that wait for their turn. A larger one is read when its turn comes. */
MUST_CHECK enum err_code ahead_open(
	struct bucket *b, unsigned slots, uint64_t bytes_max, struct ahead **out, struct err *err);
/* Waits for requests under way, and frees what was read. NULL is fine. */
void ahead_close(struct ahead *a);
/*
 * Says what is wanted next, in this order; objects beyond `slots` are passed over. Objects of the
 * call before that are still wanted are not asked for again.
 */
void ahead_want(struct ahead *a, const struct ahead_object *objects, size_t n);
/* Waits for the first wanted object; all of it replaces the contents of *out. */
MUST_CHECK enum err_code ahead_take(struct ahead *a, struct buf *out, struct err *err);

#endif
