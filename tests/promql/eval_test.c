#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "promql/engine.h"
#include "tests/check.h"

/* ---- a database and an engine over it ---- */

struct world {
	char dir[64];
	struct db *db;
	struct engine *engine;
	int64_t t0; /* a whole minute, lately */
	struct arena arena;
	struct buf text; /* of the last answer */
};

static bool world_open(struct world *w, const struct engine_options *limits)
{
	struct db_options o;
	struct engine_options e = { 0 };
	struct err err;

	*w = (struct world){ 0 };
	arena_init(&w->arena, 0);
	snprintf(w->dir, sizeof(w->dir), "/tmp/epi-eval-XXXXXX");
	if (!mkdtemp(w->dir))
		return false;
	db_options_default(&o);
	o.dir = w->dir;
	o.free_bytes_reserve = 1;
	w->t0 = (clock_now_ns() / NS_PER_MIN - 20) * NS_PER_MIN;
	if (db_open(&o, &w->db, &err)) {
		CHECK_FAIL("%s", err.msg);
		return false;
	}
	if (limits)
		e = *limits;
	e.db = w->db;
	if (engine_open(&e, &w->engine, &err)) {
		CHECK_FAIL("%s", err.msg);
		return false;
	}
	return true;
}

static void world_close(struct world *w)
{
	char command[128];
	FILE *f;

	engine_close(w->engine);
	db_close(w->db);
	arena_release(&w->arena);
	buf_release(&w->text);
	snprintf(command, sizeof(command), "rm -rf '%s'", w->dir);
	if ((f = popen(command, "r")))
		pclose(f);
}

/* ---- profiles as text: "main;f;g{handler=/a,n=#3} 5|main 2", root first ---- */

#define FRAMES_MAX 32

static struct labels labels_of(struct arena *a, const char *text)
{
	struct labels_builder b;
	struct labels out;
	struct err err;

	labels_builder_init(&b, a, (struct labels){ 0 });
	while (*text) {
		size_t name = strcspn(text, "="), value = strcspn(text + name + 1, ",");

		labels_builder_set(
			&b, (struct str){ text, name }, (struct str){ text + name + 1, value });
		text += name + 1 + value;
		text += *text == ',';
	}
	CHECK_OK(labels_builder_build(&b, &out, &err), &err);
	return out;
}

struct frame_ids {
	struct str name[256];
	uint32_t location[256];
	uint32_t n;
};

static uint32_t location_of(struct pprof_builder *b, struct frame_ids *ids, struct str name)
{
	struct pprof_line line = { .line = 1 };
	uint32_t i = 0;

	while (i < ids->n && !str_eq(ids->name[i], name))
		i++;
	if (i == ids->n) {
		line.function = pprof_builder_function(
			b, &(struct pprof_function){ .name = pprof_builder_string(b, name) });
		ids->name[i] = name;
		ids->location[i] = pprof_builder_location(b,
			(struct pprof_location){ .address = i + 1, .mapping = PPROF_NONE }, &line,
			1);
		ids->n++;
	}
	return ids->location[i];
}

static const char *add_stack(struct pprof_builder *b, struct frame_ids *ids, const char *at,
	const int64_t *factors, uint32_t types_n)
{
	struct pprof_label labels[4];
	uint32_t frames[FRAMES_MAX], stack[FRAMES_MAX], n = 0, labels_n = 0;
	int64_t values[4];
	char *end;

	for (; *at != ' ' && *at != '{'; at += *at == ';') {
		size_t len = strcspn(at, ";{ ");

		frames[n++] = location_of(b, ids, (struct str){ at, len });
		at += len;
	}
	for (; *at != ' '; at++) { /* '{' or ',' in front, '}' at the end */
		size_t key = strcspn(++at, "="), len = strcspn(at + key + 1, ",}");
		const char *value = at + key + 1;
		struct pprof_label *l = &labels[labels_n++];

		*l = (struct pprof_label){ .key = pprof_builder_string(
						   b, (struct str){ at, key }) };
		if (*value == '#')
			l->num = strtoll(value + 1, NULL, 10);
		else
			l->str = pprof_builder_string(b, (struct str){ value, len });
		at = value + len - (value[len] == ',');
	}
	for (uint32_t i = 0; i < n; i++)
		stack[i] = frames[n - 1 - i];
	values[0] = strtoll(at, &end, 10);
	for (uint32_t i = types_n; i-- > 0;)
		values[i] = values[0] * factors[i];
	pprof_builder_sample(b, stack, n, labels, labels_n, values);
	return *end == '|' ? end + 1 : end;
}

static const struct {
	const char *name, *types[2], *units[2];
	int64_t factors[2];
	uint32_t types_n;
	enum value_kind kind;
} profiles[] = {
	{ "process_cpu", { "samples", "cpu" }, { "count", "nanoseconds" }, { 1, 10000000 }, 2,
		KIND_DELTA },
	{ "goroutine", { "goroutine" }, { "count" }, { 1 }, 1, KIND_GAUGE },
	{ "memory", { "alloc_space", "inuse_space" }, { "bytes", "bytes" }, { 2, 1 }, 2,
		KIND_GAUGE },
	{ "cpu", { "ticks" }, { "count" }, { 1 }, 1, KIND_DELTA },
	{ "odd", { "apples", "pears" }, { "count", "count" }, { 1, 100 }, 2, KIND_DELTA },
};

static atomic_int acked;

static void on_acked(void *ctx, enum err_code rc, const struct err *err)
{
	if (rc)
		CHECK_FAIL("not stored: %s", err->msg);
	atomic_fetch_add(&acked, 1);
}

/* One scrape at t0 + at_s. */
static void store(struct world *w, const char *labels, int at_s, int interval_s, const char *stacks)
{
	struct db_append a = { .ts_ns = w->t0 + at_s * NS_PER_S,
		.interval_ns = interval_s * NS_PER_S };
	enum value_kind kinds[2] = { 0 };
	struct frame_ids ids = { .n = 0 };
	struct db_append_stats stats;
	struct pprof_builder *b;
	struct pprof *p;
	struct err err;
	size_t k = 0;

	a.labels = labels_of(&w->arena, labels);
	while (!str_is(labels_get(a.labels, STR(LABEL_NAME)), profiles[k].name))
		k++;
	if (pprof_builder_open(&w->arena, &b, &err)) {
		CHECK_FAIL("%s", err.msg);
		return;
	}
	for (uint32_t i = 0; i < profiles[k].types_n; i++) {
		pprof_builder_type(b, str_of(profiles[k].types[i]), str_of(profiles[k].units[i]));
		kinds[i] = profiles[k].kind;
	}
	if (!strcmp(profiles[k].name, "odd"))
		pprof_builder_profile(b)->default_sample_type = pprof_builder_string(
			b, STR("apples"));
	pprof_builder_profile(b)->time_nanos = a.ts_ns;
	pprof_builder_profile(b)->duration_nanos = profiles[k].kind == KIND_DELTA ? 9 * NS_PER_S :
										    0;
	while (*stacks)
		stacks = add_stack(b, &ids, stacks, profiles[k].factors, profiles[k].types_n);
	CHECK_OK(pprof_builder_finish(b, &p, &err), &err);
	a.profile = p;
	a.kinds = kinds;
	atomic_store(&acked, 0);
	CHECK_OK(db_append(w->db, &a, &stats, on_acked, NULL, &err), &err);
	for (int i = 0; i < 5000 && atomic_load(&acked) == 0; i++)
		usleep(1000);
	CHECK_INT(atomic_load(&acked), 1);
}

/* ---- answers as text ---- */

static void print_stack(struct buf *out, const struct partition *p, uint32_t node)
{
	struct sym_node at = sym_node(p, node);
	const struct sym_location *l = sym_location(p, at.location);

	if (at.parent) {
		print_stack(out, p, at.parent);
		buf_add_char(out, ';');
	}
	buf_add_str(out, sym_string(p, sym_function(p, l->lines[0].function)->name));
}

static void print_profile(struct buf *out, const struct profile_value *v)
{
	labels_print(out, v->metric);
	buf_printf(out, " " STR_FMT " %" PRId64 " of %" PRIu64 ":", STR_ARG(v->type.sample_unit),
		v->value_total - v->base_total, v->profiles);
	for (size_t i = 0; i < v->parts_n; i++)
		for (size_t k = 0; k < v->parts[i].n; k++) {
			const struct cell *c = &v->parts[i].cells[k];

			buf_add_char(out, ' ');
			print_stack(out, v->parts[i].partition, c->stack);
			buf_printf(out, " %" PRId64, c->value);
			if (v->is_diff)
				buf_printf(out, "-%" PRId64, c->base);
			buf_add_char(out, ',');
		}
	if (out->len && out->ptr[out->len - 1] == ',')
		out->len--;
}

static void print_table(struct buf *out, const struct top_table *t)
{
	labels_print(out, t->metric);
	buf_printf(out, " of %" PRId64 ":", t->total);
	for (size_t i = 0; i < t->n; i++)
		buf_printf(out, " " STR_FMT " %" PRId64 " %" PRId64, STR_ARG(t->rows[i].function),
			t->rows[i].flat, t->rows[i].cum);
}

static void print_result(struct world *w, const struct result *r)
{
	struct buf *out = &w->text;

	if (r->type == RESULT_SCALAR)
		buf_add_double(out, r->scalar);
	if (r->type == RESULT_STRING)
		buf_add_str(out, r->string);
	for (size_t i = 0; i < r->n; i++) {
		buf_add_cstr(out, i ? "\n" : "");
		if (r->type == RESULT_PROFILES)
			print_profile(out, &r->profiles[i]);
		if (r->type == RESULT_TOP)
			print_table(out, &r->tops[i]);
		if (r->type == RESULT_VECTOR) {
			labels_print(out, r->vector[i].metric);
			buf_add_char(out, ' ');
			buf_add_double(out, r->vector[i].value);
		}
		if (r->type == RESULT_MATRIX) {
			labels_print(out, r->matrix[i].metric);
			for (size_t k = 0; k < r->matrix[i].n; k++) {
				buf_printf(out, " %lld=",
					(long long)((r->matrix[i].points[k].t_ns - w->t0) /
						NS_PER_S));
				buf_add_double(out, r->matrix[i].points[k].value);
			}
		}
	}
	for (size_t i = 0; i < r->warnings_n; i++)
		buf_printf(out, "\nwarning: " STR_FMT, STR_ARG(r->warnings[i]));
}

static void ask(struct world *w, struct query_options o, const char *query, const char *want)
{
	struct query *q;
	struct err err;

	o.text = str_of(query);
	buf_clear(&w->text);
	if (query_run(w->engine, &o, &q, &err)) {
		buf_printf(&w->text, "%s: %s", err_code_name(err.code), err.msg);
	} else {
		print_result(w, query_result(q));
		query_close(q);
	}
	if (!str_is(buf_str(&w->text), want))
		CHECK_FAIL("%s\n    is   " STR_FMT "\n    want %s", query,
			STR_ARG(buf_str(&w->text)), want);
}

/* Evaluates at t0 + at_s. */
static void at(struct world *w, int at_s, const char *query, const char *want)
{
	ask(w, (struct query_options){ .t_ns = w->t0 + at_s * NS_PER_S }, query, want);
}

/* ---- tests ---- */

static void fill(struct world *w)
{
	/* two pods of job a, one of job b; pod q has a sample label of its own */
	store(w, "__name__=process_cpu,job=a,pod=p", 10, 10, "main;f 3|main;g 1");
	store(w, "__name__=process_cpu,job=a,pod=p", 20, 10, "main;f 4");
	store(w, "__name__=process_cpu,job=a,pod=q", 20, 10,
		"main;f{handler=/x} 10|main;f{handler=/y} 20|main;h 5");
	store(w, "__name__=process_cpu,job=b,pod=r", 20, 10, "main;f 100");
}

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
	at(&w, 20, "process_cpu:samples:count:::delta{pod=\"p\"}",
		""); /* no type's name, but a name */
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
	at(&w, 20, "merge(cpu:samples{job=\"a\",handler=\"\"})",
		"{} count 9 of 2: main;f 4, main;h 5");
	at(&w, 20, "merge by (handler) (cpu:samples{job=\"a\"})",
		"{} count 9 of 2: main;f 4, main;h 5\n"
		"{handler=\"/x\"} count 10 of 2: main;f 10\n"
		"{handler=\"/y\"} count 20 of 2: main;f 20");
	at(&w, 20, "sum by (handler) (total(merge by (handler, pod) (cpu:samples{job=\"a\"})))",
		"{} 9\n{handler=\"/x\"} 10\n{handler=\"/y\"} 20");
	at(&w, 20, "flat by (handler, function) (cpu:samples{pod=\"q\"})",
		"{function=\"f\", handler=\"/x\"} 10\n{function=\"f\", handler=\"/y\"} "
		"20\n{function=\"h\"} 5");
	at(&w, 20, "merge(cpu:samples{pod=\"q\",sample_handler=~\"/x|/y\"})",
		"{} count 30 of 1: main;f 10, main;f 20");
	/* a name that both have is the series' */
	store(&w, "__name__=process_cpu,handler=all,job=c", 20, 10,
		"main;f{handler=/x} 1|main;f{handler=/y} 2");
	at(&w, 20, "merge(cpu:samples{job=\"c\",handler=\"all\"})", "{} count 3 of 1: main;f 3");
	at(&w, 20, "merge(cpu:samples{job=\"c\",sample_handler=\"/y\"})",
		"{} count 2 of 1: main;f 2");
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
	at(&w, 20, "flat(merge(cpu:samples{job=\"a\"}))",
		"{function=\"f\"} 34\n{function=\"h\"} 5");
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

/* A gauge in time is a mean: value x interval over the time from the first to the last scrape of
 * any series. */
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
	/* a series named exactly so wins over the short type */
	at(&w, 20, "cpu:samples{job=\"a\"}", "process_cpu{job=\"a\"} count 5 of 1: main;f 5");
	store(&w, "__name__=cpu,job=a", 20, 10, "main;f 77");
	at(&w, 20, "cpu{job=\"a\"}", "cpu{job=\"a\"} count 77 of 1: main;f 77");
	at(&w, 20, "sum(memory{job=\"a\"})", "invalid input: 1:5: sum() wants costs, got profiles");
	world_close(&w);
}

TEST(spans_and_ranges)
{
	struct world w;
	struct query_options span, range;

	if (!world_open(&w, NULL))
		return;
	for (int t = 10; t <= 60; t += 10)
		store(&w, "__name__=process_cpu,job=a", t, 10,
			t <= 30 ? "main;f 1" : "main;f 2|main;g 1");
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
	range.step_ns = 1;
	ask(&w, range, "1",
		"limit exceeded: exceeded maximum resolution of 11000 points per timeseries. Try "
		"decreasing "
		"the query resolution (?step=XX)");
	range.end_ns = range.start_ns - 1;
	ask(&w, range, "1", "invalid input: end timestamp must not be before start time");
	world_close(&w);
}

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

TEST(limits)
{
	struct engine_options few = { .samples_max = 3 }, little = { .memory_bytes_max = 4096 };
	atomic_bool cancel = true;
	struct world w;
	struct query_options o = { .text = STR("merge(cpu:samples{job=\"a\"}[1m])") };
	struct query *q;
	struct err err;

	if (!world_open(&w, &few))
		return;
	fill(&w);
	at(&w, 20, "merge(cpu:samples{job=\"a\"}[1m])",
		"limit exceeded: 1:7: the query reads more than 3 samples (--query.max-samples)");
	o.t_ns = w.t0 + 20 * NS_PER_S;
	CHECK_ERR(query_run_cancelable(w.engine, &o, &cancel, &q, &err), &err, ERR_CANCELED,
		"query was canceled in query queue");
	o.timeout_ns = 1;
	CHECK_ERR(query_run(w.engine, &o, &q, &err), &err, ERR_TIMEOUT,
		"query timed out in query queue");
	world_close(&w);
	if (!world_open(&w, &little))
		return;
	fill(&w);
	at(&w, 20, "merge(cpu:samples{job=\"a\"}[1m])",
		"limit exceeded: query needs more memory than its limit of 4096 bytes");
	world_close(&w);
}
