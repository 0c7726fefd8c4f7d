#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/failing_fs.h"

static struct arena arena;

static const char *scratch(void)
{
	char *path = arena_strndup(&arena, "/tmp/epimetheus-fs-XXXXXX", 25);

	if (!mkdtemp(path))
		abort();
	return path;
}

static const char *in(const char *dir, const char *name)
{
	return path_join(&arena, str_of(dir), str_of(name));
}

static void finish(const char *dir)
{
	struct err err;

	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	CHECK(!fs_exists(dir));
	arena_release(&arena);
}

static const char *message(const char *fmt, const char *path)
{
	const char *at = strchr(fmt, '@');

	return arena_printf(&arena, "%.*s%s%s", (int)(at - fmt), fmt, path, at + 1);
}

TEST(write_and_read)
{
	const char *dir = scratch(), *f = in(dir, "f");
	struct buf b = { 0 };
	struct err err;

	REQUIRE_OK(fs_write_file(&fs_posix, f, STR("one"), &err), &err);
	REQUIRE_OK(fs_write_file(&fs_posix, f, STR("second"), &err), &err);
	CHECK(!fs_exists(in(dir, "f.tmp")));
	CHECK_OK(fs_read_file(f, 6, &b, &err), &err);
	CHECK_STR(buf_str(&b), "second");
	CHECK_ERR(fs_read_file(f, 5, &b, &err), &err, ERR_LIMIT,
		message("read @: file is 6 bytes, limit 5", f));
	CHECK_STR(buf_str(&b), "second");
	CHECK_ERR(fs_read_file(in(dir, "none"), 5, &b, &err), &err, ERR_NOT_FOUND,
		message("open @: No such file or directory", in(dir, "none")));
	CHECK_ERR(fs_read_file(dir, 5, &b, &err), &err, ERR_IO, message("read @: Is a directory", dir));
	REQUIRE_OK(fs_write_file(&fs_posix, f, STR(""), &err), &err);
	buf_clear(&b);
	CHECK_OK(fs_read_file(f, 0, &b, &err), &err);
	CHECK_INT(b.len, 0);
	CHECK_OK(fs_read_file("/proc/self/status", 1u << 20, &b, &err), &err); /* says it has 0 bytes */
	CHECK(str_has_prefix(buf_str(&b), STR("Name:")));
	buf_clear(&b);
	CHECK_ERR(fs_read_file("/proc/self/status", 10, &b, &err), &err, ERR_LIMIT,
		"read /proc/self/status: file is over 10 bytes, limit 10");
	CHECK_INT(b.len, 0);
	buf_release(&b);
	finish(dir);
}

TEST(a_write_that_fails_leaves_old_or_new)
{
	const char *dir = scratch(), *f = in(dir, "f");
	struct failing_fs failing = { .fs = { &failing_fs_ops } };
	struct buf b = { 0 };
	struct err err;
	int n;

	REQUIRE_OK(fs_write_file(&fs_posix, f, STR("old content"), &err), &err);
	for (n = 0; n < 20; n++) {
		enum err_code rc;

		failing.calls_left = n;
		rc = fs_write_file(&failing.fs, f, STR("new"), &err);
		if (!rc)
			break;
		CHECK_INT(rc, ERR_IO);
		CHECK_STR(str_of(err.msg), message("write @: no disk", f));
		buf_clear(&b);
		REQUIRE_OK(fs_read_file(f, 100, &b, &err), &err);
		/* the directory's sync is the last */
		CHECK_STR(buf_str(&b), n < 4 ? "old content" : "new");
	}
	CHECK_INT(n, 5); /* open, write, sync, rename, sync_dir */
	CHECK_OK(fs_write_file(&fs_posix, f, STR("repaired"), &err), &err);
	CHECK(!fs_exists(in(dir, "f.tmp")));
	buf_release(&b);
	finish(dir);
}

TEST(directories)
{
	const char *dir = scratch(), *deep = in(dir, "a//b/c/");
	struct str *names;
	struct err err;
	size_t n;

	REQUIRE_OK(fs_mkdir_all(&fs_posix, deep, &err), &err);
	REQUIRE_OK(fs_mkdir_all(&fs_posix, deep, &err), &err);
	CHECK(fs_exists(deep));
	REQUIRE_OK(fs_write_file(&fs_posix, in(deep, "z"), STR("1"), &err), &err);
	REQUIRE_OK(fs_write_file(&fs_posix, in(deep, ".hidden"), STR("1"), &err), &err);
	REQUIRE_OK(fs_write_file(&fs_posix, in(deep, "m"), STR("1"), &err), &err);
	REQUIRE_OK(fs_list(deep, &arena, &names, &n, &err), &err);
	REQUIRE(n == 3);
	CHECK_STR(names[0], ".hidden");
	CHECK_STR(names[1], "m");
	CHECK_STR(names[2], "z");
	CHECK_ERR(fs_list(in(dir, "none"), &arena, &names, &n, &err), &err, ERR_NOT_FOUND,
		message("list @: No such file or directory", in(dir, "none")));
	CHECK_ERR(fs_mkdir_all(&fs_posix, in(deep, "z"), &err), &err, ERR_IO,
		message("create directory @: Not a directory", in(deep, "z")));
	CHECK_ERR(fs_mkdir_all(&fs_posix, in(deep, "z/y"), &err), &err, ERR_IO,
		message("create directory @: Not a directory", in(deep, "z/y")));
	CHECK_OK(fs_posix.ops->mkdir(&fs_posix, dir, &err), &err);
	CHECK_ERR(fs_posix.ops->rmdir(&fs_posix, dir, &err), &err, ERR_IO,
		message("remove directory @: Directory not empty", dir));
	CHECK_OK(fs_remove_tree(&fs_posix, in(dir, "none"), &err), &err);
	finish(dir);
}

TEST(removing_does_not_follow_links)
{
	const char *dir = scratch(), *other = scratch();
	struct err err;

	REQUIRE_OK(fs_write_file(&fs_posix, in(other, "keep"), STR("1"), &err), &err);
	REQUIRE(symlink(other, in(dir, "link")) == 0);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	CHECK(!fs_exists(dir) && fs_exists(in(other, "keep")));
	finish(other);
}

TEST(removing_is_bounded_in_depth)
{
	const char *dir = scratch(), *at = dir, *last;
	struct err err;

	for (int i = 0; i < 33; i++)
		at = in(at, "d");
	REQUIRE_OK(fs_mkdir_all(&fs_posix, at, &err), &err);
	last = str_dup(&arena, path_dir(str_of(at))).ptr;
	CHECK_ERR(fs_remove_tree(&fs_posix, dir, &err), &err, ERR_LIMIT,
		message("remove @: more than 32 directories deep", last));
	CHECK_OK(fs_remove_tree(&fs_posix, in(dir, "d/d"), &err), &err);
	finish(dir);
}

TEST(one_process_holds_the_lock)
{
	const char *dir = scratch(), *path = in(dir, "lock");
	struct err err;
	int fd, again, status;
	pid_t pid;

	REQUIRE_OK(fs_lock(path, &fd, &err), &err);
	CHECK_ERR(fs_lock(path, &again, &err), &err, ERR_UNAVAILABLE,
		message("lock @: another process holds it", path));
	pid = fork();
	if (pid == 0)
		_exit(fs_lock(path, &again, NULL) == ERR_UNAVAILABLE ? 0 : 1);
	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
	fs_unlock(fd);
	CHECK_OK(fs_lock(path, &fd, &err), &err);
	fs_unlock(fd);
	fs_unlock(-1);
	finish(dir);
}

TEST(free_space)
{
	uint64_t n = 0;
	struct err err;

	CHECK_OK(fs_posix.ops->free_bytes(&fs_posix, "/tmp", &n, &err), &err);
	CHECK(n > 0);
	CHECK_ERR(fs_posix.ops->free_bytes(&fs_posix, "/no/such/place", &n, &err), &err, ERR_NOT_FOUND,
		"free space of /no/such/place: No such file or directory");
}

TEST(paths)
{
	/* clang-format off */
	static const struct {
		const char *dir, *name, *want;
	} rows[] = {
		{ "a", "b", "a/b" }, { "a/", "b", "a/b" }, { "/", "b", "/b" }, { "", "b", "b" },
		{ ".", "b", "b" },
		{ "a", "/b", "/b" }, { "a", "", "a/" },
	};
	/* clang-format on */
	static const struct {
		const char *path, *want;
	} dirs[] = { { "a/b", "a" }, { "/a", "/" }, { "a", "." }, { "", "." }, { "/a/b/c", "/a/b" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(str_of(in(rows[i].dir, rows[i].name)), rows[i].want);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		CHECK_STR(path_dir(str_of(dirs[i].path)), dirs[i].want);
	arena_release(&arena);
}
