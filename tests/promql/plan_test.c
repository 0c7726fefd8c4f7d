#include "promql/engine/engine_internal.h"
#include "tests/promql/world.h"

static struct query *explained(struct world *w, struct query_options o, const char *text)
{
	struct query *q = NULL;
	struct err err;

	o.text = str_of(text);
	o.explain = true;
	if (!o.step_ns && !o.has_span)
		o.t_ns = w->t0 + 20 * NS_PER_S;
	CHECK_OK(query_run(w->engine, &o, &q, &err), &err);
	return q;
}

/* Times in the text become seconds behind t0: "(-40 s, 20 s]". */
static void without_dates(struct world *w, struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		struct str rest = { text.ptr + i, 24 };
		char at[32];
		bool found = false;

		for (int s = -4000; s <= 400 && !found && i + 24 <= text.len; s++) {
			struct buf time = { 0 };

			if (text.ptr[i] != '2')
				break;
			time_print_rfc3339(&time, w->t0 + s * NS_PER_S);
			if ((found = str_eq(buf_str(&time), rest))) {
				snprintf(at, sizeof(at), "%d s", s);
				buf_add_cstr(out, at);
				i += 23;
			}
			buf_release(&time);
		}
		if (!found)
			buf_add_char(out, text.ptr[i]);
	}
}

static void plan(struct world *w, struct query_options o, const char *text, const char *want)
{
	struct query *q = explained(w, o, text);
	struct buf got = { 0 }, plain = { 0 };

	if (!q)
		return;
	query_explain_print(q, &got);
	without_dates(w, buf_str(&got), &plain);
	if (!str_is(buf_str(&plain), want))
		CHECK_FAIL("%s\n    is\n" STR_FMT "    want\n%s", text, STR_ARG(buf_str(&plain)), want);
	buf_release(&got);
	buf_release(&plain);
	query_close(q);
}

TEST(plans_as_text)
{
	struct query_options once = { 0 }, steps;
	struct world w;

	if (!world_open(&w, NULL))
		return;
	fill(&w);
	plan(&w, once, "1 + 1",
		"1 + 1  # a scalar\n"
		"  1  # a scalar\n"
		"  1  # a scalar\n"
		"all: about 0 samples of 2000000000, 0 bytes\n");
	plan(&w, once, "flat(merge by (job) (cpu:samples{job=\"a\"}[1m]))",
		"flat(merge by (job) (cpu:samples{job=\"a\"}[1m]))  # costs\n"
		"  merge by (job) (cpu:samples{job=\"a\"}[1m])  # profiles\n"
		"    cpu:samples{job=\"a\"}[1m]  # profiles\n"
		"      reads names of functions of 2 series, by (job): 1 elements\n"
		"      in (-40 s, 20 s]\n"
		"      about 3 profiles, 5 samples, 116 bytes, 3 rows of the head\n"
		"all: about 5 samples of 2000000000, 116 bytes, 3 rows of the head\n");
	steps = (struct query_options){
		.step_ns = 10 * NS_PER_S, .start_ns = w.t0, .end_ns = w.t0 + 20 * NS_PER_S
	};
	plan(&w, steps, "total(cpu:samples[30s])",
		"total(cpu:samples[30s])  # costs\n"
		"  cpu:samples[30s]  # profiles\n"
		"    reads totals of 3 series, each series: 3 elements\n"
		"    in (-30 s, 0 s] and 2 more, to (-10 s, 20 s]\n"
		"    about 3 profiles, 0 samples, 120 bytes, 3 rows of the head\n"
		"all: about 0 samples of 2000000000, 120 bytes, 3 rows of the head\n");
	world_close(&w);
}

/* The number of reads of a query's selectors; equal selectors share them. */
static void reads(
	struct world *w, struct query_options o, const char *text, unsigned reads_n, uint64_t times)
{
	struct query *q;
	unsigned n = 0;
	uint64_t all = 0;

	o.analyze = true;
	if (!(q = explained(w, o, text)))
		return;
	for (const struct plan_read *r = q->plan.reads; r; r = r->next, n++)
		all += r->reads;
	if (n != reads_n || all != times)
		CHECK_FAIL("%s: %u reads, %llu times; want %u, %llu", text, n, (unsigned long long)all,
			reads_n, (unsigned long long)times);
	query_close(q);
}

TEST(equal_selectors_are_read_once)
{
	struct query_options once = { 0 }, steps;
	struct world w;

	if (!world_open(&w, NULL))
		return;
	fill(&w);
	reads(&w, once, "cpu:samples[1m] - cpu:samples[1m]", 1, 1);
	reads(&w, once, "flat(cpu:samples[1m]) / flat(cpu:samples[1m])", 1, 1);
	reads(&w, once, "cpu:samples[1m] - (cpu:samples[1m])", 1, 1);
	reads(&w, once, "cpu:samples[1m] - cpu:samples[2m]", 2, 2);
	reads(&w, once, "cpu:samples[1m] - cpu:samples[1m] offset 10s", 2, 2);
	reads(&w, once, "merge(cpu:samples[1m]) - merge by () (cpu:samples[1m])", 2, 2);
	steps = (struct query_options){
		.step_ns = 10 * NS_PER_S, .start_ns = w.t0, .end_ns = w.t0 + 20 * NS_PER_S
	};
	reads(&w, steps, "flat(cpu:samples[1m]) / flat(cpu:samples[1m])", 1, 3);
	reads(&w, steps, "flat(cpu:samples[1m] @ end())", 1, 1);
	/* and each gets the same as if it was alone */
	at(&w, 20, "flat(cpu:samples{pod=\"p\"}[1m]) / flat(cpu:samples{pod=\"p\"}[1m])",
		"{function=\"f\", job=\"a\", pod=\"p\"} 1\n"
		"{function=\"g\", job=\"a\", pod=\"p\"} 1");
	at(&w, 20, "cpu:samples{pod=\"p\"}[1m] - cpu:samples{pod=\"p\"}[1m] * 2",
		"{job=\"a\", pod=\"p\"} count -8 of 4: main;f 7-14, main;g 1-2");
	ask(&w, steps, "total(cpu:samples{pod=\"p\"}[1m] @ end())",
		"{job=\"a\", pod=\"p\"} 0=8 10=8 20=8");
	world_close(&w);
}

/* Steps of a subquery are evaluated once for all steps of the query, unless these are far apart. */
TEST(subqueries_read_each_step_once)
{
	struct query_options once = { 0 }, steps, far;
	struct world w;

	if (!world_open(&w, NULL))
		return;
	fill(&w);
	reads(&w, once, "max_over_time(total(cpu:samples)[20s:10s])", 1, 2);
	reads(
		&w, once, "max_over_time(total(cpu:samples[1m])[20s:10s]) + total(cpu:samples[1m])", 2, 3);
	reads(&w, once, "max_over_time(total(cpu:samples @ end())[20s:5s])", 1, 1);
	reads(&w, once,
		"max_over_time(total(cpu:samples)[20s:10s]) / min_over_time(total(cpu:samples)[20s:10s])",
		1, 2);
	steps = (struct query_options){
		.step_ns = 10 * NS_PER_S, .start_ns = w.t0, .end_ns = w.t0 + 20 * NS_PER_S
	};
	reads(&w, steps, "max_over_time(total(cpu:samples)[20s:10s])", 1, 4);
	reads(&w, steps, "max_over_time(total(cpu:samples)[20s:10s] @ end())", 1, 2);
	reads(&w, steps, "max_over_time(max_over_time(total(cpu:samples)[20s:10s])[20s:10s])", 1, 5);
	far = steps;
	far.step_ns = far.end_ns - far.start_ns;
	reads(&w, far, "max_over_time(total(cpu:samples)[10s:5s])", 1, 4);
	plan(&w, steps, "max_over_time(total(cpu:samples)[20s:10s])",
		"max_over_time(total(cpu:samples)[20s:10s])  # costs\n"
		"  total(cpu:samples)[20s:10s]  # costs\n"
		"    total(cpu:samples)  # costs\n"
		"      cpu:samples  # profiles or costs\n"
		"        reads totals of 3 series, each series: 3 elements\n"
		"        in (-20 s, -10 s] and 3 more, to (10 s, 20 s]\n"
		"        about 3 profiles, 0 samples, 120 bytes, 3 rows of the head\n"
		"all: about 0 samples of 2000000000, 120 bytes, 3 rows of the head\n");
	world_close(&w);
}

TEST(subqueries_are_counted_before_they_begin)
{
	struct engine_options few = { .samples_max = 800 };
	struct query_options steps;
	struct world w;

	if (!world_open(&w, &few))
		return;
	fill(&w);
	at(&w, 20, "max_over_time(total(cpu:samples)[200s:1s])",
		"limit exceeded: the query would read about 600 series in its steps, counted as 60,000 "
		"samples, limit 800 (--query.max-samples)");
	steps = (struct query_options){
		.step_ns = 10 * NS_PER_S, .start_ns = w.t0, .end_ns = w.t0 + 20 * NS_PER_S
	};
	ask(&w, steps, "max_over_time(total(cpu:samples{pod='p'})[2s:1s])",
		"{job=\"a\", pod=\"p\"} 10=4 20=4");
	at(&w, 20, "max_over_time(vector(1)[100001s:1s])",
		"limit exceeded: 1:15: the subquery has 100001 steps, limit 100000; a longer step has "
		"fewer");
	world_close(&w);
}

static int64_t at_second(const struct world *w, int s)
{
	return w->t0 + s * NS_PER_S;
}

/* Gauges are rounded in place behind the sum: each place has values of its own. */
TEST(gauges_are_shared_before_they_are_rounded)
{
	struct query_options span = { .has_span = true };
	struct world w;

	if (!world_open(&w, NULL))
		return;
	store(&w, "__name__=goroutine,job=a", 10, 10, "main;f 3|main;g 2");
	store(&w, "__name__=goroutine,job=a", 20, 10, "main;f 4|main;g 1");
	span.start_ns = at_second(&w, -10);
	span.end_ns = span.t_ns = at_second(&w, 20);
	ask(&w, span, "goroutine - goroutine", "{job=\"a\"} count 0 of 4: main;f 4-4, main;g 2-2");
	ask(&w, span, "merge(goroutine) - merge(goroutine)", "{} count 0 of 4: main;f 4-4, main;g 2-2");
	ask(&w, span, "flat(goroutine) - flat(goroutine)",
		"{function=\"f\", job=\"a\"} 0\n{function=\"g\", job=\"a\"} 0");
	world_close(&w);
}

TEST(what_would_be_too_much_is_not_begun)
{
	struct engine_options few = { .samples_max = 800 };
	struct query_options steps, explain = { .explain = true };
	struct query *q;
	struct world w;
	struct err err;

	if (!world_open(&w, &few))
		return;
	fill(&w);
	steps = (struct query_options){
		.step_ns = NS_PER_S, .start_ns = w.t0, .end_ns = w.t0 + 200 * NS_PER_S
	};
	ask(&w, steps, "flat(cpu:samples[5m])",
		"limit exceeded: the query would read about 905 samples, limit 800 "
		"(--query.max-samples)");
	ask(&w, steps, "total(cpu:samples[5m])",
		"limit exceeded: the query would read about 603 series in its steps, counted as 60,300 "
		"samples, limit 800 (--query.max-samples)");
	/* it is explained all the same */
	explain.step_ns = steps.step_ns;
	explain.start_ns = steps.start_ns;
	explain.end_ns = steps.end_ns;
	explain.text = STR("flat(cpu:samples[5m])");
	REQUIRE_OK(query_run(w.engine, &explain, &q, &err), &err);
	CHECK(q->plan.all.samples > 800);
	CHECK_INT(q->plan.reads->reads, 0);
	query_close(q);
	explain.analyze = true;
	CHECK_ERR(query_run(w.engine, &explain, &q, &err), &err, ERR_LIMIT,
		"the query would read about 905 samples, limit 800 (--query.max-samples)");
	world_close(&w);
}
