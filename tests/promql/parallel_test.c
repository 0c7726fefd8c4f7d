/*
 * Many threads give the same sums as one: the same queries are asked of several engines over one
 * database, with head windows, blocks, deleted ranges, gauges and labels of samples. The same holds
 * for steps that are evaluated side by side, for their limits, and for parts that windows in
 * succession share. Workers are also tested alone.
 */

#include "promql/engine/engine_internal.h"
#include "tests/draw.h"
#include "tests/promql/world.h"
#include "tests/wait.h"
#include "tsdb/symbols/partition.h"

#define HOURS 8
#define EVERY_S 600
#define PODS 4

/* ---- workers ---- */

struct sums_of {
	atomic_uint_fast64_t sum;
	atomic_int working[8];
	atomic_bool twice;
};

static void add_one(void *ctx, unsigned thread, size_t i)
{
	struct sums_of *s = ctx;

	if (atomic_fetch_add(&s->working[thread], 1))
		atomic_store(&s->twice, true);
	atomic_fetch_add(&s->sum, i + 1);
	atomic_fetch_sub(&s->working[thread], 1);
}

struct caller {
	struct workers *w;
	bool wrong;
};

static void call_often(void *ctx)
{
	struct caller *c = ctx;

	for (size_t n = 0; n < 300; n++) {
		struct sums_of s = { 0 };

		workers_run(c->w, n, add_one, &s);
		c->wrong |= atomic_load(&s.sum) != n * (n + 1) / 2 || atomic_load(&s.twice);
	}
}

TEST(each_piece_is_done_once)
{
	struct thread threads[3] = { 0 };
	struct caller callers[3] = { 0 };
	struct workers *w;
	struct err err;

	for (unsigned n = 1; n <= 4; n += 3) {
		REQUIRE_OK(workers_open(n, &w, &err), &err);
		CHECK_INT(workers_threads(w), n);
		for (int i = 0; i < 3; i++) {
			callers[i] = (struct caller){ w, false };
			CHECK_OK(thread_start(&threads[i], "caller", call_often, &callers[i], &err), &err);
		}
		for (int i = 0; i < 3; i++) {
			thread_join(&threads[i]);
			CHECK(!callers[i].wrong);
		}
		workers_close(w);
	}
	workers_close(NULL);
	CHECK_INT(workers_threads(NULL), 1);
}

/* ---- queries ---- */

static void put(struct world *w, struct draw *d, const char *labels, int64_t at_s, bool gauge)
{
	enum value_kind kinds[] = { gauge ? KIND_GAUGE : KIND_DELTA };
	struct db_append a = { .labels = labels_of(&w->arena, labels),
		.ts_ns = w->t0 + at_s * NS_PER_S,
		.interval_ns = EVERY_S * NS_PER_S,
		.kinds = kinds };
	struct db_append_stats stats;
	struct pprof *p;
	struct err err;

	if (!(p = draw_profile(&w->arena, d, &err))) {
		CHECK_FAIL("%s", err.msg);
		return;
	}
	p->strings[p->types[0].unit] = STR("count");
	p->drop_frames = p->keep_frames = 0;
	a.profile = p;
	CHECK_OK(db_append(w->db, &a, &stats, on_acked, NULL, &err), &err);
}

static void fill_hours(struct world *w, struct draw *d, int from_s, int to_s)
{
	char labels[128];
	int n = 0;

	atomic_store(&acked, 0);
	for (int at = from_s + EVERY_S; at <= to_s; at += EVERY_S)
		for (int pod = 0; pod < PODS; pod++) {
			snprintf(
				labels, sizeof(labels), "__name__=wall,job=%s,pod=%d", pod % 2 ? "a" : "b", pod);
			put(w, d, labels, at, false);
			snprintf(labels, sizeof(labels), "__name__=goroutine,job=%s,pod=%d",
				pod % 2 ? "a" : "b", pod);
			put(w, d, labels, at, true);
			n += 2;
		}
	CHECK(WAIT_FOR(atomic_load(&acked) >= n));
	CHECK_INT(atomic_load(&acked), n);
}

/* All there is of profiles, by ids. */
static void print_cells(struct buf *out, const struct result *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct profile_value *p = &r->profiles[i];

		labels_print(out, p->metric);
		buf_printf(out,
			" %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64
			" %" PRId64 " %" PRId64 "\n",
			p->value_total, p->base_total, p->total, p->profiles, p->time_nanos, p->duration_nanos,
			p->period, p->start_ns, p->end_ns);
		for (size_t k = 0; k < p->parts_n; k++) {
			const struct part *part = &p->parts[k];

			buf_add_str(out, partition_name(part->partition));
			for (size_t c = 0; c < part->n; c++)
				buf_printf(out, " %u,%u:%" PRId64 "-%" PRId64, part->cells[c].stack,
					part->cells[c].label_set, part->cells[c].value, part->cells[c].base);
			for (uint32_t h = 0; h < part->headers_n; h++)
				buf_printf(out, " h%u", part->headers[h]);
			buf_add_char(out, '\n');
		}
	}
}

static void answer(struct world *w, struct engine *e, struct query_options o)
{
	struct query *q = NULL;
	struct err err;

	buf_clear(&w->text);
	if (query_run(e, &o, &q, &err)) { /* what has no memory first is not always the same */
		const char *memory = strstr(err.msg, "needs more memory");

		buf_printf(&w->text, "%s", memory ? memory : err.msg);
		return;
	}
	if (query_result(q)->type == RESULT_PROFILES)
		print_cells(&w->text, query_result(q));
	else
		print_result(w, query_result(q));
	for (size_t i = 0; i < query_result(q)->infos_n; i++)
		buf_printf(&w->text, "\n" STR_FMT, STR_ARG(query_result(q)->infos[i]));
	query_close(q);
}

/* TSan makes a query twenty times as long, and finds among seven threads what it finds in two. */
#ifdef __SANITIZE_THREAD__
#define ENGINES 1
static const unsigned engine_threads[ENGINES] = { 7 };
#else
#define ENGINES 2
static const unsigned engine_threads[ENGINES] = { 2, 7 };
#endif
static bool is_short; /* of memory */

static void compare(
	struct world *w, struct engine *const *many, struct query_options o, const char *text)
{
	struct buf alone = { 0 };

	o.text = str_of(text);
	answer(w, w->engine, o);
	buf_add_str(&alone, buf_str(&w->text));
	for (size_t i = 0; i < ENGINES; i++) {
		answer(w, many[i], o);
		/* Memory that is just enough for one thread may be too little for many. */
		if (!str_eq(buf_str(&w->text), buf_str(&alone)) &&
			!(is_short && str_has_prefix(buf_str(&w->text), STR("needs more memory"))))
			CHECK_FAIL("%s\n    alone      %.600s\n    %u together %.600s", text,
				alone.ptr ? alone.ptr : "", engine_threads[i], w->text.ptr ? w->text.ptr : "");
	}
	if (!alone.len)
		CHECK_FAIL("%s: no answer", text);
	buf_release(&alone);
}

static bool open_engines(struct world *w, struct engine_options o, struct engine **out)
{
	struct err err;

	o.db = w->db;
	o.parallel_samples = 1;
	o.lookback_ns = EVERY_S * NS_PER_S;
	for (size_t i = 0; i < ENGINES; i++) {
		o.threads_max = engine_threads[i];
		if (engine_open(&o, &out[i], &err)) {
			CHECK_FAIL("%s", err.msg);
			return false;
		}
	}
	return true;
}

static void close_engines(struct engine *const *v)
{
	for (size_t i = 0; i < ENGINES; i++)
		engine_close(v[i]);
}

static const char *const queries[] = {
	"merge(wall[8h])",
	"merge by (job) (wall[8h])",
	"wall[8h]",
	"wall[100m]",
	"merge by (job) (goroutine[8h])",
	"goroutine",
	"total(wall[8h])",
	"total(merge by (job) (goroutine[7h]))",
	"flat(merge(wall[8h]))",
	"cum(merge by (job) (wall[8h]))",
	"top(10, merge(wall[8h]))",
	"wall[2h] - wall[2h] offset 3h",
	"flat_share(merge(wall{pod=~\"1|2\"}[8h])) > 0.01",
	"merge(wall[8h]) * 3 - merge(wall[4h])",
	"rate(wall[8h])",
	"max_over_time(wall[8h])",
	"sum_over_time(goroutine[8h])",
	"avg_over_time(goroutine[8h])",
	"last_over_time(wall[8h])",
};

/* clang-format off */
static const char *const stepped[] = {
	"total(merge(wall[1h])) / on () total(merge(wall[2h]))",
	"total(wall[8h] @ end()) - total(wall[1h])",
	"wall",
	"flat(merge(wall))",
	"cum(merge by (job) (wall[1h]))",
	"flat(merge(goroutine))",
	"flat(merge(wall offset 7m)) - on (function) flat(merge(wall[14m]))",
	"sum by (job) (flat(rate(wall[30m])))",
	"changed(merge(wall)[1h], wall)", /* refused */
	"changed(wall[5m], wall[1h] offset 5m)",
	"absent(wall{pod=\"9\"}) or total(wall)",
	"scalar(total(merge(wall))) + time()",
	"label_replace(total(wall), \"pod\", \"x\", \"\", \"\")", /* refused: equal labels */
};
/* clang-format on */

/* Under sanitizers each of the three rounds asks a part of the queries: others take the same paths.
 */
#define ROUND_STEP (CHECK_STEP < 8 ? (unsigned)CHECK_STEP : 5u)

static void compare_steps(struct world *w, struct engine *const *many, unsigned round)
{
	const int64_t widths_s[] = { 29, 433, 3 * 3600 };
	const int64_t steps_n[] = { 20, 60, 3 };

	for (size_t k = 0; k < sizeof(widths_s) / sizeof(widths_s[0]); k++) {
		struct query_options o = { .step_ns = widths_s[k] * NS_PER_S,
			.end_ns = w->t0 - 77 * NS_PER_S };

		if (check_is_short() && k != round % 3)
			continue;
		o.start_ns = o.end_ns - (steps_n[k] - 1) * o.step_ns;
		for (size_t i = (round + k) % ROUND_STEP; i < sizeof(stepped) / sizeof(stepped[0]);
			 i += ROUND_STEP)
			compare(w, many, o, stepped[i]);
	}
}

#define WAYS 4

static void compare_all(struct world *w, struct engine *const *many, unsigned round)
{
	const struct query_options ways[WAYS] = {
		{ .t_ns = w->t0 },
		{ .t_ns = w->t0, .keep_sample_labels = true },
		{ .t_ns = w->t0, .rows_only = true },
		{ .step_ns = 20 * NS_PER_MIN, .start_ns = w->t0 - 7 * NS_PER_HOUR, .end_ns = w->t0 },
	};

	/* In short each in one way. */
	for (size_t i = round % ROUND_STEP; i < sizeof(queries) / sizeof(queries[0]); i += ROUND_STEP)
		for (size_t k = 0; k < WAYS; k++)
			if (!check_is_short() || k == (i / ROUND_STEP + round) % WAYS)
				compare(w, many, ways[k], queries[i]);
	compare_steps(w, many, round);
}

static void delete_some(struct world *w)
{
	struct matcher m[] = { { .op = MATCH_EQ, .name = STR("pod"), .value = STR("1") } };
	struct err err;

	CHECK_OK(db_delete_series(w->db, m, 1, w->t0 - 5 * NS_PER_HOUR, w->t0 - 3 * NS_PER_HOUR, &err),
		&err);
}

static bool open_hours(struct world *w)
{
	struct engine_options alone = { .threads_max = 1, .lookback_ns = EVERY_S * NS_PER_S };
	struct draw d = { .state = 7 };
	struct db_options o;

	db_options_default(&o);
	o.window_ns = 30 * NS_PER_MIN;
	o.too_old_ns = 100 * NS_PER_HOUR;
	o.no_compaction = true;
	if (!world_open_over(w, o, &alone))
		return false;
	fill_hours(w, &d, -HOURS * 3600, 0);
	return true;
}

TEST(threads_give_what_one_gives)
{
	struct engine *many[ENGINES];
	struct world w;
	struct err err;

	if (!open_hours(&w) || !open_engines(&w, (struct engine_options){ 0 }, many))
		return;
	compare_all(&w, many, 0);
	CHECK_OK(db_compact(w.db, &err), &err);
	compare_all(&w, many, 1);
	delete_some(&w);
	compare_all(&w, many, 2);
	close_engines(many);
	world_close(&w);
}

/* ---- windows that follow each other ---- */

/* Each point of a range is what is there at its time. */
static void compare_points(struct world *w, struct engine *e, const char *text,
	const char *windowed, struct query_options o)
{
	struct query *range = NULL, *once = NULL;
	size_t points = 0, elements = 0;
	struct err err;

	o.text = str_of(text);
	REQUIRE_OK(query_run(e, &o, &range, &err), &err);
	for (size_t i = 0; i < query_result(range)->n; i++)
		points += query_result(range)->matrix[i].n;
	for (int64_t t = o.start_ns; t <= o.end_ns; t += o.step_ns) {
		struct query_options at = { .text = str_of(windowed), .t_ns = t };
		const struct result *r;

		REQUIRE_OK(query_run(w->engine, &at, &once, &err), &err);
		r = query_result(once);
		elements += r->n;
		for (size_t i = 0; i < r->n; i++) {
			const struct cost_series *s = query_result(range)->matrix;
			size_t k = 0, n = query_result(range)->n, p = 0;

			while (k < n && !labels_eq(s[k].metric, r->vector[i].metric))
				k++;
			while (k < n && p < s[k].n && s[k].points[p].t_ns != t)
				p++;
			if (k == n || p == s[k].n || s[k].points[p].value != r->vector[i].value)
				CHECK_FAIL("%s: not what %s gives", text, windowed);
		}
		query_close(once);
	}
	CHECK_INT(points, elements);
	CHECK(points > 0);
	query_close(range);
}

TEST(windows_that_follow_each_other_share_what_they_read)
{
	static const char *const pairs[][2] = {
		{ "flat(merge(wall))", "flat(merge(wall[433s]))" },
		{ "flat(wall)", "flat(wall[433s])" },
		{ "flat by (function, thread) (wall)", "flat by (function, thread) (wall[433s])" },
		{ "cum(merge(goroutine))", "cum(merge(goroutine[433s]))" },
		{ "flat(merge(wall[1299s]))", "flat(merge(wall[1299s]))" },
		{ "flat(rate(wall[433s]))", "flat(rate(wall[433s]))" },
	};
	struct engine *many[ENGINES];
	struct query_options o = { .step_ns = 433 * NS_PER_S };
	struct world w;
	struct err err;

	if (!open_hours(&w) || !open_engines(&w, (struct engine_options){ 0 }, many))
		return;
	CHECK_OK(db_compact(w.db, &err), &err);
	o.end_ns = w.t0 - 77 * NS_PER_S;
	o.start_ns = o.end_ns - (check_is_short() ? 15 : 60) * o.step_ns;
	for (int deleted = 0; deleted < 2; deleted++) {
		for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
			compare_points(&w, w.engine, pairs[i][0], pairs[i][1], o);
			compare_points(&w, many[0], pairs[i][0], pairs[i][1], o);
		}
		delete_some(&w);
	}
	close_engines(many);
	world_close(&w);
}

/* ---- limits, and ends in the middle ---- */

TEST(steps_side_by_side_keep_limits)
{
	struct query_options o = { .step_ns = 433 * NS_PER_S };
	struct engine *many[ENGINES], *alone;
	struct world w;
	struct err err;

	if (!open_hours(&w))
		return;
	CHECK_OK(db_compact(w.db, &err), &err);
	o.end_ns = w.t0 - 77 * NS_PER_S;
	o.start_ns = o.end_ns - (check_is_short() ? 10 : 60) * o.step_ns;
	alone = w.engine;
	for (unsigned i = 0; i < 16; i += ROUND_STEP) {
		struct engine_options limits = { .db = w.db,
			.threads_max = 1,
			.lookback_ns = EVERY_S * NS_PER_S,
			.samples_max = i < 8 ? UINT64_C(4000) << i : 0,
			.memory_bytes_max = i < 8 ? 0 : (size_t)40000 << (i - 8) };

		is_short = i >= 8 && i < 15;
		REQUIRE_OK(engine_open(&limits, &w.engine, &err), &err);
		if (open_engines(&w, limits, many)) {
			compare(&w, many, o, "flat(merge(wall))");
			compare(&w, many, o, "wall");
			compare(&w, many, o, "flat(merge(wall[4h]))");
			compare(&w, many, o, "cum(rate(wall[1h]))");
			close_engines(many);
		}
		engine_close(w.engine);
	}
	is_short = false;
	w.engine = alone;
	world_close(&w);
}

struct setter {
	struct engine *engine;
	atomic_bool cancel;
};

static bool is_running(struct engine *e)
{
	bool is;

	mutex_lock(&e->lock);
	is = e->running > 0;
	mutex_unlock(&e->lock);
	return is;
}

static void cancel_soon(void *ctx)
{
	struct setter *s = ctx;

	CHECK(WAIT_FOR(is_running(s->engine)));
	usleep(60000);
	atomic_store(&s->cancel, true);
}

/* On a busy machine the time may be over before the query's turn comes. */
static bool times_out_in_queue(struct engine *e, const struct query_options *o, struct err *err)
{
	struct query *q = NULL;

	CHECK_INT(query_run(e, o, &q, err), ERR_TIMEOUT);
	return str_is(str_of(err->msg), "query timed out in query queue");
}

TEST(steps_side_by_side_can_be_canceled)
{
	struct query_options o = { .text = STR("cum(wall[8h])"), .step_ns = 3 * NS_PER_S };
	struct engine *many[ENGINES];
	struct thread thread = { 0 };
	struct query *q = NULL;
	struct world w;
	struct err err;

	if (!open_hours(&w) || !open_engines(&w, (struct engine_options){ 0 }, many))
		return;
	o.end_ns = w.t0;
	o.start_ns = o.end_ns - 9000 * o.step_ns;
	for (size_t i = 0; i < ENGINES; i++) {
		struct setter s = { .engine = many[i] };
		struct query_options late = o;

		REQUIRE_OK(thread_start(&thread, "setter", cancel_soon, &s, &err), &err);
		CHECK_ERR(query_run_cancelable(many[i], &o, &s.cancel, &q, &err), &err, ERR_CANCELED,
			"query was canceled in expression evaluation");
		thread_join(&thread);
		late.timeout_ns = 70 * NS_PER_MS;
		CHECK(WAIT_FOR(!times_out_in_queue(many[i], &late, &err)));
		CHECK_STR(str_of(err.msg), "query timed out in expression evaluation");
	}
	o.start_ns = o.end_ns - (check_is_short() ? 5 : 20) * o.step_ns;
	compare(&w, many, o, "cum(wall[8h])");
	close_engines(many);
	world_close(&w);
}
