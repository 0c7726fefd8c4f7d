/*
 * What must be there: the inventory (inventory.h) kept up, and compared with what a start finds.
 *
 * Errors:  ERR_IO: the inventory cannot be written.
 * Threads: any, but for the two of the start.
 */
#ifndef TSDB_CATALOG_STOCK_H
#define TSDB_CATALOG_STOCK_H

#include "tsdb/catalog/blocks.h"

MUST_CHECK enum err_code stock_open(struct db *db, struct err *err);
/* At the start, when all that is there was opened: what is missing becomes a loss. */
MUST_CHECK enum err_code stock_take(struct db *db, struct err *err);
/* What has come, once it is durable; what is to go, before any of its files does. */
MUST_CHECK enum err_code stock_add_window(struct db *db, const struct window *w, struct err *err);
MUST_CHECK enum err_code stock_drop_window(struct db *db, int64_t start_ns, struct err *err);
MUST_CHECK enum err_code stock_drop_block(struct db *db, const struct ulid *ulid, struct err *err);
MUST_CHECK enum err_code stock_drop_raw(struct db *db, const struct db_block *b, struct err *err);
/* `by` takes the place of n blocks and a window (NULL: of none). It names them itself, so nothing
 * is lost where this cannot be written; by NULL: nothing takes it, and that is an error then. */
MUST_CHECK enum err_code stock_swap(struct db *db, struct db_block *const *olds, size_t n,
	const struct window *w, const struct db_block *by, struct err *err);
/* Ranges of a block (NULL: of the window) were deleted, and the file that says so is durable. */
void stock_note_deleted(struct db *db, const struct db_block *b, const struct window *w);

#endif
