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
#include "tsdb/catalog/blocks.h"
#include "tsdb/head/head_internal.h"

/*
 * Windows on disk: head/<start>/ is a LevelDB, head/<start>.acked how much was acknowledged,
 * head/<start>.names its small records once more.
 *
 * What stands beside a directory says that the directory has to be there. So that goes first when a
 * window goes; then the directory is renamed to <start>.dropped, so that no start ever finds half
 * of one.
 */
#define DROPPED ".dropped"

METRIC_COUNTER(damage_total, "epimetheus_tsdb_damage_total",
	"Times that stored bytes were found damaged or missing.", NULL);
METRIC_COUNTER(dropped_windows, "epimetheus_tsdb_dropped_windows_total",
	"Windows that left the head.", "reason");

void db_count_damage(void)
{
	metric_add(&damage_total, NULL, 1);
}

void db_damage(struct db *db, struct window *w, const char *what, const struct err *why)
{
	db_count_damage();
	log_error("tsdb", "damaged store", LOG_S("store", w->dir), LOG_S("what", what), LOG_E(why));
	mutex_lock(&db->lock);
	w->damaged = true;
	mutex_unlock(&db->lock);
}

/* ---- one window ---- */

static char *text(const char *fmt, const char *a, int64_t b, const char *c)
{
	char *s = NULL;

	return asprintf(&s, fmt, a, b, c) < 0 ? NULL : s;
}

struct window *window_new(struct db *db, int64_t start_ns, int64_t end_ns)
{
	struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->start_ns = start_ns;
	w->end_ns = end_ns;
	w->mark_fd = w->names_fd = -1;
	w->dir = text("%s/%" PRId64 "%s", db->head_dir, start_ns / NS_PER_S, "");
	w->mark_path = text("%s/%" PRId64 "%s", db->head_dir, start_ns / NS_PER_S, ".acked");
	w->names_path = text("%s/%" PRId64 "%s", db->head_dir, start_ns / NS_PER_S, ".names");
	if (!w->dir || !w->mark_path || !w->names_path) {
		head_free(db, w);
		return NULL;
	}
	return w;
}

static void close_synced(struct db *db, int fd, const char *path)
{
	struct err err;

	if (fd < 0)
		return;
	if (db->o.fs->ops->sync(db->o.fs, fd, &err))
		log_warn("tsdb", "not synced", LOG_S("path", path), LOG_E(&err));
	close(fd);
}

void head_free(struct db *db, struct window *w)
{
	if (!w)
		return;
	window_epochs_release(w);
	store_close(w->store);
	close_synced(db, w->mark_fd, w->mark_path);
	close_synced(db, w->names_fd, w->names_path);
	bits_release(&w->series);
	deleted_release(w->deleted);
	free(w->dir);
	free(w->mark_path);
	free(w->names_path);
	free(w);
}

void head_insert(struct db *db, struct window *w)
{
	size_t i = db->windows_n++;

	w->number = ++db->source_number;
	for (; i && db->windows[i - 1]->start_ns > w->start_ns; i--)
		db->windows[i] = db->windows[i - 1];
	db->windows[i] = w;
}

bool head_reserve(struct db *db)
{
	size_t cap = db->windows_cap ? db->windows_cap * 2 : 16;
	struct window **v;

	if (db->windows_n < db->windows_cap)
		return true;
	if (!(v = realloc(db->windows, cap * sizeof(struct window *))))
		return false;
	db->windows = v;
	db->windows_cap = cap;
	return true;
}

/* (start, end] for a new window that takes ts; db->lock is held. Windows of another length may
 * stand beside it, from before a change of the configuration. */
static enum err_code window_for(struct db *db, int64_t ts_ns, struct window **out, struct err *err)
{
	int64_t start = (ts_ns - 1) / db->o.window_ns * db->o.window_ns, end = start + db->o.window_ns;

	if (!blocks_clip_locked(db, ts_ns, &start, &end))
		return err_set(err, ERR_INVALID, "the window of this time takes no more rows");
	for (size_t i = 0; i < db->windows_n; i++) {
		if (db->windows[i]->end_ns < ts_ns && db->windows[i]->end_ns > start)
			start = db->windows[i]->end_ns;
		if (db->windows[i]->start_ns >= ts_ns && db->windows[i]->start_ns < end)
			end = db->windows[i]->start_ns;
	}
	if (!(*out = window_new(db, start, end)))
		return err_set(err, ERR_NOMEM, "window: out of memory");
	return ERR_OK;
}

/* No other window's, of this directory or another. */
static uint64_t new_identity(const struct window *w)
{
	uint64_t v = 0;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = hash_u64((uint64_t)clock_now_ns() ^ hash_u64((uint64_t)w->start_ns));
	return v ? v : 1;
}

static enum err_code make_store(struct db *db, struct window *w, struct err *err)
{
	struct fs *fs = db->o.fs;
	enum err_code rc;

	w->identity = new_identity(w);
	/* A directory of that name would be one that was not read at start. */
	if ((fs_exists(w->dir) &&
			((rc = stock_drop_window(db, w->start_ns, err)) ||
				(rc = fs_remove_tree(fs, w->dir, err)))) ||
		(fs_exists(w->mark_path) && (rc = fs->ops->unlink(fs, w->mark_path, err))) ||
		(fs_exists(w->names_path) && (rc = fs->ops->unlink(fs, w->names_path, err))) ||
		(rc = store_open(w->dir, db->cache, db->o.store, &w->store, err)) ||
		(rc = head_write_meta(db, w, err)) || (rc = fs->ops->sync_dir(fs, db->head_dir, err)) ||
		(rc = stock_add_window(db, w, err)))
		return err_wrap(err, rc, "create window");
	store_set_identity(w->store, w->identity);
	return ERR_OK;
}

/* db->lock is held, and let go while the disk works: one window is made at a time, and rows of
 * other windows do not wait for it. */
static enum err_code create_window(
	struct db *db, int64_t ts_ns, struct window **out, struct err *err)
{
	struct window *w;
	enum err_code rc;

	if ((rc = window_for(db, ts_ns, &w, err)))
		return rc;
	db->creating = true;
	mutex_unlock(&db->lock);
	if ((rc = make_store(db, w, err))) {
		head_free(db, w);
		w = NULL;
	}
	mutex_lock(&db->lock);
	if (w && !head_reserve(db)) {
		rc = err_set(err, ERR_NOMEM, "window: out of memory");
		mutex_unlock(&db->lock);
		head_free(db, w); /* its store is empty, and opened or removed by whoever comes */
		mutex_lock(&db->lock);
		w = NULL;
	}
	if (w) {
		head_insert(db, w);
		db->retention_due = true;
	}
	db->creating = false;
	cond_broadcast(&db->changed);
	*out = w;
	return rc;
}

static enum err_code too_old(int64_t ts_ns, struct err *err)
{
	struct buf t = { 0 };
	enum err_code rc;

	time_print_rfc3339(&t, ts_ns);
	rc = err_set(err, ERR_INVALID,
		"profile of " STR_FMT " is too old: its window takes no more rows", STR_ARG(buf_str(&t)));
	buf_release(&t);
	return rc;
}

/* *out NULL: there is none yet. */
static enum err_code find_window(struct db *db, int64_t ts_ns, struct window **out, struct err *err)
{
	*out = NULL;
	for (size_t i = db->windows_n; i-- > 0 && !*out;)
		if (db->windows[i]->start_ns < ts_ns && ts_ns <= db->windows[i]->end_ns)
			*out = db->windows[i];
	/* Its directory is still read: another one cannot stand in its place. */
	for (const struct window *d = db->dropping; d && !*out; d = d->next_dropping)
		if (d->start_ns < ts_ns && ts_ns <= d->end_ns)
			return too_old(ts_ns, err);
	if (*out && (*out)->sealed)
		return too_old(ts_ns, err);
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
	while (!(rc = find_window(db, ts_ns, &w, err)) && !w) {
		if (!db->creating) {
			rc = create_window(db, ts_ns, &w, err);
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
	if (--w->pins <= 1)
		cond_broadcast(&db->changed);
	mutex_unlock(&db->lock);
}

void head_unpin_writer(struct db *db, struct window *w)
{
	mutex_lock(&db->lock);
	w->writers--;
	w->pins--;
	cond_broadcast(&db->changed);
	mutex_unlock(&db->lock);
}

/* ---- dropping ---- */

void head_remove_beside(struct db *db, const struct window *w)
{
	const char *const paths[] = { w->mark_path, w->names_path };
	struct err err;

	for (size_t i = 0; i < 2; i++)
		if (fs_exists(paths[i]) && db->o.fs->ops->unlink(db->o.fs, paths[i], &err))
			log_warn("tsdb", "not removed", LOG_S("path", paths[i]), LOG_E(&err));
}

/* False: it would be a window at the next start. What was renamed for good is none any more. */
static bool remove_files(struct db *db, struct window *w)
{
	struct fs *fs = db->o.fs;
	char *dropped = text("%s/%" PRId64 "%s", db->head_dir, w->start_ns / NS_PER_S, DROPPED);
	struct err err = { 0 };
	bool gone;

	head_remove_beside(db, w); /* first: without its directory they would tell of a loss */
	gone = dropped && !fs->ops->rename(fs, w->dir, dropped, &err) &&
		!fs->ops->sync_dir(fs, db->head_dir, &err);
	if (!gone || fs_remove_tree(fs, dropped, &err))
		log_warn("tsdb", "window not removed", LOG_S("store", w->dir), LOG_E(&err));
	free(dropped);
	return gone;
}

/* Off the list of those being dropped, once no deletion looks at it. */
static void forget_dropping(struct db *db, const struct window *w)
{
	struct window **at = &db->dropping;

	mutex_lock(&db->lock);
	while (w->pins)
		cond_wait(&db->changed, &db->lock);
	while (*at != w)
		at = &(*at)->next_dropping;
	*at = w->next_dropping;
	mutex_unlock(&db->lock);
}

void head_take_locked(struct db *db, struct window *w)
{
	size_t i = 0;

	while (db->windows[i] != w)
		i++;
	db->windows_n--;
	memmove(db->windows + i, db->windows + i + 1, (db->windows_n - i) * sizeof(struct window *));
	w->next_dropping = db->dropping;
	db->dropping = w;
}

bool head_remove_leftover(struct db *db, int64_t start_ns)
{
	struct window *w = window_new(db, start_ns, 0);
	bool gone = w != NULL;
	struct err err;

	if (w && fs_exists(w->dir)) {
		log_info("tsdb", "window is in a block already", LOG_S("store", w->dir));
		if (!db->o.read_only) {
			gone = remove_files(db, w);
		} else if (fs_remove_tree(db->o.fs, w->dir, &err)) { /* a copy of it */
			log_warn("tsdb", "window not removed", LOG_E(&err));
			gone = false;
		}
	}
	if (w)
		head_remove_beside(db, w);
	head_free(db, w);
	return gone;
}

/* What nobody looked into since the start has ids that nobody knows of yet. Ended epochs give no
 * more. */
static void know_ids(struct db *db, struct window *w)
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

/* Nothing of it is to be made again under another meaning, nor kept for it. */
static void forget_symbols(struct db *db, struct window *w)
{
	struct partition *p;
	struct err err;
	uint32_t at = 0;

	know_ids(db, w);
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
	forget_symbols(db, w);
	store_close(w->store);
	w->store = NULL;
	/* What the disk does not let go stays in the list, so that its series keep their ids: the
	 * next start reads them again. */
	if (!remove_files(db, w))
		return;
	log_info("tsdb", "window dropped", LOG_S("store", w->dir), LOG_S("reason", why));
	metric_add(&dropped_windows, why, 1);
	forget_dropping(db, w);
	head_free(db, w);
	db_retire_series(db);
}

void head_drop_oldest(struct db *db, const char *why)
{
	struct window *w;

	mutex_lock(&db->work->files);
	mutex_lock(&db->lock);
	w = db->windows[0];
	head_take_locked(db, w);
	mutex_unlock(&db->lock);
	mutex_unlock(&db->work->files);
	head_remove(db, w, why);
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
