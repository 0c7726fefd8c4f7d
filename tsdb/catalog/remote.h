/*
 * Blocks in a bucket: opened through db_options.remote, listed and pinned as those on the disk.
 *
 * A server with a data directory keeps a *stub* of such a block: its directory with `meta.json`,
 * the deleted ranges, and a file `remote` that names the key of the tables. Everything that may
 * change of a block is in its stub. So deletion, retention, joining and crashes work as for any
 * block. The publisher removes the tables in the bucket (db_options.published). A follower has no
 * stubs, since its directory is a cache: a list names its blocks.
 *
 * A block whose bucket does not answer is listed as unreadable: each answer that touches its time
 * has a warning, no window or joined block covers that time, and opening is tried again. It does
 * not count as lost.
 *
 * Units:     nanoseconds, (min, max].
 * Errors:    ERR_UNAVAILABLE, ERR_TIMEOUT: the bucket does not answer; ERR_CORRUPT, ERR_NOT_FOUND:
 *            the block differs from its description; ERR_UNSUPPORTED: no db_options.remote.
 * Ownership: arguments are copied.
 * Threads:   any, but for blocks_follow and blocks_retry: one at a time. All wait for the bucket,
 *            with no lock held but for the reading of what is cached.
 * Source:    tsdb/FORMAT.md, "Blocks in a bucket".
 */
#ifndef TSDB_CATALOG_REMOTE_H
#define TSDB_CATALOG_REMOTE_H

#include "tsdb/block/block.h"

struct db;
struct db_block;
struct db_querier;
struct unreadable;
struct window;

#define REMOTE_KEY_BYTES_MAX 512u

/* A block as it is in the bucket, as its publisher's list has it. */
struct remote_block {
	const char *key; /* of its directory: "shards/a/blocks/<ULID>" */
	struct ulid ulid;
	int64_t min_ns, max_ns;
	struct block_file rows, rollups, spare, meta; /* rows.bytes 0: no raw rows */
	bool meta_changed; /* the object is meta.json-HASH, 16 hexadecimal digits */
	struct block_file deleted; /* the object deleted-HASH; bytes 0: none */
};

/* ---- a server with a directory ---- */

/*
 * Reads the tables of a block in the bucket below `key` from now on; the caller has uploaded them
 * completely. The tables on the disk are removed with the last reader that has them open.
 * ERR_NOT_FOUND: the block is not, or no longer, on the disk. After an error nothing has changed.
 */
MUST_CHECK enum err_code blocks_swap_remote(
	struct db *db, const struct ulid *ulid, const char *key, struct err *err);
/*
 * Makes a stub in a directory `blocks` that no database has open. meta: the bytes of its meta.json;
 * deleted: of its deleted ranges, or empty. Everything is synced.
 */
MUST_CHECK enum err_code remote_write_stub(struct fs *fs, const char *blocks_dir,
	const struct ulid *ulid, const char *key, struct str meta, struct str deleted, struct err *err);

/* ---- a follower ---- */

/*
 * Replaces the list of blocks in the bucket by r, and takes these windows (by start) off their
 * list; queriers see both in one step. New blocks are opened; blocks that are not in r are removed;
 * changed ranges and a changed meta.json are read again. Blocks that cannot be opened are listed as
 * unreadable, with the reason. After an error nothing has changed. head_follow_sweep drops the
 * windows later.
 */
MUST_CHECK enum err_code blocks_follow(struct db *db, const struct remote_block *r, size_t n,
	const int64_t *windows, size_t windows_n, struct err *err);

/* ---- both ---- */

/* Tries to open blocks again whose bucket did not answer. */
void blocks_retry(struct db *db);
/* Calls fn for each block in the bucket that touches (min, max] and cannot be read, with the
 * reason. fn must not call the database. db->lock is held. */
typedef void (*blocks_tell_fn)(void *ctx, const char *text); /* NULL: no memory */
void blocks_tell_unreadable_locked(
	const struct db *db, int64_t min_ns, int64_t max_ns, blocks_tell_fn fn, void *ctx);
/* True if a block in a bucket has this epoch of this job, or an unreadable block may have it. */
bool blocks_have_remote_epoch(struct db *db, uint32_t job_id, uint32_t epoch);
/* The block's directory or stub on the disk; NULL: it has neither. */
const char *blocks_local_dir(const struct db_block *b);

/* ---- for the files of blocks in this room ---- */

/* A range source for one block: tables come from the bucket, meta.json from the stub or the object
 * that the list names. */
struct block_place {
	struct range_source source; /* first */
	struct range_source *of;
	const char *stub; /* a directory; NULL: none */
	bool meta_changed;
	uint64_t meta_hash;
};

/* Opens a block in the bucket. It is in no list yet, and its deleted ranges are not loaded. of
 * NULL: a stub. */
MUST_CHECK enum err_code remote_open_block(struct db *db, const char *key, const char *stub,
	const struct remote_block *of, struct db_block **out, struct err *err);
/* Opens a stub, whose meta.json has the sizes of the tables. */
MUST_CHECK enum err_code remote_open_stub(
	struct db *db, const char *stub, const char *key, struct db_block **out, struct err *err);
/* Reads the key from a stub's file; "": the directory is no stub. */
MUST_CHECK enum err_code remote_read_key(
	const char *dir, char key[REMOTE_KEY_BYTES_MAX + 1], struct err *err);
MUST_CHECK enum err_code remote_key_decode(
	struct str bytes, struct str of, char key[REMOTE_KEY_BYTES_MAX + 1], struct err *err);
/* Unlinks tables on the disk that the bucket has. */
void remote_unlink_tables(struct db *db, const char *dir);
/* Tells the range source that the block's objects will not be opened again. */
void remote_forget(struct db *db, const struct db_block *b);
void unreadable_free(struct unreadable *u);

#endif
