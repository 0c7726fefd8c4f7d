
#include "tests/promql/world.h"
#include "tests/tsdb/read/numbers.h"

/* Values of numeric series: "10=1 20=0.5 30=stale", seconds after t0. */
static void put(struct world *w, const char *labels, const char *text)
{
	struct labels l = labels_of(&w->arena, labels);
	struct db_number v[64];
	struct err err;
	size_t n = 0;
	char *at;

	while (*text) {
		v[n].labels = l;
		v[n].ts_ns = w->t0 + strtoll(text, &at, 10) * NS_PER_S;
		if (!strncmp(++at, "stale", 5)) {
			v[n++].value = number_of_bits(NUMBER_STALE_BITS);
			at += 5;
		} else {
			v[n++].value = strtod(at, &at);
		}
		text = at + (*at == ' ');
	}
	CHECK_OK(numbers_wait(w->db, v, n, &err), &err);
}

static void fill_numbers(struct world *w)
{
	fill(w);
	put(w, "__name__=up,job=a,instance=1", "10=1 20=1 30=0 40=1");
	put(w, "__name__=up,job=a,instance=2", "10=1 20=stale");
	put(w, "__name__=up,job=b,instance=3", "10=0");
	put(w, "__name__=job:cost:rate,job=a", "10=0.5 20=1.5 30=4 40=NaN");
}

TEST(selectors_of_numbers_are_costs)
{
	/* clang-format off */
	static const struct asked rows[] = {
		{ 40, "up", "up{instance=\"1\", job=\"a\"} 1\nup{instance=\"3\", job=\"b\"} 0" },
		{ 30, "up{instance='1'}", "up{instance=\"1\", job=\"a\"} 0" },
		{ 15, "up{job='a'}",
			"up{instance=\"1\", job=\"a\"} 1\nup{instance=\"2\", job=\"a\"} 1" },
		{ 309, "up{instance='3'}", "up{instance=\"3\", job=\"b\"} 0" },
		{ 310, "up{instance='3'}", "" }, /* behind the lookback */
		{ 9, "up", "" },
		{ 40, "up offset 10s",
			"up{instance=\"1\", job=\"a\"} 0\n"
			"up{instance=\"3\", job=\"b\"} 0" },
		{ 40, "up{nothing='x'}", "" },
		{ 40, "up{nothing=''} == 1", "up{instance=\"1\", job=\"a\"} 1" },
		{ 40, "sum by (job) (up)", "{job=\"a\"} 1\n{job=\"b\"} 0" },
		{ 40, "count(up) + 1", "{} 3" },
		{ 30, "job:cost:rate * 2", "{job=\"a\"} 8" },
		{ 40, "-up{job='b'}", "{instance=\"3\", job=\"b\"} -0" },
		{ 40, "{__name__=~'u.'}",
			"up{instance=\"1\", job=\"a\"} 1\nup{instance=\"3\", job=\"b\"} 0" },
		{ 40, "up * on (job) group_left total(merge by (job) (process_cpu:samples[1m]))",
			"{instance=\"1\", job=\"a\"} 43\n{instance=\"3\", job=\"b\"} 0" },
		{ 40, "merge(up)", "invalid input: 1:7: merge() needs profiles, got costs" },
		{ 40, "up{job='a'}[1m]",
			"up{instance=\"1\", job=\"a\"} 10=1 20=1 30=0 40=1\n"
			"up{instance=\"2\", job=\"a\"} 10=1" },
		{ 40, "{__name__='up', job='b'}[1m]", "up{instance=\"3\", job=\"b\"} 10=0" },
		{ 40, "total(up[1m])",
			"invalid input: 1:7: up[1m] are numbers: use avg_over_time() or a similar function" },
		{ 40, "changes(process_cpu[1m])",
			"invalid input: 1:9: changes() needs numbers, got profiles" },
	};
	/* clang-format on */

	CHECK_ANSWERS_IN(fill_numbers, rows);
}

TEST(functions_over_windows_of_numbers)
{
	/* clang-format off */
	static const struct asked rows[] = {
		{ 40, "sum_over_time(up[1m])",
			"{instance=\"1\", job=\"a\"} 3\n"
			"{instance=\"2\", job=\"a\"} 1\n"
			"{instance=\"3\", job=\"b\"} 0" },
		{ 40, "count_over_time(up{job='a'}[21s])", "{instance=\"1\", job=\"a\"} 3" },
		{ 40, "count_over_time(up{job='a'}[20s])", "{instance=\"1\", job=\"a\"} 2" },
		{ 40, "avg_over_time(up{instance='1'}[1m])", "{instance=\"1\", job=\"a\"} 0.75" },
		{ 40, "min_over_time(up{instance='1'}[1m])", "{instance=\"1\", job=\"a\"} 0" },
		{ 40, "max_over_time(job:cost:rate[1m])", "{job=\"a\"} 4" },
		{ 40, "last_over_time(up{instance='2'}[1m])", "up{instance=\"2\", job=\"a\"} 1" },
		{ 30, "stddev_over_time(job:cost:rate[1m])", "{job=\"a\"} 1.4719601443879744" },
		{ 30, "stdvar_over_time(job:cost:rate[1m])", "{job=\"a\"} 2.1666666666666665" },
		{ 30, "quantile_over_time(0.75, job:cost:rate[1m])", "{job=\"a\"} 2.75" },
		{ 30, "quantile_over_time(2, job:cost:rate[1m])", "{job=\"a\"} +Inf" },
		{ 40, "changes(up{instance='1'}[1m])", "{instance=\"1\", job=\"a\"} 2" },
		{ 40, "present_over_time(up{job='b'}[1m])", "{instance=\"3\", job=\"b\"} 1" },
		{ 40, "absent_over_time(up[1m])", "" },
		{ 40, "absent_over_time(up{job='c', instance=~'x', a='1', a='2'}[1m])",
			"{job=\"c\"} 1" },
		{ 200, "absent_over_time(up{job='b'}[1m])", "{job=\"b\"} 1" },
		{ 40, "avg_over_time(up)",
			"invalid input: 1:15: avg_over_time() needs a selector with a "
			"window: [5m]" },
	};
	/* clang-format on */

	CHECK_ANSWERS_IN(fill_numbers, rows);
}

TEST(numbers_step_by_step)
{
	struct world w;
	struct query_options o = { .step_ns = 10 * NS_PER_S };

	REQUIRE(world_open(&w, NULL));
	fill_numbers(&w);
	o.start_ns = w.t0;
	o.end_ns = w.t0 + 50 * NS_PER_S;
	ask(&w, o, "up{job='a'}",
		"up{instance=\"1\", job=\"a\"} 10=1 20=1 30=0 40=1 50=1\n"
		"up{instance=\"2\", job=\"a\"} 10=1");
	ask(&w, o, "sum_over_time(up{instance='1'}[20s])",
		"{instance=\"1\", job=\"a\"} 10=1 20=2 30=1 40=1 50=1");
	ask(&w, o, "up{instance='1'} @ end()",
		"up{instance=\"1\", job=\"a\"} 0=1 10=1 20=1 30=1 40=1 50=1");
	o.start_ns = w.t0 + 60 * NS_PER_S; /* what came before counts within the lookback */
	o.end_ns = w.t0 + 61 * NS_PER_S;
	ask(&w, o, "up{job='a'}", "up{instance=\"1\", job=\"a\"} 60=1");
	world_close(&w);
}
