/*
 * Units as pprof's reports print them: values scaled to a readable unit, percentages.
 *
 * Threads: pure functions.
 * Source:  what `go tool pprof` prints.
 */
#ifndef PROTO_REPORT_PPROF_UNIT_H
#define PROTO_REPORT_PPROF_UNIT_H

#include "base/str.h"

/*
 * Converts value of unit `from` to unit `to`. With "minimum" or "auto" it is the largest unit in
 * which the value is at least 1. *unit is the short name of the unit, empty for "count" and the
 * like.
 */
double pprof_unit_scale(int64_t value, struct str from, struct str to, struct str *unit);

/*
 * Prints the scaled value, at most two digits behind the point, and its unit: "1.50s", "0", "12".
 */
void pprof_unit_print(struct buf *out, int64_t value, struct str from, struct str to);

/* Prints |value / total|: "12.50%", "  100%", " 0.25%". */
void pprof_percent_print(struct buf *out, int64_t value, int64_t total);

#endif
