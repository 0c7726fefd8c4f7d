/*
 * The store is gone after each request, done or not, and the publisher with it; another one goes on
 * from what is there. At each point the manifest names what is there and nothing else, no row is
 * lost, none is doubled.
 */
#include "tests/check.h"
#include "tests/tsdb/cluster/scene.h"

static struct scene s;

static void fill(int from_s, int to_s)
{
	town_fill(&s.town, 1, 1, T0 + from_s, T0 + to_s, 5);
}

static void limit(bool limited, unsigned left, bool last_is_done)
{
	mutex_lock(&s.fake.lock);
	s.fake.limited = limited;
	s.fake.left = left;
	s.fake.last_is_done = last_is_done;
	mutex_unlock(&s.fake.lock);
}

static unsigned left_over(void)
{
	unsigned left;

	mutex_lock(&s.fake.lock);
	left = s.fake.left;
	mutex_unlock(&s.fake.lock);
	return left;
}

/* Rounds and work with `left` requests. False: they were enough. */
static bool run_with(unsigned left, bool last_is_done)
{
	bool over;

	limit(true, left, last_is_done);
	for (unsigned i = 0; i < 4; i++) {
		(void)!publisher_round(s.p, &s.err);
		(void)!publisher_work(s.p, &s.err);
	}
	over = left_over() == 0;
	limit(false, 0, false);
	return over;
}

static void go_on(const char *what, bool reopen)
{
	scene_crash(&s);
	if (reopen && !fixture_reopen(&s.town.f)) {
		CHECK_FAIL("%s: not opened", what);
		return;
	}
	if (!scene_start(&s)) {
		CHECK_FAIL("%s: not started: %s", what, s.err.msg);
		return;
	}
	scene_settle(&s);
	scene_check_objects(&s, what, true);
	scene_check_rows(&s, what);
}

/* What the bucket has is made anew: windows become blocks, blocks are joined. Rows do not change,
 * so they are all there at each point. */
static bool blocks(unsigned left, bool last_is_done)
{
	char what[64];
	bool more;

	snprintf(what, sizeof(what), "after %u requests, %s", left, last_is_done ? "done" : "not done");
	if (!scene_open(&s))
		return false;
	s.o.delete_delay_ns = 1;
	fill(0, 60);
	town_compact(&s.town);
	if (!scene_start(&s))
		return false;
	scene_settle(&s);
	fill(60, 110);
	if (publisher_round(s.p, &s.err))
		CHECK_FAIL("%s: %s", what, s.err.msg);
	town_compact(&s.town);
	more = run_with(left, last_is_done);
	scene_check_objects(&s, what, false);
	scene_check_rows_alone(&s, what);
	go_on(what, left % 2);
	SCENE_END(&s);
	return more;
}

TEST(windows_and_blocks_become_blocks)
{
	unsigned n = 0;

	while (blocks(n, false))
		n += CHECK_STEP;
	CHECK(n > 20);
	for (n = 1; blocks(n, true);)
		n += CHECK_STEP;
}

/* New rows, deleted rows, dropped blocks. */
static bool changes(unsigned left, bool last_is_done)
{
	char what[64];
	bool more;

	snprintf(what, sizeof(what), "after %u requests, %s", left, last_is_done ? "done" : "not done");
	if (!scene_open(&s))
		return false;
	s.o.delete_delay_ns = 1;
	town_fill(&s.town, 2, 1, T0, T0 + 60, 5);
	town_compact(&s.town);
	if (!scene_start(&s))
		return false;
	scene_settle(&s);
	town_fill(&s.town, 2, 1, T0 + 60, T0 + 70, 5);
	town_delete(&s.town, "job0", "i0", T0 + 15, T0 + 65);
	db_set_retention(s.town.f.db, 55 * SEC, 0, 0);
	town_compact(&s.town);
	town_forget_until(&s.town, T0 + 10);
	s.town.f.o.retention_ns = 55 * SEC;
	more = run_with(left, last_is_done);
	scene_check_objects(&s, what, false);
	go_on(what, left % 2);
	SCENE_END(&s);
	return more;
}

TEST(rows_come_and_go)
{
	unsigned n = 0;

	while (changes(n, false))
		n += CHECK_STEP;
	CHECK(n > 10);
	for (n = 1; changes(n, true);)
		n += CHECK_STEP;
}

/* The first start of all, with everything to be put. */
static bool first_start(unsigned left, bool last_is_done)
{
	char what[64];
	bool more, started;

	snprintf(what, sizeof(what), "after %u requests, %s", left, last_is_done ? "done" : "not done");
	if (!scene_open(&s))
		return false;
	fill(0, 50);
	town_compact(&s.town);
	limit(true, left, last_is_done);
	started = scene_start(&s);
	more = !started;
	if (started) {
		more = run_with(left_over(), last_is_done);
		scene_check_objects(&s, what, false);
	}
	limit(false, 0, false);
	go_on(what, left % 2);
	SCENE_END(&s);
	return more;
}

TEST(a_first_start)
{
	unsigned n = 0;

	while (first_start(n, false))
		n += CHECK_STEP;
	CHECK(n > 10);
	for (n = 1; first_start(n, true);)
		n += CHECK_STEP;
}
