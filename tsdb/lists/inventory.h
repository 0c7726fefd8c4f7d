/*
 * Inventory: the list of windows and blocks that a data directory must have, kept in two files. An
 * entry without its directory is a loss. Without this list nobody would notice that a directory was
 * removed: answers would only be smaller.
 *
 * Changes are ordered so that after a crash it never lists something that was rightly removed:
 *
 *     a window is made       its directory is synced; then it is listed; then it takes rows;
 *     a block replaces       the block is renamed into place and synced; then it is listed. Until
 *     others                 then its `heads` and `sources` say what it replaces;
 *     something is dropped   it leaves the list; then its files are removed.
 *
 * So an entry without a directory is a loss, unless a block replaces it; a directory without an
 * entry is added.
 *
 * The files are overwritten in place, one after the other, each synced, and have spare bytes at the
 * end: an entry can be removed when the disk is full. A torn write leaves the other file.
 *
 * Units:     nanoseconds since 1970, (min, max].
 * Errors:    ERR_IO, ERR_NOMEM: the change holds in memory, and the next call that writes writes
 *            it; ERR_UNSUPPORTED: a later version's file.
 * Ownership: inventory_open hands *out to the caller.
 * Threads:   any.
 * Source:    tsdb/FORMAT.md, "Inventory".
 */
#ifndef TSDB_LISTS_INVENTORY_H
#define TSDB_LISTS_INVENTORY_H

#include "tsdb/block/block.h"

#define INVENTORY_MAX (1u << 20)

struct inventory_entry {
	struct ulid ulid; /* empty: a window */
	int64_t min_ns, max_ns; /* a window is named by min_ns */
	bool raw; /* a block has rows.ldb */
	bool deleted; /* ranges of it are deleted: it has a file of them */
};

enum inventory_found {
	INVENTORY_NONE, /* no file */
	INVENTORY_LOST, /* none that can be read */
	INVENTORY_READ
};

struct inventory;

/* read_only: nothing is ever written. */
MUST_CHECK enum err_code inventory_open(struct fs *fs, const char *dir, bool read_only,
	struct inventory **out, enum inventory_found *found, struct err *err);
void inventory_close(struct inventory *inventory); /* NULL is fine */
/* Windows, then blocks, each ascending; a copy in the arena. */
MUST_CHECK enum err_code inventory_list(struct inventory *inventory, struct arena *a,
	struct inventory_entry **out, size_t *n, struct err *err);
/* Copies the entry of the block or window that `e` names; false: there is none. */
bool inventory_find(
	struct inventory *inventory, const struct inventory_entry *e, struct inventory_entry *out);
uint64_t inventory_generation(struct inventory *inventory); /* counts writes */

/* Removes `out` and adds or replaces `in`, in one step. Durable on ERR_OK. */
struct inventory_change {
	const struct inventory_entry *out, *in;
	size_t out_n, in_n;
};
MUST_CHECK enum err_code inventory_change(
	struct inventory *inventory, const struct inventory_change *c, struct err *err);
/* Writes the files again if a write failed before or the two differ. */
MUST_CHECK enum err_code inventory_save(struct inventory *inventory, struct err *err);

struct inventory_entry inventory_of_block(const struct block_meta *m, bool deleted);

/* Writes a new inventory in `dir`. */
MUST_CHECK enum err_code inventory_write(struct fs *fs, const char *dir,
	const struct inventory_entry *entries, size_t n, struct err *err);
/* ERR_CORRUPT, ERR_UNSUPPORTED; *entries in the arena. */
MUST_CHECK enum err_code inventory_decode(struct str bytes, const char *path, struct arena *a,
	uint64_t *generation, struct inventory_entry **entries, size_t *n, struct err *err);
void inventory_encode(
	uint64_t generation, const struct inventory_entry *entries, size_t n, struct buf *out);

#endif
