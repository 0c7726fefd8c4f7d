#include <stdlib.h>

#include "tsdb/rollup/rollup_internal.h"

/*
 * Layout: version, what it is (bytes); number of lists of types and of columns. Per list: number of
 * headers and their gaps; number of columns of a header, and for each the rollup's + 1 (0: a type
 * that an earlier column of the header has already); rows, samples, start, end - start, 1 if there
 * is a time_nanos and it minus start, period, duration, elapsed - (end - start), elapsed -
 * profiled. Per column: its number in its first header, gauge (byte), total, the smallest total and
 * the end minus its time, the same of the largest, the last; of a gauge where missed scrapes count,
 * what its rows weigh beyond their intervals.
 *
 * Rows of one list of types have all but their totals in common over its columns. Nearly always
 * there is one list.
 */
#define ROLLUP_VERSION 2
#define ROLLUP_VERSION_MISSED 3 /* missed scrapes count */

const int64_t rollup_step_ns[ROLLUP_LEVELS] = { INT64_C(3600) * 1000000000,
	INT64_C(86400) * 1000000000 };

/* ---- joining ---- */

static bool rollup_head_list_has(const struct rollup_list *l, uint32_t column)
{
	for (uint32_t c = 0; c < l->columns_n; c++)
		if (l->column[c] == column)
			return true;
	return false;
}

/* Wraps, because damaged input may be any number. */
static int128 rollup_head_sum128(int128 a, int128 b)
{
	return (int128)((uint128)a + (uint128)b);
}

static int128 rollup_head_difference128(int128 a, int128 b)
{
	return (int128)((uint128)a - (uint128)b);
}

void rollup_list_join(struct rollup_list *into, const struct rollup_list *from)
{
	if (!into->rows || from->start_ns < into->start_ns)
		into->start_ns = from->start_ns;
	if (!into->rows || from->end_ns > into->end_ns)
		into->end_ns = from->end_ns;
	if (from->time_nanos && (!into->time_nanos || from->time_nanos < into->time_nanos))
		into->time_nanos = from->time_nanos;
	if (from->period > into->period)
		into->period = from->period;
	into->duration = rollup_head_sum128(into->duration, from->duration);
	into->elapsed = rollup_head_sum128(into->elapsed, from->elapsed);
	into->profiled = rollup_head_sum128(into->profiled, from->profiled);
	if (__builtin_add_overflow(into->rows, from->rows, &into->rows))
		into->rows = UINT64_MAX;
	into->samples += from->samples;
}

/* The choice among equal ones must not depend on the order of joining: it is the earlier one; of
 * two that end together (of two series) the larger last value counts. */
void rollup_sums_join(struct rollup_sums *into, const struct rollup_sums *from, int64_t into_end_ns,
	int64_t from_end_ns)
{
	if (from->min.total < into->min.total ||
		(from->min.total == into->min.total && from->min.ts_ns < into->min.ts_ns))
		into->min = from->min;
	if (from->max.total > into->max.total ||
		(from->max.total == into->max.total && from->max.ts_ns < into->max.ts_ns))
		into->max = from->max;
	if (from_end_ns > into_end_ns || (from_end_ns == into_end_ns && from->last > into->last))
		into->last = from->last;
	into->total = rollup_head_sum128(into->total, from->total);
	into->missed = rollup_head_sum128(into->missed, from->missed);
}

/* ---- encoding ---- */

/* Wraps, and wraps back when it is added again: input may be any number. */
static uint64_t rollup_head_minus(int64_t a, int64_t b)
{
	return (uint64_t)a - (uint64_t)b;
}

static int64_t rollup_head_plus(int64_t a, uint64_t b)
{
	return (int64_t)((uint64_t)a + b);
}

static void rollup_head_encode_list(struct buf *out, const struct rollup_list *l)
{
	uint32_t before = 0;

	buf_add_varint(out, l->headers_n);
	for (uint32_t i = 0; i < l->headers_n; i++) {
		buf_add_varint(out, l->headers[i] - before);
		before = l->headers[i];
	}
	buf_add_varint(out, l->columns_n);
	for (uint32_t c = 0; c < l->columns_n; c++)
		buf_add_varint(out, (uint16_t)(l->column[c] + 1u)); /* none: 0 */
	buf_add_varint(out, l->rows);
	buf_add_varint(out, l->samples);
	buf_add_varint(out, str_zigzag(l->start_ns));
	buf_add_varint(out, rollup_head_minus(l->end_ns, l->start_ns));
	buf_add_char(out, l->time_nanos != 0);
	if (l->time_nanos)
		buf_add_varint(out, str_zigzag((int64_t)rollup_head_minus(l->time_nanos, l->start_ns)));
	buf_add_varint(out, str_zigzag(l->period));
	buf_add_varint128(out, rollup_cells_zigzag128(l->duration));
	buf_add_varint128(out,
		rollup_cells_zigzag128(
			rollup_head_difference128(l->elapsed, rollup_head_minus(l->end_ns, l->start_ns))));
	buf_add_varint128(
		out, rollup_cells_zigzag128(rollup_head_difference128(l->elapsed, l->profiled)));
}

static int64_t rollup_head_end_of(
	const struct rollup_list *lists, uint32_t lists_n, uint32_t column)
{
	int64_t end = INT64_MIN;

	for (uint32_t i = 0; i < lists_n; i++)
		if (rollup_head_list_has(&lists[i], column) && lists[i].end_ns > end)
			end = lists[i].end_ns;
	return end;
}

void rollup_head_encode(struct buf *out, enum rollup_record record, bool missed,
	const struct rollup_list *lists, uint32_t lists_n, const struct rollup_sums *sums,
	uint32_t columns_n)
{
	buf_add_char(out, missed ? ROLLUP_VERSION_MISSED : ROLLUP_VERSION);
	buf_add_char(out, (char)record);
	buf_add_varint(out, lists_n);
	buf_add_varint(out, columns_n);
	for (uint32_t i = 0; i < lists_n; i++)
		rollup_head_encode_list(out, &lists[i]);
	for (uint32_t i = 0; i < columns_n; i++) {
		const struct rollup_sums *s = &sums[i];
		int64_t end = rollup_head_end_of(lists, lists_n, i);

		buf_add_varint(out, s->column);
		buf_add_char(out, s->gauge);
		buf_add_varint128(out, rollup_cells_zigzag128(s->total));
		buf_add_varint(out, str_zigzag(s->min.total));
		buf_add_varint(out, rollup_head_minus(end, s->min.ts_ns));
		buf_add_varint(out, str_zigzag(s->max.total));
		buf_add_varint(out, rollup_head_minus(end, s->max.ts_ns));
		buf_add_varint(out, str_zigzag(s->last));
		if (missed && s->gauge)
			buf_add_varint128(out, (uint128)s->missed);
	}
}

/* ---- parsing ---- */

static enum err_code rollup_head_corrupt(struct err *err, const char *what)
{
	return err_set(err, ERR_CORRUPT, "rollup: %s", what);
}

static unsigned rollup_head_take_byte(struct cursor *in)
{
	struct str s = cursor_bytes(in, 1);

	return s.len ? (unsigned char)s.ptr[0] : 0;
}

static enum err_code rollup_head_parse_list(
	struct rollup_head *h, struct rollup_list *l, struct cursor *in, struct err *err)
{
	uint64_t n = cursor_varint(in), id = 0, gap;

	if (n == 0 || n > cursor_left(in)) /* a byte each at least */
		return rollup_head_corrupt(err, "bad headers");
	if (!(l->headers = arena_alloc_raw(&h->arena, n, sizeof(*l->headers))))
		return err_nomem(err, "rollup");
	l->headers_n = (uint32_t)n;
	for (uint32_t i = 0; i < l->headers_n; i++) {
		gap = cursor_u32(in);
		id += gap;
		if (id > UINT32_MAX || (i && gap == 0))
			return rollup_head_corrupt(err, "bad headers");
		l->headers[i] = (uint32_t)id;
	}
	n = cursor_varint(in);
	if (n > ROW_COLUMNS_MAX)
		return rollup_head_corrupt(err, "too many columns");
	l->columns_n = (uint32_t)n;
	for (uint32_t c = 0; c < n; c++) {
		uint64_t column = cursor_varint(in);

		if (column > h->columns_n)
			return rollup_head_corrupt(err, "bad column");
		l->column[c] = column ? (uint16_t)(column - 1) : ROLLUP_COLUMN_NONE;
	}
	l->rows = cursor_varint(in);
	l->samples = cursor_varint(in);
	l->start_ns = str_unzigzag(cursor_varint(in));
	l->end_ns = rollup_head_plus(l->start_ns, cursor_varint(in));
	if (rollup_head_take_byte(in))
		l->time_nanos = rollup_head_plus(l->start_ns, (uint64_t)str_unzigzag(cursor_varint(in)));
	l->period = str_unzigzag(cursor_varint(in));
	l->duration = rollup_cells_unzigzag128(cursor_varint128(in));
	l->elapsed = rollup_head_sum128(rollup_cells_unzigzag128(cursor_varint128(in)),
		(int128)rollup_head_minus(l->end_ns, l->start_ns));
	l->profiled = rollup_head_difference128(
		l->elapsed, rollup_cells_unzigzag128(cursor_varint128(in)));
	return in->bad || !l->rows ? rollup_head_corrupt(err, "bad rows") : ERR_OK;
}

static int rollup_head_header_cmp(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* The headers of its lists: those of the list if there is only one, else all of them, joined. */
static bool rollup_head_fill_headers(
	struct rollup_head *h, uint32_t i, struct rollup_column *column)
{
	uint32_t lists = 0, *v;
	size_t n = 0;

	for (uint32_t k = 0; k < h->lists_n; k++)
		if (rollup_head_list_has(&h->lists[k], i)) {
			lists++;
			n += h->lists[k].headers_n;
			column->headers = h->lists[k].headers;
		}
	column->headers_n = (uint32_t)n;
	if (lists < 2)
		return true;
	if (!(v = arena_alloc_raw(&h->arena, n, sizeof(*v))))
		return false;
	column->headers = v;
	for (uint32_t k = 0; k < h->lists_n; k++)
		if (rollup_head_list_has(&h->lists[k], i)) {
			memcpy(v, h->lists[k].headers, h->lists[k].headers_n * sizeof(*v));
			v += h->lists[k].headers_n;
		}
	qsort(v - n, n, sizeof(*v), rollup_head_header_cmp);
	return true;
}

static int64_t rollup_head_saturated(int128 value)
{
	if (value != (int64_t)value)
		return value < 0 ? INT64_MIN : INT64_MAX;
	return (int64_t)value;
}

/* Fills a column from the lists that have it, once its sums are read. */
static enum err_code rollup_head_fill_column(struct rollup_head *h, uint32_t i, struct err *err)
{
	const struct rollup_sums *s = &h->sums[i];
	struct rollup_column *column = &h->columns[i];
	struct rollup_list joined = { 0 };

	for (uint32_t k = 0; k < h->lists_n; k++) {
		const struct rollup_list *l = &h->lists[k];

		if (rollup_head_list_has(l, i))
			rollup_list_join(&joined, l);
	}
	if (!joined.rows)
		return rollup_head_corrupt(err, "a column of nothing");
	if (!rollup_head_fill_headers(h, i, column))
		return err_nomem(err, "rollup");
	column->header = column->headers[0];
	column->column = s->column;
	column->gauge = s->gauge;
	column->rows = joined.rows;
	column->samples = joined.samples;
	column->start_ns = joined.start_ns;
	column->end_ns = joined.end_ns;
	column->time_nanos = joined.time_nanos;
	column->duration_ns = rollup_head_saturated(joined.duration);
	column->elapsed_ns = rollup_head_sum128(joined.elapsed, s->missed);
	column->profiled_ns = joined.profiled;
	column->period = joined.period;
	column->total = s->total;
	column->min = (struct rollup_point){ s->min.total,
		rollup_head_plus(joined.end_ns, -(uint64_t)s->min.ts_ns) };
	column->max = (struct rollup_point){ s->max.total,
		rollup_head_plus(joined.end_ns, -(uint64_t)s->max.ts_ns) };
	column->last = (struct rollup_point){ s->last, joined.end_ns };
	h->sums[i].min = column->min;
	h->sums[i].max = column->max;
	return ERR_OK;
}

enum err_code rollup_head_parse(
	struct rollup_head *h, struct cursor *in, enum rollup_record record, struct err *err)
{
	uint64_t lists, columns;
	unsigned version;
	enum err_code rc;

	arena_reset(&h->arena);
	h->lists_n = h->columns_n = 0;
	version = rollup_head_take_byte(in);
	h->missed = version == ROLLUP_VERSION_MISSED;
	if (version != ROLLUP_VERSION && !h->missed)
		return rollup_head_corrupt(err, "unknown version");
	if (rollup_head_take_byte(in) != record)
		return rollup_head_corrupt(err, "not what was looked for");
	lists = cursor_varint(in);
	columns = cursor_varint(in);
	if (in->bad || lists > cursor_left(in) / 10 || columns > ROLLUP_COLUMNS_MAX ||
		columns > cursor_left(in) / 8)
		return rollup_head_corrupt(err, "bad number of columns");
	h->lists = arena_array(&h->arena, struct rollup_list, lists);
	h->sums = arena_array(&h->arena, struct rollup_sums, columns);
	h->columns = arena_array(&h->arena, struct rollup_column, columns);
	if (!h->lists || !h->sums || !h->columns)
		return err_nomem(err, "rollup");
	h->columns_n = (uint32_t)columns;
	for (; h->lists_n < lists; h->lists_n++)
		if ((rc = rollup_head_parse_list(h, &h->lists[h->lists_n], in, err)))
			return rc;
	for (uint32_t i = 0; i < columns; i++) {
		struct rollup_sums *s = &h->sums[i];

		s->column = cursor_u32(in);
		s->gauge = rollup_head_take_byte(in) != 0;
		s->total = rollup_cells_unzigzag128(cursor_varint128(in));
		s->min.total = str_unzigzag(cursor_varint(in));
		s->min.ts_ns = (int64_t)cursor_varint(in); /* before the end; see rollup_head_fill_column */
		s->max.total = str_unzigzag(cursor_varint(in));
		s->max.ts_ns = (int64_t)cursor_varint(in);
		s->last = str_unzigzag(cursor_varint(in));
		if (h->missed && s->gauge)
			s->missed = (int128)cursor_varint128(in);
		if (in->bad || s->column >= ROW_COLUMNS_MAX)
			return rollup_head_corrupt(err, "bad column");
		if ((rc = rollup_head_fill_column(h, i, err)))
			return rc;
	}
	return ERR_OK;
}
