/*
 * The file of ids: numbers that are never given again.
 *
 * Errors:  ERR_IO. Threads: any (db->ids_lock).
 * Source:  tsdb/FORMAT.md, "ids".
 */
#ifndef TSDB_CATALOG_IDS_H
#define TSDB_CATALOG_IDS_H

#include "base/err.h"

struct db;

MUST_CHECK enum err_code ids_load(struct db *db, struct err *err);
MUST_CHECK enum err_code ids_save(struct db *db, struct err *err);

#endif
