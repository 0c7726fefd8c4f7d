#include "tsdb/catalog/blocks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/inventory_sync.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/state.h"

/* The list of blocks: readers pin them, the worker swaps them. */

METRIC_COUNTER(damaged_blocks, "epimetheus_tsdb_damaged_blocks_total",
	"Blocks found damaged, in part or as a whole.", NULL);
METRIC_COUNTER(dropped_raw, "epimetheus_tsdb_dropped_raw_total",
	"Blocks whose raw rows were dropped by retention.", NULL);

void blocks_damage(struct db *db, struct db_block *b, const char *what, const struct err *why)
{
	bool first;

	mutex_lock(&db->lock);
	first = !b->damaged;
	b->damaged = true;
	mutex_unlock(&db->lock);
	if (first)
		metric_add(&damaged_blocks, NULL, 1);
	db_count_damage();
	log_error("tsdb", "damaged block", LOG_S("block", block_dir(b->block)), LOG_S("what", what),
		LOG_E(why));
}

/* ---- one block ---- */

static void blocks_lose_deleted(struct db *db, struct db_block *b, const struct err *why)
{
	const struct block_meta *m = block_meta(b->block);
	char where[64];

	snprintf(where, sizeof(where), "blocks/%s/deleted", m->ulid.text);
	blocks_damage(db, b, "deleted ranges are not readable: deleted rows appear again", why);
	(void)!db_lost(db, LOSS_DELETED, where, m->min_ns, m->max_ns, 0, why);
}

enum err_code blocks_load_deleted(struct db *db, struct db_block *b, struct err *err)
{
	char *path = block_deleted_path(blocks_local_dir(b));
	struct deleted d = { 0 };
	enum err_code rc;
	struct err why;

	if (!path)
		return err_nomem(err, "block");
	rc = deleted_load(db, path, str_of(block_meta(b->block)->ulid.text), &d, &why);
	free(path);
	if (rc == ERR_NOMEM)
		return err_nomem(err, "block");
	if (rc)
		blocks_lose_deleted(db, b, &why);
	deleted_release(b->deleted);
	b->deleted = d.v;
	b->deleted_n = d.n;
	return ERR_OK;
}

static enum err_code blocks_open_local(
	struct db *db, const char *dir, struct db_block **out, struct err *err)
{
	struct db_block *b = calloc(1, sizeof(*b));
	struct err damaged = { 0 };
	enum err_code rc;

	if (!b)
		return err_nomem(err, "block");
	if ((rc = block_open(dir, NULL, db->cache, &b->block, &damaged, err)))
		goto fail;
	b->why = damaged;
	if (damaged.code)
		blocks_damage(db, b, "made up for", &damaged);
	mutex_lock(&db->lock);
	b->number = ++db->source_number;
	mutex_unlock(&db->lock);
	*out = b;
	return ERR_OK;
fail:
	blocks_free(b);
	return rc;
}

enum err_code blocks_open(struct db *db, const char *dir, struct db_block **out, struct err *err)
{
	char key[REMOTE_KEY_BYTES_MAX + 1];
	struct db_block *b = NULL;
	enum err_code rc;

	if ((rc = remote_read_key(dir, key, err)))
		return rc;
	if ((rc = key[0] ? remote_open_stub(db, dir, key, &b, err) :
					   blocks_open_local(db, dir, &b, err)))
		return rc;
	if ((rc = blocks_load_deleted(db, b, err)))
		blocks_free(b);
	else
		*out = b;
	return rc;
}

enum err_code blocks_know_jobs(struct db *db, struct db_block *b, struct err *err)
{
	for (uint32_t s = 0; s < block_partitions_n(b->block); s++) {
		const struct block_partition *p = block_partition(b->block, s);
		struct job *job;
		enum err_code rc = db_job(db, p->name, p->id, p->epoch, &job, err);

		if (rc == ERR_EXISTS)
			blocks_damage(db, b, "a job's id", err);
		else if (rc)
			return rc;
	}
	return ERR_OK;
}

void blocks_free(struct db_block *b)
{
	if (!b)
		return;
	deleted_release(b->deleted);
	block_close(b->block);
	free(b->stub);
	free(b);
}

/* Removes the notes that partitions have the symbols of this block. */
static void blocks_forget_symbols(struct db *db, uint32_t number)
{
	struct partition *p;
	uint32_t at = 0;

	while ((p = partition_next(db, &at))) {
		mutex_lock(&p->lock);
		partition_forget_source(p, number);
		mutex_unlock(&p->lock);
		partition_unpin(db, p);
	}
}

/* Frees a block that has no pin and is in no list, so nobody can pin it again. */
static void blocks_dispose(struct db *db, struct db_block *b)
{
	char *gone = NULL;
	struct err err;

	if (b->tables_go)
		remote_unlink_tables(db, block_dir(b->block));
	if (b->remote && !b->keep)
		remote_forget(db, b);
	if (!b->keep && blocks_local_dir(b) &&
		asprintf(&gone, "%s" BLOCK_GONE, blocks_local_dir(b)) >= 0) {
		if (!b->stays && fs_exists(gone) && fs_remove_tree(db->o.fs, gone, &err))
			log_warn("tsdb", "block not removed", LOG_S("block", gone), LOG_E(&err));
		free(gone);
	}
	if (!b->keep)
		blocks_forget_symbols(db, b->number);
	blocks_free(b);
}

void blocks_unpin(struct db *db, struct db_block *b)
{
	bool last;

	mutex_lock(&db->lock);
	last = --b->pins == 0 && b->gone;
	cond_broadcast(&db->changed);
	mutex_unlock(&db->lock);
	if (last)
		blocks_dispose(db, b);
}

/* False: Renames a block's directory durably, so that no start reads it. False: the next start may
 * read it. A missing directory counts as hidden. */
static bool catalog_blocks_hide(struct db *db, const char *dir)
{
	struct fs *fs = db->o.fs;
	char *gone = NULL;
	struct err err;
	bool ok;

	if (!dir || !fs_exists(dir))
		return true;
	if (asprintf(&gone, "%s" BLOCK_GONE, dir) < 0)
		return false;
	ok = !fs->ops->rename(fs, dir, gone, &err);
	if (ok && fs->ops->sync_dir(fs, db->blocks_dir, &err)) {
		ok = false;
		(void)!fs->ops->rename(fs, gone, dir, NULL);
	}
	if (!ok)
		log_warn("tsdb", "block not removed", LOG_S("block", dir), LOG_E(&err));
	free(gone);
	return ok;
}

bool blocks_hide_replaced(struct db *db, const struct db_block *b)
{
	const struct block_meta *m = block_meta(b->block);
	char *dir = NULL;
	bool ok = true;

	mutex_assert_held(&db->blocks_files);
	for (uint32_t i = 0; i < m->heads_n && ok; i++)
		ok = window_remove_leftover(db, m->heads[i]);
	for (uint32_t i = 0; i < m->sources_n && ok; i++) {
		if (asprintf(&dir, "%s/%s", db->blocks_dir, m->sources[i].text) < 0)
			return false;
		ok = catalog_blocks_hide(db, dir);
		free(dir);
	}
	return ok;
}

bool blocks_hide(struct db *db, const struct db_block *b)
{
	return blocks_hide_replaced(db, b) && catalog_blocks_hide(db, blocks_local_dir(b));
}

void blocks_retire(struct db *db, struct db_block *b, bool keep)
{
	bool last, stays;

	mutex_assert_held(&db->blocks_files);
	/* Rename at once, though readers may go on for a while: the block must not come back after its
	 * successor has gone. Open files follow the directory. The rename is durable before any file
	 * is removed; else the block might come back without its deletions. */
	stays = !keep && !catalog_blocks_hide(db, blocks_local_dir(b));
	mutex_lock(&db->lock);
	assert(!b->gone);
	b->keep = keep;
	b->stays = stays;
	b->gone = true;
	last = b->pins == 0;
	mutex_unlock(&db->lock);
	if (last)
		blocks_dispose(db, b);
}

/* ---- the list ---- */

void blocks_end_work(struct db *db, struct db_block *b)
{
	mutex_lock(&db->lock);
	b->at_work = false;
	mutex_unlock(&db->lock);
}

enum err_code blocks_reserve(struct db *db, const char *what, struct err *err)
{
	bool ok;

	mutex_lock(&db->lock);
	ok = array_room(&db->blocks, db->blocks_n, 1, &db->blocks_cap);
	mutex_unlock(&db->lock);
	return ok ? ERR_OK : err_nomem(err, what);
}

void blocks_tell(
	const struct db *db, enum db_change what, const struct ulid *block, int64_t window_ns)
{
	if (db->o.published)
		db->o.published->changed(db->o.published->ctx, what, block, window_ns);
}

void blocks_insert_locked(struct db *db, struct db_block *b)
{
	int64_t min = block_meta(b->block)->min_ns;
	size_t i = db->blocks_n++;

	mutex_assert_held(&db->lock);
	assert(i < db->blocks_cap && !b->gone);
	for (; i && block_meta(db->blocks[i - 1]->block)->min_ns > min; i--)
		db->blocks[i] = db->blocks[i - 1];
	db->blocks[i] = b;
}

static void blocks_take_out(struct db *db, const struct db_block *b)
{
	size_t kept = 0;

	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->blocks_n; i++)
		if (db->blocks[i] != b)
			db->blocks[kept++] = db->blocks[i];
	assert(kept + 1 == db->blocks_n); /* it was in the list exactly once */
	db->blocks_n = kept;
}

/* Tells db_options.published of a swap. If the new block has the ULID of the old one, it lost its
 * raw rows or is read at another place. windows_take_locked has told of the window. */
static void blocks_tell_swap(
	const struct db *db, struct db_block *const *olds, size_t n, const struct db_block *by)
{
	const struct block_meta *m = by ? block_meta(by->block) : NULL;

	if (m && n == 1 && ulid_eq(&block_meta(olds[0]->block)->ulid, &m->ulid)) {
		if (block_meta(olds[0]->block)->raw && !m->raw)
			blocks_tell(db, DB_BLOCK_RAW_DROPPED, &m->ulid, 0);
		return;
	}
	if (by)
		blocks_tell(db, DB_BLOCK_ADDED, &m->ulid, 0);
	for (size_t i = 0; i < n; i++)
		blocks_tell(db, DB_BLOCK_DROPPED, &block_meta(olds[i]->block)->ulid, 0);
}

void blocks_swap_locked(
	struct db *db, struct db_block *const *olds, size_t n, struct window *w, struct db_block *by)
{
	mutex_assert_held(&db->lock);
	mutex_assert_held(&db->blocks_files);
	assert(n || w);
	for (size_t i = 0; i < n; i++)
		blocks_take_out(db, olds[i]);
	if (w)
		windows_take_locked(db, w);
	if (by)
		blocks_insert_locked(db, by);
	blocks_tell_swap(db, olds, n, by);
}

enum err_code blocks_pin_all(struct db *db, struct db_block ***out, size_t *n, struct err *err)
{
	struct db_block **v;

	mutex_lock(&db->lock);
	if ((v = malloc((db->blocks_n + 1) * sizeof(struct db_block *)))) {
		for (size_t i = 0; i < db->blocks_n; i++)
			(v[i] = db->blocks[i])->pins++;
		*n = db->blocks_n;
	}
	mutex_unlock(&db->lock);
	*out = v;
	return v ? ERR_OK : err_nomem(err, "blocks");
}

void blocks_unpin_all(struct db *db, struct db_block **d, size_t n)
{
	for (size_t i = 0; i < n; i++)
		blocks_unpin(db, d[i]);
	free(d);
}

bool blocks_have_window(const struct db *db, int64_t start_ns)
{
	for (size_t i = 0; i < db->blocks_n; i++) {
		const struct block_meta *m = block_meta(db->blocks[i]->block);

		for (uint32_t k = 0; k < m->heads_n; k++)
			if (m->heads[k] == start_ns)
				return true;
	}
	return false;
}

bool blocks_unreadable_locked(const struct db *db, int64_t min_ns, int64_t max_ns)
{
	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->unreadable_n; i++)
		if (db->unreadable[i].min_ns < max_ns && db->unreadable[i].max_ns > min_ns)
			return true;
	return false;
}

static bool blocks_clip(
	int64_t ts_ns, int64_t min_ns, int64_t max_ns, int64_t *start_ns, int64_t *end_ns)
{
	if (max_ns < ts_ns)
		*start_ns = max_ns > *start_ns ? max_ns : *start_ns;
	else if (min_ns >= ts_ns)
		*end_ns = min_ns < *end_ns ? min_ns : *end_ns;
	else
		return false;
	return true;
}

/* True if ts lies between two blocks that are being joined: the joined block will cover that
 * time. */
static bool blocks_join_over(const struct db *db, size_t i, int64_t ts_ns)
{
	const struct db_block *b = db->blocks[i], *next = i + 1 < db->blocks_n ? db->blocks[i + 1] : b;

	return b->at_work && next->at_work && block_meta(b->block)->max_ns < ts_ns &&
		block_meta(next->block)->min_ns >= ts_ns;
}

bool blocks_clip_locked(const struct db *db, int64_t ts_ns, int64_t *start_ns, int64_t *end_ns)
{
	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->blocks_n; i++) {
		const struct block_meta *m = block_meta(db->blocks[i]->block);

		if (blocks_join_over(db, i, ts_ns) ||
			!blocks_clip(ts_ns, m->min_ns, m->max_ns, start_ns, end_ns))
			return false;
	}
	for (size_t i = 0; i < db->unreadable_n; i++) {
		const struct unreadable *u = &db->unreadable[i];

		if (u->max_ns && !blocks_clip(ts_ns, u->min_ns, u->max_ns, start_ns, end_ns))
			return false;
	}
	return true;
}

enum err_code blocks_visit_epoch(
	struct db *db, uint32_t job_id, uint32_t epoch, block_visit_fn fn, void *ctx, struct err *err)
{
	struct db_block **v;
	size_t n;
	enum err_code rc;

	if ((rc = blocks_pin_all(db, &v, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		for (uint32_t s = 0; s < block_partitions_n(v[i]->block) && !rc; s++) {
			const struct block_partition *p = block_partition(v[i]->block, s);

			if (p->id == job_id && p->epoch == epoch)
				rc = fn(ctx, v[i], s, err);
		}
	blocks_unpin_all(db, v, n);
	return rc;
}

void blocks_close_all(struct db *db)
{
	for (size_t i = 0; i < db->blocks_n; i++)
		blocks_free(db->blocks[i]);
	free(db->blocks);
	for (size_t i = 0; i < db->unreadable_n; i++)
		unreadable_free(&db->unreadable[i]);
	free(db->unreadable);
	db->blocks = NULL;
	db->blocks_n = db->blocks_cap = 0;
}

/* ---- raw rows that go before the rest ---- */

/*
 * Dropping a block's raw rows: first meta.json is written without them, then rows.ldb is unlinked.
 * Readers that have the file open can still read it. If the server stops in between, the next start
 * unlinks the file.
 */
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

static enum err_code catalog_blocks_drop_raw(struct db *db, struct db_block *b, struct err *err)
{
	struct block_meta meta = *block_meta(b->block);
	const char *dir = blocks_local_dir(b);
	struct db_block *by = NULL;
	enum err_code rc;

	mutex_assert_held(&db->blocks_files);
	meta.raw = false;
	meta.rows_file = (struct block_file){ 0 };
	if ((rc = blocks_reserve(db, "retention", err)) || (rc = inventory_sync_drop_raw(db, b, err)) ||
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

/* Releases the caller's pin. */
void blocks_drop_raw_of(struct db *db, struct db_block *b)
{
	enum err_code rc;
	struct err err;

	mutex_lock(&db->blocks_files);
	rc = catalog_blocks_drop_raw(db, b, &err);
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
	blocks_end_work(db, b);
	blocks_unpin(db, b);
}

void blocks_drop_raw(struct db *db, struct db_block *b)
{
	mutex_lock(&db->lock);
	b->pins++;
	b->at_work = true;
	mutex_unlock(&db->lock);
	blocks_drop_raw_of(db, b);
}
