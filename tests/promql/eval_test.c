#include "tests/promql/world.h"

TEST(selectors)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	fill(&w);
	at(&w, 20, "cpu:samples{job=\"a\"}",
		"process_cpu{job=\"a\", pod=\"p\"} count 4 of 1: main;f 4\n"
		"process_cpu{job=\"a\", pod=\"q\"} count 35 of 1: main;f 30, main;h 5");
	at(&w, 20, "process_cpu:samples:count{pod=\"p\"}[1m]",
		"process_cpu{job=\"a\", pod=\"p\"} count 8 of 2: main;f 7, main;g 1");
	at(&w, 20, "cpu{pod=\"p\"}",
		"process_cpu{job=\"a\", pod=\"p\"} nanoseconds 40000000 of 1: main;f 40000000");
	at(&w, 20, "{__name__=\"process_cpu\",__type__=\"samples\",pod=\"p\"}",
		"process_cpu{job=\"a\", pod=\"p\"} count 4 of 1: main;f 4");
	at(&w, 20, "process_cpu:samples:count:::delta{pod=\"p\"}", ""); /* no type's name, but a name */
	/* windows are (from, to] */
	at(&w, 20, "cpu:samples{pod=\"p\"}[10s]",
		"process_cpu{job=\"a\", pod=\"p\"} count 4 of 1: main;f 4");
	at(&w, 20, "cpu:samples{pod=\"p\"}[11s]",
		"process_cpu{job=\"a\", pod=\"p\"} count 8 of 2: main;f 7, main;g 1");
	at(&w, 30, "cpu:samples{pod=\"p\"} offset 15s",
		"process_cpu{job=\"a\", pod=\"p\"} count 4 of 1: main;f 3, main;g 1");
	at(&w, 19, "cpu:samples{pod=\"p\"}",
		"process_cpu{job=\"a\", pod=\"p\"} count 4 of 1: main;f 3, main;g 1");
	at(&w, 321, "cpu:samples{pod=\"p\"}", "");
	at(&w, 20, "cpu:samples{job=\"none\"}", "");
	world_close(&w);
}

TEST(sample_labels)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	fill(&w);
	at(&w, 20, "cpu:samples{job=\"a\",handler=\"/x\"}",
		"process_cpu{job=\"a\", pod=\"q\"} count 10 of 1: main;f 10");
	at(&w, 20, "merge(cpu:samples{job=\"a\",handler=\"\"})", "{} count 9 of 2: main;f 4, main;h 5");
	at(&w, 20, "merge by (handler) (cpu:samples{job=\"a\"})",
		"{} count 9 of 2: main;f 4, main;h 5\n"
		"{handler=\"/x\"} count 10 of 2: main;f 10\n"
		"{handler=\"/y\"} count 20 of 2: main;f 20");
	at(&w, 20, "sum by (handler) (total(merge by (handler, pod) (cpu:samples{job=\"a\"})))",
		"{handler=\"/x\"} 10\n{handler=\"/y\"} 20\n{} 9");
	at(&w, 20, "flat by (handler, function) (cpu:samples{pod=\"q\"})",
		"{function=\"h\"} 5\n{function=\"f\", handler=\"/x\"} 10\n"
		"{function=\"f\", handler=\"/y\"} 20");
	at(&w, 20, "merge(cpu:samples{pod=\"q\",sample_handler=~\"/x|/y\"})",
		"{} count 30 of 1: main;f 10, main;f 20");
	/* a name that both have is the series' */
	store(&w, "__name__=process_cpu,handler=all,job=c", 20, 10,
		"main;f{handler=/x} 1|main;f{handler=/y} 2");
	at(&w, 20, "merge(cpu:samples{job=\"c\",handler=\"all\"})", "{} count 3 of 1: main;f 3");
	at(&w, 20, "merge(cpu:samples{job=\"c\",sample_handler=\"/y\"})", "{} count 2 of 1: main;f 2");
	at(&w, 20, "total(merge by (handler, sample_handler) (cpu:samples{job=\"c\"}))",
		"{handler=\"all\", sample_handler=\"/x\"} 1\n{handler=\"all\", "
		"sample_handler=\"/y\"} 2");
	world_close(&w);
}

TEST(merging_and_tables)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	fill(&w);
	at(&w, 20, "merge(cpu:samples{job=~\".+\"}[1m])",
		"{} count 143 of 4: main;f 37, main;g 1, main;h 5, "
		"main;f 100");
	at(&w, 20, "merge by (job) (cpu:samples{job=~\".+\"}[1m])",
		"{job=\"a\"} count 43 of 3: main;f 37, main;g 1, main;h 5\n{job=\"b\"} count 100 "
		"of 1: main;f 100");
	at(&w, 20, "merge without (pod) (cpu:samples{job=\"a\"})",
		"{job=\"a\"} count 39 of 2: main;f 34, main;h 5");
	at(&w, 20, "merge(merge by (pod) (cpu:samples{job=\"a\"}) * 2)",
		"{} count 78 of 2: main;f 68, main;h 10");
	at(&w, 20, "top(2, merge(cpu:samples{job=~\".+\"}))", "{} of 139: f 134 134 h 5 5");
	at(&w, 20, "top(9, cpu:samples{job=\"a\"})",
		"process_cpu{job=\"a\", pod=\"p\"} of 4: f 4 4 main 0 4\n"
		"process_cpu{job=\"a\", pod=\"q\"} of 35: f 30 30 h 5 5 main 0 35");
	at(&w, 20, "top(0, merge(cpu:samples{job=\"a\"}))", "{} of 39:");
	at(&w, 20, "flat(merge(cpu:samples{job=\"a\"}))", "{function=\"f\"} 34\n{function=\"h\"} 5");
	at(&w, 20, "cum(merge(cpu:samples{job=\"a\"}))",
		"{function=\"f\"} 34\n{function=\"h\"} 5\n{function=\"main\"} 39");
	at(&w, 20, "cum(merge by (job) (cpu:samples{job=\"a\"}), {function=~\"m.*\"})",
		"{function=\"main\", job=\"a\"} 39");
	at(&w, 20, "flat by (job) (cpu:samples{job=~\".+\"}, {function=\"f\"})",
		"{job=\"a\"} 34\n{job=\"b\"} 100");
	at(&w, 20, "flat_share(merge(cpu:samples{pod=\"p\"}[1m]), {function=\"g\"}) < 0.5",
		"{function=\"g\"} 0.125");
	at(&w, 20, "cum_share(merge(cpu:samples{pod=\"p\"}[1m]), {function=\"main\"})",
		"{function=\"main\"} 1");
	at(&w, 20, "total(cpu:samples{job=\"a\"})",
		"{job=\"a\", pod=\"p\"} 4\n{job=\"a\", pod=\"q\"} 35");
	at(&w, 20, "topk(1, total(cpu:samples{job=~\".+\"}))", "{job=\"b\", pod=\"r\"} 100");
	at(&w, 20,
		"sum(total(cpu:samples{job=~\".+\"})) / "
		"scalar(count(total(cpu:samples{job=~\".+\"})))",
		"{} 46.333333333333336");
	world_close(&w);
}

TEST(differences)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	store(&w, "__name__=process_cpu,job=a,version=v1", 20, 10, "main;f 10|main;g 5");
	store(&w, "__name__=process_cpu,job=a,version=v2", 20, 10, "main;f 30|main;h 7");
	at(&w, 20, "diff(merge(cpu:samples{version=\"v2\"}), merge(cpu:samples{version=\"v1\"}))",
		"{} count 22 of 2: main;f 30-10, main;g 0-5, main;h 7-0");
	at(&w, 20,
		"top(3, diff(merge(cpu:samples{version=\"v2\"}), "
		"merge(cpu:samples{version=\"v1\"})))",
		"{} of 15: f 20 20 h 7 7 g -5 -5");
	at(&w, 20, "flat(merge(cpu:samples{version=\"v2\"}) - merge(cpu:samples{version=\"v1\"}))",
		"{function=\"f\"} 20\n{function=\"g\"} -5\n{function=\"h\"} 7");
	at(&w, 20, "diff on (job) (cpu:samples{version=\"v2\"}, cpu:samples{version=\"v1\"})",
		"{job=\"a\"} count 22 of 2: main;f 30-10, main;g 0-5, main;h 7-0");
	at(&w, 20,
		"diff ignoring (version) (cpu:samples{version=\"v2\"}, "
		"cpu:samples{version=\"v1\"})",
		"{job=\"a\"} count 22 of 2: main;f 30-10, main;g 0-5, main;h 7-0");
	/* without a partner: against nothing */
	at(&w, 20, "diff(cpu:samples{version=\"v2\"}, cpu:samples{version=\"v1\"})",
		"{job=\"a\", version=\"v2\"} count 37 of 1: main;f 30-0, main;h 7-0\n"
		"{job=\"a\", version=\"v1\"} count -15 of 1: main;f 0-10, main;g 0-5");
	at(&w, 20,
		"diff_normalized(merge(cpu:samples{version=\"v2\"}), "
		"merge(cpu:samples{version=\"v1\"}))",
		"{} count 0 of 2: main;f 12-10, main;g 0-5, main;h 3-0");
	at(&w, 20, "diff(merge(cpu:samples{version=\"v2\"}), merge(cpu{version=\"v1\"}))",
		"invalid input: 1:1: no difference between count and nanoseconds");
	at(&w, 20, "diff on (job) (cpu:samples{job=\"a\"}, cpu:samples{version=\"v1\"})",
		"invalid input: 1:1: the new side has two profiles for {job=\"a\"}: "
		"process_cpu{job=\"a\", version=\"v1\"} "
		"and process_cpu{job=\"a\", version=\"v2\"}; merge them first");
	world_close(&w);
}

/* A gauge in time is a mean: value x counted time, over the time in which any series counts. */
TEST(gauges_are_means_over_time)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	/* 60 s in all; pod p lives for the first 30 s, pod q for the other 30 */
	for (int t = 10; t <= 30; t += 10)
		store(&w, "__name__=goroutine,job=a,pod=p", t, 10, "main;f 10|main;g 1");
	for (int t = 40; t <= 60; t += 10)
		store(&w, "__name__=goroutine,job=a,pod=q", t, 10, "main;f 20");
	at(&w, 60, "merge(goroutine{job=\"a\"}[1m])", "{} count 16 of 6: main;f 15, main;g 1");
	/* each pod counts for the time it lived; the parts add up to the whole before rounding */
	at(&w, 60, "goroutine{job=\"a\"}[1m]",
		"goroutine{job=\"a\", pod=\"p\"} count 6 of 3: main;f 5, main;g 1\n"
		"goroutine{job=\"a\", pod=\"q\"} count 10 of 3: main;f 10");
	at(&w, 60, "total(goroutine{job=\"a\"}[1m])",
		"{job=\"a\", pod=\"p\"} 5.5\n{job=\"a\", pod=\"q\"} 10");
	at(&w, 60, "total(merge(merge by (pod) (goroutine{job=\"a\"}[1m])))", "{} 15.5");
	/* the latest of each is what there is */
	at(&w, 60, "merge(goroutine{job=\"a\"})", "{} count 31 of 2: main;f 30, main;g 1");
	at(&w, 60, "total(goroutine{job=\"a\"})",
		"{job=\"a\", pod=\"p\"} 11\n{job=\"a\", pod=\"q\"} 20");
	world_close(&w);
}

/* Rounding happens once, behind the sum over series: 1.5 and 1.5 are 3. */
TEST(gauges_by_function_are_rounded_once)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	for (int t = 10; t <= 20; t += 10) {
		store(&w, "__name__=goroutine,job=a,pod=p", t, 10, t == 10 ? "main;f 1" : "main;f 2");
		store(&w, "__name__=goroutine,job=a,pod=q", t, 10, t == 10 ? "main;f 2" : "main;f 1");
	}
	at(&w, 20, "flat(merge(goroutine[1m]))", "{function=\"f\"} 3");
	at(&w, 20, "flat by (function) (goroutine[1m])", "{function=\"f\"} 3");
	at(&w, 20, "cum by (job) (goroutine[1m])", "{job=\"a\"} 3");
	at(&w, 20, "cum_share by (function) (goroutine[1m], {function=\"f\"})", "{function=\"f\"} 1");
	at(&w, 20, "flat(goroutine[1m])",
		"{function=\"f\", job=\"a\", pod=\"p\"} 2\n"
		"{function=\"f\", job=\"a\", pod=\"q\"} 2");
	world_close(&w);
}

/* What a profile says of its duration is believed, and its sum ends where 64 bits do. */
TEST(durations_do_not_wrap)
{
	static const char *const queries[] = { "merge(cpu:samples)",
		"diff on () (cpu:samples{pod=\"p\"}, cpu:samples{pod=\"q\"})",
		"merge(merge by (pod) (cpu:samples) * 1)", "merge(cpu:samples[1m])" };
	struct query_options o = { 0 };
	struct world w;
	struct query *q;
	struct err err;

	if (!world_open(&w, NULL))
		return;
	w.duration_ns = INT64_MAX;
	store(&w, "__name__=process_cpu,job=a,pod=p", 10, 10, "main;f 1");
	store(&w, "__name__=process_cpu,job=b,pod=q", 10, 10, "main;f 2");
	o.t_ns = w.t0 + 10 * NS_PER_S;
	for (size_t i = 0; i < 4; i++) {
		o.text = str_of(queries[i]);
		REQUIRE_OK(query_run(w.engine, &o, &q, &err), &err);
		CHECK_INT(query_result(q)->n, 1);
		CHECK_INT(query_result(q)->profiles[0].duration_nanos, INT64_MAX);
		query_close(q);
	}
	world_close(&w);
}

TEST(totals_do_not_wrap)
{
	static const char *const limit = "limit exceeded: a sum exceeds 64 bits";
	struct world w;

	if (!world_open(&w, NULL))
		return;
	store(&w, "__name__=cpu,job=a,pod=p", 10, 10, "main;f 5000000000000000000");
	store(&w, "__name__=cpu,job=a,pod=q", 10, 10, "main;g 5000000000000000000");
	at(&w, 10, "total(merge by (pod) (cpu))",
		"{pod=\"p\"} 5000000000000000000\n{pod=\"q\"} 5000000000000000000");
	at(&w, 10, "total(merge(merge by (pod) (cpu)))", limit);
	at(&w, 10, "merge(merge by (pod) (cpu))", limit);
	world_close(&w);
}

TEST(types)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	store(&w, "__name__=memory,job=a", 20, 10, "main;f 5");
	store(&w, "__name__=odd,job=a", 20, 10, "main;f 5");
	store(&w, "__name__=process_cpu,job=a", 20, 10, "main;f 5");
	at(&w, 20, "total(heap{job=\"a\"})", "{job=\"a\"} 5");
	at(&w, 20, "total(memory:alloc_space{job=\"a\"})", "{job=\"a\"} 10");
	at(&w, 20, "total(odd{job=\"a\"})", "{job=\"a\"} 5"); /* as the profile says */
	at(&w, 20, "total(odd:pears{job=\"a\"})", "{job=\"a\"} 500");
	at(&w, 20, "{job=\"a\"}",
		"invalid input: 1:1: {job=\"a\"} selects three units: bytes, count and "
		"nanoseconds");
	at(&w, 20, "{__name__=\"memory\",__type__=~\".*_space\"}",
		"memory{__type__=\"alloc_space\", job=\"a\"} bytes 10 of 1: main;f 10\n"
		"memory{__type__=\"inuse_space\", job=\"a\"} bytes 5 of 1: main;f 5");
	at(&w, 20, "total({__type__=~\"samples|goroutine\",job=\"a\"})", "{job=\"a\"} 5");
	/* a short name keeps its meaning beside a series that is named so */
	at(&w, 20, "cpu:samples{job=\"a\"}", "process_cpu{job=\"a\"} count 5 of 1: main;f 5");
	store(&w, "__name__=cpu,job=a", 20, 10, "main;f 77");
	at(&w, 20, "cpu:samples{job=\"a\"}", "process_cpu{job=\"a\"} count 5 of 1: main;f 5");
	at(&w, 20, "{__name__=\"cpu\",job=\"a\"}", "cpu{job=\"a\"} count 77 of 1: main;f 77");
	at(&w, 20, "sum(memory{job=\"a\"})",
		"invalid input: 1:5: sum() needs numbers: use sum(total(memory{job=\"a\"}))");
	world_close(&w);
}

TEST(spans_and_ranges)
{
	struct world w;
	struct query_options span, range;

	if (!world_open(&w, NULL))
		return;
	for (int t = 10; t <= 60; t += 10)
		store(&w, "__name__=process_cpu,job=a", t, 10, t <= 30 ? "main;f 1" : "main;f 2|main;g 1");
	span = (struct query_options){
		.has_span = true, .start_ns = w.t0 + 20 * NS_PER_S, .end_ns = w.t0 + 50 * NS_PER_S
	};
	ask(&w, span, "merge(cpu:samples{job=\"a\"})", "{} count 7 of 3: main;f 5, main;g 2");
	ask(&w, span, "merge(cpu:samples{job=\"a\"}[10s])", "{} count 3 of 1: main;f 2, main;g 1");
	ask(&w, span, "merge(cpu:samples{job=\"a\"}[10s] @ start())", "{} count 1 of 1: main;f 1");
	range = span;
	range.step_ns = 10 * NS_PER_S;
	ask(&w, range, "cpu:samples{job=\"a\"}", "process_cpu{job=\"a\"} 20=1 30=1 40=3 50=3");
	ask(&w, range, "flat(cpu:samples{job=\"a\"}[20s])",
		"{function=\"f\", job=\"a\"} 20=2 30=2 40=3 50=4\n{function=\"g\", job=\"a\"} 40=1 "
		"50=2");
	ask(&w, range, "time() - time()", "{} 20=0 30=0 40=0 50=0");
	ask(&w, range, "merge(cpu:samples{job=\"a\"}[10s] @ end()) * 2", "{} 20=6 30=6 40=6 50=6");
	ask(&w, range, "\"x\"",
		"invalid input: invalid expression type \"string\" for range query, must be "
		"scalar, "
		"costs or profiles");
	/* a step that reaches past what 64 bits hold is the last one */
	range.step_ns = INT64_MAX - 1;
	ask(&w, range, "1", "{} 20=1");
	ask(&w, range, "cpu:samples{job=\"a\"}", "process_cpu{job=\"a\"} 20=2");
	range.step_ns = 1;
	ask(&w, range, "1",
		"limit exceeded: exceeded maximum resolution of 11000 points per timeseries. Try "
		"decreasing "
		"the query resolution (?step=XX)");
	range.end_ns = range.start_ns - 1;
	ask(&w, range, "1", "invalid input: end timestamp must not be before start time");
	world_close(&w);
}
