/*
 * Files: the calls of the write path behind a table, so that tests can make each of them fail.
 *
 * Errors:    ERR_NOT_FOUND, ERR_EXISTS, ERR_IO (with the system's text and the path), ERR_LIMIT (a
 *            file larger than the caller allows).
 * Threads:   a struct fs may be used by any thread; a file descriptor by one at a time.
 */
#ifndef BASE_FS_H
#define BASE_FS_H

#include "base/str.h"

struct fs;

struct fs_ops {
	enum err_code (*open)(
		struct fs *fs, const char *path, int flags, int mode, int *fd, struct err *err);
	/* all of it */
	enum err_code (*write)(struct fs *fs, int fd, const void *p, size_t n, struct err *err);
	enum err_code (*sync)(struct fs *fs, int fd, struct err *err);
	enum err_code (*rename)(struct fs *fs, const char *from, const char *to, struct err *err);
	enum err_code (*unlink)(struct fs *fs, const char *path, struct err *err);
	enum err_code (*mkdir)(struct fs *fs, const char *path, struct err *err); /* existing is fine */
	enum err_code (*rmdir)(struct fs *fs, const char *path, struct err *err);
	enum err_code (*sync_dir)(struct fs *fs, const char *path, struct err *err);
	enum err_code (*free_bytes)(struct fs *fs, const char *path, uint64_t *out, struct err *err);
	/* Files that can still be made; UINT64_MAX, or no such operation: they are not counted. */
	enum err_code (*free_inodes)(struct fs *fs, const char *path, uint64_t *out, struct err *err);
};

struct fs {
	const struct fs_ops *ops;
};

extern struct fs fs_posix;

/* The whole file into a buffer; more than max bytes is ERR_LIMIT before anything is read. */
MUST_CHECK enum err_code fs_read_file(
	const char *path, size_t max, struct buf *out, struct err *err);
/* Writes beside the file, syncs, renames over it, syncs the directory: old or new, never half. */
MUST_CHECK enum err_code fs_write_file(
	struct fs *fs, const char *path, struct str content, struct err *err);
/* Does not follow links; a missing path is fine; more than 32 directories deep is ERR_LIMIT. */
MUST_CHECK enum err_code fs_remove_tree(struct fs *fs, const char *path, struct err *err);
/* Syncs each new directory into its parent; existing ones are fine. */
MUST_CHECK enum err_code fs_mkdir_all(struct fs *fs, const char *path, struct err *err);
/* Names in a directory without "." and "..", sorted; in the arena. */
MUST_CHECK enum err_code fs_list(
	const char *path, struct arena *a, struct str **names, size_t *n, struct err *err);
bool fs_exists(const char *path);

/*
 * An exclusive lock on `path` (created), held until fs_unlock. ERR_UNAVAILABLE when another process
 * has it.
 */
MUST_CHECK enum err_code fs_lock(const char *path, int *fd, struct err *err);
void fs_unlock(int fd);

/*
 * What this process makes from now on is at most 0640, directories 0750, whoever makes it: LevelDB
 * asks for 0644. A stricter umask stays. Before the first thread.
 */
void fs_hide_from_others(void);

/* DIR/NAME where name is relative, name itself where absolute. dir may be "" or ".". */
char *path_join(struct arena *a, struct str dir, struct str name);
struct str path_dir(struct str path); /* "." where there is no slash */

#endif
