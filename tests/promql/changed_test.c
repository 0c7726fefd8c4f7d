#include "tests/promql/world.h"

/*
 * Minutes of scrapes of pods: work that costs `share` of 1000 samples a scrape, and the rest. The
 * rests vary from minute to minute by a few samples, the same way for everyone.
 */
static void store_pod(struct world *w, const char *version, int pod, int from_s, int to_s, int work)
{
	char labels[128], stacks[256];

	snprintf(labels, sizeof(labels), "__name__=process_cpu,job=api,pod=p%d,version=%s", pod,
		version);
	for (int s = from_s + 20; s <= to_s; s += 20) {
		int wave = (s / 20 * 7 + pod * 3) % 11 - 5;

		snprintf(stacks, sizeof(stacks),
			"main;serve;work %d|main;serve;other %d|main;idle %d", work + wave,
			500 - wave - work + pod * 4, 500 - pod * 4);
		store(w, labels, s, 20, stacks);
	}
}

static void expect(struct world *w, int at_s, const char *query, const char *want,
	const char *want_info)
{
	struct query_options o = { .text = str_of(query), .t_ns = w->t0 + at_s * NS_PER_S };
	const struct result *r;
	struct query *q;
	struct err err;

	at(w, at_s, query, want);
	REQUIRE_OK(query_run(w->engine, &o, &q, &err), &err);
	r = query_result(q);
	CHECK_INT(r->infos_n, *want_info ? 1 : 0);
	if (r->infos_n)
		CHECK_STR(r->infos[0], want_info);
	query_close(q);
}

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
		"{function=\"work\"} 0.09999166666666667", "");
	expect(&w, 1200, "count(changed(cpu:samples{job=\"api\"}[10m], cpu:samples{job=\"api\"}[10m] "
			 "offset 10m))",
		"{} 2", "");
	expect(&w, 1200, "changed(cpu{job=\"api\"}[5m], cpu{job=\"api\"}[5m] offset 5m)", "", "");
	expect(&w, 600, "changed(cpu{job=\"api\"}[5m], cpu{job=\"api\"}[5m] offset 5m, 0.05)", "", "");
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
		"changed(): too short to judge: the new window has costs in 2 of its slices of 60s, "
		"and at least 6 are needed");
	expect(&w, 600, "changed(cpu{version=\"v1\"}[10m], cpu{version=\"v2\"}[10m])", "",
		"changed(): too short to judge: the base window has costs in 2 of its slices of 60s, "
		"and at least 6 are needed");
	expect(&w, 600, "changed(cpu{version=\"v3\"}[10m], cpu{version=\"v1\"}[10m])", "",
		"changed(): the new window has no costs");
	expect(&w, 600, "changed(cpu{version=\"v1\"}[10m], cpu{version=\"v1\"}[10m] offset 1h)", "",
		"changed(): the base window has no costs");
	expect(&w, 600, "changed(cpu{version=\"v1\"}[30s], cpu{version=\"v1\"}[10m])", "",
		"changed(): too short to judge: the new window has costs in 2 of its slices of 5s, "
		"and at least 6 are needed");
	store_pod(&w, "v2", 1, 0, 480, 200);
	expect(&w, 600, "topk(1, changed(cpu{version=\"v2\"}[10m], cpu{version=\"v1\"}[10m]))",
		"{function=\"work\"} 0.10006666666666669",
		"changed(): one series on each side, and not the same one: what two instances differ "
		"by is reported as a change, too");
	world_close(&w);
}

TEST(faults)
{
	struct world w;

	if (!world_open(&w, NULL))
		return;
	store_pod(&w, "v1", 0, 0, 60, 100);
	at(&w, 60, "changed(cpu[10m], cpu[10m], 0)",
		"invalid input: 1:29: changed() wants a probability between 0 and 1, got 0");
	at(&w, 60, "changed(cpu[10m], cpu[10m], 1/0)",
		"invalid input: 1:29: changed() wants a probability between 0 and 1, got inf");
	at(&w, 60, "changed(cpu, cpu[10m])",
		"invalid input: 1:9: changed() wants a selector with a window: [5m]");
	at(&w, 60, "changed(merge(cpu[10m]), cpu[10m])",
		"invalid input: 1:9: changed() wants a selector here, got profiles");
	at(&w, 60, "changed(cpu[10m])",
		"invalid input: 1:1: changed() wants at least 2 arguments, got 1: "
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
