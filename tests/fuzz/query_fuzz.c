/*
 * fuzz: promql/engine
 *
 * Any text is planned, explained and evaluated over a small database without harm, within small
 * limits: at one time, over a span, in steps. What a plan says is JSON that nests no deeper than it
 * may.
 */
#include "base/json.h"
#include "tests/fuzz/small_db.h"

static struct labels labels_of(struct arena *a, const char *name, const char *pod)
{
	struct labels_builder b;
	struct labels out;
	struct err err;

	labels_builder_init(&b, a, (struct labels){ 0 });
	labels_builder_set(&b, STR("__name__"), str_of(name));
	labels_builder_set(&b, STR("job"), STR("a"));
	labels_builder_set(&b, STR("pod"), str_of(pod));
	require(!labels_builder_build(&b, &out, &err));
	return out;
}

static void store(struct arena *a, const char *name, const char *pod, int64_t at_s, bool gauge)
{
	enum value_kind kinds[] = { gauge ? KIND_GAUGE : KIND_DELTA };
	struct db_append append = { .labels = labels_of(a, name, pod),
		.ts_ns = T0 + at_s * NS_PER_S,
		.interval_ns = 10 * NS_PER_S,
		.kinds = kinds };
	struct db_append_stats stats;
	struct pprof_builder *b;
	struct pprof_line line = { .line = 1 };
	struct pprof *p;
	uint32_t at[2];
	int64_t value = at_s;
	struct err err;

	require(!pprof_builder_open(a, &b, &err));
	pprof_builder_type(b, STR("samples"), STR("count"));
	for (uint32_t i = 0; i < 2; i++) {
		line.function = pprof_builder_function(b,
			&(struct pprof_function){
				.name = pprof_builder_string(b, i ? STR("f") : STR("main")) });
		at[i] = pprof_builder_location(
			b, (struct pprof_location){ .address = i + 1, .mapping = PPROF_NONE }, &line, 1);
	}
	pprof_builder_sample(b, at, 2, NULL, 0, &value);
	pprof_builder_sample(b, at, 1, NULL, 0, &value);
	require(!pprof_builder_finish(b, &p, &err));
	append.profile = p;
	require(!db_append(db, &append, &stats, on_acked, NULL, &err));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct engine_options e = {
		.timeout_ns = 2 * NS_PER_S, .samples_max = 100000, .memory_bytes_max = 16u << 20
	};
	struct db_number up = { .ts_ns = T0 + 10 * NS_PER_S, .value = 1 };
	struct arena a;
	struct err err;

	small_db_open(e);
	arena_init(&a, 0);
	for (int64_t t = 10; t <= 60; t += 10) {
		store(&a, "process_cpu", "p", t, false);
		store(&a, "process_cpu", "q", t, false);
		store(&a, "goroutine", "p", t, true);
	}
	up.labels = labels_of(&a, "up", "p");
	require(!db_append_numbers(db, &up, 1, on_acked, NULL, &err));
	wait_acked(19);
	arena_release(&a);
	return 0;
}

static void run(struct query_options o)
{
	struct query *q = NULL;
	struct buf text = { 0 };
	struct json j;
	struct err err = { 0 };
	enum err_code rc = query_run(engine, &o, &q, &err);

	if (rc) {
		require(err.msg[0]);
		require(rc == ERR_INVALID || rc == ERR_LIMIT || rc == ERR_UNSUPPORTED || rc == ERR_TIMEOUT);
		return;
	}
	if (o.explain) {
		json_init(&j, &text);
		query_explain_json(q, &j);
		query_explain_print(q, &text);
	}
	buf_release(&text);
	query_close(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct query_options o = {
		.text = { (const char *)data, size }, .t_ns = T0 + 60 * NS_PER_S, .explain = true
	};

	run(o);
	o.analyze = true;
	run(o);
	o.explain = o.analyze = false;
	o.start_ns = T0;
	o.end_ns = T0 + 60 * NS_PER_S;
	o.step_ns = 20 * NS_PER_S;
	run(o);
	o.step_ns = 0;
	o.has_span = true;
	run(o);
	return 0;
}
