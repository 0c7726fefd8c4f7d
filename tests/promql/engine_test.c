#include "base/memory_pool.h"
#include "base/thread.h"
#include "promql/engine/engine_internal.h"
#include "tests/promql/world.h"
#include "tests/wait.h"

TEST(no_database_is_asked_where_nothing_is_selected)
{
	struct engine_options o = { 0 };
	struct engine *e;
	struct query_options q = { .text = STR("1 + 1"), .t_ns = 1000000000 };
	struct query *query;
	struct err err;

	REQUIRE_OK(engine_open(&o, &e, &err), &err);
	REQUIRE_OK(query_run(e, &q, &query, &err), &err);
	CHECK_INT(query_result(query)->type, RESULT_SCALAR);
	CHECK(query_result(query)->scalar == 2);
	query_close(query);
	q.text = STR("\"x\"");
	REQUIRE_OK(query_run(e, &q, &query, &err), &err);
	CHECK_STR(query_result(query)->string, "x");
	query_close(query);
	engine_close(e);
}

/* The infos of the query at the 20th second, one a line, or the error. */
static void check_hints(struct world *w, const char *text, bool hints, const char *want)
{
	struct query_options o = {
		.text = str_of(text), .t_ns = w->t0 + 20 * NS_PER_S, .hints = hints
	};
	const struct result *r;
	struct buf got = { 0 };
	struct query *q;
	struct err err;

	REQUIRE_OK(query_run(w->engine, &o, &q, &err), &err);
	r = query_result(q);
	for (size_t i = 0; i < r->infos_n; i++)
		buf_printf(&got, "%s" STR_FMT, i ? "\n" : "", STR_ARG(r->infos[i]));
	if (!str_is(buf_str(&got), want))
		CHECK_FAIL("%s:\n" STR_FMT "\nwant:\n%s", text, STR_ARG(buf_str(&got)), want);
	buf_release(&got);
	query_close(q);
}

TEST(an_empty_answer_names_what_is_not_stored_and_what_is_near)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "cpuu[1m]",
			"no type or series is named \"cpuu\" in this time range; did you mean \"cpu\"?" },
		{ "merge(cpu:sampels[1m])",
			"no type or series is named \"cpu:sampels\" in this time range; did you mean "
			"\"cpu:samples\"?" },
		{ "nothing_like_it[1m]",
			"no type or series is named \"nothing_like_it\" in this time range" },
		{ "cpu:samples{jb=\"a\"}[1m]",
			"no series of \"cpu:samples\" has a label \"jb\" in this time range; did you mean "
			"\"job\"?" },
		{ "cpu:samples{job=\"A\"}[1m]",
			"no series of \"cpu:samples\" has job=\"A\" in this time range; did you mean \"a\"?" },
		{ "{job=\"c\"}[1m]", "no series has job=\"c\" in this time range" },
		{ "cpu:samples{handler=\"/z\"}[1m]",
			"no series of \"cpu:samples\" has handler=\"/z\" in this time range; did you mean "
			"\"/x\"?" },
		{ "cpu:samples{pod=\"none\"}[1m]",
			"no series of \"cpu:samples\" has pod=\"none\" in this time range" },
		{ "flat(cpu:samples{job=\"zzz\"}[1m]) > 3",
			"no series of \"cpu:samples\" has job=\"zzz\" in this time range" },
		/* All names are right: the answer is empty for another reason. */
		{ "cpu:samples{job=\"a\",pod=\"r\"}[1m]", "" },
		{ "total(cpu:samples[1m]) > 1e9", "" },
		{ "flat(cpu:samples[1m], {function=\"nonesuch\"})", "" },
		/* The answer has something. */
		{ "cpu:samples[1m]", "" },
		{ "total(cpu:samples[1m]) or total(cpuu[1m])", "" },
	};
	struct world w;

	REQUIRE(world_open(&w, NULL));
	check_hints(&w, "cpuu[1m]", true, ""); /* nothing is stored at all */
	fill(&w);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_hints(&w, rows[i].text, true, rows[i].want);
	check_hints(&w, "cpuu[1m]", false, ""); /* rules do not ask */
	world_close(&w);
}

TEST(limits)
{
	struct engine_options few = { .samples_max = 3 }, little = { .memory_bytes_max = 4096 };
	struct engine_options little_together = { .memory_total_max = 4096 };
	atomic_bool cancel = true;
	struct world w;
	struct query_options o = { .text = STR("merge(cpu:samples{job=\"a\"}[1m])") };
	struct query *q;
	struct err err;

	if (!world_open(&w, &few))
		return;
	fill(&w);
	at(&w, 20, "merge(cpu:samples{job=\"a\"}[1m])",
		"limit exceeded: the query would read about 5 samples, limit 3 (--query.max-samples)");
	o.t_ns = w.t0 + 20 * NS_PER_S;
	CHECK_ERR(query_run_cancelable(w.engine, &o, &cancel, &q, &err), &err, ERR_CANCELED,
		"query was canceled in query queue");
	o.timeout_ns = 1;
	CHECK_ERR(
		query_run(w.engine, &o, &q, &err), &err, ERR_TIMEOUT, "query timed out in query queue");
	world_close(&w);
	if (!world_open(&w, &little))
		return;
	fill(&w);
	at(&w, 20, "merge(cpu:samples{job=\"a\"}[1m])",
		"limit exceeded: query needs more memory than its limit of 4096 bytes "
		"(--query.max-memory)");
	world_close(&w);
	if (!world_open(&w, &little_together))
		return;
	fill(&w);
	at(&w, 20, "merge(cpu:samples{job=\"a\"}[1m])",
		"limit exceeded: query needs more memory than the 4096 bytes that all may use "
		"together (--query.max-memory-total)");
	world_close(&w);
}

struct patient {
	struct world *w;
	struct thread thread;
	struct query *q;
	atomic_bool done;
	struct err err;
};

static int starved_infos(const struct result *r)
{
	int n = 0;

	for (size_t i = 0; i < r->infos_n; i++)
		n += str_has_prefix(r->infos[i], STR("waited ")) &&
			str_has_suffix(r->infos[i],
				STR(" s for memory that other queries had (--query.max-memory-total)"));
	return n;
}

struct asking {
	struct world *w;
	double want;
	atomic_uint right, wrong;
};

static void ask_again_and_again(void *ctx)
{
	struct asking *x = ctx;
	struct query_options o = { .text = STR("sum(flat(merge(cpu:samples[1m]))) + "
					       "sum(cum(merge(cpu:samples[1m])))") };
	struct query *q;
	struct err err;

	o.t_ns = x->w->t0 + 20 * NS_PER_S;
	for (int i = 0; i < 50; i++) {
		if (query_run(x->w->engine, &o, &q, &err)) {
			CHECK_FAIL("%s", err.msg);
			continue;
		}
		atomic_fetch_add(query_result(q)->vector[0].value == x->want ? &x->right : &x->wrong, 1);
		query_close(q);
	}
}

/* There is memory for two or three of them: the others wait, or begin again, and none is wrong. */
TEST(queries_that_share_their_memory)
{
	struct engine_options o = { .memory_total_max = (size_t)192 << 10, .concurrency_max = 6 };
	struct asking x = { 0 };
	struct thread threads[10] = { 0 };
	struct world w;
	struct query_options one = { .text = STR("sum(flat(merge(cpu:samples[1m]))) + "
						 "sum(cum(merge(cpu:samples[1m])))") };
	struct query *q;
	struct err err;
	size_t used, max;

	if (!world_open(&w, &o))
		return;
	fill(&w);
	one.t_ns = w.t0 + 20 * NS_PER_S;
	REQUIRE_OK(query_run(w.engine, &one, &q, &err), &err);
	x.w = &w;
	x.want = query_result(q)->vector[0].value;
	engine_memory(w.engine, &used, &max);
	CHECK(used > 0 && used <= max);
	CHECK_INT(max, 192 << 10);
	query_close(q);
	for (int i = 0; i < 10; i++)
		REQUIRE_OK(thread_start(&threads[i], "asker", ask_again_and_again, &x, &err), &err);
	for (int i = 0; i < 10; i++)
		thread_join(&threads[i]);
	CHECK_INT(atomic_load(&x.right), 500);
	CHECK_INT(atomic_load(&x.wrong), 0);
	engine_memory(w.engine, &used, &max);
	CHECK_INT(used, 0);
	world_close(&w);
}

/* ---- waits are told ---- */

static void run_patiently(void *ctx)
{
	struct patient *p = ctx;
	const struct query_options o = { .text = STR("merge(cpu:samples[1m])"),
										 .t_ns = p->w->t0 + 20 * NS_PER_S, .timeout_ns = WAIT_NS };

	if (query_run(p->w->engine, &o, &p->q, &p->err))
		CHECK_FAIL("%s", p->err.msg);
	atomic_store(&p->done, true);
}

static uint64_t memory_waits(const struct world *w)
{
	return memory_pool_look(w->engine->memory).waits;
}

/* Queries that are open hold memory, until one has to wait for it: this one says so. */
TEST(a_wait_for_memory_is_told)
{
	struct engine_options o = { .memory_total_max = (size_t)192 << 10, .wait_told_ns = 1 };
	struct patient p[64] = { 0 };
	struct world w;
	struct err err;
	size_t n = 0;

	if (!world_open(&w, &o))
		return;
	fill(&w);
	do {
		p[n].w = &w;
		REQUIRE_OK(thread_start(&p[n].thread, "patient", run_patiently, &p[n], &err), &err);
		CHECK(WAIT_FOR(atomic_load(&p[n].done) || memory_waits(&w)));
	} while (!memory_waits(&w) && ++n < 64);
	REQUIRE(n > 0 && n < 64);
	for (size_t i = 0; i < n; i++) {
		thread_join(&p[i].thread);
		CHECK_INT(starved_infos(query_result(p[i].q)), 0);
		query_close(p[i].q);
	}
	thread_join(&p[n].thread);
	CHECK_INT(starved_infos(query_result(p[n].q)), 1);
	query_close(p[n].q);
	world_close(&w);
}

/* Also of what is done with the result: until it is closed. */
TEST(a_query_is_to_end_at_its_deadline)
{
	struct query_options o = { .timeout_ns = WAIT_NS };
	atomic_bool cancel = false;
	struct world w;
	struct query *q;
	struct err err;

	if (!world_open(&w, NULL))
		return;
	fill(&w);
	o.text = STR("merge(cpu:samples{job=\"a\"}[1m])");
	o.t_ns = w.t0 + 20 * NS_PER_S;
	REQUIRE_OK(query_run_cancelable(w.engine, &o, &cancel, &q, &err), &err);
	CHECK(!atomic_load(query_stop_flag(q)));
	atomic_store(&cancel, true);
	CHECK(WAIT_FOR(atomic_load(query_stop_flag(q))));
	CHECK_ERR(
		query_stopped(q, "rendering", &err), &err, ERR_CANCELED, "query was canceled in rendering");
	query_close(q);
	o.timeout_ns = NS_PER_S;
	REQUIRE(WAIT_FOR(!query_run(w.engine, &o, &q, &err))); /* a busy machine may need longer */
	CHECK(WAIT_FOR(atomic_load(query_stop_flag(q))));
	CHECK_ERR(
		query_stopped(q, "rendering", &err), &err, ERR_TIMEOUT, "query timed out in rendering");
	query_close(q);
	world_close(&w);
}

/* ---- many at once ---- */

struct asker {
	struct world *w;
	atomic_bool cancel;
	atomic_int done, canceled, wrong;
};

static void ask_often(void *ctx)
{
	struct asker *a = ctx;
	struct query_options o = { .text = STR("total(merge(cpu:samples{job=\"a\"}[1m]))"),
								   .t_ns = a->w->t0 + 20 * NS_PER_S };
	struct query *q;
	struct err err;

	for (int i = 0; i < 200; i++) {
		if (i == 150)
			atomic_store(&a->cancel, true);
		switch (query_run_cancelable(a->w->engine, &o, &a->cancel, &q, &err)) {
		case ERR_OK:
			if (query_result(q)->n != 1 || query_result(q)->vector[0].value != 43)
				atomic_fetch_add(&a->wrong, 1);
			atomic_fetch_add(&a->done, 1);
			query_close(q);
			break;
		case ERR_CANCELED:
			atomic_fetch_add(&a->canceled, 1);
			break;
		default:
			atomic_fetch_add(&a->wrong, 1);
		}
	}
}

TEST(queries_side_by_side)
{
	struct engine_options two = { .concurrency_max = 2 };
	struct asker askers[4] = { 0 };
	struct thread threads[4] = { 0 };
	struct world w;
	struct err err;

	if (!world_open(&w, &two))
		return;
	fill(&w);
	for (int i = 0; i < 4; i++) {
		askers[i].w = &w;
		CHECK_OK(thread_start(&threads[i], "asker", ask_often, &askers[i], &err), &err);
	}
	for (int i = 0; i < 4; i++) {
		thread_join(&threads[i]);
		CHECK_INT(atomic_load(&askers[i].done), 150);
		CHECK_INT(atomic_load(&askers[i].canceled), 50);
		CHECK_INT(atomic_load(&askers[i].wrong), 0);
	}
	world_close(&w);
}
