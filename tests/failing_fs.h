/*
 * Failing file system: after `calls_left` calls of the write path each further call fails, as on a
 * disk that is gone. Half of the bytes of a failed write get there.
 */
#ifndef TESTS_FAILING_FS_H
#define TESTS_FAILING_FS_H

#include "base/fs.h"

struct failing_fs {
	struct fs fs; /* first: the calls get it; its ops are failing_fs_ops */
	int calls_left;
	int calls; /* so far */
};

static inline enum err_code failing_fs_spend(struct fs *fs, struct err *err)
{
	struct failing_fs *f = (struct failing_fs *)fs;

	f->calls++;
	return f->calls_left-- > 0 ? ERR_OK : err_set(err, ERR_IO, "no disk");
}

static inline enum err_code failing_fs_open(
	struct fs *fs, const char *path, int flags, int mode, int *fd, struct err *err)
{
	enum err_code rc = failing_fs_spend(fs, err);

	return rc ? rc : fs_posix.ops->open(fs, path, flags, mode, fd, err);
}

static inline enum err_code failing_fs_write(
	struct fs *fs, int fd, const void *p, size_t n, struct err *err)
{
	enum err_code rc = failing_fs_spend(fs, err);

	(void)!fs_posix.ops->write(fs, fd, p, rc ? n / 2 : n, rc ? NULL : err);
	return rc;
}

static inline enum err_code failing_fs_sync(struct fs *fs, int fd, struct err *err)
{
	return failing_fs_spend(fs, err);
}

static inline enum err_code failing_fs_rename(
	struct fs *fs, const char *from, const char *to, struct err *err)
{
	enum err_code rc = failing_fs_spend(fs, err);

	return rc ? rc : fs_posix.ops->rename(fs, from, to, err);
}

static inline enum err_code failing_fs_unlink(struct fs *fs, const char *path, struct err *err)
{
	enum err_code rc = failing_fs_spend(fs, err);

	return rc ? rc : fs_posix.ops->unlink(fs, path, err);
}

/* Directories: the call does nothing. */
static inline enum err_code failing_fs_directory(struct fs *fs, const char *path, struct err *err)
{
	return failing_fs_spend(fs, err);
}

static const struct fs_ops failing_fs_ops = {
	.open = failing_fs_open,
	.write = failing_fs_write,
	.sync = failing_fs_sync,
	.rename = failing_fs_rename,
	.unlink = failing_fs_unlink,
	.mkdir = failing_fs_directory,
	.rmdir = failing_fs_directory,
	.sync_dir = failing_fs_directory,
};

#endif
