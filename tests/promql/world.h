/*
 * A world for tests of queries: a database in a temporary directory and its engine, profiles
 * written as text, answers printed as text.
 */
#ifndef TESTS_PROMQL_WORLD_H
#define TESTS_PROMQL_WORLD_H

#include "base/clock.h"
#include "base/json.h"
#include "promql/engine/engine.h"
#include "tests/check.h"
#include "tests/scratch.h"
#include "tests/wait.h"

/* ---- a database and an engine over it ---- */

/* 2023-11-14, half an hour into a window of two hours: no test crosses a window's end by chance. */
#define WORLD_T0_NS (INT64_C(1700001000) * NS_PER_S)

struct world {
	char dir[64];
	struct db *db;
	struct engine *engine;
	int64_t t0; /* WORLD_T0_NS, unless the test has its own */
	int64_t duration_ns; /* of profiles stored; 0: 9 s, gauges none */
	bool tells_infos; /* answers end with them */
	struct arena arena;
	struct buf text; /* of the last answer */
};

static inline bool world_start(
	struct world *w, struct db_options o, const struct engine_options *limits)
{
	struct engine_options e = { 0 };
	struct err err;

	o.dir = w->dir;
	o.free_bytes_reserve = 1;
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

/* With these options of the database; the directory is set here. */
static inline bool world_open_over(
	struct world *w, struct db_options o, const struct engine_options *limits)
{
	*w = (struct world){ 0 };
	arena_init(&w->arena, 0);
	snprintf(w->dir, sizeof(w->dir), SCRATCH "epi-eval-XXXXXX");
	w->t0 = WORLD_T0_NS;
	return scratch_dir(w->dir) && world_start(w, o, limits);
}

static inline bool world_open(struct world *w, const struct engine_options *limits)
{
	struct db_options o;

	db_options_default(&o);
	return world_open_over(w, o, limits);
}

/* With windows of 100 s, and so few nodes that a job's epochs end. */
static inline bool world_open_epochs(struct world *w, uint32_t nodes_max)
{
	struct db_options o;

	db_options_default(&o);
	o.window_ns = 100 * NS_PER_S;
	o.nodes_max = nodes_max;
	return world_open_over(w, o, NULL);
}

static inline void world_stop(struct world *w)
{
	engine_close(w->engine);
	db_close(w->db);
	w->engine = NULL;
	w->db = NULL;
}

/* The same data with other options. */
static inline bool world_reopen(struct world *w, struct db_options o)
{
	world_stop(w);
	return world_start(w, o, NULL);
}

static inline void world_close(struct world *w)
{
	char command[128];
	FILE *f;

	world_stop(w);
	arena_release(&w->arena);
	buf_release(&w->text);
	snprintf(command, sizeof(command), "rm -rf '%s'", w->dir);
	if ((f = popen(command, "r")))
		pclose(f);
}

/* Entries of select with a label: one per series and epoch. */
static inline int world_entries(struct world *w, struct str label, const char *value)
{
	struct db_querier *q;
	struct db_series *v;
	struct err err;
	int found = 0;
	size_t n = 0;

	CHECK_OK(db_querier_open(w->db, 0, INT64_MAX, NULL, &q, &err), &err);
	CHECK_OK(db_select(q, NULL, 0, &w->arena, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		found += str_is(labels_get(v[i].labels, label), value);
	db_querier_close(q);
	return found;
}

/* ---- profiles as text: "main;f;g{handler=/a,n=#3} 5|main 2", root first ---- */

#define FRAMES_MAX 32

static inline struct labels labels_of(struct arena *a, const char *text)
{
	struct labels_builder b;
	struct labels out;
	struct err err;

	labels_builder_init(&b, a, (struct labels){ 0 });
	while (*text) {
		size_t name = strcspn(text, "="), value = strcspn(text + name + 1, ",");

		labels_builder_set(&b, (struct str){ text, name }, (struct str){ text + name + 1, value });
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

static inline uint32_t location_of(struct pprof_builder *b, struct frame_ids *ids, struct str name)
{
	struct pprof_line line = { .line = 1 };
	uint32_t i = 0;

	while (i < ids->n && !str_eq(ids->name[i], name))
		i++;
	if (i == ids->n) {
		line.function = pprof_builder_function(
			b, &(struct pprof_function){ .name = pprof_builder_string(b, name) });
		ids->name[i] = name;
		ids->location[i] = pprof_builder_location(
			b, (struct pprof_location){ .address = i + 1, .mapping = PPROF_NONE }, &line, 1);
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

		*l = (struct pprof_label){ .key = pprof_builder_string(b, (struct str){ at, key }) };
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

/* clang-format off */
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
/* clang-format on */

static atomic_int acked;

static inline void on_acked(void *ctx, enum err_code rc, const struct err *err)
{
	if (rc)
		CHECK_FAIL("not stored: %s", err->msg);
	atomic_fetch_add(&acked, 1);
}

/* One scrape at t0 + at_s. */
static inline void store(
	struct world *w, const char *labels, int at_s, int interval_s, const char *stacks)
{
	struct db_append a = { .ts_ns = w->t0 + at_s * NS_PER_S, .interval_ns = interval_s * NS_PER_S };
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
		pprof_builder_profile(b)->default_sample_type = pprof_builder_string(b, STR("apples"));
	pprof_builder_profile(b)->time_nanos = a.ts_ns;
	pprof_builder_profile(b)->duration_nanos = profiles[k].kind == KIND_DELTA ? 9 * NS_PER_S : 0;
	if (w->duration_ns)
		pprof_builder_profile(b)->duration_nanos = w->duration_ns;
	while (*stacks)
		stacks = add_stack(b, &ids, stacks, profiles[k].factors, profiles[k].types_n);
	CHECK_OK(pprof_builder_finish(b, &p, &err), &err);
	a.profile = p;
	a.kinds = kinds;
	atomic_store(&acked, 0);
	CHECK_OK(db_append(w->db, &a, &stats, on_acked, NULL, &err), &err);
	CHECK(WAIT_FOR(atomic_load(&acked)));
	CHECK_INT(atomic_load(&acked), 1);
}

/* ---- answers as text ---- */

static inline void print_stack(struct buf *out, const struct partition *p, uint32_t node)
{
	struct sym_node at = sym_node(p, node);
	const struct sym_location l = sym_location(p, at.location);

	if (at.parent) {
		print_stack(out, p, at.parent);
		buf_add_char(out, ';');
	}
	buf_add_str(out, sym_string(p, sym_function(p, l.lines[0].function)->name));
}

static inline void print_profile(struct buf *out, const struct profile_value *v)
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

static inline void print_table(struct buf *out, const struct top_table *t)
{
	labels_print(out, t->metric);
	buf_printf(out, " of %" PRId64 ":", t->total);
	for (size_t i = 0; i < t->n; i++)
		buf_printf(out, " " STR_FMT " %" PRId64 " %" PRId64, STR_ARG(t->rows[i].function),
			t->rows[i].flat, t->rows[i].cum);
}

static inline void print_result(struct world *w, const struct result *r)
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
				buf_add_char(out, ' ');
				buf_add_double(out, (double)(r->matrix[i].points[k].t_ns - w->t0) / 1e9);
				buf_add_char(out, '=');
				buf_add_double(out, r->matrix[i].points[k].value);
			}
		}
	}
	for (size_t i = 0; i < r->warnings_n; i++)
		buf_printf(out, "\nwarning: " STR_FMT, STR_ARG(r->warnings[i]));
	for (size_t i = 0; i < r->infos_n && w->tells_infos; i++)
		buf_printf(out, "%sinfo: " STR_FMT, out->len ? "\n" : "", STR_ARG(r->infos[i]));
}

/* Into w->text. */
static inline void world_answer(struct world *w, struct query_options o)
{
	struct query *q;
	struct err err;

	buf_clear(&w->text);
	if (query_run(w->engine, &o, &q, &err)) {
		buf_printf(&w->text, "%s: %s", err_code_name(err.code), err.msg);
	} else {
		print_result(w, query_result(q));
		query_close(q);
	}
}

static inline void ask(struct world *w, struct query_options o, const char *query, const char *want)
{
	o.text = str_of(query);
	world_answer(w, o);
	if (!str_is(buf_str(&w->text), want))
		CHECK_FAIL(
			"%.400s\n    is   " STR_FMT "\n    want %s", query, STR_ARG(buf_str(&w->text)), want);
}

/* Evaluates at t0 + at_s. */
static inline void at(struct world *w, int at_s, const char *query, const char *want)
{
	ask(w, (struct query_options){ .t_ns = w->t0 + at_s * NS_PER_S }, query, want);
}

struct asked {
	int at_s;
	const char *query, *want;
};

static inline void at_each(struct world *w, const struct asked *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		at(w, rows[i].at_s, rows[i].query, rows[i].want);
}

/* A world that is filled, asked and closed. */
static inline void at_each_in(void (*fill)(struct world *w), const struct asked *rows, size_t n)
{
	struct world w;

	REQUIRE(world_open(&w, NULL));
	fill(&w);
	at_each(&w, rows, n);
	world_close(&w);
}

#define CHECK_ANSWERS(w, rows) at_each(w, rows, sizeof(rows) / sizeof((rows)[0]))
#define CHECK_ANSWERS_IN(fill, rows) at_each_in(fill, rows, sizeof(rows) / sizeof((rows)[0]))

static inline void fill(struct world *w)
{
	/* two pods of job a, one of job b; pod q has a sample label of its own */
	store(w, "__name__=process_cpu,job=a,pod=p", 10, 10, "main;f 3|main;g 1");
	store(w, "__name__=process_cpu,job=a,pod=p", 20, 10, "main;f 4");
	store(w, "__name__=process_cpu,job=a,pod=q", 20, 10,
		"main;f{handler=/x} 10|main;f{handler=/y} 20|main;h 5");
	store(w, "__name__=process_cpu,job=b,pod=r", 20, 10, "main;f 100");
}

#endif
