/*
 * Keeps the inventory (inventory.h) current, and compares it with the directory at a start.
 *
 * Errors:  ERR_IO: the inventory cannot be written.
 * Threads: any, but for the two of the start.
 */
#ifndef TSDB_CATALOG_INVENTORY_SYNC_H
#define TSDB_CATALOG_INVENTORY_SYNC_H

#include "tsdb/catalog/blocks.h"

MUST_CHECK enum err_code inventory_sync_open(struct db *db, struct err *err);
/* At the start, after all windows and blocks were opened: missing ones become losses. */
MUST_CHECK enum err_code inventory_sync_take(struct db *db, struct err *err);
/*
 * Call add when the window or block is durable. Call drop before any of its files is removed, and
 * hold db->blocks_files from the drop until it has left the database's list: a deletion notes what
 * it finds in that list, and would put the entry back.
 */
MUST_CHECK enum err_code inventory_sync_add_window(
	struct db *db, const struct window *w, struct err *err);
MUST_CHECK enum err_code inventory_sync_drop_window(
	struct db *db, int64_t start_ns, struct err *err);
/* For a window that is in no list because the start did not read it. */
MUST_CHECK enum err_code inventory_sync_drop_unread(
	struct db *db, int64_t start_ns, struct err *err);
MUST_CHECK enum err_code inventory_sync_drop_block(
	struct db *db, const struct ulid *ulid, struct err *err);
MUST_CHECK enum err_code inventory_sync_drop_raw(
	struct db *db, const struct db_block *b, struct err *err);
/*
 * Swaps n blocks and a window (NULL: none) for `by`. A failed write is not an error, because the
 * meta.json of `by` names what it replaced. by NULL: entries are only removed, and a failed write
 * is an error.
 */
MUST_CHECK enum err_code inventory_sync_swap(struct db *db, struct db_block *const *olds, size_t n,
	const struct window *w, const struct db_block *by, struct err *err);
/* Call after ranges of a block (NULL: of the window) were deleted, when their file is durable. */
void inventory_sync_note_deleted(struct db *db, const struct db_block *b, const struct window *w);

#endif
