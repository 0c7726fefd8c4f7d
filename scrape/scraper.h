/*
 * Scraper: one target's loop. Waits for its turn, fetches, hands the body to a worker, and learns
 * how it went.
 *
 *	idle -> (in line for the endpoint ->) fetching -> storing -> idle
 *
 * Fetching ends with the answer; storing is a worker's decoding and the sink's acknowledgement.
 * What is shown of the target changes only at the end of it.
 *
 * Units:     nanoseconds.
 * Ownership: scraper_stop ends a scraper; its memory goes once nothing is under way. A scraper
 *            holds the target set its target is of; a scrape under way holds its own.
 * Threads:   the loop's; the work between is done by the workers on a task of their own.
 */
#ifndef SCRAPE_SCRAPER_H
#define SCRAPE_SCRAPER_H

#include "base/thread.h"
#include "discovery/loop.h"
#include "scrape/exclusive.h"
#include "scrape/manager.h"
#include "scrape/targets.h"

#define SCRAPE_QUEUED_BYTES_MAX ((size_t)256 << 20) /* of bodies that wait for a worker */
#define SCRAPE_QUEUED_MAX 100000u

struct event;
struct scrape_task;

/* What all scrapers of a manager share. */
struct scrape_env {
	struct loop *loop;
	struct http_client *client;
	struct pool *workers;
	struct sink *sink;
	struct exclusive *exclusive;
	atomic_size_t queued_bytes;
	size_t by_health[3]; /* scrapers; the loop's thread */
	struct mutex lock;
	struct cond idle;
	size_t storing; /* tasks with workers or the sink; guarded by lock */
};

enum scraper_state { SCRAPER_IDLE, SCRAPER_WAITING, SCRAPER_FETCHING, SCRAPER_STORING };

struct scraper {
	struct scrape_env *env;
	struct target_set *set; /* held */
	const struct target *target;
	struct event *timer;
	enum scraper_state state;
	bool stopped;         /* freed when what is under way has ended */
	bool told_of_sharing; /* the log said that two jobs want one endpoint */
	int64_t next_ns;      /* monotonic: the next turn */
	struct exclusive_user user;
	struct http_request *request; /* SCRAPER_FETCHING */
	struct scrape_task *task;
	enum target_health health;
	char *last_error; /* NULL: none */
	int64_t last_scrape_ns, last_duration_ns;
	uint64_t scrapes, failures, skipped, last_samples, last_bytes;
};

/* Starts with its phase of the interval. */
MUST_CHECK enum err_code scraper_start(struct scrape_env *env, struct target_set *set,
	const struct target *target, struct scraper **out, struct err *err);
/* The same target out of another set; a changed interval gives a new schedule, all else goes on. */
void scraper_update(struct scraper *s, struct target_set *set, const struct target *target);
void scraper_stop(struct scraper *s);

#endif
