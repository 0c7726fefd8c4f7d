/*
 * Restore: a data directory made of what a manifest names, after its disk was lost or another
 * directory had the shard.
 *
 * Small files are copied, windows are made of their segments, blocks become stubs whose tables stay
 * in the bucket (tsdb/catalog/remote.h), and the inventory is written. An object that is missing or
 * is not the one that the manifest names becomes an entry on the list of losses, which has its key;
 * all else is restored. What readers pass over (manifest_hidden) becomes such an entry too.
 *
 * Data that is there moves to a folder replaced-TIME of the directory first, and older folders of
 * that kind are removed: what the directory had and never put stays there until the next time.
 *
 * What the shard had acknowledged and not put went with the old directory: shard.h notes that loss.
 *
 * A file `restoring` is in the directory from the beginning until the manifest says that the shard
 * takes profiles (publisher_begin). While it is there, the restored data has acknowledged nothing.
 * The file says that data is being moved, or that the directory is not whole, or that it is. If a
 * crash or an error ended a restore before the last, the next one moves the rest or empties what
 * the first one made, and begins again.
 *
 * Units:     bytes.
 * Errors:    of the bucket, but for those that are losses; ERR_IO, ERR_NOMEM; ERR_CANCELED;
 *            ERR_UNSUPPORTED: a segment or file of a later version.
 * Ownership: nothing is kept.
 * Threads:   one; no database has the directory open.
 */
#ifndef TSDB_CLUSTER_RESTORE_H
#define TSDB_CLUSTER_RESTORE_H

#include <stdatomic.h>

#include "tsdb/cluster/manifest.h"

struct store_ops;
struct starting;

#define RESTORE_MARKER "restoring"
/* Comes after "head/<start>" in a loss: the window lacks its segments from one on. The publisher
 * replaces all of them by a snapshot, so that readers can go on. */
#define RESTORE_LACKS " segments"

struct restore_options {
	struct bucket *bucket;
	const struct manifest *manifest;
	const char *shard; /* of the keys */
	const char *dir; /* made where it is not there */
	struct fs *fs; /* NULL: fs_posix */
	const struct store_ops *store; /* NULL: LevelDB */
	const atomic_bool *canceled; /* set by any thread; NULL: never */
	struct starting *waiting; /* base/self/starting.h; NULL: nobody asks */
};

struct restore_done {
	uint64_t windows, segments, blocks, bytes; /* bytes: that were read */
	uint64_t lost; /* objects */
};

/* The directory has no data, or only what a restore left that did not make it whole. */
bool restore_is_due(const char *dir);
bool restore_has_marker(const char *dir);
/* The marker is there, or no data: the directory has acknowledged nothing of what it has. */
bool restore_is_idle(const char *dir);
/* Sets aside what is there and makes the directory whole; the marker stays. Also of a manifest that
 * names nothing. */
MUST_CHECK enum err_code restore_run(
	const struct restore_options *o, struct restore_done *done, struct err *err);
/* The marker goes: from now on the directory may take profiles. */
MUST_CHECK enum err_code restore_end(struct fs *fs, const char *dir, struct err *err);

/*
 * For a directory that is whole: removes stubs (tsdb/catalog/remote.h) that the manifest does not
 * name and that, by their time, the caretaker dropped while the shard was gone (caretaker.h). They
 * leave the inventory first, as by retention, so they are no loss. *n: how many.
 */
MUST_CHECK enum err_code forget_dropped(
	struct fs *fs, const char *dir, const struct manifest *m, size_t *n, struct err *err);

/* ---- aside.c: data that moves to a folder ---- */

#define ASIDE_PREFIX "replaced-"
#define ASIDE_NAME_BYTES 64u

extern const char *const restore_made[]; /* files and folders of a directory's data; ends in NULL */

/* Notes in the marker that data is to be moved, and where. */
MUST_CHECK enum err_code aside_begin(struct fs *fs, const char *dir, const char *marker,
	char out[ASIDE_NAME_BYTES], struct err *err);
/* The marker says so. */
bool aside_is_under_way(const char *marker, char out[ASIDE_NAME_BYTES]);
/* Moves what has not moved yet; then folders of earlier times go. */
MUST_CHECK enum err_code aside_move(
	struct fs *fs, const char *dir, const char *name, struct err *err);

#endif
