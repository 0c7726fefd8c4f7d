/*
 * A directory goes on only if it is the one that took profiles last, as it was then. Any other one
 * is set aside, and made anew of what the manifest names: nothing that the bucket has is missing,
 * nothing is there twice, and what a directory had more stays in a folder.
 */
#include "base/clock.h"
#include "tests/tsdb/cluster/two_world.h"
#include "tests/tsdb/disk.h"
#include "tsdb/cluster/caretaker.h"
#include "tsdb/cluster/follower.h"
#include "tsdb/cluster/inspect/inspect.h"
#include "tsdb/lists/losses.h"

/* ---- what is asked each time ---- */

/* The folders that were set aside, and how many blocks they have. */
static size_t replaced(const char *dir, size_t *blocks)
{
	struct str *names, *in;
	struct arena a;
	size_t n = 0, all = 0, in_n;
	char path[256];

	arena_init(&a, 0);
	*blocks = 0;
	CHECK_OK(fs_list(dir, &a, &names, &all, &err), &err);
	for (size_t i = 0; i < all; i++) {
		if (!str_has_prefix(names[i], STR("replaced-")))
			continue;
		n++;
		snprintf(path, sizeof(path), "%s/" STR_FMT "/blocks", dir, STR_ARG(names[i]));
		if (fs_exists(path) && !fs_list(path, &a, &in, &in_n, &err))
			*blocks += in_n;
	}
	arena_release(&a);
	return n;
}

static void check_replaced(const char *dir, size_t folders, size_t blocks)
{
	size_t has;

	CHECK_INT(replaced(dir, &has), folders);
	CHECK_INT(has, blocks);
}

/* A query node that comes new has the town's rows, each once. */
static void check_query_node(const char *what)
{
	struct follower_options fo = {
		.bucket = bucket, .remote = remote_source(remote), .shard = "a"
	};
	struct db *mine = t.f.db;
	struct follower *q = NULL;
	char dir[96];

	snprintf(dir, sizeof(dir), "%s.follower", t.f.dir);
	fo.dir = dir;
	db_options_default(&fo.db);
	REQUIRE_OK(follower_open(&fo, &q, &err), &err);
	CHECK_OK(follower_round(q, &err), &err);
	t.f.db = follower_db(q);
	TOWN_CHECK(&t, what);
	t.f.db = mine;
	follower_close(q);
}

static size_t open_losses(void)
{
	return losses_open_n(t.f.db->losses);
}

static void copy_dir(const char *from, const char *to)
{
	char names[2][128];

	snprintf(names[0], sizeof(names[0]), "../%s", strrchr(from, '/') + 1);
	snprintf(names[1], sizeof(names[1]), "../%s", strrchr(to, '/') + 1);
	CHECK_OK(fs_remove_tree(&fs_posix, to, &err), &err);
	CHECK_OK(fs_mkdir_all(&fs_posix, t.f.dir, &err), &err); /* names are relative to it */
	town_copy(&t, names[0], names[1]);
}

static void remove_copy(const char *dir)
{
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
}

/* ---- a pair ---- */

/* The first directory has three blocks and is killed; the other one goes on, and ends. */
static bool other_went_on(bool in_order)
{
	if (!start())
		return false;
	fill(0, 60);
	town_compact(&t);
	settle();
	fill(60, 65); /* not put */
	crash();
	forget_from(60);
	use(true);
	if (!start())
		return false;
	accept_unsent();
	TOWN_CHECK(&t, "the other one");
	fill(60, 110);
	town_compact(&t);
	settle();
	if (in_order)
		stop();
	else
		crash();
	use(false);
	return true;
}

TEST(a_pair_with_two_disks)
{
	REQUIRE(open_two());
	REQUIRE(other_went_on(false));
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "the first one came back");
	check_replaced(t.f.dir, 1, 3);
	settle();
	check_query_node("a query node");
	fill(110, 150);
	town_compact(&t);
	settle();
	TOWN_CHECK(&t, "it went on");
	check_query_node("it went on");
	crash();
	REQUIRE(start());
	CHECK_INT(open_losses(), 0);
	TOWN_CHECK(&t, "the same directory");
	check_replaced(t.f.dir, 1, 3);
	close_two();
}

/* Names are the time in seconds: the older folder goes, whatever its name. */
TEST(the_newest_folder_stays)
{
	REQUIRE(open_two());
	for (int i = 0; i < 6; i++) {
		use(i % 2);
		REQUIRE(start());
		TOWN_CHECK(&t, "in turns");
		CHECK_INT(open_losses(), 0);
		fill(10 * i, 10 * i + 10);
		settle();
		stop();
	}
	check_replaced(t.f.dir, 1, 0);
	check_replaced(f.dir, 1, 0);
	check_query_node("in turns");
	close_two();
}

/* ---- copies ---- */

TEST(a_backup_of_the_directory)
{
	char backup[96];

	REQUIRE(open_two());
	snprintf(backup, sizeof(backup), "%s.old", t.f.dir);
	for (int crashes = 0; crashes < 2; crashes++) {
		int from = 100 * crashes;

		REQUIRE(start());
		fill(from, from + 30);
		settle();
		stop();
		copy_dir(t.f.dir, backup);
		REQUIRE(start());
		fill(from + 30, from + 60);
		town_compact(&t);
		settle();
		if (crashes)
			crash();
		else
			stop();
		copy_dir(backup, t.f.dir);
		REQUIRE(start());
		if (crashes)
			accept_unsent();
		CHECK_INT(open_losses(), 0);
		TOWN_CHECK(&t, "restored over it");
		fill(from + 60, from + 80);
		settle();
		check_query_node("restored over it");
		stop();
	}
	remove_copy(backup);
	close_two();
}

TEST(a_copy_started_while_the_first_one_runs)
{
	struct shard_node *first;
	struct db *db;

	REQUIRE(open_two());
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	settle();
	copy_dir(t.f.dir, f.dir);
	fill(60, 80);
	settle();
	fill(80, 90); /* not put */
	first = s;
	db = t.f.db;
	use(true);
	REQUIRE(start());
	forget_from(80);
	accept_unsent();
	TOWN_CHECK(&t, "the copy");
	CHECK_INT(publisher_round(shard_publisher(first), &err), ERR_EXISTS);
	CHECK(shard_is_fenced(first));
	settle();
	check_query_node("the copy");
	crash();
	t.f.db = db;
	shard_close(first);
	t.f.db = NULL;
	/* It has tried to write a manifest since; it is another directory all the same. */
	use(false);
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "the first one");
	close_two();
}

/* ---- what goes on ---- */

TEST(a_manifest_that_names_nothing)
{
	REQUIRE(open_two());
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	settle();
	stop();
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		fake.objects[i].used = false;
	REQUIRE(start()); /* a new bucket */
	settle();
	TOWN_CHECK(&t, "a new bucket");
	check_query_node("a new bucket");
	check_replaced(t.f.dir, 0, 0);
	stop();
	/* Another directory took the name before, and published nothing. */
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		fake.objects[i].used = false;
	use(true);
	REQUIRE(start());
	stop();
	use(false);
	REQUIRE(start());
	settle();
	TOWN_CHECK(&t, "an empty manifest");
	check_query_node("an empty manifest");
	check_replaced(t.f.dir, 0, 0);
	close_two();
}

/* The directory noted later writes than the one that is there. */
TEST(a_bucket_that_is_older_than_the_directory)
{
	struct fake_object *then = calloc(FAKE_OBJECTS_MAX, sizeof(*then));

	REQUIRE(open_two());
	REQUIRE(start());
	fill(0, 45);
	town_compact(&t);
	settle();
	fill(45, 58);
	settle();
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++) {
		then[i].used = fake.objects[i].used;
		buf_add_str(&then[i].bytes, buf_str(&fake.objects[i].bytes));
		buf_add_str(&then[i].key, buf_str(&fake.objects[i].key));
		buf_add_char(&then[i].key, '\0');
	}
	fill(58, 100);
	settle();
	town_compact(&t);
	settle();
	crash();
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		fake.objects[i].used = false;
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++) {
		if (then[i].used)
			fake_put(&fake, then[i].key.ptr, buf_str(&then[i].bytes));
		buf_release(&then[i].key);
		buf_release(&then[i].bytes);
	}
	free(then);
	REQUIRE(start());
	TOWN_CHECK(&t, "an older bucket");
	check_replaced(t.f.dir, 0, 0);
	settle();
	check_query_node("put again");
	crash();
	REQUIRE(wipe());
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "restored");
	close_two();
}

/* A caretaker takes nothing: the directory that did is the same one after its visit. */
TEST(a_caretaker_came_by)
{
	struct caretaker_options with = { .bucket = bucket };
	struct caretaker *c;

	REQUIRE(open_two());
	with.bucket = bucket;
	with.abandoned_ns = with.lease_ns = 1000 * NS_PER_HOUR;
	with.delete_delay_ns = with.poll_ns = with.orphans_every_ns = 1;
	with.no_probe = with.no_thread = true;
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	settle();
	stop();
	fake_put(&fake, "p/q/shards/a/files/x", STR("x"));
	REQUIRE_OK(caretaker_open(&with, &c, &err), &err);
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(caretaker_round(c, &err), &err);
	caretaker_close(c);
	REQUIRE(look_in_bucket());
	CHECK(in_bucket.taker.len > 0);
	REQUIRE(start());
	TOWN_CHECK(&t, "the same directory");
	check_replaced(t.f.dir, 0, 0);
	CHECK_INT(open_losses(), 0);
	close_two();
}

/* ---- a manifest that was made anew ---- */

static void ignore_line(void *ctx, const char *line)
{
	(void)ctx;
	(void)line;
}

/* Nobody knows whose it is, and whether all is there. */
TEST(a_manifest_that_was_repaired)
{
	struct inspect x = { .finding = ignore_line, .note = ignore_line };

	REQUIRE(open_two());
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	settle();
	fill(60, 65); /* not put */
	crash();
	forget_from(60);
	fake_put(&fake, "p/q/shards/a/manifest", STR("damaged"));
	x.bucket = bucket;
	CHECK_OK(inspect_repair(&x, STR("a"), -1, &err), &err);
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "repaired");
	check_replaced(t.f.dir, 1, 3);
	settle();
	check_query_node("repaired");
	close_two();
}

/* ---- a start without the bucket ---- */

static void set_away(bool away)
{
	mutex_lock(&fake.lock);
	fake.limited = away;
	fake.left = 0;
	mutex_unlock(&fake.lock);
}

TEST(a_late_start_finds_another_manifest)
{
	REQUIRE(open_two());
	REQUIRE(other_went_on(true));
	set_away(true);
	REQUIRE(start());
	fill(110, 120); /* a scrape: nobody is told that it is stored */
	set_away(false);
	CHECK_INT(shard_take_late(s, &err), ERR_EXISTS);
	CHECK_STR(str_of(err.msg),
		"shard a went on in another data directory while the bucket was away: this server ends, "
		"and "
		"its next start restores the directory from the bucket");
	CHECK(shard_is_fenced(s));
	CHECK_INT(shard_check_lease(s, &err), ERR_UNAVAILABLE);
	CHECK_INT(shard_take_late(s, &err), ERR_EXISTS); /* it stays so */
	stop();
	forget_from(110);
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "the next start");
	check_replaced(t.f.dir, 1, 3);
	settle();
	check_query_node("the next start");
	close_two();
}

/* ---- crashes ---- */

static struct disk *disk;

/* Two blocks in a directory, whose shard another server has had since; both ended in order. */
static bool two_in_order(void)
{
	if (!open_two() || !start())
		return false;
	town_fill(&t, 1, 1, T0, T0 + 50, 5);
	town_compact(&t);
	settle();
	stop();
	use(true);
	if (!start())
		return false;
	town_fill(&t, 1, 1, T0 + 50, T0 + 80, 5);
	town_compact(&t);
	settle();
	stop();
	use(false);
	return true;
}

static void check_after_crash(const char *name, uint64_t nth, bool complete)
{
	char what[64];

	snprintf(what, sizeof(what), "%s %u", name, (unsigned)nth);
	if (!start()) {
		CHECK_FAIL("%s: %s", what, err.msg);
		return;
	}
	/* Where a write of the manifest was done and could not be noted, profiles may have been taken.
	 */
	if (!complete && open_losses())
		accept_unsent();
	CHECK_INT(open_losses(), 0);
	TOWN_CHECK(&t, what);
	check_replaced(t.f.dir, 1, 2);
	settle();
	check_query_node(what);
}

/* The power is cut at the nth operation of a start that sets the directory aside. False: there were
 * fewer. */
static bool cut_at(uint64_t nth)
{
	bool cut;

	if (!two_in_order()) {
		CHECK_FAIL("%s", err.msg);
		return false;
	}
	disk = disk_open(t.f.dir);
	own.db.fs = disk_fs(disk);
	own.db.store = disk_store(disk);
	use(false);
	disk_power_cut_at(disk, nth);
	(void)!start();
	cut = disk_is_cut(disk);
	disk_power_cut(disk);
	crash();
	disk_restore(disk, nth);
	check_after_crash("operation", nth, look_in_bucket() && in_bucket.complete);
	crash();
	disk_close(disk);
	close_two();
	return cut;
}

TEST(a_power_cut_while_a_directory_is_replaced)
{
	uint64_t n = 1;

	while (cut_at(n))
		n += CHECK_STEP;
	CHECK(n > 30);
}

/* The store is gone after so many requests of such a start, of which the last one was done or not.
 * False: they were enough. */
static bool gone_after(unsigned left, bool last_is_done)
{
	bool over;

	if (!two_in_order()) {
		CHECK_FAIL("%s", err.msg);
		return false;
	}
	mutex_lock(&fake.lock);
	fake.limited = true;
	fake.left = left;
	fake.last_is_done = last_is_done;
	mutex_unlock(&fake.lock);
	(void)!start(); /* without a word of the store it begins late */
	mutex_lock(&fake.lock);
	over = fake.left == 0;
	fake.limited = fake.last_is_done = false;
	mutex_unlock(&fake.lock);
	crash();
	check_after_crash("request", left, true);
	close_two();
	return over;
}

TEST(a_store_that_is_gone_while_a_directory_is_replaced)
{
	unsigned n = 0;

	while (gone_after(n, false))
		n += CHECK_STEP;
	CHECK(n > 10);
	for (n = 1; gone_after(n, true);)
		n += CHECK_STEP;
}
