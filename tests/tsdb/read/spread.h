/*
 * Helpers for tests of unions: the same profiles and numbers in one database, and spread over three
 * that are the members of a union.
 */
#ifndef TESTS_TSDB_READ_SPREAD_H
#define TESTS_TSDB_READ_SPREAD_H

#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tests/tsdb/read/numbers.h"

#define MEMBERS 3u
#define T0 INT64_C(1700001000)
#define STEPS 40
#define STEP_S 10
#define PODS 6

struct spread {
	struct fixture one, of[MEMBERS];
	struct db *all;
};

static const char *const names[MEMBERS] = { "a", "b", "c" };

static inline bool open_all(struct spread *s)
{
	struct err err;

	*s = (struct spread){ 0 };
	if (!fixture_open(&s->one) || db_union_open(&s->all, &err))
		return false;
	/* b comes last: the order is that of names */
	for (size_t i = 0; i < MEMBERS; i++) {
		struct fixture *f = &s->of[(i + 2) % MEMBERS];

		if (!fixture_open(f))
			return false;
		CHECK_OK(db_union_add(s->all, names[(i + 2) % MEMBERS], f->db, NULL, NULL, &err), &err);
	}
	return true;
}

static inline void close_all(struct spread *s)
{
	for (size_t i = 0; i < MEMBERS; i++)
		db_union_remove(s->all, names[i]);
	db_close(s->all);
	for (size_t i = 0; i < MEMBERS; i++)
		fixture_close(&s->of[i]);
	fixture_close(&s->one);
}

/* The first two pods stay where they are; of the others some move from row to row. */
static inline size_t place_of(int pod, int step)
{
	return pod < 2 ? 1 : (size_t)(pod + (pod % 2 ? step : step / 15)) % MEMBERS;
}

static inline struct labels pod_labels(struct spread *s, const char *name, int pod)
{
	char instance[16];

	snprintf(instance, sizeof(instance), "i%d", pod);
	return labels_of(&s->one.arena, name, pod % 2 ? "x" : "y", instance);
}

static inline void append_to(
	struct db *db, struct labels labels, int64_t ts_s, const struct pprof *p)
{
	struct err err;

	CHECK_OK(append_wait(db, labels, ts_s * SEC, STEP_S * SEC, p, NULL, false, NULL, &err), &err);
}

static inline void number_to(struct db *db, struct labels labels, int64_t ts_s, double v)
{
	struct db_number number = { labels, ts_s * SEC, v };
	struct err err;

	CHECK_OK(numbers_wait(db, &number, 1, &err), &err);
}

static inline void fill_all(struct spread *s)
{
	for (int step = 1; step <= STEPS; step++)
		for (int pod = 0; pod < PODS; pod++) {
			struct pprof *p = profile_random(&s->one.arena, (uint64_t)(step * PODS + pod));
			struct db *db = s->of[place_of(pod, step)].db;
			int64_t ts = T0 + step * STEP_S;

			append_to(s->one.db, pod_labels(s, "p", pod), ts, p);
			append_to(db, pod_labels(s, "p", pod), ts, p);
			number_to(s->one.db, pod_labels(s, "up", pod), ts, step * pod / 7.0);
			number_to(db, pod_labels(s, "up", pod), ts, step * pod / 7.0);
		}
}

static inline void check_same(struct buf *one, struct buf *all, const char *what)
{
	if (!one->len || !str_eq(buf_str(one), buf_str(all)))
		CHECK_FAIL("%s\n    one   %.400s\n    union %.400s", what, one->len ? one->ptr : "",
			all->len ? all->ptr : "");
	buf_clear(one);
	buf_clear(all);
}

#endif
