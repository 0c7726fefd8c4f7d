/*
 * Lane: one event loop, and what the targets on it share: HTTP connections, the holders of CPU
 * profilers, and the report of scrapes.
 *
 * A manager has a lane per core. All scrapers of one address are on one lane, so they share its
 * connections and queue for its CPU profiler.
 *
 * Other threads start, change and end scrapers through the lane's queue of changes. Its links are
 * members of the scrapers, so queueing cannot fail. The loop takes a slice of the queue at a time,
 * so a reload of thousands of targets delays no timer and no answer.
 *
 * New targets begin at once, but a crowd does not: a lane begins one every LANE_FIRST_EVERY_NS, and
 * none more than LANE_FIRST_AHEAD_NS from now. The others of a crowd begin at their offsets in the
 * interval. So ten targets have their first profiles at once, and after a restart with thousands
 * all but the first 200 of a lane are spread over the interval.
 *
 * Ownership: lane_close frees what lane_open gave.
 * Threads:   lane_put from any; lane_end and lane_close from the one that opened it. Only the
 * loop's thread uses client, exclusive, report, leaving and first_ns.
 */
#ifndef SCRAPE_LANE_H
#define SCRAPE_LANE_H

#include "base/clock.h"
#include "base/net/loop.h"
#include "base/thread.h"
#include "scrape/exclusive.h"
#include "scrape/report.h"

#define LANES_MAX 16u
#define LANE_FIRST_EVERY_NS (5 * NS_PER_MS)
#define LANE_FIRST_AHEAD_NS NS_PER_S

struct scraper;
struct scrape_env;

struct lane {
	struct scrape_env *env;
	struct loop *loop;
	struct http_client *client;
	struct exclusive *exclusive;
	struct report *report;
	struct scraper *leaving; /* canceled, but still holding their endpoint */
	int64_t first_ns; /* monotonic: the next new target begins no earlier */
	struct loop_work work;
	struct mutex lock; /* guards the queue (first, last, posted) and every scraper's `change` */
	struct scraper *first, **last;
	bool posted; /* lane_take_slice is posted to the loop */
};

struct lane_options {
	const char *name; /* of the thread */
	size_t connections_max;
	const char *user_agent;
};

MUST_CHECK enum err_code lane_open(
	struct scrape_env *env, const struct lane_options *o, struct lane **out, struct err *err);
/* Takes the whole queue and ends all requests. The last call but lane_close. */
void lane_end(struct lane *l);
/* Ends the thread once it has run what was posted. NULL is fine. */
void lane_close(struct lane *l);
/*
 * When one more new target begins; 0: there is a crowd, so at its offset. first_ns: the lane's.
 * Monotonic.
 */
int64_t lane_first_turn(int64_t *first_ns, int64_t now_ns);
/* Queues the scraper's change. lane->lock is held. */
void lane_put(struct lane *l, struct scraper *s);

#endif
