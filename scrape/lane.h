/*
 * Lane: one event loop and what the targets on it share: HTTP connections, who may take a CPU
 * profile of whom now, and what is reported of scrapes.
 *
 * A manager has a lane per core. All scrapers of one address are on one lane, so that they share
 * its connections and stand in one line for its CPU profiler.
 *
 * Other threads start, change and end scrapers through the lane's line of changes: links are inside
 * of the scrapers, so that putting one in line cannot fail, and the loop takes a slice of the line
 * at a time, so that a reload of thousands keeps no timer and no answer waiting.
 *
 * Ownership: lane_close ends what lane_open gave.
 * Threads:   lane_put from any; lane_end and lane_close from the one that opened it. client and
 *            exclusive are the loop's, as are report and leaving.
 */
#ifndef SCRAPE_LANE_H
#define SCRAPE_LANE_H

#include "base/thread.h"
#include "discovery/sources/loop.h"
#include "scrape/exclusive.h"
#include "scrape/report.h"

#define LANES_MAX 16u

struct scraper;
struct scrape_env;

struct lane {
	struct scrape_env *env;
	struct loop *loop;
	struct http_client *client;
	struct exclusive *exclusive;
	struct report *report;
	struct scraper *leaving; /* canceled, but still in line for their endpoint */
	struct loop_work work;
	struct mutex lock; /* of the line, and of every scraper's `change` */
	struct scraper *first, **last;
	bool posted; /* the loop was told of the line */
};

struct lane_options {
	const char *name; /* of the thread */
	size_t connections_max;
	const char *user_agent;
};

MUST_CHECK enum err_code lane_open(
	struct scrape_env *env, const struct lane_options *o, struct lane **out, struct err *err);
/* Takes the whole line and ends what the client has under way; nothing may come after it. */
void lane_end(struct lane *l);
/* Ends the thread, after what others posted to it. NULL is fine. */
void lane_close(struct lane *l);
/* The scraper's change is to be taken; lane->lock is held. */
void lane_put(struct lane *l, struct scraper *s);

#endif
