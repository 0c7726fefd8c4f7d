#include "tests/tsdb/town.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int town_failures;

void town_failed(const char *fmt, ...)
{
	va_list ap;

	town_failures++;
	printf("  ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

bool town_open_on(struct town *w, bool faulty)
{
	*w = (struct town){ 0 };
	if (!fixture_open(&w->f))
		return false;
	w->f.o.window_ns = TOWN_WINDOW_S * SEC;
	w->f.o.too_old_ns = 2 * TOWN_WINDOW_S * SEC;
	w->f.o.retention_ns = 0;
	w->f.o.no_compaction = true;
	w->f.o.free_bytes_reserve = 0;
	if (faulty) {
		db_close(w->f.db);
		w->f.db = NULL;
		w->disk = disk_open(w->f.dir);
		w->f.o.fs = disk_fs(w->disk);
		w->f.o.store = disk_store(w->disk);
	}
	return fixture_reopen(&w->f);
}

bool town_open(struct town *w)
{
	return town_open_on(w, false);
}

void town_close(struct town *w)
{
	fixture_close(&w->f);
	disk_close(w->disk);
	free(w->rows);
}

static char *in_dir(struct town *w, const char *name)
{
	return arena_printf(&w->f.arena, "%s/%s", w->f.dir, name);
}

static void copy(struct town *w, const char *from, const char *to)
{
	struct buf content = { 0 };
	struct str *names;
	size_t n;

	if (fs_list(from, &w->f.arena, &names, &n, NULL)) {
		if (fs_read_file(from, 64u << 20, &content, &w->f.err) ||
			fs_write_file(&fs_posix, to, buf_str(&content), &w->f.err))
			town_failed("copy: %s", w->f.err.msg);
		buf_release(&content);
		return;
	}
	if (fs_mkdir_all(&fs_posix, to, &w->f.err))
		town_failed("copy: %s", w->f.err.msg);
	for (size_t i = 0; i < n; i++)
		copy(w, path_join(&w->f.arena, str_of(from), names[i]),
			path_join(&w->f.arena, str_of(to), names[i]));
}

void town_copy(struct town *w, const char *from, const char *to)
{
	copy(w, in_dir(w, from), in_dir(w, to));
}

void town_move(struct town *w, const char *from, const char *to)
{
	if (fs_posix.ops->rename(&fs_posix, in_dir(w, from), in_dir(w, to), &w->f.err))
		town_failed("move: %s", w->f.err.msg);
}

const char *town_block(struct town *w, size_t i)
{
	struct db_block_status *v;
	size_t n;

	if (db_list(w->f.db, &w->f.arena, &v, &n, &w->f.err) || i >= n)
		abort();
	return arena_printf(&w->f.arena, "blocks/%s", v[i].ulid);
}

struct labels town_labels(struct town *w, const char *job, const char *instance)
{
	return labels_of(&w->f.arena, "p", job, instance);
}

void town_append(struct town *w, struct labels labels, int64_t ts_s)
{
	uint64_t seed = labels_hash(labels) ^ (uint64_t)ts_s * 31;
	struct arena a;

	arena_init(&a, 0);
	if (append_wait(w->f.db, labels, ts_s * SEC, SEC, profile_random(&a, seed), NULL, false, NULL,
			&w->f.err))
		town_failed("append at %lld: %s", (long long)ts_s, w->f.err.msg);
	arena_release(&a);
	if (w->n == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 256;
		if (!(w->rows = realloc(w->rows, w->cap * sizeof(*w->rows))))
			abort();
	}
	w->rows[w->n++] = (struct town_row){ labels, ts_s, seed, false };
}

void town_fill(struct town *w, int jobs, int instances, int64_t from_s, int64_t to_s, int every)
{
	struct labels labels[64];
	char job[20], instance[20];
	int n = 0;

	for (int j = 0; j < jobs; j++)
		for (int i = 0; i < instances; i++) {
			snprintf(job, sizeof(job), "job%d", j);
			snprintf(instance, sizeof(instance), "i%d", i);
			labels[n++] = town_labels(w, job, instance);
		}
	for (int64_t ts = from_s + every; ts <= to_s; ts += every)
		for (int i = 0; i < n; i++)
			town_append(w, labels[i], ts);
}

void town_delete(
	struct town *w, const char *job, const char *instance, int64_t from_s, int64_t to_s)
{
	struct matcher m[2];
	size_t n = 1;

	if (matcher_init(&m[0], MATCH_EQ, STR("job"), str_of(job), &w->f.err))
		abort();
	if (instance && matcher_init(&m[n++], MATCH_EQ, STR("instance"), str_of(instance), &w->f.err))
		abort();
	if (db_delete_series(w->f.db, m, n, from_s * SEC, to_s * SEC, &w->f.err))
		town_failed("delete: %s", w->f.err.msg);
	for (size_t i = 0; i < w->n; i++) {
		struct town_row *r = &w->rows[i];

		r->deleted |= r->ts_s > from_s && r->ts_s <= to_s &&
			str_is(labels_get(r->labels, STR("job")), job) &&
				(!instance || str_is(labels_get(r->labels, STR("instance")), instance));
	}
}

void town_forget_until(struct town *w, int64_t ts_s)
{
	for (size_t i = 0; i < w->n; i++)
		w->rows[i].deleted |= w->rows[i].ts_s <= ts_s;
}

void town_compact(struct town *w)
{
	if (db_compact(w->f.db, &w->f.err))
		town_failed("compact: %s", w->f.err.msg);
}

/* ---- comparing ---- */

static int row_cmp(const void *a, const void *b)
{
	const struct town_row *x = a, *y = b;
	int c = labels_cmp(x->labels, y->labels);

	return c ? c : x->ts_s < y->ts_s ? -1 : x->ts_s > y->ts_s;
}

/* Of the random profile of this seed. Texts are kept: sweeps ask for the same ones each time. */
static struct str samples_text(uint64_t seed)
{
	static struct {
		uint64_t seed;
		struct buf text;
	} kept[512], *k;
	struct arena a;

	k = &kept[seed % 512];
	if (k->seed != seed || !k->text.len) {
		arena_init(&a, 0);
		buf_clear(&k->text);
		profile_samples_text(profile_random(&a, seed), &k->text);
		arena_release(&a);
		k->seed = seed;
	}
	return buf_str(&k->text);
}

static void expect(const struct town *w, struct labels labels, struct buf *out)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct town_row *r = &w->rows[i];

		if (r->deleted || !labels_eq(r->labels, labels))
			continue;
		buf_printf(out, "@%lld\n", (long long)r->ts_s);
		buf_add_str(out, samples_text(r->seed));
	}
	if (w->warning)
		buf_printf(out, "warning: %s\n", w->warning);
}

static void finding(void *ctx, const char *what)
{
	town_failed("verify: %s", what);
}

/* From the first line on that differs. */
static void tell_difference(
	struct labels labels, struct str got, struct str want, const char *what, int line)
{
	size_t from = 0;

	for (size_t i = 0; i < got.len && i < want.len && got.ptr[i] == want.ptr[i]; i++)
		if (got.ptr[i] == '\n')
			from = i + 1;
	town_failed("line %d, %s: rows of " STR_FMT "/" STR_FMT " differ at %zu: %.*s, want %.*s", line,
		what,
		STR_ARG(labels_get(labels, STR("job"))),
			STR_ARG(labels_get(labels, STR("instance"))), from,
				(int)(got.len - from < 60 ? got.len - from : 60), got.ptr ? got.ptr + from : "",
				(int)(want.len - from < 60 ? want.len - from : 60),
				want.ptr ? want.ptr + from : "");
}

static void check_series(struct town *w, struct labels labels, const char *what, int line)
{
	struct buf want = { 0 }, got = { 0 };

	expect(w, labels, &want);
	if (!rows_text(w->f.db, labels, 0, INT64_MAX - 1, &got, &w->f.err))
		town_failed("line %d, %s: %s", line, what, w->f.err.msg);
	else if (!str_eq(buf_str(&want), buf_str(&got)))
		tell_difference(labels, buf_str(&got), buf_str(&want), what, line);
	buf_release(&want);
	buf_release(&got);
}

void town_check(struct town *w, const char *what, int line)
{
	struct db_block **v;
	size_t n;

	if (w->n)
		qsort(w->rows, w->n, sizeof(*w->rows), row_cmp);
	for (size_t i = 0; i < w->n; i++)
		if (i == 0 || !labels_eq(w->rows[i].labels, w->rows[i - 1].labels))
			check_series(w, w->rows[i].labels, what, line);
	if (blocks_pin_all(w->f.db, &v, &n, &w->f.err))
		abort();
	for (size_t i = 0; i < n; i++)
		if (block_verify(v[i]->block, finding, NULL, &w->f.err))
			town_failed("line %d, %s: %s", line, what, w->f.err.msg);
	blocks_unpin_all(w->f.db, v, n);
}

void town_layout(struct town *w, struct buf *out)
{
	struct db_block_status *v;
	struct arena a;
	size_t n;

	arena_init(&a, 0);
	if (db_list(w->f.db, &a, &v, &n, &w->f.err))
		abort();
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_add_char(out, ' ');
		if (v[i].ulid[0])
			buf_printf(out, "%u", v[i].level);
		else
			buf_add_cstr(out, "head");
	}
	arena_release(&a);
}
