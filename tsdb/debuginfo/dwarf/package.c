/*
 * The index of a package (.dwp): a table with a row for each unit, and where the unit's parts of
 * each section begin. Its hash table of ids is not used: units say their ids themselves, and all
 * are looked at.
 *
 * Version 2 is GNU's, for units of version 4; version 5 is the standard's. They differ in the
 * numbers of some columns.
 *
 * Source: DWARF 5, 7.3.5; "DWARF Extensions for Separate Debug Information Files", GCC's wiki.
 */
#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

#include <stdlib.h>

#define COLUMNS_MAX 16u /* the standard has 8 */
#define COLUMN_NONE UINT32_MAX

struct package_table {
	uint32_t version, columns_n, rows_n;
	uint32_t info, abbrev, str_offsets, rnglists; /* columns */
	const unsigned char *offsets, *sizes;
};

static uint32_t package_cell(
	const struct package_table *t, const unsigned char *cells, uint32_t row, uint32_t column)
{
	const unsigned char *at;

	if (column == COLUMN_NONE)
		return 0;
	at = cells + ((uint64_t)row * t->columns_n + column) * 4;
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void package_column(struct package_table *t, uint64_t section, uint32_t column)
{
	if (section == SECT_INFO)
		t->info = column;
	else if (section == SECT_ABBREV)
		t->abbrev = column;
	else if (section == SECT_STR_OFFSETS)
		t->str_offsets = column;
	else if (section == SECT_RNGLISTS && t->version >= 5)
		t->rnglists = column;
}

static enum err_code package_header(
	const struct dwarf_file *f, struct package_table *t, struct err *err)
{
	struct cursor c = cursor_of(f->sections[SEC_INDEX]);
	uint64_t slots, cells;

	*t = (struct package_table){ .version = (uint32_t)cursor_le(&c, 4),
		.info = COLUMN_NONE,
		.abbrev = COLUMN_NONE,
		.str_offsets = COLUMN_NONE,
		.rnglists = COLUMN_NONE };
	t->columns_n = (uint32_t)cursor_le(&c, 4);
	t->rows_n = (uint32_t)cursor_le(&c, 4);
	slots = cursor_le(&c, 4);
	if (c.bad)
		return dwarf_damaged(err, "the package's index is cut");
	if (t->version != 2 && t->version != 5)
		return dwarf_damaged(err, "the package's index has version %u", t->version);
	if (t->columns_n > COLUMNS_MAX || t->rows_n > UNITS_MAX)
		return dwarf_damaged(err, "the package's index has %u columns and %u rows, limits %u, %u",
			t->columns_n, t->rows_n, COLUMNS_MAX, UNITS_MAX);
	cells = (uint64_t)t->rows_n * t->columns_n * 4;
	if (slots * 12 + (uint64_t)t->columns_n * 4 + 2 * cells > cursor_left(&c))
		return dwarf_damaged(err, "the package's index is longer than its section");
	c.at += slots * 12;
	for (uint32_t i = 0; i < t->columns_n; i++)
		package_column(t, cursor_le(&c, 4), i);
	if (t->rows_n && (t->info == COLUMN_NONE || t->abbrev == COLUMN_NONE))
		return dwarf_damaged(err, "the package's index has no units or no abbreviations");
	t->offsets = c.at;
	t->sizes = c.at + cells;
	return ERR_OK;
}

static int package_by_info(const void *a, const void *b)
{
	uint64_t x = ((const struct package_row *)a)->info, y = ((const struct package_row *)b)->info;

	return x < y ? -1 : x > y;
}

enum err_code package_index(struct dwarf_file *f, struct err *err)
{
	struct package_table t;
	enum err_code rc;

	if ((rc = package_header(f, &t, err)))
		return rc;
	f->is_package = true;
	if (!t.rows_n)
		return ERR_OK;
	if (!(f->rows = calloc(t.rows_n, sizeof(*f->rows))))
		return err_nomem(err, "package");
	f->rows_n = t.rows_n;
	for (uint32_t i = 0; i < t.rows_n; i++) {
		struct package_row *row = &f->rows[i];

		row->info = package_cell(&t, t.offsets, i, t.info);
		row->info_end = row->info + package_cell(&t, t.sizes, i, t.info);
		row->abbrev = package_cell(&t, t.offsets, i, t.abbrev);
		row->str_offsets = package_cell(&t, t.offsets, i, t.str_offsets);
		row->rnglists = package_cell(&t, t.offsets, i, t.rnglists);
	}
	qsort(f->rows, f->rows_n, sizeof(*f->rows), package_by_info);
	return ERR_OK;
}

const struct package_row *package_row_at(const struct dwarf_file *f, uint64_t info)
{
	uint32_t from = 0, to = f->rows_n;

	while (from < to) { /* from: the first that begins behind */
		uint32_t mid = from + (to - from) / 2;

		if (f->rows[mid].info <= info)
			from = mid + 1;
		else
			to = mid;
	}
	return from && info < f->rows[from - 1].info_end ? &f->rows[from - 1] : NULL;
}
