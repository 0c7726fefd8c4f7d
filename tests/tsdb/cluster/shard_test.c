/* Shards: names that are taken, local retention, threads. */
#include "tsdb/cluster/shard.h"

#include <unistd.h>

#include "tests/tsdb/cluster/shard_world.h"

#define LONG (1000 * SEC) /* never over in a test */

/* ---- who has the name ---- */

static struct publisher_status publisher_status_of(struct shard_node *of)
{
	struct publisher_status is;

	publisher_status(shard_publisher(of), &is);
	return is;
}

static struct shard_options another(struct fixture *f)
{
	struct shard_options other = o;

	*f = (struct fixture){ 0 };
	if (!fixture_open(f))
		abort();
	db_close(f->db);
	f->db = NULL;
	if (fs_remove_tree(&fs_posix, f->dir, &err))
		CHECK_FAIL("%s", err.msg);
	other.db.dir = f->dir;
	return other;
}

TEST(a_second_shard_of_the_name_is_refused)
{
	struct shard_options other;
	struct shard_node *second;
	struct fixture f;

	REQUIRE(open_world());
	o.no_threads = false;
	o.interval_ns = 20 * NS_PER_MS;
	o.lease_ns = 20 * SEC;
	REQUIRE(start());
	other = another(&f);
	other.lease_ns = 20 * SEC; /* in which the first writes */
	REQUIRE_OK(shard_open(&other, &second, &err), &err);
	CHECK_INT(shard_start(second, &err), ERR_EXISTS);
	CHECK(str_find(str_of(err.msg), STR("shard a is in use by ")) == 0);
	shard_close(second);
	CHECK(!shard_is_fenced(s));
	CHECK(shard_lease_is_sure(s));
	fixture_close(&f);
	close_world();
}

TEST(a_shard_that_was_silent_is_fenced)
{
	struct shard_options other;
	struct shard_node *second;
	struct fixture f;

	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 20);
	settle();
	other = another(&f);
	REQUIRE_OK(shard_open(&other, &second, &err), &err);
	CHECK_OK(shard_start(second, &err), &err);
	CHECK(!shard_is_fenced(s));
	CHECK(!shard_lease_is_sure(s)); /* it knows without asking */
	fill(20, 30);
	CHECK_INT(publisher_round(shard_publisher(s), &err), ERR_EXISTS);
	CHECK(shard_is_fenced(s));
	CHECK(!shard_is_fenced(second));
	stop();
	t.f.db = shard_db(second);
	forget_from(20);
	accept_unsent();
	TOWN_CHECK(&t, "taken over");
	t.f.db = NULL;
	shard_close(second);
	fixture_close(&f);
	close_world();
}

TEST(a_wait_is_canceled)
{
	struct shard_options other;
	struct shard_node *second;
	struct fixture f;

	REQUIRE(open_world());
	REQUIRE(start());
	other = another(&f);
	other.lease_ns = LONG;
	REQUIRE_OK(shard_open(&other, &second, &err), &err);
	shard_cancel(second);
	CHECK_INT(shard_start(second, &err), ERR_CANCELED);
	shard_close(second);
	/* Also one that restores. */
	fill(0, 20);
	settle();
	stop();
	REQUIRE_OK(shard_open(&other, &second, &err), &err);
	shard_cancel(second);
	CHECK_INT(shard_start(second, &err), ERR_CANCELED);
	shard_close(second);
	fixture_close(&f);
	close_world();
}

/* It has the same token: it would take the lease from the first at once. */
TEST(a_second_process_in_the_directory_is_refused)
{
	struct shard_node *second;
	struct buf want = { 0 };

	REQUIRE(open_world());
	REQUIRE(start());
	REQUIRE_OK(shard_open(&o, &second, &err), &err);
	CHECK_INT(shard_start(second, &err), ERR_EXISTS);
	buf_printf(&want, "data directory %s is locked by another process%c", t.f.dir, '\0');
	CHECK_STR(str_of(err.msg), want.ptr);
	shard_close(second);
	CHECK_OK(publisher_round(shard_publisher(s), &err), &err);
	buf_release(&want);
	close_world();
}

TEST(names_are_checked)
{
	struct shard_node *out = NULL;

	REQUIRE(open_world());
	o.name = "a/b";
	CHECK_INT(shard_open(&o, &out, &err), ERR_INVALID);
	CHECK(!out);
	shard_close(NULL);
	close_world();
}

/* ---- starts while the bucket is away ---- */

static void set_away(bool away)
{
	mutex_lock(&fake.lock);
	fake.limited = away;
	fake.left = 0;
	mutex_unlock(&fake.lock);
}

/* It takes profiles, and writes nothing to the bucket before it has the lease. */
TEST(a_start_without_the_bucket)
{
	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	settle();
	crash();
	set_away(true);
	REQUIRE(start());
	fill(60, 80);
	CHECK_LAYOUT(&t, "1 1 1 head head head head head");
	CHECK(shard_take_late(s, &err) != ERR_OK);
	CHECK_INT(publisher_status_of(s).generation, 0);
	CHECK(!shard_is_fenced(s));
	CHECK(!shard_lease_is_sure(s)); /* it has none yet */
	crash(); /* again */
	REQUIRE(start());
	fill(80, 90);
	set_away(false);
	CHECK_OK(shard_take_late(s, &err), &err);
	settle();
	TOWN_CHECK(&t, "back");
	crash();
	REQUIRE(wipe());
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "restored");
	close_world();
}

TEST(a_start_without_the_bucket_while_another_one_takes_over)
{
	struct shard_options other;
	struct shard_node *second;
	struct fixture f;

	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 20);
	settle();
	crash();
	set_away(true);
	o.lease_ns = 40 * SEC; /* in which the other one writes; it looks 20 times in it */
	REQUIRE(start());
	fill(20, 30);
	set_away(false);
	other = another(&f);
	other.lease_ns = 50 * NS_PER_MS;
	other.no_threads = false;
	other.interval_ns = 20 * NS_PER_MS;
	REQUIRE_OK(shard_open(&other, &second, &err), &err);
	CHECK_OK(shard_start(second, &err), &err);
	CHECK_INT(shard_take_late(s, &err), ERR_EXISTS);
	CHECK(shard_is_fenced(s));
	CHECK(!shard_is_fenced(second));
	stop();
	t.f.db = shard_db(second);
	forget_from(20);
	accept_unsent();
	TOWN_CHECK(&t, "taken over");
	t.f.db = NULL;
	shard_close(second);
	fixture_close(&f);
	close_world();
}

/* It cannot know what the shard has. */
TEST(a_new_directory_does_not_start_without_the_bucket)
{
	REQUIRE(open_world());
	set_away(true);
	CHECK(!start());
	set_away(false);
	REQUIRE(start());
	fill(0, 20);
	settle();
	crash();
	REQUIRE(wipe());
	set_away(true);
	CHECK(!start());
	set_away(false);
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "restored");
	close_world();
}

/* With threads: it is published some time after the bucket is back, or it ends at once. */
TEST(a_late_start_ends_and_goes_on)
{
	struct publisher_status is;

	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 20);
	settle();
	crash();
	o.no_threads = false;
	o.interval_ns = 20 * NS_PER_MS;
	set_away(true);
	REQUIRE(start());
	fill(20, 30);
	stop();
	REQUIRE(start());
	fill(30, 40);
	set_away(false);
	do {
		usleep(5000);
		is = publisher_status_of(s);
	} while (is.windows < 4);
	stop();
	REQUIRE(wipe());
	REQUIRE(start());
	TOWN_CHECK(&t, "restored");
	close_world();
}

/* ---- blocks that leave the disk ---- */

static uint64_t remote_blocks(void)
{
	struct db_status st;

	db_status(t.f.db, &st);
	return st.remote_blocks;
}

TEST(local_retention)
{
	struct buf before = { 0 }, after = { 0 };

	REQUIRE(open_world());
	o.local_retention_ns = 15 * SEC;
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	sums(&before);
	CHECK_INT(shard_swap(s, (T0 + 1000) * SEC), 0); /* no block is in the bucket */
	settle();
	CHECK_INT(shard_swap(s, (T0 + 25) * SEC), 0);
	CHECK_INT(shard_swap(s, (T0 + 36) * SEC), 2);
	CHECK_INT(shard_swap(s, (T0 + 36) * SEC), 0);
	CHECK_INT(remote_blocks(), 2);
	TOWN_CHECK(&t, "two are in the bucket");
	sums(&after);
	CHECK(str_eq(buf_str(&before), buf_str(&after)));
	crash();
	o.local_retention_ns = 0;
	REQUIRE(start());
	CHECK_INT(remote_blocks(), 2);
	CHECK_INT(shard_swap(s, 0), 0); /* no manifest of this start was confirmed yet */
	settle();
	CHECK_INT(shard_swap(s, 0), 1);
	CHECK_INT(remote_blocks(), 3);
	TOWN_CHECK(&t, "all are");
	CHECK_LAYOUT(&t, "1 1 1 head head head");
	sums(&after);
	CHECK(str_eq(buf_str(&before), buf_str(&after)));
	settle();
	TOWN_CHECK(&t, "later");
	buf_release(&before);
	buf_release(&after);
	close_world();
}

/* All threads; what is waited for comes at some time. */
TEST(with_threads)
{
	REQUIRE(open_world());
	o.no_threads = false;
	o.interval_ns = 20 * NS_PER_MS;
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	while (remote_blocks() < 3)
		usleep(1000);
	TOWN_CHECK(&t, "all are in the bucket");
	fill(60, 75);
	stop(); /* the last round has all */
	REQUIRE(wipe());
	REQUIRE(start());
	TOWN_CHECK(&t, "restored");
	CHECK_LAYOUT(&t, "1 1 1 head head head head head");
	close_world();
}
