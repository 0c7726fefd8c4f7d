/*
 * Sharing: how a scraper shares a process's profiler with others that it does not know of, such as
 * a second server of a pair, or Parca while one moves. A Go process has one CPU profiler, and
 * refuses whoever asks while another one has it.
 *
 *	ALONE   whole profiles, one an interval. Once an hour ten turns come a tenth of the
 *	        interval later each: so each moment of the interval is free once, and whoever was
 *	        always refused there gets in, and is met.
 *	HALVES  refused, a scraper asks again until it gets in. From then on it takes half a turn,
 *	        leaves as much to the others, and asks again. Two that do so change places; the phase
 *	        follows from who is refused for how long.
 *	TURNS   the other one asks at its fixed times only, and came back as soon as it was left a
 *	        whole interval. So each takes a whole interval in turn.
 *
 * Others may leave a gap of some milliseconds only: Parca asks for as many seconds as its interval
 * has. Who was refused for a whole interval asks more often.
 *
 * Who was not met for two turns in succession is gone, and the scraper is alone again.
 *
 * Units:   nanoseconds, monotonic; `seconds` as profilers take them.
 * Threads: one.
 */
#ifndef SCRAPE_SHARING_H
#define SCRAPE_SHARING_H

#include <stdbool.h>
#include <stdint.h>

#define SHARING_STARVED_TURNS 6 /* then a turn is given up */

enum sharing_mode { SHARING_ALONE, SHARING_HALVES, SHARING_TURNS };

struct sharing { /* zero: alone */
	enum sharing_mode mode;
	int64_t refused_ns; /* since when this turn is refused; 0: it is not */
	unsigned missed; /* turns in succession that were not refused, though somebody was met */
	unsigned late; /* turns that are still to come later */
	bool often; /* the others leave a gap of milliseconds only */
	int64_t looked_ns; /* when that began last */
};

/* What to ask for, of the `seconds` that the target has. */
int64_t sharing_seconds(const struct sharing *s, int64_t interval_ns, int64_t seconds);
/* The profiler was taken. Gives how long to wait before asking again. */
int64_t sharing_refused(struct sharing *s, int64_t interval_ns, int64_t now_ns);
/* Whether to give this turn up: it was refused for so long that somebody should know. */
bool sharing_is_starved(const struct sharing *s, int64_t interval_ns, int64_t now_ns);
/* The turn is given up or has failed otherwise; the next one is as scheduled. */
void sharing_gave_up(struct sharing *s);
/*
 * A profile that was asked for at began_ns has ended. Gives when to ask for the next; 0: as
 * scheduled, and negative: so much later than scheduled.
 */
int64_t sharing_ended(struct sharing *s, int64_t interval_ns, int64_t began_ns, int64_t now_ns);

const char *sharing_mode_name(enum sharing_mode m); /* "alone", "halves", "turns" */

#endif
