#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/head/ship_internal.h"
#include "tsdb/segments/segments.h"

/*
 * Files of segments at the start. After kill -9 the last batch in a file may be torn, or may not
 * have reached the store; it was not acknowledged then and is cut off. After a power cut files lack
 * more, since they are not synced: then they do not reach the store's last batch, and the window
 * wants a snapshot.
 */

/* Of the window in the head, or NULL. Nobody changes the list yet. */
static const struct window *ship_open_window_of(const struct db *db, const struct segment *s)
{
	const struct window *w = windows_find(db, s->start_ns);

	return w && w->identity == s->identity ? w : NULL;
}

static void ship_open_remove_file(struct db *db, const char *path, const char *why)
{
	struct err err;

	log_info("tsdb", "segment is not used", LOG_S("path", path), LOG_S("reason", why));
	if (db->o.fs->ops->unlink(db->o.fs, path, &err))
		log_warn("tsdb", "not removed", LOG_S("path", path), LOG_E(&err));
}

static enum err_code ship_open_take_file(struct db *db, const char *path, struct err *err)
{
	const struct window *in_head;
	struct ship_window *w;
	struct segment_whole f;
	enum err_code rc = segment_find_whole(path, UINT64_MAX, &f, err);
	char *copy;

	if (rc == ERR_NOMEM)
		return rc;
	if (!rc && (in_head = ship_open_window_of(db, &f.head)) && f.last > in_head->count.seq)
		rc = segment_find_whole(path, in_head->count.seq, &f, err);
	if (!rc && f.last && truncate(path, (off_t)f.bytes))
		rc = err_set(err, ERR_IO, "its torn end cannot be cut off");
	if (rc || !f.last) {
		ship_open_remove_file(db, path, rc ? err->msg : "no whole batch");
		return ERR_OK;
	}
	if (!(w = ship_find(db->ship, f.head.start_ns, f.head.identity)) &&
		(rc = ship_add(db->ship, f.head.start_ns, f.head.end_ns, f.head.identity, &w, err)))
		return rc;
	if (!(copy = strdup(path)))
		return err_nomem(err, "segments");
	if (w->count.seq < f.last)
		w->count.seq = f.last;
	return ship_add_file(
		db->ship, w, (struct ship_file){ copy, f.head.first, f.last, f.bytes }, err);
}

static enum err_code ship_open_take_windows(struct db *db, struct err *err)
{
	struct ship_window *w;
	enum err_code rc;

	for (size_t i = 0; i < db->windows_n; i++) {
		const struct window *of = db->windows[i];

		if ((rc = ship_add(db->ship, of->start_ns, of->end_ns, of->identity, &w, err)))
			return rc;
		w->count = of->count;
		w->anew = of->damaged;
	}
	return ERR_OK;
}

static bool ship_open_is_segment(struct str name)
{
	return str_find(name, STR(SEGMENT_FILE)) >= 0;
}

enum err_code ship_open(struct db *db, struct err *err)
{
	struct ship *s = db->o.segments ? calloc(1, sizeof(*s)) : NULL;
	struct arena a;
	struct str *names;
	enum err_code rc = ERR_OK;
	size_t n = 0;

	if (db->o.segments && !s)
		return err_nomem(err, "segments");
	if (s) {
		mutex_init(&s->lock);
		cond_init(&s->idle);
		db->ship = s;
		if ((rc = ship_open_take_windows(db, err)))
			return rc;
	}
	arena_init(&a, 0);
	rc = fs_list(db->head_dir, &a, &names, &n, err);
	for (size_t i = 0; i < n && !rc; i++) {
		char *path = ship_open_is_segment(names[i]) ?
			path_join(&a, str_of(db->head_dir), names[i]) :
			NULL;

		if (path && s)
			rc = ship_open_take_file(db, path, err);
		else if (path) /* batches since are in no file */
			ship_open_remove_file(db, path, "segments are off");
	}
	arena_release(&a);
	return rc;
}

void ship_close(struct db *db)
{
	struct ship *s = db->ship;

	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		struct ship_window *w = s->v[i];

		if (w->fd >= 0)
			close(w->fd);
		for (size_t k = 0; k < w->files_n; k++)
			free(w->files[k].path);
		free(w->files);
		free(w);
	}
	free(s->v);
	buf_release(&s->buf);
	cond_destroy(&s->idle);
	mutex_destroy(&s->lock);
	free(s);
	db->ship = NULL;
}

char *ship_path(struct db *db, const struct ship_window *w, uint64_t first)
{
	char *path = NULL;

	if (asprintf(&path, "%s/%" PRId64 "-%016" PRIx64 SEGMENT_FILE "%020" PRIu64, db->head_dir,
			w->start_ns / NS_PER_S, w->identity, first) < 0)
		return NULL;
	return path;
}
