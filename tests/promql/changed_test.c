#include "tests/promql/world.h"

/*
 * Minutes of scrapes of pods: work that costs `share` of 1000 samples a scrape, and the rest. The
 * rests vary from minute to minute by a few samples, the same way for everyone.
 */
static void store_pod(struct world *w, const char *version, int pod, int from_s, int to_s, int work)
{
	char labels[128], stacks[256];

	snprintf(
		labels, sizeof(labels), "__name__=process_cpu,job=api,pod=p%d,version=%s", pod, version);
	for (int s = from_s + 20; s <= to_s; s += 20) {
		int wave = (s / 20 * 7 + pod * 3) % 11 - 5;

		snprintf(stacks, sizeof(stacks), "main;serve;work %d|main;serve;other %d|main;idle %d",
			work + wave, 500 - wave - work + pod * 4, 500 - pod * 4);
		store(w, labels, s, 20, stacks);
	}
}

/* The answer, and all infos, one a line. */
static void expect(
	struct world *w, int at_s, const char *query, const char *want, const char *want_infos)
{
	struct query_options o = { .text = str_of(query), .t_ns = w->t0 + at_s * NS_PER_S };
	const struct result *r;
	struct buf infos = { 0 };
	struct query *q;
	struct err err;

	at(w, at_s, query, want);
	REQUIRE_OK(query_run(w->engine, &o, &q, &err), &err);
	r = query_result(q);
	for (size_t i = 0; i < r->infos_n; i++)
		buf_printf(&infos, "%s" STR_FMT, i ? "\n" : "", STR_ARG(r->infos[i]));
	CHECK_STR(buf_str(&infos), want_infos);
	buf_release(&infos);
	query_close(q);
}

#define TWO_INSTANCES \
	"one series on each side, not the same: differences between instances are reported as " \
	"changes, too"

TEST(the_function_that_moved_is_reported_with_its_share)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	for (int pod = 0; pod < 4; pod++) {
		store_pod(&w, "v1", pod, 0, 600, 100);
		store_pod(&w, "v1", pod, 600, 1200, 200);
	}
	/* what one function gains the other loses; idle stays */
	expect(&w, 1200, "topk(1, changed(cpu{job=\"api\"}[10m], cpu{job=\"api\"}[10m] offset 10m))",
		"{function=\"work\"} 0.09999166666666667",
		"changed(): 2 of 3 functions changed, the others not by more than 0.77 points");
	expect(&w, 1200,
		"count(changed(cpu:samples{job=\"api\"}[10m], cpu:samples{job=\"api\"}[10m] "
		"offset 10m))",
		"{} 2", "changed(): 2 of 3 functions changed, the others not by more than 1.08 points");
	expect(&w, 1200,
		"round(changed_interval(cpu{job=\"api\"}[10m], cpu{job=\"api\"}[10m] offset 10m), 0.001)",
		"{bound=\"low\", function=\"work\", verdict=\"changed\"} 0.097\n"
		"{bound=\"high\", function=\"work\", verdict=\"changed\"} 0.103\n"
		"{bound=\"low\", function=\"other\", verdict=\"changed\"} -0.106\n"
		"{bound=\"high\", function=\"other\", verdict=\"changed\"} -0.094\n"
		"{bound=\"low\", function=\"idle\", verdict=\"not changed\"} -0.008\n"
		"{bound=\"high\", function=\"idle\", verdict=\"not changed\"} 0.008",
		"changed_interval(): 2 of 3 functions changed, the others not by more than 0.77 points");
	expect(&w, 1200, "changed(cpu{job=\"api\"}[5m], cpu{job=\"api\"}[5m] offset 5m)", "",
		"changed(): no function changed by more than 0.71 points");
	expect(&w, 600, "changed(cpu{job=\"api\"}[5m], cpu{job=\"api\"}[5m] offset 5m, 0.05)", "",
		"changed(): no function changed by more than 0.63 points");
	world_close(&w);
}

TEST(what_cannot_be_judged_is_said)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	store_pod(&w, "v1", 0, 0, 600, 100);
	store_pod(&w, "v2", 1, 480, 600, 200);
	expect(&w, 600, "changed(cpu{version=\"v2\"}[10m], cpu{version=\"v1\"}[10m])", "",
		"changed(): not enough data yet: the new window has costs in 2 slices of 1m, 6 are needed; "
		"about 4m more");
	expect(&w, 600, "changed(cpu{version=\"v1\"}[10m], cpu{version=\"v2\"}[10m])", "",
		"changed(): not enough data yet: the base window has costs in 2 slices of 1m, 6 are "
		"needed; about 4m more");
	expect(&w, 600, "changed(cpu{version=\"v3\"}[10m], cpu{version=\"v1\"}[10m])", "",
		"changed(): no data in the new window");
	expect(&w, 600, "changed(cpu{version=\"v1\"}[10m], cpu{version=\"v1\"}[10m] offset 1h)", "",
		"changed(): no data in the base window");
	expect(&w, 600, "changed(cpu{version=\"v1\"}[30s], cpu{version=\"v1\"}[10m])", "",
		"changed(): not enough data yet: the new window has costs in 2 slices of 5s, 6 are needed");
	store_pod(&w, "v2", 1, 0, 480, 200);
	expect(&w, 600, "topk(1, changed(cpu{version=\"v2\"}[10m], cpu{version=\"v1\"}[10m]))",
		"{function=\"work\"} 0.10006666666666669",
		"changed(): 2 of 3 functions changed, the others not by more than 1.10 points\n"
		"changed(): " TWO_INSTANCES);
	world_close(&w);
}

/* Two functions that take turns: nothing changed, but ten minutes of one pod cannot tell. */
TEST(an_interval_says_what_is_known_of_each_function)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	for (int s = 20; s <= 1200; s += 20) {
		char stacks[128];
		int work = 200 + (s * 37) % 400;

		snprintf(stacks, sizeof(stacks), "main;work %d|main;rest %d|main;once 3", work, 800 - work);
		store(&w, "__name__=process_cpu,job=api", s, 20, stacks);
	}
	expect(&w, 1200, "changed(cpu[5m], cpu[5m] offset 5m)", "",
		"changed(): not enough data yet for 3 functions: rest moved by -20.6 to +19.0 points");
	expect(&w, 1200, "round(changed_interval(cpu[5m], cpu[5m] offset 5m), 0.001)",
		"{bound=\"low\", function=\"rest\", verdict=\"cannot tell\"} -0.206\n"
		"{bound=\"high\", function=\"rest\", verdict=\"cannot tell\"} 0.19\n"
		"{bound=\"low\", function=\"work\", verdict=\"cannot tell\"} -0.182\n"
		"{bound=\"high\", function=\"work\", verdict=\"cannot tell\"} 0.198\n"
		"{bound=\"low\", function=\"once\", verdict=\"cannot tell\"} -0.038\n"
		"{bound=\"high\", function=\"once\", verdict=\"cannot tell\"} 0.038",
		"changed_interval(): not enough data yet for 3 functions: rest moved by -20.6 to +19.0 "
		"points");
	expect(&w, 1200, "changed_interval(cpu[1m], cpu[5m] offset 5m)",
		"{bound=\"low\", verdict=\"cannot tell\"} -1\n"
		"{bound=\"high\", verdict=\"cannot tell\"} 1",
		"changed_interval(): not enough data yet: the new window has costs in 3 slices of 6s, 6 "
		"are needed");
	expect(&w, 1200, "changed_interval(cpu[5m], cpu[5m] offset 1h)",
		"{bound=\"low\", verdict=\"cannot tell\"} -1\n"
		"{bound=\"high\", verdict=\"cannot tell\"} 1",
		"changed_interval(): no data in the base window");
	world_close(&w);
}

/*
 * One pod a side, ten minutes. Every minute of v2 is above every minute of v1. Shares of v1 go up
 * and down as slow shocks do, so that only short shocks are refuted.
 */
TEST(sides_that_are_apart_changed_unless_a_shock_lasts_as_long_as_a_window)
{
	static const int of_v1[10] = { 25, 40, 55, 75, 95, 100, 80, 60, 45, 30 };
	static const int of_v2[10] = { 390, 370, 310, 250, 190, 180, 200, 260, 320, 360 };
	struct world w;

	if (!world_open(&w, NULL))
		return;
	for (int m = 0; m < 10; m++) {
		char stacks[128];

		for (int v = 1; v <= 2; v++) {
			char labels[64];
			int work = v == 1 ? of_v1[m] : of_v2[m];

			snprintf(labels, sizeof(labels), "__name__=process_cpu,job=api,version=v%d", v);
			snprintf(stacks, sizeof(stacks), "main;work %d|main;rest %d|main;idle %d", work,
				700 - work * 7 / 10, 300 - work * 3 / 10);
			store(&w, labels, m * 60 + 60, 60, stacks);
		}
	}
	expect(&w, 600, "round(changed(cpu{version=\"v2\"}[10m], cpu{version=\"v1\"}[10m]), 0.001)",
		"{function=\"work\"} 0.223\n{function=\"rest\"} -0.156\n{function=\"idle\"} -0.067",
		"changed(): 3 of 3 functions changed\n"
		"changed(): every minute of New is above every minute of Base in work; a change, unless "
		"shocks last longer than 3m: one of 10m could be the cause\n"
		"changed(): " TWO_INSTANCES);
	world_close(&w);
}

/* 5 % that become 15 % within 50 minutes, bit by bit: the sides' means tell little of it. */
TEST(a_drift_is_a_word_of_its_own)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	for (int m = 1; m <= 70; m++) {
		char stacks[128];
		int wave = (m * 7) % 11 - 5;
		int work = 50 + (m > 20 ? 2 * (m - 20) : 0) + 2 * wave;

		snprintf(stacks, sizeof(stacks), "main;work %d|main;rest %d", work, 1000 - work);
		store(&w, "__name__=process_cpu,job=api", m * 60, 60, stacks);
	}
	expect(&w, 4200, "round(changed(cpu[10m], cpu[1h] offset 10m), 0.001)",
		"{function=\"work\"} 0.064",
		"changed(): 1 of 2 functions changed; not enough data yet for 1 function: rest moved by "
		"-15.5 "
		"to "
		"+2.6 points; windows about 2 times as long are needed\n"
		"changed(): since 49m work rises");
	at(&w, 4200, "round(changed_interval(cpu[10m], cpu[1h] offset 10m), 0.001)",
		"{bound=\"low\", function=\"work\", verdict=\"rises\"} 0.042\n"
		"{bound=\"high\", function=\"work\", verdict=\"rises\"} 0.086\n"
		"{bound=\"low\", function=\"rest\", verdict=\"cannot tell\"} -0.155\n"
		"{bound=\"high\", function=\"rest\", verdict=\"cannot tell\"} 0.026");
	world_close(&w);
}

/* One pod of ten: it hardly moves the mean, and the spread of the pods is its own. */
TEST(a_pod_that_changes_alone_is_named)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	for (int pod = 0; pod < 10; pod++) {
		store_pod(&w, "v1", pod, 0, 600, 50);
		store_pod(&w, "v1", pod, 600, 1200, pod == 7 ? 300 : 50);
	}
	expect(&w, 1200, "round(changed(cpu[10m], cpu[10m] offset 10m), 0.001)",
		"{function=\"work\"} 0.025\n"
		"{function=\"work\", pod=\"p7\"} 0.25\n"
		"{function=\"other\", pod=\"p7\"} -0.25",
		"changed(): 1 of 3 functions changed; not enough data yet for 2 functions: other moved by "
		"-13.3 "
		"to +8.3 points; windows about 19 times as long are needed\n"
		"changed(): every minute of New is below every minute of Base in other; a shock of "
		"10m could be the cause\n"
		"changed(): changed in one series only: work in {pod=\"p7\"} (5.0 % to 30.0 %), other in "
		"{pod=\"p7\"} (47.8 % to 22.8 %)");
	at(&w, 1200, "round(changed_interval(cpu[10m], cpu[10m] offset 10m), 0.001)",
		"{bound=\"low\", function=\"work\", verdict=\"changed\"} 0.014\n"
		"{bound=\"high\", function=\"work\", verdict=\"changed\"} 0.036\n"
		"{bound=\"low\", function=\"other\", verdict=\"cannot tell\"} -0.133\n"
		"{bound=\"high\", function=\"other\", verdict=\"cannot tell\"} 0.083\n"
		"{bound=\"low\", function=\"idle\", verdict=\"cannot tell\"} -0.028\n"
		"{bound=\"high\", function=\"idle\", verdict=\"cannot tell\"} 0.028\n"
		"{bound=\"low\", function=\"work\", pod=\"p7\", verdict=\"changed\"} 0.185\n"
		"{bound=\"high\", function=\"work\", pod=\"p7\", verdict=\"changed\"} 0.316\n"
		"{bound=\"low\", function=\"other\", pod=\"p7\", verdict=\"changed\"} -0.345\n"
		"{bound=\"high\", function=\"other\", pod=\"p7\", verdict=\"changed\"} -0.156");
	world_close(&w);
}

/* On a busy machine samples of a function land in what interrupts it: they are the function's. */
TEST(an_interrupted_function_did_not_change)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	for (int s = 20; s <= 1200; s += 20) {
		int hit = s > 600 ? 150 : 0;
		char stacks[128];

		snprintf(stacks, sizeof(stacks),
			"main;work %d|main;work;runtime.asyncPreempt %d|main;rest %d", 300 - hit, 1 + hit, 500);
		store(&w, "__name__=process_cpu,job=api", s, 20, stacks);
	}
	expect(&w, 1200, "changed(cpu[10m], cpu[10m] offset 10m)", "",
		"changed(): no function changed by more than 0.70 points");
	at(&w, 1200, "count(flat(merge(cpu[10m])))", "{} 3");
	world_close(&w);
}

TEST(faults)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	store_pod(&w, "v1", 0, 0, 60, 100);
	at(&w, 60, "changed(cpu[10m], cpu[10m], 0)",
		"invalid input: 1:29: changed() needs a probability between 0 and 1, got 0");
	at(&w, 60, "changed(cpu[10m], cpu[10m], 1/0)",
		"invalid input: 1:29: changed() needs a probability between 0 and 1, got inf");
	at(&w, 60, "changed_interval(cpu[10m], cpu[10m], 1)",
		"invalid input: 1:38: changed_interval() needs a probability between 0 and 1, got 1");
	at(&w, 60, "changed(cpu, cpu[10m])",
		"invalid input: 1:9: changed() needs a selector with a window: [5m]");
	at(&w, 60, "changed(merge(cpu[10m]), cpu[10m])",
		"invalid input: 1:9: changed() needs a selector, got profiles");
	at(&w, 60, "changed(cpu[10m])",
		"invalid input: 1:1: changed() needs at least 2 arguments, got 1: "
		"changed(new[window], base[window][, p])");
	world_close(&w);
}

TEST(step_by_step)
{
	struct query_options o = { 0 };
	struct world w;

	if (!world_open(&w, NULL))
		return;
	for (int pod = 0; pod < 2; pod++) {
		store_pod(&w, "v1", pod, 0, 600, 100);
		store_pod(&w, "v1", pod, 600, 1200, 200);
	}
	o.start_ns = w.t0 + 600 * NS_PER_S;
	o.end_ns = w.t0 + 1200 * NS_PER_S;
	o.step_ns = 300 * NS_PER_S;
	o.t_ns = o.end_ns;
	o.has_span = true;
	ask(&w, o, "topk(1, changed(cpu[5m], cpu[5m] offset 5m))",
		"{function=\"work\"} 900=0.10013333333333334");
	world_close(&w);
}

TEST(limits_hold)
{
	struct engine_options few = { .samples_max = 100 };
	struct world w;

	if (!world_open(&w, &few))
		return;
	store_pod(&w, "v1", 0, 0, 1200, 100);
	at(&w, 1200, "changed(cpu[10m], cpu[10m] offset 10m)",
		"limit exceeded: the query would read about 180 samples, limit 100 (--query.max-samples)");
	world_close(&w);
}
