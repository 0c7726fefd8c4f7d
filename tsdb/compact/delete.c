#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/inventory_sync.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/catalog/members.h"
#include "tsdb/columns/chunk_bits.h"
#include "tsdb/compact/admin.h"
#include "tsdb/compact/compaction.h"
#include "tsdb/head/head.h"
#include "tsdb/head/keys.h"

/* Deleting: matchers to ranges of each block and window (deleted.c). */

METRIC_COUNTER(deleted_total, "epimetheus_tsdb_deleted_series_total",
	"Series of blocks and windows that a deletion was written for.", NULL);

static void delete_lose_deleted(struct db *db, struct window *w, const struct err *why)
{
	char *where = head_where(w, "%s", "/deleted");

	db_damage(db, w, "deleted ranges are not readable: deleted rows appear again", why);
	if (where)
		(void)!db_lost(db, LOSS_DELETED, where, w->start_ns, w->end_ns, 0, why);
	free(where);
}

enum err_code deleted_load_windows(struct db *db, struct err *err)
{
	char *path, of[DELETED_OF_MAX];
	struct deleted d;
	enum err_code rc;
	struct err why;

	for (size_t i = 0; i < db->windows_n; i++) {
		struct window *w = db->windows[i];

		if (!(path = window_deleted_path(db, w->start_ns)))
			return err_nomem(err, "deleted ranges");
		rc = deleted_load(db, path, window_deleted_of(w->start_ns, of), &d, &why);
		free(path);
		if (rc == ERR_NOMEM)
			return err_nomem(err, "deleted ranges");
		if (rc)
			delete_lose_deleted(db, w, &why);
		w->deleted = d.v;
		w->deleted_n = d.n;
	}
	return ERR_OK;
}

/* ---- deleting ---- */

struct deleting {
	struct db *db;
	const struct matcher *m;
	size_t n;
	int64_t min_ns, max_ns;
	uint64_t series;
};

/* Writes the old ranges and one more for each series of ids; *out has them. */
static enum err_code delete_add_ranges(struct deleting *d, const struct bits *ids,
	struct deleted old, int64_t min_ns, int64_t max_ns, const char *path, struct str of,
	struct deleted *out, struct err *err)
{
	struct deleted_range *v;
	size_t n = old.n;
	enum err_code rc;

	for (size_t w = 0; w < ids->words; w++)
		n += (size_t)__builtin_popcountll(ids->w[w]);
	*out = old;
	if (n == old.n)
		return ERR_OK;
	if (!path || !(v = malloc(n * sizeof(*v))))
		return err_nomem(err, "delete");
	if (old.n)
		memcpy(v, old.v, old.n * sizeof(*v));
	d->series += n - old.n;
	n = old.n;
	for (size_t w = 0; w < ids->words; w++)
		for (uint64_t rest = ids->w[w]; rest; rest &= rest - 1)
			v[n++] = (struct deleted_range){ (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest)),
				min_ns, max_ns };
	if (!(rc = deleted_make(v, n, old, out, err)) &&
		(rc = deleted_save(d->db, path, of, *out, err))) {
		deleted_give_up(*out);
		*out = old;
	}
	free(v);
	return rc;
}

static enum err_code delete_in_block(struct deleting *deleting, struct db_block *b, struct err *err)
{
	const struct block_meta *meta = block_meta(b->block);
	int64_t min = deleting->min_ns > meta->min_ns ? deleting->min_ns : meta->min_ns,
			max = deleting->max_ns < meta->max_ns ? deleting->max_ns : meta->max_ns;
	char *path = block_deleted_path(blocks_local_dir(b));
	struct deleted d = { b->deleted, b->deleted_n };
	struct bits ids = { 0 };
	enum err_code rc = ERR_OK;

	if (min >= max)
		goto out;
	/* Whole series are deleted: labels of some samples do not select them. */
	if (!(rc = block_match(b->block, deleting->m, deleting->n, NULL, NULL, &ids, err)) &&
		!(rc = delete_add_ranges(
			  deleting, &ids, d, min, max, path, str_of(meta->ulid.text), &d, err))) {
		mutex_lock(&deleting->db->lock);
		b->deleted = d.v;
		b->deleted_n = d.n;
		mutex_unlock(&deleting->db->lock);
		if (d.n)
			inventory_sync_note_deleted(deleting->db, b, NULL);
	}
out:
	bits_release(&ids);
	free(path);
	return rc;
}

/* Deleting is by labels of series: a label that a series lacks is "". */
static bool delete_no_sample_key(void *ctx, const struct series *s, struct str key)
{
	(void)ctx;
	(void)s;
	(void)key;
	return false;
}

static enum err_code delete_match_in_window(
	struct deleting *d, struct window *w, struct bits *ids, struct err *err)
{
	struct series_index *x = d->db->series;
	enum err_code rc;

	series_lock_read(x);
	rc = series_match_locked(x, d->m, d->n, &w->series, delete_no_sample_key, NULL, ids, err);
	for (size_t i = 0; i < ids->words && !rc; i++)
		for (uint64_t rest = ids->w[i]; rest; rest &= rest - 1) {
			uint32_t id = (uint32_t)(i * 64 + (size_t)__builtin_ctzll(rest));
			const struct series *s = series_by_id_locked(x, id);
			bool all = s != NULL;

			for (size_t k = 0; k < d->n && all; k++)
				all = matcher_test_labels(&d->m[k], s->labels);
			if (!all)
				bits_clear(ids, id);
		}
	series_unlock(x);
	return rc;
}

/* A row whose commit failed may be on the disk all the same. */
static int64_t delete_newest_of_now(struct db *db)
{
	int64_t stored = atomic_load(&db->max_ts_ns), queued = atomic_load(&db->queued_max_ns);

	return stored > queued ? stored : queued;
}

/* Later rows are not deleted: the range ends with the newest row of now. dropping: the window is
 * off the list and the inventory, but the disk may keep its files. */
static enum err_code delete_in_window(
	struct deleting *deleting, struct window *w, bool dropping, struct err *err)
{
	int64_t newest = delete_newest_of_now(deleting->db),
			min = deleting->min_ns > w->start_ns ? deleting->min_ns : w->start_ns,
			max = deleting->max_ns < w->end_ns ? deleting->max_ns : w->end_ns;
	char *path = window_deleted_path(deleting->db, w->start_ns), of[DELETED_OF_MAX];
	struct deleted d = { w->deleted, w->deleted_n };
	struct bits ids = { 0 };
	enum err_code rc = ERR_OK;

	max = max < newest ? max : newest;
	if (min < max && !(rc = delete_match_in_window(deleting, w, &ids, err)) &&
		!(rc = delete_add_ranges(
			  deleting, &ids, d, min, max, path, window_deleted_of(w->start_ns, of), &d, err))) {
		mutex_lock(&deleting->db->lock);
		w->deleted = d.v;
		w->deleted_n = d.n;
		mutex_unlock(&deleting->db->lock);
		if (d.n && !dropping)
			inventory_sync_note_deleted(deleting->db, NULL, w);
	}
	bits_release(&ids);
	free(path);
	return rc;
}

/*
 * Windows that are being dropped too: if the disk fails to remove one's files, the next start reads
 * it again. db->blocks_files is held: no window leaves the list or begins to be dropped.
 */
static enum err_code delete_in_windows(struct deleting *d, struct err *err)
{
	struct db *db = d->db;
	enum err_code rc = ERR_OK;
	struct window *w;

	mutex_assert_held(&db->blocks_files);
	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->windows_n && !rc; i++) {
		w = db->windows[i];
		w->pins++;
		mutex_unlock(&db->lock);
		rc = delete_in_window(d, w, false, err);
		head_unpin(db, w);
		mutex_lock(&db->lock);
	}
	/* Pinned it stays on the list. */
	for (w = db->dropping; w && !rc;) {
		struct window *pinned = w;

		w->pins++;
		mutex_unlock(&db->lock);
		rc = delete_in_window(d, w, true, err);
		mutex_lock(&db->lock);
		w = w->next_dropping;
		assert(pinned->pins > 0);
		pinned->pins--;
		cond_broadcast(&db->changed);
	}
	mutex_unlock(&db->lock);
	return rc;
}

enum err_code db_delete_series(struct db *db, const struct matcher *m, size_t n, int64_t min_ns,
	int64_t max_ns, struct err *err)
{
	struct deleting t = { db, m, n, min_ns < 0 ? 0 : min_ns, max_ns, 0 };
	struct db_block **blocks = NULL;
	size_t blocks_n = 0;
	enum err_code rc;
	bool picks = false;

	if ((rc = members_refuse(db, "delete series", err)))
		return rc;
	for (size_t i = 0; i < n; i++)
		picks |= !matcher_test(&m[i], (struct str){ 0 });
	if (!picks)
		return err_set(err, ERR_INVALID, "at least one matcher must not accept the empty string");
	if (db->o.read_only)
		return err_set(err, ERR_UNAVAILABLE, "the database is open for reading only");
	mutex_lock(&db->blocks_files);
	if (!(rc = blocks_pin_all(db, &blocks, &blocks_n, err)))
		rc = delete_in_windows(&t, err);
	for (size_t i = 0; i < blocks_n && !rc; i++)
		rc = delete_in_block(&t, blocks[i], err);
	mutex_unlock(&db->blocks_files);
	blocks_unpin_all(db, blocks, blocks_n);
	metric_add(&deleted_total, NULL, (double)t.series);
	if (!rc)
		log_info("tsdb", "series deleted", LOG_I("series", t.series));
	return rc ? err_wrap(err, rc, "delete series") : ERR_OK;
}
