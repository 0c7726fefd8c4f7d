/*
 * Reply: what a tool answers, once as text for reading and once as structured content.
 *
 * A tool fills in facts, tables, notes and the next useful calls. The text has a bound: the first
 * rows of each table that fit are shown, a line says what the others have, and the structured
 * content has the same rows. Facts and notes have bounds of their own, so tables get most of it.
 *
 *	profiles: cpu{job="api"}
 *	total: 12.30s
 *	  flat   flat%  function
 *	 9.10s  73.98%  main.work
 *	1 of 4 functions; the other 3 have 26.02% of the flat cost
 *	note: ...
 *	next: function {"function":"main.work"} (who calls it)
 *
 * Names come from the profiled programs: bytes that do not print are escaped, and long ones are
 * cut, so that none ends a line.
 *
 * Units:     bytes; amounts in their own unit, scaled in the text alone.
 * Errors:    reply_write: ERR_NOMEM, ERR_LIMIT of the arena; what failed before is found there.
 * Ownership: all texts are copied to the arena.
 * Threads:   values; one request, one thread.
 */
#ifndef WEB_MCP_REPLY_H
#define WEB_MCP_REPLY_H

#include "base/json.h"

#define REPLY_BYTES_MIN 1024u
#define REPLY_BYTES_DEFAULT 8192u
#define REPLY_BYTES_MAX 65536u
#define REPLY_TEXT_BYTES_MAX 512u /* of a cell or a fact */
#define REPLY_COLUMNS_MAX 10u

enum reply_kind { REPLY_TEXT, REPLY_WHOLE, REPLY_NUMBER, REPLY_NONE };

struct reply_cell {
	struct str text;
	enum reply_kind kind; /* in structured content */
	uint32_t indent; /* blanks in front, in the text alone */
	int64_t whole;
	double number;
};

struct reply_fact {
	const char *name;
	struct reply_cell cell;
};

struct reply_table {
	const char *name;
	const char *rows_are; /* "functions" */
	const char *const *columns; /* those of text are the last; one of ".name" is not in the text */
	size_t columns_n;
	struct reply_cell *cells;
	size_t cells_n, cells_cap;
	size_t all_n; /* rows that there are, of which those above are the first */
	const char *share_of; /* "flat cost"; NULL: rows have no shares */
	double *shares, shares_all; /* per row, and of all rows that there are; percent */
	size_t shares_n, shares_cap;
	size_t shown; /* set by reply_write */
};

struct reply_next {
	const char *tool;
	struct str arguments; /* JSON */
	const char *why;
};

struct reply {
	struct arena *arena;
	struct reply_fact *facts;
	size_t facts_n, facts_cap;
	struct str body; /* lines behind the facts, cut where they do not fit; empty: none */
	struct reply_table **tables;
	size_t tables_n, tables_cap;
	struct str *notes;
	size_t notes_n, notes_cap;
	struct reply_next *next;
	size_t next_n, next_cap;
	bool failed; /* memory ran out */
};

void reply_fact(struct reply *r, const char *name, struct str text);
/* Printed as go tool pprof does, "1.50s"; structured it is the plain number. */
void reply_fact_amount(struct reply *r, const char *name, int64_t value, struct str unit);
void reply_fact_whole(struct reply *r, const char *name, uint64_t value);
void reply_body(struct reply *r, struct str lines);
/* Each text once. */
void reply_note(struct reply *r, struct str text);
void reply_notef(struct reply *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Writes the arguments of a call into *text; the caller writes members and calls reply_next. */
void reply_next_begin(struct json *j, struct buf *text);
void reply_next(struct reply *r, const char *tool, struct json *j, const char *why);

/* NULL: memory ran out, and reply_cell_* take that. */
struct reply_table *reply_table(struct reply *r, const char *name, const char *rows_are,
	const char *const *columns, size_t columns_n);
void reply_cell_text(struct reply *r, struct reply_table *t, struct str text);
void reply_cell_indented(struct reply *r, struct reply_table *t, struct str text, uint32_t indent);
void reply_cell_amount(struct reply *r, struct reply_table *t, int64_t value, struct str unit);
void reply_cell_percent(struct reply *r, struct reply_table *t, double percent);
void reply_cell_whole(struct reply *r, struct reply_table *t, int64_t value);
/* An amount that nobody knows, which is not 0: "-", and null. */
void reply_cell_none(struct reply *r, struct reply_table *t);
void reply_cell_number(struct reply *r, struct reply_table *t, double value);
/* Of the row whose last cell was just added. */
void reply_row_share(struct reply *r, struct reply_table *t, double percent);

/* Text of at most max_bytes, and the object of the structured content. */
MUST_CHECK enum err_code reply_write(
	struct reply *r, size_t max_bytes, struct buf *text, struct json *j, struct err *err);

#endif
