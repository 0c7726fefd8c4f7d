/*
 * Numeric series in windows: their values, and batches of them in the commit queue.
 *
 * In a window each value is a record ('v'), and so is its series ('n'). In a block values are in
 * chunks in rollups.ldb, so that they stay when raw rows are dropped; numeric series come before
 * those of profiles, ascending by labels, without partition or group. Deleted ranges, postings and
 * names work as for other series.
 *
 * Errors:  as append.h.
 * Threads: number_batch_* are the commit thread's; the rest as its caller.
 * Source:  tsdb/FORMAT.md, "Numbers".
 */
#ifndef TSDB_HEAD_NUMBERS_H
#define TSDB_HEAD_NUMBERS_H

#include "tsdb/catalog/state.h"

struct number_batch;

#define KEY_NUMBER_SERIES 'n'
#define KEY_NUMBER 'v'
#define NUMBERS_BATCH_MAX (1u << 20) /* values of one append */

/* The values that wait in the queue for one window. */
void number_batch_close(struct number_batch *b);
void number_batch_count(const struct number_batch *b, struct window_count *c);
/* The i-th value; false: there are no more. */
bool number_batch_at(
	const struct number_batch *b, size_t i, const struct series **series, int64_t *ts_ns);
void number_batch_stored(struct db *db, const struct number_batch *b);
/* A value's record; ERR_CORRUPT. */
MUST_CHECK enum err_code number_decode(struct str bytes, double *out, struct err *err);

#endif
