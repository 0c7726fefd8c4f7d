/*
 * Merges the scopes of a unit with its lines. Ranges are swept by their start; a heap holds those
 * that are open, the deepest on top, so that also ranges that do not nest cost n log n. Each piece
 * between two borders is cut at the rows of the line table, and pieces that have the same frame
 * become one segment.
 */
#include "base/array.h"
#include "tsdb/debuginfo/dwarf/internal.h"

#include <stdlib.h>

struct dwarf_piece {
	uint64_t start, end;
	uint32_t scope, file, line;
};

struct sweep {
	struct dwarf_reader *r;
	uint32_t sequence, row; /* row: within the sequence */
	struct dwarf_piece piece; /* start == end: none */
	uint64_t start, end; /* a segment that may grow */
	uint32_t frame;
};

static enum err_code dwarf_segment_out(struct sweep *s, struct err *err)
{
	if (s->start == s->end)
		return ERR_OK;
	s->r->stats->segments++;
	return symindex_add(s->r->builder, s->start, s->end, s->frame, s->r->job.quality, err);
}

static enum err_code dwarf_piece_out(struct sweep *s, struct err *err)
{
	struct dwarf_job *j = &s->r->job;
	const struct dwarf_piece *p = &s->piece;
	const struct scope *scope;
	uint32_t file = NONE, frame;
	enum err_code rc;

	if (p->start == p->end)
		return ERR_OK;
	scope = &j->scopes[p->scope];
	if (j->lines && p->file != NONE && (rc = line_file_id(s->r, j->lines, p->file, &file, err)))
		return rc;
	if ((rc = symindex_frame(
			 s->r->builder, scope->caller, scope->function, file, p->line, &frame, err)))
		return rc;
	if (s->start != s->end && s->end == p->start && s->frame == frame) {
		s->end = p->end;
		return ERR_OK;
	}
	if ((rc = dwarf_segment_out(s, err)))
		return rc;
	s->start = p->start;
	s->end = p->end;
	s->frame = frame;
	return ERR_OK;
}

static enum err_code dwarf_piece_add(struct sweep *s, uint64_t start, uint64_t end, uint32_t scope,
	uint32_t file, uint32_t line, struct err *err)
{
	struct dwarf_piece *p = &s->piece;
	enum err_code rc;

	if (p->start != p->end && p->end == start && p->scope == scope && p->file == file &&
		p->line == line) {
		p->end = end;
		return ERR_OK;
	}
	if ((rc = dwarf_piece_out(s, err)))
		return rc;
	*p = (struct dwarf_piece){ start, end, scope, file, line };
	return ERR_OK;
}

/* The row that holds `at`, or the next one behind it. False: there is none. */
static bool dwarf_row_at(
	struct sweep *s, uint64_t at, uint64_t *start, uint64_t *end, struct dwarf_row *out)
{
	const struct dwarf_job *j = &s->r->job;

	while (s->sequence < j->sequences_n) {
		const struct sequence *q = &j->sequences[s->sequence];
		const struct dwarf_row *rows = j->rows + q->row_first;

		while (q->end > at && s->row < q->rows_n) {
			*start = rows[s->row].address;
			*end = s->row + 1 < q->rows_n ? rows[s->row + 1].address : q->end;
			*out = rows[s->row];
			if (*end > at && *end > *start)
				return true;
			s->row++;
		}
		s->sequence++;
		s->row = 0;
	}
	return false;
}

/* [start, end) belongs to scope: cuts it at the rows. */
static enum err_code scope_piece(
	struct sweep *s, uint64_t start, uint64_t end, uint32_t scope, struct err *err)
{
	enum err_code rc = ERR_OK;

	while (start < end && !rc) {
		uint64_t from = end, to = end;
		struct dwarf_row row = { 0 };
		bool found = dwarf_row_at(s, start, &from, &to, &row);

		if (!found || from > start) {
			to = found && from < end ? from : end;
			rc = dwarf_piece_add(s, start, to, scope, NONE, 0, err);
		} else {
			to = to < end ? to : end;
			rc = dwarf_piece_add(s, start, to, scope, row.file, row.line, err);
		}
		start = to;
	}
	return rc;
}

/* A row in no scope: its function is the symbol there. Where there is none it is left out. */
static enum err_code dwarf_line_add(
	struct sweep *s, uint64_t start, uint64_t end, const struct dwarf_row *row, struct err *err)
{
	struct dwarf_reader *r = s->r;
	uint32_t file = NONE, function, frame;
	enum err_code rc = ERR_OK;

	while (start < end && !rc) {
		struct str name;
		uint64_t to;
		bool found;

		if ((rc = steps_take(r, 1, err)) || (rc = dwarf_symbol(r, start, &found, &name, &to, err)))
			return rc;
		to = to < end ? to : end;
		if (found) {
			if ((rc = line_file_id(r, r->job.lines, row->file, &file, err)) ||
				(rc = symindex_function(r->builder, name, NONE, 0, &function, err)) ||
				(rc = symindex_frame(r->builder, NONE, function, file, row->line, &frame, err)))
				return rc;
			r->stats->segments++;
			rc = symindex_add(r->builder, start, to, frame, SYMINDEX_LINES, err);
		}
		start = to;
	}
	return rc;
}

/* Segments are added in ascending order, also those of other qualities. */
static enum err_code dwarf_flush(struct sweep *s, struct err *err)
{
	enum err_code rc;

	if ((rc = dwarf_piece_out(s, err)) || (rc = dwarf_segment_out(s, err)))
		return rc;
	s->piece.end = s->piece.start;
	s->end = s->start;
	return ERR_OK;
}

/* [start, end) belongs to no scope. */
static enum err_code dwarf_gap(struct sweep *s, uint64_t start, uint64_t end, struct err *err)
{
	enum err_code rc = ERR_OK;

	while (start < end && !rc) {
		struct dwarf_row row;
		uint64_t from, to;

		if (!dwarf_row_at(s, start, &from, &to, &row) || from >= end)
			break;
		from = from > start ? from : start;
		to = to < end ? to : end;
		if (!(rc = dwarf_flush(s, err)))
			rc = dwarf_line_add(s, from, to, &row, err);
		start = to;
	}
	return rc;
}

/* Deeper scopes come first, of equally deep ones the later. */
static bool dwarf_above(const struct dwarf_job *j, uint32_t a, uint32_t b)
{
	uint32_t x = j->ranges[a].scope, y = j->ranges[b].scope;

	if (j->scopes[x].depth != j->scopes[y].depth)
		return j->scopes[x].depth > j->scopes[y].depth;
	return x > y;
}

static void dwarf_heap_swap(struct dwarf_job *j, uint32_t a, uint32_t b)
{
	uint32_t v = j->heap[a];

	j->heap[a] = j->heap[b];
	j->heap[b] = v;
}

static enum err_code dwarf_heap_push(struct dwarf_job *j, uint32_t range, struct err *err)
{
	uint32_t i = j->heap_n;

	if (!array_room(&j->heap, j->heap_n, 1, &j->heap_cap))
		return err_nomem(err, "ranges");
	j->heap[j->heap_n++] = range;
	while (i && dwarf_above(j, j->heap[i], j->heap[(i - 1) / 2])) {
		dwarf_heap_swap(j, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
	return ERR_OK;
}

static void dwarf_heap_pop(struct dwarf_job *j)
{
	uint32_t i = 0;

	j->heap[0] = j->heap[--j->heap_n];
	for (;;) {
		uint32_t best = i;

		for (uint32_t k = 2 * i + 1; k <= 2 * i + 2 && k < j->heap_n; k++)
			if (dwarf_above(j, j->heap[k], j->heap[best]))
				best = k;
		if (best == i)
			return;
		dwarf_heap_swap(j, i, best);
		i = best;
	}
}

static int dwarf_by_start(const void *a, const void *b)
{
	const struct dwarf_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->scope < y->scope ? -1 : x->scope > y->scope;
}

enum err_code dwarf_flatten(struct dwarf_reader *r, struct err *err)
{
	struct dwarf_job *j = &r->job;
	struct sweep s = { .r = r };
	uint32_t next = 0;
	uint64_t at = 0;
	enum err_code rc;

	if (j->ranges_n)
		qsort(j->ranges, j->ranges_n, sizeof(*j->ranges), dwarf_by_start);
	j->heap_n = 0;
	while (at < UINT64_MAX) {
		uint64_t end = next < j->ranges_n ? j->ranges[next].start : UINT64_MAX;

		while (j->heap_n && j->ranges[j->heap[0]].end <= at)
			dwarf_heap_pop(j);
		if (j->heap_n) {
			const struct dwarf_range *top = &j->ranges[j->heap[0]];

			if (top->end < end)
				end = top->end;
			rc = scope_piece(&s, at, end, top->scope, err);
		} else {
			rc = dwarf_gap(&s, at, end, err);
		}
		if (rc)
			return rc;
		at = end;
		for (; next < j->ranges_n && j->ranges[next].start == at; next++)
			if ((rc = dwarf_heap_push(j, next, err)))
				return rc;
	}
	return dwarf_flush(&s, err);
}
