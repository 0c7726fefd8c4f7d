/*
 * Scraper: one target's loop. Waits for its turn, fetches, hands the body to a worker, and records
 * the outcome.
 *
 *	idle -> (waiting for the endpoint ->) fetching -> storing -> idle
 *	        fetching -> refused -> fetching: another profiler has the process (sharing.h)
 *
 * Fetching ends with the answer. Storing is a worker's decoding, questions for names if it lacks
 * them (symbolize.h), and the sink's acknowledgement. Only after it the target's health and last
 * scrape change.
 *
 * Units:     nanoseconds.
 * Ownership: scraper_end ends a scraper; it is freed once nothing is under way. A scraper holds the
 *            its target; a scrape under way holds its own.
 * Threads:   its lane's loop reads and writes all fields but `change`. Workers see only the task.
 *            scraper_new, scraper_change and scraper_end may be called on any one thread at a time:
 *            they only queue a change in the lane.
 */
#ifndef SCRAPE_SCRAPER_H
#define SCRAPE_SCRAPER_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/thread.h"
#include "scrape/exclusive.h"
#include "scrape/growth.h"
#include "scrape/lane.h"
#include "scrape/manager.h"
#include "scrape/sharing.h"
#include "scrape/targets/shard_gate.h"
#include "scrape/targets/targets.h"

#define SCRAPE_QUEUED_BYTES_MAX ((size_t)256 << 20) /* of bodies that wait for a worker */
#define SCRAPE_QUEUED_MAX 100000u

struct scrape_task;
struct symbol_cache;

/* Shared by all scrapers of a manager. */
struct scrape_env {
	struct pool *workers;
	struct sink *sink;
	struct shard_gate gate; /* whose targets are scraped */
	struct symbol_cache *symbols;
	int64_t symbols_timeout_ns; /* of all questions of a scrape */
	atomic_bool closing; /* no stale marks: the next server continues the series */
	atomic_size_t queued_bytes;
	struct mutex lock;
	struct cond idle;
	size_t storing; /* tasks with workers or the sink; guarded by lock */
};

/* A change of a scraper that its loop has not taken yet; guarded by the lane's lock. */
struct scraper_change {
	struct scraper *next; /* in the lane's queue */
	bool in_line;
	bool end;
	bool moved; /* it ends because another server scrapes the target from now on */
	const struct target *target; /* held; NULL: it ends */
};

/* The end of a profile now. err is set if rc is not ERR_OK. */
struct scraper_outcome {
	enum err_code rc;
	const struct err *err;
	int64_t end_ns; /* the profile's time, time of day */
	uint64_t samples, bytes;
	struct str profile; /* gzipped pprof; "" if it is not wanted */
};

typedef void (*scraper_ended_fn)(void *ctx, const struct scraper_outcome *o);

enum scraper_state {
	SCRAPER_IDLE,
	SCRAPER_WAITING,
	SCRAPER_FETCHING,
	SCRAPER_REFUSED,
	SCRAPER_STORING
};

struct scraper {
	struct scrape_env *env;
	struct lane *lane;
	struct scraper_change change;
	const struct target *target; /* held; NULL: not started yet */
	struct event timer;
	enum scraper_state state;
	bool stopped; /* freed when the scrape under way ends */
	bool queue_logged; /* that two jobs want one endpoint */
	struct sharing sharing; /* with profilers elsewhere */
	struct growth_watch growth; /* of its counters */
	bool stacks_cut; /* the last profile had stacks that are too deep */
	int64_t next_ns; /* monotonic: the next turn */
	int64_t turn_ns; /* the turn that is under way, or was last */
	bool first; /* the next turn is the first, and not at the offset */
	bool begun_at_once; /* such a turn was the last one */
	struct exclusive_user user;
	scraper_ended_fn ended; /* of a profile now; NULL: a target's loop */
	void *ended_ctx;
	struct scraper *leaving_next; /* in the lane's list `leaving` */
	bool wants_profile; /* `ended` gets the profile */
	struct http_request *request; /* SCRAPER_FETCHING */
	struct scrape_task *task;
	enum target_health health;
	char *last_error; /* NULL: none */
	int64_t last_scrape_ns, last_duration_ns;
	uint64_t scrapes, failures, skipped, last_samples, last_bytes;
};

/* Scrapes at once, or, in a crowd, at its offset in the interval (cycle.h). NULL: out of memory. */
struct scraper *scraper_new(struct lane *lane, const struct target *target);
/* The same target in another part. A changed interval gives a new schedule; all else goes on. */
void scraper_change(struct scraper *s, const struct target *target);
/* moved: another server goes on with its series, so they get no mark that the target is gone. */
void scraper_end(struct scraper *s, bool moved);

/*
 * One scrape out of turn. It waits for its endpoint like others, and changes nothing that is shown
 * of its target. All calls are on the loop's thread: scraper_once makes it (NULL: out of memory),
 * scraper_begin starts it, `ended` is called once and the scraper is freed. scraper_cancel ends it
 * earlier, without a call of `ended`.
 */
struct scraper *scraper_once(
	struct lane *lane, const struct target *target, scraper_ended_fn ended, void *ctx);
void scraper_begin(struct scraper *s);
void scraper_cancel(struct scraper *s);
/* When the lane ends: frees the canceled scrapers at once. */
void scraper_leave_all(struct lane *lane);

/* For the lane: makes the change. On the loop's thread. */
void scraper_take(struct scraper *s, const struct scraper_change *c);

#endif
