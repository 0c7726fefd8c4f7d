/*
 * Functions over windows of profiles.
 */
#include "tests/promql/world.h"

/* Two pods, one of which profiles 9 s of 10, the other 5 s of 15; levels. */
static void fill_windows(struct world *w)
{
	store(w, "__name__=process_cpu,job=a,pod=p", 10, 10, "main;f 3|main;g 1");
	store(w, "__name__=process_cpu,job=a,pod=p", 20, 10, "main;f 6");
	store(w, "__name__=process_cpu,job=a,pod=p", 30, 10, "main;f 3|main;g 5");
	w->duration_ns = 5 * NS_PER_S;
	store(w, "__name__=process_cpu,job=a,pod=q", 15, 15, "main;f{h=x} 2|main;f{h=y} 4");
	store(w, "__name__=process_cpu,job=a,pod=q", 30, 15, "main;f{h=x} 7|main;h 2");
	w->duration_ns = 0;
	store(w, "__name__=memory,job=a,pod=p", 10, 10, "main;f 100|main;g 30");
	store(w, "__name__=memory,job=a,pod=p", 20, 10, "main;f 51");
	store(w, "__name__=memory,job=a,pod=q", 30, 10, "main;f 9");
}

TEST(rates_of_profiles)
{
	static const struct asked rows[] = {
		/* p: 18 samples, 30 s of which 27 were seen; q: 15, 30 s of which 10 were seen */
		{ 40, "total(rate(process_cpu:samples[1m]))",
			"{job=\"a\", pod=\"p\"} 0.3333333333333333\n{job=\"a\", pod=\"q\"} 0.75" },
		{ 40, "total(merge(rate(process_cpu:samples[1m])))", "{} 1.0833333333333333" },
		{ 40, "sum(total(rate(process_cpu:samples[1m])))", "{} 1.0833333333333333" },
		{ 40, "flat(rate(process_cpu:samples{pod='p'}[1m]))",
			"{function=\"f\", job=\"a\", pod=\"p\"} 0.2222222222222222\n"
			"{function=\"g\", job=\"a\", pod=\"p\"} 0.1111111111111111" },
		{ 40, "flat by (function) (rate(process_cpu:samples[1m]))",
			"{function=\"f\"} 0.8722222222222222\n{function=\"g\"} 0.1111111111111111\n"
			"{function=\"h\"} 0.1" },
		{ 40, "cum by (function) (merge(rate(process_cpu:samples[1m])), {function='main'})",
			"{function=\"main\"} 1.0833333333333333" },
		{ 40, "flat_share by (function) (rate(process_cpu:samples{pod='q'}[1m]))",
			"{function=\"f\"} 0.8666666666666667\n{function=\"h\"} 0.13333333333333333" },
		{ 40, "total(focus(rate(process_cpu:samples[1m]), 'g'))",
			"{job=\"a\", pod=\"p\"} 0.1111111111111111\n{job=\"a\", pod=\"q\"} 0" },
		{ 40, "flat by (h) (rate(process_cpu:samples[1m]))",
			"{} 0.43333333333333335\n{h=\"x\"} 0.45\n{h=\"y\"} 0.2" },
		{ 40, "total(rate(process_cpu:samples{h='y'}[1m]))", "{job=\"a\", pod=\"q\"} 0.2" },
		{ 30,
			"total(rate(process_cpu{pod='q'}[15s]) - rate(process_cpu{pod='q'}[15s] offset "
			"15s))",
			"{job=\"a\", pod=\"q\"} 6000000" },
		{ 30, "rate(process_cpu{pod='p'}[10s]) * 10",
			"process_cpu{job=\"a\", pod=\"p\"} nanoseconds 88888889 of 1: main;f "
			"33333333, main;g 55555556" },
		/* profiles are whole numbers; (20 s, 40 s] has one of each */
		{ 40, "rate(process_cpu{pod='q'}[20s])",
			"process_cpu{job=\"a\", pod=\"q\"} nanoseconds 13500000 of 1: "
			"main;f 10500000, main;h 3000000" },
		{ 40, "rate(process_cpu:samples[1m] offset 1m)", "" },
		{ 40, "total(rate(process_cpu:samples{pod='p'}[10s] offset -10s))", "" },
		{ 20, "total(rate(process_cpu:samples{pod='p'}[10s] offset -10s))",
			"{job=\"a\", pod=\"p\"} 0.8888888888888888" },
		{ 40, "rate(nothing[1m])", "" },
		{ 40, "rate(memory[1m])",
			"invalid input: 1:6: rate() needs amounts that add up in time, got levels: "
			"memory:inuse_space:bytes::; use avg_over_time() for the mean" },
		{ 40, "rate(process_cpu)",
			"invalid input: 1:6: rate() needs a selector with a window: [5m]" },
		{ 40, "rate(merge(process_cpu[1m]))",
			"invalid input: 1:6: rate() needs a selector, got profiles" },
	};

	CHECK_ANSWERS_IN(fill_windows, rows);
}

/* p: f 12, g 6 of 18 in 30 s, 27 of them seen; q: f 13, h 2 of 15, 10 of them seen. */
TEST(rates_stay_fractions)
{
	/* clang-format off */
	static const struct asked rows[] = {
		{ 40, "total(rate(process_cpu:samples[1m]) * 3)",
			"{job=\"a\", pod=\"p\"} 1\n{job=\"a\", pod=\"q\"} 2.25" },
		{ 40, "total(3 * rate(process_cpu:samples{pod='q'}[1m]))",
			"{job=\"a\", pod=\"q\"} 2.25" },
		{ 40, "total(rate(process_cpu:samples[1m]) / 3)",
			"{job=\"a\", pod=\"p\"} 0.1111111111111111\n{job=\"a\", pod=\"q\"} 0.25" },
		{ 40, "total(rate(process_cpu:samples[1m]) * 0)",
			"{job=\"a\", pod=\"p\"} 0\n{job=\"a\", pod=\"q\"} 0" },
		{ 40, "total(rate(process_cpu:samples{pod='q'}[1m]) * -1e-30 / 1e-30 * 1e9)",
			"{job=\"a\", pod=\"q\"} -750000000" },
		{ 40, "total(merge(rate(process_cpu:samples[1m]) * 2))", "{} 2.1666666666666665" },
		{ 40, "flat by (function) (rate(process_cpu:samples[1m]) * 2)",
			"{function=\"f\"} 1.7444444444444445\n{function=\"g\"} 0.2222222222222222\n"
			"{function=\"h\"} 0.2" },
		{ 40, "cum_share by (function) (rate(process_cpu:samples[1m]) * 2, "
		      "{function='main'})",
			"{function=\"main\"} 1" },
		{ 40, "total(focus(rate(process_cpu:samples{pod='p'}[1m]) * 3, 'g'))",
			"{job=\"a\", pod=\"p\"} 0.3333333333333333" },
		{ 40, "rate(process_cpu:samples{pod='p'}[1m]) * 9",
			"process_cpu{job=\"a\", pod=\"p\"} count 3 of 3: main;f 2, main;g 1" },
		{ 40, "rate(process_cpu:samples{pod='p'}[1m]) * 1e300",
			"limit exceeded: 1:1: a cost exceeds 64 bits" },
		{ 40, "total(avg_over_time(process_cpu:samples{pod='q'}[1m]) / 2)",
			"{job=\"a\", pod=\"q\"} 3.75" },
		/* differences */
		{ 30, "total(rate(process_cpu:samples{pod='q'}[15s]) - "
		      "rate(process_cpu:samples{pod='q'}[15s] offset 15s))",
			"{job=\"a\", pod=\"q\"} 0.6" },
		{ 30, "flat(diff(rate(process_cpu:samples{pod='q'}[15s]), "
		      "rate(process_cpu:samples{pod='q'}[15s] offset 15s)))",
			"{function=\"f\", job=\"a\", pod=\"q\"} 0.2\n"
			"{function=\"h\", job=\"a\", pod=\"q\"} 0.4" },
		{ 30, "total(diff(rate(process_cpu:samples{pod='q'}[15s]), "
		      "process_cpu:samples{pod='q'}) * 10)",
			"{job=\"a\", pod=\"q\"} -72" },
		{ 30, "round(total(diff_normalized(rate(process_cpu:samples{pod='q'}[15s]), "
		      "rate(process_cpu:samples{pod='q'}[15s] offset 15s))), 0.001)",
			"{job=\"a\", pod=\"q\"} 0" },
		{ 30, "flat(diff_normalized(rate(process_cpu:samples{pod='q'}[15s]), "
		      "rate(process_cpu:samples{pod='q'}[15s] offset 15s)), {function='h'})",
			"{function=\"h\", job=\"a\", pod=\"q\"} 0.26666666666666666" },
		{ 30, "total(merge(rate(process_cpu:samples{pod='q'}[15s]) - "
		      "rate(process_cpu:samples{pod='q'}[15s] offset 15s)) * 5)",
			"{} 3" },
		/* tables: p 0.22 f, 0.11 g; q 0.65 f, 0.1 h, 0.75 main: rounded in the row */
		{ 40, "top(3, rate(process_cpu:samples[1m]))",
			"process_cpu{job=\"a\", pod=\"p\"} of 0: f 0 0 g 0 0 main 0 0\n"
			"process_cpu{job=\"a\", pod=\"q\"} of 1: f 1 1 h 0 0 main 0 1" },
		{ 40, "top(3, merge(rate(process_cpu:samples[1m])) * 3)",
			"{} of 3: f 3 3 g 0 0 h 0 0" },
	};
	/* clang-format on */

	CHECK_ANSWERS_IN(fill_windows, rows);
}

TEST(one_scrape_of_each_series)
{
	static const struct asked rows[] = {
		{ 40, "last_over_time(process_cpu:samples[1m])",
			"process_cpu{job=\"a\", pod=\"p\"} count 8 of 1: main;f 3, main;g 5\n"
			"process_cpu{job=\"a\", pod=\"q\"} count 9 of 1: main;f 7, main;h 2" },
		{ 40, "max_over_time(process_cpu:samples[1m])",
			"process_cpu{job=\"a\", pod=\"p\"} count 8 of 1: main;f 3, main;g 5\n"
			"process_cpu{job=\"a\", pod=\"q\"} count 9 of 1: main;f 7, main;h 2" },
		{ 40, "min_over_time(process_cpu:samples[1m])",
			"process_cpu{job=\"a\", pod=\"p\"} count 4 of 1: main;f 3, main;g 1\n"
			"process_cpu{job=\"a\", pod=\"q\"} count 6 of 1: main;f 6" },
		{ 40, "merge(min_over_time(process_cpu:samples[1m]))",
			"{} count 10 of 2: main;f 9, main;g 1" },
		{ 40, "min_over_time(process_cpu:samples{h='x'}[1m])",
			"process_cpu{job=\"a\", pod=\"q\"} count 2 of 1: main;f 2" },
		{ 40, "max_over_time(memory[1m])",
			"memory{job=\"a\", pod=\"p\"} bytes 130 of 1: main;f 100, main;g 30\n"
			"memory{job=\"a\", pod=\"q\"} bytes 9 of 1: main;f 9" },
		{ 40, "last_over_time(memory{pod='p'}[1m])",
			"memory{job=\"a\", pod=\"p\"} bytes 51 of 1: main;f 51" },
		{ 40, "max_over_time(memory{pod='p'}[20s])", "" },
		{ 200, "last_over_time(memory{pod='p'}[1m])", "" },
	};

	CHECK_ANSWERS_IN(fill_windows, rows);
}

/*
 * Of levels, in (-20 s, 40 s]: p's scrapes count 10 s and 21 s, as the window ends two intervals
 * behind the last one, q's 20 s. A sum is that of the scrapes.
 */
TEST(sums_means_and_counts)
{
	static const struct asked rows[] = {
		{ 40, "sum_over_time(process_cpu:samples{pod='p'}[1m])",
			"process_cpu{job=\"a\", pod=\"p\"} count 18 of 3: main;f 12, main;g 6" },
		{ 40, "total(avg_over_time(process_cpu:samples[1m]))",
			"{job=\"a\", pod=\"p\"} 6\n{job=\"a\", pod=\"q\"} 7.5" },
		{ 40, "avg_over_time(process_cpu:samples{pod='q'}[1m])",
			"process_cpu{job=\"a\", pod=\"q\"} count 8 of 2: main;f 7, main;h 1" },
		{ 40, "sum_over_time(memory[1m])",
			"memory{job=\"a\", pod=\"p\"} bytes 181 of 2: main;f 151, main;g 30\n"
			"memory{job=\"a\", pod=\"q\"} bytes 9 of 1: main;f 9" },
		/* (100 x 10 + 51 x 21) / 31 + 9, 30 x 10 / 31 */
		{ 40, "flat by (function) (avg_over_time(memory[1m]))",
			"{function=\"f\"} 75.80645161290323\n{function=\"g\"} 9.67741935483871" },
		{ 40, "total(merge(avg_over_time(memory[1m])))", "{} 85.48387096774194" },
		{ 40, "count_over_time(process_cpu[1m])",
			"{job=\"a\", pod=\"p\"} 3\n{job=\"a\", pod=\"q\"} 2" },
		{ 40, "count_over_time(memory[15s])", "{job=\"a\", pod=\"q\"} 1" },
		{ 40, "count_over_time(process_cpu{h='y'}[1m])", "{job=\"a\", pod=\"q\"} 2" },
		{ 40, "present_over_time(memory{pod='q'}[1m])", "{job=\"a\", pod=\"q\"} 1" },
		{ 40, "absent_over_time(memory[1m])", "" },
		{ 200, "absent_over_time(memory{pod='q'}[1m])", "{pod=\"q\"} 1" },
		{ 40, "absent(memory)", "" },
		{ 40, "absent(memory{pod='x', job='a'})", "{job=\"a\", pod=\"x\"} 1" },
		{ 40, "stddev_over_time(memory[1m])",
			"invalid input: 1:18: stddev_over_time() needs numbers, got profiles" },
	};

	CHECK_ANSWERS_IN(fill_windows, rows);
}

TEST(windows_step_by_step)
{
	struct world w;
	struct query_options o = { .step_ns = 10 * NS_PER_S };

	REQUIRE(world_open(&w, NULL));
	fill_windows(&w);
	o.start_ns = w.t0 + 10 * NS_PER_S;
	o.end_ns = w.t0 + 50 * NS_PER_S;
	ask(&w, o, "rate(process_cpu:samples{pod='p'}[10s])",
		"process_cpu{job=\"a\", pod=\"p\"} 10=0.4444444444444444 20=0.6666666666666666 "
		"30=0.8888888888888888");
	ask(&w, o, "flat by (function) (rate(process_cpu:samples[30s]))",
		"{function=\"f\"} 10=0.1111111111111111 20=0.9333333333333333 "
		"30=1.7444444444444445 40=1.6333333333333333 50=0.8111111111111111\n"
		"{function=\"g\"} 10=0.037037037037037035 20=0.037037037037037035 "
		"30=0.2222222222222222 40=0.18518518518518517 50=0.18518518518518517\n"
		"{function=\"h\"} 30=0.2 40=0.2 50=0.2");
	ask(&w, o, "max_over_time(memory[20s])",
		"memory{job=\"a\", pod=\"p\"} 10=130 20=130 30=51\n"
		"memory{job=\"a\", pod=\"q\"} 30=9 40=9");
	ask(&w, o, "avg_over_time(memory{pod='p'}[20s])",
		"memory{job=\"a\", pod=\"p\"} 10=130 20=90.5 30=51");
	ask(&w, o, "count_over_time(process_cpu[20s])",
		"{job=\"a\", pod=\"p\"} 10=1 20=2 30=2 40=1\n"
		"{job=\"a\", pod=\"q\"} 20=1 30=2 40=1");
	ask(&w, o, "last_over_time(process_cpu:samples{pod='q'}[1m] @ end())",
		"process_cpu{job=\"a\", pod=\"q\"} 10=9 20=9 30=9 40=9 50=9");
	ask(&w, o, "total(rate(process_cpu:samples{pod='p'}[10s] @ start() offset -10s))",
		"{job=\"a\", pod=\"p\"} 10=0.6666666666666666 20=0.6666666666666666 "
		"30=0.6666666666666666 40=0.6666666666666666 50=0.6666666666666666");
	ask(&w, o, "absent_over_time(memory{pod='q'}[10s])", "{pod=\"q\"} 10=1 20=1 40=1 50=1");
	world_close(&w);
}

/* Answers about a long time, before its rows are blocks with rollups and after. */
TEST(rollups_give_what_rows_give)
{
	static const struct asked rows[] = {
		{ 0, "total(rate(process_cpu:samples[6h]))",
			"{job=\"a\", pod=\"p\"} 0.011111111111111112\n"
			"{job=\"a\", pod=\"q\"} 0.03333333333333333" },
		{ 0, "flat by (function) (merge(rate(process_cpu:samples[6h])))",
			"{function=\"f\"} 0.04259259259259259\n"
			"{function=\"g\"} 0.001851851851851852" },
		{ 0, "max_over_time(process_cpu:samples[6h])",
			"process_cpu{job=\"a\", pod=\"p\"} count 11 of 1: main;g 1, main;f 10\n"
			"process_cpu{job=\"a\", pod=\"q\"} count 10 of 1: main;f 10" },
		{ 0, "min_over_time(process_cpu:samples{pod='p'}[6h])",
			"process_cpu{job=\"a\", pod=\"p\"} count 1 of 1: main;g 1" },
		{ 0, "count_over_time(process_cpu[6h])",
			"{job=\"a\", pod=\"p\"} 36\n{job=\"a\", pod=\"q\"} 36" },
		{ 0, "total(avg_over_time(memory[6h]))", "{job=\"a\", pod=\"p\"} 26.22222222222222" },
		{ 0, "total(sum_over_time(memory[6h]))", "{job=\"a\", pod=\"p\"} 944" },
	};
	struct db_options o;
	struct db_status status;
	struct world w;
	struct err err;
	char text[64];

	db_options_default(&o);
	o.too_old_ns = 24 * NS_PER_HOUR;
	REQUIRE(world_open_over(&w, o, NULL));
	for (int i = 0; i < 36; i++) {
		int at_s = (i - 35) * 600;

		w.duration_ns = 540 * NS_PER_S; /* p: 0.9 of its time; q: a third */
		snprintf(text, sizeof(text), "main;f %d|main;g 1", i % 2 ? 10 : 0);
		store(&w, "__name__=process_cpu,job=a,pod=p", at_s, 600, text);
		w.duration_ns = 200 * NS_PER_S;
		store(&w, "__name__=process_cpu,job=a,pod=q", at_s, 600, i % 3 ? "main;f 5" : "main;f 10");
		snprintf(text, sizeof(text), "main;f %d", i % 8 * 8);
		store(&w, "__name__=memory,job=a,pod=p", at_s, 600, text);
	}
	for (int round = 0; round < 2; round++) {
		CHECK_ANSWERS(&w, rows);
		if (round > 0)
			break;
		db_options_default(&o); /* with windows that end sooner */
		REQUIRE(world_reopen(&w, o));
		CHECK_OK(db_compact(w.db, &err), &err);
		db_status(w.db, &status);
		CHECK(status.blocks > 0);
	}
	world_close(&w);
}
