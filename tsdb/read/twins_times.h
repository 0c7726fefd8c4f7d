/*
 * Times of rows of one series, place by place, without the rows: keys of windows, heads of chunks,
 * records of rollups where a block has no rows. Deleted rows have none.
 *
 * at_ns of a place: before it, the place has no further row. If it is exact, the place has a row at
 * that time.
 *
 * Errors:    none. What cannot be read has no rows: whoever reads the rows warns of it.
 * Ownership: iterators are those of the querier's sources. Parts live until the next begin.
 * Threads:   the querier's.
 */
#ifndef TSDB_READ_TWINS_TIMES_H
#define TSDB_READ_TWINS_TIMES_H

#include "tsdb/read/twins.h"

struct twins_times;

struct twins_time {
	const struct twins_part *part;
	uint32_t member;
	int64_t at_ns; /* INT64_MAX: the place has no more rows */
	bool exact;
	/* The last read: the times of all the place's rows up to through_ns, ascending. */
	int64_t *v;
	size_t n, next, cap;
	int64_t through_ns; /* -1: nothing was read */
};

struct twins_times *twins_times_open(void); /* NULL: out of memory */
void twins_times_close(struct twins_times *t); /* NULL is fine */
/* Begins a series, which may cost at most work_max. False: out of memory. */
MUST_CHECK bool twins_times_begin(struct twins_times *t, struct db_querier *q,
	const struct twins_part *parts, size_t n, size_t work_max);
struct twins_time *twins_time_of(const struct twins_times *t, size_t i);
/* Passes over rows before ts. Nothing is read. */
void twins_time_raise(struct twins_time *t, int64_t ts_ns);
/* Reads until the place is exact or has no more rows. */
void twins_time_read(struct twins_times *times, struct twins_time *t);
/* What all series have cost: 1 for a step in a window, 16 for a chunk or a record, 512 for one that
 * may be in the bucket. */
size_t twins_times_work(const struct twins_times *t);
/* True if the series has used up its work. */
bool twins_times_is_over(const struct twins_times *t);

#endif
