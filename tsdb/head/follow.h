/*
 * Following: windows of another database's head, out of its segments.
 *
 * A database opened with db_options.follower takes no rows of its own. Its directory is a cache,
 * emptied when it is opened. Queries run while segments come: no query sees a row whose series or
 * symbols it lacks; it may see a part of a segment's rows while they are being put in.
 *
 * Units:   times in nanoseconds since 1970.
 * Errors:  ERR_CORRUPT: the segment is damaged, or not the one that was asked for; ERR_NOT_FOUND:
 *          batches before it are missing, so it does not fit; ERR_EXISTS: a series has another id
 *          in a window that is still there, try again when that one is gone; ERR_UNSUPPORTED,
 *          ERR_LIMIT, ERR_IO, ERR_NOMEM. After an error the window is as it was, or has some of
 *          the segment: it can be followed on.
 * Threads: one at a time follows a database; any number of queriers meanwhile.
 * Source:  tsdb/FORMAT.md, "Segments".
 */
#ifndef TSDB_HEAD_FOLLOW_H
#define TSDB_HEAD_FOLLOW_H

#include "tsdb/segments/segments.h"

struct db;

/* The last batch of the window that is there; 0: the window is not, or its disk failed, so that it
 * is to be followed from its first segment again (queries see the old one until then). */
uint64_t head_followed(struct db *db, int64_t start_ns, uint64_t identity);

/*
 * Puts a segment into its window, which is made if it is not there. *of: as the manifest has the
 * segment; what the bytes say must be the same. Batches that are there are passed over. A segment
 * that begins with batch 1 and has more than the window is a snapshot: the window is made anew of
 * it, and takes the place of what was there (under whatever identity) in one step. deleted: the
 * bytes of the window's file of deleted ranges; empty: it has none, or they are known.
 */
MUST_CHECK enum err_code head_follow(
	struct db *db, const struct segment *of, struct str bytes, struct str deleted, struct err *err);

/* Ranges that were deleted since. ERR_NOT_FOUND: no such window. */
MUST_CHECK enum err_code head_follow_deleted(
	struct db *db, int64_t start_ns, uint64_t identity, struct str bytes, struct err *err);

/* The window is not seen by new queriers. */
void head_follow_drop(struct db *db, int64_t start_ns, uint64_t identity);

/* Frees windows that left the list and that no querier uses any more. The others do so, too. */
void head_follow_sweep(struct db *db);

/*
 * ---- a directory that was lost ----
 *
 * Makes the store of a window in a data directory that no database has open, out of its segments in
 * order. Until head_restore_end nothing of it is seen by db_open; afterwards it is as if the
 * database had been closed after the last of those batches. A file "head/<start>.deleted" and the
 * inventory are the caller's to write.
 */
struct head_restore;
struct store_ops;
/* ERR_EXISTS: the window is there. store NULL: LevelDB. */
MUST_CHECK enum err_code head_restore_open(struct fs *fs, const struct store_ops *store,
	const char *dir, const struct segment *of, struct head_restore **out, struct err *err);
MUST_CHECK enum err_code head_restore_add(
	struct head_restore *r, const struct segment *of, struct str bytes, struct err *err);
/*
 * Batches behind those that were added, up to `last`, are lost: further ones are numbered from
 * there. Something was added before.
 */
MUST_CHECK enum err_code head_restore_pass(struct head_restore *r, uint64_t last, struct err *err);
/* Synced. Closes it in any case. ERR_NOT_FOUND: nothing was added. */
MUST_CHECK enum err_code head_restore_end(struct head_restore *r, struct err *err);
void head_restore_close(struct head_restore *r); /* gives up; NULL is fine */

#endif
