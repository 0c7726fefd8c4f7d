#include "tsdb/debuginfo/dwarf/dwarf.h"

#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

#include <stdlib.h>

static const char *const section_names[SECTIONS] = {
	[SEC_INFO] = ".debug_info",
	[SEC_ABBREV] = ".debug_abbrev",
	[SEC_LINE] = ".debug_line",
	[SEC_STR] = ".debug_str",
	[SEC_LINE_STR] = ".debug_line_str",
	[SEC_STR_OFFSETS] = ".debug_str_offsets",
	[SEC_ADDR] = ".debug_addr",
	[SEC_RANGES] = ".debug_ranges",
	[SEC_RNGLISTS] = ".debug_rnglists",
};

static enum err_code dwarf_open_file(
	struct dwarf_reader *r, struct elf *e, struct dwarf_file *f, struct err *err)
{
	enum err_code rc;

	for (unsigned i = 0; i < SECTIONS; i++) {
		if ((rc = elf_section(e, section_names[i], &f->sections[i], err)))
			return rc;
		/* A compiler's table needs less than one step a byte, each of several times at most. */
		r->steps_max += f->sections[i].len * 16;
	}
	return units_scan(r, f, err);
}

static enum err_code dwarf_unit_read(struct dwarf_reader *r, struct dwarf_unit *u, struct err *err)
{
	struct dwarf_job *j = &r->job;
	enum err_code rc;
	uint32_t inlined = 0;

	if (u->type == UT_TYPE || u->type == UT_SPLIT_TYPE || u->type == UT_PARTIAL ||
		u->type == UT_SPLIT_COMPILE) {
		r->stats->units_without_code++;
		return ERR_OK;
	}
	j->file = &r->main;
	j->unit = u;
	if ((rc = unit_root(r, &r->main, u, err)))
		return rc;
	if (u->tag == TAG_PARTIAL_UNIT || u->tag == TAG_TYPE_UNIT) {
		r->stats->units_without_code++;
		return ERR_OK;
	}
	if ((rc = abbrev_table(r, &r->main, u->abbrev_offset, &r->abbrevs_pinned, err)) ||
		(rc = line_table(r, &r->main, u, &j->lines, err)))
		return rc;
	r->lines_pinned = j->lines;
	number_map_clear(&r->local);
	if ((rc = scopes_read(r, err)))
		return rc;
	if (!j->scopes_n)
		return ERR_OK;
	if ((rc = line_program(r, err)) || (rc = dwarf_flatten(r, err)))
		return rc;
	for (uint32_t i = 0; i < j->scopes_n; i++)
		inlined += j->scopes[i].depth > 0;
	r->stats->inlined += inlined;
	r->stats->functions += j->scopes_n - inlined;
	return ERR_OK;
}

static enum err_code dwarf_units_read(struct dwarf_reader *r, struct err *err)
{
	for (uint32_t i = 0; i < r->main.units_n; i++) {
		struct dwarf_unit *u = &r->main.units[i];
		struct err e = { 0 };
		enum err_code rc = dwarf_unit_read(r, u, &e);

		r->abbrevs_pinned = NULL;
		r->lines_pinned = NULL;
		if (!rc)
			continue;
		err_wrap(&e, rc, "unit at 0x%llx", (unsigned long long)u->offset);
		if (rc != ERR_INVALID)
			return err_copy(err, &e);
		if (!r->stats->units_damaged++)
			r->stats->first_error = e;
	}
	return ERR_OK;
}

static void dwarf_reader_close(struct dwarf_reader *r)
{
	abbrev_release(r);
	line_tables_release(r);
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

enum err_code dwarf_add(struct elf *e, struct elf *alt, struct symindex_builder *b,
	struct dwarf_stats *stats, struct err *err)
{
	struct dwarf_reader *r = calloc(1, sizeof(*r));
	enum err_code rc;

	*stats = (struct dwarf_stats){ 0 };
	if (!r)
		return err_nomem(err, "debug data");
	r->builder = b;
	r->stats = stats;
	r->steps_max = 1u << 20;
	r->has_alt = alt;
	r->alt.is_alt = true;
	rc = dwarf_open_file(r, e, &r->main, err);
	if (!rc && alt)
		rc = dwarf_open_file(r, alt, &r->alt, err);
	r->steps_left = r->steps_max;
	if (!rc)
		rc = dwarf_units_read(r, err);
	dwarf_reader_close(r);
	return rc;
}
