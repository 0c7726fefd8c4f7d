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

#endif
