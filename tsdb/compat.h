/*
 * Names that the files about blocks use of jobs and epochs, while a job has one epoch, whose
 * partition is the job and stays in memory.
 *
 * Threads: as what they stand for (tsdb/db_internal.h).
 */
#ifndef TSDB_COMPAT_H
#define TSDB_COMPAT_H

#include "tsdb/db_internal.h"

#ifndef DB_JOBS_MAX /* jobs are not told apart from their partitions */

#define job partition
#define job_name_of partition_name_of
#define partition_pin(db, name, id, epoch, out, err) db_partition((db), (name), (id), (out), (err))
#define partition_unpin(db, p) ((void)(db), (void)(p))
#define partition_forget_source(p, number) ((void)(number))
#define partition_need_window(db, p, w, err) ((void)(err), ERR_OK)
#define window_partition_pin(db, w, p) (p)
#define partition_need_block(db, p, b, slot, stage, err) need_block((p), (b), (slot), (err))
#define partition_next(db, at) db_partition_at((db), (*(at))++)
/* There is one epoch: nothing is ever translated. */
#define partition_new_epoch(db, like, out, err) one_epoch(err)
#define translation_open(from, to, out, err) one_epoch(err)
#define translation_close(t) ((void)(t))
#define translate_stack(t, id, out, err) (*(out) = 0, one_epoch(err))
#define translate_label_set(t, id, out, err) (*(out) = 0, one_epoch(err))
#define translate_header(t, id, out, err) (*(out) = 0, one_epoch(err))
#define series_match_strict series_match_locked

MUST_CHECK static inline enum err_code one_epoch(struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "a job has one epoch");
}

MUST_CHECK static inline enum err_code need_block(
	struct partition *p, struct db_block *b, uint32_t slot, struct err *err)
{
	enum err_code rc = ERR_OK;
	uint64_t lost = 0;

	mutex_lock(&p->lock);
	for (int stage = BLOCK_NAMES; stage <= BLOCK_STACKS && !rc; stage++)
		rc = block_load_symbols(b->block, slot, p, (enum block_stage)stage, &lost, err);
	mutex_unlock(&p->lock);
	return rc;
}

#else

static inline bool no_sample_key(void *ctx, const struct series *s, struct str key)
{
	return false;
}
#define series_match_strict(x, m, n, among, out, err) \
	series_match_locked((x), (m), (n), (among), no_sample_key, NULL, (out), (err))

#endif
#endif
