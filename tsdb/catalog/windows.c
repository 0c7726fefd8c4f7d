#include "tsdb/catalog/windows.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "tsdb/catalog/state.h"
#include "tsdb/catalog/window_epochs.h"

/*
 * Windows on disk: head/<start>/ is a LevelDB, head/<start>.acked says how much was acknowledged,
 * head/<start>.names is a second copy of the small records.
 *
 * A file beside a directory says that the directory must be there. So a window that is dropped
 * loses those files first; then its directory is renamed to <start>.dropped. No start ever finds
 * half of a window.
 */
#define DROPPED ".dropped"

static char *windows_text(const char *fmt, const char *a, int64_t b, const char *text)
{
	char *s = NULL;

	return asprintf(&s, fmt, a, b, text) < 0 ? NULL : s;
}

struct window *window_new(struct db *db, int64_t start_ns, int64_t end_ns)
{
	struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->start_ns = start_ns;
	w->end_ns = end_ns;
	w->mark_fd = w->names_fd = -1;
	w->dir = windows_text("%s/%" PRId64 "%s", db->head_dir, start_ns / NS_PER_S, "");
	w->mark_path = windows_text("%s/%" PRId64 "%s", db->head_dir, start_ns / NS_PER_S, ".acked");
	w->names_path = windows_text("%s/%" PRId64 "%s", db->head_dir, start_ns / NS_PER_S, ".names");
	if (!w->dir || !w->mark_path || !w->names_path) {
		window_free(db, w);
		return NULL;
	}
	return w;
}

static void windows_close_synced(struct db *db, int fd, const char *path)
{
	struct err err;

	if (fd < 0)
		return;
	if (db->o.fs->ops->sync(db->o.fs, fd, &err))
		log_warn("tsdb", "not synced", LOG_S("path", path), LOG_E(&err));
	close(fd);
}

void window_free(struct db *db, struct window *w)
{
	if (!w)
		return;
	window_epochs_release(w);
	store_close(w->store);
	windows_close_synced(db, w->mark_fd, w->mark_path);
	windows_close_synced(db, w->names_fd, w->names_path);
	bits_release(&w->series);
	deleted_release(w->deleted);
	free(w->dir);
	free(w->mark_path);
	free(w->names_path);
	free(w);
}

/* ---- the list ---- */

void windows_insert_locked(struct db *db, struct window *w)
{
	size_t i = db->windows_n++;

	mutex_assert_held(&db->lock);
	assert(i < db->windows_cap);
	w->number = ++db->source_number;
	for (; i && db->windows[i - 1]->start_ns > w->start_ns; i--)
		db->windows[i] = db->windows[i - 1];
	db->windows[i] = w;
}

bool windows_reserve_locked(struct db *db)
{
	mutex_assert_held(&db->lock);
	return array_room(&db->windows, db->windows_n, 1, &db->windows_cap);
}

void windows_take_locked(struct db *db, struct window *w)
{
	size_t i = 0;

	mutex_assert_held(&db->lock);
	while (i < db->windows_n && db->windows[i] != w)
		i++;
	assert(i < db->windows_n);
	db->windows_n--;
	memmove(db->windows + i, db->windows + i + 1, (db->windows_n - i) * sizeof(struct window *));
	w->next_dropping = db->dropping;
	db->dropping = w;
	blocks_tell(db, DB_WINDOW_DROPPED, NULL, w->start_ns);
}

bool windows_have_shadow_locked(const struct db *db)
{
	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->windows_n; i++)
		if (db->windows[i]->shadow)
			return true;
	return false;
}

struct window *windows_find(const struct db *db, int64_t start_ns)
{
	for (size_t i = 0; i < db->windows_n; i++)
		if (db->windows[i]->start_ns == start_ns)
			return db->windows[i];
	return NULL;
}

/* ---- files ---- */

void window_remove_beside(struct db *db, const struct window *w)
{
	const char *const paths[] = { w->mark_path, w->names_path };
	struct err err;

	for (size_t i = 0; i < 2; i++)
		if (fs_exists(paths[i]) && db->o.fs->ops->unlink(db->o.fs, paths[i], &err))
			log_warn("tsdb", "not removed", LOG_S("path", paths[i]), LOG_E(&err));
}

/* Once the rename is durable no start reads the window, even if its files stay. */
bool window_remove_files(struct db *db, struct window *w)
{
	struct fs *fs = db->o.fs;
	char *dropped = windows_text("%s/%" PRId64 "%s", db->head_dir, w->start_ns / NS_PER_S, DROPPED);
	struct err err = { 0 };
	bool gone;

	window_remove_beside(db, w); /* first: without the directory these files would mean a loss */
	gone = dropped && !fs->ops->rename(fs, w->dir, dropped, &err) &&
		!fs->ops->sync_dir(fs, db->head_dir, &err);
	if (!gone || fs_remove_tree(fs, dropped, &err))
		log_warn("tsdb", "window not removed", LOG_S("store", w->dir), LOG_E(&err));
	free(dropped);
	return gone;
}

bool window_remove_leftover(struct db *db, int64_t start_ns)
{
	struct window *w = window_new(db, start_ns, 0);
	bool gone = w != NULL;
	struct err err;

	if (w && fs_exists(w->dir)) {
		log_info("tsdb", "window is in a block already", LOG_S("store", w->dir));
		if (!db->o.read_only) {
			gone = window_remove_files(db, w);
		} else if (fs_remove_tree(db->o.fs, w->dir, &err)) { /* w->dir is a temporary copy */
			log_warn("tsdb", "window not removed", LOG_E(&err));
			gone = false;
		}
	}
	if (w)
		window_remove_beside(db, w);
	window_free(db, w);
	return gone;
}

/* ---- stores that were set aside ---- */

bool window_aside_start(struct str name, int64_t *start_s)
{
	ptrdiff_t dot = str_find(name, STR("."));
	int64_t ns;
	struct str rest;

	if (dot < 0 || !str_has_suffix(name, STR(WINDOW_ASIDE)))
		return false;
	rest = (struct str){ name.ptr + dot + 1, name.len - (size_t)dot - 1 };
	if (rest.len <= strlen(WINDOW_ASIDE))
		return false;
	rest.len -= strlen(WINDOW_ASIDE);
	name.len = (size_t)dot;
	return str_to_i64(name, start_s) && *start_s >= 0 && *start_s <= INT64_MAX / NS_PER_S &&
		str_to_i64(rest, &ns);
}

bool window_is_aside(const struct db *db, int64_t start_ns)
{
	struct str *names;
	struct arena a;
	bool found = false;
	int64_t start;
	size_t n = 0;

	arena_init(&a, 0);
	if (fs_list(db->head_dir, &a, &names, &n, NULL))
		n = 0;
	for (size_t i = 0; i < n && !found; i++)
		found = window_aside_start(names[i], &start) && start * NS_PER_S == start_ns;
	arena_release(&a);
	return found;
}
