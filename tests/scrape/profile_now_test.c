/* Profiles out of turn, and scrapes that make several series. */
#include "base/clock.h"
#include "base/thread.h"
#include "tests/check.h"
#include "tests/scrape/fixture.h"
#include "tests/wait.h"

struct profiling {
	struct fixture *f;
	const char *name; /* of the profile */
	atomic_bool canceled;
	enum err_code rc;
	struct err err;
	struct profile_now_result got;
	struct arena arena;
};

static void profile_now(void *ctx)
{
	struct profiling *o = ctx;
	struct matcher m = { .op = MATCH_EQ, .name = STR("__name__"), .value = str_of(o->name) };
	struct profile_now wanted = { .matchers = &m, .matchers_n = 1, .wants_profile = true };

	o->rc = scrape_manager_profile_now(
		o->f->manager, &wanted, &o->canceled, &o->arena, &o->got, &o->err);
}

static void start(struct profiling *o, struct thread *t, const char *name)
{
	struct err err;

	o->name = name;
	atomic_store(&o->canceled, false);
	*t = (struct thread){ 0 };
	CHECK_OK(thread_start(t, "profile", profile_now, o, &err), &err);
}

static void cancel(struct profiling *o, struct thread *t)
{
	atomic_store(&o->canceled, true);
	thread_join(t);
	CHECK_ERR(o->rc, &o->err, ERR_CANCELED, "canceled");
}

/* Until so many requests came to the target. */
static void wait_requests(struct fixture *f, unsigned n)
{
	CHECK(WAIT_FOR(http_target_counts(f->target).requests >= n));
}

/*
 * Out of turn, but in line: one CPU profile at a time, and what the target shows stays. The turns
 * are a century apart, so none falls into the test.
 */
TEST(a_profile_now)
{
	struct profiling o = { .name = "process_cpu" };
	struct thread t = { 0 };
	struct fixture f;
	struct err err;
	int64_t canceled_ns;
	unsigned asked;

	fixture_init(&f);
	o.f = &f;
	arena_init(&o.arena, 0);
	REQUIRE_OK(fixture_apply(&f,
				   "- job_name: a\n  scrape_interval: 100y\n  scrape_timeout: 90s\n"
				   "  static_configs: [{targets: [PORT]}]\n"
				   "  profiling_config: {pprof_config: {" NO_CPU ", "
				   "process_cpu: {path: /profile, seconds: 10}, "
				   "heap: {path: /good}, gone: {path: /503}, silent: {path: /silent}}}\n",
				   &err),
		&err);
	profile_now(&o);
	REQUIRE_OK(o.rc, &o.err);
	CHECK_INT(o.got.samples, 2);
	CHECK(o.got.profile.len > 20 && (unsigned char)o.got.profile.ptr[0] == 0x1f);
	CHECK(fake_sink_wait(&f.sink, "process_cpu{", 1));
	CHECK_INT(f.sink.v[0].ts_ns, o.got.ts_ns);
	CHECK_STR(labels_get(o.got.labels, STR("job")), "a");
	o.name = "heap";
	profile_now(&o);
	CHECK_OK(o.rc, &o.err);
	o.name = "gone";
	profile_now(&o);
	CHECK_ERR(o.rc, &o.err, ERR_UNAVAILABLE,
		"server returned HTTP status 503 Service Unavailable: profiling is \xc3\xa4ngstlich");
	o.name = "nobody";
	profile_now(&o);
	CHECK_ERR(o.rc, &o.err, ERR_NOT_FOUND, "no target matches");
	fixture_look(&f);
	for (size_t i = 0; i < f.shown.active_n; i++)
		CHECK(f.shown.active[i].health == TARGET_UNKNOWN && !f.shown.active[i].scrapes);

	/* canceled while it is fetched, and while the store has it */
	asked = http_target_counts(f.target).requests;
	start(&o, &t, "silent");
	wait_requests(&f, asked + 1);
	cancel(&o, &t);
	http_target_hold(f.target, true);
	start(&o, &t, "process_cpu");
	wait_requests(&f, asked + 2);
	canceled_ns = clock_monotonic_ns();
	cancel(&o, &t);
	http_target_hold(f.target, false);
	/* the target sees that nobody waits, for which it gets time; only the silent one goes on */
	CHECK(WAIT_FOR(http_target_counts(f.target).answered == asked + 1));
	start(&o, &t, "process_cpu");
	wait_requests(&f, asked + 3);
	CHECK(clock_monotonic_ns() - canceled_ns >= 400 * NS_PER_MS); /* LEAVE_NS is 500 ms */
	thread_join(&t);
	CHECK_OK(o.rc, &o.err);
	fake_sink_set(&f.sink, FAKE_HOLD);
	start(&o, &t, "heap");
	CHECK(fake_sink_wait(&f.sink, "heap{", 2));
	cancel(&o, &t);
	fake_sink_ack_all(&f.sink);
	CHECK_INT(http_target_counts(f.target).busy_max, 1);
	arena_release(&o.arena);
	fixture_release(&f);
}

/* One scrape, several series: it ends with the last acknowledgement, and one error fails it. */
TEST(honored_labels_make_series)
{
	static const char *const jobs =
		"- job_name: h\n  honor_labels: true\n"
		"  static_configs: [{targets: [PORT], labels: {pod: own, " PATIENT "}}]\n"
		"  profiling_config: {pprof_config: {" OFF ", m: {path: /handed}}}\n"
		"- job_name: plain\n"
		"  static_configs: [{targets: [PORT], labels: {pod: own, " PATIENT "}}]\n"
		"  profiling_config: {pprof_config: {" OFF ", whole: {path: /handed}}}\n";
	static const char *const pods[] = { "a", "b", "own" };
	struct fixture f;
	struct buf want = { 0 };
	struct target_info t;
	struct err err;

	fixture_init(&f);
	fake_sink_set(&f.sink, FAKE_HOLD);
	REQUIRE_OK(fixture_apply(&f, jobs, &err), &err);
	for (size_t i = 0; i < 3; i++) {
		buf_clear(&want);
		buf_printf(&want,
			"m{instance=\"127.0.0.1:%d\", job=\"h\", pod=\"%s\"} every 250ms, "
			"1 samples: inuse_space=gauge",
			http_target_port(f.target), pods[i]);
		buf_add_char(&want, '\0');
		CHECK(fake_sink_wait(&f.sink, want.ptr, 1));
	}
	CHECK(fake_sink_wait(&f.sink, "job=\"plain\", pod=\"own\"} every 250ms, 3 samples", 1));
	CHECK_INT(fixture_see(&f, "m").scrapes, 0);
	fake_sink_set(&f.sink, FAKE_ACK_INSIDE);
	fake_sink_ack_all(&f.sink);
	t = fixture_wait_scraped(&f, "m", 0);
	CHECK_STR(t.last_error, "");
	CHECK_INT(t.last_samples, 3);
	fake_sink_set(&f.sink, FAKE_ACK_ERROR);
	fixture_wait_error(&f, "m", "store: sync failed");
	fake_sink_set(&f.sink, FAKE_REFUSE);
	fixture_wait_error(&f, "m", "store: disk is full");
	buf_release(&want);
	fixture_release(&f);
}

/* The manager ends while a canceled one still keeps its endpoint. */
TEST(canceled_and_closed)
{
	struct profiling o = { .name = "process_cpu" };
	struct thread t = { 0 };
	struct fixture f;
	struct err err;

	fixture_init(&f);
	o.f = &f;
	arena_init(&o.arena, 0);
	REQUIRE_OK(fixture_apply(&f,
				   "- job_name: a\n  scrape_interval: 100y\n  scrape_timeout: 90s\n"
				   "  static_configs: [{targets: [PORT]}]\n"
				   "  profiling_config: {pprof_config: {" NO_CPU ", "
				   "process_cpu: {path: /silent, seconds: 10}}}\n",
				   &err),
		&err);
	start(&o, &t, "process_cpu");
	wait_requests(&f, 1);
	cancel(&o, &t);
	arena_release(&o.arena);
	fixture_release(&f);
}
