/*
 * Disk: a file system that can lose its power, fail and fill up, over a real directory.
 *
 * It is a struct fs for our own files and an Env for LevelDB's. Whatever is written goes to the
 * real directory at once, so that every reader sees it; beside that the disk keeps what would be
 * there after a power cut. What it takes as durable is the least that ext4, XFS and btrfs promise:
 *
 * - A file's content is durable up to its last sync. What was written since may survive in part: a
 *   prefix of it, cut at 512-byte sectors, and sectors of it may hold other bytes. Nothing that was
 *   synced changes.
 * - A sync that failed leaves what it was to write out lost for good, though it can still be read:
 *   the next sync says OK and does not make it durable (what Linux does with a page it could not
 *   write), except where it was written anew.
 * - A directory's entries (made, renamed, removed) are durable when the directory was synced. What
 *   happened in it since survives in part too: a prefix, in the order it was done. Directories know
 *   nothing of each other: a new directory is durable when its parent was synced, and nothing in it
 *   survives without it.
 * - Syncing a file makes its own entry durable, with what happened in its directory before. LevelDB
 *   relies on it: it syncs a directory only together with a MANIFEST.
 * - A rename is one step, also between two directories: it is durable with the one it goes to.
 *
 * Files that the disk did not see being written are durable: those that were there when it was
 * opened, and those written past it.
 *
 * Operations are counted: open for writing, write, sync, rename, unlink, mkdir, rmdir, sync of a
 * directory. Reads are not.
 *
 * Ownership: disk_close ends what disk_open gave, after every database on it was closed.
 * Threads:   any number.
 */
#ifndef TESTS_TSDB_DISK_H
#define TESTS_TSDB_DISK_H

#include "base/fs.h"
#include "tsdb/store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct disk;

struct disk *disk_open(const char *dir); /* what is there is durable */
void disk_close(struct disk *d); /* NULL is fine; the directory stays */
struct fs *disk_fs(struct disk *d);
const struct store_ops *disk_store(struct disk *d);
uint64_t disk_bytes(struct disk *d); /* of all files it has */

/* ---- power ---- */

/* Every operation from now on fails. */
void disk_power_cut(struct disk *d);
/* The nth operation from now on (1: the next) is the first to fail; it may be done in part. */
void disk_power_cut_at(struct disk *d, uint64_t nth);
bool disk_is_cut(struct disk *d);
/* The real directory gets what is durable and, by the seed, part of what is not; then the power is
 * back. Nothing may be open. */
void disk_restore(struct disk *d, uint64_t seed);

/* ---- faults ---- */

enum disk_kind {
	DISK_OPEN,
	DISK_WRITE,
	DISK_SYNC,
	DISK_RENAME,
	DISK_UNLINK,
	DISK_MKDIR,
	DISK_RMDIR,
	DISK_SYNC_DIR,
	DISK_KINDS
};
extern const char *const disk_kind_names[DISK_KINDS];

enum disk_how {
	DISK_ONCE = 0,
	DISK_FROM_THEN_ON = 1,
	DISK_TORN = 2, /* a write: half of it is done before it fails */
};

uint64_t disk_done(struct disk *d, enum disk_kind kind); /* operations so far */
/* The nth operation of the kind from now on (1: the next) fails. One such fault at a time; nth 0:
 * none. */
void disk_fail(struct disk *d, uint64_t nth, enum disk_kind kind, unsigned how);
uint64_t disk_failed(struct disk *d); /* operations that failed for the last one */
/* So many bytes can be written more; what is removed gives its bytes back. UINT64_MAX: no limit. */
void disk_full(struct disk *d, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
