/*
 * Roff: the text of manual pages, with the macros of man(7). Text may hold any bytes; what roff
 * would read as a request or an escape is escaped.
 *
 * Errors:    out of memory shows in buf_failed.
 * Threads:   values.
 * Source:    groff_man(7), groff_char(7).
 */
#ifndef CMD_DIST_ROFF_H
#define CMD_DIST_ROFF_H

#include "base/str.h"

void roff_text(struct buf *out, struct str text); /* within a line; a newline is a blank */
void roff_bold(struct buf *out, struct str text);
void roff_lines(struct buf *out, struct str text); /* as they are, not filled; ends the line */
void roff_section(struct buf *out, const char *name);
void roff_subsection(struct buf *out, struct str name);

#endif
