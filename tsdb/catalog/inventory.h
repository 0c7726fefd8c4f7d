/*
 * Inventory: which windows and blocks a data directory must have, kept in it twice. What it names
 * and is not there at a start is lost: without it a directory that somebody removed would leave
 * answers that are smaller and say nothing.
 *
 * It is changed so that no crash makes it name what is rightly gone:
 *
 *     a window is made      the directory first, synced; then here; then it takes rows;
 *     a block takes the     the block is renamed into place and synced; then here. Until then it
 *     place of others       says itself, in `heads` and `sources`, what it stands for;
 *     something goes        here first; then its files.
 *
 * So what is here and not there is lost, unless a block says that it stands for it; and what is
 * there and not here is taken in.
 *
 * The files are written in place, one after the other, each synced, with room for more behind what
 * counts: so something can go where the disk has no room. A write that is torn leaves the other.
 *
 * Units:     nanoseconds since 1970, (min, max].
 * Errors:    ERR_IO, ERR_NOMEM: the change holds in memory, and the next call that writes writes
 *            it; ERR_UNSUPPORTED: a later version's file.
 * Ownership: inventory_open hands *out to the caller.
 * Threads:   any.
 * Source:    tsdb/FORMAT.md, "Inventory".
 */
#ifndef TSDB_CATALOG_INVENTORY_H
#define TSDB_CATALOG_INVENTORY_H

#include "tsdb/block/block.h"

#define INVENTORY_MAX (1u << 20)

struct inventory_entry {
	struct ulid ulid; /* empty: a window */
	int64_t min_ns, max_ns; /* a window is named by min_ns */
	bool raw; /* a block has rows.ldb */
	bool deleted; /* ranges of it are deleted: there is a file that says which */
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
void inventory_close(struct inventory *v); /* NULL is fine */
/* Windows, then blocks, each ascending; a copy in the arena. */
MUST_CHECK enum err_code inventory_list(
	struct inventory *v, struct arena *a, struct inventory_entry **out, size_t *n, struct err *err);
/* *out: what it says of the block or window that `e` names; false: nothing. */
bool inventory_find(
	struct inventory *v, const struct inventory_entry *e, struct inventory_entry *out);
uint64_t inventory_generation(struct inventory *v); /* counts the times it was written */

/* In one step: `out` go, `in` come or take the place of what was named so. Durable on ERR_OK. */
struct inventory_change {
	const struct inventory_entry *out, *in;
	size_t out_n, in_n;
};
MUST_CHECK enum err_code inventory_change(
	struct inventory *v, const struct inventory_change *c, struct err *err);
/* Writes what could not be written before, or is not the same in both files. */
MUST_CHECK enum err_code inventory_save(struct inventory *v, struct err *err);

struct inventory_entry inventory_of_block(const struct block_meta *m, bool deleted);

/* A fresh one in `dir`. */
MUST_CHECK enum err_code inventory_write(struct fs *fs, const char *dir,
	const struct inventory_entry *entries, size_t n, struct err *err);
/* ERR_CORRUPT, ERR_UNSUPPORTED; *entries in the arena. */
MUST_CHECK enum err_code inventory_decode(struct str bytes, const char *path, struct arena *a,
	uint64_t *generation, struct inventory_entry **entries, size_t *n, struct err *err);
void inventory_encode(
	uint64_t generation, const struct inventory_entry *entries, size_t n, struct buf *out);

#endif
