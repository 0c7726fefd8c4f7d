/*
 * Files of segments: what was committed is in them, once, without gaps, also after failed writes,
 * kills and damage; else the window wants a snapshot.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/tsdb/disk.h"
#include "tests/tsdb/fixture.h"
#include "tests/tsdb/head/epoch_world.h"
#include "tsdb/head/ship.h"
#include "tsdb/segments/segments.h"

static void with_segments(struct db_options *o)
{
	o->segments = true;
	o->free_bytes_reserve = 0;
}

/* "10: 1-3 4-4 last 4\n" of each window; its files are read and must have just these batches. */
static void print_files(struct fixture *f, struct buf *out)
{
	struct head_ship_window *v;
	struct arena a;
	int64_t through;
	size_t n;

	arena_init(&a, 0);
	CHECK_OK(head_ship_end(f->db, &a, &v, &n, &through, &f->err), &f->err);
	for (size_t i = 0; i < n; i++) {
		buf_printf(out, "%d:", (int)(v[i].start_ns / SEC));
		for (size_t k = 0; k < v[i].files_n; k++) {
			struct segment_whole w;

			CHECK_OK(segment_find_whole(v[i].files[k].path, UINT64_MAX, &w, &f->err), &f->err);
			CHECK_INT(w.head.first, v[i].files[k].first);
			CHECK_INT(w.last, v[i].files[k].last);
			CHECK_INT(w.bytes, v[i].files[k].bytes);
			CHECK(w.head.identity == v[i].identity && w.head.end_ns == v[i].end_ns);
			buf_printf(out, " %d-%d", (int)w.head.first, (int)w.last);
		}
		buf_printf(out, " last %d%s%s\n", (int)v[i].last, v[i].snapshot_wanted ? " snapshot" : "",
			v[i].in_head ? "" : " gone");
	}
	arena_release(&a);
}

static void check_files(struct fixture *f, const char *want)
{
	struct buf got = { 0 };

	print_files(f, &got);
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

static struct head_ship_window first_window(struct fixture *f)
{
	struct head_ship_window *v;
	int64_t through;
	size_t n;

	CHECK_OK(head_ship_end(f->db, &f->arena, &v, &n, &through, &f->err), &f->err);
	return v[0];
}

static void done(struct fixture *f, uint64_t last)
{
	struct head_ship_window w = first_window(f);

	head_ship_done(f->db, w.start_ns, w.identity, last);
}

static void put_n(struct fixture *f, int from, int n)
{
	for (int i = from; i < from + n; i++)
		CHECK_OK(put(f, job(f, "j", "i"), i, "a;b 1"), &f->err);
}

TEST(each_batch_is_in_a_file_until_it_is_put)
{
	struct fixture f = { 0 };
	uint64_t identity;

	REQUIRE(open_small(&f, with_segments));
	check_files(&f, "");
	put_n(&f, 1, 3);
	check_files(&f, "0: 1-3 last 3\n");
	check_files(&f, "0: 1-3 last 3\n");
	put_n(&f, 4, 1);
	put_n(&f, 101, 2);
	check_files(&f, "0: 1-3 4-4 last 4\n100: 1-2 last 2\n");
	done(&f, 2);
	check_files(&f, "0: 1-3 4-4 last 4\n100: 1-2 last 2\n");
	done(&f, 3);
	put_n(&f, 5, 1);
	check_files(&f, "0: 4-4 5-5 last 5\n100: 1-2 last 2\n");
	/* They are found again. */
	identity = first_window(&f).identity;
	REQUIRE(fixture_reopen(&f));
	head_ship_done(f.db, 0, identity, 3);
	put_n(&f, 6, 1);
	check_files(&f, "0: 4-4 5-5 6-6 last 6\n100: 1-2 last 2\n");
	done(&f, 6);
	CHECK(head_ship_bytes(f.db) > 0);
	check_files(&f, "0: last 6\n100: 1-2 last 2\n");
	put_n(&f, 7, 1);
	check_files(&f, "0: 7-7 last 7\n100: 1-2 last 2\n");
	head_ship_forget(f.db, 100 * SEC, 1); /* another one */
	fixture_close(&f);
}

/* What the bucket has is not known, or less than the files begin with. */
TEST(a_gap_wants_a_snapshot)
{
	struct fixture f = { 0 };
	struct head_ship_window w;
	uint64_t last, bytes;
	char path[96];

	REQUIRE(open_small(&f, with_segments));
	put_n(&f, 1, 3);
	done(&f, 3);
	put_n(&f, 4, 2);
	REQUIRE(fixture_reopen(&f)); /* and nobody says that 3 were put */
	check_files(&f, "0: last 5 snapshot\n");
	put_n(&f, 6, 1);
	check_files(&f, "0: last 6 snapshot\n");
	w = first_window(&f);
	snprintf(path, sizeof(path), "%s/snapshot", f.dir);
	CHECK_OK(head_ship_snapshot(f.db, w.start_ns, w.identity, path, &last, &bytes, &f.err), &f.err);
	CHECK_INT(last, 6);
	/* While it is being put it is still wanted, and what comes is kept. */
	put_n(&f, 7, 1);
	check_files(&f, "0: last 7 snapshot\n");
	put_n(&f, 8, 1);
	check_files(&f, "0: last 8 snapshot\n");
	head_ship_done(f.db, w.start_ns, w.identity, last);
	check_files(&f, "0: 7-7 8-8 last 8\n");
	/* Taken twice, as the first was not put. */
	REQUIRE(fixture_reopen(&f));
	check_files(&f, "0: last 8 snapshot\n");
	for (int i = 0; i < 2; i++)
		CHECK_OK(
			head_ship_snapshot(f.db, w.start_ns, w.identity, path, &last, &bytes, &f.err), &f.err);
	check_files(&f, "0: last 8 snapshot\n");
	put_n(&f, 9, 1);
	head_ship_done(f.db, w.start_ns, w.identity, last);
	check_files(&f, "0: 9-9 last 9\n");
	CHECK_INT(head_ship_snapshot(f.db, 5, 5, path, &last, &bytes, &f.err), ERR_NOT_FOUND);
	fixture_close(&f);
}

TEST(above_the_limit_files_go_and_a_snapshot_comes)
{
	struct fixture f = { 0 };

	REQUIRE(open_small(&f, with_segments));
	f.o.segments_bytes = 4096;
	REQUIRE(fixture_reopen(&f));
	for (int i = 1; i < 90 && head_ship_bytes(f.db) <= 4096; i++)
		put_n(&f, i, 1);
	CHECK_INT(head_ship_bytes(f.db), 0);
	check_files(&f, "0: last 89 snapshot\n");
	fixture_close(&f);
}

/* Without the option nothing is written, and what was there goes. */
TEST(files_of_another_time_go)
{
	struct fixture f = { 0 };
	struct str *names;
	size_t n;
	char dir[96];

	REQUIRE(open_small(&f, with_segments));
	put_n(&f, 1, 3);
	f.o.segments = false;
	REQUIRE(fixture_reopen(&f));
	put_n(&f, 4, 1);
	snprintf(dir, sizeof(dir), "%s/head", f.o.dir);
	CHECK_OK(fs_list(dir, &f.arena, &names, &n, &f.err), &f.err);
	for (size_t i = 0; i < n; i++)
		CHECK(str_find(names[i], STR("segment")) < 0);
	f.o.segments = true;
	REQUIRE(fixture_reopen(&f));
	check_files(&f, "0: last 4 snapshot\n");
	fixture_close(&f);
}

/* The directory as a kill leaves it: files with more than the store has, and torn ones. */
TEST(files_are_cut_to_what_the_store_has)
{
	struct fixture f = { 0 };
	struct head_ship_window w;
	struct buf b = { 0 };
	struct segment_batch batch;
	char path[256];

	REQUIRE(open_small(&f, with_segments));
	put_n(&f, 1, 3);
	w = first_window(&f);
	REQUIRE(w.files_n == 1);
	snprintf(path, sizeof(path), "%s", w.files[0].path);
	for (int torn = 0; torn < 2; torn++) {
		db_close(f.db);
		f.db = NULL;
		CHECK_OK(fs_read_file(path, 1 << 20, &b, &f.err), &f.err);
		segment_batch_begin(&batch, &b, 4, 4);
		segment_batch_add(&batch, STR("r"), STR("never acknowledged"));
		segment_batch_end(&batch);
		b.len -= torn * 3;
		CHECK_OK(fs_write_file(&fs_posix, path, buf_str(&b), &f.err), &f.err);
		buf_clear(&b);
		REQUIRE(fixture_reopen(&f));
		check_files(&f, "0: 1-3 last 3\n");
	}
	put_n(&f, 4, 1);
	check_files(&f, "0: 1-3 4-4 last 4\n");
	/* A power cut: the file has less. */
	db_close(f.db);
	f.db = NULL;
	CHECK_INT(truncate(path, (off_t)w.files[0].bytes - 1), 0);
	REQUIRE(fixture_reopen(&f));
	check_files(&f, "0: last 4 snapshot\n");
	buf_release(&b);
	fixture_close(&f);
}

/* The n-th put fails, before or after it reached the disk. */
static bool fails_at(enum disk_kind kind, uint64_t n)
{
	struct fixture f = { 0 };
	struct buf got = { 0 };
	struct disk *d;
	bool hit;

	if (!open_small(&f, with_segments)) {
		CHECK_FAIL("%s", f.err.msg);
		return false;
	}
	db_close(f.db);
	f.db = NULL;
	d = disk_open(f.dir);
	f.o.fs = disk_fs(d);
	f.o.store = disk_store(d);
	if (!fixture_reopen(&f)) {
		CHECK_FAIL("%s", f.err.msg);
		return false;
	}
	put_n(&f, 1, 2);
	disk_fail(d, n, kind, DISK_ONCE);
	for (int i = 3; i < 8; i++) {
		if (!WAIT_FOR(!put(&f, job(&f, "j", "i"), i, "a;b 1")))
			CHECK_FAIL("%s %d: row %d: %s", disk_kind_names[kind], (int)n, i, f.err.msg);
		if (i == 5)
			(void)first_window(&f);
	}
	hit = disk_failed(d);
	disk_fail(d, 0, kind, DISK_ONCE);
	print_files(&f, &got);
	/* Whatever happened: files without a gap up to the last, or a snapshot. */
	if (str_find(buf_str(&got), STR("snapshot")) < 0) {
		int last = (int)strtol(strstr(got.ptr, "last ") + 5, NULL, 10), next = 1;

		for (const char *at = strchr(got.ptr, ' '); at && *at && *at != 'l'; at = strchr(at, ' ')) {
			int from, to;

			if (sscanf(++at, "%d-%d", &from, &to) != 2)
				break;
			CHECK_INT(from, next);
			next = to + 1;
		}
		if (next != last + 1 || last < 6)
			CHECK_FAIL("%s %d: %.*s", disk_kind_names[kind], (int)n, STR_ARG(buf_str(&got)));
	}
	buf_release(&got);
	fixture_close(&f);
	disk_close(d);
	return hit;
}

TEST(failed_writes_leave_no_gap_that_is_not_known)
{
	static const enum disk_kind kinds[] = { DISK_WRITE, DISK_SYNC, DISK_OPEN, DISK_UNLINK };

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (uint64_t n = 1; n < 40 && fails_at(kinds[k], n); n += CHECK_STEP)
			;
}

static void cut_soon(struct db_options *o)
{
	with_segments(o);
	o->too_old_ns = 0;
	o->retention_ns = 0;
}

/* Until the window's block is put its batches are wanted, also after a restart. */
TEST(files_outlive_their_window)
{
	struct fixture f = { 0 };
	struct head_ship_window w;
	char path[256];

	REQUIRE(open_small(&f, cut_soon));
	put_n(&f, 1, 3);
	put_n(&f, 301, 1);
	w = first_window(&f);
	snprintf(path, sizeof(path), "%s", w.files[0].path);
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	CHECK_INT(status(&f).blocks, 1);
	check_files(&f, "0: 1-3 last 3 gone\n300: 1-1 last 1\n");
	REQUIRE(fixture_reopen(&f));
	check_files(&f, "0: 1-3 last 3 gone\n300: 1-1 last 1\n");
	CHECK(fs_exists(path));
	head_ship_forget(f.db, 0, w.identity);
	CHECK(!fs_exists(path));
	check_files(&f, "300: 1-1 last 1\n");
	/* A gap in a window that is gone wants none. */
	put_n(&f, 601, 1);
	head_ship_done(f.db, 300 * SEC, first_window(&f).identity, 1);
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	check_files(&f, "300: last 1 gone\n600: 1-1 last 1\n");
	fixture_close(&f);
}
