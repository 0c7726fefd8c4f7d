/*
 * Estimates how much a sum would read, without decoding.
 *
 * The window is divided as in sum_block.c: whole steps of the coarsest sums in the middle, finer
 * steps around them, raw rows at both ends. Their numbers are arithmetic. The samples of each come
 * from the block's indexes: a series' record has its numbers of rows and samples, and the bytes of
 * all sums of a kind are shared out in proportion.
 *
 * If there are many series, an evenly spread sample of them is counted and scaled up.
 */
#include <stdlib.h>

#include "tsdb/block/block.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/read/sum_internal.h"
#include "tsdb/rollup/cascade.h"

#define UNITS_LOOKED_AT 256u /* of a block: series and groups */
#define SUM_BYTES_PER_CELL 2u /* of a sum: measured on blocks of tests/bench */
#define DAY_PER_HOUR 3u /* a day's sum has 3 times the cells of an hour's: stacks recur */

_Static_assert(DB_STEPS == ROLLUP_LEVELS, "each level has a count");

/* How much of a block's window is read from rows and from each kind of sum. */
struct reads {
	int64_t raw_ns; /* at the edges */
	unsigned ends; /* raw ranges that begin or end inside a chunk */
	uint64_t steps[ROLLUP_LEVELS];
};

struct estimating {
	struct db_querier *q;
	struct sum_scratch *x;
	const struct profile_type *type;
	enum sum_pick pick;
	enum sum_wish wish;
	struct sum_estimate *out;
};

static uint64_t estimate_part_of(uint64_t n, double part)
{
	return (uint64_t)((double)n * part + 0.5);
}

/* The part of (first, last] that is in (min, max]; a single time counts as a whole. */
static double estimate_share(int64_t first_ns, int64_t last_ns, int64_t min_ns, int64_t max_ns)
{
	int64_t from = first_ns > min_ns ? first_ns : min_ns;
	int64_t to = last_ns < max_ns ? last_ns : max_ns;

	if (to < from || first_ns > max_ns || last_ns <= min_ns)
		return 0;
	if (last_ns == first_ns)
		return 1;
	return (double)(to - from) / (double)(last_ns - first_ns);
}

/* ---- head windows ---- */

static void estimate_count_window(const struct estimating *e, const struct querier_source *s,
	size_t n, bool numeric, int64_t min_ns, int64_t max_ns)
{
	struct db *db = s->db;
	struct window_count c;
	uint64_t series = 0, rows, samples;
	double part;

	series_lock_read(db->series);
	for (size_t i = 0; i < s->w->series.words; i++)
		series += (uint64_t)__builtin_popcountll(s->w->series.w[i]);
	series_unlock(db->series);
	mutex_lock(&db->lock);
	c = s->w->count;
	mutex_unlock(&db->lock);
	if (!series || !n)
		return;
	part = (double)n / (double)series;
	if (part > 1)
		part = 1;
	part *= estimate_share(c.min_ns, c.max_ns, min_ns, max_ns);
	rows = estimate_part_of(numeric ? c.numbers : c.rows, part);
	samples = numeric ? rows : estimate_part_of(c.samples, part);
	if (e->pick == SUM_LAST && rows > n) {
		samples = samples / rows * n;
		rows = n;
	}
	e->out->rows += rows;
	e->out->head_rows += rows;
	e->out->samples += e->wish == SUM_TOTALS ? 0 : samples;
	e->out->bytes += samples * 4 + rows * 32;
}

/* ---- blocks ---- */

static int64_t estimate_within(const struct block_meta *m, int64_t ts_ns)
{
	return ts_ns < m->min_ns ? m->min_ns : ts_ns > m->max_ns ? m->max_ns : ts_ns;
}

static void estimate_split(
	const struct block *b, int level, int64_t min_ns, int64_t max_ns, struct reads *out)
{
	const struct block_meta *m = block_meta(b);
	unsigned levels = block_levels(b);
	int64_t len, from, to;

	while (level >= 0 && !(levels >> level & 1))
		level--;
	if (min_ns >= max_ns)
		return;
	if (level < 0) {
		out->raw_ns += max_ns - min_ns;
		out->ends += (min_ns > m->min_ns && min_ns % rollup_step_ns[0]) +
			(max_ns < m->max_ns && max_ns % rollup_step_ns[0]);
		return;
	}
	len = rollup_step_ns[level];
	from = cascade_step_of((unsigned)level, min_ns + 1);
	to = cascade_step_of((unsigned)level, max_ns);
	if (estimate_within(m, from) < min_ns)
		from += len;
	if (estimate_within(m, to + len) <= max_ns)
		to += len;
	if (from >= to) {
		estimate_split(b, level - 1, min_ns, max_ns, out);
		return;
	}
	estimate_split(b, level - 1, min_ns, estimate_within(m, from), out);
	out->steps[level] += (uint64_t)((to - from) / len);
	estimate_split(b, level - 1, estimate_within(m, to), max_ns, out);
}

/* Cells in one hour's sum of the series that have this part of the block's samples. A day's sum has
 * DAY_PER_HOUR times as many. */
static double estimate_cells_per_hour(
	struct block *b, enum block_rollups_kind kind, double samples_part)
{
	const struct block_meta *m = block_meta(b);
	double bytes = (double)block_rollups_bytes(b, kind), steps = 0;
	int64_t span = m->last_ns - m->first_ns;

	for (unsigned i = 0; i < ROLLUP_LEVELS; i++)
		if (block_levels(b) >> i & 1)
			steps += ((double)span / (double)rollup_step_ns[i] + 1) * (i ? DAY_PER_HOUR : 1);
	return steps > 0 ? bytes * samples_part / SUM_BYTES_PER_CELL / steps : 0;
}

struct estimate_unit {
	struct block_series of; /* its first series */
	uint32_t n; /* series of a group that is asked for as a whole, or 1 */
};

static void estimate_count_steps(const struct estimating *e, struct block *b,
	const struct estimate_unit *u, const struct reads *r, double active, double weight,
	double samples_part)
{
	bool functions = e->wish == SUM_FUNCTIONS, group = u->n > 1;
	enum block_rollups_kind kind = functions ? BLOCK_ROLLUPS_FUNCTIONS :
		group                                ? BLOCK_ROLLUPS_GROUP :
											   BLOCK_ROLLUPS_SERIES;
	uint64_t *counts = functions ? e->out->function_sums :
		group                    ? e->out->group_sums :
								   e->out->series_sums;
	double row = u->of.rows ? (double)u->of.samples / (double)u->of.rows : 0, cells;
	bool any = false;

	for (unsigned i = 0; i < ROLLUP_LEVELS; i++)
		any |= r->steps[i] > 0;
	if (!any)
		return;
	cells = estimate_cells_per_hour(b, kind, samples_part);
	if (cells < row && !functions) /* sizes are whole pages: too coarse for a small block */
		cells = row;
	for (unsigned i = 0; i < ROLLUP_LEVELS; i++) {
		uint64_t n = estimate_part_of(r->steps[i], active * weight);
		uint64_t each = (uint64_t)(cells * (i ? DAY_PER_HOUR : 1));

		counts[i] += n;
		e->out->samples += e->wish == SUM_TOTALS ? 0 : n * each;
		e->out->bytes += n * (each * SUM_BYTES_PER_CELL + 64);
	}
}

/*
 * Raw rows at the edges. In a chunk of amounts that is wholly inside, each stack counts as one
 * sample; a chunk that is partly inside is read as a whole.
 */
static void estimate_count_chunks(const struct estimating *e, struct block *b,
	const struct estimate_unit *u, const struct reads *r, double active, double weight)
{
	const struct block_meta *m = block_meta(b);
	int64_t span = u->of.last_ns - u->of.first_ns;
	bool delta = !e->type || e->type->delta;
	double rows = (double)u->of.rows, raw_ns = (double)r->raw_ns * active, each, chunks, parts;
	double merged, samples, of_chunk;

	if (raw_ns <= 0 || !u->of.rows || !block_has_raw(b))
		return;
	each = (double)u->of.samples / rows;
	of_chunk = delta ? CHUNK_ROWS : CHUNK_ROWS_LEVELS;
	of_chunk = of_chunk < rows ? of_chunk : rows;
	if ((double)span > raw_ns)
		rows *= raw_ns / (double)span;
	chunks = rows / of_chunk + r->ends / 2.0;
	parts = r->ends < chunks ? r->ends : chunks;
	merged = of_chunk * each;
	if (delta && m->samples && e->wish != SUM_TOTALS)
		merged = estimate_cells_per_hour(
			b, BLOCK_ROLLUPS_SERIES, (double)u->of.samples / (double)m->samples);
	if (merged > of_chunk * each)
		merged = of_chunk * each;
	samples = parts * of_chunk * each + (chunks - parts) * merged;
	weight *= u->n;
	e->out->chunks += estimate_part_of(1, chunks * weight);
	e->out->samples += e->wish == SUM_TOTALS ? 0 : (uint64_t)(samples * weight);
	if (m->samples)
		e->out->bytes += (uint64_t)((double)m->rows_file.bytes * chunks * of_chunk * each * weight /
			(double)m->samples);
}

static void estimate_count_unit(const struct estimating *e, struct block *b,
	const struct estimate_unit *u, const struct reads *r, int64_t min_ns, int64_t max_ns,
	double weight)
{
	const struct block_meta *m = block_meta(b);
	double active = estimate_share(u->of.first_ns, u->of.last_ns, min_ns, max_ns), of_rows;
	double of_window = max_ns > min_ns ?
		estimate_share(min_ns, max_ns, u->of.first_ns - 1, u->of.last_ns) :
		0;

	if (active <= 0)
		return;
	of_rows = (double)u->of.rows * active * u->n * weight;
	if (e->pick == SUM_LAST)
		of_rows = u->n * weight;
	e->out->rows += (uint64_t)(of_rows + 0.5);
	if (u->of.slot == BLOCK_NUMERIC) {
		e->out->samples += (uint64_t)(of_rows + 0.5);
		e->out->bytes += (uint64_t)(of_rows * 4);
		return;
	}
	if (e->pick == SUM_LAST) {
		e->out->chunks += (uint64_t)(of_rows + 0.5);
		e->out->samples += e->wish == SUM_TOTALS || !u->of.rows ?
			0 :
			(uint64_t)(of_rows * (double)u->of.samples / (double)u->of.rows);
		return;
	}
	estimate_count_steps(e, b, u, r, of_window, weight,
		m->samples ? (double)(u->of.samples * u->n) / (double)m->samples : 0);
	estimate_count_chunks(e, b, u, r, of_window, weight);
}

/* The series at ids[0], or its whole group if all of it is asked for. */
static enum err_code estimate_look_at(const struct estimating *e, struct querier_source *s,
	const uint32_t *ids, size_t n, struct estimate_unit *u, struct err *err)
{
	struct block *b = s->b->block;
	uint32_t first, group_n;
	enum err_code rc;

	u->n = 1;
	arena_reset(&e->x->arena);
	if (ids[0] >= block_meta(b)->series)
		return ERR_NOT_FOUND;
	if ((rc = block_series(b, ids[0], &e->x->arena, &u->of, err)) || u->of.slot == BLOCK_NUMERIC ||
		e->pick == SUM_LAST || n == 1)
		return rc;
	if ((rc = block_group(b, u->of.group, &first, &group_n, err)))
		return rc;
	if (first == ids[0] && group_n <= n && ids[group_n - 1] == first + group_n - 1)
		u->n = group_n;
	return ERR_OK;
}

static void estimate_add(struct sum_estimate *to, const struct sum_estimate *from, double times)
{
	uint64_t *a = (uint64_t *)to;
	const uint64_t *b = (const uint64_t *)from;

	_Static_assert(sizeof(*to) % sizeof(*a) == 0, "only counts");
	for (size_t i = 0; i < sizeof(*to) / sizeof(*a); i++)
		a[i] += estimate_part_of(b[i], times);
}

static enum err_code estimate_count_block(const struct estimating *e, struct querier_source *s,
	const uint32_t *ids, size_t n, int64_t min_ns, int64_t max_ns, struct err *err)
{
	struct block *b = s->b->block;
	const struct block_meta *m = block_meta(b);
	struct estimating part = *e;
	struct sum_estimate sum = { 0 };
	struct reads r = { 0 };
	size_t looked = 0, done = 0;
	enum err_code rc;
	struct err why;

	min_ns = estimate_within(m, min_ns);
	max_ns = estimate_within(m, max_ns);
	estimate_split(b, ROLLUP_LEVELS - 1, min_ns, max_ns, &r);
	part.out = &sum;
	for (size_t i = 0; i < n && looked < UNITS_LOOKED_AT; looked++) {
		struct estimate_unit u = { .n = 1 };
		size_t next;

		if (querier_canceled(e->q))
			return err_set(err, ERR_CANCELED, "query canceled");
		rc = estimate_look_at(e, s, &ids[i], n - i, &u, &why);
		if (!rc)
			estimate_count_unit(&part, b, &u, &r, min_ns, max_ns, 1);
		else if (rc != ERR_CORRUPT && rc != ERR_NOT_FOUND) { /* the sum will warn */
			return err_copy(err, &why);
		}
		done += u.n;
		next = (looked + 1) * n / UNITS_LOOKED_AT;
		i = i + u.n > next ? i + u.n : next;
	}
	if (done)
		estimate_add(e->out, &sum, (double)n / (double)done);
	return ERR_OK;
}

/* ---- all of it ---- */

enum err_code db_estimate(struct db_querier *q, const struct db_series *const *series, size_t n,
	const struct profile_type *type, int64_t min_ns, int64_t max_ns, enum sum_pick pick,
	enum sum_wish wish, struct sum_estimate *out, struct err *err)
{
	struct estimating e = { .q = q, .type = type, .pick = pick, .wish = wish, .out = out };
	struct sum_estimate last = { 0 }, *newest;
	const struct db *db;
	enum err_code rc;

	min_ns = min_ns < q->min_ns ? q->min_ns : min_ns;
	max_ns = max_ns > q->max_ns ? q->max_ns : max_ns;
	if (!n || min_ns >= max_ns)
		return ERR_OK;
	if (pick == SUM_LAST)
		e.out = &last;
	if ((rc = sum_scratch_of(q, &e.x, err)) || (rc = sum_places_begin(e.x, n, err)))
		return rc;
	if (!(newest = calloc(q->members_n + 1, sizeof(*newest))))
		return err_nomem(err, "estimate");
	db = series[0]->partition ? resident_of(series[0]->partition)->db : NULL;
	for (uint32_t k = 0; k < q->sources_n && !rc; k++) {
		struct querier_source *s = &q->sources[k];
		size_t ids_n = 0;

		if (s->min_ns >= max_ns || s->max_ns <= min_ns || (db && s->db != db))
			continue;
		if ((rc = sum_places(e.x, series, n, k, &ids_n, err)) || !ids_n)
			continue;
		last = (struct sum_estimate){ 0 };
		if (s->b)
			rc = estimate_count_block(&e, s, e.x->ids, ids_n, min_ns, max_ns, err);
		else if (s->snap)
			estimate_count_window(&e, s, ids_n, series[0]->numeric, min_ns, max_ns);
		if (last.rows) /* the member's newest source that has rows: most series are in it */
			newest[s->member] = last;
	}
	for (size_t i = 0; i < q->members_n && !rc && pick == SUM_LAST; i++)
		estimate_add(out, &newest[i], 1);
	free(newest);
	return rc;
}
