/*
 * Keys of a chunk that is written: the ids that its rows use, and where the cells of each go.
 *
 * A key is a (stack, label set) of any row; they ascend. Equal entries of a row stay apart: the key
 * is listed as often as it is in any row, and the k-th of a row goes to the k-th listing. Cells are
 * ordered by key, and those of a key by row.
 *
 * Ownership: the caller's struct; chunk_keys_release ends it, also after a failure.
 * Threads:   one.
 */
#ifndef TSDB_COLUMNS_CHUNK_KEYS_H
#define TSDB_COLUMNS_CHUNK_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "tsdb/columns/row.h"

struct chunk_keys {
	uint32_t n;
	size_t cells_n;
	bool labels; /* some have a label set */
	uint64_t *ids; /* stack << 32 | label set */
	size_t *starts; /* of keys, one more than these */
	uint32_t *places; /* of entries, in the order of rows: where the cell of each is */
	uint16_t *rows; /* of cells */
};

/* False: out of memory. Rows as chunk_encode takes them. */
MUST_CHECK bool chunk_keys_list(struct chunk_keys *k, const struct row *rows, uint32_t rows_n);
void chunk_keys_release(struct chunk_keys *k);

#endif
