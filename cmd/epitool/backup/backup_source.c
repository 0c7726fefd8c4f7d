#include "cmd/epitool/backup/backup_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/quote.h"

#define TAKEN ".backup"
#define TMP ".tmp"

/* Of a directory that no server has. */
static const char *const source_left_out[] = { "lock", "snapshots", "bucket-cache", "restoring" };
/* What a snapshot does not have. */
static const char *const source_beside[] = { "debuginfo", "files", "rules", "senders.json" };

static bool backup_source_is_one_of(struct str name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(name, names[i]))
			return true;
	return false;
}
#define IS_ONE_OF(name, names) \
	backup_source_is_one_of((name), (names), sizeof(names) / sizeof((names)[0]))

/* Some part of the path ends in ".tmp": nobody reads it. */
static bool backup_source_is_unfinished(struct str path)
{
	while (path.len) {
		const char *slash = memchr(path.ptr, '/', path.len);
		size_t n = slash ? (size_t)(slash - path.ptr) : path.len;

		if (str_has_suffix((struct str){ path.ptr, n }, STR(TMP)))
			return true;
		path.ptr += n + (slash != NULL);
		path.len -= n + (slash != NULL);
	}
	return false;
}

static struct str backup_source_first_part(struct str path)
{
	const char *slash = memchr(path.ptr, '/', path.len);

	return (struct str){ path.ptr, slash ? (size_t)(slash - path.ptr) : path.len };
}

/* ---- lists ---- */

static int backup_source_by_path(const void *a, const void *b)
{
	const struct backup_source_file *x = a, *y = b;

	return str_cmp(x->is.key, y->is.key);
}

/* Files of one place; `beside`: only those that a snapshot does not have. */
static enum err_code backup_source_list(
	struct backup_source *s, const struct place *p, bool beside, struct err *err)
{
	struct place_list list;
	enum err_code rc;

	if ((rc = place_list(p, &s->arena, &list, err)))
		return rc;
	if (!arena_array_room(&s->arena, &s->files, s->files_n, list.n, &s->files_cap))
		return arena_fail(&s->arena, "list", err);
	for (size_t i = 0; i < list.n; i++) {
		struct str first = backup_source_first_part(list.v[i].key);

		if (backup_source_is_unfinished(list.v[i].key) ||
			(beside ? !IS_ONE_OF(first, source_beside) : IS_ONE_OF(first, source_left_out)))
			continue;
		if (list.v[i].modified_ns < 0) /* before 1970 */
			list.v[i].modified_ns = 0;
		s->files[s->files_n++] = (struct backup_source_file){ list.v[i], p };
	}
	if (!beside)
		s->odd += list.odd;
	return ERR_OK;
}

static enum err_code backup_source_list_all(struct backup_source *s, struct err *err)
{
	enum err_code rc;

	if ((rc = backup_source_list(s, &s->data, false, err)) ||
		(s->is_snapshot && (rc = backup_source_list(s, &s->beside, true, err))))
		return rc;
	if (s->files_n)
		qsort(s->files, s->files_n, sizeof(*s->files), backup_source_by_path);
	return ERR_OK;
}

/* ---- a snapshot ---- */

/* Of backups that were killed. */
static void backup_source_remove_left(struct backup_source *s, const char *dir)
{
	struct str *names;
	struct err err;
	size_t n;

	if (fs_list(dir, &s->arena, &names, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		char *path = path_join(&s->arena, str_of(dir), names[i]);
		char *lock = arena_printf(&s->arena, "%s/lock", path ? path : "");
		int fd;

		if (!path || !lock || !str_has_suffix(names[i], STR(TAKEN)) || fs_lock(lock, &fd, NULL))
			continue;
		if (fs_remove_tree(&fs_posix, path, &err))
			log_warn("epitool", "a snapshot stays", LOG_S("path", path), LOG_E(&err));
		fs_unlock(fd);
	}
}

static enum err_code backup_source_take_snapshot(
	struct backup_source *s, const char *dir, const struct backup_asking *asking, struct err *err)
{
	char *snapshots = arena_printf(&s->arena, "%s/snapshots", dir), *path, *taken, *lock;
	enum err_code rc;
	struct str name;

	if (!snapshots)
		return arena_fail(&s->arena, "snapshot", err);
	backup_source_remove_left(s, snapshots);
	if ((rc = asking->snapshot(asking->ctx, &s->arena, &name, err)))
		return rc;
	if (!name.len || name.ptr[0] == '.' || memchr(name.ptr, '/', name.len))
		return err_set(err, ERR_INVALID, "the server calls a snapshot %s", QUOTED(name));
	path = path_join(&s->arena, str_of(snapshots), name);
	taken = arena_printf(&s->arena, "%s" TAKEN, path ? path : "");
	lock = arena_printf(&s->arena, "%s/lock", taken ? taken : "");
	if (!path || !taken || !lock)
		return arena_fail(&s->arena, "snapshot", err);
	if (!fs_exists(path))
		return err_set(err, ERR_NOT_FOUND,
			"%s is not there: the server that made it has another directory", path);
	if (rename(path, taken))
		return err_errno(err, errno, "rename %s", path);
	s->data.path = taken;
	s->is_snapshot = true;
	return fs_lock(lock, &s->lock, err);
}

enum err_code backup_source_open(
	const char *dir, const struct backup_asking *asking, struct backup_source *out, struct err *err)
{
	char *lock, *inside;
	enum err_code rc;

	*out = (struct backup_source){ .data.path = dir, .beside.path = dir, .lock = -1 };
	arena_init(&out->arena, 0);
	lock = arena_printf(&out->arena, "%s/lock", dir);
	inside = arena_printf(&out->arena, "%s/blocks", dir);
	if (!lock || !inside)
		return arena_fail(&out->arena, "backup", err);
	if (!fs_exists(inside))
		return err_set(err, ERR_NOT_FOUND, "%s is no data directory: it has no blocks/", dir);
	rc = fs_lock(lock, &out->lock, err);
	if (rc == ERR_UNAVAILABLE)
		rc = backup_source_take_snapshot(out, dir, asking, err);
	return rc ? rc : backup_source_list_all(out, err);
}

void backup_source_close(struct backup_source *s)
{
	struct err err;

	if (s->is_snapshot && fs_remove_tree(&fs_posix, s->data.path, &err))
		log_warn("epitool", "a snapshot stays", LOG_S("path", s->data.path), LOG_E(&err));
	fs_unlock(s->lock);
	arena_release(&s->arena);
}
