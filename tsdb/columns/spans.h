/*
 * Spans: how long each scrape of a level counts in a mean over time.
 *
 * A level is known only when it is scraped. A scrape counts from the one before it, or one interval
 * if that is too long ago: then the series began, or came back. Where a window begins and ends the
 * neighbours are not looked at: a first scrape that is in time counts from the begin, a last one
 * that is in time to the end. A last one that is late by one scrape counts a little over one
 * interval more; later, the series ended. So constants are constant at any stagger, what lived a
 * minute counts a minute, and each window is as its own rows say, whenever it is asked.
 *
 * In whole hours, where sums are kept, a scrape counts its interval, and twice that if just one
 * scrape before it is missing in the same hour. Intervals have a large common factor, times have
 * none, and so the columns of rollups stay small. If many scrapes are missing, what is missing may
 * be elsewhere: senders behind a balancer go to several servers in turn. So most scrapes of the
 * hour so far must have come in time.
 *
 * Units: nanoseconds.
 * Source: the model in tests/promql/levels, which compares these rules with others.
 */
#ifndef TSDB_COLUMNS_SPANS_H
#define TSDB_COLUMNS_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* The longest time between two scrapes of which none is missing, and of which one may be. */
static inline int64_t span_in_time(int64_t interval_ns)
{
	return interval_ns > INT64_MAX / 3 ? INT64_MAX : interval_ns + interval_ns / 10;
}
static inline int64_t span_late(int64_t interval_ns)
{
	return interval_ns > INT64_MAX / 3 ? INT64_MAX : 2 * interval_ns + interval_ns / 10;
}

/* Of the first scrape in a window. */
static inline int64_t span_first(int64_t begin_ns, int64_t ts_ns, int64_t interval_ns)
{
	return ts_ns - begin_ns <= span_in_time(interval_ns) ? ts_ns - begin_ns : interval_ns;
}
/* Of any other. */
static inline int64_t span_next(int64_t before_ns, int64_t ts_ns, int64_t interval_ns)
{
	return ts_ns - before_ns <= span_late(interval_ns) ? ts_ns - before_ns : interval_ns;
}
/* What the last one counts beyond its time. */
static inline int64_t span_last(int64_t ts_ns, int64_t interval_ns, int64_t end_ns)
{
	int64_t left_ns = end_ns - ts_ns;

	if (left_ns <= span_in_time(interval_ns))
		return left_ns;
	return left_ns <= span_late(interval_ns) ? span_in_time(interval_ns) : 0;
}
/* Of the scrapes of a series in whole hours, as they ascend; all 0 before the first. */
struct span_hour {
	int64_t before_ns; /* of the last one */
	uint32_t gaps, in_time; /* of its hour: between two scrapes; those with none missing */
};

static inline int64_t span_in_hour(struct span_hour *h, int64_t ts_ns, int64_t interval_ns)
{
	int64_t before_ns = h->before_ns, gap_ns = ts_ns - before_ns;
	bool in_time, made_up;

	h->before_ns = ts_ns;
	if (before_ns <= 0 || gap_ns <= 0 ||
		(before_ns - 1) / NS_PER_HOUR != (ts_ns - 1) / NS_PER_HOUR) {
		h->gaps = h->in_time = 0;
		return interval_ns;
	}
	in_time = interval_ns > NS_PER_HOUR || gap_ns <= interval_ns + interval_ns / 2;
	made_up = !in_time && gap_ns <= span_late(interval_ns) && h->gaps >= 2 &&
		4 * (uint64_t)h->in_time >= 3 * (uint64_t)h->gaps;
	h->gaps++;
	h->in_time += in_time;
	return made_up ? 2 * interval_ns : interval_ns;
}

#endif
