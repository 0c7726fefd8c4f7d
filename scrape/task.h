/*
 * Task: one scrape. The loop's thread makes it; with the answer it passes to a worker, which
 * inflates, decodes, checks and appends, then to the sink's thread, and comes back to the loop by a
 * post.
 *
 * Errors:    in the task (rc, result, err): ended is called whatever happened.
 * Ownership: a task holds the target set its target is of, and the configuration its request was
 *            made from.
 * Threads:   one at a time, as above. `scraper` is touched on the loop's thread only.
 */
#ifndef SCRAPE_TASK_H
#define SCRAPE_TASK_H

#include "base/net/http_client.h"
#include "scrape/scraper.h"

struct scrape_task {
	struct loop_work work;
	struct scraper *scraper;
	struct scrape_env *env;
	struct lane *lane;
	struct target_set *set; /* held; a later one with the same target while it is fetched */
	struct config *config; /* held: of the request */
	const struct target *target;
	void (*ended)(struct scrape_task *t); /* on the loop's thread, after task_store */
	int64_t start_ns, end_ns; /* time of day */
	int64_t began_ns, answered_ns; /* monotonic */
	struct buf body;
	struct buf content_type, content_encoding;
	bool wants_profile;
	struct buf profile; /* as pprof, gzip, where it is wanted */
	size_t bytes;
	uint32_t samples;
	unsigned waiting; /* for acknowledgements, and the worker's own part; env->lock */
	enum err_code rc;
	const char *result; /* for the metric */
	struct err err;
};

void task_failed(struct scrape_task *t, enum err_code rc, const char *result);
const char *task_result_of(enum err_code rc); /* of fetching and decoding */
/* Gives the answer to a worker. Where an error is returned, ended is not called. */
MUST_CHECK enum err_code task_store(struct scrape_task *t, const struct http_response *res);
void task_free(struct scrape_task *t);

#endif
