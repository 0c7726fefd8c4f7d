/*
 * What a shard published from an earlier data directory is still in its manifest, as `kept`. Its
 * numbers of series and symbols may mean something else than those of the directory now, and its
 * rows may be there once more. So a query node shows each row once, as it was, or says that some
 * are missing.
 */
#include "tests/tsdb/cluster/follower_world.h"

static struct town_row *find_row(struct labels labels, int64_t ts_ns)
{
	for (size_t i = 0; i < s.town.n; i++)
		if (s.town.rows[i].ts_s * SEC == ts_ns && labels_eq(s.town.rows[i].labels, labels))
			return &s.town.rows[i];
	return NULL;
}

struct shown {
	const char *what;
	struct sums sums;
	size_t n;
	bool *rows; /* of the town */
};

static bool check_row(void *ctx, const struct db_series *series, const struct db_row *row)
{
	struct shown *x = ctx;
	struct town_row *is = find_row(series->labels, row->ts_ns);
	struct buf got = { 0 }, want = { 0 };
	struct pprof *p;
	struct arena a;

	if (!is || is->deleted || x->rows[is - s.town.rows]) {
		CHECK_FAIL("%s: a row at %lld that is not there, or is twice", x->what,
			(long long)(row->ts_ns / SEC - T0));
		return true;
	}
	arena_init(&a, 0);
	p = profile_random(&a, is->seed);
	row_text(series, row, &got);
	profile_samples_text(p, &want);
	if (!str_eq(buf_str(&got), buf_str(&want)))
		CHECK_FAIL(
			"%s: the row at %lld is another one", x->what, (long long)(row->ts_ns / SEC - T0));
	x->rows[is - s.town.rows] = true;
	x->n++;
	sums_add_profile(&x->sums, p);
	arena_release(&a);
	buf_release(&got);
	buf_release(&want);
	return true;
}

static size_t expected(int from_s, int to_s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.town.n; i++)
		n += !s.town.rows[i].deleted && s.town.rows[i].ts_s > T0 + from_s &&
			s.town.rows[i].ts_s <= T0 + to_s;
	return n;
}

/* Of (from, to]: rows are right, sums are those of the rows, and what is missing is told. How many
 * are shown. */
static size_t check_span(int from_s, int to_s, const char *what)
{
	int64_t from = (T0 + from_s) * SEC, to = (T0 + to_s) * SEC;
	struct shown x = { .what = what, .rows = calloc(s.town.n + 1, sizeof(bool)) };
	size_t warnings = 0, all = expected(from_s, to_s);
	struct buf told = { 0 }, got = { 0 }, want = { 0 };

	if (!rows_each(follower_db(f), from, to, check_row, &x, &warnings, &s.err) ||
		!sum_text(follower_db(f), NULL, from, to, &got, &warnings, &s.err))
		CHECK_FAIL("%s: %s", what, s.err.msg);
	tell(from_s, to_s, &told);
	if (x.n != all && !warnings && !told.len)
		CHECK_FAIL(
			"%s: %zu rows of %zu in %d to %d, and nobody says so", what, x.n, all, from_s, to_s);
	sums_print(&x.sums, &want);
	if (!str_eq(buf_str(&got), buf_str(&want)))
		CHECK_FAIL("%s: sums of %d to %d are \"%.60s\", want \"%.60s\"", what, from_s, to_s,
			got.ptr, want.ptr);
	buf_release(&got);
	buf_release(&want);
	buf_release(&told);
	free(x.rows);
	return x.n;
}

static size_t check_all(const char *what)
{
	size_t n = 0;

	for (int at = 0; at < 60; at += 10)
		n += check_span(at, at + 10, what);
	return n;
}

static void close_shard(void)
{
	scene_stop(&s);
	db_close(s.town.f.db);
	s.town.f.db = NULL;
}

/* Jobs in the other order, so that numbers mean something else. */
static void fill_other(int from_s, int to_s)
{
	for (int at = from_s + 2; at <= to_s; at += 5)
		for (int job = 2; job-- > 0;)
			for (int i = 2; i-- > 0;) {
				char names[2][16];

				snprintf(names[0], sizeof(names[0]), "job%d", job);
				snprintf(names[1], sizeof(names[1]), "i%d", i);
				town_append(&s.town, town_labels(&s.town, names[0], names[1]), T0 + at);
			}
}

static void forget_span(int from_s, int to_s)
{
	for (size_t i = 0; i < s.town.n; i++)
		s.town.rows[i].deleted |= s.town.rows[i].ts_s > T0 + from_s &&
			s.town.rows[i].ts_s <= T0 + to_s;
}

/* ---- a directory that is not made of what the bucket has ---- */

static bool start_another(void)
{
	close_shard();
	return !fs_remove_tree(&fs_posix, s.town.f.dir, &s.err) && fixture_reopen(&s.town.f) &&
		scene_start(&s);
}

TEST(a_window_of_two_directories)
{
	unsigned n = 0;

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 25);
	put();
	follow();
	CHECK_INT(check_all("one directory"), 20);
	REQUIRE(start_another());
	/* All is kept and nothing is new: it is as it was. */
	follow();
	CHECK_INT(check_all("taken"), 20);
	fill_other(25, 40);
	put();
	REQUIRE(scene_look(&s));
	REQUIRE(s.m.windows_n == 5);
	for (uint32_t i = 0; i < 5; i++) {
		CHECK_INT(s.m.windows[i].apart, s.m.windows[i].kept);
		n += s.m.windows[i].apart;
	}
	CHECK_INT(n, 3);
	for (int i = 0; i < 3; i++) {
		follow();
		check_all("two directories");
		CHECK(tells(20, 30, "shard a: "));
		CHECK_INT(check_span(25, 40, "the newest rows"), 12);
		fill_other(40 + 5 * i, 45 + 5 * i);
		put();
	}
	/* One that comes new sees the same. */
	close_follower();
	REQUIRE(open_follower());
	follow();
	check_all("new");
	CHECK_INT(check_span(25, 60, "the newest rows"), 24);
	close_world();
}

/* A cluster reads the shard anew, and has its rows all the while. */
TEST(a_cluster_reads_the_shard_anew)
{
	struct cluster *c;

	REQUIRE(open_world());
	close_follower();
	REQUIRE(scene_start(&s));
	fill(0, 25);
	put();
	REQUIRE((c = open_cluster()) != NULL);
	while (count_rows(cluster_db(c)) != 20)
		usleep(5000);
	REQUIRE(start_another());
	fill_other(25, 40);
	put();
	while (count_rows(cluster_db(c)) != 12)
		usleep(5000);
	fill_other(40, 45);
	put();
	while (count_rows(cluster_db(c)) != 16)
		usleep(5000);
	cluster_close(c);
	CHECK(!fs_exists(follower_dir) || !fs_remove_tree(&fs_posix, follower_dir, &s.err));
	close_world();
}

/* They do not meet, and mean the same. */
TEST(windows_that_do_not_meet_are_shown)
{
	char path[128];

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 40);
	put();
	close_shard();
	snprintf(path, sizeof(path), "%s/head/%d", s.town.f.dir, T0 + 10); /* a disk's error */
	REQUIRE_OK(fs_remove_tree(&fs_posix, path, &s.err), &s.err);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	fill(40, 50);
	put();
	CHECK_SCENE(&s, "0: 1-8; 10: 1-8 kept; 20: 1-8; 30: 1-8; 40: 1-8");
	follow();
	CHECK_INT(check_all("a lost window"), 40);
	CHECK(!tells(0, 60, "not shown"));
	close_world();
}

/* ---- a directory that is older than the bucket, as a backup is ---- */

TEST(rows_of_an_older_directory_are_not_counted_twice)
{
	char backup[128];

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 30);
	put();
	close_shard();
	snprintf(backup, sizeof(backup), "../%s.old", strrchr(s.town.f.dir, '/') + 1);
	town_copy(&s.town, ".", backup);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	fill(30, 60);
	town_compact(&s.town);
	scene_settle(&s);
	follow();
	CHECK_INT(check_all("before"), 48);
	close_shard();
	REQUIRE_OK(fs_remove_tree(&fs_posix, s.town.f.dir, &s.err), &s.err);
	REQUIRE_OK(fs_mkdir_all(&fs_posix, s.town.f.dir, &s.err), &s.err);
	town_copy(&s.town, backup, ".");
	snprintf(backup, sizeof(backup), "%s.old", s.town.f.dir);
	REQUIRE_OK(fs_remove_tree(&fs_posix, backup, &s.err), &s.err);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	follow();
	CHECK_INT(check_all("taken"), 48);
	scene_settle(&s);
	for (int i = 0; i < 2; i++) {
		follow();
		check_all("older");
		fill_other(30 + 5 * i, 35 + 5 * i);
		scene_settle(&s);
	}
	CHECK_INT(check_span(0, 30, "rows of the directory"), 24);
	close_follower();
	REQUIRE(open_follower());
	follow();
	check_all("new");
	town_compact(&s.town);
	scene_settle(&s);
	follow();
	check_all("cut");
	close_world();
}

static void back_up(const char *from, const char *to)
{
	char name[128];

	snprintf(name, sizeof(name), "../%s%s", strrchr(s.town.f.dir, '/') + 1, *from ? from : to);
	town_copy(&s.town, *from ? name : ".", *from ? "." : name);
}

/* Its windows have other batches of the same numbers than the bucket. */
TEST(a_window_of_an_older_directory_goes_on)
{
	char old[128];

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	town_fill(&s.town, 2, 2, T0, T0 + 2, 1);
	put();
	close_shard();
	back_up("", ".old");
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	town_fill(&s.town, 2, 2, T0 + 2, T0 + 5, 1);
	put();
	follow();
	CHECK_INT(check_all("before"), 20);
	close_shard();
	REQUIRE_OK(fs_remove_tree(&fs_posix, s.town.f.dir, &s.err), &s.err);
	REQUIRE_OK(fs_mkdir_all(&fs_posix, s.town.f.dir, &s.err), &s.err);
	back_up(".old", "");
	snprintf(old, sizeof(old), "%s.old", s.town.f.dir);
	REQUIRE_OK(fs_remove_tree(&fs_posix, old, &s.err), &s.err);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	for (int at = 5; at < 10; at++) { /* the first round has fewer, then as many, then more */
		fill_other(at - 1, at + 1);
		scene_settle(&s);
		follow();
		check_all("older");
		CHECK_INT(check_span(5, 10, "its newest rows"), 4 * (at - 4));
		CHECK_INT(check_span(0, 2, "its oldest rows"), 8);
	}
	CHECK(tells(0, 10, "the data directory is older than the bucket"));
	forget_span(2, 5);
	scene_check_rows_alone(&s, "a directory made of the bucket");
	close_world();
}
