/*
 * The kind of a name: a name is either of profiles or of numbers, in the whole database.
 *
 * Errors:  ERR_INVALID: the name is of the other kind; ERR_NOMEM.
 * Threads: any; takes the locks of the series index and of the list of blocks.
 */
#ifndef TSDB_CATALOG_NAME_KIND_H
#define TSDB_CATALOG_NAME_KIND_H

#include "tsdb/series/series.h"

struct db;

/* Looks for the name of these labels among the series of the head, then in the blocks. */
MUST_CHECK enum err_code name_kind_check(
	struct db *db, struct labels labels, enum series_kind wanted, struct err *err);

#endif
