/* Profiles that a target need not have, such as goroutineleak of Go 1.27. */
#include "tests/check.h"
#include "tests/scrape/fixture.h"
#include "tests/wait.h"

#define JOB(settings) \
	"- job_name: j\n  static_configs: [{targets: [PORT], labels: {" PATIENT "}}]\n" \
	"  profiling_config: {pprof_config: {" OFF_BUT_LEAKS ", heap: {path: /good}, " \
	"goroutineleak: {path: /leak, interval: 100ms" settings "}}}\n"

/* It is asked once, and then an hour later. Nothing of it is shown, and `up` has no value. */
TEST(what_is_not_there_is_no_failure)
{
	struct fixture f;
	struct err err;

	fixture_init(&f);
	REQUIRE_OK(fixture_apply(&f, JOB(""), &err), &err);
	CHECK(WAIT_FOR(http_target_counts(f.target).leaks));
	fixture_wait_scraped(&f, "heap", fixture_see(&f, "heap").scrapes + 5);
	CHECK_INT(http_target_counts(f.target).leaks, 1);
	fixture_look(&f);
	REQUIRE(f.shown.active_n == 1 && f.shown.pools_n == 1);
	CHECK_STR(f.shown.active[0].profile, "heap");
	CHECK_INT(f.shown.pools[0].active, 1);
	CHECK(fake_sink_wait_numbers(&f.sink, "up{", 2));
	CHECK_INT(fake_sink_numbers(&f.sink, "goroutineleak"), 0);
	CHECK_INT(fake_sink_count(&f.sink, "goroutineleak{"), 0);
	fixture_release(&f);
}

/* Where discovery gives one path to all profiles, the answer is another profile. */
TEST(another_profile_at_its_path)
{
	struct fixture f;
	struct err err;

	fixture_init(&f);
	REQUIRE_OK(fixture_apply(&f,
				   "- job_name: j\n  static_configs: [{targets: [PORT], labels: {" PATIENT
				   ", __profile_path__: /good}}]\n"
				   "  profiling_config: {pprof_config: {" OFF_BUT_LEAKS ", heap: {path: /x}, "
				   "goroutineleak: {interval: 100ms}}}\n",
				   &err),
		&err);
	fixture_wait_scraped(&f, "heap", 5);
	CHECK(!fixture_see(&f, "goroutineleak").profile.len);
	CHECK_INT(fake_sink_count(&f.sink, "goroutineleak{"), 0);
	REQUIRE_OK(fixture_apply(&f,
				   "- job_name: j\n  static_configs: [{targets: [PORT], labels: {" PATIENT
				   ", __profile_path__: /good}}]\n"
				   "  profiling_config: {pprof_config: {" OFF_BUT_LEAKS ", heap: {path: /x}, "
				   "goroutineleak: {interval: 100ms, optional: false}}}\n",
				   &err),
		&err);
	fixture_wait_error(&f, "goroutineleak", "the profile has no sample type goroutineleak");
	fixture_release(&f);
}

/* A process that is restarted as an older one has it no more. Other failures are failures. */
TEST(what_was_there_is_a_target)
{
	struct fixture f;
	struct target_info t;
	struct err err;

	fixture_init(&f);
	http_target_serve_leaks(f.target, true);
	REQUIRE_OK(fixture_apply(&f, JOB(""), &err), &err);
	t = fixture_wait_scraped(&f, "goroutineleak", 0);
	CHECK_INT(t.health, TARGET_UP);
	CHECK_INT(t.last_samples, 1);
	CHECK(fake_sink_wait(&f.sink, "goroutineleak=gauge", 2));
	fake_sink_set(&f.sink, FAKE_REFUSE);
	fixture_wait_error(&f, "goroutineleak", "store: disk is full");
	CHECK_INT(fixture_see(&f, "goroutineleak").health, TARGET_DOWN);
	fake_sink_set(&f.sink, FAKE_ACK_INSIDE);
	fixture_wait_error(&f, "goroutineleak", "");
	http_target_serve_leaks(f.target, false);
	CHECK(WAIT_FOR(!fixture_see(&f, "goroutineleak").profile.len));
	CHECK_INT(f.shown.pools[0].active, 1);
	CHECK(fake_sink_wait_numbers(&f.sink, " stale", 4));
	CHECK_INT(fake_sink_numbers(&f.sink, " stale"), 4);
	fixture_release(&f);
}

/* Any profile may be optional, and goroutineleak may be required. A reload asks again. */
TEST(a_job_decides)
{
	struct fixture f;
	struct err err;

	fixture_init(&f);
	REQUIRE_OK(fixture_apply(&f, JOB(""), &err), &err);
	CHECK(WAIT_FOR(http_target_counts(f.target).leaks));
	REQUIRE_OK(fixture_apply(&f, JOB(", optional: false"), &err), &err);
	fixture_wait_error(&f, "goroutineleak", "server returned HTTP status 404 Not Found");
	CHECK_INT(fixture_see(&f, "goroutineleak").health, TARGET_DOWN);
	REQUIRE_OK(fixture_apply(&f, JOB(", optional: true"), &err), &err);
	CHECK(WAIT_FOR(!fixture_see(&f, "goroutineleak").profile.len));
	REQUIRE_OK(fixture_apply(&f,
				   "- job_name: j\n  static_configs: [{targets: [PORT], labels: {" PATIENT "}}]\n"
				   "  profiling_config: {pprof_config: {" OFF ", heap: {path: /good}, "
				   "wall: {path: /none, interval: 100ms, "
				   "optional: true}}}\n",
				   &err),
		&err);
	fixture_wait_scraped(&f, "heap", fixture_see(&f, "heap").scrapes + 3);
	CHECK(!fixture_see(&f, "wall").profile.len);
	fixture_release(&f);
}
