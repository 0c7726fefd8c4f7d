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
 * value of unit `from` in unit `to`; to may be "minimum" or "auto": the largest unit in which the
 * value is at least 1. *unit is the target unit's short name, empty where it says nothing
 * ("count").
 */
double pprof_unit_scale(int64_t value, struct str from, struct str to, struct str *unit);

/* "1.50s", "0", "12": the scaled value, at most two digits behind the point, and its unit. */
void pprof_unit_print(struct buf *out, int64_t value, struct str from, struct str to);

/* "12.50%", "  100%", " 0.25%": |value / total|. */
void pprof_percent_print(struct buf *out, int64_t value, int64_t total);

#endif
