#include "base/array.h"
#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

/* Reads the header at c into *u; c is behind the length. False: a version or type we do not know.
 */
static bool dwarf_read_header(struct cursor *c, struct dwarf_unit *u, const unsigned char *base)
{
	u->enc.version = (uint16_t)cursor_le(c, 2);
	if (c->bad || u->enc.version < 2 || u->enc.version > 5)
		return false;
	u->type = UT_COMPILE;
	if (u->enc.version >= 5) {
		u->type = (uint8_t)cursor_le(c, 1);
		u->enc.address_bytes = (uint8_t)cursor_le(c, 1);
		u->abbrev_offset = cursor_le(c, u->enc.offset_bytes);
		if (u->type == UT_SKELETON || u->type == UT_SPLIT_COMPILE)
			u->dwo_id = cursor_le(c, 8);
		else if (u->type == UT_TYPE || u->type == UT_SPLIT_TYPE)
			cursor_le(c, 8), cursor_le(c, u->enc.offset_bytes);
	} else {
		u->abbrev_offset = cursor_le(c, u->enc.offset_bytes);
		u->enc.address_bytes = (uint8_t)cursor_le(c, 1);
	}
	u->first = (uint64_t)(c->at - base);
	return !c->bad && (u->enc.address_bytes == 4 || u->enc.address_bytes == 8) &&
		u->type >= UT_COMPILE && u->type <= UT_SPLIT_TYPE;
}

static void dwarf_note_damage(
	struct dwarf_reader *r, const struct dwarf_file *f, uint64_t offset, const char *what)
{
	r->stats->units_damaged++;
	if (!r->stats->first_error.code)
		err_set(&r->stats->first_error, ERR_INVALID, "%sunit at 0x%llx: %s", f->label,
			(unsigned long long)offset, what);
}

/* A unit of a package counts from its parts of the sections. False: it has none. */
static bool dwarf_take_row(const struct dwarf_file *f, struct dwarf_unit *u)
{
	const struct package_row *row = package_row_at(f, u->offset);

	if (!row || __builtin_add_overflow(u->abbrev_offset, row->abbrev, &u->abbrev_offset))
		return false;
	u->str_first = row->str_offsets;
	u->rnglists_first = row->rnglists;
	return true;
}

enum err_code units_scan(struct dwarf_reader *r, struct dwarf_file *f, struct err *err)
{
	struct cursor all = cursor_of(f->sections[SEC_INFO]);
	const unsigned char *base = all.at;

	while (all.at < all.end) {
		struct dwarf_unit u = { .offset = (uint64_t)(all.at - base), .enc.offset_bytes = 4 };
		struct cursor c;
		uint64_t length = cursor_le(&all, 4);

		if (length == 0xffffffff) {
			length = cursor_le(&all, 8);
			u.enc.offset_bytes = 8;
		}
		if (all.bad || length > cursor_left(&all)) {
			dwarf_note_damage(r, f, u.offset, "it is longer than .debug_info");
			break;
		}
		if (!length)
			continue; /* padding */
		c = all;
		all.at = c.end = c.at + length;
		u.end = (uint64_t)(c.end - base);
		r->stats->units += f->kind == FILE_MAIN;
		if (!dwarf_read_header(&c, &u, base)) {
			dwarf_note_damage(r, f, u.offset, "its header has an unknown version, type or size");
			continue;
		}
		if (f->is_package && !dwarf_take_row(f, &u)) {
			if (u.type != UT_SPLIT_TYPE)
				dwarf_note_damage(r, f, u.offset, "it is not in the package's index");
			continue;
		}
		if (f->units_n == UNITS_MAX)
			return err_set(err, ERR_LIMIT, "debug data have more than %u units", UNITS_MAX);
		if (!array_room(&f->units, f->units_n, 1, &f->units_cap))
			return err_nomem(err, "units");
		f->units[f->units_n++] = u;
	}
	return ERR_OK;
}

struct dwarf_unit *unit_at(struct dwarf_file *f, uint64_t offset)
{
	uint32_t from = 0, to = f->units_n;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		struct dwarf_unit *u = &f->units[mid];

		if (offset < u->first)
			to = mid;
		else if (offset >= u->end)
			from = mid + 1;
		else
			return u;
	}
	return NULL;
}

static uint64_t dwarf_number(const struct die *d, enum slot s, uint64_t otherwise)
{
	const struct dwarf_value *v = die_value(d, s);

	return v ? v->u : otherwise;
}

static void dwarf_take_root(
	struct dwarf_reader *r, struct dwarf_file *f, struct dwarf_unit *u, const struct die *d)
{
	/* Without a base, tables of version 5 begin behind the only header. */
	unsigned header = u->enc.version < 5 ? 0 : u->enc.offset_bytes == 8 ? 16 : 8;
	const struct dwarf_value *v;

	u->str_base = dwarf_number(d, SLOT_STR_BASE, header) + u->str_first;
	u->addr_base = dwarf_number(d, SLOT_ADDR_BASE, header);
	u->rnglists_base = dwarf_number(d, SLOT_RNGLISTS_BASE, header ? header + 4 : 0) +
		u->rnglists_first;
	u->split_ranges_base = dwarf_number(d, SLOT_RANGES_BASE, 0);
	/* The table in a .dwo file is that of its types. */
	u->has_lines = f->kind != FILE_SPLIT && die_value(d, SLOT_STMT_LIST);
	u->line_offset = dwarf_number(d, SLOT_STMT_LIST, 0);
	if ((v = die_value(d, SLOT_LOW_PC)) && !value_address(f, u, v, &u->low_pc))
		u->low_pc = 0;
	if ((v = die_value(d, SLOT_COMP_DIR)) && !value_string(r, f, u, v, &u->comp_dir))
		u->comp_dir = (struct str){ 0 };
	if ((v = die_value(d, SLOT_DWO_NAME)) && !value_string(r, f, u, v, &u->dwo_name))
		u->dwo_name = (struct str){ 0 };
	u->has_dwo_id = u->type == UT_SKELETON || u->type == UT_SPLIT_COMPILE ||
		die_value(d, SLOT_DWO_ID);
	u->dwo_id = dwarf_number(d, SLOT_DWO_ID, u->dwo_id);
	u->is_skeleton = f->kind == FILE_MAIN &&
		(u->type == UT_SKELETON || die_value(d, SLOT_DWO_NAME));
	r->stats->units_split += u->is_skeleton;
}

enum err_code unit_root(
	struct dwarf_reader *r, struct dwarf_file *f, struct dwarf_unit *u, struct err *err)
{
	struct cursor c = dwarf_bytes(f, SEC_INFO, u->first);
	const struct abbrev_table *t;
	const struct abbrev *a;
	struct die d;
	enum err_code rc;

	if (u->root == ROOT_READ)
		return ERR_OK;
	if (u->root == ROOT_DAMAGED)
		return dwarf_damaged(
			err, "it refers to the damaged unit at 0x%llx", (unsigned long long)u->offset);
	u->root = ROOT_DAMAGED;
	if ((rc = abbrev_table(r, f, u->abbrev_offset, &t, err)))
		return rc;
	c.end = (const unsigned char *)f->sections[SEC_INFO].ptr + u->end;
	if (!(a = abbrev_find(t, cursor_varint(&c))))
		return dwarf_damaged(err, "its first entry has no abbreviation");
	die_read(&c, u->enc, t, a, &d);
	if (c.bad)
		return dwarf_damaged(err, "its first entry is cut or damaged");
	u->tag = a->tag;
	dwarf_take_root(r, f, u, &d);
	u->root = ROOT_READ;
	return ERR_OK;
}
