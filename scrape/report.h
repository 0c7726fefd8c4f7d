/*
 * Report: series of numbers about each scrape, for queries: `up` (1 or 0),
 * `scrape_duration_seconds`, `scrape_samples_scraped` and `scrape_body_size_bytes` (as received).
 * Each has the target's labels and `profile`, the profile's name. If the target has a label
 * `profile`, it becomes `exported_profile`.
 *
 * A worker appends values in batches, once a second or as soon as REPORT_BATCH_MAX scrapes wait. No
 * scrape waits for that, so a crash may lose the values of the last second. Refused values are
 * counted, and logged once until a batch succeeds.
 *
 * A target that goes away ends its series with the stale NaN. A server that ends does not: the next
 * one continues the series, as in Prometheus.
 *
 * Units:     nanoseconds, time of day. A value's time is the start of its scrape, in whole
 *            milliseconds.
 * Ownership: a value that waits holds its target set. Call report_stop, end the workers, then call
 *            report_close. With a NULL report all functions do nothing.
 * Threads:   the loop's, except report_open and report_close.
 * Source:    the automatic series of Prometheus's scrape loop.
 */
#ifndef SCRAPE_REPORT_H
#define SCRAPE_REPORT_H

#include "base/thread.h"
#include "proto/sink.h"
#include "scrape/targets/targets.h"

#define REPORT_BATCH_MAX 1000u
#define REPORT_BATCHES_MAX 100u /* with workers and the sink; more are dropped and counted */

struct event_base;
struct report;

struct report_scrape {
	int64_t start_ns, duration_ns;
	uint64_t samples, bytes; /* of what was received */
	bool up;
};

MUST_CHECK enum err_code report_open(struct event_base *base, struct pool *workers,
	struct sink *sink, struct report **out, struct err *err);
void report_scrape(struct report *r, const struct target *t, const struct report_scrape *s);
/* The target is scraped no more. */
void report_gone(struct report *r, const struct target *t, int64_t now_ns);
/* Gives the last batch to a worker; later values are ignored. */
void report_stop(struct report *r);
/* Waits for the sink's acknowledgements. */
void report_close(struct report *r);

#endif
