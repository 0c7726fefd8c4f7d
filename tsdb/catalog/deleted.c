#include "tsdb/catalog/deleted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "tsdb/catalog/state.h"
#include "tsdb/lists/versions.h"

/*
 * Deleted ranges: rows that queriers no longer see, until joining blocks leaves them out.
 *
 * Each block has a file blocks/<ULID>/deleted, each window head/<start>.deleted, by the number that
 * a series has there. The file is replaced as a whole before the array in memory is, so deleted
 * rows are not seen after a restart either. An array is never changed: queriers that began earlier
 * go on with the old one, so it is kept until its block or window goes, linked behind its
 * successor.
 *
 * There are two copies of the file, written one after the other: if both can be read the ranges of
 * both count.
 */
#define DELETED_OF_NOBODY 1 /* no owner's name: it may belong to another block */
#define DELETED_BYTES_MAX (256u << 20)
#define DELETED_RANGES_MAX (8u << 20)

struct deleted_array {
	const struct deleted_range *older;
	struct deleted_range v[];
};

static int deleted_range_cmp(const void *a, const void *b)
{
	const struct deleted_range *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return x->min_ns < y->min_ns ? -1 : x->min_ns > y->min_ns;
}

/* Sorts the ranges and joins those of a series that touch. Returns their number. */
static size_t deleted_range_tidy(struct deleted_range *d, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(d, n, sizeof(*d), deleted_range_cmp);
	for (size_t i = 0; i < n; i++) {
		struct deleted_range *last = kept ? &d[kept - 1] : NULL;

		if (last && last->series == d[i].series && d[i].min_ns <= last->max_ns)
			last->max_ns = d[i].max_ns > last->max_ns ? d[i].max_ns : last->max_ns;
		else
			d[kept++] = d[i];
	}
	return kept;
}

enum err_code deleted_make(
	struct deleted_range *d, size_t n, struct deleted old, struct deleted *out, struct err *err)
{
	struct deleted_array *array;

	n = deleted_range_tidy(d, n);
	if (n > DELETED_RANGES_MAX)
		return err_set(err, ERR_LIMIT, "%zu deleted ranges, limit %u", n, DELETED_RANGES_MAX);
	if (!(array = malloc(sizeof(*array) + n * sizeof(*d))))
		return err_nomem(err, "deleted ranges");
	array->older = old.v;
	if (n)
		memcpy(array->v, d, n * sizeof(*d));
	*out = (struct deleted){ array->v, n };
	return ERR_OK;
}

void deleted_release(const struct deleted_range *d)
{
	while (d) {
		struct deleted_array *array = (struct deleted_array *)((uintptr_t)d -
			offsetof(struct deleted_array, v));

		d = array->older;
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

bool deleted_has(const struct deleted_range *d, size_t n, int64_t ts_ns)
{
	for (size_t i = 0; i < n; i++)
		if (d[i].min_ns < ts_ns && ts_ns <= d[i].max_ns)
			return true;
	return false;
}

bool deleted_touches(const struct deleted_range *d, size_t n, int64_t min_ns, int64_t max_ns)
{
	for (size_t i = 0; i < n; i++)
		if (d[i].min_ns < max_ns && min_ns < d[i].max_ns)
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

	/* Not head_dir: in a read-only database that is a copy of the stores, without these files. */
	return asprintf(&path, "%s/head/%" PRId64 ".deleted", db->dir, start_ns / INT64_C(1000000000)) <
			0 ?
		NULL :
		path;
}

char *block_deleted_path(const char *dir)
{
	char *path = NULL;

	return asprintf(&path, "%s/deleted", dir) < 0 ? NULL : path;
}

struct str window_deleted_of(int64_t start_ns, char *space)
{
	snprintf(space, DELETED_OF_MAX, "%" PRId64, start_ns / NS_PER_S);
	return str_of(space);
}

static uint64_t deleted_seed_of(struct str of)
{
	return hash_bytes(of.ptr, of.len, 0);
}

enum err_code deleted_decode(
	struct str bytes, const char *path, struct str of, struct deleted *out, struct err *err)
{
	struct deleted_range *v = NULL;
	enum err_code rc = ERR_CORRUPT;
	struct cursor in, sum;
	uint64_t n, series = 0, seed;

	if (bytes.len < 10 || (bytes.ptr[0] != DELETED_VERSION && bytes.ptr[0] != DELETED_OF_NOBODY))
		return err_set(err, ERR_CORRUPT, "%s: not a list of deleted ranges", path);
	seed = bytes.ptr[0] == DELETED_VERSION ? deleted_seed_of(of) : 0;
	sum = cursor_of((struct str){ bytes.ptr + bytes.len - 8, 8 });
	if (cursor_u64be(&sum) != hash_bytes(bytes.ptr, bytes.len - 8, seed))
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

static void deleted_remove_file(struct db *db, const char *path)
{
	if (fs_exists(path) && db->o.fs->ops->unlink(db->o.fs, path, NULL))
		log_warn("tsdb", "deleted ranges not removed", LOG_S("path", path));
}

static char *deleted_copy_path(const char *path)
{
	char *copy = NULL;

	return asprintf(&copy, "%s" DELETED_COPY, path) < 0 ? NULL : copy;
}

void window_deleted_remove(struct db *db, int64_t start_ns)
{
	char *path = window_deleted_path(db, start_ns), *copy = path ? deleted_copy_path(path) : NULL,
		 *dir = NULL;

	if (copy && asprintf(&dir, "%s/%" PRId64, db->head_dir, start_ns / NS_PER_S) >= 0 &&
		!fs_exists(dir)) {
		deleted_remove_file(db, copy);
		deleted_remove_file(db, path);
	}
	free(dir);
	free(copy);
	free(path);
}

enum deleted_part deleted_of_record(
	const struct deleted_range *d, size_t n, const struct rollup_view *record)
{
	int64_t start = INT64_MAX, end = 0;

	for (uint32_t i = 0; i < rollup_columns_n(record); i++) {
		const struct rollup_column *c = rollup_column(record, i);

		start = c->start_ns < start ? c->start_ns : start;
		end = c->end_ns > end ? c->end_ns : end;
	}
	if (!deleted_touches(d, n, start, end))
		return DELETED_NONE;
	for (size_t i = 0; i < n; i++)
		if (d[i].min_ns <= start && d[i].max_ns >= end)
			return DELETED_ALL;
	return DELETED_SOME;
}

/* Reads one copy of the file. ERR_NOT_FOUND: it does not exist. */
static enum err_code deleted_read_copy(
	const char *path, struct str of, struct buf *bytes, struct deleted *out, struct err *err)
{
	enum err_code rc = fs_read_file(path, DELETED_BYTES_MAX, bytes, err);

	return rc ? rc : deleted_decode(buf_str(bytes), path, of, out, err);
}

static void deleted_make_anew(struct db *db, const char *path, const struct buf *bytes,
	enum err_code other, const struct err *why)
{
	struct err err;

	if (other && other != ERR_NOT_FOUND) {
		db_count_damage();
		db_pass_over(db, why);
		log_warn("tsdb", "a copy of deleted ranges cannot be read", LOG_E(why));
	}
	if (!db->o.read_only && fs_write_file(db->o.fs, path, buf_str(bytes), &err))
		log_warn("tsdb", "deleted ranges not written", LOG_E(&err));
}

/* Ranges are only ever added, so one of two lists may be older, and the ranges of both are deleted.
 */
static enum err_code deleted_join(struct deleted *to, struct deleted more, struct err *err)
{
	struct deleted_range *v = calloc(to->n + more.n + 1, sizeof(*v));
	struct deleted joined;
	enum err_code rc;

	if (!v)
		return err_nomem(err, "deleted ranges");
	if (to->n)
		memcpy(v, to->v, to->n * sizeof(*v));
	if (more.n)
		memcpy(v + to->n, more.v, more.n * sizeof(*v));
	if (!(rc = deleted_make(v, to->n + more.n, *to, &joined, err)))
		*to = joined;
	free(v);
	return rc;
}

/* The two copies differ: the server stopped between the two writes, or somebody restored an older
 * file. */
static enum err_code deleted_join_copies(struct db *db, const char *path, struct str of,
	struct deleted *to, struct deleted more, struct err *err)
{
	struct err why;
	enum err_code rc = deleted_join(to, more, err);

	if (!rc && !db->o.read_only && deleted_save(db, path, of, *to, &why))
		log_warn("tsdb", "deleted ranges not written", LOG_E(&why));
	return rc;
}

enum err_code deleted_load(
	struct db *db, const char *path, struct str of, struct deleted *out, struct err *err)
{
	struct buf first = { 0 }, second = { 0 };
	struct deleted spare = { 0 };
	char *copy = deleted_copy_path(path);
	enum err_code rc, other;
	struct err why;

	*out = (struct deleted){ 0 };
	if (!copy)
		return err_nomem(err, "deleted ranges");
	rc = deleted_read_copy(path, of, &first, out, err);
	other = deleted_read_copy(copy, of, &second, &spare, &why);
	if (rc == ERR_NOT_FOUND && other == ERR_NOT_FOUND) {
		rc = ERR_OK;
	} else if (!rc && other) {
		deleted_make_anew(db, copy, &first, other, &why);
	} else if (!rc) {
		if (!str_eq(buf_str(&first), buf_str(&second)))
			rc = deleted_join_copies(db, path, of, out, spare, err);
	} else if (!other) {
		deleted_make_anew(db, path, &second, rc, err);
		*out = spare;
		spare.v = NULL;
		rc = ERR_OK;
	} else if (rc == ERR_NOT_FOUND) {
		rc = other;
		err_copy(err, &why);
	}
	deleted_release(spare.v);
	buf_release(&first);
	buf_release(&second);
	free(copy);
	return rc;
}

enum err_code deleted_save(
	struct db *db, const char *path, struct str of, struct deleted d, struct err *err)
{
	char *copy = deleted_copy_path(path);
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
	buf_add_u64be(&b, hash_bytes(b.ptr, b.len, deleted_seed_of(of)));
	if (buf_failed(&b) || !copy)
		rc = err_nomem(err, "deleted ranges");
	else if (!(rc = fs_write_file(db->o.fs, path, buf_str(&b), err)))
		rc = fs_write_file(db->o.fs, copy, buf_str(&b), err);
	buf_release(&b);
	free(copy);
	return rc;
}
