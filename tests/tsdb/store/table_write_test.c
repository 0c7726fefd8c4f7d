/* Writing tables: the order of keys, and each call of the disk that can fail. */
#include "tsdb/store/table.h"

#include <stdlib.h>

#include "tests/check.h"

static char dir[] = "/tmp/epimetheus-table-XXXXXX", path[64];
static const char zeros[300000];

static void scratch(void)
{
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/t.ldb", dir);
}

static void finish(void)
{
	CHECK_OK(fs_remove_tree(&fs_posix, dir, NULL), &(struct err){ 0 });
}

TEST(keys_ascend_strictly)
{
	static const struct {
		const char *first, *second;
		bool ok;
	} cases[] = { { "a", "b", true }, { "", "a", true }, { "a", "a", false }, { "b", "a", false },
		{ "ab", "a", false }, { "", "", false }, { "a", "\xff", true } };
	struct table_writer *w;
	struct table_written out;
	struct buf spare = { 0 };
	struct err err;
	char want[100];

	scratch();
	snprintf(want, sizeof(want), "%s: key out of order", path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		REQUIRE_OK(table_writer_open(&fs_posix, path, &w, &err), &err);
		CHECK_OK(table_writer_put(w, str_of(cases[i].first), STR("1"), &err), &err);
		if (cases[i].ok)
			CHECK_OK(table_writer_put(w, str_of(cases[i].second), STR("2"), &err), &err);
		else
			CHECK_ERR(table_writer_put(w, str_of(cases[i].second), STR("2"), &err), &err,
				ERR_INVALID, want);
		/* Whoever puts a wrong key can go on. */
		CHECK_OK(table_writer_put(w, STR("\xff\xff"), STR("3"), &err), &err);
		CHECK_OK(table_writer_finish(w, &out, &spare, &err), &err);
		table_writer_close(w);
	}
	table_writer_close(NULL);
	finish();
	buf_release(&spare);
}

/* ---- a disk that fails ---- */

static enum err_code write_table(
	struct fs *fs, size_t n, struct table_written *out, struct buf *spare, struct err *err)
{
	struct table_writer *w = NULL;
	enum err_code rc = table_writer_open(fs, path, &w, err);
	char key[16];

	for (size_t i = 0; !rc && i < n; i++) {
		size_t len = i % 1000 == 3 ? 200000 : i % 50 == 7 ? 20000 : i % 400;

		snprintf(key, sizeof(key), "k%07zu", i);
		rc = table_writer_put(w, str_of(key), (struct str){ zeros, len }, err);
	}
	if (!rc)
		rc = table_writer_finish(w, out, spare, err);
	table_writer_close(w);
	return rc;
}

/* Fails the nth call, and from then on all, as a disk that is gone. */
struct faulty {
	struct fs fs;
	int calls, calls_left;
};

static enum err_code spend(struct fs *fs, struct err *err)
{
	struct faulty *f = (struct faulty *)fs;

	f->calls++;
	return f->calls_left-- > 0 ? ERR_OK : err_set(err, ERR_IO, "no disk");
}

static enum err_code faulty_open(
	struct fs *fs, const char *name, int flags, int mode, int *fd, struct err *err)
{
	enum err_code rc = spend(fs, err);

	return rc ? rc : fs_posix.ops->open(fs, name, flags, mode, fd, err);
}

static enum err_code faulty_write(struct fs *fs, int fd, const void *p, size_t n, struct err *err)
{
	enum err_code rc = spend(fs, err);

	(void)!fs_posix.ops->write(fs, fd, p, rc ? n / 2 : n, rc ? NULL : err);
	return rc;
}

static enum err_code faulty_sync(struct fs *fs, int fd, struct err *err)
{
	return spend(fs, err);
}

TEST(each_call_of_the_disk_fails_in_turn)
{
	static const struct fs_ops ops = {
		.open = faulty_open, .write = faulty_write, .sync = faulty_sync
	};
	struct table_written w;
	struct buf spare = { 0 };
	struct err err;
	struct faulty f;
	enum err_code rc;
	int n = 0;

	scratch();
	do {
		f = (struct faulty){ { &ops }, 0, n };
		rc = write_table(&f.fs, 2500, &w, &spare, &err);
		if (rc) {
			CHECK_INT(rc, ERR_IO);
			CHECK_STR(str_of(err.msg), "no disk");
			CHECK_INT(spare.len, 0);
			CHECK_INT(f.calls, n + 1); /* nothing is tried after the first that failed */
		}
	} while (rc && ++n < 1000);
	CHECK_INT(f.calls, 2 + (w.bytes + (256 << 10) - 1) / (256 << 10));
	CHECK_INT(f.calls, n);
	finish();
	buf_release(&spare);
}

/* What a failed writer is asked next fails the same way. */
TEST(a_writer_that_failed_stays_so)
{
	static const struct fs_ops ops = {
		.open = faulty_open, .write = faulty_write, .sync = faulty_sync
	};
	struct faulty f = { { &ops }, 0, 1 };
	struct table_written out;
	struct table_writer *w;
	struct buf spare = { 0 };
	struct err err;

	scratch();
	REQUIRE_OK(table_writer_open(&f.fs, path, &w, &err), &err);
	CHECK_ERR(table_writer_put(w, STR("a"), (struct str){ zeros, sizeof(zeros) }, &err), &err,
		ERR_IO, "no disk");
	CHECK_ERR(table_writer_put(w, STR("b"), STR("1"), &err), &err, ERR_IO, "no disk");
	CHECK_ERR(table_writer_finish(w, &out, &spare, &err), &err, ERR_IO, "no disk");
	table_writer_close(w);
	finish();
}
