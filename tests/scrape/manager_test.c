/* From a configuration over real sockets to a fake sink. */
#include <unistd.h>

#include "base/fs.h"
#include "base/version.h"
#include "tests/check.h"
#include "tests/scrape/fixture.h"
#include "tests/wait.h"

TEST(a_profile_reaches_the_sink_with_its_labels_and_kinds)
{
	struct fixture f;
	struct target_info t;
	struct buf head = { 0 }, text = { 0 };
	int64_t before = clock_now_ns();
	struct err err;

	fixture_init(&f);
	REQUIRE_OK(fixture_apply(&f,
				   "- job_name: j\n  scrape_interval: 3s\n  scrape_timeout: 2500ms\n"
				   "  profiling_config: {pprof_config: {" OFF ", heap: {path: /good}, "
				   "coded: {path: /encoded}, double: {path: /double}, cpu: {path: /profile}}}\n"
				   "  static_configs: [{targets: [PORT], labels: {env: prod}}]\n",
				   &err),
		&err);
	/* on a busy machine the first ones may time out */
	CHECK(WAIT_FOR(
		(t = fixture_see(&f, "heap")).health == TARGET_UP && t.next_profile_ns > t.last_scrape_ns));
	buf_printf(&text,
		"heap{env=\"prod\", instance=\"127.0.0.1:%d\", job=\"j\"} every 3000ms, 3 samples: "
		"alloc_space=cumulative inuse_space=gauge",
		http_target_port(f.target));
	buf_add_char(&text, '\0');
	CHECK(fake_sink_wait(&f.sink, text.ptr, 1));
	CHECK(fake_sink_wait(&f.sink, "coded{", 1));
	CHECK(fake_sink_wait(&f.sink, "double{", 1));
	CHECK(fake_sink_wait(&f.sink, "alloc_space=cumulative inuse_space=gauge", 3));
	CHECK(f.sink.v[0].ts_ns >= before && f.sink.v[0].ts_ns <= clock_now_ns());

	CHECK_STR(t.last_error, "");
	CHECK(t.last_scrape_ns >= before && t.last_duration_ns > 0);
	CHECK_INT(t.last_samples, 3);
	CHECK(t.last_bytes > 50);
	CHECK_INT(t.interval_ns, 3 * NS_PER_S);
	CHECK(t.next_profile_ns <= clock_now_ns() + 6 * NS_PER_S); /* the second one's at most */
	CHECK_INT(t.timeout_ns, 2500 * NS_PER_MS);
	CHECK_STR(t.pool, "j");
	CHECK_STR(labels_get(t.labels, STR("env")), "prod");
	CHECK(!labels_has(t.labels, STR(LABEL_NAME)));
	CHECK_STR(labels_get(t.discovered, STR("__profile_path__")), "/good");
	buf_clear(&text);
	buf_printf(&text, "http://127.0.0.1:%d/good", http_target_port(f.target));
	buf_add_char(&text, '\0');
	CHECK_STR(t.scrape_url, text.ptr);
	buf_clear(&text);
	buf_printf(&text, "http://ext:%d/good", http_target_port(f.target));
	buf_add_char(&text, '\0');
	CHECK_STR(t.global_url, text.ptr);

	http_target_last_head(f.target, &head);
	CHECK(str_has_prefix(buf_str(&head), STR("GET /good HTTP/1.1\r\n")));
	CHECK(str_find(buf_str(&head), STR("\r\nX-Prometheus-Scrape-Timeout-Seconds: 2.5\r\n")) > 0);
	CHECK(str_find(buf_str(&head), STR("\r\nAccept-Encoding: gzip\r\n")) > 0);
	CHECK(str_find(buf_str(&head), STR("\r\nUser-Agent: Epimetheus/" EPI_VERSION "\r\n")) > 0);
	buf_release(&head);
	buf_release(&text);
	fixture_release(&f);
}

/* Twice in a row, without a skipped turn between. */
static bool is_scraped_on_time(struct fixture *f, const char *profile)
{
	struct target_info first = fixture_see(f, profile), t = first;

	for (int64_t until_ns = 0; t.scrapes < first.scrapes + 2 && wait_more(&until_ns);) {
		t = fixture_see(f, profile);
		if (t.skipped != first.skipped)
			first = t;
	}
	return t.scrapes >= first.scrapes + 2;
}

/* Each hostile endpoint gets its own error, and does not delay the honest one. */
TEST(hostile_targets_are_told_apart_and_harm_nobody)
{
	static const struct {
		const char *name, *path, *want;
	} rows[] = {
		{ "html", "/html",
			"target answers a web page (Content-Type \"text/html; charset=utf-8\"), not a "
			"profile: a login or error page may have answered; check the "
			"address and the credentials" },
		{ "json", "/json", "target answers \"application/json\", not a profile: {\"a\": 1}" },
		{ "legacy", "/legacy", "heap profile (text): its first line is damaged" },
		{ "empty", "/empty",
			"not a profile (Content-Type \"application/octet-stream\"): profile is empty" },
		{ "unavailable", "/503",
			"server returned HTTP status 503 Service Unavailable: profiling is \xc3\xa4ngstlich" },
		{ "notfound", "/404page", "server returned HTTP status 404 Not Found" },
		{ "endless", "/endless",
			"body size limit exceeded: more than 1048576 bytes (body_size_limit of the job)" },
		{ "huge", "/huge",
			"body size limit exceeded: more than 1048576 bytes (body_size_limit of the job)" },
		{ "bomb", "/bomb", "" },
		{ "reset", "/reset", "" },
		{ "drip", "/drip", "context deadline exceeded" },
		{ "silent", "/silent", "context deadline exceeded" },
	};
	enum { N = sizeof(rows) / sizeof(rows[0]), LATE = 2 }; /* the last ones end by their timeout */
	struct buf jobs = { 0 };
	struct fixture f;
	struct target_info t;
	struct err err;

	fixture_init(&f);
	http_target_arm(f.target);
	buf_add_cstr(&jobs,
		"- job_name: j\n  scrape_interval: 2s\n  body_size_limit: 1MB\n"
		"  static_configs: [{targets: [PORT], labels: {" PATIENT "}}]\n"
		"  profiling_config: {pprof_config: {" OFF ", honest: {path: /good}");
	for (size_t i = 0; i < N; i++) {
		if (i == N - LATE)
			buf_add_cstr(&jobs,
				"}}\n- job_name: late\n  scrape_interval: 2s\n"
				"  static_configs: [{targets: [PORT]}]\n"
				"  profiling_config: {pprof_config: {" OFF);
		buf_printf(&jobs, ", %s: {path: %s}", rows[i].name, rows[i].path);
	}
	buf_add_cstr(&jobs,
		"}}\n- job_name: gone\n  static_configs: [{targets: ['127.0.0.1:1']}]\n"
		"  profiling_config: {pprof_config: {" OFF ", refused: {path: /x}}}\n");
	buf_add_char(&jobs, '\0');
	REQUIRE_OK(fixture_apply(&f, jobs.ptr, &err), &err);
	buf_release(&jobs);
	for (size_t i = 0; i < N; i++) {
		t = fixture_wait_scraped(&f, rows[i].name, 0);
		CHECK_INT(t.health, TARGET_DOWN);
		if (rows[i].want[0] && !str_eq(t.last_error, str_of(rows[i].want)))
			CHECK_FAIL("%s: \"" STR_FMT "\", want \"%s\"", rows[i].name, STR_ARG(t.last_error),
				rows[i].want);
	}
	t = fixture_see(&f, "bomb");
	CHECK(str_find(t.last_error, STR("134217728 bytes")) >= 0);
	t = fixture_see(&f, "reset");
	CHECK(t.last_error.len > 0);
	CHECK(WAIT_FOR(str_find((t = fixture_see(&f, "refused")).last_error, STR("efused")) >= 0));
	CHECK(str_find(t.last_error, STR("127.0.0.1:1")) >= 0);
	t = fixture_wait_scraped(&f, "honest", 2);
	CHECK_INT(t.health, TARGET_UP);
	CHECK_INT(t.failures, 0);
	CHECK(is_scraped_on_time(&f, "honest"));
	fixture_release(&f);
}

TEST(nothing_is_shown_before_the_store_has_it)
{
	struct fixture f;
	struct target_info t;
	struct err err;

	fixture_init(&f);
	fake_sink_set(&f.sink, FAKE_HOLD);
	REQUIRE_OK(fixture_apply(&f,
				   "- job_name: j\n  static_configs: [{targets: [PORT], labels: {" PATIENT "}}]\n"
				   "  profiling_config: {pprof_config: {" OFF ", heap: {path: /good}}}\n",
				   &err),
		&err);
	CHECK(fake_sink_wait(&f.sink, "heap{", 1));
	CHECK(WAIT_FOR((t = fixture_see(&f, "heap")).skipped)); /* no pile-up behind a slow store */
	CHECK_INT(t.health, TARGET_UNKNOWN);
	CHECK_INT(t.last_scrape_ns, 0);
	CHECK_INT(t.scrapes, 0);
	CHECK_INT(fake_sink_count(&f.sink, "heap{"), 1);
	fake_sink_set(&f.sink, FAKE_ACK_INSIDE);
	fake_sink_ack_all(&f.sink);
	t = fixture_wait_scraped(&f, "heap", 0);
	CHECK_INT(t.health, TARGET_UP);
	CHECK(t.last_scrape_ns > 0);

	fake_sink_set(&f.sink, FAKE_REFUSE);
	fixture_wait_error(&f, "heap", "store: disk is full");
	CHECK_INT(fixture_see(&f, "heap").health, TARGET_DOWN);
	fake_sink_set(&f.sink, FAKE_ACK_ERROR);
	fixture_wait_error(&f, "heap", "store: sync failed");
	fake_sink_set(&f.sink, FAKE_ACK_INSIDE);
	fixture_wait_error(&f, "heap", "");
	CHECK_INT(fixture_see(&f, "heap").health, TARGET_UP);
	fixture_release(&f);
}

TEST(limits_of_the_job)
{
	static const char *const rows[][2] = {
		{ "sample_limit: 2", "sample limit exceeded (number of samples: 3, limit: 2)" },
		{ "label_limit: 2",
			"label_limit exceeded (metric: \"heap\", number of labels: 3, limit: 2)" },
		{ "label_name_length_limit: 7",
			"label_name_length_limit exceeded (metric: \"heap\", label name: \"__name__\", length: "
			"8, limit: 7)" },
		{ "label_value_length_limit: 10",
			"label_value_length_limit exceeded (metric: \"heap\", label name: \"instance\", value: "
			"\"long-instance\", length: 13, limit: 10)" },
		{ "target_limit: 1", "target_limit exceeded (number of targets: 2, limit: 1)" },
	};
	struct buf job = { 0 };
	struct fixture f;
	struct target_info t;
	struct err err;

	fixture_init(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&job);
		buf_printf(&job,
			"- job_name: j%zu\n"
			"  static_configs: [{targets: [PORT, '127.0.0.1:1'], labels: {" PATIENT "}}]\n"
			"  profiling_config: {pprof_config: {" OFF ", heap: {path: /good}}}\n  %s\n"
			"  relabel_configs: [{source_labels: [__address__], regex: '.*:1', target_label: "
			"__name__, "
			"replacement: other}, {target_label: instance, replacement: long-instance}]\n",
			i, rows[i][0]);
		buf_add_char(&job, '\0');
		CHECK_OK(fixture_apply(&f, job.ptr, &err), &err);
		t = fixture_wait_scraped(&f, "heap", 0);
		CHECK_STR(t.last_error, rows[i][1]);
		CHECK_INT(t.health, TARGET_DOWN);
	}
	CHECK_STR(f.shown.pools[0].error, rows[4][1]);
	buf_release(&job);
	fixture_release(&f);
}

/* Labels of discovery may set any interval, such as 292 years. What is asked for so seldom may be
 * dear, so the first scrape waits too. */
TEST(intervals_of_centuries)
{
	struct fixture f;
	struct err err;

	fixture_init(&f);
	REQUIRE_OK(fixture_apply(&f,
				   "- job_name: j\n  static_configs:\n"
				   "  - targets: ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3', '127.0.0.1:4']\n"
				   "    labels: {__scrape_interval__: 292y}\n"
				   "  profiling_config: {pprof_config: {" OFF ", heap: {path: /good}}}\n",
				   &err),
		&err);
	fixture_look(&f);
	REQUIRE(f.shown.active_n == 4);
	CHECK_INT(f.shown.active[0].interval_ns, INT64_C(292) * 365 * 86400 * NS_PER_S);
	CHECK_INT(f.shown.active[0].health, TARGET_UNKNOWN);
	fixture_release(&f);
}

TEST(a_late_scrape_lets_its_turn_go)
{
	struct fixture f;
	struct target_info t;
	struct err err;

	fixture_init(&f);
	REQUIRE_OK(fixture_apply(&f,
				   "- job_name: j\n  static_configs: [{targets: [PORT], labels: {" PATIENT "}}]\n"
				   "  profiling_config: {pprof_config: {" OFF ", heap: {path: /slow, interval: "
				   "200ms}}}\n",
				   &err),
		&err);
	t = fixture_wait_scraped(&f, "heap", 2);
	CHECK_INT(t.health, TARGET_UP);
	CHECK(t.skipped >= 2);
	CHECK_INT(http_target_counts(f.target).busy_max, 1);
	fixture_release(&f);
}

/* Two jobs want one CPU profiler: they take turns, and each gets its profiles. */
TEST(one_cpu_profile_at_a_time)
{
	struct fixture f;
	struct err err;

	fixture_init(&f);
	REQUIRE_OK(
		fixture_apply(&f,
			"- job_name: a\n  scrape_interval: 500ms\n"
			"  static_configs: [{targets: [PORT], labels: {" PATIENT "}}]\n"
			"  profiling_config: {pprof_config: {" NO_CPU ", process_cpu: {path: /profile}}}\n"
			"- job_name: b\n  scrape_interval: 500ms\n"
			"  static_configs: [{targets: [PORT], labels: {" PATIENT "}}]\n"
			"  profiling_config: {pprof_config: {" NO_CPU ", process_cpu: {path: "
			"/profile}}}\n",
			&err),
		&err);
	CHECK(fake_sink_wait(&f.sink, "job=\"a\"} every 500ms, 2 samples: samples=delta cpu=delta", 2));
	CHECK(fake_sink_wait(&f.sink, "job=\"b\"} every 500ms, 2 samples: samples=delta cpu=delta", 2));
	CHECK_INT(http_target_counts(f.target).busy_max, 1);
	fixture_release(&f);
}

static uint64_t scrapes_least(const struct fixture *f)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < f->shown.active_n; i++)
		if (f->shown.active[i].scrapes < least)
			least = f->shown.active[i].scrapes;
	return least;
}

TEST(a_reload_keeps_what_did_not_change)
{
	static const char *const one = "- job_name: j\n  static_configs: [{targets: [PORT, "
								   "'127.0.0.1:1'], labels: {" PATIENT "}}]\n"
								   "  profiling_config: {pprof_config: {" OFF
								   ", heap: {path: /good}}}\n";
	static const char *const two =
		"- job_name: a\n  static_configs: [{targets: [PORT], labels: {" PATIENT "}}]\n"
		"  profiling_config: {pprof_config: {" OFF ", fresh: {path: /good}}}\n"
		"- job_name: j\n  static_configs: [{targets: [PORT], labels: {" PATIENT "}}]\n"
		"  sample_limit: 1000\n"
		"  profiling_config: {pprof_config: {" OFF ", heap: {path: /good}}}\n";
	struct http_target_counts counts;
	struct fixture f;
	struct target_info t, again;
	struct err err;

	fixture_init(&f);
	REQUIRE_OK(fixture_apply(&f, one, &err), &err);
	fixture_look(&f);
	CHECK_INT(f.shown.active_n, 2);
	CHECK(WAIT_FOR((fixture_look(&f), scrapes_least(&f) >= 3)));
	counts = http_target_counts(f.target);
	CHECK_INT(counts.connections, 1);
	REQUIRE_OK(fixture_apply(&f, two, &err), &err);
	fixture_look(&f);
	REQUIRE(f.shown.active_n == 2 && f.shown.pools_n == 2);
	CHECK_STR(f.shown.pools[0].name, "a");
	CHECK_STR(f.shown.pools[1].name, "j");
	CHECK_INT(f.shown.pools[1].active, 1);
	t = f.shown.active[1];
	CHECK(t.scrapes >= 3 && t.health == TARGET_UP);
	again = fixture_wait_scraped(&f, "heap", t.scrapes);
	CHECK_INT(again.failures, 0);
	fixture_wait_scraped(&f, "fresh", 0);
	CHECK(http_target_counts(f.target).connections <= 2);

	CHECK_ERR(fixture_apply(&f, "- job_name: ''\n", &err), &err, ERR_INVALID,
		"c.yml:3:3: job_name is empty");
	fixture_look(&f);
	CHECK_INT(f.shown.active_n, 2);
	REQUIRE_OK(fixture_apply(&f, "", &err), &err);
	fixture_look(&f);
	CHECK_INT(f.shown.active_n + f.shown.pools_n, 0);
	fixture_release(&f);
}

/* A rule that has the target with one address, or all but it. */
struct address_rule {
	struct shard_rule rule;
	uint64_t key;
	bool all_but;
};

static enum shard_whose address_whose(
	const struct shard_rule *r, uint64_t key, struct shard_reason *why)
{
	const struct address_rule *own = (const struct address_rule *)r;

	if ((key == own->key) != own->all_but)
		return SHARD_OWN;
	if (why)
		snprintf(why->text, sizeof(why->text), "shard b may still scrape it");
	return SHARD_WAITS;
}

/* A target that stays goes on as it was; of one that goes nothing is stored, and no mark says that
 * it is gone: another server goes on with its series. */
TEST(another_rule_of_shards)
{
	static const char *const jobs =
		"- job_name: j\n  static_configs: [{targets: [PORT, '127.0.0.1:1'], labels: {" PATIENT
		"}}]\n  profiling_config: {pprof_config: {" OFF ", heap: {path: /good}}}\n";
	struct address_rule dead = { { .refs = 1, .whose = address_whose },
		shard_key(STR("j"), STR("127.0.0.1:1")), false };
	struct address_rule alive = dead;
	struct shard shard;
	struct fixture f;
	struct target_info t, again;
	struct err err;
	size_t stored;

	fixture_init(&f);
	REQUIRE_OK(fixture_apply(&f, jobs, &err), &err);
	fixture_wait_scraped(&f, "heap", 1);
	CHECK(fake_sink_wait(&f.sink, "heap", 1));
	shard = (struct shard){ .rule = &dead.rule };
	scrape_manager_set_shard(f.manager, &shard); /* the one that answers goes */
	stored = fake_sink_count(&f.sink, "heap");
	fixture_look(&f);
	REQUIRE(f.shown.active_n == 1 && f.shown.dropped_n == 1);
	CHECK_STR(f.shown.active[0].scrape_url, "http://127.0.0.1:1/good?seconds=60");
	CHECK_STR(f.shown.dropped[0].reason, "shard b may still scrape it");
	CHECK_INT(f.shown.pools[0].waiting, 1);
	CHECK_INT(scrape_manager_waiting(f.manager), 1);
	t = fixture_wait_scraped(&f, "heap", f.shown.active[0].scrapes + 2);
	CHECK(t.failures >= 3);
	CHECK_INT(fake_sink_count(&f.sink, "heap"), stored);
	CHECK_INT(fake_sink_numbers(&f.sink, "stale"), 0);
	alive.all_but = true;
	shard = (struct shard){ .rule = &alive.rule };
	scrape_manager_set_shard(f.manager, &shard); /* and comes back */
	CHECK(fake_sink_wait(&f.sink, "heap", stored + 1));
	again = fixture_wait_scraped(&f, "heap", 1);
	CHECK_INT(again.failures, 0);
	/* A rule that changes nothing of the targets leaves them as they are. */
	alive.key++;
	dead.key = 0;
	dead.all_but = true;
	shard = (struct shard){ .rule = &dead.rule };
	scrape_manager_set_shard(f.manager, &shard);
	fixture_look(&f);
	CHECK_INT(f.shown.active_n, 2);
	CHECK_INT(scrape_manager_waiting(f.manager), 0);
	CHECK(f.shown.active[0].scrapes + f.shown.active[1].scrapes >= again.scrapes);
	fixture_release(&f);
	CHECK_INT(dead.rule.refs, 1);
	CHECK_INT(alive.rule.refs, 1);
}

TEST(a_changed_file_reaches_the_targets)
{
	char path[] = "/tmp/epimetheus-targets-XXXXXX.yml";
	struct buf job = { 0 }, text = { 0 };
	struct fixture f;
	struct err err;
	int fd = mkstemps(path, 4);

	REQUIRE(fd >= 0);
	close(fd);
	fixture_init(&f);
	buf_printf(&job,
		"- job_name: j\n  file_sd_configs: [{files: ['%s']}]\n"
		"  profiling_config: {pprof_config: {" OFF ", heap: {path: /good}}}\n"
		"  relabel_configs: [{source_labels: [__address__], regex: 'drop:.*', action: drop}]\n",
		path);
	buf_add_char(&job, '\0');
	REQUIRE_OK(fixture_apply(&f, job.ptr, &err), &err);
	fixture_look(&f);
	CHECK_INT(f.shown.active_n, 0);
	buf_printf(&text, "- targets: ['127.0.0.1:%d', 'drop:1']\n", http_target_port(f.target));
	CHECK_OK(fs_write_file(&fs_posix, path, buf_str(&text), &err), &err);
	CHECK(fake_sink_wait(&f.sink, "heap{", 1));
	fixture_look(&f);
	CHECK_INT(f.shown.active_n, 1);
	REQUIRE(f.shown.dropped_n == 1);
	CHECK_STR(labels_get(f.shown.dropped[0].discovered, STR("__address__")), "drop:1");
	CHECK_STR(f.shown.dropped[0].pool, "j");
	CHECK_INT(f.shown.pools[0].dropped, 1);
	unlink(path);
	buf_release(&job);
	buf_release(&text);
	fixture_release(&f);
}

static void ack_later(void *ctx)
{
	usleep(300000);
	fake_sink_ack_all(ctx);
}

/* Closing cancels requests, and waits for the acknowledgements of the sink. */
TEST(closing_in_the_middle)
{
	struct thread acker = { 0 };
	struct fixture f;
	struct err err;

	fixture_init(&f);
	fake_sink_set(&f.sink, FAKE_HOLD);
	REQUIRE_OK(fixture_apply(&f,
				   "- job_name: j\n  scrape_timeout: 250ms\n  static_configs: [{targets: [PORT]}]\n"
				   "  profiling_config: {pprof_config: {" OFF ", heap: {path: /good}, s: {path: "
				   "/silent}, "
				   "d: {path: /drip}}}\n",
				   &err),
		&err);
	CHECK(fake_sink_wait(&f.sink, "heap{", 1));
	REQUIRE_OK(thread_start(&acker, "acker", ack_later, &f.sink, &err), &err);
	scrape_manager_close(f.manager);
	f.manager = NULL;
	thread_join(&acker);
	fixture_release(&f);
}
