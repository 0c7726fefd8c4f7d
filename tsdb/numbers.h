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
#ifndef TSDB_NUMBERS_H
#define TSDB_NUMBERS_H

#include "tsdb/columns/number_chunk.h"
#include "tsdb/compact/builder.h"

#define KEY_NUMBER_SERIES 'n'
#define KEY_NUMBER 'v'
#define NUMBERS_BATCH_MAX (1u << 20) /* values of one append */

/* ---- number.c: appending ---- */

struct key key_number(uint32_t series, int64_t ts_ns);
bool key_parse_number(struct str key, uint32_t *series, int64_t *ts_ns);
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

/* ---- number_read.c ---- */

/* A value's record; ERR_CORRUPT. */
MUST_CHECK enum err_code number_decode(struct str bytes, double *out, struct err *err);
/* Some value of the series in (q->min_ns, q->max_ns] is there. */
bool numbers_in_window(struct db_querier *q, struct querier_source *s, uint32_t series);
MUST_CHECK enum err_code numbers_in_block(struct db_querier *q, struct querier_source *s,
	uint32_t series, const struct block_series *of, bool *has, struct err *err);

/* ---- number_cut.c ---- */

struct number_cut {
	struct series **series; /* of the window, ascending by labels */
	uint32_t *ids; /* in the block; UINT32_MAX: not there */
	size_t n;
	uint64_t left_out; /* damaged values */
	struct err first_left;
};
/* All numbers of a window, read by it, into the maker, before anything else. */
MUST_CHECK enum err_code numbers_cut(struct db *db, struct window *w, struct store_iter *it,
	struct deleted deleted, struct maker *m, struct number_cut *out, struct err *err);
void number_cut_release(struct number_cut *c);

/* ---- number_join.c ---- */

struct number_source {
	struct block *block;
	struct deleted deleted;
	uint32_t *ids; /* number in the new block, by number in this one */
};
/* All numbers of the blocks, ascending by time, into the maker, before anything else. */
MUST_CHECK enum err_code numbers_join(
	struct db *db, const struct number_source *sources, size_t n, struct maker *m, struct err *err);

#endif
