/*
 * Cycle: one turn of a scraper, from a scraper's timer over its request and its answer to what is
 * shown of the target. scraper.h has the states.
 *
 * Ownership: cycle_begin frees a profile now that fails at once.
 * Threads:   the lane's loop.
 */
#ifndef SCRAPE_CYCLE_H
#define SCRAPE_CYCLE_H

#include "scrape/scraper.h"

/* The next turn: the target's hash gives its offset in the interval, counted from 1970. */
void cycle_schedule(struct scraper *s);
/*
 * The first turn of a new target is now, if there is no crowd (lane.h) and the interval is at most
 * a day. The second is at the offset, an interval to two after the first; after a failure it is the
 * next one at the offset. Else the first turn is at the offset too.
 */
void cycle_schedule_first(struct scraper *s);
/* The timer's: a turn, or asking again in the same one. ctx: the scraper. */
void cycle_on_timer(evutil_socket_t fd, short what, void *ctx);
void cycle_on_endpoint(void *ctx); /* the endpoint that it waited for is its own now */
void cycle_begin(struct scraper *s);
void cycle_count_target(struct scraper *s); /* one more, of which nothing is known yet */
void cycle_change_optional(
	struct scraper *s); /* its profile may have become optional, or is not any more */
void scraper_free(struct scraper *s); /* nothing is under way */

#endif
