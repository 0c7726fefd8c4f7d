/*
 * Rollup table: cells by key, in the order they came, with a sum each in any number of columns.
 *
 * Errors:    false is out of memory; the table stays as it was.
 * Ownership: all zero is an empty table; rollup_table_release frees what it has.
 * Threads:   one at a time.
 */
#ifndef TSDB_ROLLUP_ROLLUP_TABLE_H
#define TSDB_ROLLUP_ROLLUP_TABLE_H

#include "tsdb/rollup/rollup_cells.h"

struct rollup_table {
	uint64_t *keys; /* stack << 32 | label set */
	uint32_t n, cap;
	uint32_t *slots; /* index + 1 */
	size_t slots_n;
	int128 **columns; /* of cap each */
	uint32_t columns_n, columns_cap;
};
void rollup_table_release(struct rollup_table *t);
void rollup_table_clear(struct rollup_table *t);
bool rollup_table_column(struct rollup_table *t); /* one more, all 0; false: out of memory */
/* Finds the cells of these keys and adds the missing ones. sets NULL: all 0. */
MUST_CHECK bool rollup_table_find(
	struct rollup_table *t, const uint32_t *stacks, const uint32_t *sets, uint32_t n, uint32_t *at);
bool rollup_table_is_zero(const struct rollup_table *t, uint32_t i); /* in all columns */
/* Cells that are not 0 in all columns, ascending by key. *order: their places in the table; both
 * arrays are malloc'ed. */
MUST_CHECK bool rollup_table_sort(
	const struct rollup_table *t, uint64_t **keys, uint32_t **order, uint32_t *n);

#endif
