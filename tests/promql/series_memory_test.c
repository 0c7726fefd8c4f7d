/*
 * The memory that series of profiles take of a query. A query that would take too much is refused
 * before it reads anything; its error names an amount, which is compared with the measured one.
 */
#include "promql/engine/engine_internal.h"
#include "tests/promql/world.h"
#include "tests/wait.h"

#define SERIES 20000u
#define MEMORY ((size_t)4 << 30)

static char one_stack[] = "main;f 3"; /* not constant: else gcc sees reads beyond its end */

static struct pprof *profile_of(struct world *w)
{
	const char *stacks = one_stack;
	struct frame_ids ids = { .n = 0 };
	struct pprof_builder *b;
	struct pprof *p;
	struct err err;

	if (pprof_builder_open(&w->arena, &b, &err))
		return NULL;
	pprof_builder_type(b, STR("samples"), STR("count"));
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	pprof_builder_profile(b)->time_nanos = w->t0;
	pprof_builder_profile(b)->duration_nanos = 9 * NS_PER_S;
	while (*stacks)
		stacks = add_stack(b, &ids, stacks, profiles[0].factors, 2);
	return pprof_builder_finish(b, &p, &err) ? NULL : p;
}

static void store_series(struct world *w)
{
	enum value_kind kinds[2] = { KIND_DELTA, KIND_DELTA };
	struct pprof *p = profile_of(w);
	struct db_append_stats stats;
	struct err err;
	char text[96];

	REQUIRE(p);
	atomic_store(&acked, 0);
	for (unsigned i = 0; i < SERIES; i++) {
		struct db_append a = { .ts_ns = w->t0 + 10 * NS_PER_S,
			.interval_ns = 10 * NS_PER_S,
			.profile = p,
			.kinds = kinds };

		snprintf(text, sizeof(text), "__name__=process_cpu,instance=host-%06u,job=a", i);
		a.labels = labels_of(&w->arena, text);
		REQUIRE_OK(db_append(w->db, &a, &stats, on_acked, NULL, &err), &err);
	}
	CHECK(WAIT_FOR((unsigned)atomic_load(&acked) >= SERIES));
	CHECK_INT(atomic_load(&acked), SERIES);
}

static void open_engine(struct world *w, unsigned threads, size_t memory_bytes)
{
	struct engine_options o = { .db = w->db,
		.samples_max = 2000000000,
		.memory_bytes_max = memory_bytes,
		.threads_max = threads };
	struct err err;

	engine_close(w->engine);
	w->engine = NULL;
	REQUIRE_OK(engine_open(&o, &w->engine, &err), &err);
}

static enum err_code run(
	struct world *w, const char *text, size_t *peak, uint64_t *samples, struct err *err)
{
	struct query_options o = { .text = str_of(text), .t_ns = w->t0 + 20 * NS_PER_S };
	struct query *q;
	enum err_code rc = query_run(w->engine, &o, &q, err);

	if (rc)
		return rc;
	*peak = q->memory.peak_bytes;
	*samples = q->plan.all.samples;
	query_close(q);
	return ERR_OK;
}

/* "... would need 28,644,112 bytes of memory ...", or 0. */
static size_t needed_bytes(const char *msg)
{
	const char *at = strstr(msg, " bytes of memory");
	size_t n = 0, factor = 1;

	if (!at)
		return 0;
	for (; at[-1] != ' '; at--) {
		if (at[-1] == ',')
			continue;
		n += factor * (size_t)(at[-1] - '0');
		factor *= 10;
	}
	return n;
}

/* per_mille: of what is taken that the query is told at least; what comes after reading is not in
 * it. */
/* clang-format off */
static const struct {
	const char *query;
	size_t per_mille;
} queries[] = {
	{ "process_cpu", 700 }, { "cpu", 700 }, { "{job=\"a\"}", 700 },
	{ "cpu:samples", 700 }, /* each of them may lack the type: known once they are found */
	{ "cpu[5m]", 700 }, { "merge by (instance) (cpu)", 700 }, { "total(cpu)", 600 },
	{ "sum(total(cpu))", 550 }, { "rate(cpu[5m])", 500 }, { "flat(cpu)", 400 },
	{ "top(3, cpu)", 500 }, { "changed(cpu[5m], cpu[10m])", 250 },
};
/* clang-format on */

static void check_refused(struct world *w, unsigned threads, size_t i)
{
	const char *text = queries[i].query;
	size_t peak = 0, told;
	uint64_t samples;
	struct err err;

	open_engine(w, threads, MEMORY);
	if (run(w, text, &peak, &samples, &err)) {
		CHECK_FAIL("%s: %s", text, err.msg);
		return;
	}
	open_engine(w, threads, peak * queries[i].per_mille / 1000);
	if (!run(w, text, &peak, &samples, &err)) {
		CHECK_FAIL("%s: not refused", text);
		return;
	}
	told = needed_bytes(err.msg);
	if (told < peak * queries[i].per_mille / 1000 || told > peak + peak / 50)
		CHECK_FAIL("%s by %u threads takes %zu bytes; %s", text, threads, peak, err.msg);
	if (!strstr(err.msg, "--query.max-memory"))
		CHECK_FAIL("%s: no flag: %s", text, err.msg);
}

TEST(what_series_take_is_known_before_they_are_read)
{
	/* In short each by one or by four. */
	const size_t step = check_is_short() ? 5 : (CHECK_STEP + 1) / 2;
	const size_t turns = check_is_short() ? 1 : 2;
	struct world w;

	REQUIRE(world_open(&w, NULL));
	store_series(&w);
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i += step)
		for (size_t k = 0; k < turns; k++)
			check_refused(&w, (i + k) % 2 ? 4 : 1, i);
	world_close(&w);
}

/* If a profile has too many series, the share with a type is estimated from some. */
TEST(series_with_a_type_are_counted_from_some)
{
	static const char *const typed[] = { "cpu:samples", "flat(cpu:samples[5m])" };
	size_t peak = 0;
	uint64_t samples;
	struct world w;
	struct err err;

	REQUIRE(world_open(&w, NULL));
	store_series(&w);
	open_engine(&w, 2, SERIES * 500);
	for (size_t i = 0; i < 2; i++) {
		CHECK_INT(run(&w, typed[i], &peak, &samples, &err), ERR_LIMIT);
		CHECK(str_has_prefix(str_of(err.msg), STR("the query selects about ")));
		CHECK(strstr(err.msg, "(--query.max-memory)") != NULL);
	}
	at(&w, 20, "cpu:nothing", "");
	at(&w, 20, "total(merge(cpu:samples))", "{} 60000");
	world_close(&w);
}

/* A merge while reading takes no more memory than the series: if they fit, it is answered. */
TEST(merges_take_no_memory_per_element)
{
	size_t peak = 0;
	uint64_t samples;
	struct world w;
	struct err err;

	REQUIRE(world_open(&w, NULL));
	store_series(&w);
	open_engine(&w, 2, SERIES * 400);
	CHECK_OK(run(&w, "merge(cpu)", &peak, &samples, &err), &err);
	CHECK(peak < SERIES * 400);
	at(&w, 20, "sum(total(merge by (job) (cpu:samples)))", "{} 60000");
	world_close(&w);
}
