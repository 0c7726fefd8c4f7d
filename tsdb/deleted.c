#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "tsdb/blocks.h"
#include "tsdb/rollup.h"

/*
 * Deleted ranges: what queriers no longer see, until joining blocks writes them without it.
 *
 * Each block has its own in blocks/<ULID>/deleted, each window in head/<start>.deleted, by the
 * number that a series has there. The file is replaced as a whole before the array in memory is, so
 * what a query did not see is not seen after a restart either. An array is never changed: queriers
 * that began earlier go on with the one they found, so an array is kept until its block or window
 * goes, linked behind the one that took its place.
 */
#define DELETED_VERSION 1
#define DELETED_BYTES_MAX (256u << 20)
#define DELETED_RANGES_MAX (8u << 20)

struct deleted_array {
	const struct deleted_range *older;
	struct deleted_range v[];
};

static int range_cmp(const void *a, const void *b)
{
	const struct deleted_range *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return x->min_ns < y->min_ns ? -1 : x->min_ns > y->min_ns;
}

/* Sorted, and ranges of a series joined where they touch. */
static size_t tidy(struct deleted_range *v, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(v, n, sizeof(*v), range_cmp);
	for (size_t i = 0; i < n; i++) {
		struct deleted_range *last = kept ? &v[kept - 1] : NULL;

		if (last && last->series == v[i].series && v[i].min_ns <= last->max_ns)
			last->max_ns = v[i].max_ns > last->max_ns ? v[i].max_ns : last->max_ns;
		else
			v[kept++] = v[i];
	}
	return kept;
}

enum err_code deleted_make(
	struct deleted_range *v, size_t n, struct deleted old, struct deleted *out, struct err *err)
{
	struct deleted_array *array;

	n = tidy(v, n);
	if (n > DELETED_RANGES_MAX)
		return err_set(
			err, ERR_LIMIT, "%zu deleted ranges, limit %u", n, DELETED_RANGES_MAX);
	if (!(array = malloc(sizeof(*array) + n * sizeof(*v))))
		return err_set(err, ERR_NOMEM, "deleted ranges: out of memory");
	array->older = old.v;
	if (n)
		memcpy(array->v, v, n * sizeof(*v));
	*out = (struct deleted){ array->v, n };
	return ERR_OK;
}

void deleted_release(const struct deleted_range *v)
{
	while (v) {
		struct deleted_array *array = (struct deleted_array *)((uintptr_t)v -
			offsetof(struct deleted_array, v));

		v = array->older;
		free(array);
	}
}

size_t deleted_of(struct deleted d, uint32_t series, const struct deleted_range **first)
{
	size_t from = 0, to = d.n, n = 0;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (d.v[mid].series < series)
			from = mid + 1;
		else
			to = mid;
	}
	*first = d.n ? d.v + from : NULL;
	while (from + n < d.n && d.v[from + n].series == series)
		n++;
	return n;
}

bool deleted_has(const struct deleted_range *v, size_t n, int64_t ts_ns)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].min_ns < ts_ns && ts_ns <= v[i].max_ns)
			return true;
	return false;
}

bool deleted_touches(const struct deleted_range *v, size_t n, int64_t min_ns, int64_t max_ns)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].min_ns < max_ns && min_ns < v[i].max_ns)
			return true;
	return false;
}

void deleted_give_up(struct deleted d)
{
	free((struct deleted_array *)((uintptr_t)d.v - offsetof(struct deleted_array, v)));
}

/* ---- the file ---- */

char *window_deleted_path(const struct db *db, int64_t start_ns)
{
	char *path = NULL;

	/* Not head_dir: where the database is read only that is a copy of the stores alone. */
	return asprintf(&path, "%s/head/%" PRId64 ".deleted", db->dir,
		       start_ns / INT64_C(1000000000)) < 0 ?
		NULL :
		path;
}

char *block_deleted_path(const char *dir)
{
	char *path = NULL;

	return asprintf(&path, "%s/deleted", dir) < 0 ? NULL : path;
}

enum err_code deleted_decode(
	struct str bytes, const char *path, struct deleted *out, struct err *err)
{
	struct deleted_range *v = NULL;
	enum err_code rc = ERR_CORRUPT;
	struct cursor in, sum;
	uint64_t n, series = 0;

	if (bytes.len < 10 || bytes.ptr[0] != DELETED_VERSION)
		return err_set(err, ERR_CORRUPT, "%s: not a list of deleted ranges", path);
	sum = cursor_of((struct str){ bytes.ptr + bytes.len - 8, 8 });
	if (cursor_u64be(&sum) != hash_bytes(bytes.ptr, bytes.len - 8, 0))
		return err_set(err, ERR_CORRUPT, "%s: bad checksum", path);
	in = cursor_of((struct str){ bytes.ptr + 1, bytes.len - 9 });
	n = cursor_varint(&in);
	if (in.bad || n > cursor_left(&in) / 17 || !(v = calloc(n + 1, sizeof(*v))))
		goto out;
	for (uint64_t i = 0; i < n; i++) {
		series += cursor_u32(&in);
		v[i].series = (uint32_t)series;
		v[i].min_ns = (int64_t)cursor_u64be(&in);
		v[i].max_ns = (int64_t)cursor_u64be(&in);
	}
	if (!in.bad && in.at == in.end && series <= UINT32_MAX)
		rc = deleted_make(v, n, (struct deleted){ 0 }, out, err);
out:
	free(v);
	return rc == ERR_CORRUPT ? err_set(err, rc, "%s: bad list", path) : rc;
}

void window_deleted_remove(struct db *db, int64_t start_ns)
{
	char *path = window_deleted_path(db, start_ns), *dir = NULL;

	if (path && asprintf(&dir, "%s/%" PRId64, db->head_dir, start_ns / NS_PER_S) >= 0 &&
		!fs_exists(dir) && fs_exists(path) &&
		db->o.fs->ops->unlink(db->o.fs, path, NULL))
		log_warn("tsdb", "deleted ranges not removed", LOG_S("path", path));
	free(dir);
	free(path);
}

enum deleted_part deleted_of_record(
	const struct deleted_range *v, size_t n, const struct rollup_view *record)
{
	int64_t start = INT64_MAX, end = 0;

	for (uint32_t i = 0; i < rollup_columns_n(record); i++) {
		const struct rollup_column *c = rollup_column(record, i);

		start = c->start_ns < start ? c->start_ns : start;
		end = c->end_ns > end ? c->end_ns : end;
	}
	if (!deleted_touches(v, n, start, end))
		return DELETED_NONE;
	for (size_t i = 0; i < n; i++)
		if (v[i].min_ns <= start && v[i].max_ns >= end)
			return DELETED_ALL;
	return DELETED_SOME;
}

enum err_code deleted_load(const char *path, struct deleted *out, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc;

	*out = (struct deleted){ 0 };
	if (!fs_exists(path))
		return ERR_OK;
	if (!(rc = fs_read_file(path, DELETED_BYTES_MAX, &b, err)))
		rc = deleted_decode(buf_str(&b), path, out, err);
	buf_release(&b);
	return rc;
}

enum err_code deleted_save(struct db *db, const char *path, struct deleted d, struct err *err)
{
	struct buf b = { 0 };
	uint32_t series = 0;
	enum err_code rc;

	buf_add_char(&b, DELETED_VERSION);
	buf_add_varint(&b, d.n);
	for (size_t i = 0; i < d.n; i++) {
		buf_add_varint(&b, d.v[i].series - series);
		buf_add_u64be(&b, (uint64_t)d.v[i].min_ns);
		buf_add_u64be(&b, (uint64_t)d.v[i].max_ns);
		series = d.v[i].series;
	}
	buf_add_u64be(&b, hash_bytes(b.ptr, b.len, 0));
	rc = buf_failed(&b) ? err_set(err, ERR_NOMEM, "deleted ranges: out of memory") :
			      fs_write_file(db->o.fs, path, buf_str(&b), err);
	buf_release(&b);
	return rc;
}
