/*
 * Rates where they are easily wrong: over several epochs of a job, with costs below zero, where
 * rows are only kept as sums, and where sums over many series are read.
 */
#include "tests/promql/world.h"

#define HOUR (3600 * NS_PER_S)

/* ---- epochs ---- */

/* More nodes than half of what the small database takes. */
#define FILLING "|main;a{n=#1} 1|main;b 1|main;c 1|main;d 1|main;e 1|main;h 1|main;i 1|main;j 1"

/* p: 20 samples, of f 12, 30 s of which 27 were seen; q: 9 samples, 30 s of which 10 were seen. */
static void check_epochs(uint32_t nodes_max, bool blocks, int want_epochs)
{
	/* clang-format off */
	static const struct asked rows[] = {
		{ 270, "total(rate(process_cpu:samples[10m]))",
			"{job=\"a\", pod=\"p\"} 0.037037037037037035\n"
			"{job=\"a\", pod=\"q\"} 0.045" },
		{ 270, "total(merge(rate(process_cpu:samples[10m])))", "{} 0.08203703703703703" },
		{ 270, "flat(rate(process_cpu:samples{pod='p'}[10m]), {function='f'})",
			"{function=\"f\", job=\"a\", pod=\"p\"} 0.022222222222222223" },
		{ 270, "flat by (function) (merge(rate(process_cpu:samples[10m])), {function='f'})",
			"{function=\"f\"} 0.06722222222222222" },
		{ 270, "round(flat_share(rate(process_cpu:samples{pod='p'}[10m]), {function='f'}), "
		       "0.001)",
			"{function=\"f\", job=\"a\", pod=\"p\"} 0.6" },
		/* 55555.6 + 74074.1 + 92592.6: rounded once */
		{ 270, "focus(rate(process_cpu{pod='p'}[10m]), '^f$')",
			"process_cpu{job=\"a\", pod=\"p\"} nanoseconds 222222 of 3: main;f 222222" },
	};
	/* clang-format on */
	struct world w;
	struct err err;

	REQUIRE(world_open_epochs(&w, nodes_max));
	store(&w, "__name__=process_cpu,job=a,pod=p", 40, 10, "main;f 3" FILLING);
	store(&w, "__name__=process_cpu,job=a,pod=p", 150, 10, "main;f 4");
	store(&w, "__name__=process_cpu,job=a,pod=p", 260, 10, "main;f 5");
	w.duration_ns = 5 * NS_PER_S;
	store(&w, "__name__=process_cpu,job=a,pod=q", 150, 15, "main;f 4");
	store(&w, "__name__=process_cpu,job=a,pod=q", 260, 15, "main;f 5");
	if (blocks)
		CHECK_OK(db_compact(w.db, &err), &err);
	CHECK_INT(world_entries(&w, STR("pod"), "p"), want_epochs);
	CHECK_ANSWERS(&w, rows);
	world_close(&w);
}

TEST(rates_of_one_epoch)
{
	check_epochs(1000, false, 1);
	check_epochs(1000, true, 1);
}

TEST(rates_of_several_epochs)
{
	check_epochs(16, false, 2);
	check_epochs(16, true, 2);
}

/* ---- below zero ---- */

TEST(rates_of_negative_costs)
{
	/* clang-format off */
	static const struct asked rows[] = {
		{ 10, "total(rate(process_cpu:samples[10s]))", "{job=\"a\", pod=\"p\"} 0.6" },
		{ 10, "flat by (function) (rate(process_cpu:samples[10s]))",
			"{function=\"f\"} -1.5\n{function=\"g\"} 2.5\n{function=\"h\"} -0.4" },
		/* of the magnitudes, 4.4 */
		{ 10, "round(flat_share by (function) (rate(process_cpu:samples[10s]), "
		      "{function='g'}), 0.001)",
			"{function=\"g\"} 0.568" },
		{ 10, "cum by (function) (rate(process_cpu:samples[10s]), {function='main'})",
			"{function=\"main\"} 0.6" },
		/* half away from zero */
		{ 10, "rate(process_cpu:samples[10s])",
			"process_cpu{job=\"a\", pod=\"p\"} count 1 of 1: main;f -2, main;g 3" },
		{ 20, "total(rate(process_cpu:samples[20s]))", "{job=\"a\", pod=\"p\"} 0.05" },
		{ 20, "flat by (function) (merge(rate(process_cpu:samples[20s])))",
			"{function=\"g\"} 0.25\n{function=\"h\"} -0.2" },
	};
	/* clang-format on */
	struct world w;

	REQUIRE(world_open(&w, NULL));
	w.duration_ns = 10 * NS_PER_S;
	store(&w, "__name__=process_cpu,job=a,pod=p", 10, 10, "main;f -15|main;g 25|main;h -4");
	store(&w, "__name__=process_cpu,job=a,pod=p", 20, 10, "main;f 15|main;g -20");
	CHECK_ANSWERS(&w, rows);
	world_close(&w);
}

/* ---- beyond the end ---- */

/*
 * A rate looks a fifth of an interval past the window's end: a scrape that comes then was late, and
 * the window begins before the one that is as far from its begin. Levels do not look there.
 */
TEST(a_rate_looks_past_the_end_and_a_level_does_not)
{
	/* clang-format off */
	static const struct asked none[] = {
		{ 40, "total(rate(process_cpu:samples[20s]))", "{job=\"a\", pod=\"p\"} 1.5" },
		{ 40, "total(goroutine[20s])", "{job=\"a\", pod=\"p\"} 30" },
	}, late[] = {
		{ 40, "total(rate(process_cpu:samples[20s]))", "{job=\"a\", pod=\"p\"} 2.5" },
		{ 40, "total(goroutine[20s])", "{job=\"a\", pod=\"p\"} 30" },
	};
	/* clang-format on */
	struct world w;

	REQUIRE(world_open(&w, NULL));
	w.duration_ns = 10 * NS_PER_S;
	for (int i = 1; i < 4; i++)
		store(
			&w, "__name__=process_cpu,job=a,pod=p", i * 10, 10, i == 3 ? "main;f 30" : "main;f 20");
	for (int i = 1; i < 4; i++)
		store(&w, "__name__=goroutine,job=a,pod=p", i * 10, 10, i == 3 ? "main;f 30" : "main;f 20");
	CHECK_ANSWERS(&w, none);
	store(&w, "__name__=process_cpu,job=a,pod=p", 41, 10, "main;f 50");
	store(&w, "__name__=goroutine,job=a,pod=p", 41, 10, "main;f 50");
	CHECK_ANSWERS(&w, late);
	world_close(&w);
}

/* ---- rows that are gone ---- */

/* The answer, and what it stands on. */
static void check_info(struct world *w, int at_s, const char *query, const char *want, bool info)
{
	struct query_options o = { .t_ns = w->t0 + at_s * NS_PER_S, .text = str_of(query) };
	struct buf text = { 0 };
	const struct result *r;
	struct query *q;
	struct err err;

	ask(w, o, query, want);
	REQUIRE_OK(query_run(w->engine, &o, &q, &err), &err);
	r = query_result(q);
	CHECK_INT(r->infos_n, info);
	buf_add_cstr(&text, "profiles before ");
	time_print_rfc3339(&text, w->t0);
	buf_add_cstr(
		&text, " are stored only in rollups of 1h steps: the window is rounded to whole steps");
	if (r->infos_n && !str_eq(r->infos[0], buf_str(&text)))
		CHECK_FAIL("is " STR_FMT ", want " STR_FMT, STR_ARG(r->infos[0]), STR_ARG(buf_str(&text)));
	buf_release(&text);
	query_close(q);
}

/* Every 10 min for 6 h: p 10 samples of f and 0.9 of its time, q 5 samples and a third of it. */
TEST(rates_of_what_is_kept_as_sums)
{
	struct db_options o;
	struct world w;
	struct err err;

	db_options_default(&o);
	o.too_old_ns = 72 * HOUR;
	REQUIRE(world_open_over(&w, o, NULL));
	w.t0 = w.t0 / (24 * HOUR) * 24 * HOUR;
	for (int i = 1; i <= 36; i++) {
		int at_s = (i - 36) * 600 - 5;

		w.duration_ns = 540 * NS_PER_S;
		store(&w, "__name__=process_cpu,job=a,pod=p", at_s, 600, "main;f 10");
		w.duration_ns = 200 * NS_PER_S;
		store(&w, "__name__=process_cpu,job=a,pod=q", at_s, 600, "main;f 5");
	}
	/* The latest, without a gap: after one, retention waits. */
	for (int at_s = 1800; at_s <= 6 * 3600; at_s += 1800)
		store(&w, "__name__=goroutine,job=a,pod=p", at_s, 600, "main;f 1");
	db_options_default(&o);
	o.raw_retention_ns = NS_PER_S;
	REQUIRE(world_reopen(&w, o));
	CHECK_OK(db_compact(w.db, &err), &err); /* windows become blocks */
	CHECK_OK(db_compact(w.db, &err), &err); /* which lose their rows */
	/* p: 360 x 10/9 / 6 h; q: 180 x 3 / 6 h */
	check_info(&w, 0, "total(rate(process_cpu:samples[6h]))",
		"{job=\"a\", pod=\"p\"} 0.018518518518518517\n{job=\"a\", pod=\"q\"} 0.025", false);
	check_info(&w, 0, "flat by (function) (merge(rate(process_cpu:samples[6h])))",
		"{function=\"f\"} 0.04351851851851852", false);
	/* five steps in a window of 5.5 h */
	check_info(&w, -1800, "total(rate(process_cpu:samples{pod='q'}[5h30m]))",
		"{job=\"a\", pod=\"q\"} 0.022727272727272728", true);
	world_close(&w);
}

/* ---- sums over many series ---- */

/* Series by series, and as sums over those whose factors are equal. */
static void compare(struct world *w, struct engine *each, const char *text)
{
	struct query_options o = { .t_ns = w->t0, .text = str_of(text) };
	struct engine *together = w->engine;
	struct buf slow = { 0 };

	for (int i = 0; i < 2; i++) {
		w->engine = each;
		world_answer(w, o);
		buf_clear(&slow);
		buf_add_str(&slow, buf_str(&w->text));
		w->engine = together;
		world_answer(w, o);
		if (!slow.len || !str_eq(buf_str(&w->text), buf_str(&slow)))
			CHECK_FAIL("%s\n    one by one %.800s\n    together   %.800s", text,
				slow.ptr ? slow.ptr : "", w->text.ptr ? w->text.ptr : "");
		o.step_ns = 50 * NS_PER_MIN;
		o.start_ns = w->t0 - 6 * HOUR;
		o.end_ns = w->t0 - 17 * NS_PER_S;
	}
	buf_release(&slow);
}

static void compare_all(struct world *w, struct engine *each)
{
	static const char *const calls[] = { "rate(process_cpu:samples[7h])",
		"rate(process_cpu:samples[90m])", "avg_over_time(process_cpu[8h])",
		"avg_over_time(memory[7h])", "sum_over_time(memory[7h])",
		"rate(process_cpu:samples{n!='1'}[7h])" };
	static const char *const around[] = { "flat(merge(%s))", "merge by (job) (%s)",
		"total(merge by (job) (%s))", "cum by (function, n) (merge(%s))",
		"flat_share(merge(%s), {function='f'})" };
	char text[160];

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (size_t k = 0; k < sizeof(around) / sizeof(around[0]); k++) {
			snprintf(text, sizeof(text), around[k], calls[i]);
			compare(w, each, text);
		}
}

/* Of a, all but one pod see as much of their time, one of them later less; of b scrapes differ. */
static void store_pods(struct world *w, uint64_t *draws)
{
	char labels[80], text[160];

	for (int i = 1; i <= 48; i++)
		for (int pod = 0; pod < 7; pod++) {
			unsigned d = (unsigned)(*draws = *draws * 6364136223846793005u + 1) >> 8;
			int at_s = (i - 48) * 600 - 5;

			w->duration_ns = (pod == 3 ? 200 : pod == 2 && i > 30 ? 500 : 540) * NS_PER_S;
			if (pod > 4)
				w->duration_ns -= d % 1000;
			snprintf(labels, sizeof(labels), "__name__=process_cpu,job=%s,pod=%d",
				pod > 4 ? "b" : "a", pod);
			snprintf(text, sizeof(text), "main;f %u|main;g{n=#1} %u|main;h;f %u%s", d % 97,
				d / 97 % 13, i % 4 ? 0 : d / 999 % 7, i == 20 ? FILLING : "");
			store(w, labels, at_s, 600, text);
			snprintf(
				labels, sizeof(labels), "__name__=memory,job=%s,pod=%d", pod > 4 ? "b" : "a", pod);
			store(w, labels, at_s, pod == 1 ? 300 : 600, text);
		}
}

static void check_groups(uint32_t nodes_max)
{
	struct engine_options together = { .rate_groups_ns = 1 },
						  one_by_one = { .rate_groups_ns = INT64_MAX };
	struct matcher m[] = { { .op = MATCH_EQ, .name = STR("pod"), .value = STR("1") } };
	struct engine *each;
	struct db_options o;
	uint64_t draws = 5;
	struct world w;
	struct err err;

	db_options_default(&o);
	o.too_old_ns = 72 * HOUR;
	o.nodes_max = nodes_max;
	o.no_compaction = true;
	REQUIRE(world_open_over(&w, o, &together));
	one_by_one.db = w.db;
	REQUIRE_OK(engine_open(&one_by_one, &each, &err), &err);
	store_pods(&w, &draws);
	compare_all(&w, each);
	CHECK_OK(db_compact(w.db, &err), &err);
	compare_all(&w, each);
	CHECK_OK(db_delete_series(w.db, m, 1, w.t0 - 5 * HOUR, w.t0 - 4 * HOUR, &err), &err);
	compare_all(&w, each);
	engine_close(each);
	world_close(&w);
}

TEST(rates_of_many_series_are_those_of_each)
{
	check_groups(1000);
	check_groups(16);
}
