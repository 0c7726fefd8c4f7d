#include "tsdb/head/follow.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/head/segment_put.h"

/*
 * A window that is followed is a store like any other, but nothing of it is synced: after a crash
 * it is made again of its segments. Its directory has a number, so that one that takes the place of
 * another can be made beside it.
 */

static void follow_raise(_Atomic int64_t *to, int64_t value)
{
	int64_t is = atomic_load(to);

	while (is < value && !atomic_compare_exchange_weak(to, &is, value))
		;
}

/* This thread alone changes the list. */
static struct window *follow_find(struct db *db, int64_t start_ns)
{
	struct window *w;

	mutex_lock(&db->lock);
	w = windows_find(db, start_ns);
	mutex_unlock(&db->lock);
	return w;
}

uint64_t head_followed(struct db *db, int64_t start_ns, uint64_t identity)
{
	const struct window *w = follow_find(db, start_ns);

	return w && w->identity == identity && !w->follow_failed ? w->count.seq : 0;
}

/* ---- windows that go ---- */

/* Takes a window that left the list and has no users; NULL: there is none. */
static struct window *follow_take_unused(struct db *db)
{
	struct window **at = &db->dropping, *w;

	mutex_lock(&db->lock);
	while ((w = *at) && (w->pins || w->waiting))
		at = &w->next_dropping;
	if (w)
		*at = w->next_dropping;
	mutex_unlock(&db->lock);
	return w;
}

static void follow_free_window(struct db *db, struct window *w)
{
	struct partition *p;
	struct err err;
	uint32_t at = 0;

	while ((p = partition_next(db, &at))) {
		mutex_lock(&p->lock);
		partition_forget_source(p, w->number);
		mutex_unlock(&p->lock);
		partition_unpin(db, p);
	}
	store_close(w->store);
	w->store = NULL;
	if (fs_remove_tree(db->o.fs, w->dir, &err))
		log_warn("tsdb", "window not removed", LOG_S("store", w->dir), LOG_E(&err));
	window_free(db, w);
}

void head_follow_sweep(struct db *db)
{
	struct window *w;
	bool any = false;

	for (; (w = follow_take_unused(db)); any = true)
		follow_free_window(db, w);
	if (any)
		db_retire_series(db);
}

void head_follow_drop(struct db *db, int64_t start_ns, uint64_t identity)
{
	struct window *w = follow_find(db, start_ns);

	if (w && w->identity == identity) {
		mutex_lock(&db->lock);
		windows_take_locked(db, w);
		mutex_unlock(&db->lock);
	}
	head_follow_sweep(db);
}

/* ---- deleted ranges ---- */

static enum err_code follow_set_deleted(
	struct db *db, struct window *w, const struct deleted_range *r, size_t n, struct err *err)
{
	struct deleted_range *copy = calloc(n + 1, sizeof(*copy));
	struct deleted d;
	enum err_code rc;

	if (!copy)
		return err_nomem(err, "deleted ranges");
	if (n)
		memcpy(copy, r, n * sizeof(*copy));
	rc = deleted_make(copy, n, (struct deleted){ w->deleted, w->deleted_n }, &d, err);
	free(copy);
	if (rc)
		return rc;
	mutex_lock(&db->lock);
	w->deleted = d.v;
	w->deleted_n = d.n;
	mutex_unlock(&db->lock);
	return ERR_OK;
}

static bool follow_same_ranges(struct deleted a, struct deleted b)
{
	bool same = a.n == b.n;

	for (size_t i = 0; i < a.n && same; i++)
		same = a.v[i].series == b.v[i].series && a.v[i].min_ns == b.v[i].min_ns &&
			a.v[i].max_ns == b.v[i].max_ns;
	return same;
}

static enum err_code follow_read_deleted(
	struct db *db, struct window *w, struct str bytes, struct err *err)
{
	char of[DELETED_OF_MAX];
	struct deleted d;
	enum err_code rc;

	if (!bytes.len)
		return ERR_OK;
	if ((rc = deleted_decode(bytes, "deleted ranges", window_deleted_of(w->start_ns, of), &d, err)))
		return rc;
	if (!follow_same_ranges(d, (struct deleted){ w->deleted, w->deleted_n }))
		rc = follow_set_deleted(db, w, d.v, d.n, err);
	deleted_release(d.v);
	return rc;
}

enum err_code head_follow_deleted(
	struct db *db, int64_t start_ns, uint64_t identity, struct str bytes, struct err *err)
{
	struct window *w = follow_find(db, start_ns);

	if (!w || w->identity != identity)
		return err_set(err, ERR_NOT_FOUND, "window %" PRId64 " is not followed", start_ns);
	return follow_read_deleted(db, w, bytes, err);
}

/* ---- segments ---- */

static enum err_code follow_put(
	struct db *db, struct window *w, const struct segment *of, struct str bytes, struct err *err)
{
	struct segment_put p = { .store = w->store, .of = *of, .seq = w->count.seq, .db = db };
	enum err_code rc, other;

	if ((rc = segment_put_init(&p, err)))
		return rc;
	if (!(rc = head_load_open(db, w, &p.index, err))) {
		rc = segment_put_names(&p, bytes, err);
		other = head_load_close(p.index, rc ? NULL : err);
		rc = rc ? rc : other;
	}
	if (!rc) {
		/* Symbols of rows to come can be loaded from now on, and counts are not whole. */
		follow_raise(&db->queued_max_ns, p.count.max_ns);
		atomic_fetch_add(&w->followed, 1);
		rc = segment_put_rows(&p, bytes, err);
	}
	if (!rc) {
		mutex_lock(&db->lock);
		w->count = p.count;
		w->links |= p.links;
		mutex_unlock(&db->lock);
		follow_raise(&db->max_ts_ns, p.count.max_ns);
	}
	segment_put_release(&p);
	return rc;
}

static enum err_code follow_make_store(struct db *db, struct window *w, struct err *err)
{
	char *dir = NULL;
	enum err_code rc;

	if (asprintf(&dir, "%s.%" PRIu64, w->dir, ++db->followed) < 0)
		return err_nomem(err, "window");
	free(w->dir);
	w->dir = dir;
	if ((rc = store_open_copy(w->dir, db->cache, db->o.store, &w->store, err)))
		return rc;
	store_set_identity(w->store, w->identity);
	return head_write_meta(db, w, err);
}

/* Takes the place of `old`, if there is one. */
static enum err_code follow_publish(
	struct db *db, struct window *w, struct window *old, struct err *err)
{
	enum err_code rc;

	if (old && (rc = follow_set_deleted(db, w, old->deleted, old->deleted_n, err)))
		return rc;
	mutex_lock(&db->lock);
	if (!windows_reserve_locked(db)) {
		mutex_unlock(&db->lock);
		return err_nomem(err, "window");
	}
	if (old)
		windows_take_locked(db, old);
	windows_insert_locked(db, w);
	mutex_unlock(&db->lock);
	return ERR_OK;
}

static enum err_code follow_make_window(struct db *db, const struct segment *of, struct window *old,
	struct str bytes, struct str deleted, struct err *err)
{
	struct window *w = window_new(db, of->start_ns, of->end_ns);
	enum err_code rc;

	if (!w)
		return err_nomem(err, "window");
	w->identity = of->identity;
	w->sealed = true;
	if ((rc = follow_make_store(db, w, err)) || (rc = follow_put(db, w, of, bytes, err)) ||
		(rc = follow_publish(db, w, old, err)) || (rc = follow_read_deleted(db, w, deleted, err))) {
		if (follow_find(db, of->start_ns) == w)
			return rc; /* the window is in the list, without its deleted ranges */
		follow_free_window(db, w);
		db_retire_series(db); /* those that it alone has */
	}
	return rc;
}

enum err_code head_follow(
	struct db *db, const struct segment *of, struct str bytes, struct str deleted, struct err *err)
{
	struct window *w = follow_find(db, of->start_ns);
	bool same = w && w->identity == of->identity && !w->follow_failed;
	uint64_t seq = same ? w->count.seq : 0;
	enum err_code rc;

	assert(db->o.follower);
	head_follow_sweep(db);
	if (same && of->last <= seq) {
		rc = follow_read_deleted(db, w, deleted, err);
	} else if (of->first > seq + 1) {
		rc = err_set(err, ERR_NOT_FOUND, "batch %" PRIu64 " is missing", seq + 1);
	} else if (same && (of->first > 1 || !seq)) {
		if (!(rc = follow_read_deleted(db, w, deleted, err)))
			rc = follow_put(db, w, of, bytes, err);
		/* LevelDB takes no more after a write that failed. */
		w->follow_failed = rc == ERR_IO;
	} else {
		rc = follow_make_window(db, of, w, bytes, deleted, err);
		head_follow_sweep(db);
	}
	return rc ? err_wrap(err, rc, "follow window %" PRId64, of->start_ns / NS_PER_S) : ERR_OK;
}
