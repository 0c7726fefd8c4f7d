/* Blocks that the shard has in the bucket alone: deleted rows, raw rows, joins, retention, starts.
 */
#include "tests/check.h"
#include "tests/tsdb/cluster/scene.h"
#include "tsdb/catalog/remote.h"
#include "tsdb/catalog/state.h"
#include "tsdb/remote/remote.h"

static struct scene s;
static struct remote *remote;

static void fill(int from_s, int to_s)
{
	town_fill(&s.town, 1, 1, T0 + from_s, T0 + to_s, 5);
}

static bool open_world(void)
{
	struct remote_options o = { .retry_ns = 1 };

	if (!scene_open(&s))
		return false;
	o.bucket = s.bucket;
	if (remote_open(&o, &remote, &s.err))
		return false;
	s.town.f.o.remote = remote_source(remote);
	return fixture_reopen(&s.town.f);
}

static void close_world(void)
{
	scene_crash(&s);
	db_close(s.town.f.db);
	s.town.f.db = NULL;
	remote_close(remote);
	SCENE_END(&s);
}

static bool start_again(void)
{
	scene_crash(&s);
	return fixture_reopen(&s.town.f) && scene_start(&s);
}

/* Those that a manifest names. */
static void swap_blocks(unsigned want)
{
	struct db_block_status *v;
	unsigned swapped = 0;
	char key[128];
	struct ulid u;
	size_t n;

	CHECK_OK(db_list(s.town.f.db, &s.town.f.arena, &v, &n, &s.err), &s.err);
	for (size_t i = 0; i < n; i++) {
		if (!ulid_parse(str_of(v[i].ulid), &u) || !publisher_has_block(s.p, &u))
			continue;
		snprintf(key, sizeof(key), "shards/a/blocks/%s", u.text);
		swapped += !blocks_swap_remote(s.town.f.db, &u, key, &s.err);
	}
	CHECK_INT(swapped, want);
}

TEST(blocks_that_are_in_the_bucket_alone)
{
	REQUIRE(open_world());
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	swap_blocks(0);
	scene_settle(&s);
	swap_blocks(3);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	scene_check_rows(&s, "swapped");
	REQUIRE(start_again());
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	town_delete(&s.town, "job0", "i0", T0 + 12, T0 + 26);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; block 1 deleted; block 1 deleted; 30: 1-2; 40: 1-2; 50: 1-2");
	scene_check_objects(&s, "deleted", true);
	scene_check_rows(&s, "deleted");
	/* Joined they are one block on the disk, and then in the bucket. */
	fill(60, 150);
	town_compact(&s.town);
	CHECK_LAYOUT(&s.town, "3 head head head");
	scene_settle(&s);
	CHECK_SCENE(&s, "block 3; 120: 1-2; 130: 1-2; 140: 1-2");
	scene_check_objects(&s, "joined", true);
	scene_check_rows(&s, "joined");
	swap_blocks(1);
	fill(150, 180);
	town_compact(&s.town);
	db_set_retention(s.town.f.db, 55 * SEC, 0, 0);
	town_compact(&s.town);
	town_forget_until(&s.town, T0 + 120);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; block 1; block 1; 150: 1-2; 160: 1-2; 170: 1-2");
	scene_check_objects(&s, "dropped", true);
	scene_check_rows(&s, "dropped");
	close_world();
}

/* ---- while a block is joined ---- */

static struct fs hooked;
static struct fs_ops hooked_ops;
static bool armed;
static unsigned tried, swapped_meanwhile;

static bool first_is_pinned(struct db *db)
{
	bool is;

	mutex_lock(&db->lock);
	is = db->blocks_n && db->blocks[0]->pins;
	mutex_unlock(&db->lock);
	return is;
}

/* The join has chosen its blocks and writes the new one: all that are on the disk leave it now. */
static enum err_code open_and_swap(
	struct fs *fs, const char *path, int flags, int mode, int *fd, struct err *err)
{
	struct db *db = s.town.f.db;
	struct db_block_status *v;
	char key[128];
	struct ulid u;
	struct err why;
	size_t n = 0;

	if (armed && first_is_pinned(db)) {
		armed = false;
		CHECK_OK(db_list(db, &s.town.f.arena, &v, &n, &why), &why);
		for (size_t i = 0; i < n; i++) {
			if (!ulid_parse(str_of(v[i].ulid), &u) || !publisher_has_block(s.p, &u))
				continue;
			snprintf(key, sizeof(key), "shards/a/blocks/%s", u.text);
			tried++;
			swapped_meanwhile += !blocks_swap_remote(db, &u, key, &why);
		}
	}
	return fs_posix.ops->open(fs, path, flags, mode, fd, err);
}

TEST(a_block_that_is_joined_does_not_leave_the_disk)
{
	REQUIRE(open_world());
	hooked_ops = *fs_posix.ops;
	hooked_ops.open = open_and_swap;
	hooked.ops = &hooked_ops;
	s.town.f.o.fs = &hooked;
	REQUIRE(fixture_reopen(&s.town.f));
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	fill(60, 150);
	armed = true;
	town_compact(&s.town);
	CHECK_LAYOUT(&s.town, "3 head head head");
	CHECK_INT(tried, 3);
	CHECK_INT(swapped_meanwhile, 0);
	scene_settle(&s);
	swap_blocks(1);
	scene_check_objects(&s, "joined", true);
	scene_check_rows(&s, "joined");
	close_world();
}

TEST(raw_rows_of_a_block_in_the_bucket)
{
	REQUIRE(open_world());
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	swap_blocks(3);
	db_set_retention(s.town.f.db, 0, 0, 45 * SEC);
	town_compact(&s.town);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1 sums; block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	scene_check_objects(&s, "raw", true);
	REQUIRE(start_again());
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1 sums; block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	close_world();
}

/* A start while the bucket does not answer: blocks cannot be opened, and stay where they are. */
TEST(a_start_without_the_bucket)
{
	REQUIRE(open_world());
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	swap_blocks(3);
	scene_crash(&s);
	db_close(s.town.f.db);
	s.town.f.db = NULL;
	remote_close(remote); /* with all that it keeps */
	REQUIRE_OK(
		remote_open(&(struct remote_options){ .bucket = s.bucket, .retry_ns = 1 }, &remote, &s.err),
		&s.err);
	s.town.f.o.remote = remote_source(remote);
	fake_fault(&s.fake,
		(struct fake_fault){ .kind = FAULT_STATUS,
			.line = "/blocks/",
			.times = 100000,
			.status = 503,
			.code = "SlowDown" });
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	fill(60, 70);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1 kept; block 1 kept; block 1 kept; 30: 1-2; 40: 1-2; 50: 1-2; 60: 1-2");
	fake_forget_faults(&s.fake);
	blocks_retry(s.town.f.db);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2; 60: 1-2");
	scene_check_objects(&s, "back", true);
	scene_check_rows(&s, "back");
	close_world();
}
