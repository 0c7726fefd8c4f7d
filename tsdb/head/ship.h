/*
 * Shipping: what was committed to the head's windows, as files for a publisher to put elsewhere.
 *
 * With db_options.segments the commit thread writes each batch of a window into a file beside it,
 * before it acknowledges the batch. Batches of a window are numbered 1, 2, ... without gaps. The
 * publisher ends the files now and then, packs each (tsdb/segments/segments.h), puts it, and says
 * so. If the files do not follow what was put up to the window's last batch (a power cut, a full
 * disk, a damaged store, too many bytes waiting), the window wants a snapshot: one segment of all
 * that it has.
 *
 * A window's files outlive it: they stay until the publisher says that the window's block was put.
 *
 * Units:     times in nanoseconds since 1970; sizes in bytes.
 * Errors:    ERR_NOMEM, ERR_IO; ERR_NOT_FOUND: no such window; ERR_UNAVAILABLE: its store is being
 *            reopened, or db_options.segments is off.
 * Ownership: lists are in the caller's arena.
 * Threads:   one publisher; appends and queries go on meanwhile. Paths in a list stay until the
 *            publisher itself calls another of these functions for that window. Snapshots may be
 *            taken by another of its threads, not of a window whose files it is reading.
 * Source:    tsdb/FORMAT.md, "Segments".
 */
#ifndef TSDB_HEAD_SHIP_H
#define TSDB_HEAD_SHIP_H

#include "base/arena.h"
#include "base/err.h"

struct db;

/* A file of batches first to last, not packed. */
struct head_ship_file {
	const char *path;
	uint64_t first, last;
	uint64_t bytes;
};

struct head_ship_window {
	int64_t start_ns, end_ns;
	uint64_t identity;
	uint64_t last; /* the last batch that it has: once all below is put, it is all there */
	bool in_head; /* false: it was cut or dropped, and nothing more comes */
	bool snapshot_wanted; /* head_ship_snapshot, and no files are listed; only if in_head. Stays
						   * until head_ship_done says that one was put */
	const struct head_ship_file *files; /* ascending, without gaps between them */
	size_t files_n;
};

/*
 * Ends the files that are being written, and lists all windows that had a batch since the database
 * was opened, or had one then, ascending by time. *through_ns: each batch that was acknowledged
 * until then is in a file, or its window wants a snapshot; 0: not known yet. It does not move while
 * a store is opened again after a failed write.
 *
 * A window that is not in the head any more may lack batches without a snapshot being wanted: then
 * only its block has them all.
 */
MUST_CHECK enum err_code head_ship_end(struct db *db, struct arena *a,
	struct head_ship_window **out, size_t *n, int64_t *through_ns, struct err *err);

/*
 * Batches up to `last` of the window are put and named by the manifest: files with no others are
 * unlinked. Once after db_open and before the first head_ship_end, say so of each window that the
 * manifest names; what it does not name counts as not put.
 */
void head_ship_done(struct db *db, int64_t start_ns, uint64_t identity, uint64_t last);

/*
 * Writes all records of a snapshot of the window to `path`, packed, as batches 1 to *last; *bytes:
 * the file's size. Not synced. Further batches go to files again, and are kept until the snapshot
 * is put, however long that takes; if it fails another one is still wanted. It reads the whole
 * window; no lock is held meanwhile.
 */
MUST_CHECK enum err_code head_ship_snapshot(struct db *db, int64_t start_ns, uint64_t identity,
	const char *path, uint64_t *last, uint64_t *bytes, struct err *err);

/* The window's block is put, or the window was dropped: it is not listed again, and its files go.
 */
void head_ship_forget(struct db *db, int64_t start_ns, uint64_t identity);

/* Bytes of files that wait. */
uint64_t head_ship_bytes(struct db *db);

/* ---- the database ---- */

/* After the windows were opened. Without db_options.segments files of another time are removed. */
MUST_CHECK enum err_code ship_open(struct db *db, struct err *err);
/* After the commit thread ended and the publisher has. */
void ship_close(struct db *db);

#endif
