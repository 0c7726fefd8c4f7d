/* Sources of files: whole files, limits, and places that do not answer. */
#include <unistd.h>

#include "tests/tsdb/store/memory_range.h"
#include "tests/tsdb/store/table_scratch.h"
#include "tsdb/store/table.h"

TEST(a_whole_file)
{
	struct buf got = { 0 };
	char want[200];
	struct err err;

	scratch();
	REQUIRE_OK(fs_write_file(&fs_posix, path, STR("0123456789"), &err), &err);
	buf_add_cstr(&got, "x");
	CHECK_OK(range_read_all(NULL, path, 10, &got, &err), &err);
	CHECK_STR(buf_str(&got), "x0123456789");
	snprintf(want, sizeof(want), "%s: has 10 bytes, limit 9", path);
	CHECK_ERR(range_read_all(&range_files, path, 9, &got, &err), &err, ERR_LIMIT, want);
	CHECK_INT(got.len, 11);
	range_know(&range_files, path, 10, 0);
	range_forget(NULL, path);
	REQUIRE_OK(fs_write_file(&fs_posix, path, STR(""), &err), &err);
	CHECK_OK(range_read_all(&range_files, path, 9, &got, &err), &err);
	CHECK_INT(got.len, 11);
	REQUIRE(unlink(path) == 0);
	snprintf(want, sizeof(want), "%s: No such file or directory", path);
	CHECK_ERR(range_read_all(&range_files, path, 9, &got, &err), &err, ERR_NOT_FOUND, want);
	buf_release(&got);
	finish();
}

/* A place that does not answer says nothing about the table: its spare is not taken instead. */
TEST(a_place_that_does_not_answer)
{
	struct table_writer *w = NULL;
	struct buf file = { 0 }, spare = { 0 }, got = { 0 };
	struct table_written written;
	struct err err, damaged;
	struct table *t;
	struct memory m;

	scratch();
	REQUIRE_OK(table_writer_open(&fs_posix, path, &w, &err), &err);
	CHECK_OK(table_writer_put(w, STR("a"), STR("1"), &err), &err);
	CHECK_OK(table_writer_finish(w, &written, &spare, &err), &err);
	table_writer_close(w);
	REQUIRE_OK(fs_read_file(path, 1 << 20, &file, &err), &err);
	for (int from = 1; from <= 2; from++) {
		m = memory_of(file.ptr, file.len);
		m.fail_from = from;
		m.fail_with = ERR_TIMEOUT;
		CHECK_ERR(table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err), &err, ERR_TIMEOUT,
			"t.ldb: no reading today");
		CHECK_INT(m.closed, 1);
	}
	m = memory_of(file.ptr, file.len);
	REQUIRE_OK(table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err), &err);
	m.fail_from = 1;
	m.fail_with = ERR_TIMEOUT;
	CHECK_ERR(table_get(t, STR("a"), &got, &err), &err, ERR_UNAVAILABLE, "t.ldb: no reading today");
	m.fail_from = 0;
	CHECK_OK(table_get(t, STR("a"), &got, &err), &err);
	CHECK_STR(buf_str(&got), "1");
	table_close(t);
	buf_release(&file);
	buf_release(&spare);
	buf_release(&got);
	finish();
}
