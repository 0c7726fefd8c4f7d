/*
 * Units of pprof: which words are one unit, how many of one make another, and values as reports
 * print them, scaled to a readable unit; percentages.
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

/*
 * How many `to` make one `from`, exactly: 1000 ns make one us, 1024 B one kB (as pprof has it). 0:
 * they do not convert, or it is no whole number of 63 bits. A unit without a table converts to
 * itself alone. Beyond pprof's words: KiB and its like, minutes, usec.
 */
int64_t pprof_unit_ratio(struct str from, struct str to);
/* Costs in the two units can be added: one of them converts to the other. */
bool pprof_unit_fits(struct str a, struct str b);
/*
 * The unit in which both can be added without fractions, as merging in pprof has it: the smaller
 * one. Of two words for one unit it is the long one in plural ("nanoseconds"), else a. They fit.
 */
struct str pprof_unit_finer(struct str a, struct str b);

/* Prints |value / total|: "12.50%", "  100%", " 0.25%". */
void pprof_percent_print(struct buf *out, int64_t value, int64_t total);

#endif
