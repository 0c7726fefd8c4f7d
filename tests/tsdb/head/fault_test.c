/* Faults of the disk: puts that fail, commits that lie, no room, damaged files. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/metrics.h"
#include "tests/tsdb/head/epoch_world.h"
#include "tsdb/catalog/state.h"
#include "tsdb/store/store.h"

/* ---- a store that fails on purpose ---- */

enum fault { NONE, BEFORE, AFTER, LIE };

struct faulty {
	struct store_ops ops;
	enum fault next; /* for the next write */
	int opens_to_fail;
	int writes;
};

static enum err_code faulty_open(const struct store_ops *ops, struct store *s, struct err *err)
{
	struct faulty *f = (struct faulty *)(uintptr_t)ops;

	if (f->opens_to_fail) {
		f->opens_to_fail--;
		return err_set(err, ERR_IO, "no open today");
	}
	return store_leveldb.open(ops, s, err);
}

static enum err_code faulty_write(
	const struct store_ops *ops, struct store *s, struct store_batch *b, struct err *err)
{
	struct faulty *f = (struct faulty *)(uintptr_t)ops;
	enum fault now = f->next;
	enum err_code rc;

	f->next = NONE;
	f->writes++;
	if (now == LIE)
		return ERR_OK;
	if (now == BEFORE)
		return err_set(err, ERR_IO, "Input/output error");
	rc = store_leveldb.write(ops, s, b, err);
	return rc || now == NONE ? rc : err_set(err, ERR_IO, "Input/output error");
}

static bool open_over(struct fixture *f, struct faulty *faulty)
{
	if (!fixture_open(f))
		return false;
	f->o.store = &faulty->ops;
	return fixture_reopen(f);
}

static void put_error(enum fault fault, const char *third)
{
	struct faulty faulty = { { faulty_open, faulty_write }, NONE, 0, 0 };
	struct fixture f;
	struct labels l;
	char want[200];

	REQUIRE(open_over(&f, &faulty));
	l = job(&f, "j", "i");
	REQUIRE_OK(put(&f, l, 100, "a;b 1"), &f.err);
	/* The failed row brings symbols and a series; later rows need them all the same. */
	faulty.next = fault;
	faulty.opens_to_fail = 2;
	CHECK_ERR(put(&f, l, 200, "a;c 1"), &f.err, ERR_IO, "Input/output error");
	/* Nothing is taken before the store is open again. */
	while (db_state(f.db, NULL) == DB_FAILED) {
		enum err_code rc = put(&f, l, 300, "a;d 1");

		CHECK(rc == ERR_UNAVAILABLE || db_state(f.db, NULL) == DB_READY);
		usleep(1000);
	}
	wait_ready(f.db);
	CHECK_INT(faulty.opens_to_fail, 0);
	REQUIRE_OK(put(&f, l, 400, "a;c 2"), &f.err);
	REQUIRE_OK(put(&f, l, 300, "a;d 1"), &f.err);
	snprintf(want, sizeof(want), "@100\na;b 1\n%s@300\na;d 1\n@400\na;c 2\n", third);
	check_rows(&f, l, want);
	f.o.store = NULL;
	REQUIRE(fixture_reopen(&f));
	check_rows(&f, l, want);
	fixture_close(&f);
}

TEST(a_put_error_stops_acknowledging_until_reopened)
{
	put_error(BEFORE, "");
	/* It failed and is there all the same: not acknowledged rows may be. */
	put_error(AFTER, "@200\na;c 1\n");
}

TEST(readers_go_on_while_a_store_is_reopened)
{
	struct faulty faulty = { { faulty_open, faulty_write }, NONE, 0, 0 };
	struct fixture f;
	struct labels l;
	struct db_querier *q;
	struct db_series *series;
	struct sum_stats stats = { 0 };
	const struct profile_type type = {
		STR("p"), STR("samples"), STR("count"), STR(""), STR(""), true };
	size_t n;

	REQUIRE(open_over(&f, &faulty));
	l = job(&f, "j", "i");
	REQUIRE_OK(put(&f, l, 100, "a;b 1"), &f.err);
	REQUIRE_OK(db_querier_open(f.db, 0, 500 * SEC, NULL, &q, &f.err), &f.err);
	faulty.next = BEFORE;
	CHECK_INT(put(&f, l, 200, "a;c 1"), ERR_IO);
	/* This querier has the old store, which stays until it is done. */
	usleep(100000);
	CHECK_INT(db_state(f.db, NULL), DB_FAILED);
	REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &series, &n, &f.err), &f.err);
	REQUIRE(n == 1);
	CHECK_OK(db_sum(q, &(const struct db_series *){ &series[0] }, 1, &type, 0, 500 * SEC,
				 SUM_WINDOW, NULL, &f.arena, &stats, &f.err),
		&f.err);
	CHECK_INT(stats.rows, 1);
	db_querier_warnings(q, &n);
	CHECK_INT(n, 0);
	db_querier_close(q);
	wait_ready(f.db);
	check_rows(&f, l, "@100\na;b 1\n");
	fixture_close(&f);
}

/* LevelDB has said OK to what was gone after reopening: it is seen, counted, and not repeated. */
TEST(acknowledged_rows_that_are_gone_are_counted)
{
	struct faulty faulty = { { faulty_open, faulty_write }, NONE, 0, 0 };
	struct fixture f;
	struct labels l;
	struct buf text = { 0 };

	REQUIRE(open_over(&f, &faulty));
	l = job(&f, "j", "i");
	REQUIRE_OK(put(&f, l, 100, "a 1"), &f.err);
	faulty.next = LIE;
	REQUIRE_OK(put(&f, l, 200, "b 1"), &f.err);
	faulty.next = BEFORE;
	CHECK_INT(put(&f, l, 300, "c 1"), ERR_IO);
	wait_ready(f.db);
	metrics_print(&text);
	CHECK(str_find(buf_str(&text), STR("epimetheus_tsdb_lost_rows_total 1\n")) >= 0);
	REQUIRE_OK(put(&f, l, 400, "b 2"), &f.err);
	for (int i = 0; i < 2; i++) {
		check_rows(&f, l,
			"@100\na 1\n@400\nb 2\n"
			"warning: loss 1: profiles are lost before 1970-01-01T02:00:00.000Z (head/0"
			" at batch 2, 1): 1 of 2 profiles are missing: batches 2 to 2 were"
			" acknowledged and are missing\n");
		REQUIRE(fixture_reopen(&f));
	}
	buf_release(&text);
	fixture_close(&f);
}

/* ---- a full disk ---- */

struct small_fs {
	struct fs fs;
	_Atomic uint64_t room, inodes;
};

static enum err_code small_free(struct fs *fs, const char *path, uint64_t *out, struct err *err)
{
	*out = ((struct small_fs *)fs)->room;
	return ERR_OK;
}

static enum err_code small_free_inodes(
	struct fs *fs, const char *path, uint64_t *out, struct err *err)
{
	*out = ((struct small_fs *)fs)->inodes;
	return ERR_OK;
}

TEST(without_inodes_rows_are_refused_and_the_error_says_so)
{
	struct fs_ops ops = *fs_posix.ops;
	struct small_fs small = { { &ops }, 1000, 64 };
	struct fixture f;
	struct labels l;
	char want[200];

	ops.free_bytes = small_free;
	ops.free_inodes = small_free_inodes;
	REQUIRE(fixture_open(&f));
	f.o.fs = &small.fs;
	f.o.free_bytes_reserve = 500;
	REQUIRE(fixture_reopen(&f));
	l = job(&f, "j", "i");
	REQUIRE_OK(put(&f, l, 100, "a 1"), &f.err);
	small.inodes = 63;
	db_maintain(f.db, false);
	snprintf(want, sizeof(want), "disk is full: 63 inodes free in %s, 64 needed", f.dir);
	CHECK_ERR(put(&f, l, 200, "a 1"), &f.err, ERR_UNAVAILABLE, want);
	check_rows(&f, l, "@100\na 1\n");
	small.inodes = UINT64_MAX; /* not counted */
	db_maintain(f.db, false);
	REQUIRE_OK(put(&f, l, 200, "a 1"), &f.err);
	/* Whoever wants no reserve has none of inodes either. */
	small.inodes = 0;
	f.o.free_bytes_reserve = 0;
	REQUIRE(fixture_reopen(&f));
	CHECK_INT(db_state(f.db, NULL), DB_READY);
	fixture_close(&f);
}

TEST(a_full_disk_refuses_and_recovers)
{
	struct fs_ops ops = *fs_posix.ops;
	struct small_fs small = { { &ops }, 1000, UINT64_MAX };
	struct fixture f;
	struct labels l;
	char want[200];

	ops.free_bytes = small_free;
	REQUIRE(fixture_open(&f));
	f.o.fs = &small.fs;
	f.o.free_bytes_reserve = 500;
	REQUIRE(fixture_reopen(&f));
	l = job(&f, "j", "i");
	REQUIRE_OK(put(&f, l, 100, "a 1"), &f.err);
	small.room = 499;
	db_maintain(f.db, false);
	CHECK_INT(db_state(f.db, &f.err), DB_FULL);
	snprintf(want, sizeof(want),
		"disk is full: 499B free in %s, reserve 500B (--storage.tsdb.free-reserve)", f.dir);
	CHECK_STR(str_of(f.err.msg), want);
	CHECK_ERR(put(&f, l, 200, "a 1"), &f.err, ERR_UNAVAILABLE, want);
	check_rows(&f, l, "@100\na 1\n");
	small.room = 500;
	db_maintain(f.db, false);
	CHECK_INT(db_state(f.db, NULL), DB_READY);
	REQUIRE_OK(put(&f, l, 300, "a 1"), &f.err);
	/* And at the start. */
	small.room = 3;
	REQUIRE(fixture_reopen(&f));
	CHECK_INT(db_state(f.db, NULL), DB_FULL);
	check_rows(&f, l, "@100\na 1\n@300\na 1\n");
	/* By itself, within a second or two. */
	small.room = 1 << 20;
	wait_ready(f.db);
	fixture_close(&f);
}

/* ---- damaged files ---- */

#define DAMAGE_ROWS 60

static void fill_random(struct fixture *f, struct labels l)
{
	for (int i = 1; i <= DAMAGE_ROWS; i++) {
		struct arena a;

		arena_init(&a, 0);
		CHECK_OK(append_wait(f->db, l, i * 100 * SEC, SEC, profile_random(&a, (uint64_t)i), NULL,
					 false, NULL, &f->err),
			&f->err);
		arena_release(&a);
	}
}

/* Each row is as it was or missing; missing ones are said. Returns how many are there. */
static int check_none_wrong(struct fixture *f, struct labels l, bool *warned)
{
	struct buf got = { 0 }, want = { 0 };
	struct str rest;
	int found = 0;

	CHECK(rows_text(f->db, l, 0, 100000 * SEC, &got, &f->err));
	rest = buf_str(&got);
	*warned = str_find(rest, STR("warning: ")) >= 0;
	for (int i = 1; i <= DAMAGE_ROWS; i++) {
		struct arena a;

		arena_init(&a, 0);
		buf_clear(&want);
		buf_printf(&want, "@%d\n", i * 100);
		profile_samples_text(profile_random(&a, (uint64_t)i), &want);
		if (str_has_prefix(rest, buf_str(&want))) {
			rest.ptr += want.len;
			rest.len -= want.len;
			found++;
		}
		arena_release(&a);
	}
	if (rest.len && !str_has_prefix(rest, STR("warning: ")))
		CHECK_FAIL("a wrong row: " STR_FMT, STR_ARG(rest));
	buf_release(&got);
	buf_release(&want);
	return found;
}

static bool find_file(struct fixture *f, const char *suffix, char *path, size_t size)
{
	struct str *names, best = { 0 };
	char dir[100];
	size_t n;

	snprintf(dir, sizeof(dir), "%s/head/0", f->dir);
	if (fs_list(dir, &f->arena, &names, &n, &f->err))
		return false;
	for (size_t i = 0; i < n; i++)
		if (str_has_suffix(names[i], str_of(suffix)))
			best = names[i];
	snprintf(path, size, "%s/" STR_FMT, dir, STR_ARG(best));
	return best.len > 0;
}

static void damage(const char *suffix, bool cut, uint64_t seed)
{
	struct fixture f;
	struct labels l;
	char path[200];
	struct stat st;
	double before = metric_value("epimetheus_tsdb_damage_total");
	bool warned;
	int fd, found;
	char byte;

	REQUIRE(fixture_open(&f));
	f.o.window_ns = 10000 * SEC;
	REQUIRE(fixture_reopen(&f));
	l = job(&f, "j", "i");
	fill_random(&f, l);
	if (strcmp(suffix, ".ldb") == 0)
		REQUIRE(fixture_reopen(&f)); /* puts the log into a table */
	db_close(f.db);
	f.db = NULL;
	REQUIRE(find_file(&f, suffix, path, sizeof(path)));
	fd = open(path, O_RDWR);
	REQUIRE(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0);
	if (cut) {
		CHECK(ftruncate(fd, (off_t)(map_hash_u64(seed) % (uint64_t)st.st_size)) == 0);
	} else {
		off_t at = (off_t)(map_hash_u64(seed) % (uint64_t)st.st_size);

		CHECK(pread(fd, &byte, 1, at) == 1);
		byte ^= (char)(1 << seed % 8);
		CHECK(pwrite(fd, &byte, 1, at) == 1);
	}
	close(fd);
	REQUIRE(fixture_reopen(&f));
	found = check_none_wrong(&f, l, &warned);
	if (found < DAMAGE_ROWS && !warned && metric_value("epimetheus_tsdb_damage_total") == before)
		CHECK_FAIL("%s, seed %d: %d of %d rows are there and nothing was said", suffix, (int)seed,
			found, DAMAGE_ROWS);
	/* It takes rows again, those of known stacks too. */
	CHECK_OK(append_wait(
				 f.db, l, 9000 * SEC, SEC, profile_random(&f.arena, 3), NULL, false, NULL, &f.err),
		&f.err);
	CHECK_OK(append_wait(
				 f.db, l, 10100 * SEC, SEC, profile_random(&f.arena, 3), NULL, false, NULL, &f.err),
		&f.err);
	REQUIRE(fixture_reopen(&f));
	{
		struct buf got = { 0 }, want = { 0 };

		buf_add_cstr(&want, "@10100\n");
		profile_samples_text(profile_random(&f.arena, 3), &want);
		CHECK(rows_text(f.db, l, 10000 * SEC, 20000 * SEC, &got, &f.err));
		if (!str_eq(buf_str(&got), buf_str(&want)))
			CHECK_FAIL(
				"%s, seed %d: later row: " STR_FMT, suffix, (int)seed, STR_ARG(buf_str(&got)));
		buf_release(&got);
		buf_release(&want);
	}
	fixture_close(&f);
}

TEST(flipped_bits_are_never_believed)
{
	for (uint64_t seed = 1; seed <= 40; seed += CHECK_STEP) {
		damage(".ldb", false, seed);
		damage(".log", false, seed + 1000);
	}
}

TEST(files_cut_short_are_seen)
{
	for (uint64_t seed = 1; seed <= 15; seed += CHECK_STEP) {
		damage(".log", true, seed);
		damage(".ldb", true, seed);
	}
}

TEST(a_damaged_manifest_is_repaired)
{
	static const char *const files[] = { "CURRENT", "MANIFEST-000002" };

	for (size_t i = 0; i < 2; i++) {
		struct fixture f;
		struct labels l;
		bool warned;
		struct str *names;
		char dir[100], path[200];
		size_t n;
		int fd;

		REQUIRE(fixture_open(&f));
		f.o.window_ns = 10000 * SEC;
		REQUIRE(fixture_reopen(&f));
		l = job(&f, "j", "i");
		fill_random(&f, l);
		db_close(f.db);
		f.db = NULL;
		snprintf(dir, sizeof(dir), "%s/head/0", f.dir);
		REQUIRE_OK(fs_list(dir, &f.arena, &names, &n, &f.err), &f.err);
		path[0] = '\0';
		for (size_t k = 0; k < n; k++)
			if (str_has_prefix(names[k], (struct str){ files[i], 7 }))
				snprintf(path, sizeof(path), "%s/" STR_FMT, dir, STR_ARG(names[k]));
		fd = open(path, O_WRONLY | O_TRUNC);
		REQUIRE(fd >= 0);
		CHECK(write(fd, "junk\n", 5) == 5);
		close(fd);
		REQUIRE(fixture_reopen(&f));
		check_none_wrong(&f, l, &warned);
		CHECK_OK(append_wait(f.db, l, 9000 * SEC, SEC, profile_random(&f.arena, 3), NULL, false,
					 NULL, &f.err),
			&f.err);
		fixture_close(&f);
	}
}
