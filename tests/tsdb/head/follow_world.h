/*
 * Helpers for tests of followers: one database that writes and one that follows it by segments, and
 * everything that a database says, as text.
 */
#ifndef TESTS_TSDB_FOLLOW_WORLD_H
#define TESTS_TSDB_FOLLOW_WORLD_H

#include <unistd.h>

#include "tests/check.h"
#include "tests/scratch.h"
#include "tests/tsdb/fixture.h"
#include "tests/tsdb/read/numbers.h"
#include "tsdb/catalog/state.h"
#include "tsdb/head/follow.h"
#include "tsdb/head/ship.h"
#include "tsdb/segments/segments.h"

#define FOLLOW_ALL 0, 1000000 * SEC

/* A segment that was put: what a bucket has. */
struct kept_segment {
	struct segment head;
	struct buf bytes;
};

struct follow_world {
	struct fixture f; /* writes */
	struct db_options o;
	struct db *follower;
	char dir[64];
	struct kept_segment *v; /* of all windows */
	size_t n;
	struct str deleted; /* of the first window, in f.arena */
	struct err err;
};

static inline bool follower_open(struct follow_world *w)
{
	db_options_default(&w->o);
	w->o.dir = w->dir;
	w->o.follower = true;
	w->o.symbols_bytes = w->f.o.symbols_bytes;
	return !db_open(&w->o, &w->follower, &w->err);
}

static inline bool world_open(struct follow_world *w, void (*change)(struct db_options *o))
{
	if (!fixture_open(&w->f))
		return false;
	w->f.o.window_ns = 100 * SEC;
	w->f.o.too_old_ns = 100000 * SEC;
	w->f.o.segments = true;
	w->f.o.no_compaction = true;
	w->f.o.free_bytes_reserve = 0;
	if (change)
		change(&w->f.o);
	snprintf(w->dir, sizeof(w->dir), SCRATCH "epimetheus-follow-XXXXXX");
	return fixture_reopen(&w->f) && scratch_dir(w->dir) && follower_open(w);
}

static inline void drop_kept(struct follow_world *w, int64_t start_ns, uint64_t identity)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].head.start_ns == start_ns && w->v[i].head.identity == identity)
			buf_release(&w->v[i].bytes);
		else
			w->v[kept++] = w->v[i];
	w->n = kept;
}

static inline void world_close(struct follow_world *w)
{
	struct err err;

	while (w->n)
		drop_kept(w, w->v[0].head.start_ns, w->v[0].head.identity);
	free(w->v);
	db_close(w->follower);
	(void)!fs_remove_tree(&fs_posix, w->dir, &err);
	fixture_close(&w->f);
}

static inline void keep(struct follow_world *w, struct segment head, const char *path)
{
	struct kept_segment k = { head, { 0 } };

	CHECK_OK(fs_read_file(path, 1 << 28, &k.bytes, &w->err), &w->err);
	w->v = realloc(w->v, (w->n + 1) * sizeof(*w->v));
	w->v[w->n++] = k;
	unlink(path);
}

/* The bucket has `done` of each window already, as a publisher says at a start. */
static inline void ship_again(struct follow_world *w)
{
	for (size_t i = 0; i < w->n; i++)
		head_ship_done(w->f.db, w->v[i].head.start_ns, w->v[i].head.identity, w->v[i].head.last);
}

/* Puts all that waits into the bucket; the number of snapshots that were taken. */
static inline int ship(struct follow_world *w)
{
	struct head_ship_window *v;
	struct segment head;
	struct arena a;
	uint64_t bytes, last;
	int64_t through;
	int snapshots = 0;
	char path[96];
	size_t n;

	arena_init(&a, 0);
	snprintf(path, sizeof(path), "%s/packed", w->f.dir);
	CHECK_OK(head_ship_end(w->f.db, &a, &v, &n, &through, &w->err), &w->err);
	for (size_t i = 0; i < n; i++) {
		if (v[i].snapshot_wanted) {
			CHECK_OK(head_ship_snapshot(
						 w->f.db, v[i].start_ns, v[i].identity, path, &last, &bytes, &w->err),
				&w->err);
			drop_kept(w, v[i].start_ns, v[i].identity);
			head = (struct segment){ v[i].start_ns, v[i].end_ns, v[i].identity, 1, last, true };
			keep(w, head, path);
			head_ship_done(w->f.db, v[i].start_ns, v[i].identity, last);
			snapshots++;
		}
		for (size_t k = 0; k < v[i].files_n; k++) {
			CHECK_OK(segment_pack(&fs_posix, v[i].files[k].path, v[i].files[k].last, path, &head,
						 &bytes, &w->err),
				&w->err);
			keep(w, head, path);
			head_ship_done(w->f.db, v[i].start_ns, v[i].identity, v[i].files[k].last);
		}
	}
	arena_release(&a);
	return snapshots;
}

/* As a query node does after it read a manifest. */
static inline void follow(struct follow_world *w)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct kept_segment *k = &w->v[i];

		if (head_followed(w->follower, k->head.start_ns, k->head.identity) < k->head.last)
			CHECK_OK(head_follow(w->follower, &k->head, buf_str(&k->bytes),
						 k->head.start_ns ? (struct str){ 0 } : w->deleted, &w->err),
				&w->err);
	}
}

/* ---- all that it says ---- */

static int line_cmp(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

struct line_list {
	struct str *v;
	size_t n;
};

static void add_line(struct line_list *l, struct buf *text)
{
	l->v = realloc(l->v, (l->n + 1) * sizeof(*l->v));
	l->v[l->n++] = buf_str(text); /* taken over */
}

static inline bool add_row(void *ctx, const struct db_series *s, const struct db_row *row)
{
	struct buf text = { 0 };

	labels_print(&text, s->labels);
	buf_printf(&text, " @%lld %lld ", (long long)row->ts_ns, (long long)row->interval_ns);
	row_text(s, row, &text);
	add_line(ctx, &text);
	return true;
}

static inline bool add_number(void *ctx, const struct db_series *s, int64_t ts_ns, double value)
{
	struct buf text = { 0 };

	labels_print(&text, s->labels);
	buf_printf(&text, " @%lld %a\n", (long long)ts_ns, value);
	add_line(ctx, &text);
	return true;
}

static bool add_count(void *ctx, struct str text, uint32_t series, uint32_t values)
{
	struct buf line = { 0 };

	buf_printf(&line, "count " STR_FMT " %u %u\n", STR_ARG(text), series, values);
	add_line(ctx, &line);
	return true;
}

static inline void add_counts(struct db *db, struct line_list *l)
{
	struct db_querier *q;
	struct db_counts *c;
	struct profile_type *types;
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	CHECK_OK(db_querier_open(db, FOLLOW_ALL, NULL, &q, &err), &err);
	CHECK_OK(db_counts_open(q, &c, &err), &err);
	CHECK_OK(db_counts_add(c, NULL, 0, &err), &err);
	CHECK_OK(db_counts_each(c, (struct str){ 0 }, add_count, l, &err), &err);
	CHECK_OK(db_counts_each(c, STR("instance"), add_count, l, &err), &err);
	db_counts_close(c);
	CHECK_OK(db_profile_types(q, &a, &types, &n, &err), &err);
	for (size_t i = 0; i < n; i++) {
		struct buf line = { 0 };

		buf_printf(&line, "type " STR_FMT ":" STR_FMT "\n", STR_ARG(types[i].sample_type),
			STR_ARG(types[i].sample_unit));
		add_line(l, &line);
	}
	db_querier_close(q);
	arena_release(&a);
}

/* Rows with their links, numbers, sums, counts by labels, types. */
static inline void all_text(struct db *db, struct buf *out)
{
	struct line_list l = { 0 };
	size_t warnings = 0;
	struct err err;

	CHECK(rows_each(db, FOLLOW_ALL, add_row, &l, &warnings, &err));
	CHECK(numbers_each(db, FOLLOW_ALL, add_number, &l, &warnings, &err));
	add_counts(db, &l);
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), line_cmp);
	for (size_t i = 0; i < l.n; i++) {
		buf_add_str(out, l.v[i]);
		free((void *)(uintptr_t)l.v[i].ptr);
	}
	free(l.v);
	CHECK(sum_text(db, NULL, FOLLOW_ALL, out, &warnings, &err));
	CHECK_INT(warnings, 0);
}

static inline bool same_answers(struct db *a, struct db *b)
{
	struct buf of_a = { 0 }, of_b = { 0 };
	bool same;

	all_text(a, &of_a);
	all_text(b, &of_b);
	if (!(same = str_eq(buf_str(&of_a), buf_str(&of_b))))
		for (size_t i = 0; i < of_a.len || i < of_b.len; i++)
			if (i >= of_a.len || i >= of_b.len || of_a.ptr[i] != of_b.ptr[i]) {
				CHECK_FAIL("answers of %zu and %zu bytes differ at %zu: \"%.*s\" \"%.*s\"",
					of_a.len, of_b.len, i, (int)(of_a.len - i < 100 ? of_a.len - i : 100),
					of_a.ptr + i, (int)(of_b.len - i < 100 ? of_b.len - i : 100), of_b.ptr + i);
				break;
			}
	CHECK(of_a.len > 100);
	buf_release(&of_a);
	buf_release(&of_b);
	return same;
}

/* ---- what is written ---- */

static inline void put_profile(struct follow_world *w, int job, int instance, int ts_s)
{
	char name[16], pod[16];
	struct arena a;
	struct err err; /* many append */

	arena_init(&a, 0);
	snprintf(name, sizeof(name), "job%d", job);
	snprintf(pod, sizeof(pod), "pod%d", instance);
	CHECK_OK(append_wait(w->f.db, labels_of(&a, "p", name, pod), ts_s * SEC, SEC,
				 profile_random(&a, (uint64_t)(job * 1000003 + instance * 1009 + ts_s)), NULL,
				 false, NULL, &err),
		&err);
	arena_release(&a);
}

static inline void put_value(struct follow_world *w, int instance, int ts_s)
{
	struct db_number v = { .ts_ns = ts_s * SEC, .value = ts_s / 7.0 };
	struct arena a;
	struct err err;
	char pod[16];

	arena_init(&a, 0);
	snprintf(pod, sizeof(pod), "pod%d", instance);
	v.labels = labels_of(&a, "up", "job0", pod);
	CHECK_OK(numbers_wait(w->f.db, &v, 1, &err), &err);
	arena_release(&a);
}

/* Rows of `jobs` jobs and numbers for seconds [from, to). */
static inline void work(struct follow_world *w, int jobs, int from, int to)
{
	for (int s = from; s < to; s++) {
		for (int j = 0; j < jobs; j++)
			put_profile(w, j, s * 7 % 5 + s / 50, s);
		put_value(w, s % 3, s);
	}
}

#endif
