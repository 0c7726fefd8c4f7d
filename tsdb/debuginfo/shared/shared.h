/*
 * Shared symbols: the indexes of a cluster's members in its bucket, so that a file that was sent to
 * one of them names addresses at all.
 *
 *     symbols/STEM.idx        the file of a store, with its description (store/README.md)
 *
 * A thread puts each index that is here and not there. It looks at the store when that changes, so
 * nothing is lost by a crash: what is to be put is a comparison of two lists. It lists the bucket
 * each list_ns: an index that changed there is taken where there is an older one here; one that is
 * not here is taken when somebody wants it.
 *
 * Two members that put at once: a put is conditional, and the second one takes the first one's
 * index into its own and puts both. So no name is lost, and members agree after that: one whose
 * index is as it was when it last agreed takes the newer one whole.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    ERR_NOMEM at the start; those of the bucket and of damaged objects are logged,
 *            counted, and tried again.
 * Ownership: bucket and service outlive it.
 * Threads:   any; one of its own.
 */
#ifndef TSDB_DEBUGINFO_SHARED_SHARED_H
#define TSDB_DEBUGINFO_SHARED_SHARED_H

#include "tsdb/bucket/bucket.h"
#include "tsdb/debuginfo/service/debuginfo.h"

#define SHARED_SYMBOLS_LIST_NS (INT64_C(30) * 1000000000)
#define SHARED_SYMBOLS_LOOK_NS (INT64_C(1) * 1000000000)
#define SHARED_SYMBOLS_KEYS_MAX 100000u /* others are passed over */
#define SHARED_SYMBOLS_FILE_BYTES_MAX (UINT64_C(256) << 20) /* larger ones stay where they are */

struct shared_symbols_options {
	struct bucket *bucket;
	struct debuginfo *debuginfo;
	int64_t list_ns, look_ns; /* 0: those above */
};

struct shared_symbols;
MUST_CHECK enum err_code shared_symbols_open(
	const struct shared_symbols_options *o, struct shared_symbols **out, struct err *err);
/* Waits for a call of the bucket that is under way. NULL is fine. */
void shared_symbols_close(struct shared_symbols *s);
/* The bucket has it, and it is here now. Where it says no, the thread looks again with each list.
 */
bool shared_symbols_fetch(struct shared_symbols *s, const struct debuginfo_id *id);

#endif
