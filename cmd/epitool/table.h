/*
 * Tables for people. Columns are as wide as their cells, and cut to fit the terminal. Numbers are
 * printed in a unit that keeps them short.
 *
 * Units:     widths in characters; 0: no limit.
 * Errors:    out of memory shows in the output's buf_failed.
 * Ownership: cells live in the arena.
 */
#ifndef CMD_EPITOOL_TABLE_H
#define CMD_EPITOOL_TABLE_H

#include "base/str.h"

#define TABLE_COLUMNS_MAX 40u

struct text_table {
	struct arena *arena;
	struct {
		struct str title;
		bool right; /* for numbers; others may be cut at the left, as names differ at the end */
	} columns[TABLE_COLUMNS_MAX];
	size_t columns_n;
	struct str *cells; /* row after row */
	size_t cells_n, cells_cap;
	bool failed;
};

void text_table_init(struct text_table *t, struct arena *a);
/* Titles and cells are copied; characters that do not print are escaped (base/quote.h). */
void table_column(struct text_table *t, const char *title, bool right);
void table_cell(struct text_table *t, struct str s);
void table_print(const struct text_table *t, size_t width, struct buf *out);

/* The width of the terminal on standard output; 0: it is no terminal. */
size_t terminal_width(void);

/*
 * A cost in its unit, as pprof prints it: "1.50s", "12.34MB"; "ratio" as "12.50%"; counts and costs
 * without a unit as numbers of six digits. Units that pprof does not know follow the number.
 */
void number_print(struct buf *out, double value, struct str unit);
/* The unit in which the smallest of several costs can still be read, as in `go tool pprof -top`. */
struct str number_unit(int64_t smallest, int64_t total, struct str unit);

#endif
