/*
 * The report of `epitool top --format=text`: what `go tool pprof -top` prints of the same profiles
 * with the same options.
 *
 * A query's report is the server's format=text. A file's is made here, and so is that of a file
 * beside a query.
 *
 * Errors: those of source.h, and of proto/report.
 */
#ifndef CMD_EPITOOL_TOP_REPORT_H
#define CMD_EPITOOL_TOP_REPORT_H

#include "cmd/epitool/source.h"

/* query: as asked, for ask_print_error; it ends in NUL, and is empty for files. */
MUST_CHECK enum err_code top_report_print(const struct source_options *o,
	const struct question_report *r, const char *text, struct buf *out, struct buf *query,
	struct err *err);

#endif
