/* The ranges of a function or an inlined call: low_pc and high_pc, or a list in its section. */
#include "base/array.h"
#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

static uint64_t dwarf_address_max(const struct dwarf_unit *u)
{
	return u->enc.address_bytes == 4 ? UINT32_MAX : UINT64_MAX;
}

/* Linkers leave 0, -1 or -2 where they removed a section. */
bool dwarf_is_tombstone(const struct dwarf_unit *u, uint64_t address)
{
	return !address || address >= dwarf_address_max(u) - 1;
}

static enum err_code dwarf_ranges_add(
	struct dwarf_reader *r, uint64_t start, uint64_t end, uint32_t scope, struct err *err)
{
	struct dwarf_job *j = &r->job;

	if (dwarf_is_tombstone(j->unit, start) || end <= start || end > dwarf_address_max(j->unit))
		return ERR_OK;
	if (j->ranges_n == RANGES_MAX)
		return dwarf_damaged(err, "more than %u ranges", RANGES_MAX);
	if (!array_room(&j->ranges, j->ranges_n, 1, &j->ranges_cap))
		return err_nomem(err, "ranges");
	j->ranges[j->ranges_n++] = (struct dwarf_range){ start, end, scope };
	return ERR_OK;
}

/* A base that was removed removes what is counted from it. */
static enum err_code dwarf_add_from(struct dwarf_reader *r, bool gone, uint64_t base,
	uint64_t start, uint64_t end, uint32_t scope, struct err *err)
{
	if (gone || start >= end || base > dwarf_address_max(r->job.unit) - end)
		return ERR_OK;
	return dwarf_ranges_add(r, base + start, base + end, scope, err);
}

/* .debug_ranges, until version 4. */
static enum err_code dwarf_old_list(
	struct dwarf_reader *r, uint64_t offset, uint32_t scope, struct err *err)
{
	const struct dwarf_unit *u = r->job.unit;
	struct cursor c = dwarf_bytes(r->job.file, SEC_RANGES, offset);
	uint64_t base = u->low_pc;
	bool gone = false;
	enum err_code rc;

	for (;;) {
		uint64_t start = cursor_le(&c, u->enc.address_bytes);
		uint64_t end = cursor_le(&c, u->enc.address_bytes);

		if (c.bad)
			return dwarf_damaged(err, "ranges at 0x%llx are cut", (unsigned long long)offset);
		if (!start && !end)
			return ERR_OK;
		if ((rc = steps_take(r, 1, err)))
			return rc;
		if (start == dwarf_address_max(u)) {
			base = end;
			gone = dwarf_is_tombstone(u, base);
		} else if ((rc = dwarf_add_from(r, gone, base, start, end, scope, err))) {
			return rc;
		}
	}
}

struct dwarf_list {
	struct cursor c;
	uint64_t base, start, end;
	bool gone, missing; /* missing: .debug_addr does not have it */
};

static uint64_t dwarf_indexed(struct dwarf_reader *r, struct dwarf_list *l)
{
	uint64_t address = 0;

	l->missing |= !address_at(r->job.file, r->job.unit, cursor_varint(&l->c), &address);
	return address;
}

/* One item of .debug_rnglists. False: an unknown kind. *is_range: it has start and end. */
static bool dwarf_list_item(
	struct dwarf_reader *r, struct dwarf_list *l, uint64_t kind, bool *is_range)
{
	unsigned bytes = r->job.unit->enc.address_bytes;
	uint64_t length;

	*is_range = true;
	switch (kind) {
	case RLE_BASE_ADDRESSX:
	case RLE_BASE_ADDRESS:
		l->base = kind == RLE_BASE_ADDRESS ? cursor_le(&l->c, bytes) : dwarf_indexed(r, l);
		l->gone = dwarf_is_tombstone(r->job.unit, l->base);
		*is_range = false;
		return true;
	case RLE_OFFSET_PAIR:
		l->start = cursor_varint(&l->c);
		l->end = cursor_varint(&l->c);
		if (l->gone || l->end > dwarf_address_max(r->job.unit) - l->base || l->start > l->end)
			*is_range = false;
		l->start += l->base;
		l->end += l->base;
		return true;
	case RLE_STARTX_ENDX:
		l->start = dwarf_indexed(r, l);
		l->end = dwarf_indexed(r, l);
		return true;
	case RLE_START_END:
		l->start = cursor_le(&l->c, bytes);
		l->end = cursor_le(&l->c, bytes);
		return true;
	case RLE_STARTX_LENGTH:
	case RLE_START_LENGTH:
		l->start = kind == RLE_START_LENGTH ? cursor_le(&l->c, bytes) : dwarf_indexed(r, l);
		length = cursor_varint(&l->c);
		if (__builtin_add_overflow(l->start, length, &l->end))
			*is_range = false;
		return true;
	}
	return false;
}

static enum err_code dwarf_new_list(
	struct dwarf_reader *r, uint64_t offset, uint32_t scope, struct err *err)
{
	struct dwarf_list l = { .c = dwarf_bytes(r->job.file, SEC_RNGLISTS, offset),
		.base = r->job.unit->low_pc };
	enum err_code rc;

	for (;;) {
		uint64_t kind = cursor_le(&l.c, 1);
		bool is_range;

		if (!l.c.bad && kind == RLE_END)
			return ERR_OK;
		if (l.c.bad || !dwarf_list_item(r, &l, kind, &is_range) || l.c.bad || l.missing)
			return dwarf_damaged(
				err, "ranges at 0x%llx are cut or damaged", (unsigned long long)offset);
		if ((rc = steps_take(r, 1, err)))
			return rc;
		if (is_range && (rc = dwarf_ranges_add(r, l.start, l.end, scope, err)))
			return rc;
	}
}

static enum err_code dwarf_list_add(
	struct dwarf_reader *r, const struct dwarf_value *v, uint32_t scope, struct err *err)
{
	const struct dwarf_unit *u = r->job.unit;
	uint64_t offset = v->u;
	struct cursor c;

	if (u->enc.version < 5)
		return __builtin_add_overflow(offset, u->ranges_base, &offset) ?
			dwarf_damaged(err, "ranges are outside of .debug_ranges") :
			dwarf_old_list(r, offset, scope, err);
	if (v->form == FORM_RNGLISTX) {
		uint64_t at;

		if (__builtin_mul_overflow(v->u, u->enc.offset_bytes, &at) ||
			__builtin_add_overflow(at, u->rnglists_base, &at))
			return dwarf_damaged(err, "ranges are outside of .debug_rnglists");
		c = dwarf_bytes(r->job.file, SEC_RNGLISTS, at);
		offset = cursor_le(&c, u->enc.offset_bytes);
		if (c.bad || __builtin_add_overflow(offset, u->rnglists_base, &offset))
			return dwarf_damaged(err, "ranges are outside of .debug_rnglists");
	} else if (__builtin_add_overflow(offset, u->rnglists_first, &offset)) {
		return dwarf_damaged(err, "ranges are outside of .debug_rnglists");
	}
	return dwarf_new_list(r, offset, scope, err);
}

enum err_code ranges_add(
	struct dwarf_reader *r, const struct die *d, uint32_t scope, struct err *err)
{
	const struct dwarf_value *v;
	uint64_t low, high;

	if ((v = die_value(d, SLOT_RANGES)))
		return dwarf_list_add(r, v, scope, err);
	if (!(v = die_value(d, SLOT_LOW_PC)) || !die_value(d, SLOT_HIGH_PC))
		return ERR_OK;
	if (!value_address(r->job.file, r->job.unit, v, &low))
		return dwarf_damaged(err, "an address is not in .debug_addr");
	v = die_value(d, SLOT_HIGH_PC);
	if (!value_is_address(v)) { /* since version 4 a length */
		if (__builtin_add_overflow(low, v->u, &high))
			return ERR_OK;
	} else if (!value_address(r->job.file, r->job.unit, v, &high)) {
		return dwarf_damaged(err, "an address is not in .debug_addr");
	}
	return dwarf_ranges_add(r, low, high, scope, err);
}
