/*
 * Helpers for tests of epochs: small windows and limits, rows and scrapes in a line of text, and
 * checks of what is stored.
 */
#ifndef TESTS_TSDB_EPOCH_WORLD_H
#define TESTS_TSDB_EPOCH_WORLD_H

#include <stdlib.h>

#include "tests/tsdb/check_rows.h"
#include "tsdb/db.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/read/querier_internal.h"
#include "tsdb/read/select_internal.h"

#define WINDOW (100 * SEC)
#define ALL 0, 1000000 * SEC

static const char *const types[] = { "samples/count", NULL };
static const enum value_kind cumulative[] = { KIND_CUMULATIVE };

static inline bool open_small(struct fixture *f, void (*change)(struct db_options *o))
{
	if (!fixture_open(f))
		return false;
	f->o.window_ns = WINDOW;
	if (change)
		change(&f->o);
	return fixture_reopen(f);
}

/* The same, over a store that may fail. */
static inline bool open_small_over(
	struct fixture *f, void (*change)(struct db_options *o), const struct store_ops *store)
{
	if (!open_small(f, change))
		return false;
	f->o.store = store;
	return fixture_reopen(f);
}

static inline struct labels job(struct fixture *f, const char *name, const char *instance)
{
	return labels_of(&f->arena, "p", name, instance);
}

/* Lines are separated by '|'. */
static inline struct pprof *profile(struct fixture *f, const char *text)
{
	const char *lines[16] = { NULL };
	char *copy = strdup(text), *save = NULL;
	struct pprof *p;
	size_t n = 0;

	for (char *at = strtok_r(copy, "|", &save); at; at = strtok_r(NULL, "|", &save))
		lines[n++] = at;
	p = profile_of(&f->arena, types, lines);
	free(copy);
	return p;
}

static inline enum err_code put(struct fixture *f, struct labels l, int64_t s, const char *text)
{
	return append_wait(f->db, l, s * SEC, SEC, profile(f, text), NULL, false, NULL, &f->err);
}

/* A scrape with an interval of 40 seconds. */
static inline enum err_code scrape(
	struct fixture *f, struct labels l, int64_t s, const char *text, bool *first)
{
	struct db_append_stats stats;
	enum err_code rc = append_wait(
		f->db, l, s * SEC, 40 * SEC, profile(f, text), cumulative, true, &stats, &f->err);

	*first = stats.first;
	return rc;
}

static inline struct db_status status(struct fixture *f)
{
	struct db_status s;

	db_status(f->db, &s);
	return s;
}

/* Entries of select for these labels: one per epoch. */
static inline int epochs_of(struct fixture *f, struct labels l)
{
	struct db_querier *q;
	struct db_series *series;
	size_t n;
	int found = 0;

	if (db_querier_open(f->db, ALL, NULL, &q, &f->err))
		return -1;
	if (db_select(q, NULL, 0, &f->arena, &series, &n, &f->err))
		n = 0;
	for (size_t i = 0; i < n; i++)
		found += labels_eq(series[i].labels, l);
	db_querier_close(q);
	return found;
}

static inline void few_nodes(struct db_options *o)
{
	o->nodes_max = 16;
}

/* Rows of one sample each, "main;<letter><i>", a second apart. */
static inline int fill(
	struct fixture *f, struct labels l, int64_t s, char letter, int from, int n, struct buf *want)
{
	char text[40];
	int i;

	for (i = from; i < from + n; i++) {
		snprintf(text, sizeof(text), "main;%c%d 1", letter, i);
		if (put(f, l, s + i, text))
			break;
		buf_printf(want, "@%d\n%s\n", (int)(s + i), text);
	}
	return i - from;
}

#endif
