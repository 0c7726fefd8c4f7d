#include "base/metrics.h"

#include "base/thread.h"
#include "tests/check.h"

METRIC_COUNTER(plain, "test_plain_total", "Help with \\ and\nnewline.", NULL);
METRIC_COUNTER(by_result, "test_results_total", "Results.", "result");
METRIC_GAUGE(level, "test_level", "Level.", NULL);
METRIC_HISTOGRAM(seconds, "test_seconds", "Time.", NULL);
METRIC_HISTOGRAM(seconds_by, "test_by_seconds", "Time by kind.", "kind");
METRIC_COUNTER(many, "test_many_total", "Many values.", "v");
METRIC_COUNTER(raced, "test_raced_total", "From many threads.", "v");
METRIC_COUNTER(never, "test_never_total", "Never counted.", "v");

static bool info_labels(size_t i, struct metric_label labels[METRIC_INFO_LABELS_MAX])
{
	labels[0] = (struct metric_label){ "name", i ? "b" : "a\"" };
	labels[1] = (struct metric_label){ "version", "1" };
	return i < 2;
}

METRIC_INFO(info, "test_info", "Two rows.", info_labels);

/* The lines of one metric, HELP and TYPE included. */
static bool shows(const char *want)
{
	struct buf b = { 0 };
	bool found;

	metrics_print(&b);
	found = str_find(buf_str(&b), str_of(want)) >= 0;
	if (!found)
		printf(STR_FMT, STR_ARG(buf_str(&b)));
	buf_release(&b);
	return found;
}

TEST(counter_and_gauge)
{
	CHECK(shows("# HELP test_plain_total Help with \\\\ and\\nnewline.\n"
				"# TYPE test_plain_total counter\n"
				"test_plain_total 0\n"));
	metric_add(&plain, NULL, 1);
	metric_add(&plain, NULL, 1.5);
	CHECK(metric_get(&plain, NULL) == 2.5);
	CHECK(shows("\ntest_plain_total 2.5\n"));
	CHECK(shows("# HELP test_level Level.\n# TYPE test_level gauge\ntest_level 0\n"));
	metric_set(&level, NULL, 7);
	metric_add(&level, NULL, -10);
	CHECK(shows("\ntest_level -3\n"));
	CHECK(metric_get(&by_result, "none") == 0);
}

TEST(labels_are_sorted_and_escaped)
{
	metric_add(&by_result, "ok", 3);
	metric_add(&by_result, "a\"b\\\n\xff", 1);
	metric_add(&by_result, NULL, 2);
	CHECK(shows("# HELP test_results_total Results.\n# TYPE test_results_total counter\n"
				"test_results_total{result=\"\"} 2\n"
				"test_results_total{result=\"a\\\"b\\\\\\n\xef\xbf\xbd\"} 1\n"
				"test_results_total{result=\"ok\"} 3\n"));
}

TEST(info_has_constant_rows)
{
	CHECK(shows("# HELP test_info Two rows.\n# TYPE test_info gauge\n"
				"test_info{name=\"a\\\"\",version=\"1\"} 1\n"
				"test_info{name=\"b\",version=\"1\"} 1\n"));
}

TEST(histogram)
{
	CHECK(shows("test_seconds_bucket{le=\"+Inf\"} 0\ntest_seconds_sum 0\ntest_seconds_count 0\n"));
	metric_observe(&seconds, NULL, 0.001);
	metric_observe(&seconds, NULL, 0.3);
	metric_observe(&seconds, NULL, 1000);
	CHECK(shows("# HELP test_seconds Time.\n# TYPE test_seconds histogram\n"
				"test_seconds_bucket{le=\"0.001\"} 1\ntest_seconds_bucket{le=\"0.0025\"} 1\n"
				"test_seconds_bucket{le=\"0.006\"} 1\ntest_seconds_bucket{le=\"0.015\"} 1\n"
				"test_seconds_bucket{le=\"0.04\"} 1\ntest_seconds_bucket{le=\"0.1\"} 1\n"
				"test_seconds_bucket{le=\"0.25\"} 1\ntest_seconds_bucket{le=\"0.6\"} 2\n"
				"test_seconds_bucket{le=\"1.5\"} 2\ntest_seconds_bucket{le=\"4\"} 2\n"
				"test_seconds_bucket{le=\"10\"} 2\ntest_seconds_bucket{le=\"25\"} 2\n"
				"test_seconds_bucket{le=\"60\"} 2\ntest_seconds_bucket{le=\"150\"} 2\n"
				"test_seconds_bucket{le=\"+Inf\"} 3\n"
				"test_seconds_sum 1000.301\ntest_seconds_count 3\n"));
	CHECK(metric_get(&seconds, NULL) == 1000.301);
	metric_observe(&seconds_by, "cpu", 0.5);
	CHECK(shows("test_by_seconds_bucket{kind=\"cpu\",le=\"0.25\"} 0\n"
				"test_by_seconds_bucket{kind=\"cpu\",le=\"0.6\"} 1\n"));
	CHECK(shows("test_by_seconds_sum{kind=\"cpu\"} 0.5\ntest_by_seconds_count{kind=\"cpu\"} 1\n"));
}

TEST(values_are_bounded)
{
	char value[16];

	for (int i = 0; i < 200; i++) {
		snprintf(value, sizeof(value), "v%d", i);
		metric_add(&many, value, 1);
	}
	metric_add(&many, "v5", 1);
	CHECK(metric_get(&many, "v5") == 2);
	CHECK(metric_get(&many, "v63") == 1);
	CHECK(metric_get(&many, "v64") == 0);
	CHECK(metric_get(&many, "other") == 136);
	CHECK(shows("test_many_total{v=\"other\"} 136\n"));
}

static void add_many(void *ctx)
{
	char value[16];

	for (int i = 0; i < 20000; i++) {
		snprintf(value, sizeof(value), "v%d", i % 100);
		metric_add(&raced, value, 1);
	}
}

TEST(threads_lose_nothing)
{
	struct thread t[4];
	char value[16];
	double sum = metric_get(&raced, "other");
	struct err err;

	for (int i = 0; i < 4; i++)
		REQUIRE_OK(thread_start(&t[i], "adder", add_many, NULL, &err), &err);
	for (int i = 0; i < 4; i++)
		thread_join(&t[i]);
	sum = metric_get(&raced, "other");
	for (int i = 0; i < 100; i++) {
		snprintf(value, sizeof(value), "v%d", i);
		sum += metric_get(&raced, value);
	}
	CHECK(sum == 80000);
	CHECK(metric_get(&raced, "other") == 80000 * 36 / 100);
}

static void set_level(void *ctx)
{
	metric_set(&level, NULL, *(double *)ctx);
}

TEST(collectors_run_before_each_exposition)
{
	double v = 41;

	metric_collector_add(set_level, &v);
	CHECK(shows("\ntest_level 41\n"));
	v = 42;
	CHECK(shows("\ntest_level 42\n"));
	metric_collector_remove(set_level, &v);
	metric_collector_remove(set_level, &v);
	v = 43;
	CHECK(shows("\ntest_level 42\n"));
}

TEST(whole_exposition_is_in_order)
{
	struct buf b = { 0 };
	struct str rest, last = STR("");
	int families = 0;

	metrics_print(&b);
	CHECK(str_find(buf_str(&b), STR("test_never")) < 0);
	CHECK(b.ptr[b.len - 1] == '\n');
	for (rest = buf_str(&b); rest.len;) {
		size_t n = (size_t)((const char *)memchr(rest.ptr, '\n', rest.len) - rest.ptr);
		struct str line = { rest.ptr, n };

		rest = (struct str){ rest.ptr + n + 1, rest.len - n - 1 };
		if (!str_has_prefix(line, STR("# HELP ")))
			continue;
		families++;
		line = (struct str){ line.ptr + 7, line.len - 7 };
		line.len = (size_t)str_find(line, STR(" "));
		CHECK(str_cmp(last, line) < 0);
		last = line;
	}
	CHECK(families >= 6);
	buf_release(&b);
}

static void note_never(
	void *ctx, const char *name, const char *kind, const char *label, const char *help)
{
	struct buf *out = ctx;

	if (str_has_prefix(str_of(name), STR("test_never")) ||
			str_has_prefix(str_of(name), STR("test_plain")))
		buf_printf(out, "%s %s %s %s;", name, kind, label ? label : "-", help);
}

TEST(walk_has_families_without_a_value_too)
{
	struct buf b = { 0 };

	CHECK(metrics_walk(note_never, &b));
	CHECK_STR(buf_str(&b),
		"test_never_total counter v Never counted.;"
		"test_plain_total counter - Help with \\ and\nnewline.;");
	buf_release(&b);
}
