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
 * Ownership: scraper_end ends a scraper; its memory goes once nothing is under way. A scraper
 *            holds the target set its target is of; a scrape under way holds its own.
 * Threads:   its lane's loop, on which all fields but `change` are read and written; the work
 *            between is done by the workers on a task of their own. scraper_new, scraper_change and
 *            scraper_end may be called on any one thread at a time: they only put what is wanted in
 *            the lane's line.
 */
#ifndef SCRAPE_SCRAPER_H
#define SCRAPE_SCRAPER_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/thread.h"
#include "scrape/exclusive.h"
#include "scrape/lane.h"
#include "scrape/manager.h"
#include "scrape/targets.h"

#define SCRAPE_QUEUED_BYTES_MAX ((size_t)256 << 20) /* of bodies that wait for a worker */
#define SCRAPE_QUEUED_MAX 100000u

struct scrape_task;

/* What all scrapers of a manager share. */
struct scrape_env {
	struct pool *workers;
	struct sink *sink;
	atomic_bool closing; /* series of targets go on where the next server begins */
	atomic_size_t queued_bytes;
	struct mutex lock;
	struct cond idle;
	size_t storing; /* tasks with workers or the sink; guarded by lock */
};

/* What is wanted of a scraper and was not taken over yet; guarded by its lane's lock. */
struct scraper_change {
	struct scraper *next; /* in the lane's line */
	bool in_line;
	bool end;
	struct target_set *set; /* held; NULL: stays as it is */
	const struct target *target;
};

/* How a scrape out of turn ended: err says so where rc is not ERR_OK. */
struct scraper_outcome {
	enum err_code rc;
	const struct err *err;
	int64_t end_ns; /* time of day: where its profile stands */
	uint64_t samples, bytes;
	struct str profile; /* as pprof, gzip; "" where it is not wanted */
};

typedef void (*scraper_ended_fn)(void *ctx, const struct scraper_outcome *o);

enum scraper_state { SCRAPER_IDLE, SCRAPER_WAITING, SCRAPER_FETCHING, SCRAPER_STORING };

struct scraper {
	struct scrape_env *env;
	struct lane *lane;
	struct scraper_change change;
	struct target_set *set; /* held; NULL: not started yet */
	const struct target *target;
	struct event timer;
	enum scraper_state state;
	bool stopped; /* freed when what is under way has ended */
	bool told_of_sharing; /* the log said that two jobs want one endpoint */
	int64_t next_ns; /* monotonic: the next turn */
	int64_t turn_ns; /* the turn that is under way, or was last */
	struct exclusive_user user;
	scraper_ended_fn ended; /* of one scrape out of turn; NULL: a target's loop */
	void *ended_ctx;
	struct scraper *leaving_next; /* in the lane's list */
	bool wants_profile; /* in the outcome of `ended` */
	struct http_request *request; /* SCRAPER_FETCHING */
	struct scrape_task *task;
	enum target_health health;
	char *last_error; /* NULL: none */
	int64_t last_scrape_ns, last_duration_ns;
	uint64_t scrapes, failures, skipped, last_samples, last_bytes;
};

/* Starts with its phase of the interval. NULL: out of memory. */
struct scraper *scraper_new(struct lane *lane, struct target_set *set, const struct target *target);
/* The same target out of another set; a changed interval gives a new schedule, all else goes on. */
void scraper_change(struct scraper *s, struct target_set *set, const struct target *target);
void scraper_end(struct scraper *s);

/*
 * One scrape out of turn, in line with others for its endpoint; what is shown of its target stays
 * as it is. On the loop's thread, all of it: scraper_once makes it (NULL: out of memory),
 * scraper_begin starts it, then `ended` is called once, and it is gone; or scraper_cancel ends it
 * before that.
 */
struct scraper *scraper_once(struct lane *lane, struct target_set *set, const struct target *target,
	scraper_ended_fn ended, void *ctx);
void scraper_begin(struct scraper *s);
void scraper_cancel(struct scraper *s);
/* The lane ends: what was canceled waits no more. */
void scraper_leave_all(struct lane *lane);

/* The lane's: what was wanted happens, on the loop's thread. */
void scraper_take(struct scraper *s, const struct scraper_change *c);

#endif
