/*
 * Twins: profiles of one series and one time in several members of a union. A sum over a window
 * adds each of them, so the answer says so (tsdb/union.h).
 *
 * A selection finds series that several members have; indexes tell between which times each place
 * has rows. If these times overlap for different members, the series is a suspect. Sums note which
 * suspects they add, and over which time. When the warnings are asked for, the times of rows are
 * compared: only of suspects that were added, and only in the time in which they were.
 *
 * Windows and blocks with raw rows have the times of all rows. A block without raw rows has the
 * times of three rows of a step: the smallest, the greatest and the last.
 *
 * Units:     nanoseconds since 1970; both ends of the times of a place count.
 * Errors:    none. Without memory, and beyond the limits in twins.c, twins are not found.
 * Ownership: labels and parts are copied.
 * Threads:   any, of the querier and its forks; twins_tell while these rest.
 */
#ifndef TSDB_READ_TWINS_H
#define TSDB_READ_TWINS_H

#include "tsdb/read/querier_internal.h"

struct twins;

/* Rows of one series in one place; there may be none at first_ns and last_ns. */
struct twins_part {
	struct series_place place;
	int64_t first_ns, last_ns;
};

struct twins *twins_open(void); /* NULL: out of memory */
void twins_close(struct twins *t); /* NULL is fine */
/* Begins a selection, and returns its number. */
uint32_t twins_begin(struct twins *t);
/* A series of the selection; parts are sorted. Returns the value for db_series.twin; 0: times of
 * different members do not overlap. */
uint32_t twins_suspect(struct db_querier *q, uint32_t selection, struct labels labels,
	struct twins_part *parts, size_t n);
/* All rows of these series in (min, max] are added. */
void twins_note_sum(struct db_querier *q, const struct db_series *const *series, size_t n,
	int64_t min_ns, int64_t max_ns);
/* Adds the warning, once; a fork adds none. */
void twins_tell(struct db_querier *q);

#endif
