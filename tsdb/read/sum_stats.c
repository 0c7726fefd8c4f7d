#include "tsdb/read/sum_internal.h"

/* Facts about the rows that a sum has. */

enum err_code sum_note_header(struct summing *s, uint32_t header, struct err *err)
{
	struct sum_stats *st = s->stats;
	uint32_t n = st->headers_n, *v;

	if (bits_get(s->headers, header))
		return ERR_OK;
	if ((n & (n - 1)) == 0) { /* full at each power of two */
		if (!(v = arena_alloc_raw(s->a, n ? (size_t)n * 2 : 1, sizeof(*v))))
			return arena_fail(s->a, "sum", err);
		if (n)
			memcpy(v, st->headers, n * sizeof(*v));
		st->headers = v;
	}
	if (!bits_reserve(s->headers, header))
		return err_nomem(err, "sum");
	bits_set(s->headers, header);
	st->headers[st->headers_n++] = header;
	return ERR_OK;
}

/* Call before the rows are added to st->rows. */
void sum_note_totals(struct sum_stats *st, struct row_total min, struct row_total max)
{
	if (!st->rows || min.total < st->min.total ||
		(min.total == st->min.total && min.ts_ns < st->min.ts_ns))
		st->min = min;
	if (!st->rows || max.total > st->max.total ||
		(max.total == st->max.total && max.ts_ns < st->max.ts_ns))
		st->max = max;
}

enum err_code sum_note_row(
	struct summing *s, const struct sum_row *row, int64_t weight, struct err *err)
{
	struct sum_stats *st = s->stats;
	struct cover_step step = { .start_ns = row->ts_ns - row->interval_ns,
		.end_ns = row->ts_ns,
		.counted_ns = weight,
		.rows = 1 };

	if (s->piece && s->piece->keeps)
		return sum_piece_keep(s->piece, row, err);
	st->total += (__int128)row->total * weight;
	sum_note_totals(st, (struct row_total){ row->total, row->ts_ns },
		(struct row_total){ row->total, row->ts_ns });
	st->samples += row->n;
	if (!st->rows || row->ts_ns - row->interval_ns < st->start_ns)
		st->start_ns = row->ts_ns - row->interval_ns;
	if (!st->rows || row->ts_ns > st->end_ns)
		st->end_ns = row->ts_ns;
	st->rows++;
	if (row->time_nanos && (!st->time_nanos || row->time_nanos < st->time_nanos))
		st->time_nanos = row->time_nanos;
	if (__builtin_add_overflow(st->duration_ns, row->duration_nanos, &st->duration_ns))
		st->duration_ns = row->duration_nanos > 0 ? INT64_MAX : INT64_MIN;
	if (row->period > st->period)
		st->period = row->period;
	st->elapsed_ns += sum_is_weighted(s) ? weight : row->interval_ns;
	st->profiled_ns += row->duration_nanos > 0 ? row->duration_nanos : row->interval_ns;
	return s->levels && !s->piece ? cover_add_rows(&st->counted, &s->window, step, s->a, err) :
									ERR_OK;
}

enum err_code sum_stats_merge(
	struct sum_stats *into, const struct sum_stats *from, struct arena *a, struct err *err)
{
	uint32_t *all = arena_alloc_raw(a, into->headers_n + from->headers_n + 1, sizeof(*all)), k;

	if (!all)
		return arena_fail(a, "sum", err);
	if (into->headers_n)
		memcpy(all, into->headers, into->headers_n * sizeof(*all));
	into->headers = all;
	for (uint32_t i = 0; i < from->headers_n; i++) {
		for (k = 0; k < into->headers_n && all[k] != from->headers[i]; k++)
			;
		if (k == into->headers_n)
			all[into->headers_n++] = from->headers[i];
	}
	if (from->rows && (!into->rows || from->start_ns < into->start_ns))
		into->start_ns = from->start_ns;
	if (from->rows && (!into->rows || from->end_ns > into->end_ns))
		into->end_ns = from->end_ns;
	if (from->rows)
		sum_note_totals(into, from->min, from->max);
	into->rows += from->rows;
	into->samples += from->samples;
	into->read += from->read;
	into->elapsed_ns += from->elapsed_ns;
	into->profiled_ns += from->profiled_ns;
	into->total += from->total;
	if (from->time_nanos && (!into->time_nanos || from->time_nanos < into->time_nanos))
		into->time_nanos = from->time_nanos;
	if (__builtin_add_overflow(into->duration_ns, from->duration_ns, &into->duration_ns))
		into->duration_ns = from->duration_ns > 0 ? INT64_MAX : INT64_MIN;
	if (from->period > into->period)
		into->period = from->period;
	return cover_merge(&into->counted, &from->counted, a, err);
}
