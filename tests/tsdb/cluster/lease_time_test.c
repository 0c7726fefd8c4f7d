/* Leases: how long they last, and what a new owner must tell of the one before. */
#include "tests/tsdb/cluster/lease_world.h"

/* ---- how long it lasts ---- */

static _Atomic int64_t slept_ns; /* that no monotonic clock counts, as a machine's sleep */

static int64_t running_ns(void)
{
	return clock_monotonic_ns() + slept_ns;
}

/* Its owner knows without a request that another one may have it now. */
TEST(a_lease_is_sure_for_its_time)
{
	static struct clock_source source = { running_ns, running_ns };
	struct lease *one;

	REQUIRE(world_start());
	clock_use(&source);
	REQUIRE((one = open_lease(options("one"))) != NULL);
	CHECK(!lease_is_sure(one));
	CHECK_OK(take(one), &err);
	CHECK(lease_is_sure(one));
	slept_ns += LONG - 100 * NS_PER_S;
	CHECK(lease_is_sure(one));
	slept_ns += 100 * NS_PER_S;
	CHECK(!lease_is_sure(one));
	CHECK(lease_age_ns(one) >= LONG);
	fault(FAULT_STATUS, "PUT /b/" KEY, 50);
	CHECK(write_it(one, false, 1) != ERR_OK);
	CHECK(!lease_is_sure(one));
	fake_forget_faults(&fake);
	CHECK_OK(write_it(one, false, 1), &err);
	CHECK(lease_is_sure(one));
	lease_close(one);
	clock_use(NULL);
	world_stop();
}

TEST(a_fenced_lease_is_not_sure)
{
	struct lease_options o = options("one");
	char etag[64];
	struct lease *one, *two;

	REQUIRE(world_start());
	o.bucket = b;
	REQUIRE((one = open_lease(o)) != NULL);
	CHECK_OK(take(one), &err);
	snprintf(etag, sizeof(etag), "%s", fake_find(&fake, KEY)->etag);
	o.seen = etag;
	REQUIRE((two = open_lease(o)) != NULL);
	CHECK_OK(take(two), &err);
	CHECK(lease_is_sure(one)); /* it does not know */
	CHECK_INT(write_it(one, false, 1), ERR_EXISTS);
	CHECK(!lease_is_sure(one));
	lease_close(one);
	lease_close(two);
	world_stop();
}

/* The longer of the two times: the owner may acknowledge something in its own. */
TEST(who_waits_waits_for_the_longer_lease)
{
	static const struct {
		int64_t theirs_ms, ours_ms, at_least_ms;
	} rows[] = { { 300, 50, 300 }, { 50, 300, 300 }, { 0, 300, 300 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lease_options o;
		struct lease *one, *two;
		int64_t since;

		REQUIRE(world_start());
		o = options("one");
		o.lease_ns = rows[i].theirs_ms * NS_PER_MS;
		REQUIRE((one = open_lease(o)) != NULL);
		if (o.lease_ns)
			CHECK_OK(take(one), &err);
		else
			put_manifest(clock_now_ns());
		REQUIRE(look());
		CHECK_INT(there.lease_ns, o.lease_ns);
		o.host = "two";
		o.lease_ns = rows[i].ours_ms * NS_PER_MS;
		REQUIRE((two = open_lease(o)) != NULL);
		since = clock_monotonic_ns();
		CHECK_OK(take(two), &err);
		CHECK(clock_monotonic_ns() - since >= rows[i].at_least_ms * NS_PER_MS);
		lease_close(one);
		lease_close(two);
		arena_release(&there_arena);
		world_stop();
	}
}

/* ---- what the owner before may have acknowledged ---- */

static bool is_loss_due(struct lease_options o, bool idle)
{
	struct lease *l = open_lease(o);
	struct manifest m = { 0 };
	struct arena a;
	bool same;

	arena_init(&a, 0);
	if (!l || lease_take(l, idle, &a, &m, &same, &err))
		CHECK_FAIL("%s", err.msg);
	CHECK(look());
	CHECK_INT(there.loss_due, m.loss_due);
	lease_close(l);
	arena_release(&a);
	return m.loss_due;
}

/* As a caretaker does. */
static void visit(void)
{
	struct lease_options o = options("caretaker");
	char etag[64];

	snprintf(etag, sizeof(etag), "%s", fake_find(&fake, KEY)->etag);
	o.bucket = b;
	o.seen = etag;
	struct lease *l = open_lease(o);
	struct manifest m;
	struct arena a;
	bool same;

	arena_init(&a, 0);
	CHECK_OK(lease_take(l, true, &a, &m, &same, &err), &err);
	m.stopped = true;
	CHECK_OK(lease_write(l, &m, &err), &err);
	lease_close(l);
	arena_release(&a);
}

static void write_as(struct lease_options o, const struct manifest *m)
{
	struct lease *l = open_lease(o);

	CHECK_OK(take(l), &err);
	CHECK_OK(lease_write(l, m, &err), &err);
	lease_close(l);
}

TEST(a_loss_is_due_where_another_directory_took_profiles)
{
	char dir[] = SCRATCH "epi-lease-XXXXXX", copy[] = SCRATCH "epi-lease-XXXXXX", path[2][64];
	const struct manifest running = { .through_ns = 1 }, stopped = { .stopped = true },
						  complete = { .stopped = true, .complete = true };
	struct lease_options mine, other;
	struct buf token = { 0 };

	REQUIRE(world_start());
	REQUIRE(scratch_dir(dir) && scratch_dir(copy));
	mine = other = options("one");
	mine.lease_ns = other.lease_ns = NS_PER_MS;
	mine.dir = dir;
	CHECK(!is_loss_due(mine, false)); /* nobody was there before */
	CHECK(!is_loss_due(mine, false)); /* the same directory, after a crash */
	write_as(mine, &running);
	CHECK(!is_loss_due(mine, false));
	/* A directory that has the token and is older. */
	snprintf(path[0], sizeof(path[0]), "%s/" LEASE_OWNER_FILE, dir);
	snprintf(path[1], sizeof(path[1]), "%s/" LEASE_OWNER_FILE, copy);
	CHECK_OK(fs_read_file(path[0], 256, &token, &err), &err);
	write_as(mine, &running);
	CHECK_OK(fs_write_file(&fs_posix, path[1], buf_str(&token), &err), &err);
	mine.dir = copy;
	CHECK(is_loss_due(mine, false));
	CHECK(is_loss_due(mine, false)); /* until it is noted, also after a crash */
	write_as(mine, &running);
	CHECK(!is_loss_due(mine, false));
	/* A caretaker took nothing. */
	visit();
	CHECK(!is_loss_due(mine, false));
	visit();
	visit();
	CHECK(!is_loss_due(mine, false));
	visit();
	CHECK(is_loss_due(other, true));
	/* What is due stays due, whoever comes. */
	visit();
	CHECK(is_loss_due(mine, false));
	write_as(mine, &running);
	/* Another directory, with data or without it, where the owner ended in order or not. */
	CHECK(is_loss_due(other, false));
	write_as(other, &stopped);
	CHECK(is_loss_due(other, true));
	write_as(other, &complete);
	CHECK(!is_loss_due(mine, false));
	write_as(mine, &complete);
	CHECK(!is_loss_due(other, true));
	CHECK(!is_loss_due(mine, false)); /* it was idle, and all is in the bucket */
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	CHECK_OK(fs_remove_tree(&fs_posix, copy, &err), &err);
	arena_release(&there_arena);
	buf_release(&token);
	world_stop();
}
