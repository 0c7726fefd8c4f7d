/*
 * A union gives what one database gives that has all of the data, to the last bit: the same
 * profiles and numbers are in one and spread over three, some series by time.
 */
#include "promql/pprof/profiles.h"
#include "tests/draw.h"
#include "tests/promql/world.h"
#include "tests/scratch.h"
#include "tests/wait.h"

#define MEMBERS 3u
#define EVERY_S 600
#define HOURS 8
#define PODS 5

struct spread {
	struct world one, all; /* all: over the union */
	char dirs[MEMBERS][96];
	struct db *members[MEMBERS];
	struct db_options o;
	struct draw d;
	int sent;
};

static const char *const names[MEMBERS] = { "s0", "s1", "s2" };

static bool open_members(struct spread *s)
{
	struct err err;

	if (db_union_open(&s->all.db, &err)) {
		CHECK_FAIL("%s", err.msg);
		return false;
	}
	for (size_t i = 0; i < MEMBERS; i++) {
		snprintf(s->dirs[i], sizeof(s->dirs[i]), "%s/%s", s->all.dir, names[i]);
		s->o.dir = s->dirs[i];
		if (db_open(&s->o, &s->members[i], &err) ||
			db_union_add(s->all.db, names[i], s->members[i], NULL, NULL, &err)) {
			CHECK_FAIL("%s", err.msg);
			return false;
		}
	}
	return true;
}

static bool open_spread(struct spread *s, unsigned threads)
{
	struct engine_options e = {
		.threads_max = threads, .parallel_samples = 1, .lookback_ns = EVERY_S * NS_PER_S
	};
	struct err err;

	*s = (struct spread){ .d = { .state = 11 } };
	db_options_default(&s->o);
	s->o.window_ns = 30 * NS_PER_MIN;
	s->o.too_old_ns = 100 * NS_PER_HOUR;
	s->o.retention_ns = 0;
	s->o.no_compaction = true;
	s->o.free_bytes_reserve = 1;
	arena_init(&s->all.arena, 0);
	s->all.t0 = WORLD_T0_NS;
	snprintf(s->all.dir, sizeof(s->all.dir), SCRATCH "epi-eval-XXXXXX");
	if (!world_open_over(&s->one, s->o, &e) || !scratch_dir(s->all.dir) || !open_members(s))
		return false;
	e.db = s->all.db;
	if (engine_open(&e, &s->all.engine, &err)) {
		CHECK_FAIL("%s", err.msg);
		return false;
	}
	return true;
}

static void close_spread(struct spread *s)
{
	world_close(&s->one);
	engine_close(s->all.engine);
	s->all.engine = NULL;
	for (size_t i = 0; i < MEMBERS; i++) {
		db_union_remove(s->all.db, names[i]);
		db_close(s->members[i]);
	}
	world_close(&s->all);
}

/* ---- data ---- */

/* Pods differ in how they move between members. */
static size_t place_of(int pod, int at_s)
{
	int64_t n = (at_s + HOURS * 3600) / EVERY_S;

	switch (pod) {
	case 0:
		return 2;
	case 1:
		return (size_t)n % MEMBERS;
	case 2:
		return (size_t)(n / 20) % MEMBERS;
	case 3:
		return n % 7 == 0;
	default:
		return 1;
	}
}

static void put(struct spread *s, const char *name, int pod, int at_s, bool gauge)
{
	enum value_kind kinds[] = { gauge ? KIND_GAUGE : KIND_DELTA };
	struct db_append a = { .ts_ns = s->one.t0 + at_s * NS_PER_S + pod,
		.interval_ns = (EVERY_S + (int)draw(&s->d, 3)) * NS_PER_S + draw(&s->d, 1000),
		.kinds = kinds };
	struct db_append_stats stats;
	char labels[128];
	struct pprof *p;
	struct err err;

	snprintf(labels, sizeof(labels), "__name__=%s,job=%s,pod=%d", name, pod % 2 ? "a" : "b", pod);
	a.labels = labels_of(&s->one.arena, labels);
	if (!(p = draw_profile(&s->one.arena, &s->d, &err))) {
		CHECK_FAIL("%s", err.msg);
		return;
	}
	p->strings[p->types[0].unit] = STR("count");
	p->drop_frames = p->keep_frames = 0;
	p->time_nanos = a.ts_ns - 5;
	a.profile = p;
	CHECK_OK(db_append(s->one.db, &a, &stats, on_acked, NULL, &err), &err);
	CHECK_OK(db_append(s->members[place_of(pod, at_s)], &a, &stats, on_acked, NULL, &err), &err);
	s->sent += 2;
}

static void put_number(struct spread *s, int pod, int at_s)
{
	struct db_number v = { .ts_ns = s->one.t0 + at_s * NS_PER_S,
		.value = (double)draw(&s->d, 1000000) / 7 };
	char labels[128];
	struct err err;

	snprintf(labels, sizeof(labels), "__name__=up,job=%s,pod=%d", pod % 2 ? "a" : "b", pod);
	v.labels = labels_of(&s->one.arena, labels);
	CHECK_OK(db_append_numbers(s->one.db, &v, 1, on_acked, NULL, &err), &err);
	CHECK_OK(db_append_numbers(s->members[place_of(pod, at_s)], &v, 1, on_acked, NULL, &err), &err);
	s->sent += 2;
}

static void fill_spread(struct spread *s, int from_s, int to_s)
{
	s->sent = 0;
	atomic_store(&acked, 0);
	for (int at = from_s + EVERY_S; at <= to_s; at += EVERY_S)
		for (int pod = 0; pod < PODS; pod++) {
			put(s, "wall", pod, at, false);
			put(s, "goroutine", pod, at, true);
			put_number(s, pod, at);
		}
	CHECK(WAIT_FOR(atomic_load(&acked) >= s->sent));
	CHECK_INT(atomic_load(&acked), s->sent);
}

/* ---- answers ---- */

struct lines {
	struct line {
		char *text;
		int64_t value;
	} * v;
	size_t n, cap;
};

static void add_line(struct lines *l, struct buf *text, int64_t value)
{
	buf_add_char(text, '\0');
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 64;
		if (!(l->v = realloc(l->v, l->cap * sizeof(*l->v))))
			abort();
	}
	l->v[l->n++] = (struct line){ text->ptr, value };
	*text = (struct buf){ 0 };
}

static int line_cmp(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* Several jobs may have one stack. */
static void print_lines(struct lines *l, struct buf *out)
{
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), line_cmp);
	for (size_t i = 0, end; i < l->n; i = end) {
		int64_t sum = 0;

		for (end = i; end < l->n && !strcmp(l->v[end].text, l->v[i].text); end++)
			sum += l->v[end].value;
		if (sum)
			buf_printf(out, "%s %" PRId64 "\n", l->v[i].text, sum);
	}
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].text);
	free(l->v);
	*l = (struct lines){ 0 };
}

static void print_sample(struct buf *out, const struct pprof *p, const struct pprof_sample *s)
{
	for (uint32_t i = 0; i < s->location_n; i++) {
		const struct pprof_location *l = &p->locations[p->location_ids[s->location_first + i]];

		buf_printf(out, ";%" PRIx64, l->address);
		if (l->mapping != PPROF_NONE)
			buf_add_str(out, p->strings[p->mappings[l->mapping].filename]);
		for (uint32_t k = 0; k < l->line_n; k++) {
			const struct pprof_line *line = &p->lines[l->line_first + k];
			const struct pprof_function *f = &p->functions[line->function];

			buf_printf(out, "," STR_FMT "@" STR_FMT ":%" PRId64 ":%" PRId64,
				STR_ARG(p->strings[f->name]), STR_ARG(p->strings[f->filename]), f->start_line,
				line->line);
		}
	}
	for (uint32_t i = 0; i < s->label_n; i++) {
		const struct pprof_label *l = &p->labels[s->label_first + i];

		buf_printf(out, " " STR_FMT "=" STR_FMT "%" PRId64, STR_ARG(p->strings[l->key]),
			STR_ARG(p->strings[l->str]), l->num);
	}
}

/* The profile that people download, whatever the order of what is in it. */
static void print_pprof(struct buf *out, struct arena *a, const struct profile_value *v)
{
	struct lines lines = { 0 };
	struct buf text = { 0 };
	struct pprof *p;
	struct err err;

	if (profiles_to_pprof(a, &v, 1, NULL, 0, NULL, &p, &err)) {
		buf_add_cstr(out, err.msg);
		return;
	}
	for (uint32_t i = 0; i < p->samples_n; i++) {
		print_sample(&text, p, &p->samples[i]);
		buf_add_char(&text, ' ');
		add_line(&lines, &text, p->values[i]);
	}
	buf_printf(
		out, " %" PRId64 " %" PRId64 " %" PRId64 "\n", p->time_nanos, p->duration_nanos, p->period);
	print_lines(&lines, out);
}

static void print_values(struct buf *out, struct arena *a, const struct result *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct profile_value *p = &r->profiles[i];

		labels_print(out, p->metric);
		buf_printf(out, " %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRId64 " %" PRId64,
			p->value_total, p->base_total, p->total, p->profiles, p->start_ns, p->end_ns);
		buf_printf(
			out, " " STR_FMT ":" STR_FMT, STR_ARG(p->type.name), STR_ARG(p->type.sample_type));
		print_pprof(out, a, p);
	}
}

static void answer(struct world *w, struct query_options o)
{
	struct query *q = NULL;
	struct err err;

	buf_clear(&w->text);
	if (query_run(w->engine, &o, &q, &err)) {
		buf_add_cstr(&w->text, err.msg);
		return;
	}
	if (query_result(q)->type == RESULT_PROFILES)
		print_values(&w->text, query_arena(q), query_result(q));
	else
		print_result(w, query_result(q));
	for (size_t i = 0; i < query_result(q)->infos_n; i++)
		buf_printf(&w->text, "\n" STR_FMT, STR_ARG(query_result(q)->infos[i]));
	for (size_t i = 0; i < query_result(q)->warnings_n; i++)
		buf_printf(&w->text, "\nwarning: " STR_FMT, STR_ARG(query_result(q)->warnings[i]));
	query_close(q);
}

static size_t first_difference(struct str a, struct str b)
{
	size_t i = 0;

	while (i < a.len && i < b.len && a.ptr[i] == b.ptr[i])
		i++;
	return i > 100 ? i - 100 : 0;
}

static void compare(struct spread *s, struct query_options o, const char *text, const char *when)
{
	struct str one, all;
	size_t at;

	o.text = str_of(text);
	answer(&s->one, o);
	answer(&s->all, o);
	one = buf_str(&s->one.text);
	all = buf_str(&s->all.text);
	if (!one.len)
		CHECK_FAIL("%s: no answer", text);
	if (str_eq(one, all))
		return;
	at = first_difference(one, all);
	CHECK_FAIL("%s, %s%s\n    one   %.300s\n    union %.300s", text, when,
		o.step_ns ? ", steps" : "", one.ptr + at, all.len > at ? all.ptr + at : "");
}

/* clang-format off */
static const char *const queries[] = {
	"merge(wall[8h])",
	"merge by (job) (wall[8h])",
	"wall[8h]",
	"wall[100m]",
	"wall",
	"merge by (job) (goroutine[8h])",
	"goroutine",
	"merge(goroutine)",
	"total(wall[8h])",
	"total(wall[17m])",
	"total(merge by (job) (goroutine[7h]))",
	"flat(merge(wall[8h]))",
	"cum(merge by (job) (wall[8h]))",
	"top(10, merge(wall[8h]))",
	"top(1000, merge by (job) (wall[5h]))",
	"top(1000, wall[8h])",
	"top(7, goroutine[3h])",
	"wall[2h] - wall[2h] offset 3h",
	"flat_share(merge(wall{pod=~\"1|2\"}[8h])) > 0.01",
	"cum_share(merge(wall{pod=~\"1|2\"}[8h])) > 0.01",
	"merge(wall[8h]) * 3 - merge(wall[4h])",
	"rate(wall[8h])",
	"rate(wall[37m])",
	"total(rate(wall[37m]))",
	"sum by (job) (total(rate(wall[3h])))",
	"sum(flat(rate(wall[8h]))) by (function)",
	"total(merge by (job) (rate(wall[8h])))",
	"top(20, merge(rate(wall[8h])))",
	"merge(rate(wall[8h]))",
	"merge(avg_over_time(goroutine[8h]))",
	"total(merge(avg_over_time(wall[8h])))",
	"max_over_time(wall[8h])",
	"min_over_time(wall[5h])",
	"total(max_over_time(goroutine[8h]))",
	"sum_over_time(goroutine[8h])",
	"avg_over_time(goroutine[8h])",
	"last_over_time(wall[8h])",
	"last_over_time(goroutine[20m])",
	"count_over_time(wall[8h])",
	"count_over_time(goroutine[50m])",
	"present_over_time(wall[1h])",
	"absent_over_time(wall{pod=\"9\"}[1h])",
	"up",
	"up[8h]",
	"sum by (job) (up)",
	"avg_over_time(up[8h])",
	"stddev_over_time(up[3h])",
	"quantile_over_time(0.7, up[8h])",
	"changes(up[8h])",
	"count_over_time(up[8h])",
	"last_over_time(up[4h])",
	"total(wall{id=\"3\"}[8h])",
	"total(merge by (id) (wall[2h]))",
	"max_over_time(wall{id=~\"1.*\"}[2h])",
	"wall | x",
	"changed(wall[2h], wall[2h] offset 3h)",
	"{job=\"a\"}",
	"{pod=~\"1|2\"}[30m]",
};
/* clang-format on */

#define WAYS 6
/* Of a part each: a sanitizer finds in them what it finds in all, as they take the same paths. */
#define EACH (check_is_short() ? 12u : CHECK_STEP < 8 ? (unsigned)CHECK_STEP : 5u)

/* Each query is asked in one way at a time, and in six rounds in all of them. */
static void compare_all(struct spread *s, unsigned round, const char *when)
{
	struct query_options ways[WAYS] = {
		{ .t_ns = s->one.t0 },
		{ .t_ns = s->one.t0 - 2 * NS_PER_HOUR - 333 },
		{ .t_ns = s->one.t0, .keep_sample_labels = true },
		{ .t_ns = s->one.t0, .rows_only = true },
		{ .has_span = true,
			.step_ns = 20 * NS_PER_MIN,
			.start_ns = s->one.t0 - 7 * NS_PER_HOUR,
			.end_ns = s->one.t0 },
		{ .has_span = true, .start_ns = s->one.t0 - 5 * NS_PER_HOUR, .end_ns = s->one.t0 - 7 },
	};

	for (unsigned i = round % EACH; i < sizeof(queries) / sizeof(queries[0]); i += EACH)
		compare(s, ways[(i + round) % WAYS], queries[i], when);
}

static void compact_members(struct spread *s, size_t n)
{
	struct err err;

	for (size_t i = 0; i < n; i++)
		CHECK_OK(db_compact(s->members[i], &err), &err);
}

static void compare_places(unsigned threads, unsigned round)
{
	struct spread s;
	struct err err;

	if (!open_spread(&s, threads))
		return;
	fill_spread(&s, -HOURS * 3600, -2 * 3600);
	compact_members(&s, 1);
	fill_spread(&s, -2 * 3600, 0);
	compare_all(&s, round, "heads");
	CHECK_OK(db_compact(s.one.db, &err), &err);
	compare_all(&s, round + 1, "heads beside blocks");
	compact_members(&s, MEMBERS);
	compare_all(&s, round + 2, "blocks");
	close_spread(&s);
}

#ifndef __SANITIZE_THREAD__ /* nothing could race */
TEST(a_union_gives_what_one_gives)
{
	compare_places(1, 0);
}
#endif

TEST(a_union_gives_what_one_gives_to_many_threads)
{
	compare_places(3, 3);
}

/* ---- what two members have ---- */

/* A profile that was sent again, to another shard. */
TEST(a_profile_that_two_have_is_one_scrape)
{
	struct spread s;
	struct db *all;

	if (!open_spread(&s, 1))
		return;
	all = s.all.db;
	for (size_t i = 0; i < MEMBERS; i++) {
		s.all.db = s.members[i];
		store(&s.all, "__name__=process_cpu,job=a,pod=p", 10, 10, "main;f 3|main;g 1");
		store(&s.all, "__name__=process_cpu,job=a,pod=p", 20, 10, "main;f 5");
	}
	s.all.db = all;
	at(&s.all, 25, "total(cpu:samples)", "{job=\"a\", pod=\"p\"} 5");
	at(&s.all, 25, "total(last_over_time(cpu:samples[1m]))", "{job=\"a\", pod=\"p\"} 5");
	at(&s.all, 25, "total(max_over_time(cpu:samples[1m]))", "{job=\"a\", pod=\"p\"} 5");
	at(&s.all, 25, "total(min_over_time(cpu:samples[1m]))", "{job=\"a\", pod=\"p\"} 4");
	close_spread(&s);
}

/* What adds both says so, and nothing else does. */
static void check_twins(unsigned threads)
{
	static const struct {
		const char *query, *warns; /* "": it does not; of when */
		int step_s; /* 0: at one time */
	} asked[] = {
		{ "total(cpu:samples[1m])", "10.000Z in s0 and s2", 0 },
		{ "flat(cpu:samples[1m])", "10.000Z in s0 and s2", 0 },
		{ "total(rate(cpu:samples[1m]))", "10.000Z in s0 and s2", 0 },
		{ "flat(sum_over_time(cpu:samples[1m]))", "10.000Z in s0 and s2", 0 },
		{ "total(cpu:samples[1m] offset 10s)", "10.000Z in s0 and s2", 0 },
		{ "total(cpu:samples[1m]) - total(cpu:samples[1m] offset 40s)", "10.000Z in s0 and s2", 0 },
		{ "total(cpu:samples[15s] offset 10s)", "40.000Z in s0 and s2", 0 },
		{ "total(cpu:samples[10s])", "", 0 }, { "total(rate(cpu:samples[10s]))", "", 0 },
		{ "total(cpu:samples)", "", 0 }, { "total(max_over_time(cpu:samples[1m]))", "", 0 },
		{ "total(last_over_time(cpu:samples[1m]))", "", 0 },
		{ "total(cpu:samples{pod=\"q\"}[1m])", "", 0 },
		{ "total(cpu:samples[5s])", "40.000Z in s0 and s2", 10 },
		{ "total(cpu:samples[5s])", "", 20 }, /* twins are between the steps */
	};
	struct spread s;
	struct db *all;

	if (!open_spread(&s, threads))
		return;
	all = s.all.db;
	for (int at_s = 10; at_s <= 50; at_s += 10)
		for (size_t i = 0; i < MEMBERS; i++) {
			bool twin = at_s == 10 || at_s == 40;

			s.all.db = s.members[i];
			if (i == 0 || (twin && i == 2))
				store(&s.all, "__name__=process_cpu,job=a,pod=p", at_s, 10, "main;f 3");
			if (i == 0)
				store(&s.all, "__name__=process_cpu,job=a,pod=q", at_s, 10, "main;f 3");
		}
	s.all.db = all;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct query_options o = { .text = str_of(asked[i].query),
			.t_ns = s.all.t0 + 55 * NS_PER_S };
		ptrdiff_t at;

		if (asked[i].step_s) {
			o.has_span = true;
			o.step_ns = asked[i].step_s * NS_PER_S;
			o.start_ns = s.all.t0 + 30 * NS_PER_S;
			o.end_ns = s.all.t0 + 50 * NS_PER_S;
		}
		answer(&s.all, o);
		if (!str_has_prefix(buf_str(&s.all.text), STR("{")))
			CHECK_FAIL("%s: " STR_FMT, asked[i].query, STR_ARG(buf_str(&s.all.text)));
		at = str_find(buf_str(&s.all.text), STR("\nwarning: "));
		if (!asked[i].warns[0] ?
				at >= 0 :
				at < 0 || !str_has_suffix(buf_str(&s.all.text), str_of(asked[i].warns)))
			CHECK_FAIL("%s: " STR_FMT, asked[i].query, STR_ARG(buf_str(&s.all.text)));
	}
	close_spread(&s);
}

TEST(answers_that_count_a_profile_twice_say_so)
{
	check_twins(1);
	check_twins(3);
}

/* Costs that are multiplied by a factor and rounded: many, as few are close enough to a half. */
TEST(fractions_are_rounded_once)
{
	static const char *const fractions[] = {
		"flat(rate(cpu[7m]))",
		"total(rate(cpu[7m]))",
		"flat(merge(avg_over_time(cpu[11m])))",
		"total(avg_over_time(cpu[11m]))",
	};
	struct query_options steps = { .has_span = true, .step_ns = 7 * NS_PER_S };
	struct spread s;
	struct db *all;
	char text[2048];

	if (!open_spread(&s, 1))
		return;
	all = s.all.db;
	for (int at = 10; at <= 1200; at += 10) {
		size_t n = 0;

		for (int i = 0; i < 30; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%smain;f%d %u%u", i ? "|" : "", i,
				1 + draw(&s.d, 999999), 100000 + draw(&s.d, 899999));
		s.one.duration_ns = s.all.duration_ns = (int64_t)(9 * NS_PER_S) + draw(&s.d, 999999);
		s.all.db = s.members[(unsigned)at / 10 % MEMBERS];
		store(&s.one, "__name__=cpu,job=a,pod=p", at, 10, text);
		store(&s.all, "__name__=cpu,job=a,pod=p", at, 10, text);
	}
	s.all.db = all;
	steps.start_ns = s.one.t0 + 60 * NS_PER_S;
	steps.end_ns = s.one.t0 + 1200 * NS_PER_S;
	for (size_t i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++)
		compare(&s, steps, fractions[i], "heads");
	close_spread(&s);
}
