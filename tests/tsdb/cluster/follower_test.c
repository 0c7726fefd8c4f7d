/* A shard as a query node sees it: windows, blocks, errors, manifests that go back, lateness. */
#include "tests/tsdb/cluster/follower_world.h"
#include "tests/wait.h"

#define MANIFEST "p/q/shards/a/manifest"
#define EVER 2000000000 /* also after the time that `through` says */

static void limit(bool limited, unsigned left)
{
	mutex_lock(&s.fake.lock);
	s.fake.limited = limited;
	s.fake.left = left;
	s.fake.last_is_done = false;
	mutex_unlock(&s.fake.lock);
}

/* ---- windows and blocks ---- */

TEST(windows_are_followed)
{
	struct follower_status is;

	REQUIRE(open_world());
	CHECK_INT(follower_round(f, &s.err), ERR_NOT_FOUND);
	CHECK(tells(0, 10, "shard a is missing: "));
	REQUIRE(scene_start(&s));
	for (int at = 0; at < 40; at += 5) {
		fill(at, at + 5);
		put();
		follow();
		check_follower("each step");
		CHECK_TOLD(0, EVER, "");
	}
	check_layout("head head head head");
	fill(7, 9); /* late rows */
	town_delete(&s.town, "job0", "i0", T0 + 3, T0 + 17);
	put();
	follow();
	check_follower("deleted");
	follower_status(f, &is);
	REQUIRE(scene_look(&s));
	CHECK_INT(is.generation, s.m.generation);
	CHECK_INT(is.through_ns, s.m.through_ns);
	CHECK_INT(is.windows, 4);
	CHECK_INT(is.missing, 0);
	CHECK(!is.late && !is.stopped && is.failed.code == ERR_OK);
	/* One that comes new. */
	close_follower();
	REQUIRE(open_follower());
	follow();
	check_follower("new");
	close_world();
}

TEST(a_manifest_that_did_not_change_is_not_read_again)
{
	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 20);
	put();
	follow();
	fake_fault(&s.fake,
		(struct fake_fault){ .kind = FAULT_STATUS,
			.line = "GET ",
			.times = 1000,
			.status = 503,
			.code = "SlowDown" });
	follow();
	follow();
	CHECK_TOLD(0, EVER, "");
	close_world();
}

TEST(blocks_take_the_place_of_windows)
{
	struct db_querier *q;
	struct buf before = { 0 }, after = { 0 };
	size_t warnings = 0;

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 60);
	put();
	follow();
	check_layout("head head head head head head");
	CHECK(sum_text(follower_db(f), NULL, 0, INT64_MAX - 1, &before, &warnings, &s.err));
	CHECK_OK(db_querier_open(follower_db(f), 0, INT64_MAX - 1, NULL, &q, &s.err), &s.err);
	town_compact(&s.town);
	scene_settle(&s);
	follow();
	check_layout("1 1 1 head head head");
	check_follower("cut");
	CHECK(sum_text(follower_db(f), NULL, 0, INT64_MAX - 1, &after, &warnings, &s.err));
	CHECK(str_eq(buf_str(&before), buf_str(&after)));
	db_querier_close(q);
	town_delete(&s.town, "job1", "i0", T0 + 2, T0 + 47);
	scene_settle(&s);
	follow();
	check_follower("deleted");
	fill(60, 150);
	town_compact(&s.town);
	scene_settle(&s);
	follow();
	check_layout("3 head head head");
	check_follower("joined");
	db_set_retention(s.town.f.db, 25 * SEC, 0, 0);
	town_compact(&s.town);
	town_forget_until(&s.town, T0 + 120);
	scene_settle(&s);
	follow();
	check_follower("dropped");
	CHECK_INT(warnings, 0);
	CHECK_TOLD(0, EVER, "");
	buf_release(&before);
	buf_release(&after);
	close_world();
}

/* ---- errors ---- */

/* False: so many requests are enough for a round. */
static bool cut_round(unsigned n)
{
	enum err_code rc;

	close_follower();
	if (!open_follower()) {
		CHECK_FAIL("%s", s.err.msg);
		return false;
	}
	limit(true, n);
	rc = follower_round(f, &s.err);
	limit(false, 0);
	if (rc)
		CHECK(tells(0, EVER, "shard a "));
	follow();
	check_follower("caught up");
	CHECK_TOLD(0, EVER, "");
	return rc != ERR_OK;
}

TEST(a_round_that_is_cut_is_caught_up)
{
	unsigned n = 0;

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 40);
	town_compact(&s.town);
	scene_settle(&s);
	town_delete(&s.town, "job0", "i0", T0 + 8, T0 + 36);
	scene_settle(&s);
	fill(40, 55);
	put();
	while (cut_round(n))
		n += CHECK_STEP;
	CHECK(n > 5);
	close_world();
}

/* The manifest is there and some of it cannot be read: answers say so until it can. */
TEST(what_was_not_taken_over_is_told)
{
	struct follower_status is;
	int64_t through_ns;

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 10);
	put();
	follow();
	follower_status(f, &is);
	through_ns = is.through_ns;
	fill(10, 15);
	put();
	fake_fault(&s.fake,
		(struct fake_fault){ .kind = FAULT_STATUS,
			.line = "/head/",
			.times = 2,
			.status = 503,
			.code = "SlowDown" });
	for (int i = 0; i < 2; i++) {
		CHECK(follower_round(f, &s.err) != ERR_OK);
		CHECK(tells(0, 10, "shard a was not read whole, profiles may be missing: "));
		CHECK(tells(0, 10, "SlowDown"));
		follower_status(f, &is);
		CHECK(is.late);
		CHECK_INT(is.through_ns, through_ns);
		CHECK(is.failed.code != ERR_OK);
	}
	follow();
	CHECK_TOLD(0, EVER, "");
	check_follower("back");
	close_world();
}

TEST(objects_that_are_missing_are_named)
{
	struct manifest_key key;
	struct follower_status is;
	struct buf want = { 0 };

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	for (int at = 0; at < 30; at += 10) {
		fill(at, at + 5);
		put();
		fill(at + 5, at + 10);
		put();
	}
	REQUIRE(scene_look(&s));
	REQUIRE(s.m.windows_n == 3 && s.m.windows[1].segments_n == 2);
	key = manifest_key_segment(STR("a"), &s.m.windows[1], &s.m.windows[1].segments[1]);
	scene_object(&s, &key)->used = false;
	follow();
	buf_printf(&want, "shard a: %s, which its manifest names, is missing\n%c", key.text, 0);
	CHECK_TOLD(10, 20, want.ptr);
	CHECK_TOLD(0, 10, "");
	CHECK_TOLD(20, 30, "");
	follower_status(f, &is);
	CHECK_INT(is.missing, 1);
	for (size_t i = 0; i < s.town.n; i++)
		s.town.rows[i].deleted |= s.town.rows[i].ts_s > T0 + 15 && s.town.rows[i].ts_s <= T0 + 20;
	check_follower("the rest");
	buf_release(&want);
	close_world();
}

/* ---- manifests that go back ---- */

static void copy_object(const char *key, struct buf *out)
{
	buf_clear(out);
	buf_add_str(out, buf_str(&fake_find(&s.fake, key)->bytes));
}

/* The bucket lost its newest writes, or an older copy of it was put back. */
TEST(a_manifest_that_goes_back)
{
	struct buf windows = { 0 }, more = { 0 };

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 35);
	put();
	copy_object(MANIFEST, &windows);
	fill(35, 60);
	put();
	copy_object(MANIFEST, &more);
	town_compact(&s.town);
	scene_settle(&s);
	follow();
	check_layout("1 1 1 head head head");
	check_follower("blocks");
	fake_put(&s.fake, MANIFEST, buf_str(&more));
	follow();
	check_layout("head head head head head head");
	check_follower("windows again");
	forget_from(35);
	fake_put(&s.fake, MANIFEST, buf_str(&windows));
	follow();
	check_layout("head head head head");
	check_follower("fewer rows");
	CHECK_TOLD(0, EVER, "");
	buf_release(&windows);
	buf_release(&more);
	close_world();
}

TEST(a_manifest_that_cannot_be_read_changes_nothing)
{
	struct buf good = { 0 };

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 25);
	put();
	follow();
	copy_object(MANIFEST, &good);
	fake_put(&s.fake, MANIFEST, STR("{}"));
	CHECK_INT(follower_round(f, &s.err), ERR_CORRUPT);
	check_follower("damaged");
	fake_find(&s.fake, MANIFEST)->used = false;
	CHECK_INT(follower_round(f, &s.err), ERR_NOT_FOUND);
	check_follower("gone");
	fake_put(&s.fake, MANIFEST, buf_str(&good));
	follow();
	check_follower("back");
	CHECK_TOLD(0, EVER, "");
	buf_release(&good);
	close_world();
}

/* ---- lateness ---- */

TEST(a_shard_that_is_silent_is_late)
{
	struct follower_status is;

	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 10);
	put();
	follow();
	follower_status(f, &is);
	CHECK(!is.late);
	scene_crash(&s);
	s.o.interval_ns = STEP; /* and no round comes */
	REQUIRE(scene_start(&s));
	follow();
	do { /* a second and two intervals, however long that takes */
		usleep(10000);
		follow();
		follower_status(f, &is);
	} while (!is.late);
	CHECK(tells(0, EVER, "shard a is late: its profiles after "));
	CHECK_TOLD(0, 10, "");
	check_follower("late");
	/* It stopped in order: nothing is to come. */
	scene_stop(&s);
	follow();
	follower_status(f, &is);
	CHECK(is.stopped && !is.late);
	CHECK_TOLD(0, EVER, "");
	close_world();
}

static _Atomic uint64_t newest;

/* Who lives and is behind for longer than its lease may have scraped what others scrape. */
TEST(a_shard_that_follows_an_old_assignment)
{
	struct follower_options o = { .shard = "a", .dir = follower_dir, .newest = &newest };
	struct follower_status is;

	REQUIRE(open_world());
	close_follower();
	o.bucket = s.bucket;
	o.remote = remote_source(remote);
	db_options_default(&o.db);
	REQUIRE_OK(follower_open(&o, &f, &s.err), &s.err);
	s.o.address = "http://a:1";
	s.o.lease_ns = STEP;
	REQUIRE(scene_start(&s));
	publisher_set_assignment(s.p, 3);
	fill(0, 10);
	put();
	follow();
	CHECK_INT(newest, 3);
	CHECK(!tells(0, EVER, "follows assignment"));
	newest = 4; /* another one's */
	do { /* for longer than its lease, while its manifest changes */
		put();
		follow();
	} while (!tells(0, EVER,
		"shard a follows assignment 3, others 4: profiles of targets that moved may be there "
		"twice"));
	follower_status(f, &is);
	CHECK_INT(is.assignment, 3);
	publisher_set_assignment(s.p, 4);
	put();
	follow();
	follower_status(f, &is);
	CHECK(!is.behind && is.assignment == 4);
	CHECK(!tells(0, EVER, "follows assignment"));
	close_world();
}

/* ---- all shards ---- */

/* "a b-" names of shards; "-": it has not been read whole, or not since its manifest went. */
static void names(struct cluster *c, struct buf *out)
{
	struct cluster_shard *v;
	struct arena a;
	size_t n;

	buf_clear(out);
	arena_init(&a, 0);
	CHECK_OK(cluster_shards(c, &a, &v, &n, &s.err), &s.err);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%s%s", i ? " " : "", v[i].name,
			v[i].is.generation && !v[i].is.failed.code && !v[i].is.unread_windows ? "" : "-");
	arena_release(&a);
}

static void wait_names(struct cluster *c, const char *want)
{
	struct buf is = { 0 };

	for (names(c, &is); !str_is(buf_str(&is), want); names(c, &is)) /* the test's time ends it */
		usleep(5000);
	buf_release(&is);
}

static void forget_shard(const char *prefix)
{
	mutex_lock(&s.fake.lock);
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		if (s.fake.objects[i].used &&
			str_has_prefix(buf_str(&s.fake.objects[i].key), str_of(prefix)))
			s.fake.objects[i].used = false;
	mutex_unlock(&s.fake.lock);
}

/* What answers say of the cluster as a whole, a line each. */
static void told_by(struct cluster *c, struct buf *out)
{
	struct db_querier *q;
	const struct str *v;
	size_t n;

	buf_clear(out);
	REQUIRE_OK(db_querier_open(cluster_db(c), T0 * SEC, (T0 + 9) * SEC, NULL, &q, &s.err), &s.err);
	v = db_querier_warnings(q, &n);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, STR_FMT "\n", STR_ARG(v[i]));
	db_querier_close(q);
}

static bool says(struct cluster *c, const char *text)
{
	struct buf told = { 0 };
	bool is;

	told_by(c, &told);
	is = str_find(buf_str(&told), str_of(text)) >= 0;
	buf_release(&told);
	return is;
}

/* From the first moment: an empty bucket, a shard that has put nothing, lists that fail. */
TEST(what_is_not_known_of_shards_is_said)
{
	struct cluster *c;

	REQUIRE(open_world());
	close_follower();
	REQUIRE((c = open_cluster()) != NULL);
	cluster_wait(c, HOUR_NS);
	CHECK(says(c, "the bucket has no shards: no profiles were published yet"));
	REQUIRE(scene_start(&s));
	fill(0, 30);
	/* Its manifest is there since it has the lease. */
	wait_names(c, "a");
	cluster_wait(c, HOUR_NS);
	CHECK(says(c, "shard a is new: its profiles may be missing"));
	put();
	CHECK(WAIT_FOR(count_rows(cluster_db(c)) == 24));
	CHECK(WAIT_FOR(!says(c, "shard")));
	fake_fault(&s.fake,
		(struct fake_fault){ FAULT_STATUS, "GET /b?", 1u << 30, 403, "AccessDenied", NULL });
	CHECK(WAIT_FOR(says(c, "shards may be missing: they cannot be listed: ")));
	fake_forget_faults(&s.fake);
	CHECK(WAIT_FOR(!says(c, "shards may be missing")));
	cluster_close(c);
	close_world();
}

TEST(shards_come_and_go)
{
	struct cluster *c;
	char left[128];
	size_t rows;

	REQUIRE(open_world());
	close_follower();
	REQUIRE(scene_start(&s));
	fill(0, 30);
	put();
	scene_stop(&s);
	/* An earlier process left the windows of a shard that is gone. */
	snprintf(left, sizeof(left), "%s/z/1/head", follower_dir);
	REQUIRE_OK(fs_mkdir_all(&fs_posix, left, &s.err), &s.err);
	REQUIRE((c = open_cluster()) != NULL);
	CHECK(!fs_exists(left));
	cluster_wait(c, HOUR_NS);
	wait_names(c, "a");
	rows = count_rows(cluster_db(c));
	CHECK_INT(rows, 24);
	/* A shard that is new: the same rows under another name. */
	s.o.shard = STR("b");
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s); /* its files went with the other shard: a snapshot */
	wait_names(c, "a b");
	while (count_rows(cluster_db(c)) != 2 * rows)
		usleep(5000);
	scene_crash(&s);
	/* One that vanishes. */
	forget_shard("p/q/shards/a/");
	wait_names(c, "b");
	CHECK_INT(count_rows(cluster_db(c)), rows);
	/* And comes back. */
	s.o.shard = STR("a");
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	wait_names(c, "a b");
	while (count_rows(cluster_db(c)) != 2 * rows)
		usleep(5000);
	cluster_close(c);
	close_world();
}

/* ---- what the shard lost on its disk ---- */

static void lose(const char *what)
{
	char path[160];

	scene_stop(&s);
	db_close(s.town.f.db);
	s.town.f.db = NULL;
	snprintf(path, sizeof(path), "%s/%s", s.town.f.dir, what);
	REQUIRE_OK(fs_remove_tree(&fs_posix, path, &s.err), &s.err);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
}

/* A window that meets no other is shown. */
TEST(a_window_that_the_shard_lost)
{
	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 40);
	put();
	lose("head/1080010");
	fill(40, 50);
	put();
	CHECK_SCENE(&s, "0: 1-8; 10: 1-8 kept; 20: 1-8; 30: 1-8; 40: 1-8");
	follow();
	CHECK_INT(count_rows(follower_db(f)), 40);
	CHECK(!tells(0, 60, "not shown"));
	close_world();
}

/* The shard goes on in a new window of the same time, and gives numbers of the lost one again. */
TEST(a_window_that_was_lost_and_another_one_of_its_time)
{
	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	fill(0, 35);
	put();
	follow();
	CHECK_INT(count_rows(follower_db(f)), 28);
	lose("head/1080030");
	fill(35, 45);
	put();
	CHECK_INT((scene_look(&s), s.m.windows_n), 6);
	for (unsigned i = 0; i < 2; i++) { /* one that knew the lost window, and a new one */
		follow();
		CHECK_INT(count_rows(follower_db(f)), 32);
		CHECK(tells(30, 40, "that the shard lost or that another data directory had"));
		CHECK(!tells(0, 30, "not shown"));
		close_follower();
		REQUIRE(open_follower());
	}
	close_world();
}
