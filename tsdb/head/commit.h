/*
 * The queue of rows, and the thread that commits them in groups with sync.
 *
 * Errors:    ERR_UNAVAILABLE: there was a failure since `generation`.
 * Ownership: an accepted row's pins, batch and series are the queue's.
 * Threads:   any enqueue; one thread commits and acknowledges.
 */
#ifndef TSDB_HEAD_COMMIT_H
#define TSDB_HEAD_COMMIT_H

#include "tsdb/catalog/state.h"
#include "tsdb/head/append.h"

struct number_batch; /* tsdb/head/numbers.h */

struct commit_row {
	struct commit_row *next;
	struct window *window; /* pinned; the queue takes the pin over */
	struct series *series; /* in use; taken over too; NULL: numbers */
	struct number_batch *numbers; /* taken over too; NULL: a row */
	int64_t ts_ns;
	uint32_t samples;
	bool symbols; /* the batch has a record of symbols */
	struct store_batch *batch;
	size_t bytes;
	db_acked_fn acked;
	void *ctx;
	uint64_t number; /* in the order of queueing */
	bool has_before;
	struct delta_base before; /* the series' base before this row: given back when it fails */
};

MUST_CHECK enum err_code commit_open(struct db *db, struct err *err);
void commit_close(struct db *db); /* commits the queue first */
/* Changes with every failed commit: stored symbols noted under another number are not valid. */
uint64_t commit_generation(struct db *db);
/* Takes the row over on ERR_OK only. ERR_UNAVAILABLE: there was a failure since `generation`. */
MUST_CHECK enum err_code commit_enqueue(
	struct db *db, struct commit_row *row, uint64_t generation, struct err *err);

/* Waits until no row of the series and time waits for its sync. ERR_UNAVAILABLE: there was a
 * failure since `generation`. The job's lock may be held: a failure ends the wait. */
MUST_CHECK enum err_code commit_wait(
	struct db *db, const struct series *s, int64_t ts_ns, uint64_t generation, struct err *err);

#endif
