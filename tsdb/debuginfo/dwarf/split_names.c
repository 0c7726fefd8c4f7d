/*
 * Only the first entry of each unit is read. Its abbreviation is nearly always the first of its
 * table, so no table is built: the entries before it are stepped over, and cost steps.
 */
#include "tsdb/debuginfo/dwarf/split_names.h"

#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

#include <stdlib.h>

#define AT_GNU_DWO_ID 0x2131
#define ID_BYTES 8u
#define INDEX_HEADER_BYTES 16u

struct split_walk {
	struct dwarf_reader *reader;
	struct dwarf_stats stats; /* of units_scan; not used */
	enum err_code (*each_split)(void *ctx, const struct dwarf_split *s, struct err *err);
	enum err_code (*each_id)(void *ctx, uint64_t id, struct err *err);
	void *ctx;
};

/* What the first entry of a unit says. */
struct split_root {
	struct dwarf_value name, folder;
	uint64_t id, str_base;
	bool has_name, has_folder, has_id;
};

/* ---- the first entry ---- */

/* Steps over the attributes of an abbreviation. */
static enum err_code split_skip_abbrev(
	struct dwarf_reader *r, struct cursor *abbrevs, struct err *err)
{
	uint64_t name, form;
	enum err_code rc;

	do {
		if ((rc = steps_take(r, 1, err)))
			return rc;
		name = cursor_varint(abbrevs);
		form = cursor_varint(abbrevs);
		if (form == FORM_IMPLICIT_CONST)
			cursor_sleb(abbrevs);
	} while (!abbrevs->bad && (name || form));
	return ERR_OK;
}

/* Puts abbrevs behind the tag of the abbreviation with this code; bad: there is none. */
static enum err_code split_find_abbrev(
	struct dwarf_reader *r, struct cursor *abbrevs, uint64_t code, struct err *err)
{
	enum err_code rc = ERR_OK;

	while (!rc && !abbrevs->bad) {
		uint64_t found = cursor_varint(abbrevs);

		if (!found)
			abbrevs->bad = true; /* the end of the table */
		cursor_varint(abbrevs); /* the tag */
		cursor_le(abbrevs, 1); /* whether it has children */
		if (found == code)
			return ERR_OK;
		rc = split_skip_abbrev(r, abbrevs, err);
	}
	return rc;
}

static void split_root_take(struct split_root *s, uint64_t name, const struct dwarf_value *v)
{
	switch (name) {
	case AT_DWO_NAME:
	case AT_GNU_DWO_NAME:
		s->name = *v;
		s->has_name = true;
		break;
	case AT_COMP_DIR:
		s->folder = *v;
		s->has_folder = true;
		break;
	case AT_GNU_DWO_ID:
		s->id = v->u;
		s->has_id = true;
		break;
	case AT_STR_OFFSETS_BASE:
		s->str_base = v->u;
		break;
	}
}

/* *ok: false for a damaged unit. */
static enum err_code split_root_read(struct dwarf_reader *r, const struct dwarf_unit *u,
	struct split_root *out, bool *ok, struct err *err)
{
	struct cursor entry = dwarf_bytes(&r->main, SEC_INFO, u->first),
				  abbrevs = dwarf_bytes(&r->main, SEC_ABBREV, u->abbrev_offset);
	enum err_code rc;

	/* Without a base, a table of version 5 begins behind the only header. */
	*out = (struct split_root){ .str_base = u->enc.version < 5 ? 0 :
			u->enc.offset_bytes == 8                           ? 16 :
																 8 };
	*ok = false;
	entry.end = (const unsigned char *)r->main.sections[SEC_INFO].ptr + u->end;
	if ((rc = split_find_abbrev(r, &abbrevs, cursor_varint(&entry), err)))
		return rc;
	while (!abbrevs.bad && !entry.bad) {
		uint64_t name = cursor_varint(&abbrevs), form = cursor_varint(&abbrevs);
		struct attr a = { .form = form > UINT16_MAX ? 0 : (uint16_t)form };
		struct dwarf_value v;

		if ((rc = steps_take(r, 1, err)))
			return rc;
		if (!name && !form)
			break;
		if (form == FORM_IMPLICIT_CONST)
			a.implicit = cursor_sleb(&abbrevs);
		form_read(&entry, u->enc, &a, &v);
		split_root_take(out, name, &v);
	}
	*ok = !abbrevs.bad && !entry.bad;
	/* The header of version 5 ends with it. */
	if (u->type == UT_SKELETON || u->type == UT_SPLIT_COMPILE) {
		struct cursor header = dwarf_bytes(&r->main, SEC_INFO, u->first - ID_BYTES);

		out->id = cursor_le(&header, ID_BYTES);
		out->has_id = true;
	}
	return ERR_OK;
}

/* ---- all units ---- */

static enum err_code split_walk_unit(struct split_walk *w, struct dwarf_unit *u, struct err *err)
{
	struct dwarf_reader *r = w->reader;
	struct dwarf_split split = { .folder = STR("") };
	struct split_root root;
	enum err_code rc;
	bool ok;

	if ((rc = split_root_read(r, u, &root, &ok, err)) || !ok || !root.has_id)
		return rc;
	if (w->each_id)
		return w->each_id(w->ctx, root.id, err);
	u->str_base = root.str_base;
	split.id = root.id;
	if (!root.has_name || !value_string(r, &r->main, u, &root.name, &split.name) || !split.name.len)
		return ERR_OK;
	if (root.has_folder && !value_string(r, &r->main, u, &root.folder, &split.folder))
		split.folder = STR("");
	return w->each_split(w->ctx, &split, err);
}

static enum err_code split_walk_sections(struct split_walk *w, struct elf *e, struct err *err)
{
	static const struct {
		enum section section;
		const char *name, *dwo_name;
	} rows[] = {
		{ SEC_INFO, ".debug_info", ".debug_info.dwo" },
		{ SEC_ABBREV, ".debug_abbrev", ".debug_abbrev.dwo" },
		{ SEC_STR, ".debug_str", NULL },
		{ SEC_LINE_STR, ".debug_line_str", NULL },
		{ SEC_STR_OFFSETS, ".debug_str_offsets", NULL },
	};
	struct dwarf_reader *r = w->reader;
	enum err_code rc;

	r->steps_max = 1u << 20;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *name = w->each_id ? rows[i].dwo_name : rows[i].name;
		struct str *to = &r->main.sections[rows[i].section];

		if (name && (rc = elf_section(e, name, to, err)))
			return rc;
		if (name)
			r->steps_max += to->len;
	}
	r->steps_left = r->steps_max;
	return units_scan(r, &r->main, err);
}

static enum err_code split_walk_units(struct split_walk *w, struct elf *e, struct err *err)
{
	enum err_code rc;

	if (!(w->reader = calloc(1, sizeof(*w->reader))))
		return err_nomem(err, "debug data");
	w->reader->stats = &w->stats;
	rc = split_walk_sections(w, e, err);
	for (uint32_t i = 0; !rc && i < w->reader->main.units_n; i++)
		rc = split_walk_unit(w, &w->reader->main.units[i], err);
	free(w->reader->main.units);
	free(w->reader);
	return rc;
}

enum err_code dwarf_each_split(struct elf *e,
	enum err_code (*each)(void *ctx, const struct dwarf_split *s, struct err *err), void *ctx,
	struct err *err)
{
	struct split_walk w = { .each_split = each, .ctx = ctx };

	return split_walk_units(&w, e, err);
}

/* ---- .dwp files ---- */

/* A table of hashes: the ids that are in use have a row. */
static enum err_code split_walk_index(struct split_walk *w, struct str index, struct err *err)
{
	struct cursor ids = cursor_of(index), rows;
	uint64_t slots;
	enum err_code rc = ERR_OK;

	cursor_le(&ids, 4); /* the version: 2, or 5 and two bytes of nothing */
	cursor_le(&ids, 4); /* columns */
	cursor_le(&ids, 4); /* units */
	slots = cursor_le(&ids, 4);
	if (ids.bad || slots > (index.len - INDEX_HEADER_BYTES) / (ID_BYTES + 4))
		return err_set(err, ERR_INVALID, ".debug_cu_index is damaged: its table is cut short");
	rows = ids;
	rows.at += slots * ID_BYTES;
	for (uint64_t i = 0; !rc && i < slots; i++) {
		uint64_t id = cursor_le(&ids, ID_BYTES), row = cursor_le(&rows, 4);

		if (row)
			rc = w->each_id(w->ctx, id, err);
	}
	return rc;
}

enum err_code dwarf_each_split_id(struct elf *e,
	enum err_code (*each)(void *ctx, uint64_t id, struct err *err), void *ctx, struct err *err)
{
	struct split_walk w = { .each_id = each, .ctx = ctx };
	struct str index;
	enum err_code rc = elf_section(e, ".debug_cu_index", &index, err);

	if (rc)
		return rc;
	return index.len ? split_walk_index(&w, index, err) : split_walk_units(&w, e, err);
}
