/* Targets over several loops: reloads, and ends, in the middle of their work. */
#include "scrape/lane.h"
#include "scrape/targets/targets.h"
#include "tests/check.h"
#include "tests/scrape/fixture.h"
#include "tests/wait.h"

/* targets 127.0.0.first..127.0.0.last, each one process with its own connection. */
static void add_targets(struct fixture *f, struct buf *out, const char *more, int first, int last)
{
	buf_clear(out);
	buf_add_cstr(out,
		"- job_name: j\n  profiling_config: {pprof_config: {" OFF
		", heap: {path: /good}, late: {path: /slow, interval: 1s, timeout: 1s}}}\n");
	buf_add_cstr(out, more);
	buf_add_cstr(out, "  static_configs: [{targets: [");
	for (int i = first; i <= last; i++)
		buf_printf(out, "'127.0.0.%d:%d',", i, http_target_port(f->target));
	buf_add_cstr(out, "], labels: {" PATIENT "}}]\n");
	buf_add_char(out, '\0');
}

static uint64_t scrapes_least(const struct fixture *f, const char *profile)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < f->shown.active_n; i++)
		if (str_is(f->shown.active[i].profile, profile) && f->shown.active[i].scrapes < least)
			least = f->shown.active[i].scrapes;
	return least;
}

static void wait_all_scraped(struct fixture *f, const char *profile, uint64_t n)
{
	CHECK(WAIT_FOR((fixture_look(f), scrapes_least(f, profile) >= n)));
}

/* Targets that a reload keeps go on, on every loop; others begin or end. */
/* Moves some targets away, and those of the round before back. */
static void move_some(struct fixture *f, struct buf *jobs, int round, size_t n, size_t moved)
{
	size_t from = round % 2 == 0 ? moved : 0;
	struct err err;

	add_targets(f, jobs, "  sample_limit: 1000\n", 1 + (int)from, (int)(n + from));
	REQUIRE_OK(fixture_apply(f, jobs->ptr, &err), &err);
}

TEST(a_reload_over_several_loops)
{
	enum { N = 24, MOVED = 6 };
	struct http_target_counts before, after;
	struct buf jobs = { 0 };
	uint64_t scrapes[2 * N] = { 0 }, gone = 0;
	struct fixture f;
	struct err err;

	fixture_init(&f);
	add_targets(&f, &jobs, "", 1, N);
	REQUIRE_OK(fixture_apply(&f, jobs.ptr, &err), &err);
	wait_all_scraped(&f, "heap", 2);
	REQUIRE(f.shown.active_n == 2 * N);
	for (size_t i = 0; i < f.shown.active_n; i++)
		scrapes[i] = f.shown.active[i].scrapes;
	for (int round = 0; round < 10; round++) /* quicker than the loops take it over */
		move_some(&f, &jobs, round, N, MOVED);
	fixture_look(&f);
	REQUIRE(f.shown.active_n == 2 * N);
	for (size_t i = 0; i < f.shown.active_n; i++) {
		gone += f.shown.active[i].scrapes < scrapes[i];
		CHECK_INT(f.shown.active[i].failures, 0);
	}
	CHECK(gone > 0 && gone <= 2 * MOVED);
	wait_all_scraped(&f, "heap", 2);
	before = http_target_counts(f.target);
	for (int round = 0; round < 2; round++)
		move_some(&f, &jobs, round, N, MOVED);
	wait_all_scraped(&f, "heap", 2);
	after = http_target_counts(f.target);
	CHECK(after.connections - before.connections <= 4 * MOVED);
	buf_release(&jobs);
	fixture_release(&f);
}

/* A CPU profile of minutes must not keep all targets of each set that came meanwhile in memory. */
TEST(a_held_request_keeps_no_old_set)
{
	static const char *const job =
		"- job_name: j\n  scrape_interval: 1s\n%s"
		"  static_configs: [{targets: [PORT], labels: {__param_seconds: '60'}}]\n"
		"  profiling_config: {pprof_config: {" OFF ", heap: {path: /silent}}}\n";
	struct buf text = { 0 };
	struct fixture f;
	struct err err;

	fixture_init(&f);
	buf_printf(&text, job, "");
	buf_add_char(&text, '\0');
	REQUIRE_OK(fixture_apply(&f, text.ptr, &err), &err);
	REQUIRE(WAIT_FOR(http_target_counts(f.target).requests == 1));
	fixture_look(&f);
	REQUIRE(f.shown.sets_n == 1);
	buf_clear(&text);
	buf_printf(&text, job, "  sample_limit: 1000\n");
	buf_add_char(&text, '\0');
	REQUIRE_OK(fixture_apply(&f, text.ptr, &err), &err);
	CHECK(WAIT_FOR(atomic_load(&f.shown.sets[0]->refs) == 1)); /* the snapshot's */
	CHECK_INT(http_target_counts(f.target).requests, 1);
	buf_release(&text);
	fixture_release(&f);
}

/* Each loop ends with requests under way, answers with workers, and changes in its queue. */
TEST(closing_several_busy_loops)
{
	struct buf jobs = { 0 };
	struct fixture f;
	struct err err;

	fixture_init(&f);
	add_targets(&f, &jobs, "", 1, 40);
	REQUIRE_OK(fixture_apply(&f, jobs.ptr, &err), &err);
	CHECK(fake_sink_wait(&f.sink, "heap{", 20));
	add_targets(&f, &jobs, "", 20, 60);
	REQUIRE_OK(fixture_apply(&f, jobs.ptr, &err), &err);
	scrape_manager_close(f.manager);
	f.manager = NULL;
	buf_release(&jobs);
	fixture_release(&f);
}

/* Of a thousand that appear at once a lane begins 200, one every 5 ms; the others wait. */
TEST(a_crowd_does_not_begin_at_once)
{
	int64_t first_ns = 0, now_ns = NS_PER_HOUR, turn;
	size_t begun = 0;

	for (size_t i = 0; i < 1000; i++) {
		turn = lane_first_turn(&first_ns, now_ns);
		CHECK(!turn || turn == now_ns + (int64_t)begun * LANE_FIRST_EVERY_NS);
		begun += turn != 0;
	}
	CHECK_INT(begun, LANE_FIRST_AHEAD_NS / LANE_FIRST_EVERY_NS);
	/* As many more after half a second as it began meanwhile, and all of them an hour later. */
	now_ns += NS_PER_S / 2;
	for (begun = 0; lane_first_turn(&first_ns, now_ns); begun++)
		;
	CHECK_INT(begun, LANE_FIRST_AHEAD_NS / LANE_FIRST_EVERY_NS / 2);
	now_ns += NS_PER_HOUR;
	CHECK_INT(lane_first_turn(&first_ns, now_ns), now_ns);
}

#define HOURLY \
	"- job_name: j\n  scrape_interval: 1h\n  scrape_timeout: 1m\n" \
	"  profiling_config: {pprof_config: {" OFF ", heap: {path: %s}}}\n" \
	"  static_configs: [{targets: [PORT]}]\n"

/* How far two times are apart within the hour. */
static int64_t hour_apart(int64_t a_ns, int64_t b_ns)
{
	int64_t apart = (a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns) % NS_PER_HOUR;

	return apart > NS_PER_HOUR / 2 ? NS_PER_HOUR - apart : apart;
}

/* The first scrape of a server that has just started. out: its texts are gone. */
static void hourly_start(const char *path, struct target_info *out)
{
	struct buf text = { 0 };
	struct fixture f;
	struct err err;

	fixture_init(&f);
	buf_printf(&text, HOURLY, path);
	buf_add_char(&text, '\0');
	REQUIRE_OK(fixture_apply(&f, text.ptr, &err), &err);
	*out = fixture_wait_scraped(&f, "heap", 0);
	CHECK_INT(out->scrapes, 1);
	buf_release(&text);
	fixture_release(&f);
}

/* It needs no hour to see the first profile of a target that is scraped once an hour. */
TEST(a_new_target_begins_at_once_and_goes_on_at_its_offset)
{
	int64_t began_ns = clock_now_ns();
	struct target_info ok, failed;

	hourly_start("/good", &ok);
	hourly_start("/503", &failed);
	CHECK(ok.last_scrape_ns >= began_ns);
	CHECK_INT(ok.health, TARGET_UP);
	CHECK(ok.next_profile_ns > ok.last_scrape_ns + NS_PER_HOUR);
	CHECK(ok.next_profile_ns < clock_now_ns() + 2 * NS_PER_HOUR);
	/* What failed is asked again at the next turn, which may be soon. */
	CHECK_INT(failed.health, TARGET_DOWN);
	CHECK(failed.next_profile_ns > failed.last_scrape_ns);
	CHECK(failed.next_profile_ns < clock_now_ns() + NS_PER_HOUR);
}

/* The offset is the target's, whenever the server starts. */
TEST(a_restart_keeps_offsets)
{
	struct fixture f;
	struct target_info first, second;
	struct buf text = { 0 };
	struct err err;

	fixture_init(&f);
	buf_printf(&text, HOURLY, "/good");
	buf_add_char(&text, '\0');
	REQUIRE_OK(fixture_apply(&f, text.ptr, &err), &err);
	first = fixture_wait_scraped(&f, "heap", 0);
	REQUIRE_OK(fixture_apply(&f, "", &err), &err);
	CHECK(WAIT_FOR((fixture_look(&f), f.shown.active_n == 0)));
	REQUIRE_OK(fixture_apply(&f, text.ptr, &err), &err);
	second = fixture_wait_scraped(&f, "heap", 0);
	CHECK(second.last_scrape_ns > first.last_scrape_ns);
	CHECK(hour_apart(second.next_profile_ns, first.next_profile_ns) < 10 * NS_PER_S);
	buf_release(&text);
	fixture_release(&f);
}
