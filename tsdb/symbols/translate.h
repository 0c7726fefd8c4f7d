/*
 * Translation: ids of one partition in another. Content is found there, or made; each id is looked
 * up once.
 *
 * Errors:    ERR_CORRUPT: the source lacks it; those of interning.
 * Ownership: both partitions outlive the translation.
 * Threads:   one at a time; each call locks the partition that is written.
 */
#ifndef TSDB_SYMBOLS_TRANSLATE_H
#define TSDB_SYMBOLS_TRANSLATE_H

#include "tsdb/symbols/partition.h"

/* Translates ids of one partition into those of another: content is found there, or made (each call
 * locks `to`, which is complete). Both are pinned. ERR_CORRUPT: `from` lacks it. */
struct translation;
MUST_CHECK enum err_code translation_open(
	struct partition *from, struct partition *to, struct translation **out, struct err *err);
void translation_close(struct translation *t); /* NULL is fine */
/* The translation is between these epochs; from now on it uses these tables of them. */
bool translation_is(struct translation *t, struct partition *from, struct partition *to);
MUST_CHECK enum err_code translate_stack(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err);
MUST_CHECK enum err_code translate_label_set(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err);
MUST_CHECK enum err_code translate_header(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err);

/* Arrays of the caller's, one element per entry. */
struct translated {
	uint64_t *keys, *keys_tmp; /* stack << 32 | label set; ascending */
	uint32_t *order, *order_tmp; /* where the entry was; those of one key stay in their order */
};
/* The ids of a row's entries. label_sets: NULL: all 0. */
MUST_CHECK enum err_code translate_entries(struct translation *t, const uint32_t *stacks,
	const uint32_t *label_sets, uint32_t n, struct translated *out, struct err *err);

#endif
