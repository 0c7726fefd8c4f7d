/* Takeovers: what the owner before may have acknowledged is named; who may acknowledge anything. */
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/tsdb/cluster/two_world.h"
#include "tests/wait.h"

static void check_losses(const char *what, size_t want)
{
	struct loss *v = NULL;
	size_t n = 0, open = 0;
	struct arena a;

	arena_init(&a, 0);
	CHECK_OK(db_losses(shard_db(s), &a, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++) {
		open += !v[i].accepted;
		if (!str_has_prefix(v[i].text,
				STR("the shard goes on with another data directory: data that the one before "
					"took ")))
			CHECK_FAIL("%s: " STR_FMT, what, STR_ARG(v[i].text));
	}
	if (open != want)
		CHECK_FAIL("%s: %zu losses, not %zu", what, open, want);
	arena_release(&a);
}

/* Both directories have data, and the other one's owner is killed. */
static bool other_took_over(void)
{
	if (!start())
		return false;
	fill(0, 10);
	settle();
	stop();
	use(true);
	if (!start())
		return false;
	check_losses("after an end in order", 0);
	fill(10, 20);
	settle();
	fill(20, 30); /* not put */
	crash();
	use(false);
	return true;
}

TEST(a_directory_with_data_names_what_it_lacks)
{
	int64_t before;

	REQUIRE(open_two());
	REQUIRE(other_took_over());
	REQUIRE(look_in_bucket());
	before = in_bucket.through_ns;
	REQUIRE(start());
	check_losses("taken over", 1);
	REQUIRE(look_in_bucket());
	CHECK(in_bucket.loss_due); /* as the claim said; the list has it now */
	CHECK_INT(in_bucket.through_ns, before);
	CHECK_OK(publisher_round(shard_publisher(s), &err), &err);
	REQUIRE(look_in_bucket());
	CHECK(!in_bucket.loss_due);
	CHECK(in_bucket.losses.bytes > 0); /* in the very manifest that says more time is there */
	crash();
	REQUIRE(start());
	check_losses("again", 1);
	close_two();
}

/* A late profile may have made a window before all that the bucket has. */
TEST(late_profiles_are_named_too)
{
	struct loss *v;
	struct arena a;
	size_t n;

	REQUIRE(open_two());
	REQUIRE(start());
	fill(60, 65);
	settle();
	fill(40, 45); /* 20 s before the window are taken */
	crash();
	use(true);
	REQUIRE(start());
	arena_init(&a, 0);
	CHECK_OK(db_losses(shard_db(s), &a, &v, &n, &err), &err);
	REQUIRE(n == 1);
	CHECK_INT(v[0].min_ns, (T0 + 40) * SEC);
	arena_release(&a);
	close_two();
}

TEST(a_crash_before_the_loss_is_noted_forgets_nothing)
{
	struct publisher_options po;
	struct publisher *p;

	REQUIRE(open_two());
	REQUIRE(other_took_over());
	po = (struct publisher_options){ .bucket = bucket,
		.shard = STR("a"), .dir = o.db.dir, .interval_ns = SEC, .lease_ns = o.lease_ns,
			.no_probe = true, .no_threads = true };
	REQUIRE_OK(publisher_open(&po, &p, &err), &err);
	CHECK_OK(publisher_take(p, false, &err), &err);
	publisher_abandon(p);
	REQUIRE(start());
	check_losses("after a crash", 1);
	crash(); /* it is noted, but no manifest says so */
	REQUIRE(start());
	check_losses("after two", 1);
	close_two();
}

/* All but the token was removed. */
TEST(an_empty_directory_is_another_one)
{
	struct buf token = { 0 };
	char path[128];

	REQUIRE(open_two());
	REQUIRE(start());
	fill(0, 10);
	settle();
	fill(10, 20);
	crash();
	snprintf(path, sizeof(path), "%s/" LEASE_OWNER_FILE, t.f.dir);
	CHECK_OK(fs_read_file(path, 256, &token, &err), &err);
	REQUIRE(wipe());
	CHECK_OK(fs_mkdir_all(&fs_posix, t.f.dir, &err), &err);
	CHECK_OK(fs_write_file(&fs_posix, path, buf_str(&token), &err), &err);
	REQUIRE(start());
	check_losses("emptied", 1);
	buf_release(&token);
	close_two();
}

TEST(directories_that_take_turns_in_order_lose_nothing)
{
	REQUIRE(open_two());
	for (int i = 0; i < 4; i++) {
		use(i % 2);
		REQUIRE(start());
		check_losses("in order", 0);
		fill(10 * i, 10 * i + 10);
		settle();
		stop();
	}
	use(false);
	REQUIRE(start());
	check_losses("at last", 0);
	crash();
	REQUIRE(start());
	check_losses("the same directory", 0);
	close_two();
}

/* A shard of numbers says so. */
TEST(numbers_are_not_profiles)
{
	struct loss *v;
	struct arena a;
	size_t n;

	REQUIRE(open_two());
	own.numbers = true;
	use(false);
	REQUIRE(start());
	fill(0, 10);
	crash();
	use(true);
	REQUIRE(start());
	arena_init(&a, 0);
	CHECK_OK(db_losses(shard_db(s), &a, &v, &n, &err), &err);
	REQUIRE(n == 1);
	CHECK_INT(v[0].what, LOSS_NUMBERS);
	arena_release(&a);
	close_two();
}

/* ---- what may be acknowledged ---- */

static _Atomic int64_t slept_ns;

static int64_t running_ns(void)
{
	return clock_monotonic_ns() + slept_ns;
}

static int64_t system_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static const struct clock_source sleeping = { system_ns, running_ns };

static void check_refused(const char *prefix)
{
	struct publisher_status is;

	CHECK_INT(shard_check_lease(s, &err), ERR_UNAVAILABLE);
	if (!str_has_prefix(str_of(err.msg), str_of(prefix)))
		CHECK_FAIL("%s", err.msg);
	publisher_status(shard_publisher(s), &is);
	CHECK(!is.acknowledges);
	CHECK(str_has_prefix(str_of(is.refusal.msg), str_of(prefix)));
}

static void set_away(bool away)
{
	mutex_lock(&fake.lock);
	fake.limited = away;
	fake.left = 0;
	mutex_unlock(&fake.lock);
}

TEST(a_lease_that_is_too_old_acknowledges_nothing)
{
	struct publisher_status is;

	REQUIRE(open_two());
	clock_use(&sleeping);
	own.lease_ns = 90 * SEC;
	use(false);
	REQUIRE(start());
	CHECK_OK(shard_check_lease(s, &err), &err);
	publisher_status(shard_publisher(s), &is);
	CHECK(is.acknowledges && is.refusal.code == ERR_OK);
	slept_ns += 91 * SEC;
	check_refused("shard a has not confirmed its lease for 9"); /* 91 s, and what the test took */
	CHECK(str_find(str_of(err.msg), STR(" s, limit 90 s: another server may have its name")) > 0);
	CHECK_OK(publisher_round(shard_publisher(s), &err), &err);
	CHECK_OK(shard_check_lease(s, &err), &err);
	/* The bucket's error is the reason. */
	set_away(true);
	CHECK(publisher_round(shard_publisher(s), &err) != ERR_OK);
	CHECK_OK(shard_check_lease(s, &err), &err); /* not yet too old */
	slept_ns += 91 * SEC;
	check_refused("shard a has not confirmed its lease for 9"); /* 91 s, and what the test took */
	CHECK(str_find(str_of(err.msg), STR("confirms the lease; ")) > 0);
	set_away(false);
	CHECK_OK(publisher_round(shard_publisher(s), &err), &err);
	CHECK_OK(shard_check_lease(s, &err), &err);
	clock_use(NULL);
	close_two();
}

TEST(what_is_refused_asks_for_a_round)
{
	REQUIRE(open_two());
	clock_use(&sleeping);
	own.lease_ns = 500 * SEC;
	own.interval_ns = 250 * SEC;
	own.no_threads = false;
	use(false);
	REQUIRE(start());
	slept_ns += 501 * SEC;
	while (shard_check_lease(s, &err)) /* for as long as it takes */
		usleep(2000);
	clock_use(NULL);
	close_two();
}

TEST(an_owner_that_was_fenced_acknowledges_nothing)
{
	struct shard_node *first;

	REQUIRE(open_two());
	REQUIRE(start());
	first = s;
	own.lease_ns = 50 * NS_PER_MS;
	use(true);
	REQUIRE(start());
	CHECK_INT(publisher_round(shard_publisher(first), &err), ERR_EXISTS);
	CHECK_INT(shard_check_lease(first, &err), ERR_UNAVAILABLE);
	CHECK_STR(str_of(err.msg), "shard a was taken over by another server: nothing is acknowledged");
	shard_abandon(first);
	close_two();
}

/* It takes scrapes, which nobody is told of; its next start notes the loss before anything is
 * acknowledged. */
TEST(a_start_without_the_bucket_acknowledges_nothing)
{
	REQUIRE(open_two());
	own.lease_ns = 500 * NS_PER_MS;
	use(false);
	REQUIRE(other_took_over());
	set_away(true);
	REQUIRE(start());
	check_refused("shard a has no lease yet, as the bucket was away at its start");
	check_losses("away", 0);
	CHECK(shard_take_late(s, &err) != ERR_OK);
	check_refused("shard a has no lease yet");
	set_away(false);
	CHECK_INT(shard_take_late(s, &err), ERR_EXISTS);
	check_refused("shard a has no lease yet");
	stop();
	REQUIRE(start());
	check_losses("back", 1);
	/* On a busy machine the lease may be old again before it is asked for. */
	CHECK(WAIT_FOR(!publisher_round(shard_publisher(s), &err) && !shard_check_lease(s, &err)));
	close_two();
}
