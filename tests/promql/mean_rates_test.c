/*
 * mean_rate(): cost per second of a window that begins no earlier than the first profile of the
 * group. The expected numbers follow from the profiles by hand.
 */
#include "tests/promql/world.h"

#define CPU_OF(pod) "__name__=process_cpu,job=a,pod=" pod

/* A job took 2,900 samples in 15 min and sent them as one profile. */
TEST(mean_rate_of_one_pushed_profile)
{
	/* clang-format off */
	static const struct asked rows[] = {
		{ 0, "total(mean_rate(process_cpu:samples[15m]))",
			"{job=\"a\", pod=\"p\"} 3.2222222222222223" },
		{ 0, "total(mean_rate(process_cpu:samples[1h]))",
			"{job=\"a\", pod=\"p\"} 3.2222222222222223" },
		{ 0, "total(merge(mean_rate(process_cpu:samples[6h])))", "{} 3.2222222222222223" },
		{ 0, "total(merge(mean_rate(cpu[6h]))) / 1e9", "{} 0.03222222222222222" },
		/* as long as the profile */
		{ 0, "total(mean_rate(process_cpu:samples[1m]))",
			"{job=\"a\", pod=\"p\"} 3.2222222222222223" },
		/* 10 min later: 2,900 in 25 min, or in the last 15 min */
		{ 600, "total(mean_rate(process_cpu:samples[6h]))",
			"{job=\"a\", pod=\"p\"} 1.9333333333333333" },
		{ 600, "total(mean_rate(process_cpu:samples[1h]))",
			"{job=\"a\", pod=\"p\"} 1.9333333333333333" },
		{ 600, "total(mean_rate(process_cpu:samples[15m]))",
			"{job=\"a\", pod=\"p\"} 3.2222222222222223" },
		{ 600, "total(mean_rate(process_cpu:samples[6h] offset 10m))",
			"{job=\"a\", pod=\"p\"} 3.2222222222222223" },
		{ 600, "total(mean_rate(process_cpu:samples[5m]))", "" },
	};
	/* clang-format on */
	struct world w;

	REQUIRE(world_open(&w, NULL));
	w.duration_ns = 900 * NS_PER_S;
	store(&w, CPU_OF("p"), 0, 900, "main;f 2900");
	CHECK_ANSWERS(&w, rows);
	world_close(&w);
}

/* 9 s of each 10 s are profiled, and take 90 samples: 10 a second. */
TEST(mean_rate_is_corrected_for_what_was_not_profiled)
{
	/* clang-format off */
	static const struct asked rows[] = {
		{ 0, "total(mean_rate(process_cpu:samples[5m]))", "{job=\"a\", pod=\"p\"} 10" },
		{ 0, "total(mean_rate(process_cpu:samples[10m]))", "{job=\"a\", pod=\"p\"} 10" },
		{ 0, "total(mean_rate(process_cpu:samples[6h]))", "{job=\"a\", pod=\"p\"} 10" },
		/* The same as a rate of the time that has profiles. */
		{ 0, "total(rate(process_cpu:samples[10m])) == total(mean_rate(process_cpu:samples[10m]))",
			"{job=\"a\", pod=\"p\"} 10" },
		{ 0, "flat by (function) (mean_rate(process_cpu:samples[1h]), {function='g'})",
			"{function=\"g\"} 2.5" },
		{ 0, "flat_share by (function) (mean_rate(process_cpu:samples[1h]), {function='g'})",
			"{function=\"g\"} 0.25" },
		{ 0, "total(focus(merge(mean_rate(process_cpu:samples[1h])), 'g'))", "{} 2.5" },
	};
	/* clang-format on */
	struct world w;

	REQUIRE(world_open(&w, NULL));
	for (int at_s = -590; at_s <= 0; at_s += 10)
		store(&w, CPU_OF("p"), at_s, 10, at_s % 20 ? "main;f 60|main;g 30" : "main;f 75|main;g 15");
	CHECK_ANSWERS(&w, rows);
	world_close(&w);
}

/* Two pods; q began 5 min ago. Each group has a window of its own. */
TEST(mean_rate_begins_with_the_first_profile_of_the_group)
{
	/* clang-format off */
	static const struct asked rows[] = {
		{ 0, "total(mean_rate(process_cpu:samples[10m]))",
			"{job=\"a\", pod=\"p\"} 10\n{job=\"a\", pod=\"q\"} 20" },
		{ 0, "total(merge by (pod) (mean_rate(process_cpu:samples[10m])))",
			"{pod=\"p\"} 10\n{pod=\"q\"} 20" },
		/* 10 of p, and of q 20 in half of the window */
		{ 0, "total(merge(mean_rate(process_cpu:samples[10m])))", "{} 20" },
		{ 0, "total(merge by (job) (mean_rate(process_cpu:samples[1h])))", "{job=\"a\"} 20" },
		{ 0, "total(mean_rate(process_cpu:samples[5m]))",
			"{job=\"a\", pod=\"p\"} 10\n{job=\"a\", pod=\"q\"} 20" },
		{ 0, "total(merge(mean_rate(process_cpu:samples[5m])))", "{} 30" },
		/* q sent what it profiled all the time, so its costs are not corrected. */
		{ 0, "total(merge(process_cpu:samples[10m]))", "{} 11400" },
	};
	/* clang-format on */
	struct world w;

	REQUIRE(world_open(&w, NULL));
	for (int at_s = -590; at_s <= 0; at_s += 10) {
		w.duration_ns = 9 * NS_PER_S;
		store(&w, CPU_OF("p"), at_s, 10, "main;f 90");
		w.duration_ns = 10 * NS_PER_S;
		if (at_s > -300)
			store(&w, CPU_OF("q"), at_s, 10, "main;f 200");
	}
	CHECK_ANSWERS(&w, rows);
	world_close(&w);
}

/* Long windows add up series of equal factors together, and give the same. */
TEST(mean_rate_of_many_series_together)
{
	const struct engine_options together = { .rate_groups_ns = 1 };
	static const struct asked rows[] = {
		{ 0, "total(merge(mean_rate(process_cpu:samples[1h])))", "{} 60" },
		{ 0, "flat by (function) (merge(mean_rate(process_cpu:samples[1h])))",
			"{function=\"f\"} 60" },
	};
	struct world w;

	REQUIRE(world_open(&w, &together));
	for (int at_s = -590; at_s <= 0; at_s += 10) {
		w.duration_ns = 9 * NS_PER_S;
		store(&w, CPU_OF("p"), at_s, 10, "main;f 90");
		store(&w, CPU_OF("q"), at_s, 10, "main;f 180");
		w.duration_ns = 5 * NS_PER_S;
		store(&w, CPU_OF("r"), at_s, 10, "main;f 150");
	}
	CHECK_ANSWERS(&w, rows);
	world_close(&w);
}

TEST(mean_rate_needs_profiles_of_amounts)
{
	/* clang-format off */
	static const struct asked rows[] = {
		{ 0, "mean_rate(goroutine[5m])",
			"invalid input: 1:11: mean_rate() needs amounts that add up in time, got levels: "
			"goroutine:goroutine:count::; use avg_over_time() for the mean" },
		{ 0, "mean_rate(cpu)",
			"invalid input: 1:11: mean_rate() needs a selector with a window: [5m]" },
	};
	/* clang-format on */
	struct world w;

	REQUIRE(world_open(&w, NULL));
	store(&w, "__name__=goroutine,job=a,pod=p", 0, 10, "main;f 30");
	CHECK_ANSWERS(&w, rows);
	world_close(&w);
}
