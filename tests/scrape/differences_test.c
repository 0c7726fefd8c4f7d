/* Endpoints that answer differences: no second difference is made of them, and mistakes show. */
#include "tests/check.h"
#include "tests/scrape/fixture.h"
#include "tests/wait.h"

#define JOB \
	"- job_name: j\n  scrape_interval: 150ms\n  scrape_timeout: 150ms\n" \
	"  static_configs: [{targets: [PORT]}]\n  profiling_config: {pprof_config: {" OFF

TEST(differences_are_stored_as_they_are)
{
	static const struct {
		const char *job, *want;
	} rows[] = {
		/* by its path, whatever its name, and whether it is called delta */
		{ ", heap: {path: /x/delta_heap}}}\n", "alloc_space=delta inuse_space=gauge" },
		{ ", mine: {path: /x/delta_heap, delta: true}}}\n", "alloc_space=delta inuse_space=gauge" },
		{ ", mine: {path: /x/delta_heap, kind: {alloc_space: cumulative}}}}\n",
			"alloc_space=cumulative inuse_space=gauge" },
		/* it is called delta, and was not measured over `seconds` */
		{ ", mine: {path: /good, delta: true}}}\n", "alloc_space=delta inuse_space=gauge" },
		{ ", mine: {path: /good}}}\n", "alloc_space=cumulative inuse_space=gauge" },
		{ ", mine: {path: /profile, delta: true}}}\n", "samples=delta cpu=delta in 300ms" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf jobs = { 0 };
		struct fixture f;
		struct err err;
		const char *got;

		buf_printf(&jobs, "%s%s%c", JOB, rows[i].job, '\0');
		fixture_init(&f);
		REQUIRE_OK(fixture_apply(&f, jobs.ptr, &err), &err);
		REQUIRE(fake_sink_wait(&f.sink, " samples: ", 1));
		got = strstr(f.sink.v[0].text, " samples: ");
		if (strcmp(got + 10, rows[i].want) != 0)
			CHECK_FAIL("row %zu: \"%s\", want \"%s\"", i, got + 10, rows[i].want);
		fixture_release(&f);
		buf_release(&jobs);
	}
}

TEST(seconds_are_not_asked_for_where_nothing_is_measured)
{
	struct target_info t;
	struct fixture f;
	struct err err;

	fixture_init(&f);
	REQUIRE_OK(fixture_apply(&f, JOB ", a: {path: /x/delta_heap, delta: true}}}\n", &err), &err);
	t = fixture_wait_scraped(&f, "a", 0);
	CHECK(str_has_suffix(t.scrape_url, STR("/x/delta_heap")));
	CHECK_STR(t.warning, "");
	fixture_release(&f);
}

#define FALLS \
	"counters of this profile fall again and again although the process goes on: if the endpoint " \
	"gives differences, write `delta: true` for the profile; if several processes answer at this " \
	"address, scrape each of them"
#define RISES \
	"amounts of this profile only grow from scrape to scrape: the endpoint seems to count since " \
	"the process began; without `delta: true` the server stores the increase"

TEST(a_mistaken_kind_shows_at_the_target)
{
	struct fixture f;
	struct err err;

	fixture_init(&f);
	REQUIRE_OK(fixture_apply(&f,
				   JOB ", falling: {path: /falling}, rising: {path: /rising, delta: true}, "
					   "good: {path: /good}}}\n",
				   &err),
		&err);
	CHECK(WAIT_FOR(str_is(fixture_see(&f, "falling").warning, FALLS)));
	CHECK(WAIT_FOR(str_is(fixture_see(&f, "rising").warning, RISES)));
	CHECK_STR(fixture_see(&f, "good").warning, "");
	/* As it should be, both are beyond doubt. */
	REQUIRE_OK(fixture_apply(&f,
				   JOB ", falling: {path: /falling, delta: true}, rising: {path: /rising}, "
					   "good: {path: /good}}}\n",
				   &err),
		&err);
	CHECK(WAIT_FOR(!fixture_see(&f, "falling").warning.len));
	CHECK(WAIT_FOR(!fixture_see(&f, "rising").warning.len));
	fixture_release(&f);
}
