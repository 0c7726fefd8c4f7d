/*
 * Report: how each scrape went, as series of numbers that queries see: `up` (1 or 0),
 * `scrape_duration_seconds`, `scrape_samples_scraped` and `scrape_body_size_bytes` (as received),
 * each with the target's labels and `profile`, the profile's name. A label `profile` of the
 * target's own is there as `exported_profile`.
 *
 * Values are gathered and appended together, once a second or as soon as REPORT_BATCH_MAX scrapes
 * wait, by a worker: a scrape never waits for them. They are acknowledged to nobody, so a crash may
 * lose those of the last second. What the sink refuses is counted, and told once until all goes
 * well again.
 *
 * A target that goes away ends its series with the stale NaN. When the whole server ends it does
 * not: the next one goes on with them, as in Prometheus.
 *
 * Units:     nanoseconds, time of day; a value stands at the start of its scrape, in whole
 *            milliseconds.
 * Ownership: what waits holds its target set. report_stop, then the end of the workers, then
 *            report_close. A report that is NULL takes everything and does nothing.
 * Threads:   the loop's, but report_open and report_close.
 * Source:    Prometheus's scrape loop: its automatic series.
 */
#ifndef SCRAPE_REPORT_H
#define SCRAPE_REPORT_H

#include "base/thread.h"
#include "scrape/config/sink.h"
#include "scrape/targets.h"

#define REPORT_BATCH_MAX 1000u
#define REPORT_BATCHES_MAX 100u /* with workers and the sink; more are lost, and counted */

struct event_base;
struct report;

struct report_scrape {
	int64_t start_ns, duration_ns;
	uint64_t samples, bytes; /* as far as it came */
	bool up;
};

MUST_CHECK enum err_code report_open(struct event_base *base, struct pool *workers,
	struct sink *sink, struct report **out, struct err *err);
void report_scrape(struct report *r, struct target_set *set, const struct target *t,
	const struct report_scrape *s);
/* The target is scraped no more. */
void report_gone(struct report *r, struct target_set *set, const struct target *t, int64_t now_ns);
/* Hands over what waits; nothing is taken afterwards. */
void report_stop(struct report *r);
/* Waits for the sink's acknowledgements. */
void report_close(struct report *r);

#endif
