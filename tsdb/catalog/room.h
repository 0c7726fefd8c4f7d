/*
 * Room: whether the disk has bytes and inodes for more rows, and errors that say which of them is
 * missing. Inodes run out if a file system has many small files.
 *
 * Units:   bytes; inodes are files and directories that can still be made.
 * Errors:  ERR_UNAVAILABLE names what is free, where, what is needed, and the flag.
 * Threads: any.
 */
#ifndef TSDB_CATALOG_ROOM_H
#define TSDB_CATALOG_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct db;

#define DB_REOPEN_BYTES (16u << 20) /* free space that opening a store again wants */
/* A window and a block are a dozen files each, and LevelDB makes new ones before it removes old
 * ones. Without a reserve of bytes there is none of inodes. */
#define DB_FREE_INODES 64u

struct disk_room {
	uint64_t bytes, inodes; /* UINT64_MAX: the file system does not count inodes */
};

MUST_CHECK enum err_code room_look(const struct db *db, struct disk_room *out, struct err *err);
/* True if the room is too small to take rows; *why says what is missing. reopening: stores that
 * were opened on a full disk will be opened for writing, which needs more. */
bool room_lacks(const struct db *db, const struct disk_room *r, bool reopening, struct err *why);
/* An error of a write that found no room becomes ERR_UNAVAILABLE and says what is free; others stay
 * as they are. */
enum err_code room_explain(const struct db *db, enum err_code rc, struct err *err);

#endif
