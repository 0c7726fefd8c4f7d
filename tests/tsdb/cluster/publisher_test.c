/* What a shard publishes, round by round; what leaves the bucket; directories that were lost. */
#include "tests/check.h"
#include "tests/scratch.h"
#include "tests/tsdb/cluster/scene.h"

static struct scene s;

static void fill(int from_s, int to_s)
{
	town_fill(&s.town, 1, 1, T0 + from_s, T0 + to_s, 5);
}

TEST(segments_then_blocks)
{
	struct ulid u;

	REQUIRE(scene_open(&s));
	fill(0, 10);
	REQUIRE(scene_start(&s));
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	CHECK_SCENE(&s, "0: 1-2");
	fill(10, 25);
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	CHECK_SCENE(&s, "0: 1-2; 10: 1-2; 20: 1-1");
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	CHECK_SCENE(&s, "0: 1-2; 10: 1-2; 20: 1-1");
	fill(25, 35);
	scene_settle(&s);
	CHECK_SCENE(&s, "0: 1-2; 10: 1-2; 20: 1-1 2-2; 30: 1-1");
	scene_check_objects(&s, "segments", true);
	scene_check_rows(&s, "segments");
	/* A block takes a window's place in one step, once it is put. */
	fill(35, 60);
	town_compact(&s.town);
	CHECK_LAYOUT(&s.town, "1 1 1 head head head");
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	CHECK_SCENE(&s, "0: 1-2; 10: 1-2; 20: 1-1 2-2; 30: 1-1 2-2; 40: 1-2; 50: 1-2");
	scene_check_objects(&s, "before the blocks", true);
	REQUIRE(ulid_parse(str_of(town_block(&s.town, 0) + 7), &u));
	CHECK(!publisher_has_block(s.p, &u));
	CHECK_OK(publisher_work(s.p, &s.err), &s.err);
	CHECK(!publisher_has_block(s.p, &u));
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	CHECK(publisher_has_block(s.p, &u));
	CHECK_SCENE(&s, "block 1; block 1; block 1; 30: 1-1 2-2; 40: 1-2; 50: 1-2");
	scene_check_objects(&s, "blocks", true);
	scene_check_rows(&s, "blocks");
	SCENE_END(&s);
}

TEST(joined_and_dropped_blocks)
{
	REQUIRE(scene_open(&s));
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	fill(60, 150);
	town_compact(&s.town);
	CHECK_LAYOUT(&s.town, "3 head head head");
	scene_settle(&s);
	CHECK_SCENE(&s, "block 3; 120: 1-2; 130: 1-2; 140: 1-2");
	scene_check_objects(&s, "joined", true);
	scene_check_rows(&s, "joined");
	fill(150, 180);
	town_compact(&s.town);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 3; block 1; block 1; block 1; 150: 1-2; 160: 1-2; 170: 1-2");
	db_set_retention(s.town.f.db, 55 * SEC, 0, 0);
	town_compact(&s.town);
	town_forget_until(&s.town, T0 + 120);
	CHECK_LAYOUT(&s.town, "1 1 1 head head head");
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; block 1; block 1; 150: 1-2; 160: 1-2; 170: 1-2");
	scene_check_objects(&s, "dropped", true);
	scene_check_rows(&s, "dropped");
	SCENE_END(&s);
}

TEST(deleted_rows_stay_deleted)
{
	REQUIRE(scene_open(&s));
	town_fill(&s.town, 2, 1, T0, T0 + 60, 5);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	town_delete(&s.town, "job0", "i0", T0 + 10, T0 + 50);
	scene_settle(&s);
	CHECK_SCENE(
		&s, "block 1; block 1 deleted; block 1 deleted; 30: 1-4 deleted; 40: 1-4 deleted; 50: 1-4");
	scene_check_objects(&s, "deleted", true);
	scene_check_rows(&s, "deleted");
	town_delete(&s.town, "job1", "i0", T0 + 10, T0 + 30);
	/* also of blocks that are not there yet */
	town_fill(&s.town, 2, 1, T0 + 60, T0 + 80, 5);
	town_compact(&s.town);
	town_delete(&s.town, "job1", "i0", T0 + 30, T0 + 45);
	scene_settle(&s);
	scene_check_objects(&s, "deleted more", true);
	scene_check_rows(&s, "deleted more");
	SCENE_END(&s);
}

/* The shard goes away and comes back: what happened meanwhile is found by comparing. */
TEST(another_start)
{
	REQUIRE(scene_open(&s));
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	scene_stop(&s);
	REQUIRE(scene_look(&s));
	CHECK(s.m.stopped);
	/* Without a publisher: cut, joined, dropped, and rows of old and new windows. */
	fill(60, 180);
	town_compact(&s.town);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	scene_check_objects(&s, "came back", true);
	scene_check_rows(&s, "came back");
	REQUIRE(scene_look(&s));
	CHECK(!s.m.stopped);
	scene_stop(&s);
	db_set_retention(s.town.f.db, 45 * SEC, 0, 0);
	town_compact(&s.town);
	town_forget_until(&s.town, T0 + 130);
	s.town.f.o.retention_ns = 0; /* the new publisher does not know the time */
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	scene_check_objects(&s, "dropped meanwhile", true);
	scene_check_rows(&s, "dropped meanwhile");
	SCENE_END(&s);
}

/* ---- removal ---- */

static size_t objects(void)
{
	size_t n = 0;

	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		n += s.fake.objects[i].used;
	return n;
}

TEST(what_is_gone_is_removed_after_the_delay)
{
	struct publisher_status status;
	size_t named;

	REQUIRE(scene_open(&s));
	fill(0, 60);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	town_compact(&s.town);
	scene_settle(&s);
	REQUIRE(scene_look(&s));
	CHECK_INT(s.m.gone_n, 3); /* segments */
	named = objects() - 3;
	scene_crash(&s);
	s.o.delete_delay_ns = 1;
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	REQUIRE(scene_look(&s));
	CHECK_INT(s.m.gone_n, 0);
	CHECK_INT(objects(), named);
	publisher_status(s.p, &status);
	CHECK_INT(status.removed, 3);
	scene_check_objects(&s, "removed", true);
	scene_check_rows(&s, "removed");
	SCENE_END(&s);
}

TEST(objects_without_a_name_are_removed)
{
	static const char *const keys[] = { "p/q/shards/a/blocks/01ARZ3NDEKTSV4RRFFQ69G5FAV/rows.ldb",
		"p/q/shards/a/head/1-1/x", "p/q/shards/a/files/ids-0" };
	struct publisher_status status;

	REQUIRE(scene_open(&s));
	fill(0, 60);
	town_compact(&s.town);
	for (unsigned i = 0; i < 3; i++)
		fake_put(&s.fake, keys[i], STR("x"));
	fake_put(&s.fake, "p/q/shards/ab/manifest", STR("x"));
	s.o.delete_delay_ns = 1;
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	publisher_status(s.p, &status);
	CHECK_INT(status.orphans, 3);
	for (unsigned i = 0; i < 3; i++)
		CHECK(fake_find(&s.fake, keys[i]) == NULL);
	REQUIRE(fake_find(&s.fake, "p/q/shards/ab/manifest") != NULL); /* another shard's */
	fake_find(&s.fake, "p/q/shards/ab/manifest")->used = false;
	scene_check_objects(&s, "orphans", true);
	scene_check_rows(&s, "orphans");
	SCENE_END(&s);
}

/* ---- directories ---- */

/* A block that is lost here is on the list of losses, and stays in the bucket. */
TEST(a_lost_block_stays_in_the_bucket)
{
	char path[256];

	REQUIRE(scene_open(&s));
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	scene_stop(&s);
	snprintf(path, sizeof(path), "%s/%s", s.town.f.dir, town_block(&s.town, 1));
	db_close(s.town.f.db);
	s.town.f.db = NULL;
	REQUIRE_OK(fs_remove_tree(&fs_posix, path, &s.err), &s.err);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; block 1 kept; block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	/* Neighbours that are joined over it do not take its place. */
	fill(60, 150);
	town_compact(&s.town);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 3; block 1 kept; 120: 1-2; 130: 1-2; 140: 1-2");
	scene_crash(&s);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_SCENE(&s, "block 3; block 1 kept; 120: 1-2; 130: 1-2; 140: 1-2");
	scene_check_objects(&s, "lost block", true);
	/* It goes when it is too old. */
	db_set_retention(s.town.f.db, 125 * SEC, 0, 0);
	fill(150, 170);
	town_compact(&s.town);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 3; block 1; block 1; 140: 1-2; 150: 1-2; 160: 1-2");
	SCENE_END(&s);
}

/* ---- raw rows ---- */

TEST(raw_rows_go_from_the_bucket_too)
{
	REQUIRE(scene_open(&s));
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	db_set_retention(s.town.f.db, 0, 0, 45 * SEC);
	town_compact(&s.town);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1 sums; block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	scene_check_objects(&s, "raw", true);
	scene_crash(&s);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1 sums; block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	SCENE_END(&s);
}

/* ---- damage ---- */

TEST(a_damaged_block_is_not_put)
{
	struct publisher_status status;
	char path[256];
	struct buf b = { 0 };

	REQUIRE(scene_open(&s));
	fill(0, 40);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	town_compact(&s.town);
	CHECK_LAYOUT(&s.town, "1 head head head");
	snprintf(path, sizeof(path), "%s/%s/rows.ldb", s.town.f.dir, town_block(&s.town, 0));
	REQUIRE_OK(fs_read_file(path, 1 << 20, &b, &s.err), &s.err);
	b.ptr[10] ^= 1;
	REQUIRE_OK(fs_write_file(&fs_posix, path, buf_str(&b), &s.err), &s.err);
	scene_settle(&s);
	/* Its segments stay, which are whole. */
	CHECK_SCENE(&s, "0: 1-2; 10: 1-2; 20: 1-2; 30: 1-2");
	publisher_status(s.p, &status);
	CHECK_INT(status.failures, 1); /* said once, tried again in an hour */
	CHECK_INT(status.waiting_blocks, 0);
	CHECK(status.waiting_bytes > 0);
	scene_check_objects(&s, "damaged", true);
	buf_release(&b);
	SCENE_END(&s);
}

/* ---- fenced ---- */

TEST(another_server_takes_over)
{
	struct publisher_options o;
	struct publisher_status status;
	struct publisher *other;
	char dir[] = SCRATCH "epi-other-XXXXXX";

	REQUIRE(scene_open(&s));
	REQUIRE(scratch_dir(dir) != NULL);
	fill(0, 20);
	s.o.lease_ns = 50 * NS_PER_MS;
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	o = s.o;
	o.dir = dir;
	o.host = "there";
	REQUIRE_OK(publisher_open(&o, &other, &s.err), &s.err);
	REQUIRE_OK(publisher_take(other, false, &s.err), &s.err);
	CHECK_INT(publisher_taken(other)->windows_n, 2);
	fill(20, 30);
	CHECK_INT(publisher_round(s.p, &s.err), ERR_EXISTS);
	CHECK(str_has_prefix(str_of(s.err.msg), STR("shard a was taken over by there at 20")));
	publisher_status(s.p, &status);
	CHECK_STR(str_of(publisher_state_name(status.state)), "fenced");
	CHECK_INT(publisher_work(s.p, &s.err), ERR_EXISTS);
	CHECK_SCENE(&s, "0: 1-2; 10: 1-2");
	scene_stop(&s);
	REQUIRE(scene_look(&s));
	CHECK(!s.m.stopped);
	publisher_close(other);
	REQUIRE(scene_look(&s));
	CHECK(s.m.stopped);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &s.err), &s.err);
	SCENE_END(&s);
}
