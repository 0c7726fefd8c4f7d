/*
 * Stored symbols: the symbols of a partition that a window's store has already. Each window stores
 * every symbol that its rows use, once, so that it needs no other window, and dropping it is
 * deleting its directory.
 *
 * stored_add finds all that a row uses and the store lacks. The record of these symbols goes into
 * the same batch as the row; if the batch is not queued, stored_rollback takes them back. A record
 * refers only to symbols of itself and of records with lower numbers: reading in that order finds
 * everything in place.
 *
 * Errors:  ERR_NOMEM; ERR_CORRUPT: a record cannot be read.
 * Threads: under the partition's lock; symbols_load_record while the partition has one user.
 * Source:  tsdb/FORMAT.md, "Symbols".
 */
#ifndef TSDB_SYMBOLS_STORED_H
#define TSDB_SYMBOLS_STORED_H

#include "tsdb/symbols/partition.h"

struct stored_symbols {
	struct stored_symbols *next;
	int64_t window_ns; /* start of the window */
	uint64_t generation; /* of commits, see commit_generation */
	uint32_t seq; /* number of the next record */
	uint32_t nodes; /* of them nodes */
	bool partition_stored; /* the window has the partition's own record */
	struct bits bits[SYM_KINDS]; /* by id */
};

/* Ids that one call of stored_add found, per kind. */
struct new_symbols {
	uint32_t *ids[SYM_KINDS], n[SYM_KINDS], cap[SYM_KINDS];
};

struct stored_symbols *stored_find(struct partition *p, int64_t window_ns);
MUST_CHECK enum err_code stored_open(
	struct partition *p, int64_t window_ns, struct stored_symbols **out, struct err *err);
void stored_drop(struct partition *p, int64_t window_ns); /* the window takes no more rows */
void stored_release_all(struct partition *p);

/* Notes all that this row uses as stored, and in *new what was not; *new is reused between calls
 * (new_symbols_release at the end). keys: stack << 32 | label set. */
MUST_CHECK enum err_code stored_add(struct partition *p, struct stored_symbols *s, uint32_t header,
	const uint64_t *keys, uint32_t n, struct new_symbols *new, struct err *err);
void stored_rollback(struct stored_symbols *s, const struct new_symbols *new);
void new_symbols_clear(struct new_symbols *new);
void new_symbols_release(struct new_symbols *new);
bool new_symbols_any(const struct new_symbols *new);

/* The record of new symbols. */
void symbols_encode(const struct partition *p, struct new_symbols *new, struct buf *out);
/*
 * Puts a record's symbols into the partition and notes them as stored (s may be NULL). A symbol
 * that cannot be used is left out, counted in *lost, and its reason is in *err; the others are
 * loaded. ERR_CORRUPT: the record itself cannot be read from some point on; ERR_EXISTS: an id has
 * two meanings.
 */
MUST_CHECK enum err_code symbols_load_record(struct partition *p, struct stored_symbols *s,
	struct str record, struct arena *scratch, uint64_t *lost, struct err *err);

#endif
