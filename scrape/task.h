/*
 * Task: one scrape. The loop's thread makes it. With the answer it goes to a worker, which
 * inflates, decodes, checks and appends; then to the sink's thread; and a post brings it back to
 * the loop. A profile that lacks names goes from the worker to the loop, which asks for them, and
 * back to a worker.
 *
 * Errors:    in the task (rc, result, err). `ended` is called whatever happened.
 * Ownership: a task holds its target, and the configuration of its request. It owns the
 *            body, which it takes over from the HTTP client without a copy.
 * Threads:   one at a time, as above. Only the loop's thread touches `scraper`.
 */
#ifndef SCRAPE_TASK_H
#define SCRAPE_TASK_H

#include "base/net/http_client.h"
#include "scrape/growth.h"
#include "scrape/scraper.h"
#include "scrape/symbolize.h"

struct scrape_task {
	struct loop_work work;
	struct scraper *scraper;
	struct scrape_env *env;
	struct lane *lane;
	struct config *config; /* held: the one the request was made from */
	const struct target *target; /* held; a reload replaces it while the request is under way */
	void (*ended)(struct scrape_task *t); /* on the loop's thread, after task_store */
	int64_t start_ns, end_ns; /* time of day */
	int64_t began_ns, answered_ns; /* monotonic */
	int64_t seconds; /* that were asked for; 0: none */
	struct buf body;
	struct buf content_type, content_encoding;
	int status; /* of the answer; 0: there was none */
	struct buf led_to; /* the URL that redirects led to, for errors; empty: there were none */
	struct arena arena; /* of what follows, from decoding to appending */
	const struct pprof *decoded;
	const enum value_kind *kinds; /* NULL: as configured, and by its types */
	bool since_last; /* it holds what was added since the answer before */
	struct growth_scrape growth;
	bool stacks_cut; /* of the decoded profile */
	struct symbolize *names; /* NULL: it lacks none */
	size_t asking_bytes; /* counted in env->queued_bytes while names are asked for */
	bool wants_profile;
	struct buf profile; /* gzipped pprof, if wants_profile */
	size_t bytes;
	uint32_t samples;
	unsigned waiting; /* acknowledgements missing, plus 1 for the worker; env->lock */
	enum err_code rc;
	const char *result; /* for the metric */
	struct err err;
};

void task_failed(struct scrape_task *t, enum err_code rc, const char *result);
const char *task_result_of(enum err_code rc); /* of fetching and decoding */
/* Gives the answer, whose body it takes, to a worker. On an error `ended` is not called. */
MUST_CHECK enum err_code task_store(struct scrape_task *t, const struct http_response *res);
void task_free(struct scrape_task *t);

#endif
