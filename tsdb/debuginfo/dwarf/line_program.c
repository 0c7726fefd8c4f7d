/*
 * Line programs: bytes that make rows of (address, file, line), in sequences of ascending
 * addresses. Only rows that change file or line are kept. Sequences of removed sections are not.
 */
#include "base/array.h"
#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

#include <stdlib.h>

struct dwarf_machine {
	uint64_t address, file, last;
	uint32_t line, op;
	uint32_t row_first; /* of this sequence */
	bool gone; /* the section was removed */
	bool unsorted;
};

static void dwarf_machine_restart(struct dwarf_machine *m, const struct dwarf_job *j)
{
	*m = (struct dwarf_machine){ .file = 1, .line = 1, .row_first = j->rows_n, .gone = true };
}

static void dwarf_machine_advance(struct dwarf_machine *m, const struct line_table *t, uint64_t ops)
{
	if (t->max_ops <= 1) {
		m->address += ops * t->min_length;
	} else {
		m->address += (m->op + ops) / t->max_ops * t->min_length;
		m->op = (uint32_t)((m->op + ops) % t->max_ops);
	}
}

static enum err_code dwarf_add_row(struct dwarf_reader *r, struct dwarf_machine *m, struct err *err)
{
	struct dwarf_job *j = &r->job;
	uint32_t file = m->file < UINT32_MAX ? (uint32_t)m->file : NONE;
	struct dwarf_row *last = j->rows_n > m->row_first ? &j->rows[j->rows_n - 1] : NULL;

	if (m->gone)
		return ERR_OK;
	if (last && m->address < m->last)
		m->unsorted = true;
	m->last = m->address;
	if (last && last->address == m->address && !m->unsorted) {
		j->rows_n--; /* the last one of an address counts */
		last = j->rows_n > m->row_first ? last - 1 : NULL;
	}
	if (last && last->file == file && last->line == m->line && !m->unsorted)
		return ERR_OK;
	if (j->rows_n == ROWS_MAX)
		return dwarf_damaged(err, "more than %u lines", ROWS_MAX);
	if (!array_room(&j->rows, j->rows_n, 1, &j->rows_cap))
		return err_nomem(err, "lines");
	j->rows[j->rows_n++] = (struct dwarf_row){ m->address, file, m->line };
	return ERR_OK;
}

static int dwarf_by_address(const void *a, const void *b)
{
	const struct dwarf_row *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static enum err_code dwarf_end_sequence(
	struct dwarf_reader *r, struct dwarf_machine *m, struct err *err)
{
	struct dwarf_job *j = &r->job;
	struct sequence s = {
		.end = m->address, .row_first = m->row_first, .rows_n = j->rows_n - m->row_first
	};

	if (s.rows_n && m->unsorted)
		qsort(j->rows + s.row_first, s.rows_n, sizeof(*j->rows), dwarf_by_address);
	if (s.rows_n)
		s.start = j->rows[s.row_first].address;
	if (!s.rows_n || s.start >= s.end) {
		j->rows_n = m->row_first;
	} else {
		if (!array_room(&j->sequences, j->sequences_n, 1, &j->sequences_cap))
			return err_nomem(err, "lines");
		j->sequences[j->sequences_n++] = s;
	}
	dwarf_machine_restart(m, j);
	return ERR_OK;
}

static enum err_code dwarf_extended(
	struct dwarf_reader *r, struct dwarf_machine *m, struct cursor *c, struct err *err)
{
	uint64_t length = cursor_varint(c), dir;
	struct line_table *t = r->job.lines;
	struct cursor in = *c;
	struct str name;

	if (c->bad || !length || length > cursor_left(c))
		return dwarf_damaged(err, "its line table is cut or damaged");
	in.end = c->at = c->at + length;
	switch (cursor_le(&in, 1)) {
	case LNE_END_SEQUENCE:
		return dwarf_end_sequence(r, m, err);
	case LNE_SET_ADDRESS:
		if (length != 5 && length != 9)
			return dwarf_damaged(
				err, "its line table has an address of %llu bytes", (unsigned long long)length - 1);
		m->address = cursor_le(&in, (unsigned)length - 1);
		m->op = 0;
		m->gone = dwarf_is_tombstone(r->job.unit, m->address);
		break;
	case LNE_DEFINE_FILE:
		name = cursor_cstr(&in);
		dir = cursor_varint(&in);
		return line_file_add(t, name, dir, err);
	}
	return ERR_OK;
}

static enum err_code dwarf_standard(
	struct dwarf_reader *r, struct dwarf_machine *m, struct cursor *c, unsigned op, struct err *err)
{
	const struct line_table *t = r->job.lines;

	switch (op) {
	case LNS_COPY:
		return dwarf_add_row(r, m, err);
	case LNS_ADVANCE_PC:
		dwarf_machine_advance(m, t, cursor_varint(c));
		break;
	case LNS_ADVANCE_LINE:
		m->line += (uint32_t)cursor_sleb(c);
		break;
	case LNS_SET_FILE:
		m->file = cursor_varint(c);
		break;
	case LNS_SET_COLUMN:
	case LNS_SET_ISA:
		cursor_varint(c);
		break;
	case LNS_CONST_ADD_PC:
		dwarf_machine_advance(m, t, (255u - t->opcode_base) / t->line_range);
		break;
	case LNS_FIXED_ADVANCE_PC:
		m->address += cursor_le(c, 2);
		m->op = 0;
		break;
	case LNS_NEGATE_STMT:
	case LNS_SET_BASIC_BLOCK:
	case LNS_SET_PROLOGUE_END:
	case LNS_SET_EPILOGUE_BEGIN:
		break;
	default:
		for (unsigned i = 0; i < t->opcode_lengths[op - 1]; i++)
			cursor_varint(c);
	}
	return ERR_OK;
}

static int dwarf_line_program_by_start(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->row_first < y->row_first ? -1 : x->row_first > y->row_first;
}

enum err_code line_program(struct dwarf_reader *r, struct err *err)
{
	struct dwarf_job *j = &r->job;
	const struct line_table *t = j->lines;
	struct cursor c;
	struct dwarf_machine m;
	enum err_code rc = ERR_OK;

	j->rows_n = j->sequences_n = 0;
	if (!t)
		return ERR_OK;
	if ((rc = steps_take(r, t->program.len, err)))
		return rc;
	c = cursor_of(t->program);
	dwarf_machine_restart(&m, j);
	while (c.at < c.end && !rc) {
		unsigned op = *c.at++;

		if (op >= t->opcode_base) {
			op -= t->opcode_base;
			dwarf_machine_advance(&m, t, op / t->line_range);
			m.line += (uint32_t)(t->line_base + (int)(op % t->line_range));
			rc = dwarf_add_row(r, &m, err);
		} else if (op) {
			rc = dwarf_standard(r, &m, &c, op, err);
		} else {
			rc = dwarf_extended(r, &m, &c, err);
		}
	}
	if (!rc && c.bad)
		rc = dwarf_damaged(err, "its line table is cut or damaged");
	if (rc)
		return rc;
	j->rows_n = m.row_first; /* of a last sequence without an end nothing counts */
	r->stats->rows += j->rows_n;
	if (j->sequences_n)
		qsort(j->sequences, j->sequences_n, sizeof(*j->sequences), dwarf_line_program_by_start);
	return ERR_OK;
}
