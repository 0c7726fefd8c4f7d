/*
 * Times on the command line: those of the HTTP API (RFC 3339, unix seconds), and relative times:
 * "now", "now-1h", "now+5m", "-1h".
 *
 * Units:  nanoseconds since 1970.
 * Errors: ERR_INVALID "cannot parse ...".
 */
#ifndef CMD_EPITOOL_TIMES_H
#define CMD_EPITOOL_TIMES_H

#include "base/str.h"

MUST_CHECK enum err_code time_arg_parse(
	struct str s, int64_t now_ns, int64_t *out_ns, struct err *err);
/* As a parameter of the API: seconds with all their digits. */
void time_arg_print(struct buf *out, int64_t ns);

#endif
