/* A series that its shard forgot and got again has another id: no manifest may name windows with
 * both. */
#include "tests/tsdb/cluster/shard_world.h"

#include "tsdb/cluster/follower.h"

static struct follower *f;
static char follower_dir[96];

static bool open_follower(void)
{
	struct follower_options fo = { .shard = "a", .dir = follower_dir };

	snprintf(follower_dir, sizeof(follower_dir), "%s.follower", t.f.dir);
	fo.bucket = bucket;
	fo.remote = remote_source(remote);
	db_options_default(&fo.db);
	return follower_open(&fo, &f, &err) == ERR_OK;
}

static void close_all(void)
{
	follower_close(f);
	CHECK_OK(fs_remove_tree(&fs_posix, follower_dir, &err), &err);
	close_world();
}

static void publish(void)
{
	CHECK_OK(publisher_round(shard_publisher(s), &err), &err);
}

static void append(const char *instance, int at_s)
{
	town_append(&t, town_labels(&t, "job0", instance), T0 + at_s);
}

static void check_follower(void)
{
	struct buf here = { 0 }, there = { 0 };
	size_t warnings;

	CHECK_OK(follower_round(f, &err), &err);
	sums(&there);
	CHECK(sum_text(follower_db(f), NULL, 0, INT64_MAX - 1, &here, &warnings, &err));
	CHECK(str_eq(buf_str(&here), buf_str(&there)));
	buf_release(&here);
	buf_release(&there);
}

/* Its window became a block, which is not in the bucket yet. */
static void forget_a_series(void)
{
	append("old", 5);
	publish();
	append("other", 55);
	town_compact(&t);
	CHECK_LAYOUT(&t, "1 head");
	publish();
	db_maintain(t.f.db, true);
	CHECK_LAYOUT(&t, "1 head");
}

TEST(it_comes_again_before_the_block_is_in_the_bucket)
{
	REQUIRE(open_world() && start() && open_follower());
	forget_a_series();
	append("old", 56);
	publish();
	check_follower();
	/* Nor can a lost directory be made of both. */
	crash();
	REQUIRE(wipe() && start());
	accept_unsent();
	TOWN_CHECK(&t, "restored");
	settle();
	check_follower();
	close_all();
}

TEST(it_comes_again_after_a_crash)
{
	REQUIRE(open_world() && start() && open_follower());
	forget_a_series();
	crash();
	REQUIRE(start());
	append("old", 56);
	publish();
	CHECK_OK(follower_round(f, &err), &err); /* its segment waits for the block */
	settle();
	check_follower();
	crash();
	REQUIRE(wipe() && start());
	accept_unsent();
	TOWN_CHECK(&t, "restored");
	close_all();
}
