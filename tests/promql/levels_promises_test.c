/*
 * What the definition of levels over windows promises (promql/LANGUAGE.md). The engine is asked
 * where a few windows show it, the model (tests/promql/levels) where thousands are needed;
 * levels_test.c compares the two.
 */
#include "tests/promql/levels/stored.h"

/* 2023-11-15, a whole day. */
#define DAY_NS (INT64_C(1700006400) * NS_PER_S)
#define SERIES_MAX 64

/* ---- pods ---- */

struct fleet {
	struct draw d;
	struct levels_series v[SERIES_MAX];
	size_t n;
};

static void fleet_add(struct fleet *f, const struct levels_pod *p)
{
	pod_scrapes(&f->d, p, &f->v[f->n++]);
}

static void fleet_release(struct fleet *f)
{
	levels_release(f->v, f->n);
	f->n = 0;
}

/* Scraped from DAY_NS on for so long, at a stagger that is drawn. */
static struct levels_pod draw_steady(struct draw *d, int64_t interval_ns, int64_t length_ns)
{
	return (struct levels_pod){ .born_ns = DAY_NS - interval_ns,
		.dies_ns = DAY_NS + length_ns,
		.interval_ns = interval_ns,
		.stagger_ns = draw_time(d, interval_ns) / 10 * 10,
		.value = 10 };
}

static long double model_mean(const struct fleet *f, int64_t min_ns, int64_t max_ns)
{
	struct levels_window w = { .min_ns = min_ns, .max_ns = max_ns, .doubles = true };
	size_t rows;

	return levels_mean(f->v, f->n, w, &rows);
}

static bool is_exact(long double got, long double want)
{
	return fabsl(got - want) <= 1e-15L * fabsl(want);
}

/* ---- constants ---- */

/* Engine: any stagger, any window of 2.1 intervals and more, also with whole hours. */
static void ask_constants(struct stored *s, struct draw *d, const char *job, int64_t interval_ns,
	int64_t length_ns, const char *when)
{
	char text[128];

	for (int i = 0; i < 40; i++) {
		int64_t most_ns = i % 2 ? 10 * interval_ns : length_ns - interval_ns;
		int64_t window_ms = (interval_ns / 10 * 21 + draw_time(d, most_ns - interval_ns * 2)) /
				NS_PER_MS +
			1;
		int64_t left_ns = length_ns - window_ms * NS_PER_MS;
		int64_t at_ns = DAY_NS + length_ns - (left_ns > 0 ? draw_time(d, left_ns) : 0);
		double got;

		if (i % 4 == 0) /* ends on an hour */
			at_ns = DAY_NS + (1 + draw_time(d, length_ns / LEVELS_HOUR)) * LEVELS_HOUR;
		if (at_ns - window_ms * NS_PER_MS < DAY_NS)
			window_ms = (at_ns - DAY_NS) / NS_PER_MS;
		snprintf(text, sizeof(text), "total(merge(goroutine{job=\"%s\"}[%" PRId64 "ms]))", job,
			window_ms);
		got = stored_number(s, at_ns, text);
		if (!stored_is(got, 30))
			CHECK_FAIL("%s at %" PRId64 " ns, %s: is %.17g, want 30", text, at_ns, when, got);
	}
}

TEST(constants_are_exact_in_the_engine)
{
	static const int64_t intervals_s[] = { 5, 10, 15, 60 };
	static const char *const jobs[] = { "a", "b", "c", "d" };
	const int64_t length_ns = 3 * LEVELS_HOUR;
	struct fleet f = { .d = { .state = 21 } };
	struct stored s;
	char labels[64];

	REQUIRE(stored_open(&s, 2 * LEVELS_HOUR, 0));
	for (size_t i = 0; i < 4; i++)
		for (int pod = 0; pod < 3; pod++) {
			struct levels_pod p = draw_steady(&f.d, intervals_s[i] * NS_PER_S, length_ns);

			snprintf(labels, sizeof(labels), "__name__=goroutine,job=%s,pod=%d", jobs[i], pod);
			fleet_add(&f, &p);
			stored_fill(&s, labels, &f.v[f.n - 1]);
		}
	for (size_t i = 0; i < 4; i++)
		ask_constants(&s, &f.d, jobs[i], intervals_s[i] * NS_PER_S, length_ns, "from the head");
	CHECK(stored_compact(&s, true) > 0);
	for (size_t i = 0; i < 4; i++)
		ask_constants(&s, &f.d, jobs[i], intervals_s[i] * NS_PER_S, length_ns, "from blocks");
	fleet_release(&f);
	stored_close(&s);
}

/* Model: likewise, of many more windows; with scrapes up to a tenth late, those below an hour. */
static void check_constants(unsigned jitter, int64_t longest_ns, unsigned rounds)
{
	static const int64_t intervals_s[] = { 5, 10, 12, 15, 30, 60 };
	struct fleet f = { .d = { .state = 22 + jitter } };

	for (unsigned round = 0; round < rounds; round++) {
		int64_t interval_ns = intervals_s[round % 6] * NS_PER_S;
		int64_t shortest_ns = interval_ns / 10 * 21;

		for (unsigned pod = 0; pod < 3; pod++) {
			struct levels_pod p = draw_steady(&f.d, interval_ns, 5 * LEVELS_HOUR);

			p.jitter = jitter;
			fleet_add(&f, &p);
		}
		for (unsigned i = 0; i < 100; i++) {
			int64_t length_ns = shortest_ns +
				draw_time(&f.d, (i % 2 ? longest_ns : 10 * interval_ns) - shortest_ns);
			int64_t min_ns = DAY_NS + LEVELS_MINUTE + draw_time(&f.d, LEVELS_HOUR);
			long double got = model_mean(&f, min_ns, min_ns + length_ns);

			if (!is_exact(got, 30))
				CHECK_FAIL("every %" PRId64 " s, jitter %u, %" PRId64 " ns from %" PRId64
						   ": %.17Lg, want 30",
					interval_ns / NS_PER_S, jitter, length_ns, min_ns, got);
		}
		fleet_release(&f);
	}
}

TEST(constants_are_exact_at_any_stagger)
{
	check_constants(0, 3 * LEVELS_HOUR, 60);
}

TEST(constants_are_exact_below_an_hour_if_scrapes_are_late)
{
	check_constants(100, LEVELS_HOUR, 60);
}

/* Engine: three pods, 3 s apart, every 10 s. */
TEST(three_pods_apart_are_three)
{
	static const char *const windows[] = { "21s", "30s", "1m", "5m" };
	struct fleet f = { .d = { .state = 23 } };
	struct stored s;
	char text[96];

	REQUIRE(stored_open(&s, 2 * LEVELS_HOUR, 0));
	for (int pod = 0; pod < 3; pod++) {
		struct levels_pod p = { .born_ns = DAY_NS,
			.dies_ns = DAY_NS + 20 * NS_PER_MIN,
			.interval_ns = 10 * NS_PER_S,
			.stagger_ns = (1 + 3 * pod) * NS_PER_S,
			.value = 10 };

		snprintf(text, sizeof(text), "__name__=goroutine,pod=%d", pod);
		fleet_add(&f, &p);
		stored_fill(&s, text, &f.v[pod]);
	}
	for (size_t i = 0; i < 4; i++)
		for (int at_s = 400; at_s < 411; at_s++) {
			double got;

			snprintf(text, sizeof(text), "total(merge(goroutine[%s]))", windows[i]);
			got = stored_number(&s, DAY_NS + at_s * NS_PER_S, text);
			if (!stored_is(got, 30))
				CHECK_FAIL("%s at %d s: is %.17g, want 30", text, at_s, got);
		}
	fleet_release(&f);
	stored_close(&s);
}

/* Engine: windows that follow each other are parts of the whole. */
TEST(steps_add_up)
{
	const int64_t steps_s[] = { 30, 60, 97, 300 };
	struct fleet f = { .d = { .state = 24 } };
	struct stored s;

	REQUIRE(stored_open(&s, 2 * LEVELS_HOUR, 0));
	for (int pod = 0; pod < 3; pod++) {
		struct levels_pod p = draw_steady(&f.d, 10 * NS_PER_S, 40 * NS_PER_MIN);
		char labels[64];

		snprintf(labels, sizeof(labels), "__name__=goroutine,pod=%d", pod);
		fleet_add(&f, &p);
		stored_fill(&s, labels, &f.v[pod]);
	}
	for (size_t i = 0; i < 4; i++) {
		struct query_options o = { .text = STR("total(merge(goroutine))"), .has_span = true,
									   .start_ns = DAY_NS + (7 + steps_s[i]) * NS_PER_S,
									   .step_ns = steps_s[i] * NS_PER_S };
		long double sum = 0;
		struct query *q;
		struct err err;

		o.end_ns = o.start_ns + 6 * o.step_ns;
		REQUIRE_OK(query_run(s.w.engine, &o, &q, &err), &err);
		REQUIRE(query_result(q)->n == 1);
		CHECK_INT(query_result(q)->matrix[0].n, 7);
		for (size_t k = 0; k < query_result(q)->matrix[0].n; k++)
			sum += (long double)query_result(q)->matrix[0].points[k].value * o.step_ns;
		query_close(q);
		o = (struct query_options){ .text = STR("total(merge(goroutine))"), .has_span = true,
										.start_ns = o.start_ns - o.step_ns, .end_ns = o.end_ns };
		REQUIRE_OK(query_run(s.w.engine, &o, &q, &err), &err);
		REQUIRE(query_result(q)->n == 1);
		if (!stored_is(query_result(q)->vector[0].value, sum / (o.end_ns - o.start_ns)))
			CHECK_FAIL("steps of %" PRId64 " s: the whole is %.17g, its parts %.17Lg", steps_s[i],
				query_result(q)->vector[0].value, sum / (o.end_ns - o.start_ns));
		query_close(q);
	}
	fleet_release(&f);
	stored_close(&s);
}

/* ---- misses ---- */

/* Model: 30 pods, a scrape of twenty is missed. */
TEST(misses_cost_little_in_whole_hours)
{
	const unsigned seeds = 40;
	long double sum = 0;

	for (unsigned seed = 0; seed < seeds; seed++) {
		struct fleet f = { .d = { .state = 100 + seed } };

		for (int pod = 0; pod < 30; pod++) {
			struct levels_pod p = draw_steady(&f.d, 10 * NS_PER_S, 2 * LEVELS_HOUR);

			p.misses = 50;
			fleet_add(&f, &p);
		}
		sum += model_mean(&f, DAY_NS, DAY_NS + (1 + seed % 2) * LEVELS_HOUR);
		fleet_release(&f);
	}
	if (fabsl(sum / seeds / 300 - 1) > 0.01L)
		CHECK_FAIL("the mean is %Lg, want 300 to 1 %%", sum / seeds);
}

/* Engine and model: a pod among three lacks its last scrape in the window; or its first. */
struct missed {
	unsigned job;
	int64_t from_ns, to_ns; /* no scrape comes in (from, to] */
	int64_t stagger_ns, max_ns;
};

/* It is lower by one interval of the window at most, and never higher. */
static void check_missed(struct stored *s, const struct missed *m)
{
	const int64_t window_ns = NS_PER_MIN;
	struct fleet f = { .d = { .state = 25 } };
	long double got[2];
	char text[96];

	for (int pod = 0; pod < 3; pod++) {
		struct levels_pod p = { .born_ns = DAY_NS,
			.dies_ns = DAY_NS + 5 * NS_PER_MIN,
			.interval_ns = 10 * NS_PER_S,
			.stagger_ns = pod ? pod * 3 * NS_PER_S : m->stagger_ns,
			.away_from_ns = pod ? 0 : m->from_ns,
			.away_to_ns = pod ? 0 : m->to_ns,
			.value = 10 };

		snprintf(text, sizeof(text), "__name__=goroutine,job=%u,pod=%d", m->job, pod);
		fleet_add(&f, &p);
		stored_fill(s, text, &f.v[pod]);
	}
	snprintf(text, sizeof(text), "total(merge(goroutine{job=\"%u\"}[1m]))", m->job);
	got[0] = model_mean(&f, m->max_ns - window_ns, m->max_ns);
	got[1] = stored_number(s, m->max_ns, text);
	for (int i = 0; i < 2; i++)
		if (!(got[i] <= 30 + 1e-9L && got[i] >= 30 - 10.L / 6 - 1e-9L))
			CHECK_FAIL("%s, job %u, stagger %" PRId64
					   " ms: %.17Lg, want 30, or less by at most 1.7",
				i ? "engine" : "model", m->job, m->stagger_ns / NS_PER_MS, got[i]);
	fleet_release(&f);
}

TEST(a_missed_scrape_at_an_edge_costs_an_interval_at_most)
{
	const int64_t max_ns = DAY_NS + 3 * NS_PER_MIN, min_ns = max_ns - NS_PER_MIN;
	const int64_t interval_ns = 10 * NS_PER_S;
	struct missed m = { .max_ns = max_ns };
	struct stored s;

	REQUIRE(stored_open(&s, 2 * LEVELS_HOUR, 0));
	for (unsigned i = 0; i < 40; i++) {
		m.job = i;
		m.stagger_ns = (1 + i / 2) * (NS_PER_S / 2);
		m.from_ns = i % 2 ? max_ns - interval_ns : min_ns;
		m.to_ns = m.from_ns + interval_ns;
		check_missed(&s, &m);
	}
	stored_close(&s);
}

/* ---- pods that come and go ---- */

/*
 * Engine: a pod that lived a minute of five counts a fifth, to one interval of the five minutes; or
 * to 1.1 if it dies so late that it could still be there.
 */
TEST(a_minute_of_five_is_a_fifth)
{
	const int64_t interval_ns = 10 * NS_PER_S, max_ns = DAY_NS + 10 * NS_PER_MIN;
	struct fleet f = { .d = { .state = 26 } };
	struct stored s;
	char text[96];

	REQUIRE(stored_open(&s, 2 * LEVELS_HOUR, 0));
	for (unsigned job = 0; job < 30; job++) {
		struct levels_pod steady = draw_steady(&f.d, interval_ns, 11 * NS_PER_MIN), brief = steady;
		double got, most;

		brief.born_ns = max_ns - 5 * NS_PER_MIN + draw_time(&f.d, 4 * NS_PER_MIN) / 10 * 10;
		brief.dies_ns = brief.born_ns + NS_PER_MIN;
		brief.stagger_ns = draw_time(&f.d, interval_ns) / 10 * 10;
		fleet_add(&f, &steady);
		fleet_add(&f, &brief);
		snprintf(text, sizeof(text), "__name__=goroutine,job=%u,pod=steady", job);
		stored_fill(&s, text, &f.v[0]);
		snprintf(text, sizeof(text), "__name__=goroutine,job=%u,pod=brief", job);
		stored_fill(&s, text, &f.v[1]);
		fleet_release(&f);
		snprintf(text, sizeof(text), "total(merge(goroutine{job=\"%u\"}[5m])) - 10", job);
		got = stored_number(&s, max_ns, text);
		most = max_ns - brief.dies_ns > 21 * NS_PER_S ? 10. * 10 / 300 : 10. * 11 / 300;
		if (!(fabs(got - 2) <= most + 1e-9))
			CHECK_FAIL("%s: is %.17g, want 2 to %.3g", text, got, most);
	}
	stored_close(&s);
}

/* Model: three pods die in mid-window, and three others are there at once. */
static void check_replaced(int64_t window_ns)
{
	const unsigned staggers = 2000;
	const int64_t interval_ns = 10 * NS_PER_S;
	struct fleet f = { .d = { .state = 27 } };
	long double sum = 0;

	for (unsigned i = 0; i < staggers; i++) {
		int64_t min_ns = DAY_NS + 20 * NS_PER_MIN, mid_ns = min_ns + window_ns / 2;

		for (int pod = 0; pod < 6; pod++) {
			struct levels_pod p = draw_steady(&f.d, interval_ns, LEVELS_HOUR);

			if (pod < 3)
				p.dies_ns = mid_ns;
			else
				p.born_ns = mid_ns;
			fleet_add(&f, &p);
		}
		sum += model_mean(&f, min_ns, min_ns + window_ns);
		fleet_release(&f);
	}
	if (fabsl(sum / staggers / 30 - 1) > 0.01L)
		CHECK_FAIL("%" PRId64 " s: the mean is %Lg, want 30 to 1 %%", window_ns / NS_PER_S,
			sum / staggers);
}

TEST(three_replaced_pods_are_three)
{
	check_replaced(NS_PER_MIN);
	check_replaced(5 * NS_PER_MIN);
}

/* ---- unions ---- */

/* Whole hours, of scrapes that go to one of two databases in turn. */
static void ask_shared(struct stored *s, const char *when)
{
	static const char *const windows[] = { "1m", "30m", "1h", "2h" };
	char text[96];
	double got;

	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		snprintf(text, sizeof(text), "total(merge(goroutine[%s]))", windows[i]);
		got = stored_number(s, DAY_NS + 2 * LEVELS_HOUR, text);
		if (!stored_is(got, 30))
			CHECK_FAIL("%s, %s: is %.17g, want 30", text, when, got);
	}
}

/* Engine: no scrape is missing, though each database lacks every other one. */
TEST(series_that_two_databases_share_count_once)
{
	struct fleet f = { .d = { .state = 28 } };
	struct stored s;
	char text[64];

	REQUIRE(stored_open(&s, 2 * LEVELS_HOUR, 2));
	for (int pod = 0; pod < 3; pod++) {
		struct levels_pod p = draw_steady(&f.d, 10 * NS_PER_S, 2 * LEVELS_HOUR);
		struct labels labels;

		snprintf(text, sizeof(text), "__name__=goroutine,pod=%d", pod);
		labels = stored_labels(&s, text);
		fleet_add(&f, &p);
		for (size_t i = 0; i < f.v[pod].n; i++)
			stored_append_to(&s, s.members[i % 2], labels, &f.v[pod].rows[i]);
		stored_wait(&s);
	}
	ask_shared(&s, "from heads");
	CHECK(stored_compact(&s, true) > 0);
	ask_shared(&s, "from blocks");
	fleet_release(&f);
	stored_close(&s);
}
