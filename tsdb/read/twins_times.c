#include "tsdb/read/twins_times.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tsdb/head/keys.h"
#include "tsdb/rollup/cascade.h"

#define TWINS_KEYS 64u /* of a window, read at once */
#define TWINS_PAGE_WORK 16u /* a chunk or a record */
#define TWINS_FAR_WORK 512u /* the same, which may have to come from the bucket */

struct twins_times {
	struct db_querier *q;
	struct twins_time *v;
	size_t n, made, cap; /* made: entries whose memory is kept for the next series */
	struct chunk *chunk;
	struct rollup_view *rollup;
	size_t work, work_end;
};

struct twins_times *twins_times_open(void)
{
	return calloc(1, sizeof(struct twins_times));
}

void twins_times_close(struct twins_times *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->made; i++)
		free(t->v[i].v);
	free(t->v);
	chunk_close(t->chunk);
	rollup_view_close(t->rollup);
	free(t);
}

bool twins_times_begin(struct twins_times *t, struct db_querier *q, const struct twins_part *parts,
	size_t n, size_t work_max)
{
	if (n > t->made) {
		if (!array_room(&t->v, t->made, n - t->made, &t->cap))
			return false;
		memset(t->v + t->made, 0, (n - t->made) * sizeof(*t->v));
		t->made = n;
	}
	t->q = q;
	t->n = n;
	t->work_end = t->work + work_max;
	for (size_t i = 0; i < n; i++) {
		struct twins_time *one = &t->v[i];

		one->part = &parts[i];
		one->member = q->sources[parts[i].place.source].member;
		one->at_ns = parts[i].first_ns;
		one->exact = false;
		one->n = one->next = 0;
		one->through_ns = -1;
	}
	return true;
}

struct twins_time *twins_time_of(const struct twins_times *t, size_t i)
{
	assert(i < t->n);
	return &t->v[i];
}

size_t twins_times_work(const struct twins_times *t)
{
	return t->work;
}

bool twins_times_is_over(const struct twins_times *t)
{
	return t->work >= t->work_end;
}

/* Moves to the first row that was read at or after at_ns; without one, to the time after all that
 * was read. */
static void twins_time_settle(struct twins_time *t)
{
	while (t->next < t->n && t->v[t->next] < t->at_ns)
		t->next++;
	t->exact = t->next < t->n;
	if (t->exact)
		t->at_ns = t->v[t->next];
	else if (t->at_ns <= t->through_ns)
		t->at_ns = t->through_ns < INT64_MAX ? t->through_ns + 1 : INT64_MAX;
	if (t->at_ns > t->part->last_ns) {
		t->at_ns = INT64_MAX;
		t->exact = false;
	}
}

void twins_time_raise(struct twins_time *t, int64_t ts_ns)
{
	if (ts_ns <= t->at_ns)
		return;
	t->at_ns = ts_ns;
	twins_time_settle(t);
}

/* ---- reading ---- */

/* One read of one place. */
struct twins_read {
	struct twins_times *times;
	struct twins_time *t;
	struct querier_source *s;
	const struct deleted_range *gone;
	size_t gone_n;
};

static size_t twins_read_work(const struct twins_read *r)
{
	return r->s->b->remote ? TWINS_FAR_WORK : TWINS_PAGE_WORK;
}

/* False: out of memory. */
static bool twins_read_add(struct twins_read *r, int64_t ts_ns)
{
	struct twins_time *t = r->t;

	if (ts_ns < t->at_ns || deleted_has(r->gone, r->gone_n, ts_ns))
		return true;
	if (!array_room(&t->v, t->n, 1, &t->cap))
		return false;
	t->v[t->n++] = ts_ns;
	return true;
}

static void twins_read_window(struct twins_read *r)
{
	struct key key = key_row(r->t->part->place.id, r->t->at_ns);
	struct store_iter *it = querier_iter(r->s);
	int64_t ts;
	uint32_t id;

	r->t->through_ns = INT64_MAX;
	if (!it)
		return;
	for (store_iter_seek(it, key_str(&key)); store_iter_valid(it); store_iter_next(it)) {
		r->times->work++;
		if (!key_parse_row(store_iter_key(it), &id, &ts) || id != r->t->part->place.id ||
			ts > r->t->part->last_ns || !twins_read_add(r, ts))
			return;
		if (r->t->n == TWINS_KEYS || twins_times_is_over(r->times)) {
			r->t->through_ns = ts;
			return;
		}
	}
	r->times->work++;
}

static void twins_read_chunk(struct twins_read *r)
{
	struct twins_times *times = r->times;
	struct block_chunks *it;
	enum err_code rc = ERR_OK;
	struct str bytes;
	struct err err;
	int64_t first;

	r->t->through_ns = INT64_MAX;
	if (!(it = querier_chunks(r->s, &err)) || (!times->chunk && !(times->chunk = chunk_open())))
		return;
	block_chunks_seek(it, r->t->part->place.id, r->t->at_ns - 1, r->t->part->last_ns);
	while (!r->t->n && !twins_times_is_over(times)) {
		times->work += twins_read_work(r);
		if (!(rc = block_chunks_next(it, &bytes, &first, &err)))
			rc = chunk_parse(times->chunk, bytes, &err);
		if (rc == ERR_CORRUPT)
			continue;
		if (rc)
			return;
		for (uint32_t i = 0; i < chunk_rows_n(times->chunk); i++) {
			if (!twins_read_add(r, chunk_rows(times->chunk)[i].ts_ns))
				return;
			r->t->through_ns = chunk_rows(times->chunk)[i].ts_ns;
		}
	}
}

static int twins_time_cmp(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Adds the times that a record knows: three rows for each column. */
static bool twins_read_add_record(struct twins_read *r, const struct rollup_view *record)
{
	bool ok = true;

	for (uint32_t c = 0; c < rollup_columns_n(record) && ok; c++) {
		const struct rollup_column *column = rollup_column(record, c);

		if (column->rows)
			ok = twins_read_add(r, column->min.ts_ns) && twins_read_add(r, column->max.ts_ns) &&
				twins_read_add(r, column->last.ts_ns);
	}
	if (r->t->n)
		qsort(r->t->v, r->t->n, sizeof(*r->t->v), twins_time_cmp);
	return ok;
}

static void twins_read_record(struct twins_read *r)
{
	unsigned levels = block_levels(r->s->b->block), level = 0;
	struct twins_times *times = r->times;
	struct block_rollups *it;
	enum err_code rc = ERR_OK;
	struct str bytes;
	struct err err;
	int64_t step;

	r->t->through_ns = INT64_MAX;
	if (!levels || !(it = querier_rollups(r->s, &err)) ||
		(!times->rollup && !(times->rollup = rollup_view_open())))
		return;
	while (!(levels >> level & 1))
		level++;
	block_rollups_seek(it, ROLLUP_SERIES, r->t->part->place.id, level,
		cascade_step_of(level, r->t->at_ns), r->t->part->last_ns);
	while (!r->t->n && !twins_times_is_over(times)) {
		times->work += twins_read_work(r);
		if (!(rc = block_rollups_next(it, &bytes, &step, &err)))
			rc = rollup_parse(times->rollup, bytes, &err);
		if (rc == ERR_CORRUPT)
			continue;
		if (rc || !twins_read_add_record(r, times->rollup))
			return;
		r->t->through_ns = step + rollup_step_ns[level];
	}
}

void twins_time_read(struct twins_times *times, struct twins_time *t)
{
	while (!t->exact && t->at_ns < INT64_MAX && !twins_times_is_over(times)) {
		struct querier_source *s = &times->q->sources[t->part->place.source];
		struct twins_read r = { .times = times, .t = t, .s = s };

		t->n = t->next = 0;
		r.gone_n = deleted_of(
			(struct deleted){ s->deleted, s->deleted_n }, t->part->place.id, &r.gone);
		if (!s->b)
			twins_read_window(&r);
		else if (block_has_raw(s->b->block))
			twins_read_chunk(&r);
		else
			twins_read_record(&r);
		twins_time_settle(t);
	}
}
