#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "tsdb/blocks.h"

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

METRIC_COUNTER(deleted_total, "epimetheus_tsdb_deleted_series_total",
	"Series of blocks and windows that a deletion was written for.", NULL);

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
	*first = d.v + from;
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

enum err_code deleted_load_windows(struct db *db, struct err *err)
{
	struct deleted d;
	enum err_code rc;
	struct err why;
	char *path;

	for (size_t i = 0; i < db->windows_n; i++) {
		struct window *w = db->windows[i];

		if (!(path = window_deleted_path(db, w->start_ns)))
			return err_set(err, ERR_NOMEM, "deleted ranges: out of memory");
		rc = deleted_load(path, &d, &why);
		free(path);
		if (rc == ERR_NOMEM)
			return err_set(err, ERR_NOMEM, "deleted ranges: out of memory");
		if (rc)
			db_damage(db, w, "deleted ranges cannot be read: deleted rows are seen",
				&why);
		w->deleted = d.v;
		w->deleted_n = d.n;
	}
	return ERR_OK;
}

/* ---- deleting ---- */

struct deleting {
	struct db *db;
	const struct matcher *m;
	size_t n;
	int64_t min_ns, max_ns;
	uint64_t series;
};

/* What is there plus a range for each series of ids, durably, into *out. */
static enum err_code add_ranges(struct deleting *t, const struct bits *ids, struct deleted old,
	int64_t min_ns, int64_t max_ns, const char *path, struct deleted *out, struct err *err)
{
	struct deleted_range *v;
	size_t n = old.n;
	enum err_code rc;

	for (size_t w = 0; w < ids->words; w++)
		n += (size_t)__builtin_popcountll(ids->w[w]);
	*out = old;
	if (n == old.n)
		return ERR_OK;
	if (!path || !(v = malloc(n * sizeof(*v))))
		return err_set(err, ERR_NOMEM, "delete: out of memory");
	if (old.n)
		memcpy(v, old.v, old.n * sizeof(*v));
	t->series += n - old.n;
	n = old.n;
	for (size_t w = 0; w < ids->words; w++)
		for (uint64_t rest = ids->w[w]; rest; rest &= rest - 1)
			v[n++] = (struct deleted_range){
				(uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest)), min_ns, max_ns
			};
	if (!(rc = deleted_make(v, n, old, out, err)) &&
		(rc = deleted_save(t->db, path, *out, err))) {
		free((struct deleted_array *)((uintptr_t)out->v -
			offsetof(struct deleted_array, v)));
		*out = old;
	}
	free(v);
	return rc;
}

static bool no_key(void *ctx, uint32_t slot, struct str key)
{
	return false;
}

static enum err_code delete_in_block(struct deleting *t, struct db_block *b, struct err *err)
{
	const struct block_meta *meta = block_meta(b->block);
	int64_t min = t->min_ns > meta->min_ns ? t->min_ns : meta->min_ns,
		max = t->max_ns < meta->max_ns ? t->max_ns : meta->max_ns;
	char *path = block_deleted_path(block_dir(b->block));
	struct deleted d = { b->deleted, b->deleted_n };
	struct bits ids = { 0 };
	enum err_code rc = ERR_OK;

	if (min >= max)
		goto out;
	/* Whole series are meant: what only some samples say does not pick them. */
	if (!(rc = block_match(b->block, t->m, t->n, no_key, NULL, &ids, err)) &&
		!(rc = add_ranges(t, &ids, d, min, max, path, &d, err))) {
		mutex_lock(&t->db->lock);
		b->deleted = d.v;
		b->deleted_n = d.n;
		mutex_unlock(&t->db->lock);
	}
out:
	bits_release(&ids);
	free(path);
	return rc;
}

static enum err_code match_in_window(
	struct deleting *t, struct window *w, struct bits *ids, struct err *err)
{
	struct series_index *x = t->db->series;
	enum err_code rc;

	series_lock_read(x);
	rc = series_match_strict(x, t->m, t->n, &w->series, ids, err);
	for (size_t i = 0; i < ids->words && !rc; i++)
		for (uint64_t rest = ids->w[i]; rest; rest &= rest - 1) {
			uint32_t id = (uint32_t)(i * 64 + (size_t)__builtin_ctzll(rest));
			const struct series *s = series_by_id_locked(x, id);
			bool all = s != NULL;

			for (size_t k = 0; k < t->n && all; k++)
				all = matcher_test_labels(&t->m[k], s->labels);
			if (!all)
				bits_clear(ids, id);
		}
	series_unlock(x);
	return rc;
}

/* Rows that come later are not meant: the range ends with the newest row of now. */
static enum err_code delete_in_window(struct deleting *t, struct window *w, struct err *err)
{
	int64_t newest = atomic_load(&t->db->max_ts_ns),
		min = t->min_ns > w->start_ns ? t->min_ns : w->start_ns,
		max = t->max_ns < w->end_ns ? t->max_ns : w->end_ns;
	char *path = window_deleted_path(t->db, w->start_ns);
	struct deleted d = { w->deleted, w->deleted_n };
	struct bits ids = { 0 };
	enum err_code rc = ERR_OK;

	max = max < newest ? max : newest;
	if (min < max && !(rc = match_in_window(t, w, &ids, err)) &&
		!(rc = add_ranges(t, &ids, d, min, max, path, &d, err))) {
		mutex_lock(&t->db->lock);
		w->deleted = d.v;
		w->deleted_n = d.n;
		mutex_unlock(&t->db->lock);
	}
	bits_release(&ids);
	free(path);
	return rc;
}

static enum err_code delete_in_windows(struct deleting *t, struct err *err)
{
	struct db *db = t->db;
	struct window *w;
	enum err_code rc = ERR_OK;

	/* work->files is held: a window can leave the list only for a block, and that waits. */
	for (size_t i = 0; !rc; i++) {
		mutex_lock(&db->lock);
		if ((w = i < db->windows_n ? db->windows[i] : NULL))
			w->pins++;
		mutex_unlock(&db->lock);
		if (!w)
			break;
		rc = delete_in_window(t, w, err);
		head_unpin(db, w);
	}
	return rc;
}

enum err_code db_delete_series(struct db *db, const struct matcher *m, size_t n, int64_t min_ns,
	int64_t max_ns, struct err *err)
{
	struct deleting t = { db, m, n, min_ns < 0 ? 0 : min_ns, max_ns, 0 };
	struct db_block **blocks = NULL;
	size_t blocks_n = 0;
	enum err_code rc;
	bool picks = false;

	for (size_t i = 0; i < n; i++)
		picks |= !matcher_test(&m[i], (struct str){ 0 });
	if (!picks)
		return err_set(
			err, ERR_INVALID, "at least one matcher must not accept the empty string");
	if (db->o.read_only)
		return err_set(err, ERR_UNAVAILABLE, "the database is open for reading only");
	mutex_lock(&db->work->files);
	if (!(rc = blocks_pin_all(db, &blocks, &blocks_n, err)))
		rc = delete_in_windows(&t, err);
	for (size_t i = 0; i < blocks_n && !rc; i++)
		rc = delete_in_block(&t, blocks[i], err);
	mutex_unlock(&db->work->files);
	blocks_unpin_all(db, blocks, blocks_n);
	metric_add(&deleted_total, NULL, (double)t.series);
	if (!rc)
		log_info("tsdb", "series deleted", LOG_I("series", t.series));
	return rc ? err_wrap(err, rc, "delete series") : ERR_OK;
}
