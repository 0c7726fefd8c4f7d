#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/ship_internal.h"
#include "tsdb/store/store_log.h"

/*
 * Opens stores of windows: at the start, and again after a put that failed.
 *
 * The store is compared with what was acknowledged (the mark, head_mark.c) and with the second copy
 * of the small records (head_names.c). A missing record becomes a loss (losses.h) before the window
 * is served, and all that is whole is served. A store is set aside only if its records mean nothing
 * in this directory.
 */
#define DROPPED ".dropped"

char *head_where(const struct window *w, const char *fmt, ...)
{
	struct buf b = { 0 };
	char *more = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&more, fmt, ap) < 0)
		more = NULL;
	va_end(ap);
	buf_printf(&b, "head/%" PRId64 "%s", w->start_ns / NS_PER_S, more ? more : "");
	buf_add_char(&b, '\0');
	free(more);
	if (buf_failed(&b))
		buf_release(&b);
	return b.ptr;
}

static void head_open_lose_window(
	struct db *db, const struct window *w, uint64_t rows, const struct err *why)
{
	char *where = head_where(w, "%s", "");

	if (where)
		(void)!db_lost(db, LOSS_WINDOW, where, w->start_ns, w->end_ns, rows, why);
	free(where);
}

void head_suspect(struct window_opening *o, const struct err *why)
{
	if (!o->damaged)
		o->why = *why;
	o->damaged = true;
}

/* ---- a store ---- */

static enum err_code head_open_repair(struct db *db, struct window *w, struct err *err)
{
	enum err_code rc;

	store_close(w->store);
	w->store = NULL;
	if ((rc = store_repair(w->dir, err)) ||
		(rc = store_open(w->dir, db->cache, db->o.store, &w->store, err)))
		return rc;
	store_set_identity(w->store, w->identity);
	return ERR_OK;
}

/* *why: why it was repaired; ERR_OK: it was not. */
static enum err_code open_or_repair(
	struct db *db, struct window *w, struct err *why, struct err *err)
{
	struct fs *fs = db->o.fs;
	enum err_code rc = store_open(w->dir, db->cache, db->o.store, &w->store, why);
	uint64_t cut = 0;

	/* The torn last batch of a power cut is no damage. */
	if (rc == ERR_CORRUPT) {
		if ((rc = store_cut_logs(fs, w->dir, &cut, err)))
			return rc;
		rc = ERR_CORRUPT;
		if (cut)
			rc = store_open(w->dir, db->cache, db->o.store, &w->store, why);
	}
	if (!rc)
		rc = store_check_tables(w->store, why);
	if (rc == ERR_CORRUPT) {
		db_damage(db, w, "cannot be used as it is; repairing", why);
		rc = head_open_repair(db, w, err);
	} else if (rc) {
		err_copy(err, why);
	} else if (store_was_repaired(w->dir)) {
		err_set(why, ERR_CORRUPT,
			"a start repaired the store, and ended before it noted what was lost");
	} else {
		*why = (struct err){ 0 };
	}
	/* LevelDB renames CURRENT last and does not sync the rename: a power cut could bring back the
	 * old one, whose log may end before records that later ones build upon. */
	return rc || db->o.read_only ? rc : fs->ops->sync_dir(fs, w->dir, err);
}

/* LevelDB compacts tables as soon as it is open, and takes no more writes after a damaged page. */
static enum err_code head_open_heal(
	struct db *db, struct window *w, struct window_opening *o, struct err *err)
{
	struct names_healed h;
	enum err_code rc = head_names_heal(db, w, &o->names, &h, err);

	if (rc == ERR_CORRUPT) {
		head_suspect(o, err);
		if ((rc = head_open_repair(db, w, err)))
			return rc;
		rc = head_names_heal(db, w, &o->names, &h, err);
	}
	if (rc)
		return rc;
	o->names_same = h.same;
	if (h.why.code)
		head_suspect(o, &h.why);
	if (h.put)
		log_warn("tsdb", "small records were lost, and are there again", LOG_S("store", w->dir),
			LOG_I("records", (int64_t)h.put), LOG_E(&h.why));
	return ERR_OK;
}

/* What the repair lost is on the list. If that is not written, a later start looks again. */
static void head_open_end_repair(struct db *db, struct window *w)
{
	struct err err;

	if (db->o.read_only || !store_was_repaired(w->dir))
		return;
	if (losses_save(db->losses, &err) || store_end_repair(db->o.fs, w->dir, &err))
		log_warn("tsdb", "repair not ended", LOG_S("store", w->dir), LOG_E(&err));
}

/* ---- after a put that failed ---- */

static enum err_code head_open_look_again(struct db *db, struct window *w,
	const struct err *repaired, struct window_count *count, struct err *err)
{
	struct window_opening o = { 0 };
	struct window_found found;
	enum err_code rc;
	struct err why;

	if (w->names_fd >= 0)
		close(w->names_fd);
	w->names_fd = -1;
	if ((rc = head_names_read(w, &o.names, err)) || (rc = head_open_heal(db, w, &o, err)))
		goto out;
	if (repaired->code)
		head_suspect(&o, repaired);
	if ((rc = head_read_count(w, count, &why)) == ERR_CORRUPT) {
		head_suspect(&o, &why);
		rc = ERR_OK;
	}
	if (rc) {
		err_copy(err, &why);
		goto out;
	}
	if (o.damaged) {
		if ((rc = head_recount(db, w, &found, err)))
			goto out;
		found.count.seq = w->count.seq;
		(void)!head_tell_lost(db, w, &w->count, false, &found, &o.why);
		*count = found.count;
	} else if (count->seq < w->count.seq) {
		found = (struct window_found){ .count = *count };
		found.count.symbols = w->count.symbols; /* those of the rows that are gone */
		err_set(&why, ERR_CORRUPT,
			"batches %" PRIu64 " to %" PRIu64 " were acknowledged and are missing", count->seq + 1,
			w->count.seq);
		(void)!head_tell_lost(db, w, &w->count, false, &found, &why);
	}
out:
	head_names_release(&o.names);
	return rc;
}

enum err_code head_reopen(struct db *db, struct window *w, enum err_code failed, struct err *err)
{
	struct window_count count = { 0 };
	struct err repaired = { 0 };
	struct store *old;
	enum err_code rc;

	mutex_lock(&db->lock);
	w->draining = true;
	/* A cut may hold a pin while it waits for writers, and the caller is a writer. */
	cond_broadcast(&db->changed);
	while (w->pins > 1 && !db->closing)
		cond_wait(&db->changed, &db->lock);
	old = w->store;
	if (w->pins > 1) {
		mutex_unlock(&db->lock);
		return err_set(err, ERR_UNAVAILABLE, "the database is closing");
	}
	w->store = NULL;
	mutex_unlock(&db->lock);
	store_close(old);
	if ((rc = open_or_repair(db, w, &repaired, err)))
		goto fail;
	store_set_identity(w->store, w->identity);
	if (failed == ERR_CORRUPT && !repaired.code) {
		/* It would open, and fail again at the same page. */
		err_set(&repaired, ERR_CORRUPT, "a damaged page");
		db_damage(db, w, "takes no more rows as it is; repairing", &repaired);
		if ((rc = head_open_repair(db, w, err)))
			goto fail;
	}
	if ((rc = head_open_look_again(db, w, &repaired, &count, err)))
		goto fail;
	head_open_end_repair(db, w);
	ship_reopened(db, w, &count, repaired.code != ERR_OK);
	mutex_lock(&db->lock);
	w->count = count;
	w->draining = false;
	cond_broadcast(&db->changed);
	mutex_unlock(&db->lock);
	return ERR_OK;
fail:
	store_close(w->store);
	w->store = NULL;
	return rc;
}

/* ---- one window at the start ---- */

/* Renames a store that is not of this directory: people can look at it, and new rows can be
 * taken. */
static void head_open_set_aside(
	struct db *db, struct window *w, uint64_t rows, const struct err *why)
{
	struct fs *fs = db->o.fs;
	char *to = NULL;
	struct err err;

	if (!w->end_ns)
		w->end_ns = w->start_ns + db->o.window_ns;
	head_open_lose_window(db, w, rows, why);
	db_damage(db, w, "not served; set aside", why);
	store_close(w->store);
	w->store = NULL;
	if (asprintf(&to, "%s.%" PRId64 "%s", w->dir, clock_now_ns(), WINDOW_ASIDE) < 0)
		to = NULL;
	if (to && fs->ops->rename(fs, w->dir, to, &err))
		log_error("tsdb", "setting aside failed", LOG_S("store", w->dir), LOG_E(&err));
	free(to);
}

static bool head_open_is_empty(struct window *w)
{
	struct store_iter *it = store_iter_open(w->store, NULL);
	bool empty;

	if (!it)
		return false;
	store_iter_seek(it, STR(""));
	empty = !store_iter_valid(it) && !store_iter_status(it, NULL);
	store_iter_close(it);
	return empty;
}

enum err_code head_open_spare_meta(const struct window *w, const struct window_opening *o,
	struct window_meta *out, struct err *err)
{
	struct str value;
	struct head_name n;

	return head_names_find(&o->names,
		STR("m"), &n) && !store_record_value(n.key, n.record, 0, &value, NULL) ?
		head_parse_meta(value, w->names_path, out, err) :
		ERR_NOT_FOUND;
}

/* Finds the window's times and identity. Two of three places that agree are right: a log or a table
 * of another window has that window's record. ERR_NOT_FOUND: the window is empty. */
static enum err_code head_open_find_meta(
	struct db *db, struct window *w, struct window_opening *o, struct err *err)
{
	struct window_meta m, spare;
	enum err_code rc = head_read_meta(w->store, &m, err),
				  other = head_open_spare_meta(w, o, &spare, NULL);

	if (rc && rc != ERR_NOT_FOUND && rc != ERR_CORRUPT)
		return rc;
	if (!rc && m.start_ns != w->start_ns)
		rc = err_set(err, ERR_CORRUPT, "store %s holds the window of %" PRId64, w->dir,
			m.start_ns / NS_PER_S);
	if (rc == ERR_NOT_FOUND && other && !o->mark.there && !o->damaged && head_open_is_empty(w))
		return rc; /* a crash between making the store and its first record */
	if (!rc && !other && o->mark.whole && !o->mark.rows_only && m.identity != spare.identity &&
		o->mark.identity == spare.identity)
		rc = err_set(err, ERR_CORRUPT, "store %s belongs to another window", w->dir);
	if (rc)
		head_suspect(o, err);
	if (rc && !other)
		m = spare;
	else if (rc)
		m = (struct window_meta){ w->start_ns, w->start_ns + db->o.window_ns,
			o->names.identity ? o->names.identity : o->mark.identity, false };
	w->end_ns = m.end_ns;
	w->identity = m.identity;
	w->links = m.links;
	store_set_identity(w->store, w->identity);
	return ERR_OK;
}

static void head_open_set_shadow(struct db *db, struct window *w, bool shadow)
{
	mutex_lock(&db->lock);
	w->shadow = shadow;
	cond_broadcast(&db->changed);
	mutex_unlock(&db->lock);
}

/* A full disk does not stop readers; no rows are taken until the store is opened properly. */
static enum err_code open_shadow(struct db *db, struct window *w, enum err_code rc, struct err *err)
{
	struct err why = *err;

	if (db->o.read_only || !store_is_full(&why))
		return rc;
	store_close(w->store);
	w->store = NULL;
	if ((rc = store_open_shadow(w->dir, db->cache, db->o.store, &w->store, err)))
		return rc;
	log_warn(
		"tsdb", "disk is full: store opened for reading only", LOG_S("store", w->dir), LOG_E(&why));
	head_open_set_shadow(db, w, true);
	return ERR_OK;
}

/* The disk is still full: opens the store for reading only again. */
static void head_open_shadow_again(struct db *db, struct window *w, const struct err *why)
{
	struct store *s = NULL;
	struct err err;

	log_warn("tsdb", "store takes no rows yet", LOG_S("store", w->dir), LOG_E(why));
	if (store_open_shadow(w->dir, db->cache, db->o.store, &s, &err)) {
		log_error("tsdb", "reopening failed", LOG_S("store", w->dir), LOG_E(&err));
		return;
	}
	store_set_identity(s, w->identity);
	mutex_lock(&db->lock);
	w->store = s;
	w->draining = false;
	cond_broadcast(&db->changed);
	mutex_unlock(&db->lock);
}

void head_leave_shadows(struct db *db)
{
	struct window *w = NULL;
	enum err_code rc = ERR_OK;
	struct err err;

	while (!rc) { /* each turn has one less */
		mutex_lock(&db->lock);
		w = NULL;
		for (size_t i = 0; i < db->windows_n && !w && !db->closing; i++)
			if (db->windows[i]->shadow)
				(w = db->windows[i])->pins++;
		mutex_unlock(&db->lock);
		if (!w)
			return;
		if (!(rc = head_reopen(db, w, ERR_OK, &err))) {
			head_open_set_shadow(db, w, false);
			log_info("tsdb", "store takes rows again", LOG_S("store", w->dir));
		} else if (rc != ERR_UNAVAILABLE) {
			head_open_shadow_again(db, w, &err);
		}
		head_unpin(db, w);
	}
}

static enum err_code head_open_parts(
	struct db *db, struct window *w, struct window_opening *o, struct err *err)
{
	struct err repaired = { 0 };
	enum err_code rc;

	head_read_mark(w, &o->mark);
	if ((rc = head_names_read(w, &o->names, err)))
		return rc;
	if ((rc = open_or_repair(db, w, &repaired, err))) {
		if ((rc = open_shadow(db, w, rc, err)))
			return rc;
		repaired = (struct err){ 0 };
	}
	if (repaired.code)
		head_suspect(o, &repaired);
	if (o->mark.there && !o->mark.whole)
		log_warn(
			"tsdb", "mark cannot be read; nothing is lost by that", LOG_S("path", w->mark_path));
	if ((rc = head_open_find_meta(db, w, o, err)) || (rc = head_open_heal(db, w, o, err)))
		return rc;
	return head_load(db, w, o, err);
}

enum err_code head_open_window(struct db *db, int64_t start_s, struct err *err)
{
	struct window *w;
	struct window_opening o = { 0 };
	enum err_code rc;
	char *where;
	bool room;

	mutex_lock(&db->lock);
	room = windows_reserve_locked(db);
	mutex_unlock(&db->lock);
	if (!room || !(w = window_new(db, start_s * NS_PER_S, 0)))
		return err_nomem(err, "window");
	rc = head_open_parts(db, w, &o, err);
	head_names_release(&o.names);
	if (rc == ERR_NOT_FOUND) {
		store_close(w->store);
		w->store = NULL;
		rc = fs_remove_tree(db->o.fs, w->dir, err);
		window_free(db, w);
		return rc;
	}
	if (rc) {
		if (rc != ERR_NOMEM && rc != ERR_IO && rc != ERR_UNSUPPORTED) {
			head_open_set_aside(db, w, o.mark.count.rows, err);
			rc = ERR_OK;
		}
		window_free(db, w);
		return rc;
	}
	head_open_end_repair(db, w);
	/* Symbols that were lost are found by who needs them, but not which of them there were. */
	if ((where = head_where(w, "%s", "")) && losses_has(db->losses, str_of(where)))
		w->damaged = true;
	free(where);
	mutex_lock(&db->lock);
	windows_insert_locked(db, w);
	mutex_unlock(&db->lock);
	if (w->count.max_ns > atomic_load(&db->max_ts_ns))
		atomic_store(&db->max_ts_ns, w->count.max_ns);
	return ERR_OK;
}

/* ---- all of them ---- */

/* The inventory no longer names it: the files beside it could not be removed. */
static bool head_open_went(struct db *db, const struct window *w)
{
	struct inventory_entry e = { .min_ns = w->start_ns }, is;

	return db->inventory_found == INVENTORY_READ && !inventory_find(db->inventory, &e, &is);
}

/* There are files beside a window's directory, but the directory is missing. */
static enum err_code head_open_missing_window(struct db *db, int64_t start_s, struct err *err)
{
	struct window *w = window_new(db, start_s * NS_PER_S, 0);
	struct window_opening o = { 0 };
	struct window_meta m;
	char *where = NULL, *dropped = NULL;
	enum err_code rc;
	struct err why;

	if (!w || asprintf(&dropped, "%s%s", w->dir, DROPPED) < 0) {
		window_free(db, w);
		return err_nomem(err, "window");
	}
	if (fs_exists(w->dir) || fs_exists(dropped) || window_is_aside(db, w->start_ns))
		goto out;
	if (head_open_went(db, w)) {
		if (!db->o.read_only)
			window_remove_beside(db, w);
		goto out;
	}
	if ((rc = head_names_read(w, &o.names, err)))
		goto out;
	head_read_mark(w, &o.mark);
	w->end_ns = w->start_ns + db->o.window_ns;
	if (!head_open_spare_meta(w, &o, &m, NULL))
		w->end_ns = m.end_ns;
	err_set(&why, ERR_CORRUPT, "its directory is missing");
	where = head_where(w, "%s", "");
	if (where && o.mark.there &&
		db_lost(db, LOSS_WINDOW, where, w->start_ns, w->end_ns, o.mark.count.rows, &why) &&
		!db->o.read_only)
		window_remove_beside(db, w);
out:
	head_names_release(&o.names);
	free(where);
	free(dropped);
	window_free(db, w);
	return ERR_OK;
}

static bool head_open_start_of(struct str name, const char *suffix, int64_t *start)
{
	if (!str_has_suffix(name, str_of(suffix)))
		return false;
	name.len -= strlen(suffix);
	return str_to_i64(name, start) && *start >= 0 && *start <= INT64_MAX / NS_PER_S;
}

static enum err_code head_open_one(struct db *db, struct arena *a, struct str name, struct err *err)
{
	enum err_code rc;
	int64_t start;
	char *path;

	if (head_open_start_of(name, "", &start)) /* one that a block replaced could not be removed */
		return blocks_have_window(db, start * NS_PER_S) ? ERR_OK : head_open_window(db, start, err);
	if (head_open_start_of(name, ".acked", &start) || head_open_start_of(name, ".names", &start))
		return head_open_missing_window(db, start, err);
	if (!str_has_suffix(name, STR(DROPPED)) || db->o.read_only)
		return ERR_OK;
	/* The rename was perhaps not synced yet: half of a window must not come back. */
	path = path_join(a, str_of(db->head_dir), name);
	if (!path)
		return arena_fail(a, "open", err);
	rc = db->o.fs->ops->sync_dir(db->o.fs, db->head_dir, err);
	return rc ? rc : fs_remove_tree(db->o.fs, path, err);
}

enum err_code head_open_all(struct db *db, struct err *err)
{
	struct arena a;
	struct str *names;
	size_t n;
	enum err_code rc;

	arena_init(&a, 0);
	if ((rc = fs_list(db->head_dir, &a, &names, &n, err)))
		goto out;
	for (size_t i = 0; i < n && !rc; i++)
		rc = head_open_one(db, &a, names[i], err);
	/* Overlapping windows come from elsewhere; times would be served twice. */
	for (size_t i = 1; i < db->windows_n && !rc; i++)
		if (db->windows[i - 1]->end_ns > db->windows[i]->start_ns)
			rc = err_set(err, ERR_CORRUPT, "windows %s and %s overlap", db->windows[i - 1]->dir,
				db->windows[i]->dir);
	if (!rc)
		rc = head_take_back(db, err);
out:
	arena_release(&a);
	return rc;
}
