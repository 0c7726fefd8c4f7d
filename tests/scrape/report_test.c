/* Series that say how scrapes went: by themselves, and as the manager makes them. */
#include "scrape/report.h"

#include "base/metrics.h"
#include "base/net/loop.h"
#include "scrape/manager.h"
#include "tests/check.h"
#include "tests/scrape/fake_sink.h"
#include "tests/scrape/http_target.h"
#include "tests/wait.h"

#define ONLY(profiles) \
	"  profiling_config: {pprof_config: {process_cpu: {enabled: false}, " \
	"memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, " \
	"goroutine: {enabled: false}, goroutineleak: {enabled: false}, " profiles "}}\n"

struct fixture {
	struct fake_sink sink;
	struct loop *loop;
	struct pool *workers;
	struct report *report;
	struct target_set *set;
	size_t scrapes; /* to report */
};

static void make_set(struct fixture *f, const char *labels)
{
	struct buf text = { 0 };
	struct groups *g = groups_new(0);
	struct config *c = NULL;
	struct err err;

	buf_printf(&text,
		"scrape_configs:\n- job_name: j\n" ONLY(
			"m: {path: /m}") "  static_configs: [{targets: ['a:1'], labels: {%s}}]\n",
		labels);
	CHECK_OK(config_load_text("c.yml", STR("."), buf_str(&text), &c, &err), &err);
	g->v = c->scrape[0].sd.statics;
	g->n = c->scrape[0].sd.statics_n;
	CHECK_OK(targets_expand(c, &c->scrape[0], (struct shard){ 0 }, g, NULL, &f->set, &err), &err);
	config_unref(c);
	groups_unref(g);
	buf_release(&text);
}

static void fixture_init(struct fixture *f, const char *labels)
{
	struct err err;

	*f = (struct fixture){ .scrapes = 1 };
	fake_sink_init(&f->sink);
	make_set(f, labels);
	CHECK_OK(pool_open("worker", 2, 1000, &f->workers, &err), &err);
	CHECK_OK(loop_open("loop", &f->loop, &err), &err);
	CHECK_OK(report_open(loop_base(f->loop), f->workers, &f->sink.sink, &f->report, &err), &err);
}

static void stop(void *ctx)
{
	report_stop(ctx);
}

static void fixture_release(struct fixture *f)
{
	loop_call(f->loop, stop, f->report);
	pool_close(f->workers);
	report_close(f->report);
	loop_close(f->loop);
	target_set_unref(f->set);
	fake_sink_release(&f->sink);
}

static void scrape(void *ctx)
{
	struct fixture *f = ctx;

	for (size_t i = 0; i < f->scrapes; i++)
		report_scrape(f->report, target_set_at(f->set, 0),
			&(struct report_scrape){ .start_ns = 1234567890 + (int64_t)i * NS_PER_S,
				.duration_ns = 250 * NS_PER_MS,
				.samples = 7,
				.bytes = 99,
				.up = true });
}

static void scrape_and_go(void *ctx)
{
	struct fixture *f = ctx;

	scrape(f);
	report_gone(f->report, target_set_at(f->set, 0), 5 * NS_PER_S);
	stop(f->report);
	scrape(f); /* is taken no more */
}

TEST(values_of_one_scrape)
{
	struct fixture f;

	fixture_init(&f, "profile: own, A: x");
	loop_call(f.loop, scrape_and_go, &f);
	pool_close(f.workers);
	f.workers = NULL;
#define LABELS "{A=\"x\", exported_profile=\"own\", instance=\"a:1\", job=\"j\", profile=\"m\"}"
	CHECK_STR(buf_str(&f.sink.numbers),
		"up" LABELS " 1 @1234\n"
		"scrape_duration_seconds" LABELS " 0.25 @1234\n"
		"scrape_samples_scraped" LABELS " 7 @1234\n"
		"scrape_body_size_bytes" LABELS " 99 @1234\n"
		"up" LABELS " stale\n"
		"scrape_duration_seconds" LABELS " stale\n"
		"scrape_samples_scraped" LABELS " stale\n"
		"scrape_body_size_bytes" LABELS " stale\n");
	fixture_release(&f);
}

/* No timer of the loop fires before this has returned. */
static void scrape_and_wait(void *ctx)
{
	struct fixture *f = ctx;

	scrape(f);
	CHECK(fake_sink_wait_numbers(&f->sink, "up{", f->scrapes - 1));
	CHECK_INT(f->sink.number_batches, 2);
}

TEST(a_full_batch_waits_for_no_timer)
{
	struct fixture f;

	fixture_init(&f, "");
	f.scrapes = 2 * REPORT_BATCH_MAX + 1;
	loop_call(f.loop, scrape_and_wait, &f);
	CHECK(fake_sink_wait_numbers(&f.sink, "up{", f.scrapes)); /* within a second */
	CHECK_INT(f.sink.number_batches, 3);
	fixture_release(&f);
}

/* A batch is refused for one name: the other values are stored, and the lost ones counted. */
TEST(what_the_sink_refuses)
{
	struct fixture f;
	struct buf text = { 0 };

	fixture_init(&f, "");
	f.scrapes = 10;
	f.sink.clash = "scrape_samples_scraped";
	loop_call(f.loop, scrape_and_go, &f);
	pool_close(f.workers);
	f.workers = NULL;
	CHECK_INT(fake_sink_numbers(&f.sink, "up{"), 11);
	CHECK_INT(fake_sink_numbers(&f.sink, "scrape_body_size_bytes{"), 11);
	CHECK_INT(fake_sink_numbers(&f.sink, "scrape_samples_scraped{"), 0);
	fixture_release(&f);

	for (int mode = FAKE_REFUSE; mode <= FAKE_ACK_ERROR; mode++) {
		fixture_init(&f, "");
		fake_sink_set(&f.sink, (enum fake_mode)mode);
		loop_call(f.loop, scrape_and_go, &f);
		fixture_release(&f);
	}
	metrics_print(&text);
	CHECK(str_find(buf_str(&text),
		STR("epimetheus_scrape_report_values_total{result=\"failed\"} "
		"27\n")) >= 0);
	buf_release(&text);
}

/* ---- with the manager ---- */

static void apply(struct scrape_manager *m, const char *jobs, int port)
{
	struct buf text = { 0 };
	struct config *c = NULL;
	struct err err;

	buf_printf(&text,
		"global: {scrape_interval: 250ms, scrape_timeout: 200ms}\n"
		"scrape_configs:\n");
	buf_printf(&text, jobs, port);
	CHECK_OK(config_load_text("c.yml", STR("/tmp"), buf_str(&text), &c, &err), &err);
	if (c)
		CHECK_OK(scrape_manager_apply(m, c, &err), &err);
	config_unref(c);
	buf_release(&text);
}

TEST(targets_come_fail_and_go)
{
	static const char *const jobs =
		"- job_name: j\n"
		"  static_configs: [{targets: ['127.0.0.1:%d', '127.0.0.1:1']}]\n" ONLY(
			"heap: {path: /good}");
	struct http_target *target = http_target_open();
	struct scrape_manager_options o = { .workers = 2 };
	struct scrape_manager *m;
	struct fake_sink sink;
	struct buf want = { 0 };
	struct err err;

	fake_sink_init(&sink);
	o.sink = &sink.sink;
	REQUIRE_OK(scrape_manager_open(&o, &m, &err), &err);
	apply(m, jobs, http_target_port(target));
	buf_printf(&want, "up{instance=\"127.0.0.1:%d\", job=\"j\", profile=\"heap\"} 1 @",
		http_target_port(target));
	buf_add_char(&want, '\0');
	CHECK(fake_sink_wait_numbers(&sink, want.ptr, 2));
	buf_clear(&want);
	buf_printf(&want,
		"scrape_samples_scraped{instance=\"127.0.0.1:%d\", job=\"j\", "
		"profile=\"heap\"} 3 @",
		http_target_port(target));
	buf_add_char(&want, '\0');
	CHECK(fake_sink_wait_numbers(&sink, want.ptr, 2));
	CHECK(fake_sink_wait_numbers(&sink,
		"up{instance=\"127.0.0.1:1\", job=\"j\", "
		"profile=\"heap\"} 0 @",
		2));
	CHECK_INT(fake_sink_numbers(&sink, "stale"), 0);

	apply(m,
		"- job_name: j\n  static_configs: [{targets: ['127.0.0.1:%d']}]\n" ONLY(
			"heap: {path: /good}"),
		http_target_port(target));
	CHECK(fake_sink_wait_numbers(&sink,
		"up{instance=\"127.0.0.1:1\", job=\"j\", "
		"profile=\"heap\"} stale\n",
		1));
	CHECK(WAIT_FOR(fake_sink_numbers(&sink, "stale") == 4));
	scrape_manager_close(m); /* the end of the server ends no series */
	CHECK_INT(fake_sink_numbers(&sink, "stale"), 4);
	fake_sink_release(&sink);
	http_target_close(target);
	buf_release(&want);
}
