#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"

#define TREE_DEPTH_MAX 32 /* directories below each other in fs_remove_tree */
#define LIST_MAX (1u << 20) /* names in one directory */
#define READ_STEP (64u << 10) /* bytes read at once where the size is not known */

static enum err_code fs_posix_open(
	struct fs *fs, const char *path, int flags, int mode, int *fd, struct err *err)
{
	int rc;

	do
		rc = open(path, flags | O_CLOEXEC, mode);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return err_errno(err, errno, "open %s", path);
	*fd = rc;
	return ERR_OK;
}

static enum err_code fs_posix_write(
	struct fs *fs, int fd, const void *bytes, size_t n, struct err *err)
{
	const char *at = bytes;
	ssize_t done;

	while (n) {
		done = write(fd, at, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return err_errno(err, done < 0 ? errno : ENOSPC, "write");
		at += done;
		n -= (size_t)done;
	}
	return ERR_OK;
}

static enum err_code fs_posix_sync(struct fs *fs, int fd, struct err *err)
{
	return fdatasync(fd) ? err_errno(err, errno, "sync") : ERR_OK;
}

static enum err_code fs_posix_rename(
	struct fs *fs, const char *from, const char *to, struct err *err)
{
	return rename(from, to) ? err_errno(err, errno, "rename %s to %s", from, to) : ERR_OK;
}

static enum err_code fs_posix_unlink(struct fs *fs, const char *path, struct err *err)
{
	return unlink(path) ? err_errno(err, errno, "remove %s", path) : ERR_OK;
}

static enum err_code fs_posix_mkdir(struct fs *fs, const char *path, struct err *err)
{
	struct stat st;
	int e;

	if (mkdir(path, 0755) == 0)
		return ERR_OK;
	e = errno;
	if (e == EEXIST && stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return ERR_OK;
		e = ENOTDIR;
	}
	return err_errno(err, e, "create directory %s", path);
}

static enum err_code fs_posix_rmdir(struct fs *fs, const char *path, struct err *err)
{
	return rmdir(path) ? err_errno(err, errno, "remove directory %s", path) : ERR_OK;
}

static enum err_code fs_posix_sync_dir(struct fs *fs, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc, e;

	if (fd < 0)
		return err_errno(err, errno, "open directory %s", path);
	rc = fsync(fd);
	e = errno;
	close(fd);
	/* EINVAL: a file system that has nothing to sync there */
	return rc && e != EINVAL ? err_errno(err, e, "sync directory %s", path) : ERR_OK;
}

static enum err_code fs_posix_free_bytes(
	struct fs *fs, const char *path, uint64_t *out, struct err *err)
{
	struct statvfs st;

	if (statvfs(path, &st))
		return err_errno(err, errno, "free space of %s", path);
	*out = (uint64_t)st.f_bavail * st.f_frsize;
	return ERR_OK;
}

static enum err_code fs_posix_free_inodes(
	struct fs *fs, const char *path, uint64_t *out, struct err *err)
{
	struct statvfs st;

	if (statvfs(path, &st))
		return err_errno(err, errno, "free inodes of %s", path);
	*out = st.f_files ? (uint64_t)st.f_favail : UINT64_MAX; /* btrfs makes them as it needs them */
	return ERR_OK;
}

static const struct fs_ops posix_ops = {
	.open = fs_posix_open,
	.write = fs_posix_write,
	.sync = fs_posix_sync,
	.rename = fs_posix_rename,
	.unlink = fs_posix_unlink,
	.mkdir = fs_posix_mkdir,
	.rmdir = fs_posix_rmdir,
	.sync_dir = fs_posix_sync_dir,
	.free_bytes = fs_posix_free_bytes,
	.free_inodes = fs_posix_free_inodes,
};

struct fs fs_posix = { &posix_ops };

static enum err_code fs_too_large(const char *path, uint64_t size, size_t max, struct err *err)
{
	return err_set(err, ERR_LIMIT, "read %s: file is %s%llu bytes, limit %zu", path,
		size > max ? "" : "over ", (unsigned long long)size, max);
}

/* Files of /proc and pipes claim to hold 0 bytes, so only read finds their end. */
static enum err_code fs_read_all(
	int fd, const char *path, size_t max, struct buf *out, struct err *err)
{
	size_t start = out->len, got, step;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return err_errno(err, errno, "read %s", path);
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > max)
		return fs_too_large(path, (uint64_t)st.st_size, max, err);
	step = S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 1 : READ_STEP;
	for (;;) { /* ends: each turn reads a byte at least, and max + 1 are too many */
		got = out->len - start;
		if (!buf_reserve(out, step < max - got + 1 ? step : max - got + 1))
			return err_set(err, ERR_NOMEM, "read %s: out of memory", path);
		n = read(fd, out->ptr + out->len, step < max - got + 1 ? step : max - got + 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "read %s", path);
		if (n == 0)
			return ERR_OK;
		if ((size_t)n > max - got)
			return fs_too_large(path, max, max, err);
		out->len += (size_t)n;
		step = READ_STEP;
	}
}

enum err_code fs_read_file(const char *path, size_t max, struct buf *out, struct err *err)
{
	size_t start = out->len;
	enum err_code rc;
	int fd;

	if (max >= PTRDIFF_MAX)
		max = PTRDIFF_MAX - 1;
	if ((rc = fs_posix_open(&fs_posix, path, O_RDONLY, 0, &fd, err)))
		return rc;
	rc = fs_read_all(fd, path, max, out, err);
	if (rc)
		out->len = start;
	close(fd);
	return rc;
}

enum err_code fs_write_file(struct fs *fs, const char *path, struct str content, struct err *err)
{
	struct str dir = path_dir(str_of(path));
	struct arena a;
	const char *tmp, *dir_path;
	enum err_code rc;
	int fd;

	arena_init(&a, 0);
	tmp = arena_printf(&a, "%s.tmp", path);
	dir_path = str_dup(&a, dir).ptr;
	if (!tmp || !dir_path) {
		rc = arena_fail(&a, "path", err);
		goto out;
	}
	if ((rc = fs->ops->open(fs, tmp, O_WRONLY | O_CREAT | O_TRUNC, 0644, &fd, err)))
		goto out;
	rc = fs->ops->write(fs, fd, content.ptr, content.len, err);
	if (!rc)
		rc = fs->ops->sync(fs, fd, err);
	if (close(fd) && !rc)
		rc = err_errno(err, errno, "close");
	if (!rc)
		rc = fs->ops->rename(fs, tmp, path, err);
	if (rc) {
		/* a file left behind does no harm: the next write replaces it */
		(void)!fs->ops->unlink(fs, tmp, NULL);
		goto out;
	}
	rc = fs->ops->sync_dir(fs, dir_path, err);
out:
	arena_release(&a);
	return rc ? err_wrap(err, rc, "write %s", path) : ERR_OK;
}

static enum err_code base_fs_remove_tree(
	struct fs *fs, const char *path, unsigned depth, struct err *err)
{
	struct arena a;
	struct str *names;
	struct stat st;
	enum err_code rc;
	size_t n, i;

	if (lstat(path, &st))
		return errno == ENOENT ? ERR_OK : err_errno(err, errno, "remove %s", path);
	if (!S_ISDIR(st.st_mode)) /* a link too: its target is not ours */
		return fs->ops->unlink(fs, path, err);
	if (depth == 0)
		return err_set(
			err, ERR_LIMIT, "remove %s: more than %d directories deep", path, TREE_DEPTH_MAX);
	arena_init(&a, 0);
	rc = fs_list(path, &a, &names, &n, err);
	for (i = 0; !rc && i < n; i++) {
		const char *below = path_join(&a, str_of(path), names[i]);

		rc = below ? base_fs_remove_tree(fs, below, depth - 1, err) : arena_fail(&a, "path", err);
	}
	arena_release(&a);
	return rc ? rc : fs->ops->rmdir(fs, path, err);
}

enum err_code fs_remove_tree(struct fs *fs, const char *path, struct err *err)
{
	return base_fs_remove_tree(fs, path, TREE_DEPTH_MAX, err);
}

/* A new directory is synced into its parent, or later files could vanish with it. */
enum err_code fs_mkdir_all(struct fs *fs, const char *path, struct err *err)
{
	struct arena a;
	struct str whole = str_of(path);
	enum err_code rc = ERR_OK;
	size_t i;

	arena_init(&a, 0);
	for (i = 1; !rc && i <= whole.len; i++) {
		const char *dir, *parent;

		if ((i < whole.len && path[i] != '/') || path[i - 1] == '/')
			continue;
		dir = arena_strndup(&a, path, i);
		parent = dir ? str_dup(&a, path_dir((struct str){ dir, i })).ptr : NULL;
		if (!parent)
			rc = arena_fail(&a, "path", err);
		else if (fs_exists(dir) && i < whole.len)
			continue;
		else if (fs_exists(dir))
			rc = fs->ops->mkdir(fs, dir, err); /* fails when it is no directory */
		else if (!(rc = fs->ops->mkdir(fs, dir, err)))
			rc = fs->ops->sync_dir(fs, parent, err);
	}
	arena_release(&a);
	return rc;
}

static int fs_by_name(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static enum err_code fs_list_into(
	DIR *dir, const char *path, struct arena *a, struct str **names, size_t *n, struct err *err)
{
	struct str *v = NULL;
	size_t count = 0, cap = 0;
	struct dirent *e;

	while ((errno = 0, e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (count == LIST_MAX)
			return err_set(err, ERR_LIMIT, "list %s: more than %u names", path, LIST_MAX);
		if (!arena_array_room(a, &v, count, 1, &cap))
			return arena_fail(a, "list", err);
		v[count] = str_dup(a, str_of(e->d_name));
		if (!v[count++].ptr)
			return arena_fail(a, "list", err);
	}
	if (errno)
		return err_errno(err, errno, "list %s", path);
	if (count)
		qsort(v, count, sizeof(*v), fs_by_name);
	*names = v;
	*n = count;
	return ERR_OK;
}

enum err_code fs_list(
	const char *path, struct arena *a, struct str **names, size_t *n, struct err *err)
{
	DIR *d = opendir(path);
	enum err_code rc;

	if (!d)
		return err_errno(err, errno, "list %s", path);
	rc = fs_list_into(d, path, a, names, n, err);
	closedir(d);
	return rc;
}

bool fs_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

enum err_code fs_lock(const char *path, int *fd, struct err *err)
{
	enum err_code rc;
	int lock, e;

	if ((rc = fs_posix_open(&fs_posix, path, O_RDWR | O_CREAT, 0644, &lock, err)))
		return rc;
	if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
		*fd = lock;
		return ERR_OK;
	}
	e = errno;
	close(lock);
	if (e == EWOULDBLOCK)
		return err_set(err, ERR_UNAVAILABLE, "lock %s: another process holds it", path);
	return err_errno(err, e, "lock %s", path);
}

void fs_hide_from_others(void)
{
	umask(umask(0) | S_IWGRP | S_IRWXO);
}

/* The file stays: if it were removed, two processes could each lock a file of that name. */
void fs_unlock(int fd)
{
	if (fd >= 0)
		close(fd);
}

char *path_join(struct arena *a, struct str dir, struct str name)
{
	bool slash = dir.len && dir.ptr[dir.len - 1] == '/';

	if (!dir.len || str_is(dir, ".") || (name.len && name.ptr[0] == '/'))
		return arena_strndup(a, name.ptr, name.len);
	return arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(dir), slash ? "" : "/", STR_ARG(name));
}

struct str path_dir(struct str path)
{
	const char *slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;

	if (!slash)
		return STR(".");
	return (struct str){ path.ptr, slash == path.ptr ? 1 : (size_t)(slash - path.ptr) };
}
