/*
 * Store, the inside: what opening a store and repairing it share.
 */
#ifndef TSDB_STORE_STORE_INTERNAL_H
#define TSDB_STORE_STORE_INTERNAL_H

#include <leveldb/c.h>

#include "tsdb/store/store.h"

/* LevelDB's options of every store; cache NULL: none. */
leveldb_options_t *store_make_options(struct store_cache *cache);
/* Takes LevelDB's message over; msg NULL: ERR_OK. */
enum err_code store_error_of(char *msg, const char *dir, struct err *err);

#endif
