/*
 * Helpers for tests of numeric series.
 */
#ifndef TESTS_TSDB_NUMBERS_H
#define TESTS_TSDB_NUMBERS_H

#include "base/json.h"
#include "base/thread.h"
#include "tsdb/columns/number_chunk.h"
#include "tsdb/db.h"

struct numbers_ack {
	struct mutex lock;
	struct cond changed;
	bool done;
	enum err_code rc;
	struct err err;
};

static inline void numbers_acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct numbers_ack *a = ctx;

	mutex_lock(&a->lock);
	a->done = true;
	a->rc = rc;
	if (rc)
		a->err = *err;
	cond_broadcast(&a->changed);
	mutex_unlock(&a->lock);
}

/* Appends and waits for the acknowledgement, whose code it returns. */
static inline enum err_code numbers_wait(
	struct db *db, const struct db_number *v, size_t n, struct err *err)
{
	struct numbers_ack a = { .done = false };
	enum err_code rc;

	mutex_init(&a.lock);
	cond_init(&a.changed);
	if (!(rc = db_append_numbers(db, v, n, numbers_acked, &a, err))) {
		mutex_lock(&a.lock);
		while (!a.done)
			cond_wait(&a.changed, &a.lock);
		mutex_unlock(&a.lock);
		if ((rc = a.rc))
			*err = a.err;
	}
	cond_destroy(&a.changed);
	mutex_destroy(&a.lock);
	return rc;
}

/* All numbers in (min, max]: per series a line "labels <s>=<value> ..."; warnings behind. */
static inline bool numbers_text(
	struct db *db, int64_t min_ns, int64_t max_ns, struct buf *out, struct err *err)
{
	struct db_querier *q = NULL;
	struct db_series *v;
	const struct str *warnings;
	struct arena a;
	size_t n, warnings_n;
	bool ok;

	arena_init(&a, 0);
	ok = !db_querier_open(db, min_ns, max_ns, NULL, &q, err) &&
		!db_select_kinds(q, DB_NUMBERS, NULL, 0, &a, &v, &n, err);
	for (size_t i = 0; ok && i < n; i++) {
		int64_t *ts;
		double *values;
		size_t got;

		ok = !db_numbers(q, &v[i], min_ns, max_ns, &a, &ts, &values, &got, err);
		labels_print(out, v[i].labels);
		for (size_t k = 0; ok && k < got; k++) {
			buf_printf(out, " %lld=", (long long)(ts[k] / 1000000000));
			if (number_is_stale(values[k]))
				buf_add_cstr(out, "stale");
			else
				buf_add_double(out, values[k]);
		}
		buf_add_char(out, '\n');
	}
	if (ok) {
		warnings = db_querier_warnings(q, &warnings_n);
		for (size_t i = 0; i < warnings_n; i++)
			buf_printf(out, "warning: " STR_FMT "\n", STR_ARG(warnings[i]));
	}
	db_querier_close(q);
	arena_release(&a);
	return ok;
}

#endif
