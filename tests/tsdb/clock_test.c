/* A database while the system's clock makes steps: nothing is lost, nothing is refused. */
#include <stdlib.h>

#include "tests/check.h"
#include "tests/clock_steps.h"
#include "tests/tsdb/fixture.h"
#include "tsdb/catalog/state.h"

#define START (INT64_C(20000) * NS_PER_DAY)
#define KEEP (15 * NS_PER_DAY)

static const char *const types[] = { "samples/count", NULL };
static const char *const lines[] = { "main;work 1", NULL };

struct world {
	struct fixture f;
	int64_t *ts; /* what was acknowledged */
	size_t n, cap;
};

/* windows: their length */
static bool world_open(struct world *w, int64_t window_ns)
{
	*w = (struct world){ 0 };
	clock_begin(START);
	if (!fixture_open(&w->f))
		return false;
	w->f.o.window_ns = window_ns;
	w->f.o.too_old_ns = window_ns / 2;
	w->f.o.retention_ns = KEEP;
	w->f.o.no_compaction = true; /* db_compact does it */
	w->f.o.free_bytes_reserve = 0;
	return fixture_reopen(&w->f);
}

static void world_close(struct world *w)
{
	fixture_close(&w->f);
	free(w->ts);
	clock_use(NULL);
}

static int64_t free_of_db(void *ctx, int64_t ts_ns)
{
	return db_free_from(((struct world *)ctx)->f.db, ts_ns);
}

static void world_pass(struct world *w, int64_t ns)
{
	clock_pass(ns, free_of_db, w);
}

/* A server that ends, and one that starts when the system's clock says so. */
static bool world_restart(struct world *w, int64_t step_ns)
{
	db_close(w->f.db);
	w->f.db = NULL;
	clock_begin(clock_system_ns() + step_ns);
	return fixture_reopen(&w->f);
}

static bool world_has(const struct world *w, int64_t ts_ns)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->ts[i] == ts_ns)
			return true;
	return false;
}

/* Each has a nanosecond of its own: one that comes again counts once. */
static enum err_code world_try(struct world *w, int64_t ts_ns)
{
	struct arena a;
	enum err_code rc;

	while (world_has(w, ts_ns))
		ts_ns++;
	arena_init(&a, 0);
	rc = append_wait(w->f.db, labels_of(&a, "p", "a", "1"), ts_ns, NS_PER_S,
		profile_of(&a, types, lines), NULL, false, NULL, &w->f.err);
	arena_release(&a);
	if (!rc) {
		if (w->n == w->cap && !(w->ts = reallocarray(w->ts, w->cap = 2 * w->cap + 16, 8)))
			abort();
		w->ts[w->n++] = ts_ns;
	}
	return rc;
}

/* A scrape: it is stamped by our clock. */
static void world_scrape(struct world *w)
{
	CHECK_OK(world_try(w, clock_now_ns()), &w->f.err);
}

static bool world_find(void *ctx, const struct db_series *s, const struct db_row *row)
{
	struct world *w = ctx;

	for (size_t i = 0; i < w->n; i++)
		if (w->ts[i] == row->ts_ns) {
			w->ts[i] = -row->ts_ns; /* once */
			return true;
		}
	CHECK_FAIL("a row of %" PRId64 " that nobody stored", row->ts_ns);
	return true;
}

static bool world_ignore(void *ctx, const struct db_series *s, const struct db_row *row)
{
	return true;
}

/* Every profile that was acknowledged is there, once. */
static void world_check(struct world *w, const char *what)
{
	size_t warnings = 0;

	int64_t last = 0, now = clock_now_ns();

	CHECK(rows_each(w->f.db, 0, INT64_MAX, world_find, w, &warnings, &w->f.err));
	for (size_t i = 0; i < w->n; i++)
		last = llabs(w->ts[i]) > last ? llabs(w->ts[i]) : last;
	CHECK_INT(warnings, last > now + DB_FUTURE_NS); /* that of the future */
	CHECK(rows_each(w->f.db, 0, now, world_ignore, w, &warnings, &w->f.err));
	CHECK_INT(warnings, last > now + DB_FUTURE_NS);
	for (size_t i = 0; i < w->n; i++) {
		if (w->ts[i] > 0)
			CHECK_FAIL("%s: the profile of %" PRId64 " is lost", what, w->ts[i]);
		w->ts[i] = w->ts[i] < 0 ? -w->ts[i] : w->ts[i];
	}
}

static void world_compact(struct world *w)
{
	CHECK_OK(db_compact(w->f.db, &w->f.err), &w->f.err);
}

static void world_fill(struct world *w, int64_t ns)
{
	for (int64_t t = 0; t < ns; t += 10 * NS_PER_MIN) {
		world_pass(w, 10 * NS_PER_MIN);
		world_scrape(w);
	}
}

TEST(a_short_step_ahead_destroys_and_refuses_nothing)
{
	struct world w;

	REQUIRE(world_open(&w, 2 * NS_PER_HOUR));
	world_fill(&w, 5 * NS_PER_HOUR);
	clock_step(16 * NS_PER_DAY);
	world_pass(&w, NS_PER_S);
	CHECK_OK(world_try(&w, clock_system_ns()), &w.f.err); /* a sender on the same machine */
	world_scrape(&w);
	world_compact(&w);
	world_pass(&w, 2 * NS_PER_S);
	clock_step(-16 * NS_PER_DAY);
	for (int turn = 0; turn < 2; turn++) {
		world_check(&w, "the clock is right again");
		world_fill(&w, 5 * NS_PER_HOUR);
		world_compact(&w);
		world_check(&w, "later");
		REQUIRE(world_restart(&w, 0));
	}
	world_close(&w);
}

TEST(a_start_with_a_clock_that_was_ahead)
{
	struct world w;

	REQUIRE(world_open(&w, 2 * NS_PER_HOUR));
	world_fill(&w, 5 * NS_PER_HOUR);
	REQUIRE(world_restart(&w, 26 * NS_PER_HOUR));
	world_scrape(&w);
	world_compact(&w);
	REQUIRE(world_restart(&w, -26 * NS_PER_HOUR));
	world_scrape(&w);
	world_fill(&w, 30 * NS_PER_HOUR); /* through the time that it had */
	world_compact(&w);
	world_check(&w, "ahead, and right again");
	world_close(&w);
}

TEST(a_clock_that_was_ahead_for_hours)
{
	struct world w;

	REQUIRE(world_open(&w, 2 * NS_PER_HOUR));
	world_fill(&w, 5 * NS_PER_HOUR);
	clock_step(26 * NS_PER_HOUR);
	world_fill(&w, 5 * NS_PER_HOUR);
	CHECK_INT(clock_step_ns(), 0);
	world_compact(&w); /* cuts the window of the right time */
	clock_step(-26 * NS_PER_HOUR);
	world_fill(&w, 30 * NS_PER_HOUR);
	world_compact(&w);
	world_check(&w, "ahead, and right again");
	world_close(&w);
}

TEST(a_clock_that_steps_back_into_what_is_stored)
{
	static const int64_t steps[] = { 10 * NS_PER_MIN, 2 * NS_PER_HOUR, 7 * NS_PER_HOUR,
		26 * NS_PER_HOUR, 16 * NS_PER_DAY };
	struct world w;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		for (int restart = 0; restart < 2; restart++) {
			REQUIRE(world_open(&w, 2 * NS_PER_HOUR));
			/* What is 16 days back is too old once the clock is right, and may go. */
			w.f.o.retention_ns = 0;
			REQUIRE(world_restart(&w, 0));
			world_fill(&w, 12 * NS_PER_HOUR);
			world_compact(&w);
			if (restart)
				REQUIRE(world_restart(&w, -steps[i]));
			else
				clock_step(-steps[i]);
			world_scrape(&w);
			world_fill(&w, 5 * NS_PER_HOUR);
			clock_step(steps[i]);
			for (int look = 0; look < 2; look++) { /* as retention does each minute */
				world_fill(&w, 5 * NS_PER_HOUR);
				world_compact(&w);
			}
			CHECK_INT(clock_step_ns(), 0);
			world_check(&w, "back, and right again");
			world_close(&w);
		}
}

TEST(retention_says_what_a_step_would_drop_and_waits)
{
	struct world w;

	REQUIRE(world_open(&w, 2 * NS_PER_HOUR));
	world_fill(&w, 8 * NS_PER_HOUR);
	world_compact(&w);
	for (int held = 0; held < 2; held++) {
		clock_step(16 * NS_PER_DAY);
		world_pass(&w, CLOCK_HOLD_NS + NS_PER_S);
		world_scrape(&w);
		world_compact(&w);
		CHECK(metric_value("epimetheus_tsdb_retention_held") == 1);
		world_check(&w, "it waits");
		world_pass(&w, CLOCK_HOLD_NS - 3 * NS_PER_S);
		world_compact(&w);
		world_check(&w, "it waits still");
		if (!held) { /* it was wrong */
			clock_step(-16 * NS_PER_DAY);
			world_pass(&w, CLOCK_HOLD_NS + NS_PER_S);
			world_scrape(&w);
			w.f.o.retention_ns = KEEP;
			world_compact(&w);
			CHECK(metric_value("epimetheus_tsdb_retention_held") == 0);
			world_check(&w, "all is there");
		}
	}
	world_pass(&w, 4 * NS_PER_S);
	world_scrape(&w);
	world_compact(&w);
	CHECK(metric_value("epimetheus_tsdb_retention_held") == 0);
	CHECK_INT(w.f.db->blocks_n, 0);
	world_close(&w);
}

/* Steps of the clock, restarts, scrapes, cuts and joins in any order. */
TEST(any_steps)
{
	static const int64_t steps[] = { NS_PER_MIN, 50 * NS_PER_MIN, 3 * NS_PER_HOUR, 26 * NS_PER_HOUR,
		3 * NS_PER_DAY, 40 * NS_PER_DAY };
	static const size_t steps_n = sizeof(steps) / sizeof(steps[0]);
	struct world w;
	int64_t off = 0, to, held;
	unsigned turns = check_is_short() ? 250 : 1000;

	REQUIRE(world_open(&w, 2 * NS_PER_HOUR));
	srandom(7);
	for (unsigned i = 0; i < turns && !check_failures; i++) {
		to = random() % 3 ? steps[random() % (long)steps_n] : 0;
		to = random() % 2 ? to : -to;
		held = random() % 8 ? random() % (8 * NS_PER_MIN) : random() % (9 * NS_PER_HOUR);
		/* What holds for longer may drop, in order. */
		if ((to > KEEP / 2 || off > KEEP / 2) && held > 2 * CLOCK_HOLD_NS)
			held = CLOCK_HOLD_NS;
		if (random() % 4)
			clock_step(to - off);
		else
			REQUIRE(world_restart(&w, to - off));
		off = to;
		for (int64_t t = 0; t < held; t += held / 5 + 1) {
			world_pass(&w, held / 5 + 1);
			world_scrape(&w);
			if (off == 0 && random() % 2 && clock_step_ns() == 0)
				CHECK_OK(world_try(&w, clock_system_ns() - NS_PER_MS), &w.f.err);
		}
		if (random() % 3 == 0)
			world_compact(&w);
		if (i % 10 == 0)
			world_check(&w, "any step");
	}
	world_check(&w, "the end");
	world_close(&w);
}
