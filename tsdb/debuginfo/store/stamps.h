/*
 * Stamps: what the store remembers of a key beside its files: when its index was last used, until
 * when nobody is asked for it. One file, written rarely; its loss costs order of eviction only.
 *
 * Errors:  ERR_CORRUPT: the checksum, or a record that no store writes.
 * Threads: values.
 */
#ifndef TSDB_DEBUGINFO_STORE_STAMPS_H
#define TSDB_DEBUGINFO_STORE_STAMPS_H

#include "tsdb/debuginfo/store/store.h"

#define STAMP_WHY_BYTES_MAX 200

struct stamp {
	struct debuginfo_id id;
	int64_t used_s, missing_end_s, again_s; /* 0: none */
	enum debuginfo_kind tried; /* with again_s */
	char why[STAMP_WHY_BYTES_MAX + 1]; /* with again_s; "": no better than what was there */
};

void stamps_begin(struct buf *out);
void stamps_add(struct buf *out, const struct stamp *s);
void stamps_end(struct buf *out);

typedef enum err_code (*stamp_fn)(void *ctx, const struct stamp *t, struct err *err);
/* Calls fn for each stamp; an error of fn ends it. Nothing is called if the checksum is wrong. */
MUST_CHECK enum err_code stamps_decode(struct str bytes, stamp_fn fn, void *ctx, struct err *err);

#endif
