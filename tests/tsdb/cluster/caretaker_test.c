/* What the caretaker does for shards that are gone, what it leaves alone, and what a shard finds
 * that comes back. */
#include "tsdb/cluster/caretaker.h"

#include "base/clock.h"
#include "tests/check.h"
#include "tests/tsdb/cluster/scene.h"

#define NEVER (1000 * NS_PER_HOUR)

static struct scene s;
static struct caretaker *c;
static struct caretaker_options o;

static void fill(int from_s, int to_s)
{
	town_fill(&s.town, 1, 1, T0 + from_s, T0 + to_s, 5);
}

/* Without delays, but a shard that does not say `stopped` is never given up. */
static bool open_caretaker(void)
{
	o.bucket = s.bucket;
	o.delete_delay_ns = o.delete_delay_ns ? o.delete_delay_ns : 1;
	o.abandoned_ns = o.abandoned_ns ? o.abandoned_ns : NEVER;
	o.poll_ns = o.poll_ns ? o.poll_ns : 1;
	o.lease_ns = o.lease_ns ? o.lease_ns : NEVER;
	o.no_probe = o.no_thread = true;
	return caretaker_open(&o, &c, &s.err) == ERR_OK;
}

static void close_caretaker(void)
{
	caretaker_close(c);
	c = NULL;
	o = (struct caretaker_options){ 0 };
}

static void rounds(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		CHECK_OK(caretaker_round(c, &s.err), &s.err);
}

/* A shard b that runs and has rows until then. */
static void other_shard(int newest_s)
{
	struct manifest_block b = {
		.min_ns = (T0 + newest_s - 10) * SEC, .max_ns = (T0 + newest_s) * SEC, .level = 1
	};
	struct manifest m = {
		.shard = STR("b"),
			.owner = STR("0123456789abcdef0123456789abcdef"),
				.session = STR("0123456789abcdef0123456789abcdef"),
					.host = STR("b"), .interval_ns = NS_PER_S, .blocks = &b, .blocks_n = 1 };
	struct buf text = { 0 };

	REQUIRE(ulid_parse(STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"), &b.ulid));
	b.rollups = b.spare = b.meta = (struct manifest_file){ 1, 1 };
	manifest_print(&text, &m);
	fake_put(&s.fake, "p/q/shards/b/manifest", buf_str(&text));
	buf_release(&text);
}

static void remove_other(void)
{
	struct fake_object *there = fake_find(&s.fake, "p/q/shards/b/manifest");

	if (there)
		there->used = false;
	there = fake_find(&s.fake, "p/q/" CARETAKER_KEY);
	if (there)
		there->used = false;
}

static size_t objects(void)
{
	size_t n = 0;

	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		n += s.fake.objects[i].used;
	return n;
}

/* Three blocks and three windows, in the bucket; the shard has stopped. */
static bool stopped_shard(void)
{
	if (!scene_open(&s))
		return false;
	s.o.delete_delay_ns = 1;
	fill(0, 60);
	town_compact(&s.town);
	if (!scene_start(&s))
		return false;
	scene_settle(&s);
	scene_stop(&s);
	return true;
}

#define ALL "block 1; block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2"

/* ---- what runs ---- */

TEST(a_shard_that_runs_is_left_alone)
{
	char etag[64];

	REQUIRE(scene_open(&s));
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	other_shard(100000);
	fake_put(&s.fake, "p/q/shards/a/files/x", STR("x")); /* on its way, for all we know */
	snprintf(etag, sizeof(etag), "%s", fake_find(&s.fake, "p/q/shards/a/manifest")->etag);
	o.retention_ns = NS_PER_S;
	o.retention_bytes = 1;
	REQUIRE(open_caretaker());
	rounds(4);
	CHECK_STR(str_of(fake_find(&s.fake, "p/q/shards/a/manifest")->etag), etag);
	CHECK(fake_find(&s.fake, "p/q/shards/a/files/x") != NULL);
	CHECK_SCENE(&s, ALL);
	CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	close_caretaker();
	SCENE_END(&s);
}

/* Not `stopped`, but silent for long: it was killed. */
TEST(an_abandoned_shard_is_gone)
{
	REQUIRE(scene_open(&s));
	s.o.delete_delay_ns = 1;
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	scene_crash(&s);
	s.o.lease_ns = 20 * NS_PER_MS; /* its manifest says so; it does nothing that takes time */
	REQUIRE(scene_start(&s));
	scene_crash(&s);
	s.o.lease_ns = 1000 * SEC;
	other_shard(1000);
	o.retention_ns = 975 * SEC;
	o.abandoned_ns = 1;
	o.delete_delay_ns = NEVER;
	REQUIRE(open_caretaker());
	rounds(3); /* looks that are too far apart prove nothing, and a slow one is no silence */
	CHECK_SCENE(&s, ALL);
	close_caretaker();
	o.retention_ns = 975 * SEC;
	o.abandoned_ns = 50 * NS_PER_MS;
	o.delete_delay_ns = o.poll_ns = NEVER;
	REQUIRE(open_caretaker());
	rounds(1);
	sleep_ms(60);
	rounds(1);
	CHECK_SCENE(&s, "block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	REQUIRE(scene_look(&s));
	CHECK(s.m.stopped);
	CHECK(!s.m.complete); /* what the directory had not put, nobody but it knows */
	/* The directory finds its manifest free, and goes on. */
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	close_caretaker();
	SCENE_END(&s);
}

/* ---- retention ---- */

TEST(age_and_what_a_shard_finds_that_comes_back)
{
	struct caretaker_status status;
	size_t before;

	REQUIRE(stopped_shard());
	before = objects();
	other_shard(1000);
	o.retention_ns = 965 * SEC; /* until 35: blocks; the window 30 ends at 40 */
	REQUIRE(open_caretaker());
	rounds(1);
	CHECK_SCENE(&s, "30: 1-2; 40: 1-2; 50: 1-2");
	REQUIRE(scene_look(&s));
	CHECK(s.m.stopped && s.m.complete);
	CHECK_INT(s.m.dropped_ns, (T0 + 35) * SEC);
	CHECK_INT(s.m.gone_n, 12);
	CHECK_INT(objects(), before + 2); /* nothing is removed yet */
	rounds(2);
	REQUIRE(scene_look(&s));
	CHECK_INT(s.m.gone_n, 0);
	CHECK_INT(objects(), before + 2 - 12);
	caretaker_status(c, &status);
	CHECK_INT(status.state, CARETAKER_RUNNING);
	CHECK_INT(status.shards, 2);
	CHECK_INT(status.shards_gone, 1);
	CHECK_INT(status.dropped_blocks, 3);
	CHECK_INT(status.dropped_windows, 0);
	CHECK_INT(status.removed, 12);
	close_caretaker();
	/* It comes back, and has the old blocks still: nothing is a loss, nothing is put again. */
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_SCENE(&s, "30: 1-2; 40: 1-2; 50: 1-2");
	TOWN_CHECK(&s.town, "came back");
	fill(60, 90);
	town_compact(&s.town);
	scene_settle(&s);
	/* The oldest were joined with one that is not too old: that is another block. */
	CHECK_SCENE(&s, "block 2; block 1; block 1; 60: 1-2; 70: 1-2; 80: 1-2");
	remove_other();
	scene_check_objects(&s, "came back", true);
	db_set_retention(s.town.f.db, 50 * SEC, 0, 0);
	town_compact(&s.town);
	town_forget_until(&s.town, T0 + 40);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; block 1; 60: 1-2; 70: 1-2; 80: 1-2");
	scene_check_objects(&s, "in the end", true);
	scene_check_rows(&s, "in the end");
	SCENE_END(&s);
}

/* Windows are dropped too; the shard cuts them when it comes back, and does not put those blocks.
 */
TEST(windows_that_were_dropped_do_not_come_back)
{
	struct publisher_status status;

	REQUIRE(stopped_shard());
	other_shard(1000);
	o.retention_ns = 945 * SEC; /* until 55 */
	REQUIRE(open_caretaker());
	rounds(3);
	CHECK_SCENE(&s, "50: 1-2");
	close_caretaker();
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_SCENE(&s, "50: 1-2");
	REQUIRE(scene_look(&s));
	CHECK(s.m.through_ns > 0);
	fill(60, 90);
	town_compact(&s.town);
	CHECK_LAYOUT(&s.town, "2 1 1 head head head");
	scene_settle(&s);
	CHECK_SCENE(&s, "block 1; 60: 1-2; 70: 1-2; 80: 1-2");
	publisher_status(s.p, &status);
	CHECK_INT(status.waiting_blocks, 0);
	CHECK_INT(status.waiting_bytes, 0);
	CHECK_INT(status.failures, 0);
	remove_other();
	scene_check_objects(&s, "windows", true);
	SCENE_END(&s);
}

TEST(size_takes_the_oldest)
{
	uint64_t all = 0;

	REQUIRE(stopped_shard());
	REQUIRE(scene_look(&s));
	all = manifest_bytes(&s.m) - s.m.ids.bytes - s.m.losses.bytes;
	o.retention_bytes = all - 1;
	REQUIRE(open_caretaker());
	rounds(4);
	CHECK_SCENE(&s, "block 1; block 1; 30: 1-2; 40: 1-2; 50: 1-2");
	REQUIRE(scene_look(&s));
	CHECK_INT(s.m.dropped_ns, 0); /* the shard may put it again: its own retention counts then */
	close_caretaker();
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_SCENE(&s, ALL);
	remove_other();
	scene_check_objects(&s, "size", true);
	scene_check_rows(&s, "size");
	SCENE_END(&s);
}

/* Where no shard runs nothing grows old. */
TEST(no_clock_makes_data_old)
{
	REQUIRE(stopped_shard());
	o.retention_ns = 60 * SEC; /* all of it is of 1970 */
	REQUIRE(open_caretaker());
	rounds(3);
	CHECK_SCENE(&s, ALL);
	close_caretaker();
	SCENE_END(&s);
}

/* ---- the end of a shard ---- */

TEST(a_shard_that_has_nothing_left_is_removed)
{
	struct caretaker_status status;

	REQUIRE(stopped_shard());
	fake_put(&s.fake, "p/q/shards/a/blocks/01ARZ3NDEKTSV4RRFFQ69G5FAV/rows.ldb", STR("x"));
	fake_put(&s.fake, "p/q/shards/ab/files/x", STR("x")); /* without a manifest: nobody knows */
	fake_put(&s.fake, "p/q/senders/a", STR("x"));
	fake_put(&s.fake, "p/q/senders/b", STR("x"));
	fake_put(&s.fake, "p/q/evaluated/a", STR("x"));
	fake_put(&s.fake, "p/q/evaluated/b", STR("x"));
	fake_put(&s.fake, "p/q/targets/a", STR("x"));
	other_shard(1000);
	o.retention_ns = SEC;
	REQUIRE(open_caretaker());
	rounds(6);
	CHECK(fake_find(&s.fake, "p/q/shards/a/manifest") == NULL);
	CHECK(fake_find(&s.fake, "p/q/senders/a") == NULL);
	CHECK(fake_find(&s.fake, "p/q/evaluated/a") == NULL);
	CHECK(fake_find(&s.fake, "p/q/targets/a") == NULL);
	CHECK_INT(objects(), 5); /* b's manifest, senders, rules; ab's object; our lease */
	caretaker_status(c, &status);
	CHECK_INT(status.removed_shards, 1);
	CHECK_INT(status.orphans, 1);
	CHECK_INT(status.shards, 2);
	close_caretaker();
	REQUIRE(fake_find(&s.fake, "p/q/shards/ab/files/x") != NULL);
	fake_find(&s.fake, "p/q/shards/ab/files/x")->used = false;
	REQUIRE(fake_find(&s.fake, "p/q/senders/b") != NULL);
	REQUIRE(fake_find(&s.fake, "p/q/evaluated/b") != NULL);
	fake_find(&s.fake, "p/q/evaluated/b")->used = false;
	fake_find(&s.fake, "p/q/senders/b")->used = false;
	/* It is as new. */
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_SCENE(&s, ALL);
	remove_other();
	scene_check_objects(&s, "as new", true);
	scene_check_rows(&s, "as new");
	SCENE_END(&s);
}

TEST(objects_stay_for_the_delay)
{
	size_t before;

	REQUIRE(stopped_shard());
	before = objects();
	other_shard(1000);
	o.retention_ns = SEC;
	o.delete_delay_ns = NEVER;
	REQUIRE(open_caretaker());
	rounds(5);
	REQUIRE(scene_look(&s));
	CHECK_INT(s.m.windows_n + s.m.blocks_n, 0);
	CHECK(s.m.gone_n > 0);
	CHECK_INT(objects(), before + 2);
	close_caretaker();
	SCENE_END(&s);
}

/* ---- several ---- */

TEST(one_caretaker_at_a_time)
{
	struct caretaker *first, *second;
	struct caretaker_status status;

	REQUIRE(stopped_shard());
	o.lease_ns = 50 * NS_PER_MS;
	REQUIRE(open_caretaker());
	first = c;
	rounds(1);
	/* The first one is silent for the lease's time: it is fenced, and waits as others do. */
	REQUIRE(open_caretaker());
	second = c;
	rounds(1);
	CHECK_INT(caretaker_round(first, &s.err), ERR_EXISTS);
	CHECK(str_has_prefix(str_of(s.err.msg), STR("lease caretaker was taken over by ")));
	caretaker_status(first, &status);
	CHECK_STR(str_of(caretaker_state_name(status.state)), "waiting");
	rounds(1);
	caretaker_close(second);
	CHECK_OK(caretaker_round(first, &s.err), &s.err); /* at once: it was given back */
	c = first;
	close_caretaker();
	SCENE_END(&s);
}

/* ---- faults ---- */

/* A store whose clock is 20 minutes away refuses both, and nothing is dropped meanwhile. */
TEST(clocks_that_are_off)
{
	static const int64_t ahead_s[] = { 20 * 60, -20 * 60 };
	struct caretaker_status status;

	REQUIRE(stopped_shard());
	other_shard(1000);
	o.retention_ns = 965 * SEC;
	REQUIRE(open_caretaker());
	REQUIRE(scene_start(&s));
	for (unsigned i = 0; i < 2; i++) {
		s.fake.ahead_s = ahead_s[i];
		CHECK_INT(caretaker_round(c, &s.err), ERR_UNAVAILABLE);
		CHECK(str_find(str_of(s.err.msg), STR("the clocks differ too much")) >= 0);
		caretaker_status(c, &status);
		CHECK_STR(str_of(caretaker_state_name(status.state)), "away");
		CHECK_INT(publisher_round(s.p, &s.err), ERR_UNAVAILABLE);
		CHECK(str_find(str_of(s.err.msg), STR("the clocks differ too much")) >= 0);
		s.fake.ahead_s = 0;
		CHECK_SCENE(&s, ALL);
	}
	rounds(2);
	CHECK_SCENE(&s, ALL); /* it runs */
	scene_settle(&s);
	scene_check_rows(&s, "clocks");
	scene_stop(&s);
	rounds(1);
	CHECK_SCENE(&s, "30: 1-2; 40: 1-2; 50: 1-2");
	close_caretaker();
	SCENE_END(&s);
}

TEST(a_manifest_that_cannot_be_read_is_named)
{
	struct caretaker_status status;
	struct fake_object *there;

	REQUIRE(stopped_shard());
	other_shard(1000);
	fake_put(&s.fake, "p/q/shards/A/manifest", STR("{}")); /* the first one */
	o.retention_ns = 965 * SEC;
	REQUIRE(open_caretaker());
	CHECK_INT(caretaker_round(c, &s.err), ERR_CORRUPT);
	CHECK(str_find(str_of(s.err.msg), STR("shards/A/manifest: only 2 bytes")) >= 0);
	caretaker_status(c, &status);
	CHECK_INT(status.shards_unreadable, 1);
	CHECK_SCENE(&s, "30: 1-2; 40: 1-2; 50: 1-2"); /* others are cared for */
	REQUIRE((there = fake_find(&s.fake, "p/q/shards/A/manifest")) != NULL);
	there->used = false;
	close_caretaker();
	SCENE_END(&s);
}

static bool run_with(unsigned left, bool last_is_done)
{
	bool over;

	mutex_lock(&s.fake.lock);
	s.fake.limited = true;
	s.fake.left = left;
	s.fake.last_is_done = last_is_done;
	mutex_unlock(&s.fake.lock);
	for (unsigned i = 0; i < 4; i++)
		(void)!caretaker_round(c, &s.err);
	mutex_lock(&s.fake.lock);
	over = s.fake.left == 0;
	s.fake.limited = false;
	mutex_unlock(&s.fake.lock);
	return over;
}

/* The store is gone after each request, done or not, and the caretaker is killed: at each point all
 * that the manifest names is there, and the next one ends the work. */
TEST(a_caretaker_that_dies_anywhere)
{
	/* Neither even nor a multiple of 3: all that depends on the request comes in turn. */
	const unsigned step = check_is_short() ? 5 : 1;
	bool over = true;

	for (unsigned left = 1; over && left < 200; left += step) {
		REQUIRE(stopped_shard());
		other_shard(1000);
		o.retention_ns = 965 * SEC;
		o.lease_ns = 1;
		REQUIRE(open_caretaker());
		over = run_with(left, left & 1);
		scene_check_objects(&s, "died", false);
		close_caretaker();
		if (left % 3 == 0) { /* another one: a claim without an end is given up, as any */
			fake_find(&s.fake, "p/q/shards/b/manifest")->used = false;
			o.lease_ns = o.abandoned_ns = 1;
			REQUIRE(open_caretaker());
			rounds(4);
			scene_check_objects(&s, "another one", false);
			close_caretaker();
		}
		REQUIRE(fixture_reopen(&s.town.f));
		s.o.lease_ns = NS_PER_MS;
		REQUIRE(scene_start(&s));
		scene_settle(&s);
		scene_check_objects(&s, "came back", false);
		REQUIRE(scene_look(&s));
		CHECK(s.m.windows_n == 3 && (s.m.blocks_n == 3 || s.m.blocks_n == 0));
		TOWN_CHECK(&s.town, "came back");
		SCENE_END(&s);
	}
	CHECK(!over);
}

TEST(the_thread_works_and_ends)
{
	struct caretaker_options with = {
		.bucket = NULL, .poll_ns = NS_PER_MS, .retention_ns = 965 * SEC
	};
	struct caretaker_status status = { 0 };

	REQUIRE(stopped_shard());
	other_shard(1000);
	with.bucket = s.bucket;
	with.delete_delay_ns = 1;
	with.no_probe = true;
	REQUIRE_OK(caretaker_open(&with, &c, &s.err), &s.err);
	while (status.removed < 12) { /* for as long as it takes */
		sleep_ms(2);
		caretaker_status(c, &status);
	}
	caretaker_close(c);
	c = NULL;
	CHECK_SCENE(&s, "30: 1-2; 40: 1-2; 50: 1-2");
	SCENE_END(&s);
}
