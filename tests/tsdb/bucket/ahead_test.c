/* Objects that are read ahead: their order, errors in their turn, what is wanted changes. */
#include "tests/tsdb/bucket/world.h"
#include "tests/wait.h"
#include "tsdb/bucket/ahead.h"

static struct ahead *ahead;

static struct ahead_object object(int i, uint64_t bytes)
{
	struct ahead_object o = { .bytes = bytes };

	snprintf(o.key, sizeof(o.key), "o%d", i);
	return o;
}

/* o0, o1, ... with their names as bytes. */
static bool start(unsigned slots, uint64_t bytes_max)
{
	if (!world_start())
		return false;
	for (int i = 0; i < 20; i++) {
		struct ahead_object o = object(i, 0);

		if (put_text(o.key, o.key))
			return false;
	}
	return ahead_open(b, slots, bytes_max, &ahead, &err) == ERR_OK;
}

static void stop(void)
{
	ahead_close(ahead);
	ahead = NULL;
	world_stop();
}

/* Those from `from` on, of so many bytes each. */
static void want(int from, int n, uint64_t bytes)
{
	struct ahead_object v[20];

	for (int i = 0; i < n; i++)
		v[i] = object(from + i, bytes);
	ahead_want(ahead, v, (size_t)n);
}

static void check_take(int i)
{
	struct ahead_object o = object(i, 0);
	struct buf got = { 0 };

	CHECK_OK(ahead_take(ahead, &got, &err), &err);
	CHECK_STR(buf_str(&got), o.key);
	buf_release(&got);
}

static unsigned requests(void)
{
	return atomic_load(&fake.requests);
}

TEST(one_after_the_other)
{
	for (unsigned slots = 1; slots <= AHEAD_SLOTS_MAX; slots++) {
		REQUIRE(start(slots, 100));
		for (int i = 0; i < 20; i++) {
			want(i, 20 - i, 2);
			check_take(i);
		}
		CHECK_INT(requests(), 40); /* each was put and read once */
		stop();
	}
}

/* All that has room is read before its turn, and no more. */
TEST(as_many_as_have_room)
{
	static const struct {
		uint64_t bytes;
		unsigned n;
	} rows[] = { { 1, 4 }, { 2, 4 }, { 3, 3 }, { 4, 2 }, { 5, 2 }, { 10, 1 }, { 11, 0 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE(start(4, 10));
		want(0, 20, rows[i].bytes);
		CHECK(WAIT_FOR(requests() == 20 + rows[i].n));
		usleep(2000);
		CHECK_INT(requests(), 20 + rows[i].n);
		check_take(0);
		stop();
	}
}

TEST(what_is_wanted_changes)
{
	REQUIRE(start(4, 100));
	want(0, 4, 2);
	CHECK(WAIT_FOR(requests() == 24));
	want(2, 4, 2); /* two of them are there */
	CHECK(WAIT_FOR(requests() == 26));
	check_take(2);
	check_take(3);
	want(10, 1, 2);
	check_take(10);
	CHECK_INT(requests(), 27);
	want(12, 4, 2); /* and nobody takes them */
	stop();
}

TEST(an_error_comes_in_its_turn)
{
	struct buf got = { 0 };

	REQUIRE(start(4, 100));
	want(18, 4, 2); /* two are not there */
	check_take(18);
	check_take(19);
	CHECK_ERR(ahead_take(ahead, &got, &err), &err, ERR_NOT_FOUND,
		"bucket b: get p/q/o20: no such object");
	want(5, 4, 2);
	check_take(5);
	buf_release(&got);
	stop();
}

/* Requests that hang end with the client's. */
TEST(closed_while_requests_are_under_way)
{
	REQUIRE(start(4, 100));
	fake_fault(&fake, (struct fake_fault){ .kind = FAULT_STALL, .line = "GET ", .times = 100 });
	want(0, 4, 2);
	CHECK(WAIT_FOR(requests() == 23)); /* a thread each; the fourth is the caller's */
	want(8, 4, 2);
	bucket_cancel(b, clock_monotonic_ns());
	stop();
}
