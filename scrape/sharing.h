/*
 * Sharing: how a scraper shares a process's profiler with others that it does not know of, such as
 * a second server of a pair, or Parca while one moves. A Go process has one CPU profiler, and
 * refuses whoever asks while another one has it.
 *
 *	ALONE   The scraper takes whole profiles, one an interval. Once an hour each of ten turns
 *	        comes a tenth of the interval later: so each moment of the interval is free once, and
 *	        another profiler that was always refused gets in, and is met.
 *	HALVES  A scraper that was refused asks again until it gets in. From then on it takes half a
 *	        turn, leaves as much to the others, and asks again. Two that do so take turns; their
 *	        phase follows from who is refused for how long.
 *	TURNS   The other one asks only at its fixed times, and came back after it was left a whole
 *	        interval. So each takes a whole interval in turn.
 *
 * Others may leave a gap of only some milliseconds: Parca asks for as many seconds as its interval
 * has. A scraper that was refused for a whole interval asks more often.
 *
 * After two turns without a refusal the other profiler counts as gone, and the scraper is alone.
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
	unsigned missed; /* turns in a row without a refusal, since the last one */
	unsigned late; /* turns that are still to be moved, to look for others */
	bool often; /* the others leave a gap of only milliseconds */
	int64_t looked_ns; /* when the last look for others began */
};

/* How many of the target's `seconds` to ask for. */
int64_t sharing_seconds(const struct sharing *s, int64_t interval_ns, int64_t seconds);
/* The profiler was taken. Returns how long to wait before asking again. */
int64_t sharing_refused(struct sharing *s, int64_t interval_ns, int64_t now_ns);
/* True: give this turn up. It was refused for so long that the target's error should say it. */
bool sharing_is_starved(const struct sharing *s, int64_t interval_ns, int64_t now_ns);
/* The turn is given up or has failed otherwise; the next one is as scheduled. */
void sharing_gave_up(struct sharing *s);
/*
 * A profile that was asked for at began_ns has ended. Returns when to ask for the next; 0: as
 * scheduled; negative: so much later than scheduled.
 */
int64_t sharing_ended(struct sharing *s, int64_t interval_ns, int64_t began_ns, int64_t now_ns);

const char *sharing_mode_name(enum sharing_mode m); /* "alone", "halves", "turns" */

#endif
