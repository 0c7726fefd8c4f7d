/*
 * fuzz: promql/engine
 *
 * Any text of tagfocus and tagignore, over labels of samples with strings, numbers and units: both
 * refuse it alike, or what one keeps and what the other keeps is all there is.
 */
#include "base/quote.h"
#include "tests/fuzz/small_db.h"

static double all;

static const struct {
	const char *key, *str, *unit;
	int64_t num, value;
} samples[] = {
	{ "handler", "/x,y", NULL, 0, 1 },
	{ "handler", "\xff", NULL, 0, 2 },
	{ "bytes", NULL, "bytes", 2048, 4 },
	{ "bytes", NULL, "kilobytes", 3, 8 }, /* a key has one unit: the first that is met */
	{ "bytes", NULL, NULL, 100, 16 },
	{ "latency", NULL, "ms", -5, 32 },
	{ "latency", NULL, "ms", INT64_MAX, 64 },
	{ "size", NULL, "", INT64_MIN, 128 },
	{ "odd", NULL, "no unit", 7, 256 },
	{ NULL, NULL, NULL, 0, 512 },
};
#define SAMPLES_N (sizeof(samples) / sizeof(samples[0]))

static void store(struct arena *a)
{
	static const enum value_kind kind = KIND_DELTA;
	static const struct label name = { STR("__name__"), STR("x") };
	struct db_append append = {
		.labels = { &name, 1 }, .ts_ns = T0, .interval_ns = 10 * NS_PER_S, .kinds = &kind
	};
	struct pprof_line line = { .line = 1 };
	struct pprof_builder *b;
	struct pprof *p;
	uint32_t at;
	struct err err;

	require(!pprof_builder_open(a, &b, &err));
	pprof_builder_type(b, STR("samples"), STR("count"));
	line.function = pprof_builder_function(
		b, &(struct pprof_function){ .name = pprof_builder_string(b, STR("main")) });
	at = pprof_builder_location(
		b, (struct pprof_location){ .address = 1, .mapping = PPROF_NONE }, &line, 1);
	for (size_t i = 0; i < SAMPLES_N; i++) {
		struct pprof_label l = { .num = samples[i].num };

		if (samples[i].key)
			l.key = pprof_builder_string(b, str_of(samples[i].key));
		if (samples[i].str)
			l.str = pprof_builder_string(b, str_of(samples[i].str));
		if (samples[i].unit)
			l.num_unit = pprof_builder_string(b, str_of(samples[i].unit));
		pprof_builder_sample(b, &at, 1, &l, samples[i].key ? 1 : 0, &samples[i].value);
		all += (double)samples[i].value;
	}
	require(!pprof_builder_finish(b, &p, &err));
	append.profile = p;
	require(!db_append(db, &append, NULL, on_acked, NULL, &err));
	wait_acked(1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct engine_options e = { .timeout_ns = 20 * NS_PER_S, .memory_bytes_max = 64u << 20 };
	struct arena a;

	small_db_open(e);
	arena_init(&a, 0);
	store(&a);
	arena_release(&a);
	return 0;
}

static enum err_code kept(const char *filter, struct str text, double *sum)
{
	struct query_options o = { .t_ns = T0 };
	struct query *q = NULL;
	struct buf query = { 0 };
	struct err err = { 0 };
	enum err_code rc;

	buf_printf(&query, "sum(total(%s(x,", filter);
	buf_add_quoted(&query, text);
	buf_add_cstr(&query, ")))");
	o.text = buf_str(&query);
	if (!(rc = query_run(engine, &o, &q, &err))) {
		require(query_result(q)->type == RESULT_VECTOR && query_result(q)->n == 1);
		*sum = query_result(q)->vector[0].value;
	} else {
		require(err.msg[0] && (rc == ERR_INVALID || rc == ERR_LIMIT));
	}
	query_close(q);
	buf_release(&query);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	double focused = 0, ignored = 0;
	enum err_code rc;

	if (size == 0)
		return 0; /* nothing is asked: both keep all */
	rc = kept("tagfocus", text, &focused);
	require(kept("tagignore", text, &ignored) == rc);
	require(rc || focused + ignored == all);
	return 0;
}
