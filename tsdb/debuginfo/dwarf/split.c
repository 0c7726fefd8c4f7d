/*
 * Split DWARF: units that the linker has not seen. The binary has a skeleton of each: its
 * addresses, its line table, and an id; the unit with this id is in a .dwo file (one of each
 * compilation) or in a package of many (.dwp).
 *
 * The files are read one after the other, each unit when it is met, so that memory is taken for one
 * file at a time, whatever a bundle holds. A file that is damaged is left out.
 */
#include "base/array.h"
#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- skeletons ---- */

static int split_by_id(const void *a, const void *b)
{
	const struct dwarf_skeleton *x = a, *y = b;

	if (x->dwo_id != y->dwo_id)
		return x->dwo_id < y->dwo_id ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Reads the first entry of each unit of the binary. */
static enum err_code split_find_skeletons(struct dwarf_reader *r, struct err *err)
{
	uint32_t cap = 0;
	enum err_code rc;

	for (uint32_t i = 0; i < r->main.units_n; i++) {
		struct dwarf_unit *u = &r->main.units[i];
		struct err why = { 0 };

		if ((rc = unit_root(r, &r->main, u, &why))) {
			if ((rc = dwarf_note_unit(r, &r->main, u, rc, &why, err)))
				return rc;
			u->is_done = true;
		}
		if (u->root != ROOT_READ || !u->is_skeleton || !u->has_dwo_id)
			continue;
		if (!array_room(&r->skeletons, r->skeletons_n, 1, &cap))
			return err_nomem(err, "units");
		r->skeletons[r->skeletons_n++] = (struct dwarf_skeleton){ u->dwo_id, i };
	}
	if (r->skeletons_n)
		qsort(r->skeletons, r->skeletons_n, sizeof(*r->skeletons), split_by_id);
	return ERR_OK;
}

static uint32_t split_first_of(const struct dwarf_reader *r, uint64_t dwo_id)
{
	uint32_t from = 0, to = r->skeletons_n;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (r->skeletons[mid].dwo_id < dwo_id)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* ---- units ---- */

static void split_attach(struct dwarf_unit *u, const struct dwarf_unit *skeleton)
{
	u->skeleton = skeleton;
	u->low_pc = skeleton->low_pc;
	u->addr_base = skeleton->addr_base;
	u->ranges_base = skeleton->split_ranges_base;
}

/* Skeletons share an id if the same source was compiled twice: the unit is read for each. */
static enum err_code split_read_unit(
	struct dwarf_reader *r, struct dwarf_unit *u, void *ctx, struct err *err)
{
	struct err why = { 0 };
	enum err_code rc;

	if (u->type != UT_COMPILE && u->type != UT_SPLIT_COMPILE)
		return ERR_OK;
	if ((rc = unit_root(r, &r->split, u, &why)))
		return dwarf_note_unit(r, &r->split, u, rc, &why, err);
	for (uint32_t i = u->has_dwo_id ? split_first_of(r, u->dwo_id) : r->skeletons_n;
		 i < r->skeletons_n && r->skeletons[i].dwo_id == u->dwo_id; i++) {
		struct dwarf_unit *skeleton = &r->main.units[r->skeletons[i].unit];

		if (skeleton->is_done)
			continue;
		split_attach(u, skeleton);
		if ((rc = dwarf_unit_read(r, &r->split, u, &why)))
			return dwarf_note_unit(r, &r->split, u, rc, &why, err);
		skeleton->is_done = true;
		r->stats->units_split_found++;
	}
	return ERR_OK;
}

/* ---- files ---- */

/* Sections may overlap: what all .debug_info.dwo of a file have, by its size, is limited. */
#define INFO_RATIO_MAX 32u

static void split_count(struct dwarf_reader *r, struct str section)
{
	r->split_bytes_left -= section.len < r->split_bytes_left ? section.len : r->split_bytes_left;
}

enum err_code split_load(struct dwarf_reader *r, struct elf *e, struct err *err)
{
	struct dwarf_file *f = &r->split;
	enum err_code rc;

	f->kind = FILE_SPLIT;
	if ((rc = dwarf_file_load(r, e, f, err)))
		return rc;
	for (unsigned i = 0; i < SECTIONS; i++)
		split_count(r, f->sections[i]);
	f->sections[SEC_ADDR] = r->main.sections[SEC_ADDR];
	f->sections[SEC_RANGES] = r->main.sections[SEC_RANGES];
	return f->sections[SEC_INDEX].len ? package_index(f, err) : ERR_OK;
}

static enum err_code split_open(
	struct dwarf_reader *r, struct str bytes, struct elf **e, struct err *err)
{
	struct elf_limits limits = elf_limits_default;
	enum err_code rc;

	/* All files together may inflate to what one may. */
	limits.inflated_bytes_max = r->split_bytes_left;
	rc = elf_open_split(bytes, &limits, e, err);
	return rc ? rc : split_load(r, *e, err);
}

void split_unload(struct dwarf_reader *r)
{
	abbrev_forget(r, FILE_SPLIT);
	number_map_clear(&r->global); /* it names offsets in this file */
	free(r->split.units);
	free(r->split.rows);
	r->split = (struct dwarf_file){ .kind = FILE_SPLIT };
}

enum err_code split_each_unit(struct dwarf_reader *r, struct elf *e, split_unit_fn each, void *ctx,
	bool *is_file, struct err *err)
{
	struct dwarf_file *f = &r->split;
	uint64_t at = 0, left = elf_file_bytes(e) * INFO_RATIO_MAX;
	bool found;
	enum err_code rc;

	/* GCC writes a section of this name for each unit of types, too. */
	for (;;) {
		*is_file = true;
		if ((rc = elf_section_next(
				 e, ".debug_info.dwo", &at, &f->sections[SEC_INFO], &found, err)) ||
			!found)
			return rc;
		if (f->sections[SEC_INFO].len > left)
			return err_set(err, ERR_LIMIT, "its .debug_info.dwo are more than %u times its size",
				INFO_RATIO_MAX);
		left -= f->sections[SEC_INFO].len;
		r->steps_max += f->sections[SEC_INFO].len * STEPS_A_BYTE;
		r->steps_left += f->sections[SEC_INFO].len * STEPS_A_BYTE;
		split_count(r, f->sections[SEC_INFO]);
		f->units_n = 0;
		if ((rc = units_scan(r, f, err)))
			return rc;
		*is_file = false;
		for (uint32_t i = 0; i < f->units_n; i++)
			if ((rc = each(r, &f->units[i], ctx, err)))
				return rc;
		number_map_clear(&r->global);
	}
}

enum err_code split_read(struct dwarf_reader *r, const struct bundle *files, struct err *err)
{
	enum err_code rc;

	if ((rc = split_find_skeletons(r, err)))
		return rc;
	for (size_t i = 0; r->skeletons_n && i < files->files_n; i++) {
		enum bundle_kind kind;
		struct str bytes = bundle_file(files, i, &kind);
		struct err why = { 0 };
		struct elf *e = NULL;
		bool is_file = true;

		if (kind != BUNDLE_DWO && kind != BUNDLE_DWP)
			continue;
		snprintf(r->split.label, sizeof(r->split.label), "file %zu of the bundle: ", i + 1);
		if (!(rc = split_open(r, bytes, &e, &why)))
			rc = split_each_unit(r, e, split_read_unit, NULL, &is_file, &why);
		if (rc && is_file) {
			dwarf_note_file(r, &r->split, rc, &why);
			rc = ERR_OK;
		}
		split_unload(r);
		elf_close(e);
		if (rc)
			return err_copy(err, &why);
	}
	return ERR_OK;
}
