/*
 * Markdown: cells of tables. A cell is one line; what would end it or the table is escaped.
 *
 * Errors:    out of memory shows in buf_failed.
 * Threads:   values.
 */
#ifndef CMD_BOOK_MARKDOWN_H
#define CMD_BOOK_MARKDOWN_H

#include "base/str.h"

void markdown_code(struct buf *out, struct str text); /* `text`, runs of blanks as one */
void markdown_text(struct buf *out, struct str text); /* plain text, as it reads */
void markdown_inline(
	struct buf *out, const char *markdown); /* Markdown already; only | is escaped */
/* "| a | b |" and the line below it, of the n names. */
void markdown_table_begin(struct buf *out, const char *const *names, size_t n);

#endif
