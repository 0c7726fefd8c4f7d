/* Sums over head windows and blocks are those of their rows, one by one, to the last bit. */
#include "base/map.h"
#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tsdb/columns/chunk_bits.h"
#include "tsdb/compact/compact_internal.h"
#include "tsdb/db.h"
#include "tsdb/read/sum_internal.h"

#define T0 1036800 /* twelve whole days */
#define EVERY 600
#define HOUR 3600
#define DAY 86400

/* clang-format off */
static const struct profile_type types[] = {
	{ STR("p"), STR("cpu"), STR("nanoseconds"), STR(""), STR(""), true },
	{ STR("p"), STR("samples"), STR("count"), STR(""), STR(""), true },
	{ STR("heap"), STR("cpu"), STR("nanoseconds"), STR(""), STR(""), false },
	{ STR("p"), STR("goroutines"), STR("count"), STR(""), STR(""), true },
};
/* clang-format on */
#define TYPES (sizeof(types) / sizeof(types[0]))

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(state) % below;
}

/* ---- a database of days ---- */

static bool open_days(struct fixture *f)
{
	state = 1;
	if (!fixture_open(f))
		return false;
	f->o.window_ns = 1800 * SEC;
	f->o.too_old_ns = HOUR * SEC;
	f->o.retention_ns = 0;
	f->o.block_max_ns = INT64_C(3) * DAY * SEC;
	f->o.no_compaction = true;
	f->o.free_bytes_reserve = 0;
	return fixture_reopen(f);
}

static bool add_row(
	struct fixture *f, const char *name, const char *job, const char *instance, int64_t ts_s)
{
	static const enum value_kind gauges[] = { KIND_GAUGE, KIND_GAUGE };
	bool gauge = !strcmp(name, "heap");
	struct arena a;
	struct pprof *p;
	enum err_code rc;

	arena_init(&a, 0);
	p = profile_random(&a, draw(60));
	p->time_nanos = draw(10) ? ts_s * SEC - (int64_t)draw(1000) : 0;
	p->duration_nanos = (int64_t)draw(EVERY) * SEC;
	p->period = (int64_t)draw(100);
	rc = append_wait(f->db, labels_of(&a, name, job, instance), ts_s * SEC, EVERY * SEC, p,
		gauge ? gauges : NULL, false, NULL, &f->err);
	arena_release(&a);
	return rc == ERR_OK;
}

static bool fill(struct fixture *f, int64_t from_s, int64_t to_s)
{
	static const char *const jobs[] = { "a", "b" }, *const instances[] = { "0", "1", "2" };

	for (int64_t ts = from_s + EVERY; ts <= to_s; ts += EVERY)
		for (int j = 0; j < 2; j++)
			for (int i = 0; i < (j ? 1 : 3); i++) {
				if (!add_row(f, "p", jobs[j], instances[i], ts + i) ||
					(i < 2 && !add_row(f, "heap", jobs[j], instances[i], ts - i)))
					return false;
			}
	return true;
}

static void delete (
	struct fixture *f, const char *job, const char *instance, int64_t from_s, int64_t to_s)
{
	struct matcher m[2];
	size_t n = 1;

	if (matcher_init(&m[0], MATCH_EQ, STR("job"), str_of(job), &f->err) ||
			(instance &&
				matcher_init(&m[n++], MATCH_EQ, STR("instance"), str_of(instance), &f->err)))
		abort();
	CHECK_OK(db_delete_series(f->db, m, n, from_s * SEC, to_s * SEC, &f->err), &f->err);
}

/* ---- by hand ---- */

static void by_hand_row(const struct db_series *s, const struct db_row *row, int column,
	int64_t weight, struct accum *acc, struct arena *a, struct sum_stats *st)
{
	struct err err;
	bool known = false;

	if (accum_add(acc, row->stacks, row->label_sets, row->values + (size_t)column * row->n, row->n,
			weight, &err))
		CHECK_FAIL("%s", err.msg);
	st->total += (__int128)row->totals[column] * weight;
	st->samples += row->n;
	if (!st->rows || row->ts_ns - row->interval_ns < st->start_ns)
		st->start_ns = row->ts_ns - row->interval_ns;
	st->end_ns = row->ts_ns > st->end_ns ? row->ts_ns : st->end_ns;
	if (row->time_nanos && (!st->time_nanos || row->time_nanos < st->time_nanos))
		st->time_nanos = row->time_nanos;
	st->duration_ns += row->duration_nanos;
	st->period = row->period > st->period ? row->period : st->period;
	st->rows++;
	for (uint32_t i = 0; i < st->headers_n; i++)
		known |= st->headers[i] == row->header;
	if (!known) {
		uint32_t *v = arena_array(a, uint32_t, st->headers_n + 1);

		if (st->headers_n)
			memcpy(v, st->headers, st->headers_n * sizeof(*v));
		v[st->headers_n++] = row->header;
		st->headers = v;
	}
}

static void by_hand(struct db_querier *q, const struct db_series *s, const struct profile_type *t,
	int64_t min_ns, int64_t max_ns, bool last, unsigned flags, struct accum *acc, struct arena *a,
	struct sum_stats *st)
{
	const struct db_row *row;
	struct db_rows *rows;
	struct sum_stats one = { 0 };
	struct accum *part = acc;
	struct err err;
	enum err_code rc;

	CHECK_OK(db_rows_open(q, s, min_ns, max_ns, &rows, &err), &err);
	while (!(rc = db_rows_next(rows, &row, &err))) {
		int column = header_column(s->partition, row->header, t);

		if (column < 0)
			continue;
		if (last) { /* of the row before nothing stays */
			if (part != acc)
				accum_close(part);
			CHECK_OK(accum_open(s->partition, flags, &part, &err), &err);
			one = (struct sum_stats){ 0 };
		}
		by_hand_row(
			s, row, column, t->delta || last ? 1 : row->interval_ns, part, a, last ? &one : st);
	}
	CHECK_INT(rc, ERR_NOT_FOUND);
	db_rows_close(rows);
	if (!last || !one.rows)
		return;
	CHECK_OK(accum_merge(acc, part, &err), &err);
	accum_close(part);
	st->total += one.total;
	st->samples += one.samples;
	if (!st->rows || one.start_ns < st->start_ns)
		st->start_ns = one.start_ns;
	st->end_ns = one.end_ns > st->end_ns ? one.end_ns : st->end_ns;
	if (one.time_nanos && (!st->time_nanos || one.time_nanos < st->time_nanos))
		st->time_nanos = one.time_nanos;
	st->duration_ns += one.duration_ns;
	st->period = one.period > st->period ? one.period : st->period;
	st->rows++;
}

/* ---- comparing ---- */

static void compare_cells(struct accum *got, struct accum *want, const char *what)
{
	struct accum_cell g, w;
	size_t at_g = 0, at_w = 0, n = 0;
	struct err err;
	bool more_g, more_w;

	CHECK_OK(accum_seal(got, &err), &err);
	CHECK_OK(accum_seal(want, &err), &err);
	for (;; n++) {
		more_g = accum_next(got, &at_g, &g);
		more_w = accum_next(want, &at_w, &w);
		if (more_g != more_w ||
			(more_g && (g.stack != w.stack || g.label_set != w.label_set || g.value != w.value))) {
			CHECK_FAIL("%s: cell %zu differs", what, n);
			return;
		}
		if (!more_g)
			return;
	}
}

static void compare_stats(
	const struct sum_stats *g, const struct sum_stats *w, bool headers, const char *what)
{
	uint32_t same = 0;

	if (g->rows != w->rows || g->samples != w->samples || g->total != w->total)
		CHECK_FAIL("%s: %llu rows, %llu samples, want %llu, %llu", what,
			(unsigned long long)g->rows, (unsigned long long)g->samples,
			(unsigned long long)w->rows, (unsigned long long)w->samples);
	if (g->start_ns != w->start_ns || g->end_ns != w->end_ns || g->time_nanos != w->time_nanos ||
		g->duration_ns != w->duration_ns || g->period != w->period)
		CHECK_FAIL("%s: times differ", what);
	for (uint32_t i = 0; i < g->headers_n; i++)
		for (uint32_t k = 0; k < w->headers_n; k++)
			same += g->headers[i] == w->headers[k];
	if (headers && (same != w->headers_n || g->headers_n != w->headers_n))
		CHECK_FAIL("%s: %u headers, want %u", what, g->headers_n, w->headers_n);
}

/* Totals over all calls: of the sums read, and of the rows by hand. */
static uint64_t read_cells, hand_cells;

static void compare(struct fixture *f, const struct db_series *const *series, size_t n,
	struct db_querier *q, const struct profile_type *t, int64_t min_ns, int64_t max_ns, bool last,
	const char *what)
{
	unsigned flags = draw(2) ? ACCUM_BY_LABELS | ACCUM_WEIGHTED : 0;
	struct partition *p = series[0]->partition;
	/* what levels count of a window: promql's levels_test; here each counts its interval */
	enum sum_pick pick = last ? SUM_LAST : t->delta ? SUM_WINDOW : SUM_EACH;
	struct sum_stats got = { 0 }, want = { 0 }, totals = { 0 };
	struct accum *a, *b;

	flags |= t->delta ? 0 : ACCUM_WEIGHTED;
	CHECK_OK(accum_open(p, flags, &a, &f->err), &f->err);
	CHECK_OK(accum_open(p, flags, &b, &f->err), &f->err);
	CHECK_OK(
		db_sum(q, series, n, t, min_ns, max_ns, pick, NULL, &f->arena, &totals, &f->err), &f->err);
	CHECK_OK(db_sum(q, series, n, t, min_ns, max_ns, pick, a, &f->arena, &got, &f->err), &f->err);
	for (size_t i = 0; i < n; i++)
		by_hand(q, series[i], t, min_ns, max_ns, last, flags, b, &f->arena, &want);
	compare_cells(a, b, what);
	compare_stats(&got, &want, !last, what);
	compare_stats(&totals, &want, !last, what);
	CHECK_INT(totals.read, 0);
	read_cells += got.read;
	hand_cells += want.samples;
	accum_close(a);
	accum_close(b);
}

/* Some or all series of a type in a job: one partition. */
static size_t pick_series(struct db_series *all, size_t n, const struct profile_type *t,
	const char *job, bool some, const struct db_series **out)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (str_eq(labels_get(all[i].labels, STR(LABEL_NAME)), t->name) &&
				str_is(labels_get(all[i].labels, STR("job")), job) && (!some || draw(2)))
			out[kept++] = &all[i];
	return kept;
}

static void compare_window(
	struct fixture *f, int64_t min_ns, int64_t max_ns, bool last, bool some, const char *what)
{
	const struct profile_type *t = &types[draw(TYPES)];
	const struct db_series *series[64];
	struct db_series *all;
	struct db_querier *q;
	char text[160];
	size_t n;

	arena_reset(&f->arena);
	snprintf(text, sizeof(text), "%s, " STR_FMT " " STR_FMT " of (%.3f, %.3f]%s%s", what,
		STR_ARG(t->name), STR_ARG(t->sample_type), (double)min_ns / 1e9 - T0,
		(double)max_ns / 1e9 - T0, last ? ", last" : "", some ? ", some" : "");
	REQUIRE_OK(db_querier_open(f->db, min_ns, max_ns, NULL, &q, &f->err), &f->err);
	REQUIRE_OK(db_select(q, NULL, 0, &f->arena, &all, &n, &f->err), &f->err);
	n = pick_series(all, n, t, draw(4) ? "a" : "b", some, series);
	if (n)
		compare(f, series, n, q, t, min_ns, max_ns, last, text);
	db_querier_warnings(q, &n);
	CHECK_INT(n, 0);
	db_querier_infos(q, &n);
	CHECK_INT(n, 0);
	db_querier_close(q);
}

/* Edges on and beside rows, hours and days. */
static int64_t draw_edge(int64_t span_s)
{
	static const int64_t grids[] = { DAY, HOUR, HOUR, EVERY, 1 };
	int64_t grid = grids[draw(5)], at = T0 + (int64_t)draw((uint64_t)span_s + 1);
	int64_t beside = draw(4) ? 0 : (int64_t)draw(3) - 1;

	return at / grid * grid * SEC + beside;
}

static void compare_windows(struct fixture *f, int64_t span_s, int turns, const char *what)
{
	compare_window(f, 0, INT64_MAX, false, false, what);
	compare_window(f, 0, INT64_MAX, true, false, what);
	for (int i = 0; i < turns; i++) {
		int64_t x = draw_edge(span_s), y = draw_edge(span_s);

		compare_window(f, x < y ? x : y, x < y ? y : x, draw(6) == 0, draw(2), what);
	}
}

#define SPAN (3 * DAY + 5 * HOUR)

TEST(sums_are_those_of_rows)
{
	const int64_t at[] = { 0, DAY + 1800, SPAN };
	const int turns = check_is_short() ? 20 : 80;
	struct fixture f;

	REQUIRE(open_days(&f));
	for (int i = 0; i < 2; i++) {
		REQUIRE(fill(&f, T0 + at[i], T0 + at[i + 1]));
		CHECK_OK(db_compact(f.db, &f.err), &f.err);
		compare_windows(&f, at[i + 1], turns, i ? "all" : "a day");
	}
	delete (&f, "a", "1", T0 + 3 * HOUR + 900, T0 + 9 * HOUR);
	delete (&f, "a", NULL, T0 + DAY + HOUR, T0 + DAY + HOUR + 1800);
	delete (&f, "b", "0", T0 + 12 * HOUR, T0 + DAY);
	delete (&f, "a", "0", T0 + 3 * DAY + 4 * HOUR, T0 + 3 * DAY + 4 * HOUR + 3000);
	compare_windows(&f, SPAN, turns, "deleted");
	REQUIRE(fixture_reopen(&f));
	compare_windows(&f, SPAN, turns / 2, "reopened");
	fixture_close(&f);
}

TEST(long_windows_are_read_from_rollups)
{
	/* clang-format off */
	static const struct {
		int64_t min_s, max_s;
		uint64_t at_most; /* of the cells that rows have, in thousandths */
	} tests[] = {
		{ 0, 36 * HOUR, 250 }, /* a block with days */
		{ 0, 3 * DAY, 450 }, /* and blocks with hours */
		{ 1, 3 * DAY - 1, 700 },
	};
	/* clang-format on */
	const struct db_series *series[64];
	struct db_series *all;
	struct db_querier *q;
	struct fixture f;
	size_t n;

	REQUIRE(open_days(&f));
	REQUIRE(fill(&f, T0, T0 + SPAN));
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		int64_t min_ns = (T0 + tests[i].min_s) * SEC, max_ns = (T0 + tests[i].max_s) * SEC;

		read_cells = hand_cells = 0;
		REQUIRE_OK(db_querier_open(f.db, min_ns, max_ns, NULL, &q, &f.err), &f.err);
		REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &all, &n, &f.err), &f.err);
		n = pick_series(all, n, &types[0], "a", false, series);
		CHECK_INT(n, 3);
		compare(&f, series, n, q, &types[0], min_ns, max_ns, false, "three days");
		if (read_cells * 1000 > hand_cells * tests[i].at_most)
			CHECK_FAIL("%zu: read %" PRIu64 " cells for %" PRIu64, i, read_cells, hand_cells);
		db_querier_close(q);
	}
	fixture_close(&f);
}

/* ---- windows that follow each other ---- */

struct walk {
	int64_t at_ns, step_ns, width_ns;
};

static void walk_begin(struct walk *w, int64_t span_s)
{
	static const int64_t steps[] = { 1, EVERY, 1234, 3 * EVERY, HOUR, 7 * HOUR };

	*w = (struct walk){ .at_ns = draw_edge(span_s), .step_ns = steps[draw(6)] * SEC };
	w->width_ns = draw(2) ? w->step_ns : w->step_ns * (int64_t)(1 + draw(4)) + (int64_t)draw(9);
}

static void walk_on(struct walk *w, int64_t span_s)
{
	w->at_ns = draw(12) ? w->at_ns + w->step_ns : draw_edge(span_s);
}

static void compare_steps(
	struct fixture *f, int64_t span_s, size_t heads_max, bool *kept, const char *what)
{
	const struct profile_type *t = &types[draw(TYPES)];
	const struct db_series *series[64];
	struct db_series *all;
	struct db_querier *q;
	struct walk w[2];
	char text[160];
	size_t all_n, n;

	arena_reset(&f->arena);
	REQUIRE_OK(db_querier_open(f->db, 0, INT64_MAX, NULL, &q, &f->err), &f->err);
	db_querier_in_steps(q, draw(2));
	q->heads_bytes_max = heads_max;
	REQUIRE_OK(db_select(q, NULL, 0, &f->arena, &all, &all_n, &f->err), &f->err);
	walk_begin(&w[0], span_s);
	walk_begin(&w[1], span_s);
	for (int i = 0; i < 30; i++) {
		struct walk *of = &w[draw(3) == 0]; /* as a query with an offset has it */
		snprintf(text, sizeof(text), "%s, step %d of %.3f: type %zu at %.3f", what, i,
			(double)of->width_ns / 1e9, (size_t)(t - types), (double)of->at_ns / 1e9 - T0);
		if ((n = pick_series(all, all_n, t, "a", draw(4) == 0, series))) {
			compare(f, series, n, q, t, of->at_ns - of->width_ns, of->at_ns, false, text);
			CHECK(q->scratch->heads.bytes <= heads_max);
			*kept |= q->scratch->heads.bytes > 0;
		}
		walk_on(of, span_s);
	}
	db_querier_warnings(q, &n);
	CHECK_INT(n, 0);
	db_querier_close(q);
}

TEST(sums_of_steps_are_those_of_rows)
{
	static const size_t heads_max[] = { 0, 3000, 20000, 8 << 20 };
	const int turns = check_is_short() ? 8 : 60;
	struct fixture f;
	bool kept = false;

	REQUIRE(open_days(&f) && fill(&f, T0, T0 + SPAN));
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	for (int i = 0; i < turns; i++)
		compare_steps(&f, SPAN, heads_max[draw(4)], &kept, "all");
	delete (&f, "a", "1", T0 + 3 * HOUR + 900, T0 + 9 * HOUR);
	delete (&f, "a", NULL, T0 + DAY + HOUR, T0 + DAY + HOUR + 1800);
	delete (&f, "a", "0", T0 + 3 * DAY + 4 * HOUR, T0 + 3 * DAY + 4 * HOUR + 3000);
	for (int i = 0; i < turns; i++)
		compare_steps(&f, SPAN, heads_max[draw(4)], &kept, "deleted");
	CHECK(kept);
	fixture_close(&f);
}

/* ---- without raw rows ---- */

struct whole {
	int64_t min_s, max_s; /* asked for, after T0 */
	int64_t rows; /* of three instances, or -1: as asked for */
	bool info;
};

TEST(without_raw_rows_windows_are_whole_steps)
{
	static const struct whole tests[] = {
		{ 0, 5 * HOUR, 5 * 18, false },
		{ 1800, 5 * HOUR, 5 * 18, true },
		{ HOUR, 5 * HOUR + 1200, 4 * 18, true },
		{ 0, 1800, 0, true },
		{ 2 * HOUR, 2 * HOUR + 1, 0, true },
		{ DAY - HOUR, 2 * DAY + HOUR, 26 * 18, false },
	};
	const struct db_series *series[64];
	struct db_series *all;
	struct db_querier *q;
	struct fixture f;
	size_t n, infos;

	REQUIRE(open_days(&f));
	REQUIRE(fill(&f, T0 - 3, T0 - 3 + SPAN)); /* instances are up to 2 s behind */
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	f.o.raw_retention_ns = SEC;
	REQUIRE(fixture_reopen(&f));
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		int64_t min_ns = (T0 + tests[i].min_s) * SEC, max_ns = (T0 + tests[i].max_s) * SEC;
		struct sum_stats st = { 0 }, last = { 0 };
		struct accum *acc;

		REQUIRE_OK(db_querier_open(f.db, min_ns, max_ns, NULL, &q, &f.err), &f.err);
		REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &all, &n, &f.err), &f.err);
		n = pick_series(all, n, &types[0], "a", false, series);
		if (n) {
			CHECK_OK(accum_open(series[0]->partition, 0, &acc, &f.err), &f.err);
			CHECK_OK(db_sum(q, series, n, &types[0], min_ns, max_ns, SUM_WINDOW, acc, &f.arena, &st,
						 &f.err),
				&f.err);
			accum_close(acc);
		}
		CHECK_INT(st.rows, tests[i].rows);
		db_querier_infos(q, &infos);
		if (n)
			CHECK_INT(infos, tests[i].info);
		if (n)
			CHECK_OK(db_sum(q, series, n, &types[0], min_ns, max_ns, SUM_LAST, NULL, &f.arena,
						 &last, &f.err),
				&f.err);
		CHECK_INT(last.rows, 0);
		db_querier_close(q);
	}
	fixture_close(&f);
}

/* ---- damage ---- */

/* A byte of a block's file is another one. */
static bool spoil(struct fixture *f, const char *file, uint64_t part, uint64_t parts)
{
	struct buf b = { 0 };
	struct str *names;
	size_t n;
	bool ok;
	const char *dir = arena_printf(&f->arena, "%s/blocks", f->dir), *path;

	db_close(f->db);
	f->db = NULL;
	if (fs_list(dir, &f->arena, &names, &n, &f->err) || !n)
		return false;
	path = arena_printf(&f->arena, "%s/" STR_FMT "/%s", dir, STR_ARG(names[0]), file);
	if (fs_read_file(path, 64u << 20, &b, &f->err))
		return false;
	b.ptr[b.len * part / parts] ^= 0x40;
	ok = !fs_write_file(&fs_posix, path, buf_str(&b), &f->err);
	buf_release(&b);
	return ok && fixture_reopen(f);
}

TEST(what_rollups_lost_is_read_from_rows)
{
	const struct db_series *series[64];
	struct db_series *all;
	struct db_querier *q;
	struct fixture f;
	size_t n, all_n, warned = 0;

	REQUIRE(open_days(&f) && fill(&f, T0, T0 + 36 * HOUR));
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	for (uint64_t part = 1; part < 16; part += check_is_short() ? 4 : 1) {
		REQUIRE(spoil(&f, "rollups.ldb", part, 16));
		REQUIRE_OK(db_querier_open(f.db, 0, INT64_MAX, NULL, &q, &f.err), &f.err);
		REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &all, &all_n, &f.err), &f.err);
		for (size_t t = 0; t < TYPES; t++)
			for (int64_t from = 0; from < 6; from++)
				if ((n = pick_series(all, all_n, &types[t], from % 2 ? "a" : "b", false, series)))
					compare(&f, series, n, q, &types[t], (T0 + from * 1800) * SEC,
						(T0 + (36 - from) * HOUR) * SEC, false, "spoilt");
		db_querier_warnings(q, &n);
		warned += n > 0;
		db_querier_close(q);
	}
	CHECK(warned > 0);
	fixture_close(&f);
}

/* Totals and warnings of steps are those of queriers that are asked once. */
static void compare_damaged_steps(struct fixture *f, const struct profile_type *t, size_t *warned)
{
	const struct db_series *series[64];
	struct db_series *all;
	struct db_querier *q[2];
	struct walk w;
	size_t n, all_n, of[2] = { 0, 0 };
	enum err_code rc;

	REQUIRE_OK(db_querier_open(f->db, 0, INT64_MAX, NULL, &q[0], &f->err), &f->err);
	db_querier_in_steps(q[0], false);
	walk_begin(&w, 36 * HOUR);
	for (int i = 0; i < 30; i++, walk_on(&w, 36 * HOUR)) {
		struct sum_stats stats[2] = { 0 };

		REQUIRE_OK(db_querier_open(f->db, 0, INT64_MAX, NULL, &q[1], &f->err), &f->err);
		for (size_t k = 0; k < 2; k++) {
			REQUIRE_OK(db_select(q[k], NULL, 0, &f->arena, &all, &all_n, &f->err), &f->err);
			n = pick_series(all, all_n, t, "a", false, series);
			rc = db_sum(q[k], series, n, t, w.at_ns - w.width_ns, w.at_ns, SUM_WINDOW, NULL,
				&f->arena, &stats[k], &f->err);
			CHECK_OK(rc, &f->err);
			db_querier_warnings(q[k], &n);
			of[k] += n;
		}
		compare_stats(&stats[0], &stats[1], true, "a damaged step");
		CHECK_INT(of[0] > 0, of[1] > 0);
		db_querier_close(q[1]);
	}
	*warned += of[0] > 0;
	db_querier_close(q[0]);
}

TEST(damage_is_met_in_every_step)
{
	struct fixture f;
	size_t warned = 0;

	REQUIRE(open_days(&f) && fill(&f, T0, T0 + 36 * HOUR));
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	for (uint64_t part = 1; part < 16; part += check_is_short() ? 4 : 1) {
		REQUIRE(spoil(&f, "rows.ldb", part, 16));
		for (size_t t = 0; t < TYPES; t++)
			compare_damaged_steps(&f, &types[t], &warned);
	}
	CHECK(warned > 0);
	fixture_close(&f);
}
