/*
 * A store, the inside: opening, writing and single records (store.c), iterators (store_iter.c),
 * repairs (store_repair.c).
 *
 * Errors, Threads: as store.h.
 */
#ifndef TSDB_STORE_STORE_INTERNAL_H
#define TSDB_STORE_STORE_INTERNAL_H

#include <leveldb/c.h>

#include "tsdb/store/store.h"

struct store {
	leveldb_t *db;
	leveldb_options_t *options;
	leveldb_readoptions_t *read;
	leveldb_writeoptions_t *write;
	const struct store_ops *ops;
	char *dir;
	uint64_t identity;
	struct store_shadow *shadow; /* NULL: it writes to the disk */
};

struct store_snapshot {
	const leveldb_snapshot_t *s;
};

/* LevelDB's options of every store; cache NULL: none. */
leveldb_options_t *store_make_options(struct store_cache *cache);
/* Takes LevelDB's message over; msg NULL: ERR_OK. */
MUST_CHECK enum err_code store_error_of(char *msg, const char *dir, struct err *err);
/* The value in a record, without its checksum, which is compared. ERR_CORRUPT. */
MUST_CHECK enum err_code store_open_record(
	const struct store *s, struct str key, struct str record, struct str *value, struct err *err);

#endif
