/* The ranges of a function or an inlined call: low_pc and high_pc, or a list in its section. */
#include "base/array.h"
#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

static uint64_t address_max(const struct unit *u)
{
	return u->enc.address_bytes == 4 ? UINT32_MAX : UINT64_MAX;
}

/* Linkers leave 0, -1 or -2 where they removed a section. */
bool is_tombstone(const struct unit *u, uint64_t address)
{
	return !address || address >= address_max(u) - 1;
}

static enum err_code add(
	struct reader *r, uint64_t start, uint64_t end, uint32_t scope, struct err *err)
{
	struct job *j = &r->job;

	if (is_tombstone(j->unit, start) || end <= start || end > address_max(j->unit))
		return ERR_OK;
	if (j->ranges_n == RANGES_MAX)
		return damaged(err, "more than %u ranges", RANGES_MAX);
	if (!array_room(&j->ranges, j->ranges_n, 1, &j->ranges_cap))
		return err_nomem(err, "ranges");
	j->ranges[j->ranges_n++] = (struct range){ start, end, scope };
	return ERR_OK;
}

/* A base that was removed removes what is counted from it. */
static enum err_code add_from(struct reader *r, bool gone, uint64_t base, uint64_t start,
	uint64_t end, uint32_t scope, struct err *err)
{
	if (gone || start >= end || base > address_max(r->job.unit) - end)
		return ERR_OK;
	return add(r, base + start, base + end, scope, err);
}

/* .debug_ranges, until version 4. */
static enum err_code old_list(struct reader *r, uint64_t offset, uint32_t scope, struct err *err)
{
	const struct unit *u = r->job.unit;
	struct cursor c = dwarf_bytes(r->job.file, SEC_RANGES, offset);
	uint64_t base = u->low_pc;
	bool gone = false;
	enum err_code rc;

	for (;;) {
		uint64_t start = cursor_le(&c, u->enc.address_bytes);
		uint64_t end = cursor_le(&c, u->enc.address_bytes);

		if (c.bad)
			return damaged(err, "ranges at 0x%llx are cut", (unsigned long long)offset);
		if (!start && !end)
			return ERR_OK;
		if ((rc = steps_take(r, 1, err)))
			return rc;
		if (start == address_max(u)) {
			base = end;
			gone = is_tombstone(u, base);
		} else if ((rc = add_from(r, gone, base, start, end, scope, err))) {
			return rc;
		}
	}
}

struct list {
	struct cursor c;
	uint64_t base, start, end;
	bool gone, missing; /* missing: .debug_addr does not have it */
};

static uint64_t indexed(struct reader *r, struct list *l)
{
	uint64_t address = 0;

	l->missing |= !address_at(r->job.file, r->job.unit, cursor_varint(&l->c), &address);
	return address;
}

/* One item of .debug_rnglists. False: an unknown kind. *is_range: it has start and end. */
static bool list_item(struct reader *r, struct list *l, uint64_t kind, bool *is_range)
{
	unsigned bytes = r->job.unit->enc.address_bytes;
	uint64_t length;

	*is_range = true;
	switch (kind) {
	case RLE_BASE_ADDRESSX:
	case RLE_BASE_ADDRESS:
		l->base = kind == RLE_BASE_ADDRESS ? cursor_le(&l->c, bytes) : indexed(r, l);
		l->gone = is_tombstone(r->job.unit, l->base);
		*is_range = false;
		return true;
	case RLE_OFFSET_PAIR:
		l->start = cursor_varint(&l->c);
		l->end = cursor_varint(&l->c);
		if (l->gone || l->end > address_max(r->job.unit) - l->base || l->start > l->end)
			*is_range = false;
		l->start += l->base;
		l->end += l->base;
		return true;
	case RLE_STARTX_ENDX:
		l->start = indexed(r, l);
		l->end = indexed(r, l);
		return true;
	case RLE_START_END:
		l->start = cursor_le(&l->c, bytes);
		l->end = cursor_le(&l->c, bytes);
		return true;
	case RLE_STARTX_LENGTH:
	case RLE_START_LENGTH:
		l->start = kind == RLE_START_LENGTH ? cursor_le(&l->c, bytes) : indexed(r, l);
		length = cursor_varint(&l->c);
		if (__builtin_add_overflow(l->start, length, &l->end))
			*is_range = false;
		return true;
	}
	return false;
}

static enum err_code new_list(struct reader *r, uint64_t offset, uint32_t scope, struct err *err)
{
	struct list l = { .c = dwarf_bytes(r->job.file, SEC_RNGLISTS, offset),
		.base = r->job.unit->low_pc };
	enum err_code rc;

	for (;;) {
		uint64_t kind = cursor_le(&l.c, 1);
		bool is_range;

		if (!l.c.bad && kind == RLE_END)
			return ERR_OK;
		if (l.c.bad || !list_item(r, &l, kind, &is_range) || l.c.bad || l.missing)
			return damaged(err, "ranges at 0x%llx are cut or damaged", (unsigned long long)offset);
		if ((rc = steps_take(r, 1, err)))
			return rc;
		if (is_range && (rc = add(r, l.start, l.end, scope, err)))
			return rc;
	}
}

static enum err_code list_add(
	struct reader *r, const struct value *v, uint32_t scope, struct err *err)
{
	const struct unit *u = r->job.unit;
	uint64_t offset = v->u;
	struct cursor c;

	if (u->enc.version < 5)
		return __builtin_add_overflow(offset, u->ranges_base, &offset) ?
			damaged(err, "ranges are outside of .debug_ranges") :
			old_list(r, offset, scope, err);
	if (v->form == FORM_RNGLISTX) {
		uint64_t at;

		if (__builtin_mul_overflow(v->u, u->enc.offset_bytes, &at) ||
			__builtin_add_overflow(at, u->rnglists_base, &at))
			return damaged(err, "ranges are outside of .debug_rnglists");
		c = dwarf_bytes(r->job.file, SEC_RNGLISTS, at);
		offset = cursor_le(&c, u->enc.offset_bytes);
		if (c.bad || __builtin_add_overflow(offset, u->rnglists_base, &offset))
			return damaged(err, "ranges are outside of .debug_rnglists");
	}
	return new_list(r, offset, scope, err);
}

enum err_code ranges_add(struct reader *r, const struct die *d, uint32_t scope, struct err *err)
{
	const struct value *v;
	uint64_t low, high;

	if ((v = die_value(d, SLOT_RANGES)))
		return list_add(r, v, scope, err);
	if (!(v = die_value(d, SLOT_LOW_PC)) || !die_value(d, SLOT_HIGH_PC))
		return ERR_OK;
	if (!value_address(r->job.file, r->job.unit, v, &low))
		return damaged(err, "an address is not in .debug_addr");
	v = die_value(d, SLOT_HIGH_PC);
	if (!value_is_address(v)) { /* since version 4 a length */
		if (__builtin_add_overflow(low, v->u, &high))
			return ERR_OK;
	} else if (!value_address(r->job.file, r->job.unit, v, &high)) {
		return damaged(err, "an address is not in .debug_addr");
	}
	return add(r, low, high, scope, err);
}
