/*
 * Levels in a real database with its engine: rows of the model are appended as goroutine profiles,
 * and queries are answered.
 */
#ifndef TESTS_PROMQL_LEVELS_STORED_H
#define TESTS_PROMQL_LEVELS_STORED_H

#include <math.h>

#include "tests/promql/levels/pods.h"
#include "tests/promql/world.h"
#include "tests/tsdb/read/numbers.h"

#define STORED_WAITING_MAX 2000

#define STORED_MEMBERS_MAX 3

struct stored {
	struct world w; /* its database may be a union of members */
	struct db *members[STORED_MEMBERS_MAX];
	unsigned members_n;
	struct arena profiles; /* of rows that are not acknowledged yet */
	int sent;
	int64_t max_ns; /* the latest time */
};

static inline void stored_options(struct db_options *o, int64_t window_ns)
{
	db_options_default(o);
	o->window_ns = window_ns;
	o->retention_ns = 0;
	o->too_old_ns = LEVELS_DAY; /* series are stored one after the other */
	o->no_compaction = true; /* windows are cut when the test says so */
	o->free_bytes_reserve = 1;
}

static inline bool stored_open_members(struct stored *s, struct db_options o, unsigned n)
{
	struct engine_options e = { 0 };
	char name[8], dir[96];
	struct err err;

	s->w = (struct world){ .t0 = WORLD_T0_NS };
	arena_init(&s->w.arena, 0);
	snprintf(s->w.dir, sizeof(s->w.dir), SCRATCH "epi-eval-XXXXXX");
	if (!scratch_dir(s->w.dir) || db_union_open(&s->w.db, &err))
		return false;
	for (; s->members_n < n; s->members_n++) {
		snprintf(name, sizeof(name), "s%u", s->members_n);
		snprintf(dir, sizeof(dir), "%s/%s", s->w.dir, name);
		o.dir = dir;
		if (db_open(&o, &s->members[s->members_n], &err) ||
			db_union_add(s->w.db, name, s->members[s->members_n], NULL, NULL, &err)) {
			CHECK_FAIL("%s", err.msg);
			return false;
		}
	}
	e.db = s->w.db;
	return !engine_open(&e, &s->w.engine, &err);
}

/* Windows of the database are this long. members 0: it is one, no union. */
static inline bool stored_open(struct stored *s, int64_t window_ns, unsigned members)
{
	struct db_options o;

	stored_options(&o, window_ns);
	*s = (struct stored){ 0 };
	arena_init(&s->profiles, 0);
	atomic_store(&acked, 0);
	return members ? stored_open_members(s, o, members) : world_open_over(&s->w, o, NULL);
}

static inline void stored_close(struct stored *s)
{
	char name[8];

	if (s->members_n) {
		engine_close(s->w.engine);
		s->w.engine = NULL;
	}
	for (unsigned i = 0; i < s->members_n; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		db_union_remove(s->w.db, name);
		db_close(s->members[i]);
	}
	world_close(&s->w);
	arena_release(&s->profiles);
}

/* All rows of a series are in one database. */
static inline struct db *stored_place(const struct stored *s, struct labels labels)
{
	return s->members_n ? s->members[labels_hash(labels) % s->members_n] : s->w.db;
}

/* All that was appended can be read. */
static inline void stored_wait(struct stored *s)
{
	CHECK(WAIT_FOR(atomic_load(&acked) >= s->sent));
	CHECK_INT(atomic_load(&acked), s->sent);
	arena_reset(&s->profiles);
}

static inline void stored_append_to(
	struct stored *s, struct db *db, struct labels labels, const struct levels_row *row)
{
	enum value_kind kinds[] = { KIND_GAUGE };
	struct db_append a = {
		.labels = labels, .ts_ns = row->ts_ns, .interval_ns = row->interval_ns, .kinds = kinds
	};
	struct frame_ids ids = { .n = 0 };
	struct db_append_stats stats;
	struct pprof_builder *b;
	int64_t factors[] = { 1 };
	struct pprof *p;
	char stack[48];
	struct err err;

	if (s->sent % STORED_WAITING_MAX == STORED_WAITING_MAX - 1)
		stored_wait(s);
	REQUIRE_OK(pprof_builder_open(&s->profiles, &b, &err), &err);
	pprof_builder_type(b, STR("goroutine"), STR("count"));
	pprof_builder_profile(b)->time_nanos = row->ts_ns;
	snprintf(stack, sizeof(stack), "main;f %" PRId64, row->value);
	if (row->value)
		add_stack(b, &ids, stack, factors, 1);
	REQUIRE_OK(pprof_builder_finish(b, &p, &err), &err);
	a.profile = p;
	REQUIRE_OK(db_append(db, &a, &stats, on_acked, NULL, &err), &err);
	s->sent++;
	s->max_ns = row->ts_ns > s->max_ns ? row->ts_ns : s->max_ns;
}

static inline void stored_append(
	struct stored *s, struct labels labels, const struct levels_row *row)
{
	stored_append_to(s, stored_place(s, labels), labels, row);
}

static inline struct labels stored_labels(struct stored *s, const char *text)
{
	return labels_of(&s->w.arena, arena_strndup(&s->w.arena, text, strlen(text)));
}

/* All rows of one series. */
static inline void stored_fill(
	struct stored *s, const char *labels, const struct levels_series *series)
{
	struct labels l = stored_labels(s, labels);

	for (size_t i = 0; i < series->n; i++)
		stored_append(s, l, &series->rows[i]);
	stored_wait(s);
}

/*
 * Closed windows become blocks, which are joined. For all windows to be closed, a number is stored
 * far behind them. Returns how many blocks there are.
 */
static inline uint64_t stored_compact(struct stored *s, bool all)
{
	struct label labels[] = { { STR(LABEL_NAME), STR("settled") } };
	struct db_number number = { .labels = { labels, 1 }, .ts_ns = s->max_ns + 2 * LEVELS_DAY };
	struct db_status status;
	uint64_t blocks = 0;
	struct err err;

	for (unsigned i = 0; i < (s->members_n ? s->members_n : 1); i++) {
		struct db *db = s->members_n ? s->members[i] : s->w.db;

		if (all)
			CHECK_OK(numbers_wait(db, &number, 1, &err), &err);
		CHECK_OK(db_compact(db, &err), &err);
		db_status(db, &status);
		blocks += status.blocks;
	}
	return blocks;
}

/* The only value of an answer; NaN if there is none. */
static inline double stored_number(struct stored *s, int64_t t_ns, const char *text)
{
	struct query_options o = { .t_ns = t_ns, .text = str_of(text) };
	double value = NAN;
	struct query *q;
	struct err err;

	if (query_run(s->w.engine, &o, &q, &err)) {
		CHECK_FAIL("%s: %s", text, err.msg);
		return NAN;
	}
	if (query_result(q)->type == RESULT_VECTOR && query_result(q)->n == 1)
		value = query_result(q)->vector[0].value;
	query_close(q);
	return value;
}

static inline bool stored_is(double got, long double want)
{
	return fabsl((long double)got - want) <= 1e-12L * fabsl(want);
}

#endif
