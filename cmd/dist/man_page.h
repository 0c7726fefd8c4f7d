/*
 * Manual pages of both programs, out of their tables of flags, commands and exit codes.
 *
 * Errors:  ERR_INVALID: a command that does not list its flags. Out of memory shows in buf_failed.
 * Threads: one; flags_list_by has one reader.
 * Source:  man-pages(7).
 */
#ifndef CMD_DIST_MAN_PAGE_H
#define CMD_DIST_MAN_PAGE_H

#include "base/err.h"
#include "base/str.h"

MUST_CHECK enum err_code man_page_write_server(struct buf *out, struct err *err);
MUST_CHECK enum err_code man_page_write_tool(struct buf *out, struct err *err);

#endif
