#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/state.h"
#include "tsdb/catalog/stock.h"

/*
 * A block without its raw rows: meta.json says so first, then rows.ldb is unlinked. Readers that
 * have the file open go on with it, and a start in between finishes the job.
 */
METRIC_COUNTER(dropped_raw, "epimetheus_tsdb_dropped_raw_total",
	"Blocks whose raw rows were dropped by retention.", NULL);

enum err_code blocks_unlink_raw(struct db *db, const char *dir, struct err *err)
{
	char *path = NULL;
	enum err_code rc = ERR_OK;

	if (asprintf(&path, "%s/rows.ldb", dir) < 0)
		return err_nomem(err, "retention");
	if (fs_exists(path))
		rc = db->o.fs->ops->unlink(db->o.fs, path, err);
	free(path);
	return rc;
}

static enum err_code drop_raw(struct db *db, struct db_block *b, struct err *err)
{
	struct block_meta meta = *block_meta(b->block);
	const char *dir = block_dir(b->block);
	struct db_block *by = NULL;
	enum err_code rc;

	mutex_assert_held(&db->blocks_files);
	meta.raw = false;
	meta.rows_file = (struct block_file){ 0 };
	if ((rc = blocks_reserve(db, "retention", err)) || (rc = stock_drop_raw(db, b, err)) ||
		(rc = block_write_meta(db->o.fs, dir, &meta, err)) ||
		(rc = blocks_unlink_raw(db, dir, err)) || (rc = blocks_open(db, dir, &by, err)))
		return rc;
	mutex_lock(&db->lock);
	by->number = b->number; /* its symbols are the same */
	blocks_swap_locked(db, &b, 1, NULL, by);
	mutex_unlock(&db->lock);
	blocks_retire(db, b, true);
	return ERR_OK;
}

/* The caller's pin goes. */
void blocks_drop_raw_of(struct db *db, struct db_block *b)
{
	enum err_code rc;
	struct err err;

	mutex_lock(&db->blocks_files);
	rc = drop_raw(db, b, &err);
	mutex_unlock(&db->blocks_files);
	if (rc) {
		log_error("tsdb", "raw rows not dropped", LOG_S("block", block_dir(b->block)), LOG_E(&err));
		mutex_lock(&db->lock);
		b->raw_failed = true;
		mutex_unlock(&db->lock);
	} else {
		metric_add(&dropped_raw, NULL, 1);
		log_info("tsdb", "raw rows dropped", LOG_S("block", block_dir(b->block)));
	}
	blocks_unpin(db, b);
}

void blocks_drop_raw(struct db *db, struct db_block *b)
{
	mutex_lock(&db->lock);
	b->pins++;
	mutex_unlock(&db->lock);
	blocks_drop_raw_of(db, b);
}
