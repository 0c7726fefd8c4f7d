/*
 * The time that scrapes of levels count: the divisor of a mean over time.
 *
 * A window is a piece in which rows are read one by one, or a region of whole hours, in which sums
 * are kept, between two such pieces. A piece holds what tsdb/columns/spans.h says. The region is
 * far enough from the window's ends that whatever is scraped has a scrape in each piece
 * (COVER_PIECE_NS). For each step of the region we know the times of its first and last scrape and
 * the sum of what all scrapes count. So an outage of all series inside a step is only seen if the
 * scrapes together count less than the time between first and last. A step is a day, or an hour
 * where the day is not in the region as a whole; so it does not matter whether the sums that are
 * read are of hours or of days.
 *
 * Units:     nanoseconds; spans and steps are (from, to].
 * Errors:    ERR_NOMEM.
 * Ownership: arrays are in the arena of the caller.
 * Threads:   values; no sharing.
 */
#ifndef TSDB_READ_COVER_H
#define TSDB_READ_COVER_H

#include "base/arena.h"
#include "base/err.h"

/* ---- windows ---- */

#define COVER_PIECE_NS (INT64_C(300) * 1000000000) /* the shortest piece beside a region */

struct cover_window {
	int64_t min_ns, max_ns;
	int64_t hours_min_ns, hours_max_ns; /* the region; equal: no region */
	int64_t days_min_ns, days_max_ns; /* whole days in it */
};

/* A window shorter than an hour has no region. */
struct cover_window cover_window_of(int64_t min_ns, int64_t max_ns);
static inline bool cover_in_hours(const struct cover_window *w, int64_t ts_ns)
{
	return ts_ns > w->hours_min_ns && ts_ns <= w->hours_max_ns;
}

/* ---- time ---- */

struct cover_span {
	int64_t from_ns, to_ns;
};
struct cover_step {
	int64_t begin_ns, length_ns;
	int64_t start_ns, end_ns; /* the smallest time minus interval, the largest time */
	__int128 counted_ns; /* by all scrapes together */
	uint64_t rows;
};
struct cover {
	struct cover_span *spans; /* of pieces: ascending, apart from each other */
	struct cover_step *steps; /* of the region: ascending */
	size_t spans_n, spans_cap, steps_n, steps_cap;
};

MUST_CHECK enum err_code cover_add_span(
	struct cover *c, struct cover_span add, struct arena *a, struct err *err);
/* Adds the rows of one step. begin_ns is computed from end_ns. length_ns is raised to that of the
 * step which cover_window has at end_ns; a longer one stays. */
MUST_CHECK enum err_code cover_add_rows(struct cover *c, const struct cover_window *w,
	struct cover_step add, struct arena *a, struct err *err);
MUST_CHECK enum err_code cover_merge(
	struct cover *into, const struct cover *from, struct arena *a, struct err *err);
/* Of all spans and steps; overlaps count once. */
int64_t cover_length_ns(const struct cover *c);

#endif
