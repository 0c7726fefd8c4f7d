#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/cluster/restore.h"

/*
 * A directory that is not the one of the manifest keeps its data in a folder of itself. The marker
 * names the folder before the first file moves, so a start after a crash moves the rest there, and
 * nothing is removed that should have moved. Older folders go once the new one is whole.
 */

#define MOVES "The data moves to "
#define TEXT_BYTES_MAX 128u

const char *const restore_made[] = { "head", "blocks", "inventory", "inventory.copy", "ids",
	"losses", "losses.copy", NULL };

static bool aside_is_name(struct str name)
{
	return str_has_prefix(name, STR(ASIDE_PREFIX)) && name.len < ASIDE_NAME_BYTES &&
		!memchr(name.ptr, '/', name.len);
}

/* Named by the time, or by a later second if that name is taken. */
static void aside_new_name(const char *dir, char out[ASIDE_NAME_BYTES])
{
	time_t now = clock_now_ns() / NS_PER_S;
	char path[4096];
	struct tm tm;

	do { /* at most two names are taken */
		gmtime_r(&now, &tm);
		strftime(out, ASIDE_NAME_BYTES, ASIDE_PREFIX "%Y%m%dT%H%M%SZ", &tm);
		snprintf(path, sizeof(path), "%s/%s", dir, out);
		now++;
	} while (fs_exists(path));
}

enum err_code aside_begin(
	struct fs *fs, const char *dir, const char *marker, char out[ASIDE_NAME_BYTES], struct err *err)
{
	char text[TEXT_BYTES_MAX];

	aside_new_name(dir, out);
	snprintf(text, sizeof(text), MOVES "%s\n", out);
	return fs_write_file(fs, marker, str_of(text), err);
}

bool aside_is_under_way(const char *marker, char out[ASIDE_NAME_BYTES])
{
	struct buf text = { 0 };
	struct str name;
	bool is;

	is = !fs_read_file(marker, TEXT_BYTES_MAX, &text, NULL) &&
		str_has_prefix(buf_str(&text), STR(MOVES));
	if (is) {
		name = str_trim(buf_str(&text));
		name.ptr += sizeof(MOVES) - 1;
		name.len -= sizeof(MOVES) - 1;
		if ((is = aside_is_name(name)))
			snprintf(out, ASIDE_NAME_BYTES, STR_FMT, STR_ARG(name));
	}
	buf_release(&text);
	return is;
}

/* All but the new one. */
static enum err_code aside_remove_older(
	struct fs *fs, const char *dir, const char *name, struct arena *a, size_t *n, struct err *err)
{
	struct str *names;
	enum err_code rc;
	size_t all = 0;
	char *path;

	*n = 0;
	if ((rc = fs_list(dir, a, &names, &all, err)))
		return rc;
	for (size_t i = 0; i < all && !rc; i++) {
		if (!aside_is_name(names[i]) || str_is(names[i], name))
			continue;
		if (!(path = path_join(a, str_of(dir), names[i])))
			return arena_fail(a, "restore", err);
		if (!(rc = fs_remove_tree(fs, path, err)))
			++*n;
	}
	return rc;
}

static enum err_code aside_move_all(
	struct fs *fs, const char *dir, const char *to, struct arena *a, struct err *err)
{
	enum err_code rc;

	if ((rc = fs_mkdir_all(fs, to, err)))
		return rc;
	for (size_t i = 0; restore_made[i]; i++) {
		char *old = path_join(a, str_of(dir), str_of(restore_made[i])),
			 *new = path_join(a, str_of(to), str_of(restore_made[i]));

		if (!old || !new)
			return arena_fail(a, "restore", err);
		if (fs_exists(old) && (rc = fs->ops->rename(fs, old, new, err)))
			return rc;
	}
	if ((rc = fs->ops->sync_dir(fs, to, err)))
		return rc;
	return fs->ops->sync_dir(fs, dir, err);
}

enum err_code aside_move(struct fs *fs, const char *dir, const char *name, struct err *err)
{
	struct arena a;
	enum err_code rc;
	size_t older;
	char *to;

	arena_init(&a, 0);
	if (!(to = path_join(&a, str_of(dir), str_of(name))))
		rc = arena_fail(&a, "restore", err);
	else if (!(rc = aside_move_all(fs, dir, to, &a, err)) &&
		!(rc = aside_remove_older(fs, dir, name, &a, &older, err)))
		log_warn("cluster",
			"the data directory is not the one that published last: its data was set aside",
			LOG_S("folder", to), LOG_I("older_folders_removed", (int64_t)older));
	arena_release(&a);
	return rc;
}
