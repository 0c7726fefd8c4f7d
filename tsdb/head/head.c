#include "tsdb/head/head.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/deleted.h"
#include "tsdb/catalog/ids.h"
#include "tsdb/catalog/inventory_sync.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/head/epochs.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/ship_internal.h"
#include "tsdb/symbols/stored.h"

METRIC_COUNTER(dropped_windows, "epimetheus_tsdb_dropped_windows_total",
	"Windows that left the head.", "reason");

void db_damage(struct db *db, struct window *w, const char *what, const struct err *why)
{
	db_count_damage();
	log_error("tsdb", "damaged store", LOG_S("store", w->dir), LOG_S("what", what), LOG_E(why));
	mutex_lock(&db->lock);
	w->damaged = true;
	mutex_unlock(&db->lock);
}

/* ---- one window ---- */

/* (start, end] for a new window that takes ts; db->lock is held. Its neighbours may have another
 * length, from before a change of the configuration. */
static enum err_code window_for(struct db *db, int64_t ts_ns, struct window **out, struct err *err)
{
	int64_t start = (ts_ns - 1) / db->o.window_ns * db->o.window_ns, end = start + db->o.window_ns;

	mutex_assert_held(&db->lock);
	if (!blocks_clip_locked(db, ts_ns, &start, &end))
		return err_set(err, ERR_INVALID, "the window of this time is closed");
	for (size_t i = 0; i < db->windows_n; i++) {
		if (db->windows[i]->end_ns < ts_ns && db->windows[i]->end_ns > start)
			start = db->windows[i]->end_ns;
		if (db->windows[i]->start_ns >= ts_ns && db->windows[i]->start_ns < end)
			end = db->windows[i]->start_ns;
	}
	if (!(*out = window_new(db, start, end)))
		return err_nomem(err, "window");
	return ERR_OK;
}

/* A number that no other window has, in this directory or another. */
static uint64_t head_new_identity(const struct window *w)
{
	uint64_t v = 0;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = map_hash_u64((uint64_t)clock_now_ns() ^ map_hash_u64((uint64_t)w->start_ns));
	return v ? v : 1;
}

static enum err_code head_make_store(struct db *db, struct window *w, struct err *err)
{
	struct fs *fs = db->o.fs;
	enum err_code rc;

	w->identity = head_new_identity(w);
	/* A directory of that name would be one that was not read at start; deletions, those of a store
	 * that was set aside. */
	if ((fs_exists(w->dir) &&
			((rc = inventory_sync_drop_unread(db, w->start_ns, err)) ||
				(rc = fs_remove_tree(fs, w->dir, err)))) ||
		(window_deleted_remove(db, w->start_ns), false) ||
		(fs_exists(w->mark_path) && (rc = fs->ops->unlink(fs, w->mark_path, err))) ||
		(fs_exists(w->names_path) && (rc = fs->ops->unlink(fs, w->names_path, err))) ||
		(rc = store_open(w->dir, db->cache, db->o.store, &w->store, err)) ||
		(rc = head_write_meta(db, w, err)) || (rc = fs->ops->sync_dir(fs, db->head_dir, err)) ||
		(rc = inventory_sync_add_window(db, w, err)))
		return err_wrap(err, rc, "create window");
	store_set_identity(w->store, w->identity);
	return ERR_OK;
}

/* db->lock is held, and let go while the disk works: one window is made at a time, and rows of
 * other windows do not wait for it. */
static enum err_code head_create_window(
	struct db *db, int64_t ts_ns, struct window **out, struct err *err)
{
	struct window *w;
	enum err_code rc;

	mutex_assert_held(&db->lock);
	assert(!db->creating);
	if ((rc = window_for(db, ts_ns, &w, err)))
		return rc;
	assert(w->start_ns < ts_ns && ts_ns <= w->end_ns);
	db->creating = true;
	mutex_unlock(&db->lock);
	if ((rc = head_make_store(db, w, err))) {
		window_free(db, w);
		w = NULL;
	}
	mutex_lock(&db->lock);
	if (w && !windows_reserve_locked(db)) {
		rc = err_nomem(err, "window");
		mutex_unlock(&db->lock);
		window_free(db, w); /* its store is empty; the next user opens or removes it */
		mutex_lock(&db->lock);
		w = NULL;
	}
	if (w) {
		windows_insert_locked(db, w);
		db->retention_due = true;
	}
	db->creating = false;
	cond_broadcast(&db->changed);
	*out = w;
	return rc;
}

static enum err_code head_too_old(int64_t ts_ns, struct err *err)
{
	struct buf t = { 0 };
	enum err_code rc;

	time_print_rfc3339(&t, ts_ns);
	rc = err_set(err, ERR_INVALID, "profile of " STR_FMT " is too old: the window is closed",
		STR_ARG(buf_str(&t)));
	buf_release(&t);
	return rc;
}

/* *out NULL: there is none yet. */
static enum err_code head_find_window(
	struct db *db, int64_t ts_ns, struct window **out, struct err *err)
{
	mutex_assert_held(&db->lock);
	*out = NULL;
	for (size_t i = db->windows_n; i-- > 0 && !*out;)
		if (db->windows[i]->start_ns < ts_ns && ts_ns <= db->windows[i]->end_ns)
			*out = db->windows[i];
	/* Its directory is still in use, so no other window can be made there. */
	for (const struct window *d = db->dropping; d && !*out; d = d->next_dropping)
		if (d->start_ns < ts_ns && ts_ns <= d->end_ns)
			return head_too_old(ts_ns, err);
	if (*out && (*out)->sealed)
		return head_too_old(ts_ns, err);
	if (*out && (*out)->draining)
		return err_set(err, ERR_UNAVAILABLE, "the store is being reopened");
	if (*out && (*out)->shadow)
		return err_set(err, ERR_UNAVAILABLE, "disk is full: nothing can be written");
	return ERR_OK;
}

enum err_code head_pin(struct db *db, int64_t ts_ns, struct window **out, struct err *err)
{
	struct window *w;
	enum err_code rc;

	mutex_lock(&db->lock);
	while (!(rc = head_find_window(db, ts_ns, &w, err)) && !w) {
		if (!db->creating) {
			rc = head_create_window(db, ts_ns, &w, err);
			break;
		}
		cond_wait(&db->changed, &db->lock);
	}
	if (!rc) {
		w->pins++;
		w->writers++;
		*out = w;
	}
	mutex_unlock(&db->lock);
	return rc;
}

void head_unpin(struct db *db, struct window *w)
{
	mutex_lock(&db->lock);
	assert(w->pins > w->writers);
	if (--w->pins <= 1)
		cond_broadcast(&db->changed);
	mutex_unlock(&db->lock);
}

void head_unpin_writer(struct db *db, struct window *w)
{
	head_unpin_writers(db, w, 1);
}

void head_unpin_writers(struct db *db, struct window *w, unsigned n)
{
	mutex_lock(&db->lock);
	assert(w->writers >= n && w->pins >= w->writers);
	w->writers -= n;
	w->pins -= n;
	cond_broadcast(&db->changed);
	mutex_unlock(&db->lock);
}

/* ---- dropping ---- */

/* Takes it off the list of windows being dropped, once no deletion uses it. */
static void head_forget_dropping(struct db *db, const struct window *w)
{
	struct window **at = &db->dropping;

	mutex_lock(&db->lock);
	while (w->pins)
		cond_wait(&db->changed, &db->lock);
	while (*at && *at != w)
		at = &(*at)->next_dropping;
	assert(*at);
	*at = w->next_dropping;
	mutex_unlock(&db->lock);
}

/* A window that was not read since the start may have ids that are not known yet. Ended epochs give
 * no new ids. */
static void head_know_ids(struct db *db, struct window *w)
{
	struct partition *p;
	struct job *job;
	uint32_t live;
	struct err err;

	for (uint32_t i = 0; (job = db_job_at(db, i)); i++) {
		mutex_lock(&db->lock);
		live = job->live_epoch;
		if (live != SYM_NONE && !window_epoch_locked(w, job, live))
			live = SYM_NONE;
		mutex_unlock(&db->lock);
		if (live == SYM_NONE)
			continue;
		if (partition_pin(db, job->name, job->id, live, &p, &err)) {
			log_warn("tsdb", "symbols of a dropped window", LOG_E(&err));
			continue;
		}
		if (partition_need_window(db, p, w, &err))
			log_warn("tsdb", "symbols of a dropped window", LOG_E(&err));
		partition_unpin(db, p);
	}
}

/* Saves the ids, which must not get another meaning, and forgets that partitions have the window's
 * symbols. */
static void head_forget_symbols(struct db *db, struct window *w)
{
	struct partition *p;
	struct err err;
	uint32_t at = 0;

	head_know_ids(db, w);
	if (ids_save(db, &err))
		log_warn("tsdb", "ids not saved", LOG_E(&err));
	while ((p = partition_next(db, &at))) {
		mutex_lock(&p->lock);
		stored_drop(p, w->start_ns);
		partition_forget_source(p, w->number);
		mutex_unlock(&p->lock);
		partition_unpin(db, p);
	}
}

void head_remove(struct db *db, struct window *w, const char *why)
{
	bool in_use;

	mutex_lock(&db->lock);
	while ((in_use = w->pins || w->waiting) && !db->closing)
		cond_wait(&db->changed, &db->lock);
	mutex_unlock(&db->lock);
	if (in_use) /* Closing frees it; its files go after the next start. */
		return;
	head_forget_symbols(db, w);
	store_close(w->store);
	w->store = NULL;
	/* If the disk does not remove the files, the window stays in the list and its series keep
	 * their ids: the next start reads them again. */
	if (!window_remove_files(db, w))
		return;
	log_info("tsdb", "window dropped", LOG_S("store", w->dir), LOG_S("reason", why));
	metric_add(&dropped_windows, why, 1);
	ship_leave(db, w);
	head_forget_dropping(db, w);
	window_free(db, w);
	db_retire_series(db);
}

/* A window that is made meanwhile may be older. */
static enum err_code head_take_oldest(struct db *db, struct window **out, struct err *err)
{
	enum err_code rc;

	mutex_assert_held(&db->blocks_files);
	mutex_lock(&db->lock);
	assert(db->windows_n);
	*out = db->windows[0];
	mutex_unlock(&db->lock);
	if ((rc = inventory_sync_drop_window(db, (*out)->start_ns, err)))
		return rc;
	mutex_lock(&db->lock);
	windows_take_locked(db, *out);
	mutex_unlock(&db->lock);
	return ERR_OK;
}

enum err_code head_drop_oldest(struct db *db, const char *why, struct err *err)
{
	struct window *w;
	enum err_code rc;
	int64_t start_ns;

	mutex_lock(&db->blocks_files);
	rc = head_take_oldest(db, &w, err);
	mutex_unlock(&db->blocks_files);
	if (rc)
		return rc;
	start_ns = w->start_ns;
	head_remove(db, w, why);
	window_deleted_remove(db, start_ns);
	return ERR_OK;
}

uint64_t head_disk_bytes(struct db *db, const struct window *w)
{
	struct arena a;
	struct str *names;
	uint64_t bytes = 0;
	struct stat st;
	size_t n;

	arena_init(&a, 0);
	if (fs_list(w->dir, &a, &names, &n, NULL))
		n = 0;
	for (size_t i = 0; i < n; i++) {
		char *path = path_join(&a, str_of(w->dir), names[i]);

		if (path && stat(path, &st) == 0)
			bytes += (uint64_t)st.st_blocks * 512;
	}
	arena_release(&a);
	return bytes;
}
