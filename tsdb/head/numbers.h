/*
 * Numeric series, the inside of db.h's: where they are in windows, blocks, cutting and joining.
 *
 * In a window a value is a record of its own ('v'), its series another ('n'); in a block they stand
 * in chunks in rollups.ldb, so that they stay when raw rows go, and their series come before those
 * of profiles, ascending by labels, without partition or group. Deleted ranges, postings and names
 * are those of all series.
 *
 * Errors:  as db.h.
 * Threads: number_batch_* are the commit thread's; the rest as its caller.
 * Source:  tsdb/FORMAT.md, "Numbers".
 */
#ifndef TSDB_HEAD_NUMBERS_H
#define TSDB_HEAD_NUMBERS_H

#include "tsdb/catalog/state.h"
#include "tsdb/columns/number_chunk.h"
#include "tsdb/head/keys.h"

struct number_batch;

#define KEY_NUMBER_SERIES 'n'
#define KEY_NUMBER 'v'
#define NUMBERS_BATCH_MAX (1u << 20) /* values of one append */

/* ERR_INVALID: the name is of the other kind, in the head or in some block. */
MUST_CHECK enum err_code numbers_check_name(
	struct db *db, struct labels labels, bool numeric, struct err *err);
/* What waits in the queue for one window. */
void number_batch_close(struct number_batch *b);
void number_batch_count(const struct number_batch *b, struct window_count *c);
/* The i-th value; false: there are no more. */
bool number_batch_at(
	const struct number_batch *b, size_t i, const struct series **series, int64_t *ts_ns);
void number_batch_stored(struct db *db, const struct number_batch *b);
/* A value's record; ERR_CORRUPT. */
MUST_CHECK enum err_code number_decode(struct str bytes, double *out, struct err *err);

#endif
