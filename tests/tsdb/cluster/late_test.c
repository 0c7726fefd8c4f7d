/* What a follower has may be older than what its shard acknowledged: then it says so. */
#include "tests/tsdb/cluster/shard_world.h"

#include <unistd.h>

#include "base/clock.h"
#include "tsdb/cluster/follower.h"

#define MANIFEST "p/q/shards/a/manifest"

static struct follower *f;
static char follower_dir[96];

static bool open_all(int64_t interval_ns)
{
	struct follower_options fo = { .shard = "a", .dir = follower_dir };

	if (!open_world())
		return false;
	o.interval_ns = interval_ns;
	snprintf(follower_dir, sizeof(follower_dir), "%s.follower", t.f.dir);
	fo.bucket = bucket;
	fo.remote = remote_source(remote);
	db_options_default(&fo.db);
	return start() && follower_open(&fo, &f, &err) == ERR_OK;
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

static void note(void *to, const char *text)
{
	struct buf *said = to;

	buf_printf(said, "%s\n", text);
}

/* What is said of an answer without an end. */
static struct str told(struct buf *said)
{
	buf_clear(said);
	follower_tell(f, 0, INT64_MAX, note, said);
	return buf_str(said);
}

/* The follower has what the shard has. */
static bool has_all(void)
{
	struct buf here = { 0 }, there = { 0 };
	size_t warnings;
	bool same;

	sums(&there);
	same = sum_text(follower_db(f), NULL, 0, INT64_MAX - 1, &here, &warnings, &err) &&
		str_eq(buf_str(&here), buf_str(&there));
	buf_release(&here);
	buf_release(&there);
	return same;
}

/* The manifest as another clock, or a slower publisher, would have written it. */
static void change_manifest(int64_t written_ns, int64_t through_ns)
{
	struct fake_object *object = fake_find(&fake, MANIFEST);
	struct buf text = { 0 };
	struct manifest m;
	struct arena a;

	arena_init(&a, 0);
	CHECK_OK(manifest_parse(buf_str(&object->bytes), &a, &m, &err), &err);
	m.written_ns = written_ns;
	m.through_ns = through_ns;
	m.generation++;
	m.clock_ns = m.confirmed_ns = 0;
	manifest_print(&text, &m);
	fake_put(&fake, MANIFEST, buf_str(&text));
	buf_release(&text);
	arena_release(&a);
}

/* The manifest can be read, and what it names cannot. */
TEST(segments_that_cannot_be_read_are_no_news)
{
	struct follower_status was, is;
	struct buf said = { 0 };

	REQUIRE(open_all(1000 * SEC));
	fill(0, 10);
	publish();
	CHECK_OK(follower_round(f, &err), &err);
	CHECK_STR(told(&said), "");
	follower_status(f, &was);
	CHECK(has_all());
	fill(10, 20);
	publish();
	fake_fault(&fake,
		(struct fake_fault){ FAULT_STATUS, "GET /b/p/q/shards/a/head/", 100, 503, "SlowDown" });
	CHECK_INT(follower_round(f, &err), ERR_UNAVAILABLE);
	CHECK(!has_all());
	CHECK(
		str_has_prefix(told(&said), STR("shard a was not read whole, profiles may be missing: ")));
	follower_status(f, &is);
	CHECK(is.late);
	CHECK_INT(is.through_ns, was.through_ns);
	fake_forget_faults(&fake);
	CHECK_OK(follower_round(f, &err), &err);
	CHECK_STR(told(&said), "");
	CHECK(has_all());
	follower_status(f, &is);
	CHECK(is.through_ns > was.through_ns);
	buf_release(&said);
	close_all();
}

/* So it is where the shard stopped before, and began again. */
TEST(a_shard_that_stopped_and_began_again)
{
	struct buf said = { 0 };

	REQUIRE(open_all(1000 * SEC));
	fill(0, 10);
	publish();
	stop();
	CHECK_OK(follower_round(f, &err), &err);
	CHECK_STR(told(&said), "");
	REQUIRE(start());
	fill(10, 20);
	publish();
	fake_fault(&fake,
		(struct fake_fault){ FAULT_STATUS, "GET /b/p/q/shards/a/head/", 100, 503, "SlowDown" });
	CHECK_INT(follower_round(f, &err), ERR_UNAVAILABLE);
	CHECK(
		str_has_prefix(told(&said), STR("shard a was not read whole, profiles may be missing: ")));
	fake_forget_faults(&fake);
	CHECK_OK(follower_round(f, &err), &err);
	CHECK_STR(told(&said), "");
	buf_release(&said);
	close_all();
}

/* Nobody has seen how long the first manifest has been there; it says when it was written. */
TEST(the_first_manifest_is_old)
{
	int64_t now = clock_now_ns();
	struct buf said = { 0 };

	REQUIRE(open_all(1000 * SEC));
	fill(0, 10);
	publish();
	change_manifest(now - 3000 * SEC, now - 3000 * SEC);
	CHECK_OK(follower_round(f, &err), &err);
	CHECK(str_has_prefix(told(&said), STR("shard a is late: ")));
	/* Clocks that do not agree: a manifest that was seen to come is new. */
	change_manifest(now - 2900 * SEC, now - 2900 * SEC);
	CHECK_OK(follower_round(f, &err), &err);
	CHECK_STR(told(&said), "");
	buf_release(&said);
	close_all();
}

/* It came at some time since the look before. */
TEST(a_manifest_is_as_old_as_the_look_before_it)
{
	int64_t now = clock_now_ns();
	struct buf said = { 0 };

	REQUIRE(open_all(1000 * SEC));
	fill(0, 10);
	publish();
	CHECK_OK(follower_round(f, &err), &err);
	CHECK_STR(told(&said), "");
	usleep(1100000);
	change_manifest(now, now - 2000 * SEC);
	CHECK_OK(follower_round(f, &err), &err);
	CHECK(str_has_prefix(told(&said), STR("shard a is late: ")));
	change_manifest(now, now - 1000 * SEC);
	CHECK_OK(follower_round(f, &err), &err);
	CHECK_STR(told(&said), "");
	buf_release(&said);
	close_all();
}

/* A clock that stands elsewhere: writes the manifest, and says when and when it knew of the last.
 */
static void write_manifest(int64_t clock_ns, int64_t confirmed_ns)
{
	struct fake_object *object = fake_find(&fake, MANIFEST);
	struct buf text = { 0 };
	struct manifest m;
	struct arena a;

	arena_init(&a, 0);
	CHECK_OK(manifest_parse(buf_str(&object->bytes), &a, &m, &err), &err);
	m.through_ns = m.written_ns = clock_now_ns();
	m.generation++;
	m.clock_ns = clock_ns;
	m.confirmed_ns = confirmed_ns;
	manifest_print(&text, &m);
	fake_put(&fake, MANIFEST, buf_str(&text));
	buf_release(&text);
	arena_release(&a);
}

/* It is as old as when it was written, not as when it was there. */
TEST(a_manifest_that_was_long_on_its_way)
{
	const int64_t ahead = 7000000 * SEC; /* their clock */
	struct follower_status is = { .late = true };
	struct buf said = { 0 };
	int64_t written;

	REQUIRE(open_all(2 * SEC));
	fill(0, 10);
	publish();
	CHECK_OK(follower_round(f, &err), &err);
	write_manifest(clock_monotonic_ns() + ahead, 0);
	CHECK_OK(follower_round(f, &err), &err);
	written = clock_monotonic_ns() + ahead;
	usleep(5200000);
	CHECK_OK(follower_round(f, &err), &err); /* it is not there yet */
	write_manifest(written, written);
	CHECK_OK(follower_round(f, &err), &err);
	CHECK(str_has_prefix(told(&said), STR("shard a is late: ")));
	for (int i = 0; i < 20 && is.late; i++) {
		write_manifest(clock_monotonic_ns() + ahead, clock_monotonic_ns() + ahead);
		CHECK_OK(follower_round(f, &err), &err);
		follower_status(f, &is);
	}
	CHECK(!is.late);
	buf_release(&said);
	close_all();
}
