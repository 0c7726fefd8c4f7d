/* Writing tables: the order of keys, and each call of the disk that can fail. */
#include "tsdb/store/table.h"

#include "tests/check.h"
#include "tests/failing_fs.h"
#include "tests/tsdb/store/table_scratch.h"

static const char zeros[300000];

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

TEST(each_call_of_the_disk_fails_in_turn)
{
	struct table_written w;
	struct buf spare = { 0 };
	struct err err;
	struct failing_fs f;
	enum err_code rc;
	int n = 0;

	scratch();
	do {
		f = (struct failing_fs){ .fs = { &failing_fs_ops }, .calls_left = n };
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

/* All later calls of a failed writer fail the same way. */
TEST(a_writer_that_failed_stays_so)
{
	struct failing_fs f = { .fs = { &failing_fs_ops }, .calls_left = 1 };
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
