#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fs.h"
#include "tsdb/store/store_internal.h"

/*
 * Repairing a store. What a repair lost shows in the number of records alone: the repaired store
 * opens like any other. So the directory gets a mark before it is changed, which stays until the
 * loss is on a list.
 */
#define REPAIR_MARK "REPAIRED"

static char *store_repair_mark(struct arena *a, const char *dir)
{
	return path_join(a, str_of(dir), STR(REPAIR_MARK));
}

bool store_was_repaired(const char *dir)
{
	struct arena a;
	char *path;
	bool was;

	arena_init(&a, 0);
	path = store_repair_mark(&a, dir);
	was = path && fs_exists(path);
	arena_release(&a);
	return was;
}

enum err_code store_end_repair(struct fs *fs, const char *dir, struct err *err)
{
	enum err_code rc;
	struct arena a;
	char *path;

	arena_init(&a, 0);
	path = store_repair_mark(&a, dir);
	rc = path ? fs->ops->unlink(fs, path, err) : arena_fail(&a, "repair", err);
	arena_release(&a);
	return rc;
}

/* LevelDB's repair does not sync the MANIFEST it writes, nor the directory. */
static enum err_code store_repair_sync(const char *dir, struct err *err)
{
	struct fs *fs = &fs_posix;
	struct arena a;
	struct str *names;
	enum err_code rc;
	struct stat st;
	size_t n;

	arena_init(&a, 0);
	rc = fs_list(dir, &a, &names, &n, err);
	for (size_t i = 0; !rc && i < n; i++) {
		char *path = path_join(&a, str_of(dir), names[i]);
		int fd;

		if (!path)
			rc = arena_fail(&a, "repair", err);
		else if (stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
			!(rc = fs->ops->open(fs, path, O_RDONLY, 0, &fd, err))) {
			rc = fs->ops->sync(fs, fd, err);
			close(fd);
		}
	}
	arena_release(&a);
	return rc ? rc : fs->ops->sync_dir(fs, dir, err);
}

enum err_code store_repair(const char *dir, struct err *err)
{
	leveldb_options_t *o;
	char *msg = NULL, *mark;
	enum err_code rc;
	struct arena a;

	arena_init(&a, 0);
	mark = store_repair_mark(&a, dir);
	rc = mark ? fs_write_file(&fs_posix, mark, STR(""), err) : arena_fail(&a, "repair", err);
	arena_release(&a);
	if (rc || (rc = store_set_foreign_aside(dir, err)))
		return rc;
	o = store_make_options(NULL);
	leveldb_repair_db(o, dir, &msg);
	leveldb_options_destroy(o);
	rc = store_error_of(msg, dir, err);
	return rc ? rc : store_repair_sync(dir, err);
}
