/* A job has a share of the series: at its limit it gets no new ones, and all others go on. */
#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tests/tsdb/read/numbers.h"

#define WINDOW_S 3600

struct jobs {
	struct fixture f;
};

static bool jobs_open(struct jobs *j, uint64_t max)
{
	if (!fixture_open(&j->f))
		return false;
	j->f.o.window_ns = WINDOW_S * SEC;
	j->f.o.job_series_max = max;
	return fixture_reopen(&j->f);
}

static enum err_code jobs_append(struct jobs *j, const char *job, const char *instance, int64_t s)
{
	static const char *const one_type[] = { "samples/count", NULL };
	static const char *const lines[] = { "main 1", NULL };

	return append_wait(j->f.db, labels_of(&j->f.arena, "cpu", job, instance), s * SEC, SEC,
		profile_of(&j->f.arena, one_type, lines), NULL, false, NULL, &j->f.err);
}

static enum err_code jobs_append_number(
	struct jobs *j, const char *job, const char *instance, int64_t s)
{
	struct db_number n = { labels_of(&j->f.arena, "up", job, instance), s * SEC, 1 };

	return numbers_wait(j->f.db, &n, 1, &j->f.err);
}

#define CHECK_TAKEN(j, append, ...) CHECK_OK(append((j), __VA_ARGS__), &(j)->f.err)
#define CHECK_REFUSED(j, append, text, ...) \
	CHECK_ERR(append((j), __VA_ARGS__), &(j)->f.err, ERR_LIMIT, \
		text " (--storage.tsdb.max-series-per-job)")

TEST(a_job_at_its_limit_gets_no_new_series_and_others_go_on)
{
	struct jobs j;

	REQUIRE(jobs_open(&j, 3));
	CHECK_TAKEN(&j, jobs_append, "a", "1", 100);
	CHECK_TAKEN(&j, jobs_append, "a", "2", 100);
	CHECK_TAKEN(&j, jobs_append_number, "a", "1", 100); /* it takes a place in the index as well */
	CHECK_REFUSED(&j, jobs_append,
		"job \"a\" has 3 series, those of its scrapes' numbers too, limit 3", "a", "3", 100);
	CHECK_REFUSED(&j, jobs_append_number,
		"job \"a\" has 3 series, those of its scrapes' numbers too, limit 3", "a", "2", 100);
	CHECK_TAKEN(&j, jobs_append, "a", "1", 101);
	CHECK_TAKEN(&j, jobs_append, "a", "2", 101);
	CHECK_TAKEN(&j, jobs_append_number, "a", "1", 101);
	for (int i = 0; i < 3; i++)
		CHECK_TAKEN(&j, jobs_append, "b", arena_printf(&j.f.arena, "%d", i), 100);
	CHECK_REFUSED(&j, jobs_append,
		"job \"b\" has 3 series, those of its scrapes' numbers too, limit 3", "b", "3", 100);
	fixture_close(&j.f);
}

TEST(series_without_a_job_have_a_share_too)
{
	struct label v[] = { { STR(LABEL_NAME), STR("up") }, { STR("service_name"), STR("s") } };
	struct db_number n = { { v, 2 }, 100 * SEC, 1 };
	struct jobs j;

	REQUIRE(jobs_open(&j, 1));
	CHECK_TAKEN(&j, jobs_append_number, "", "1", 100);
	CHECK_REFUSED(&j, jobs_append_number, "1 series have no job, limit 1", "", "2", 100);
	CHECK_TAKEN(&j, jobs_append_number, "", "1", 101);
	/* The service's name stands for the job, as everywhere. */
	CHECK_OK(numbers_wait(j.f.db, &n, 1, &j.f.err), &j.f.err);
	CHECK_REFUSED(&j, jobs_append_number,
		"job \"s\" has 1 series, those of its scrapes' numbers too, limit 1", "s", "1", 100);
	fixture_close(&j.f);
}

TEST(of_both_limits_the_job_is_named_if_it_is_at_its_own)
{
	struct jobs j;

	REQUIRE(fixture_open(&j.f));
	j.f.o.series_max = 2;
	j.f.o.job_series_max = 2;
	REQUIRE(fixture_reopen(&j.f));
	CHECK_TAKEN(&j, jobs_append, "a", "1", 100);
	CHECK_TAKEN(&j, jobs_append, "a", "2", 100);
	CHECK_REFUSED(&j, jobs_append,
		"job \"a\" has 2 series, those of its scrapes' numbers too, limit 2", "a", "3", 100);
	CHECK_ERR(jobs_append(&j, "b", "1", 100), &j.f.err, ERR_LIMIT,
		"2 series, limit 2 (--storage.tsdb.max-series)");
	fixture_close(&j.f);
}

TEST(without_a_limit_a_job_may_have_all)
{
	struct jobs j;

	REQUIRE(jobs_open(&j, 0));
	for (int i = 0; i < 20; i++)
		CHECK_TAKEN(&j, jobs_append, "a", arena_printf(&j.f.arena, "%d", i), 100);
	fixture_close(&j.f);
}

TEST(series_that_retire_make_room_for_new_ones)
{
	const int64_t later = 10 * WINDOW_S;
	struct jobs j;

	REQUIRE(jobs_open(&j, 2));
	CHECK_TAKEN(&j, jobs_append, "a", "1", 100);
	CHECK_TAKEN(&j, jobs_append_number, "a", "1", 100);
	CHECK_REFUSED(&j, jobs_append,
		"job \"a\" has 2 series, those of its scrapes' numbers too, limit 2", "a", "2", 100);
	/* Another job's profile moves the time on; the window is cut, and nobody has its series. */
	CHECK_TAKEN(&j, jobs_append, "b", "1", later);
	REQUIRE_OK(db_compact(j.f.db, &j.f.err), &j.f.err);
	fixture_maintain(&j.f);
	CHECK_TAKEN(&j, jobs_append, "a", "2", later);
	CHECK_TAKEN(&j, jobs_append, "a", "3", later);
	CHECK_REFUSED(&j, jobs_append,
		"job \"a\" has 2 series, those of its scrapes' numbers too, limit 2", "a", "4", later);
	CHECK_REFUSED(&j, jobs_append,
		"job \"a\" has 2 series, those of its scrapes' numbers too, limit 2", "a", "1", later);
	fixture_close(&j.f);
}

TEST(a_restart_counts_the_same_and_loses_none)
{
	struct jobs j;

	REQUIRE(jobs_open(&j, 3));
	CHECK_TAKEN(&j, jobs_append, "a", "1", 100);
	CHECK_TAKEN(&j, jobs_append, "a", "2", 100);
	CHECK_TAKEN(&j, jobs_append_number, "a", "1", 100);
	CHECK_TAKEN(&j, jobs_append, "b", "1", 100);
	REQUIRE(fixture_reopen(&j.f));
	CHECK_REFUSED(&j, jobs_append,
		"job \"a\" has 3 series, those of its scrapes' numbers too, limit 3", "a", "3", 101);
	CHECK_TAKEN(&j, jobs_append, "a", "2", 101);
	CHECK_TAKEN(&j, jobs_append, "b", "2", 101);
	/* A smaller limit takes nothing away. */
	j.f.o.job_series_max = 1;
	REQUIRE(fixture_reopen(&j.f));
	CHECK_TAKEN(&j, jobs_append, "a", "1", 102);
	CHECK_TAKEN(&j, jobs_append, "a", "2", 102);
	CHECK_TAKEN(&j, jobs_append_number, "a", "1", 102);
	CHECK_REFUSED(&j, jobs_append,
		"job \"a\" has 3 series, those of its scrapes' numbers too, limit 1", "a", "3", 102);
	CHECK_REFUSED(&j, jobs_append,
		"job \"b\" has 2 series, those of its scrapes' numbers too, limit 1", "b", "3", 102);
	CHECK_TAKEN(&j, jobs_append, "c", "1", 102);
	fixture_close(&j.f);
}
