/*
 * Store: one LevelDB, with a second checksum on every record.
 *
 * Why a second checksum: LevelDB's repair reads its logs without verifying them, and an iterator
 * passes silently over a damaged page. A record carries the hash of its key and value, so only
 * records that were put come out, however the store was salvaged; missing ones show in the status.
 * The hash begins with the store's identity, a random number: so a file of another store in this
 * one's place is refused too.
 *
 * Errors:    ERR_CORRUPT (LevelDB says so, or a record's checksum), ERR_IO (all else that LevelDB
 *            says), ERR_NOMEM.
 * Ownership: snapshots and iterators end before their store; what an iterator shows lives until its
 *            next step.
 * Threads:   a store by any number; batches and iterators by one at a time.
 */
#ifndef TSDB_STORE_STORE_H
#define TSDB_STORE_STORE_H

#include "base/err.h"
#include "base/str.h"

struct fs;
struct store;
struct store_batch;
struct store_snapshot;
struct store_iter;

/* Shared by all stores of a database: a cache of pages within a budget. */
struct store_cache;
struct store_cache *store_cache_open(size_t bytes);
void store_cache_close(struct store_cache *c);
void *store_cache_leveldb(struct store_cache *c); /* the leveldb::Cache in it, for tables; lent */

/*
 * Operations that tests make fail. The real ones are store_leveldb; those of tests refuse batches,
 * before or after they reach the disk.
 */
struct store_ops {
	enum err_code (*open)(const struct store_ops *ops, struct store *s, struct err *err);
	enum err_code (*write)(
		const struct store_ops *ops, struct store *s, struct store_batch *b, struct err *err);
	void *env; /* a leveldb_env_t * that store_leveldb's open uses; NULL: store_env */
};
void *store_env(void); /* the system's files, read by pread; lent */
/* store_shadow.cc: an env that writes into memory over another one. */
struct store_shadow;
struct store_shadow *store_shadow_open(void *env); /* NULL: out of memory */
void *store_shadow_env(struct store_shadow *s);
void store_shadow_close(struct store_shadow *s); /* NULL is fine */
extern const struct store_ops store_leveldb;

/* Creates the store if it is missing. ops NULL: store_leveldb. */
MUST_CHECK enum err_code store_open(const char *dir, struct store_cache *cache,
	const struct store_ops *ops, struct store **out, struct err *err);
/* The same for a store that can be made again, one of many: writes do not wait for the disk, and
 * few of them are kept in memory. */
MUST_CHECK enum err_code store_open_copy(const char *dir, struct store_cache *cache,
	const struct store_ops *ops, struct store **out, struct err *err);
/* Opens an existing store on a full disk: nothing is written to the disk, and all puts are lost
 * when it is closed. */
MUST_CHECK enum err_code store_open_shadow(const char *dir, struct store_cache *cache,
	const struct store_ops *ops, struct store **out, struct err *err);
/* True if the error of an open or a write says that the disk is full. */
bool store_is_full(const struct err *err);
void store_close(struct store *s); /* NULL is fine */
/* The identity that records read from now on must have; 0 at first. */
void store_set_identity(struct store *s, uint64_t identity);
const char *store_dir(const struct store *s);
/* Checks that each table is the one that MANIFEST names: its size, its first and last key. LevelDB
 * opens a table only when it reads it, and accepts any table with the name. ERR_CORRUPT names a
 * wrong table, or one whose end cannot be read. */
MUST_CHECK enum err_code store_check_tables(struct store *s, struct err *err);
char *store_property(struct store *s, const char *name); /* LevelDB's; free() it; NULL: none */
/*
 * Repairs a closed store that does not open; it keeps all that could be read. What is no table of a
 * store, whatever its name, goes to DIR/lost first. Until store_end_repair the directory says that
 * it was repaired, also after a crash: what is missing may be on no list yet.
 */
MUST_CHECK enum err_code store_repair(const char *dir, struct err *err);
bool store_was_repaired(const char *dir);
MUST_CHECK enum err_code store_end_repair(struct fs *fs, const char *dir, struct err *err);
MUST_CHECK enum err_code store_set_foreign_aside(const char *dir, struct err *err);
/* ERR_CORRUPT: a log or table has a name at which LevelDB would abort. */
MUST_CHECK enum err_code store_check_names(const char *dir, struct err *err);

struct store_batch *store_batch_open(void); /* NULL: out of memory */
void store_batch_close(struct store_batch *b);
void store_batch_clear(struct store_batch *b);
void store_batch_set_identity(struct store_batch *b, uint64_t identity); /* of what is put then */
/* The value gets its checksum appended. */
void store_batch_put(struct store_batch *b, struct str key, struct buf *value);
/* The same, and a copy for a second place: key and record, each as a string with its length in
 * front, one after the other. */
void store_batch_put_twice(struct store_batch *b, struct str key, struct buf *value);
struct str store_batch_copies(const struct store_batch *b);
void store_batch_put_record(struct store_batch *b, struct str key, struct str record);
/* A record, as a copy has it, with its key: the value in it. ERR_CORRUPT: its checksum. */
MUST_CHECK enum err_code store_record_value(
	struct str key, struct str record, uint64_t identity, struct str *value, struct err *err);
/* The same of a record whose checksum was compared before. */
struct str store_record_known(struct str record);
void store_batch_append(struct store_batch *to, const struct store_batch *from);
size_t store_batch_bytes(const struct store_batch *b);
/* Each put, in order: key and record. */
typedef void (*store_put_fn)(void *ctx, struct str key, struct str record);
void store_batch_each(const struct store_batch *b, store_put_fn fn, void *ctx);
/* Appends the checksum: the value becomes a record. */
void store_record_seal(struct str key, struct buf *value, uint64_t identity);
/* All of it or nothing, synced. After an error it is not known what was stored: close, reopen, and
 * compare. */
MUST_CHECK enum err_code store_write(struct store *s, struct store_batch *b, struct err *err);

struct store_snapshot *store_snapshot_open(struct store *s);
void store_snapshot_close(struct store *s, struct store_snapshot *snap);

/* snap NULL: as it is now. NULL: out of memory. */
struct store_iter *store_iter_open(struct store *s, const struct store_snapshot *snap);
/* The same; pages are read once and not kept in the cache. */
struct store_iter *store_scan_open(struct store *s, const struct store_snapshot *snap);
void store_iter_close(struct store_iter *it);
void store_iter_seek(struct store_iter *it, struct str key); /* the first at or after it */
void store_iter_seek_before(struct store_iter *it, struct str key); /* the last before it */
void store_iter_next(struct store_iter *it);
bool store_iter_valid(const struct store_iter *it);
struct str store_iter_key(const struct store_iter *it);
struct str store_iter_record(const struct store_iter *it); /* the value with its checksum */
/* ERR_CORRUPT: this record's checksum is wrong; the iterator can go on. */
MUST_CHECK enum err_code store_iter_value(
	const struct store_iter *it, struct str *out, struct err *err);
/* ERR_OK, or the first damage that was passed over. */
MUST_CHECK enum err_code store_iter_status(const struct store_iter *it, struct err *err);

/* ERR_NOT_FOUND; *out is appended to. */
MUST_CHECK enum err_code store_get(
	struct store *s, struct str key, struct buf *out, struct err *err);

#endif
