/* Leases: taken, kept, fenced, stopped; two at once; lost answers; clocks; stores that lack
 * conditions. */
#include "base/thread.h"
#include "tests/tsdb/cluster/lease_world.h"
#include "tests/wait.h"

TEST(taken_written_stopped_taken)
{
	struct lease *one, *two;

	REQUIRE(world_start());
	REQUIRE((one = open_lease(options("one"))) != NULL);
	REQUIRE((two = open_lease(options("two"))) != NULL);
	CHECK_INT(lease_age_ns(one), INT64_MAX);
	CHECK_OK(take(one), &err);
	REQUIRE(look());
	CHECK_STR(there.host, "one");
	CHECK_STR(there.shard, "a");
	CHECK_INT(there.generation, 1);
	CHECK(!there.stopped);
	CHECK_OK(write_it(one, false, 77), &err);
	CHECK_INT(lease_generation(one), 2);
	CHECK(lease_age_ns(one) < LONG);
	CHECK_OK(write_it(one, true, 78), &err);
	REQUIRE(look());
	CHECK(there.stopped);
	CHECK_OK(take(two), &err); /* at once */
	REQUIRE(look());
	CHECK_STR(there.host, "two");
	CHECK_INT(there.generation, 4);
	CHECK_INT(there.through_ns, 78); /* the contents stay */
	CHECK(!there.stopped);
	lease_close(one);
	lease_close(two);
	arena_release(&there_arena);
	world_stop();
}

/* Of a shard that joins others each write says the number that it follows, never a lower one. */
TEST(assignment_that_is_followed)
{
	struct lease_options o;
	struct lease *one, *two;

	REQUIRE(world_start());
	o = options("one");
	o.address = "http://a:1";
	REQUIRE((one = open_lease(o)) != NULL);
	lease_set_assignment(one, 3);
	CHECK_OK(take(one), &err);
	REQUIRE(look());
	CHECK_INT(there.assignment, 3);
	CHECK_STR(there.address, "http://a:1");
	lease_set_assignment(one, 2);
	CHECK_OK(write_it(one, false, 1), &err);
	REQUIRE(look());
	CHECK_INT(there.assignment, 3);
	lease_set_assignment(one, 4);
	CHECK_OK(write_it(one, true, 1), &err);
	REQUIRE((two = open_lease(o)) != NULL); /* the name goes on: it has scraped nothing yet */
	CHECK_OK(take(two), &err);
	CHECK_OK(write_it(two, true, 1), &err);
	REQUIRE(look());
	CHECK_INT(there.assignment, 4);
	lease_close(two);
	REQUIRE((two = open_lease(options("two"))) != NULL); /* it joins nobody */
	CHECK_OK(take(two), &err);
	REQUIRE(look());
	CHECK_INT(there.assignment, 0);
	CHECK_INT(there.address.len, 0);
	lease_close(one);
	lease_close(two);
	arena_release(&there_arena);
	world_stop();
}

/* Who takes no profiles says of the bucket what the owner before said. */
TEST(complete_is_carried_over)
{
	static const struct {
		bool before, idle, after;
	} rows[] = { { true, true, true }, { true, false, false }, { false, true, false },
		{ false, false, false } };
	struct lease *one, *two;

	REQUIRE(world_start());
	REQUIRE((one = open_lease(options("one"))) != NULL);
	CHECK_OK(take_as(one, true), &err);
	REQUIRE(look());
	CHECK(there.complete && !there.stopped); /* nobody took anything yet */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct manifest m = { .stopped = true, .complete = rows[i].before };

		CHECK_OK(lease_write(one, &m, &err), &err);
		REQUIRE((two = open_lease(options("two"))) != NULL);
		CHECK_OK(take_as(two, rows[i].idle), &err);
		REQUIRE(look());
		CHECK_INT(there.complete, rows[i].after);
		CHECK(!there.stopped);
		lease_close(one);
		one = two;
	}
	lease_close(one);
	arena_release(&there_arena);
	world_stop();
}

TEST(the_same_directory_at_once)
{
	char dir[] = SCRATCH "epi-lease-XXXXXX";
	struct lease_options o;
	struct lease *one, *two;
	struct manifest m;
	struct arena a;
	bool same;

	REQUIRE(world_start());
	o = options("one");
	REQUIRE(scratch_dir(dir) != NULL);
	o.dir = dir;
	REQUIRE((one = open_lease(o)) != NULL);
	CHECK_OK(take(one), &err);
	lease_close(one);
	REQUIRE((two = open_lease(o)) != NULL);
	arena_init(&a, 0);
	CHECK_OK(lease_take(two, false, &a, &m, &same, &err), &err);
	CHECK(same);
	lease_close(two);
	arena_release(&a);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	world_stop();
}

TEST(a_damaged_token_is_another_one)
{
	char dir[] = SCRATCH "epi-lease-XXXXXX", path[64];
	struct lease_options o;
	struct lease *one;

	REQUIRE(world_start());
	o = options("one");
	REQUIRE(scratch_dir(dir) != NULL);
	snprintf(path, sizeof(path), "%s/" LEASE_OWNER_FILE, dir);
	o.dir = dir;
	o.lease_ns = NS_PER_MS; /* it waits, as others do */
	REQUIRE((one = open_lease(o)) != NULL);
	CHECK_OK(take(one), &err);
	lease_close(one);
	CHECK_OK(fs_write_file(&fs_posix, path, STR("0123\n"), &err), &err);
	REQUIRE((one = open_lease(o)) != NULL);
	CHECK_OK(take(one), &err);
	lease_close(one);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	world_stop();
}

/* ---- an owner that is there ---- */

struct keeper {
	struct lease *l;
	atomic_bool end;
	unsigned failed;
};

static void keep(void *ctx)
{
	struct keeper *k = ctx;
	struct manifest m = { 0 };
	struct err why;

	while (!atomic_load(&k->end)) {
		k->failed += lease_write(k->l, &m, &why) != ERR_OK;
		sleep_ms(5);
	}
}

TEST(an_owner_that_writes_is_left_alone)
{
	struct keeper k = { 0 };
	struct thread thread = { 0 };
	struct lease_options o;
	struct lease *two;

	REQUIRE(world_start());
	o = options("one");
	o.lease_ns = NS_PER_MIN; /* for the keeper to write in on a busy machine */
	REQUIRE((k.l = open_lease(o)) != NULL);
	CHECK_OK(take(k.l), &err);
	o.host = "two";
	REQUIRE((two = open_lease(o)) != NULL);
	REQUIRE_OK(thread_start(&thread, "keeper", keep, &k, &err), &err);
	CHECK_INT(take(two), ERR_EXISTS);
	CHECK(str_has_prefix(str_of(err.msg), STR("shard a is in use by one since 20")));
	CHECK(!lease_is_fenced(two));
	atomic_store(&k.end, true);
	thread_join(&thread);
	CHECK_INT(k.failed, 0);
	lease_close(k.l);
	lease_close(two);
	world_stop();
}

TEST(an_owner_that_is_silent_is_fenced)
{
	struct lease_options o;
	struct lease *one, *two;

	REQUIRE(world_start());
	o = options("one");
	o.lease_ns = 50 * NS_PER_MS;
	REQUIRE((one = open_lease(o)) != NULL);
	CHECK_OK(take(one), &err);
	o.host = "two";
	REQUIRE((two = open_lease(o)) != NULL);
	CHECK_OK(take(two), &err);
	CHECK_INT(write_it(one, false, 5), ERR_EXISTS);
	CHECK(str_has_prefix(str_of(err.msg), STR("shard a was taken over by two at 20")));
	CHECK(lease_is_fenced(one));
	CHECK_OK(write_it(two, true, 6), &err);
	/* for good, without a request */
	unsigned requests = atomic_load(&fake.requests);
	CHECK_INT(write_it(one, false, 5), ERR_EXISTS);
	CHECK_INT(atomic_load(&fake.requests), requests);
	REQUIRE(look());
	CHECK_STR(there.host, "two");
	CHECK_INT(there.through_ns, 6);
	lease_close(one);
	lease_close(two);
	arena_release(&there_arena);
	world_stop();
}

static void cancel(void *ctx)
{
	lease_cancel(ctx);
}

TEST(waiting_is_canceled)
{
	struct thread thread = { 0 };
	struct lease *one, *two;

	REQUIRE(world_start());
	REQUIRE((one = open_lease(options("one"))) != NULL);
	REQUIRE((two = open_lease(options("two"))) != NULL);
	CHECK_OK(take(one), &err);
	REQUIRE_OK(thread_start(&thread, "cancel", cancel, two, &err), &err);
	CHECK_ERR(take(two), &err, ERR_CANCELED, "no longer waiting for the lease of shard a");
	thread_join(&thread);
	lease_close(one);
	lease_close(two);
	world_stop();
}

/* ---- two at once ---- */

struct racer {
	struct lease *l;
	enum err_code rc;
};

static void race(void *ctx)
{
	struct racer *r = ctx;
	struct manifest m;
	struct arena a;
	struct err why;
	bool same;

	arena_init(&a, 0);
	r->rc = lease_take(r->l, false, &a, &m, &same, &why);
	arena_release(&a);
}

TEST(of_many_at_once_one_has_it)
{
	enum { RACERS = 8 };
	struct racer racers[RACERS] = { 0 };
	struct thread threads[RACERS] = { 0 };
	struct lease *first;
	unsigned won;

	REQUIRE(world_start());
	for (unsigned round = 0; round < 10; round++) {
		/* Nothing there; then an owner that ended. */
		for (unsigned i = 0; i < RACERS; i++)
			REQUIRE((racers[i].l = open_lease(options("racer"))) != NULL);
		for (unsigned i = 0; i < RACERS; i++)
			REQUIRE_OK(thread_start(&threads[i], "racer", race, &racers[i], &err), &err);
		/* Who is late waits for the winner, which writes nothing more. */
		for (unsigned i = 0; i < RACERS; i++)
			lease_cancel(racers[i].l);
		first = NULL;
		won = 0;
		for (unsigned i = 0; i < RACERS; i++) {
			thread_join(&threads[i]);
			if (racers[i].rc == ERR_OK) {
				first = racers[i].l;
				won++;
			} else if (racers[i].rc != ERR_EXISTS && racers[i].rc != ERR_CANCELED) {
				CHECK_FAIL("racer %u: %d", i, racers[i].rc);
			}
		}
		CHECK_INT(won, 1);
		if (first)
			CHECK_OK(write_it(first, true, 1), &err);
		for (unsigned i = 0; i < RACERS; i++)
			lease_close(racers[i].l);
	}
	world_stop();
}

/* ---- answers that were lost ---- */

TEST(lost_answers)
{
	static const enum fake_fault_kind kinds[] = { FAULT_RESET, FAULT_RESET_LATER, FAULT_STALL,
		FAULT_CUT };
	struct lease *one;

	REQUIRE(world_fake());
	config.attempts_max = 1; /* no repetition below the lease */
	config.attempt_timeout_ns = 200 * NS_PER_MS;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	REQUIRE((one = open_lease(options("one"))) != NULL);
	/* without a fault an attempt still may be late on a busy machine */
	CHECK(WAIT_FOR(!take(one)));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		fault(kinds[i], "PUT /b/" KEY, 50);
		for (unsigned k = 0; k < 3; k++)
			if (!write_it(one, false, 1)) /* it may have been done: then it is seen so */
				break;
		fake_forget_faults(&fake);
		CHECK(WAIT_FOR(!write_it(one, false, 10 + (int64_t)i)));
		CHECK(!lease_is_fenced(one));
		REQUIRE(WAIT_FOR(look()));
		CHECK_INT(there.through_ns, 10 + (int64_t)i);
		CHECK_INT(there.generation, lease_generation(one));
	}
	lease_close(one);
	arena_release(&there_arena);
	world_stop();
}

/* The first write was done, its answer lost; the lease asks and goes on from there. */
TEST(a_lost_answer_of_the_first_write)
{
	struct lease *one;

	REQUIRE(world_fake());
	config.attempts_max = 1;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	REQUIRE((one = open_lease(options("one"))) != NULL);
	fault(FAULT_RESET_LATER, "PUT /b/" KEY, 50);
	fault(FAULT_STATUS, "HEAD /b/" KEY, 0);
	(void)!take(one);
	fake_forget_faults(&fake);
	CHECK_OK(take(one), &err);
	CHECK_OK(write_it(one, false, 3), &err);
	CHECK(!lease_is_fenced(one));
	lease_close(one);
	world_stop();
}

/* ---- a manifest that others touch ---- */

TEST(removed_and_damaged_manifests_are_written_again)
{
	struct lease *one;

	REQUIRE(world_start());
	REQUIRE((one = open_lease(options("one"))) != NULL);
	CHECK_OK(take(one), &err);
	CHECK_OK(bucket_delete(b, STR("shards/a/manifest"), &err), &err);
	CHECK_OK(write_it(one, false, 4), &err);
	REQUIRE(look());
	CHECK_INT(there.through_ns, 4);
	fake_put(&fake, KEY, STR("{}"));
	CHECK_OK(write_it(one, false, 5), &err);
	REQUIRE(look());
	CHECK_INT(there.through_ns, 5);
	lease_close(one);
	arena_release(&there_arena);
	world_stop();
}

/* Who watched a manifest takes that one at once, and no other. */
TEST(a_manifest_that_was_seen)
{
	struct lease *one, *two, *three;
	struct lease_options o;
	char etag[64];

	REQUIRE(world_start());
	REQUIRE((one = open_lease(options("one"))) != NULL);
	o = options("two");
	o.seen = "\"0\"";
	REQUIRE((two = open_lease(o)) != NULL);
	CHECK_INT(take(two), ERR_NOT_FOUND);
	lease_close(two);
	CHECK_OK(take(one), &err);
	snprintf(etag, sizeof(etag), "%s", fake_find(&fake, KEY)->etag);
	o.seen = etag;
	REQUIRE((two = open_lease(o)) != NULL);
	CHECK_OK(write_it(one, false, 1), &err);
	CHECK_INT(take(two), ERR_EXISTS);
	CHECK(str_has_prefix(str_of(err.msg), STR("shard a is in use by one since ")));
	CHECK_OK(write_it(one, true, 1), &err);
	CHECK_INT(take(two), ERR_EXISTS); /* also of one that has stopped */
	snprintf(etag, sizeof(etag), "%s", fake_find(&fake, KEY)->etag);
	REQUIRE((three = open_lease(o)) != NULL);
	CHECK_OK(take(three), &err);
	CHECK_INT(write_it(one, false, 2), ERR_EXISTS);
	lease_close(one);
	lease_close(two);
	lease_close(three);
	world_stop();
}

TEST(a_manifest_that_cannot_be_read_is_not_taken)
{
	struct lease *one;

	REQUIRE(world_start());
	REQUIRE((one = open_lease(options("one"))) != NULL);
	fake_put(&fake, KEY, STR("{\"version\":1}"));
	CHECK_INT(take(one), ERR_CORRUPT);
	CHECK(str_has_suffix(str_of(err.msg), STR("shards/a/manifest: only 13 bytes")));
	lease_close(one);
	world_stop();
}

/* ---- what the store lacks, and clocks ---- */

TEST(stores_that_fail_the_probe)
{
	struct lease_options o;
	struct lease *one;

	REQUIRE(world_start());
	o = options("one");
	o.no_probe = false;
	REQUIRE((one = open_lease(o)) != NULL);
	fake.ignores_conditions = true;
	CHECK_INT(take(one), ERR_UNSUPPORTED);
	CHECK(str_has_suffix(str_of(err.msg),
		STR("the store ignores If-None-Match on puts: several servers must not share this "
			"bucket")));
	CHECK(fake_find(&fake, KEY) == NULL);
	fake.ignores_conditions = false;
	fake.ahead_s = 20 * 60;
	CHECK_INT(take(one), ERR_UNAVAILABLE);
	CHECK(str_find(str_of(err.msg), STR("clock")) >= 0);
	fake.ahead_s = 0;
	CHECK_OK(take(one), &err);
	lease_close(one);
	world_stop();
}

/* Another owner's clock does not matter: its manifest says times 20 minutes from ours. */
TEST(clocks_of_owners_are_not_compared)
{
	static const int64_t off[] = { -20 * 60 * NS_PER_S, 20 * 60 * NS_PER_S };
	struct lease_options o;
	struct lease *two;

	REQUIRE(world_start());
	o = options("two");
	for (unsigned i = 0; i < 2; i++) {
		put_manifest(clock_now_ns() + off[i]);
		/* a live owner of a clock that is off is not robbed */
		o.lease_ns = LONG;
		REQUIRE((two = open_lease(o)) != NULL);
		struct thread thread = { 0 };
		REQUIRE_OK(thread_start(&thread, "cancel", cancel, two, &err), &err);
		CHECK_INT(take(two), ERR_CANCELED);
		thread_join(&thread);
		lease_close(two);
		/* a dead one is */
		o.lease_ns = 50 * NS_PER_MS;
		REQUIRE((two = open_lease(o)) != NULL);
		CHECK_OK(take(two), &err);
		lease_close(two);
	}
	world_stop();
}

TEST(wrong_options)
{
	struct lease_options o = options("one");
	struct lease *l;

	o.shard = STR("a/b");
	CHECK_INT(lease_open(&o, &l, &err), ERR_INVALID);
	o.shard = STR("a");
	o.interval_ns = 0;
	CHECK_ERR(
		lease_open(&o, &l, &err), &err, ERR_INVALID, "the segment interval must be more than 0");
}
