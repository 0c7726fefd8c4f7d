/*
 * A segment's records into a store: in two steps, so that no reader of the store finds a row whose
 * series or symbols are missing.
 *
 * Errors:  as follow.h.
 * Threads: one.
 */
#ifndef TSDB_HEAD_SEGMENT_PUT_H
#define TSDB_HEAD_SEGMENT_PUT_H

#include "tsdb/head/head_internal.h"
#include "tsdb/segments/segments.h"

struct segment_put {
	struct store *store;
	struct segment of; /* window and batches, as asked for */
	uint64_t seq; /* batches up to this are there */
	struct db *db; /* its series get the times of their latest rows; NULL: none */
	struct head_loading *index; /* small records go here, too; NULL: nowhere */
	/* Found on the way: */
	bool links; /* the window's meta says that rows may have links */
	struct window_count count; /* after the last batch */
	struct buf count_record;
	struct store_batch *batch;
};

MUST_CHECK enum err_code segment_put_init(struct segment_put *p, struct err *err);
void segment_put_release(struct segment_put *p);
/* All but rows, values and the count. */
MUST_CHECK enum err_code segment_put_names(
	struct segment_put *p, struct str bytes, struct err *err);
/* Rows and values, then the count. */
MUST_CHECK enum err_code segment_put_rows(struct segment_put *p, struct str bytes, struct err *err);

#endif
