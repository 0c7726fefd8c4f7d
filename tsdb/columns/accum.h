/*
 * Accumulator: exact sums of one column over many rows of one partition, a cell per stack, or per
 * stack and sample label set.
 *
 * Without label sets it is an array indexed by node id, so adding a row is an array add. Sums are
 * exact: 64 bit with overflow detected, 128 bit for weighted sums (a gauge's value x interval).
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT ("sum exceeds 64 bits").
 * Ownership: accum_open hands *out to the caller; accum_close ends it.
 * Threads:   one at a time; two accumulators over the same partition can be filled in parallel and
 * merged.
 */
#ifndef TSDB_COLUMNS_ACCUM_H
#define TSDB_COLUMNS_ACCUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct accum;
struct partition;

enum accum_flags {
	ACCUM_BY_LABELS = 1, /* cells per (stack, label set) */
	ACCUM_WEIGHTED = 2, /* rows are multiplied by a weight; 128-bit sums */
};

MUST_CHECK enum err_code accum_open(
	struct partition *p, unsigned flags, struct accum **out, struct err *err);
void accum_close(struct accum *a); /* NULL is fine */

/* n cells at once: stacks[i], label_sets[i] (NULL: all 0), values[i] x weight. */
MUST_CHECK enum err_code accum_add(struct accum *a, const uint32_t *stacks,
	const uint32_t *label_sets, const int64_t *values, size_t n, int64_t weight, struct err *err);
/* The same with values[i] x factor, which is 2^56 at most; bytes are below 2^7. */
MUST_CHECK enum err_code accum_add_bytes(struct accum *a, const uint32_t *stacks,
	const uint32_t *label_sets, const unsigned char *values, uint64_t factor, size_t n,
	int64_t weight, struct err *err);
/* The same with values that have their weights already; only for ACCUM_WEIGHTED. */
MUST_CHECK enum err_code accum_add_wide(struct accum *a, const uint32_t *stacks,
	const uint32_t *label_sets, const __int128 *values, size_t n, struct err *err);
MUST_CHECK enum err_code accum_merge(struct accum *into, const struct accum *from, struct err *err);

/*
 * A value below 0 was added: where cells are not by label set, some may have cancelled out. Of
 * those by label set only what has none counts.
 */
bool accum_has_negative(const struct accum *a);

struct accum_cell {
	uint32_t stack, label_set;
	__int128 value;
};

/* Cells that are not zero, ascending by (stack, label_set): accum_seal once, then next until false.
 */
MUST_CHECK enum err_code accum_seal(struct accum *a, struct err *err);
bool accum_next(const struct accum *a, size_t *at, struct accum_cell *out);
size_t accum_cells_n(const struct accum *a); /* upper bound for arrays, after accum_seal */
size_t accum_bytes(const struct accum *a);

/*
 * Cells without weights that are not by label set, as they lie: page i has the stacks from
 * i * ACCUM_PAGE on. NULL: nothing was added to any of them.
 */
#define ACCUM_PAGE_LOG2 11
#define ACCUM_PAGE (1u << ACCUM_PAGE_LOG2)
size_t accum_pages_n(const struct accum *a);
int64_t *accum_page(const struct accum *a, size_t i);
int64_t *accum_page_make(struct accum *a, size_t i); /* NULL: out of memory */
void accum_clear(struct accum *a); /* as if nothing had been added */

#endif
