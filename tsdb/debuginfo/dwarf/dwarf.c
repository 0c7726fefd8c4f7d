#include "tsdb/debuginfo/dwarf/dwarf.h"

#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* NULL: files of this kind have no such section, or take it from the binary. */
static const char *const section_names[SECTIONS][FILE_KINDS] = {
	[SEC_INFO] = { ".debug_info", ".debug_info" }, /* split files have several */
	[SEC_ABBREV] = { ".debug_abbrev", ".debug_abbrev", ".debug_abbrev.dwo" },
	[SEC_LINE] = { ".debug_line", ".debug_line" },
	[SEC_STR] = { ".debug_str", ".debug_str", ".debug_str.dwo" },
	[SEC_LINE_STR] = { ".debug_line_str", ".debug_line_str" },
	[SEC_STR_OFFSETS] = { ".debug_str_offsets", ".debug_str_offsets", ".debug_str_offsets.dwo" },
	[SEC_ADDR] = { ".debug_addr", ".debug_addr" },
	[SEC_RANGES] = { ".debug_ranges", ".debug_ranges" },
	[SEC_RNGLISTS] = { ".debug_rnglists", ".debug_rnglists", ".debug_rnglists.dwo" },
	[SEC_INDEX] = { NULL, NULL, ".debug_cu_index" },
};

enum err_code dwarf_file_load(
	struct dwarf_reader *r, struct elf *e, struct dwarf_file *f, struct err *err)
{
	enum err_code rc;

	for (unsigned i = 0; i < SECTIONS; i++) {
		const char *name = section_names[i][f->kind];

		if (!name)
			continue;
		if ((rc = elf_section(e, name, &f->sections[i], err)))
			return rc;
		r->steps_max += f->sections[i].len * STEPS_A_BYTE;
		r->steps_left += f->sections[i].len * STEPS_A_BYTE;
	}
	return ERR_OK;
}

enum err_code dwarf_symbol(struct dwarf_reader *r, uint64_t address, bool *found, struct str *name,
	uint64_t *end, struct err *err)
{
	*found = false;
	*end = UINT64_MAX;
	if (!r->symbols_tried) {
		r->symbols_tried = true;
		/* Where they are damaged, whoever adds the symbols themselves says so. */
		if (symbol_map_open(r->elf, &r->symbols, NULL) == ERR_NOMEM)
			return err_nomem(err, "symbols");
	}
	if (r->symbols)
		*found = symbol_map_find(r->symbols, address, name, end);
	return ERR_OK;
}

static bool dwarf_unit_has_code(const struct dwarf_unit *u)
{
	/* Split units are in files of their own; one beside others is of no use. */
	return u->type == UT_COMPILE || u->type == UT_SKELETON ||
		(u->type == UT_SPLIT_COMPILE && u->skeleton);
}

static enum err_code dwarf_unit_walk(
	struct dwarf_reader *r, struct dwarf_file *f, struct dwarf_unit *u, struct err *err)
{
	struct dwarf_job *j = &r->job;
	enum err_code rc;
	uint32_t inlined = 0;

	if (!dwarf_unit_has_code(u)) {
		r->stats->units_without_code++;
		return ERR_OK;
	}
	if ((rc = unit_root(r, f, u, err)))
		return rc;
	if (u->tag == TAG_PARTIAL_UNIT || u->tag == TAG_TYPE_UNIT) {
		r->stats->units_without_code++;
		return ERR_OK;
	}
	j->file = f;
	j->unit = u;
	j->quality = u->is_skeleton ? SYMINDEX_LINES : SYMINDEX_DWARF;
	if ((rc = abbrev_table(r, f, u->abbrev_offset, &r->abbrevs_pinned, err)) ||
		(rc = line_table(r, f, u, &j->lines, err)))
		return rc;
	r->lines_pinned = j->lines;
	number_map_clear(&r->local);
	if ((rc = scopes_read(r, err)) || (rc = line_program(r, err)) || (rc = dwarf_flatten(r, err)))
		return rc;
	for (uint32_t i = 0; i < j->scopes_n; i++)
		inlined += j->scopes[i].depth > 0;
	r->stats->inlined += inlined;
	r->stats->functions += j->scopes_n - inlined;
	return ERR_OK;
}

enum err_code dwarf_unit_read(
	struct dwarf_reader *r, struct dwarf_file *f, struct dwarf_unit *u, struct err *err)
{
	enum err_code rc = dwarf_unit_walk(r, f, u, err);

	r->abbrevs_pinned = NULL;
	r->lines_pinned = NULL;
	return rc;
}

enum err_code dwarf_note_unit(struct dwarf_reader *r, const struct dwarf_file *f,
	const struct dwarf_unit *u, enum err_code rc, struct err *why, struct err *err)
{
	err_wrap(why, rc, "%sunit at 0x%llx", f->label, (unsigned long long)u->offset);
	if (rc != ERR_INVALID)
		return err_copy(err, why);
	r->stats->units_damaged++;
	if (!r->stats->first_error.code)
		r->stats->first_error = *why;
	return ERR_OK;
}

void dwarf_note_file(
	struct dwarf_reader *r, const struct dwarf_file *f, enum err_code rc, const struct err *why)
{
	r->stats->files_damaged++;
	if (!r->stats->first_error.code)
		err_set(&r->stats->first_error, rc, "%s%.900s", f->label, why->msg);
}

/* Where the dwz file cannot be read, it is as if it were not there. */
static void dwarf_alt_open(struct dwarf_reader *r, struct elf *alt)
{
	struct err why = { 0 };
	enum err_code rc;

	if ((rc = dwarf_file_load(r, alt, &r->alt, &why)) || (rc = units_scan(r, &r->alt, &why)))
		dwarf_note_file(r, &r->alt, rc, &why);
	else
		r->has_alt = true;
}

static enum err_code dwarf_units_read(struct dwarf_reader *r, struct err *err)
{
	for (uint32_t i = 0; i < r->main.units_n; i++) {
		struct dwarf_unit *u = &r->main.units[i];
		struct err why = { 0 };
		enum err_code rc = u->is_done ? ERR_OK : dwarf_unit_read(r, &r->main, u, &why);

		if (rc && (rc = dwarf_note_unit(r, &r->main, u, rc, &why, err)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code dwarf_read_all(
	struct dwarf_reader *r, struct elf *alt, const struct bundle *split, struct err *err)
{
	enum err_code rc;

	if ((rc = dwarf_file_load(r, r->elf, &r->main, err)) || (rc = units_scan(r, &r->main, err)))
		return rc;
	if (alt)
		dwarf_alt_open(r, alt);
	if (split && (rc = split_read(r, split, err)))
		return rc;
	return dwarf_units_read(r, err);
}

enum err_code dwarf_reader_open(
	struct elf *e, struct dwarf_stats *stats, struct dwarf_reader **out, struct err *err)
{
	struct dwarf_reader *r = calloc(1, sizeof(*r));

	*stats = (struct dwarf_stats){ 0 };
	if (!r)
		return err_nomem(err, "debug data");
	r->stats = stats;
	r->steps_max = r->steps_left = 1u << 20;
	r->split_bytes_left = elf_limits_default.inflated_bytes_max;
	r->elf = e;
	r->alt.kind = FILE_ALT;
	snprintf(r->alt.label, sizeof(r->alt.label), "dwz file: ");
	*out = r;
	return ERR_OK;
}

void dwarf_reader_close(struct dwarf_reader *r)
{
	abbrev_release(r);
	line_tables_release(r);
	symbol_map_close(r->symbols);
	free(r->skeletons);
	free(r->local.keys);
	free(r->local.values);
	free(r->global.keys);
	free(r->global.values);
	free(r->main.units);
	free(r->alt.units);
	free(r->job.scopes);
	free(r->job.ranges);
	free(r->job.rows);
	free(r->job.sequences);
	free(r->job.heap);
	buf_release(&r->path);
	free(r);
}

enum err_code dwarf_add(struct elf *e, struct elf *alt, const struct bundle *split,
	struct symindex_builder *b, struct dwarf_stats *stats, struct err *err)
{
	struct dwarf_reader *r;
	enum err_code rc = dwarf_reader_open(e, stats, &r, err);

	if (rc)
		return rc;
	r->builder = b;
	rc = dwarf_read_all(r, alt, split, err);
	dwarf_reader_close(r);
	return rc;
}
