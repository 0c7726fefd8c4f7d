/* Starts on an empty directory that are cut, by requests and by the power: what is a loss then, and
 * what is none. */
#include "tests/tsdb/cluster/shard_world.h"
#include "tsdb/cluster/restore.h"

#define MANIFEST "shards/a/manifest"

static void limit(bool limited, unsigned left, bool last_is_done)
{
	mutex_lock(&fake.lock);
	fake.limited = limited;
	fake.left = left;
	fake.last_is_done = last_is_done;
	mutex_unlock(&fake.lock);
}

struct cut {
	bool wipe; /* the directory is lost once more, unless it may have taken profiles */
	bool limited; /* as cut_start found it: so many requests were not enough */
	bool whole; /* it may have taken profiles */
};

/* The marker is there: the directory took nothing, and has to wait for the bucket. */
static void check_waits(const char *what)
{
	limit(true, 0, false);
	if (start())
		CHECK_FAIL("%s: it started without the bucket", what);
	crash();
	limit(false, 0, false);
}

/* An empty directory starts and is cut. The manifest says if it can have taken profiles. */
static bool cut_start(struct cut *c, unsigned left, bool last_is_done, const char *what)
{
	bool started, complete;

	if (!wipe())
		return false;
	limit(true, left, last_is_done);
	started = start();
	crash();
	mutex_lock(&fake.lock);
	c->limited = fake.left == 0;
	mutex_unlock(&fake.lock);
	limit(false, 0, false);
	complete = !look_in_bucket() || in_bucket.complete;
	c->whole = !restore_is_idle(t.f.dir);
	if (complete && (started || c->whole))
		CHECK_FAIL("%s: the manifest is complete, and profiles are taken", what);
	if (restore_has_marker(t.f.dir))
		check_waits(what);
	return !c->wipe || !complete || wipe();
}

/* No loss, whatever was there when it was cut. */
static void cut_restore(struct cut *c, unsigned left, bool last_is_done)
{
	char what[64];

	snprintf(what, sizeof(what), "after %u requests, %s", left, last_is_done ? "done" : "not done");
	if (cut_start(c, left, last_is_done, what) && start()) {
		TOWN_CHECK(&t, what);
		if (losses_open_n(t.f.db->losses))
			CHECK_FAIL("%s: a loss without a cause", what);
	} else {
		CHECK_FAIL("%s: %s", what, err.msg);
	}
	if (left % 2 && s)
		settle();
	stop();
}

/* Each request until the directory is whole, in short too; then with a step. */
static unsigned cut_next(const struct cut *c)
{
	return c->whole ? CHECK_STEP : 1;
}

TEST(a_restore_that_is_cut_begins_again)
{
	struct cut c = { .limited = true };
	unsigned n;

	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 40);
	town_compact(&t);
	settle();
	town_delete(&t, "job0", "i0", T0 + 8, T0 + 36);
	settle();
	fill(40, 55);
	stop();
	for (n = 0; c.limited; n += cut_next(&c))
		cut_restore(&c, n, false);
	CHECK(n > 10);
	c = (struct cut){ .limited = true };
	for (n = 1; c.limited; n += cut_next(&c))
		cut_restore(&c, n, true);
	c = (struct cut){ .limited = true, .wipe = true };
	for (n = 1; c.limited && !c.whole; n++)
		cut_restore(&c, n, true);
	CHECK(n > 10);
	close_world();
}

TEST(a_first_start_that_is_cut_is_no_loss)
{
	for (unsigned i = 0; i < 4; i++) { /* the last request is done or not; wiped or not */
		struct cut c = { .limited = true, .wipe = i % 2 };
		unsigned n;

		REQUIRE(open_world());
		for (n = 1; c.limited && !c.whole; n++) {
			cut_restore(&c, n, i / 2);
			CHECK_OK(bucket_delete(bucket, STR(MANIFEST), &err), &err);
		}
		CHECK(n > 3);
		close_world();
	}
}

/* As the caretaker does: takes the lease of the very manifest that is there, and gives it back. */
static void visit(void)
{
	struct lease_options lo = { .bucket = bucket,
		.shard = STR("a"), .interval_ns = SEC, .no_probe = true };
	char etag[64];
	struct lease *l;
	struct manifest m;
	struct arena a;
	bool same;

	snprintf(etag, sizeof(etag), "%s", fake_find(&fake, "p/q/" MANIFEST)->etag);
	lo.seen = etag;
	arena_init(&a, 0);
	REQUIRE_OK(lease_open(&lo, &l, &err), &err);
	CHECK_OK(lease_take(l, true, &a, &m, &same, &err), &err);
	m.stopped = true;
	CHECK_OK(lease_write(l, &m, &err), &err);
	lease_close(l);
	arena_release(&a);
}

TEST(a_visit_neither_hides_a_loss_nor_makes_one)
{
	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 20);
	settle();
	fill(20, 30); /* not put */
	crash();
	forget_from(20);
	visit();
	REQUIRE(wipe());
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "lost");
	stop();
	visit();
	REQUIRE(wipe());
	REQUIRE(start());
	CHECK_INT(losses_open_n(t.f.db->losses), 0);
	TOWN_CHECK(&t, "ended");
	close_world();
}

/* It took profiles, but none of its rounds was confirmed. */
TEST(a_restored_directory_that_is_lost_again_is_a_loss)
{
	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 20);
	stop();
	REQUIRE(wipe());
	REQUIRE(start());
	fill(20, 30);
	crash();
	forget_from(20);
	REQUIRE(wipe());
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "lost");
	close_world();
}

/* False: the restore was done before. */
static bool cut_power(uint64_t nth)
{
	struct restore_options ro = { .bucket = bucket, .manifest = &in_bucket, .shard = "a" };
	struct restore_done done;
	struct disk *disk;
	char what[64];
	bool more, failed;

	snprintf(what, sizeof(what), "power cut at %d", (int)nth);
	if (!wipe() || !look_in_bucket() || fs_mkdir_all(&fs_posix, t.f.dir, &err))
		return false;
	disk = disk_open(t.f.dir);
	ro.dir = t.f.dir;
	ro.fs = disk_fs(disk);
	ro.store = disk_store(disk);
	disk_power_cut_at(disk, nth);
	failed = restore_run(&ro, &done, &err) || restore_end(ro.fs, ro.dir, &err);
	more = disk_is_cut(disk);
	CHECK_INT(failed, more);
	disk_power_cut(disk);
	disk_restore(disk, nth);
	disk_close(disk);
	CHECK(more || !restore_is_idle(t.f.dir)); /* all is durable at its end */
	if (start())
		TOWN_CHECK(&t, what);
	else
		CHECK_FAIL("%s: %s", what, err.msg);
	stop();
	return more;
}

TEST(power_cuts)
{
	uint64_t n = 1;

	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 40);
	town_compact(&t);
	settle();
	town_delete(&t, "job0", "i0", T0 + 8, T0 + 36);
	settle();
	stop();
	while (cut_power(n))
		n += CHECK_STEP;
	CHECK(n > 50);
	close_world();
}

/* A window waits for a snapshot, which takes longer than the last round may. */
TEST(an_end_before_all_is_put_is_a_loss)
{
	REQUIRE(open_world());
	o.db.segments_bytes = 1; /* every batch is too much */
	REQUIRE(start());
	fill(0, 20);
	CHECK_OK(publisher_round(shard_publisher(s), &err), &err);
	stop();
	REQUIRE(look_in_bucket());
	CHECK(in_bucket.stopped && !in_bucket.complete);
	REQUIRE(wipe());
	forget_from(0);
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "lost");
	fill(20, 30);
	settle(); /* the snapshot is put */
	stop();
	REQUIRE(look_in_bucket());
	CHECK(in_bucket.stopped && in_bucket.complete);
	close_world();
}
